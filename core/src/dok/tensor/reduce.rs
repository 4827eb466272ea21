//! Sums and means of sparse tensors over axes, and the groups of entries that a reduction combines.

use rayon::prelude::*;

use super::DokTensor;
use super::entries::{SparseEntries, take_rows};
use super::storage::{compute_strides, from_place, to_place};
use super::wide_numbers::WideNumbers;
use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};

/// Whether the result of a reduction has the axes that it reduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReducedAxes {
    /// The result does not have them.
    Remove,
    /// The result has them, with size 1.
    Keep,
}

/// Entries grouped by their coordinates on the axes that are not reduced. Groups and their entries
/// are in row-major order, so sums do not depend on the order of insertion.
pub(super) struct EntryGroups {
    /// Shape of the result of the reduction: without the reduced axes, or with size 1 for them.
    pub(super) shape: Vec<usize>,
    /// Row-major index of each group in the result.
    pub(super) places: Vec<i64>,
    /// End of each group in `rows`. A group starts where the previous group ends.
    pub(super) ends: Vec<usize>,
    /// Indices of the entries, group by group.
    pub(super) rows: Vec<u64>,
    /// Product of the sizes of the reduced axes: the number of elements that each group combines,
    /// with or without an entry. At most 2^63.
    pub(super) size: u64,
}

impl EntryGroups {
    pub(super) fn new(
        entries: &SparseEntries,
        is_reduced: &[bool],
        reduced: ReducedAxes,
    ) -> Result<Self> {
        let from = compute_strides(&entries.shape);
        let kept: Vec<usize> = entries
            .shape
            .iter()
            .zip(is_reduced)
            .map(|(size, is_reduced)| if *is_reduced { 1 } else { *size })
            .collect();
        let to = compute_strides(&kept);
        let size = entries.shape.iter().zip(is_reduced).filter(|(_, is_reduced)| **is_reduced);
        let size = size.fold(1u64, |n, (size, _)| n.saturating_mul(*size as u64));
        let own = |entry: i64| {
            let mut rest = from_place(entry);
            let mut place = 0;
            for ((from, to), is_reduced) in from.iter().zip(&to).zip(is_reduced) {
                let at = rest / from;
                rest -= at * from;
                if !is_reduced {
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
            if group_places.last() != Some(&to_place(*group)) {
                group_places.push(to_place(*group));
                ends.push(i);
            }
            if let Some(end) = ends.last_mut() {
                *end = i + 1;
            }
        }
        let shape = match reduced {
            ReducedAxes::Keep => kept,
            ReducedAxes::Remove => entries
                .shape
                .iter()
                .zip(is_reduced)
                .filter(|(_, g)| !**g)
                .map(|(s, _)| *s)
                .collect(),
        };
        let rows = keys.into_iter().map(|(_, _, row)| row).collect();
        Ok(Self { shape, places: group_places, ends, rows, size })
    }

    pub(super) fn ranges(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(self.ends.iter().copied()).map(|(from, to)| from..to)
    }

    pub(super) fn into_entries(self, values: DenseTensor) -> Result<SparseEntries> {
        SparseEntries::new(self.shape, self.places, values)
    }
}

/// Returns the type of sums: 64 bits for integers and booleans, the same type for floats.
fn sum_type(dtype: DType) -> DType {
    match dtype {
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => DType::U64,
        d if d.is_float() => d,
        _ => DType::I64,
    }
}

fn sum_groups(groups: &EntryGroups, values: &DenseTensor, dtype: DType) -> Result<DenseTensor> {
    let sorted = WideNumbers::from_dense(&take_rows(values, &groups.rows)?)?;
    let sums = match &sorted {
        WideNumbers::Int(v) => {
            WideNumbers::Int(groups.ranges().map(|r| v[r].iter().sum()).collect())
        }
        WideNumbers::Float(v) => {
            WideNumbers::Float(groups.ranges().map(|r| v[r].iter().sum()).collect())
        }
    };
    sums.into_dense(dtype, "a sum")
}

pub(super) fn sum_equal(entries: SparseEntries, dtype: DType) -> Result<SparseEntries> {
    let is_reduced = vec![false; entries.shape.len()];
    let groups = EntryGroups::new(&entries, &is_reduced, ReducedAxes::Remove)?;
    let values = sum_groups(&groups, &entries.values, dtype)?;
    groups.into_entries(values)
}

impl DokTensor {
    /// Returns sums over axes (`None` for all) as a sparse tensor.
    ///
    /// A sum without entries is 0 and not stored. Integers and booleans give 64-bit integers;
    /// floats keep their type and are added in float64. Negative axes count from the end.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::{DokTensor, ReducedAxes};
    /// let t = DenseTensor::from_vec([2, 3], vec![0f32, 5.0, 0.0, 7.0, 0.0, 9.0])?;
    /// let t = DokTensor::from_dense(&t)?;
    /// let of_rows = t.sum(Some(&[1]), ReducedAxes::Remove)?;
    /// assert_eq!(of_rows.to_dense()?.as_slice::<f32>()?, [5.0, 16.0]);
    /// assert_eq!(t.sum(None, ReducedAxes::Remove)?.at(&[])?.to_string(), "21");
    /// assert_eq!(t.sum(Some(&[0, -1]), ReducedAxes::Keep)?.shape(), [1, 1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an axis does not exist or is listed twice, or a sum of integers overflows.
    pub fn sum(&self, axes: Option<&[i64]>, reduced: ReducedAxes) -> Result<Self> {
        let is_reduced = self.flag_axes(axes)?;
        let entries = self.collect_entries()?;
        let groups = EntryGroups::new(&entries, &is_reduced, reduced)?;
        let values = sum_groups(&groups, &entries.values, sum_type(entries.values.dtype()))?;
        self.replace_entries(groups.into_entries(values)?)
    }

    /// Returns means over axes, with arguments as in [`sum`](Self::sum).
    ///
    /// Elements without an entry count as 0. Integers give float64.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::{DokTensor, ReducedAxes};
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// let of_rows = t.mean(Some(&[1]), ReducedAxes::Remove)?;
    /// assert_eq!(of_rows.to_dense()?.as_slice::<f64>()?, [2.5, 3.5]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`sum`](Self::sum); also if there are no elements to average.
    pub fn mean(&self, axes: Option<&[i64]>, reduced: ReducedAxes) -> Result<Self> {
        let is_reduced = self.flag_axes(axes)?;
        let entries = self.collect_entries()?;
        let groups = EntryGroups::new(&entries, &is_reduced, reduced)?;
        if groups.size == 0 {
            return Err(Error::invalid(
                "cannot compute the mean over axes without elements; reduce axes of size 1 or more",
            ));
        }
        let dtype = entries.values.dtype();
        let dtype = if dtype.is_float() { dtype } else { DType::F64 };
        let v = WideNumbers::from_dense(&take_rows(&entries.values, &groups.rows)?)?.into_floats();
        let count = groups.size as f64;
        let means = groups.ranges().map(|r| v[r].iter().sum::<f64>() / count).collect();
        let values = WideNumbers::Float(means).into_dense(dtype, "a mean")?;
        self.replace_entries(groups.into_entries(values)?)
    }
}
