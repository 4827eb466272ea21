//! Keys and values as they stand.

use super::{HashMap, RowType};
use crate::dense::{DenseTensor, Element};
use crate::error::{Error, Result};

impl HashMap {
    /// The keys, one row each, in the order of [`values`](Self::values), without a copy. They stay as
    /// they are whatever the map does next.
    ///
    /// As an Arrow array: [`DenseTensor::to_arrow`].
    ///
    /// # Errors
    /// When the map has no types yet.
    pub fn keys(&self) -> Result<DenseTensor> {
        let of = &self.types()?.key;
        DenseTensor::try_new_trusted(of.dtype(), of.batch(self.len), self.keys.share())
    }

    /// The values, one row each, in the order of [`keys`](Self::keys), without a copy.
    ///
    /// ```
    /// # use serrate::dense::DenseTensor;
    /// # use serrate::dok::{HashMap, MapOptions};
    /// let mut map = HashMap::new(MapOptions::default())?;
    /// let keys = DenseTensor::from_vec([3], vec![7u16, 8, 9])?;
    /// map.set(&keys, &DenseTensor::from_vec([3], vec![0.5, 1.5, 2.5])?)?;
    /// let before = map.values()?;
    /// map.remove(&keys.slice(0, 1)?)?;
    /// assert_eq!(before.as_slice::<f64>()?, [0.5, 1.5, 2.5]);
    /// assert_eq!(map.values()?.as_slice::<f64>()?, [2.5, 1.5]);
    /// assert_eq!(map.rows::<u16, f64>()?.next(), Some((&[9][..], &[2.5][..])));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the map has no types yet.
    pub fn values(&self) -> Result<DenseTensor> {
        let of = &self.types()?.value;
        DenseTensor::try_new_trusted(of.dtype(), of.batch(self.len), self.values.share())
    }

    /// Keys and values row by row, each as the elements of the row.
    ///
    /// # Errors
    /// When keys or values have another type, or the map has no types yet.
    pub fn rows<'a, K: Element + 'a, V: Element + 'a>(
        &'a self,
    ) -> Result<impl ExactSizeIterator<Item = (&'a [K], &'a [V])>> {
        let types = self.types()?;
        let keys = elements::<K>(self.keys.as_slice(), &types.key)?;
        let values = elements::<V>(self.values.as_slice(), &types.value)?;
        let key = types.key.bytes() / size_of::<K>();
        let value = types.value.bytes() / size_of::<V>();
        Ok((0..self.len).map(move |i| (&keys[i * key..][..key], &values[i * value..][..value])))
    }
}

/// Rows as elements.
fn elements<'a, T: Element + 'a>(bytes: &'a [u8], of: &RowType) -> Result<&'a [T]> {
    if !T::reads(of.dtype()) {
        return Err(Error::invalid(format!("rows of {of} cannot be read as {}", T::DTYPE)));
    }
    // SAFETY: elements are integers and floating point numbers, which every pattern of bytes is one
    // of. Columns are aligned for all of them, so that nothing is cut off.
    Ok(unsafe { bytes.align_to::<T>() }.1)
}
