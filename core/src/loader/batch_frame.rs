//! [`BatchFrame`]: the offsets of one batch, computed from the windows of its items.

use std::ops::Range;

use arrow::array::OffsetSizeTrait;

use super::facts_place::FactsPrefix;
use super::items::BatchItem;
use super::loader_source::LoaderSource;
use crate::array::Layout;
use crate::error::{Error, Result};
use crate::with_offsets;

/// The list offsets of a batch, and the indices of its elements in the shards. The elements of an
/// axis are numbered from 0 through the whole batch, not anew in each item. On each axis, the
/// elements of a [`BatchItem`] are contiguous in the batch and in the shard.
#[derive(Debug)]
pub(super) struct BatchFrame {
    /// `starts[d][i]` is the index, within its shard, of the first element of item `i` on axis `d`.
    pub(super) starts: Vec<Vec<usize>>,
    /// `rows[d][i]` is the number of elements of axis `d` before item `i`; the last entry of
    /// `rows[d]` is the number of all elements of this axis.
    pub(super) rows: Vec<Vec<u32>>,
    /// `offsets[d - 1]` has the offsets of the lists of axis `d` of the batch.
    pub(super) offsets: Vec<Vec<u32>>,
    /// For each item, the number of elements that are prepended to it to hold static facts. Empty
    /// if the source has no facts.
    before: Vec<FactsPrefix>,
}

impl BatchFrame {
    /// Computes the frame of `items` for the axes 0 to `depth`; also returns the items as a vector.
    /// Returns an error if an axis has more than 2^31 - 1 elements.
    pub(super) fn new(
        source: &LoaderSource,
        items: impl ExactSizeIterator<Item = BatchItem>,
        depth: usize,
    ) -> Result<(Self, Vec<BatchItem>)> {
        let n = items.len();
        let mut frame = Self {
            starts: vec![Vec::with_capacity(n); depth + 1],
            rows: vec![Vec::with_capacity(n + 1); depth + 1],
            offsets: vec![Vec::new(); depth],
            before: Vec::new(),
        };
        frame.rows.iter_mut().for_each(|r| r.push(0));
        frame.offsets.iter_mut().for_each(|o| o.push(0));
        let mut taken = Vec::with_capacity(n);
        for item in items {
            let mut elements = item.row..item.row + 1;
            let prefix = source.find_prefix(item.shard, item.row);
            if source.facts.is_some() {
                frame.before.push(prefix);
            }
            let mut end = check_count(taken.len() + 1, 0)?;
            for axis in 0..=depth {
                if axis > 0 {
                    let layout = &source.shards[item.shard].layouts[axis - 1];
                    let offsets = &mut frame.offsets[axis - 1];
                    elements = if axis == 1 {
                        let start = layout.range(item.row).start;
                        let events = start + item.events.start..start + item.events.end;
                        offsets.push(check_count(
                            find_last_offset(offsets) + prefix.elements + events.len(),
                            axis,
                        )?);
                        events
                    } else {
                        if let Some(facts) = prefix.list {
                            offsets.push(check_count(find_last_offset(offsets) + facts, axis)?);
                        }
                        push_lists(layout, elements, offsets, axis)?
                    };
                    end = check_count(find_last_offset(offsets), axis)?;
                }
                frame.starts[axis].push(elements.start);
                frame.rows[axis].push(end);
            }
            taken.push(item);
        }
        Ok((frame, taken))
    }

    pub(super) fn items(&self) -> usize {
        self.starts[0].len()
    }

    pub(super) fn count_elements(&self, axis: usize) -> usize {
        find_last_offset(&self.rows[axis])
    }

    /// Returns the indices, within the batch, of the elements of an item on axis `axis`.
    pub(super) fn locate_elements(&self, axis: usize, item: usize) -> Range<usize> {
        self.rows[axis][item] as usize..self.rows[axis][item + 1] as usize
    }

    pub(super) fn count_facts_before(&self, axis: usize, item: usize) -> usize {
        match (axis, self.before.get(item)) {
            (1, Some(prefix)) => prefix.elements,
            (2, Some(prefix)) => prefix.list.unwrap_or(0),
            _ => 0,
        }
    }

    /// Returns the indices in the shard of an item's elements on `axis`, without prepended facts.
    pub(super) fn find_shard_range(&self, axis: usize, item: usize) -> Range<usize> {
        let start = self.starts[axis][item];
        start..start + self.locate_elements(axis, item).len() - self.count_facts_before(axis, item)
    }

    pub(super) fn find_longest_list(&self, axis: usize) -> usize {
        find_longest_list(&self.offsets[axis - 1])
    }

    pub(super) fn find_longest_item(&self, axis: usize) -> usize {
        find_longest_list(&self.rows[axis])
    }
}

fn find_longest_list(offsets: &[u32]) -> usize {
    offsets.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0) as usize
}

fn find_last_offset(offsets: &[u32]) -> usize {
    offsets.last().copied().unwrap_or(0) as usize
}

/// Converts a number of elements to `u32`, or returns an error if it exceeds 31 bits.
fn check_count(n: usize, axis: usize) -> Result<u32> {
    i32::try_from(n).map(i32::unsigned_abs).map_err(|_| {
        Error::invalid(format!(
            "the batch has at least {n} elements on axis {axis}, more than the maximum of 2^31 - 1; use smaller batches, or windows that limit the length of items"
        ))
    })
}

/// Appends the offsets of the lists `lists` of `layout` to `out`, so that they continue from the
/// last offset in `out`. Returns the range of the elements of these lists in the shard, or an error
/// if the last offset exceeds 2^31 - 1.
fn push_lists(
    layout: &Layout,
    lists: Range<usize>,
    out: &mut Vec<u32>,
    axis: usize,
) -> Result<Range<usize>> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "no larger than the sum, which was checked"
    )]
    fn push_ends<O: OffsetSizeTrait>(o: &[O], end: u32, out: &mut Vec<u32>) {
        let first = o[0].as_usize();
        out.extend(o[1..].iter().map(|x| end + (x.as_usize() - first) as u32));
    }
    let elements = layout.ranges(lists.clone());
    let end = find_last_offset(out);
    check_count(end + elements.len(), axis)?;
    let end = check_count(end, axis)?;
    match layout {
        Layout::Ragged(offsets) => {
            with_offsets!(offsets, o => push_ends(&o[lists.start..=lists.end], end, out));
        }
        Layout::Uniform { size, .. } => {
            let size = check_count(*size, axis)?;
            out.extend((0..).zip(lists).map(|(k, _): (u32, _)| end + (k + 1) * size));
        }
    }
    Ok(elements)
}
