//! Exact quantities: whole millionths in an `i64` (D1, R13, R15). A value that does not fit is refused, never rounded, and no `f64` is involved.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const SCALE: i64 = 1_000_000;
const DIGITS: usize = 6;

/// Pieces, in millionths of one. On the wire a string with six fraction digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Quantity(i64);

/// Why a number is no quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    #[error("not a decimal number")]
    NotANumber,
    #[error("more than six fraction digits")]
    TooFine,
    #[error("too large to be counted exactly")]
    TooLarge,
}

impl Quantity {
    pub const ZERO: Self = Self(0);

    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn micros(self) -> i64 {
        self.0
    }

    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    pub const fn is_positive(self) -> bool {
        self.0 > 0
    }
}

/// A plain decimal or JSON number text: `12`, `-0.5`, `1.200000000`, `3e2`. Zeros beyond the sixth fraction digit are no digits.
impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], exponent(&text[at + 1..])?),
            None => (text, 0),
        };
        let (is_negative, digits) = match mantissa.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, mantissa),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) || (digits.contains('.') && fraction.is_empty()) {
            return Err(QuantityError::NotANumber);
        }
        let all = [whole, fraction].concat();
        let significant = all.trim_end_matches('0');
        // The value is `significant` times ten to this power, in millionths.
        let power = (all.len() - significant.len()) as i64 - fraction.len() as i64 + exponent + DIGITS as i64;
        let significant = significant.trim_start_matches('0');
        if significant.is_empty() {
            return Ok(Self::ZERO);
        }
        let power = u32::try_from(power).map_err(|_| QuantityError::TooFine)?;
        let value: i128 = significant.parse().map_err(|_| QuantityError::TooLarge)?;
        let micros = 10_i128.checked_pow(power).and_then(|factor| value.checked_mul(factor)).ok_or(QuantityError::TooLarge)?;
        let micros = if is_negative { -micros } else { micros };
        i64::try_from(micros).map(Self).map_err(|_| QuantityError::TooLarge)
    }
}

fn exponent(text: &str) -> Result<i64, QuantityError> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(QuantityError::NotANumber);
    }
    // A number of this length is refused whatever its mantissa; zero is caught by its caller only after this, which costs nothing real.
    text.parse::<i32>().map(i64::from).map_err(|_| QuantityError::TooLarge)
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let micros = self.0.unsigned_abs();
        let scale = SCALE.unsigned_abs();
        write!(f, "{sign}{}.{:06}", micros / scale, micros % scale)
    }
}

impl fmt::Debug for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decimals_are_read_exactly_or_refused() {
        for (text, want) in [
            ("0", Ok(0)),
            ("-0", Ok(0)),
            ("0.000000", Ok(0)),
            ("12", Ok(12_000_000)),
            ("-0.5", Ok(-500_000)),
            ("1.2000000000", Ok(1_200_000)),
            ("0.1", Ok(100_000)),
            ("3e2", Ok(300_000_000)),
            ("1.5E-3", Ok(1_500)),
            ("10e-7", Ok(1)),
            ("9223372036854.775807", Ok(i64::MAX)),
            ("-9223372036854.775808", Ok(i64::MIN)),
            ("9223372036854.775808", Err(QuantityError::TooLarge)),
            ("1e99999999999", Err(QuantityError::TooLarge)),
            ("1e40", Err(QuantityError::TooLarge)),
            ("99999999999999999999999999999999999999999", Err(QuantityError::TooLarge)),
            ("0.0000001", Err(QuantityError::TooFine)),
            ("1e-7", Err(QuantityError::TooFine)),
            ("", Err(QuantityError::NotANumber)),
            ("-", Err(QuantityError::NotANumber)),
            (".5", Err(QuantityError::NotANumber)),
            ("5.", Err(QuantityError::NotANumber)),
            ("+5", Err(QuantityError::NotANumber)),
            ("1,5", Err(QuantityError::NotANumber)),
            ("NaN", Err(QuantityError::NotANumber)),
            ("1e", Err(QuantityError::NotANumber)),
            ("--1", Err(QuantityError::NotANumber)),
            (" 1", Err(QuantityError::NotANumber)),
        ] {
            assert_eq!(text.parse().map(Quantity::micros), want, "row `{text}`");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(micros: i64) {
            let quantity = Quantity::from_micros(micros);
            prop_assert_eq!(quantity.to_string().parse(), Ok(quantity), "every i64 must survive the wire");
        }

        #[test]
        fn no_text_panics(text in ".{0,40}|[-+0-9.eE]{0,40}") {
            let _whatever: Result<Quantity, _> = text.parse();
        }
    }
}
