//! Softmax and its logarithm among entries.

use super::DokTensor;
use super::entries::{Entries, take};
use super::norm::back;
use super::numbers::Numbers;
use super::reduce::Groups;
use crate::error::{Error, Result};

impl DokTensor {
    /// Softmax over axes among the entries: what is not stored does not compete, as if it were minus
    /// infinity, and is not stored in the result either. A stored zero competes.
    ///
    /// ```
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 3], vec![5.0, 0.0, 5.0, 0.0, -7.0, 0.0])?)?;
    /// let s = t.softmax(&[1])?;
    /// assert_eq!(s.to_dense()?.as_slice::<f64>()?, [0.5, 0.0, 0.5, 0.0, 1.0, 0.0]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// When no axis is given, there is no such axis, one is given twice, or the values are no floating
    /// point numbers.
    pub fn softmax(&self, axes: &[i64]) -> Result<Self> {
        self.softmax_of(axes, false)
    }

    /// The logarithm of [`softmax`](Self::softmax), without its rounding; 0 where nothing is stored.
    ///
    /// # Errors
    /// As [`softmax`](Self::softmax).
    pub fn log_softmax(&self, axes: &[i64]) -> Result<Self> {
        self.softmax_of(axes, true)
    }

    fn softmax_of(&self, axes: &[i64], log: bool) -> Result<Self> {
        if axes.is_empty() {
            return Err(Error::invalid("a softmax over no axes; say over which"));
        }
        let gone = self.axes(Some(axes))?;
        let entries = self.entries()?;
        let dtype = entries.values.dtype();
        if !dtype.is_float() {
            return Err(Error::invalid(format!(
                "the softmax of {dtype} values; cast them to float64 first"
            )));
        }
        let groups = Groups::new(&entries, &gone, false)?;
        let mut values = Numbers::of(&take(&entries.values, &groups.rows)?)?.floats();
        for range in groups.ranges() {
            let group = &mut values[range];
            let largest = group.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = group.iter().map(|v| (v - largest).exp()).sum();
            for v in group {
                *v = if log { *v - largest - sum.ln() } else { (*v - largest).exp() / sum };
            }
        }
        let values = Numbers::Float(back(&groups, &values)).into_dense(dtype, "a softmax")?;
        self.with_values(Entries { values, ..entries })
    }
}
