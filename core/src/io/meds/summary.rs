//! Counts of the subjects, events, measurements and codes of a MEDS data set.

use std::collections::HashMap;
use std::path::Path;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type, UInt32Type};

use super::MedsShard;
use super::file::make_code_type;
use crate::error::Result;
use crate::io::parquet::{self, ParquetReadOptions};

/// Counts the subjects, events, measurements and codes of shards, shard by shard.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::meds::MedsSummary;
/// use serrate::io::meds_torch::MedsFolder;
/// let folder = MedsFolder::open("../tests/data/synthea-meds")?;
/// let mut summary = MedsSummary::default();
/// for i in 0..folder.num_shards() {
///     summary.push(&folder.read(i, &Default::default())?)?;
/// }
/// let all = summary.total();
/// assert_eq!((all.subjects, all.events, all.measurements), (28, 1993, 24754));
/// assert_eq!((summary.shards().len(), summary.splits().len()), (4, 3));
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct MedsSummary {
    shards: Vec<PartSummary>,
    codes: HashMap<Box<str>, CodeOccurrences>,
}

/// Counts of a shard, a split, or all shards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartSummary {
    /// Name of the shard or split.
    pub name: String,
    /// Number of shards.
    pub shards: usize,
    /// Number of subjects, including subjects without events.
    pub subjects: u64,
    /// Number of events, which are the distinct times of each subject.
    pub events: u64,
    /// Number of measurements with a time.
    pub measurements: u64,
    /// Number of facts without a time.
    pub statics: u64,
    /// Largest number of events of a subject.
    pub most_events: usize,
    /// Largest number of measurements of a subject.
    pub most_measurements: usize,
    /// Largest number of measurements of an event.
    pub longest_event: usize,
}

/// A code and how often it occurs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeSummary {
    /// The code.
    pub code: String,
    /// Occurrences with and without a time.
    pub occurrences: CodeOccurrences,
}

/// Numbers of occurrences of a code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeOccurrences {
    /// Number of occurrences with a time.
    pub measurements: u64,
    /// Number of occurrences without a time.
    pub statics: u64,
    /// Number of occurrences, with or without a time, that have a numeric value.
    pub values: u64,
}

impl PartSummary {
    /// Returns the size in bytes of padded tensors of all subjects, with the axes subject and
    /// measurement: every subject is padded to the largest number of measurements of a subject.
    ///
    /// An element takes a code (int64), a value and a time delta (float32), and a mask byte.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::PartSummary;
    /// let part = PartSummary { subjects: 2, most_measurements: 3, ..Default::default() };
    /// assert_eq!(part.padded_measurements(), 2 * 3 * 17);
    /// ```
    pub fn padded_measurements(&self) -> u128 {
        u128::from(self.subjects) * self.most_measurements as u128 * (8 + 4 + 4 + 1)
    }

    /// Returns the size in bytes of padded tensors of all subjects, with the axes subject, event
    /// and measurement: every subject is padded to the largest number of events of a subject, and
    /// every event to the largest number of measurements of an event.
    ///
    /// Each event takes a time delta (float32) and a mask byte; each measurement takes a code
    /// (int64), a value (float32) and a mask byte. Padding counts as events and measurements.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::PartSummary;
    /// let part = PartSummary { subjects: 2, most_events: 3, ..Default::default() };
    /// let part = PartSummary { longest_event: 4, ..part };
    /// assert_eq!(part.padded_events(), 2 * 3 * (5 + 4 * 13));
    /// ```
    pub fn padded_events(&self) -> u128 {
        let events = u128::from(self.subjects) * self.most_events as u128;
        events * (4 + 1 + self.longest_event as u128 * (8 + 4 + 1))
    }

    fn add(&mut self, other: &Self) {
        self.shards += other.shards;
        self.subjects += other.subjects;
        self.events += other.events;
        self.measurements += other.measurements;
        self.statics += other.statics;
        self.most_events = self.most_events.max(other.most_events);
        self.most_measurements = self.most_measurements.max(other.most_measurements);
        self.longest_event = self.longest_event.max(other.longest_event);
    }
}

impl MedsSummary {
    /// Adds the counts of a shard.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::{MedsDataset, MedsSummary};
    /// let data = MedsDataset::open("../tests/data/synthea-meds")?;
    /// let mut summary = MedsSummary::default();
    /// summary.push(&data.shard("train/0")?.read(&Default::default())?)?;
    /// assert_eq!((summary.shards()[0].name.as_str(), summary.total().subjects), ("train/0", 11));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a MEDS column is missing in the shard or has another type than MEDS requires.
    pub fn push(&mut self, shard: &MedsShard) -> Result<()> {
        let (events, within) = (shard.events.layout(1)?, shard.events.layout(2)?);
        let subjects = shard.events.num_rows();
        let measured = |row: usize| within.ranges(events.range(row)).len();
        self.shards.push(PartSummary {
            name: shard.name.clone(),
            shards: 1,
            subjects: subjects as u64,
            events: within.lists() as u64,
            measurements: within.children() as u64,
            statics: shard.statics.column("static_code")?.values().len() as u64,
            most_events: events.max_length(),
            most_measurements: (0..subjects).map(measured).max().unwrap_or(0),
            longest_event: within.max_length(),
        });
        let values = shard.events.column("numeric_value")?.values();
        let codes = shard.events.column("code")?.values();
        self.count(codes, values, |o| &mut o.measurements)?;
        let values = shard.statics.column("static_numeric_value")?.values();
        let codes = shard.statics.column("static_code")?.values();
        self.count(codes, values, |o| &mut o.statics)
    }

    fn count(
        &mut self,
        codes: &ArrayRef,
        values: &ArrayRef,
        which: fn(&mut CodeOccurrences) -> &mut u64,
    ) -> Result<()> {
        let codes = cast(codes, &make_code_type())?;
        let codes = codes.as_dictionary::<UInt32Type>();
        let values = cast(values, &DataType::Float32)?;
        let values = values.as_primitive::<Float32Type>();
        let names = codes.values().as_string::<i32>();
        // Count by dictionary key first, so that names are looked up per code instead of per
        // measurement.
        let mut found = vec![(0u64, 0u64); names.len()];
        for (key, value) in codes.keys().iter().zip(values) {
            if let Some(count) = key.and_then(|key| found.get_mut(key as usize)) {
                count.0 += 1;
                count.1 += u64::from(value.is_some_and(|v| !v.is_nan()));
            }
        }
        for (name, (n, with_value)) in names.iter().zip(found) {
            if let (Some(name), true) = (name, n > 0) {
                if !self.codes.contains_key(name) {
                    self.codes.insert(name.into(), CodeOccurrences::default());
                }
                if let Some(code) = self.codes.get_mut(name) {
                    *which(code) += n;
                    code.values += with_value;
                }
            }
        }
        Ok(())
    }

    /// Returns the counts of every shard, in the order in which the shards were added.
    pub fn shards(&self) -> &[PartSummary] {
        &self.shards
    }

    /// Returns the counts of every split, in order of appearance.
    ///
    /// The split is the shard's name up to the first `/`, such as `train` of `train/0`.
    pub fn splits(&self) -> Vec<PartSummary> {
        let mut splits: Vec<PartSummary> = Vec::new();
        for shard in &self.shards {
            let name = shard.name.split('/').next().unwrap_or_default();
            match splits.iter_mut().find(|s| s.name == name) {
                Some(split) => split.add(shard),
                None => splits.push(PartSummary { name: name.into(), ..shard.clone() }),
            }
        }
        splits
    }

    /// Returns the counts of all shards together.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::{MedsDataset, MedsSummary};
    /// let data = MedsDataset::open("../tests/data/synthea-meds")?;
    /// let mut summary = MedsSummary::default();
    /// summary.push(&data.shard("train/1")?.read(&Default::default())?)?;
    /// let total = summary.total();
    /// assert_eq!((total.shards, total.measurements + total.statics), (1, 6906));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn total(&self) -> PartSummary {
        let mut total = PartSummary { name: "all".into(), ..PartSummary::default() };
        self.shards.iter().for_each(|shard| total.add(shard));
        total
    }

    /// Returns all codes, the most frequent first; equally frequent codes are in byte order.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::{MedsDataset, MedsSummary};
    /// let data = MedsDataset::open("../tests/data/synthea-meds")?;
    /// let mut summary = MedsSummary::default();
    /// for shard in data.shards() {
    ///     summary.push(&shard.read(&Default::default())?)?;
    /// }
    /// let (total, codes) = (summary.total(), summary.codes());
    /// assert!(codes[0].occurrences.measurements >= codes[1].occurrences.measurements);
    /// assert!(total.padded_measurements() > 0 && total.padded_events() > 0);
    /// assert!(total.most_events <= total.most_measurements);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn codes(&self) -> Vec<CodeSummary> {
        let mut codes: Vec<CodeSummary> = self
            .codes
            .iter()
            .map(|(code, occurrences)| CodeSummary {
                code: code.to_string(),
                occurrences: *occurrences,
            })
            .collect();
        codes.sort_by(|a, b| {
            let count = |c: &CodeSummary| c.occurrences.measurements + c.occurrences.statics;
            count(b).cmp(&count(a)).then_with(|| a.code.cmp(&b.code))
        });
        codes
    }
}

/// Returns the description of each code, read from the columns `code` and `description` of a
/// `metadata/codes.parquet`. The map is empty if the file lacks one of the columns.
///
/// ```
/// # use serrate_core as serrate;
/// let found = serrate::io::meds::descriptions("../tests/data/synthea-meds/metadata/codes.parquet")?;
/// assert!(found.values().all(|text| !text.is_empty()));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the file cannot be read.
pub fn descriptions(path: impl AsRef<Path>) -> Result<HashMap<String, String>> {
    let names = ["code", "description"];
    let file = parquet::ParquetTableReader::open(&path, &ParquetReadOptions::default())?;
    if names.iter().any(|name| file.schema().field_with_name(name).is_err()) {
        return Ok(HashMap::new());
    }
    let columns = Some(names.iter().map(|n| (*n).to_owned()).collect());
    let options = ParquetReadOptions { columns, ..ParquetReadOptions::default() };
    let table = parquet::read(&path, &options)?;
    let texts = |name: &str| -> Result<ArrayRef> {
        Ok(cast(table.column(name)?.values(), &DataType::Utf8)?)
    };
    let (codes, texts) = (texts("code")?, texts("description")?);
    let pairs = codes.as_string::<i32>().iter().zip(texts.as_string::<i32>());
    Ok(pairs.filter_map(|(code, text)| Some((code?.to_owned(), text?.to_owned()))).collect())
}
