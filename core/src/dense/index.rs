//! The elements that a NumPy index selects from a dense tensor.

use std::ops::Range;

use super::DenseTensor;
use super::tensor::count_shape_elements;
use crate::error::{Error, Result};
use crate::index::broadcast_shape::{broadcast_shapes, derive_strides, for_each_broadcast};
use crate::index::{AxisSpan, Index, resolve_position};
use crate::limit::check_size;

/// The elements that a NumPy index selects: ranges of `run` adjacent elements each.
#[derive(Debug)]
pub(crate) struct IndexSelection {
    shape: Vec<usize>,
    /// Index of the first element of each range of `run` elements, in the order of the result.
    starts: Vec<usize>,
    run: usize,
}

enum IndexItem {
    At {
        stride: usize,
        position: usize,
    },
    Span {
        axis: usize,
        stride: usize,
        span: AxisSpan,
    },
    Array {
        stride: usize,
        shape: Vec<usize>,
        positions: Vec<usize>,
    },
    NewAxis,
    /// A `...` that covers no axis. As in NumPy, it still separates the index arrays before and
    /// after it.
    Nothing,
}

/// One axis of the result, or all axes that the index arrays produce together. The position of a
/// selected element is the sum of one offset per `ResultAxis` and of a constant for the integers.
struct ResultAxis {
    shape: Vec<usize>,
    offsets: Vec<usize>,
    /// The axis of the tensor that the index selects completely and in order; `None` for any other
    /// selection.
    whole: Option<usize>,
}

impl IndexSelection {
    /// Resolves `index` for a tensor of shape `shape`. If the index has arrays, its arrays and
    /// integers are broadcast to one shape. In the result, the axes of this shape are at the place
    /// of the arrays and integers if these are adjacent items, as in `:, [0, 1], 2`; they come
    /// first if a slice, a new axis or `...` separates the items, as in `[0, 1], :, 2`. A mask of
    /// `n` axes counts as `n` index arrays, which have the coordinates of its true elements.
    pub(crate) fn new(shape: &[usize], index: &[Index]) -> Result<Self> {
        let items = resolve_items(shape, index)?;
        let strides = compute_element_strides(shape);
        let empty = shape.contains(&0);
        let mut base = 0usize;
        let mut dims = Vec::with_capacity(items.len());
        let arrays = |i: &IndexItem| matches!(i, IndexItem::Array { .. });
        let advanced = |i: &IndexItem| matches!(i, IndexItem::Array { .. } | IndexItem::At { .. });
        let any = items.iter().any(arrays);
        // `combined` has the axes that the arrays give. In the result, they come before the axes of
        // item `first` and of later items.
        let (first, combined) = if any {
            let at: Vec<usize> = (0..items.len()).filter(|i| advanced(&items[*i])).collect();
            let neighbours = at.windows(2).all(|w| w[0] + 1 == w[1]);
            (if neighbours { at[0] } else { 0 }, Some(combine_arrays(&items)?))
        } else {
            (usize::MAX, None)
        };
        let mut combined = combined;
        for (i, item) in items.into_iter().enumerate() {
            if i == first {
                dims.extend(combined.take());
            }
            match item {
                IndexItem::At { .. } if any => {}
                IndexItem::At { stride, position } => base += stride * position,
                IndexItem::Span { axis, stride, span } => dims.push(ResultAxis {
                    shape: vec![span.count],
                    offsets: match empty {
                        true => Vec::new(),
                        false => span.positions().map(|p| p * stride).collect(),
                    },
                    whole: span.is_whole(shape[axis]).then_some(axis),
                }),
                IndexItem::NewAxis => {
                    dims.push(ResultAxis { shape: vec![1], offsets: vec![0], whole: None });
                }
                IndexItem::Array { .. } | IndexItem::Nothing => {}
            }
        }
        let out: Vec<usize> = dims.iter().flat_map(|d| d.shape.iter().copied()).collect();
        let count = count_shape_elements(&out).unwrap_or(usize::MAX);
        // Combine the last axes that the index selects completely: their elements are adjacent and
        // form one run, which is copied as a whole.
        let (mut run, mut axis) = (1usize, shape.len());
        while let Some(dim) = dims.last()
            && dim.whole.is_some_and(|a| a + 1 == axis)
            && strides.get(axis - 1) == Some(&run)
        {
            axis -= 1;
            run *= shape[axis];
            dims.pop();
        }
        // Repeated indices and broadcasts can enlarge the result: check its size, assuming 8 bytes
        // per element.
        if count > count_shape_elements(shape).unwrap_or(usize::MAX) {
            check_size(&format!("an index that selects the shape {out:?}"), count, 64)?;
        }
        let mut starts = vec![base];
        if count == 0 {
            return Ok(Self { shape: out, starts: Vec::new(), run });
        }
        for dim in &dims {
            let mut next = Vec::with_capacity(starts.len() * dim.offsets.len());
            for start in &starts {
                next.extend(dim.offsets.iter().map(|p| start + p));
            }
            starts = next;
        }
        Ok(Self { shape: out, starts, run })
    }

    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.starts.iter().map(|s| *s..*s + self.run)
    }

    #[cfg(feature = "batching")]
    pub(crate) fn positions(&self) -> impl Iterator<Item = usize> + '_ {
        self.ranges().flatten()
    }
}

/// Returns the row-major stride of each axis, in elements. If an axis has size 0, all strides are
/// 0, because the product of the other sizes may overflow.
fn compute_element_strides(shape: &[usize]) -> Vec<usize> {
    if shape.contains(&0) { vec![0; shape.len()] } else { derive_strides(shape) }
}

fn resolve_items(shape: &[usize], index: &[Index]) -> Result<Vec<IndexItem>> {
    let index =
        Index::expand_axes(index, shape.len(), &format!("a tensor with {} axes", shape.len()))?;
    let strides = compute_element_strides(shape);
    let mut items = Vec::with_capacity(shape.len());
    let mut axis = 0;
    for item in &index {
        match item {
            Index::At(i) => {
                let size = shape[axis];
                let position = resolve_position(*i, size).ok_or(Error::OutOfRange {
                    axis,
                    index: *i,
                    size,
                })?;
                items.push(IndexItem::At { stride: strides[axis], position });
                axis += 1;
            }
            Index::Slice { start, stop, step } => {
                let span = AxisSpan::new(*start, *stop, step.unwrap_or(1), shape[axis]);
                items.push(IndexItem::Span { axis, stride: strides[axis], span });
                axis += 1;
            }
            Index::Array(array) => {
                let size = shape[axis];
                let positions = array.values().iter().map(|i| {
                    resolve_position(*i, size).ok_or(Error::OutOfRange { axis, index: *i, size })
                });
                let positions = positions.collect::<Result<_>>()?;
                let shape = array.shape().to_vec();
                items.push(IndexItem::Array { stride: strides[axis], shape, positions });
                axis += 1;
            }
            Index::Mask(mask) => {
                let own = mask.shape();
                if own.is_empty() {
                    return Err(Error::invalid(
                        "a mask used as an index has no axes; give a mask with at least one axis",
                    ));
                }
                if own != &shape[axis..axis + own.len()] {
                    return Err(Error::invalid(format!(
                        "a mask used as an index has the shape {own:?}, but the axes that it selects from have the sizes {:?}; give a mask of these sizes",
                        &shape[axis..axis + own.len()]
                    )));
                }
                let (count, axes) = mask.find_true_coordinates();
                for positions in axes {
                    let shape = vec![count];
                    items.push(IndexItem::Array { stride: strides[axis], shape, positions });
                    axis += 1;
                }
            }
            // `expand_axes` has replaced every `...` that covers axes, so this `...` covers none.
            Index::Rest => items.push(IndexItem::Nothing),
            Index::NewAxis => items.push(IndexItem::NewAxis),
        }
    }
    Ok(items)
}

/// Combines the index arrays, and the integers used with them, into the axes of their common shape.
fn combine_arrays(items: &[IndexItem]) -> Result<ResultAxis> {
    let mut shape: Vec<usize> = Vec::new();
    for item in items {
        let IndexItem::Array { shape: own, .. } = item else { continue };
        shape = broadcast_shapes(&shape, own).ok_or_else(|| {
            Error::invalid(format!(
                "an index array of shape {own:?} does not broadcast with the other index arrays, which have the shape {shape:?}; use sizes that are equal or 1"
            ))
        })?;
    }
    let count = count_shape_elements(&shape).unwrap_or(usize::MAX);
    check_size(&format!("index arrays that broadcast to the shape {shape:?}"), count, 64)?;
    let mut offsets = vec![0usize; count];
    for item in items {
        match item {
            IndexItem::At { stride, position } => {
                offsets.iter_mut().for_each(|p| *p += stride * position);
            }
            IndexItem::Array { stride, shape: own, positions } => {
                let mut places = offsets.iter_mut();
                for_each_broadcast(own, &shape, |from| {
                    if let Some(place) = places.next() {
                        *place += stride * positions[from];
                    }
                });
            }
            _ => {}
        }
    }
    Ok(ResultAxis { shape, offsets, whole: None })
}

impl DenseTensor {
    /// Copies the elements that a NumPy index selects: integers, slices with steps, `...`, new
    /// axes, index arrays that broadcast, and masks of one or more axes.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::index::parse_index;
    /// let t = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 5, 6])?;
    /// assert_eq!(t.index(&parse_index(":, ::-2")?)?.to_string(), "int32[2, 2] [[3, 1], [6, 4]]");
    /// assert_eq!(t.index(&parse_index("[1, 0], [0, -1]")?)?.to_string(), "int32[2] [4, 3]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an index is out of range or selects from more axes than the tensor has, the shape of a
    /// mask differs from the sizes of the axes that it selects from, or index arrays do not
    /// broadcast.
    pub fn index(&self, index: &[Index]) -> Result<Self> {
        let selection = IndexSelection::new(self.shape(), index)?;
        let size = self.dtype().size();
        let bytes = self.as_bytes();
        let total = count_shape_elements(selection.shape()).and_then(|n| n.checked_mul(size));
        let total = total.ok_or_else(|| {
            Error::invalid(
                "the index selects more bytes than memory can address; select fewer elements",
            )
        })?;
        let mut out = arrow::buffer::MutableBuffer::with_capacity(total);
        for range in selection.ranges() {
            out.extend_from_slice(&bytes[range.start * size..range.end * size]);
        }
        Self::try_new_trusted(self.dtype(), selection.shape, out.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{IndexArray, parse_index};

    fn taken(index: &[Index]) -> Result<(Vec<usize>, Vec<i64>)> {
        let t = DenseTensor::from_vec([2, 3, 4], (0..24i64).collect::<Vec<_>>())?;
        let t = t.index(index)?;
        Ok((t.shape().to_vec(), t.as_slice::<i64>()?.to_vec()))
    }

    fn text(index: &str) -> (Vec<usize>, Vec<i64>) {
        taken(&parse_index(index).unwrap()).unwrap()
    }

    #[test]
    fn basic_indices_are_numpys() {
        assert_eq!(text("1, -1, 0"), (vec![], vec![20]));
        assert_eq!(text("1, 1:"), (vec![2, 4], (16..24).collect()));
        assert_eq!(text("..., 0"), (vec![2, 3], vec![0, 4, 8, 12, 16, 20]));
        assert_eq!(text(":, 2, None, ::-3"), (vec![2, 1, 2], vec![11, 8, 23, 20]));
        assert_eq!(text("1:1"), (vec![0, 3, 4], vec![]));
        assert_eq!(text("..."), (vec![2, 3, 4], (0..24).collect()));
    }

    #[test]
    fn arrays_go_together() {
        assert_eq!(text("[0, 1], [2, 0], [3, 3]"), (vec![2], vec![11, 15]));
        assert_eq!(text(":, 1, [0, 2]"), (vec![2, 2], vec![4, 6, 16, 18]));
        assert_eq!(text("[1, 0], :, 1").0, [2, 3]);
        assert_eq!(text("1, :, [0, 3]"), (vec![2, 3], vec![12, 16, 20, 15, 19, 23]));
        let square = Index::Array(IndexArray::try_new([2, 1], vec![1, 0]).unwrap());
        let (shape, values) = taken(&[square, Index::ALL, vec![0, 3].into()]).unwrap();
        assert_eq!((shape, values[..4].to_vec()), (vec![2, 2, 3], vec![12, 16, 20, 15]));
        assert_eq!(text("[]").0, [0, 3, 4]);
    }

    #[test]
    fn masks_take_as_many_axes_as_they_have() {
        let mask = IndexArray::try_new([2, 3], vec![false, true, false, true, false, true]);
        let (shape, values) = taken(&[Index::Mask(mask.unwrap()), 0.into()]).unwrap();
        assert_eq!((shape, values), (vec![3], vec![4, 12, 20]));
        let (shape, _) = taken(&[Index::ALL, vec![true, false, true].into()]).unwrap();
        assert_eq!(shape, [2, 2, 4]);
    }

    #[test]
    fn what_numpy_refuses_is_refused() {
        for index in ["2", "0, 3", "[0, 2]", "0, 0, 0, 0", "[0, 1], [0, 1, 2]"] {
            assert!(taken(&parse_index(index).unwrap()).is_err(), "{index}");
        }
        assert!(taken(&[vec![true].into()]).is_err());
        assert!(taken(&[Index::Rest, Index::Rest]).is_err());
        assert!(taken(&[Index::Slice { start: None, stop: None, step: Some(0) }]).is_err());
    }

    #[test]
    fn results_are_limited_before_they_are_allocated() {
        let t = DenseTensor::from_vec([4], vec![1i32, 2, 3, 4]).unwrap();
        let column = IndexArray::try_new([1 << 20, 1], vec![0i64; 1 << 20]).unwrap();
        let t2 = t.reshape([2, 2]).unwrap();
        let e = t2.index(&[Index::Array(column.clone()), vec![0i64; 1 << 20].into()]).unwrap_err();
        assert!(matches!(e, Error::TooLarge { .. }), "{e}");
        let wide = DenseTensor::from_vec([1, 1 << 11], vec![0u8; 1 << 11]).unwrap();
        let e = wide.index(&[vec![0i64; 1 << 20].into(), parse_index("::2").unwrap().remove(0)]);
        assert!(e.is_err());
        // A shape with a size of 0 is valid even if the product of the other sizes overflows.
        let none = DenseTensor::from_vec([0, 1 << 40, 1 << 40], Vec::<u8>::new()).unwrap();
        let index = [Index::ALL, (1 << 39).into(), 1.into()];
        assert_eq!(none.index(&index).unwrap().shape(), [0]);
        let none = none.reshape([1 << 60, 0]).unwrap();
        assert_eq!(none.index(&parse_index("1:").unwrap()).unwrap().shape(), [(1 << 60) - 1, 0]);
    }
}
