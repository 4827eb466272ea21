mod bucket_search;
mod get;
mod grow;
mod hash;
mod index_table;
mod insert_parallel;
mod iter;
mod options;
mod remove;
mod row_buffer;
mod row_types;
mod set;

use crate::dense::DenseTensor;
use crate::error::{Error, Result};

pub(crate) use get::MISSING;
pub use get::{Fallback, FetchedValues};
pub use options::MapOptions;
pub use row_types::RowType;

use hash::HashFactors;
use index_table::IndexTable;
use row_buffer::RowBuffer;
pub(crate) use row_types::canonicalize_keys;

/// A hash map whose keys and values are rows of fixed width, with operations on batches of keys.
///
/// Keys and values are rows of tensors, of any element type and shape: for example three float32 as
/// the key and five int64 as the value. The constructor or the first [`set`](Self::set) determines
/// the types. A batch of keys is a [`DenseTensor`] whose first axis is the rows.
///
/// * Keys are compared as bytes, but -0.0 (stored as 0.0) equals 0.0, and all NaN are equal.
/// * If a batch repeats a key, the last row wins. Results and row order do not depend on threads.
/// * Rows are dense, in order of insertion (removal moves the last rows into the gaps), so
///   [`keys`](Self::keys) and [`values`](Self::values) copy nothing. A bucket takes 8 bytes.
/// * The seed of the hashes is random unless [`MapOptions::seed`] is set, so that nobody can
///   construct keys that collide.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::DenseTensor;
/// use serrate::dok::{Fallback, MapOptions, RowMap};
/// let mut map = RowMap::new(MapOptions::default())?;
/// let keys = DenseTensor::from_vec([2, 3], vec![0.5f32, 1.0, 2.0, 0.25, 0.0, 7.0])?;
/// let values = DenseTensor::from_vec([2], vec![10i64, 20])?;
/// assert_eq!(map.set(&keys, &values)?, [true, true]);
///
/// let queries = DenseTensor::from_vec([2, 3], vec![0.25f32, -0.0, 7.0, 9.0, 9.0, 9.0])?;
/// let fetched = map.get(&queries, &Fallback::from(-1))?;
/// assert_eq!(fetched.values.as_slice::<i64>()?, [20, -1]);
/// assert_eq!(fetched.found, [true, false]);
/// assert_eq!(map.remove(&queries)?, [true, false]);
/// assert_eq!(map.len(), 1);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// A lookup takes three memory accesses per key (bucket, key, value), which it prefetches for many
/// keys at a time. Large batches use rayon's threads, unless [`MapOptions::parallel`] is off.
#[derive(Debug)]
pub struct RowMap {
    options: MapOptions,
    seed: u64,
    hashing: HashFactors,
    types: Option<RowTypes>,
    table: IndexTable,
    keys: RowBuffer,
    values: RowBuffer,
    len: usize,
}

#[derive(Clone, Debug)]
struct RowTypes {
    key: RowType,
    value: RowType,
}

impl RowMap {
    /// Creates a map whose types are determined by the first batch.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::{MapOptions, RowMap};
    /// let keys = DenseTensor::from_vec([3], vec![7i64, 8, 9])?;
    /// let values = DenseTensor::from_vec([3], vec![0.5f32, 1.5, 2.5])?;
    /// let mut map = RowMap::new(MapOptions::default())?;
    /// assert_eq!(map.set(&keys, &values)?, [true, true, true]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an option is invalid or the memory of the first buckets cannot be allocated.
    pub fn new(options: MapOptions) -> Result<Self> {
        options.check_limits()?;
        let seed = options.seed.unwrap_or_else(crate::kernels::secret_hash::draw_random_seed);
        Ok(Self {
            seed,
            hashing: HashFactors::new(seed),
            types: None,
            table: IndexTable::new(options.n_buckets.max(1))?,
            keys: RowBuffer::new()?,
            values: RowBuffer::new()?,
            len: 0,
            options,
        })
    }

    /// Creates a map with the given types of keys and values.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::{DType, DenseTensor};
    /// use serrate::dok::{MapOptions, RowMap, RowType};
    /// let (key, value) = (RowType::new(DType::I64, [2])?, RowType::scalar(DType::F32));
    /// let mut map = RowMap::with_types(key.clone(), value, MapOptions::default())?;
    /// assert_eq!((map.is_empty(), map.key_type()), (true, Some(&key)));
    /// assert_eq!(map.value_type().unwrap().dtype(), DType::F32);
    /// map.set_parallel(false);
    /// map.reserve(100)?;
    /// let keys = DenseTensor::from_vec([2, 2], vec![1i64, 1, 1, 2])?;
    /// assert_eq!(RowType::of(&keys)?.shape(), [2]);
    /// map.set(&keys, &DenseTensor::from_vec([2], vec![0.5f32, 1.5])?)?;
    /// map.shrink()?;
    /// assert!(map.load_factor() <= map.options().load_factor && map.longest_probe() < 8);
    /// let copy = map.try_clone()?;
    /// map.clear();
    /// assert_eq!((map.len(), copy.len()), (0, 2));
    /// assert!(copy.nbytes() > 0);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`new`](Self::new).
    pub fn with_types(key: RowType, value: RowType, options: MapOptions) -> Result<Self> {
        let mut map = Self::new(options)?;
        map.types = Some(RowTypes { key, value });
        Ok(map)
    }

    /// Creates a map from rows, with as few buckets as possible.
    ///
    /// If a key repeats, its last row wins.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::{MapOptions, RowMap};
    /// let keys = DenseTensor::from_vec([3], vec![7i64, 8, 9])?;
    /// let values = DenseTensor::from_vec([3], vec![0.5f32, 1.5, 2.5])?;
    /// let map = RowMap::from_rows(&keys, &values, MapOptions::default())?;
    /// assert_eq!(map.len(), 3);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the number of keys differs from the number of values.
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

    /// Returns the number of keys.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::{MapOptions, RowMap};
    /// let keys = DenseTensor::from_vec([3], vec![7i64, 8, 9])?;
    /// let values = DenseTensor::from_vec([3], vec![0.5f32, 1.5, 2.5])?;
    /// let map = RowMap::from_rows(&keys, &values, MapOptions::default())?;
    /// assert_eq!(map.len(), 3);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the map has no keys.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::{MapOptions, RowMap};
    /// let keys = DenseTensor::from_vec([3], vec![7i64, 8, 9])?;
    /// let values = DenseTensor::from_vec([3], vec![0.5f32, 1.5, 2.5])?;
    /// let map = RowMap::from_rows(&keys, &values, MapOptions::default())?;
    /// assert!(!map.is_empty());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of buckets of the index table.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::{MapOptions, RowMap};
    /// let keys = DenseTensor::from_vec([3], vec![7i64, 8, 9])?;
    /// let values = DenseTensor::from_vec([3], vec![0.5f32, 1.5, 2.5])?;
    /// let map = RowMap::from_rows(&keys, &values, MapOptions::default())?;
    /// assert!(map.n_buckets() > 3);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn n_buckets(&self) -> usize {
        self.table.len()
    }

    /// Returns the number of keys per bucket.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::{MapOptions, RowMap};
    /// let keys = DenseTensor::from_vec([3], vec![7i64, 8, 9])?;
    /// let values = DenseTensor::from_vec([3], vec![0.5f32, 1.5, 2.5])?;
    /// let map = RowMap::from_rows(&keys, &values, MapOptions::default())?;
    /// assert!(map.load_factor() > 0.0 && map.load_factor() <= 0.75);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn load_factor(&self) -> f64 {
        self.len as f64 / self.table.len() as f64
    }

    /// Returns the memory in bytes of index table, keys and values, including spare capacity.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::{MapOptions, RowMap};
    /// let keys = DenseTensor::from_vec([3], vec![7i64, 8, 9])?;
    /// let values = DenseTensor::from_vec([3], vec![0.5f32, 1.5, 2.5])?;
    /// let map = RowMap::from_rows(&keys, &values, MapOptions::default())?;
    /// assert!(map.nbytes() > 0);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn nbytes(&self) -> usize {
        self.table.bytes() + self.keys.capacity() + self.values.capacity()
    }

    /// Returns the maximum number of buckets that a lookup of a present key inspects, a measure of
    /// how evenly the keys are distributed.
    ///
    /// Reads the whole map.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::{MapOptions, RowMap};
    /// let keys = DenseTensor::from_vec([3], vec![7i64, 8, 9])?;
    /// let values = DenseTensor::from_vec([3], vec![0.5f32, 1.5, 2.5])?;
    /// let map = RowMap::from_rows(&keys, &values, MapOptions::default())?;
    /// assert!(map.longest_probe() >= 1);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn longest_probe(&self) -> usize {
        let width = row_types::DynamicWidth(self.types.as_ref().map_or(0, |t| t.key.nbytes()));
        let keys = self.keys.as_slice();
        let distance = |row: usize| {
            let hash = self.hashing.hash_row(width, row_types::RowWidth::row(width, keys, row));
            let at = self.table.find_row_bucket(hash, row)?;
            let from = index_table::find_home_bucket(hash, self.table.len());
            Some(if at < from { at + self.table.len() - from } else { at - from } + 1)
        };
        (0..self.len).filter_map(distance).max().unwrap_or(0)
    }

    /// Returns the options of the map.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::{MapOptions, RowMap};
    /// let keys = DenseTensor::from_vec([3], vec![7i64, 8, 9])?;
    /// let values = DenseTensor::from_vec([3], vec![0.5f32, 1.5, 2.5])?;
    /// let map = RowMap::from_rows(&keys, &values, MapOptions::default())?;
    /// assert_eq!(map.options(), &MapOptions::default());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn options(&self) -> &MapOptions {
        &self.options
    }

    /// Returns the seed of the hashes, random or set.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dok::{MapOptions, RowMap};
    /// let map = RowMap::new(MapOptions { seed: Some(7), ..Default::default() })?;
    /// assert_eq!(map.seed(), 7);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the type of keys; `None` before the first batch.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::{DType, DenseTensor};
    /// use serrate::dok::{MapOptions, RowMap, RowType};
    /// let keys = DenseTensor::from_vec([3], vec![7i64, 8, 9])?;
    /// let values = DenseTensor::from_vec([3], vec![0.5f32, 1.5, 2.5])?;
    /// let map = RowMap::from_rows(&keys, &values, MapOptions::default())?;
    /// assert_eq!(map.key_type(), Some(&RowType::scalar(DType::I64)));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn key_type(&self) -> Option<&RowType> {
        self.types.as_ref().map(|t| &t.key)
    }

    /// Returns the type of values; `None` before the first batch.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::{DType, DenseTensor};
    /// use serrate::dok::{MapOptions, RowMap, RowType};
    /// let keys = DenseTensor::from_vec([3], vec![7i64, 8, 9])?;
    /// let values = DenseTensor::from_vec([3], vec![0.5f32, 1.5, 2.5])?;
    /// let map = RowMap::from_rows(&keys, &values, MapOptions::default())?;
    /// assert_eq!(map.value_type(), Some(&RowType::scalar(DType::F32)));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn value_type(&self) -> Option<&RowType> {
        self.types.as_ref().map(|t| &t.value)
    }

    /// Sets whether operations on large batches of keys may use several threads.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dok::{MapOptions, RowMap};
    /// let mut map = RowMap::new(MapOptions::default())?;
    /// map.set_parallel(false);
    /// assert!(!map.options().parallel);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn set_parallel(&mut self, parallel: bool) {
        self.options.parallel = parallel;
    }

    fn types(&self) -> Result<&RowTypes> {
        self.types.as_ref().ok_or_else(|| {
            Error::invalid(
                "the map is new, so the types of its keys and values are unknown; insert a first batch with `set`, or create the map with `with_types`",
            )
        })
    }

    /// Returns an independent copy.
    ///
    /// Keys and values share memory until either map writes.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::{MapOptions, RowMap};
    /// let keys = DenseTensor::from_vec([3], vec![7i64, 8, 9])?;
    /// let values = DenseTensor::from_vec([3], vec![0.5f32, 1.5, 2.5])?;
    /// let map = RowMap::from_rows(&keys, &values, MapOptions::default())?;
    /// let mut copy = map.try_clone()?;
    /// copy.clear();
    /// assert_eq!((map.len(), copy.len()), (3, 0));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the memory of the index table cannot be allocated.
    pub fn try_clone(&self) -> Result<Self> {
        let mut table = IndexTable::new(self.table.len())?;
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

    /// Returns the bytes of a batch of keys, as `canonicalize_keys` returns them, and the number of
    /// keys.
    fn canonicalize_batch(&self, keys: &DenseTensor) -> Result<(arrow::buffer::Buffer, usize)> {
        self.types()?.key.check_equal(&RowType::of(keys)?, "keys")?;
        Ok((canonicalize_keys(keys)?, keys.shape()[0]))
    }
}
