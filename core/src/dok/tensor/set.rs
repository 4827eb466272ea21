//! Writes to sparse tensors: scalars, dense tensors that broadcast, and sparse tensors.

use arrow::datatypes::ToByteSlice;

use super::DokTensor;
use super::entries::{SparseEntries, take_rows};
use super::selection::PlaceSelection;
use super::storage::{DokStorage, count_elements, to_coordinate};
use super::wide_numbers::find_zeros;
use crate::dense::{DType, DenseTensor, Fill};
use crate::error::{Error, Result};
use crate::index::Index;
use crate::index::broadcast_shape::{broadcast_shapes, for_each_broadcast};

/// A value to write to selected elements of a sparse tensor.
#[derive(Clone, Debug)]
pub enum DokValue<'a> {
    /// One number for all elements, converted as by [`DenseTensor::cast`]: in an integer tensor,
    /// 1.5 becomes 1.
    Scalar(Fill),
    /// A dense tensor that broadcasts to the shape of the selection, converted like
    /// [`DenseTensor::cast`].
    Dense(&'a DenseTensor),
    /// A sparse tensor with the shape of the selection; it replaces all entries of the selection.
    Sparse(&'a DokTensor),
}

impl<T: Into<Fill>> From<T> for DokValue<'_> {
    fn from(value: T) -> Self {
        Self::Scalar(value.into())
    }
}

impl<'a> From<&'a DenseTensor> for DokValue<'a> {
    fn from(value: &'a DenseTensor) -> Self {
        Self::Dense(value)
    }
}

impl<'a> From<&'a DokTensor> for DokValue<'a> {
    fn from(value: &'a DokTensor) -> Self {
        Self::Sparse(value)
    }
}

impl DokTensor {
    /// Writes `value` to the elements that [`index`](Self::index) selects with the same index.
    ///
    /// Zeros remove entries. If an element is selected more than once, its last value wins. All
    /// views show the write.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::{DType, DenseTensor};
    /// use serrate::dok::DokTensor;
    /// use serrate::index::parse_index;
    /// let mut t = DokTensor::new([3, 4], DType::F32)?;
    /// t.set(&parse_index("[0, 1, 2], [0, 1, 2]")?, 1)?;
    /// t.set(&parse_index(":2, 2:")?, &DenseTensor::from_vec([2], vec![0.0, 7.0])?)?;
    /// assert_eq!(t.index(&parse_index("1")?)?.as_slice::<f32>()?, [0.0, 1.0, 0.0, 7.0]);
    /// assert_eq!(t.nnz()?, 5);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`index`](Self::index); also if the value has an unsuitable shape or does not fit
    /// the type. `dense_limit` applies to scalars and dense tensors, because a write of them takes
    /// memory for each selected element. For a sparse tensor, it limits only the memory for entries
    /// that index arrays such as `[0, 2]` select.
    pub fn set<'a>(&mut self, index: &[Index], value: impl Into<DokValue<'a>>) -> Result<()> {
        self.write_part(index, value.into(), PlaceSelection::from_numpy_index)
    }

    /// Writes like [`set`](Self::set), but selects like
    /// [`index_orthogonal`](Self::index_orthogonal).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DType;
    /// use serrate::dok::DokTensor;
    /// use serrate::index::parse_index;
    /// let mut t = DokTensor::new([3, 2], DType::I32)?;
    /// t.set_orthogonal(&parse_index("[0, 2], [0, 1]")?, 1)?; // rows 0 and 2 of both columns
    /// assert_eq!(t.to_dense()?.as_slice::<i32>()?, [1, 1, 0, 0, 1, 1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`set`](Self::set).
    pub fn set_orthogonal<'a>(
        &mut self,
        index: &[Index],
        value: impl Into<DokValue<'a>>,
    ) -> Result<()> {
        self.write_part(index, value.into(), PlaceSelection::from_orthogonal_index)
    }

    /// Writes one element; zero removes its entry.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let mut t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// t.set_at(&[0, 0], 3)?;
    /// t.set_at(&[0, 1], 0)?;
    /// assert_eq!(t.to_dense()?.as_slice::<i32>()?, [3, 0, 0, 7]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is not one coordinate per axis, a coordinate is out of range, or the value does not
    /// fit.
    pub fn set_at(&mut self, coordinates: &[i64], value: impl Into<Fill>) -> Result<()> {
        self.check_coordinates(coordinates)?;
        let index: Vec<Index> = coordinates.iter().map(|c| Index::At(*c)).collect();
        self.set(&index, value.into())
    }

    /// Removes all entries that this view shows.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let mut t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// t.clear()?;
    /// assert_eq!(t.nnz()?, 0);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`set`](Self::set), unless the view shows the whole tensor: then no error occurs.
    pub fn clear(&mut self) -> Result<()> {
        if self.view.is_permutation() {
            self.storage.write().map.clear();
            return Ok(());
        }
        self.set(&[Index::Rest], 0)
    }

    /// Removes all entries that are zero, also those that this view does not show.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let mut t = DokTensor::from_dense(&DenseTensor::from_vec([2], vec![1, 2])?)?;
    /// t = t.sub(&t)?;
    /// assert_eq!(t.nnz()?, 2);
    /// t.prune()?;
    /// assert_eq!(t.nnz()?, 0);
    /// t.set_at(&[0], 3)?;
    /// t.clear()?;
    /// assert_eq!(t.nnz()?, 0);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn prune(&mut self) -> Result<()> {
        let mut storage = self.storage.write();
        let zero = find_zeros(&storage.map.values()?)?;
        let keys = storage.map.keys()?;
        let removed: Vec<i64> = keys
            .as_slice::<i64>()?
            .iter()
            .zip(zero)
            .filter_map(|(key, zero)| zero.then_some(*key))
            .collect();
        drop(keys);
        storage.map.remove_rows(removed.to_byte_slice(), removed.len())?;
        Ok(())
    }

    fn write_part(
        &mut self,
        index: &[Index],
        value: DokValue<'_>,
        select: impl Fn(&super::AxisView, &DokStorage, &[Index]) -> Result<PlaceSelection>,
    ) -> Result<()> {
        let sparse = match value {
            // Read `sparse` before the lock: if it shares the storage, a later read would deadlock.
            DokValue::Sparse(sparse) => {
                Some((sparse.shape(), sparse.collect_entries()?.into_sorted()?))
            }
            _ => None,
        };
        let mut storage = self.storage.write();
        let selection = select(&self.view, &storage, index)?;
        let dtype = storage.dtype();
        let elements = count_elements(selection.shape())?;
        if let Some((shape, entries)) = sparse {
            if shape != selection.shape() {
                return Err(Error::invalid(format!(
                    "the sparse value has the shape {shape:?}, but the selected elements have the shape {:?}; sparse values do not broadcast, so give a value of this shape",
                    selection.shape()
                )));
            }
            return put_sparse_part(&mut storage, &selection, self.limit, &entries);
        }
        let given = match value {
            DokValue::Scalar(fill) => make_scalar_tensor(fill)?.cast(dtype)?,
            DokValue::Dense(dense) => fit_dense_value(dense, selection.shape(), dtype)?,
            DokValue::Sparse(_) => return Ok(()),
        };
        let zero = find_zeros(&given)?;
        let all_zero = zero.iter().all(|z| *z);
        if elements == 0 {
            return Ok(());
        }
        if all_zero && elements > storage.map.len() as u64 {
            return clear_part(&mut storage, &selection, self.limit);
        }
        let what = format!("writing {elements} elements");
        self.check_bytes(elements, dtype.size() + 8, &what)?;
        let count = to_coordinate(elements);
        let mut places = Vec::with_capacity(count);
        selection.extend_slots(0, count, &mut places);
        let (bytes, size) = (given.as_bytes(), dtype.size());
        if all_zero {
            storage.map.remove_rows(places.to_byte_slice(), count)?;
            return Ok(());
        }
        let mut values = Vec::with_capacity(count * size);
        let mut zeros = Vec::new();
        for_each_broadcast(given.shape(), selection.shape(), |at| {
            if zero[at] {
                zeros.push(values.len() / size);
            }
            values.extend_from_slice(&bytes[at * size..][..size]);
        });
        // If an element is selected repeatedly, its last value wins, even if that value is a zero.
        // So write all values first, then remove the elements whose last value is a zero.
        storage.map.put_rows(places.to_byte_slice(), &values, count, true)?;
        if zeros.is_empty() {
            return Ok(());
        }
        let mut removed: Vec<i64> = zeros.iter().map(|i| places[*i]).collect();
        if selection.has_repeats() {
            let rows = storage.map.find_rows(removed.to_byte_slice(), removed.len())?;
            let now = take_rows(&storage.map.values()?, &rows)?;
            let mut still = find_zeros(&now)?.into_iter();
            removed.retain(|_| still.next().unwrap_or(false));
        }
        storage.map.remove_rows(removed.to_byte_slice(), removed.len())?;
        Ok(())
    }
}

pub(super) fn make_scalar_tensor(fill: Fill) -> Result<DenseTensor> {
    match fill {
        Fill::Bool(v) => DenseTensor::from_bools([], [v]),
        Fill::Int(v) => DenseTensor::from_vec([], vec![v]),
        Fill::UInt(v) => DenseTensor::from_vec([], vec![v]),
        Fill::Float(v) => DenseTensor::from_vec([], vec![v]),
    }
}

/// Replaces the selected entries of `storage` with `entries`, which are those of a sparse tensor
/// with the shape of the selection.
fn put_sparse_part(
    storage: &mut DokStorage,
    selection: &PlaceSelection,
    limit: Option<u64>,
    entries: &SparseEntries,
) -> Result<()> {
    let values = entries.values.cast(storage.dtype())?;
    let zero = find_zeros(&values)?;
    let mut written: Vec<(u64, i64)> = (0..)
        .zip(entries.places()?.iter().zip(&zero))
        .filter(|(_, (_, zero))| !**zero)
        .map(|(row, (at, _))| (row, *at))
        .collect();
    let to_place_in_part = |(_, at): &(u64, i64)| selection.find_element_place(*at);
    let mut places: Vec<i64> = written.iter().map(to_place_in_part).collect();
    if selection.has_repeats() {
        // If an element is selected repeatedly, its last value wins, even if that value is a zero,
        // for which `entries` has no entry. So keep only entries at the last position of an
        // element.
        let mut last = vec![0u64; places.len()];
        selection.for_each_stored(&places, limit, |at, i| last[i] = last[i].max(at))?;
        let mut last = last.into_iter();
        written.retain(|(_, at)| last.next() == u64::try_from(*at).ok());
        places = written.iter().map(to_place_in_part).collect();
    }
    let rows: Vec<u64> = written.into_iter().map(|(row, _)| row).collect();
    let values = take_rows(&values, &rows)?;
    clear_part(storage, selection, limit)?;
    storage.map.put_rows(places.to_byte_slice(), values.as_bytes(), places.len(), true)?;
    Ok(())
}

/// Casts a value that broadcasts to `shape`, the shape of the selection. If the value has more axes
/// than `shape`, leading axes of size 1 are removed, as NumPy does.
fn fit_dense_value(value: &DenseTensor, shape: &[usize], dtype: DType) -> Result<DenseTensor> {
    let extra = value.ndim().saturating_sub(shape.len());
    let (leading, rest) = value.shape().split_at(extra);
    let fits = broadcast_shapes(rest, shape).is_some_and(|s| s == shape);
    if !fits || leading.iter().any(|n| *n != 1) {
        return Err(Error::invalid(format!(
            "the value has the shape {:?}, which does not broadcast to the shape {shape:?} of the selected elements; give a value with sizes that are equal or 1",
            value.shape()
        )));
    }
    value.cast(dtype)?.reshape(rest)
}

fn clear_part(
    storage: &mut DokStorage,
    selection: &PlaceSelection,
    limit: Option<u64>,
) -> Result<()> {
    let stored = storage.map.keys()?;
    let all = stored.as_slice::<i64>()?;
    let mut removed = Vec::new();
    selection.for_each_stored(all, limit, |_, row| removed.push(all[row]))?;
    drop(stored);
    storage.map.remove_rows(removed.to_byte_slice(), removed.len())?;
    Ok(())
}
