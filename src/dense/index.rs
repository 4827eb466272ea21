//! Indexing of dense tensors as numpy indexes arrays.

use std::ops::Range;

use super::DenseTensor;
use super::tensor::element_count;
use crate::error::{Error, Result};
use crate::index::{Index, Span, resolve};

/// What an index takes of a tensor: the shape of the result, and runs of neighbouring elements.
#[derive(Debug)]
pub(crate) struct Selection {
    shape: Vec<usize>,
    /// First element of every run, in the order of the result.
    starts: Vec<usize>,
    /// Elements of a run.
    run: usize,
}

/// One item of an index on its axis.
enum Item {
    At {
        stride: usize,
        position: usize,
    },
    Span {
        axis: usize,
        stride: usize,
        span: Span,
    },
    Array {
        stride: usize,
        shape: Vec<usize>,
        positions: Vec<usize>,
    },
    NewAxis,
    /// `...` of no axes, which stands between its neighbours all the same.
    Nothing,
}

/// One axis of the result: places of its elements, counted from wherever the others are.
struct Dim {
    shape: Vec<usize>,
    places: Vec<usize>,
    /// The axis that is taken whole and in order.
    whole: Option<usize>,
}

impl Selection {
    /// Resolves an index over a shape.
    ///
    /// Several arrays (and integers beside them) go together, broadcast against each other; their
    /// axes stand where the first of them stood when they are neighbours, else first. A mask of `n`
    /// axes takes `n` axes and is as good as the positions that are true.
    pub(crate) fn new(shape: &[usize], index: &[Index]) -> Result<Self> {
        let items = items(shape, index)?;
        let strides = strides(shape);
        let mut base = 0usize;
        let mut dims = Vec::with_capacity(items.len());
        let arrays = |i: &Item| matches!(i, Item::Array { .. });
        let advanced = |i: &Item| matches!(i, Item::Array { .. } | Item::At { .. });
        let any = items.iter().any(arrays);
        // Where the axes of the arrays go, and whether they are put there already.
        let (first, joined) = if any {
            let at: Vec<usize> = (0..items.len()).filter(|i| advanced(&items[*i])).collect();
            let neighbours = at.windows(2).all(|w| w[0] + 1 == w[1]);
            (if neighbours { at[0] } else { 0 }, Some(join(&items)?))
        } else {
            (usize::MAX, None)
        };
        let mut joined = joined;
        for (i, item) in items.into_iter().enumerate() {
            if i == first {
                dims.extend(joined.take());
            }
            match item {
                Item::At { .. } if any => {}
                Item::At { stride, position } => base += stride * position,
                Item::Span { axis, stride, span } => dims.push(Dim {
                    shape: vec![span.count],
                    places: span.positions().map(|p| p * stride).collect(),
                    whole: span.is_whole(shape[axis]).then_some(axis),
                }),
                Item::NewAxis => {
                    dims.push(Dim { shape: vec![1], places: vec![0], whole: None });
                }
                Item::Array { .. } | Item::Nothing => {}
            }
        }
        let out: Vec<usize> = dims.iter().flat_map(|d| d.shape.iter().copied()).collect();
        let Some(count) = element_count(&out) else {
            return Err(Error::invalid(format!(
                "an index of shape {out:?}, more than there can be"
            )));
        };
        // The last axes, as long as they are whole, are runs.
        let (mut run, mut axis) = (1usize, shape.len());
        while let Some(dim) = dims.last()
            && dim.whole.is_some_and(|a| a + 1 == axis)
            && strides.get(axis - 1) == Some(&run)
        {
            axis -= 1;
            run *= shape[axis];
            dims.pop();
        }
        let mut starts = vec![base];
        if count == 0 {
            starts.clear();
        }
        for dim in &dims {
            let mut next = Vec::with_capacity(starts.len() * dim.places.len());
            for start in &starts {
                next.extend(dim.places.iter().map(|p| start + p));
            }
            starts = next;
        }
        Ok(Self { shape: out, starts, run })
    }

    /// Shape of what is taken.
    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Ranges of elements, in the order of the result.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.starts.iter().map(|s| *s..*s + self.run)
    }

    /// Every element, in the order of the result.
    pub(crate) fn positions(&self) -> impl Iterator<Item = usize> + '_ {
        self.ranges().flatten()
    }
}

/// Elements between neighbours along every axis; shapes are those of tensors, whose elements fit.
fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1usize; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i].saturating_mul(shape[i]);
    }
    strides
}

fn items(shape: &[usize], index: &[Index]) -> Result<Vec<Item>> {
    let takes = |i: &Index| match i {
        Index::Mask(m) => m.shape().len(),
        i => usize::from(i.takes_axis()),
    };
    let given: usize = index.iter().map(takes).sum();
    let Some(left) = shape.len().checked_sub(given) else {
        return Err(Error::invalid(format!(
            "{given} indices for a tensor of {} axes",
            shape.len()
        )));
    };
    if index.iter().filter(|i| **i == Index::Rest).count() > 1 {
        return Err(Error::invalid("an index has at most one ..."));
    }
    let strides = strides(shape);
    let mut items = Vec::with_capacity(shape.len());
    let mut axis = 0;
    let whole = |items: &mut Vec<Item>, axis: &mut usize| {
        for _ in 0..left {
            let span = Span::new(None, None, 1, shape[*axis]);
            items.push(Item::Span { axis: *axis, stride: strides[*axis], span });
            *axis += 1;
        }
    };
    for item in index {
        match item {
            Index::At(i) => {
                let size = shape[axis];
                let position =
                    resolve(*i, size).ok_or(Error::OutOfRange { axis, index: *i, size })?;
                items.push(Item::At { stride: strides[axis], position });
                axis += 1;
            }
            Index::Slice { start, stop, step } => {
                let step = step.unwrap_or(1);
                if step == 0 {
                    return Err(Error::invalid("a slice with a step of 0; it goes nowhere"));
                }
                let span = Span::new(*start, *stop, step, shape[axis]);
                items.push(Item::Span { axis, stride: strides[axis], span });
                axis += 1;
            }
            Index::Array(array) => {
                let size = shape[axis];
                let positions = array
                    .values()
                    .iter()
                    .map(|i| resolve(*i, size).ok_or(Error::OutOfRange { axis, index: *i, size }));
                let positions = positions.collect::<Result<_>>()?;
                let shape = array.shape().to_vec();
                items.push(Item::Array { stride: strides[axis], shape, positions });
                axis += 1;
            }
            Index::Mask(mask) => {
                let own = mask.shape();
                if own.is_empty() {
                    return Err(Error::invalid("a mask without axes; it masks nothing"));
                }
                if own != &shape[axis..axis + own.len()] {
                    return Err(Error::invalid(format!(
                        "a mask of shape {own:?} for axes of shape {:?}",
                        &shape[axis..axis + own.len()]
                    )));
                }
                let inner = self::strides(own);
                let taken: Vec<usize> =
                    (0..mask.values().len()).filter(|i| mask.values()[*i]).collect();
                for (size, by) in own.iter().zip(inner) {
                    let positions: Vec<usize> = taken.iter().map(|t| t / by % size).collect();
                    let shape = vec![taken.len()];
                    items.push(Item::Array { stride: strides[axis], shape, positions });
                    axis += 1;
                }
            }
            Index::Rest if left == 0 => items.push(Item::Nothing),
            Index::Rest => whole(&mut items, &mut axis),
            Index::NewAxis => items.push(Item::NewAxis),
        }
    }
    if !index.contains(&Index::Rest) {
        whole(&mut items, &mut axis);
    }
    Ok(items)
}

/// All arrays of an index, and the integers beside them, as one axis of the shape they broadcast to.
fn join(items: &[Item]) -> Result<Dim> {
    let mut shape: Vec<usize> = Vec::new();
    for item in items {
        let Item::Array { shape: own, .. } = item else { continue };
        shape = broadcast(&shape, own).ok_or_else(|| {
            Error::invalid(format!(
                "an index array of shape {own:?} beside others of shape {shape:?}; they do not broadcast"
            ))
        })?;
    }
    let count = element_count(&shape).ok_or_else(|| Error::invalid("too large an index array"))?;
    let mut places = vec![0usize; count];
    for item in items {
        match item {
            Item::At { stride, position } => {
                places.iter_mut().for_each(|p| *p += stride * position);
            }
            Item::Array { stride, shape: own, positions } => {
                let from = broadcast_positions(own, &shape);
                for (place, from) in places.iter_mut().zip(from) {
                    *place += stride * positions[from];
                }
            }
            _ => {}
        }
    }
    Ok(Dim { shape, places, whole: None })
}

/// The shape that both broadcast to, missing axes in front; `None` when there is none.
pub(crate) fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let ndim = a.len().max(b.len());
    let size = |s: &[usize], i: usize| (i + s.len()).checked_sub(ndim).map_or(1, |i| s[i]);
    (0..ndim)
        .map(|i| match (size(a, i), size(b, i)) {
            (x, y) if x == y => Some(x),
            (1, y) => Some(y),
            (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

/// For every element of `to`, row-major, the element of `from` that broadcasts to it. The caller
/// vouches that it does.
pub(crate) fn broadcast_positions<'a>(
    from: &'a [usize],
    to: &'a [usize],
) -> impl Iterator<Item = usize> + 'a {
    let missing = to.len() - from.len();
    let mut by = strides(from);
    for (by, size) in by.iter_mut().zip(from) {
        if *size == 1 {
            *by = 0;
        }
    }
    let outer = strides(to);
    (0..element_count(to).unwrap_or(0)).map(move |i| {
        by.iter()
            .zip(&outer[missing..])
            .zip(&to[missing..])
            .map(|((by, outer), size)| i / outer % size * by)
            .sum()
    })
}

impl DenseTensor {
    /// The elements an index takes, as numpy's arrays are indexed: integers, slices with steps,
    /// `...`, new axes, index arrays that broadcast, masks of one or more axes. A copy.
    ///
    /// ```
    /// use serrate::dense::DenseTensor;
    /// use serrate::index::parse_index;
    /// let t = DenseTensor::from_vec([2, 3], vec![1, 2, 3, 4, 5, 6])?;
    /// assert_eq!(t.index(&parse_index(":, ::-2")?)?.to_string(), "int32[2, 2] [[3, 1], [6, 4]]");
    /// assert_eq!(t.index(&parse_index("[1, 0], [0, -1]")?)?.to_string(), "int32[2] [4, 3]");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Positions out of range, more indices than axes, masks of another shape, arrays that do not
    /// broadcast.
    pub fn index(&self, index: &[Index]) -> Result<Self> {
        let selection = Selection::new(self.shape(), index)?;
        let size = self.dtype().size();
        let bytes = self.as_bytes();
        let total = element_count(selection.shape()).and_then(|n| n.checked_mul(size));
        let total = total.ok_or_else(|| Error::invalid("too large an index"))?;
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
        // Neighbours stay in their place; an integer is one of them.
        assert_eq!(text(":, 1, [0, 2]"), (vec![2, 2], vec![4, 6, 16, 18]));
        // Separated by a slice, their axis comes first.
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
    fn shapes_broadcast() {
        assert_eq!(broadcast(&[2, 1], &[3]), Some(vec![2, 3]));
        assert_eq!(broadcast(&[], &[0, 1]), Some(vec![0, 1]));
        assert_eq!(broadcast(&[2], &[3]), None);
        let from: Vec<usize> = broadcast_positions(&[2, 1], &[3, 2, 2]).collect();
        assert_eq!(from, [0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1]);
    }
}
