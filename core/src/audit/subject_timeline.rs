//! Checks that need all rows of a subject, such as duplicates and events after death.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use arrow::array::{Array, AsArray};
use arrow::datatypes::DataType;

use super::code_table::{CodeTable, LifeMark};
use super::time_checks::FaultTally;
use super::{AuditLog, format_time};
use crate::array::nested_types::is_string_like;
use crate::error::Result;
use crate::io::meds::file::MedsFile;

const DAY: i64 = 86_400_000_000;

/// The fields of a measurement that are compared to find duplicates, and the row of the
/// measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct MeasurementFields {
    /// Time in microseconds since 1970; `None` for a static fact (a measurement without a time).
    pub(super) time: Option<i64>,
    /// Index of the code in the [`CodeTable`], the list of the codes found so far.
    pub(super) code: u32,
    /// Bits of the numeric value as an integer, so that equal values can be found; `None` for NULL.
    pub(super) value: Option<u64>,
    pub(super) row: usize,
}

/// Collects the findings that need all rows of a subject, for every subject of one file.
#[derive(Debug, Default)]
pub(super) struct SubjectTimeline {
    subject: i64,
    rows: Vec<MeasurementFields>,
    before_birth: FaultTally,
    after_death: FaultTally,
    doubled: FaultTally,
    /// Group and row of each possible duplicate. A group consists of the rows of a subject with
    /// equal time, code and value; rows of a group that also have an equal `text_value` are
    /// duplicates. Empty for a file without the column `text_value`, in which all rows of a group
    /// are duplicates.
    candidates: Vec<(u32, usize)>,
    groups: u32,
    texts: bool,
    scratch: Vec<(u32, Option<u64>, usize)>,
}

impl SubjectTimeline {
    pub(super) fn new(source: &MedsFile) -> Self {
        let texts =
            source.schema().field_with_name(TEXT).is_ok_and(|f| is_string_like(f.data_type()));
        Self { texts, ..Self::default() }
    }

    #[inline]
    pub(super) fn push(&mut self, row: MeasurementFields) {
        self.rows.push(row);
    }

    /// Starts the subject `subject`. Before that, ends the current subject, and returns the result
    /// of [`end_subject`](Self::end_subject).
    pub(super) fn start_subject(
        &mut self,
        subject: i64,
        codes: &CodeTable,
    ) -> Option<(i64, i64, i64)> {
        let ended = self.end_subject(codes);
        self.subject = subject;
        ended
    }

    /// Ends the current subject. Returns its id and the times of its first and last measurement;
    /// `None` if no measurement has a time.
    pub(super) fn end_subject(&mut self, codes: &CodeTable) -> Option<(i64, i64, i64)> {
        let span = self.count_outside_life(codes);
        self.count_duplicates(codes);
        self.rows.clear();
        span.map(|(first, last)| (self.subject, first, last))
    }

    /// Counts the measurements before birth and after death. Returns the times of the first and
    /// last measurement; `None` if no measurement has a time.
    fn count_outside_life(&mut self, codes: &CodeTable) -> Option<(i64, i64)> {
        let (mut birth, mut death): (Option<i64>, Option<i64>) = (None, None);
        let mut span: Option<(i64, i64)> = None;
        for row in &self.rows {
            let Some(time) = row.time else { continue };
            span = Some(span.map_or((time, time), |(a, b)| (a.min(time), b.max(time))));
            match codes.find_mark(row.code) {
                LifeMark::None => {}
                LifeMark::Birth => birth = Some(birth.map_or(time, |b| b.min(time))),
                LifeMark::Death => death = Some(death.map_or(time, |d| d.max(time))),
            }
        }
        let (first, last) = span?;
        // A death at midnight is only a date: the subject may have events during that day.
        let end = death.map(|d| if d.rem_euclid(DAY) == 0 { d.saturating_add(DAY - 1) } else { d });
        let subject = self.subject;
        for (limit, outside, tally, what) in [
            (birth, birth.is_some_and(|b| first < b), &mut self.before_birth, "before MEDS_BIRTH"),
            (death, end.is_some_and(|e| last > e), &mut self.after_death, "after MEDS_DEATH"),
        ] {
            let Some(limit) = limit.filter(|_| outside) else { continue };
            let is_birth = what.ends_with("BIRTH");
            let beyond = |t: i64| if is_birth { t < limit } else { end.is_some_and(|end| t > end) };
            for row in &self.rows {
                if let Some(time) = row.time.filter(|t| beyond(*t)) {
                    tally.add(|| {
                        let (time, limit) = (format_time(time), format_time(limit));
                        let code = codes.name(row.code);
                        (
                            format!("row {}", row.row),
                            format!("{code} of subject {subject} at {time}, {what} at {limit}"),
                        )
                    });
                }
            }
        }
        Some((first, last))
    }

    /// Counts the rows that repeat time, code and value of an earlier row. In a file with the
    /// column `text_value`, adds all rows with equal time, code and value to `candidates` instead,
    /// to compare their `text_value` later.
    fn count_duplicates(&mut self, codes: &CodeTable) {
        if !self.rows.is_sorted_by_key(|row| row.time) {
            self.rows.sort_by_key(|row| row.time);
        }
        for run in self.rows.chunk_by(|a, b| a.time == b.time) {
            if run.len() < 2 {
                continue;
            }
            self.scratch.clear();
            self.scratch.extend(run.iter().map(|r| (r.code, r.value, r.row)));
            self.scratch.sort_unstable();
            for same in self.scratch.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
                let [first, second, ..] = same else { continue };
                if self.texts {
                    self.candidates.extend(same.iter().map(|r| (self.groups, r.2)));
                    self.groups = self.groups.saturating_add(1);
                    continue;
                }
                let more = u64::try_from(same.len()).unwrap_or(u64::MAX).saturating_sub(1);
                let (subject, time) = (self.subject, run[0].time);
                self.doubled.add_many(more, || {
                    let when =
                        time.map_or("without a time".into(), |t| format!("at {}", format_time(t)));
                    (
                        format!("row {}", second.2),
                        format!(
                            "{} of subject {subject} {when}, the same as row {}",
                            codes.name(first.0),
                            first.2
                        ),
                    )
                });
            }
        }
    }

    pub(super) fn report_findings(mut self, source: &MedsFile, log: &mut AuditLog) -> Result<()> {
        if !self.candidates.is_empty() {
            self.compare_texts(source)?;
        }
        let path: &Path = source.path();
        let expected = "no measurement before a birth";
        self.before_birth.log_finding("before-birth", path, expected, log);
        self.after_death.log_finding("after-death", path, "no measurement after a death", log);
        self.doubled.log_finding("doubled-row", path, "each measurement once", log);
        Ok(())
    }

    /// Counts the candidates whose `text_value` also equals that of an earlier row of their group.
    /// Reads this column separately and in small batches, because its strings are long and few
    /// files have candidates.
    fn compare_texts(&mut self, source: &MedsFile) -> Result<()> {
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.sort_unstable_by_key(|(_, row)| *row);
        let hasher = RandomState::new();
        let mut first_of: HashMap<(u32, Option<u64>), usize> = HashMap::new();
        let mut next = candidates.iter().peekable();
        let mut before = 0usize;
        for batch in source.read_batches(&[TEXT], None, 4096)? {
            let batch = batch?;
            let end = before.saturating_add(batch.num_rows());
            if next.peek().is_some_and(|(_, row)| *row < end) {
                let texts = source.require_column(&batch, TEXT)?;
                let texts = source.cast_column(TEXT, texts, &DataType::LargeUtf8)?;
                let texts = texts.as_string::<i64>();
                while let Some((group, row)) = next.next_if(|(_, row)| *row < end) {
                    let at = row - before;
                    let text = texts.is_valid(at).then(|| hasher.hash_one(texts.value(at)));
                    match first_of.get(&(*group, text)) {
                        None => {
                            first_of.insert((*group, text), *row);
                        }
                        Some(first) => self.doubled.add(|| {
                            let found = format!(
                                "subject, time, code, numeric_value and text_value as in row {first}"
                            );
                            (format!("row {row}"), found)
                        }),
                    }
                }
            }
            before = end;
        }
        Ok(())
    }
}

const TEXT: &str = "text_value";
