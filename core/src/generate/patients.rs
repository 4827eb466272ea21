//! Synthetic patients, drawn from distributions and returned in chunks.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float32Array, Int64Array, TimestampMicrosecondArray, UInt16Array};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng};
use rayon::prelude::*;

use super::distributions::{PatientDistributions, PatientSampler};
use crate::array::Offsets;
use crate::error::{Error, Result};
use crate::table::RaggedTable;

/// Default number of patients per chunk; with [`PatientDistributions::mimic`], a chunk has about
/// 2^18 measurements.
pub const DEFAULT_CHUNK_ROWS: usize = 32;

/// Number of the random stream from which the properties of codes are drawn; patient `i` uses
/// stream `i`.
const CODES_STREAM: u64 = u64::MAX;

const DAY: i64 = 86_400;

/// Synthetic patients, streamed as chunks of a ragged table.
///
/// The same seed gives the same patients, whatever the chunk size, threads and number of patients:
/// patient `i` is drawn from stream `i` of a ChaCha generator. At most a few chunks are in memory.
///
/// Each chunk has the axes subject, event, measurement and the columns
///
/// | column | axis | type | |
/// |---|---|---|---|
/// | `subject_id` | 0 | Int64 | 1, 2, 3, .. |
/// | `time` | 1 | Timestamp(µs) | increasing within a patient, whole minutes |
/// | `time_delta_days` | 1 | Float32 | days since the previous event; NULL for the first |
/// | `code` | 2 | UInt16 | tokens from 1 (0 is reserved for padding), a few of them very frequent |
/// | `numeric_value` | 2 | Float32 | NULL if the measurement has no value |
///
/// If a value of a float column is NULL, the values buffer contains NaN at its place.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::generate::SyntheticPatients;
/// let mut rows = 0;
/// for chunk in SyntheticPatients::new(42, 100)?.with_chunk_rows(16)? {
///     let chunk = chunk?;
///     assert!(chunk.num_rows() <= 16);
///     rows += chunk.num_rows();
/// }
/// assert_eq!(rows, 100);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Debug)]
pub struct SyntheticPatients {
    source: PatientSource,
    patients: Range<u64>,
    chunk_rows: usize,
    ready: VecDeque<Result<RaggedTable>>,
}

impl SyntheticPatients {
    /// Creates a source of `patients` patients with the distributions of
    /// [`PatientDistributions::mimic`].
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::generate::SyntheticPatients;
    /// let patients = SyntheticPatients::new(42, 10)?;
    /// assert_eq!(patients.remaining(), 10);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// See [`PatientDistributions::mimic`].
    pub fn new(seed: u64, patients: u64) -> Result<Self> {
        Ok(Self::with_distributions(&PatientDistributions::mimic()?, seed, patients))
    }

    /// Creates a source of `patients` patients with other distributions.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::generate::{PatientDistributions, SyntheticPatients};
    /// let distributions = PatientDistributions::mimic()?;
    /// assert!(distributions.vocab_size() > 1000 && distributions.means().0 > 200.0);
    /// let mut patients = SyntheticPatients::with_distributions(&distributions, 42, 10).with_chunk_rows(4)?;
    /// assert_eq!(patients.next().unwrap()?.num_rows(), 4);
    /// assert_eq!(patients.remaining(), 6);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn with_distributions(
        distributions: &PatientDistributions,
        seed: u64,
        patients: u64,
    ) -> Self {
        Self {
            source: PatientSource::new(distributions, seed),
            patients: 0..patients.min(CODES_STREAM / 2),
            chunk_rows: DEFAULT_CHUNK_ROWS,
            ready: VecDeque::new(),
        }
    }

    /// Sets the number of patients per chunk.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::generate::SyntheticPatients;
    /// assert_eq!(SyntheticPatients::new(42, 10)?.with_chunk_rows(4)?.count(), 3);
    /// assert!(SyntheticPatients::new(42, 10)?.with_chunk_rows(0).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the number is 0.
    pub fn with_chunk_rows(mut self, rows: usize) -> Result<Self> {
        if rows == 0 {
            return Err(Error::invalid("the number of patients per chunk is 0; give at least 1"));
        }
        self.chunk_rows = rows;
        Ok(self)
    }

    /// Returns the number of patients that the iterator has not yet returned.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::generate::SyntheticPatients;
    /// let mut patients = SyntheticPatients::new(42, 10)?.with_chunk_rows(4)?;
    /// assert_eq!(patients.next().unwrap()?.num_rows(), 4);
    /// assert_eq!(patients.remaining(), 6);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn remaining(&self) -> u64 {
        let ready: usize = self.ready.iter().flatten().map(RaggedTable::num_rows).sum();
        self.patients.end - self.patients.start + ready as u64
    }

    pub(super) fn source(&self) -> &PatientSource {
        &self.source
    }

    /// Returns the source, remaining patients and chunk size, or an error if `ready` holds chunks,
    /// whose patients would be lost.
    #[cfg(feature = "parquet")]
    pub(super) fn into_parts(self) -> Result<(PatientSource, Range<u64>, usize)> {
        if !self.ready.is_empty() {
            return Err(Error::invalid(
                "cannot write the patients, because the iterator holds chunks of patients that it has generated but not returned; create a new `SyntheticPatients` and write it before iterating",
            ));
        }
        Ok((self.source, self.patients, self.chunk_rows))
    }

    fn draw_chunks(&mut self) {
        let chunk = self.chunk_rows as u64;
        let chunks: Vec<Range<u64>> = (0..rayon::current_num_threads().clamp(1, 64))
            .map_while(|_| {
                let start = self.patients.start;
                let end = start.saturating_add(chunk).min(self.patients.end);
                self.patients.start = end;
                (start < end).then_some(start..end)
            })
            .collect();
        let source = &self.source;
        let tables: Vec<_> =
            chunks.into_par_iter().map(|rows| source.draw_patients(rows).into_table()).collect();
        self.ready.extend(tables);
    }
}

impl Iterator for SyntheticPatients {
    type Item = Result<RaggedTable>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty() {
            self.draw_chunks();
        }
        self.ready.pop_front()
    }
}

#[derive(Clone, Debug)]
pub(super) struct PatientSource {
    pub(super) sampler: PatientSampler,
    seed: u64,
}

impl PatientSource {
    pub(super) fn new(distributions: &PatientDistributions, seed: u64) -> Self {
        let sampler = PatientSampler::new(distributions, &mut new_patient_rng(seed, CODES_STREAM));
        Self { sampler, seed }
    }

    pub(super) fn draw_patients(&self, patients: Range<u64>) -> PatientChunk {
        let mut chunk = PatientChunk::default();
        for patient in patients {
            chunk.push(patient, &self.sampler, &mut new_patient_rng(self.seed, patient));
        }
        chunk
    }
}

fn new_patient_rng(seed: u64, number: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(number);
    rng
}

fn draw_below(rng: &mut ChaCha8Rng, n: u32) -> i64 {
    // The result is less than the u32 `n`, so it fits an i64.
    i64::try_from((u64::from(rng.next_u32()) * u64::from(n)) >> 32).unwrap_or(0)
}

#[derive(Debug, Default)]
pub(super) struct PatientChunk {
    pub(super) subject_id: Vec<i64>,
    /// For each patient: whether the patient is female, and the year of birth.
    pub(super) facts: Vec<(bool, i32)>,
    pub(super) events: Vec<u32>,
    pub(super) measurements: Vec<u32>,
    /// Time of each event in microseconds since 1970.
    pub(super) time: Vec<i64>,
    pub(super) time_delta_days: Vec<f32>,
    pub(super) code: Vec<u16>,
    pub(super) numeric_value: Vec<f32>,
}

impl PatientChunk {
    fn push(&mut self, patient: u64, sampler: &PatientSampler, rng: &mut ChaCha8Rng) {
        // `with_distributions` limits the number of patients to 2^63 - 1, so the id fits an i64.
        self.subject_id.push(i64::try_from(patient).unwrap_or(i64::MAX - 1) + 1);
        let female = rng.next_u32() & 1 == 0;
        let born = 1930 + draw_below(rng, 70);
        self.facts.push((female, i32::try_from(born).unwrap_or(1930)));

        let events = sampler.draw_events(rng);
        self.events.push(events);
        let first = self.measurements.len();
        for _ in 0..events {
            self.measurements.push(sampler.draw_measurements(rng));
        }

        // The first event is between the ages of 18 and 80, at a random minute of the day.
        let age_days = 18 * 365 + draw_below(rng, 62 * 365);
        let birth_days = (born - 1970) * 365;
        let mut time = (birth_days + age_days) * DAY + draw_below(rng, 1_440) * 60;
        for event in 0..events {
            let delta = if event == 0 { 0 } else { draw_gap(rng) };
            time += delta;
            self.time.push(time * 1_000_000);
            self.time_delta_days.push(if event == 0 { f32::NAN } else { to_days(delta) });
        }

        let leaves: usize = self.measurements[first..].iter().map(|n| *n as usize).sum();
        self.code.reserve(leaves);
        self.numeric_value.reserve(leaves);
        for _ in 0..leaves {
            let (code, value) = sampler.draw_measurement(rng);
            self.code.push(code);
            self.numeric_value.push(value);
        }
    }

    fn append_chunk(&mut self, mut other: Self) {
        self.subject_id.append(&mut other.subject_id);
        self.facts.append(&mut other.facts);
        self.events.append(&mut other.events);
        self.measurements.append(&mut other.measurements);
        self.time.append(&mut other.time);
        self.time_delta_days.append(&mut other.time_delta_days);
        self.code.append(&mut other.code);
        self.numeric_value.append(&mut other.numeric_value);
    }

    /// Builds a table with NULL for every NaN in a float column.
    pub(super) fn into_table(self) -> Result<RaggedTable> {
        self.build(|values| {
            let valid = BooleanBuffer::collect_bool(values.len(), |i| !values[i].is_nan());
            let nulls = Some(NullBuffer::new(valid)).filter(|n| n.null_count() > 0);
            Ok(Float32Array::try_new(ScalarBuffer::from(values), nulls)?)
        })
    }

    fn build(self, floats: impl Fn(Vec<f32>) -> Result<Float32Array>) -> Result<RaggedTable> {
        let lengths = |n: &[u32]| Offsets::from_lengths(n.iter().map(|n| *n as usize));
        RaggedTable::builder()
            .names(["subject", "event", "measurement"])
            .rows(self.subject_id.len())
            .offsets(lengths(&self.events)?)
            .offsets(lengths(&self.measurements)?)
            .column("subject_id", 0, Arc::new(Int64Array::from(self.subject_id)) as ArrayRef)
            .column("time", 1, Arc::new(TimestampMicrosecondArray::from(self.time)))
            .column("time_delta_days", 1, Arc::new(floats(self.time_delta_days)?))
            .column("code", 2, Arc::new(UInt16Array::from(self.code)))
            .column("numeric_value", 2, Arc::new(floats(self.numeric_value)?))
            .build()
    }
}

/// Draws the time between two events, in seconds: 88 % are up to 8 hours, 8 % one to seven days,
/// and 4 % a month to two years.
fn draw_gap(rng: &mut ChaCha8Rng) -> i64 {
    match draw_below(rng, 100) {
        0..=3 => (30 + draw_below(rng, 690)) * DAY + draw_below(rng, 1_440) * 60,
        4..=11 => (1 + draw_below(rng, 6)) * DAY + draw_below(rng, 1_440) * 60,
        _ => (1 + draw_below(rng, 480)) * 60,
    }
}

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "days are small")]
fn to_days(seconds: i64) -> f32 {
    (seconds as f64 / DAY as f64) as f32
}

/// Returns `patients` patients of [`PatientDistributions::mimic`] as one table in memory, for tests
/// and benchmarks.
///
/// The patients are the same as in [`SyntheticPatients`] with the same seed, except that missing
/// values are NaN, as in an `.nrt` file, and no column has nulls. On average there are 228 events
/// per patient and 36.7 measurements per event, about 50 KB per patient in `code` and
/// `numeric_value`.
///
/// ```
/// # use serrate_core as serrate;
/// let table = serrate::generate::mimic_table(3, 42)?;
/// assert_eq!(table.num_rows(), 3);
/// assert_eq!(table.array("code")?.ndim(), 3);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// See [`PatientDistributions::mimic`].
pub fn mimic_table(patients: usize, seed: u64) -> Result<RaggedTable> {
    let source = PatientSource::new(&PatientDistributions::mimic()?, seed);
    let step = DEFAULT_CHUNK_ROWS;
    let parts: Vec<PatientChunk> = (0..patients.div_ceil(step))
        .into_par_iter()
        .map(|i| source.draw_patients((i * step) as u64..((i + 1) * step).min(patients) as u64))
        .collect();
    let mut all = PatientChunk::default();
    for part in parts {
        all.append_chunk(part);
    }
    all.build(|values| Ok(Float32Array::from(values)))
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)]
mod tests {
    use arrow::array::{Array, AsArray};
    use arrow::compute::concat;
    use arrow::datatypes::{Float32Type, Int64Type, TimestampMicrosecondType, UInt16Type};

    use super::*;

    fn column(tables: &[RaggedTable], name: &str) -> ArrayRef {
        let arrays: Vec<_> =
            tables.iter().map(|t| t.column(name).unwrap().values().clone()).collect();
        concat(&arrays.iter().map(|a| a.as_ref()).collect::<Vec<_>>()).unwrap()
    }

    fn all(patients: SyntheticPatients) -> Vec<RaggedTable> {
        patients.collect::<Result<_>>().unwrap()
    }

    #[test]
    fn chunks_and_number_of_patients_change_nothing() {
        let whole = all(SyntheticPatients::new(5, 9).unwrap().with_chunk_rows(9).unwrap());
        assert_eq!(whole.len(), 1);
        for (patients, rows) in [(9, 2), (9, 1), (9, 8), (15, 4)] {
            let parts =
                all(SyntheticPatients::new(5, patients).unwrap().with_chunk_rows(rows).unwrap());
            for name in ["subject_id", "time", "time_delta_days", "code", "numeric_value"] {
                let values = column(&parts, name);
                let expected = whole[0].column(name).unwrap().values();
                assert_eq!(*values.slice(0, expected.len()), **expected, "{name}");
            }
        }
    }

    #[test]
    fn threads_change_nothing() {
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                column(
                    &all(SyntheticPatients::new(9, 17).unwrap().with_chunk_rows(3).unwrap()),
                    "numeric_value",
                )
            })
        };
        assert_eq!(*on(1), *on(3));
    }

    #[test]
    fn seeds_differ() {
        let code = |seed| column(&all(SyntheticPatients::new(seed, 2).unwrap()), "code");
        assert_ne!(*code(1), *code(2));
    }

    #[test]
    fn no_patients_no_chunks() {
        assert_eq!(SyntheticPatients::new(1, 0).unwrap().count(), 0);
        assert_eq!(mimic_table(0, 1).unwrap().num_rows(), 0);
        assert!(SyntheticPatients::new(1, 1).unwrap().with_chunk_rows(0).is_err());
    }

    #[test]
    fn remaining_counts_down() {
        let mut patients = SyntheticPatients::new(1, 10).unwrap().with_chunk_rows(4).unwrap();
        assert_eq!(patients.remaining(), 10);
        patients.next().unwrap().unwrap();
        assert_eq!(patients.remaining(), 6);
    }

    #[test]
    fn the_shape_is_that_of_the_distribution() {
        let table = mimic_table(150, 3).unwrap();
        let events = table.axis_len(1).unwrap() as f64 / 150.0;
        let measurements = table.axis_len(2).unwrap() as f64 / table.axis_len(1).unwrap() as f64;
        assert!((events - 228.0).abs() < 45.0, "{events}");
        assert!((measurements - 36.7).abs() < 1.5, "{measurements}");

        let codes = table.column("code").unwrap().values().as_primitive::<UInt16Type>().clone();
        let mut seen = vec![0usize; 10_001];
        codes.values().iter().for_each(|c| seen[usize::from(*c)] += 1);
        assert_eq!(seen[0], 0, "0 is padding");
        let top = seen[1] as f64 / codes.len() as f64;
        assert!((0.02..0.05).contains(&top), "{top}");

        let values = table.column("numeric_value").unwrap().values();
        let values = values.as_primitive::<Float32Type>();
        let share =
            values.values().iter().filter(|v| !v.is_nan()).count() as f64 / values.len() as f64;
        assert!((0.1..0.6).contains(&share), "{share}");
    }

    #[test]
    fn times_increase_and_deltas_follow() {
        let chunk = SyntheticPatients::new(8, 5).unwrap().next().unwrap().unwrap();
        let ids = chunk.column("subject_id").unwrap().values().clone();
        assert_eq!(ids.as_primitive::<Int64Type>().values(), &[1, 2, 3, 4, 5]);
        for i in 0..5 {
            let row = chunk.row(i).unwrap();
            let time = row.typed::<TimestampMicrosecondType>("time").unwrap();
            let delta = row.values("time_delta_days").unwrap();
            assert!(delta.is_null(0) && delta.null_count() == 1);
            let delta = delta.as_primitive::<Float32Type>();
            assert!(delta.value(0).is_nan());
            for k in 1..time.len() {
                let seconds = (time[k] - time[k - 1]) / 1_000_000;
                assert!(seconds >= 60);
                assert_eq!(delta.value(k), (seconds as f64 / 86_400.0) as f32);
            }
        }
    }
}
