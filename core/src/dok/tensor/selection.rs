//! Resolves an index to the elements that it selects.
//!
//! The row-major index of an element (its place) is a sum with one summand per axis: coordinate
//! times stride. Each axis of the result (index arrays that broadcast together count as one axis)
//! therefore has a list of summands, or an arithmetic series for a slice:
//!
//! ```text
//! index `1:, [4, 0]` on strides [10, 1]     series 10, 20      list 4, 0
//! places of the result                      14 10 / 24 20      (sums, row-major)
//! ```
//!
//! The positions of a stored entry in the result are found by a search for its summands in these
//! lists.

use super::axis_view::AxisView;
use super::storage::{
    DokStorage, compute_strides, from_place, to_coordinate, to_place, unravel_place,
};
use crate::dense::count_shape_elements;
use crate::error::{Error, Result};
use crate::index::broadcast_shape::{broadcast_shapes, for_each_broadcast};
use crate::index::{AxisSpan, Index, IndexArray, resolve_position};
use crate::limit::{check_bytes, check_size};

/// One axis of the result, or the group of axes that the broadcast index arrays produce.
#[derive(Debug)]
struct ResultDim {
    shape: Vec<usize>,
    size: usize,
    /// Axes of the stored tensor that this axis of the result selects from: one axis for a slice,
    /// every axis that an index array indexes, or none for a new axis.
    of: Vec<usize>,
    offsets: DimOffsets,
}

#[derive(Debug)]
enum DimOffsets {
    /// A slice: it selects the coordinates `first + i * step` of one axis.
    Series {
        first: u64,
        step: i64,
    },
    List(Vec<u64>),
}

#[derive(Debug)]
pub(super) struct PlaceSelection {
    shape: Vec<usize>,
    dims: Vec<ResultDim>,
    /// Axes of the stored tensor on which a single coordinate is selected, each with this
    /// coordinate.
    fixed: Vec<(usize, u64)>,
    strides: Vec<u64>,
    /// Whether the index may select an element more than once, as `[0, 0]` does.
    repeats: bool,
}

/// An item of an index, such as a slice, and the first axis of the view that it applies to.
struct PlacedItem<'a> {
    item: &'a Index,
    first: usize,
}

/// Index arrays that have the same shape, each with the axis that it indexes.
struct IndexArrays {
    shape: Vec<usize>,
    of: Vec<(usize, Vec<i64>)>,
}

/// Converts a mask to one index array per axis of the mask, with the coordinates of all true
/// elements. The mask selects from the axes of `shape` from axis `first` on.
fn mask_to_arrays(mask: &IndexArray<bool>, first: usize, shape: &[usize]) -> Result<IndexArrays> {
    let sizes = shape.get(first..first + mask.shape().len()).unwrap_or_default();
    if sizes != mask.shape() {
        return Err(Error::invalid(format!(
            "the mask has the shape {:?}, but the axes that the mask selects from have the sizes {sizes:?}; give a mask of these sizes",
            mask.shape()
        )));
    }
    let (count, axes) = mask.find_true_coordinates();
    let positions = axes.iter().map(|axis| axis.iter().map(|at| to_place(*at as u64)).collect());
    Ok(IndexArrays { shape: vec![count], of: (first..).zip(positions).collect() })
}

struct SelectionBuilder<'a> {
    view: &'a AxisView,
    storage: &'a DokStorage,
    shape: Vec<usize>,
}

impl SelectionBuilder<'_> {
    /// Converts coordinate `at` on an axis of the view to a coordinate of the stored tensor.
    fn find_storage_coordinate(&self, axis: usize, at: u64) -> u64 {
        match &self.view.axes[axis].picks {
            None => at,
            Some(picks) => picks[to_coordinate(at)],
        }
    }

    fn resolve_position(&self, axis: usize, index: i64) -> Result<u64> {
        let size = self.shape[axis];
        let at = resolve_position(index, size).ok_or(Error::OutOfRange { axis, index, size })?;
        Ok(self.find_storage_coordinate(axis, at as u64))
    }

    fn select_slice(&self, axis: usize, span: AxisSpan) -> ResultDim {
        let of = self.view.axes[axis].of;
        let offsets = if self.view.axes[axis].picks.is_none() {
            DimOffsets::Series { first: span.first as u64, step: span.step }
        } else {
            let at =
                |i: usize| self.find_storage_coordinate(axis, i as u64) * self.storage.strides[of];
            DimOffsets::List(span.positions().map(at).collect())
        };
        ResultDim { shape: vec![span.count], size: span.count, of: vec![of], offsets }
    }

    fn combine_arrays(&self, arrays: &[IndexArrays]) -> Result<ResultDim> {
        let shapes = || arrays.iter().map(|a| a.shape.as_slice());
        let shape = shapes().try_fold(Vec::new(), |all, own| broadcast_shapes(&all, own));
        let shape = shape.ok_or_else(|| {
            let shapes: Vec<String> = shapes().map(|s| format!("{s:?}")).collect();
            Error::invalid(format!(
                "the index arrays of shapes {} do not broadcast together; use shapes whose sizes are equal or 1 on each axis",
                shapes.join(" and ")
            ))
        })?;
        let size = count_shape_elements(&shape).unwrap_or(usize::MAX);
        check_size(&format!("index arrays that broadcast to the shape {shape:?}"), size, 64)?;
        let mut offsets = vec![0u64; size];
        let mut of = Vec::new();
        for array in arrays {
            for (axis, positions) in &array.of {
                let base = self.view.axes[*axis].of;
                let stride = self.storage.strides[base];
                let own = positions.iter().map(|p| Ok(self.resolve_position(*axis, *p)? * stride));
                let own = own.collect::<Result<Vec<u64>>>()?;
                let mut out = offsets.iter_mut();
                for_each_broadcast(&array.shape, &shape, |at| {
                    if let Some(out) = out.next() {
                        *out += own[at];
                    }
                });
                of.push(base);
            }
        }
        Ok(ResultDim { size, shape, of, offsets: DimOffsets::List(offsets) })
    }

    /// Converts an index item to index arrays; `None` unless it is an index array or a mask.
    fn read_arrays(&self, item: &PlacedItem<'_>) -> Result<Option<IndexArrays>> {
        Ok(Some(match item.item {
            Index::Array(a) => IndexArrays {
                shape: a.shape().to_vec(),
                of: vec![(item.first, a.values().to_vec())],
            },
            Index::Mask(m) if m.shape().is_empty() => {
                let count = m.values().iter().filter(|v| **v).count();
                IndexArrays { shape: vec![count], of: Vec::new() }
            }
            Index::Mask(m) => mask_to_arrays(m, item.first, &self.shape)?,
            _ => return Ok(None),
        }))
    }

    fn read_span(&self, axis: usize, item: &Index) -> Result<Option<AxisSpan>> {
        let size = self.shape[axis];
        match item {
            all if *all == Index::ALL => Ok(Some(AxisSpan { first: 0, count: size, step: 1 })),
            Index::Slice { .. } if i64::try_from(size).is_err() => Err(Error::invalid(format!(
                "axis {axis} has {size} elements, too many to slice with 64-bit indices; use integers or index arrays"
            ))),
            Index::Slice { start, stop, step } => {
                Ok(Some(AxisSpan::new(*start, *stop, step.unwrap_or(1), size)))
            }
            _ => Ok(None),
        }
    }
}

/// Returns an error if the positions of the selected entries in the result take more than `most`
/// bytes, at 16 bytes per position. An entry has several positions if the index repeats its
/// coordinates, as `[0, 0]` does.
///
/// Callers find the positions of an entry axis by axis, and call this function for each axis on
/// which coordinates may repeat. `known` is the number of positions of the earlier entries. The
/// earlier axes give the current entry `count` positions; on this axis, its coordinate is selected
/// `repeats` times, so that the entry then has `count * repeats` positions.
pub(super) fn check_positions(
    most: Option<u64>,
    known: u64,
    count: usize,
    repeats: usize,
) -> Result<()> {
    let positions = u128::from(known) + (count as u128).saturating_mul(repeats as u128);
    check_bytes(
        most,
        positions.saturating_mul(16),
        || format!("a selection of {positions} entries, with repeats,"),
        || "select fewer repeated coordinates, or raise the limit".into(),
    )
    .map(drop)
}

const NEW_AXIS: fn() -> ResultDim =
    || ResultDim { shape: vec![1], size: 1, of: Vec::new(), offsets: DimOffsets::List(vec![0]) };

impl PlaceSelection {
    /// Selects by NumPy's rules, which combine all index arrays into one group of result axes.
    pub(super) fn from_numpy_index(
        view: &AxisView,
        storage: &DokStorage,
        index: &[Index],
    ) -> Result<Self> {
        Self::new(view, storage, index, false)
    }

    pub(super) fn from_orthogonal_index(
        view: &AxisView,
        storage: &DokStorage,
        index: &[Index],
    ) -> Result<Self> {
        Self::new(view, storage, index, true)
    }

    fn new(
        view: &AxisView,
        storage: &DokStorage,
        index: &[Index],
        is_orthogonal: bool,
    ) -> Result<Self> {
        let builder = SelectionBuilder { view, storage, shape: view.shape(storage) };
        let what = format!("a tensor with {} axes", view.ndim());
        let index = Index::expand_axes(index, view.ndim(), &what)?;
        let mut first = 0;
        let mut items = Vec::with_capacity(index.len());
        for item in &index {
            items.push(PlacedItem { item, first });
            first += item.count_axes();
        }
        let mut fixed = view.fixed.clone();
        let mut dims = Vec::new();
        let is_array = |i: &PlacedItem<'_>| matches!(i.item, Index::Array(_) | Index::Mask(_));
        let is_broadcast = !is_orthogonal && items.iter().any(is_array);
        let advanced =
            |i: &PlacedItem<'_>| is_broadcast && (is_array(i) || matches!(i.item, Index::At(_)));
        // `group` is the number of result axes before the first index array or integer. The axes
        // that the arrays give are inserted there. If another item separates the arrays and
        // integers, as in `[0, 1], :, 2`, these axes come first in the result instead.
        let mut group = None;
        let mut arrays = Vec::new();
        let from = items.iter().position(advanced).unwrap_or(0);
        let to = items.iter().rposition(advanced).unwrap_or(0);
        let is_separated = is_broadcast && !items[from..=to].iter().all(advanced);
        for item in &items {
            if advanced(item) {
                group.get_or_insert(dims.len());
            }
            match item.item {
                Index::Rest => {}
                Index::NewAxis => dims.push(NEW_AXIS()),
                Index::At(i) if is_broadcast => {
                    arrays
                        .push(IndexArrays { shape: Vec::new(), of: vec![(item.first, vec![*i])] });
                }
                Index::At(i) => {
                    fixed.push((
                        view.axes[item.first].of,
                        builder.resolve_position(item.first, *i)?,
                    ));
                }
                other => {
                    match (builder.read_span(item.first, other)?, builder.read_arrays(item)?) {
                        (Some(span), _) => dims.push(builder.select_slice(item.first, span)),
                        (None, Some(array)) if is_broadcast => arrays.push(array),
                        (None, Some(array)) => dims.push(builder.combine_arrays(&[array])?),
                        (None, None) => {}
                    }
                }
            }
        }
        if is_broadcast {
            let at = if is_separated { 0 } else { group.unwrap_or(0) };
            dims.insert(at, builder.combine_arrays(&arrays)?);
        }
        let shape = dims.iter().flat_map(|d| d.shape.iter().copied()).collect();
        let repeats = view.may_repeat() || items.iter().any(is_array);
        Ok(Self { shape, dims, fixed, strides: storage.strides.clone(), repeats })
    }

    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub(super) fn has_repeats(&self) -> bool {
        self.repeats
    }

    /// Appends the row-major indices of `count` elements of the selection, from element `first` on.
    pub(super) fn extend_slots(&self, first: u64, count: usize, out: &mut Vec<i64>) {
        let sizes: Vec<usize> = self.dims.iter().map(|d| d.size).collect();
        let own = compute_strides(&sizes);
        let mut counter = vec![0u64; sizes.len()];
        unravel_place(first, &own, &mut counter);
        let fixed: u64 = self.fixed.iter().map(|(axis, at)| at * self.strides[*axis]).sum();
        let outer = self.dims.len().saturating_sub(1);
        let mut left = count;
        while left > 0 {
            let base = self.dims[..outer]
                .iter()
                .zip(&counter)
                .fold(fixed, |sum, (d, at)| sum.wrapping_add(self.find_element_offset(d, *at)));
            let Some(last) = self.dims.last() else {
                out.push(to_place(base));
                return;
            };
            // Append all elements up to the end of the innermost axis at once.
            let from = counter[outer];
            let run = left.min(last.size - to_coordinate(from));
            let all = from..from + run as u64;
            out.extend(all.map(|i| to_place(base.wrapping_add(self.find_element_offset(last, i)))));
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
    fn find_element_offset(&self, dim: &ResultDim, i: u64) -> u64 {
        match &dim.offsets {
            DimOffsets::List(list) => list[to_coordinate(i)],
            DimOffsets::Series { first, step } => first
                .wrapping_add(from_place(*step).wrapping_mul(i))
                .wrapping_mul(self.strides[dim.of[0]]),
        }
    }

    /// Calls `each(position in result, row in storage)` for every selected entry. Returns an error
    /// if the positions take more than `most` bytes, because a few long index arrays could
    /// otherwise exhaust the memory.
    pub(super) fn for_each_stored(
        &self,
        stored: &[i64],
        most: Option<u64>,
        mut each: impl FnMut(u64, usize),
    ) -> Result<()> {
        let own = compute_strides(&self.dims.iter().map(|d| d.size).collect::<Vec<_>>());
        // For each result axis with a list of offsets: these offsets, sorted for a binary search,
        // each with its position in the list. Empty for an axis with a series.
        let sorted: Vec<Vec<(u64, u64)>> = self
            .dims
            .iter()
            .map(|d| match &d.offsets {
                DimOffsets::Series { .. } => Vec::new(),
                DimOffsets::List(list) => {
                    let mut list: Vec<(u64, u64)> = list.iter().copied().zip(0..).collect();
                    list.sort_unstable();
                    list
                }
            })
            .collect();
        if self.dims.iter().any(|d| d.size == 0) {
            return Ok(());
        }
        let mut at = vec![0u64; self.strides.len()];
        let (mut found, mut next) = (Vec::new(), Vec::new());
        let mut positions = 0u64;
        'entries: for (row, entry) in stored.iter().enumerate() {
            unravel_place(from_place(*entry), &self.strides, &mut at);
            if self.fixed.iter().any(|(axis, fixed)| at[*axis] != *fixed) {
                continue;
            }
            found.clear();
            found.push(0u64);
            for ((dim, sorted), own) in self.dims.iter().zip(&sorted).zip(&own) {
                match &dim.offsets {
                    DimOffsets::Series { first, step } => {
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
                    DimOffsets::List(_) => {
                        let sum = dim.of.iter().map(|axis| at[*axis] * self.strides[*axis]).sum();
                        let from = sorted.partition_point(|(s, _)| *s < sum);
                        let to = sorted.partition_point(|(s, _)| *s <= sum);
                        if from == to {
                            continue 'entries;
                        }
                        check_positions(most, positions, found.len(), to - from)?;
                        next.clear();
                        for f in &found {
                            next.extend(sorted[from..to].iter().map(|(_, i)| f + i * own));
                        }
                        std::mem::swap(&mut found, &mut next);
                    }
                }
            }
            positions = positions.saturating_add(found.len() as u64);
            found.iter().for_each(|f| each(*f, row));
        }
        Ok(())
    }

    pub(super) fn find_element_place(&self, element: i64) -> i64 {
        let mut out = Vec::with_capacity(1);
        self.extend_slots(from_place(element), 1, &mut out);
        out.first().copied().unwrap_or(0)
    }
}
