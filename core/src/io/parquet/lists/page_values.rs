//! Decodes the values of pages into arrays with one element per value or null.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayData, ArrayRef, BooleanArray, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{ArrowNativeType, DataType};
use bytes::Bytes;
use memmap2::MmapMut;
use parquet::basic::Encoding;

use super::bitmap::{BitmapBuilder, count_ones, find_lowest_bit, make_low_mask};
use super::column_shape::LeafKind;
use super::delta::DeltaDecoder;
use super::hybrid::{DecodeFault, HybridDecoder};
use crate::array::prefetch::request_huge_pages;
use crate::error::Result as Outcome;

/// Arrays of zeros of at least this size in bytes are memory-mapped instead of allocated.
const MIN_MAPPED_BYTES: usize = 1 << 16;

/// Buffers of values of at least this size in bytes (two huge pages) use huge pages.
const LARGE: usize = 4 << 20;

const VALUES_PER_STEP: usize = 1024;

pub(super) trait DecodedValue: ArrowNativeType + Default {
    const STORED_BYTES: usize;

    fn from_stored(bytes: &[u8]) -> Self;

    /// Returns the value whose bits are the lowest bits of `number`.
    fn from_lowest(number: u64) -> Self;
}

macro_rules! impl_native {
    ($($t:ty, $stored:literal, [$($byte:literal)*];)*) => {
        $(impl DecodedValue for $t {
            const STORED_BYTES: usize = $stored;

            #[inline(always)]
            fn from_stored(bytes: &[u8]) -> Self {
                Self::from_le_bytes([$(bytes[$byte]),*])
            }

            #[expect(clippy::allow_attributes, reason = "only some of the types lose bits")]
            #[allow(clippy::cast_possible_truncation, reason = "only the lowest bits are needed")]
            #[inline(always)]
            fn from_lowest(number: u64) -> Self {
                number as Self
            }
        })*
    };
}

impl_native! {
    u8, 4, [0];
    u16, 4, [0 1];
    u32, 4, [0 1 2 3];
    u64, 8, [0 1 2 3 4 5 6 7];
}

#[derive(Debug)]
pub(super) enum EncodedValues {
    Plain(Bytes),
    Indices(HybridDecoder),
    Numbers(HybridDecoder),
    Delta(DeltaDecoder),
    /// BYTE_STREAM_SPLIT: the first bytes of all values, then all second bytes, and so on.
    Split {
        data: Bytes,
        at: usize,
    },
}

impl EncodedValues {
    pub(super) fn new(
        encoding: Encoding,
        mut data: Bytes,
        leaf: LeafKind,
    ) -> Result<Self, DecodeFault> {
        Ok(match (encoding, leaf) {
            (Encoding::PLAIN, LeafKind::Boolean) => {
                Self::Numbers(HybridDecoder::from_packed(data, 1))
            }
            (Encoding::RLE, LeafKind::Boolean) => {
                // Skip the first four bytes, which are the length of the encoded runs.
                let runs = if data.is_empty() { data } else { data.split_off(4.min(data.len())) };
                Self::Numbers(HybridDecoder::new(runs, 1))
            }
            (_, LeafKind::Boolean) => return Err(make_encoding_error(encoding, "booleans")),
            (Encoding::PLAIN, _) => Self::Plain(data),
            (Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY, _) => {
                let width = match data.is_empty() {
                    // An empty page has neither a bit width nor values, so any width is valid.
                    true => 1,
                    false => usize::from(data.split_to(1)[0]),
                };
                if width > 32 {
                    return Err(DecodeFault::new(format!(
                        "the page declares dictionary indices of {width} bits, but at most 32 bits are allowed; create the file again"
                    )));
                }
                Self::Indices(HybridDecoder::new(data, width))
            }
            (Encoding::DELTA_BINARY_PACKED, _) => Self::Delta(DeltaDecoder::new(data)?),
            (Encoding::BYTE_STREAM_SPLIT, _) => Self::Split { data, at: 0 },
            (_, _) => return Err(make_encoding_error(encoding, "numbers")),
        })
    }
}

#[cold]
fn make_encoding_error(encoding: Encoding, what: &str) -> DecodeFault {
    DecodeFault::new(format!(
        "{what} have the encoding {encoding}, which the list decoder does not support; create the file again with the encoding PLAIN"
    ))
}

/// Decodes values of any type into a buffer with one slot (element) per value or null.
pub(super) trait ValueSink: Send {
    fn set_dictionary(&mut self, values: &Bytes, count: usize) -> Result<(), DecodeFault>;

    fn clear_dictionary(&mut self);

    fn skip(&mut self, page: &mut EncodedValues, count: usize) -> Result<(), DecodeFault>;

    /// Grows the buffer to at least `slots` elements; new elements are zero.
    fn grow(&mut self, slots: usize) -> Result<(), DecodeFault>;

    /// Decodes values into the elements of `slots` whose bit in `valid` is set, or into all
    /// elements of `slots` if `valid` is `None`.
    fn append(
        &mut self,
        page: &mut EncodedValues,
        slots: Range<usize>,
        valid: Option<&BitmapBuilder>,
    ) -> Result<(), DecodeFault>;

    /// Returns the first `slots` elements as an array and resets the buffer.
    fn finish(
        &mut self,
        slots: usize,
        data_type: &DataType,
        nulls: Option<NullBuffer>,
    ) -> Outcome<ArrayRef>;
}

pub(super) fn new_sink(leaf: LeafKind) -> Box<dyn ValueSink> {
    match leaf {
        LeafKind::Boolean | LeafKind::Narrow1 => Box::new(SlotValues::<u8>::default()),
        LeafKind::Narrow2 => Box::new(SlotValues::<u16>::default()),
        LeafKind::Four => Box::new(SlotValues::<u32>::default()),
        LeafKind::Eight => Box::new(SlotValues::<u64>::default()),
    }
}

#[derive(Debug, Default)]
struct SlotValues<T> {
    /// One element per value or null. An element is zero and takes no memory until it is written.
    out: Vec<T>,
    dictionary: Option<Vec<T>>,
    /// Scratch buffer for values without nulls, before they are scattered to `out`.
    dense: Vec<T>,
}

impl<T> SlotValues<T> {
    fn use_huge_pages(&mut self) {
        if self.out.capacity().saturating_mul(size_of::<T>()) >= LARGE {
            request_huge_pages(&mut self.out);
        }
    }
}

impl<T: DecodedValue> ValueSink for SlotValues<T> {
    fn set_dictionary(&mut self, values: &Bytes, count: usize) -> Result<(), DecodeFault> {
        let bytes = count.checked_mul(T::STORED_BYTES).and_then(|n| values.get(..n));
        let bytes = bytes.ok_or_else(|| {
            DecodeFault::new(format!(
                "a dictionary of {count} value(s) does not fit its {} byte(s), so the file is damaged; create it again",
                values.len()
            ))
        })?;
        self.dictionary = Some(bytes.chunks_exact(T::STORED_BYTES).map(T::from_stored).collect());
        Ok(())
    }

    fn clear_dictionary(&mut self) {
        self.dictionary = None;
    }

    fn skip(&mut self, page: &mut EncodedValues, count: usize) -> Result<(), DecodeFault> {
        match page {
            EncodedValues::Plain(data) => split_plain::<T>(data, count).map(|_| ()),
            EncodedValues::Indices(runs) | EncodedValues::Numbers(runs) => runs.skip_values(count),
            EncodedValues::Delta(delta) => delta.read(count, |_| ()),
            EncodedValues::Split { data, at } => {
                *at = split_end::<T>(data, *at, count)?;
                Ok(())
            }
        }
    }

    fn grow(&mut self, slots: usize) -> Result<(), DecodeFault> {
        let len = self.out.len();
        if slots <= len {
            return Ok(());
        }
        if len == 0 {
            // `vec![0; n]` writes nothing, but aborts if memory runs out: try to reserve it first.
            Vec::<T>::new().try_reserve_exact(slots).map_err(DecodeFault::new)?;
            self.out = vec![T::default(); slots];
            self.use_huge_pages();
            return Ok(());
        }
        let slots = slots.max(len.saturating_mul(2));
        self.out.try_reserve_exact(slots - len).map_err(DecodeFault::new)?;
        self.use_huge_pages();
        self.out.resize(slots, T::default());
        Ok(())
    }

    fn append(
        &mut self,
        page: &mut EncodedValues,
        slots: Range<usize>,
        valid: Option<&BitmapBuilder>,
    ) -> Result<(), DecodeFault> {
        self.grow(slots.end)?;
        let Self { out, dictionary, dense } = self;
        let dictionary = dictionary.as_deref();
        let Some(valid) = valid else { return decode_values(page, dictionary, &mut out[slots]) };
        dense.resize(VALUES_PER_STEP, T::default());
        let mut at = slots.start;
        while at < slots.end {
            let n = VALUES_PER_STEP.min(slots.end - at);
            let mut words = [0; VALUES_PER_STEP / 64];
            let mut values = 0;
            for (i, word) in words.iter_mut().enumerate() {
                *word = valid.read_word(at + i * 64) & make_low_mask(n.saturating_sub(i * 64));
                values += count_ones(*word);
            }
            let to = &mut out[at..at + n];
            if values == n {
                decode_values(page, dictionary, to)?;
            } else if values > 0 {
                let from = &mut dense[..values];
                decode_values(page, dictionary, from)?;
                scatter_valid(from, &words, to);
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
            return build_zero_array::<T>(slots, data_type, nulls);
        }
        out.truncate(slots);
        if out.capacity() - out.len() > out.len() / 4 {
            out.shrink_to_fit();
        }
        if *data_type == DataType::Boolean {
            let bits = BooleanBuffer::collect_bool(slots, |i| out[i] != T::default());
            return Ok(Arc::new(BooleanArray::new(bits, nulls)));
        }
        build_array(Buffer::from_vec(out), slots, data_type, nulls)
    }
}

fn build_zero_array<T: DecodedValue>(
    slots: usize,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
) -> Outcome<ArrayRef> {
    if *data_type == DataType::Boolean {
        return Ok(Arc::new(BooleanArray::new(BooleanBuffer::new_unset(slots), nulls)));
    }
    let bytes = slots.saturating_mul(size_of::<T>());
    // Mapped pages are zero and take memory only on access; an allocator must clear reused memory.
    let mapped = if bytes < MIN_MAPPED_BYTES { None } else { MmapMut::map_anon(bytes).ok() };
    let buffer = match mapped {
        Some(pages) => Buffer::from(Bytes::from_owner(pages)),
        None => Buffer::from_vec(vec![T::default(); slots]),
    };
    build_array(buffer, slots, data_type, nulls)
}

fn build_array(
    values: Buffer,
    slots: usize,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
) -> Outcome<ArrayRef> {
    let data = ArrayData::builder(data_type.clone()).len(slots).add_buffer(values).nulls(nulls);
    Ok(make_array(data.build()?))
}

/// Copies `values`, in order, to the elements of `to` whose bits are set in `valid`, one for each
/// set bit.
fn scatter_valid<T: Copy>(values: &[T], valid: &[u64], to: &mut [T]) {
    let mut values = values.iter();
    for (word, to) in valid.iter().zip(to.chunks_mut(64)) {
        let mut word = *word;
        while word != 0 {
            if let (Some(to), Some(value)) = (to.get_mut(find_lowest_bit(word)), values.next()) {
                *to = *value;
            }
            word &= word - 1;
        }
    }
}

fn decode_values<T: DecodedValue>(
    page: &mut EncodedValues,
    dictionary: Option<&[T]>,
    out: &mut [T],
) -> Result<(), DecodeFault> {
    match page {
        EncodedValues::Plain(data) => {
            let bytes = split_plain::<T>(data, out.len())?;
            for (out, bytes) in out.iter_mut().zip(bytes.chunks_exact(T::STORED_BYTES)) {
                *out = T::from_stored(bytes);
            }
        }
        EncodedValues::Indices(runs) => {
            let Some(dictionary) = dictionary else {
                return Err(DecodeFault::new(
                    "the page has dictionary indices, but the chunk has no dictionary, so the file is damaged; create it again",
                ));
            };
            let mut indices = [0; VALUES_PER_STEP];
            for out in out.chunks_mut(VALUES_PER_STEP) {
                let indices = &mut indices[..out.len()];
                runs.read(indices)?;
                let mut largest = 0;
                for index in &*indices {
                    largest = if *index > largest { *index } else { largest };
                }
                if largest as usize >= dictionary.len() {
                    return Err(DecodeFault::new(format!(
                        "dictionary index {largest} is out of range for a dictionary of {} value(s), so the file is damaged; create it again",
                        dictionary.len()
                    )));
                }
                for (out, index) in out.iter_mut().zip(&*indices) {
                    *out = dictionary[*index as usize];
                }
            }
        }
        EncodedValues::Numbers(runs) => {
            let mut numbers = [0; VALUES_PER_STEP];
            for out in out.chunks_mut(VALUES_PER_STEP) {
                let numbers = &mut numbers[..out.len()];
                runs.read(numbers)?;
                for (out, number) in out.iter_mut().zip(numbers) {
                    *out = T::from_lowest(u64::from(*number));
                }
            }
        }
        EncodedValues::Delta(delta) => {
            let n = out.len();
            let mut places = out.iter_mut();
            delta.read(n, |number| {
                if let Some(place) = places.next() {
                    *place = T::from_lowest(number);
                }
            })?;
        }
        EncodedValues::Split { data, at } => {
            let end = split_end::<T>(data, *at, out.len())?;
            let count = data.len() / T::STORED_BYTES;
            for (i, out) in out.iter_mut().enumerate() {
                let mut bytes = [0; 8];
                for (b, byte) in bytes[..T::STORED_BYTES].iter_mut().enumerate() {
                    *byte = data[b * count + *at + i];
                }
                *out = T::from_stored(&bytes);
            }
            *at = end;
        }
    }
    Ok(())
}

fn split_plain<T: DecodedValue>(data: &mut Bytes, count: usize) -> Result<Bytes, DecodeFault> {
    match count.checked_mul(T::STORED_BYTES).filter(|n| *n <= data.len()) {
        Some(bytes) => Ok(data.split_to(bytes)),
        None => Err(make_missing_values_error::<T>(count, data.len())),
    }
}

/// Returns the end of `count` values from value `at` on; an error if `data` has fewer values.
fn split_end<T: DecodedValue>(data: &Bytes, at: usize, count: usize) -> Result<usize, DecodeFault> {
    let all = data.len() / T::STORED_BYTES;
    let end = at.checked_add(count).filter(|end| *end <= all);
    end.ok_or_else(|| make_missing_values_error::<T>(count, (all - at) * T::STORED_BYTES))
}

#[cold]
fn make_missing_values_error<T: DecodedValue>(count: usize, bytes: usize) -> DecodeFault {
    DecodeFault::new(format!(
        "{count} value(s) of {} bytes are expected, but the page has only {bytes} byte(s) left, so the file is damaged; create it again",
        T::STORED_BYTES
    ))
}
