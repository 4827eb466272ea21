//! Options of a loader: batches, windows, order, padding, threads.

use std::sync::Arc;

use rayon::ThreadPool;

use crate::dense::{AxisSize, DType, DenseOptions, Fill, PaddingSide};
use crate::error::{Error, Result};

/// Selects the window, or windows, of a row that is longer than the maximum length of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WindowSampling {
    /// A window with a uniformly distributed start, chosen anew in every epoch. It depends only on
    /// the seed, the epoch and the row (or the label): of `n` starts, start `mix(mix(mix(seed) ^
    /// epoch) ^ row) * n / 2^64` is chosen, where `mix` is a step of splitmix64.
    Random,
    /// A window of `len` events whose start is uniformly random (drawn as for
    /// [`Random`](Self::Random)) from `len - 1` events before the row to its last event; it is then
    /// clipped to the row. Each of the `n` events of the row is in the window with probability
    /// `len / (n + len - 1)`. A row of at most `len` events is one window.
    BalancedRandom,
    /// The window that begins at the first event of the row.
    #[default]
    FromStart,
    /// The window that ends at the last event of the row.
    ToEnd,
    /// Windows that start at events 0, `stride`, 2 `stride`, .. until a window reaches the end of
    /// the row. Each window is an item; the last may be shorter. A row that fits one window (or is
    /// empty) is one item.
    Step {
        /// Events between window starts, at least 1. A stride above the window length skips events.
        stride: usize,
    },
}

/// How tensors hold lists of different lengths; see [`Batch`](super::Batch).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BatchForm {
    /// Tensors with one axis per level of lists; short lists are padded.
    #[default]
    Padded,
    /// Flat tensors without padding, with offsets that divide them into items and lists.
    Packed,
}

/// The batches of an epoch that a process builds: every `world`-th batch from batch `rank` on.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessPart {
    pub(super) rank: usize,
    /// Number of processes that share the batches of the epoch.
    pub(super) world: usize,
}

/// Options of a [`Loader`](super::Loader).
///
/// Only the batch size has no default.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::{PaddingSide, AxisSize};
/// use serrate::loader::{LoaderOptions, WindowSampling};
/// let options = LoaderOptions::new(64)
///     .shuffle(7)
///     .window(256, WindowSampling::Random)
///     .bucket(20)
///     .side(PaddingSide::Left)
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
    pub(super) window: Option<(usize, WindowSampling)>,
    pub(super) shuffle: bool,
    pub(super) seed: u64,
    pub(super) bucket: Option<usize>,
    pub(super) drop_last: bool,
    pub(super) part: ProcessPart,
    pub(super) form: BatchForm,
    pub(super) columns: Option<Vec<String>>,
    pub(super) masks: Option<Vec<usize>>,
    pub(super) validity: bool,
    pub(super) sizes: Vec<AxisSize>,
    pub(super) side: PaddingSide,
    pub(super) fill: Option<Fill>,
    pub(super) fills: Vec<(String, Fill)>,
    pub(super) tokens_as_i64: bool,
    pub(super) position_ids: Option<DType>,
    pub(super) threads: usize,
    pub(super) prefetch: usize,
    pub(super) pool: Option<Arc<ThreadPool>>,
    pub(super) limit: Option<u64>,
    pub(super) trust_padding: bool,
    /// Number of elements that consecutive stepped windows share. If it is given, the stride is the
    /// length of a window (without prepended facts) minus this number.
    pub(super) overlap: Option<usize>,
    /// Whether the last stepped window of a row starts earlier instead of being shorter, as in
    /// meds-torch-data.
    pub(super) full_windows: bool,
}

impl LoaderOptions {
    /// Returns the defaults: `batch_size` whole rows in source order, padded on the right with
    /// zeros to the longest row of the batch, with all columns and masks.
    ///
    /// The calling thread builds the batches.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::LoaderOptions;
    /// let options = LoaderOptions::new(32);
    /// ```
    pub fn new(batch_size: usize) -> Self {
        Self {
            batch_size,
            window: None,
            shuffle: false,
            seed: 0,
            bucket: None,
            drop_last: false,
            part: ProcessPart { rank: 0, world: 1 },
            form: BatchForm::Padded,
            columns: None,
            masks: None,
            validity: true,
            sizes: Vec::new(),
            side: PaddingSide::Right,
            fill: None,
            fills: Vec::new(),
            tokens_as_i64: false,
            position_ids: Some(DType::I32),
            threads: 1,
            prefetch: 0,
            pool: None,
            limit: Some(DenseOptions::DEFAULT_LIMIT),
            trust_padding: true,
            overlap: None,
            full_windows: false,
        }
    }

    /// Limits each item to a window of at most `events` elements of axis 1; `sampling` chooses the
    /// window.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::{LoaderOptions, WindowSampling};
    /// let options = LoaderOptions::new(32).window(256, WindowSampling::Random);
    /// ```
    pub fn window(mut self, events: usize, sampling: WindowSampling) -> Self {
        self.window = Some((events, sampling));
        self
    }

    /// Shuffles items by `seed` and the epoch, and seeds random windows like [`seed`](Self::seed).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::LoaderOptions;
    /// let options = LoaderOptions::new(32).shuffle(7); // the same order in each process with seed 7
    /// ```
    pub fn shuffle(mut self, seed: u64) -> Self {
        self.shuffle = true;
        self.seed(seed)
    }

    /// Sets the seed of random windows (and of the order, if shuffled); 0 by default.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::LoaderOptions;
    /// let options = LoaderOptions::new(32).window(256, Default::default()).seed(7);
    /// ```
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Groups items of similar length to reduce padding: each pool of `pool` batches is sorted by
    /// the length of the windows.
    ///
    /// If items are shuffled, batches are, too: an incomplete batch may be at any position. A
    /// larger pool means less padding, but also less randomness.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::LoaderOptions;
    /// let options = LoaderOptions::new(32).shuffle(7).bucket(100); // sorts 3,200 items at a time
    /// ```
    pub fn bucket(mut self, pool: usize) -> Self {
        self.bucket = Some(pool);
        self
    }

    /// Sets whether to drop the items at the end of the order that do not fill a batch.
    ///
    /// If [`part`](Self::part) is set, also drops the last batches if not every process would get
    /// one of them.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::LoaderOptions;
    /// let options = LoaderOptions::new(32).drop_last(true);
    /// ```
    pub fn drop_last(mut self, drop_last: bool) -> Self {
        self.drop_last = drop_last;
        self
    }

    /// Builds only the batches `rank`, `rank + world`, `rank + 2 world`, .. of each epoch,
    /// renumbered from 0.
    ///
    /// In this way `world` processes with otherwise equal loaders share the batches. The first
    /// processes may have one batch more than the last, except with [`drop_last`](Self::drop_last).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::LoaderOptions;
    /// let options = LoaderOptions::new(32).shuffle(7).part(0, 2);
    /// ```
    pub fn part(mut self, rank: usize, world: usize) -> Self {
        self.part = ProcessPart { rank, world };
        self
    }

    /// Sets whether batches are padded (the default) or packed.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::{BatchForm, LoaderOptions};
    /// let options = LoaderOptions::new(32).form(BatchForm::Packed);
    /// ```
    pub fn form(mut self, form: BatchForm) -> Self {
        self.form = form;
        self
    }

    /// Uses only these columns, in this order; others are not read.
    ///
    /// Batches then have axis 1, and all axes down to the deepest that a column,
    /// [`masks`](Self::masks) or [`sizes`](Self::sizes) uses.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::LoaderOptions;
    /// let options = LoaderOptions::new(32).columns(["code", "numeric_value"]);
    /// ```
    pub fn columns<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.columns = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Selects the axes (1 or more) that have a mask `dim{d}/mask` in padded batches; by default
    /// every axis with a column.
    ///
    /// Packed batches have no masks, so this option is an error for them.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use serrate::table::RaggedTable;
    /// use serrate::dense::{DType, AxisSize};
    /// use serrate::loader::{BatchForm, Loader, LoaderOptions};
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 3, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![1, 2, 3, 4, 5, 6])))
    ///     .build()?;
    /// let options = LoaderOptions::new(2)
    ///     .masks([])
    ///     .validity(false)
    ///     .sizes([AxisSize::Exactly(2)])
    ///     .fill(9)
    ///     .drop_last(true)
    ///     .part(0, 1)
    ///     .seed(7)
    ///     .limit(1u64 << 20);
    /// let loader = Loader::try_new([table.clone()], options.clone())?;
    /// let batches: Vec<_> = loader.epoch(0)?.collect::<Result<_, _>>()?;
    /// assert_eq!((batches.len(), batches[0].tensors().len()), (1, 1));
    /// assert_eq!(batches[0].tensor("code")?.as_slice::<u16>()?, [1, 2, 3, 4]);
    /// let packed = LoaderOptions::new(3).form(BatchForm::Packed).position_ids(None::<DType>);
    /// let batch = Loader::try_new([table], packed)?.epoch(0)?.next().unwrap()?;
    /// assert!(batch.tensor("dim1/position_ids").is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn masks(mut self, axes: impl IntoIterator<Item = usize>) -> Self {
        self.masks = Some(axes.into_iter().collect());
        self
    }

    /// Sets whether each column with null leaves has a validity mask; true by default.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::LoaderOptions;
    /// let options = LoaderOptions::new(32).validity(false);
    /// ```
    pub fn validity(mut self, validity: bool) -> Self {
        self.validity = validity;
        self
    }

    /// Sets the sizes of the axes after the rows in padded batches, at most one per axis.
    ///
    /// [`AxisSize::Longest`] (the default) is the longest list of the batch; [`AxisSize::Exactly`]
    /// gives every batch the same shape. Longer lists are truncated on the side of the padding.
    /// Axis 1 is truncated after the window is chosen.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::AxisSize;
    /// use serrate::loader::LoaderOptions;
    /// let options = LoaderOptions::new(32).sizes([AxisSize::AtMost(256), AxisSize::Exactly(64)]);
    /// ```
    pub fn sizes(mut self, sizes: impl Into<Vec<AxisSize>>) -> Self {
        self.sizes = sizes.into();
        self
    }

    /// Sets the side of the padding at every level.
    ///
    /// [`PaddingSide::Left`] is an error for packed batches.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::PaddingSide;
    /// use serrate::loader::LoaderOptions;
    /// let options = LoaderOptions::new(32).side(PaddingSide::Left);
    /// ```
    pub fn side(mut self, side: PaddingSide) -> Self {
        self.side = side;
        self
    }

    /// Sets the value of padding and null leaves (default 0).
    ///
    /// It must fit the type of every column.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::LoaderOptions;
    /// let options = LoaderOptions::new(32).fill(-1);
    /// ```
    pub fn fill(mut self, fill: impl Into<Fill>) -> Self {
        self.fill = Some(fill.into());
        self
    }

    /// Sets the value of padding and null leaves in one column; see [`fill`](Self::fill).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::LoaderOptions;
    /// let options = LoaderOptions::new(32).fill_column("code", -1);
    /// ```
    pub fn fill_column(mut self, name: impl Into<String>, fill: impl Into<Fill>) -> Self {
        self.fills.push((name.into(), fill.into()));
        self
    }

    /// Sets whether integer columns are converted to int64, the type that embedding layers take.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::LoaderOptions;
    /// let options = LoaderOptions::new(32).tokens_as_i64(true);
    /// ```
    pub fn tokens_as_i64(mut self, tokens_as_i64: bool) -> Self {
        self.tokens_as_i64 = tokens_as_i64;
        self
    }

    /// Sets the type of position ids: [`DType::I32`] (default), [`DType::I64`], or `None` for none.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DType;
    /// use serrate::loader::LoaderOptions;
    /// let options = LoaderOptions::new(32).position_ids(DType::I64);
    /// ```
    pub fn position_ids(mut self, dtype: impl Into<Option<DType>>) -> Self {
        self.position_ids = dtype.into();
        self
    }

    /// Sets the number of threads.
    ///
    /// If the first batch of an epoch is large (8 MiB or more), all threads build each batch
    /// together; otherwise, each batch is built by one thread. If the number is 1 and there is no
    /// [`prefetch`](Self::prefetch), the thread that requests a batch builds it.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::LoaderOptions;
    /// let options = LoaderOptions::new(32).threads(2);
    /// ```
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets the number of finished batches to prefetch, in addition to those in progress.
    ///
    /// The loader needs the memory of `threads + prefetch` batches, including the current batch. If
    /// batches are large, it needs only the memory of `1 + prefetch` batches, because all
    /// [`threads`](Self::threads) then build one batch together. The memory of a tensor is its
    /// largest size so far, plus a quarter at most, or rounded up to huge pages (2 MiB) if the
    /// tensor is large. See [`open`](super::Loader::open) for the other memory of a loader.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::LoaderOptions;
    /// let options = LoaderOptions::new(32).threads(2).prefetch(1);
    /// ```
    pub fn prefetch(mut self, prefetch: usize) -> Self {
        self.prefetch = prefetch;
        self
    }

    /// Sets the thread pool for the batches, and sets [`threads`](Self::threads) to its size.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::table::RaggedTable;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// let x = Arc::new(Int32Array::from_iter_values(1..7));
    /// let table = RaggedTable::builder().lengths([2, 1, 3])?.column("x", 1, x).build()?;
    /// let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(2).build()?);
    /// let loader = Loader::try_new([table], LoaderOptions::new(1).pool(pool))?;
    /// assert_eq!(loader.epoch(0)?.count(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pool(mut self, pool: Arc<ThreadPool>) -> Self {
        self.threads = pool.current_num_threads();
        self.pool = Some(pool);
        self
    }

    /// Limits the bytes of a batch, by default to 4 GiB; `None` for no limit.
    ///
    /// A larger batch is an error before tensors are allocated. The check itself needs 4 bytes of
    /// memory per list, and 16 to 24 bytes per item and axis.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::LoaderOptions;
    /// let options = LoaderOptions::new(32).limit(1u64 << 30);
    /// ```
    pub fn limit(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.limit = bytes.into();
        self
    }

    /// Sets whether the loader trusts that nobody changes the padding of a batch.
    ///
    /// If it does, it overwrites only the values of an earlier batch when it reuses the memory.
    /// Otherwise, it writes all padding anew. True by default, because Rust code cannot write to a
    /// batch. Set it to false if you lend batches to code that can write to them, such as Python.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::loader::LoaderOptions;
    /// let options = LoaderOptions::new(32).trust_padding(false); // code in Python may write to batches
    /// ```
    pub fn trust_padding(mut self, is_trusted: bool) -> Self {
        self.trust_padding = is_trusted;
        self
    }

    /// Returns an error if an option is invalid whatever the data are, such as a batch size of 0.
    pub(super) fn check_valid(&self) -> Result<()> {
        let wrong = |message: &str| Err(Error::invalid(message));
        if self.batch_size == 0 {
            return wrong("the batch size is 0; a batch needs at least 1 item");
        }
        match self.window {
            Some((0, _)) => {
                return wrong("the length of windows is 0; use windows of at least 1 element");
            }
            Some((_, WindowSampling::Step { stride: 0 })) => {
                return wrong("the stride of windows is 0; use a stride of at least 1 element");
            }
            _ => {}
        }
        if self.bucket == Some(0) {
            return wrong(
                "the pool for bucketing by length is 0 batches; use at least 1 batch (2 to have an effect)",
            );
        }
        if self.threads == 0 {
            return wrong("the number of threads is 0; use at least 1 (the calling thread)");
        }
        if self.form == BatchForm::Packed && !self.sizes.is_empty() {
            return wrong(
                "sizes are set, but packed batches are not padded; remove the sizes, or use padded batches",
            );
        }
        if self.form == BatchForm::Packed && self.masks.is_some() {
            return wrong(
                "masks are set, but packed batches have no masks; remove the masks, or use padded batches",
            );
        }
        if self.form == BatchForm::Packed && self.side == PaddingSide::Left {
            return wrong(
                "the padding side is left, but packed batches are not padded; remove the side, or use padded batches",
            );
        }
        let ProcessPart { rank, world } = self.part;
        if rank >= world {
            return Err(Error::invalid(format!(
                "part {rank} of {world} does not exist; give an index from 0 that is less than the number of parts"
            )));
        }
        if let Some(dtype) = self.position_ids
            && !matches!(dtype, DType::I32 | DType::I64)
        {
            return Err(Error::invalid(format!(
                "the position ids have the type {dtype}; choose int32 or int64"
            )));
        }
        Ok(())
    }

    /// Returns the maximum number of batches that exist at a time: one per thread, and prefetched
    /// ones.
    pub(super) fn max_in_flight(&self) -> usize {
        self.threads.saturating_add(self.prefetch)
    }

    /// Returns whether the thread that requests a batch also builds it. The loader then has no
    /// thread pool.
    pub(super) fn is_inline(&self) -> bool {
        self.threads == 1 && self.prefetch == 0 && self.pool.is_none()
    }

    /// Returns the minimum number of axes after the rows that batches need: at least axis 1, and
    /// every axis down to the deepest that has a mask or a size in the options.
    pub(super) fn least_depth(&self) -> usize {
        let masks = self.masks.iter().flatten().copied().max().unwrap_or(0);
        masks.max(self.sizes.len()).max(1)
    }

    pub(super) fn window_len(&self) -> Option<usize> {
        self.window.map(|(len, _)| len)
    }
}
