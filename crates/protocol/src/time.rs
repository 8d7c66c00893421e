//! Time on the wire and in SQLite: RFC 3339 UTC with exactly three fraction digits (D1), so that text order is time order.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment, kept to the millisecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WireTime(Timestamp);

impl WireTime {
    /// Keeps whole milliseconds (rounding down), so that a value survives a round trip unchanged.
    pub fn new(at: Timestamp) -> Self {
        let ms = at.as_nanosecond().div_euclid(1_000_000);
        let ms = i64::try_from(ms).expect("jiff's range in milliseconds fits an i64");
        Self(Timestamp::from_millisecond(ms).expect("milliseconds of a Timestamp are in jiff's range"))
    }

    pub const fn timestamp(self) -> Timestamp {
        self.0
    }

    pub fn unix_ms(self) -> i64 {
        self.0.as_millisecond()
    }

    pub fn from_unix_ms(ms: i64) -> Result<Self, jiff::Error> {
        Timestamp::from_millisecond(ms).map(Self)
    }

    /// `self - earlier` in milliseconds; negative when `earlier` is later.
    pub fn ms_since(self, earlier: Self) -> i64 {
        self.unix_ms() - earlier.unix_ms()
    }

    /// `self + ms`, held at the ends of the representable range.
    #[must_use]
    pub fn plus_ms(self, ms: i64) -> Self {
        Self::from_unix_ms(self.unix_ms().saturating_add(ms)).unwrap_or(if ms < 0 { Self(Timestamp::MIN) } else { Self(Timestamp::MAX) })
    }
}

impl fmt::Display for WireTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}
impl fmt::Debug for WireTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl FromStr for WireTime {
    type Err = jiff::Error;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<Timestamp>().map(Self::new)
    }
}
impl Serialize for WireTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for WireTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
