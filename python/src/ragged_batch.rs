//! The Python class `RaggedBatch`.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use serrate::batching::{NestedSamples, RaggedBatch as CoreBatch, SampleRepeats};
use serrate::dense::{DType, DenseOptions, DenseTensor};

use crate::array::RaggedArray;
use crate::errors::{OrRaise, as_index_error, make_invalid_error, make_type_error};
use crate::run::{run_detached, run_here};
use crate::tensor::{
    TensorLibrary, check_device, extract_axes, extract_dtype, extract_fill, extract_tensor,
    give_tensor, index_in, is_number, show_tensor, to_axis,
};

/// Samples of different sizes as one batch: a padded tensor, its mask, and the sizes of the samples.
///
/// The first axes of the tensor are batch axes. One of the other axes, `non_uniform_dim`, has a different
/// size in each sample; its elements are entries. Slots after the entries of a sample are filler, which is
/// not stored: it is zero, or the value of `with_padded_set_to`. Either `mask` (batch axes, then the
/// largest size) or `sample_sizes` (batch axes) determines which slots are entries.
///
/// `tensor`, `mask` and `sample_sizes` are torch tensors if an argument was a torch tensor, else numpy
/// arrays. The numpy arrays are read-only, and the torch tensors are copies; to write, assign to an index
/// of the batch. Gradients are not recorded.
///
/// >>> import numpy as np
/// >>> batch = serrate.RaggedBatch(np.array([[1, 2, 3], [4, 0, 0]]), sample_sizes=np.array([3, 1]))
/// >>> batch.mask
/// array([[ True,  True,  True],
///        [ True, False, False]])
/// >>> batch.with_padded_set_to(-1).tensor
/// array([[ 1,  2,  3],
///        [ 4, -1, -1]])
/// >>> batch.split()
/// [array([1, 2, 3]), array([4])]
#[pyclass(module = "serrate")]
#[derive(Clone)]
pub(crate) struct RaggedBatch {
    pub(crate) inner: CoreBatch,
    pub(crate) library: TensorLibrary,
}

fn convert_optional(
    value: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Option<DenseTensor>, TensorLibrary)> {
    match value {
        None => Ok((None, TensorLibrary::Numpy)),
        Some(value) => extract_tensor(value).map(|(tensor, library)| (Some(tensor), library)),
    }
}

fn wrap_samples<'py>(
    py: Python<'py>,
    samples: NestedSamples,
    library: TensorLibrary,
) -> PyResult<Bound<'py, PyAny>> {
    match samples {
        NestedSamples::Tensor(tensor) => give_tensor(py, tensor, library),
        NestedSamples::List(list) => {
            let list = list.into_iter().map(|s| wrap_samples(py, s, library));
            Ok(PyList::new(py, list.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
    }
}

impl RaggedBatch {
    pub(crate) fn from_inner(inner: CoreBatch, library: TensorLibrary) -> Self {
        Self { inner, library }
    }

    fn with_inner(&self, inner: CoreBatch) -> Self {
        Self { inner, library: self.library }
    }

    /// Applies `f` to this batch. The result has the same library.
    fn map_inner(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&CoreBatch) -> serrate::Result<CoreBatch> + Send,
    ) -> PyResult<Self> {
        Ok(self.with_inner(run_detached(py, || f(&self.inner))?))
    }

    fn cast_values(&self, py: Python<'_>, dtype: DType) -> PyResult<Self> {
        self.map_inner(py, |batch| batch.cast(dtype))
    }
}

fn construct_batch(
    tensor: &Bound<'_, PyAny>,
    mask: Option<&Bound<'_, PyAny>>,
    sample_sizes: Option<&Bound<'_, PyAny>>,
    non_uniform_dim: Option<i64>,
    make: impl FnOnce(
        &DenseTensor,
        Option<&DenseTensor>,
        Option<&DenseTensor>,
        Option<usize>,
    ) -> serrate::Result<CoreBatch>
    + Send,
) -> PyResult<RaggedBatch> {
    let (data, library) = extract_tensor(tensor)?;
    let ((mask, a), (sizes, b)) = (convert_optional(mask)?, convert_optional(sample_sizes)?);
    let dim = non_uniform_dim.map(to_axis).transpose()?;
    let inner = run_detached(tensor.py(), || make(&data, mask.as_ref(), sizes.as_ref(), dim))?;
    Ok(RaggedBatch::from_inner(inner, library.prefer_torch(a).prefer_torch(b)))
}

#[pymethods]
#[allow(non_snake_case, reason = "the names that users of batching_helpers know")]
impl RaggedBatch {
    #[new]
    #[pyo3(signature = (tensor, mask=None, sample_sizes=None, non_uniform_dim=None))]
    fn new(
        tensor: &Bound<'_, PyAny>,
        mask: Option<&Bound<'_, PyAny>>,
        sample_sizes: Option<&Bound<'_, PyAny>>,
        non_uniform_dim: Option<i64>,
    ) -> PyResult<Self> {
        construct_batch(tensor, mask, sample_sizes, non_uniform_dim, CoreBatch::try_new)
    }

    /// Creates a batch from a tensor that may be wider than its largest sample; the excess is removed.
    ///
    /// >>> import numpy as np
    /// >>> serrate.RaggedBatch.FromOversizeTensor(np.zeros((2, 9)), sample_sizes=np.array([1, 2])).shape
    /// (2, 2)
    #[staticmethod]
    #[pyo3(signature = (tensor, mask=None, sample_sizes=None, non_uniform_dim=None))]
    fn FromOversizeTensor(
        tensor: &Bound<'_, PyAny>,
        mask: Option<&Bound<'_, PyAny>>,
        sample_sizes: Option<&Bound<'_, PyAny>>,
        non_uniform_dim: Option<i64>,
    ) -> PyResult<Self> {
        construct_batch(
            tensor,
            mask,
            sample_sizes,
            non_uniform_dim,
            CoreBatch::from_oversize_tensor,
        )
    }

    /// Creates a float32 batch without entries. Its tensors are torch tensors if a device ("cpu") is given,
    /// else numpy arrays.
    ///
    /// >>> serrate.RaggedBatch.Empty(3, 2, batch_shape=4).shape
    /// (4, 0, 0)
    #[staticmethod]
    #[pyo3(signature = (num_dims, non_uniform_dim, device=None, num_batch_dims=None, batch_shape=None))]
    fn Empty(
        num_dims: i64,
        non_uniform_dim: i64,
        device: Option<&Bound<'_, PyAny>>,
        num_batch_dims: Option<i64>,
        batch_shape: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let library =
            if check_device(device)? { TensorLibrary::Torch } else { TensorLibrary::Numpy };
        let batch_dims = num_batch_dims.map(to_axis).transpose()?;
        let shape = match batch_shape {
            None => None,
            Some(shape) => {
                let sizes = extract_axes(shape)?.into_iter().map(to_axis);
                Some(sizes.collect::<PyResult<Vec<_>>>()?)
            }
        };
        let (dims, dim) = (to_axis(num_dims)?, to_axis(non_uniform_dim)?);
        let inner = run_here(|| CoreBatch::empty(dims, dim, batch_dims, shape.as_deref()))?;
        Ok(Self::from_inner(inner, library))
    }

    /// Creates a batch whose samples all have the size of the tensor.
    #[staticmethod]
    #[pyo3(signature = (full_tensor, non_uniform_dim=1, num_batch_dims=1))]
    fn FromFullTensor(
        full_tensor: &Bound<'_, PyAny>,
        non_uniform_dim: i64,
        num_batch_dims: i64,
    ) -> PyResult<Self> {
        let (data, library) = extract_tensor(full_tensor)?;
        let (dim, batch_dims) = (to_axis(non_uniform_dim)?, to_axis(num_batch_dims)?);
        let inner =
            run_detached(full_tensor.py(), || CoreBatch::from_full_tensor(&data, dim, batch_dims))?;
        Ok(Self::from_inner(inner, library))
    }

    /// Creates a batch from a `RaggedArray`, without a copy. Lists may differ in length on one axis only.
    ///
    /// >>> serrate.RaggedBatch.from_ragged(serrate.RaggedArray([[1, 2], [3]])).tensor
    /// array([[1, 2],
    ///        [3, 0]])
    #[staticmethod]
    fn from_ragged(py: Python<'_>, array: &RaggedArray) -> PyResult<Self> {
        Ok(Self::from_inner(
            run_detached(py, || CoreBatch::from_ragged(array.as_ragged()))?,
            TensorLibrary::Numpy,
        ))
    }

    /// Creates a batch from the entries of all samples, one after the other, and the offsets of the
    /// samples, from 0.
    #[staticmethod]
    fn from_packed(values: &Bound<'_, PyAny>, cu_seqlens: &Bound<'_, PyAny>) -> PyResult<Self> {
        let ((values, a), (ends, b)) = (extract_tensor(values)?, extract_tensor(cu_seqlens)?);
        let inner = run_detached(cu_seqlens.py(), || CoreBatch::from_packed(values, &ends))?;
        Ok(Self::from_inner(inner, a.prefer_torch(b)))
    }

    /// The padded tensor.
    #[getter]
    fn tensor<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.library {
            TensorLibrary::Numpy => {
                run_detached(py, || self.inner.tensor().map(drop))?;
                show_tensor(py, self.inner.tensor().or_raise()?, self.library)
            }
            TensorLibrary::Torch => {
                let options = DenseOptions::default();
                give_tensor(py, run_detached(py, || self.inner.padded(&options))?, self.library)
            }
        }
    }

    /// The mask of the tensor: booleans of shape (batch axes, non-uniform axis), True where there is an
    /// entry.
    #[getter]
    fn mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        show_tensor(py, run_detached(py, || self.inner.mask())?, self.library)
    }

    /// The number of entries of each sample.
    #[getter]
    fn sample_sizes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        show_tensor(py, run_detached(py, || self.inner.sample_sizes())?, self.library)
    }

    /// The entries of all samples, one after the other, without filler.
    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        show_tensor(py, self.inner.values(), self.library)
    }

    /// The axis that has a different size in each sample.
    #[getter]
    fn non_uniform_dim(&self) -> usize {
        self.inner.non_uniform_dim()
    }

    /// Number of batch axes, which are the first axes.
    #[getter]
    fn num_batch_dims(&self) -> usize {
        self.inner.num_batch_dims()
    }

    /// Sizes of the batch axes.
    #[getter]
    fn batch_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.library.shape(py, self.inner.batch_shape().iter().copied())
    }

    /// Number of samples.
    #[getter]
    fn total_num_samples_in_batch(&self) -> usize {
        self.inner.num_samples()
    }

    /// Number of entries of all samples.
    #[getter]
    fn total_num_entries(&self) -> usize {
        self.inner.num_entries()
    }

    /// Size of the non-uniform axis of the tensor.
    #[getter]
    fn max_sample_size(&self) -> usize {
        self.inner.max_sample_size()
    }

    /// The device of the tensors, which is always the CPU.
    #[getter]
    fn device<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.library.get_device(py)
    }

    /// Sizes of the axes of `tensor`.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.library.shape(py, self.inner.shape())
    }

    /// Type of the values, of torch or numpy.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.library.dtype(py, self.inner.dtype())
    }

    /// Always False: gradients are not recorded.
    #[getter]
    fn requires_grad(&self) -> bool {
        false
    }

    /// Always False: gradients are not recorded.
    #[getter]
    fn retains_grad(&self) -> bool {
        false
    }

    /// Returns the shape of the tensor, or the size of one axis.
    #[pyo3(signature = (dim=None))]
    fn size<'py>(&self, py: Python<'py>, dim: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        match dim {
            None => self.shape(py),
            Some(dim) => {
                let shape = self.inner.shape();
                let at = usize::try_from(dim)
                    .ok()
                    .or_else(|| shape.len().checked_sub(usize::try_from(dim.unsigned_abs()).ok()?));
                run_here(|| {
                    at.and_then(|at| shape.get(at).copied()).ok_or_else(|| {
                        let (what, ndim) = ("the batch".to_owned(), shape.len());
                        serrate::Error::NoSuchAxis { what, axis: dim, ndim }
                    })
                })?
                .into_bound_py_any(py)
            }
        }
    }

    /// Returns the number of axes of the tensor.
    fn dim(&self) -> usize {
        self.inner.ndim()
    }

    fn __len__(&self) -> usize {
        self.inner.batch_shape().first().copied().unwrap_or(0)
    }

    /// Returns the batch with a copy of its data.
    fn as_self_with_cloned_data(&self, py: Python<'_>) -> PyResult<Self> {
        self.map_inner(py, CoreBatch::try_clone)
    }

    /// Creates a batch of other data with the sample sizes of this batch.
    #[pyo3(signature = (tensor, non_uniform_dim=None, device=None))]
    fn create_with_sample_sizes_like_self(
        &self,
        py: Python<'_>,
        tensor: &Bound<'_, PyAny>,
        non_uniform_dim: Option<i64>,
        device: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        check_device(device)?;
        let (data, library) = extract_tensor(tensor)?;
        let out = self.map_inner(py, |batch| {
            batch.create_with_sample_sizes_like_self(&data, non_uniform_dim)
        })?;
        Ok(Self { library: self.library.prefer_torch(library), ..out })
    }

    /// Returns the batch with its non-uniform axis swapped with the axis `dim`.
    fn get_non_uniform_dimension_transposed_to(&self, py: Python<'_>, dim: i64) -> PyResult<Self> {
        let dim = to_axis(dim)?;
        self.map_inner(py, |batch| batch.get_non_uniform_dimension_transposed_to(dim))
    }

    /// Returns a tensor of the shape of the padded tensor: 1 where there is an entry and 0 where there is
    /// filler.
    #[pyo3(signature = (dtype=None))]
    fn get_existence_weights<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let dtype =
            dtype.map(|d| extract_dtype(d).map(|(d, _)| d)).transpose()?.unwrap_or(DType::F32);
        give_tensor(py, run_detached(py, || self.inner.get_existence_weights(dtype))?, self.library)
    }

    /// Returns the batch with this value as filler.
    fn with_padded_set_to(
        &self,
        py: Python<'_>,
        value_to_set: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let value = extract_fill(value_to_set)?;
        self.map_inner(py, |batch| batch.with_padded_set_to(value))
    }

    /// Sets the filler of this batch in place.
    fn set_padded_to(&mut self, value_to_set: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = extract_fill(value_to_set)?;
        let inner = &mut self.inner;
        run_detached(value_to_set.py(), || inner.set_padded_to(value))
    }

    /// Repeats the samples: one number of repeats for one batch axis, or a number for each batch axis.
    #[pyo3(signature = (num_repeats, batch_dim=None))]
    fn repeat_samples(
        &self,
        py: Python<'_>,
        num_repeats: &Bound<'_, PyAny>,
        batch_dim: Option<i64>,
    ) -> PyResult<Self> {
        let dim = batch_dim.map(to_axis).transpose()?;
        let repeats = match num_repeats.extract::<i64>() {
            Ok(one) => SampleRepeats::One(to_axis(one)?),
            Err(_) => {
                let each = extract_axes(num_repeats)?.into_iter().map(to_axis);
                SampleRepeats::Each(each.collect::<PyResult<_>>()?)
            }
        };
        self.map_inner(py, |batch| batch.repeat_samples(repeats, dim))
    }

    /// Inserts a batch axis of size 1.
    fn unsqueeze_batch_dim(&self, py: Python<'_>, dim: i64) -> PyResult<Self> {
        let dim = to_axis(dim)?;
        self.map_inner(py, |batch| batch.unsqueeze_batch_dim(dim))
    }

    /// Removes a batch axis of size 1.
    fn squeeze_batch_dim(&self, py: Python<'_>, batch_dim: i64) -> PyResult<Self> {
        let dim = to_axis(batch_dim)?;
        self.map_inner(py, |batch| batch.squeeze_batch_dim(dim))
    }

    /// Returns the same samples with other batch axes; one size may be -1.
    fn reshape_batch_dims(
        &self,
        py: Python<'_>,
        new_batch_shape: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let shape = extract_axes(new_batch_shape)?;
        self.map_inner(py, |batch| batch.reshape_batch_dims(&shape))
    }

    /// Returns the same samples with one batch axis.
    fn flatten_batch_dims(&self, py: Python<'_>) -> PyResult<Self> {
        self.map_inner(py, CoreBatch::flatten_batch_dims)
    }

    /// Repeats the samples until the batch axes have this shape.
    fn broadcast_batch_dims_to_shape(
        &self,
        py: Python<'_>,
        new_batch_shape: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let shape = extract_axes(new_batch_shape)?.into_iter().map(to_axis);
        let shape = shape.collect::<PyResult<Vec<_>>>()?;
        self.map_inner(py, |batch| batch.broadcast_batch_dims_to_shape(&shape))
    }

    /// Broadcasts batches to common batch axes.
    #[staticmethod]
    fn broadcast_batch_dims(py: Python<'_>, data: Vec<Bound<'_, Self>>) -> PyResult<Vec<Self>> {
        let (mut all, mut libraries) = (Vec::new(), Vec::new());
        for batch in &data {
            let batch = batch.try_borrow()?;
            all.push(batch.inner.clone());
            libraries.push(batch.library);
        }
        let out = run_detached(py, || CoreBatch::broadcast_batch_dims(&all))?;
        Ok(out.into_iter().zip(libraries).map(|(batch, of)| Self::from_inner(batch, of)).collect())
    }

    /// Inserts a data axis of size 1.
    fn unsqueeze_data_dim(&self, py: Python<'_>, dim: i64) -> PyResult<Self> {
        self.map_inner(py, |batch| batch.unsqueeze_data_dim(dim))
    }

    /// Returns the result of a function of `(tensor)`, `(tensor, mask)` or `(tensor, mask, sample_sizes)`,
    /// depending on the number of its parameters. The function returns one tensor or a tuple of tensors,
    /// each of which becomes a batch.
    ///
    /// >>> import numpy as np
    /// >>> batch = serrate.RaggedBatch(np.array([[1, 2], [4, 0]]), sample_sizes=np.array([2, 1]))
    /// >>> batch.apply(lambda t, mask: np.where(mask, t * 10, -1)).split()
    /// [array([10, 20]), array([40])]
    fn apply<'py>(
        &self,
        py: Python<'py>,
        proc_step: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let count = match proc_step.getattr("__code__") {
            Ok(code) => {
                let bound = proc_step.hasattr("__self__")?;
                let all: usize = code.getattr("co_argcount")?.extract()?;
                all.saturating_sub(usize::from(bound))
            }
            // The signature of a builtin such as torch.abs is unknown, so it gets only the tensor.
            Err(_) => 1,
        };
        let out = match count {
            0 | 1 => proc_step.call1((self.tensor(py)?,)),
            2 => proc_step.call1((self.tensor(py)?, self.mask(py)?)),
            3 => proc_step.call1((self.tensor(py)?, self.mask(py)?, self.sample_sizes(py)?)),
            n => Err(make_invalid_error(format!(
                "the function takes {n} arguments, but it can receive at most three: tensor, mask and sample_sizes"
            ))),
        }?;
        let one = |tensor: &Bound<'py, PyAny>| {
            self.create_with_sample_sizes_like_self(py, tensor, None, None)?.into_bound_py_any(py)
        };
        match out.cast::<PyTuple>() {
            Ok(several) => {
                let each = several.iter().map(|tensor| one(&tensor));
                Ok(PyTuple::new(py, each.collect::<PyResult<Vec<_>>>()?)?.into_any())
            }
            Err(_) => one(&out),
        }
    }

    /// Replaces the data; the batch axes and the size of the non-uniform axis must stay the same.
    fn set_tensor(&mut self, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        let (data, library) = extract_tensor(tensor)?;
        let inner = &mut self.inner;
        run_detached(tensor.py(), || inner.set_tensor(&data))?;
        self.library = self.library.prefer_torch(library);
        Ok(())
    }

    /// Returns the samples without filler, in lists nested like the batch axes.
    fn split<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        wrap_samples(py, run_detached(py, || self.inner.split())?, self.library)
    }

    /// Returns the elements of the padded tensor at an index.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let index = index_in(index)?;
        let out = run_detached(py, || self.inner.index(&index)).map_err(as_index_error)?;
        give_tensor(py, out, self.library)
    }

    /// Writes entries at an index of the padded tensor; values written to filler are dropped.
    fn __setitem__(
        &mut self,
        py: Python<'_>,
        index: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let index = index_in(index)?;
        let value = match is_number(value)? && !crate::tensor::is_tensor(value)? {
            true => {
                let fill = extract_fill(value)?;
                let dtype = self.inner.dtype();
                let dtype = match fill {
                    serrate::dense::Fill::Float(_) if !dtype.is_float() => DType::F64,
                    _ => dtype,
                };
                fill.to_tensor(dtype).or_raise()?.reshape([]).or_raise()?
            }
            false => extract_tensor(value)?.0,
        };
        let inner = &mut self.inner;
        run_detached(py, || inner.set(&index, &value)).map_err(as_index_error)
    }

    /// Returns the batch converted to another type.
    fn to_dtype(&self, py: Python<'_>, dtype: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.cast_values(py, extract_dtype(dtype)?.0)
    }

    /// Returns the batch unchanged for the device "cpu". Raises an error for any other device.
    fn to_device(&self, device: &Bound<'_, PyAny>) -> PyResult<Self> {
        check_device(Some(device))?;
        Ok(self.clone())
    }

    /// Returns the batch converted to another type, or unchanged for the device "cpu".
    #[pyo3(signature = (*args, dtype=None, device=None, non_blocking=false, copy=false))]
    fn to(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        dtype: Option<&Bound<'_, PyAny>>,
        device: Option<&Bound<'_, PyAny>>,
        non_blocking: bool,
        copy: bool,
    ) -> PyResult<Self> {
        let _ = (non_blocking, copy);
        check_device(device)?;
        let mut out = self.clone();
        let mut dtypes: Vec<Bound<'_, PyAny>> = dtype.into_iter().cloned().collect();
        for arg in args.iter() {
            let is_device = crate::tensor::is_torch(&arg, "device")?
                || arg.extract::<String>().is_ok_and(|s| s.parse::<DType>().is_err());
            match is_device {
                true => drop(check_device(Some(&arg))?),
                false => dtypes.push(arg),
            }
        }
        for dtype in dtypes {
            out = out.cast_values(py, extract_dtype(&dtype)?.0)?;
        }
        Ok(out)
    }

    /// Returns the batch unchanged, because it is always in main memory.
    fn cpu(&self) -> Self {
        self.clone()
    }

    /// Returns the batch unchanged, because gradients are not recorded.
    fn detach(&self) -> Self {
        self.clone()
    }

    /// Returns the batch with values of 32-bit integers.
    fn int(&self, py: Python<'_>) -> PyResult<Self> {
        self.cast_values(py, DType::I32)
    }

    /// Returns the batch with values of 64-bit integers.
    fn long(&self, py: Python<'_>) -> PyResult<Self> {
        self.cast_values(py, DType::I64)
    }

    /// Returns the batch with boolean values.
    fn bool(&self, py: Python<'_>) -> PyResult<Self> {
        self.cast_values(py, DType::Bool)
    }

    /// Returns the batch with values of 16-bit floats.
    fn half(&self, py: Python<'_>) -> PyResult<Self> {
        self.cast_values(py, DType::F16)
    }

    /// Converts the batch to bfloat16. numpy has no such type, so numpy arrays are float32.
    fn bfloat16(&self, py: Python<'_>) -> PyResult<Self> {
        self.cast_values(py, DType::BF16)
    }

    /// Returns the batch with values of 32-bit floats.
    fn float(&self, py: Python<'_>) -> PyResult<Self> {
        self.cast_values(py, DType::F32)
    }

    /// Returns the batch with values of 64-bit floats.
    fn double(&self, py: Python<'_>) -> PyResult<Self> {
        self.cast_values(py, DType::F64)
    }

    /// Returns the same batch with torch tensors as results.
    fn torch(&self) -> Self {
        Self { inner: self.inner.clone(), library: TensorLibrary::Torch }
    }

    /// Returns the same batch with numpy arrays as results.
    fn numpy(&self) -> Self {
        Self { inner: self.inner.clone(), library: TensorLibrary::Numpy }
    }

    /// Returns the entries of all samples and the offsets of the samples (int32, from 0): `(values,
    /// cu_seqlens)`.
    fn to_packed<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let packed = run_detached(py, || self.inner.to_packed())?;
        Ok((
            show_tensor(py, &packed.values, self.library)?,
            give_tensor(py, packed.cu_seqlens, self.library)?,
        ))
    }

    /// Returns a `RaggedArray` with one list of entries per sample, without a copy.
    fn to_ragged(&self, py: Python<'_>) -> PyResult<RaggedArray> {
        Ok(run_detached(py, || self.inner.to_ragged())?.into())
    }

    /// Returns whether the other batch has the same shape, sizes, type and entries; filler is ignored.
    fn equals(&self, other: &Self) -> bool {
        self.inner == other.inner
    }

    fn __copy__(&self) -> Self {
        self.clone()
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.as_self_with_cloned_data(py)
    }

    fn __reduce__<'py>(
        slf: Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let this = slf.try_borrow()?;
        let args = [
            this.tensor(py)?,
            py.None().into_bound(py),
            this.sample_sizes(py)?,
            this.inner.non_uniform_dim().into_bound_py_any(py)?,
        ];
        Ok((slf.get_type().into_any(), PyTuple::new(py, args)?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let sizes =
            show_tensor(py, run_detached(py, || self.inner.sample_sizes())?, TensorLibrary::Numpy)?;
        let sizes = sizes.call_method0("tolist")?.repr()?;
        let shape: Vec<String> = self.inner.shape().iter().map(usize::to_string).collect();
        Ok(format!(
            "RaggedBatch(shape=({}), non_uniform_dim={}, sample_sizes={sizes}, dtype={})",
            shape.join(", "),
            self.inner.non_uniform_dim(),
            self.inner.dtype()
        ))
    }

    fn __bool__(&self) -> PyResult<bool> {
        Err(PyTypeError::new_err(
            "a batch cannot be used as a condition; compare len() or sample_sizes instead",
        ))
    }
}

/// Extracts a batch from an argument; `what` is the name of the argument.
pub(crate) fn to_ragged_batch(value: &Bound<'_, PyAny>, what: &str) -> PyResult<RaggedBatch> {
    match value.cast::<RaggedBatch>() {
        Ok(batch) => Ok(batch.try_borrow()?.clone()),
        Err(_) => Err(make_type_error(format!(
            "{what} must be a RaggedBatch, not {}",
            value.get_type().name()?
        ))),
    }
}
