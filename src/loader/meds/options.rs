//! [`MedsOptions`]: what batches of health records are made of.

use std::str::FromStr;
use std::sync::Arc;

use rayon::ThreadPool;

use super::super::options::{Form, LoaderOptions, Sampling};
use crate::dense::{DType, Side, Size};
use crate::error::{Error, Result};

/// What a sequence is a sequence of: the second axis of the tensors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Measurements, one after the other: tensors of two axes, `[items, measurements]`. The time that
    /// went by before an event stands at its first measurement, 0 at the others.
    #[default]
    Measurement,
    /// Events, each with its measurements: tensors of three axes, `[items, events, measurements]`.
    Event,
}

/// Reads `measurement` or `SM`, `event` or `SEM`.
impl FromStr for Unit {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        match s {
            "measurement" | "SM" => Ok(Self::Measurement),
            "event" | "SEM" => Ok(Self::Event),
            _ => Err(Error::invalid(format!(
                "the unit is 'measurement' (SM) or 'event' (SEM), not {s:?}"
            ))),
        }
    }
}

/// Which part of a sequence that is longer than [`MedsOptions::new`] lets it be is taken, in the
/// [unit](Unit) of the sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Window {
    /// One that starts anywhere, every start equally likely, drawn anew in every epoch.
    #[default]
    Random,
    /// One that starts anywhere from before the sequence to its last element, cut to what is there of
    /// it, drawn anew in every epoch: every element is in the window with the same probability,
    /// `len / (n + len - 1)` of a sequence of `n`, where [`Random`](Self::Random) prefers those in
    /// the middle. Windows at the ends are shorter.
    BalancedRandom,
    /// The last part.
    ToEnd,
    /// The first part.
    FromStart,
    /// One after the other, each an item of its own, which start so many measurements or events apart.
    /// The last one is as short as what is left.
    Step {
        /// From the start of one window to that of the next, 1 at least.
        stride: usize,
    },
    /// The same, where each shares so many measurements or events with the one before.
    Overlap {
        /// Less than the length of the window, static facts before it not counted.
        overlap: usize,
    },
}

impl Window {
    /// From a name: `random`, `balanced` (or `balanced_random`), `end` (or `to_end`), `start` (or
    /// `from_start`), `step` (or `step_through`), the last with a stride or an overlap, or else windows of `len` side by side.
    ///
    /// # Errors
    /// For other names; for a stride or overlap of windows that are not stepped through, or both.
    pub fn named(
        name: &str,
        len: usize,
        stride: Option<usize>,
        overlap: Option<usize>,
    ) -> Result<Self> {
        let window = match (name, stride, overlap) {
            ("step" | "step_through", Some(_), Some(_)) => {
                return Err(Error::invalid("windows have a stride or an overlap, not both"));
            }
            ("step" | "step_through", _, Some(overlap)) if overlap >= len => {
                return Err(Error::invalid(format!(
                    "windows of {len} that share {overlap} with the one before would stand still; \
                     share {} at most",
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
                    "windows are 'random', 'balanced', 'end', 'start' or 'step', not {name:?}"
                )));
            }
        };
        match stride.or(overlap) {
            Some(_) => Err(Error::invalid(format!(
                "a stride or an overlap, but windows are {name:?}; only 'step' has them"
            ))),
            None => Ok(window),
        }
    }
}

/// What becomes of the facts about a subject that have no time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Statics {
    /// They are tensors of their own.
    #[default]
    Include,
    /// They stand before the sequence and count as part of its length: as measurements, or as one
    /// event.
    Prepend,
    /// They are left out.
    Omit,
}

/// Reads `include`, `prepend` and `omit`.
impl FromStr for Statics {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        match s {
            "include" => Ok(Self::Include),
            "prepend" => Ok(Self::Prepend),
            "omit" => Ok(Self::Omit),
            _ => Err(Error::invalid(format!(
                "static facts are 'include', 'prepend' or 'omit', not {s:?}"
            ))),
        }
    }
}

/// How a [`MedsLoader`](super::MedsLoader) makes batches. Everything has a default but the batch size
/// and the length of the sequences.
///
/// ```
/// use serrate::dense::Side;
/// use serrate::loader::meds::{MedsOptions, Statics, Unit, Window};
/// let options = MedsOptions::new(256, 512)
///     .unit(Unit::Event)
///     .window(Window::Overlap { overlap: 64 })
///     .statics(Statics::Prepend)
///     .measurements_per_event(32)
///     .side(Side::Left)
///     .shuffle(7)
///     .threads(2)
///     .prefetch(1);
/// ```
#[derive(Clone, Debug)]
pub struct MedsOptions {
    pub(super) len: usize,
    pub(super) unit: Unit,
    pub(super) window: Window,
    pub(super) statics: Statics,
    cap: Option<usize>,
    fixed: bool,
    pub(super) compat: bool,
    pub(super) numeric_value: bool,
    pub(super) time_delta: bool,
    pub(super) window_counts: bool,
    /// What is passed on.
    loader: LoaderOptions,
}

impl MedsOptions {
    /// Batches of `batch_size` items of at most `len` measurements, which are random windows; static
    /// facts are tensors of their own; in source order, padded on the right, made by the thread that
    /// iterates.
    pub fn new(batch_size: usize, len: usize) -> Self {
        Self {
            len,
            unit: Unit::default(),
            window: Window::default(),
            statics: Statics::default(),
            cap: None,
            fixed: false,
            compat: false,
            numeric_value: true,
            time_delta: true,
            window_counts: false,
            loader: LoaderOptions::new(batch_size).position_ids(None),
        }
    }

    /// Sequences of at most `len` measurements or events, prepended facts among them.
    pub fn with_len(mut self, len: usize) -> Self {
        self.len = len;
        self
    }

    /// What sequences are made of, and lengths are counted in.
    pub fn unit(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }

    /// Which part of a longer sequence is taken.
    pub fn window(mut self, window: Window) -> Self {
        self.window = window;
        self
    }

    /// What becomes of static facts.
    pub fn statics(mut self, statics: Statics) -> Self {
        self.statics = statics;
        self
    }

    /// At most so many measurements of each event, the first ones (with padding on the left the last
    /// ones), of padded batches of events.
    pub fn measurements_per_event(mut self, most: usize) -> Self {
        self.cap = Some(most);
        self
    }

    /// Whether padded sequences are as long as they may be in every batch, instead of as long as the
    /// longest of the batch; events likewise, where
    /// [`measurements_per_event`](Self::measurements_per_event) says how long.
    pub fn fixed_shape(mut self, fixed: bool) -> Self {
        self.fixed = fixed;
        self
    }

    /// Exactly the tensors that `MEDSPytorchDataset` of meds-torch-data 0.9.0 collates for the same
    /// items: their names, types, shapes and values, and no others. In this form
    ///
    /// * masks of numeric values are true on padding;
    /// * the last of the windows that are stepped through ends with the sequence and is as long as the
    ///   others;
    /// * all static facts are put before a sequence, however short it may be;
    /// * `static_mask` marks the first places of a row, with padding on the left as well;
    /// * shards, and with them items, are in the order of their names as text (`train/10` before
    ///   `train/2`);
    /// * a label that has no `boolean_value` is an error, and so are labels of other kinds alone;
    /// * without [numbers](Self::numeric_value), those of included static facts are still there;
    /// * a MEDS data set is read as the cohort that converting it makes: codes outside the vocabulary
    ///   are left out.
    ///
    /// Labels are in the order in which they are given;
    /// [`Labels::read_in_text_order`](crate::io::meds::Labels::read_in_text_order) reads those of a folder
    /// in that of meds-torch-data. Random windows are drawn from a stream of this library (see
    /// [`Sampling`](crate::loader::Sampling)), and not from numpy's: where one starts is as likely there and
    /// here, and not the same.
    ///
    /// What meds-torch-data has no answer for has the answer it has here: a subject without events is a
    /// row of padding. One answer of its is wrong and not given here: without
    /// [times](Self::time_delta), it takes other subjects' events.
    pub fn compat(mut self, compat: bool) -> Self {
        self.compat = compat;
        self
    }

    /// Whether there are numeric values and their mask (the default), of static facts too.
    pub fn numeric_value(mut self, numeric_value: bool) -> Self {
        self.numeric_value = numeric_value;
        self
    }

    /// Whether there are times (the default).
    pub fn time_delta(mut self, time_delta: bool) -> Self {
        self.time_delta = time_delta;
        self
    }

    /// Whether `n_subject_windows` says for every item of how many windows of its subject (or label)
    /// it is one: weights for windows that are stepped through.
    pub fn window_counts(mut self, window_counts: bool) -> Self {
        self.window_counts = window_counts;
        self
    }

    /// As [`LoaderOptions::shuffle`].
    pub fn shuffle(self, seed: u64) -> Self {
        self.with(|l| l.shuffle(seed))
    }

    /// As [`LoaderOptions::seed`].
    pub fn seed(self, seed: u64) -> Self {
        self.with(|l| l.seed(seed))
    }

    /// As [`LoaderOptions::bucket`]; lengths are those of the windows, in the [unit](Self::unit).
    pub fn bucket(self, pool: usize) -> Self {
        self.with(|l| l.bucket(pool))
    }

    /// As [`LoaderOptions::drop_last`].
    pub fn drop_last(self, drop_last: bool) -> Self {
        self.with(|l| l.drop_last(drop_last))
    }

    /// As [`LoaderOptions::part`].
    pub fn part(self, rank: usize, world: usize) -> Self {
        self.with(|l| l.part(rank, world))
    }

    /// Padded (the default) or packed batches.
    pub fn form(self, form: Form) -> Self {
        self.with(|l| l.form(form))
    }

    /// Side of the padding of sequences and events; that of static facts in tensors of their own is
    /// always after them.
    pub fn side(self, side: Side) -> Self {
        self.with(|l| l.side(side))
    }

    /// As [`LoaderOptions::position_ids`], but none unless asked for.
    pub fn position_ids(self, dtype: impl Into<Option<DType>>) -> Self {
        self.with(|l| l.position_ids(dtype))
    }

    /// As [`LoaderOptions::threads`].
    pub fn threads(self, threads: usize) -> Self {
        self.with(|l| l.threads(threads))
    }

    /// As [`LoaderOptions::prefetch`].
    pub fn prefetch(self, prefetch: usize) -> Self {
        self.with(|l| l.prefetch(prefetch))
    }

    /// As [`LoaderOptions::pool`].
    pub fn pool(self, pool: Arc<ThreadPool>) -> Self {
        self.with(|l| l.pool(pool))
    }

    /// As [`LoaderOptions::limit`].
    pub fn limit(self, bytes: impl Into<Option<u64>>) -> Self {
        self.with(|l| l.limit(bytes))
    }

    fn with(mut self, change: impl FnOnce(LoaderOptions) -> LoaderOptions) -> Self {
        self.loader = change(self.loader);
        self
    }

    pub(super) fn form_of(&self) -> Form {
        self.loader.form
    }

    pub(super) fn side_of(&self) -> Side {
        self.loader.side
    }

    /// What a loader is told.
    ///
    /// # Errors
    /// For options that make no sense whatever the data.
    pub(super) fn to_loader(&self) -> Result<LoaderOptions> {
        let wrong = |message: &str| Err(Error::invalid(message));
        let mut options = self.loader.clone().tokens_as_i64(true).validity(false);
        let (sampling, overlap) = match self.window {
            Window::Random => (Sampling::Random, None),
            Window::BalancedRandom => (Sampling::BalancedRandom, None),
            Window::ToEnd => (Sampling::ToEnd, None),
            Window::FromStart => (Sampling::FromStart, None),
            Window::Step { stride } => (Sampling::Step { stride }, None),
            // The stride of each row follows from the length that its window has.
            Window::Overlap { overlap } => (Sampling::Step { stride: 1 }, Some(overlap)),
        };
        options = options.window(self.len, sampling);
        options.overlap = overlap;
        options.full_windows = self.compat;
        options.check()?;
        if self.statics == Statics::Prepend && self.len < 2 && !self.compat {
            return wrong(
                "static facts before sequences of 1 leave no room for anything else; take longer \
                 sequences, or include or omit the facts",
            );
        }
        let packed = options.form == Form::Packed;
        if packed && self.compat {
            return wrong("meds-torch-data has no packed batches; leave one of the two out");
        }
        if self.fixed && (packed || self.compat) {
            return wrong(
                "a fixed shape is one of padded batches, and not of meds-torch-data; leave it out",
            );
        }
        match (self.unit, self.cap) {
            (_, Some(0)) => return wrong("events of at most 0 measurements; at least 1"),
            (Unit::Measurement, Some(_)) => {
                return wrong(
                    "sequences of measurements have no events whose measurements could be limited; \
                     take unit = event, or leave the limit out",
                );
            }
            (_, Some(_)) if packed => {
                return wrong(
                    "packed batches hold all measurements of their events; leave the limit out",
                );
            }
            _ => {}
        }
        let sequence = if self.fixed { Size::Exactly(self.len) } else { Size::Longest };
        let event = match self.cap {
            Some(most) if self.fixed => Size::Exactly(most),
            Some(most) => Size::AtMost(most),
            None => Size::Longest,
        };
        Ok(match (packed, self.unit) {
            (true, _) => options,
            (false, Unit::Measurement) => options.sizes([sequence]),
            (false, Unit::Event) => options.sizes([sequence, event]),
        })
    }
}
