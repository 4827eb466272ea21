//! Maps values to ids: integers to their own bits, other values to their index in order of first
//! appearance.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Int64Array, PrimitiveArray, UInt64Array,
    new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow::row::{RowConverter, SortField};
use serrate_core::internal::to_canonical_floats;

use super::counts::ValueCounts;
use crate::error::Result;

#[derive(Debug)]
pub(super) struct ValueNumbers {
    data_type: DataType,
    kind: IdNumbering,
}

#[derive(Debug)]
enum IdNumbering {
    Signed,
    Unsigned,
    Nothing,
    Numbered(NumberedValues),
}

#[derive(Debug)]
struct NumberedValues {
    converter: RowConverter,
    /// The value of each id, as a row in Arrow's row format, whose bytes sort like the values.
    rows: Vec<Arc<[u8]>>,
    of: HashMap<Arc<[u8]>, u64>,
    bytes: usize,
}

pub(super) enum ValueIds<'a> {
    Nothing,
    I8(&'a PrimitiveArray<Int8Type>),
    I16(&'a PrimitiveArray<Int16Type>),
    I32(&'a PrimitiveArray<Int32Type>),
    I64(&'a PrimitiveArray<Int64Type>),
    U8(&'a PrimitiveArray<UInt8Type>),
    U16(&'a PrimitiveArray<UInt16Type>),
    U32(&'a PrimitiveArray<UInt32Type>),
    U64(&'a PrimitiveArray<UInt64Type>),
    /// Values of a dictionary array: `keys` has the index of each row in the dictionary, and
    /// `numbers` has the id of each dictionary value.
    Keys {
        keys: Vec<usize>,
        nulls: Option<NullBuffer>,
        numbers: Vec<Option<u64>>,
    },
}

impl ValueNumbers {
    pub(super) fn new(data_type: &DataType) -> Result<Self> {
        let kind = match data_type {
            DataType::Null => IdNumbering::Nothing,
            t if t.is_signed_integer() => IdNumbering::Signed,
            t if t.is_unsigned_integer() => IdNumbering::Unsigned,
            t => IdNumbering::Numbered(NumberedValues {
                converter: RowConverter::new(vec![SortField::new(t.clone())])?,
                rows: Vec::new(),
                of: HashMap::new(),
                bytes: 0,
            }),
        };
        Ok(Self { data_type: data_type.clone(), kind })
    }

    pub(super) fn number_batch<'a>(&mut self, array: &'a ArrayRef) -> Result<ValueIds<'a>> {
        use DataType::{
            Dictionary, Int8, Int16, Int32, Int64, Null, UInt8, UInt16, UInt32, UInt64,
        };
        Ok(match array.data_type() {
            Null => ValueIds::Nothing,
            Int8 => ValueIds::I8(array.as_primitive()),
            Int16 => ValueIds::I16(array.as_primitive()),
            Int32 => ValueIds::I32(array.as_primitive()),
            Int64 => ValueIds::I64(array.as_primitive()),
            UInt8 => ValueIds::U8(array.as_primitive()),
            UInt16 => ValueIds::U16(array.as_primitive()),
            UInt32 => ValueIds::U32(array.as_primitive()),
            UInt64 => ValueIds::U64(array.as_primitive()),
            Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                let numbers = self.number_values(dictionary.values())?;
                let keys = match dictionary.values().is_empty() {
                    true => vec![0; array.len()],
                    false => dictionary.normalized_keys(),
                };
                ValueIds::Keys { keys, nulls: array.nulls().cloned(), numbers }
            }
            _ => ValueIds::Keys {
                keys: (0..array.len()).collect(),
                nulls: None,
                numbers: self.number_values(array)?,
            },
        })
    }

    fn number_values(&mut self, values: &ArrayRef) -> Result<Vec<Option<u64>>> {
        let nulls = values.logical_nulls();
        let valid = |i: usize| nulls.as_ref().is_none_or(|n| n.is_valid(i));
        if !matches!(self.kind, IdNumbering::Numbered(_)) {
            let ids = self.number_batch(values)?;
            return Ok((0..values.len()).map(|i| ids.get_bits(i)).collect());
        }
        let IdNumbering::Numbered(seen) = &mut self.kind else { return Ok(Vec::new()) };
        let values = match values.data_type() == &self.data_type {
            true => Arc::clone(values),
            false => cast(values, &self.data_type)?,
        };
        let rows = seen.converter.convert_columns(&[to_canonical_floats(&values)?])?;
        let number = |i: usize| {
            let row = rows.row(i);
            let bytes = row.as_ref();
            if let Some(id) = seen.of.get(bytes) {
                return *id;
            }
            let id = seen.rows.len() as u64;
            let own: Arc<[u8]> = Arc::from(bytes);
            seen.rows.push(Arc::clone(&own));
            seen.of.insert(own, id);
            seen.bytes += bytes.len();
            id
        };
        let mut number = number;
        Ok((0..rows.num_rows()).map(|i| valid(i).then(|| number(i))).collect())
    }

    #[expect(clippy::cast_possible_wrap, reason = "bits of a signed number")]
    pub(super) fn compare_values(&self, a: u64, b: u64) -> Ordering {
        match &self.kind {
            IdNumbering::Signed => (a as i64).cmp(&(b as i64)),
            IdNumbering::Unsigned | IdNumbering::Nothing => a.cmp(&b),
            IdNumbering::Numbered(seen) => {
                let row = |id: u64| usize::try_from(id).ok().and_then(|id| seen.rows.get(id));
                row(a).cmp(&row(b))
            }
        }
    }

    #[expect(clippy::cast_possible_wrap, reason = "bits of a signed number")]
    pub(super) fn decode_values(&self, ids: &[u64]) -> Result<ArrayRef> {
        let all: ArrayRef = match &self.kind {
            IdNumbering::Nothing => return Ok(new_null_array(&DataType::Null, ids.len())),
            IdNumbering::Signed => {
                Arc::new(Int64Array::from_iter_values(ids.iter().map(|id| *id as i64)))
            }
            IdNumbering::Unsigned => Arc::new(UInt64Array::from_iter_values(ids.iter().copied())),
            IdNumbering::Numbered(seen) => {
                let parser = seen.converter.parser();
                let row = |id: &u64| usize::try_from(*id).ok().and_then(|id| seen.rows.get(id));
                let rows = ids.iter().filter_map(row).map(|bytes| parser.parse(bytes));
                let mut columns = seen.converter.convert_rows(rows)?;
                columns.swap_remove(0)
            }
        };
        if *all.data_type() == self.data_type { Ok(all) } else { Ok(cast(&all, &self.data_type)?) }
    }

    pub(super) fn size(&self) -> usize {
        match &self.kind {
            IdNumbering::Numbered(seen) => seen.bytes + seen.rows.capacity() * 64,
            _ => 0,
        }
    }
}

/// Minimum number of values for which scanning a table of 2^16 counts is faster than recording
/// which counts are not zero.
const MIN_SCANNED_VALUES: usize = 1 << 15;

impl ValueIds<'_> {
    pub(super) fn get_bits(&self, i: usize) -> Option<u64> {
        fn bits_at<T: ArrowPrimitiveType<Native: ToBits>>(
            a: &PrimitiveArray<T>,
            i: usize,
        ) -> Option<u64> {
            a.is_valid(i).then(|| a.value(i).to_bits())
        }
        match self {
            Self::Nothing => None,
            Self::I8(a) => bits_at(a, i),
            Self::I16(a) => bits_at(a, i),
            Self::I32(a) => bits_at(a, i),
            Self::I64(a) => bits_at(a, i),
            Self::U8(a) => bits_at(a, i),
            Self::U16(a) => bits_at(a, i),
            Self::U32(a) => bits_at(a, i),
            Self::U64(a) => bits_at(a, i),
            Self::Keys { keys, nulls, numbers } => {
                let valid = nulls.as_ref().is_none_or(|n| n.is_valid(i));
                valid.then(|| numbers.get(keys[i]).copied().flatten()).flatten()
            }
        }
    }

    /// Adds the occurrences of each id in the rows `range` to `counts`. `scratch` is a buffer for
    /// counts that has only zeros between calls.
    pub(super) fn count(
        &self,
        range: Range<usize>,
        counts: &mut ValueCounts,
        scratch: &mut Vec<u32>,
    ) {
        match self {
            Self::Nothing => {}
            Self::U8(a) => count_small(a, range, counts, scratch, usize::from, |v| v as u64),
            Self::U16(a) => count_small(a, range, counts, scratch, usize::from, |v| v as u64),
            Self::I8(a) => {
                let place = |v: i8| usize::from(v.cast_unsigned());
                count_small(a, range, counts, scratch, place, to_byte_value);
            }
            Self::I16(a) => {
                let place = |v: i16| usize::from(v.cast_unsigned());
                count_small(a, range, counts, scratch, place, to_short_value);
            }
            Self::Keys { keys, nulls, numbers } => {
                scratch.resize(numbers.len().max(scratch.len()), 0);
                let mut new = Vec::new();
                for i in range {
                    if nulls.as_ref().is_none_or(|n| n.is_valid(i)) {
                        let n = &mut scratch[keys[i]];
                        if *n == 0 {
                            new.push(keys[i]);
                        }
                        *n += 1;
                    }
                }
                for key in new {
                    let n = std::mem::take(&mut scratch[key]);
                    if let Some(id) = numbers[key] {
                        counts.add(id, u64::from(n));
                    }
                }
            }
            _ => range.filter_map(|i| self.get_bits(i)).for_each(|id| counts.add(id, 1)),
        }
    }
}

/// Returns the id of the signed 8-bit value whose bits are `place`: the value, sign-extended to 64
/// bits. For 255, it is the id of -1.
#[expect(clippy::cast_possible_truncation, reason = "the index came from 8 bits")]
#[expect(clippy::cast_sign_loss, reason = "bits of a signed number")]
fn to_byte_value(place: usize) -> u64 {
    i64::from((place as u8).cast_signed()) as u64
}

#[expect(clippy::cast_possible_truncation, reason = "the index came from 16 bits")]
#[expect(clippy::cast_sign_loss, reason = "bits of a signed number")]
fn to_short_value(place: usize) -> u64 {
    i64::from((place as u16).cast_signed()) as u64
}

/// Counts values of at most 16 bits. `table` has one count per possible value, at the index that
/// `place` returns for the value; `id` converts this index to the id of the value in `counts`.
fn count_small<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    range: Range<usize>,
    counts: &mut ValueCounts,
    table: &mut Vec<u32>,
    place: impl Fn(T::Native) -> usize,
    id: impl Fn(usize) -> u64,
) {
    table.resize(table.len().max(1 << 16), 0);
    let values = &array.values()[range.clone()];
    // A 32-bit count cannot overflow, because a batch has fewer than 2^32 values.
    if array.null_count() == 0 && values.len() >= MIN_SCANNED_VALUES {
        for v in values {
            table[place(*v)] += 1;
        }
        for (at, n) in table.iter_mut().enumerate().filter(|(_, n)| **n > 0) {
            counts.add(id(at), u64::from(std::mem::take(n)));
        }
        return;
    }
    let mut new = Vec::new();
    for (i, v) in range.zip(values) {
        if array.is_valid(i) {
            let at = place(*v);
            if table[at] == 0 {
                new.push(at);
            }
            table[at] += 1;
        }
    }
    for at in new {
        counts.add(id(at), u64::from(std::mem::take(&mut table[at])));
    }
}

trait ToBits: Copy {
    fn to_bits(self) -> u64;
}

macro_rules! bits {
    (signed $($t:ty),*; unsigned $($u:ty),*) => {
        $(impl ToBits for $t {
            fn to_bits(self) -> u64 {
                i64::from(self).cast_unsigned()
            }
        })*
        $(impl ToBits for $u {
            fn to_bits(self) -> u64 {
                u64::from(self)
            }
        })*
    };
}
bits!(signed i8, i16, i32, i64; unsigned u8, u16, u32, u64);

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{DictionaryArray, Float64Array, Int16Array, StringArray};

    fn counted(array: ArrayRef, t: &DataType) -> Vec<(String, u64)> {
        let mut values = ValueNumbers::new(t).unwrap();
        let mut counts = ValueCounts::default();
        let mut scratch = Vec::new();
        let ids = values.number_batch(&array).unwrap();
        ids.count(0..array.len(), &mut counts, &mut scratch);
        assert!(scratch.iter().all(|n| *n == 0));
        let mut all: Vec<_> = counts.iter().collect();
        all.sort_by(|a, b| values.compare_values(a.0, b.0));
        let shown =
            values.decode_values(&all.iter().map(|(id, _)| *id).collect::<Vec<_>>()).unwrap();
        assert_eq!(shown.data_type(), t);
        let text = cast(&shown, &DataType::Utf8).unwrap();
        let text = text.as_string::<i32>();
        all.iter().enumerate().map(|(i, (_, n))| (text.value(i).to_string(), *n)).collect()
    }

    #[test]
    fn signs_keep_their_order_and_nulls_do_not_count() {
        let a: ArrayRef = Arc::new(Int16Array::from(vec![Some(-3), None, Some(7), Some(-3)]));
        let expected = [("-3".to_string(), 2), ("7".to_string(), 1)];
        assert_eq!(counted(Arc::clone(&a), &DataType::Int16), expected);
        for t in [DataType::Int8, DataType::Int32, DataType::Int64] {
            assert_eq!(counted(cast(&a, &t).unwrap(), &t), expected, "{t}");
        }
    }

    #[test]
    fn many_small_values_are_counted_in_a_table() {
        let values = (0..100_000i32).map(|i| i16::try_from(i % 5 - 2).unwrap());
        let a = Int16Array::from_iter_values(values);
        let all = counted(Arc::new(a), &DataType::Int16);
        assert_eq!(
            all.iter().map(|(v, _)| v.as_str()).collect::<Vec<_>>(),
            ["-2", "-1", "0", "1", "2"]
        );
        assert!(all.iter().all(|(_, n)| *n == 20_000));
    }

    #[test]
    fn texts_and_dictionaries_are_the_same_values() {
        let texts = vec![Some("b"), None, Some("a"), Some("b")];
        let expected = [("a".to_string(), 1), ("b".to_string(), 2)];
        assert_eq!(counted(Arc::new(StringArray::from(texts.clone())), &DataType::Utf8), expected);
        let dictionary: DictionaryArray<Int8Type> = texts.into_iter().collect();
        assert_eq!(counted(Arc::new(dictionary), &DataType::Utf8), expected);
        let nan = counted(
            Arc::new(Float64Array::from(vec![f64::NAN, 1.0, f64::NAN])),
            &DataType::Float64,
        );
        assert_eq!(nan, [("1.0".to_string(), 1), ("NaN".to_string(), 2)]);
    }

    #[test]
    fn ranges_are_taken_where_they_are() {
        let array: ArrayRef = Arc::new(UInt64Array::from(vec![9, u64::MAX, 9, 1]));
        let mut values = ValueNumbers::new(&DataType::UInt64).unwrap();
        let mut counts = ValueCounts::default();
        values.number_batch(&array).unwrap().count(1..3, &mut counts, &mut Vec::new());
        let mut all: Vec<_> = counts.iter().collect();
        all.sort_unstable();
        assert_eq!(all, [(9, 1), (u64::MAX, 1)]);
    }
}
