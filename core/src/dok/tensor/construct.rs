//! Constructors of sparse tensors: empty, from coordinates, from rows, from dense or ragged data.

use super::DokTensor;
use super::entries::{SparseEntries, take_rows};
use super::storage::{DokStorage, compute_strides, count_elements, to_place};
use super::wide_numbers::find_zeros;
use crate::array::nulls::find_validity;
use crate::array::{Layout, RaggedArray};
use crate::dense::{DType, DenseTensor};
use crate::dok::MapOptions;
use crate::error::{Error, Result};

/// Treatment of entries with equal coordinates in [`DokTensor::from_coo`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DuplicateEntries {
    /// Keep only the last of the entries with equal coordinates.
    #[default]
    Last,
    /// Keep one entry with the sum of the values; a sum of integers must not overflow.
    Sum,
}

/// Coordinates and values of the entries; the result of [`DokTensor::to_coo`].
#[derive(Clone, Debug, PartialEq)]
pub struct Coo {
    /// Size of every axis of the tensor.
    pub shape: Vec<usize>,
    /// Coordinates of the entries: int64, `[ndim, nnz]`, one row per axis.
    pub indices: DenseTensor,
    /// Values of the entries, `[nnz]`.
    pub values: DenseTensor,
}

/// A matrix in compressed sparse row form; the result of [`DokTensor::to_csr`].
#[derive(Clone, Debug, PartialEq)]
pub struct Csr {
    /// Number of rows and number of columns of the matrix.
    pub shape: [usize; 2],
    /// Row starts, int64 `[rows + 1]`: the index of the first entry of each row, then the end of
    /// the last row.
    pub crow_indices: DenseTensor,
    /// Column of each entry, int64, `[nnz]`.
    pub col_indices: DenseTensor,
    /// Values of the entries, `[nnz]`.
    pub values: DenseTensor,
}

fn flatten_indices(shape: &[usize], indices: &DenseTensor) -> Result<Vec<i64>> {
    count_elements(shape)?;
    let &[ndim, count] = indices.shape() else {
        return Err(Error::invalid(format!(
            "the indices have the shape {:?}; give a matrix with one row per axis of the tensor and one column per value",
            indices.shape()
        )));
    };
    if ndim != shape.len() {
        return Err(Error::invalid(format!(
            "the indices have {ndim} row(s), but the number of axes of the shape {shape:?} is {}; give one row per axis",
            shape.len()
        )));
    }
    if !indices.dtype().is_integer() {
        return Err(Error::invalid(format!(
            "the indices must be integers, but have the type {}; cast them to int64",
            indices.dtype()
        )));
    }
    let indices = indices.cast(DType::I64)?;
    let all = indices.as_slice::<i64>()?;
    let mut places = vec![0i64; count];
    for (axis, (size, stride)) in shape.iter().zip(compute_strides(shape)).enumerate() {
        for (out, index) in places.iter_mut().zip(&all[axis * count..][..count]) {
            let at = u64::try_from(*index).ok().filter(|at| *at < *size as u64);
            let at = at.ok_or(Error::OutOfRange { axis, index: *index, size: *size })?;
            *out += to_place(at * stride);
        }
    }
    Ok(places)
}

impl DokTensor {
    /// Creates a tensor of zeros, without entries.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DType;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::new([1_000_000, 1_000_000], DType::F32)?;
    /// assert_eq!(t.nnz()?, 0);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shape has more than 2^63 elements.
    pub fn new(shape: impl Into<Vec<usize>>, dtype: DType) -> Result<Self> {
        Self::with_options(shape, dtype, MapOptions::default())
    }

    /// Creates a tensor of zeros like [`new`](Self::new), with options of the hash map.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DType;
    /// use serrate::dok::{DokTensor, MapOptions};
    /// let options = MapOptions { seed: Some(7), ..Default::default() };
    /// let t = DokTensor::with_options([2, 2], DType::F32, options)?;
    /// assert_eq!(t.shape(), [2, 2]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shape has more than 2^63 elements, or an option is invalid.
    pub fn with_options(
        shape: impl Into<Vec<usize>>,
        dtype: DType,
        options: MapOptions,
    ) -> Result<Self> {
        Ok(Self::from_storage(DokStorage::new(shape.into(), dtype, options)?))
    }

    /// Creates a tensor from integer coordinates `[ndim, nnz]` and values `[nnz]`.
    ///
    /// Zeros become entries, too.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::{DokTensor, DuplicateEntries};
    /// let indices = DenseTensor::from_vec([2, 3], vec![0i64, 2, 0, 1, 3, 1])?;
    /// let values = DenseTensor::from_vec([3], vec![1.0, 2.0, 4.0])?;
    /// let last = DokTensor::from_coo([3, 4], &indices, &values, DuplicateEntries::Last)?;
    /// let sum = DokTensor::from_coo([3, 4], &indices, &values, DuplicateEntries::Sum)?;
    /// assert_eq!((last.nnz()?, last.at(&[0, 1])?.to_string().as_str()), (2, "4"));
    /// assert_eq!(sum.at(&[0, 1])?.to_string(), "5");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes do not match, a coordinate is negative or outside the shape, the shape has
    /// more than 2^63 elements, or a sum of integers overflows.
    pub fn from_coo(
        shape: impl Into<Vec<usize>>,
        indices: &DenseTensor,
        values: &DenseTensor,
        duplicates: DuplicateEntries,
    ) -> Result<Self> {
        let shape = shape.into();
        let places = flatten_indices(&shape, indices)?;
        if values.shape() != [places.len()] {
            return Err(Error::invalid(format!(
                "the values have the shape {:?}, but the number of entries in the indices is {}; give one value per entry",
                values.shape(),
                places.len()
            )));
        }
        Self::from_slots(shape, places, values, duplicates)
    }

    /// Creates a tensor from coordinates and values; returns an error if two entries have equal
    /// coordinates.
    pub(crate) fn from_unique(
        shape: Vec<usize>,
        indices: &DenseTensor,
        values: &DenseTensor,
        options: MapOptions,
    ) -> Result<Self> {
        let places = flatten_indices(&shape, indices)?;
        let mut storage = DokStorage::new(shape, values.dtype(), options)?;
        let keys = DenseTensor::from_vec([places.len()], places)?;
        storage.map.reserve(keys.num_elements())?;
        let new = storage.map.set(&keys, values)?;
        if let Some(entry) = new.iter().position(|new| !new) {
            let mut at = vec![0; storage.shape.len()];
            let place = keys.as_slice::<i64>()?[entry];
            super::storage::unravel_place(
                super::storage::from_place(place),
                &storage.strides,
                &mut at,
            );
            return Err(Error::invalid(format!(
                "entry {entry} repeats the coordinates {at:?} of an earlier entry; give different coordinates for each entry"
            )));
        }
        Ok(Self::from_storage(storage))
    }

    /// Creates a tensor from values and their row-major indices (`places`), which the caller has
    /// checked to be within the shape.
    pub(super) fn from_slots(
        shape: Vec<usize>,
        places: Vec<i64>,
        values: &DenseTensor,
        duplicates: DuplicateEntries,
    ) -> Result<Self> {
        let (places, values) = match duplicates {
            DuplicateEntries::Last => (places, values.clone()),
            DuplicateEntries::Sum => {
                let entries = SparseEntries::new(shape.clone(), places, values.clone())?;
                let summed = super::reduce::sum_equal(entries, values.dtype())?;
                (summed.places()?.to_vec(), summed.values)
            }
        };
        let storage = DokStorage::from_slots(shape, places, &values, MapOptions::default())?;
        Ok(Self::from_storage(storage))
    }

    fn from_entries(entries: SparseEntries) -> Result<Self> {
        let options = MapOptions::default();
        let map = crate::dok::RowMap::from_rows(&entries.places, &entries.values, options)?;
        count_elements(&entries.shape)?;
        let strides = compute_strides(&entries.shape);
        Ok(Self::from_storage(DokStorage { shape: entries.shape, strides, map }))
    }

    /// Creates a tensor from the nonzero elements of a dense tensor.
    ///
    /// NaN is stored, -0.0 is not.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// assert_eq!(t.nnz()?, 2);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn from_dense(dense: &DenseTensor) -> Result<Self> {
        let zero = find_zeros(dense)?;
        let rows: Vec<u64> = (0..).zip(&zero).filter(|(_, z)| !**z).map(|(i, _)| i).collect();
        let flat = dense.reshape([dense.num_elements()])?;
        let values = take_rows(&flat, &rows)?;
        let places = rows.into_iter().map(to_place).collect();
        Self::from_entries(SparseEntries::new(dense.shape().to_vec(), places, values)?)
    }

    /// Creates a matrix from compressed sparse rows.
    ///
    /// `crow_indices` `[rows + 1]` has the start of each row and the end of the last row;
    /// `col_indices` `[nnz]` has the column of each entry, and `values` `[nnz]` its value. If
    /// coordinates repeat, the last value wins.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::{DType, DenseTensor};
    /// use serrate::dok::{DokTensor, MapOptions};
    /// let starts = DenseTensor::from_vec([3], vec![0i64, 1, 3])?;
    /// let columns = DenseTensor::from_vec([3], vec![1i64, 0, 2])?;
    /// let values = DenseTensor::from_vec([3], vec![5, 7, 9])?;
    /// let t = DokTensor::from_csr([2, 3], &starts, &columns, &values)?;
    /// assert_eq!(t.to_dense()?.as_slice::<i32>()?, [0, 5, 0, 7, 0, 9]);
    /// assert_eq!(t.to_coo()?.indices.as_slice::<i64>()?, [0, 1, 1, 1, 0, 2]);
    /// let copy = t.try_clone()?;
    /// assert_eq!(copy.cast(DType::F32)?.dtype(), DType::F32);
    /// assert_eq!(DokTensor::with_options([2, 3], DType::I32, MapOptions::default())?.nnz()?, 0);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the row starts or columns are not integers, the row starts do not ascend from 0 to the
    /// number of values, or a column does not exist.
    pub fn from_csr(
        shape: [usize; 2],
        crow_indices: &DenseTensor,
        col_indices: &DenseTensor,
        values: &DenseTensor,
    ) -> Result<Self> {
        for (what, indices) in [("crow_indices", crow_indices), ("col_indices", col_indices)] {
            if !indices.dtype().is_integer() {
                return Err(Error::invalid(format!(
                    "{what} must be integers, but have the type {}; cast them to int64",
                    indices.dtype()
                )));
            }
        }
        let crow = crow_indices.cast(DType::I64)?;
        let crow = crow.as_slice::<i64>()?;
        let count = to_place(values.num_elements() as u64);
        if crow_indices.shape().len() != 1 || Some(crow.len()) != shape[0].checked_add(1) {
            return Err(Error::invalid(format!(
                "crow_indices have the shape {:?}, but the number of rows of the matrix is {}; give one axis whose size is this number plus 1",
                crow_indices.shape(),
                shape[0]
            )));
        }
        let wrong = |position: usize, message: String| Error::Offsets {
            what: "crow_indices".into(),
            position,
            message,
        };
        if let Some(i) = (1..crow.len()).find(|i| crow[*i] < crow[i - 1]) {
            return Err(wrong(
                i,
                format!(
                    "the row start {} is less than the previous row start {}; give row starts that do not decrease",
                    crow[i],
                    crow[i - 1]
                ),
            ));
        }
        if crow.first() != Some(&0) || crow.last() != Some(&count) {
            return Err(wrong(
                0,
                format!(
                    "the first row start is {} and the last is {}; the first must be 0, and the last {count}, the number of values",
                    crow[0],
                    crow[crow.len() - 1]
                ),
            ));
        }
        let cols = col_indices.cast(DType::I64)?;
        if col_indices.shape() != values.shape() || values.shape().len() != 1 {
            return Err(Error::invalid(format!(
                "col_indices have the shape {:?} and the values have the shape {:?}; give both with one axis, and one column index per value",
                col_indices.shape(),
                values.shape()
            )));
        }
        let mut indices = Vec::with_capacity(2 * cols.num_elements());
        for (row, ends) in (0i64..).zip(crow.windows(2)) {
            let cells = usize::try_from(ends[1] - ends[0]).unwrap_or(0);
            indices.extend(std::iter::repeat_n(row, cells));
        }
        indices.extend_from_slice(cols.as_slice::<i64>()?);
        let indices = DenseTensor::from_vec([2, cols.num_elements()], indices)?;
        Self::from_coo(shape, &indices, values, DuplicateEntries::Last)
    }

    /// Creates a tensor from the leaves of a ragged array, at their coordinates, with the shape
    /// [`RaggedArray::max_shape`].
    ///
    /// Zeros become entries, nulls do not.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::array::{Offsets, RaggedArray};
    /// use serrate::dok::DokTensor;
    /// // [[1, 2], [], [3]]
    /// let leaves = Arc::new(Int32Array::from(vec![1, 2, 3]));
    /// let a = RaggedArray::try_new(3, vec![Offsets::from_lengths([2, 0, 1])?.into()], leaves)?;
    /// let t = DokTensor::from_ragged(&a)?;
    /// assert_eq!(t.indices()?.as_slice::<i64>()?, [0, 0, 2, 0, 1, 0]);
    /// assert_eq!(t.to_ragged()?.lengths(1)?, [2, 0, 1]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the leaves are not numbers, booleans, dates or times, or the shape exceeds 2^63 elements.
    pub fn from_ragged(array: &RaggedArray) -> Result<Self> {
        let shape = array.max_shape();
        count_elements(&shape)?;
        let values = DenseTensor::from_flat(array.leaves(), "a sparse tensor")?;
        let strides = compute_strides(&shape);
        // Each iteration replaces, in `places`, the row-major index of each list with the indices
        // of its elements.
        let rows = array.len() as u64;
        let mut places: Vec<u64> = (0..rows).map(|r| r * strides[0]).collect();
        for (axis, stride) in array.axes().iter().zip(&strides[1..]) {
            let layout: &Layout = axis.layout();
            let mut next = Vec::with_capacity(layout.children());
            for (list, first) in places.iter().enumerate() {
                next.extend((0..layout.length(list) as u64).map(|i| first + i * stride));
            }
            places = next;
        }
        let (places, values) = match find_validity(array.leaves()) {
            None => (places.into_iter().map(to_place).collect(), values),
            Some(nulls) => {
                let rows: Vec<u64> = nulls.valid_indices().map(|i| i as u64).collect();
                let places = nulls.valid_indices().map(|i| to_place(places[i])).collect();
                (places, take_rows(&values, &rows)?)
            }
        };
        Self::from_entries(SparseEntries::new(shape, places, values)?)
    }

    /// Returns a copy with separate entries: writes to the copy do not change this tensor or its
    /// views.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// let mut copy = t.try_clone()?;
    /// copy.set_at(&[0, 0], 3)?;
    /// assert_eq!((t.nnz()?, copy.nnz()?), (2, 3));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self> {
        let mut copy = if self.view.is_permutation() {
            let storage = self.storage.read();
            let (shape, strides) = (storage.shape.clone(), storage.strides.clone());
            let storage = DokStorage { shape, strides, map: storage.map.try_clone()? };
            let mut copy = Self::from_storage(storage);
            copy.view = self.view.clone();
            copy
        } else {
            Self::from_entries(self.collect_entries()?)?
        };
        copy.limit = self.limit;
        Ok(copy)
    }

    /// Converts the values to another type, like [`DenseTensor::cast`].
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::{DType, DenseTensor};
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// assert_eq!(t.cast(DType::F64)?.values()?.as_slice::<f64>()?, [5.0, 7.0]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a value does not fit the new type.
    pub fn cast(&self, dtype: DType) -> Result<Self> {
        let entries = self.collect_entries()?;
        let values = entries.values.cast(dtype)?;
        self.replace_entries(SparseEntries { values, ..entries })
    }

    /// Creates an independent tensor with these entries and with the dense limit of this tensor.
    pub(super) fn replace_entries(&self, entries: SparseEntries) -> Result<Self> {
        let mut made = Self::from_entries(entries)?;
        made.limit = self.limit;
        Ok(made)
    }
}
