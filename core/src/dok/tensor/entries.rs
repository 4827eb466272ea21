//! The entries of a tensor or a view, with their row-major indices and values.

use rayon::prelude::*;

use super::DokTensor;
use super::selection::check_positions;
use super::storage::{
    compute_strides, count_elements, from_place, to_coordinate, to_place, unravel_place,
};
use crate::dense::DenseTensor;
use crate::error::{Error, Result};

#[derive(Clone, Debug)]
pub(super) struct SparseEntries {
    pub(super) shape: Vec<usize>,
    /// Row-major index of each entry in a tensor of `shape`; int64. The indices are distinct,
    /// unless [`sum_equal`](super::reduce::sum_equal) must still add the values of equal indices.
    pub(super) places: DenseTensor,
    pub(super) values: DenseTensor,
}

impl SparseEntries {
    pub(super) fn new(shape: Vec<usize>, places: Vec<i64>, values: DenseTensor) -> Result<Self> {
        let places = DenseTensor::from_vec([places.len()], places)?;
        Ok(Self { shape, places, values })
    }

    pub(super) fn len(&self) -> usize {
        self.places.num_elements()
    }

    pub(super) fn places(&self) -> Result<&[i64]> {
        self.places.as_slice::<i64>()
    }

    pub(super) fn into_sorted(self) -> Result<Self> {
        let places = self.places()?;
        if places.is_sorted() {
            return Ok(self);
        }
        let mut order: Vec<(i64, u64)> = places.iter().copied().zip(0..).collect();
        if order.len() > 1 << 16 {
            order.par_sort_unstable()
        } else {
            order.sort_unstable()
        }
        let rows: Vec<u64> = order.iter().map(|(_, row)| *row).collect();
        let places = order.into_iter().map(|(place, _)| place).collect();
        Self::new(self.shape, places, take_rows(&self.values, &rows)?)
    }

    /// Returns the coordinates, int64 of shape `[ndim, nnz]`.
    pub(super) fn to_indices(&self) -> Result<DenseTensor> {
        let (ndim, count) = (self.shape.len(), self.len());
        let size = ndim.checked_mul(count).ok_or_else(|| {
            Error::invalid(format!(
                "{ndim} coordinates of each of {count} entries are more than memory can address; select a part of the tensor"
            ))
        })?;
        let mut out = vec![0i64; size];
        let mut rest: Vec<u64> = self.places()?.iter().map(|p| from_place(*p)).collect();
        for (axis, stride) in compute_strides(&self.shape).into_iter().enumerate() {
            for (coordinate, rest) in out[axis * count..][..count].iter_mut().zip(&mut rest) {
                let at = *rest / stride;
                *rest -= at * stride;
                *coordinate = to_place(at);
            }
        }
        DenseTensor::from_vec([ndim, count], out)
    }
}

pub(super) fn take_rows(values: &DenseTensor, rows: &[u64]) -> Result<DenseTensor> {
    let size = values.dtype().size();
    let bytes = values.as_bytes();
    macro_rules! of {
        ($n:literal) => {{
            let (elements, _) = bytes.as_chunks::<$n>();
            let mut out = vec![0u8; rows.len() * $n];
            for (out, row) in out.as_chunks_mut::<$n>().0.iter_mut().zip(rows) {
                *out = elements[to_coordinate(*row)];
            }
            out
        }};
    }
    let out = match size {
        1 => of!(1),
        2 => of!(2),
        4 => of!(4),
        _ => of!(8),
    };
    let buffer = arrow::buffer::Buffer::from_vec(out);
    DenseTensor::try_new_trusted(values.dtype(), vec![rows.len()], buffer)
}

impl DokTensor {
    pub(super) fn collect_entries(&self) -> Result<SparseEntries> {
        let storage = self.storage.read();
        let shape = self.view.shape(&storage);
        count_elements(&shape)?;
        let (places, values) = (storage.map.keys()?, storage.map.values()?);
        if self.view.is_whole() {
            return Ok(SparseEntries { shape, places, values });
        }
        let own = compute_strides(&shape);
        let base = storage.strides.clone();
        drop(storage);
        let places = places.as_slice::<i64>()?;
        if self.view.is_permutation() {
            return SparseEntries::new(shape, self.permute_places(places, &base, &own), values);
        }
        let (places, rows) = self.select_places(places, &base, &own)?;
        SparseEntries::new(shape, places, take_rows(&values, &rows)?)
    }

    /// Returns the places in this view, which permutes the axes, of the entries that have `places`
    /// in the stored tensor. `base` and `own` are the strides of the stored tensor and of the view.
    fn permute_places(&self, places: &[i64], base: &[u64], own: &[u64]) -> Vec<i64> {
        // For each axis of the stored tensor, its stride in the stored tensor and its stride in
        // the view.
        let mut steps: Vec<(u64, u64)> = vec![(1, 0); base.len()];
        for (axis, own) in self.view.axes.iter().zip(own) {
            steps[axis.of] = (base[axis.of], *own);
        }
        let moved = |p: &i64| {
            let mut rest = from_place(*p);
            let mut to = 0;
            for (from, own) in &steps {
                let at = rest / from;
                rest -= at * from;
                to += at * own;
            }
            to_place(to)
        };
        if places.len() > 1 << 16 {
            places.par_iter().map(moved).collect()
        } else {
            places.iter().map(moved).collect()
        }
    }

    /// Returns the places in this view of the entries at `places` of the stored tensor, each with
    /// the index of its entry. `base` and `own` are the strides of the stored tensor and of the
    /// view.
    fn select_places(
        &self,
        places: &[i64],
        base: &[u64],
        own: &[u64],
    ) -> Result<(Vec<i64>, Vec<u64>)> {
        // For each axis of the view, sorted pairs of a coordinate of the stored tensor and its
        // coordinate in the view; `None` if the axis shows all coordinates.
        let shown: Vec<Option<Vec<(u64, u64)>>> = self
            .view
            .axes
            .iter()
            .map(|a| {
                a.picks.as_ref().map(|picks| {
                    let mut at: Vec<(u64, u64)> = picks.iter().copied().zip(0..).collect();
                    at.sort_unstable();
                    at
                })
            })
            .collect();
        let (mut out, mut rows) = (Vec::new(), Vec::new());
        let mut coordinates = vec![0; base.len()];
        let (mut partial, mut next) = (Vec::new(), Vec::new());
        for (row, p) in (0u64..).zip(places) {
            unravel_place(from_place(*p), base, &mut coordinates);
            if self.view.fixed.iter().any(|(axis, at)| coordinates[*axis] != *at) {
                continue;
            }
            partial.clear();
            partial.push(0u64);
            for ((axis, shown), own) in self.view.axes.iter().zip(&shown).zip(own) {
                let at = coordinates[axis.of];
                match shown {
                    None => partial.iter_mut().for_each(|p| *p += at * own),
                    Some(shown) => {
                        let from = shown.partition_point(|(c, _)| *c < at);
                        let to = shown.partition_point(|(c, _)| *c <= at);
                        let known = out.len() as u64;
                        check_positions(self.limit, known, partial.len(), to - from)?;
                        next.clear();
                        for p in &partial {
                            next.extend(shown[from..to].iter().map(|(_, here)| p + here * own));
                        }
                        std::mem::swap(&mut partial, &mut next);
                    }
                }
            }
            out.extend(partial.iter().map(|p| to_place(*p)));
            rows.extend(partial.iter().map(|_| row));
        }
        Ok((out, rows))
    }
}
