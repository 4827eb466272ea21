//! Selects elements of an axis with all elements below them, for takes, filters and indexing.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt64Array};
use arrow::buffer::NullBuffer;
use arrow::compute::take;

use super::{Axis, Column, RaggedTable};
use crate::array::ranges::{self, gather_bits, gather_layout, merge_ranges};
use crate::array::{Layout, make_lists_like};
use crate::error::Result;

/// Elements selected from an axis, in order; elements may repeat.
#[derive(Clone, Debug)]
pub(super) enum PickedElements {
    /// Ranges of elements. Empty ranges are dropped, and adjacent ranges are merged.
    Ranges(Vec<Range<usize>>),
    /// Indices of elements. `None` selects a null or, if the elements are lists, an empty list.
    Holes(Vec<Option<usize>>),
}

impl PickedElements {
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

    fn select_children(&self, layout: &Layout) -> Self {
        match self {
            Self::Ranges(r) => Self::from_ranges(r.iter().map(|r| layout.ranges(r.clone()))),
            Self::Holes(p) => Self::from_ranges(p.iter().flatten().map(|p| layout.range(*p))),
        }
    }

    fn select_layout(&self, layout: &Layout, children: &Self) -> Result<Layout> {
        match (self, children) {
            (Self::Ranges(r), Self::Ranges(below)) => gather_layout(layout, r, below),
            (Self::Ranges(r), Self::Holes(_)) => {
                make_lists_like(layout, r.iter().cloned().flatten().map(|i| layout.length(i)))
            }
            (Self::Holes(p), _) => {
                make_lists_like(layout, p.iter().map(|p| p.map_or(0, |p| layout.length(p))))
            }
        }
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

    fn nulls(&self, nulls: Option<&NullBuffer>) -> Option<NullBuffer> {
        match self {
            Self::Ranges(r) => nulls.map(|n| match &r[..] {
                [one] => n.slice(one.start, one.len()),
                _ => NullBuffer::new(gather_bits(n.inner(), r, self.len())),
            }),
            Self::Holes(p) => Some(NullBuffer::from_iter(
                p.iter().map(|p| p.is_some_and(|p| nulls.is_none_or(|n| n.is_valid(p)))),
            )),
        }
    }
}

/// How [`RaggedTable::gather_axis`] places the selected elements of an axis in the result.
#[derive(Clone, Debug)]
pub(super) enum PickedParents {
    Rows,
    /// The selected elements form the lists of this layout, one list per element of the axis above.
    Lists(Layout),
    /// Each selected element replaces its parent on the axis above, and the lower axis is dropped.
    Nothing,
}

impl RaggedTable {
    /// Selects elements of axis `axis` with everything below them. `picks[0]` selects elements of
    /// `axis`; `over` says whether they become rows, become lists or replace their parents. For
    /// each of these elements, `picks[1]` selects one element of its list on axis `axis + 1`,
    /// `picks[2]` one element of that element's list on axis `axis + 2`, and so on. The axes after
    /// `axis` to which `picks` applies are dropped, and their columns move to `axis`. The caller
    /// ensures that all indices exist, and that a layout in `over` has as many elements as
    /// `picks[0]`.
    pub(super) fn gather_axis(
        &self,
        axis: usize,
        over: PickedParents,
        picks: &[PickedElements],
    ) -> Result<Self> {
        let merged = picks.len().saturating_sub(1);
        let Some(last) = picks.last() else { return Ok(self.clone()) };
        let (mut rows, mut axes) = (self.rows, self.axes[..axis].to_vec());
        let target = match over {
            PickedParents::Rows => {
                rows = picks[0].len();
                0
            }
            PickedParents::Lists(layout) => {
                if let Some(own) = axes.last_mut() {
                    own.layout = layout;
                }
                axis
            }
            PickedParents::Nothing => {
                axes.pop();
                axis.saturating_sub(1)
            }
        };
        // `below[k]` selects elements of axis `axis + merged + k`; the `merged` axes are dropped.
        let mut below = vec![last.clone()];
        for inner in &self.axes[axis + merged..] {
            let lists = &below[below.len() - 1];
            let next = lists.select_children(&inner.layout);
            let layout = lists.select_layout(&inner.layout, &next)?;
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
                // Keep the validity of the lists above `target` and below the dropped axes.
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

fn gather_values(values: &ArrayRef, ranges: &[Range<usize>]) -> Result<ArrayRef> {
    match ranges {
        [] => return Ok(values.slice(0, 0)),
        [one] => return Ok(values.slice(one.start, one.len())),
        _ => {}
    }
    let total: usize = ranges.iter().map(Range::len).sum();
    // Copying a range has a fixed cost, so values are copied one by one if the ranges are short on
    // average.
    if total / ranges.len() < 8 {
        let indices: UInt64Array = ranges.iter().cloned().flatten().map(|i| i as u64).collect();
        return Ok(take(values, &indices, None)?);
    }
    ranges::gather_values(values, ranges)
}
