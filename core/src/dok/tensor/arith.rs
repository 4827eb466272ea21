//! Elementwise sums, differences and products of sparse tensors.

use arrow::buffer::MutableBuffer;

use super::DokTensor;
use super::entries::SparseEntries;
use super::storage::{compute_strides, count_elements, from_place, to_coordinate, unravel_place};
use super::wide_numbers::{WideNumbers, promote_types};
use crate::dense::{DType, DenseTensor, Fill};
use crate::error::{Error, Result};
use crate::index::broadcast_shape::{broadcast_shapes, broadcast_strides, try_for_each_broadcast};

/// Number of elements that [`DokTensor::add_dense`] computes at a time.
const BLOCK: usize = 1 << 16;

#[derive(Clone, Copy)]
enum EntryOp {
    Add,
    Sub,
    Mul,
}

impl EntryOp {
    fn name(self) -> &'static str {
        match self {
            Self::Add => "a sum",
            Self::Sub => "a difference",
            Self::Mul => "a product",
        }
    }

    fn apply_float(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Add => a + b,
            Self::Sub => a - b,
            Self::Mul => a * b,
        }
    }

    fn apply_int(self, a: i128, b: i128) -> Option<i128> {
        match self {
            Self::Add => a.checked_add(b),
            Self::Sub => a.checked_sub(b),
            Self::Mul => a.checked_mul(b),
        }
    }

    fn apply_all(self, a: &DenseTensor, b: &DenseTensor) -> Result<DenseTensor> {
        let dtype = a.dtype();
        let numbers = match (WideNumbers::from_dense(a)?, WideNumbers::from_dense(b)?) {
            (WideNumbers::Int(a), WideNumbers::Int(b)) => {
                let out: Option<Vec<i128>> =
                    a.into_iter().zip(b).map(|(a, b)| self.apply_int(a, b)).collect();
                WideNumbers::Int(out.ok_or_else(|| Error::Overflow(self.name().into()))?)
            }
            (a, b) => {
                let pairs = a.into_floats().into_iter().zip(b.into_floats());
                WideNumbers::Float(pairs.map(|(a, b)| self.apply_float(a, b)).collect())
            }
        };
        numbers.into_dense(dtype, self.name())
    }
}

/// Returns the type of a sum or product of values of types `a` and `b`: the promoted type, or int64
/// if both are booleans.
pub(super) fn find_common_dtype(a: DType, b: DType) -> DType {
    match promote_types(a, b) {
        DType::Bool => DType::I64,
        other => other,
    }
}

impl DokTensor {
    /// Returns the elementwise sum of two tensors of the same shape.
    ///
    /// Types widen as in NumPy; booleans count as int64.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DType;
    /// use serrate::dok::DokTensor;
    /// let (mut a, mut b) = (DokTensor::new([9], DType::I32)?, DokTensor::new([9], DType::F64)?);
    /// a.set_at(&[3], 1)?;
    /// b.set_at(&[3], 0.5)?;
    /// b.set_at(&[4], 2.0)?;
    /// let sum = a.add(&b)?;
    /// assert_eq!((sum.dtype(), sum.nnz()?, sum.at(&[3])?.to_f64()?), (DType::F64, 2, 1.5));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes differ, or an integer result does not fit its type.
    pub fn add(&self, other: &Self) -> Result<Self> {
        self.merge_entries(other, EntryOp::Add)
    }

    /// Returns the elementwise difference; see [`add`](Self::add).
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let a = DokTensor::from_dense(&DenseTensor::from_vec([2], vec![5, 7])?)?;
    /// let b = DokTensor::from_dense(&DenseTensor::from_vec([2], vec![5, 0])?)?;
    /// assert_eq!(a.sub(&b)?.to_dense()?.as_slice::<i32>()?, [0, 7]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`add`](Self::add).
    pub fn sub(&self, other: &Self) -> Result<Self> {
        self.merge_entries(other, EntryOp::Sub)
    }

    /// Returns the elementwise product; see [`add`](Self::add).
    ///
    /// The product has an entry only where both tensors have an entry, so infinity or NaN times an
    /// element without an entry is zero.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let a = DokTensor::from_dense(&DenseTensor::from_vec([2], vec![2, 3])?)?;
    /// let b = DokTensor::from_dense(&DenseTensor::from_vec([2], vec![4, 0])?)?;
    /// let product = a.mul(&b)?;
    /// assert_eq!((product.nnz()?, product.to_dense()?.as_slice::<i32>()?), (1, &[8, 0][..]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`add`](Self::add).
    pub fn mul(&self, other: &Self) -> Result<Self> {
        self.merge_entries(other, EntryOp::Mul)
    }

    fn merge_entries(&self, other: &Self, op: EntryOp) -> Result<Self> {
        let (a, b) =
            (self.collect_entries()?.into_sorted()?, other.collect_entries()?.into_sorted()?);
        if a.shape != b.shape {
            return Err(Error::invalid(format!(
                "{operation} of sparse tensors needs equal shapes, but the shapes are {left:?} and {right:?}; reshape or slice one of them",
                operation = op.name(),
                left = a.shape,
                right = b.shape
            )));
        }
        let dtype = find_common_dtype(a.values.dtype(), b.values.dtype());
        let (av, bv) = (
            WideNumbers::from_dense(&a.values.cast(dtype)?)?,
            WideNumbers::from_dense(&b.values.cast(dtype)?)?,
        );
        let (ap, bp) = (a.places()?, b.places()?);
        let (mut places, mut pairs) = (Vec::new(), Vec::new());
        let (mut i, mut j) = (0, 0);
        while i < ap.len() || j < bp.len() {
            let left = ap.get(i).copied().unwrap_or(i64::MAX);
            let right = bp.get(j).copied().unwrap_or(i64::MAX);
            let at = left.min(right);
            let (here, there) = (left == at && i < ap.len(), right == at && j < bp.len());
            if !matches!(op, EntryOp::Mul) || (here && there) {
                places.push(at);
                pairs.push((here.then_some(i), there.then_some(j)));
            }
            i += usize::from(here);
            j += usize::from(there);
        }
        let numbers = match (av, bv) {
            (WideNumbers::Int(a), WideNumbers::Int(b)) => {
                let get = |v: &[i128], i: Option<usize>| i.map_or(0, |i| v[i]);
                let out = pairs.iter().map(|(i, j)| op.apply_int(get(&a, *i), get(&b, *j)));
                let out = out.collect::<Option<Vec<_>>>();
                WideNumbers::Int(out.ok_or_else(|| Error::Overflow(op.name().into()))?)
            }
            (a, b) => {
                let (a, b) = (a.into_floats(), b.into_floats());
                let get = |v: &[f64], i: Option<usize>| i.map_or(0.0, |i| v[i]);
                let out = pairs.iter().map(|(i, j)| op.apply_float(get(&a, *i), get(&b, *j)));
                WideNumbers::Float(out.collect())
            }
        };
        let values = numbers.into_dense(dtype, op.name())?;
        self.replace_entries(SparseEntries::new(a.shape, places, values)?)
    }

    /// Multiplies every element by a number.
    ///
    /// Keeps the type, with two exceptions: integers and booleans times a float give float64, and
    /// booleans times an integer or a boolean give int64.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2], vec![0, 3])?)?;
    /// assert_eq!(t.scale(2)?.to_dense()?.as_slice::<i32>()?, [0, 6]);
    /// assert_eq!(t.scale(0.5)?.to_dense()?.as_slice::<f64>()?, [0.0, 1.5]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an integer result does not fit its type.
    pub fn scale(&self, by: impl Into<Fill>) -> Result<Self> {
        let entries = self.collect_entries()?;
        let by = super::set::make_scalar_tensor(by.into())?;
        let dtype = match (entries.values.dtype().is_float(), by.dtype().is_float()) {
            (true, _) => entries.values.dtype(),
            (false, true) => DType::F64,
            (false, false) => find_common_dtype(entries.values.dtype(), DType::Bool),
        };
        let numbers =
            match (WideNumbers::from_dense(&entries.values)?, WideNumbers::from_dense(&by)?) {
                (WideNumbers::Int(v), WideNumbers::Int(by)) => {
                    let by = by.first().copied().unwrap_or(1);
                    let out: Option<Vec<i128>> = v.into_iter().map(|v| v.checked_mul(by)).collect();
                    WideNumbers::Int(
                        out.ok_or_else(|| Error::Overflow(EntryOp::Mul.name().into()))?,
                    )
                }
                (v, by) => {
                    let by = by.into_floats().first().copied().unwrap_or(1.0);
                    WideNumbers::Float(v.into_floats().into_iter().map(|v| v * by).collect())
                }
            };
        let values = numbers.into_dense(dtype, EntryOp::Mul.name())?;
        self.replace_entries(SparseEntries { values, ..entries })
    }

    /// Returns the dense elementwise sum with `other`, which broadcasts to the shape of this
    /// tensor.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let t = DokTensor::from_dense(&DenseTensor::from_vec([2], vec![0, 5])?)?;
    /// let ten = DenseTensor::from_vec([1], vec![10])?;
    /// assert_eq!(t.add_dense(&ten)?.as_slice::<i32>()?, [10, 15]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, an integer sum overflows, or the sum and a dense copy of
    /// this tensor together exceed [`dense_limit`](Self::dense_limit).
    pub fn add_dense(&self, other: &DenseTensor) -> Result<DenseTensor> {
        let shape = self.shape();
        check_broadcast(other, &shape, EntryOp::Add)?;
        let own = other.shape().to_vec();
        let dtype = find_common_dtype(self.dtype(), other.dtype());
        let elements = count_elements(&shape)?;
        // Bytes per element: one value of the dense copy of this tensor, and one value of the sum.
        let each = self.dtype().size() + dtype.size();
        let bytes = self.check_bytes(elements, each, &format!("a dense sum of shape {shape:?}"))?;
        let dense = self.to_dense()?.reshape([to_coordinate(elements)])?;
        let other = other.reshape([other.num_elements()])?;
        let mut sum = MutableBuffer::with_capacity(bytes / each * dtype.size());
        let mut first = 0;
        // Convert `BLOCK` elements of the operands at a time to the common type, to save memory.
        let mut add_block = |at: &mut Vec<u64>| -> Result<()> {
            let part = dense.slice(first, at.len())?.cast(dtype)?;
            let by = super::entries::take_rows(&other, at)?.cast(dtype)?;
            sum.extend_from_slice(EntryOp::Add.apply_all(&part, &by)?.as_bytes());
            first += at.len();
            at.clear();
            Ok(())
        };
        let mut at = Vec::with_capacity(BLOCK);
        try_for_each_broadcast(&own, &shape, |i| {
            at.push(i as u64);
            if at.len() < BLOCK { Ok(()) } else { add_block(&mut at) }
        })?;
        add_block(&mut at)?;
        DenseTensor::try_new_trusted(dtype, shape, sum.into())
    }

    /// Returns the product with a dense tensor that broadcasts to this one.
    ///
    /// Every entry of this tensor gives an entry of the result, even if the product is zero.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let dense = DenseTensor::from_vec([2], vec![0.0, 3.0])?;
    /// let t = DokTensor::from_dense(&dense)?;
    /// let ones = DenseTensor::from_vec([2], vec![1.0, 1.0])?;
    /// assert_eq!(t.add_dense(&ones)?.as_slice::<f64>()?, [1.0, 4.0]);
    /// assert_eq!(t.mul_dense(&ones)?.to_dense()?, dense);
    /// assert_eq!(t.mul(&t)?.at(&[1])?.to_string(), "9");
    /// assert_eq!(t.scale(2.0)?.at(&[1])?.to_string(), "6");
    /// assert_eq!(t.sub(&t)?.at(&[1])?.to_string(), "0");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes do not broadcast, or an integer result does not fit its type.
    pub fn mul_dense(&self, other: &DenseTensor) -> Result<Self> {
        let entries = self.collect_entries()?;
        check_broadcast(other, &entries.shape, EntryOp::Mul)?;
        let steps = broadcast_strides(other.shape(), &entries.shape);
        let own = compute_strides(&entries.shape);
        let mut at = vec![0; own.len()];
        let rows: Vec<u64> = entries
            .places()?
            .iter()
            .map(|place| {
                unravel_place(from_place(*place), &own, &mut at);
                at.iter().zip(&steps).map(|(at, step)| at * *step as u64).sum()
            })
            .collect();
        let flat = other.reshape([other.num_elements()])?;
        let other = super::entries::take_rows(&flat, &rows)?;
        let dtype = find_common_dtype(entries.values.dtype(), other.dtype());
        let values = EntryOp::Mul.apply_all(&entries.values.cast(dtype)?, &other.cast(dtype)?)?;
        self.replace_entries(SparseEntries { values, ..entries })
    }
}

fn check_broadcast(dense: &DenseTensor, shape: &[usize], op: EntryOp) -> Result<()> {
    if broadcast_shapes(dense.shape(), shape).is_some_and(|s| s == shape) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{operation} of a sparse tensor of shape {shape:?} needs a dense tensor that broadcasts to this shape, but the dense tensor has the shape {dense_shape:?}; reshape it",
        operation = op.name(),
        dense_shape = dense.shape()
    )))
}

/// The coordinates of an element of a matrix.
#[derive(Clone, Copy)]
pub(super) struct MatrixPlace {
    pub(super) row: usize,
    pub(super) column: usize,
}

pub(super) fn split_place(place: i64, columns: usize) -> MatrixPlace {
    let (place, columns) = (from_place(place), columns as u64);
    MatrixPlace { row: to_coordinate(place / columns), column: to_coordinate(place % columns) }
}
