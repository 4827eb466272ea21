//! Ranges of rows: checks, merges, and gathers of lists and values by ranges.

use std::ops::Range;
#[cfg(feature = "parquet")]
use std::sync::Arc;

#[cfg(feature = "parquet")]
use arrow::array::AsArray;
use arrow::array::{
    Array, ArrayData, ArrayRef, BooleanBufferBuilder, MutableArrayData, OffsetSizeTrait, make_array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};

use super::prefetch::gather_bytes;
use super::{Layout, Offsets};
use crate::error::{Error, Result};
use crate::with_offsets;

/// Drops empty ranges and merges adjacent ones: `0..2, 2..5, 7..8` become `0..5, 7..8`.
pub(crate) fn merge_ranges(ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::with_capacity(ranges.size_hint().0);
    for r in ranges {
        match out.last_mut() {
            _ if r.is_empty() => {}
            Some(last) if last.end == r.start => last.end = r.end,
            _ => out.push(r),
        }
    }
    out
}

/// Returns an error if a range exceeds the `len` rows, or starts after its own end.
pub(crate) fn check_row_range(rows: &Range<usize>, len: usize) -> Result<()> {
    if rows.start > rows.end || rows.end > len {
        return Err(Error::OutOfRange {
            axis: 0,
            index: i64::try_from(rows.start.max(rows.end)).unwrap_or(i64::MAX),
            size: len,
        });
    }
    Ok(())
}

pub(crate) fn count_values<'a>(
    ranges: impl IntoIterator<Item = &'a Range<usize>>,
) -> Result<usize> {
    ranges
        .into_iter()
        .try_fold(0usize, |sum, r| sum.checked_add(r.len()))
        .ok_or_else(|| Error::invalid("more than 2^64 - 1 elements are selected; select fewer"))
}

pub(crate) fn gather_bits(
    bits: &BooleanBuffer,
    ranges: &[Range<usize>],
    len: usize,
) -> BooleanBuffer {
    let mut out = BooleanBufferBuilder::new(len);
    for r in ranges {
        out.append_packed_range(r.start + bits.offset()..r.end + bits.offset(), bits.values());
    }
    out.finish()
}

/// Returns the layout of the selected lists of `layout`. `lists` has the ranges of the selected
/// lists, and `children` the ranges of the elements of these lists. The result for a single range
/// shares the offsets of `layout`.
pub(crate) fn gather_layout(
    layout: &Layout,
    lists: &[Range<usize>],
    children: &[Range<usize>],
) -> Result<Layout> {
    fn gather_offsets<O: OffsetSizeTrait>(
        o: &[O],
        ranges: &[Range<usize>],
        lists: usize,
    ) -> OffsetBuffer<O> {
        let mut out = Vec::with_capacity(lists + 1);
        let mut end = O::zero();
        out.push(end);
        for r in ranges {
            let shift = end - o[r.start];
            out.extend(o[r.start + 1..=r.end].iter().map(|x| *x + shift));
            end = o[r.end] + shift;
        }
        OffsetBuffer::new(out.into())
    }
    match lists {
        [] => return Ok(layout.slice(0, 0)),
        [r] => return Ok(layout.slice(r.start, r.len())),
        _ => {}
    }
    let (count, children) = (count_values(lists)?, count_values(children)?);
    let offsets = match layout {
        Layout::Uniform { size, .. } => return Ok(Layout::Uniform { size: *size, lists: count }),
        Layout::Ragged(offsets) => offsets,
    };
    if matches!(offsets, Offsets::I32(_)) && i32::try_from(children).is_err() {
        let lengths = lists.iter().flat_map(|r| r.clone()).map(|i| offsets.length(i));
        return Ok(Offsets::from_lengths(lengths)?.into());
    }
    Ok(with_offsets!(offsets, o => Offsets::from(gather_offsets(o, lists, count)).into()))
}

pub(crate) fn gather_values(values: &ArrayRef, ranges: &[Range<usize>]) -> Result<ArrayRef> {
    match ranges {
        [] => return Ok(values.slice(0, 0)),
        [r] => return Ok(values.slice(r.start, r.len())),
        _ => {}
    }
    let len = count_values(ranges)?;
    let data = values.to_data();
    if let Some(width) = values.data_type().primitive_width() {
        let source = &data.buffers()[0].as_slice()[data.offset() * width..];
        let out = gather_bytes(ranges.iter().map(|r| (source, r.start..r.end)), width, len)?;
        let nulls = values.nulls().map(|n| NullBuffer::new(gather_bits(n.inner(), ranges, len)));
        let data = ArrayData::builder(data.data_type().clone())
            .len(len)
            .add_buffer(out.into())
            .nulls(nulls)
            .build()?;
        return Ok(make_array(data));
    }
    let mut out = MutableArrayData::new(vec![&data], false, len);
    for r in ranges {
        out.try_extend(0, r.start, r.end)?;
    }
    Ok(make_array(out.freeze()))
}

#[cfg(feature = "parquet")]
/// Concatenates ranges of elements of several arrays of one type. Each of `parts` is the index of
/// an array in `arrays` and a range of elements of this array. If all arrays are dictionary arrays
/// that share one values array, the result is a dictionary array over this values array.
pub(crate) fn gather_parts(
    arrays: &[&ArrayRef],
    parts: &[(usize, Range<usize>)],
) -> Result<ArrayRef> {
    let [first, rest @ ..] = arrays else {
        return Err(Error::invalid("there are no arrays to gather values from; give at least one"));
    };
    if rest.is_empty() {
        let ranges: Vec<Range<usize>> = merge_ranges(parts.iter().map(|(_, r)| r.clone()));
        return gather_values(first, &ranges);
    }
    if let Some(values) = find_shared_values(arrays) {
        let keys: Vec<ArrayRef> =
            arrays.iter().map(|a| a.as_any_dictionary().keys().slice(0, a.len())).collect();
        let keys = gather_parts(&keys.iter().collect::<Vec<_>>(), parts)?;
        let data = keys.to_data().into_builder().data_type(first.data_type().clone());
        return Ok(make_array(data.child_data(vec![values.to_data()]).build()?));
    }
    let len = count_values(parts.iter().map(|(_, range)| range))?;
    let data: Vec<ArrayData> = arrays.iter().map(|a| a.to_data()).collect();
    let Some(width) = first.data_type().primitive_width() else {
        let mut out = MutableArrayData::new(data.iter().collect(), false, len);
        for (array, r) in parts {
            out.try_extend(*array, r.start, r.end)?;
        }
        return Ok(make_array(out.freeze()));
    };
    let sources: Vec<&[u8]> =
        data.iter().map(|d| &d.buffers()[0].as_slice()[d.offset() * width..]).collect();
    let parts_of = parts.iter().map(|(array, r)| (sources[*array], r.start..r.end));
    let out = gather_bytes(parts_of, width, len)?;
    let nulls = arrays.iter().any(|a| a.null_count() > 0).then(|| {
        let mut out = BooleanBufferBuilder::new(len);
        for (array, r) in parts {
            match arrays[*array].nulls().map(NullBuffer::inner) {
                Some(bits) => out.append_packed_range(
                    r.start + bits.offset()..r.end + bits.offset(),
                    bits.values(),
                ),
                None => out.append_n(r.len(), true),
            }
        }
        NullBuffer::new(out.finish())
    });
    let data = ArrayData::builder(first.data_type().clone())
        .len(len)
        .add_buffer(out.into())
        .nulls(nulls)
        .build()?;
    Ok(make_array(data))
}

#[cfg(feature = "parquet")]
fn find_shared_values<'a>(arrays: &[&'a ArrayRef]) -> Option<&'a ArrayRef> {
    let first = arrays.first()?.as_any_dictionary_opt()?.values();
    let same =
        |a: &&ArrayRef| a.as_any_dictionary_opt().is_some_and(|d| Arc::ptr_eq(d.values(), first));
    arrays.iter().all(same).then_some(first)
}

#[cfg(all(test, feature = "parquet"))]
mod tests {
    use super::*;
    use arrow::array::{BooleanArray, DictionaryArray, Int32Array, StringArray};
    use arrow::datatypes::UInt32Type;

    #[test]
    fn parts_of_several_arrays_follow_each_other() {
        let parts = [(1, 1..3), (0, 0..1), (1, 0..0), (0, 2..4), (1, 0..1)];
        let check = |a: ArrayRef, b: ArrayRef, expected: ArrayRef| {
            let out = gather_parts(&[&a, &b], &parts).unwrap();
            assert_eq!(*out, *expected);
            out.to_data().validate_full().unwrap();
        };
        let ints = |v: &[Option<i32>]| Arc::new(Int32Array::from(v.to_vec())) as ArrayRef;
        let (a, b) = (
            ints(&[Some(9), Some(1), None, Some(3), Some(4)]).slice(1, 4),
            ints(&[Some(5), Some(6), Some(7)]),
        );
        check(a, b, ints(&[Some(6), Some(7), Some(1), Some(3), Some(4), Some(5)]));
        let texts = |v: &[Option<&str>]| Arc::new(StringArray::from(v.to_vec())) as ArrayRef;
        check(
            texts(&[Some("a"), None, Some("c"), None]),
            texts(&[Some("x"), None, Some("z")]),
            texts(&[None, Some("z"), Some("a"), Some("c"), None, Some("x")]),
        );
        let bits = |v: &[bool]| Arc::new(BooleanArray::from(v.to_vec())) as ArrayRef;
        check(
            bits(&[true, false, false, true]),
            bits(&[false, true, true]),
            bits(&[true, true, true, false, true, false]),
        );
        let values: ArrayRef = texts(&[Some("p"), Some("q")]);
        let dictionary = |keys: &[Option<u32>]| {
            let keys = keys.iter().copied().collect();
            DictionaryArray::<UInt32Type>::try_new(keys, Arc::clone(&values)).unwrap()
        };
        let (a, b) =
            (dictionary(&[Some(0), Some(1), None, Some(1)]), dictionary(&[Some(1), None, Some(0)]));
        let (a, b): (ArrayRef, ArrayRef) = (Arc::new(a), Arc::new(b));
        let out = gather_parts(&[&a, &b], &parts).unwrap();
        let text = |a: &ArrayRef| a.to_data().buffers()[1].as_ptr();
        assert_eq!(text(out.as_any_dictionary().values()), text(&values));
        let expected = dictionary(&[None, Some(0), Some(0), None, Some(1), Some(1)]);
        assert_eq!(*out, expected);
        let one = gather_parts(&[&a], &[(0, 1..2), (0, 3..4)]).unwrap();
        assert_eq!(*one, dictionary(&[Some(1), Some(1)]));
    }
}
