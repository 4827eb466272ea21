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

/// Room of a queue: less than two blocks are left in it, one comes from the keys and one from those whose search
/// went on.
const QUEUE: usize = 4 * BLOCK;

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
    /// Nothing is known of these keys yet. Called for all keys, in their order, before any of them is found.
    fn miss(&mut self, keys: Range<usize>);
    /// The key `i` is in this bucket and row.
    fn hit(&mut self, i: usize, place: Place);
}

/// A key that may have a place.
#[derive(Clone, Copy)]
struct Placed {
    key: usize,
    place: Place,
}

/// A key whose search goes on in the line that begins with a bucket.
#[derive(Clone, Copy)]
struct Open {
    key: usize,
    tag: u64,
    line: usize,
}

/// What waits, first come, first served.
struct Queue<T> {
    waiting: [T; QUEUE],
    head: usize,
    tail: usize,
}

impl<T: Copy> Queue<T> {
    fn new(any: T) -> Self {
        Self { waiting: [any; QUEUE], head: 0, tail: 0 }
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.tail - self.head
    }

    /// One more, where it is one: without a branch, as nobody can foresee which keys are there.
    #[inline(always)]
    fn push_if(&mut self, item: T, one: bool) {
        self.waiting[self.tail % QUEUE] = item;
        self.tail += usize::from(one);
    }

    /// The items from number `from` on, counted from the first that ever came.
    #[inline(always)]
    fn since(&self, from: usize) -> impl Iterator<Item = T> {
        (from..self.tail).map(|i| self.waiting[i % QUEUE])
    }

    /// The first item, which leaves.
    #[inline(always)]
    fn pop(&mut self) -> T {
        let first = self.waiting[self.head % QUEUE];
        self.head += 1;
        first
    }
}

/// Keys on their way.
struct Search<'a, K, P, V> {
    reader: Reader<'a, K>,
    probe: P,
    asked: &'a [u8],
    visit: &'a mut V,
    placed: Queue<Placed>,
    open: Queue<Open>,
}

/// Where the keys of a block begin to be looked for.
#[derive(Clone, Copy)]
struct Homes {
    tags: [u64; BLOCK],
    homes: [usize; BLOCK],
}

impl<K: Width, P: Probe, V: Visit> Search<'_, K, P, V> {
    /// Asks for the lines of some keys.
    #[inline(always)]
    fn begin(&self, keys: Range<usize>, Homes { tags, homes }: &mut Homes) {
        let Reader { hashing, width, buckets, .. } = self.reader;
        for ((key, tag_of), home_of) in keys.zip(tags).zip(homes) {
            let hash = hashing.row(width, width.row(self.asked, key));
            (*tag_of, *home_of) = (tag(hash), home(hash, buckets.len()));
            prefetch(buckets, *home_of);
        }
    }

    /// Looks at the first lines of some keys.
    #[inline(always)]
    fn look(&mut self, keys: Range<usize>, Homes { tags, homes }: &Homes) {
        self.visit.miss(keys.clone());
        let (placed, open) = (self.placed.tail, self.open.tail);
        for ((key, tag), line) in keys.zip(tags).zip(homes) {
            self.line(Open { key, tag: *tag, line: *line });
        }
        self.expect(placed, open);
    }

    /// Looks at the next lines of the keys that wait longest.
    #[inline(always)]
    fn look_on(&mut self, keys: usize) {
        let (placed, open) = (self.placed.tail, self.open.tail);
        for _ in 0..keys {
            let next = self.open.pop();
            self.line(next);
        }
        self.expect(placed, open);
    }

    #[inline(always)]
    fn line(&mut self, Open { key, tag, line }: Open) {
        let buckets = self.reader.buckets;
        let (place, goes_on) = self.probe.line(buckets, tag, line);
        self.placed.push_if(Placed { key, place }, place.row != NONE);
        let after = line + LINE;
        let line = if after < buckets.len() { after } else { 0 };
        self.open.push_if(Open { key, tag, line }, goes_on);
    }

    /// Asks for what the keys need that came to the queues since.
    #[inline(always)]
    fn expect(&mut self, placed: usize, open: usize) {
        let Reader { width, buckets, keys, .. } = self.reader;
        for Placed { place, .. } in self.placed.since(placed) {
            prefetch_row(width, keys, place.row);
            self.visit.expect(place.row);
        }
        for Open { line, .. } in self.open.since(open) {
            prefetch(buckets, line);
        }
    }

    /// Compares the keys that wait longest with those of their rows.
    #[inline(always)]
    fn compare(&mut self, keys: usize) {
        let Reader { width, keys: stored, .. } = self.reader;
        for _ in 0..keys {
            let Placed { key, place } = self.placed.pop();
            let asked = width.row(self.asked, key);
            if width.row(stored, place.row) == asked {
                self.visit.hit(key, place);
            } else if let Some(place) = self.reader.one(asked) {
                self.visit.hit(key, place);
            }
        }
    }
}

impl<K: Width> Reader<'_, K> {
    /// Looks all of `asked` up. A block of keys at a time, lines of buckets are asked for and, a block later,
    /// looked at: keys that may have a place go into a queue, and their rows are asked for; keys whose line is
    /// full of others go into another, and their next line is asked for. Queues are filled without a branch and
    /// emptied a whole block at a time: neither which keys are there nor how many has to be foreseen.
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
        let placed = Queue::new(Placed { key: 0, place: Place::NONE });
        let open = Queue::new(Open { key: 0, tag: 0, line: 0 });
        let mut search = Search { reader: *self, probe, asked, visit, placed, open };
        let mut ring = [Homes { tags: [0; BLOCK], homes: [0; BLOCK] }; 2];
        let blocks = count.div_ceil(BLOCK);
        for step in 0..=blocks {
            if step < blocks {
                search.begin(of_block(step, count), &mut ring[step % 2]);
            }
            if let Some(block) = step.checked_sub(1) {
                search.look(of_block(block, count), &ring[block % 2]);
            }
            // What came last stays, as it was only just asked for. (One loop for both queues takes 7 % longer.)
            while search.open.len() >= 2 * BLOCK {
                search.look_on(BLOCK);
                while search.placed.len() >= 2 * BLOCK {
                    search.compare(BLOCK);
                }
            }
            while search.placed.len() >= 2 * BLOCK {
                search.compare(BLOCK);
            }
        }
        while search.open.len() > 0 {
            search.look_on(search.open.len().min(BLOCK));
            while search.placed.len() >= 2 * BLOCK {
                search.compare(BLOCK);
            }
        }
        search.compare(search.placed.len());
    }

    /// Looks one key up by itself: that of its row, which has its tag, is another.
    #[cold]
    fn one(&self, key: &[u8]) -> Option<Place> {
        let Self { hashing, width, buckets, keys } = *self;
        let hash = hashing.row(width, key);
        let mut at = home(hash, buckets.len());
        loop {
            let place = OneByOne.candidate(buckets, tag(hash), at);
            if place.row == NONE {
                return None;
            }
            if width.row(keys, place.row) == key {
                return Some(place);
            }
            at = next(place.bucket, buckets.len());
        }
    }
}

/// The keys of a block among `count`.
#[inline(always)]
fn of_block(block: usize, count: usize) -> Range<usize> {
    block * BLOCK..(block * BLOCK + BLOCK).min(count)
}

/// Copies values out.
struct Values<'a, V> {
    width: V,
    values: &'a [u8],
    fallback: &'a [u8],
    out: &'a mut [u8],
    found: &'a mut [bool],
}

impl<V: Width> Visit for Values<'_, V> {
    #[inline(always)]
    fn expect(&mut self, row: usize) {
        prefetch_row(self.width, self.values, row);
    }

    #[inline(always)]
    fn miss(&mut self, keys: Range<usize>) {
        let w = self.width.bytes();
        for i in keys {
            copy(&self.fallback[..w], &mut self.out[i * w..][..w]);
        }
    }

    #[inline(always)]
    fn hit(&mut self, i: usize, place: Place) {
        let w = self.width.bytes();
        copy(self.width.row(self.values, place.row), &mut self.out[i * w..][..w]);
        self.found[i] = true;
    }
}

/// Tells which keys are there.
struct Mark<'a>(&'a mut [bool]);

impl Visit for Mark<'_> {
    #[inline(always)]
    fn expect(&mut self, _: usize) {}
    #[inline(always)]
    fn miss(&mut self, _: Range<usize>) {}
    #[inline(always)]
    fn hit(&mut self, i: usize, _: Place) {
        self.0[i] = true;
    }
}

/// Tells rows.
struct Rows<'a>(&'a mut [u64]);

impl Visit for Rows<'_> {
    #[inline(always)]
    fn expect(&mut self, _: usize) {}
    #[inline(always)]
    fn miss(&mut self, _: Range<usize>) {}
    #[inline(always)]
    fn hit(&mut self, i: usize, place: Place) {
        self.0[i] = place.row as u64;
    }
}

/// Tells buckets.
struct Buckets<'a>(&'a mut [u64]);

impl Visit for Buckets<'_> {
    #[inline(always)]
    fn expect(&mut self, _: usize) {}
    #[inline(always)]
    fn miss(&mut self, _: Range<usize>) {}
    #[inline(always)]
    fn hit(&mut self, i: usize, place: Place) {
        self.0[i] = place.bucket as u64;
    }
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
                    let mut copy = Values { width: v, values, fallback, out, found };
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
