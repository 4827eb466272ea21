//! Features of labels on disk, pushed in any order and read in the order of the labels.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema};

use super::feature_rows::FeatureRows;
use super::feature_spec::FeatureSpec;
use crate::access;
use crate::error::{Error, Result};
use crate::io::dok::write_entries;
use crate::io::parquet::{ParquetTableWriter, ParquetWriteOptions};
use crate::io::safetensors::{SaveOptions, read_exact_at};

/// Maximum number of values in a range of [`FeatureStore::ranges`]; a single label may have more.
const VALUES_AT_ONCE: usize = 1 << 20;
/// Size in bytes of a stored feature: its index (u32) and its value (f64).
const BYTES: usize = 12;

/// Stores the features of labels on disk: labels may be pushed in any order, and are read in
/// ascending order of their indices.
///
/// Each label takes 24 bytes of memory.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::features::{FeatureRows, FeatureStore};
/// let dir = tempfile::tempdir()?;
/// let mut store = FeatureStore::create(dir.path(), 3)?;
/// let one = |label, value| FeatureRows {
///     labels: vec![label],
///     counts: vec![1],
///     features: vec![7],
///     values: vec![value],
/// };
/// store.push(&one(2, 0.5))?;
/// store.push(&one(0, 1.5))?;
/// assert_eq!((store.num_labels(), store.num_values()), (3, 2));
/// let rows = store.read(0..3)?;
/// assert_eq!((rows.labels, rows.values), (vec![0, 2], vec![1.5, 0.5]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FeatureStore {
    folder: PathBuf,
    file: File,
    end: u64,
    /// File offset and number of values of each label; `None` for a label that was not pushed.
    places: Vec<Option<(u64, u32)>>,
}

impl FeatureStore {
    /// Creates an empty store for `labels` labels, as an unnamed temporary file in `folder`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::features::FeatureStore;
    /// let dir = tempfile::tempdir()?;
    /// let store = FeatureStore::create(dir.path(), 3)?;
    /// assert_eq!((store.num_labels(), store.num_values()), (3, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn create(folder: impl AsRef<Path>, labels: usize) -> Result<Self> {
        let folder = folder.as_ref().to_path_buf();
        let file = access::create_temporary_file(&folder).map_err(|e| Error::io(&folder, e))?;
        Ok(Self { folder, file, end: 0, places: vec![None; labels] })
    }

    /// Appends the features of some labels.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::features::{FeatureRows, FeatureStore};
    /// # let dir = tempfile::tempdir()?;
    /// let (labels, counts) = (vec![2], vec![1]);
    /// let rows = FeatureRows { labels, counts, features: vec![7], values: vec![0.5] };
    /// let mut store = FeatureStore::create(dir.path(), 3)?;
    /// store.push(&rows)?;
    /// assert_eq!(store.num_values(), 1);
    /// assert!(store.push(&rows).is_err()); // the label has its features
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the disk is full, a label does not exist, or a label was pushed before.
    pub fn push(&mut self, rows: &FeatureRows) -> Result<()> {
        let mut bytes = Vec::with_capacity(rows.values.len().saturating_mul(BYTES));
        for (label, features, values) in rows.iter() {
            let size = self.places.len();
            let place = self.places.get_mut(label).ok_or_else(|| Error::OutOfRange {
                axis: 0,
                index: i64::try_from(label).unwrap_or(i64::MAX),
                size,
            })?;
            let count = u32::try_from(values.len()).map_err(|_| {
                Error::invalid(format!(
                    "label {label} has {} features, more than the maximum of 2^32 - 1; choose fewer codes, windows or aggregates",
                    values.len()
                ))
            })?;
            let offset = self.end.saturating_add(bytes.len() as u64);
            if place.replace((offset, count)).is_some() {
                return Err(Error::invalid(format!(
                    "the features of label {label} are already stored; push each label once"
                )));
            }
            features.iter().for_each(|f| bytes.extend_from_slice(&f.to_le_bytes()));
            values.iter().for_each(|v| bytes.extend_from_slice(&v.to_le_bytes()));
        }
        self.file.write_all(&bytes).map_err(|e| Error::io(&self.folder, e))?;
        self.end = self.end.saturating_add(bytes.len() as u64);
        Ok(())
    }

    /// Returns the number of labels, with features or without.
    pub fn num_labels(&self) -> usize {
        self.places.len()
    }

    /// Returns the number of stored feature values, summed over all labels.
    pub fn num_values(&self) -> u64 {
        self.end / BYTES as u64
    }

    /// Divides the labels into ranges of up to `labels` labels and about a million values.
    ///
    /// A single label may have more values. There are no ranges if there are no labels.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::features::FeatureStore;
    /// let dir = tempfile::tempdir()?;
    /// assert_eq!(FeatureStore::create(dir.path(), 3)?.ranges(2), [0..2, 2..3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ranges(&self, labels: usize) -> Vec<Range<usize>> {
        let (mut out, mut start, mut values) = (Vec::new(), 0, 0usize);
        for (label, place) in self.places.iter().enumerate() {
            let own = place.map_or(0, |(_, count)| count as usize);
            let full =
                values.saturating_add(own) > VALUES_AT_ONCE || label - start >= labels.max(1);
            if label > start && full {
                out.push(start..label);
                (start, values) = (label, 0);
            }
            values = values.saturating_add(own);
        }
        if start < self.places.len() {
            out.push(start..self.places.len());
        }
        out
    }

    /// Reads the features of a range of labels.
    ///
    /// A label whose subject is not in the data was never pushed, so the result has no row for it.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::features::{FeatureRows, FeatureStore};
    /// # let dir = tempfile::tempdir()?;
    /// let (labels, counts) = (vec![2], vec![1]);
    /// let rows = FeatureRows { labels, counts, features: vec![7], values: vec![0.5] };
    /// let mut store = FeatureStore::create(dir.path(), 3)?;
    /// store.push(&rows)?;
    /// assert!(store.read(0..2)?.is_empty());
    /// assert_eq!(store.read(2..3)?, rows);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read, or the range goes past the last label.
    pub fn read(&self, labels: Range<usize>) -> Result<FeatureRows> {
        let Some(places) = self.places.get(labels.clone()) else {
            return Err(Error::OutOfRange {
                axis: 0,
                index: i64::try_from(labels.end).unwrap_or(i64::MAX),
                size: self.places.len(),
            });
        };
        let mut rows = FeatureRows::default();
        let mut bytes = Vec::new();
        for (label, place) in labels.zip(places) {
            let Some((offset, count)) = place else { continue };
            let count = *count as usize;
            bytes.resize(count * BYTES, 0);
            read_exact_at(&self.file, &mut bytes, *offset)
                .map_err(|e| Error::io(&self.folder, e))?;
            let (features, values) = bytes.split_at(count * 4);
            rows.labels.push(label);
            rows.counts.push(count);
            rows.features.extend(features.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)));
            rows.values.extend(values.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)));
        }
        Ok(rows)
    }

    /// Writes the values as a Parquet file with the columns `row` (index of the label, Int64),
    /// `feature` (UInt32) and `value` (Float64), ordered by row and feature.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::features::{FeatureRows, FeatureStore};
    /// # let dir = tempfile::tempdir()?;
    /// let (labels, counts) = (vec![2], vec![1]);
    /// let rows = FeatureRows { labels, counts, features: vec![7], values: vec![0.5] };
    /// let mut store = FeatureStore::create(dir.path(), 3)?;
    /// store.push(&rows)?;
    /// let path = dir.path().join("values.parquet");
    /// store.write_parquet(&path, &Default::default())?;
    /// let table = serrate::io::parquet::read(&path, &Default::default())?;
    /// assert_eq!(table.names().collect::<Vec<_>>(), ["row", "feature", "value"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file exists and `overwrite` is false, or it cannot be written.
    pub fn write_parquet(
        &self,
        path: impl AsRef<Path>,
        options: &ParquetWriteOptions,
    ) -> Result<()> {
        let schema = Arc::new(Schema::new(vec![
            Field::new("row", DataType::Int64, false),
            Field::new("feature", DataType::UInt32, false),
            Field::new("value", DataType::Float64, false),
        ]));
        let mut writer = ParquetTableWriter::create(path, &schema, options)?;
        for range in self.ranges(usize::MAX) {
            let rows = self.read(range)?;
            let numbers = list_row_numbers(&rows);
            let columns: Vec<ArrayRef> = vec![
                Arc::new(Int64Array::from(numbers)),
                Arc::new(UInt32Array::from(rows.features)),
                Arc::new(Float64Array::from(rows.values)),
            ];
            writer.write_batch(&RecordBatch::try_new(Arc::clone(&schema), columns)?)?;
        }
        writer.finish()
    }

    /// Writes the values as a sparse tensor ([`io::dok`](crate::io::dok)) of float64 with a row for
    /// each label and a column for each feature, in row-major order.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::features::{FeatureKey, FeatureRows, FeatureSpec, FeatureStore};
    /// let keys = vec![FeatureKey::Prefix("LAB//".into()), FeatureKey::Prefix("DRUG//".into())];
    /// let spec = FeatureSpec::try_new(keys, vec!["all".parse()?], vec!["count".parse()?])?;
    /// let dir = tempfile::tempdir()?;
    /// let mut store = FeatureStore::create(dir.path(), 3)?;
    /// store.push(&FeatureRows { labels: vec![2], counts: vec![1], features: vec![1], values: vec![4.0] })?;
    /// assert_eq!((store.num_labels(), store.num_values()), (3, 1));
    /// assert_eq!(store.ranges(2), [0..2, 2..3]);
    /// store.write_parquet(dir.path().join("values.parquet"), &Default::default())?;
    /// store.write_dok(dir.path().join("values.safetensors"), &spec, &Default::default())?;
    /// let read = serrate::io::dok::read(dir.path().join("values.safetensors"))?;
    /// assert_eq!((read.shape(), read.at(&[2, 1])?.to_string().as_str()), (vec![3, 2], "4"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file exists and `overwrite` is false, it cannot be written, or the number of labels
    /// times the number of features exceeds 2^63.
    pub fn write_dok(
        &self,
        path: impl AsRef<Path>,
        spec: &FeatureSpec,
        options: &SaveOptions,
    ) -> Result<()> {
        let path = path.as_ref();
        let count = usize::try_from(self.num_values()).map_err(|_| {
            Error::file(
                path,
                format!(
                    "the features have {} values, more than this machine can address; choose fewer labels or features",
                    self.num_values()
                ),
            )
        })?;
        let shape = [self.places.len(), spec.num_features()];
        let rows = |out: &mut dyn Write| {
            self.write_each(out, path, |rows| {
                list_row_numbers(rows).iter().flat_map(|n| n.to_le_bytes()).collect()
            })
        };
        let features = |out: &mut dyn Write| {
            self.write_each(out, path, |rows| {
                rows.features.iter().flat_map(|f| i64::from(*f).to_le_bytes()).collect()
            })
        };
        let values = |out: &mut dyn Write| {
            self.write_each(out, path, |rows| {
                rows.values.iter().flat_map(|v| v.to_le_bytes()).collect()
            })
        };
        write_entries(path, &shape, count, options, &[&rows, &features], &values)
    }

    fn write_each(
        &self,
        out: &mut dyn Write,
        path: &Path,
        bytes: impl Fn(&FeatureRows) -> Vec<u8>,
    ) -> Result<()> {
        for range in self.ranges(usize::MAX) {
            out.write_all(&bytes(&self.read(range)?)).map_err(|e| Error::io(path, e))?;
        }
        Ok(())
    }
}

/// Returns the output row of each feature value, which is the index of its label.
fn list_row_numbers(rows: &FeatureRows) -> Vec<i64> {
    let each = rows.iter().flat_map(|(label, features, _)| {
        std::iter::repeat_n(i64::try_from(label).unwrap_or(i64::MAX), features.len())
    });
    each.collect()
}
