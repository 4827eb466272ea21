use std::collections::HashSet;

use crate::io::meds::compute_delta_days;

/// Flat buffers of an output shard: events of subjects, measurements of events, and static facts.
#[derive(Debug, Default)]
pub(super) struct CohortShardBuilder {
    pub(super) subjects: Vec<i64>,
    pub(super) event_ends: Vec<i64>,
    pub(super) times: Vec<i64>,
    pub(super) deltas: Vec<f32>,
    pub(super) measurement_ends: Vec<i64>,
    pub(super) codes: Vec<i64>,
    pub(super) values: Vec<f32>,
    /// End of the static facts of each subject in `static_codes` and `static_values`.
    pub(super) static_ends: Vec<i64>,
    pub(super) static_codes: Vec<u32>,
    pub(super) static_values: Vec<Option<f32>>,
    seen: HashSet<i64>,
    /// Index in the field `times` of the first event of the current subject.
    first_event: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Measurement {
    pub(super) subject: i64,
    /// Time in microseconds; `None` for a static fact.
    pub(super) time: Option<i64>,
    pub(super) token: u32,
    pub(super) value: Option<f32>,
}

impl CohortShardBuilder {
    /// Appends a measurement. Returns false if the rows of a subject are not adjacent, or its times
    /// descend.
    #[inline]
    pub(super) fn push(&mut self, row: Measurement) -> bool {
        if self.subjects.last() != Some(&row.subject) && !self.begin_subject(row.subject) {
            return false;
        }
        let Some(time) = row.time else {
            self.static_codes.push(row.token);
            self.static_values.push(row.value);
            if let Some(end) = self.static_ends.last_mut() {
                *end += 1;
            }
            return true;
        };
        // Tensors store missing and infinite values as NaN.
        let value = row.value.filter(|v| v.is_finite()).unwrap_or(f32::NAN);
        self.push_measured(time, &[row.token], &[value])
    }

    /// Adds measurements of one time like [`push`](Self::push). Values must be finite or NaN.
    #[inline]
    pub(super) fn push_run(
        &mut self,
        subject: i64,
        time: i64,
        tokens: &[u32],
        values: &[f32],
    ) -> bool {
        if self.subjects.last() != Some(&subject) && !self.begin_subject(subject) {
            return false;
        }
        self.push_measured(time, tokens, values)
    }

    #[inline]
    fn push_measured(&mut self, time: i64, tokens: &[u32], values: &[f32]) -> bool {
        let before = self.times.get(self.first_event..).and_then(<[i64]>::last).copied();
        match before {
            Some(before) if time == before => {}
            Some(before) if time < before => return false,
            _ => self.begin_event(before, time),
        }
        self.codes.extend(tokens.iter().map(|token| i64::from(*token)));
        self.values.extend_from_slice(values);
        if let Some(end) = self.measurement_ends.last_mut() {
            // The length of a vector is below 2^63, so it fits i64.
            *end = i64::try_from(self.codes.len()).unwrap_or(i64::MAX);
        }
        true
    }

    fn begin_subject(&mut self, subject: i64) -> bool {
        if !self.seen.insert(subject) {
            return false;
        }
        self.subjects.push(subject);
        self.first_event = self.times.len();
        self.event_ends.push(self.event_ends.last().copied().unwrap_or(0));
        self.static_ends.push(self.static_ends.last().copied().unwrap_or(0));
        true
    }

    fn begin_event(&mut self, before: Option<i64>, time: i64) {
        self.deltas.push(before.map_or(f32::NAN, |before| compute_delta_days(before, time)));
        self.times.push(time);
        self.measurement_ends.push(self.measurement_ends.last().copied().unwrap_or(0));
        if let Some(end) = self.event_ends.last_mut() {
            *end += 1;
        }
    }

    pub(super) fn reserve(&mut self, measurements: usize) {
        self.codes.reserve(measurements);
        self.values.reserve(measurements);
    }
}

/// Sorts rows by subject, in order of first appearance, then by time; the sort is stable.
pub(super) fn sort_rows(rows: &mut [Measurement]) {
    let mut ranks = std::collections::HashMap::new();
    for row in rows.iter() {
        let next = ranks.len();
        ranks.entry(row.subject).or_insert(next);
    }
    rows.sort_by_key(|row| (ranks.get(&row.subject).copied(), row.time));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(subject: i64, time: Option<i64>, token: u32) -> Measurement {
        Measurement { subject, time, token, value: Some(token as f32) }
    }

    #[test]
    fn rows_become_ends() {
        let mut b = CohortShardBuilder::default();
        let day = 86_400_000_000;
        for r in [
            row(9, None, 1),
            row(9, Some(0), 2),
            row(9, Some(0), 3),
            row(9, Some(day), 4),
            row(3, None, 5),
            row(3, None, 6),
            row(7, Some(-day), 7),
        ] {
            assert!(b.push(r));
        }
        assert_eq!(b.subjects, [9, 3, 7]);
        assert_eq!((b.event_ends, b.static_ends), (vec![2, 2, 3], vec![1, 3, 3]));
        assert_eq!((b.measurement_ends, b.codes), (vec![2, 3, 4], vec![2, 3, 4, 7]));
        assert!(b.deltas[0].is_nan() && b.deltas[2].is_nan());
        assert_eq!(b.deltas[1], 1.0);
    }

    #[test]
    fn disorder_is_told_and_sorted() {
        let mut b = CohortShardBuilder::default();
        assert!(b.push(row(1, Some(5), 1)) && b.push(row(2, Some(1), 2)));
        assert!(!b.push(row(2, Some(0), 3)), "time goes back");
        assert!(!b.push(row(1, Some(6), 4)), "the subject comes back");
        let mut rows = [
            row(5, Some(2), 1),
            row(2, None, 2),
            row(5, Some(1), 3),
            row(5, Some(2), 4),
            row(5, None, 5),
        ];
        sort_rows(&mut rows);
        assert_eq!(rows.map(|r| r.token), [5, 3, 1, 4, 2]);
    }
}
