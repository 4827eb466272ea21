//! The batched hash map: see [`HashMap`].

mod get;
mod grow;
mod hash;
mod iter;
mod memory;
mod options;
mod probe;
mod remove;
mod rows;
mod set;
mod spread;
mod table;

use crate::dense::DenseTensor;
use crate::error::{Error, Result};

pub(crate) use get::MISSING;
pub use get::{Fallback, Fetched};
pub use options::MapOptions;
pub use rows::RowType;

use hash::Hashing;
use memory::Column;
pub(crate) use rows::canonical;
use table::Table;

/// A hash map over rows of fixed width, worked on in batches.
///
/// A key is a row of a tensor, of any element type and shape, and so is a value: a key of three
/// float32, a value of five int64. What the rows are is given when the map is made or fixed by the
/// first [`set`](Self::set). A batch of keys is a [`DenseTensor`] whose first axis are the rows.
///
/// * Keys are compared exactly, byte by byte. Of floats, -0.0 and 0.0 are one key, and so are all
///   NaN; they are stored as 0.0 and as the usual NaN.
/// * Where a batch has a key more than once, the last row counts. Nothing depends on the number of
///   threads: neither answers nor the order of rows.
/// * Keys and values stand densely in the order in which keys came (a removal puts the last rows in
///   the place of those that go), so that [`keys`](Self::keys) and [`values`](Self::values) are there
///   without a copy. Beside them is a table of 8 bytes per bucket that says where a key's row is.
/// * The seed is random, so that nobody can make keys that meet in one bucket, unless it is set.
///
/// ```
/// use serrate::dense::DenseTensor;
/// use serrate::dok::{Fallback, HashMap, MapOptions};
/// let mut map = HashMap::new(MapOptions::default())?;
/// let keys = DenseTensor::from_vec([2, 3], vec![0.5f32, 1.0, 2.0, 0.25, 0.0, 7.0])?;
/// let values = DenseTensor::from_vec([2], vec![10i64, 20])?;
/// assert_eq!(map.set(&keys, &values)?, [true, true]);
///
/// let asked = DenseTensor::from_vec([2, 3], vec![0.25f32, -0.0, 7.0, 9.0, 9.0, 9.0])?;
/// let fetched = map.get(&asked, &Fallback::from(-1))?;
/// assert_eq!(fetched.values.as_slice::<i64>()?, [20, -1]);
/// assert_eq!(fetched.found, [true, false]);
/// assert_eq!(map.remove(&asked)?, [true, false]);
/// assert_eq!(map.len(), 1);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// A get takes three trips to memory per key (bucket, key, value). They are made for many keys at a
/// time: the lines are asked for before they are needed. Large batches are divided among the threads
/// of rayon's pool, unless [`MapOptions::parallel`] is off.
#[derive(Debug)]
pub struct HashMap {
    options: MapOptions,
    seed: u64,
    hashing: Hashing,
    types: Option<Types>,
    table: Table,
    keys: Column,
    values: Column,
    len: usize,
}

/// What keys and values are.
#[derive(Clone, Debug)]
struct Types {
    key: RowType,
    value: RowType,
}

impl HashMap {
    /// A map whose keys and values are what is set first.
    ///
    /// # Errors
    /// When an option makes no sense or the first buckets cannot be had.
    pub fn new(options: MapOptions) -> Result<Self> {
        options.check()?;
        let seed = options.seed.unwrap_or_else(crate::kernels::seeded::random_seed);
        Ok(Self {
            seed,
            hashing: Hashing::new(seed),
            types: None,
            table: Table::new(options.n_buckets.max(1))?,
            keys: Column::new()?,
            values: Column::new()?,
            len: 0,
            options,
        })
    }

    /// A map for given keys and values.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_types(key: RowType, value: RowType, options: MapOptions) -> Result<Self> {
        let mut map = Self::new(options)?;
        map.types = Some(Types { key, value });
        Ok(map)
    }

    /// A map of these keys and values, with just the buckets they need; of keys that are there more
    /// than once, the last counts.
    ///
    /// # Errors
    /// When there are not as many keys as values.
    pub fn from_rows(
        keys: &DenseTensor,
        values: &DenseTensor,
        options: MapOptions,
    ) -> Result<Self> {
        let mut map = Self::with_types(RowType::of(keys)?, RowType::of(values)?, options)?;
        map.reserve(keys.shape()[0])?;
        map.set(keys, values)?;
        Ok(map)
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of keys, as [`len`](Self::len).
    pub fn n_elements(&self) -> usize {
        self.len
    }

    /// Number of buckets of the index table.
    pub fn n_buckets(&self) -> usize {
        self.table.len()
    }

    /// Keys per bucket.
    pub fn load_factor(&self) -> f64 {
        self.len as f64 / self.table.len() as f64
    }

    /// Bytes of memory: the index table, keys and values, with their room to grow.
    pub fn memory(&self) -> usize {
        self.table.bytes() + self.keys.capacity() + self.values.capacity()
    }

    /// The most buckets that the search for a key that is there looks at.
    ///
    /// Reads the whole map: a measure of how well keys are spread.
    pub fn longest_probe(&self) -> usize {
        let width = rows::Any(self.types.as_ref().map_or(0, |t| t.key.bytes()));
        let keys = self.keys.as_slice();
        let distance = |row: usize| {
            let hash = self.hashing.row(width, rows::Width::row(width, keys, row));
            let at = self.table.bucket_of(hash, row)?;
            let from = table::home(hash, self.table.len());
            Some(if at < from { at + self.table.len() - from } else { at - from } + 1)
        };
        (0..self.len).filter_map(distance).max().unwrap_or(0)
    }

    /// How the map was made.
    pub fn options(&self) -> &MapOptions {
        &self.options
    }

    /// The seed of its hashes, drawn or set.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What keys are; `None` before the first are set.
    pub fn key_type(&self) -> Option<&RowType> {
        self.types.as_ref().map(|t| &t.key)
    }

    /// What values are; `None` before the first are set.
    pub fn value_type(&self) -> Option<&RowType> {
        self.types.as_ref().map(|t| &t.value)
    }

    /// Whether large batches may be divided among threads from now on.
    pub fn set_parallel(&mut self, parallel: bool) {
        self.options.parallel = parallel;
    }

    fn types(&self) -> Result<&Types> {
        self.types.as_ref().ok_or_else(|| {
            Error::invalid(
                "the map has no types of keys and values yet; set something first, or make it with types",
            )
        })
    }

    /// A copy with memory of its own for what is written from now on.
    ///
    /// # Errors
    /// When its index table cannot be had.
    pub fn try_clone(&self) -> Result<Self> {
        let mut table = Table::new(self.table.len())?;
        table.copy_from(&self.table);
        Ok(Self {
            options: self.options.clone(),
            seed: self.seed,
            hashing: self.hashing,
            types: self.types.clone(),
            table,
            keys: self.keys.clone(),
            values: self.values.clone(),
            len: self.len,
        })
    }

    /// The keys of a batch as they are stored, and their number.
    fn batch(&self, keys: &DenseTensor) -> Result<(arrow::buffer::Buffer, usize)> {
        self.types()?.key.check(&RowType::of(keys)?, "keys")?;
        Ok((canonical(keys)?, keys.shape()[0]))
    }
}
