//! Look-ups.

use std::ops::Range;

use rayon::prelude::*;

use super::HashMap;
use super::hash::{Hashing, prefetch, prefetch_row};
#[cfg(target_arch = "x86_64")]
use super::probe::ByLine;
use super::probe::{NONE, OneByOne, Place, Probe};
use super::rows::{RowType, Width, copy, with_key_width, with_value_width};
use super::table::{LINE, home, next, tag};
use crate::dense::{DenseTensor, Fill, Memory};
use crate::error::{Error, Result};
#[cfg(target_arch = "x86_64")]
use crate::kernels::bits::has_avx2;

/// Keys between asking for memory and using it: enough for memory to answer, and for a step to be worth a
/// loop.
const BLOCK: usize = 16;

/// Keys that are looked up by one thread at a time.
const PART: usize = 1 << 14;

/// Where a key was not found.
pub(crate) const MISSING: u64 = u64::MAX;

/// What [`HashMap::get`] gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetched {
    /// A value per key, in the order of the keys.
    pub values: DenseTensor,
    /// Which keys were there; the others have the fallback.
    pub found: Vec<bool>,
}

/// The value of keys that are not there.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Fallback {
    /// Zero.
    #[default]
    Zero,
    /// Every element of the value.
    Scalar(Fill),
    /// A whole value, of the shape that values have.
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
    /// The bytes of one value.
    fn row(&self, of: &RowType) -> Result<Vec<u8>> {
        match self {
            Self::Zero => Ok(vec![0; of.bytes()]),
            Self::Scalar(fill) => {
                let one = fill.to_tensor(of.dtype())?;
                Ok(one.as_bytes().repeat(of.bytes() / of.dtype().size()))
            }
            Self::Value(value) => {
                if value.shape() != of.shape() {
                    return Err(Error::invalid(format!(
                        "a fallback of shape {:?} for values of shape {:?}",
                        value.shape(),
                        of.shape()
                    )));
                }
                Ok(value.cast(of.dtype())?.as_bytes().to_vec())
            }
        }
    }
}

/// What a look-up reads.
#[derive(Clone, Copy)]
struct Reader<'a, K> {
    hashing: Hashing,
    width: K,
    buckets: &'a [u64],
    /// The keys of the map.
    keys: &'a [u8],
}

/// What a look-up does with each key.
trait Visit {
    /// A row may be the one; its value is wanted soon.
    fn expect(&mut self, row: usize);
    /// Nothing is known of key `i` yet. Called for every key, in their order.
    fn miss(&mut self, i: usize);
    /// The key `i` is in this bucket and row.
    fn hit(&mut self, i: usize, bucket: usize, row: usize);
}

/// Some keys on their way.
#[derive(Clone, Copy)]
struct Block {
    hashes: [u64; BLOCK],
    places: [Place; BLOCK],
    /// Keys that have a place.
    placed: List,
    /// Keys whose search goes on in another line.
    open: List,
}

/// Numbers of keys within a block.
#[derive(Clone, Copy)]
struct List {
    keys: [u8; BLOCK],
    len: usize,
}

impl List {
    const EMPTY: Self = Self { keys: [0; BLOCK], len: 0 };

    /// One more, where it is one: without a branch, as nobody can foresee which keys are there.
    #[inline(always)]
    fn push_if(&mut self, key: usize, one: bool) {
        #[expect(clippy::cast_possible_truncation, reason = "below BLOCK")]
        let number = key as u8;
        self.keys[self.len % BLOCK] = number;
        self.len += usize::from(one);
    }

    #[inline(always)]
    fn get(&self, i: usize) -> usize {
        usize::from(self.keys[i % BLOCK])
    }
}

impl<K: Width> Reader<'_, K> {
    /// Looks all of `asked` up in four steps, each a block of keys behind the one before: lines of buckets are
    /// asked for; the rows they name are asked for, or the next line; the rows that those name; keys are
    /// compared. A step per block is a loop of few instructions, of which the processor has many under way.
    fn visit(&self, asked: &[u8], count: usize, visit: &mut impl Visit) {
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            fn wide<K: Width>(
                reader: &Reader<'_, K>,
                asked: &[u8],
                count: usize,
                visit: &mut impl Visit,
            ) {
                // SAFETY: this is compiled for AVX2, and runs where it is.
                reader.steps(unsafe { ByLine::new() }, asked, count, visit);
            }
            if has_avx2() {
                // SAFETY: the processor has what the function was compiled for.
                return unsafe { wide(self, asked, count, visit) };
            }
        }
        self.steps(OneByOne, asked, count, visit);
    }

    #[inline(always)]
    fn steps(&self, probe: impl Probe, asked: &[u8], count: usize, visit: &mut impl Visit) {
        let Self { hashing, width, buckets, keys } = *self;
        let len = buckets.len();
        let empty = Block {
            hashes: [0; BLOCK],
            places: [Place::NONE; BLOCK],
            placed: List::EMPTY,
            open: List::EMPTY,
        };
        let mut ring = [empty; 4];
        let blocks = count.div_ceil(BLOCK);
        for step in 0..blocks + 3 {
            if step < blocks {
                let Block { hashes, .. } = &mut ring[step % 4];
                for i in of_block(step, count) {
                    let hash = hashing.row(width, width.row(asked, i));
                    hashes[i % BLOCK] = hash;
                    prefetch(buckets, home(hash, len));
                }
            }
            if let Some(block) = step.checked_sub(1).filter(|block| *block < blocks) {
                let Block { hashes, places, placed, open } = &mut ring[block % 4];
                (*placed, *open) = (List::EMPTY, List::EMPTY);
                for i in of_block(block, count) {
                    let (i, hash) = (i % BLOCK, hashes[i % BLOCK]);
                    let (place, goes_on) = probe.line(buckets, tag(hash), home(hash, len));
                    places[i] = place;
                    placed.push_if(i, place.row != NONE);
                    open.push_if(i, goes_on);
                }
                for i in 0..open.len {
                    prefetch(buckets, home(hashes[open.get(i)], len) + LINE);
                }
                for i in 0..placed.len {
                    let row = places[placed.get(i)].row;
                    prefetch_row(width, keys, row);
                    visit.expect(row);
                }
            }
            if let Some(block) = step.checked_sub(2).filter(|block| *block < blocks) {
                let Block { hashes, places, placed, open } = &mut ring[block % 4];
                for i in 0..open.len {
                    let i = open.get(i);
                    let place = probe.candidate(buckets, tag(hashes[i]), home(hashes[i], len));
                    places[i] = place;
                    if place.row != NONE {
                        placed.push_if(i, true);
                        prefetch_row(width, keys, place.row);
                        visit.expect(place.row);
                    }
                }
            }
            if let Some(block) = step.checked_sub(3) {
                let Block { hashes, places, placed, .. } = &ring[block % 4];
                for i in of_block(block, count) {
                    visit.miss(i);
                }
                for i in 0..placed.len {
                    let i = placed.get(i);
                    let (mut place, asked_at) = (places[i], block * BLOCK + i);
                    let key = width.row(asked, asked_at);
                    while place.row != NONE {
                        if width.row(keys, place.row) == key {
                            visit.hit(asked_at, place.bucket, place.row);
                            break;
                        }
                        let after = next(place.bucket, len);
                        place = probe.candidate(buckets, tag(hashes[i]), after);
                    }
                }
            }
        }
    }
}

/// The keys of a block among `count`.
#[inline(always)]
fn of_block(block: usize, count: usize) -> Range<usize> {
    block * BLOCK..(block * BLOCK + BLOCK).min(count)
}

/// Copies values out.
struct Copy<'a, V> {
    width: V,
    values: &'a [u8],
    fallback: &'a [u8],
    out: &'a mut [u8],
    found: &'a mut [bool],
}

impl<V: Width> Visit for Copy<'_, V> {
    #[inline(always)]
    fn expect(&mut self, row: usize) {
        prefetch_row(self.width, self.values, row);
    }

    #[inline(always)]
    fn hit(&mut self, i: usize, _: usize, row: usize) {
        let w = self.width.bytes();
        copy(self.width.row(self.values, row), &mut self.out[i * w..][..w]);
        self.found[i] = true;
    }

    #[inline(always)]
    fn miss(&mut self, i: usize) {
        let w = self.width.bytes();
        copy(&self.fallback[..w], &mut self.out[i * w..][..w]);
    }
}

/// Tells which keys are there.
struct Mark<'a>(&'a mut [bool]);

impl Visit for Mark<'_> {
    #[inline(always)]
    fn expect(&mut self, _: usize) {}
    #[inline(always)]
    fn hit(&mut self, i: usize, _: usize, _: usize) {
        self.0[i] = true;
    }
    #[inline(always)]
    fn miss(&mut self, _: usize) {}
}

/// Tells rows.
struct Rows<'a>(&'a mut [u64]);

impl Visit for Rows<'_> {
    #[inline(always)]
    fn expect(&mut self, _: usize) {}
    #[inline(always)]
    fn hit(&mut self, i: usize, _: usize, row: usize) {
        self.0[i] = row as u64;
    }
    #[inline(always)]
    fn miss(&mut self, _: usize) {}
}

/// Tells buckets.
struct Buckets<'a>(&'a mut [u64]);

impl Visit for Buckets<'_> {
    #[inline(always)]
    fn expect(&mut self, _: usize) {}
    #[inline(always)]
    fn hit(&mut self, i: usize, bucket: usize, _: usize) {
        self.0[i] = bucket as u64;
    }
    #[inline(always)]
    fn miss(&mut self, _: usize) {}
}

impl HashMap {
    /// The values of keys, and which of the keys are there.
    ///
    /// ```
    /// # use serrate::dense::DenseTensor;
    /// # use serrate::dok::{Fallback, HashMap, MapOptions};
    /// let mut map = HashMap::new(MapOptions::default())?;
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
    /// When the map has no types yet, its keys are of another type or shape, or the fallback is no
    /// value of it.
    pub fn get(&self, keys: &DenseTensor, fallback: &Fallback) -> Result<Fetched> {
        let (asked, count) = self.batch(keys)?;
        let of = &self.types()?.value;
        let bytes = of.bytes().checked_mul(count).filter(|b| isize::try_from(*b).is_ok());
        let bytes = bytes.ok_or_else(|| {
            Error::invalid(format!("{count} values of {} bytes cannot be addressed", of.bytes()))
        })?;
        let mut memory = Memory::zeroed(bytes)?;
        let mut found = vec![false; count];
        let out = &mut memory.take_contents().0[..bytes];
        self.get_rows(&asked, count, &fallback.row(of)?, out, &mut found)?;
        let buffer = memory.into_buffer();
        let values = DenseTensor::try_new_trusted(of.dtype(), of.batch(count), buffer)?;
        Ok(Fetched { values, found })
    }

    /// As [`get`](Self::get) into memory that is there: the bytes of the values, and which were
    /// found.
    ///
    /// # Errors
    /// As [`get`](Self::get), and when the memory is not just as long as the answer.
    pub fn get_into(
        &self,
        keys: &DenseTensor,
        fallback: &Fallback,
        values: &mut [u8],
        found: &mut [bool],
    ) -> Result<()> {
        let (asked, count) = self.batch(keys)?;
        let of = &self.types()?.value;
        if found.len() != count || Some(values.len()) != of.bytes().checked_mul(count) {
            return Err(Error::invalid(format!(
                "{} bytes and {} flags for {count} values of {} bytes",
                values.len(),
                found.len(),
                of.bytes()
            )));
        }
        self.get_rows(&asked, count, &fallback.row(of)?, values, found)
    }

    /// Canonical keys as bytes; lengths are right.
    pub(crate) fn get_rows(
        &self,
        asked: &[u8],
        count: usize,
        fallback: &[u8],
        out: &mut [u8],
        found: &mut [bool],
    ) -> Result<()> {
        let types = self.types()?;
        let values = self.values.as_slice();
        let value = types.value.bytes();
        with_key_width!(types.key.bytes(), k => {
            let reader = self.reader(k);
            with_value_width!(value, v => {
                let part = |asked: &[u8], out: &mut [u8], found: &mut [bool]| {
                    found.fill(false);
                    let count = found.len();
                    let mut copy = Copy { width: v, values, fallback, out, found };
                    reader.visit(asked, count, &mut copy);
                };
                let key = k.bytes();
                if !self.divides(count) || key == 0 || value == 0 {
                    part(asked, out, found);
                } else {
                    let size = self.part(count);
                    (asked.par_chunks(size * key))
                        .zip(out.par_chunks_mut(size * value))
                        .zip(found.par_chunks_mut(size))
                        .for_each(|((asked, out), found)| part(asked, out, found));
                }
            });
        });
        Ok(())
    }

    /// Which keys are there.
    ///
    /// # Errors
    /// When the map has no types yet, or its keys are of another type or shape.
    pub fn contains(&self, keys: &DenseTensor) -> Result<Vec<bool>> {
        let (asked, count) = self.batch(keys)?;
        let mut found = vec![false; count];
        with_key_width!(self.types()?.key.bytes(), k => {
            let reader = self.reader(k);
            self.parts(&asked, k.bytes(), &mut found, |asked, found| {
                reader.visit(asked, found.len(), &mut Mark(found));
            });
        });
        Ok(found)
    }

    /// The row of every key in [`keys`](Self::keys) and [`values`](Self::values), `None` where it is
    /// not there. Rows stay until something is removed.
    ///
    /// # Errors
    /// When the map has no types yet, or its keys are of another type or shape.
    pub fn find(&self, keys: &DenseTensor) -> Result<Vec<Option<usize>>> {
        let (asked, count) = self.batch(keys)?;
        let rows = self.find_rows(&asked, count)?;
        Ok(rows.into_iter().map(|r| usize::try_from(r).ok().filter(|_| r != MISSING)).collect())
    }

    /// The row of every canonical key, [`MISSING`] where it is not there.
    pub(crate) fn find_rows(&self, asked: &[u8], count: usize) -> Result<Vec<u64>> {
        let mut rows = vec![MISSING; count];
        with_key_width!(self.types()?.key.bytes(), k => {
            let reader = self.reader(k);
            self.parts(asked, k.bytes(), &mut rows, |asked, rows| {
                reader.visit(asked, rows.len(), &mut Rows(rows));
            });
        });
        Ok(rows)
    }

    /// The bucket of every canonical key, [`MISSING`] where it is not there.
    pub(super) fn find_buckets(&self, asked: &[u8], count: usize) -> Result<Vec<u64>> {
        let mut buckets = vec![MISSING; count];
        with_key_width!(self.types()?.key.bytes(), k => {
            let reader = self.reader(k);
            self.parts(asked, k.bytes(), &mut buckets, |asked, buckets| {
                reader.visit(asked, buckets.len(), &mut Buckets(buckets));
            });
        });
        Ok(buckets)
    }

    fn reader<K: Width>(&self, width: K) -> Reader<'_, K> {
        let (buckets, keys) = (self.table.buckets(), self.keys.as_slice());
        Reader { hashing: self.hashing, width, buckets, keys }
    }

    /// Whether a batch is worth more than one thread.
    pub(crate) fn divides(&self, count: usize) -> bool {
        self.options.parallel && count >= 2 * PART && rayon::current_num_threads() > 1
    }

    /// Keys per job: several jobs per thread, so that none waits for another for long.
    fn part(&self, count: usize) -> usize {
        (count / (4 * rayon::current_num_threads())).max(PART)
    }

    /// Some keys and their answers at a time.
    fn parts<T: Send>(
        &self,
        asked: &[u8],
        key: usize,
        out: &mut [T],
        part: impl Fn(&[u8], &mut [T]) + Sync,
    ) {
        if !self.divides(out.len()) || key == 0 {
            return part(asked, out);
        }
        let size = self.part(out.len());
        (asked.par_chunks(size * key))
            .zip(out.par_chunks_mut(size))
            .for_each(|(asked, out)| part(asked, out));
    }
}
