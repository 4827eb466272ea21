//! Applies an index, a list of [`AxisItem`]s, to a table, axis by axis.

use super::axis_items::{AxisItem, AxisPick};
use crate::array::{Layout, make_lists_like};
use crate::error::{Error, Result};
use crate::index::{AxisSpan, resolve_position};
use crate::table::RaggedTable;
use crate::table::common_nulls::CommonNulls;
use crate::table::gather::{PickedElements, PickedParents};

/// Tells which rows of the original table a partially indexed table still has, for error messages.
#[derive(Debug)]
enum RowOrigin {
    Same,
    Span(AxisSpan),
    Picked(Vec<usize>),
    /// An integer index dropped axis 0: all elements come from this row of the original table.
    One(usize),
}

/// A partially indexed table, and the axis to which the next item of the index applies.
pub(super) struct IndexCursor {
    pub(super) table: RaggedTable,
    /// Axis of the original table to which the next item of the index applies.
    axis: usize,
    /// Axis of `table` to which the next item applies; less than `axis` if earlier items dropped
    /// axes.
    at: usize,
    rows: RowOrigin,
}

impl IndexCursor {
    pub(super) fn new(table: &RaggedTable) -> Self {
        Self { table: table.clone(), axis: 0, at: 0, rows: RowOrigin::Same }
    }

    /// Applies `items`, one per axis. An index array for an axis after axis 0 applies to every
    /// list; if `by_row` is set, only its index `i` applies to the lists of row `i`.
    pub(super) fn apply_items(&mut self, items: &[AxisItem], by_row: bool) -> Result<()> {
        let mut rest = items;
        while let Some(item) = rest.first() {
            let used = match item {
                AxisItem::Slice(None) => {
                    (self.axis, self.at) = (self.axis + 1, self.at + 1);
                    1
                }
                AxisItem::Slice(Some(slice)) => {
                    self.apply_slice(*slice)?;
                    1
                }
                AxisItem::At(pick) if self.at == 0 && !by_row => {
                    self.take_row(pick)?;
                    1
                }
                AxisItem::At(_) => {
                    let run = find_leading_picks(rest, |i| matches!(i, AxisItem::At(_)));
                    self.take_elements(&run, PickMode::Constant)?;
                    run.len()
                }
                AxisItem::Picks(_) => {
                    let run = find_leading_picks(rest, |i| !matches!(i, AxisItem::Slice(_)));
                    let later = by_row && self.at > 0;
                    self.take_elements(
                        &run,
                        if later { PickMode::Row } else { PickMode::Element },
                    )?;
                    run.len()
                }
            };
            rest = &rest[used..];
        }
        Ok(())
    }

    fn apply_slice(&mut self, (start, stop, step): (Option<i64>, Option<i64>, i64)) -> Result<()> {
        if self.at == 0 {
            let span = AxisSpan::new(start, stop, step, self.table.num_rows());
            self.table = match span.range() {
                Some(rows) => self.table.slice(rows.start, rows.len())?,
                None => self.table.gather_rows(span.positions().map(|p| p..p + 1))?,
            };
            self.set_origin(RowOrigin::Span(span));
        } else {
            let layout = self.table.layout(self.at)?.clone();
            let span = |list: usize| AxisSpan::new(start, stop, step, layout.length(list));
            let lists = 0..layout.lists();
            if !lists.clone().all(|l| span(l).is_whole(layout.length(l))) {
                let over = match layout {
                    Layout::Uniform { size, lists } => Layout::Uniform {
                        size: AxisSpan::new(start, stop, step, size).count,
                        lists,
                    },
                    Layout::Ragged(_) => {
                        make_lists_like(&layout, lists.clone().map(|l| span(l).count))?
                    }
                };
                let ranges = lists.flat_map(|list| {
                    let (base, span) = (layout.range(list).start, span(list));
                    let whole = span.range().map(|r| base + r.start..base + r.end);
                    let single = if whole.is_some() { 0..0 } else { 0..span.count };
                    let single =
                        single.map(move |i| base + span.to_index(i)..base + span.to_index(i) + 1);
                    whole.into_iter().chain(single)
                });
                let picks = PickedElements::from_ranges(ranges);
                self.table =
                    self.table.gather_axis(self.at, PickedParents::Lists(over), &[picks])?;
            }
        }
        (self.axis, self.at) = (self.axis + 1, self.at + 1);
        Ok(())
    }

    fn take_row(&mut self, pick: &AxisPick) -> Result<()> {
        let size = self.table.num_rows();
        let row = self.resolve_position(pick, 0, size, || 0, 0)?.unwrap_or(0);
        self.table = self.table.slice(row, 1)?.into_row()?;
        self.rows = RowOrigin::One(self.find_original_row(row));
        self.axis += 1;
        Ok(())
    }

    /// Selects elements of successive axes. `run[k]` has the indices for axis `self.at + k`, and
    /// `each` says to which lists each index applies.
    fn take_elements(&mut self, run: &[&AxisPick], each: PickMode) -> Result<()> {
        let at = self.at;
        let layouts: Vec<Option<Layout>> =
            (at..at + run.len()).map(|axis| self.table.layout(axis).ok().cloned()).collect();
        let missing: Vec<CommonNulls> = (at..at + run.len())
            .map(
                |axis| {
                    if axis == 0 { CommonNulls(None) } else { self.table.find_common_nulls(axis) }
                },
            )
            .collect();
        let rows = self.table.num_rows();
        let lists = layouts[0].as_ref().map_or(1, Layout::lists);
        let all = match each {
            // The first pick is an index array. The indices of later arrays are paired with its
            // indices; a later integer applies to each element that the first array selects.
            PickMode::Element => 0..run.first().map_or(0, |p| p.positions.len()),
            PickMode::Row | PickMode::Constant => 0..1,
        };
        if all.is_empty() {
            // The array is empty, such as a mask without true, so the loop below checks nothing.
            // The length of the first mask is therefore checked here. Later masks apply to no list.
            for (pick, list) in run.iter().take(1).flat_map(|p| (0..lists).map(move |l| (p, l))) {
                let size = layouts[0].as_ref().map_or(rows, |l| l.length(list));
                if !missing[0].get(list) {
                    self.check_length(pick, 0, size, || self.find_row_index(at, list))?;
                }
            }
        }
        let mut picks: Vec<Vec<Option<usize>>> = vec![Vec::new(); run.len()];
        let mut lengths = Vec::with_capacity(lists);
        for list in 0..lists {
            let is_missing = missing[0].get(list);
            let kept = if is_missing && each == PickMode::Element { 0..0 } else { all.clone() };
            lengths.push(kept.len());
            for j in kept {
                let j = if each == PickMode::Row { self.find_row_index(at, list) } else { j };
                let mut current = Some(list);
                for (depth, pick) in run.iter().enumerate() {
                    let element = match current {
                        None => None,
                        Some(list) if missing[depth].get(list) => None,
                        Some(list) => {
                            let range = layouts[depth].as_ref().map_or(0..rows, |l| l.range(list));
                            let row = || self.find_row_index(at + depth, list);
                            self.resolve_position(pick, j, range.len(), row, depth)?
                                .map(|p| range.start + p)
                        }
                    };
                    picks[depth].push(element);
                    current = element;
                }
            }
        }
        if each == PickMode::Element && at == 0 {
            let origin = RowOrigin::Picked(picks[0].iter().flatten().copied().collect());
            self.set_origin(origin);
        }
        let over = match (each, &layouts[0]) {
            (PickMode::Element, None) => PickedParents::Rows,
            (PickMode::Element, Some(_)) if lengths.iter().all(|n| *n == all.len()) => {
                PickedParents::Lists(Layout::Uniform { size: all.len(), lists })
            }
            (PickMode::Element, Some(layout)) => {
                PickedParents::Lists(make_lists_like(layout, lengths)?)
            }
            (PickMode::Row | PickMode::Constant, _) => PickedParents::Nothing,
        };
        let picks: Vec<PickedElements> =
            picks.into_iter().map(PickedElements::from_positions).collect();
        self.table = self.table.gather_axis(at, over, &picks)?;
        self.axis += run.len();
        self.at += usize::from(each == PickMode::Element);
        Ok(())
    }

    /// Returns the position that index `j` of `pick` selects in a list of `size` elements; `None`,
    /// for a null, if `pick` is empty. Errors name the row that `row` returns and axis
    /// `self.axis + depth`.
    fn resolve_position(
        &self,
        pick: &AxisPick,
        j: usize,
        size: usize,
        row: impl Fn() -> usize,
        depth: usize,
    ) -> Result<Option<usize>> {
        self.check_length(pick, depth, size, &row)?;
        // An `AxisPick` with only one index uses this index for every `j`.
        let Some(index) = pick.positions.get(j).or(pick.positions.first()).copied() else {
            return Ok(None);
        };
        let axis = self.axis + depth;
        match resolve_position(index, size) {
            Some(p) => Ok(Some(p)),
            None if self.at + depth == 0 || matches!(self.rows, RowOrigin::One(_)) => {
                Err(Error::OutOfRange { axis, index, size })
            }
            None => {
                Err(Error::OutOfRangeIn { row: self.find_original_row(row()), axis, index, size })
            }
        }
    }

    fn check_length(
        &self,
        pick: &AxisPick,
        depth: usize,
        size: usize,
        row: impl Fn() -> usize,
    ) -> Result<()> {
        match pick.length {
            Some(length) if length != size => {
                let axis = self.axis + depth;
                let place = match axis {
                    0 => String::new(),
                    _ => format!(" in row {}", self.find_original_row(row())),
                };
                Err(Error::invalid(format!(
                    "a mask of {length} value(s) cannot select from axis {axis}, which has the size {size}{place}; give a mask of {size} value(s)"
                )))
            }
            _ => Ok(()),
        }
    }

    fn find_row_index(&self, axis: usize, list: usize) -> usize {
        let above = &self.table.axes()[..axis.saturating_sub(1)];
        above.iter().rev().fold(list, |at, a| a.layout().list_of(at))
    }

    fn find_original_row(&self, row: usize) -> usize {
        match &self.rows {
            RowOrigin::Same => row,
            RowOrigin::Span(span) => span.to_index(row),
            RowOrigin::Picked(rows) => rows.get(row).copied().unwrap_or(row),
            RowOrigin::One(row) => *row,
        }
    }

    /// Records which rows of the original table are left. Does nothing if an integer index has
    /// dropped axis 0, because [`RowOrigin::One`] then keeps the only row.
    fn set_origin(&mut self, rows: RowOrigin) {
        if !matches!(self.rows, RowOrigin::One(_)) {
            self.rows = rows;
        }
    }
}

/// Determines which indices of an [`AxisPick`] apply to each list of the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PickMode {
    /// All indices apply to every list; the selected elements form a list.
    Element,
    /// Index `i` applies to the lists of row `i`; it selects one element and drops the axis.
    Row,
    /// The only index applies to all lists; it selects one element and drops the axis.
    Constant,
}

fn find_leading_picks(items: &[AxisItem], belongs: impl Fn(&AxisItem) -> bool) -> Vec<&AxisPick> {
    items
        .iter()
        .take_while(|i| belongs(i))
        .filter_map(|i| match i {
            AxisItem::At(p) | AxisItem::Picks(p) => Some(p),
            AxisItem::Slice(_) => None,
        })
        .collect()
}
