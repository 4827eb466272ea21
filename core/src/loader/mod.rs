//! Builds batches for training from ragged tables, whose rows are the items.
//!
//! A [`Loader`] takes one or more tables, the *shards*, and [`LoaderOptions`]. An **item** is one
//! row (such as a patient) or a window of axis 1 of a row (such as some of the events); an
//! **epoch** is all items in some order, divided into batches. [`Loader::epoch`] returns an
//! [`Epoch`], an iterator over [`Batch`]es of named tensors, padded with masks or packed with
//! `cu_seqlens`.
//!
//! * **The plan comes first.** [`EpochPlan`] assigns rows and windows to batches. It depends only
//!   on the options, the lengths of the rows and the epoch. An epoch can therefore resume at any
//!   batch immediately ([`Loader::epoch_from`]) and is the same, bit for bit, on any number of
//!   threads.
//! * **Values are copied once**, from the (memory-mapped) shard to their place in the tensor,
//!   without intermediate tables or allocations per row.
//! * **Memory is reused.** A dropped batch returns its memory to the loader, with the positions of
//!   its values. The next batch overwrites only these positions with padding. The old padding,
//!   which is most of a batch, is not written again.
//! * **Several batches are built in parallel**, a bounded number in advance, and returned in order.
//!
//! [`meds`] has a loader for health records: events or measurements, static facts and labels.
//!
//! ```
//! # use serrate_core as serrate;
//! use std::sync::Arc;
//! use serrate::arrow::array::{Float32Array, UInt16Array};
//! use serrate::loader::{BatchForm, Loader, LoaderOptions, WindowSampling};
//! use serrate::table::RaggedTable;
//!
//! // three patients with 2, 3 and 1 events, which have 1, 2, 1, 0, 3 and 1 codes
//! let table = RaggedTable::builder()
//!     .lengths([2, 3, 1])?
//!     .lengths([1, 2, 1, 0, 3, 1])?
//!     .column("t", 1, Arc::new(Float32Array::from(vec![0.5, 1.5, 0.0, 1.0, 2.0, 9.0])))
//!     .column("code", 2, Arc::new(UInt16Array::from(vec![1, 2, 3, 4, 5, 6, 7, 8])))
//!     .build()?;
//!
//! let options = LoaderOptions::new(2).window(2, WindowSampling::ToEnd);
//! let loader = Loader::try_new([table.clone()], options.clone())?;
//! let mut epoch = loader.epoch(0)?;
//! let batch = epoch.next().unwrap()?;
//! assert_eq!(batch.items()[1].events, 1..3);
//! let shown: Vec<String> = batch.tensors().iter().map(|(n, t)| format!("{n}: {t}")).collect();
//! assert_eq!(shown, [
//!     "t: float32[2, 2] [[0.5, 1.5], [1.0, 2.0]]",
//!     "code: uint16[2, 2, 3] [[[1, 0, 0], [2, 3, 0]], [[0, 0, 0], [5, 6, 7]]]",
//!     "dim1/mask: bool[2, 2] [[true, true], [true, true]]",
//!     "dim2/mask: bool[2, 2, 3] [[[true, false, false], [true, true, false]], \
//!      [[false, false, false], [true, true, true]]]",
//! ]);
//!
//! // the same items, packed for attention kernels of variable length
//! let loader = Loader::try_new([table], options.form(BatchForm::Packed))?;
//! let batch = loader.epoch(0)?.next().unwrap()?;
//! assert_eq!(batch.tensor("code")?.as_slice::<u16>()?, [1, 2, 3, 5, 6, 7]);
//! assert_eq!(batch.tensor("dim2/cu_seqlens")?.as_slice::<i32>()?, [0, 3, 6]);
//! assert_eq!(batch.tensor("dim2/offsets")?.as_slice::<i32>()?, [0, 1, 3, 3, 6]);
//! assert_eq!(batch.max_seqlen(2)?, 3);
//! # Ok::<(), serrate::Error>(())
//! ```

mod batch;
mod batch_draft;
mod batch_frame;
mod block_shelf;
mod element_casts;
mod epoch;
mod epoch_plan;
mod epoch_stats;
mod facts_place;
mod fingerprint;
mod item_values;
mod items;
mod loader_source;
mod make_batch;
pub mod meds;
mod options;
mod padded_grid;
mod random;
mod row_windows;
pub(crate) mod save;
mod shard_timeline;
mod slot_writes;
mod state;
mod table_stack;
mod tensor_output;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rayon::{ThreadPool, ThreadPoolBuilder};

pub use batch::Batch;
pub use epoch::Epoch;
pub use epoch_plan::EpochPlan;
pub use epoch_stats::EpochStats;
pub use items::BatchItem;
pub use options::{BatchForm, LoaderOptions, WindowSampling};
pub use save::{BatchFolder, BatchStream};
#[doc(hidden)]
pub use table_stack::{StackTensor, TableStack};

use self::epoch::WorkerPool;
use self::items::{EpochItems, ItemRows};
use self::loader_source::LoaderSource;
use self::state::{LoaderState, LoaderTarget};
use self::tensor_output::{TensorContent, TensorOutput};
use crate::error::{Error, Result};
use crate::io::nrt::{NrtFile, ReadOptions};
use crate::table::RaggedTable;

/// Builds epochs of batches from shards; see the [module](self).
///
/// Clones share shards, threads and memory. A loader has at most 2^32 - 1 items, and a batch at
/// most 2^31 - 1 elements per axis.
#[derive(Clone, Debug)]
pub struct Loader {
    inner: Arc<LoaderState>,
    /// The thread pool that this loader and its clones share, started on first use.
    pool: Arc<OnceLock<Arc<ThreadPool>>>,
}

impl Loader {
    /// Builds a loader over the rows of all shards, one shard after the other.
    ///
    /// All shards must have the same columns on the same axes. Numbers of different types become
    /// their common type (as in [`RaggedTable::concat`]) when they are copied to a batch. Shards
    /// are not copied.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::table::RaggedTable;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1, 3])?
    ///     .column("x", 1, Arc::new(Int32Array::from_iter_values(1..7)))
    ///     .build()?;
    /// let loader = Loader::try_new(vec![table], LoaderOptions::new(2))?;
    /// assert_eq!((loader.num_rows(), loader.num_items()), (3, 3));
    /// let batch = loader.epoch(0)?.next().transpose()?;
    /// assert_eq!(batch.map(|b| b.len()), Some(2));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are no shards; shards differ in depth or columns, or have types without a common
    /// type; a column is not a number, boolean, date or time (omit or encode it first); a fill
    /// value does not fit the type of its column; a table has [scalars](RaggedTable::scalars) or no
    /// axes; options are invalid.
    pub fn try_new(
        shards: impl IntoIterator<Item = RaggedTable>,
        options: LoaderOptions,
    ) -> Result<Self> {
        options.check_valid()?;
        let shards: Vec<RaggedTable> = shards.into_iter().collect();
        let source = LoaderSource::new(&shards, &options)?;
        let items = EpochItems::new(&source, &options, ItemRows::Rows(source.rows()))?;
        let outputs = tensor_output::list_outputs(&source, &options)?;
        Ok(Self::from_parts(source, options, items, Vec::new(), outputs))
    }

    fn from_parts(
        source: LoaderSource,
        options: LoaderOptions,
        items: EpochItems,
        targets: Vec<LoaderTarget>,
        outputs: Vec<TensorOutput>,
    ) -> Self {
        let largest_shape = batch_draft::find_largest_shape(&source, &options);
        let inner = LoaderState {
            source,
            options,
            items,
            targets,
            outputs,
            largest_shape,
            #[cfg(test)]
            before: None,
        };
        Self { inner: Arc::new(inner), pool: Arc::default() }
    }

    /// Opens memory-mapped `.nrt` files: values are copied from the mapping to the tensors, and
    /// pages outside all windows are not read.
    ///
    /// The call itself reads and checks the list offsets.
    ///
    /// The loader keeps in memory 4 bytes (8 if an axis has more than 2^31 - 1 elements) for each
    /// list of the [used](LoaderOptions::columns) axes, and copies of the columns that cannot be
    /// used in place: BOOL (one bit per value), BF16, and columns that are not aligned in the file.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged; otherwise same as [`try_new`](Self::try_new).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # #[cfg(feature = "generate")] {
    /// use serrate::generate::SyntheticPatients;
    /// use serrate::loader::{Loader, LoaderOptions, WindowSampling};
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("patients.nrt");
    /// SyntheticPatients::new(42, 10)?.write_nrt(&path, &Default::default(), |_| ())?;
    ///
    /// let options = LoaderOptions::new(4)
    ///     .columns(["time_delta_days", "code", "numeric_value"])
    ///     .window(64, WindowSampling::Random)
    ///     .shuffle(7);
    /// let loader = Loader::open([&path], options)?;
    /// for epoch in 0..2 {
    ///     for batch in loader.epoch(epoch)? {
    ///         let batch = batch?;
    ///         assert_eq!(batch.tensor("code")?.shape()[..2], batch.tensor("dim1/mask")?.shape()[..]);
    ///     }
    /// }
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        options: LoaderOptions,
    ) -> Result<Self> {
        Self::open_with(paths, options, &ReadOptions::default())
    }

    /// Opens `.nrt` files like [`open`](Self::open), with options.
    ///
    /// Without [`ReadOptions::mmap`], the call reads the columns into memory, so files may be
    /// truncated after it. Without [`ReadOptions::large_lists`], offsets have 64 bits only for axes
    /// of over 2^31 - 1 elements.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # #[cfg(feature = "generate")] {
    /// use serrate::io::nrt::{self, ReadOptions};
    /// use serrate::loader::{Loader, LoaderOptions};
    /// let table = serrate::generate::mimic_table(4, 1)?;
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("t.nrt");
    /// nrt::write(&path, &table.select(&["code"])?, &Default::default())?;
    /// let read = ReadOptions { mmap: false, ..Default::default() };
    /// let loader = Loader::open_with([&path], LoaderOptions::new(2).seed(7), &read)?;
    /// assert_eq!((loader.num_rows(), loader.plan(0).num_batches()), (4, 2));
    /// assert!(format!("{:?}", loader.options()).contains('7'));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`open`](Self::open).
    pub fn open_with<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        options: LoaderOptions,
        read: &ReadOptions,
    ) -> Result<Self> {
        options.check_valid()?;
        let names: Option<Vec<&str>> =
            options.columns.as_ref().map(|c| c.iter().map(String::as_str).collect());
        let shards = paths
            .into_iter()
            .map(|path| {
                let file = NrtFile::open(path, read)?;
                let mut large = read.large_lists;
                for axis in 1..file.ndim() {
                    large |= i32::try_from(file.axis_len(axis)?).is_err();
                }
                let rows = 0..file.num_rows();
                file.with_large_lists(large).read_deep(
                    rows,
                    names.as_deref(),
                    options.least_depth(),
                )
            })
            .collect::<Result<Vec<_>>>()?;
        Self::try_new(shards, options)
    }

    /// Returns the options.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::table::RaggedTable;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// # let x = Arc::new(Int32Array::from_iter_values(1..7));
    /// # let table = RaggedTable::builder().lengths([2, 1, 3])?.column("x", 1, x).build()?;
    /// let loader = Loader::try_new([table], LoaderOptions::new(2))?; // 3 rows
    /// assert_eq!(format!("{:?}", loader.options()), format!("{:?}", LoaderOptions::new(2)));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn options(&self) -> &LoaderOptions {
        &self.inner.options
    }

    /// Returns the number of rows of all shards.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::table::RaggedTable;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// # let x = Arc::new(Int32Array::from_iter_values(1..7));
    /// # let table = RaggedTable::builder().lengths([2, 1, 3])?.column("x", 1, x).build()?;
    /// let loader = Loader::try_new([table], LoaderOptions::new(2))?; // 3 rows
    /// assert_eq!(loader.num_rows(), 3);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn num_rows(&self) -> usize {
        self.inner.source.rows()
    }

    /// Returns the plan of epoch `epoch`.
    ///
    /// Planning takes some nanoseconds per item, or constant time if the items are in source order.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::table::RaggedTable;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// # let x = Arc::new(Int32Array::from_iter_values(1..7));
    /// # let table = RaggedTable::builder().lengths([2, 1, 3])?.column("x", 1, x).build()?;
    /// let loader = Loader::try_new([table], LoaderOptions::new(2))?; // 3 rows
    /// assert_eq!((loader.plan(0).num_batches(), loader.plan(0).num_items()), (2, 3));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn plan(&self, epoch: u64) -> EpochPlan {
        EpochPlan::new(Arc::clone(&self.inner), epoch)
    }

    /// Iterates over the batches of epoch `epoch`.
    ///
    /// Each call returns the same batches, bit for bit.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::table::RaggedTable;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// # let x = Arc::new(Int32Array::from_iter_values(1..7));
    /// # let table = RaggedTable::builder().lengths([2, 1, 3])?.column("x", 1, x).build()?;
    /// let loader = Loader::try_new([table], LoaderOptions::new(2))?; // 3 rows
    /// for (batch, size) in loader.epoch(0)?.zip([2, 1]) {
    ///     assert_eq!(batch?.len(), size);
    /// }
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the threads cannot be started.
    pub fn epoch(&self, epoch: u64) -> Result<Epoch> {
        self.epoch_from(epoch, 0)
    }

    /// Iterates over the batches of an epoch from batch `batch` on; earlier batches are not built.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::table::RaggedTable;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1, 3])?
    ///     .column("x", 1, Arc::new(Int32Array::from_iter_values(1..7)))
    ///     .build()?;
    /// let loader = Loader::try_new(vec![table], LoaderOptions::new(2))?;
    /// let rest: Vec<_> = loader.epoch_from(0, 1)?.collect();
    /// assert_eq!(rest.len(), 1);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the threads cannot be started.
    pub fn epoch_from(&self, epoch: u64, batch: usize) -> Result<Epoch> {
        Ok(Epoch::new(self.plan(epoch), batch, self.start_threads()?))
    }

    /// Returns, for each tensor of a packed batch that has values in lists, the name of the tensor
    /// and that of the cumulative lengths of its lists.
    #[doc(hidden)]
    pub fn packed_lengths(&self) -> Vec<(String, String)> {
        let outputs = &self.inner.outputs;
        let lengths_of = |values: &TensorOutput| {
            outputs.iter().find(|o| {
                o.what == TensorContent::CuSeqlens
                    && o.axis == values.axis
                    && o.facts == values.facts
            })
        };
        let has_values = |output: &&TensorOutput| {
            use TensorContent::{CuSeqlens, Offsets, PositionIds};
            !matches!(output.what, CuSeqlens | Offsets | PositionIds)
        };
        let named = |values: &TensorOutput| {
            lengths_of(values).map(|lengths| (values.name.to_string(), lengths.name.to_string()))
        };
        outputs.iter().filter(has_values).filter_map(named).collect()
    }

    /// Returns the number of items (stepped windows, or rows) of every epoch.
    ///
    /// The number includes the items of other processes that [share](LoaderOptions::part) the
    /// epoch, and [dropped](LoaderOptions::drop_last) items.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::table::RaggedTable;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// # let x = Arc::new(Int32Array::from_iter_values(1..7));
    /// # let table = RaggedTable::builder().lengths([2, 1, 3])?.column("x", 1, x).build()?;
    /// let loader = Loader::try_new([table], LoaderOptions::new(2))?; // 3 rows
    /// assert_eq!(loader.num_items(), 3); // without windows, the rows
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn num_items(&self) -> usize {
        self.inner.items.len()
    }

    /// Builds one batch for callers with their own sampler.
    ///
    /// `items` has the indices of the items in source order; the batch has the items in the order
    /// of `items`. Random windows are those of epoch `epoch`.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::table::RaggedTable;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1, 3])?
    ///     .column("x", 1, Arc::new(Int32Array::from_iter_values(1..7)))
    ///     .build()?;
    /// let loader = Loader::try_new(vec![table], LoaderOptions::new(2))?;
    /// let batch = loader.batch_of(0, &[2, 0])?;
    /// assert_eq!(batch.tensor("x")?.as_slice::<i32>()?, [4, 5, 6, 1, 2, 0]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are no items, an item does not exist, or the batch cannot be built.
    pub fn batch_of(&self, epoch: u64, items: &[usize]) -> Result<Batch> {
        let plan = EpochPlan::from_items(Arc::clone(&self.inner), epoch, items)?;
        Epoch::new(plan, 0, None).next().unwrap_or_else(|| {
            Err(Error::invalid("internal error: the given items make no batch; please report it"))
        })
    }

    /// Returns the thread pool that builds batches; `None` if the calling thread builds them.
    /// Returns an error if the threads cannot be started.
    fn start_threads(&self) -> Result<Option<WorkerPool>> {
        let options = &self.inner.options;
        if let Some(pool) = &options.pool {
            return Ok(Some(WorkerPool { threads: Arc::clone(pool), is_of_caller: true }));
        }
        if options.is_inline() {
            return Ok(None);
        }
        if let Some(pool) = self.pool.get() {
            return Ok(Some(WorkerPool { threads: Arc::clone(pool), is_of_caller: false }));
        }
        let pool = ThreadPoolBuilder::new()
            .num_threads(options.threads)
            .thread_name(|i| format!("serrate-loader-{i}"))
            .build()
            .map_err(|e| {
                Error::invalid(format!(
                    "cannot start the {} threads of the loader: {e}; use fewer threads",
                    options.threads
                ))
            })?;
        let threads = Arc::clone(self.pool.get_or_init(|| Arc::new(pool)));
        Ok(Some(WorkerPool { threads, is_of_caller: false }))
    }

    #[cfg(test)]
    fn set_fault(mut self, before: fn(usize)) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.before = Some(before);
        }
        self
    }
}
