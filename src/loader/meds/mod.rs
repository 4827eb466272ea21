//! Batches of health records, in the terms that models of them are trained in.
//!
//! A [`MedsLoader`] is a [`Loader`] over subjects, their events and the measurements of those. An
//! **item** is a part of one subject's sequence, or with labels the part of it that may be looked at
//! before a prediction. A sequence is one of [measurements](Unit::Measurement) or of
//! [events](Unit::Event); [`Window`] says which part of a long one is taken; [`Statics`] what becomes of
//! facts without a time.
//!
//! # Tensors
//!
//! For a batch of `B` items, sequences of up to `L` elements, and events of up to `M` measurements; `S`
//! stands for `[B, L]` in the unit of measurements and for `[B, L, M]` in that of events:
//!
//! | tensor | type | shape | |
//! |---|---|---|---|
//! | `code` | int64 | `S` | token; 0 is padding |
//! | `numeric_value` | float32 | `S` | 0 where there is none; infinities are the largest numbers |
//! | `numeric_value_mask` | bool | `S` | where there is one; false on padding |
//! | `time_delta_days` | float32 | `[B, L]` | since the event before; 0 for a subject's first event. In sequences of measurements it stands at the first of an event's measurements, 0 at the others |
//! | `event_mask` | bool | `[B, L]` | where there is an event; in that unit alone |
//! | `static_code`, `static_numeric_value`, `static_numeric_value_mask` | as above | `[B, facts]` | [included](Statics::Include) facts, padded after them |
//! | `static_mask` | bool | `[B, L]` | where [prepended](Statics::Prepend) facts are: one event, or measurements |
//! | `prediction_time` | int64 | `[B]` | of the label, in microseconds since 1970 |
//! | `boolean_value`, `integer_value`, `float_value` | bool, int64, float32 | `[B]` | of the label |
//! | `categorical_value` | int64 | `[B]` | its place among [`MedsLoader::categories`] |
//! | `boolean_value_mask`, .. | bool | `[B]` | where the label has such a value, if some have none |
//! | `subject_id` | int64 | `[B]` | |
//! | `event_start`, `event_end` | int64 | `[B]` | the events that the window has a part in, counted from the subject's first |
//! | `n_subject_windows` | int64 | `[B]` | if [asked for](MedsOptions::window_counts) |
//!
//! [Packed](super::Form::Packed) batches have flat values instead, with `dim1/cu_seqlens`, for events
//! also `dim2/cu_seqlens` and `dim2/offsets` (see [`Batch`]), and `static/cu_seqlens` for included facts;
//! they have no `event_mask`.
//!
//! Tensors that cannot be are missing: numeric values where no shard has any, labels where none are
//! given, kinds of labels that none has. [`MedsOptions::compat`] makes exactly the tensors of
//! meds-torch-data.
//!
//! # What is guaranteed
//!
//! * A batch with labels holds nothing that happened after the prediction time of its label.
//! * Every item comes in every epoch once, subjects without events and labels without a past as rows of
//!   padding.
//! * The seed decides what is in which batch; threads, memory and what was made before do not.
//! * Sequences of measurements are windows of the flat columns: no more is read than goes into a batch.
//!
//! ```
//! # #[cfg(feature = "parquet")] {
//! use serrate::io::meds::Labels;
//! use serrate::loader::meds::{MedsLoader, MedsOptions, Statics, Unit, Window};
//!
//! // Pretraining: a random window of every subject.
//! let cohort = "tests/data/synthea-meds-torch-data";
//! let options = MedsOptions::new(8, 64).statics(Statics::Omit).shuffle(7);
//! let loader = MedsLoader::open(cohort, "train", None, options)?;
//! for batch in loader.epoch(0)? {
//!     let batch = batch?;
//!     assert_eq!(batch.tensor("code")?.shape(), [batch.len(), 64]);
//! }
//!
//! // Fine-tuning: the last 16 events before each prediction.
//! let labels = Labels::read("tests/data/synthea-meds/labels")?;
//! let options = MedsOptions::new(32, 16).unit(Unit::Event).window(Window::ToEnd).shuffle(7);
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

pub use options::{MedsOptions, Statics, Unit, Window};
pub use subjects::Subjects;

use self::labels::Cut;
use self::subjects::{Prepared, Times, Wanted, categories};
use super::facts::{Facts, Place};
use super::plan::{Bases, Items};
use super::source::Source;
use super::{Batch, Epoch, EpochPlan, Loader, LoaderOptions};
use crate::error::Result;
use crate::table::RaggedTable;

/// Makes epochs of batches of health records; see the [module](self).
///
/// Clones are the same loader: they share data, threads and memory.
#[derive(Clone, Debug)]
pub struct MedsLoader {
    loader: Loader,
    unknown: usize,
    dropped: u64,
    categories: Vec<String>,
}

impl MedsLoader {
    /// A loader over subjects of some shards, in their order.
    ///
    /// `labels` has a row for each item: `subject_id`, `prediction_time` and any of `boolean_value`,
    /// `integer_value`, `float_value` and `categorical_value`. Their order is kept. Labels of other
    /// subjects are left out and [counted](Self::unknown_labels). Without labels every subject is an
    /// item.
    ///
    /// Columns are not copied, but for those that are not int64 or float32 already.
    ///
    /// # Errors
    /// No shard; columns that are missing or of another type; static facts that are asked for and not
    /// there; with labels, a subject in two rows, times that do not ascend, or a label without subject
    /// or time, or with a number that is NaN, infinite, or too large for its tensor; options that make
    /// no sense.
    pub fn try_new(
        shards: impl IntoIterator<Item = Subjects>,
        labels: Option<&RecordBatch>,
        options: MedsOptions,
    ) -> Result<Self> {
        let loader = options.to_loader()?;
        let shards: Vec<Subjects> = shards.into_iter().collect();
        let of_rows: Vec<&ArrayRef> = shards
            .iter()
            .filter_map(|s| s.events.column("categorical_value").ok().map(|c| c.values()))
            .filter(|_| labels.is_none())
            .collect();
        let mut categories = categories(of_rows)?;
        let wanted = Wanted {
            options: &options,
            labels: labels.is_some(),
            numbers: shards.iter().any(|s| s.events.column("numeric_value").is_ok()),
            categories: &categories,
        };
        let mut prepared =
            shards.iter().map(|s| Prepared::new(s, &wanted)).collect::<Result<Vec<_>>>()?;
        drop(shards);

        let mut tables = Vec::with_capacity(prepared.len());
        let mut facts = Vec::new();
        for shard in &mut prepared {
            tables.push(shard.events.clone());
            facts.extend(shard.facts.take());
        }
        let mut source = Source::new(&tables, &loader)?;
        if !facts.is_empty() {
            let facts = facts_of(&facts, &options)?;
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

        let (mut bases, mut targets, mut unknown) = (Bases::Rows(source.rows()), Vec::new(), 0);
        if let Some(labels) = labels {
            let times: Vec<&Times> = prepared.iter().filter_map(|p| p.times.as_ref()).collect();
            let cut = Cut::new(labels, &times, &source, &options)?;
            (bases, targets, unknown) = (Bases::Cuts(cut.cuts), cut.targets, cut.unknown);
            categories = cut.categories;
        }
        let items = Items::new(&source, &loader, bases)?;
        let outputs = outputs::outputs(&source, &targets, &options, &loader)?;
        let loader = Loader::from_parts(source, loader, items, targets, outputs);
        Ok(Self { loader, unknown, dropped: 0, categories })
    }

    /// The loader that makes the batches.
    pub fn loader(&self) -> &Loader {
        &self.loader
    }

    /// Number of subjects.
    pub fn num_subjects(&self) -> usize {
        self.loader.num_rows()
    }

    /// Number of items of an epoch, as [`Loader::num_items`].
    pub fn num_items(&self) -> usize {
        self.loader.num_items()
    }

    /// Labels that were left out because their subjects are not there.
    pub fn unknown_labels(&self) -> usize {
        self.unknown
    }

    /// Measurements that were left out because their codes are not in the vocabulary, as only
    /// [`compat`](MedsOptions::compat) does with a MEDS data set; of a shard with subjects of several
    /// splits, those of all of them.
    pub fn dropped_measurements(&self) -> u64 {
        self.dropped
    }

    /// The categories that `categorical_value` counts, in the order of their bytes: those of all labels
    /// that were given, left out or not, so that loaders of several splits that are given the same
    /// labels number them alike.
    pub fn categories(&self) -> &[String] {
        &self.categories
    }

    /// What epoch number `epoch` consists of, before it is made.
    pub fn plan(&self, epoch: u64) -> EpochPlan {
        self.loader.plan(epoch)
    }

    /// The batches of epoch number `epoch`. The same number gives the same batches, bit for bit.
    ///
    /// # Errors
    /// When the threads cannot be started.
    pub fn epoch(&self, epoch: u64) -> Result<Epoch> {
        self.loader.epoch(epoch)
    }

    /// As [`epoch`](Self::epoch), from batch number `batch` on; batches before are not made.
    ///
    /// # Errors
    /// As [`epoch`](Self::epoch).
    pub fn epoch_from(&self, epoch: u64, batch: usize) -> Result<Epoch> {
        self.loader.epoch_from(epoch, batch)
    }

    /// One batch of the items that are asked for, as [`Loader::batch_of`].
    ///
    /// # Errors
    /// As [`Loader::batch_of`].
    pub fn batch_of(&self, epoch: u64, items: &[usize]) -> Result<Batch> {
        self.loader.batch_of(epoch, items)
    }
}

/// The facts of all shards, and where they go.
fn facts_of(tables: &[RaggedTable], options: &MedsOptions) -> Result<Facts> {
    let mut source = Source::new(tables, &LoaderOptions::new(1).tokens_as_i64(true))?;
    make_finite(&mut source, &["static_numeric_value"]);
    let place = match (options.statics, options.unit) {
        (Statics::Prepend, Unit::Event) => Place::List,
        (Statics::Prepend, Unit::Measurement) if options.compat => Place::Elements(usize::MAX),
        (Statics::Prepend, Unit::Measurement) => Place::Elements(options.len.saturating_sub(1)),
        _ => Place::Beside,
    };
    Ok(Facts { source, place })
}

/// Numbers that are none become 0 in these columns, and their nulls count as such.
fn make_finite(source: &mut Source, names: &[&str]) {
    for column in &mut source.columns {
        if names.contains(&&*column.name) {
            column.finite = true;
            column.null[..4].copy_from_slice(&f32::NAN.to_ne_bytes());
        }
    }
}
