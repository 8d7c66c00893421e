//! Android's RSA key format and the check of a signed token. It remembers nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rsa::{BoxedUint, Pkcs1v15Sign, PublicKey};
use sha1::Sha1;

pub(crate) const TOKEN: u32 = 1;
pub(crate) const SIGNATURE: u32 = 2;
pub(crate) const PUBLIC_KEY: u32 = 3;

const WORDS: usize = 64;

/// The base64 part of what a peer sent as its public key, when it is one.
pub(crate) fn key_text(payload: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(payload);
    let base64 = text.trim_end_matches('\0').split_whitespace().next()?.to_owned();
    parse(&base64).map(|_| base64)
}

/// Reads the Android public key structure: word count, n0inv, n, R^2 mod n, exponent.
pub(crate) fn parse(base64: &str) -> Option<PublicKey> {
    let raw = STANDARD.decode(base64).ok()?;
    let word = |at: usize| Some(u32::from_le_bytes(raw.get(at..at + 4)?.try_into().ok()?));
    if word(0)? as usize != WORDS || raw.len() < 8 + WORDS * 8 + 4 {
        return None;
    }
    let modulus = BoxedUint::from_le_slice(&raw[8..8 + WORDS * 4], 2048).ok()?;
    let exponent = BoxedUint::from(u64::from(word(8 + WORDS * 8)?));
    PublicKey::new(modulus, exponent).ok()
}

/// Whether the token was signed by one of the keys. The token is signed as if it were a digest.
pub(crate) fn signed_by(keys: &[String], token: &[u8; 20], signature: &[u8]) -> bool {
    keys.iter().filter_map(|key| parse(key)).any(|key| key.verify(Pkcs1v15Sign::new::<Sha1>(), token, signature).is_ok())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rsa::PrivateKey;
    use rsa::traits::PublicKeyParts;

    /// The Android line of a key; only what readers use is filled in.
    pub(crate) fn line_of(key: &PrivateKey) -> String {
        let mut raw = vec![0_u8; 8 + WORDS * 8 + 4];
        raw[..4].copy_from_slice(&(WORDS as u32).to_le_bytes());
        let modulus = key.n().to_le_bytes();
        raw[8..8 + WORDS * 4].copy_from_slice(&modulus[..WORDS * 4]);
        let at = raw.len() - 4;
        raw[at..].copy_from_slice(&65_537_u32.to_le_bytes());
        STANDARD.encode(raw)
    }

    #[test]
    fn a_signed_token_is_accepted_only_from_its_key() {
        let key = PrivateKey::new(&mut rand::rng(), 2048).expect("a key is made");
        let token = [7_u8; 20];
        let signature = key.sign(Pkcs1v15Sign::new::<Sha1>(), &token).expect("signs");
        let known = key_text(format!("{} me@here\0", line_of(&key)).as_bytes()).expect("the line is a key");
        assert!(signed_by(std::slice::from_ref(&known), &token, &signature), "its own key opens");
        assert!(!signed_by(&[known], &[8; 20], &signature), "another token does not");
        assert!(!signed_by(&[], &token, &signature), "an unknown key does not");
        assert_eq!(key_text(b"rubbish"), None, "rubbish is no key");
    }
}
