//! Contiguous ranges of flat arrays, one after the other.

use std::ops::Range;

use arrow::array::{
    Array, ArrayData, ArrayRef, BooleanBufferBuilder, MutableArrayData, make_array,
};
use arrow::buffer::{BooleanBuffer, MutableBuffer, NullBuffer};

use crate::error::{Error, Result};

/// Ranges without the empty ones, those that touch made one.
pub(crate) fn joined(ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
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

pub(crate) fn total(ranges: &[Range<usize>]) -> Result<usize> {
    ranges
        .iter()
        .try_fold(0usize, |sum, r| sum.checked_add(r.len()))
        .ok_or_else(|| Error::invalid("more elements than can be counted"))
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

/// The values at `ranges`, one range after the other.
pub(crate) fn gather_values(values: &ArrayRef, ranges: &[Range<usize>]) -> Result<ArrayRef> {
    match ranges {
        [] => return Ok(values.slice(0, 0)),
        [r] => return Ok(values.slice(r.start, r.len())),
        _ => {}
    }
    let len = total(ranges)?;
    let data = values.to_data();
    if let Some(width) = values.data_type().primitive_width() {
        let bytes = len
            .checked_mul(width)
            .ok_or_else(|| Error::invalid("more bytes of leaves than can be addressed"))?;
        let source = &data.buffers()[0].as_slice()[data.offset() * width..];
        let mut out = MutableBuffer::with_capacity(bytes);
        for r in ranges {
            out.extend_from_slice(&source[r.start * width..r.end * width]);
        }
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
