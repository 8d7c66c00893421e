//! Seeded chance that stays the same for ever: a scenario or a fault schedule written down today rolls the same numbers in every later
//! build, which library generators do not promise. It is no source of secrets.

/// SplitMix64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// `0..end`; 0 when `end` is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.roll() % end }
    }

    /// `low..=high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True in `percent` of a hundred rolls.
    pub(crate) fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < u64::from(percent)
    }

    /// One of them; `None` of nothing.
    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len() as u64) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_rolls_the_same_numbers_for_ever() {
        let mut dice = Dice::new(7);
        let rolled: Vec<u64> = (0..4).map(|_| dice.between(1, 6)).collect();
        let mut again = Dice::new(7);
        assert_eq!(rolled, (0..4).map(|_| again.between(1, 6)).collect::<Vec<_>>(), "one seed, one row of numbers");
        assert_eq!(Dice::new(0).roll(), 0xe220_a839_7b1d_cdaf, "the published first number of SplitMix64 for seed 0");
    }
}
