//! [`MedsOptions`]: options of a loader of health records.

use std::str::FromStr;
use std::sync::Arc;

use rayon::ThreadPool;

use super::super::options::{BatchForm, LoaderOptions, WindowSampling};
use crate::dense::{AxisSize, DType, PaddingSide};
use crate::error::{Error, Result};

/// The elements of a sequence, along the second axis of the tensors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SequenceUnit {
    /// Measurements: tensors have two axes, `[items, measurements]`. The first measurement of an
    /// event has the time since the previous event; the others have 0.
    #[default]
    Measurement,
    /// Events with their measurements: tensors have three axes, `[items, events, measurements]`.
    Event,
}

/// Parses `measurement` and `event`, or their names in meds-torch-data: `SM` and `SEM`.
impl FromStr for SequenceUnit {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        match s {
            "measurement" | "SM" => Ok(Self::Measurement),
            "event" | "SEM" => Ok(Self::Event),
            _ => Err(Error::invalid(format!(
                "the unit of sequences is {s:?}; use 'measurement' or 'event' (in meds-torch-data, SM or SEM)"
            ))),
        }
    }
}

/// Selects windows of a sequence that is longer than the maximum length.
///
/// Lengths are numbers of measurements or of events, the [unit](SequenceUnit) of sequences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SequenceWindow {
    /// A window with a uniformly distributed start, chosen anew in every epoch.
    #[default]
    Random,
    /// A window of `len` elements, clipped to the sequence. Its start is drawn uniformly in every
    /// epoch, from `len - 1` elements before the sequence to the last element. Each of `n` elements
    /// is in the window with probability `len / (n + len - 1)`; [`Random`](Self::Random) favors the
    /// middle.
    BalancedRandom,
    /// The window at the end of the sequence.
    ToEnd,
    /// The window at the start of the sequence.
    FromStart,
    /// Windows that start every `stride` elements. Each window is an item; the last may be shorter.
    Step {
        /// Number of measurements or events between the starts of consecutive windows; at least 1.
        stride: usize,
    },
    /// Consecutive windows that share `overlap` elements. Each window is an item; the last may be
    /// shorter.
    Overlap {
        /// Number of elements shared with the previous window. It must be less than the maximum
        /// length of a sequence minus the number of prepended facts.
        overlap: usize,
    },
}

impl SequenceWindow {
    /// Returns the window with this name: `random`, `balanced` (or `balanced_random`), `end` (or
    /// `to_end`), `start` (or `from_start`), `step` (or `step_through`).
    ///
    /// `step` takes a stride or an overlap; the default is a stride of `len`, so that windows
    /// adjoin.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::meds::SequenceWindow;
    /// assert_eq!(SequenceWindow::named("step", 64, Some(32), None)?, SequenceWindow::Step { stride: 32 });
    /// assert!(SequenceWindow::named("end", 64, Some(32), None).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// For an unknown name, both a stride and an overlap, or either with another name than `step`.
    pub fn named(
        name: &str,
        len: usize,
        stride: Option<usize>,
        overlap: Option<usize>,
    ) -> Result<Self> {
        let window = match (name, stride, overlap) {
            ("step" | "step_through", Some(stride), Some(overlap)) => {
                return Err(Error::invalid(format!(
                    "windows have both a stride ({stride}) and an overlap ({overlap}); set only one of them"
                )));
            }
            ("step" | "step_through", _, Some(overlap)) if overlap >= len => {
                return Err(Error::invalid(format!(
                    "windows of length {len} with an overlap of {overlap} never reach new elements; use an overlap of at most {}",
                    len.saturating_sub(1)
                )));
            }
            ("step" | "step_through", _, Some(overlap)) => return Ok(Self::Overlap { overlap }),
            ("step" | "step_through", stride, _) => {
                return Ok(Self::Step { stride: stride.unwrap_or(len) });
            }
            ("random", ..) => Self::Random,
            ("balanced" | "balanced_random", ..) => Self::BalancedRandom,
            ("end" | "to_end", ..) => Self::ToEnd,
            ("start" | "from_start", ..) => Self::FromStart,
            _ => {
                return Err(Error::invalid(format!(
                    "the window is {name:?}; use 'random', 'balanced', 'end', 'start' or 'step'"
                )));
            }
        };
        match stride.or(overlap) {
            Some(_) => Err(Error::invalid(format!(
                "the window {name:?} takes no stride or overlap; use the window 'step', or remove the options `stride` and `overlap`"
            ))),
            None => Ok(window),
        }
    }
}

/// How batches hold facts about a subject that have no time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StaticsMode {
    /// The facts are in separate tensors.
    #[default]
    Include,
    /// The facts precede the sequence, as measurements or as one event, and count towards its
    /// length.
    Prepend,
    /// The facts are omitted.
    Omit,
}

/// Parses `include`, `prepend` and `omit`.
impl FromStr for StaticsMode {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        match s {
            "include" => Ok(Self::Include),
            "prepend" => Ok(Self::Prepend),
            "omit" => Ok(Self::Omit),
            _ => Err(Error::invalid(format!(
                "the option statics is {s:?}; use 'include', 'prepend' or 'omit'"
            ))),
        }
    }
}

/// Options of a [`MedsLoader`](super::MedsLoader).
///
/// Only batch size and sequence length have no default.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::PaddingSide;
/// use serrate::loader::meds::{MedsOptions, StaticsMode, SequenceUnit, SequenceWindow};
/// let options = MedsOptions::new(256, 512)
///     .unit(SequenceUnit::Event)
///     .window(SequenceWindow::Overlap { overlap: 64 })
///     .statics(StaticsMode::Prepend)
///     .measurements_per_event(32)
///     .side(PaddingSide::Left)
///     .shuffle(7)
///     .threads(2)
///     .prefetch(1);
/// ```
#[derive(Clone, Debug)]
pub struct MedsOptions {
    pub(super) len: usize,
    pub(super) unit: SequenceUnit,
    pub(super) window: SequenceWindow,
    pub(super) statics: StaticsMode,
    cap: Option<usize>,
    fixed: bool,
    pub(super) compat: bool,
    pub(super) numeric_value: bool,
    pub(super) time_delta: bool,
    pub(super) window_counts: bool,
    loader: LoaderOptions,
}

impl MedsOptions {
    /// Returns the defaults: `batch_size` items in source order, random windows of at most `len`
    /// measurements, padding on the right, static facts in separate tensors, no threads.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::meds::MedsOptions;
    /// let options = MedsOptions::new(256, 512);
    /// ```
    pub fn new(batch_size: usize, len: usize) -> Self {
        Self {
            len,
            unit: SequenceUnit::default(),
            window: SequenceWindow::default(),
            statics: StaticsMode::default(),
            cap: None,
            fixed: false,
            compat: false,
            numeric_value: true,
            time_delta: true,
            window_counts: false,
            loader: LoaderOptions::new(batch_size).position_ids(None),
        }
    }

    /// Sets the maximum length of sequences, in measurements or events, including prepended facts.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::meds::MedsOptions;
    /// let options = MedsOptions::new(256, 512).with_len(1024);
    /// ```
    pub fn with_len(mut self, len: usize) -> Self {
        self.len = len;
        self
    }

    /// Sets whether sequences consist of measurements or of events, the unit of all lengths.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::meds::{MedsOptions, SequenceUnit};
    /// let options = MedsOptions::new(256, 512).unit(SequenceUnit::Event);
    /// ```
    pub fn unit(mut self, unit: SequenceUnit) -> Self {
        self.unit = unit;
        self
    }

    /// Sets which window to take from a sequence that is longer than the maximum length.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::meds::{MedsOptions, SequenceWindow};
    /// let options = MedsOptions::new(256, 512).window(SequenceWindow::ToEnd);
    /// ```
    pub fn window(mut self, window: SequenceWindow) -> Self {
        self.window = window;
        self
    }

    /// Sets what happens to static facts.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::meds::{MedsOptions, StaticsMode};
    /// let options = MedsOptions::new(256, 512).statics(StaticsMode::Prepend);
    /// ```
    pub fn statics(mut self, statics: StaticsMode) -> Self {
        self.statics = statics;
        self
    }

    /// Limits events of padded batches to their first `most` measurements, or to their last `most`
    /// if the padding is on the left.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::meds::{MedsOptions, SequenceUnit};
    /// let options = MedsOptions::new(256, 512).unit(SequenceUnit::Event).measurements_per_event(32);
    /// ```
    pub fn measurements_per_event(mut self, most: usize) -> Self {
        self.cap = Some(most);
        self
    }

    /// Sets whether the padded axes have a fixed size.
    ///
    /// If so, sequences are padded to the maximum length instead of the longest of the batch, and
    /// events to [`measurements_per_event`](Self::measurements_per_event) if that is set.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::meds::MedsOptions;
    /// let options = MedsOptions::new(256, 512).fixed_shape(true);
    /// ```
    pub fn fixed_shape(mut self, fixed: bool) -> Self {
        self.fixed = fixed;
        self
    }

    /// Builds exactly the tensors that `MEDSPytorchDataset` of meds-torch-data 0.9.0 collates for
    /// the same items: the same names, types, shapes and values, and no other tensors.
    ///
    /// In this mode
    ///
    /// * masks of numeric values are true on padding;
    /// * the last of stepped windows ends with the sequence and has full length;
    /// * all static facts are prepended to a sequence, even if they exceed its maximum length;
    /// * `static_mask` marks the first positions of a row, even with padding on the left;
    /// * shards, and so items, are ordered by name as strings (`train/10` before `train/2`);
    /// * a null `boolean_value` is an error, and so are labels that have values only in other
    ///   columns;
    /// * without [numeric values](Self::numeric_value), static facts in separate tensors keep their
    ///   numbers;
    /// * measurements of a MEDS data set are omitted if their code is not in the vocabulary.
    ///
    /// Labels keep their order;
    /// [`Labels::read_in_text_order`](crate::io::meds::Labels::read_in_text_order) reads a folder
    /// of labels in the order of meds-torch-data. Random windows come from a generator of this
    /// library (see [`crate::loader::WindowSampling`]) instead of NumPy: the same distribution, but
    /// other windows.
    ///
    /// Input on which meds-torch-data fails gives the same result as without `compat`; for example,
    /// a subject without events is a row of padding. One wrong result is not reproduced: without
    /// [times](Self::time_delta), meds-torch-data takes events of other subjects.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # #[cfg(feature = "parquet")] {
    /// use serrate::dense::DType;
    /// use serrate::loader::BatchForm;
    /// use serrate::loader::meds::{MedsLoader, MedsOptions, StaticsMode};
    /// let cohort = "../tests/data/synthea-meds-torch-data";
    /// let compat = MedsOptions::new(4, 16).compat(true);
    /// let batch = MedsLoader::open(cohort, "train", None, compat)?.epoch(0)?.next().unwrap()?;
    /// assert!(batch.tensor("event_start").is_err());
    /// let packed = MedsOptions::new(4, 16).form(BatchForm::Packed).statics(StaticsMode::Omit);
    /// let packed = packed.position_ids(DType::I64);
    /// let batch = MedsLoader::open(cohort, "train", None, packed)?.epoch(0)?.next().unwrap()?;
    /// assert!(batch.tensor("dim1/position_ids").is_ok());
    /// # }
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn compat(mut self, compat: bool) -> Self {
        self.compat = compat;
        self
    }

    /// Sets whether batches have numeric values, with their masks; true by default.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::meds::MedsOptions;
    /// let options = MedsOptions::new(256, 512).numeric_value(false);
    /// ```
    pub fn numeric_value(mut self, numeric_value: bool) -> Self {
        self.numeric_value = numeric_value;
        self
    }

    /// Sets whether batches have times (`time_delta_days`); true by default.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::meds::MedsOptions;
    /// let options = MedsOptions::new(256, 512).time_delta(false);
    /// ```
    pub fn time_delta(mut self, time_delta: bool) -> Self {
        self.time_delta = time_delta;
        self
    }

    /// Sets whether batches have a tensor `n_subject_windows`: the number of windows of the subject
    /// (or label) of each item, which can be used to weight stepped windows.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::meds::MedsOptions;
    /// let options = MedsOptions::new(256, 512).window_counts(true);
    /// ```
    pub fn window_counts(mut self, window_counts: bool) -> Self {
        self.window_counts = window_counts;
        self
    }

    /// Shuffles the [order](LoaderOptions::shuffle) of the items in every epoch with this seed.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::meds::MedsOptions;
    /// let options = MedsOptions::new(256, 512).shuffle(7);
    /// ```
    pub fn shuffle(self, seed: u64) -> Self {
        self.with_loader(|l| l.shuffle(seed))
    }

    /// Sets the [seed](LoaderOptions::seed) of random windows.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::meds::MedsOptions;
    /// let options = MedsOptions::new(256, 512).seed(7);
    /// ```
    pub fn seed(self, seed: u64) -> Self {
        self.with_loader(|l| l.seed(seed))
    }

    /// Sets the number of batches per [pool](LoaderOptions::bucket) in which items of similar
    /// length are grouped.
    ///
    /// The length of an item is the length of its window in the [unit](Self::unit) of sequences.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::meds::MedsOptions;
    /// let options = MedsOptions::new(256, 512).shuffle(7).bucket(100);
    /// ```
    pub fn bucket(self, pool: usize) -> Self {
        self.with_loader(|l| l.bucket(pool))
    }

    /// Sets whether [incomplete batches](LoaderOptions::drop_last) are dropped.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::meds::MedsOptions;
    /// let options = MedsOptions::new(256, 512).drop_last(true);
    /// ```
    pub fn drop_last(self, drop_last: bool) -> Self {
        self.with_loader(|l| l.drop_last(drop_last))
    }

    /// Sets the [part](LoaderOptions::part) of the batches that this process builds.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::meds::MedsOptions;
    /// let options = MedsOptions::new(256, 512).shuffle(7).part(0, 2);
    /// ```
    pub fn part(self, rank: usize, world: usize) -> Self {
        self.with_loader(|l| l.part(rank, world))
    }

    /// Sets whether batches are padded (the default) or packed.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::BatchForm;
    /// use serrate::loader::meds::MedsOptions;
    /// let options = MedsOptions::new(256, 512).form(BatchForm::Packed);
    /// ```
    pub fn form(self, form: BatchForm) -> Self {
        self.with_loader(|l| l.form(form))
    }

    /// Sets the padding side of sequences and events; separate static facts are padded on the
    /// right.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::PaddingSide;
    /// use serrate::loader::meds::MedsOptions;
    /// let options = MedsOptions::new(256, 512).side(PaddingSide::Left);
    /// ```
    pub fn side(self, side: PaddingSide) -> Self {
        self.with_loader(|l| l.side(side))
    }

    /// Sets the type of [position ids](LoaderOptions::position_ids); by default there are none.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DType;
    /// use serrate::loader::meds::MedsOptions;
    /// let options = MedsOptions::new(256, 512).position_ids(DType::I64);
    /// ```
    pub fn position_ids(self, dtype: impl Into<Option<DType>>) -> Self {
        self.with_loader(|l| l.position_ids(dtype))
    }

    /// Sets the number of [threads](LoaderOptions::threads).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::meds::MedsOptions;
    /// let options = MedsOptions::new(256, 512).threads(2);
    /// ```
    pub fn threads(self, threads: usize) -> Self {
        self.with_loader(|l| l.threads(threads))
    }

    /// Sets the number of batches to [prefetch](LoaderOptions::prefetch).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::meds::MedsOptions;
    /// let options = MedsOptions::new(256, 512).threads(2).prefetch(1);
    /// ```
    pub fn prefetch(self, prefetch: usize) -> Self {
        self.with_loader(|l| l.prefetch(prefetch))
    }

    /// Sets a [thread pool](LoaderOptions::pool) to use.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use serrate::loader::meds::MedsOptions;
    /// let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(2).build()?);
    /// let options = MedsOptions::new(32, 128).pool(pool);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pool(self, pool: Arc<ThreadPool>) -> Self {
        self.with_loader(|l| l.pool(pool))
    }

    /// Sets the [maximum size](LoaderOptions::limit) of a batch in bytes.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::meds::MedsOptions;
    /// let options = MedsOptions::new(256, 512).limit(1u64 << 30);
    /// ```
    pub fn limit(self, bytes: impl Into<Option<u64>>) -> Self {
        self.with_loader(|l| l.limit(bytes))
    }

    /// Sets whether the padding of earlier batches is [trusted](LoaderOptions::trust_padding).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::meds::MedsOptions;
    /// let options = MedsOptions::new(256, 512).trust_padding(false);
    /// ```
    pub fn trust_padding(self, is_trusted: bool) -> Self {
        self.with_loader(|l| l.trust_padding(is_trusted))
    }

    fn with_loader(mut self, change: impl FnOnce(LoaderOptions) -> LoaderOptions) -> Self {
        self.loader = change(self.loader);
        self
    }

    pub(super) fn get_form(&self) -> BatchForm {
        self.loader.form
    }

    pub(super) fn get_side(&self) -> PaddingSide {
        self.loader.side
    }

    /// Converts to [`LoaderOptions`]. Returns an error if an option is invalid whatever the data
    /// are, such as a batch size of 0.
    pub(super) fn to_loader(&self) -> Result<LoaderOptions> {
        let wrong = |message: &str| Err(Error::invalid(message));
        let mut options = self.loader.clone().tokens_as_i64(true).validity(false);
        let (sampling, overlap) = match self.window {
            SequenceWindow::Random => (WindowSampling::Random, None),
            SequenceWindow::BalancedRandom => (WindowSampling::BalancedRandom, None),
            SequenceWindow::ToEnd => (WindowSampling::ToEnd, None),
            SequenceWindow::FromStart => (WindowSampling::FromStart, None),
            SequenceWindow::Step { stride } => (WindowSampling::Step { stride }, None),
            // The stride 1 is a placeholder: `RowWindows` computes the stride of each row from the
            // overlap.
            SequenceWindow::Overlap { overlap } => {
                (WindowSampling::Step { stride: 1 }, Some(overlap))
            }
        };
        options = options.window(self.len, sampling);
        options.overlap = overlap;
        options.full_windows = self.compat;
        options.check_valid()?;
        if self.statics == StaticsMode::Prepend && self.len < 2 && !self.compat {
            return wrong(
                "sequences of length 1 have no element left after prepended static facts; use longer sequences, or set statics to 'include' or 'omit'",
            );
        }
        let packed = options.form == BatchForm::Packed;
        if packed && self.compat {
            return wrong(
                "compat is set for packed batches, which meds-torch-data does not have; use padded batches, or turn off the option compat",
            );
        }
        if self.fixed && (packed || self.compat) {
            return wrong(
                "fixed_shape is set, but packed batches and compat do not support it; remove the option",
            );
        }
        match (self.unit, self.cap) {
            (_, Some(0)) => {
                return wrong("the limit of measurements per event is 0; set it to at least 1");
            }
            (SequenceUnit::Measurement, Some(_)) => {
                return wrong(
                    "measurements per event are limited, but the unit of sequences is 'measurement'; set the unit to 'event', or remove the limit",
                );
            }
            (_, Some(_)) if packed => {
                return wrong(
                    "measurements per event are limited, but packed batches hold all measurements of their events; remove the limit",
                );
            }
            _ => {}
        }
        let sequence = if self.fixed { AxisSize::Exactly(self.len) } else { AxisSize::Longest };
        let event = match self.cap {
            Some(most) if self.fixed => AxisSize::Exactly(most),
            Some(most) => AxisSize::AtMost(most),
            None => AxisSize::Longest,
        };
        Ok(match (packed, self.unit) {
            (true, _) => options,
            (false, SequenceUnit::Measurement) => options.sizes([sequence]),
            (false, SequenceUnit::Event) => options.sizes([sequence, event]),
        })
    }
}
