//! Reads from sparse tensors: single elements, and selected elements as dense or sparse tensors.

use arrow::datatypes::ToByteSlice;

use super::DokTensor;
use super::entries::{SparseEntries, take_rows};
use super::selection::PlaceSelection;
use super::storage::{DokStorage, count_elements, from_place, to_coordinate, to_place};
use crate::dense::{DType, DenseTensor, TensorMemory};
use crate::dok::{Fallback, FetchedValues};
use crate::error::{Error, Result};
use crate::index::{Index, resolve_position};

/// Number of elements that are looked up in the hash map at a time.
const BLOCK: usize = 1 << 18;

/// Number of selected elements per stored entry above which a scan of all entries is faster than
/// look-ups.
const PER_ENTRY: u64 = 4;

impl DokTensor {
    /// Returns the elements that a NumPy index selects as a dense tensor; missing entries are zero.
    ///
    /// The index may mix integers, slices with any step, negative indices, arrays of any number of
    /// axes (which broadcast against each other), masks of one or more axes, `...` and new axes;
    /// see [`Index`] and [`parse_index`](crate::index::parse_index).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// use serrate::index::parse_index;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([3, 4], (0..12).collect::<Vec<i32>>())?)?;
    /// let part = t.index(&parse_index("::-2, [0, 3]")?)?;
    /// assert_eq!(part, DenseTensor::from_vec([2, 2], vec![8, 11, 0, 3])?);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for an index outside its axis; [`Error::Invalid`] for an index of more
    /// axes than the tensor has, masks of another shape, and arrays that do not broadcast;
    /// [`Error::TooLarge`] for a result larger than [`dense_limit`](Self::dense_limit).
    pub fn index(&self, index: &[Index]) -> Result<DenseTensor> {
        let storage = self.storage.read();
        let selection = PlaceSelection::from_numpy_index(&self.view, &storage, index)?;
        self.get_selected(&storage, &selection)
    }

    /// Returns the elements that an index selects axis by axis, as a dense tensor: index arrays do
    /// not broadcast, and the result has the axes of every index array.
    ///
    /// This is `oindex` in zarr.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DType;
    /// use serrate::dok::DokTensor;
    /// use serrate::index::parse_index;
    /// let t = DokTensor::new([13, 11, 7, 3], DType::F32)?;
    /// let index = parse_index("5, :4, [3, 5, 6], [true, false, true]")?;
    /// assert_eq!(t.index_orthogonal(&index)?.shape(), [4, 3, 2]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`index`](Self::index).
    pub fn index_orthogonal(&self, index: &[Index]) -> Result<DenseTensor> {
        let storage = self.storage.read();
        let selection = PlaceSelection::from_orthogonal_index(&self.view, &storage, index)?;
        self.get_selected(&storage, &selection)
    }

    /// Returns the elements that [`index`](Self::index) selects, as an independent sparse tensor.
    ///
    /// [`dense_limit`](Self::dense_limit) does not apply to the shape of the result, but to the
    /// number of entries that index arrays select, at 16 bytes each.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DType;
    /// use serrate::dok::DokTensor;
    /// use serrate::index::parse_index;
    /// let mut t = DokTensor::new([1 << 30, 1 << 30], DType::F64)?;
    /// t.set_at(&[6, 1 << 20], 0.5)?;
    /// let even = t.index_sparse(&parse_index("::2, :")?)?;
    /// assert_eq!((even.shape(), even.nnz()?), (vec![1 << 29, 1 << 30], 1));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`index`](Self::index), but with the limit on entries only; also if the shape of the
    /// result has more than 2^63 elements.
    pub fn index_sparse(&self, index: &[Index]) -> Result<Self> {
        let storage = self.storage.read();
        let selection = PlaceSelection::from_numpy_index(&self.view, &storage, index)?;
        self.get_selected_sparse(&storage, &selection)
    }

    /// Returns the selection of [`index_orthogonal`](Self::index_orthogonal) as a sparse tensor.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// use serrate::index::parse_index;
    /// let mut t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![1, 2, 3, 4])?)?;
    /// let index = parse_index("[0, 1], [1]")?;
    /// assert_eq!(t.index_orthogonal_sparse(&index)?.to_dense()?.as_slice::<i32>()?, [2, 4]);
    /// t.set_orthogonal(&index, 9)?;
    /// assert_eq!(t.to_dense()?.as_slice::<i32>()?, [1, 9, 3, 9]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`index_sparse`](Self::index_sparse).
    pub fn index_orthogonal_sparse(&self, index: &[Index]) -> Result<Self> {
        let storage = self.storage.read();
        let selection = PlaceSelection::from_orthogonal_index(&self.view, &storage, index)?;
        self.get_selected_sparse(&storage, &selection)
    }

    /// Returns one element as a tensor without axes; an element without an entry is zero.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// assert_eq!(t.at(&[1, -1])?.to_f64()?, 7.0);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is not exactly one coordinate per axis, or a coordinate is out of range.
    pub fn at(&self, coordinates: &[i64]) -> Result<DokScalar> {
        let index: Vec<Index> = coordinates.iter().map(|c| Index::At(*c)).collect();
        self.check_coordinates(coordinates)?;
        self.index(&index).map(DokScalar)
    }

    /// Looks up elements, even millions, by their coordinates: an int64 tensor of shape `[n, ndim]`
    /// with one row per element.
    ///
    /// Coordinates outside the tensor, including negative ones, count as not found.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::{DType, DenseTensor};
    /// use serrate::dok::{DokTensor, Fallback};
    /// let mut t = DokTensor::new([100, 100], DType::F64)?;
    /// t.set_at(&[3, 4], 0.5)?;
    /// let queries = DenseTensor::from_vec([3, 2], vec![3i64, 4, 4, 3, 500, 0])?;
    /// let fetched = t.lookup(&queries, &Fallback::from(-1.0))?;
    /// assert_eq!(fetched.values.as_slice::<f64>()?, [0.5, -1.0, -1.0]);
    /// assert_eq!(fetched.found, [true, false, false]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the coordinates have another shape or type.
    pub fn lookup(&self, coordinates: &DenseTensor, fallback: &Fallback) -> Result<FetchedValues> {
        let &[_, ndim] = coordinates.shape() else {
            return Err(Error::invalid(format!(
                "the coordinates have the shape {:?}; give a matrix with one row per element and one column per axis of the tensor",
                coordinates.shape()
            )));
        };
        if ndim != self.ndim() || coordinates.dtype() != DType::I64 {
            return Err(Error::invalid(format!(
                "the coordinates have the type {} and {ndim} column(s); give int64 and {} column(s), one per axis",
                coordinates.dtype(),
                self.ndim()
            )));
        }
        let all = coordinates.as_slice::<i64>()?;
        let count = coordinates.shape()[0];
        let columns: Vec<(usize, usize)> = (0..ndim).map(|axis| (axis, ndim)).collect();
        let column = |axis: usize, row: usize| all[row * columns[axis].1 + axis];
        self.lookup_with(count, column, fallback)
    }

    /// Looks up like [`lookup`](Self::lookup), with one slice of coordinates per axis.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DType;
    /// use serrate::dok::{DokTensor, Fallback};
    /// let mut t = DokTensor::new([100, 100], DType::F64)?;
    /// t.set_at(&[3, 4], 0.5)?;
    /// let fetched = t.lookup_columns(&[&[3, 4], &[4, 3]], &Fallback::from(-1.0))?;
    /// assert_eq!(fetched.values.as_slice::<f64>()?, [0.5, -1.0]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is not exactly one slice per axis, or the slices differ in length.
    pub fn lookup_columns(&self, columns: &[&[i64]], fallback: &Fallback) -> Result<FetchedValues> {
        let count = columns.first().map_or(0, |c| c.len());
        if columns.len() != self.ndim() || columns.iter().any(|c| c.len() != count) {
            return Err(Error::invalid(format!(
                "the columns of coordinates have the lengths {:?}, and the number of axes of the tensor is {}; give one column per axis, all of the same length",
                columns.iter().map(|c| c.len()).collect::<Vec<_>>(),
                self.ndim()
            )));
        }
        self.lookup_with(count, |axis, row| columns[axis][row], fallback)
    }

    /// Looks up `count` elements; `at(axis, row)` returns their coordinates. An element outside the
    /// tensor gets the index -1, which no entry has, and so counts as not found.
    fn lookup_with(
        &self,
        count: usize,
        at: impl Fn(usize, usize) -> i64 + Sync,
        fallback: &Fallback,
    ) -> Result<FetchedValues> {
        let storage = self.storage.read();
        let fixed: u64 = self.view.fixed.iter().map(|(a, at)| at * storage.strides[*a]).sum();
        let axes: Vec<(u64, u64, Option<&[u64]>)> = self
            .view
            .axes
            .iter()
            .map(|a| {
                let size = a.picks.as_ref().map_or(storage.shape[a.of], |p| p.len());
                (size as u64, storage.strides[a.of], a.picks.as_deref())
            })
            .collect();
        let one = |row: usize| {
            let mut sum = fixed;
            for (axis, (size, stride, picks)) in axes.iter().enumerate() {
                let at = from_place(at(axis, row));
                // `from_place` maps a negative coordinate to a large unsigned number, which is out
                // of range.
                if at >= *size {
                    return -1;
                }
                let at = picks.map_or(at, |p| p[to_coordinate(at)]);
                sum += at * stride;
            }
            to_place(sum)
        };
        let mut places = vec![0i64; count];
        if storage.map.uses_threads(count) {
            use rayon::prelude::*;
            places.par_chunks_mut(1 << 14).enumerate().for_each(|(part, out)| {
                let rows = (part << 14)..;
                out.iter_mut().zip(rows).for_each(|(out, row)| *out = one(row));
            });
        } else {
            places.iter_mut().zip(0..).for_each(|(out, row)| *out = one(row));
        }
        storage.map.get(&DenseTensor::from_vec([count], places)?, fallback)
    }

    pub(super) fn check_coordinates(&self, coordinates: &[i64]) -> Result<()> {
        let shape = self.shape();
        if coordinates.len() != shape.len() {
            return Err(Error::invalid(format!(
                "{} coordinate(s) are given for an element, but the number of axes of the tensor is {}; give one coordinate per axis",
                coordinates.len(),
                shape.len()
            )));
        }
        for (axis, (index, size)) in coordinates.iter().zip(shape).enumerate() {
            resolve_position(*index, size).ok_or(Error::OutOfRange {
                axis,
                index: *index,
                size,
            })?;
        }
        Ok(())
    }

    fn get_selected(
        &self,
        storage: &DokStorage,
        selection: &PlaceSelection,
    ) -> Result<DenseTensor> {
        let shape = selection.shape().to_vec();
        let elements = count_elements(&shape)?;
        let dtype = storage.dtype();
        let what = format!("a dense {dtype} tensor of shape {shape:?}");
        let bytes = self.check_dense_bytes(elements, dtype, &what)?;
        let mut memory = TensorMemory::new_zeroed(bytes)?;
        let out = &mut memory.take_contents().0[..bytes];
        if elements / PER_ENTRY > storage.map.len() as u64 {
            let (places, values) = (storage.map.keys()?, storage.map.values()?);
            let (values, size) = (values.as_bytes(), dtype.size());
            // `None` removes the limit: `check_dense_bytes` has already checked the size of the
            // result.
            selection.for_each_stored(places.as_slice::<i64>()?, None, |at, row| {
                out[to_coordinate(at) * size..][..size]
                    .copy_from_slice(&values[row * size..][..size]);
            })?;
        } else {
            let size = dtype.size();
            let mut found = vec![false; to_coordinate(elements).min(BLOCK)];
            let mut places = Vec::with_capacity(found.len());
            for (first, out) in (0u64..).step_by(BLOCK).zip(out.chunks_mut(BLOCK * size)) {
                places.clear();
                let count = out.len() / size;
                selection.extend_slots(first, count, &mut places);
                let found = &mut found[..count];
                storage.map.get_rows(places.to_byte_slice(), count, &[0; 8], out, found)?;
            }
        }
        DenseTensor::try_new_trusted(dtype, shape, memory.into_buffer())
    }

    fn get_selected_sparse(
        &self,
        storage: &DokStorage,
        selection: &PlaceSelection,
    ) -> Result<Self> {
        let elements = count_elements(selection.shape())?;
        let (stored, values) = (storage.map.keys()?, storage.map.values()?);
        let (mut places, mut rows) = (Vec::new(), Vec::new());
        if elements / PER_ENTRY > storage.map.len() as u64 {
            selection.for_each_stored(stored.as_slice::<i64>()?, self.limit, |at, row| {
                places.push(to_place(at));
                rows.push(row as u64);
            })?;
        } else {
            let mut block = Vec::new();
            for first in (0..elements).step_by(BLOCK) {
                block.clear();
                let count = to_coordinate(elements - first).min(BLOCK);
                selection.extend_slots(first, count, &mut block);
                let found = storage.map.find_rows(block.to_byte_slice(), count)?;
                for (at, row) in (first..).zip(found).filter(|(_, row)| *row != crate::dok::MISSING)
                {
                    places.push(to_place(at));
                    rows.push(row);
                }
            }
        }
        let values = take_rows(&values, &rows)?;
        self.replace_entries(SparseEntries::new(selection.shape().to_vec(), places, values)?)
    }
}

/// One element: a tensor without axes that displays as its value.
///
/// [`DokTensor::at`] returns it.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dense::DType;
/// use serrate::dok::DokTensor;
/// let mut t = DokTensor::new([9], DType::I32)?;
/// t.set_at(&[3], 7)?;
/// let (stored, zero) = (t.at(&[3])?, t.at(&[0])?);
/// assert_eq!((stored.to_f64()?, zero.to_f64()?), (7.0, 0.0));
/// assert_eq!(stored.0.dtype(), DType::I32);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DokScalar(pub DenseTensor);

impl DokScalar {
    /// Returns the value as float64; integers beyond 2^53 are rounded.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![0, 5, 0, 7])?)?;
    /// assert_eq!((t.at(&[0, 0])?.to_f64()?, t.at(&[0, 1])?.to_f64()?), (0.0, 5.0));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Never: every element type converts to float64.
    pub fn to_f64(&self) -> Result<f64> {
        let wide = self.0.cast(DType::F64)?;
        Ok(wide.as_slice::<f64>()?.first().copied().unwrap_or(0.0))
    }
}

/// Writes the value in Rust's format for numbers.
impl std::fmt::Display for DokScalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.to_f64() {
            Ok(v) if self.0.dtype().is_float() => v.fmt(f),
            _ => f.write_str(self.0.to_string().rsplit(' ').next().unwrap_or_default()),
        }
    }
}
