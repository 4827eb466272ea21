//! Checks for times that are in the future or implausible.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{AuditLog, format_time};

/// Plausible times, from 1901-01-01 until 2300-01-01, in microseconds since 1970: people in health
/// records were born after the start, and dates shifted for privacy are before the end.
const PLAUSIBLE: std::ops::Range<i64> = -2_177_452_800_000_000..10_413_792_000_000_000;

/// Counts occurrences of a fault and describes the first.
#[derive(Debug, Default)]
pub(super) struct FaultTally {
    count: u64,
    /// Position and description of the first occurrence; `None` as long as the fault has not
    /// occurred.
    first: Option<(String, String)>,
}

impl FaultTally {
    #[inline]
    pub(super) fn add(&mut self, describe: impl FnOnce() -> (String, String)) {
        self.add_many(1, describe);
    }

    /// Adds `n` to the count. `describe` is called for the first occurrence only.
    pub(super) fn add_many(&mut self, n: u64, describe: impl FnOnce() -> (String, String)) {
        if self.first.is_none() && n > 0 {
            self.first = Some(describe());
        }
        self.count = self.count.saturating_add(n);
    }

    /// Adds the fault to the log if it has occurred.
    pub(super) fn log_finding(
        self,
        check: &'static str,
        file: &Path,
        expected: &str,
        log: &mut AuditLog,
    ) {
        if let Some((position, found)) = self.first {
            log.add_many(self.count, check, file, position, found, expected);
        }
    }
}

#[derive(Debug)]
pub(super) struct OddTimes {
    now: i64,
    future: FaultTally,
    implausible: FaultTally,
}

impl OddTimes {
    pub(super) fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        Self { now, future: FaultTally::default(), implausible: FaultTally::default() }
    }

    #[inline]
    pub(super) fn check_time(
        &mut self,
        time: i64,
        subject: i64,
        position: impl FnOnce() -> String,
    ) {
        let tally = match () {
            () if !PLAUSIBLE.contains(&time) => &mut self.implausible,
            () if time > self.now => &mut self.future,
            () => return,
        };
        tally.add(|| (position(), format!("time {} of subject {subject}", format_time(time))));
    }

    pub(super) fn report_findings(self, file: &Path, log: &mut AuditLog) {
        let expected = "times up to today, unless dates were shifted on purpose";
        self.future.log_finding("future-time", file, expected, log);
        let expected = "times from 1901 to 2299; in MEDS an unknown date is NULL or left out";
        self.implausible.log_finding("implausible-time", file, expected, log);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plausible_years_are_what_they_say() {
        assert_eq!(format_time(PLAUSIBLE.start), "1901-01-01 00:00:00");
        assert_eq!(format_time(PLAUSIBLE.end), "2300-01-01 00:00:00");
    }
}
