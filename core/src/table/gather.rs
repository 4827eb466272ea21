//! Gathering of elements of an axis with everything below them; the base of taking, slicing and
//! indexing.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanBufferBuilder, MutableArrayData, OffsetSizeTrait, UInt64Array,
    make_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::take;

use super::{Axis, Column, RaggedTable};
use crate::array::{Layout, Offsets};
use crate::error::{Error, Result};
use crate::with_offsets;

/// Elements selected from an axis, in order; elements may repeat.
#[derive(Clone, Debug)]
pub(super) enum Picks {
    /// Ranges; none is empty and no two adjacent ones touch.
    Ranges(Vec<Range<usize>>),
    /// Single positions; `None` yields a null.
    Holes(Vec<Option<usize>>),
}

impl Picks {
    pub(super) fn from_ranges(ranges: impl Iterator<Item = Range<usize>>) -> Self {
        Self::Ranges(merge_ranges(ranges))
    }

    pub(super) fn from_positions(positions: Vec<Option<usize>>) -> Self {
        if positions.contains(&None) {
            return Self::Holes(positions);
        }
        Self::from_ranges(positions.iter().flatten().map(|p| *p..p + 1))
    }

    fn len(&self) -> usize {
        match self {
            Self::Ranges(r) => r.iter().map(Range::len).sum(),
            Self::Holes(p) => p.len(),
        }
    }

    /// Returns the children of the selected lists as a selection of the next axis.
    fn select_children(&self, layout: &Layout) -> Self {
        match self {
            Self::Ranges(r) => Self::from_ranges(r.iter().map(|r| layout.ranges(r.clone()))),
            Self::Holes(p) => Self::from_ranges(p.iter().flatten().map(|p| layout.range(*p))),
        }
    }

    /// Returns the layout of the selected lists; holes become empty lists.
    fn select_layout(&self, layout: &Layout) -> Result<Layout> {
        let positions = match self {
            Self::Ranges(r) => return gather_layout(layout, r),
            Self::Holes(p) => p,
        };
        lists_like(layout, positions.iter().map(|p| p.map_or(0, |p| layout.length(p))))
    }

    fn values(&self, values: &ArrayRef) -> Result<ArrayRef> {
        match self {
            Self::Ranges(r) => gather_values(values, r),
            Self::Holes(p) => {
                let indices: UInt64Array = p.iter().map(|p| p.map(|p| p as u64)).collect();
                Ok(take(values, &indices, None)?)
            }
        }
    }

    /// Returns the validity of the selected lists; holes are null.
    fn nulls(&self, nulls: Option<&NullBuffer>) -> Option<NullBuffer> {
        match self {
            Self::Ranges(r) => nulls.map(|n| gather_nulls(n, r)),
            Self::Holes(p) => Some(NullBuffer::from_iter(
                p.iter().map(|p| p.is_some_and(|p| nulls.is_none_or(|n| n.is_valid(p)))),
            )),
        }
    }
}

/// The parents that selected elements get.
#[derive(Clone, Debug)]
pub(super) enum Parents {
    /// The elements become the rows.
    Rows,
    /// One list for each element of the axis above.
    Lists(Layout),
    /// Each element replaces its parent on the axis above; the axis is dropped.
    Nothing,
}

impl RaggedTable {
    /// Selects elements of axis `axis` with everything below them. Further picks are for the axes
    /// that follow, with one element below each of the picks before; those axes are dropped, and
    /// their columns move to the first one.
    ///
    /// The caller makes layout and picks fit each other and the table; `Column` lengths are not
    /// checked here.
    pub(super) fn gather_axis(&self, axis: usize, over: Parents, picks: &[Picks]) -> Result<Self> {
        let merged = picks.len().saturating_sub(1);
        let Some(last) = picks.last() else { return Ok(self.clone()) };
        let (mut rows, mut axes) = (self.rows, self.axes[..axis].to_vec());
        let target = match over {
            Parents::Rows => {
                rows = picks[0].len();
                0
            }
            Parents::Lists(layout) => {
                if let Some(own) = axes.last_mut() {
                    own.layout = layout;
                }
                axis
            }
            Parents::Nothing => {
                axes.pop();
                axis.saturating_sub(1)
            }
        };
        // Picks of the deepest axis reached, followed by those of every axis below it.
        let mut below = vec![last.clone()];
        for inner in &self.axes[axis + merged..] {
            let lists = &below[below.len() - 1];
            let layout = lists.select_layout(&inner.layout)?;
            let next = lists.select_children(&inner.layout);
            axes.push(Axis { name: inner.name.clone(), parent: axes.len(), layout });
            below.push(next);
        }
        let columns = self
            .columns
            .iter()
            .map(|c| {
                let Some(depth) = c.axis().checked_sub(axis) else { return Ok(c.clone()) };
                let own = match depth.checked_sub(merged) {
                    Some(under) => &below[under],
                    None => &picks[depth],
                };
                let values = own.values(c.values())?;
                // Keep the lists above the target; those of dropped axes go with them.
                let mut nulls = c.list_nulls()[..target].to_vec();
                let lists = c.list_nulls().get(axis + merged..).unwrap_or_default();
                nulls.extend(lists.iter().zip(&below).map(|(n, p)| p.nulls(n.as_ref())));
                let axis = target + depth.saturating_sub(merged);
                Ok(Column::with_field(Arc::clone(c.field()), axis, values).with_list_nulls(nulls))
            })
            .collect::<Result<_>>()?;
        let (row_name, scalars) = (self.row_name.clone(), self.scalars.clone());
        Ok(Self { rows, row_name, axes, columns, scalars, point: self.point })
    }
}

/// Builds lists of these lengths, with offsets at least as wide as those of `like`.
pub(super) fn lists_like(
    like: &Layout,
    lengths: impl IntoIterator<Item = usize>,
) -> Result<Layout> {
    let offsets = Offsets::from_lengths(lengths)?;
    Ok(match like {
        Layout::Ragged(Offsets::I64(_)) => Offsets::I64(offsets.to_i64()).into(),
        _ => offsets.into(),
    })
}

/// Drops empty ranges and merges adjacent ones.
fn merge_ranges(ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for range in ranges.filter(|r| !r.is_empty()) {
        match out.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => out.push(range),
        }
    }
    out
}

fn gather_layout(layout: &Layout, lists: &[Range<usize>]) -> Result<Layout> {
    match lists {
        [] => return Ok(layout.slice(0, 0)),
        [one] => return Ok(layout.slice(one.start, one.len())),
        _ => {}
    }
    let number: usize = lists.iter().map(Range::len).sum();
    let offsets = match layout {
        Layout::Uniform { size, .. } => {
            size.checked_mul(number).ok_or_else(|| too_many_elements(number))?;
            return Ok(Layout::Uniform { size: *size, lists: number });
        }
        Layout::Ragged(offsets) => offsets,
    };
    let total = lists
        .iter()
        .try_fold(0usize, |sum, r| sum.checked_add(offsets.ranges(r.clone()).len()))
        .filter(|t| i64::try_from(*t).is_ok())
        .ok_or_else(|| too_many_elements(number))?;
    // Keep the width of the offsets unless the elements outgrow it.
    let narrow = matches!(offsets, Offsets::I32(_)) && i32::try_from(total).is_ok();
    Ok(if narrow {
        with_offsets!(offsets, o => Offsets::I32(shift_offsets::<_, i32>(o, lists, number))).into()
    } else {
        with_offsets!(offsets, o => Offsets::I64(shift_offsets::<_, i64>(o, lists, number))).into()
    })
}

fn too_many_elements(lists: usize) -> Error {
    Error::invalid(format!("the {lists} selected lists have more elements than fit 63 bits"))
}

/// Returns the offsets of the selected lists, from zero. The caller has checked that the last one
/// fits `B`.
fn shift_offsets<A: OffsetSizeTrait, B: OffsetSizeTrait>(
    offsets: &[A],
    lists: &[Range<usize>],
    number: usize,
) -> OffsetBuffer<B> {
    let mut out: Vec<B> = Vec::with_capacity(number + 1);
    let mut end = 0;
    out.push(B::usize_as(0));
    for range in lists {
        let base = offsets[range.start].as_usize();
        let ends = &offsets[range.start + 1..=range.end];
        out.extend(ends.iter().map(|o| B::usize_as(end + o.as_usize() - base)));
        end += offsets[range.end].as_usize() - base;
    }
    OffsetBuffer::new(out.into())
}

/// Concatenates the elements of these ranges.
fn gather_values(values: &ArrayRef, ranges: &[Range<usize>]) -> Result<ArrayRef> {
    match ranges {
        [] => return Ok(values.slice(0, 0)),
        [one] => return Ok(values.slice(one.start, one.len())),
        _ => {}
    }
    let total: usize = ranges.iter().map(Range::len).sum();
    // Copying a range has a fixed cost; short ranges are cheaper element by element.
    if total / ranges.len() < 8 {
        let indices: UInt64Array = ranges.iter().cloned().flatten().map(|i| i as u64).collect();
        return Ok(take(values, &indices, None)?);
    }
    let data = values.to_data();
    let mut out = MutableArrayData::new(vec![&data], false, total);
    for range in ranges {
        out.try_extend(0, range.start, range.end)?;
    }
    Ok(make_array(out.freeze()))
}

fn gather_nulls(nulls: &NullBuffer, ranges: &[Range<usize>]) -> NullBuffer {
    if let [one] = ranges {
        return nulls.slice(one.start, one.len());
    }
    let mut bits = BooleanBufferBuilder::new(ranges.iter().map(Range::len).sum());
    for range in ranges {
        bits.append_buffer(&nulls.inner().slice(range.start, range.len()));
    }
    NullBuffer::new(bits.finish())
}
