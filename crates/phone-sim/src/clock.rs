//! The only place that reads the wall clock, for `date` and for the time of an order. Pages never depend on it otherwise.

use std::time::{SystemTime, UNIX_EPOCH};

/// The phone stands in Shanghai.
const ZONE_SECONDS: u64 = 8 * 3600;

/// Seconds since 1970-01-01 UTC.
pub(crate) fn epoch_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A moment as the phone shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Local {
    pub(crate) year: u64,
    pub(crate) month: u64,
    pub(crate) day: u64,
    pub(crate) hour: u64,
    pub(crate) minute: u64,
    pub(crate) second: u64,
    week: usize,
}

/// The phone's local time of seconds since 1970 UTC.
pub(crate) fn local(epoch: u64) -> Local {
    let seconds = epoch + ZONE_SECONDS;
    let days = seconds / 86_400;
    // Civil date from a day count (the usual era arithmetic, March based).
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    Local {
        year: year_of_era + era * 400 + u64::from(month <= 2),
        month,
        day: day_of_year - (153 * month_index + 2) / 5 + 1,
        hour: seconds / 3600 % 24,
        minute: seconds / 60 % 60,
        second: seconds % 60,
        week: (days % 7) as usize,
    }
}

impl Local {
    /// `Tue Dec  1 09:41:00 CST 2026`
    pub(crate) fn as_date(self) -> String {
        let names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let week = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
        let Self { year, month, day, hour, minute, second, week: at } = self;
        format!("{} {} {day:>2} {hour:02}:{minute:02}:{second:02} CST {year}", week[at], names[(month - 1) as usize])
    }

    /// `2026-12-01 09:41:00`
    pub(crate) fn as_stamp(self) -> String {
        let Self { year, month, day, hour, minute, second, .. } = self;
        format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_prints_the_civil_day() {
        let rows = [
            (0, "Thu Jan  1 08:00:00 CST 1970", "1970-01-01 08:00:00"),
            (951_753_600, "Tue Feb 29 00:00:00 CST 2000", "2000-02-29 00:00:00"),
            (1_796_111_260, "Tue Dec  1 15:47:40 CST 2026", "2026-12-01 15:47:40"),
        ];
        for (seconds, date, stamp) in rows {
            assert_eq!(
                (local(seconds).as_date().as_str(), local(seconds).as_stamp().as_str()),
                (date, stamp),
                "{seconds} s after the epoch"
            );
        }
    }
}
