//! Softmax over the entries of a sparse tensor, and its logarithm.

use super::DokTensor;
use super::entries::{SparseEntries, take_rows};
use super::norm::restore_order;
use super::reduce::{EntryGroups, ReducedAxes};
use super::wide_numbers::WideNumbers;
use crate::error::{Error, Result};

impl DokTensor {
    /// Returns the softmax over axes.
    ///
    /// Elements without an entry count as minus infinity, and have no entry in the result. A stored
    /// zero counts as zero.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DenseTensor::from_vec([2, 3], vec![5.0, 0.0, 5.0, 0.0, -7.0, 0.0])?;
    /// let t = DokTensor::from_dense(&t)?;
    /// let s = t.softmax(&[1])?;
    /// assert_eq!(s.to_dense()?.as_slice::<f64>()?, [0.5, 0.0, 0.5, 0.0, 1.0, 0.0]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If no axis is given, an axis does not exist or is listed twice, or the values are not
    /// floats.
    pub fn softmax(&self, axes: &[i64]) -> Result<Self> {
        self.compute_softmax(axes, false)
    }

    /// Returns the logarithm of [`softmax`](Self::softmax), computed directly, so it is finite
    /// even where the softmax itself rounds to 0.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([1, 2], vec![5.0, 5.0])?)?;
    /// let logs = t.log_softmax(&[1])?.to_dense()?;
    /// assert!((logs.as_slice::<f64>()?[0] - 0.5f64.ln()).abs() < 1e-12);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`softmax`](Self::softmax).
    pub fn log_softmax(&self, axes: &[i64]) -> Result<Self> {
        self.compute_softmax(axes, true)
    }

    fn compute_softmax(&self, axes: &[i64], log: bool) -> Result<Self> {
        if axes.is_empty() {
            return Err(Error::invalid("no axis is given for the softmax; give at least one"));
        }
        let is_reduced = self.flag_axes(Some(axes))?;
        let entries = self.collect_entries()?;
        let dtype = entries.values.dtype();
        if !dtype.is_float() {
            return Err(Error::invalid(format!(
                "cannot compute the softmax of {dtype} values; cast them to float64 first"
            )));
        }
        let groups = EntryGroups::new(&entries, &is_reduced, ReducedAxes::Remove)?;
        let mut values =
            WideNumbers::from_dense(&take_rows(&entries.values, &groups.rows)?)?.into_floats();
        for range in groups.ranges() {
            let group = &mut values[range];
            let largest = group.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = group.iter().map(|v| (v - largest).exp()).sum();
            for v in group {
                *v = if log { *v - largest - sum.ln() } else { (*v - largest).exp() / sum };
            }
        }
        let values =
            WideNumbers::Float(restore_order(&groups, &values)).into_dense(dtype, "a softmax")?;
        self.replace_entries(SparseEntries { values, ..entries })
    }
}
