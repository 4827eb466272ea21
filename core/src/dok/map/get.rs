//! Lookups of batches of keys.
//!
//! A lookup is a pipeline over blocks of [`BLOCK`] keys, in which each stage prefetches what the
//! next stage reads. The home line of a key is the cache line of buckets where its search starts.
//!
//! ```text
//! block b + 1    hash keys, prefetch home lines
//! block b        probe home lines --> conclusive without a match: the key is missing
//!                  |          '--> line full: queue `open`, prefetch the next line
//!                  |                 '--> probe, again into `open` or `placed`
//!                  '--> tag matches: queue `placed`, prefetch the rows of key and value
//! later                   '--> compare keys --> record the hit, or search on for this key alone
//! ```
//!
//! No branch depends on the keys: the queues are filled without branches and emptied in blocks.

use std::ops::Range;

use rayon::prelude::*;

use super::RowMap;
#[cfg(target_arch = "x86_64")]
use super::bucket_search::Avx2Probe;
use super::bucket_search::{BucketCandidate, BucketProbe, NO_ROW, ScalarProbe};
use super::hash::{HashFactors, prefetch_row, prefetch_value};
use super::index_table::{LINE, find_home_bucket, hash_tag, next_bucket};
use super::row_types::{RowType, RowWidth, copy_row, with_key_width, with_value_width};
use crate::dense::{DenseTensor, Fill, TensorMemory};
use crate::error::{Error, Result};
#[cfg(target_arch = "x86_64")]
use crate::kernels::simd::Avx2;
use crate::kernels::simd::for_avx2;

/// Number of keys per pipeline stage, enough to hide the memory latency.
const BLOCK: usize = 16;

/// Capacity of a queue, which is never exceeded: a step of the pipeline leaves fewer than
/// 2 * [`BLOCK`] keys in the queue, and the next step adds at most 2 * [`BLOCK`] keys.
const QUEUE_CAPACITY: usize = 4 * BLOCK;

/// Minimum number of keys per parallel task.
const MIN_TASK_KEYS: usize = 1 << 14;

pub(crate) const MISSING: u64 = u64::MAX;

/// Result of [`RowMap::get`] for a batch of keys: their values, and whether each key was found.
#[derive(Clone, Debug, PartialEq)]
pub struct FetchedValues {
    /// One value per key, in the order of the keys.
    pub values: DenseTensor,
    /// Whether each key was found; missing keys have the fallback value.
    pub found: Vec<bool>,
}

/// Value that a lookup returns for missing keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Fallback {
    /// Missing keys have zeros as their value.
    #[default]
    Zero,
    /// Every element of the value of a missing key is this number.
    Scalar(Fill),
    /// Missing keys have this value, which has the shape of the map's values.
    Value(DenseTensor),
}

impl<T: Into<Fill>> From<T> for Fallback {
    fn from(value: T) -> Self {
        Self::Scalar(value.into())
    }
}

impl From<DenseTensor> for Fallback {
    fn from(value: DenseTensor) -> Self {
        Self::Value(value)
    }
}

impl Fallback {
    fn to_row(&self, of: &RowType) -> Result<Vec<u8>> {
        match self {
            Self::Zero => Ok(vec![0; of.nbytes()]),
            Self::Scalar(fill) => {
                let one = fill.to_tensor(of.dtype())?;
                Ok(one.as_bytes().repeat(of.nbytes() / of.dtype().size()))
            }
            Self::Value(value) => {
                if value.shape() != of.shape() {
                    return Err(Error::invalid(format!(
                        "the fallback has the shape {:?}, but the values of the map have the shape {:?}; give a fallback of the shape of the values",
                        value.shape(),
                        of.shape()
                    )));
                }
                Ok(value.cast(of.dtype())?.as_bytes().to_vec())
            }
        }
    }
}

#[derive(Clone, Copy)]
struct KeyReader<'a, K> {
    hashing: HashFactors,
    width: K,
    buckets: &'a [u64],
    keys: &'a [u8],
}

/// Receives the results of a lookup. The pipeline calls `write_missing` for every block of keys,
/// and then `record_hit` for each key of the block that is found.
trait LookupVisitor {
    /// Prefetches the value in row `_row`. The key in this row has the tag of a searched key, but
    /// may differ from this key.
    #[inline(always)]
    fn prefetch_value(&mut self, _row: usize) {}
    /// Initializes the results of a range of keys as missing. The ranges of all calls follow each
    /// other and cover every key once. The call for a key comes before its `record_hit`.
    #[inline(always)]
    fn write_missing(&mut self, _keys: Range<usize>) {}
    /// Writes the result of key `i`, which is stored at `place`. Called at most once per key, for
    /// the keys in any order.
    fn record_hit(&mut self, i: usize, place: BucketCandidate);
}

/// A searched key, and a row whose key has the same tag (part of the hash) but may differ.
#[derive(Clone, Copy)]
struct PlacedKey {
    key: usize,
    place: BucketCandidate,
}

/// A searched key whose search continues in the cache line that starts at bucket `line`.
#[derive(Clone, Copy)]
struct OpenKey {
    key: usize,
    tag: u64,
    line: usize,
}

struct PrefetchQueue<T> {
    waiting: [T; QUEUE_CAPACITY],
    head: usize,
    tail: usize,
}

impl<T: Copy> PrefetchQueue<T> {
    fn new(any: T) -> Self {
        Self { waiting: [any; QUEUE_CAPACITY], head: 0, tail: 0 }
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.tail - self.head
    }

    /// Appends `item` if `one` is set. Uses no branch, because the CPU could not predict it.
    #[inline(always)]
    fn push_if(&mut self, item: T, one: bool) {
        self.waiting[self.tail % QUEUE_CAPACITY] = item;
        self.tail += usize::from(one);
    }

    /// Returns the appended elements from number `from` on; the first element ever appended has
    /// number 0.
    #[inline(always)]
    fn iter_since(&self, from: usize) -> impl Iterator<Item = T> {
        (from..self.tail).map(|i| self.waiting[i % QUEUE_CAPACITY])
    }

    #[inline(always)]
    fn pop(&mut self) -> T {
        let first = self.waiting[self.head % QUEUE_CAPACITY];
        self.head += 1;
        first
    }
}

struct KeySearch<'a, K, P, V> {
    reader: KeyReader<'a, K>,
    probe: P,
    queries: &'a [u8],
    visit: &'a mut V,
    placed: PrefetchQueue<PlacedKey>,
    open: PrefetchQueue<OpenKey>,
}

#[derive(Clone, Copy)]
struct BlockHomes {
    tags: [u64; BLOCK],
    homes: [usize; BLOCK],
}

impl<K: RowWidth, P: BucketProbe, V: LookupVisitor> KeySearch<'_, K, P, V> {
    #[inline(always)]
    fn prefetch_homes(&self, keys: Range<usize>, BlockHomes { tags, homes }: &mut BlockHomes) {
        let KeyReader { hashing, width, buckets, .. } = self.reader;
        for ((key, tag_of), home_of) in keys.zip(tags).zip(homes) {
            let hash = hashing.hash_row(width, width.row(self.queries, key));
            (*tag_of, *home_of) = (hash_tag(hash), find_home_bucket(hash, buckets.len()));
            prefetch_value(buckets, *home_of);
        }
    }

    #[inline(always)]
    fn probe_homes(&mut self, keys: Range<usize>, BlockHomes { tags, homes }: &BlockHomes) {
        self.visit.write_missing(keys.clone());
        let (placed, open) = (self.placed.tail, self.open.tail);
        for ((key, tag), line) in keys.zip(tags).zip(homes) {
            self.probe_line(OpenKey { key, tag: *tag, line: *line });
        }
        self.prefetch_rows(placed, open);
    }

    /// Takes the `keys` oldest elements from the queue `open`, and searches each in its next cache
    /// line.
    #[inline(always)]
    fn probe_next_lines(&mut self, keys: usize) {
        let (placed, open) = (self.placed.tail, self.open.tail);
        for _ in 0..keys {
            let next = self.open.pop();
            self.probe_line(next);
        }
        self.prefetch_rows(placed, open);
    }

    #[inline(always)]
    fn probe_line(&mut self, OpenKey { key, tag, line }: OpenKey) {
        let buckets = self.reader.buckets;
        let (place, goes_on) = self.probe.probe_line(buckets, tag, line);
        self.placed.push_if(PlacedKey { key, place }, place.row != NO_ROW);
        let after = line + LINE;
        let line = if after < buckets.len() { after } else { 0 };
        self.open.push_if(OpenKey { key, tag, line }, goes_on);
    }

    /// Prefetches what the next stage reads for the new elements of both queues: those from number
    /// `placed` on in the queue `placed`, and those from number `open` on in the queue `open`.
    #[inline(always)]
    fn prefetch_rows(&mut self, placed: usize, open: usize) {
        let KeyReader { width, buckets, keys, .. } = self.reader;
        for PlacedKey { place, .. } in self.placed.iter_since(placed) {
            prefetch_row(width, keys, place.row);
            self.visit.prefetch_value(place.row);
        }
        for OpenKey { line, .. } in self.open.iter_since(open) {
            prefetch_value(buckets, line);
        }
    }

    /// Takes the `keys` oldest elements from the queue `placed` and compares each with the key in
    /// its candidate row. If the two keys differ, searches again with
    /// [`find_one`](KeyReader::find_one).
    #[inline(always)]
    fn compare_keys(&mut self, keys: usize) {
        let KeyReader { width, keys: stored, .. } = self.reader;
        for _ in 0..keys {
            let PlacedKey { key, place } = self.placed.pop();
            let queries = width.row(self.queries, key);
            if width.row(stored, place.row) == queries {
                self.visit.record_hit(key, place);
            } else if let Some(place) = self.reader.find_one(queries) {
                self.visit.record_hit(key, place);
            }
        }
    }
}

impl<K: RowWidth> KeyReader<'_, K> {
    /// Runs the pipeline, which the module documentation describes, for all `queries`.
    fn visit_keys(&self, queries: &[u8], count: usize, visit: &mut impl LookupVisitor) {
        let reader = self;
        for_avx2!(
            fn[K: RowWidth](
                reader: &KeyReader<'_, K>,
                queries: &[u8],
                count: usize,
                visit: &mut impl LookupVisitor,
            ) = {
                reader.run_pipeline(Avx2Probe(Avx2::new()), queries, count, visit)
            },
            else reader.run_pipeline(ScalarProbe, queries, count, visit)
        );
    }

    #[inline(always)]
    fn run_pipeline(
        &self,
        probe: impl BucketProbe,
        queries: &[u8],
        count: usize,
        visit: &mut impl LookupVisitor,
    ) {
        let placed = PrefetchQueue::new(PlacedKey { key: 0, place: BucketCandidate::NO_ROW });
        let open = PrefetchQueue::new(OpenKey { key: 0, tag: 0, line: 0 });
        let mut search = KeySearch { reader: *self, probe, queries, visit, placed, open };
        let mut ring = [BlockHomes { tags: [0; BLOCK], homes: [0; BLOCK] }; 2];
        let blocks = count.div_ceil(BLOCK);
        for step in 0..=blocks {
            if step < blocks {
                search.prefetch_homes(find_block_range(step, count), &mut ring[step % 2]);
            }
            if let Some(block) = step.checked_sub(1) {
                search.probe_homes(find_block_range(block, count), &ring[block % 2]);
            }
            // Leave the newest [`BLOCK`] keys in each queue, because the prefetch for these keys
            // may not have finished. One loop over both queues would be 7 % slower.
            while search.open.len() >= 2 * BLOCK {
                search.probe_next_lines(BLOCK);
                while search.placed.len() >= 2 * BLOCK {
                    search.compare_keys(BLOCK);
                }
            }
            while search.placed.len() >= 2 * BLOCK {
                search.compare_keys(BLOCK);
            }
        }
        while search.open.len() > 0 {
            search.probe_next_lines(search.open.len().min(BLOCK));
            while search.placed.len() >= 2 * BLOCK {
                search.compare_keys(BLOCK);
            }
        }
        search.compare_keys(search.placed.len());
    }

    /// Searches for a key again from its home bucket, because the first row with the same tag has
    /// another key. Compares every further key with this tag. Returns `None` if the key is missing.
    #[cold]
    fn find_one(&self, key: &[u8]) -> Option<BucketCandidate> {
        let Self { hashing, width, buckets, keys } = *self;
        let hash = hashing.hash_row(width, key);
        let mut at = find_home_bucket(hash, buckets.len());
        loop {
            let place = ScalarProbe.find_candidate(buckets, hash_tag(hash), at);
            if place.row == NO_ROW {
                return None;
            }
            if width.row(keys, place.row) == key {
                return Some(place);
            }
            at = next_bucket(place.bucket, buckets.len());
        }
    }
}

#[inline(always)]
fn find_block_range(block: usize, count: usize) -> Range<usize> {
    block * BLOCK..(block * BLOCK + BLOCK).min(count)
}

struct CopyValues<'a, V> {
    width: V,
    values: &'a [u8],
    fallback: &'a [u8],
    out: &'a mut [u8],
    found: &'a mut [bool],
}

impl<V: RowWidth> LookupVisitor for CopyValues<'_, V> {
    #[inline(always)]
    fn prefetch_value(&mut self, row: usize) {
        prefetch_row(self.width, self.values, row);
    }

    #[inline(always)]
    fn write_missing(&mut self, keys: Range<usize>) {
        let w = self.width.bytes();
        for i in keys {
            copy_row(&self.fallback[..w], &mut self.out[i * w..][..w]);
        }
    }

    #[inline(always)]
    fn record_hit(&mut self, i: usize, place: BucketCandidate) {
        let w = self.width.bytes();
        copy_row(self.width.row(self.values, place.row), &mut self.out[i * w..][..w]);
        self.found[i] = true;
    }
}

struct MarkFound<'a>(&'a mut [bool]);

impl LookupVisitor for MarkFound<'_> {
    #[inline(always)]
    fn record_hit(&mut self, i: usize, _: BucketCandidate) {
        self.0[i] = true;
    }
}

struct RecordRows<'a>(&'a mut [u64]);

impl LookupVisitor for RecordRows<'_> {
    #[inline(always)]
    fn record_hit(&mut self, i: usize, place: BucketCandidate) {
        self.0[i] = place.row as u64;
    }
}

struct RecordBuckets<'a>(&'a mut [u64]);

impl LookupVisitor for RecordBuckets<'_> {
    #[inline(always)]
    fn record_hit(&mut self, i: usize, place: BucketCandidate) {
        self.0[i] = place.bucket as u64;
    }
}

impl RowMap {
    /// Returns the values of keys, and which keys were found.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use serrate::dense::DenseTensor;
    /// # use serrate::dok::{Fallback, MapOptions, RowMap};
    /// let mut map = RowMap::new(MapOptions::default())?;
    /// let keys = DenseTensor::from_vec([2], vec![1, 2])?;
    /// map.set(&keys, &DenseTensor::from_vec([2, 2], vec![10, 11, 20, 21])?)?;
    /// let other = Fallback::Value(DenseTensor::from_vec([2], vec![-1, -2])?);
    /// let fetched = map.get(&DenseTensor::from_vec([2], vec![2, 9])?, &other)?;
    /// assert_eq!(fetched.values.as_slice::<i32>()?, [20, 21, -1, -2]);
    /// assert_eq!(fetched.found, [true, false]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the map has no types yet, the keys have another type, or the fallback does not fit the
    /// value type.
    pub fn get(&self, keys: &DenseTensor, fallback: &Fallback) -> Result<FetchedValues> {
        let (queries, count) = self.canonicalize_batch(keys)?;
        let value_type = &self.types()?.value;
        let bytes = value_type.nbytes().checked_mul(count).filter(|b| isize::try_from(*b).is_ok());
        let bytes = bytes.ok_or_else(|| {
            Error::invalid(format!(
                "{count} values of {} bytes exceed the address space; look up fewer keys at a time",
                value_type.nbytes()
            ))
        })?;
        let mut memory = TensorMemory::new_zeroed(bytes)?;
        let mut found = vec![false; count];
        let out = &mut memory.take_contents().0[..bytes];
        self.get_rows(&queries, count, &fallback.to_row(value_type)?, out, &mut found)?;
        let buffer = memory.into_buffer();
        let values = DenseTensor::try_new_trusted(
            value_type.dtype(),
            value_type.batch_shape(count),
            buffer,
        )?;
        Ok(FetchedValues { values, found })
    }

    /// Looks up like [`get`](Self::get), but writes the value bytes and the found flags to slices.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::{Fallback, MapOptions, RowMap};
    /// let keys = DenseTensor::from_vec([2], vec![3i64, 5])?;
    /// let map = RowMap::from_rows(&keys, &DenseTensor::from_vec([2], vec![1u8, 2])?, MapOptions::default())?;
    /// let queries = DenseTensor::from_vec([2], vec![5i64, 4])?;
    /// let (mut values, mut found) = ([0; 2], [false; 2]);
    /// map.get_into(&queries, &Fallback::from(9), &mut values, &mut found)?;
    /// assert_eq!((values, found), ([2, 9], [true, false]));
    /// assert_eq!(map.contains(&queries)?, [true, false]);
    /// assert_eq!(map.find(&queries)?, [Some(1), None]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`get`](Self::get); also if the length of a slice differs from the result.
    pub fn get_into(
        &self,
        keys: &DenseTensor,
        fallback: &Fallback,
        values: &mut [u8],
        found: &mut [bool],
    ) -> Result<()> {
        let (queries, count) = self.canonicalize_batch(keys)?;
        let value_type = &self.types()?.value;
        if found.len() != count || Some(values.len()) != value_type.nbytes().checked_mul(count) {
            return Err(Error::invalid(format!(
                "the output slices have {} byte(s) for values and {} flag(s), but the result has {count} value(s) of {} byte(s) each and one flag per value; give slices of exactly these sizes",
                values.len(),
                found.len(),
                value_type.nbytes()
            )));
        }
        self.get_rows(&queries, count, &fallback.to_row(value_type)?, values, found)
    }

    /// Looks up `count` keys that `canonicalize_keys` returned. Writes their values to `out`, and
    /// to `found` whether the map has them. The caller has checked the lengths of both slices.
    pub(crate) fn get_rows(
        &self,
        queries: &[u8],
        count: usize,
        fallback: &[u8],
        out: &mut [u8],
        found: &mut [bool],
    ) -> Result<()> {
        let types = self.types()?;
        let values = self.values.as_slice();
        let value = types.value.nbytes();
        with_key_width!(types.key.nbytes(), k => {
            let reader = self.make_reader(k);
            with_value_width!(value, v => {
                let part = |queries: &[u8], out: &mut [u8], found: &mut [bool]| {
                    found.fill(false);
                    let count = found.len();
                    let mut copy = CopyValues { width: v, values, fallback, out, found };
                    reader.visit_keys(queries, count, &mut copy);
                };
                let key = k.bytes();
                if !self.uses_threads(count) || key == 0 || value == 0 {
                    part(queries, out, found);
                } else {
                    let size = self.compute_part_size(count);
                    (queries.par_chunks(size * key))
                        .zip(out.par_chunks_mut(size * value))
                        .zip(found.par_chunks_mut(size))
                        .for_each(|((queries, out), found)| part(queries, out, found));
                }
            });
        });
        Ok(())
    }

    /// Returns whether each key is present.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::{MapOptions, RowMap};
    /// let keys = DenseTensor::from_vec([3], vec![7i64, 8, 9])?;
    /// let values = DenseTensor::from_vec([3], vec![0.5f32, 1.5, 2.5])?;
    /// let map = RowMap::from_rows(&keys, &values, MapOptions::default())?;
    /// let queries = DenseTensor::from_vec([2], vec![9i64, 6])?;
    /// assert_eq!(map.contains(&queries)?, [true, false]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the map has no types yet, or the keys have another type or shape.
    pub fn contains(&self, keys: &DenseTensor) -> Result<Vec<bool>> {
        let (queries, count) = self.canonicalize_batch(keys)?;
        let mut found = vec![false; count];
        with_key_width!(self.types()?.key.nbytes(), k => {
            let reader = self.make_reader(k);
            self.for_each_part(&queries, k.bytes(), &mut found, |queries, found| {
                reader.visit_keys(queries, found.len(), &mut MarkFound(found));
            });
        });
        Ok(found)
    }

    /// Returns, for each given key, its row in [`keys`](Self::keys) and [`values`](Self::values);
    /// `None` if the key is missing.
    ///
    /// Rows stay valid until a key is removed.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::{MapOptions, RowMap};
    /// let keys = DenseTensor::from_vec([3], vec![7i64, 8, 9])?;
    /// let values = DenseTensor::from_vec([3], vec![0.5f32, 1.5, 2.5])?;
    /// let map = RowMap::from_rows(&keys, &values, MapOptions::default())?;
    /// let queries = DenseTensor::from_vec([2], vec![9i64, 6])?;
    /// assert_eq!(map.find(&queries)?, [Some(2), None]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the map has no types yet, or the keys have another type or shape.
    pub fn find(&self, keys: &DenseTensor) -> Result<Vec<Option<usize>>> {
        let (queries, count) = self.canonicalize_batch(keys)?;
        let rows = self.find_rows(&queries, count)?;
        Ok(rows.into_iter().map(|r| usize::try_from(r).ok().filter(|_| r != MISSING)).collect())
    }

    /// Returns, for each of `count` keys that `canonicalize_keys` returned, the row of the key, or
    /// [`MISSING`] if the map does not have the key.
    pub(crate) fn find_rows(&self, queries: &[u8], count: usize) -> Result<Vec<u64>> {
        let mut rows = vec![MISSING; count];
        with_key_width!(self.types()?.key.nbytes(), k => {
            let reader = self.make_reader(k);
            self.for_each_part(queries, k.bytes(), &mut rows, |queries, rows| {
                reader.visit_keys(queries, rows.len(), &mut RecordRows(rows));
            });
        });
        Ok(rows)
    }

    /// Returns, for each of `count` keys that `canonicalize_keys` returned, the bucket of the key,
    /// or [`MISSING`] if the map does not have the key.
    pub(super) fn find_buckets(&self, queries: &[u8], count: usize) -> Result<Vec<u64>> {
        let mut buckets = vec![MISSING; count];
        with_key_width!(self.types()?.key.nbytes(), k => {
            let reader = self.make_reader(k);
            self.for_each_part(queries, k.bytes(), &mut buckets, |queries, buckets| {
                reader.visit_keys(queries, buckets.len(), &mut RecordBuckets(buckets));
            });
        });
        Ok(buckets)
    }

    fn make_reader<K: RowWidth>(&self, width: K) -> KeyReader<'_, K> {
        let (buckets, keys) = (self.table.buckets(), self.keys.as_slice());
        KeyReader { hashing: self.hashing, width, buckets, keys }
    }

    pub(crate) fn uses_threads(&self, count: usize) -> bool {
        self.options.parallel && count >= 2 * MIN_TASK_KEYS && rayon::current_num_threads() > 1
    }

    /// Returns the number of keys per parallel task of a batch of `count` keys. Each thread gets
    /// several tasks, so that no thread waits long for the slowest one.
    fn compute_part_size(&self, count: usize) -> usize {
        (count / (4 * rayon::current_num_threads())).max(MIN_TASK_KEYS)
    }

    /// Calls `part` with a slice of `queries` (`key` bytes per key) and the slice of `out` for its
    /// results. If there are many keys, divides them into several such slices for several threads.
    fn for_each_part<T: Send>(
        &self,
        queries: &[u8],
        key: usize,
        out: &mut [T],
        part: impl Fn(&[u8], &mut [T]) + Sync,
    ) {
        if !self.uses_threads(out.len()) || key == 0 {
            return part(queries, out);
        }
        let size = self.compute_part_size(out.len());
        (queries.par_chunks(size * key))
            .zip(out.par_chunks_mut(size))
            .for_each(|(queries, out)| part(queries, out));
    }
}
