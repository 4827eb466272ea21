//! Values of a page, to their places among nulls.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayData, ArrayRef, BooleanArray, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{ArrowNativeType, DataType};
use bytes::Bytes;
use memmap2::MmapMut;
use parquet::basic::Encoding;

use super::bits::{Bits, first, low, ones};
use super::delta::Delta;
use super::hybrid::{Fault, Hybrid};
use super::shape::Leaf;
use crate::array::pages::huge_pages;
use crate::error::Result as Outcome;

/// Bytes from which values that nobody wrote are mapped.
const MAPPED: usize = 1 << 16;

/// Bytes from which values lie in huge pages: two of them at least.
const LARGE: usize = 4 << 20;

/// Values that are worked on at a time.
const STEP: usize = 1024;

/// What is kept of a value.
pub(super) trait Native: ArrowNativeType + Default {
    /// Bytes that it has in a page.
    const STORED: usize;

    /// From these bytes.
    fn stored(bytes: &[u8]) -> Self;

    /// The lowest bits.
    fn lowest(number: u64) -> Self;
}

macro_rules! native {
    ($($t:ty, $stored:literal, [$($byte:literal)*];)*) => {
        $(impl Native for $t {
            const STORED: usize = $stored;

            #[inline(always)]
            fn stored(bytes: &[u8]) -> Self {
                Self::from_le_bytes([$(bytes[$byte]),*])
            }

            #[expect(clippy::allow_attributes, reason = "only some of the types lose bits")]
            #[allow(clippy::cast_possible_truncation, reason = "the lowest bits are wanted")]
            #[inline(always)]
            fn lowest(number: u64) -> Self {
                number as Self
            }
        })*
    };
}

native! {
    u8, 4, [0];
    u16, 4, [0 1];
    u32, 4, [0 1 2 3];
    u64, 8, [0 1 2 3 4 5 6 7];
}

/// The values of a page that were not read yet.
#[derive(Debug)]
pub(super) enum Encoded {
    Plain(Bytes),
    /// Places in the dictionary.
    Indices(Hybrid),
    /// The numbers themselves.
    Numbers(Hybrid),
    Delta(Delta),
    /// The first bytes of all values, then the second ones, ..
    Split {
        data: Bytes,
        at: usize,
    },
}

impl Encoded {
    pub(super) fn new(encoding: Encoding, mut data: Bytes, leaf: Leaf) -> Result<Self, Fault> {
        Ok(match (encoding, leaf) {
            (Encoding::PLAIN, Leaf::Boolean) => Self::Numbers(Hybrid::packed(data, 1)),
            (Encoding::RLE, Leaf::Boolean) => {
                // Their length comes first.
                let runs = if data.is_empty() { data } else { data.split_off(4.min(data.len())) };
                Self::Numbers(Hybrid::new(runs, 1))
            }
            (_, Leaf::Boolean) => return Err(unknown(encoding, "booleans")),
            (Encoding::PLAIN, _) => Self::Plain(data),
            (Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY, _) => {
                let width = match data.is_empty() {
                    // Where nothing is, nothing can be read.
                    true => 1,
                    false => usize::from(data.split_to(1)[0]),
                };
                if width > 32 {
                    return Err(Fault::new(format!("dictionary indices of {width} bits")));
                }
                Self::Indices(Hybrid::new(data, width))
            }
            (Encoding::DELTA_BINARY_PACKED, _) => Self::Delta(Delta::new(data)?),
            (Encoding::BYTE_STREAM_SPLIT, _) => Self::Split { data, at: 0 },
            (_, _) => return Err(unknown(encoding, "numbers")),
        })
    }
}

#[cold]
fn unknown(encoding: Encoding, what: &str) -> Fault {
    Fault::new(format!("{what} in the encoding {encoding}, which is not one of theirs"))
}

/// Where values go, whatever their type.
pub(super) trait Sink: Send {
    /// The dictionary of the pages that follow.
    fn dictionary(&mut self, values: &Bytes, count: usize) -> Result<(), Fault>;

    /// Without the dictionary of another chunk.
    fn forget(&mut self);

    /// Passes over values.
    fn skip(&mut self, page: &mut Encoded, count: usize) -> Result<(), Fault>;

    /// Makes room for places up to `slots`, which are zeros.
    fn room(&mut self, slots: usize) -> Result<(), Fault>;

    /// Values of a page into those of the places that are valid.
    fn append(
        &mut self,
        page: &mut Encoded,
        slots: Range<usize>,
        valid: Option<&Bits>,
    ) -> Result<(), Fault>;

    /// The values of the first `slots` places, and starts anew.
    fn finish(
        &mut self,
        slots: usize,
        data_type: &DataType,
        nulls: Option<NullBuffer>,
    ) -> Outcome<ArrayRef>;
}

pub(super) fn sink(leaf: Leaf) -> Box<dyn Sink> {
    match leaf {
        Leaf::Boolean | Leaf::Narrow1 => Box::new(Values::<u8>::default()),
        Leaf::Narrow2 => Box::new(Values::<u16>::default()),
        Leaf::Four => Box::new(Values::<u32>::default()),
        Leaf::Eight => Box::new(Values::<u64>::default()),
    }
}

#[derive(Debug, Default)]
struct Values<T> {
    /// Zeros where nothing was written yet, which cost nothing until then.
    out: Vec<T>,
    dictionary: Option<Vec<T>>,
    /// Values on their way to places among nulls.
    dense: Vec<T>,
}

impl<T> Values<T> {
    /// Has large arrays lie in huge pages.
    fn in_huge_pages(&mut self) {
        if self.out.capacity().saturating_mul(size_of::<T>()) >= LARGE {
            huge_pages(&mut self.out);
        }
    }
}

impl<T: Native> Sink for Values<T> {
    fn dictionary(&mut self, values: &Bytes, count: usize) -> Result<(), Fault> {
        let bytes = count.checked_mul(T::STORED).and_then(|n| values.get(..n));
        let bytes = bytes.ok_or_else(|| {
            Fault::new(format!("a dictionary of {count} value(s) in {} bytes", values.len()))
        })?;
        self.dictionary = Some(bytes.chunks_exact(T::STORED).map(T::stored).collect());
        Ok(())
    }

    fn forget(&mut self) {
        self.dictionary = None;
    }

    fn skip(&mut self, page: &mut Encoded, count: usize) -> Result<(), Fault> {
        match page {
            Encoded::Plain(data) => take_plain::<T>(data, count).map(|_| ()),
            Encoded::Indices(runs) | Encoded::Numbers(runs) => runs.skip(count),
            Encoded::Delta(delta) => delta.read(count, |_| ()),
            Encoded::Split { data, at } => {
                *at = split_end::<T>(data, *at, count)?;
                Ok(())
            }
        }
    }

    fn room(&mut self, slots: usize) -> Result<(), Fault> {
        let len = self.out.len();
        if slots <= len {
            return Ok(());
        }
        if len == 0 {
            // Zeros are had for nothing, but not without the risk of ending the process: asked first.
            Vec::<T>::new().try_reserve_exact(slots).map_err(Fault::new)?;
            self.out = vec![T::default(); slots];
            self.in_huge_pages();
            return Ok(());
        }
        let slots = slots.max(len.saturating_mul(2));
        self.out.try_reserve_exact(slots - len).map_err(Fault::new)?;
        self.in_huge_pages();
        self.out.resize(slots, T::default());
        Ok(())
    }

    fn append(
        &mut self,
        page: &mut Encoded,
        slots: Range<usize>,
        valid: Option<&Bits>,
    ) -> Result<(), Fault> {
        self.room(slots.end)?;
        let Self { out, dictionary, dense } = self;
        let dictionary = dictionary.as_deref();
        let Some(valid) = valid else { return read(page, dictionary, &mut out[slots]) };
        dense.resize(STEP, T::default());
        let mut at = slots.start;
        while at < slots.end {
            let n = STEP.min(slots.end - at);
            let mut words = [0; STEP / 64];
            let mut values = 0;
            for (i, word) in words.iter_mut().enumerate() {
                *word = valid.word(at + i * 64) & low(n.saturating_sub(i * 64));
                values += ones(*word);
            }
            let to = &mut out[at..at + n];
            if values == n {
                read(page, dictionary, to)?;
            } else if values > 0 {
                let from = &mut dense[..values];
                read(page, dictionary, from)?;
                spread(from, &words, to);
            }
            at += n;
        }
        Ok(())
    }

    fn finish(
        &mut self,
        slots: usize,
        data_type: &DataType,
        nulls: Option<NullBuffer>,
    ) -> Outcome<ArrayRef> {
        let mut out = std::mem::take(&mut self.out);
        if out.is_empty() {
            return zeros::<T>(slots, data_type, nulls);
        }
        out.truncate(slots);
        if out.capacity() - out.len() > out.len() / 4 {
            out.shrink_to_fit();
        }
        if *data_type == DataType::Boolean {
            let bits = BooleanBuffer::collect_bool(slots, |i| out[i] != T::default());
            return Ok(Arc::new(BooleanArray::new(bits, nulls)));
        }
        array(Buffer::from_vec(out), slots, data_type, nulls)
    }
}

/// Values that nobody wrote.
fn zeros<T: Native>(
    slots: usize,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
) -> Outcome<ArrayRef> {
    if *data_type == DataType::Boolean {
        return Ok(Arc::new(BooleanArray::new(BooleanBuffer::new_unset(slots), nulls)));
    }
    let bytes = slots.saturating_mul(size_of::<T>());
    // Pages of the system, which are memory only once somebody reads them; what an allocator has used
    // before would have to be cleared.
    let mapped = if bytes < MAPPED { None } else { MmapMut::map_anon(bytes).ok() };
    let buffer = match mapped {
        Some(pages) => Buffer::from(Bytes::from_owner(pages)),
        None => Buffer::from_vec(vec![T::default(); slots]),
    };
    array(buffer, slots, data_type, nulls)
}

fn array(
    values: Buffer,
    slots: usize,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
) -> Outcome<ArrayRef> {
    let data = ArrayData::builder(data_type.clone()).len(slots).add_buffer(values).nulls(nulls);
    Ok(make_array(data.build()?))
}

/// Values to the places whose bits are set; as many as there are such places.
fn spread<T: Copy>(values: &[T], valid: &[u64], to: &mut [T]) {
    let mut values = values.iter();
    for (word, to) in valid.iter().zip(to.chunks_mut(64)) {
        let mut word = *word;
        while word != 0 {
            if let (Some(to), Some(value)) = (to.get_mut(first(word)), values.next()) {
                *to = *value;
            }
            word &= word - 1;
        }
    }
}

/// The next values, as many as there is room for.
fn read<T: Native>(
    page: &mut Encoded,
    dictionary: Option<&[T]>,
    out: &mut [T],
) -> Result<(), Fault> {
    match page {
        Encoded::Plain(data) => {
            let bytes = take_plain::<T>(data, out.len())?;
            for (out, bytes) in out.iter_mut().zip(bytes.chunks_exact(T::STORED)) {
                *out = T::stored(bytes);
            }
        }
        Encoded::Indices(runs) => {
            let Some(dictionary) = dictionary else {
                return Err(Fault::new("values of a dictionary, which the chunk does not have"));
            };
            let mut indices = [0; STEP];
            for out in out.chunks_mut(STEP) {
                let indices = &mut indices[..out.len()];
                runs.read(indices)?;
                let mut largest = 0;
                for index in &*indices {
                    largest = if *index > largest { *index } else { largest };
                }
                if largest as usize >= dictionary.len() {
                    return Err(Fault::new(format!(
                        "value {largest} of a dictionary of {}",
                        dictionary.len()
                    )));
                }
                for (out, index) in out.iter_mut().zip(&*indices) {
                    *out = dictionary[*index as usize];
                }
            }
        }
        Encoded::Numbers(runs) => {
            let mut numbers = [0; STEP];
            for out in out.chunks_mut(STEP) {
                let numbers = &mut numbers[..out.len()];
                runs.read(numbers)?;
                for (out, number) in out.iter_mut().zip(numbers) {
                    *out = T::lowest(u64::from(*number));
                }
            }
        }
        Encoded::Delta(delta) => {
            let n = out.len();
            let mut places = out.iter_mut();
            delta.read(n, |number| {
                if let Some(place) = places.next() {
                    *place = T::lowest(number);
                }
            })?;
        }
        Encoded::Split { data, at } => {
            let end = split_end::<T>(data, *at, out.len())?;
            let count = data.len() / T::STORED;
            for (i, out) in out.iter_mut().enumerate() {
                let mut bytes = [0; 8];
                for (b, byte) in bytes[..T::STORED].iter_mut().enumerate() {
                    *byte = data[b * count + *at + i];
                }
                *out = T::stored(&bytes);
            }
            *at = end;
        }
    }
    Ok(())
}

/// Cuts the bytes of `count` values off.
fn take_plain<T: Native>(data: &mut Bytes, count: usize) -> Result<Bytes, Fault> {
    match count.checked_mul(T::STORED).filter(|n| *n <= data.len()) {
        Some(bytes) => Ok(data.split_to(bytes)),
        None => Err(too_few::<T>(count, data.len())),
    }
}

/// Where `count` values from place `at` on end.
fn split_end<T: Native>(data: &Bytes, at: usize, count: usize) -> Result<usize, Fault> {
    let all = data.len() / T::STORED;
    let end = at.checked_add(count).filter(|end| *end <= all);
    end.ok_or_else(|| too_few::<T>(count, (all - at) * T::STORED))
}

#[cold]
fn too_few<T: Native>(count: usize, bytes: usize) -> Fault {
    Fault::new(format!(
        "{count} value(s) of {} bytes are due, where the page has {bytes} byte(s) left",
        T::STORED
    ))
}
