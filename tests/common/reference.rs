//! Slow reference implementation of indexing and reshaping, on one column as nested vectors.

#![allow(dead_code)]

use serrate::index::Index;

/// A value or a nested list of a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Nested<L> {
    /// A value or list that is NULL.
    Null,
    /// A value that is not a list.
    Leaf(L),
    /// A list.
    List(Vec<Nested<L>>),
}

impl<L: Clone> Nested<L> {
    /// Returns the elements of a list, or no elements if the list is NULL.
    pub(crate) fn children(&self) -> &[Self] {
        match self {
            Self::List(list) => list,
            _ => &[],
        }
    }

    /// Returns a copy in which `f` replaces every element `depth` levels below this one. NULL lists
    /// above that level stay.
    pub(crate) fn map_at(&self, depth: usize, f: &dyn Fn(&Self) -> Self) -> Self {
        match (depth, self) {
            (0, _) => f(self),
            (_, Self::List(list)) => {
                Self::List(list.iter().map(|n| n.map_at(depth - 1, f)).collect())
            }
            _ => self.clone(),
        }
    }
}

/// Returns the element at position `i`, which counts from the end if negative, or `None` if it is
/// out of range.
fn at<L: Clone>(list: &[Nested<L>], i: i64) -> Option<Nested<L>> {
    let n = i64::try_from(list.len()).ok()?;
    list.get(usize::try_from(if i < 0 { i + n } else { i }).ok()?).cloned()
}

/// Returns the slice `list[start:stop:step]` by the rules of Python.
fn cut<L: Clone>(
    list: &[Nested<L>],
    start: Option<i64>,
    stop: Option<i64>,
    step: Option<i64>,
) -> Vec<Nested<L>> {
    let n = i64::try_from(list.len()).unwrap();
    let step = step.unwrap_or(1);
    let clip = |i: i64, low: i64, high: i64| (if i < 0 { i + n } else { i }).clamp(low, high);
    let mut out = Vec::new();
    let mut i = match (start, step > 0) {
        (Some(s), true) => clip(s, 0, n),
        (Some(s), false) => clip(s, -1, n - 1),
        (None, true) => 0,
        (None, false) => n - 1,
    };
    let stop = match (stop, step > 0) {
        (Some(s), true) => clip(s, 0, n),
        (Some(s), false) => clip(s, -1, n - 1),
        (None, true) => n,
        (None, false) => -1,
    };
    while if step > 0 { i < stop } else { i > stop } {
        out.push(list[usize::try_from(i).unwrap()].clone());
        i += step;
    }
    out
}

/// An index expression in a form that can be applied to each column.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The item for each axis, after `...` has been expanded.
    items: Vec<Item>,
    /// Length of the index arrays after broadcasting, or `None` without index arrays.
    count: Option<usize>,
    /// Whether other items stand between index arrays. By numpy's rules, their axis then comes
    /// first in the result.
    apart: bool,
    /// Positions in the result of the axes that `NewAxis` adds.
    new_axes: Vec<usize>,
}

#[derive(Debug)]
enum Item {
    At(i64),
    Slice(Option<i64>, Option<i64>, Option<i64>),
    /// The positions to select, and the length that the axis must have if the positions come from a
    /// mask.
    Array(Vec<i64>, Option<usize>),
}

impl Plan {
    /// Resolves an index for an array with `ndim` axes. Returns `None` if numpy refuses the index.
    pub(crate) fn new(index: &[Index], ndim: usize) -> Option<Self> {
        let given = index.iter().filter(|i| !matches!(i, Index::Rest | Index::NewAxis)).count();
        let rest = ndim.checked_sub(given)?;
        let mut all = Vec::new();
        let mut seen = false;
        for item in index {
            match item {
                Index::Rest if seen => return None,
                Index::Rest => {
                    seen = true;
                    // A `...` that stands for no axis still separates the items on both sides, as
                    // in numpy.
                    let none = if rest == 0 { Some(Index::Rest) } else { None };
                    all.extend(none);
                    all.extend(vec![Index::ALL; rest]);
                }
                item => all.push(item.clone()),
            }
        }
        if !seen {
            all.extend(vec![Index::ALL; rest]);
        }
        let any = all.iter().any(|i| matches!(i, Index::Array(_) | Index::Mask(_)));
        // Counts the groups of adjacent advanced items. As in numpy, these are arrays and masks
        // and, if there is one of them, also integers.
        let flags: Vec<bool> = all
            .iter()
            .map(|i| any && matches!(i, Index::Array(_) | Index::Mask(_) | Index::At(_)))
            .collect();
        let groups = (0..flags.len()).filter(|i| flags[*i] && (*i == 0 || !flags[i - 1])).count();
        let apart = groups > 1;
        let (mut new_axes, mut axis) = (Vec::new(), usize::from(apart));
        let mut counted = apart;
        let mut items = Vec::new();
        let mut counts = Vec::new();
        for item in &all {
            match item {
                Index::NewAxis => {
                    new_axes.push(axis);
                    axis += 1;
                }
                Index::Slice { start, stop, step } => {
                    axis += 1;
                    items.push(Item::Slice(*start, *stop, *step));
                }
                Index::At(i) => items.push(Item::At(*i)),
                Index::Array(_) | Index::Mask(_) => {
                    axis += usize::from(!counted);
                    counted = true;
                    let (positions, length) = match item {
                        Index::Array(a) => (a.values().to_vec(), None),
                        Index::Mask(m) => {
                            let places = m.values().iter().enumerate().filter(|(_, b)| **b);
                            let places = places.map(|(i, _)| i64::try_from(i).unwrap()).collect();
                            (places, Some(m.values().len()))
                        }
                        _ => unreachable!(),
                    };
                    counts.push(positions.len());
                    items.push(Item::Array(positions, length));
                }
                Index::Rest => {}
            }
        }
        let count = counts.iter().copied().find(|n| *n != 1).or(counts.first().copied());
        if counts.iter().any(|n| *n != 1 && Some(*n) != count) {
            return None;
        }
        Some(Self { items, count, apart, new_axes })
    }

    pub(crate) fn is_apart(&self) -> bool {
        self.apart
    }

    /// Indexes one column. `levels` is its number of levels: 1 for the rows, and 1 for each level of
    /// lists. Returns the result and its number of levels, or `None` if a position is out of range.
    pub(crate) fn apply<L: Clone>(
        &self,
        column: &Nested<L>,
        levels: usize,
    ) -> Option<(Nested<L>, usize)> {
        let mut left = levels;
        let mut found = if self.apart && self.count == Some(0) {
            // If index arrays are empty, only the items up to the first array can be out of range.
            let first = self.items.iter().position(|i| matches!(i, Item::Array(..))).unwrap();
            self.walk(column, levels, &self.items[..=first], None)?;
            left += 1;
            Nested::List(Vec::new())
        } else if self.apart {
            let all = (0..self.count.unwrap_or(0))
                .map(|j| self.walk(column, levels, &self.items, Some(j)));
            left += 1;
            Nested::List(all.collect::<Option<_>>()?)
        } else {
            self.walk(column, levels, &self.items, None)?
        };
        let reached = &self.items[..levels.min(self.items.len())];
        let gone = reached.iter().filter(|i| !matches!(i, Item::Slice(..))).count();
        let arrays = reached.iter().any(|i| matches!(i, Item::Array(..)));
        left = left - gone + usize::from(arrays && !self.apart);
        for axis in &self.new_axes {
            if left >= *axis {
                found = found.map_at(*axis, &|n| Nested::List(vec![n.clone()]));
                left += 1;
            }
        }
        Some((found, left))
    }

    fn walk<L: Clone>(
        &self,
        node: &Nested<L>,
        levels: usize,
        items: &[Item],
        element: Option<usize>,
    ) -> Option<Nested<L>> {
        let Some((item, rest)) = items.split_first().filter(|_| levels > 0) else {
            return Some(node.clone());
        };
        let Nested::List(list) = node else { return Some(Nested::Null) };
        let one = |i: i64| self.walk(&at(list, i)?, levels - 1, rest, element);
        match item {
            Item::At(i) => one(*i),
            Item::Slice(start, stop, step) => cut(list, *start, *stop, *step)
                .iter()
                .map(|n| self.walk(n, levels - 1, rest, element))
                .collect::<Option<_>>()
                .map(Nested::List),
            Item::Array(_, Some(length)) if *length != list.len() => None,
            Item::Array(positions, _) => match element {
                Some(j) => one(*positions.get(j).or(positions.first())?),
                None => (0..self.count.unwrap_or(0))
                    .map(|j| self.walk(node, levels, items, Some(j)))
                    .collect::<Option<_>>()
                    .map(Nested::List),
            },
        }
    }
}

/// Removes axis `at`, whose lists have one element each, from a column on axis `axis`.
pub(crate) fn squeeze<L: Clone>(column: &Nested<L>, axis: usize, at: usize) -> Nested<L> {
    if axis < at {
        return column.clone();
    }
    column.map_at(at, &|list| list.children().first().cloned().unwrap_or(Nested::Null))
}

/// Inserts an axis `at`, whose lists have one element each, into a column on axis `axis`.
pub(crate) fn unsqueeze<L: Clone>(column: &Nested<L>, axis: usize, at: usize) -> Nested<L> {
    if axis + 1 < at {
        return column.clone();
    }
    column.map_at(at, &|n| Nested::List(vec![n.clone()]))
}

/// Merges axis `at` into the axis above it, in a column on axis `axis`. A column on the axis above
/// `at` has one value per list of axis `at`, whose lengths are `lengths`: the value moves to the
/// first element of the list, and `more` returns the values of its other elements.
pub(crate) fn flatten<L: Clone>(
    column: &Nested<L>,
    axis: usize,
    at: usize,
    lengths: &[usize],
    more: &dyn Fn(&Nested<L>) -> Nested<L>,
) -> Nested<L> {
    fn spread<L: Clone>(
        node: &Nested<L>,
        depth: usize,
        lengths: &mut std::slice::Iter<'_, usize>,
        more: &dyn Fn(&Nested<L>) -> Nested<L>,
    ) -> Nested<L> {
        let Nested::List(list) = node else { return node.clone() };
        if depth > 0 {
            return Nested::List(
                list.iter().map(|n| spread(n, depth - 1, lengths, more)).collect(),
            );
        }
        let one = |value: &Nested<L>| {
            let n = *lengths.next().unwrap();
            (0..n).map(|i| if i == 0 { value.clone() } else { more(value) }).collect::<Vec<_>>()
        };
        Nested::List(list.iter().flat_map(one).collect())
    }
    if axis >= at {
        return column.map_at(at - 1, &|list| match list {
            Nested::List(lists) => {
                Nested::List(lists.iter().flat_map(|l| l.children().to_vec()).collect())
            }
            other => other.clone(),
        });
    }
    if axis + 1 < at {
        return column.clone();
    }
    spread(column, at - 1, &mut lengths.iter(), more)
}
