//! Every text of a tree, stored once and named by a small number.
//!
//! A page repeats its classes, packages and flags on every node; storing each once keeps the arena small and makes "same text" a
//! comparison of two numbers. Adding a text allocates only when a buffer has to grow.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// A text of one tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sym(u32);

impl Sym {
    pub(super) const EMPTY: Sym = Sym(0);

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }

    pub(super) fn at(index: usize) -> Sym {
        Sym(index as u32)
    }
}

/// The finished table.
#[derive(Clone, Default)]
pub(super) struct Texts {
    arena: String,
    /// Where text `n + 1` ends; it begins where the one before ends. Text 0 is empty.
    ends: Vec<u32>,
}

impl Texts {
    pub(super) fn get(&self, sym: Sym) -> &str {
        let index = sym.index();
        if index == 0 {
            return "";
        }
        let start = if index == 1 { 0 } else { self.ends[index - 2] as usize };
        &self.arena[start..self.ends[index - 1] as usize]
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.ends.len() + 1).map(|index| self.get(Sym::at(index)))
    }
}

/// The table while a tree is read.
pub(super) struct Interner {
    texts: Texts,
    seen: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// Holds a value with its references resolved; reused.
    scratch: String,
}

impl Interner {
    pub(super) fn for_nodes(nodes: usize) -> Interner {
        // About two texts of its own per node, the rest is shared.
        let texts = Texts { arena: String::with_capacity(nodes * 32), ends: Vec::with_capacity(nodes * 2) };
        Interner { texts, seen: HashTable::with_capacity(nodes * 2), hasher: DefaultHashBuilder::default(), scratch: String::new() }
    }

    /// Stores an attribute's value. One with a bad reference (`&#0;`, a lone surrogate, a bare `&`) stays raw (facts E).
    pub(super) fn intern(&mut self, raw: &str) -> Sym {
        if raw.is_empty() {
            return Sym::EMPTY;
        }
        let Interner { texts, seen, hasher, scratch } = self;
        let value = if raw.as_bytes().contains(&b'&') && resolve(raw, scratch) { scratch.as_str() } else { raw };
        let hash = hasher.hash_one(value);
        if let Some(found) = seen.find(hash, |sym| texts.get(Sym(*sym)) == value) {
            return Sym(*found);
        }
        texts.arena.push_str(value);
        texts.ends.push(texts.arena.len() as u32);
        let sym = texts.ends.len() as u32;
        seen.insert_unique(hash, sym, |sym| hasher.hash_one(texts.get(Sym(*sym))));
        Sym(sym)
    }

    pub(super) fn finish(self) -> Texts {
        self.texts
    }
}

/// Writes `raw` with its references resolved; false when one of them is none.
fn resolve(raw: &str, into: &mut String) -> bool {
    into.clear();
    let mut rest = raw;
    while let Some((before, after)) = rest.split_once('&') {
        into.push_str(before);
        let Some((name, after)) = after.split_once(';') else { return false };
        let Some(c) = reference(name) else { return false };
        into.push(c);
        rest = after;
    }
    into.push_str(rest);
    true
}

fn reference(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        number => {
            let digits = number.strip_prefix('#')?;
            let (digits, radix) = digits.strip_prefix(['x', 'X']).map_or((digits, 10), |hex| (hex, 16));
            // `from_str_radix` would also take a sign.
            let code = if digits.starts_with('+') { None } else { u32::from_str_radix(digits, radix).ok() };
            code.and_then(char::from_u32).filter(|c| *c != '\0')
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_stored_once_and_read_back() {
        let mut interner = Interner::for_nodes(0);
        let words = ["a", "", "雾蓝", "a", "雾蓝", "b&amp;c", "b&c"];
        let symbols: Vec<Sym> = words.iter().map(|word| interner.intern(word)).collect();
        let texts = interner.finish();
        let read: Vec<&str> = symbols.iter().map(|sym| texts.get(*sym)).collect();
        assert_eq!(read, ["a", "", "雾蓝", "a", "雾蓝", "b&c", "b&c"], "every text must come back as it was meant");
        assert_eq!(texts.iter().count(), 4, "the empty one, `a`, `雾蓝` and `b&c`, each once");
        assert_eq!(Texts::default().iter().collect::<Vec<_>>(), [""], "an empty tree still has the empty text");
    }

    #[test]
    fn many_texts_survive_growing() {
        let mut interner = Interner::for_nodes(1);
        let symbols: Vec<Sym> = (0..5_000).map(|n| interner.intern(&format!("text {}", n % 2_500))).collect();
        let texts = interner.finish();
        assert_eq!(symbols[7], symbols[2_507], "the second of two equal texts is the first");
        assert_eq!(texts.get(symbols[2_499]), "text 2499", "rehashing must not mix texts up");
    }
}
