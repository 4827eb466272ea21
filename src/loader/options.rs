//! What an epoch looks like: batches, windows, order, padding, threads.

use std::sync::Arc;

use rayon::ThreadPool;

use crate::dense::{DType, DenseOptions, Fill, Side, Size};
use crate::error::{Error, Result};

/// Which events of a row that is longer than the window are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sampling {
    /// A window that starts anywhere, every start equally likely; drawn anew in every epoch, from
    /// the seed, the number of the epoch and the row (or the label) alone: of `n` starts it is number
    /// `mix(mix(mix(seed) ^ epoch) ^ row) * n / 2^64`, where `mix` is a step of splitmix64.
    Random,
    /// A window that starts anywhere from `len - 1` events before the row to its last event, every
    /// start equally likely, and is cut to the row: each event is in it with the same probability,
    /// `len / (n + len - 1)` of a row of `n`. Windows at the ends are shorter. A row that fits one
    /// window is that window. Drawn as [`Random`](Self::Random) is.
    BalancedRandom,
    /// The first events.
    #[default]
    FromStart,
    /// The last events.
    ToEnd,
    /// Every window is an item of its own: they start at the events 0, `stride`, 2 `stride`, ..
    /// until one reaches the end of the row, which may be shorter. A row that fits one window (or
    /// is empty) is one item.
    Step {
        /// Events from the start of one window to that of the next, 1 at least. Larger than the
        /// window, it leaves events out.
        stride: usize,
    },
}

/// Padded or packed; see [`Loader`](super::Loader).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// Tensors with one axis per level, short lists padded.
    #[default]
    Padded,
    /// Flat values and where each row ends.
    Packed,
}

/// How a [`Loader`](super::Loader) makes epochs. Everything has a default but the batch size.
///
/// ```
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
    /// Elements that a window that is stepped to shares with the one before, instead of its stride.
    pub(super) overlap: Option<usize>,
    /// Whether the last window of a row is as long as the others.
    pub(super) full_windows: bool,
}

impl LoaderOptions {
    /// Batches of `batch_size` items in source order, whole rows, padded on the right with zeros to
    /// the longest of the batch, every column and mask, made by the thread that iterates.
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

    /// At most `events` elements of axis 1 per item; which of them is up to `sampling`.
    pub fn window(mut self, events: usize, sampling: Sampling) -> Self {
        self.window = Some((events, sampling));
        self
    }

    /// Another order of the items in every epoch, drawn from the seed and the epoch's number; also
    /// sets the [`seed`](Self::seed).
    pub fn shuffle(mut self, seed: u64) -> Self {
        self.shuffle = true;
        self.seed(seed)
    }

    /// The seed of random windows (and of the order, once it is shuffled); 0 unless set.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Puts items of similar length into one batch, so that less is padded: within pools of `pool`
    /// batches (taken from the shuffled order) items are sorted by the length of their window, and
    /// then the batches are shuffled if the items were. Large pools pad less and mix less; the last
    /// batch is no longer the only one that may be short of items.
    pub fn bucket(mut self, pool: usize) -> Self {
        self.bucket = Some(pool);
        self
    }

    /// Leaves out the items at the end of the order that do not fill a batch, and with
    /// [`part`](Self::part) the batches at the end that are not enough for one each.
    pub fn drop_last(mut self, drop_last: bool) -> Self {
        self.drop_last = drop_last;
        self
    }

    /// Of the batches of each epoch, only those numbered `rank`, `rank + world`, `rank + 2 world`,
    /// .., which are then numbered from 0: the share of one of `world` processes whose loaders are
    /// otherwise the same. No other batch is made. The first shares may have one batch more than the
    /// last; none has with [`drop_last`](Self::drop_last).
    pub fn part(mut self, rank: usize, world: usize) -> Self {
        self.part = (rank, world);
        self
    }

    /// Padded (the default) or packed batches.
    pub fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Only these columns, in this order; others are not looked at, nor are axes below the deepest of
    /// them, axis 1, and those of [`masks`](Self::masks) and [`sizes`](Self::sizes).
    pub fn columns<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.columns = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Masks `dim{d}/mask` of these axes (1..) of padded batches, instead of every axis that has a
    /// column; none for an empty list. Packed batches have none and refuse them.
    pub fn masks(mut self, axes: impl IntoIterator<Item = usize>) -> Self {
        self.masks = Some(axes.into_iter().collect());
        self
    }

    /// Whether a column with null leaves comes with a mask of those that are not (the default).
    pub fn validity(mut self, validity: bool) -> Self {
        self.validity = validity;
        self
    }

    /// Sizes of the axes after the rows, for padded batches; no more than there are. [`Size::Longest`] (also for axes not
    /// listed) is the longest list of the batch; [`Size::Exactly`] gives every batch one shape.
    /// Lists that are too long are cut on the side of the padding, axis 1 after its window.
    pub fn sizes(mut self, sizes: impl Into<Vec<Size>>) -> Self {
        self.sizes = sizes.into();
        self
    }

    /// Side of the padding at every level; packed batches have none and refuse [`Side::Left`].
    pub fn side(mut self, side: Side) -> Self {
        self.side = side;
        self
    }

    /// Value of padding and of null leaves in every column, 0 unless set. It must be a value of
    /// every column's type.
    pub fn fill(mut self, fill: impl Into<Fill>) -> Self {
        self.fill = Some(fill.into());
        self
    }

    /// As [`fill`](Self::fill), for one column.
    pub fn fill_column(mut self, name: impl Into<String>, fill: impl Into<Fill>) -> Self {
        self.fills.push((name.into(), fill.into()));
        self
    }

    /// Whether integer columns become int64, the type that embedding layers take.
    pub fn tokens_as_i64(mut self, tokens_as_i64: bool) -> Self {
        self.tokens_as_i64 = tokens_as_i64;
        self
    }

    /// Type of the position ids of packed batches, [`DType::I32`] (the default) or [`DType::I64`];
    /// none are made for `None`.
    pub fn position_ids(mut self, dtype: impl Into<Option<DType>>) -> Self {
        self.position_ids = dtype.into();
        self
    }

    /// Threads that make batches: large ones (8 MiB and more) together, smaller ones each its own. With
    /// 1 and no [`prefetch`](Self::prefetch), batches are made when they are asked for, by the thread
    /// that asks.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Batches that may be ready before they are asked for, besides those being made.
    ///
    /// Memory of batches is that of `threads + prefetch` (`1 + prefetch` of large ones), the one at hand
    /// among them, where every
    /// tensor counts with the largest there was of it, and a quarter more or whole huge pages (2 MiB)
    /// for growth. What a loader holds besides is said at [`open`](super::Loader::open).
    pub fn prefetch(mut self, prefetch: usize) -> Self {
        self.prefetch = prefetch;
        self
    }

    /// A pool of threads to make batches in, instead of one of the loader's own; sets
    /// [`threads`](Self::threads) to as many as it has.
    pub fn pool(mut self, pool: Arc<ThreadPool>) -> Self {
        self.threads = pool.current_num_threads();
        self.pool = Some(pool);
        self
    }

    /// Most bytes of one batch, 4 GiB unless set; a larger one is refused before any of its tensors
    /// is allocated. Where its lists end is put together first, in 4 bytes for each list and 16 to 24
    /// for each item and axis. `None` for no limit.
    pub fn limit(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.limit = bytes.into();
        self
    }

    /// Refuses what makes no sense whatever the data.
    pub(super) fn check(&self) -> Result<()> {
        let wrong = |message: &str| Err(Error::invalid(message));
        if self.batch_size == 0 {
            return wrong("batches of 0 items; at least 1");
        }
        match self.window {
            Some((0, _)) => return wrong("windows of 0 events; at least 1"),
            Some((_, Sampling::Step { stride: 0 })) => {
                return wrong("windows 0 events apart; the stride is 1 at least");
            }
            _ => {}
        }
        if self.bucket == Some(0) {
            return wrong("buckets sort pools of 0 batches; at least 1 (2 for any effect)");
        }
        if self.threads == 0 {
            return wrong("0 threads; 1 is the thread that asks for batches");
        }
        if self.form == Form::Packed && !self.sizes.is_empty() {
            return wrong(
                "sizes are those of padding, and packed batches have none; leave them out",
            );
        }
        if self.form == Form::Packed && self.masks.is_some() {
            return wrong(
                "masks say what is padding, and packed batches have none; leave them out",
            );
        }
        if self.form == Form::Packed && self.side == Side::Left {
            return wrong("padding on the left, and packed batches have none; leave the side out");
        }
        let (rank, world) = self.part;
        if rank >= world {
            return Err(Error::invalid(format!(
                "part {rank} of {world}; parts are numbered from 0, and there is 1 at least"
            )));
        }
        if let Some(dtype) = self.position_ids
            && !matches!(dtype, DType::I32 | DType::I64)
        {
            return Err(Error::invalid(format!("position ids are int32 or int64, not {dtype}")));
        }
        Ok(())
    }

    /// Batches that may exist at a time.
    pub(super) fn in_flight(&self) -> usize {
        self.threads.saturating_add(self.prefetch)
    }

    /// Whether batches are made where they are asked for.
    pub(super) fn inline(&self) -> bool {
        self.threads == 1 && self.prefetch == 0 && self.pool.is_none()
    }

    /// Axes after the rows that are needed whatever the columns: the one of windows, and those that
    /// are spoken of.
    pub(super) fn least_depth(&self) -> usize {
        let masks = self.masks.iter().flatten().copied().max().unwrap_or(0);
        masks.max(self.sizes.len()).max(1)
    }

    pub(super) fn window_len(&self) -> Option<usize> {
        self.window.map(|(len, _)| len)
    }
}
