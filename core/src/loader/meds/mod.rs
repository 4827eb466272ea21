//! Loader of batches of health records.
//!
//! A [`MedsLoader`] is a [`Loader`] over subjects, their events and the measurements of those
//! events. An **item** is a window of the sequence of one subject or, with labels, of the part of
//! this sequence up to a prediction time. A sequence consists of
//! [measurements](SequenceUnit::Measurement) or of [events](SequenceUnit::Event).
//! [`SequenceWindow`] selects a part of a long sequence, and [`StaticsMode`] determines where facts
//! without a time are stored.
//!
//! # Tensors
//!
//! A batch has `B` items with sequences of up to `L` elements. The shape `S` is `[B, L]` for
//! sequences of measurements, and `[B, L, M]` for sequences of events with up to `M` measurements
//! each:
//!
//! | tensor | type | shape | |
//! |---|---|---|---|
//! | `code` | int64 | `S` | token; 0 is padding |
//! | `numeric_value` | float32 | `S` | 0 if missing; infinities become the largest numbers |
//! | `numeric_value_mask` | bool | `S` | true where there is a value; false on padding |
//! | `time_delta_days` | float32 | `[B, L]` | days since the event before; 0 for a subject's first event. In sequences of measurements it is at the first measurement of an event, with 0 at the others |
//! | `event_mask` | bool | `[B, L]` | true where there is an event; only in sequences of events |
//! | `static_code`, `static_numeric_value`, `static_numeric_value_mask` | as above | `[B, facts]` | [included](StaticsMode::Include) facts, padded on the right |
//! | `static_mask` | bool | `[B, L]` | true at [prepended](StaticsMode::Prepend) facts, which are one event or several measurements |
//! | `prediction_time` | int64 | `[B]` | of the label, in microseconds since 1970 |
//! | `boolean_value`, `integer_value`, `float_value` | bool, int64, float32 | `[B]` | of the label |
//! | `categorical_value` | int64 | `[B]` | index in [`MedsLoader::categories`] |
//! | `boolean_value_mask`, .. | bool | `[B]` | true where the label has such a value; only if some labels have none |
//! | `subject_id` | int64 | `[B]` | |
//! | `event_start`, `event_end` | int64 | `[B]` | the events that the window overlaps, counted from the subject's first |
//! | `n_subject_windows` | int64 | `[B]` | only with [`window_counts`](MedsOptions::window_counts) |
//!
//! [Packed](super::BatchForm::Packed) batches have flat values with `dim1/cu_seqlens`, for events
//! also `dim2/cu_seqlens` and `dim2/offsets` (see [`Batch`]), and for included facts
//! `static/cu_seqlens`.
//!
//! Tensors without data are omitted: numeric values if no shard has any, label tensors if there are
//! no labels, and the tensors of kinds of values that no label has. [`MedsOptions::compat`] builds
//! exactly the tensors of meds-torch-data.
//!
//! # Guarantees
//!
//! * An item of a label contains no event after the prediction time of the label.
//! * Every item occurs once per epoch. An item without events (before its label) is all padding.
//! * The batches depend on the seed, but not on threads, memory or earlier batches.
//! * A sequence of measurements is a range of the flat columns of a shard; a batch reads only the
//!   values of its own items.
//!
//! ```
//! # use serrate_core as serrate;
//! # #[cfg(feature = "parquet")] {
//! use serrate::io::meds::Labels;
//! use serrate::loader::meds::{MedsLoader, MedsOptions, StaticsMode, SequenceUnit, SequenceWindow};
//!
//! // Pretraining: a random window of every subject.
//! let cohort = "../tests/data/synthea-meds-torch-data";
//! let options = MedsOptions::new(8, 64).statics(StaticsMode::Omit).shuffle(7);
//! let loader = MedsLoader::open(cohort, "train", None, options)?;
//! for batch in loader.epoch(0)? {
//!     let batch = batch?;
//!     assert_eq!(batch.tensor("code")?.shape(), [batch.len(), 64]);
//! }
//!
//! // Fine-tuning: the last 16 events before each prediction.
//! let labels = Labels::read("../tests/data/synthea-meds/labels")?;
//! let options = MedsOptions::new(32, 16).unit(SequenceUnit::Event).window(SequenceWindow::ToEnd).shuffle(7);
//! let loader = MedsLoader::open(cohort, "train", Some(&labels), options)?;
//! assert_eq!((loader.num_items(), loader.unknown_labels()), (1182, 533));
//! let batch = loader.epoch(0)?.next().unwrap()?;
//! assert_eq!(batch.tensor("event_mask")?.shape(), [32, 16]);
//! assert_eq!(batch.tensor("boolean_value")?.shape(), [32]);
//! # }
//! # Ok::<(), serrate::Error>(())
//! ```

mod labels;
#[cfg(feature = "parquet")]
mod open;
mod options;
mod outputs;
mod subjects;

use arrow::array::{ArrayRef, RecordBatch};

pub use options::{MedsOptions, SequenceUnit, SequenceWindow, StaticsMode};
pub use subjects::ShardSubjects;

use self::labels::LabelCuts;
use self::subjects::{PreparedShard, ShardRequirements, SubjectTimes, collect_categories};
use super::facts_place::FactsPlace;
use super::items::{EpochItems, ItemRows};
use super::loader_source::{LoaderSource, StaticFacts};
use super::{Batch, Epoch, EpochPlan, Loader, LoaderOptions};
use crate::error::Result;
use crate::table::RaggedTable;

/// Builds epochs of batches of health records; see the [module](self).
#[derive(Clone, Debug)]
pub struct MedsLoader {
    loader: Loader,
    unknown: usize,
    dropped: u64,
    categories: Vec<String>,
}

impl MedsLoader {
    /// Builds a loader over the subjects of all shards, one shard after the other.
    ///
    /// `labels` has one row per item: `subject_id`, `prediction_time` and any of `boolean_value`,
    /// `integer_value`, `float_value` and `categorical_value`. The items have the order of the
    /// labels. Labels of unknown subjects are omitted and [counted](Self::unknown_labels). If
    /// `labels` is `None`, every subject is an item. Columns are copied only if they are neither
    /// int64 nor float32.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{Float32Array, Int64Array};
    /// use serrate::loader::meds::{MedsLoader, MedsOptions, StaticsMode, ShardSubjects};
    /// use serrate::table::RaggedTable;
    /// // A subject with 2 events, which have 1 and 2 measurements.
    /// let table = RaggedTable::builder()
    ///     .lengths([2])?
    ///     .lengths([1, 2])?
    ///     .column("subject_id", 0, Arc::new(Int64Array::from(vec![7])))
    ///     .column("time", 1, Arc::new(Int64Array::from(vec![0, 60])))
    ///     .column("time_delta_days", 1, Arc::new(Float32Array::from(vec![f32::NAN, 0.5])))
    ///     .column("code", 2, Arc::new(Int64Array::from(vec![3, 4, 5])))
    ///     .column("numeric_value", 2, Arc::new(Float32Array::from(vec![1.5, f32::NAN, 2.5])))
    ///     .build()?;
    /// let subjects = ShardSubjects { name: "a".into(), events: table, statics: None };
    /// let options = MedsOptions::new(1, 8).statics(StaticsMode::Omit);
    /// let loader = MedsLoader::try_new([subjects], None, options)?;
    /// let batch = loader.epoch(0)?.next().unwrap()?;
    /// assert_eq!(batch.tensor("code")?.as_slice::<i64>()?, [3, 4, 5]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are no shards; columns are missing or of another type; static facts are requested
    /// but missing; with labels, a subject has two rows, times do not ascend, or a label lacks a
    /// subject or time or has a number that is NaN, infinite, or too large for its tensor; options
    /// are invalid.
    pub fn try_new(
        shards: impl IntoIterator<Item = ShardSubjects>,
        labels: Option<&RecordBatch>,
        options: MedsOptions,
    ) -> Result<Self> {
        let loader = options.to_loader()?;
        let shards: Vec<ShardSubjects> = shards.into_iter().collect();
        let row_categories: Vec<&ArrayRef> = shards
            .iter()
            .filter_map(|s| s.events.column("categorical_value").ok().map(|c| c.values()))
            .filter(|_| labels.is_none())
            .collect();
        let mut categories = collect_categories(row_categories)?;
        let wanted = ShardRequirements {
            options: &options,
            labels: labels.is_some(),
            numbers: shards.iter().any(|s| s.events.column("numeric_value").is_ok()),
            categories: &categories,
        };
        let mut prepared =
            shards.iter().map(|s| PreparedShard::new(s, &wanted)).collect::<Result<Vec<_>>>()?;
        drop(shards);

        let mut tables = Vec::with_capacity(prepared.len());
        let mut facts = Vec::new();
        for shard in &mut prepared {
            tables.push(shard.events.clone());
            facts.extend(shard.facts.take());
        }
        let mut source = LoaderSource::new(&tables, &loader)?;
        if !facts.is_empty() {
            let facts = collect_facts(&facts, &options)?;
            let number = |name: &str| facts.source.columns.iter().position(|c| &*c.name == name);
            for column in &mut source.columns {
                column.fact = match &*column.name {
                    "code" => number("static_code"),
                    "numeric_value" => number("static_numeric_value"),
                    _ => None,
                };
            }
            source.facts = Some(Box::new(facts));
        }
        make_finite(&mut source, &["numeric_value", "time_delta_days"]);
        for (shard, prepared) in source.shards.iter_mut().zip(&mut prepared) {
            shard.timeline = prepared.timeline.take();
        }

        let (mut bases, mut targets, mut unknown) = (ItemRows::Rows(source.rows()), Vec::new(), 0);
        if let Some(labels) = labels {
            let times: Vec<&SubjectTimes> =
                prepared.iter().filter_map(|p| p.times.as_ref()).collect();
            let cut = LabelCuts::new(labels, &times, &source, &options)?;
            (bases, targets, unknown) = (ItemRows::Cuts(cut.cuts), cut.targets, cut.unknown);
            categories = cut.categories;
        }
        let items = EpochItems::new(&source, &loader, bases)?;
        let outputs = outputs::list_outputs(&source, &targets, &options, &loader)?;
        let loader = Loader::from_parts(source, loader, items, targets, outputs);
        Ok(Self { loader, unknown, dropped: 0, categories })
    }

    /// Returns the underlying loader.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # #[cfg(feature = "parquet")] {
    /// use serrate::loader::meds::{MedsLoader, MedsOptions};
    /// let options = MedsOptions::new(8, 64);
    /// let loader = MedsLoader::open("../tests/data/synthea-meds", "train", None, options)?;
    /// assert_eq!(loader.loader().num_rows(), loader.num_subjects());
    /// # }
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn loader(&self) -> &Loader {
        &self.loader
    }

    /// Returns the number of subjects of all shards.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # #[cfg(feature = "parquet")] {
    /// use serrate::loader::meds::{MedsLoader, MedsOptions};
    /// let options = MedsOptions::new(8, 64);
    /// let loader = MedsLoader::open("../tests/data/synthea-meds", "train", None, options)?;
    /// assert_eq!(loader.num_subjects(), 20);
    /// # }
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn num_subjects(&self) -> usize {
        self.loader.num_rows()
    }

    /// Returns the number of items of an epoch; see [`Loader::num_items`].
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # #[cfg(feature = "parquet")] {
    /// use serrate::loader::meds::{MedsLoader, MedsOptions};
    /// let options = MedsOptions::new(8, 64);
    /// let loader = MedsLoader::open("../tests/data/synthea-meds", "train", None, options)?;
    /// assert_eq!((loader.num_subjects(), loader.num_items()), (20, 20));
    /// # }
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn num_items(&self) -> usize {
        self.loader.num_items()
    }

    /// Returns the number of labels that were omitted because their subjects are unknown.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # #[cfg(feature = "parquet")] {
    /// use serrate::io::meds::Labels;
    /// use serrate::loader::meds::{MedsLoader, MedsOptions};
    /// let data = "../tests/data/synthea-meds";
    /// let labels = Labels::read(format!("{data}/labels"))?;
    /// let loader = MedsLoader::open(data, "train", Some(&labels), MedsOptions::new(8, 64))?;
    /// // The subjects of 1182 labels are in the split.
    /// assert_eq!(loader.unknown_labels(), labels.len() - 1182);
    /// # }
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn unknown_labels(&self) -> usize {
        self.unknown
    }

    /// Returns the number of measurements omitted because the vocabulary lacks their codes.
    ///
    /// The number covers all subjects of the shards that were read, also those of other splits.
    /// Only a MEDS data set that is opened with [`compat`](MedsOptions::compat) omits measurements;
    /// otherwise the number is 0.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # #[cfg(feature = "parquet")] {
    /// use serrate::loader::meds::{MedsLoader, MedsOptions};
    /// let data = "../tests/data/synthea-meds";
    /// let options = MedsOptions::new(8, 64);
    /// let loader = MedsLoader::open(data, None::<&str>, None, options.clone())?;
    /// assert_eq!(loader.dropped_measurements(), 0);
    /// let loader = MedsLoader::open(data, None::<&str>, None, options.compat(true))?;
    /// assert!(loader.dropped_measurements() > 0);
    /// # }
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn dropped_measurements(&self) -> u64 {
        self.dropped
    }

    /// Returns the categories that `categorical_value` refers to by index, sorted by bytes.
    ///
    /// They include the categories of omitted labels, so that loaders of several splits with the
    /// same labels use the same indices.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # #[cfg(feature = "parquet")] {
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, Int64Array, StringArray, TimestampMicrosecondArray};
    /// use serrate::io::meds::{LabelKind, Labels};
    /// use serrate::loader::meds::{MedsLoader, MedsOptions};
    /// let data = "../tests/data/synthea-meds";
    /// # let ids = Int64Array::from(vec![1, 1]);
    /// # let times = TimestampMicrosecondArray::from(vec![0, 4_000_000_000_000_000]);
    /// let values: ArrayRef = Arc::new(StringArray::from(vec!["low", "high"]));
    /// let labels = Labels::try_new(ids, times, vec![(LabelKind::Categorical, values)])?;
    /// let loader = MedsLoader::open(data, "train", Some(&labels), MedsOptions::new(8, 64))?;
    /// assert_eq!(loader.categories(), ["high", "low"]);
    /// # }
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn categories(&self) -> &[String] {
        &self.categories
    }

    /// Returns the plan of epoch `epoch`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # #[cfg(feature = "parquet")] {
    /// use serrate::loader::meds::{MedsLoader, MedsOptions};
    /// let options = MedsOptions::new(8, 64);
    /// let loader = MedsLoader::open("../tests/data/synthea-meds", "train", None, options)?;
    /// assert_eq!(loader.plan(0).num_batches(), 3);
    /// # }
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn plan(&self, epoch: u64) -> EpochPlan {
        self.loader.plan(epoch)
    }

    /// Iterates over the batches of epoch `epoch`.
    ///
    /// Each call returns the same batches, bit for bit.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # #[cfg(feature = "parquet")] {
    /// use serrate::loader::meds::{MedsLoader, MedsOptions};
    /// let options = MedsOptions::new(8, 64);
    /// let loader = MedsLoader::open("../tests/data/synthea-meds", "train", None, options)?;
    /// for (batch, size) in loader.epoch(0)?.zip([8, 8, 4]) {
    ///     assert_eq!(batch?.len(), size);
    /// }
    /// # }
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the threads cannot be started.
    pub fn epoch(&self, epoch: u64) -> Result<Epoch> {
        self.loader.epoch(epoch)
    }

    /// Iterates over the batches of an epoch from batch `batch` on; earlier batches are not built.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # #[cfg(feature = "parquet")] {
    /// use serrate::loader::meds::{MedsLoader, MedsOptions};
    /// let options = MedsOptions::new(8, 64);
    /// let loader = MedsLoader::open("../tests/data/synthea-meds", "train", None, options)?;
    /// assert_eq!(loader.epoch_from(0, 2)?.count(), 1); // the last of 3 batches
    /// # }
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the threads cannot be started.
    pub fn epoch_from(&self, epoch: u64, batch: usize) -> Result<Epoch> {
        self.loader.epoch_from(epoch, batch)
    }

    /// Builds one batch from the given items, like [`Loader::batch_of`].
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # #[cfg(feature = "parquet")] {
    /// use serrate::loader::meds::{MedsLoader, MedsOptions};
    /// let cohort = "../tests/data/synthea-meds-torch-data";
    /// let options = MedsOptions::new(4, 16)
    ///     .with_len(32)
    ///     .fixed_shape(true)
    ///     .numeric_value(false)
    ///     .time_delta(false)
    ///     .window_counts(true)
    ///     .drop_last(true)
    ///     .bucket(2)
    ///     .part(0, 1)
    ///     .seed(7)
    ///     .limit(1u64 << 30);
    /// let loader = MedsLoader::open(cohort, "train", None, options)?;
    /// assert_eq!((loader.num_subjects(), loader.dropped_measurements()), (loader.num_items(), 0));
    /// assert!(loader.categories().is_empty());
    /// assert_eq!(loader.loader().num_items(), loader.num_items());
    /// let batch = loader.batch_of(0, &[2, 0])?;
    /// assert_eq!(batch.tensor("code")?.shape(), [2, 32]);
    /// assert!(batch.tensor("numeric_value").is_err() && batch.tensor("n_subject_windows").is_ok());
    /// let last = loader.plan(0).num_batches() - 1;
    /// assert_eq!(loader.epoch_from(0, last)?.count(), 1);
    /// # }
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`Loader::batch_of`].
    pub fn batch_of(&self, epoch: u64, items: &[usize]) -> Result<Batch> {
        self.loader.batch_of(epoch, items)
    }
}

/// Collects the static facts of all shards, and determines how batches hold them: in separate
/// tensors, or prepended to the sequences.
fn collect_facts(tables: &[RaggedTable], options: &MedsOptions) -> Result<StaticFacts> {
    let mut source = LoaderSource::new(tables, &LoaderOptions::new(1).tokens_as_i64(true))?;
    make_finite(&mut source, &["static_numeric_value"]);
    let place = match (options.statics, options.unit) {
        (StaticsMode::Prepend, SequenceUnit::Event) => FactsPlace::List,
        (StaticsMode::Prepend, SequenceUnit::Measurement) if options.compat => {
            FactsPlace::Elements(usize::MAX)
        }
        (StaticsMode::Prepend, SequenceUnit::Measurement) => {
            FactsPlace::Elements(options.len.saturating_sub(1))
        }
        _ => FactsPlace::Beside,
    };
    Ok(StaticFacts { source, place })
}

/// Sets, for the float32 columns `names`, that batches hold only finite values: NaN and nulls
/// become 0, and infinities become the largest finite numbers.
fn make_finite(source: &mut LoaderSource, names: &[&str]) {
    for column in &mut source.columns {
        if names.contains(&&*column.name) {
            column.finite = true;
            column.null[..4].copy_from_slice(&f32::NAN.to_ne_bytes());
        }
    }
}
