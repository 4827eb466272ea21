//! Sums and products of elements.

use super::DokTensor;
use super::entries::Entries;
use super::numbers::{Numbers, promote};
use super::selection::{broadcast, broadcast_strides};
use super::storage::{coordinate, linear, strides, unravel};
use crate::dense::{DType, DenseTensor, Fill};
use crate::error::{Error, Result};

/// What two numbers give.
#[derive(Clone, Copy)]
enum Op {
    Add,
    Sub,
    Mul,
}

impl Op {
    fn name(self) -> &'static str {
        match self {
            Self::Add => "a sum",
            Self::Sub => "a difference",
            Self::Mul => "a product",
        }
    }

    fn float(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Add => a + b,
            Self::Sub => a - b,
            Self::Mul => a * b,
        }
    }

    fn int(self, a: i128, b: i128) -> Option<i128> {
        match self {
            Self::Add => a.checked_add(b),
            Self::Sub => a.checked_sub(b),
            Self::Mul => a.checked_mul(b),
        }
    }

    /// Of values of a common type, element by element.
    fn all(self, a: &DenseTensor, b: &DenseTensor) -> Result<DenseTensor> {
        let dtype = a.dtype();
        let numbers = match (Numbers::of(a)?, Numbers::of(b)?) {
            (Numbers::Int(a), Numbers::Int(b)) => {
                let out: Option<Vec<i128>> =
                    a.into_iter().zip(b).map(|(a, b)| self.int(a, b)).collect();
                Numbers::Int(out.ok_or_else(|| Error::Overflow(self.name().into()))?)
            }
            (a, b) => {
                let pairs = a.floats().into_iter().zip(b.floats());
                Numbers::Float(pairs.map(|(a, b)| self.float(a, b)).collect())
            }
        };
        numbers.into_dense(dtype, self.name())
    }
}

/// Values of a type that both have in common; booleans calculate as the other type, or int64.
fn common(a: DType, b: DType) -> DType {
    match promote(a, b) {
        DType::Bool => DType::I64,
        other => other,
    }
}

impl DokTensor {
    /// Element by element sum with a tensor of the same shape, sparse. Types widen as numpy's do
    /// (booleans count as int64); integers must not overflow.
    ///
    /// ```
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
    /// When the shapes differ, or an integer does not fit.
    pub fn add(&self, other: &Self) -> Result<Self> {
        self.merge(other, Op::Add)
    }

    /// Element by element difference; see [`add`](Self::add).
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn sub(&self, other: &Self) -> Result<Self> {
        self.merge(other, Op::Sub)
    }

    /// Element by element product, stored where both are; see [`add`](Self::add). Where an infinity or
    /// NaN meets an element that is not stored, the product is not stored either, which is zero.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn multiply(&self, other: &Self) -> Result<Self> {
        self.merge(other, Op::Mul)
    }

    fn merge(&self, other: &Self, op: Op) -> Result<Self> {
        let (a, b) = (self.entries()?.sorted()?, other.entries()?.sorted()?);
        if a.shape != b.shape {
            return Err(Error::invalid(format!(
                "{} of sparse tensors of shapes {:?} and {:?}; they need one shape",
                op.name(),
                a.shape,
                b.shape
            )));
        }
        let dtype = common(a.values.dtype(), b.values.dtype());
        let (av, bv) = (Numbers::of(&a.values.cast(dtype)?)?, Numbers::of(&b.values.cast(dtype)?)?);
        let (ap, bp) = (a.places()?, b.places()?);
        let (mut places, mut pairs) = (Vec::new(), Vec::new());
        let (mut i, mut j) = (0, 0);
        // Both ascend.
        while i < ap.len() || j < bp.len() {
            let left = ap.get(i).copied().unwrap_or(i64::MAX);
            let right = bp.get(j).copied().unwrap_or(i64::MAX);
            let at = left.min(right);
            let (here, there) = (left == at && i < ap.len(), right == at && j < bp.len());
            if !matches!(op, Op::Mul) || (here && there) {
                places.push(at);
                pairs.push((here.then_some(i), there.then_some(j)));
            }
            i += usize::from(here);
            j += usize::from(there);
        }
        let numbers = match (av, bv) {
            (Numbers::Int(a), Numbers::Int(b)) => {
                let get = |v: &[i128], i: Option<usize>| i.map_or(0, |i| v[i]);
                let out = pairs.iter().map(|(i, j)| op.int(get(&a, *i), get(&b, *j)));
                let out = out.collect::<Option<Vec<_>>>();
                Numbers::Int(out.ok_or_else(|| Error::Overflow(op.name().into()))?)
            }
            (a, b) => {
                let (a, b) = (a.floats(), b.floats());
                let get = |v: &[f64], i: Option<usize>| i.map_or(0.0, |i| v[i]);
                let out = pairs.iter().map(|(i, j)| op.float(get(&a, *i), get(&b, *j)));
                Numbers::Float(out.collect())
            }
        };
        let values = numbers.into_dense(dtype, op.name())?;
        self.with_values(Entries::new(a.shape, places, values)?)
    }

    /// Every element times a number. Integers times a floating point number are float64, else the type
    /// stays.
    ///
    /// # Errors
    /// When an integer does not fit.
    pub fn scale(&self, by: impl Into<Fill>) -> Result<Self> {
        let entries = self.entries()?;
        let by = super::set::scalar(by.into())?;
        let dtype = match (entries.values.dtype().is_float(), by.dtype().is_float()) {
            (true, _) => entries.values.dtype(),
            (false, true) => DType::F64,
            (false, false) => common(entries.values.dtype(), DType::Bool),
        };
        let numbers = match (Numbers::of(&entries.values)?, Numbers::of(&by)?) {
            (Numbers::Int(v), Numbers::Int(by)) => {
                let by = by.first().copied().unwrap_or(1);
                let out: Option<Vec<i128>> = v.into_iter().map(|v| v.checked_mul(by)).collect();
                Numbers::Int(out.ok_or_else(|| Error::Overflow(Op::Mul.name().into()))?)
            }
            (v, by) => {
                let by = by.floats().first().copied().unwrap_or(1.0);
                Numbers::Float(v.floats().into_iter().map(|v| v * by).collect())
            }
        };
        let values = numbers.into_dense(dtype, Op::Mul.name())?;
        self.with_values(Entries { values, ..entries })
    }

    /// Element by element sum with a dense tensor that broadcasts to this shape: a dense tensor.
    ///
    /// # Errors
    /// When it does not broadcast, the result is beyond [`dense_limit`](Self::dense_limit), or an
    /// integer does not fit.
    pub fn add_dense(&self, other: &DenseTensor) -> Result<DenseTensor> {
        let shape = self.shape();
        let steps = self.steps(other, &shape, Op::Add)?;
        let dense = self.to_dense()?;
        let mut at = Vec::with_capacity(dense.num_elements());
        super::selection::walk(&shape, &steps, |i| at.push(i as u64));
        let flat = other.reshape([other.num_elements()])?;
        let other = super::entries::take(&flat, &at)?;
        let dtype = common(dense.dtype(), other.dtype());
        let flat = dense.reshape([dense.num_elements()])?.cast(dtype)?;
        Op::Add.all(&flat, &other.cast(dtype)?)?.reshape(shape)
    }

    /// Element by element product with a dense tensor that broadcasts to this shape, sparse: of what is
    /// stored here.
    ///
    /// # Errors
    /// When it does not broadcast, or an integer does not fit.
    pub fn multiply_dense(&self, other: &DenseTensor) -> Result<Self> {
        let entries = self.entries()?;
        let steps = self.steps(other, &entries.shape, Op::Mul)?;
        let own = strides(&entries.shape);
        let mut at = vec![0; own.len()];
        let rows: Vec<u64> = entries
            .places()?
            .iter()
            .map(|place| {
                unravel(linear(*place), &own, &mut at);
                at.iter().zip(&steps).map(|(at, step)| at * *step as u64).sum()
            })
            .collect();
        let flat = other.reshape([other.num_elements()])?;
        let other = super::entries::take(&flat, &rows)?;
        let dtype = common(entries.values.dtype(), other.dtype());
        let values = Op::Mul.all(&entries.values.cast(dtype)?, &other.cast(dtype)?)?;
        self.with_values(Entries { values, ..entries })
    }

    fn steps(&self, other: &DenseTensor, shape: &[usize], op: Op) -> Result<Vec<usize>> {
        let shapes = [other.shape(), shape];
        if broadcast(shapes.into_iter()).is_none_or(|s| s != shape) {
            return Err(Error::invalid(format!(
                "{} of a sparse tensor of shape {shape:?} with a dense one of shape {:?}, which does not broadcast to it",
                op.name(),
                other.shape()
            )));
        }
        Ok(broadcast_strides(other.shape(), shape))
    }
}

/// The coordinate of a place along the first axis of a matrix, and along the second.
pub(super) fn cell(place: i64, columns: usize) -> (usize, usize) {
    let (place, columns) = (linear(place), columns as u64);
    (coordinate(place / columns), coordinate(place % columns))
}
