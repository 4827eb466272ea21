//! Sums over axes, and the groups of entries that reductions are made of.

use rayon::prelude::*;

use super::DokTensor;
use super::entries::{Entries, take};
use super::numbers::Numbers;
use super::storage::{linear, place, strides};
use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};

/// Entries that differ only along axes that go, in row-major order of what is left; within a group in
/// row-major order of the tensor, whatever the order they came in.
pub(super) struct Groups {
    /// Shape without the axes, or with size 1 for them.
    pub(super) shape: Vec<usize>,
    /// The place of each group in it.
    pub(super) places: Vec<i64>,
    /// Where each group ends among the entries.
    pub(super) ends: Vec<usize>,
    /// The entries, group after group.
    pub(super) rows: Vec<u64>,
    /// Elements that a group would have if all were stored; at most 2^63.
    pub(super) size: u64,
}

impl Groups {
    pub(super) fn new(entries: &Entries, gone: &[bool], keep: bool) -> Result<Self> {
        let from = strides(&entries.shape);
        let kept: Vec<usize> = entries
            .shape
            .iter()
            .zip(gone)
            .map(|(size, gone)| if *gone { 1 } else { *size })
            .collect();
        let to = strides(&kept);
        let size = entries.shape.iter().zip(gone).filter(|(_, gone)| **gone);
        let size = size.fold(1u64, |n, (size, _)| n.saturating_mul(*size as u64));
        let own = |entry: i64| {
            let mut rest = linear(entry);
            let mut place = 0;
            for ((from, to), gone) in from.iter().zip(&to).zip(gone) {
                let at = rest / from;
                rest -= at * from;
                if !gone {
                    place += at * to;
                }
            }
            place
        };
        let places = entries.places()?;
        let key = |(row, entry): (u64, &i64)| (own(*entry), *entry, row);
        let mut keys: Vec<(u64, i64, u64)> = (0u64..).zip(places).map(key).collect();
        if keys.len() > 1 << 16 {
            keys.par_sort_unstable()
        } else {
            keys.sort_unstable()
        }
        let (mut group_places, mut ends) = (Vec::new(), Vec::new());
        for (i, (group, _, _)) in keys.iter().enumerate() {
            if group_places.last() != Some(&place(*group)) {
                group_places.push(place(*group));
                ends.push(i);
            }
            if let Some(end) = ends.last_mut() {
                *end = i + 1;
            }
        }
        let kept = if keep {
            kept
        } else {
            entries.shape.iter().zip(gone).filter(|(_, g)| !**g).map(|(s, _)| *s).collect()
        };
        let rows = keys.into_iter().map(|(_, _, row)| row).collect();
        Ok(Self { shape: kept, places: group_places, ends, rows, size })
    }

    /// Where the groups are among the entries.
    pub(super) fn ranges(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(self.ends.iter().copied()).map(|(from, to)| from..to)
    }

    /// One number per group.
    pub(super) fn entries(self, values: DenseTensor) -> Result<Entries> {
        Entries::new(self.shape, self.places, values)
    }
}

/// The type of sums: 64 bits for integers, that of the values for floating point numbers.
fn sum_type(dtype: DType) -> DType {
    match dtype {
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => DType::U64,
        d if d.is_float() => d,
        _ => DType::I64,
    }
}

/// Adds groups up; floating point numbers in float64, integers exactly.
fn sums(groups: &Groups, values: &DenseTensor, dtype: DType) -> Result<DenseTensor> {
    let sorted = Numbers::of(&take(values, &groups.rows)?)?;
    let sums = match &sorted {
        Numbers::Int(v) => Numbers::Int(groups.ranges().map(|r| v[r].iter().sum()).collect()),
        Numbers::Float(v) => Numbers::Float(groups.ranges().map(|r| v[r].iter().sum()).collect()),
    };
    sums.into_dense(dtype, "a sum")
}

/// Adds entries at one place up, to `dtype`.
pub(super) fn sum_equal(entries: Entries, dtype: DType) -> Result<Entries> {
    let groups = Groups::new(&entries, &vec![false; entries.shape.len()], false)?;
    let values = sums(&groups, &entries.values, dtype)?;
    groups.entries(values)
}

impl DokTensor {
    /// Sums over axes, all of them for `None`: a sparse tensor without those axes, or with size 1 for
    /// them when `keep` is set. Where nothing is stored, the sum is 0 and not stored either.
    ///
    /// Integers and booleans give 64-bit integers; floating point numbers stay what they are and are
    /// added up in float64. Axes may be counted from the end.
    ///
    /// ```
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 3], vec![0f32, 5.0, 0.0, 7.0, 0.0, 9.0])?)?;
    /// assert_eq!(t.sum(Some(&[1]), false)?.to_dense()?.as_slice::<f32>()?, [5.0, 16.0]);
    /// assert_eq!(t.sum(None, false)?.at(&[])?.to_string(), "21");
    /// assert_eq!(t.sum(Some(&[0, -1]), true)?.shape(), [1, 1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such axis, one is given twice, or a sum of integers overflows.
    pub fn sum(&self, axes: Option<&[i64]>, keep: bool) -> Result<Self> {
        let gone = self.axes(axes)?;
        let entries = self.entries()?;
        let groups = Groups::new(&entries, &gone, keep)?;
        let values = sums(&groups, &entries.values, sum_type(entries.values.dtype()))?;
        self.with_values(groups.entries(values)?)
    }

    /// Means over axes, of all elements, stored or not: float64 for integers. As
    /// [`sum`](Self::sum) otherwise.
    ///
    /// # Errors
    /// As [`sum`](Self::sum), and when there is nothing to take the mean of.
    pub fn mean(&self, axes: Option<&[i64]>, keep: bool) -> Result<Self> {
        let gone = self.axes(axes)?;
        let entries = self.entries()?;
        let groups = Groups::new(&entries, &gone, keep)?;
        if groups.size == 0 {
            return Err(Error::invalid("the mean of no elements"));
        }
        let dtype = entries.values.dtype();
        let dtype = if dtype.is_float() { dtype } else { DType::F64 };
        let v = Numbers::of(&take(&entries.values, &groups.rows)?)?.floats();
        let of = groups.size as f64;
        let means = groups.ranges().map(|r| v[r].iter().sum::<f64>() / of).collect();
        let values = Numbers::Float(means).into_dense(dtype, "a mean")?;
        self.with_values(groups.entries(values)?)
    }
}
