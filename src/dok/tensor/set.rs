//! Writing: scalars, dense tensors that broadcast, sparse tensors.

use arrow::datatypes::ToByteSlice;

use super::DokTensor;
use super::numbers::is_zero;
use super::selection::{Selection, broadcast, broadcast_strides, walk};
use super::storage::{Storage, coordinate, linear_size};
use crate::dense::{DenseTensor, Fill};
use crate::error::{Error, Result};
use crate::index::Index;

/// What is written.
#[derive(Clone, Debug)]
pub enum Source<'a> {
    /// One value for all elements, converted as [`DenseTensor::cast`] does it: 1.5 becomes the integer
    /// 1, as in numpy, and 300 no uint8.
    Scalar(Fill),
    /// A dense tensor that broadcasts to the part, converted as [`DenseTensor::cast`] does it.
    Dense(&'a DenseTensor),
    /// A sparse tensor of just the shape of the part: the part is cleared, then the entries that are
    /// not zero are written.
    Sparse(&'a DokTensor),
}

impl<T: Into<Fill>> From<T> for Source<'_> {
    fn from(value: T) -> Self {
        Self::Scalar(value.into())
    }
}

impl<'a> From<&'a DenseTensor> for Source<'a> {
    fn from(value: &'a DenseTensor) -> Self {
        Self::Dense(value)
    }
}

impl<'a> From<&'a DokTensor> for Source<'a> {
    fn from(value: &'a DokTensor) -> Self {
        Self::Sparse(value)
    }
}

impl DokTensor {
    /// Writes to a part, which is what [`get`](Self::get) gives for the same index. Zeros remove
    /// entries. Where an element is in the part more than once, the last value counts.
    ///
    /// All views of the tensor see it.
    ///
    /// ```
    /// use serrate::dense::{DType, DenseTensor};
    /// use serrate::dok::DokTensor;
    /// use serrate::index::parse_index;
    /// let mut t = DokTensor::new([3, 4], DType::F32)?;
    /// t.set(&parse_index("[0, 1, 2], [0, 1, 2]")?, 1)?;
    /// t.set(&parse_index(":2, 2:")?, &DenseTensor::from_vec([2], vec![0.0, 7.0])?)?;
    /// assert_eq!(t.get(&parse_index("1")?)?.as_slice::<f32>()?, [0.0, 1.0, 0.0, 7.0]);
    /// assert_eq!(t.nnz()?, 5);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`get`](Self::get) for the index (the limit counts for dense values and scalars, which take
    /// an entry per element); when the value has another shape or does not fit the type.
    pub fn set<'a>(&mut self, index: &[Index], value: impl Into<Source<'a>>) -> Result<()> {
        self.write(index, value.into(), Selection::numpy)
    }

    /// As [`set`](Self::set), to the part that [`get_orthogonal`](Self::get_orthogonal) gives.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn set_orthogonal<'a>(
        &mut self,
        index: &[Index],
        value: impl Into<Source<'a>>,
    ) -> Result<()> {
        self.write(index, value.into(), Selection::orthogonal)
    }

    /// Writes one element; zero removes its entry.
    ///
    /// # Errors
    /// When there is not one coordinate per axis, one is outside, or the value does not fit the type.
    pub fn set_at(&mut self, coordinates: &[i64], value: impl Into<Fill>) -> Result<()> {
        self.one_element(coordinates)?;
        let index: Vec<Index> = coordinates.iter().map(|c| Index::At(*c)).collect();
        self.set(&index, value.into())
    }

    /// Removes all entries.
    pub fn clear(&mut self) -> Result<()> {
        if self.view.is_permutation() {
            self.storage.write().map.clear();
            return Ok(());
        }
        self.set(&[Index::Rest], 0)
    }

    /// Removes the entries that are zero.
    ///
    /// # Errors
    /// When there is not so much memory.
    pub fn prune(&mut self) -> Result<()> {
        let mut storage = self.storage.write();
        let zero = is_zero(&storage.map.values()?)?;
        let keys = storage.map.keys()?;
        let gone: Vec<i64> = keys
            .as_slice::<i64>()?
            .iter()
            .zip(zero)
            .filter_map(|(key, zero)| zero.then_some(*key))
            .collect();
        drop(keys);
        storage.map.remove_rows(gone.to_byte_slice(), gone.len())?;
        Ok(())
    }

    fn write(
        &mut self,
        index: &[Index],
        value: Source<'_>,
        select: impl Fn(&super::View, &Storage, &[Index]) -> Result<Selection>,
    ) -> Result<()> {
        let sparse = match value {
            // Read before the storage is locked, which may be the same.
            Source::Sparse(sparse) => Some((sparse.shape(), sparse.entries()?.sorted()?)),
            _ => None,
        };
        let mut storage = self.storage.write();
        let selection = select(&self.view, &storage, index)?;
        let dtype = storage.dtype();
        let elements = linear_size(selection.shape())?;
        if let Some((shape, entries)) = sparse {
            if shape != selection.shape() {
                return Err(Error::invalid(format!(
                    "a sparse value of shape {shape:?} for a part of shape {:?}; sparse values do not broadcast",
                    selection.shape()
                )));
            }
            let values = entries.values.cast(dtype)?;
            let zero = is_zero(&values)?;
            let mut written: Vec<(u64, i64)> = (0..)
                .zip(entries.places()?.iter().zip(&zero))
                .filter(|(_, (_, zero))| !**zero)
                .map(|(row, (at, _))| (row, *at))
                .collect();
            let place = |(_, at): &(u64, i64)| selection.place_of(*at);
            let mut places: Vec<i64> = written.iter().map(place).collect();
            if selection.repeats() {
                // The last value counts, which is a zero where no entry of the value is.
                let mut last = vec![0u64; places.len()];
                selection.find(&places, |at, i| last[i] = last[i].max(at));
                let mut last = last.into_iter();
                written.retain(|(_, at)| last.next() == u64::try_from(*at).ok());
                places = written.iter().map(place).collect();
            }
            let rows: Vec<u64> = written.into_iter().map(|(row, _)| row).collect();
            let values = super::entries::take(&values, &rows)?;
            clear(&mut storage, &selection)?;
            let count = places.len();
            storage.map.put_rows(places.to_byte_slice(), values.as_bytes(), count, true)?;
            return Ok(());
        }
        let given = match value {
            Source::Scalar(fill) => scalar(fill)?.cast(dtype)?,
            Source::Dense(dense) => {
                // Axes of size 1 before those of the part are no matter to numpy.
                let extra = dense.ndim().saturating_sub(selection.shape().len());
                let (leading, rest) = dense.shape().split_at(extra);
                let shapes = [rest, selection.shape()];
                let fits = broadcast(shapes.into_iter()).is_some_and(|s| s == selection.shape());
                if !fits || leading.iter().any(|n| *n != 1) {
                    return Err(Error::invalid(format!(
                        "a value of shape {:?} does not broadcast to a part of shape {:?}",
                        dense.shape(),
                        selection.shape()
                    )));
                }
                dense.cast(dtype)?.reshape(&dense.shape()[extra..])?
            }
            Source::Sparse(_) => return Ok(()),
        };
        let zero = is_zero(&given)?;
        let all_zero = zero.iter().all(|z| *z);
        if elements == 0 {
            return Ok(());
        }
        if all_zero && elements > storage.map.len() as u64 {
            return clear(&mut storage, &selection);
        }
        let each = dtype.size() as u64 + 8;
        let what = format!("writing {elements} elements");
        self.dense_bytes(elements.saturating_mul(each), crate::dense::DType::U8, &what)?;
        let count = coordinate(elements);
        let mut places = Vec::with_capacity(count);
        selection.places(0, count, &mut places);
        let (bytes, size) = (given.as_bytes(), dtype.size());
        let steps = broadcast_strides(given.shape(), selection.shape());
        if all_zero {
            storage.map.remove_rows(places.to_byte_slice(), count)?;
            return Ok(());
        }
        let mut values = Vec::with_capacity(count * size);
        let mut zeros = Vec::new();
        walk(selection.shape(), &steps, |at| {
            if zero[at] {
                zeros.push(values.len() / size);
            }
            values.extend_from_slice(&bytes[at * size..][..size]);
        });
        // Of elements that are there twice the last value counts, zero or not: all are written first.
        storage.map.put_rows(places.to_byte_slice(), &values, count, true)?;
        if zeros.is_empty() {
            return Ok(());
        }
        let mut gone: Vec<i64> = zeros.iter().map(|i| places[*i]).collect();
        if selection.repeats() {
            let rows = storage.map.find_rows(gone.to_byte_slice(), gone.len())?;
            let now = super::entries::take(&storage.map.values()?, &rows)?;
            let mut still = is_zero(&now)?.into_iter();
            gone.retain(|_| still.next().unwrap_or(false));
        }
        storage.map.remove_rows(gone.to_byte_slice(), gone.len())?;
        Ok(())
    }
}

/// A number as a tensor without axes, of the type that it comes in.
pub(super) fn scalar(fill: Fill) -> Result<DenseTensor> {
    match fill {
        Fill::Bool(v) => DenseTensor::from_bools([], [v]),
        Fill::Int(v) => DenseTensor::from_vec([], vec![v]),
        Fill::UInt(v) => DenseTensor::from_vec([], vec![v]),
        Fill::Float(v) => DenseTensor::from_vec([], vec![v]),
    }
}

/// Removes the entries of a part.
fn clear(storage: &mut Storage, selection: &Selection) -> Result<()> {
    let stored = storage.map.keys()?;
    let all = stored.as_slice::<i64>()?;
    let mut gone = Vec::new();
    selection.find(all, |_, row| gone.push(all[row]));
    drop(stored);
    storage.map.remove_rows(gone.to_byte_slice(), gone.len())?;
    Ok(())
}
