//! A table taken through the items of an index, axis by axis.

use super::items::{Item, Pick};
use crate::array::Layout;
use crate::error::{Error, Result};
use crate::index::{Span, resolve};
use crate::table::RaggedTable;
use crate::table::gather::{Over, Picks, lists_like};
use crate::table::index::Missing;

/// Which row of the original table a row is.
#[derive(Debug)]
enum Origin {
    Same,
    Span(Span),
    Picked(Vec<usize>),
    /// Axis 0 is gone: all are of one row.
    One(usize),
}

/// A table on the way to what an index asks for.
pub(super) struct Cursor {
    pub(super) table: RaggedTable,
    /// Axis of the original table that the next item is for.
    axis: usize,
    /// The axis of `table` that is.
    at: usize,
    rows: Origin,
}

impl Cursor {
    pub(super) fn new(table: &RaggedTable) -> Self {
        Self { table: table.clone(), axis: 0, at: 0, rows: Origin::Same }
    }

    /// All items; with `by_row`, arrays after the first run of them have one element per row.
    pub(super) fn apply(&mut self, items: &[Item], by_row: bool) -> Result<()> {
        let mut rest = items;
        while let Some(item) = rest.first() {
            let used = match item {
                Item::Slice(None) => {
                    (self.axis, self.at) = (self.axis + 1, self.at + 1);
                    1
                }
                Item::Slice(Some(slice)) => {
                    self.slice(*slice)?;
                    1
                }
                Item::At(pick) if self.at == 0 && !by_row => {
                    self.row(pick)?;
                    1
                }
                Item::At(_) => {
                    let run = run(rest, |i| matches!(i, Item::At(_)));
                    self.pick(&run, Each::Constant)?;
                    run.len()
                }
                Item::Picks(_) => {
                    let run = run(rest, |i| !matches!(i, Item::Slice(_)));
                    let later = by_row && self.at > 0;
                    self.pick(&run, if later { Each::Row } else { Each::Element })?;
                    run.len()
                }
            };
            rest = &rest[used..];
        }
        Ok(())
    }

    fn slice(&mut self, (start, stop, step): (Option<i64>, Option<i64>, i64)) -> Result<()> {
        if self.at == 0 {
            let span = Span::new(start, stop, step, self.table.num_rows());
            self.table = match span.range() {
                Some(rows) => self.table.slice(rows)?,
                None => self.table.gather_rows(span.positions().map(|p| p..p + 1))?,
            };
            self.came_from(Origin::Span(span));
        } else {
            let layout = self.table.layout(self.at)?.clone();
            let span = |list: usize| Span::new(start, stop, step, layout.length(list));
            let lists = 0..layout.lists();
            if !lists.clone().all(|l| span(l).is_whole(layout.length(l))) {
                let over = match layout {
                    Layout::Uniform { size, lists } => {
                        Layout::Uniform { size: Span::new(start, stop, step, size).count, lists }
                    }
                    Layout::Ragged(_) => lists_like(&layout, lists.clone().map(|l| span(l).count))?,
                };
                let ranges = lists.flat_map(|list| {
                    let (base, span) = (layout.range(list).start, span(list));
                    let whole = span.range().map(|r| base + r.start..base + r.end);
                    let single = if whole.is_some() { 0..0 } else { 0..span.count };
                    let single = single.map(move |i| base + span.at(i)..base + span.at(i) + 1);
                    whole.into_iter().chain(single)
                });
                let picks = Picks::ranges(ranges);
                self.table = self.table.gather(self.at, Over::Lists(over), &[picks])?;
            }
        }
        (self.axis, self.at) = (self.axis + 1, self.at + 1);
        Ok(())
    }

    /// One row, whose axis goes.
    fn row(&mut self, pick: &Pick) -> Result<()> {
        let size = self.table.num_rows();
        let row = self.position(pick, 0, size, || 0, 0)?.unwrap_or(0);
        self.table = self.table.slice(row..row + 1)?.into_row()?;
        self.rows = Origin::One(self.origin(row));
        self.axis += 1;
        Ok(())
    }

    /// Elements by position along as many axes as there are picks.
    fn pick(&mut self, run: &[&Pick], each: Each) -> Result<()> {
        let at = self.at;
        let layouts: Vec<Option<Layout>> =
            (at..at + run.len()).map(|axis| self.table.layout(axis).ok().cloned()).collect();
        let missing: Vec<Missing> = (at..at + run.len())
            .map(|axis| if axis == 0 { Missing(None) } else { self.table.missing(axis) })
            .collect();
        let rows = self.table.num_rows();
        let lists = layouts[0].as_ref().map_or(1, Layout::lists);
        let all = match each {
            // The first of a run is an array; integers after it go with every element.
            Each::Element => 0..run.first().map_or(0, |p| p.positions.len()),
            Each::Row | Each::Constant => 0..1,
        };
        if all.is_empty() {
            // A mask that takes nothing is as long as the lists, too; below it none are reached.
            for (pick, list) in run.iter().take(1).flat_map(|p| (0..lists).map(move |l| (p, l))) {
                let size = layouts[0].as_ref().map_or(rows, |l| l.length(list));
                if !missing[0].get(list) {
                    self.check_length(pick, 0, size, || self.row_of(at, list))?;
                }
            }
        }
        let mut picks: Vec<Vec<Option<usize>>> = vec![Vec::new(); run.len()];
        let mut lengths = Vec::with_capacity(lists);
        for list in 0..lists {
            let gone = missing[0].get(list);
            let kept = if gone && each == Each::Element { 0..0 } else { all.clone() };
            lengths.push(kept.len());
            for j in kept {
                let j = if each == Each::Row { self.row_of(at, list) } else { j };
                let mut here = Some(list);
                for (depth, pick) in run.iter().enumerate() {
                    let element = match here {
                        None => None,
                        Some(list) if missing[depth].get(list) => None,
                        Some(list) => {
                            let range = layouts[depth].as_ref().map_or(0..rows, |l| l.range(list));
                            let row = || self.row_of(at + depth, list);
                            self.position(pick, j, range.len(), row, depth)?
                                .map(|p| range.start + p)
                        }
                    };
                    picks[depth].push(element);
                    here = element;
                }
            }
        }
        if each == Each::Element && at == 0 {
            let origin = Origin::Picked(picks[0].iter().flatten().copied().collect());
            self.came_from(origin);
        }
        let over = match (each, &layouts[0]) {
            (Each::Element, None) => Over::Rows,
            (Each::Element, Some(_)) if lengths.iter().all(|n| *n == all.len()) => {
                Over::Lists(Layout::Uniform { size: all.len(), lists })
            }
            (Each::Element, Some(layout)) => Over::Lists(lists_like(layout, lengths)?),
            (Each::Row | Each::Constant, _) => Over::Nothing,
        };
        let picks: Vec<Picks> = picks.into_iter().map(Picks::positions).collect();
        self.table = self.table.gather(at, over, &picks)?;
        self.axis += run.len();
        self.at += usize::from(each == Each::Element);
        Ok(())
    }

    /// Position `j` of a pick in a list of `size` elements; `depth` axes below the one that is next.
    fn position(
        &self,
        pick: &Pick,
        j: usize,
        size: usize,
        row: impl Fn() -> usize,
        depth: usize,
    ) -> Result<Option<usize>> {
        self.check_length(pick, depth, size, &row)?;
        // A single position is for every element.
        let Some(index) = pick.positions.get(j).or(pick.positions.first()).copied() else {
            return Ok(None);
        };
        let axis = self.axis + depth;
        match resolve(index, size) {
            Some(p) => Ok(Some(p)),
            None if self.at + depth == 0 || matches!(self.rows, Origin::One(_)) => {
                Err(Error::OutOfRange { axis, index, size })
            }
            None => Err(Error::OutOfRangeIn { row: self.origin(row()), axis, index, size }),
        }
    }

    fn check_length(
        &self,
        pick: &Pick,
        depth: usize,
        size: usize,
        row: impl Fn() -> usize,
    ) -> Result<()> {
        match pick.length {
            Some(length) if length != size => {
                let axis = self.axis + depth;
                let place = match axis {
                    0 => String::new(),
                    _ => format!(" in row {}", self.origin(row())),
                };
                Err(Error::invalid(format!(
                    "a mask of {length} values for axis {axis} of size {size}{place}"
                )))
            }
            _ => Ok(()),
        }
    }

    /// The row of `table` that list `list` of axis `axis` belongs to.
    fn row_of(&self, axis: usize, list: usize) -> usize {
        let above = &self.table.axes()[..axis.saturating_sub(1)];
        above.iter().rev().fold(list, |at, a| a.layout().list_of(at))
    }

    /// The row of the original table that row `row` is.
    fn origin(&self, row: usize) -> usize {
        match &self.rows {
            Origin::Same => row,
            Origin::Span(span) => span.at(row),
            Origin::Picked(rows) => rows.get(row).copied().unwrap_or(row),
            Origin::One(row) => *row,
        }
    }

    /// Rows were taken; there can be one such item, as the next one is for another axis.
    fn came_from(&mut self, rows: Origin) {
        if !matches!(self.rows, Origin::One(_)) {
            self.rows = rows;
        }
    }
}

/// Which of its positions a pick takes of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Each {
    /// All, under a new list.
    Element,
    /// That of the row the list is in; the axis goes.
    Row,
    /// Its only one; the axis goes.
    Constant,
}

fn run(items: &[Item], belongs: impl Fn(&Item) -> bool) -> Vec<&Pick> {
    items
        .iter()
        .take_while(|i| belongs(i))
        .filter_map(|i| match i {
            Item::At(p) | Item::Picks(p) => Some(p),
            Item::Slice(_) => None,
        })
        .collect()
}
