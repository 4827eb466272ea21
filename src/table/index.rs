//! Indexing a table as numpy indexes an array.

use arrow::buffer::NullBuffer;

use super::RaggedTable;
use super::gather::{Over, Picks, lists_like};
use crate::array::Layout;
use crate::error::{Error, Result};
use crate::index::{Index, Span, positions_of, resolve};

impl RaggedTable {
    /// Indexes all columns at once, as numpy does between brackets: the first item is for axis 0 (the
    /// rows), the next for axis 1. Axes without an item stay whole, and a column takes the items for
    /// the axes it has.
    ///
    /// | item | does | copies |
    /// |---|---|---|
    /// | integer on axis 0 | that row; axis 1 becomes axis 0 and columns of axis 0 [`scalars`](Self::scalars) | nothing |
    /// | integer on an inner axis | that element of every list; the axis goes | the elements |
    /// | slice of step 1 on axis 0 | those rows | nothing |
    /// | other slices | their elements, in their order; out of range is cut off | the elements, unless they are one range |
    /// | array of integers | those elements, repeats allowed | the elements |
    /// | mask of booleans | the elements that are true; as long as the axis | the elements |
    /// | `...` | as many whole axes as are left over | nothing |
    /// | new axis | an axis of size 1, as [`unsqueeze`](Self::unsqueeze) adds it | nothing |
    ///
    /// Negatives count from the end. Where every list stays whole nothing is copied. Several arrays,
    /// and integers beside them, go together element by element, and their one axis stands where the
    /// first of them did; with a slice, `...` or new axis between them it comes first, as in numpy
    /// (columns that no array reaches are repeated along it then).
    ///
    /// A list that is null in every column that has it gives null where an element is asked of it,
    /// and stays null where elements are.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use arrow::array::{AsArray, Int32Array, UInt16Array, types::UInt16Type};
    /// use serrate::index::parse_index;
    /// use serrate::table::RaggedTable;
    ///
    /// let t = RaggedTable::builder()
    ///     .lengths([3, 1])?
    ///     .lengths([2, 4, 1, 3])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 2, Arc::new(UInt16Array::from_iter_values(0..10)))
    ///     .build()?;
    /// // the last two events of the first row, and of each the first code
    /// let part = t.index(&parse_index("0, -2:, 0")?)?;
    /// assert_eq!(part.column("code")?.values().as_primitive::<UInt16Type>().values(), &[2, 6]);
    /// assert_eq!(part.scalar("age")?.name(), "age");
    /// let error = t.index(&[1.into(), 1.into()]).unwrap_err();
    /// assert_eq!(error.to_string(), "index 1 is out of range for axis 1 of size 1");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// More items than axes; a position out of range, with axis, index and size (and row, where lists
    /// differ); arrays of different lengths or of more than one dimension; a mask that is not as long
    /// as a list it is for.
    pub fn index(&self, index: &[Index]) -> Result<Self> {
        let what = format!("a table with {} axes (the first index is axis 0)", self.ndim());
        let expanded = Index::expand(index, self.ndim(), &what)?;
        let arrangement = Arrangement::of(&expanded);
        let items = items(&expanded)?;
        let out = if arrangement.apart && !matches!(items.first(), Some(Item::Picks(_))) {
            self.index_apart(&items)?
        } else {
            let mut cursor = Cursor::new(self);
            cursor.apply(&items, arrangement.apart)?;
            cursor.table
        };
        arrangement.new_axes.iter().try_fold(out, |t, axis| t.unsqueeze(*axis))
    }

    /// Arrays apart from each other, after an axis without one: one part of the answer after the
    /// other, as rows of a new axis 0.
    fn index_apart(&self, items: &[Item]) -> Result<Self> {
        let count = items.iter().find_map(Item::count).unwrap_or(0);
        let bare = Self { scalars: Vec::new(), ..self.clone() };
        let one = |j: usize| -> Result<Self> {
            let items: Vec<Item> = items.iter().map(|i| i.only(j)).collect();
            let mut cursor = Cursor::new(&bare);
            cursor.apply(&items, false)?;
            cursor.table.unsqueeze(0)
        };
        let mut out = match count {
            // Of nothing, only axes and types.
            0 => one(0)?.slice(0..0)?,
            n => Self::concat(&(0..n).map(one).collect::<Result<Vec<_>>>()?)?,
        };
        out.scalars.clone_from(&self.scalars);
        Ok(out)
    }

    /// For every list of axis `axis`, whether it is null in all columns that have it.
    pub(super) fn missing(&self, axis: usize) -> Missing {
        let mut below = self.columns().iter().filter(|c| c.axis() >= axis).peekable();
        if below.peek().is_none() {
            return Missing(None);
        }
        Missing(below.map(|c| c.list_nulls().get(axis - 1).cloned().flatten()).collect())
    }
}

/// Validities of the lists of one axis; `None` when some column has no null there.
pub(super) struct Missing(Option<Vec<NullBuffer>>);

impl Missing {
    pub(super) fn get(&self, list: usize) -> bool {
        self.0.as_ref().is_some_and(|all| all.iter().all(|n| n.is_null(list)))
    }
}

/// Where axes of the result come from.
#[derive(Debug)]
struct Arrangement {
    /// The arrays have something between them: their axis comes first.
    apart: bool,
    /// Where new axes are in the result, ascending.
    new_axes: Vec<i64>,
}

impl Arrangement {
    fn of(items: &[Index]) -> Self {
        let array = |i: &Index| matches!(i, Index::Array(_) | Index::Mask(_));
        let any = items.iter().any(array);
        // An integer beside an array is an array of one element.
        let advanced = |i: &Index| any && (array(i) || matches!(i, Index::At(_)));
        let first = items.iter().position(advanced).unwrap_or(0);
        let last = items.iter().rposition(advanced).map_or(0, |l| l + 1);
        let apart = any && !items[first..last].iter().all(advanced);
        let mut axis = i64::from(apart);
        let mut seen = apart;
        let mut new_axes = Vec::new();
        for item in items {
            match item {
                Index::NewAxis => {
                    new_axes.push(axis);
                    axis += 1;
                }
                Index::Slice { .. } => axis += 1,
                item if array(item) && !seen => {
                    seen = true;
                    axis += 1;
                }
                _ => {}
            }
        }
        Self { apart, new_axes }
    }
}

/// An item for one axis, arrays made equally long.
#[derive(Clone, Debug)]
enum Item {
    /// `None` for a whole axis.
    Slice(Option<(Option<i64>, Option<i64>, i64)>),
    At(Pick),
    /// Of all arrays.
    Picks(Pick),
}

/// Positions along one axis.
#[derive(Clone, Debug)]
struct Pick {
    positions: Vec<i64>,
    /// How long a list must be: a mask is as long as what it masks.
    length: Option<usize>,
}

impl Item {
    fn count(&self) -> Option<usize> {
        match self {
            Self::Picks(p) => Some(p.positions.len()),
            _ => None,
        }
    }

    /// The item for element `j` of the arrays; arrays without elements pick a null.
    fn only(&self, j: usize) -> Self {
        match self {
            Self::Picks(p) => {
                let positions = p.positions.get(j).copied().into_iter().collect();
                Self::At(Pick { positions, length: p.length })
            }
            other => other.clone(),
        }
    }
}

fn items(index: &[Index]) -> Result<Vec<Item>> {
    let mut items = Vec::with_capacity(index.len());
    for item in index {
        items.push(match item {
            Index::Rest | Index::NewAxis => continue,
            all if *all == Index::ALL => Item::Slice(None),
            Index::Slice { start, stop, step } => {
                Item::Slice(Some((*start, *stop, step.unwrap_or(1))))
            }
            Index::At(i) => Item::At(Pick { positions: vec![*i], length: None }),
            Index::Array(a) => Item::Picks(Pick { positions: a.flat()?.to_vec(), length: None }),
            Index::Mask(m) => {
                let mask = m.flat()?;
                Item::Picks(Pick { positions: positions_of(mask), length: Some(mask.len()) })
            }
        });
    }
    let counts: Vec<usize> = items.iter().filter_map(Item::count).collect();
    let common = counts.iter().copied().find(|n| *n != 1).or(counts.first().copied());
    if let Some(common) = common {
        if counts.iter().any(|n| *n != 1 && *n != common) {
            return Err(Error::invalid(format!(
                "index arrays of lengths {counts:?} do not go together; they need one length"
            )));
        }
        for item in &mut items {
            if let Item::Picks(p) = item
                && p.positions.len() != common
                && let [one] = p.positions[..]
            {
                p.positions = vec![one; common];
            }
        }
    }
    Ok(items)
}

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
struct Cursor {
    table: RaggedTable,
    /// Axis of the original table that the next item is for.
    axis: usize,
    /// The axis of `table` that is.
    at: usize,
    rows: Origin,
}

impl Cursor {
    fn new(table: &RaggedTable) -> Self {
        Self { table: table.clone(), axis: 0, at: 0, rows: Origin::Same }
    }

    /// All items; with `by_row`, arrays after the first run of them have one element per row.
    fn apply(&mut self, items: &[Item], by_row: bool) -> Result<()> {
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
        let mut picks: Vec<Vec<Option<usize>>> = vec![Vec::new(); run.len()];
        let mut lengths = Vec::with_capacity(lists);
        for list in 0..lists {
            let gone = missing[0].get(list);
            let kept = if gone && each == Each::Element { 0..0 } else { all.clone() };
            lengths.push(kept.len());
            // A mask is checked where it takes nothing, too.
            if all.is_empty() && !gone {
                let size = layouts[0].as_ref().map_or(rows, |l| l.length(list));
                self.check_length(run[0], 0, size, || self.row_of(at, list))?;
            }
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
