//! Converts dense tensors from and to numpy and torch. Results belong to the library of the arguments.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyTuple};
use serrate::arrow::buffer::Buffer;
use serrate::dense::{DType, DenseTensor, Fill};
use serrate::index::Index;

use crate::array::extract_index;
use crate::errors::{OrRaise, as_index_error, make_invalid_error, make_type_error};
use crate::numpy_memory::{from_numpy, into_numpy, to_numpy};

/// The library whose tensors a function returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TensorLibrary {
    #[default]
    Numpy,
    Torch,
}

impl TensorLibrary {
    /// Returns torch if one of the two libraries is torch.
    pub(crate) fn prefer_torch(self, other: Self) -> Self {
        if self == Self::Torch { self } else { other }
    }

    /// Returns the type of this library for `dtype`. numpy has no bfloat16, so its arrays are float32.
    pub(crate) fn dtype<'py>(self, py: Python<'py>, dtype: DType) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Torch => import_torch(py)?.getattr(dtype.name()),
            Self::Numpy => {
                let name = if dtype == DType::BF16 { "float32" } else { dtype.name() };
                py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "dtype"), (name,))
            }
        }
    }

    /// Returns a shape as a `torch.Size` or a tuple.
    pub(crate) fn shape<'py, T: IntoPyObject<'py>>(
        self,
        py: Python<'py>,
        shape: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let sizes = PyTuple::new(py, shape)?;
        match self {
            Self::Torch => import_torch(py)?.call_method1(intern!(py, "Size"), (sizes,)),
            Self::Numpy => Ok(sizes.into_any()),
        }
    }

    /// Returns the device of tensors, which is always main memory.
    pub(crate) fn get_device(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Self::Torch => import_torch(py)?.call_method1(intern!(py, "device"), ("cpu",)),
            Self::Numpy => Ok(pyo3::types::PyString::new(py, "cpu").into_any()),
        }
    }
}

pub(crate) fn import_torch(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import(intern!(py, "torch"))
}

/// Returns torch if it has been imported. If it has not, no value can be a torch tensor.
fn find_known_torch(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    let found = modules.call_method1(intern!(py, "get"), (intern!(py, "torch"),))?;
    Ok((!found.is_none()).then_some(found))
}

/// Returns whether a value is an instance of a torch class, such as `Tensor` or `dtype`.
pub(crate) fn is_torch(value: &Bound<'_, PyAny>, class: &str) -> PyResult<bool> {
    match find_known_torch(value.py())? {
        Some(torch) => value.is_instance(&torch.getattr(class)?),
        None => Ok(false),
    }
}

/// Returns whether a value is a torch tensor or a numpy array.
pub(crate) fn is_tensor(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let numpy = value.py().import(intern!(value.py(), "numpy"))?;
    Ok(value.is_instance(&numpy.getattr(intern!(value.py(), "ndarray"))?)?
        || is_torch(value, "Tensor")?)
}

/// Copies a torch tensor, or a value that numpy can convert to an array, to a tensor.
pub(crate) fn extract_tensor(value: &Bound<'_, PyAny>) -> PyResult<(DenseTensor, TensorLibrary)> {
    let py = value.py();
    if !is_torch(value, "Tensor")? {
        return Ok((from_numpy(value)?, TensorLibrary::Numpy));
    }
    let torch = import_torch(py)?;
    let device: String = value.getattr(intern!(py, "device"))?.getattr("type")?.extract()?;
    if device != "cpu" {
        return Err(make_invalid_error(format!(
            "the tensor is on the device {device}, but must be in main memory; pass tensor.cpu()"
        )));
    }
    let strided = value.getattr(intern!(py, "layout"))?.eq(torch.getattr("strided")?)?;
    if !strided || value.getattr("is_nested")?.is_truthy()? {
        return Err(make_invalid_error(
            "the tensor is sparse or nested, but must be dense; pass tensor.to_dense()",
        ));
    }
    let recorded = value.getattr(intern!(py, "requires_grad"))?.is_truthy()?;
    if recorded && torch.call_method0("is_grad_enabled")?.is_truthy()? {
        return Err(make_invalid_error(
            "the tensor requires a gradient, but gradients are not recorded here; pass tensor.detach(), or call under torch.no_grad()",
        ));
    }
    let plain = value.call_method0(intern!(py, "detach"))?.call_method0("resolve_neg")?;
    if plain.getattr(intern!(py, "dtype"))?.eq(torch.getattr("bfloat16")?)? {
        // numpy has no bfloat16, so pass the bits as int16.
        let bits =
            plain.call_method0("contiguous")?.call_method1("view", (torch.getattr("int16")?,))?;
        let bits = from_numpy(&bits.call_method0("numpy")?)?;
        let shape = bits.shape().to_vec();
        let made = DenseTensor::try_new(DType::BF16, shape, bits.buffer().clone()).or_raise()?;
        return Ok((made, TensorLibrary::Torch));
    }
    let kind = plain.getattr("dtype")?;
    let array = plain.call_method0(intern!(py, "numpy"));
    let array = array.map_err(|_| make_type_error(format!("a tensor of type {kind} is not supported; convert it to booleans, integers or floats first")))?;
    Ok((from_numpy(&array)?, TensorLibrary::Torch))
}

/// Returns an array or a tensor that owns its memory. Memory with other owners is copied.
pub(crate) fn give_tensor<'py>(
    py: Python<'py>,
    tensor: DenseTensor,
    library: TensorLibrary,
) -> PyResult<Bound<'py, PyAny>> {
    let tensor = match (library, tensor.dtype()) {
        (TensorLibrary::Numpy, DType::BF16) => tensor.cast(DType::F32).or_raise()?,
        _ => tensor,
    };
    let tensor = match tensor.buffer().strong_count() {
        1 => tensor,
        _ => {
            let copy = Buffer::from_slice_ref(tensor.as_bytes());
            DenseTensor::try_new(tensor.dtype(), tensor.shape(), copy).or_raise()?
        }
    };
    let dtype = tensor.dtype();
    let array = into_numpy(py, tensor)?;
    match library {
        TensorLibrary::Numpy => Ok(array),
        TensorLibrary::Torch => to_torch(py, array, dtype),
    }
}

/// Returns a view of shared memory: a read-only array for numpy, and a copy for torch, which has no
/// read-only tensors.
pub(crate) fn show_tensor<'py>(
    py: Python<'py>,
    tensor: &DenseTensor,
    library: TensorLibrary,
) -> PyResult<Bound<'py, PyAny>> {
    match library {
        TensorLibrary::Numpy => to_numpy(py, tensor),
        TensorLibrary::Torch => give_tensor(py, tensor.clone(), library),
    }
}

fn to_torch<'py>(
    py: Python<'py>,
    array: Bound<'py, PyAny>,
    dtype: DType,
) -> PyResult<Bound<'py, PyAny>> {
    let torch = import_torch(py)?;
    if dtype == DType::BF16 {
        let bits = array.call_method1(intern!(py, "view"), ("i2",))?;
        let bits = torch.call_method1(intern!(py, "from_numpy"), (bits,))?;
        return bits.call_method1("view", (torch.getattr("bfloat16")?,));
    }
    torch.call_method1(intern!(py, "from_numpy"), (array,))
}

/// Converts a Python number, or a scalar of numpy or torch.
pub(crate) fn extract_fill(value: &Bound<'_, PyAny>) -> PyResult<Fill> {
    if value.is_instance_of::<PyBool>() {
        return Ok(Fill::Bool(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        if let Ok(int) = value.extract::<i64>() {
            return Ok(Fill::Int(int));
        }
        let wide = value.extract::<u64>();
        return wide.map(Fill::UInt).map_err(|_| {
            make_invalid_error(format!("the number {value} exceeds 64 bits; give a float"))
        });
    }
    if value.is_exact_instance_of::<PyFloat>() {
        return Ok(Fill::Float(value.extract()?));
    }
    match value.call_method0(intern!(value.py(), "item")) {
        Ok(item) if item.get_type().as_ptr() != value.get_type().as_ptr() => extract_fill(&item),
        _ => Err(make_type_error(format!(
            "the value must be a number or a tensor without axes, but is a {}",
            value.get_type().name()?
        ))),
    }
}

/// Returns whether a value is a number or a tensor without axes.
pub(crate) fn is_number(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        return Ok(true);
    }
    let Ok(shape) = value.getattr(intern!(value.py(), "shape")) else { return Ok(false) };
    Ok(shape.len().is_ok_and(|n| n == 0) && value.hasattr(intern!(value.py(), "item"))?)
}

/// Converts a type of torch or numpy, or the name of a type. Also returns the library of the type.
pub(crate) fn extract_dtype(value: &Bound<'_, PyAny>) -> PyResult<(DType, TensorLibrary)> {
    let py = value.py();
    let by_name = |name: &str| {
        name.parse::<DType>().map_err(|_| {
            make_invalid_error(format!(
                "the type {name} is not supported; use booleans, integers of 8 to 64 bits or floats of 16 to 64 bits"
            ))
        })
    };
    if is_torch(value, "dtype")? {
        let name = value.str()?.to_string();
        return Ok((by_name(name.trim_start_matches("torch."))?, TensorLibrary::Torch));
    }
    if let Ok(name) = value.extract::<String>()
        && let Ok(dtype) = name.parse::<DType>()
    {
        return Ok((dtype, TensorLibrary::Numpy));
    }
    let numpy = py.import(intern!(py, "numpy"))?;
    let name: String = numpy.call_method1("dtype", (value,))?.getattr("name")?.extract()?;
    Ok((by_name(&name)?, TensorLibrary::Numpy))
}

/// Returns whether a device is given. Returns an error for any device other than the CPU.
pub(crate) fn check_device(device: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
    let Some(device) = device else { return Ok(false) };
    let name = device.str()?.to_string();
    if name == "cpu" || name.starts_with("cpu:") {
        return Ok(true);
    }
    Err(make_invalid_error(format!(
        "the device {name} is not supported, because tensors are in main memory; use \"cpu\""
    )))
}

/// Converts the index of an axis, which must not be negative.
pub(crate) fn to_axis(dim: i64) -> PyResult<usize> {
    usize::try_from(dim).map_err(|_| {
        as_index_error(make_invalid_error(format!(
            "the axis or number {dim} is negative; give 0 or more"
        )))
    })
}

pub(crate) fn extract_axes(dims: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    match dims.extract::<i64>() {
        Ok(one) => Ok(vec![one]),
        Err(_) => dims.extract::<Vec<i64>>().map_err(|_| {
            make_type_error(
                "the argument is neither an integer nor a list of integers; give one of the two",
            )
        }),
    }
}

/// Converts the arguments of a call such as `reshape(2, 3)`, `reshape((2, 3))` or `reshape(torch.Size([2,
/// 3]))`.
pub(crate) fn extract_sizes(sizes: &Bound<'_, PyTuple>) -> PyResult<Vec<i64>> {
    if sizes.len() == 1 {
        return extract_axes(&sizes.get_item(0)?);
    }
    extract_axes(sizes.as_any())
}

/// Returns torch if an index is or has a torch tensor.
pub(crate) fn find_index_library(index: &Bound<'_, PyAny>) -> PyResult<TensorLibrary> {
    let items: Vec<Bound<'_, PyAny>> = match index.cast::<PyTuple>() {
        Ok(items) => items.iter().collect(),
        Err(_) => vec![index.clone()],
    };
    for item in items {
        if is_torch(&item, "Tensor")? {
            return Ok(TensorLibrary::Torch);
        }
    }
    Ok(TensorLibrary::Numpy)
}

/// Converts a numpy index between brackets; an invalid index raises an `InvalidIndexError`.
pub(crate) fn index_in(index: &Bound<'_, PyAny>) -> PyResult<Vec<Index>> {
    extract_index(index).map_err(as_index_error)
}

pub(crate) fn give_flags<'py>(
    py: Python<'py>,
    flags: Vec<bool>,
    library: TensorLibrary,
) -> PyResult<Bound<'py, PyAny>> {
    let tensor = DenseTensor::from_bools([flags.len()], flags).or_raise()?;
    give_tensor(py, tensor, library)
}

/// Returns a dict of one keyword argument.
pub(crate) fn make_keyword<'py>(
    py: Python<'py>,
    name: &str,
    value: impl IntoPyObject<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item(name, value)?;
    Ok(out)
}
