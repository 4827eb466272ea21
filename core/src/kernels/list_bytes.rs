//! Lists as bytes, by which rows are grouped: equal lists have equal bytes.
//!
//! A list that is NULL is the byte 0. Another list is the byte 1, the number of its elements, and
//! the elements. Inner lists have the same form. The innermost elements begin with a byte that says
//! whether any of them is NULL; if so, one byte per element says whether it is valid. Their values
//! follow, and those of NULL are zero.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, LargeBinaryArray, LargeStringArray, NullBufferBuilder,
    make_array,
};
use arrow::buffer::{Buffer, MutableBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::DataType;

use crate::array::{ListAxis, Offsets, RaggedArray, leaf_type, list_depth};
use crate::error::{Error, Result};

/// Number of bytes of a list in addition to its values: a flag, the number of elements, and a flag.
const LIST_BYTES: usize = 10;

/// Returns whether [`encode_lists`] accepts lists of this type: lists, at any depth, of numbers,
/// times, strings or booleans.
pub fn has_byte_form(data_type: &DataType) -> bool {
    list_depth(data_type) > 0 && find_stored_type(leaf_type(data_type)).is_some()
}

/// Returns the type to which the innermost elements of lists are cast before they become bytes, or
/// `None` if their type has no form as bytes.
fn find_stored_type(leaf: &DataType) -> Option<DataType> {
    match leaf {
        DataType::Boolean => Some(DataType::UInt8),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(DataType::LargeUtf8),
        other => other.primitive_width().map(|_| other.clone()),
    }
}

fn choose_stored_type(data_type: &DataType) -> Result<DataType> {
    let stored = find_stored_type(leaf_type(data_type)).filter(|_| list_depth(data_type) > 0);
    stored.ok_or_else(|| {
        Error::type_of(
            "internal error, please report it: the lists to convert to bytes",
            "lists of numbers, times, strings or booleans",
            data_type,
        )
    })
}

fn cast_leaves(leaves: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    match leaves.data_type() == to {
        true => Ok(Arc::clone(leaves)),
        false => Ok(cast(leaves, to)?),
    }
}

/// Returns the bytes of each list. Two lists have the same bytes if they are equal, where NULL
/// equals NULL, and floats are equal if their bits are.
///
/// # Errors
/// If the type is not one of [`has_byte_form`].
pub fn encode_lists(lists: &ArrayRef) -> Result<LargeBinaryArray> {
    let stored = choose_stored_type(lists.data_type())?;
    let lists = RaggedArray::try_from_arrow(lists)?;
    let leaves = LeafBytes::new(cast_leaves(lists.leaves(), &stored)?);
    let size = lists.len().saturating_mul(LIST_BYTES).saturating_add(leaves.count_fixed_bytes());
    let mut bytes = Vec::with_capacity(size);
    let mut lengths = Vec::with_capacity(lists.len());
    for row in 0..lists.len() {
        let start = bytes.len();
        append_list(lists.axes(), row, &leaves, &mut bytes);
        lengths.push(bytes.len() - start);
    }
    let offsets = OffsetBuffer::<i64>::from_lengths(lengths);
    Ok(LargeBinaryArray::try_new(offsets, Buffer::from_vec(bytes), None)?)
}

/// Appends the list `at` of the first of `axes`, whose elements are on the next axis.
fn append_list(axes: &[ListAxis], at: usize, leaves: &LeafBytes, bytes: &mut Vec<u8>) {
    let [axis, inner @ ..] = axes else { return };
    let is_valid = axis.nulls().is_none_or(|nulls| nulls.is_valid(at));
    bytes.push(u8::from(is_valid));
    if !is_valid {
        return;
    }
    let elements = axis.layout().range(at);
    append_count(elements.len(), bytes);
    match inner {
        [] => leaves.append_range(elements, bytes),
        _ => elements.for_each(|element| append_list(inner, element, leaves, bytes)),
    }
}

fn append_count(count: usize, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&(count as u64).to_le_bytes());
}

/// The innermost elements of lists: strings with 64-bit offsets, or values of fixed width.
struct LeafBytes {
    leaves: ArrayRef,
    /// The bytes of all values, and the number of bytes per value. `None` for strings.
    fixed: Option<(Buffer, usize)>,
}

impl LeafBytes {
    fn new(leaves: ArrayRef) -> Self {
        let fixed = leaves.data_type().primitive_width().map(|width| {
            let data = leaves.to_data();
            (data.buffers()[0].slice(data.offset() * width), width)
        });
        Self { leaves, fixed }
    }

    fn count_fixed_bytes(&self) -> usize {
        let width = self.fixed.as_ref().map_or(0, |(_, width)| *width);
        self.leaves.len().saturating_mul(width)
    }

    fn append_range(&self, range: Range<usize>, bytes: &mut Vec<u8>) {
        let nulls = self.leaves.nulls().map(|nulls| nulls.slice(range.start, range.len()));
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        bytes.push(u8::from(nulls.is_some()));
        if let Some(nulls) = &nulls {
            bytes.extend(nulls.iter().map(u8::from));
        }
        match (&self.fixed, &nulls) {
            (Some((values, width)), None) => {
                bytes.extend_from_slice(&values[range.start * width..range.end * width]);
            }
            (Some((values, width)), Some(nulls)) => {
                for (leaf, is_valid) in range.zip(nulls.iter()) {
                    match is_valid {
                        true => bytes.extend_from_slice(&values[leaf * width..(leaf + 1) * width]),
                        false => bytes.resize(bytes.len() + width, 0),
                    }
                }
            }
            (None, _) => append_texts(self.leaves.as_string::<i64>(), range, bytes),
        }
    }
}

fn append_texts(texts: &LargeStringArray, range: Range<usize>, bytes: &mut Vec<u8>) {
    for leaf in range {
        let text = if texts.is_valid(leaf) { texts.value(leaf) } else { "" };
        append_count(text.len(), bytes);
        bytes.extend_from_slice(text.as_bytes());
    }
}

/// Returns the lists of type `data_type` whose bytes [`encode_lists`] returned. NULL becomes a NULL
/// list.
///
/// # Errors
/// If the type is not one of [`has_byte_form`], or the bytes are not those of such lists.
pub fn decode_lists(keys: &LargeBinaryArray, data_type: &DataType) -> Result<ArrayRef> {
    let stored = choose_stored_type(data_type)?;
    let levels = (0..list_depth(data_type)).map(|_| LevelParts::default()).collect();
    let mut lists = ListParts { levels, leaves: LeafParts::new(&stored) };
    for key in keys {
        let mut rest = key.unwrap_or(&[0]);
        lists.read_list(0, &mut rest)?;
        if !rest.is_empty() {
            return Err(make_error());
        }
    }
    lists.build_lists(keys.len(), &stored, data_type)
}

struct LevelParts {
    lengths: Vec<usize>,
    nulls: NullBufferBuilder,
}

impl Default for LevelParts {
    fn default() -> Self {
        Self { lengths: Vec::new(), nulls: NullBufferBuilder::new(0) }
    }
}

/// Lists that are read from bytes.
struct ListParts {
    levels: Vec<LevelParts>,
    leaves: LeafParts,
}

impl ListParts {
    fn read_list(&mut self, level: usize, rest: &mut &[u8]) -> Result<()> {
        let is_valid = read_flag(rest)?;
        let count = if is_valid { read_count(rest)? } else { 0 };
        let parts = &mut self.levels[level];
        parts.lengths.push(count);
        parts.nulls.append(is_valid);
        if !is_valid {
            return Ok(());
        }
        if level + 1 == self.levels.len() {
            return self.leaves.read_values(count, rest);
        }
        (0..count).try_for_each(|_| self.read_list(level + 1, rest))
    }

    fn build_lists(self, rows: usize, stored: &DataType, data_type: &DataType) -> Result<ArrayRef> {
        let mut axes = Vec::with_capacity(self.levels.len());
        for mut level in self.levels {
            let offsets = Offsets::from_lengths(level.lengths)?;
            axes.push(ListAxis::try_new(offsets, level.nulls.finish())?);
        }
        let leaves = cast_leaves(&self.leaves.build_array(stored)?, leaf_type(data_type))?;
        RaggedArray::try_new(rows, axes, leaves)?.to_arrow_as(data_type)
    }
}

/// The innermost elements of lists that are read from bytes.
struct LeafParts {
    values: MutableBuffer,
    nulls: NullBufferBuilder,
    /// Number of bytes per value, or `None` for strings.
    width: Option<usize>,
    /// Number of bytes of each string.
    lengths: Vec<usize>,
}

impl LeafParts {
    fn new(data_type: &DataType) -> Self {
        Self {
            values: MutableBuffer::new(0),
            nulls: NullBufferBuilder::new(0),
            width: data_type.primitive_width(),
            lengths: Vec::new(),
        }
    }

    fn read_values(&mut self, count: usize, rest: &mut &[u8]) -> Result<()> {
        match read_flag(rest)? {
            true => take_bytes(rest, count)?.iter().for_each(|flag| self.nulls.append(*flag == 1)),
            false => self.nulls.append_n_non_nulls(count),
        }
        if let Some(width) = self.width {
            let size = count.checked_mul(width).ok_or_else(make_error)?;
            self.values.extend_from_slice(take_bytes(rest, size)?);
            return Ok(());
        }
        for _ in 0..count {
            let length = read_count(rest)?;
            self.values.extend_from_slice(take_bytes(rest, length)?);
            self.lengths.push(length);
        }
        Ok(())
    }

    fn build_array(mut self, data_type: &DataType) -> Result<ArrayRef> {
        let leaves = self.nulls.len();
        let nulls = self.nulls.finish();
        self.values.shrink_to_fit();
        let values = Buffer::from(self.values);
        if self.width.is_some() {
            let data = ArrayData::builder(data_type.clone()).len(leaves).nulls(nulls);
            return Ok(make_array(data.add_buffer(values).build()?));
        }
        let offsets = OffsetBuffer::<i64>::from_lengths(self.lengths);
        Ok(Arc::new(LargeStringArray::try_new(offsets, values, nulls)?))
    }
}

fn read_flag(rest: &mut &[u8]) -> Result<bool> {
    Ok(take_bytes(rest, 1)? == [1])
}

fn read_count(rest: &mut &[u8]) -> Result<usize> {
    let bytes = take_bytes(rest, size_of::<u64>())?;
    let bytes = <[u8; 8]>::try_from(bytes).map_err(|_| make_error())?;
    usize::try_from(u64::from_le_bytes(bytes)).map_err(|_| make_error())
}

fn take_bytes<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8]> {
    let bytes: &'a [u8] = rest;
    let (taken, left) = bytes.split_at_checked(count).ok_or_else(make_error)?;
    *rest = left;
    Ok(taken)
}

fn make_error() -> Error {
    Error::invalid("internal error: the bytes of a list are damaged; please report it")
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        BooleanArray, FixedSizeListArray, Float64Array, Int16Array, ListArray, StringArray,
        StringViewArray,
    };
    use arrow::buffer::NullBuffer;
    use arrow::datatypes::{Field, Float64Type};

    use super::*;

    fn assert_same(lists: ArrayRef) {
        for (start, rows) in [(0, lists.len()), (1, lists.len() - 1), (2, 0)] {
            let part = lists.slice(start, rows);
            let bytes = encode_lists(&part).unwrap();
            assert_eq!(bytes.null_count(), 0);
            let back = decode_lists(&bytes, part.data_type()).unwrap();
            back.to_data().validate_full().unwrap();
            assert_eq!(&back, &part);
        }
    }

    fn make_lists(lengths: &[usize], valid: &[bool], leaves: ArrayRef) -> ArrayRef {
        let item = Arc::new(Field::new_list_field(leaves.data_type().clone(), true));
        let offsets = OffsetBuffer::<i32>::from_lengths(lengths.iter().copied());
        let nulls = NullBuffer::from(valid.to_vec());
        Arc::new(ListArray::try_new(item, offsets, leaves, Some(nulls)).unwrap())
    }

    #[test]
    fn lists_of_each_form_are_the_same_after_a_round_trip() {
        let numbers = Int16Array::from(vec![Some(1), None, Some(-3), Some(4), None]);
        let flat = make_lists(&[2, 0, 0, 3], &[true, true, false, true], Arc::new(numbers));
        let nested = make_lists(&[1, 0, 3], &[true, false, true], Arc::clone(&flat));
        let texts = StringArray::from(vec![Some("a"), Some(""), None, Some("\u{e9}")]);
        let texts = make_lists(&[1, 2, 1], &[true, true, true], Arc::new(texts));
        let none = Int16Array::from(Vec::<i16>::new());
        let empty = make_lists(&[0, 0, 0], &[true, false, true], Arc::new(none));
        let item = Arc::new(Field::new_list_field(DataType::Float64, true));
        let pairs = Float64Array::from(vec![1.0, 2.0, 0.0, 0.0, 5.0, f64::INFINITY]);
        let nulls = NullBuffer::from(vec![true, false, true]);
        let pairs = FixedSizeListArray::try_new(item, 2, Arc::new(pairs), Some(nulls)).unwrap();
        let pairs: ArrayRef = Arc::new(pairs);
        let flags = BooleanArray::from(vec![Some(true), None, Some(false)]);
        let flags = make_lists(&[2, 0, 1], &[true, false, true], Arc::new(flags));
        let views = StringViewArray::from(vec![Some("a"), None, Some("a string of 22 letters")]);
        let views = make_lists(&[0, 1, 2], &[true, true, true], Arc::new(views));
        for lists in [flat, nested, texts, empty, pairs, flags, views] {
            assert_same(lists);
        }
    }

    #[test]
    fn only_equal_lists_have_equal_bytes() {
        let rows = [
            Some(vec![]),
            None,
            Some(vec![None]),
            Some(vec![Some(0.0)]),
            Some(vec![Some(0.0), None]),
            Some(vec![None, Some(0.0)]),
            Some(vec![Some(0.0), Some(0.0)]),
        ];
        let twice = rows.iter().chain(&rows).cloned();
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(twice));
        let bytes = encode_lists(&lists).unwrap();
        for left in 0..lists.len() {
            for right in 0..lists.len() {
                let same = left % rows.len() == right % rows.len();
                assert_eq!(bytes.value(left) == bytes.value(right), same, "{left} {right}");
            }
        }
    }

    #[test]
    fn values_below_null_do_not_count() {
        let nulls = Some(NullBuffer::from(vec![true, false, true, false]));
        let numbers = Int16Array::new(vec![7, 8, 7, 9].into(), nulls);
        let lists = make_lists(&[2, 2], &[true, true], Arc::new(numbers));
        let bytes = encode_lists(&lists).unwrap();
        assert_eq!(bytes.value(0), bytes.value(1));
    }

    #[test]
    fn bytes_that_end_early_are_an_error() {
        let numbers = Int16Array::from(vec![1, 2, 3]);
        let lists = make_lists(&[3], &[true], Arc::new(numbers));
        let bytes = encode_lists(&lists).unwrap();
        let whole = bytes.value(0);
        for length in 0..whole.len() {
            let cut = LargeBinaryArray::from_iter_values([&whole[..length]]);
            assert!(decode_lists(&cut, lists.data_type()).is_err(), "{length}");
        }
    }

    #[test]
    fn other_types_are_refused() {
        assert!(!has_byte_form(&DataType::Int16));
        assert!(!has_byte_form(&DataType::new_list(DataType::Binary, true)));
        let flat: ArrayRef = Arc::new(Int16Array::from(vec![1]));
        assert!(encode_lists(&flat).is_err());
    }
}
