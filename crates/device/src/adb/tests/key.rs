//! The key in the shapes the phone wants it in.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::key;
use crate::adb::{AdbKey, BadKey};

#[test]
fn round_trip_and_debug() {
    let key = key();
    let der = key.to_pkcs8().expect("der");
    let again = AdbKey::from_pkcs8_der(&der).expect("its own output");
    assert_eq!(key.public_line("a@b"), again.public_line("a@b"), "the same key");
    assert_eq!(format!("{key:?}"), "AdbKey(..)", "a key must not reach a log");
    assert!(matches!(AdbKey::from_pkcs8_der(b"junk"), Err(BadKey::NotPkcs8(_))), "junk is refused");
    assert!(matches!(AdbKey::from_pkcs8_pem("junk"), Err(BadKey::NotPkcs8(_))), "junk pem is refused");
    assert!(key.sign(&[0; 19]).is_err(), "a token has 20 bytes");
}

#[test]
fn android_public_key_is_consistent() {
    let line = key().public_line("cm autobuy@host\n");
    let (base64, name) = line.split_once(' ').expect("two words");
    assert_eq!(name, "cmautobuy@host", "a name cannot break the line");
    let raw = STANDARD.decode(base64).expect("base64");
    assert_eq!(raw.len(), 4 + 4 + 256 + 256 + 4, "RSAPublicKey of a 2048-bit key");
    let word = |at: usize| u32::from_le_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]]);
    assert_eq!(word(0), 64, "words in the modulus");
    assert_eq!(word(520), 65537, "exponent");
    assert_eq!(word(4).wrapping_mul(word(8)), u32::MAX, "n0inv * n = -1 mod 2^32");
    let number = |at: usize| -> Vec<u32> { (0..64).map(|i| word(at + 4 * i)).collect() };
    let (n, rr) = (number(8), number(264));
    assert!(rr.iter().rev().lt(n.iter().rev()), "R^2 is reduced");
    // Montgomery: multiplying R^2 by 1 gives R mod n, and R mod n = 2^2048 - n because n has its top bit set.
    let mut one = vec![0; 64];
    one[0] = 1;
    let r: Vec<u32> = montgomery(&rr, &one, &n, word(4));
    let mut borrow = 0i64;
    let want: Vec<u32> = n
        .iter()
        .map(|word| {
            let diff = -i64::from(*word) - borrow;
            borrow = i64::from(diff < 0);
            diff as u32
        })
        .collect();
    assert_eq!(r, want, "R^2 * R^-1 = R (mod n)");
}

/// `a * b / 2^2048 mod n`, the way the phone's verifier computes it.
fn montgomery(a: &[u32], b: &[u32], n: &[u32], n0inv: u32) -> Vec<u32> {
    let mut t = vec![0u64; n.len() + 2];
    for &x in a {
        let mut carry = 0u64;
        for (slot, &y) in t.iter_mut().zip(b) {
            let sum = *slot + u64::from(x) * u64::from(y) + carry;
            *slot = sum & 0xFFFF_FFFF;
            carry = sum >> 32;
        }
        let top = n.len();
        let sum = t[top] + carry;
        t[top] = sum & 0xFFFF_FFFF;
        t[top + 1] = sum >> 32;
        let m = (t[0] as u32).wrapping_mul(n0inv);
        let mut carry = (t[0] + u64::from(m) * u64::from(n[0])) >> 32;
        for i in 1..top {
            let sum = t[i] + u64::from(m) * u64::from(n[i]) + carry;
            t[i - 1] = sum & 0xFFFF_FFFF;
            carry = sum >> 32;
        }
        let sum = t[top] + carry;
        t[top - 1] = sum & 0xFFFF_FFFF;
        t[top] = t[top + 1] + (sum >> 32);
    }
    let words: Vec<u32> = t[..n.len()].iter().map(|word| *word as u32).collect();
    if t[n.len()] == 0 && words.iter().rev().lt(n.iter().rev()) {
        return words;
    }
    let mut borrow = 0i64;
    words
        .iter()
        .zip(n)
        .map(|(x, y)| {
            let diff = i64::from(*x) - i64::from(*y) - borrow;
            borrow = i64::from(diff < 0);
            diff as u32
        })
        .collect()
}
