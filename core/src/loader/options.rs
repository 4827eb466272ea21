//! Options of a loader: batches, windows, order, padding, threads.

use std::sync::Arc;

use rayon::ThreadPool;

use crate::dense::{DType, DenseOptions, Fill, Side, Size};
use crate::error::{Error, Result};

/// Choice of the window in a row that is longer than the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sampling {
    /// A window with a uniformly distributed start, drawn anew in every epoch. It depends only on
    /// the seed, the epoch and the row (or the label): of `n` starts, start `mix(mix(mix(seed) ^
    /// epoch) ^ row) * n / 2^64` is chosen, where `mix` is a step of splitmix64.
    Random,
    /// A window whose start is uniformly distributed from `len - 1` events before the row to its
    /// last event, clipped to the row. Each event has the same probability `len / (n + len - 1)` in
    /// a row of `n`. Windows at the ends are shorter. A row that fits one window is one window.
    /// Drawn like [`Random`](Self::Random).
    BalancedRandom,
    /// The first events.
    #[default]
    FromStart,
    /// The last events.
    ToEnd,
    /// Every window is an item: windows start at the events 0, `stride`, 2 `stride`, .. until a
    /// window reaches the end of the row; the last may be shorter. A row that fits one window (or
    /// is empty) is one item.
    Step {
        /// Number of events between the starts of consecutive windows, at least 1. A stride larger
        /// than the window skips events.
        stride: usize,
    },
}

/// Form of the batches; see [`Loader`](super::Loader).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// Tensors with one axis per level; short lists are padded.
    #[default]
    Padded,
    /// Flat values with the offsets of the rows.
    Packed,
}

/// Options of a [`Loader`](super::Loader). Only the batch size has no default.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::{Side, Size};
/// use serrate::loader::{LoaderOptions, Sampling};
/// let options = LoaderOptions::new(64)
///     .shuffle(7)
///     .window(256, Sampling::Random)
///     .bucket(20)
///     .side(Side::Left)
///     .tokens_as_i64(true)
///     .fill_column("code", -1)
///     .threads(2)
///     .prefetch(2);
/// # use std::sync::Arc;
/// # use serrate::arrow::array::UInt16Array;
/// # use serrate::table::RaggedTable;
/// # let table = RaggedTable::builder().lengths([3, 1])?
/// #     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9, 4]))).build()?;
/// # let batch = serrate::loader::Loader::try_new([table], options)?.epoch(0)?.next().unwrap()?;
/// # assert!(batch.tensor("code")?.as_slice::<i64>()?.ends_with(&[-1, -1, 4]) || batch.items()[0].row == 1);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LoaderOptions {
    pub(super) batch_size: usize,
    pub(super) window: Option<(usize, Sampling)>,
    pub(super) shuffle: bool,
    pub(super) seed: u64,
    pub(super) bucket: Option<usize>,
    pub(super) drop_last: bool,
    pub(super) part: (usize, usize),
    pub(super) form: Form,
    pub(super) columns: Option<Vec<String>>,
    pub(super) masks: Option<Vec<usize>>,
    pub(super) validity: bool,
    pub(super) sizes: Vec<Size>,
    pub(super) side: Side,
    pub(super) fill: Option<Fill>,
    pub(super) fills: Vec<(String, Fill)>,
    pub(super) tokens_as_i64: bool,
    pub(super) position_ids: Option<DType>,
    pub(super) threads: usize,
    pub(super) prefetch: usize,
    pub(super) pool: Option<Arc<ThreadPool>>,
    pub(super) limit: Option<u64>,
    /// Elements that each stepped window shares with the previous one; replaces the stride.
    pub(super) overlap: Option<usize>,
    /// Whether the last window of a row is as long as the others.
    pub(super) full_windows: bool,
}

impl LoaderOptions {
    /// Returns the defaults for batches of `batch_size` items: whole rows in source order, padded
    /// on the right with zeros to the longest row of the batch, with every column and mask, built
    /// by the calling thread.
    pub fn new(batch_size: usize) -> Self {
        Self {
            batch_size,
            window: None,
            shuffle: false,
            seed: 0,
            bucket: None,
            drop_last: false,
            part: (0, 1),
            form: Form::Padded,
            columns: None,
            masks: None,
            validity: true,
            sizes: Vec::new(),
            side: Side::Right,
            fill: None,
            fills: Vec::new(),
            tokens_as_i64: false,
            position_ids: Some(DType::I32),
            threads: 1,
            prefetch: 0,
            pool: None,
            limit: Some(DenseOptions::DEFAULT_LIMIT),
            overlap: None,
            full_windows: false,
        }
    }

    /// Limits items to `events` elements of axis 1, chosen by `sampling`.
    pub fn window(mut self, events: usize, sampling: Sampling) -> Self {
        self.window = Some((events, sampling));
        self
    }

    /// Shuffles the items in every epoch with a generator seeded by this seed and the epoch; also
    /// sets the [`seed`](Self::seed).
    pub fn shuffle(mut self, seed: u64) -> Self {
        self.shuffle = true;
        self.seed(seed)
    }

    /// Sets the seed of random windows (and of the order, if shuffled); the default is 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Groups items of similar length into batches to reduce padding. Within pools of `pool`
    /// batches (in the shuffled order, if any), items are sorted by the length of their window; if
    /// the items were shuffled, the batches then are, too. Larger pools pad less and mix less. The
    /// incomplete batch need not be the last one.
    pub fn bucket(mut self, pool: usize) -> Self {
        self.bucket = Some(pool);
        self
    }

    /// Sets whether to drop the items at the end of the order that do not fill a batch and, with
    /// [`part`](Self::part), the last batches if there are fewer of them than parts.
    pub fn drop_last(mut self, drop_last: bool) -> Self {
        self.drop_last = drop_last;
        self
    }

    /// Builds only the batches `rank`, `rank + world`, `rank + 2 world`, .. of each epoch,
    /// renumbered from 0: the share of one of `world` processes with otherwise equal loaders. The
    /// first shares may have one batch more than the last, except with
    /// [`drop_last`](Self::drop_last).
    pub fn part(mut self, rank: usize, world: usize) -> Self {
        self.part = (rank, world);
        self
    }

    /// Sets the form of the batches; padded by default.
    pub fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Uses only these columns, in this order. Other columns are not read. The axes in use end at
    /// the deepest of these columns, axis 1, and the axes of [`masks`](Self::masks) and
    /// [`sizes`](Self::sizes).
    pub fn columns<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.columns = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Selects the axes (1 or more) with a mask `dim{d}/mask` in padded batches; by default every
    /// axis with a column. An error for packed batches, which have no masks.
    pub fn masks(mut self, axes: impl IntoIterator<Item = usize>) -> Self {
        self.masks = Some(axes.into_iter().collect());
        self
    }

    /// Sets whether each column with null leaves gets a validity mask (the default).
    pub fn validity(mut self, validity: bool) -> Self {
        self.validity = validity;
        self
    }

    /// Sets the sizes of the axes after the rows in padded batches; at most one per axis.
    /// [`Size::Longest`] (the default) is the longest list of the batch; [`Size::Exactly`] gives
    /// every batch the same shape. Longer lists are truncated on the side of the padding; axis 1 is
    /// truncated after its window is chosen.
    pub fn sizes(mut self, sizes: impl Into<Vec<Size>>) -> Self {
        self.sizes = sizes.into();
        self
    }

    /// Sets the side of the padding at every level. [`Side::Left`] is an error for packed batches.
    pub fn side(mut self, side: Side) -> Self {
        self.side = side;
        self
    }

    /// Sets the value of padding and null leaves in every column, 0 by default. It must fit every
    /// column's type.
    pub fn fill(mut self, fill: impl Into<Fill>) -> Self {
        self.fill = Some(fill.into());
        self
    }

    /// Sets the value of padding and null leaves in one column; see [`fill`](Self::fill).
    pub fn fill_column(mut self, name: impl Into<String>, fill: impl Into<Fill>) -> Self {
        self.fills.push((name.into(), fill.into()));
        self
    }

    /// Sets whether integer columns are converted to int64, the type of embedding layers.
    pub fn tokens_as_i64(mut self, tokens_as_i64: bool) -> Self {
        self.tokens_as_i64 = tokens_as_i64;
        self
    }

    /// Sets the type of the position ids of packed batches, [`DType::I32`] (the default) or
    /// [`DType::I64`]; `None` for no position ids.
    pub fn position_ids(mut self, dtype: impl Into<Option<DType>>) -> Self {
        self.position_ids = dtype.into();
        self
    }

    /// Sets the number of threads. All threads build a large batch (8 MiB or more) together; one
    /// thread builds a smaller batch. With 1 and no [`prefetch`](Self::prefetch), the thread that
    /// requests a batch builds it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets the number of finished batches to prefetch, in addition to the batches that are being
    /// built.
    ///
    /// The loader takes the memory of `threads + prefetch` batches (`1 + prefetch` large ones),
    /// including the current one. Every tensor counts with its largest size so far, plus a quarter,
    /// or whole huge pages (2 MiB), for growth. [`open`](super::Loader::open) lists the other
    /// memory of a loader.
    pub fn prefetch(mut self, prefetch: usize) -> Self {
        self.prefetch = prefetch;
        self
    }

    /// Sets a thread pool to use instead of the loader's own, and sets [`threads`](Self::threads)
    /// to its size.
    pub fn pool(mut self, pool: Arc<ThreadPool>) -> Self {
        self.threads = pool.current_num_threads();
        self.pool = Some(pool);
        self
    }

    /// Sets the maximum size of a batch in bytes, 4 GiB by default, `None` for no limit. A larger
    /// batch is an error before its tensors are allocated; until then it takes 4 bytes of offsets
    /// per list and 16 to 24 bytes per item and axis.
    pub fn limit(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.limit = bytes.into();
        self
    }

    /// Returns an error for options that are invalid for any data.
    pub(super) fn check_valid(&self) -> Result<()> {
        let wrong = |message: &str| Err(Error::invalid(message));
        if self.batch_size == 0 {
            return wrong("the batch size is 0; a batch needs at least 1 item");
        }
        match self.window {
            Some((0, _)) => {
                return wrong("the window length is 0; a window needs at least 1 event");
            }
            Some((_, Sampling::Step { stride: 0 })) => {
                return wrong("the stride of windows is 0; it must be at least 1 event");
            }
            _ => {}
        }
        if self.bucket == Some(0) {
            return wrong("the pool of bucketing is 0; use at least 1 batch (2 to have an effect)");
        }
        if self.threads == 0 {
            return wrong("the number of threads is 0; use at least 1 (the calling thread)");
        }
        if self.form == Form::Packed && !self.sizes.is_empty() {
            return wrong("sizes are set, but packed batches have no padding; remove the option");
        }
        if self.form == Form::Packed && self.masks.is_some() {
            return wrong("masks are set, but packed batches have no padding; remove the option");
        }
        if self.form == Form::Packed && self.side == Side::Left {
            return wrong(
                "a padding side is set, but packed batches have no padding; remove the option",
            );
        }
        let (rank, world) = self.part;
        if rank >= world {
            return Err(Error::invalid(format!(
                "part {rank} of {world} does not exist; parts are numbered from 0 to the number of parts - 1"
            )));
        }
        if let Some(dtype) = self.position_ids
            && !matches!(dtype, DType::I32 | DType::I64)
        {
            return Err(Error::invalid(format!(
                "position ids must be int32 or int64, not {dtype}"
            )));
        }
        Ok(())
    }

    /// Maximum number of batches that exist at a time.
    pub(super) fn in_flight(&self) -> usize {
        self.threads.saturating_add(self.prefetch)
    }

    /// Whether the calling thread builds batches.
    pub(super) fn is_inline(&self) -> bool {
        self.threads == 1 && self.prefetch == 0 && self.pool.is_none()
    }

    /// Number of axes after the rows that are needed regardless of the columns: for windows, masks
    /// and sizes.
    pub(super) fn least_depth(&self) -> usize {
        let masks = self.masks.iter().flatten().copied().max().unwrap_or(0);
        masks.max(self.sizes.len()).max(1)
    }

    pub(super) fn window_len(&self) -> Option<usize> {
        self.window.map(|(len, _)| len)
    }
}
