//! Epochs of batches: rapid iteration along the first axis of ragged tables, for training.
//!
//! A [`Loader`] takes one or more shards and [`LoaderOptions`]. An **item** is one row (a patient),
//! or a window of its axis 1 (events); an **epoch** is all items in some order, cut into batches.
//! [`Loader::epoch`] gives an [`Epoch`], an iterator of [`Batch`]es of named tensors, padded with
//! masks or packed with `cu_seqlens`.
//!
//! * **The plan comes first.** [`EpochPlan`] says which rows and windows are in which batch. It is
//!   a function of the options, the rows' lengths and the epoch's number: any epoch can be resumed
//!   at any batch, at once ([`Loader::epoch_from`]), and is the same bit for bit on any number of
//!   threads.
//! * **Values are copied once**, from the (mapped) shard to their place in the tensor. Windows are
//!   ranges of flat columns; no table is made in between, and nothing is allocated per row.
//! * **Memory is used again.** A dropped batch returns its memory, which remembers where values
//!   were: only those places are cleared for the next batch. Padding is mostly what padded batches
//!   are made of, and it is not written a second time.
//! * **Whole batches are made in parallel**, a bounded number ahead, and come in order.
//!
//! [`meds`] has the same in the terms of health records: events or measurements, static facts, labels.
//!
//! ```
//! use std::sync::Arc;
//! use serrate::arrow::array::{Float32Array, UInt16Array};
//! use serrate::loader::{Form, Loader, LoaderOptions, Sampling};
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
//! let options = LoaderOptions::new(2).window(2, Sampling::ToEnd);
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
//! let loader = Loader::try_new([table], options.form(Form::Packed))?;
//! let batch = loader.epoch(0)?.next().unwrap()?;
//! assert_eq!(batch.tensor("code")?.as_slice::<u16>()?, [1, 2, 3, 5, 6, 7]);
//! assert_eq!(batch.tensor("dim2/cu_seqlens")?.as_slice::<i32>()?, [0, 3, 6]);
//! assert_eq!(batch.tensor("dim2/offsets")?.as_slice::<i32>()?, [0, 1, 3, 3, 6]);
//! assert_eq!(batch.max_seqlen(2)?, 3);
//! # Ok::<(), serrate::Error>(())
//! ```

mod batch;
mod convert;
mod epoch;
mod facts;
mod fingerprint;
mod frame;
mod grid;
mod make;
pub mod meds;
mod options;
mod output;
mod plan;
mod put;
mod random;
mod save;
mod shelf;
mod source;
mod stats;
mod timeline;
mod window;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rayon::{ThreadPool, ThreadPoolBuilder};

pub use batch::Batch;
pub use epoch::Epoch;
pub use options::{Form, LoaderOptions, Sampling};
pub use plan::{EpochPlan, Item};
pub use save::{BatchFolder, BatchStream};
pub use stats::EpochStats;

#[cfg(feature = "sql")]
pub(crate) use save::check_target;

use self::output::Output;
use self::plan::{Bases, Items};
use self::source::{Source, Values};
use crate::dense::DType;
use crate::error::{Error, Result};
use crate::io::nrt::{NrtFile, ReadOptions};
use crate::table::RaggedTable;

/// Makes epochs of batches from shards; see the [module](self) for how.
///
/// Clones are the same loader: they share shards, threads and memory. The number of items is
/// limited to 2^32 - 1, the elements of one batch to 2^31 - 1 per axis.
#[derive(Clone, Debug)]
pub struct Loader {
    inner: Arc<Inner>,
    /// Threads of the loader's own, started when they are first needed.
    pool: Arc<OnceLock<Arc<ThreadPool>>>,
}

/// What every epoch shares.
#[derive(Debug)]
struct Inner {
    source: Source,
    options: LoaderOptions,
    items: Items,
    /// What is to be predicted, one value of each for every base of the items.
    targets: Vec<Target>,
    outputs: Vec<Output>,
    /// Longest that each axis of a padded batch can be.
    largest_shape: Vec<usize>,
    /// Called before a batch is made.
    #[cfg(test)]
    before: Option<fn(usize)>,
}

/// Values that belong to what items are windows of.
#[derive(Debug)]
struct Target {
    name: Arc<str>,
    dtype: DType,
    /// Whether some are null.
    nulls: bool,
    values: Values,
}

impl Loader {
    /// A loader over the rows of all shards, one shard after the other.
    ///
    /// Shards have the same columns on the same axes. Numbers of different width are given the type
    /// that [`RaggedTable::concat`] gives them, converted as they are copied. Shards are not copied.
    ///
    /// # Errors
    /// No shard; shards of different depth, columns or types that do not go together; a column that
    /// is no number, boolean, date or time (leave it out, or encode it first); a fill value that its
    /// column's type does not have; a scalar that an indexed table kept, or nothing but scalars;
    /// options that make no sense.
    pub fn try_new(
        shards: impl IntoIterator<Item = RaggedTable>,
        options: LoaderOptions,
    ) -> Result<Self> {
        options.check()?;
        let shards: Vec<RaggedTable> = shards.into_iter().collect();
        let source = Source::new(&shards, &options)?;
        let items = Items::new(&source, &options, Bases::Rows(source.rows()))?;
        let outputs = output::outputs(&source, &options)?;
        Ok(Self::from_parts(source, options, items, Vec::new(), outputs))
    }

    fn from_parts(
        source: Source,
        options: LoaderOptions,
        items: Items,
        targets: Vec<Target>,
        outputs: Vec<Output>,
    ) -> Self {
        let largest_shape = make::largest_shape(&source, &options);
        let inner = Inner {
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

    /// A loader over `.nrt` files, mapped into memory: numbers are copied from the map to where they
    /// go, and pages of them that no window touches are not read. Bounds are read and checked now.
    ///
    /// Memory that stays with the loader: 4 bytes (8 where an axis has more than 2^31 - 1 elements)
    /// for each list of the axes that are [used](LoaderOptions::columns), as offsets; and copies of
    /// the columns that cannot be used in place: BOOL (a bit per value), BF16, and those that a
    /// foreign writer did not align.
    ///
    /// # Errors
    /// When a file cannot be read or is damaged; as [`try_new`](Self::try_new).
    ///
    /// ```
    /// use serrate::generate::Patients;
    /// use serrate::loader::{Loader, LoaderOptions, Sampling};
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("patients.nrt");
    /// Patients::new(42, 10)?.write_nrt(&path, &Default::default(), |_| ())?;
    ///
    /// let options = LoaderOptions::new(4)
    ///     .columns(["time_delta_days", "code", "numeric_value"])
    ///     .window(64, Sampling::Random)
    ///     .shuffle(7);
    /// let loader = Loader::open([&path], options)?;
    /// for epoch in 0..2 {
    ///     for batch in loader.epoch(epoch)? {
    ///         let batch = batch?;
    ///         assert_eq!(batch.tensor("code")?.shape()[..2], batch.tensor("dim1/mask")?.shape()[..]);
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        options: LoaderOptions,
    ) -> Result<Self> {
        Self::open_with(paths, options, &ReadOptions::default())
    }

    /// As [`open`](Self::open), reading files as told: without [`ReadOptions::mmap`], the columns are
    /// read into memory now, all of them, and a file that is truncated later does no harm.
    /// [`ReadOptions::large_lists`] is chosen by size where it is not set.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        options: LoaderOptions,
        read: &ReadOptions,
    ) -> Result<Self> {
        options.check()?;
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

    /// The options.
    pub fn options(&self) -> &LoaderOptions {
        &self.inner.options
    }

    /// Rows of all shards.
    pub fn num_rows(&self) -> usize {
        self.inner.source.rows()
    }

    /// What epoch number `epoch` consists of. Costs a few nanoseconds per item; nothing in source
    /// order.
    pub fn plan(&self, epoch: u64) -> EpochPlan {
        EpochPlan::new(Arc::clone(&self.inner), epoch)
    }

    /// The batches of epoch number `epoch`. The same number gives the same batches, bit for bit.
    ///
    /// # Errors
    /// When the threads cannot be started.
    pub fn epoch(&self, epoch: u64) -> Result<Epoch> {
        self.epoch_from(epoch, 0)
    }

    /// As [`epoch`](Self::epoch), from batch number `batch` on; batches before are not made.
    ///
    /// # Errors
    /// As [`epoch`](Self::epoch).
    pub fn epoch_from(&self, epoch: u64, batch: usize) -> Result<Epoch> {
        Ok(Epoch::new(self.plan(epoch), batch, self.threads()?))
    }

    /// Number of items of every epoch, in all its parts and before any is
    /// [dropped](LoaderOptions::drop_last): windows that are stepped through, or rows.
    pub fn num_items(&self) -> usize {
        self.inner.items.len()
    }

    /// One batch of the items that are asked for, by their numbers in source order and in any order:
    /// for those who have a sampler of their own. Random windows are those of epoch number `epoch`.
    ///
    /// # Errors
    /// When an item is not there, none is asked for, or the batch cannot be made.
    pub fn batch_of(&self, epoch: u64, items: &[usize]) -> Result<Batch> {
        let plan = EpochPlan::of(Arc::clone(&self.inner), epoch, items)?;
        Epoch::new(plan, 0, None).next().unwrap_or_else(|| Err(Error::invalid("no batch was made")))
    }

    /// Where batches are made, and whether others work there too; `None` for the caller's thread.
    fn threads(&self) -> Result<Option<(Arc<ThreadPool>, bool)>> {
        let options = &self.inner.options;
        if let Some(pool) = &options.pool {
            return Ok(Some((Arc::clone(pool), true)));
        }
        if options.inline() {
            return Ok(None);
        }
        if let Some(pool) = self.pool.get() {
            return Ok(Some((Arc::clone(pool), false)));
        }
        let pool = ThreadPoolBuilder::new()
            .num_threads(options.threads)
            .thread_name(|i| format!("serrate-loader-{i}"))
            .build()
            .map_err(|e| {
                Error::invalid(format!("{} threads could not be started: {e}", options.threads))
            })?;
        Ok(Some((Arc::clone(self.pool.get_or_init(|| Arc::new(pool))), false)))
    }

    #[cfg(test)]
    fn with_fault(mut self, before: fn(usize)) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.before = Some(before);
        }
        self
    }
}
