//! Values that must never be printed (D6). `Debug` shows the kind only; there is no `Display`; reading one is a visible call.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

macro_rules! secret {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn new(text: impl Into<String>) -> Self { Self(text.into()) }
            /// The secret itself: for a header, a sealed column or the credential store, never for a log.
            pub fn reveal(&self) -> &str { &self.0 }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(concat!(stringify!($name), "(..)")) }
        }
    )+};
}

secret! {
    AccessToken;
    RefreshToken;
    Password;
}

/// The claim token the client makes before it claims (T-205 §2): 256 random bits as 43 characters of unpadded base64url.
#[derive(Clone, PartialEq, Eq)]
pub struct ClaimToken(String);

/// Why a text is not a claim token. Does not repeat the text: it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("claim token must be 43 characters of unpadded base64url")]
pub struct BadClaimToken;

impl ClaimToken {
    pub const LEN: usize = 43;

    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What the server stores instead of the token: lowercase hex SHA-256 of its 43 characters.
    pub fn sha256_hex(&self) -> String {
        sha256_hex(self.0.as_bytes())
    }
}

impl FromStr for ClaimToken {
    type Err = BadClaimToken;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let alphabet = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        // 43 characters carry 258 bits: the last one may only use its upper four.
        let last_is_canonical = matches!(
            text.as_bytes().last(),
            Some(b'A' | b'E' | b'I' | b'M' | b'Q' | b'U' | b'Y' | b'c' | b'g' | b'k' | b'o' | b's' | b'w' | b'0' | b'4' | b'8')
        );
        let fits = text.len() == Self::LEN && text.bytes().all(alphabet) && last_is_canonical;
        fits.then(|| Self(text.to_owned())).ok_or(BadClaimToken)
    }
}

impl fmt::Debug for ClaimToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClaimToken(..)")
    }
}

/// Lowercase hex SHA-256: the one form in which both ends compare tokens and payload bytes.
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}
