//! The RSA key a phone remembers us by.
//!
//! The caller stores it sealed (D6); this module never writes it anywhere and never prints it.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rsa::PrivateKey;
use rsa::pkcs8::{DecodePrivateKey, EncodePrivateKey};
use rsa::traits::PublicKeyParts;
use sha1::Sha1;

use crate::adb::AdbError;

const BITS: usize = 2048;
const BYTES: usize = BITS / 8;
/// `u32`s in the modulus: the android format counts in these.
const WORDS: u32 = (BYTES / 4) as u32;

/// Why bytes are not a usable ADB key.
#[derive(Debug, thiserror::Error)]
pub enum BadKey {
    #[error("the adb key is not a pkcs#8 private key: {0}")]
    NotPkcs8(String),
    #[error("an adb key has {BITS} bits, this one has {0}")]
    WrongSize(usize),
    #[error("an adb key could not be made: {0}")]
    Generate(String),
    #[error("an adb key could not be encoded: {0}")]
    Encode(String),
}

/// An RSA-2048 key in adb's sense. `Debug` shows nothing of it.
pub struct AdbKey {
    key: PrivateKey,
}

impl fmt::Debug for AdbKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdbKey(..)")
    }
}

impl AdbKey {
    /// A new key from the system's random source. Takes a second or so; call it off the async threads.
    pub fn generate() -> Result<AdbKey, BadKey> {
        let key = PrivateKey::new(&mut rand::rng(), BITS).map_err(|e| BadKey::Generate(e.to_string()))?;
        AdbKey::checked(key)
    }

    /// From PKCS#8 DER.
    pub fn from_pkcs8_der(der: &[u8]) -> Result<AdbKey, BadKey> {
        AdbKey::checked(PrivateKey::from_pkcs8_der(der).map_err(|e| BadKey::NotPkcs8(e.to_string()))?)
    }

    /// From PKCS#8 PEM, the format of adb's own `adbkey` file.
    pub fn from_pkcs8_pem(pem: &str) -> Result<AdbKey, BadKey> {
        AdbKey::checked(PrivateKey::from_pkcs8_pem(pem).map_err(|e| BadKey::NotPkcs8(e.to_string()))?)
    }

    /// PKCS#8 DER, for sealing.
    pub fn to_pkcs8(&self) -> Result<Vec<u8>, BadKey> {
        let der = self.key.to_pkcs8_der().map_err(|e| BadKey::Encode(e.to_string()))?;
        Ok(der.as_bytes().to_vec())
    }

    /// PKCS#8 PEM, for a library that takes nothing else.
    #[cfg(feature = "usb")]
    pub(crate) fn to_pkcs8_pem(&self) -> Result<String, BadKey> {
        let pem = self.key.to_pkcs8_pem(rsa::pkcs8::LineEnding::LF).map_err(|e| BadKey::Encode(e.to_string()))?;
        Ok(pem.to_string())
    }

    /// The line a phone stores in `adb_keys`: base64 of the android public key, a space, a name.
    pub fn public_line(&self, name: &str) -> String {
        let name: String = name.chars().filter(|c| c.is_ascii_graphic()).collect();
        format!("{} {name}", STANDARD.encode(self.android_public()))
    }

    /// PKCS#1 v1.5 over the 20-byte token, which stands in the place of a SHA-1 digest.
    pub(crate) fn sign(&self, token: &[u8]) -> Result<Vec<u8>, AdbError> {
        if token.len() != 20 {
            return Err(AdbError::Protocol(format!("an auth token of {} bytes", token.len())));
        }
        self.key.pkcs1v15_sign_prehash::<Sha1>(token).map_err(|e| AdbError::Protocol(format!("cannot sign: {e}")))
    }

    fn checked(key: PrivateKey) -> Result<AdbKey, BadKey> {
        let bits = key.size() * 8;
        if bits == BITS { Ok(AdbKey { key }) } else { Err(BadKey::WrongSize(bits)) }
    }

    /// Words, -1/n mod 2^32, n, R^2 mod n, e; all little endian (AOSP `android_pubkey.c`).
    fn android_public(&self) -> Vec<u8> {
        let n = little_endian(&self.key.n_bytes());
        let e = self.key.e_bytes().iter().fold(0u32, |e, byte| (e << 8) | u32::from(*byte));
        let n0 = u32::from_le_bytes([n[0], n[1], n[2], n[3]]);
        let mut out = Vec::with_capacity(12 + 2 * BYTES);
        out.extend(WORDS.to_le_bytes());
        out.extend(negated_inverse(n0).to_le_bytes());
        out.extend(&n);
        out.extend(r_squared(&n));
        out.extend(e.to_le_bytes());
        out
    }
}

fn little_endian(big: &[u8]) -> Vec<u8> {
    let mut little: Vec<u8> = big.iter().rev().copied().collect();
    little.resize(BYTES, 0);
    little
}

/// `-1/n mod 2^32` by Newton's iteration; n is odd.
fn negated_inverse(n: u32) -> u32 {
    let mut inverse = 1u32;
    for _ in 0..5 {
        inverse = inverse.wrapping_mul(2u32.wrapping_sub(n.wrapping_mul(inverse)));
    }
    inverse.wrapping_neg()
}

/// `2^(2*2048) mod n` by doubling: 4096 shifts and subtractions over public numbers.
fn r_squared(n: &[u8]) -> Vec<u8> {
    let words = |bytes: &[u8]| -> Vec<u32> { bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect() };
    let n = words(n);
    let mut x = vec![0u32; n.len()];
    x[0] = 1;
    for _ in 0..2 * BITS {
        let mut carry = 0;
        for word in &mut x {
            let next = *word >> 31;
            *word = (*word << 1) | carry;
            carry = next;
        }
        let not_less = carry == 1 || x.iter().rev().cmp(n.iter().rev()).is_ge();
        if not_less {
            let mut borrow = 0u64;
            for (word, sub) in x.iter_mut().zip(&n) {
                let diff = u64::from(*word).wrapping_sub(u64::from(*sub)).wrapping_sub(borrow);
                *word = diff as u32;
                borrow = (diff >> 32) & 1;
            }
        }
    }
    x.iter().flat_map(|word| word.to_le_bytes()).collect()
}
