//! Making secrets and the one form in which they are kept: SHA-256 for tokens, argon2id for passwords (D6). Nothing here is logged.

use std::fmt;
use std::sync::LazyLock;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Argon2, Params};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cmautobuy_protocol::Password;
use subtle::ConstantTimeEq;

/// Why a password could not be hashed or a stored hash not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("argon2 failed: {0}")]
pub struct PasswordError(argon2::password_hash::Error);

/// A password as it is stored: a PHC string of argon2id. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StoredPassword(String);

impl fmt::Debug for StoredPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoredPassword(..)")
    }
}

impl StoredPassword {
    pub(crate) fn from_column(text: String) -> Self {
        Self(text)
    }
    pub(crate) fn as_column(&self) -> &str {
        &self.0
    }
}

/// Slow on purpose: call it on a blocking thread.
pub(crate) fn hash_password(password: &Password) -> Result<StoredPassword, PasswordError> {
    let hash: PasswordHash = Argon2::default().hash_password(password.reveal().as_bytes()).map_err(PasswordError)?;
    Ok(StoredPassword(hash.to_string()))
}

/// Compared when the user does not exist, so that both cases take the same time.
static NOBODY: LazyLock<Result<StoredPassword, PasswordError>> = LazyLock::new(|| hash_password(&Password::new(random_token())));

/// Makes the first unknown-user login as fast as every later one.
pub(crate) fn warm_up() {
    LazyLock::force(&NOBODY);
}

/// `false` for an unknown user (`None`) as for a wrong password. Slow on purpose: call it on a blocking thread.
pub(crate) fn password_fits(stored: Option<&StoredPassword>, given: &Password) -> Result<bool, PasswordError> {
    let hash = match stored {
        Some(hash) => hash,
        None => NOBODY.as_ref().map_err(Clone::clone)?,
    };
    let parsed = PasswordHash::new(&hash.0).map_err(|error| PasswordError(error.into()))?;
    let fits = Argon2::default().verify_password(given.reveal().as_bytes(), &parsed).is_ok();
    Ok(fits && stored.is_some())
}

/// Whether two hashes of secrets are equal, in a time that does not tell how much of them is.
pub(crate) fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

/// Whether a stored password was hashed with other parameters than today's, so that the next login should hash it anew.
pub(crate) fn is_outdated(stored: &StoredPassword) -> bool {
    let costs = |params: &Params| (params.m_cost(), params.t_cost(), params.p_cost());
    let parsed = PasswordHash::new(&stored.0).ok().and_then(|hash| Params::try_from(&hash).ok());
    parsed.is_none_or(|params| costs(&params) != costs(Argon2::default().params()))
}

/// 256 random bits as 43 characters of unpadded base64url.
pub(crate) fn random_token() -> String {
    URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

/// 120 random bits as 20 characters a person can type from a terminal.
pub(crate) fn random_password() -> Password {
    Password::new(URL_SAFE_NO_PAD.encode(rand::random::<[u8; 15]>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_fits_only_its_own_hash() {
        let stored = hash_password(&Password::new("correct horse")).expect("argon2 must work with its default parameters");
        assert!(stored.as_column().starts_with("$argon2id$"), "the table's CHECK asks for argon2id");
        let rows =
            [("right", Some(&stored), "correct horse", true), ("wrong", Some(&stored), "x", false), ("unknown user", None, "x", false)];
        for (name, hash, given, fits) in rows {
            let answer = password_fits(hash, &Password::new(given)).expect("verifying must not fail");
            assert_eq!(answer, fits, "row `{name}`");
        }
    }

    #[test]
    fn a_hash_of_other_parameters_is_outdated() {
        let now = hash_password(&Password::new("correct horse")).expect("argon2 must work with its default parameters");
        assert!(!is_outdated(&now), "a hash made now is up to date");
        let weak = Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, Params::new(8, 1, 1, None).expect("legal parameters"));
        let hash: PasswordHash = weak.hash_password(b"correct horse").expect("argon2 must work with weak parameters");
        let weak = StoredPassword(hash.to_string());
        assert!(password_fits(Some(&weak), &Password::new("correct horse")).expect("verifying must not fail"), "an old hash still lets in");
        assert!(is_outdated(&weak), "and is made anew at that login");
    }

    #[test]
    fn tokens_are_43_characters_and_differ() {
        let (a, b) = (random_token(), random_token());
        assert_eq!(a.len(), 43, "256 bits in base64url without padding are 43 characters");
        assert_ne!(a, b, "two tokens must never be equal");
    }
}
