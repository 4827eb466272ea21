//! Counts the measurements that match each predicate at each time of a subject.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{Int64Type, TimestampMicrosecondType};

use super::criteria::{CohortCriteria, CountSource};
use super::matches::ShardMeasurements;
use crate::array::Layout;
use crate::error::{Error, Result};
use crate::io::meds::MedsShard;
use crate::memory::MemoryCharge;
use crate::table::RaggedTable;

/// The subjects of a shard, prepared for [`SubjectCounts`].
pub(crate) struct ShardEvents {
    _charge: Arc<MemoryCharge>,
    name: String,
    pub(super) ids: ScalarBuffer<i64>,
    /// The list of events of each subject; `events` has the list of measurements of each event.
    subjects: Layout,
    events: Layout,
    times: ScalarBuffer<i64>,
    measurements: ShardMeasurements,
    /// For each subject, the measurements without a time; `None` if no predicate is static.
    statics: Option<(Layout, ShardMeasurements)>,
}

impl ShardEvents {
    pub(super) fn try_new(shard: &MedsShard, criteria: &CohortCriteria) -> Result<Self> {
        let ids = shard.events.column("subject_id")?.values();
        let Some(ids) = ids.as_primitive_opt::<Int64Type>() else {
            return Err(Error::type_of(
                "column subject_id",
                "Int64, as in MEDS data (convert the column)",
                ids.data_type(),
            ));
        };
        let times = shard.events.column("time")?.values();
        let Some(times) = times.as_primitive_opt::<TimestampMicrosecondType>() else {
            return Err(Error::type_of(
                "column time",
                "Timestamp(µs), as in MEDS data (convert the column)",
                times.data_type(),
            ));
        };
        let measurements = |table: &RaggedTable, prefix: &str| {
            ShardMeasurements::try_new(table, prefix, &criteria.plain)
        };
        Ok(Self {
            _charge: Arc::new(shard.charge_memory()?),
            name: shard.name.clone(),
            ids: ids.values().clone(),
            subjects: shard.events.layout(1)?.clone(),
            events: shard.events.layout(2)?.clone(),
            times: times.values().clone(),
            measurements: measurements(&shard.events, "")?,
            statics: match criteria.statics.is_empty() {
                true => None,
                false => Some((
                    shard.statics.layout(1)?.clone(),
                    measurements(&shard.statics, "static_")?,
                )),
            },
        })
    }

    pub(crate) fn num_subjects(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Sets to true the element of `matched` of each plain predicate that matches a code of the
    /// shard.
    pub(super) fn mark_matched_predicates(&self, matched: &mut [bool]) {
        let timeless = self.statics.iter().map(|(_, measurements)| measurements);
        for measurements in std::iter::once(&self.measurements).chain(timeless) {
            for predicate in measurements.list_predicates_of_codes() {
                if let Some(matched) = matched.get_mut(*predicate) {
                    *matched = true;
                }
            }
        }
    }
}

/// Times and counts of one subject. The buffers are reused for the next subject.
#[derive(Default)]
pub(super) struct SubjectCounts {
    /// Distinct times, ascending.
    pub(super) times: Vec<i64>,
    /// Prefix sums of the counts, one column after the other. A column with the counts `[1, 0, 2]`
    /// at three times has the sums `[0, 1, 1, 3]`.
    sums: Vec<i64>,
    /// For each column, the number of measurements without a time that match its predicate. For a
    /// derived predicate, 1 if it holds for these numbers, else 0.
    timeless: Vec<i64>,
}

impl SubjectCounts {
    /// Returns the prefix sums of the column of counts with the index `column`: element `i` is the
    /// sum of the counts at all times before `times[i]`, and the last element is the sum of all
    /// counts.
    pub(super) fn find_column_sums(&self, column: usize) -> &[i64] {
        let stride = self.times.len() + 1;
        &self.sums[column * stride..(column + 1) * stride]
    }

    /// Counts, for each predicate, the measurements without a time of the subject in row `row` of
    /// `shard`. Returns how many static predicates the subject satisfies before the first that it
    /// does not satisfy.
    pub(super) fn count_statics(
        &mut self,
        shard: &ShardEvents,
        criteria: &CohortCriteria,
        row: usize,
    ) -> usize {
        let Some((lists, measurements)) = &shard.statics else { return 0 };
        self.timeless.clear();
        self.timeless.resize(criteria.columns.len(), 0);
        // `found` has the order of `criteria.plain`; `timeless` has the order of
        // `criteria.columns`.
        let mut found = vec![0i64; criteria.plain.len()];
        for at in lists.range(row) {
            measurements.visit_matches(&criteria.plain, at, |p| found[p] += 1);
        }
        for (c, column) in criteria.columns.iter().enumerate() {
            self.timeless[c] = match &column.counted {
                CountSource::Plain(p) => found[*p],
                CountSource::Derived { all, inputs } => {
                    i64::from(is_derived(*all, inputs, |input| self.timeless[input] > 0))
                }
                CountSource::AnyEvent | CountSource::RecordStart | CountSource::RecordEnd => 0,
            };
        }
        criteria.statics.iter().take_while(|c| self.timeless[**c] > 0).count()
    }

    /// Counts the measurements of the subject in row `row` of `shard` by time and predicate.
    /// Callers first check with `count_statics` that the subject satisfies all static predicates.
    pub(super) fn count_events(
        &mut self,
        shard: &ShardEvents,
        criteria: &CohortCriteria,
        row: usize,
    ) -> Result<()> {
        let events = shard.subjects.range(row);
        self.times.clear();
        self.times.extend_from_slice(&shard.times[events.clone()]);
        if !self.times.is_sorted() {
            return Err(Error::invalid(format!(
                "shard {}: the times of subject {} are not ascending; sort the events of this subject by time",
                shard.name, shard.ids[row]
            )));
        }
        // Keeps each time once, because events of tensorized cohorts may share a time.
        self.times.dedup();
        let stride = self.times.len() + 1;
        let columns = &criteria.columns;
        self.sums.clear();
        self.sums.resize(stride * columns.len(), 0);
        let mut slots = vec![None; criteria.plain.len()];
        for (c, column) in columns.iter().enumerate() {
            match &column.counted {
                CountSource::Plain(p) if !column.is_static => slots[*p] = Some(c * stride),
                _ => {}
            }
        }
        let (sums, mut time) = (&mut self.sums, 0);
        for (own, event) in shard.times[events.clone()].iter().zip(events) {
            while self.times[time] < *own {
                time += 1;
            }
            for at in shard.events.range(event) {
                shard.measurements.visit_matches(&criteria.plain, at, |p| {
                    if let Some(slot) = slots[p] {
                        sums[slot + time + 1] += 1;
                    }
                });
            }
        }
        for (c, column) in columns.iter().enumerate() {
            let (before, own) = self.sums.split_at_mut(c * stride);
            let Some(own) = own.get_mut(1..stride) else { continue };
            match &column.counted {
                CountSource::Plain(_) if column.is_static => own.fill(1),
                CountSource::Plain(_) => {}
                CountSource::Derived { all, inputs } => {
                    for (i, count) in own.iter_mut().enumerate() {
                        let is_positive = |input: usize| before[input * stride + i + 1] > 0;
                        *count = i64::from(is_derived(*all, inputs, is_positive));
                    }
                }
                CountSource::AnyEvent => own.fill(1),
                CountSource::RecordStart => own.first_mut().into_iter().for_each(|n| *n = 1),
                CountSource::RecordEnd => own.last_mut().into_iter().for_each(|n| *n = 1),
            }
        }
        for column in self.sums.chunks_exact_mut(stride) {
            let mut sum = 0;
            for count in column {
                sum += *count;
                *count = sum;
            }
        }
        Ok(())
    }
}

fn is_derived(all: bool, inputs: &[usize], is_positive: impl Fn(usize) -> bool) -> bool {
    match all {
        true => inputs.iter().all(|input| is_positive(*input)),
        false => inputs.iter().any(|input| is_positive(*input)),
    }
}
