//! Elements of an axis with everything below them: what taking, slicing and indexing come down to.

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

/// Some elements of an axis, in an order; they may come more than once.
#[derive(Clone, Debug)]
pub(super) enum Picks {
    /// Ranges, none empty, neighbours joined.
    Ranges(Vec<Range<usize>>),
    /// One by one; `None` where a null is wanted.
    Holes(Vec<Option<usize>>),
}

impl Picks {
    pub(super) fn ranges(ranges: impl Iterator<Item = Range<usize>>) -> Self {
        Self::Ranges(coalesced(ranges))
    }

    pub(super) fn positions(positions: Vec<Option<usize>>) -> Self {
        if positions.contains(&None) {
            return Self::Holes(positions);
        }
        Self::ranges(positions.iter().flatten().map(|p| *p..p + 1))
    }

    fn len(&self) -> usize {
        match self {
            Self::Ranges(r) => r.iter().map(Range::len).sum(),
            Self::Holes(p) => p.len(),
        }
    }

    /// The children of the elements, which are lists, as picks of the next axis.
    fn children(&self, layout: &Layout) -> Self {
        match self {
            Self::Ranges(r) => Self::ranges(r.iter().map(|r| layout.ranges(r.clone()))),
            Self::Holes(p) => Self::ranges(p.iter().flatten().map(|p| layout.range(*p))),
        }
    }

    /// The layout of the elements, which are lists; holes are lists without elements.
    fn layout(&self, layout: &Layout) -> Result<Layout> {
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

    /// The validity of the elements, which are lists; holes are null.
    fn nulls(&self, nulls: Option<&NullBuffer>) -> Option<NullBuffer> {
        match self {
            Self::Ranges(r) => nulls.map(|n| gather_nulls(n, r)),
            Self::Holes(p) => Some(NullBuffer::from_iter(
                p.iter().map(|p| p.is_some_and(|p| nulls.is_none_or(|n| n.is_valid(p)))),
            )),
        }
    }
}

/// What the elements picked stand under.
#[derive(Clone, Debug)]
pub(super) enum Over {
    /// They are the rows.
    Rows,
    /// Lists, one for each element of the axis above.
    Lists(Layout),
    /// One for each element of the axis above, whose place they take: the axis goes.
    Nothing,
}

impl RaggedTable {
    /// Elements of axis `axis` with all below them. The other picks are of the axes that follow, one
    /// element below each of the picks before: those axes go, and their columns join the first one.
    ///
    /// Layout and picks must fit each other and the table; that is checked where columns join.
    pub(super) fn gather(&self, axis: usize, over: Over, picks: &[Picks]) -> Result<Self> {
        let merged = picks.len().saturating_sub(1);
        let Some(last) = picks.last() else { return Ok(self.clone()) };
        let (mut rows, mut axes) = (self.rows, self.axes[..axis].to_vec());
        let target = match over {
            Over::Rows => {
                rows = picks[0].len();
                0
            }
            Over::Lists(layout) => {
                if let Some(own) = axes.last_mut() {
                    own.layout = layout;
                }
                axis
            }
            Over::Nothing => {
                axes.pop();
                axis.saturating_sub(1)
            }
        };
        // Picks of the deepest axis reached, then of every axis below it.
        let mut below = vec![last.clone()];
        for inner in &self.axes[axis + merged..] {
            let lists = &below[below.len() - 1];
            let layout = lists.layout(&inner.layout)?;
            let next = lists.children(&inner.layout);
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
                // Lists above the target stay; those of the axes that went are gone.
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

/// Lists of these lengths, with offsets at least as wide as those of `like`.
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

/// The ranges without the empty ones, neighbours joined.
fn coalesced(ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
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
            size.checked_mul(number).ok_or_else(|| too_many(number))?;
            return Ok(Layout::Uniform { size: *size, lists: number });
        }
        Layout::Ragged(offsets) => offsets,
    };
    let total = lists
        .iter()
        .try_fold(0usize, |sum, r| sum.checked_add(offsets.ranges(r.clone()).len()))
        .filter(|t| i64::try_from(*t).is_ok())
        .ok_or_else(|| too_many(number))?;
    // The kind of list stays what it was as long as it can hold the elements.
    let narrow = matches!(offsets, Offsets::I32(_)) && i32::try_from(total).is_ok();
    Ok(if narrow {
        with_offsets!(offsets, o => Offsets::I32(moved::<_, i32>(o, lists, number))).into()
    } else {
        with_offsets!(offsets, o => Offsets::I64(moved::<_, i64>(o, lists, number))).into()
    })
}

fn too_many(lists: usize) -> Error {
    Error::invalid(format!("the elements of {lists} lists taken do not fit 63 bits"))
}

/// Offsets of the lists taken, from zero. The caller has checked that the last one fits `B`.
fn moved<A: OffsetSizeTrait, B: OffsetSizeTrait>(
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

/// The elements of these ranges, one after the other.
fn gather_values(values: &ArrayRef, ranges: &[Range<usize>]) -> Result<ArrayRef> {
    match ranges {
        [] => return Ok(values.slice(0, 0)),
        [one] => return Ok(values.slice(one.start, one.len())),
        _ => {}
    }
    let total: usize = ranges.iter().map(Range::len).sum();
    // Copying a range has a price of its own; many short ones are cheaper element by element.
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
