//! Norms over axes, and dividing by them.

use super::DokTensor;
use super::entries::{Entries, take};
use super::numbers::Numbers;
use super::reduce::Groups;
use crate::dense::DType;
use crate::error::{Error, Result};

/// The norm of some numbers, of which `missing` more are zero.
fn norm(values: &[f64], missing: bool, p: f64) -> f64 {
    let magnitudes = values.iter().map(|v| v.abs());
    if values.iter().any(|v| v.is_nan()) {
        return f64::NAN;
    }
    // Scaled by the largest, so that neither squares of large numbers nor those of small ones are lost.
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

fn float_type(dtype: DType) -> DType {
    if dtype.is_float() { dtype } else { DType::F64 }
}

impl DokTensor {
    /// The p-norm over axes, all of them for `None`: `(sum |x|^p)^(1/p)` over all elements, stored or
    /// not. `p` = 0 counts what is not zero, infinity gives the largest magnitude, -infinity the
    /// smallest; any other number will do (numpy's `linalg.norm` of vectors).
    ///
    /// Floating point numbers stay what they are, integers give float64. Calculated in float64, scaled so
    /// that nothing overflows on the way.
    ///
    /// ```
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![3.0, -4.0, 0.0, 2.0])?)?;
    /// assert_eq!(t.norm(2.0, Some(&[1]), false)?.to_dense()?.as_slice::<f64>()?, [5.0, 2.0]);
    /// assert_eq!(t.norm(f64::INFINITY, None, false)?.at(&[])?.to_string(), "4");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such axis, one is given twice, or `p` is NaN.
    pub fn norm(&self, p: f64, axes: Option<&[i64]>, keep: bool) -> Result<Self> {
        let gone = self.axes(axes)?;
        let entries = self.entries()?;
        let (groups, norms, _) = norms(&entries, &gone, p, keep)?;
        let dtype = float_type(entries.values.dtype());
        let values = Numbers::Float(norms).into_dense(dtype, "a norm")?;
        self.with_values(groups.entries(values)?)
    }

    /// Every element divided by the p-norm over axes, or by `eps` where that is larger, in a tensor of
    /// its own: signs stay, and what is zero stays zero.
    ///
    /// ```
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([1, 2], vec![3.0, -4.0])?)?;
    /// let n = t.normalize(2.0, &[-1], 1e-12)?;
    /// assert_eq!(n.to_dense()?.as_slice::<f64>()?, [0.6, -0.8]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`norm`](Self::norm), and for values that are no floating point numbers.
    pub fn normalize(&self, p: f64, axes: &[i64], eps: f64) -> Result<Self> {
        let entries = self.normalized(p, axes, eps)?;
        self.with_values(entries)
    }

    /// As [`normalize`](Self::normalize), in place: all views of the entries see it.
    ///
    /// # Errors
    /// As [`normalize`](Self::normalize), and for a view that shows entries several times.
    pub fn normalize_in_place(&mut self, p: f64, axes: &[i64], eps: f64) -> Result<()> {
        if self.view.may_repeat() {
            return Err(Error::invalid(
                "a view that may show entries several times cannot be normalized in place; clone it first",
            ));
        }
        let entries = self.normalized(p, axes, eps)?;
        self.overwrite(&entries)
    }

    fn normalized(&self, p: f64, axes: &[i64], eps: f64) -> Result<Entries> {
        let gone = self.axes(Some(axes))?;
        let entries = self.entries()?;
        let dtype = entries.values.dtype();
        if !dtype.is_float() {
            return Err(Error::invalid(format!(
                "normalized {dtype} values; cast them to float64 first"
            )));
        }
        let (groups, norms, mut values) = norms(&entries, &gone, p, false)?;
        for (range, norm) in groups.ranges().zip(norms) {
            // Not `max`, which would lose a NaN.
            let by = if norm < eps { eps } else { norm };
            values[range].iter_mut().for_each(|v| *v /= by);
        }
        let values = Numbers::Float(back(&groups, &values)).into_dense(dtype, "a quotient")?;
        Ok(Entries { values, ..entries })
    }

    /// Gives entries of a view other values.
    pub(super) fn overwrite(&self, entries: &Entries) -> Result<()> {
        let mut storage = self.storage.write();
        let selection =
            super::selection::Selection::numpy(&self.view, &storage, &[crate::index::Index::Rest])?;
        let places: Vec<i64> = entries.places()?.iter().map(|at| selection.place_of(*at)).collect();
        let keys = crate::dense::DenseTensor::from_vec([places.len()], places)?;
        storage.map.set(&keys, &entries.values)?;
        Ok(())
    }
}

/// Values in the order of the entries, from that of groups.
pub(super) fn back(groups: &Groups, values: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; values.len()];
    for (row, value) in groups.rows.iter().zip(values) {
        out[super::storage::coordinate(*row)] = *value;
    }
    out
}

/// The norm of every group, and the values in their order.
fn norms(
    entries: &Entries,
    gone: &[bool],
    p: f64,
    keep: bool,
) -> Result<(Groups, Vec<f64>, Vec<f64>)> {
    if p.is_nan() {
        return Err(Error::invalid("a norm with p = NaN"));
    }
    let groups = Groups::new(entries, gone, keep)?;
    let values = Numbers::of(&take(&entries.values, &groups.rows)?)?.floats();
    let missing = |len: usize| (len as u64) < groups.size;
    let norms = groups.ranges().map(|r| norm(&values[r.clone()], missing(r.len()), p)).collect();
    Ok((groups, norms, values))
}
