use super::{RowMap, RowType};
use crate::dense::{DenseTensor, TensorElement};
use crate::error::{Error, Result};

impl RowMap {
    /// Returns the keys, one row each, in the order of [`values`](Self::values), without a copy.
    ///
    /// Later changes of the map do not affect the tensor; see also [`DenseTensor::to_arrow`].
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::{MapOptions, RowMap};
    /// let keys = DenseTensor::from_vec([3], vec![7i64, 8, 9])?;
    /// let values = DenseTensor::from_vec([3], vec![0.5f32, 1.5, 2.5])?;
    /// let map = RowMap::from_rows(&keys, &values, MapOptions::default())?;
    /// assert_eq!(map.keys()?.as_slice::<i64>()?, [7, 8, 9]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the map has no types yet.
    pub fn keys(&self) -> Result<DenseTensor> {
        let key_type = &self.types()?.key;
        DenseTensor::try_new_trusted(
            key_type.dtype(),
            key_type.batch_shape(self.len),
            self.keys.share_buffer(),
        )
    }

    /// Returns the values, one row each, in the order of [`keys`](Self::keys), without a copy.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use serrate::dense::DenseTensor;
    /// # use serrate::dok::{MapOptions, RowMap};
    /// let mut map = RowMap::new(MapOptions::default())?;
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
    /// If the map has no types yet.
    pub fn values(&self) -> Result<DenseTensor> {
        let value_type = &self.types()?.value;
        DenseTensor::try_new_trusted(
            value_type.dtype(),
            value_type.batch_shape(self.len),
            self.values.share_buffer(),
        )
    }

    /// Iterates over pairs of a key and its value; each of the two is a slice of elements.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::{MapOptions, RowMap};
    /// let mut map = RowMap::new(MapOptions::default())?;
    /// let keys = DenseTensor::from_vec([2], vec![7u16, 8])?;
    /// map.set(&keys, &DenseTensor::from_vec([2], vec![0.5, 1.5])?)?;
    /// let rows: Vec<_> = map.rows::<u16, f64>()?.map(|(key, value)| (key[0], value[0])).collect();
    /// assert_eq!(rows, [(7, 0.5), (8, 1.5)]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If keys or values have another type, or the map has no types yet.
    pub fn rows<'a, K: TensorElement + 'a, V: TensorElement + 'a>(
        &'a self,
    ) -> Result<impl ExactSizeIterator<Item = (&'a [K], &'a [V])>> {
        let types = self.types()?;
        let keys = view_elements::<K>(self.keys.as_slice(), &types.key, "keys")?;
        let values = view_elements::<V>(self.values.as_slice(), &types.value, "values")?;
        let key = types.key.nbytes() / size_of::<K>();
        let value = types.value.nbytes() / size_of::<V>();
        Ok((0..self.len).map(move |i| (&keys[i * key..][..key], &values[i * value..][..value])))
    }
}

fn view_elements<'a, T: TensorElement + 'a>(
    bytes: &'a [u8],
    of: &RowType,
    what: &str,
) -> Result<&'a [T]> {
    if !T::reads(of.dtype()) {
        return Err(Error::invalid(format!(
            "the {what} of the map have elements of type {dtype}, not {}; read them as {dtype}",
            T::DTYPE,
            dtype = of.dtype()
        )));
    }
    // Row buffers are aligned for all element types, so `view_bytes` returns all elements.
    Ok(T::view_bytes(bytes))
}
