//! Turns the bytes of a dump into text, whatever shell, editor or redirect they went through.
//!
//! It never fails: what cannot be decoded becomes U+FFFD, and the parser decides if a tree is left.

use std::borrow::Cow;

use encoding_rs::{Encoding, GBK, UTF_8, UTF_16BE, UTF_16LE};

/// Decodes to text. The declaration inside the document is not consulted: it lies (facts D).
pub(super) fn decode(raw: &[u8]) -> Cow<'_, str> {
    if let Some((encoding, bom)) = Encoding::for_bom(raw) {
        return encoding.decode_without_bom_handling(&raw[bom..]).0;
    }
    if let Some(encoding) = utf16_without_bom(raw) {
        return encoding.decode_without_bom_handling(raw).0;
    }
    match std::str::from_utf8(raw) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => legacy(raw),
    }
}

/// `<` and what follows it are ASCII in any dump, so every other byte is zero in UTF-16.
fn utf16_without_bom(raw: &[u8]) -> Option<&'static Encoding> {
    let head = raw.get(..8)?;
    let zeros = |from: usize| head.iter().skip(from).step_by(2).filter(|b| **b == 0).count();
    match (zeros(0), zeros(1)) {
        (0, 3..) => Some(UTF_16LE),
        (3.., 0) => Some(UTF_16BE),
        _ => None,
    }
}

/// Not UTF-8: GBK when most of the non-ASCII bytes make no sense as UTF-8, else UTF-8 with holes.
fn legacy(raw: &[u8]) -> Cow<'_, str> {
    let (lossy, _) = UTF_8.decode_without_bom_handling(raw);
    let (mut holes, mut good) = (0usize, 0usize);
    for c in lossy.chars().filter(|c| !c.is_ascii()) {
        if c == '\u{FFFD}' {
            holes += 1;
        } else {
            good += 1;
        }
    }
    if holes * 4 > good {
        let (gbk, had_errors) = GBK.decode_without_bom_handling(raw);
        if !had_errors {
            return gbk;
        }
        let gbk_holes = gbk.chars().filter(|c| *c == '\u{FFFD}').count();
        if gbk_holes * 4 < holes {
            return gbk;
        }
    }
    lossy
}
