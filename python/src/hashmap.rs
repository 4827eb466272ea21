//! The Python class `HashMap`, which handles many keys at once.

use pyo3::prelude::*;
use serrate::dok::{Fallback, MapOptions, RowMap};

use crate::errors::{OrRaise, make_invalid_error};
use crate::run::{run_detached, run_here};
use crate::tensor::{
    TensorLibrary, check_device, extract_fill, extract_tensor, give_flags, give_tensor, is_number,
};

/// A hash map from rows to rows that reads and writes many keys at a time.
///
/// A key is one row of `keys`, of any shape and type, and a value is one row of `values`; the first `set`
/// determines shapes and types. Keys are compared by their bytes; for floats, -0.0 equals 0.0, and all NaN
/// are equal. If a call has equal keys, the last one counts. Results are torch tensors if the given rows
/// were torch tensors, else numpy arrays.
///
/// >>> import numpy as np
/// >>> m = serrate.HashMap()
/// >>> m[np.array([[1, 2], [3, 4]])] = np.array([0.5, 1.5])
/// >>> m.get(np.array([[3, 4], [9, 9]]), fallback_value=-1)
/// (array([ 1.5, -1. ]), array([ True, False]))
/// >>> m.remove(np.array([[1, 2]])), len(m)
/// (array([ True]), 1)
#[pyclass(name = "HashMap", module = "serrate")]
pub(crate) struct PyHashMap {
    pub(crate) inner: RowMap,
    pub(crate) library: TensorLibrary,
}

#[pymethods]
impl PyHashMap {
    #[new]
    #[pyo3(signature = (n_buckets=1024, device=None, rehash_factor=2.0, rehash_threshold=0.75))]
    fn new(
        n_buckets: usize,
        device: Option<&Bound<'_, PyAny>>,
        rehash_factor: f64,
        rehash_threshold: f64,
    ) -> PyResult<Self> {
        let library =
            if check_device(device)? { TensorLibrary::Torch } else { TensorLibrary::Numpy };
        let options = MapOptions {
            n_buckets,
            growth: rehash_factor,
            load_factor: rehash_threshold,
            ..MapOptions::default()
        };
        Ok(Self { inner: run_here(|| RowMap::new(options))?, library })
    }

    /// Writes the values of keys. Returns whether each key is new.
    fn set<'py>(
        &mut self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        values: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ((keys, a), (values, b)) = (extract_tensor(keys)?, extract_tensor(values)?);
        let map = &mut self.inner;
        let new = run_detached(py, || map.set(&keys, &values))?;
        self.library = self.library.prefer_torch(a).prefer_torch(b);
        give_flags(py, new, self.library)
    }

    fn __setitem__(
        &mut self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.set(py, keys, values).map(drop)
    }

    /// Returns the values of keys, and whether each key was found: `(values, is_found)`. Missing keys have
    /// the fallback value: 0, a given number, or a given row.
    #[pyo3(signature = (keys, fallback_value=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        fallback_value: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (keys, of) = extract_tensor(keys)?;
        let library = self.library.prefer_torch(of);
        let fallback = match fallback_value {
            None => Fallback::Zero,
            Some(value) if is_number(value)? => Fallback::Scalar(extract_fill(value)?),
            Some(value) => {
                let (row, _) = extract_tensor(value)?;
                let row = match self.inner.value_type() {
                    Some(kind) if row.dtype() != kind.dtype() => {
                        row.cast(kind.dtype()).or_raise()?
                    }
                    _ => row,
                };
                Fallback::Value(row)
            }
        };
        let out = run_detached(py, || self.inner.get(&keys, &fallback))?;
        Ok((give_tensor(py, out.values, library)?, give_flags(py, out.found, library)?))
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        self.get(py, keys, None)
    }

    /// Returns the values of keys, after writing the given values of missing keys: `(values, is_found)`.
    fn get_or_insert<'py>(
        &mut self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        values: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let ((keys, a), (values, b)) = (extract_tensor(keys)?, extract_tensor(values)?);
        let map = &mut self.inner;
        let out = run_detached(py, || map.get_or_insert(&keys, &values))?;
        self.library = self.library.prefer_torch(a).prefer_torch(b);
        Ok((give_tensor(py, out.values, self.library)?, give_flags(py, out.found, self.library)?))
    }

    /// Returns whether the map has each key.
    fn contains<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (keys, of) = extract_tensor(keys)?;
        let library = self.library.prefer_torch(of);
        give_flags(py, run_detached(py, || self.inner.contains(&keys))?, library)
    }

    /// Removes keys. Returns whether the map had each key.
    fn remove<'py>(
        &mut self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (keys, of) = extract_tensor(keys)?;
        let library = self.library.prefer_torch(of);
        let map = &mut self.inner;
        give_flags(py, run_detached(py, || map.remove(&keys))?, library)
    }

    fn __delitem__(&mut self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<()> {
        self.remove(py, keys).map(drop)
    }

    /// Returns all keys, in the order of `values()`; None before the first `set`.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.inner.key_type() {
            None => Ok(None),
            Some(_) => {
                give_tensor(py, run_detached(py, || self.inner.keys())?, self.library).map(Some)
            }
        }
    }

    /// Returns all values, in the order of `keys()`; None before the first `set`.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.inner.value_type() {
            None => Ok(None),
            Some(_) => {
                give_tensor(py, run_detached(py, || self.inner.values())?, self.library).map(Some)
            }
        }
    }

    /// Number of keys.
    #[getter]
    fn n_elements(&self) -> usize {
        self.inner.len()
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// Number of slots for keys.
    #[getter]
    fn n_buckets(&self) -> usize {
        self.inner.n_buckets()
    }

    /// Fraction of the slots that hold a key.
    #[getter]
    fn load_factor(&self) -> f64 {
        self.inner.load_factor()
    }

    /// Distributes the keys anew over `n_buckets` slots, or over as many as they need.
    #[pyo3(signature = (n_buckets=0))]
    fn rehash(&mut self, py: Python<'_>, n_buckets: usize) -> PyResult<()> {
        let map = &mut self.inner;
        run_detached(py, || map.rehash(n_buckets))
    }

    /// Removes all keys.
    fn clear(&mut self) {
        self.inner.clear();
    }

    /// Returns a copy of the map.
    fn clone(&self, py: Python<'_>) -> PyResult<Self> {
        Ok(Self { inner: run_detached(py, || self.inner.try_clone())?, library: self.library })
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.clone(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.clone(py)
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (key, _) = extract_tensor(key)?;
        let Some(kind) = self.inner.key_type() else { return Ok(false) };
        if key.shape() != kind.shape() {
            return Err(make_invalid_error(format!(
                "`key in map` needs one key of shape {:?}; use contains() for several keys",
                kind.shape()
            )));
        }
        let mut shape = vec![1];
        shape.extend_from_slice(key.shape());
        let found = run_detached(py, || {
            let key = match key.dtype() == kind.dtype() {
                true => key,
                false => key.cast(kind.dtype())?,
            };
            self.inner.contains(&key.reshape(shape)?)
        })?;
        Ok(found.contains(&true))
    }

    fn __repr__(&self) -> String {
        match (self.inner.key_type(), self.inner.value_type()) {
            (Some(key), Some(value)) => {
                format!("HashMap({} keys, {key} to {value})", self.inner.len())
            }
            _ => "HashMap(empty)".into(),
        }
    }
}
