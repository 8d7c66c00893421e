//! Sealing of secrets that must live in SQLite (D6): XChaCha20-Poly1305 under a key that only the OS credential store holds.
//!
//! The associated data names the row, so a sealed value copied to another row does not open. Never logs, never prints a key.

use std::fmt;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use cmautobuy_protocol::{ClaimToken, IdempotencyKey, RemoteTaskId};

const NONCE_LEN: usize = 24;

/// The 256-bit key. `app` reads it from the OS credential store and hands it over at opening.
#[derive(Clone, PartialEq, Eq)]
pub struct SealKey([u8; 32]);

impl SealKey {
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealKey(..)")
    }
}

/// Why a sealed value is of no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    #[error("sealed value does not open with this computer's key; log in again, or adopt the data folder on this computer")]
    WrongKeyOrRow,
    #[error("sealed value is cut short")]
    Short,
    #[error("opened value is not what was sealed")]
    NotAToken,
}

/// Which row a sealed value belongs to.
pub(crate) enum Aad<'a> {
    ClaimAttempt(&'a IdempotencyKey),
    ClaimToken(RemoteTaskId),
    Secret(&'a str),
}

impl fmt::Display for Aad<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClaimAttempt(key) => write!(f, "claim-attempt:{key}"),
            Self::ClaimToken(task) => write!(f, "claim-token:{task}"),
            Self::Secret(name) => write!(f, "secret:{name}"),
        }
    }
}

impl SealKey {
    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&Key::from(self.0))
    }

    /// Nonce and ciphertext in one blob.
    pub(crate) fn seal(&self, secret: &[u8], aad: &Aad<'_>) -> Vec<u8> {
        let mut nonce = [0_u8; NONCE_LEN];
        rand::fill(&mut nonce);
        let aad = aad.to_string();
        let sealed = self
            .cipher()
            .encrypt(&XNonce::from(nonce), Payload { msg: secret, aad: aad.as_bytes() })
            .expect("a short message is always within the cipher's limit");
        let mut blob = nonce.to_vec();
        blob.extend_from_slice(&sealed);
        blob
    }

    pub(crate) fn open(&self, blob: &[u8], aad: &Aad<'_>) -> Result<Vec<u8>, SealError> {
        let (nonce, sealed) = blob.split_first_chunk::<NONCE_LEN>().ok_or(SealError::Short)?;
        let aad = aad.to_string();
        self.cipher().decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: aad.as_bytes() }).map_err(|_| SealError::WrongKeyOrRow)
    }

    pub(crate) fn seal_token(&self, token: &ClaimToken, aad: &Aad<'_>) -> Vec<u8> {
        self.seal(token.reveal().as_bytes(), aad)
    }

    pub(crate) fn open_token(&self, blob: &[u8], aad: &Aad<'_>) -> Result<ClaimToken, SealError> {
        let bytes = self.open(blob, aad)?;
        let text = String::from_utf8(bytes).map_err(|_| SealError::NotAToken)?;
        text.parse().map_err(|_| SealError::NotAToken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_token_opens_only_in_its_row_with_its_key() {
        let key = SealKey::from_bytes([7; 32]);
        let token: ClaimToken = format!("{}A", "b".repeat(42)).parse().expect("43 characters of base64url");
        let row = |n: u8| RemoteTaskId::from_uuid(uuid::Uuid::from_bytes([n; 16]));
        let attempt: IdempotencyKey = "attempt-1".parse().expect("visible ASCII");
        let blob = key.seal_token(&token, &Aad::ClaimToken(row(1)));
        let mut flipped = blob.clone();
        *flipped.last_mut().expect("blob has bytes") ^= 1;
        let other_key = SealKey::from_bytes([8; 32]);
        for (got, want, why) in [
            (key.open_token(&blob, &Aad::ClaimToken(row(1))), Ok(token.clone()), "its own row and key open it"),
            (key.open_token(&blob, &Aad::ClaimToken(row(2))), Err(SealError::WrongKeyOrRow), "a blob moved to another row must not open"),
            (key.open_token(&blob, &Aad::ClaimAttempt(&attempt)), Err(SealError::WrongKeyOrRow), "nor in another table"),
            (
                other_key.open_token(&blob, &Aad::ClaimToken(row(1))),
                Err(SealError::WrongKeyOrRow),
                "another computer's key must not open it",
            ),
            (key.open_token(&flipped, &Aad::ClaimToken(row(1))), Err(SealError::WrongKeyOrRow), "a changed byte must be noticed"),
            (key.open_token(&blob[..10], &Aad::ClaimToken(row(1))), Err(SealError::Short), "a truncated blob is refused, not a panic"),
        ] {
            assert_eq!(got, want, "{why}");
        }
        assert_ne!(blob, key.seal_token(&token, &Aad::ClaimToken(row(1))), "every sealing uses a fresh nonce");
        assert_eq!(format!("{key:?}"), "SealKey(..)", "a key must never reach a log");
    }
}
