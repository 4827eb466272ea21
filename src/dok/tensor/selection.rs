//! What an index expression takes of a view: for every axis of the result, where its elements are.
//!
//! A place in row-major order is a sum over axes, so every axis of the result (index arrays that go
//! together are one) is a list of summands; a whole axis or a slice is an arithmetic series. The same
//! lists read backwards say where an entry is in the result.

use super::storage::{Storage, coordinate, linear, place, strides, unravel};
use super::view::View;
use crate::error::{Error, Result};
use crate::index::{Index, IndexArray, Span, resolve};

/// One or more axes of the result that are read together.
#[derive(Debug)]
struct Dim {
    /// Their sizes.
    shape: Vec<usize>,
    size: usize,
    /// The axes of the storage they go over.
    of: Vec<usize>,
    offsets: Offsets,
}

/// Summands of places.
#[derive(Debug)]
enum Offsets {
    /// Coordinates `first + i * step` of one axis.
    Series {
        first: u64,
        step: i64,
    },
    List(Vec<u64>),
}

#[derive(Debug)]
pub(super) struct Selection {
    shape: Vec<usize>,
    dims: Vec<Dim>,
    /// Axes of which there is one coordinate.
    fixed: Vec<(usize, u64)>,
    strides: Vec<u64>,
    /// Whether a place may be there more than once.
    repeats: bool,
}

/// An item with the axes of the view it is for.
struct Item<'a> {
    item: &'a Index,
    first: usize,
}

/// Positions for each axis, of one shape.
struct Arrays {
    shape: Vec<usize>,
    of: Vec<(usize, Vec<i64>)>,
}

/// The items written out: every axis has one, `...` stays only where it stands for no axis.
fn expand(index: &[Index], ndim: usize) -> Result<Vec<Index>> {
    let takes = |i: &Index| match i {
        Index::Rest | Index::NewAxis => 0,
        Index::Mask(m) => m.shape().len(),
        _ => 1,
    };
    let given: usize = index.iter().map(takes).sum();
    let Some(left) = ndim.checked_sub(given) else {
        return Err(Error::invalid(format!("{given} indices for a tensor of {ndim} axes")));
    };
    let mut out = Vec::with_capacity(index.len() + left);
    let mut rest = false;
    for item in index {
        match item {
            Index::Rest if std::mem::replace(&mut rest, true) => {
                return Err(Error::invalid("two ... among the indices; there is at most one"));
            }
            Index::Rest if left > 0 => out.extend(std::iter::repeat_n(Index::ALL, left)),
            Index::Slice { step: Some(0), .. } => {
                return Err(Error::invalid("a slice with a step of 0; it goes nowhere"));
            }
            item => out.push(item.clone()),
        }
    }
    if !rest {
        out.extend(std::iter::repeat_n(Index::ALL, left));
    }
    Ok(out)
}

/// The true positions of a mask, axis by axis.
fn true_positions(mask: &IndexArray<bool>, first: usize, shape: &[usize]) -> Result<Arrays> {
    let sizes = shape.get(first..first + mask.shape().len()).unwrap_or_default();
    if sizes != mask.shape() {
        return Err(Error::invalid(format!(
            "a mask of shape {:?} for axes of sizes {sizes:?}",
            mask.shape()
        )));
    }
    let true_at: Vec<u64> =
        (0u64..).zip(mask.values()).filter(|(_, m)| **m).map(|(i, _)| i).collect();
    let strides = strides(mask.shape());
    let axis = |(k, stride): (usize, &u64)| {
        let size = mask.shape()[k] as u64;
        (first + k, true_at.iter().map(|at| place(at / stride % size)).collect())
    };
    let of = strides.iter().enumerate().map(axis).collect();
    Ok(Arrays { shape: vec![true_at.len()], of })
}

/// The shape that several broadcast to, by numpy's rules.
pub(super) fn broadcast<'a>(
    shapes: impl Iterator<Item = &'a [usize]> + Clone,
) -> Option<Vec<usize>> {
    let ndim = shapes.clone().map(<[usize]>::len).max().unwrap_or(0);
    let mut out = vec![1; ndim];
    for shape in shapes {
        for (out, size) in out[ndim - shape.len()..].iter_mut().zip(shape) {
            match (*out, *size) {
                (a, b) if a == b => {}
                (1, b) => *out = b,
                (_, 1) => {}
                _ => return None,
            }
        }
    }
    Some(out)
}

/// Elements between neighbours of an array in a shape it broadcasts to: 0 where it is repeated.
pub(super) fn broadcast_strides(shape: &[usize], to: &[usize]) -> Vec<usize> {
    let mut out = vec![0; to.len()];
    let skip = to.len().saturating_sub(shape.len());
    for ((out, stride), size) in out[skip..].iter_mut().zip(strides(shape)).zip(shape) {
        *out = if *size == 1 { 0 } else { coordinate(stride) };
    }
    out
}

/// Counts through a shape, giving where each element is in arrays of the given strides.
pub(super) fn walk(shape: &[usize], strides: &[usize], mut each: impl FnMut(usize)) {
    if shape.contains(&0) {
        return;
    }
    let mut counter = vec![0usize; shape.len()];
    let mut at = 0;
    loop {
        each(at);
        let mut axis = shape.len();
        loop {
            let Some(k) = axis.checked_sub(1) else { return };
            axis = k;
            counter[k] += 1;
            at += strides[k];
            if counter[k] < shape[k] {
                break;
            }
            at -= strides[k] * shape[k];
            counter[k] = 0;
        }
    }
}

struct Builder<'a> {
    view: &'a View,
    storage: &'a Storage,
    shape: Vec<usize>,
}

impl Builder<'_> {
    /// Where position `at` of an axis of the view is along the axis of the storage.
    fn coordinate(&self, axis: usize, at: u64) -> u64 {
        match &self.view.axes[axis].picks {
            None => at,
            Some(picks) => picks[coordinate(at)],
        }
    }

    fn resolve(&self, axis: usize, index: i64) -> Result<u64> {
        let size = self.shape[axis];
        let at = resolve(index, size).ok_or(Error::OutOfRange { axis, index, size })?;
        Ok(self.coordinate(axis, at as u64))
    }

    fn slice(&self, axis: usize, span: Span) -> Dim {
        let of = self.view.axes[axis].of;
        let offsets = if self.view.axes[axis].picks.is_none() {
            Offsets::Series { first: span.first as u64, step: span.step }
        } else {
            let at = |i: usize| self.coordinate(axis, i as u64) * self.storage.strides[of];
            Offsets::List(span.positions().map(at).collect())
        };
        Dim { shape: vec![span.count], size: span.count, of: vec![of], offsets }
    }

    /// Arrays that go together, broadcast.
    fn together(&self, arrays: &[Arrays]) -> Result<Dim> {
        let shapes = || arrays.iter().map(|a| a.shape.as_slice());
        let shape = broadcast(shapes()).ok_or_else(|| {
            let shapes: Vec<String> = shapes().map(|s| format!("{s:?}")).collect();
            Error::invalid(format!(
                "index arrays of shapes {} do not broadcast together",
                shapes.join(" and ")
            ))
        })?;
        let size = crate::dense::element_count(&shape)
            .filter(|n| isize::try_from(n.saturating_mul(8)).is_ok())
            .ok_or_else(|| Error::invalid(format!("index arrays of shape {shape:?} together")))?;
        let mut offsets = vec![0u64; size];
        let mut of = Vec::new();
        for array in arrays {
            let steps = broadcast_strides(&array.shape, &shape);
            for (axis, positions) in &array.of {
                let base = self.view.axes[*axis].of;
                let stride = self.storage.strides[base];
                let own = positions.iter().map(|p| Ok(self.resolve(*axis, *p)? * stride));
                let own = own.collect::<Result<Vec<u64>>>()?;
                let mut out = offsets.iter_mut();
                walk(&shape, &steps, |at| {
                    if let Some(out) = out.next() {
                        *out += own[at];
                    }
                });
                of.push(base);
            }
        }
        Ok(Dim { size, shape, of, offsets: Offsets::List(offsets) })
    }

    /// The positions of an array or a mask; `None` for other items.
    fn arrays(&self, item: &Item<'_>) -> Result<Option<Arrays>> {
        Ok(Some(match item.item {
            Index::Array(a) => {
                Arrays { shape: a.shape().to_vec(), of: vec![(item.first, a.values().to_vec())] }
            }
            Index::Mask(m) if m.shape().is_empty() => {
                let count = m.values().iter().filter(|v| **v).count();
                Arrays { shape: vec![count], of: Vec::new() }
            }
            Index::Mask(m) => true_positions(m, item.first, &self.shape)?,
            _ => return Ok(None),
        }))
    }

    fn span(&self, axis: usize, item: &Index) -> Result<Option<Span>> {
        let size = self.shape[axis];
        match item {
            all if *all == Index::ALL => Ok(Some(Span { first: 0, count: size, step: 1 })),
            Index::Slice { .. } if i64::try_from(size).is_err() => Err(Error::invalid(format!(
                "a slice of axis {axis}, whose {size} elements have no last position in 64 bits; other indices can be used"
            ))),
            Index::Slice { start, stop, step } => {
                Ok(Some(Span::new(*start, *stop, step.unwrap_or(1), size)))
            }
            _ => Ok(None),
        }
    }
}

const NEW_AXIS: fn() -> Dim =
    || Dim { shape: vec![1], size: 1, of: Vec::new(), offsets: Offsets::List(vec![0]) };

impl Selection {
    /// numpy's rules: arrays go together, and where something stands between them, their axes come
    /// first.
    pub(super) fn numpy(view: &View, storage: &Storage, index: &[Index]) -> Result<Self> {
        Self::build(view, storage, index, false)
    }

    /// Every array by itself: axis by axis.
    pub(super) fn orthogonal(view: &View, storage: &Storage, index: &[Index]) -> Result<Self> {
        Self::build(view, storage, index, true)
    }

    fn build(view: &View, storage: &Storage, index: &[Index], apart: bool) -> Result<Self> {
        let builder = Builder { view, storage, shape: view.shape(storage) };
        let index = expand(index, view.ndim())?;
        let mut first = 0;
        let mut items = Vec::with_capacity(index.len());
        for item in &index {
            items.push(Item { item, first });
            first += match item {
                Index::Rest | Index::NewAxis => 0,
                Index::Mask(m) => m.shape().len(),
                _ => 1,
            };
        }
        let mut fixed = view.fixed.clone();
        let mut dims = Vec::new();
        let is_array = |i: &Item<'_>| matches!(i.item, Index::Array(_) | Index::Mask(_));
        let together = !apart && items.iter().any(is_array);
        let advanced = |i: &Item<'_>| together && (is_array(i) || matches!(i.item, Index::At(_)));
        // Where the axes of all arrays go: before the first of them, or before everything.
        let mut group = None;
        let mut arrays = Vec::new();
        let from = items.iter().position(advanced).unwrap_or(0);
        let to = items.iter().rposition(advanced).unwrap_or(0);
        let between = together && !items[from..=to].iter().all(advanced);
        for item in &items {
            if advanced(item) {
                group.get_or_insert(dims.len());
            }
            match item.item {
                Index::Rest => {}
                Index::NewAxis => dims.push(NEW_AXIS()),
                Index::At(i) if together => {
                    arrays.push(Arrays { shape: Vec::new(), of: vec![(item.first, vec![*i])] });
                }
                Index::At(i) => {
                    fixed.push((view.axes[item.first].of, builder.resolve(item.first, *i)?));
                }
                other => match (builder.span(item.first, other)?, builder.arrays(item)?) {
                    (Some(span), _) => dims.push(builder.slice(item.first, span)),
                    (None, Some(array)) if together => arrays.push(array),
                    (None, Some(array)) => dims.push(builder.together(&[array])?),
                    (None, None) => {}
                },
            }
        }
        if together {
            let at = if between { 0 } else { group.unwrap_or(0) };
            dims.insert(at, builder.together(&arrays)?);
        }
        let shape = dims.iter().flat_map(|d| d.shape.iter().copied()).collect();
        let repeats = view.may_repeat() || items.iter().any(is_array);
        Ok(Self { shape, dims, fixed, strides: storage.strides.clone(), repeats })
    }

    /// Shape of the result.
    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub(super) fn repeats(&self) -> bool {
        self.repeats
    }

    /// Adds the places of `count` elements of the result from `first` on, in row-major order.
    pub(super) fn places(&self, first: u64, count: usize, out: &mut Vec<i64>) {
        let sizes: Vec<usize> = self.dims.iter().map(|d| d.size).collect();
        let own = strides(&sizes);
        let mut counter = vec![0u64; sizes.len()];
        unravel(first, &own, &mut counter);
        let fixed: u64 = self.fixed.iter().map(|(axis, at)| at * self.strides[*axis]).sum();
        let outer = self.dims.len().saturating_sub(1);
        let mut left = count;
        while left > 0 {
            let base = self.dims[..outer]
                .iter()
                .zip(&counter)
                .fold(fixed, |sum, (d, at)| sum.wrapping_add(self.offset(d, *at)));
            let Some(last) = self.dims.last() else {
                out.push(place(base));
                return;
            };
            // The rest of the innermost axes.
            let from = counter[outer];
            let run = left.min(last.size - coordinate(from));
            let all = from..from + run as u64;
            out.extend(all.map(|i| place(base.wrapping_add(self.offset(last, i)))));
            left -= run;
            counter[outer] += run as u64;
            let mut axis = outer;
            while counter[axis] == sizes[axis] as u64 && axis > 0 {
                counter[axis] = 0;
                axis -= 1;
                counter[axis] += 1;
            }
        }
    }

    #[inline(always)]
    fn offset(&self, dim: &Dim, i: u64) -> u64 {
        match &dim.offsets {
            Offsets::List(list) => list[coordinate(i)],
            Offsets::Series { first, step } => first
                .wrapping_add(linear(*step).wrapping_mul(i))
                .wrapping_mul(self.strides[dim.of[0]]),
        }
    }

    /// The same backwards: for every entry of the storage that is in the result, all places it has
    /// there, with its row.
    pub(super) fn find(&self, stored: &[i64], mut each: impl FnMut(u64, usize)) {
        let own = strides(&self.dims.iter().map(|d| d.size).collect::<Vec<_>>());
        // Lists by summand.
        let sorted: Vec<Vec<(u64, u64)>> = self
            .dims
            .iter()
            .map(|d| match &d.offsets {
                Offsets::Series { .. } => Vec::new(),
                Offsets::List(list) => {
                    let mut list: Vec<(u64, u64)> = list.iter().copied().zip(0..).collect();
                    list.sort_unstable();
                    list
                }
            })
            .collect();
        if self.dims.iter().any(|d| d.size == 0) {
            return;
        }
        let mut at = vec![0u64; self.strides.len()];
        let (mut found, mut next) = (Vec::new(), Vec::new());
        'entries: for (row, entry) in stored.iter().enumerate() {
            unravel(linear(*entry), &self.strides, &mut at);
            if self.fixed.iter().any(|(axis, fixed)| at[*axis] != *fixed) {
                continue;
            }
            found.clear();
            found.push(0u64);
            for ((dim, sorted), own) in self.dims.iter().zip(&sorted).zip(&own) {
                match &dim.offsets {
                    Offsets::Series { first, step } => {
                        let by = step.unsigned_abs();
                        let distance = if *step < 0 {
                            first.checked_sub(at[dim.of[0]])
                        } else {
                            at[dim.of[0]].checked_sub(*first)
                        };
                        let Some(i) = distance.filter(|d| d % by == 0).map(|d| d / by) else {
                            continue 'entries;
                        };
                        if i >= dim.size as u64 {
                            continue 'entries;
                        }
                        found.iter_mut().for_each(|f| *f += i * own);
                    }
                    Offsets::List(_) => {
                        let sum = dim.of.iter().map(|axis| at[*axis] * self.strides[*axis]).sum();
                        let from = sorted.partition_point(|(s, _)| *s < sum);
                        let to = sorted.partition_point(|(s, _)| *s <= sum);
                        if from == to {
                            continue 'entries;
                        }
                        next.clear();
                        for f in &found {
                            next.extend(sorted[from..to].iter().map(|(_, i)| f + i * own));
                        }
                        std::mem::swap(&mut found, &mut next);
                    }
                }
            }
            found.iter().for_each(|f| each(*f, row));
        }
    }

    /// The place of one element of the result.
    pub(super) fn place_of(&self, element: i64) -> i64 {
        let mut out = Vec::with_capacity(1);
        self.places(linear(element), 1, &mut out);
        out.first().copied().unwrap_or(0)
    }
}
