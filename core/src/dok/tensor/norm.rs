//! Norms of sparse tensors over axes, and division by these norms.

use super::DokTensor;
use super::entries::{SparseEntries, take_rows};
use super::reduce::{EntryGroups, ReducedAxes};
use super::wide_numbers::WideNumbers;
use crate::dense::DType;
use crate::error::{Error, Result};

/// Returns the p-norm of `values`. If `missing` is set, there are also elements without an entry,
/// which are zero; these zeros change the norm only for `p` < 0.
fn compute_norm(values: &[f64], missing: bool, p: f64) -> f64 {
    let magnitudes = values.iter().map(|v| v.abs());
    if values.iter().any(|v| v.is_nan()) {
        return f64::NAN;
    }
    // Divide by the largest magnitude (by the smallest if `p` < 0), so that powers do not overflow.
    let largest = magnitudes.clone().fold(0.0, f64::max);
    if p == f64::INFINITY {
        return largest;
    }
    if p == 0.0 {
        return magnitudes.filter(|v| *v != 0.0).count() as f64;
    }
    if p < 0.0 {
        let least = magnitudes.clone().fold(f64::INFINITY, f64::min);
        if missing || least == 0.0 || p == f64::NEG_INFINITY {
            return if missing { 0.0 } else { least };
        }
        return least * magnitudes.map(|v| (v / least).powf(p)).sum::<f64>().powf(p.recip());
    }
    if largest == 0.0 || largest.is_infinite() {
        return largest;
    }
    if p == 1.0 {
        return magnitudes.sum();
    }
    if p == 2.0 {
        let sum: f64 = magnitudes.clone().map(|v| v * v).sum();
        if sum.is_normal() {
            return sum.sqrt();
        }
        return largest * magnitudes.map(|v| (v / largest).powi(2)).sum::<f64>().sqrt();
    }
    largest * magnitudes.map(|v| (v / largest).powf(p)).sum::<f64>().powf(p.recip())
}

fn find_float_type(dtype: DType) -> DType {
    if dtype.is_float() { dtype } else { DType::F64 }
}

impl DokTensor {
    /// Returns the p-norm over axes (`None` for all): `(sum |x|^p)^(1/p)` over all elements, stored
    /// or not.
    ///
    /// `p` = 0 counts the nonzero elements, infinity gives the largest magnitude, -infinity the
    /// smallest; any other number is valid (like NumPy's `linalg.norm` of vectors). Floats keep
    /// their type, integers give float64. No intermediate result overflows float64.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::{DokTensor, ReducedAxes};
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![3.0, -4.0, 0.0, 2.0])?)?;
    /// let of_rows = t.norm(2.0, Some(&[1]), ReducedAxes::Remove)?;
    /// assert_eq!(of_rows.to_dense()?.as_slice::<f64>()?, [5.0, 2.0]);
    /// let largest = t.norm(f64::INFINITY, None, ReducedAxes::Remove)?;
    /// assert_eq!(largest.at(&[])?.to_string(), "4");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an axis does not exist or is listed twice, or `p` is NaN.
    pub fn norm(&self, p: f64, axes: Option<&[i64]>, reduced: ReducedAxes) -> Result<Self> {
        let is_reduced = self.flag_axes(axes)?;
        let entries = self.collect_entries()?;
        let (groups, norms, _) = compute_norms(&entries, &is_reduced, p, reduced)?;
        let dtype = find_float_type(entries.values.dtype());
        let values = WideNumbers::Float(norms).into_dense(dtype, "a norm")?;
        self.replace_entries(groups.into_entries(values)?)
    }

    /// Divides every entry by the p-norm over axes, or by `eps` if the norm is less than `eps`.
    ///
    /// Returns an independent tensor.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([1, 2], vec![3.0, -4.0])?)?;
    /// let n = t.normalize(2.0, &[-1], 1e-12)?;
    /// assert_eq!(n.to_dense()?.as_slice::<f64>()?, [0.6, -0.8]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`norm`](Self::norm); also if the values are not floating-point numbers.
    pub fn normalize(&self, p: f64, axes: &[i64], eps: f64) -> Result<Self> {
        let entries = self.normalize_entries(p, axes, eps)?;
        self.replace_entries(entries)
    }

    /// Normalizes like [`normalize`](Self::normalize), in place; all views show the change.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let mut t = DokTensor::from_dense(&DenseTensor::from_vec([1, 2], vec![3.0, -4.0])?)?;
    /// t.normalize_in_place(2.0, &[-1], 1e-12)?;
    /// assert_eq!(t.to_dense()?.as_slice::<f64>()?, [0.6, -0.8]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`normalize`](Self::normalize); also for a view that shows entries several times.
    pub fn normalize_in_place(&mut self, p: f64, axes: &[i64], eps: f64) -> Result<()> {
        if self.view.may_repeat() {
            return Err(Error::invalid(
                "the view may show entries several times, so it cannot be normalized in place; clone it first",
            ));
        }
        let entries = self.normalize_entries(p, axes, eps)?;
        self.overwrite_entries(&entries)
    }

    fn normalize_entries(&self, p: f64, axes: &[i64], eps: f64) -> Result<SparseEntries> {
        let is_reduced = self.flag_axes(Some(axes))?;
        let entries = self.collect_entries()?;
        let dtype = entries.values.dtype();
        if !dtype.is_float() {
            return Err(Error::invalid(format!(
                "cannot normalize {dtype} values; cast them to float64 first"
            )));
        }
        let (groups, norms, mut values) =
            compute_norms(&entries, &is_reduced, p, ReducedAxes::Remove)?;
        for (range, norm) in groups.ranges().zip(norms) {
            // If the norm is NaN, the quotients must be NaN, but `f64::max` would return `eps`.
            let by = if norm < eps { eps } else { norm };
            values[range].iter_mut().for_each(|v| *v /= by);
        }
        let values =
            WideNumbers::Float(restore_order(&groups, &values)).into_dense(dtype, "a quotient")?;
        Ok(SparseEntries { values, ..entries })
    }

    fn overwrite_entries(&self, entries: &SparseEntries) -> Result<()> {
        let mut storage = self.storage.write();
        let selection = super::selection::PlaceSelection::from_numpy_index(
            &self.view,
            &storage,
            &[crate::index::Index::Rest],
        )?;
        let places: Vec<i64> =
            entries.places()?.iter().map(|at| selection.find_element_place(*at)).collect();
        let keys = crate::dense::DenseTensor::from_vec([places.len()], places)?;
        storage.map.set(&keys, &entries.values)?;
        Ok(())
    }
}

pub(super) fn restore_order(groups: &EntryGroups, values: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; values.len()];
    for (row, value) in groups.rows.iter().zip(values) {
        out[super::storage::to_coordinate(*row)] = *value;
    }
    out
}

fn compute_norms(
    entries: &SparseEntries,
    is_reduced: &[bool],
    p: f64,
    reduced: ReducedAxes,
) -> Result<(EntryGroups, Vec<f64>, Vec<f64>)> {
    if p.is_nan() {
        return Err(Error::invalid("the order p of the norm is NaN; use a number"));
    }
    let groups = EntryGroups::new(entries, is_reduced, reduced)?;
    let values = WideNumbers::from_dense(&take_rows(&entries.values, &groups.rows)?)?.into_floats();
    let missing = |len: usize| (len as u64) < groups.size;
    let norms =
        groups.ranges().map(|r| compute_norm(&values[r.clone()], missing(r.len()), p)).collect();
    Ok((groups, norms, values))
}
