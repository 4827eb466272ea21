//! Matrix products.

use rayon::prelude::*;

use super::DokTensor;
use super::arith::cell;
use super::entries::Entries;
use super::numbers::{Numbers, promote};
use super::storage::{linear_size, place};
use crate::dense::{DType, DenseTensor};
use crate::error::{Error, Result};

/// The type that products are added up in, and that of the result.
fn product_type(a: DType, b: DType) -> DType {
    match promote(a, b) {
        DType::Bool => DType::I64,
        other => other,
    }
}

/// Rows of a matrix: where each that has entries begins.
fn rows(places: &[i64], columns: usize) -> Vec<(usize, std::ops::Range<usize>)> {
    let mut out: Vec<(usize, std::ops::Range<usize>)> = Vec::new();
    for (i, at) in places.iter().enumerate() {
        let row = cell(*at, columns).0;
        match out.last_mut() {
            Some((last, range)) if *last == row => range.end = i + 1,
            _ => out.push((row, i..i + 1)),
        }
    }
    out
}

/// A product added to a sum. What does not fit stays the largest number there is, which is refused in
/// the end.
fn int_step(sum: i128, a: i128, b: i128) -> i128 {
    let next = a.checked_mul(b).and_then(|p| sum.checked_add(p));
    if sum == i128::MAX { sum } else { next.unwrap_or(i128::MAX) }
}

fn float_step(sum: f64, a: f64, b: f64) -> f64 {
    sum + a * b
}

/// What two matrices have to do with each other.
struct Sizes {
    rows: usize,
    inner: usize,
    columns: usize,
    /// Without the axes that vectors do not have.
    shape: Vec<usize>,
}

fn sizes(a: &[usize], b: &[usize]) -> Result<Sizes> {
    let refused = || {
        Error::invalid(format!(
            "the matrix product of shapes {a:?} and {b:?}; matrices or vectors with equal inner sizes"
        ))
    };
    let (rows, inner) = match *a {
        [inner] => (1, inner),
        [rows, inner] => (rows, inner),
        _ => return Err(refused()),
    };
    let (other, columns) = match *b {
        [inner] => (inner, 1),
        [inner, columns] => (inner, columns),
        _ => return Err(refused()),
    };
    if inner != other {
        return Err(refused());
    }
    let mut shape = Vec::new();
    shape.extend((a.len() == 2).then_some(rows));
    shape.extend((b.len() == 2).then_some(columns));
    Ok(Sizes { rows, inner, columns, shape })
}

impl DokTensor {
    /// Matrix product with a dense matrix or vector: dense. Vectors are rows on the left and columns on
    /// the right, as in numpy.
    ///
    /// Types widen as numpy's do. Floating point products are added up in float64, integers exactly.
    ///
    /// ```
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let m = DokTensor::from_dense(&DenseTensor::from_vec([2, 3], vec![0f32, 2.0, 0.0, 1.0, 0.0, 3.0])?)?;
    /// let product = m.matmul_dense(&DenseTensor::from_vec([3, 2], vec![1f32, 2.0, 3.0, 4.0, 5.0, 6.0])?)?;
    /// assert_eq!(product, DenseTensor::from_vec([2, 2], vec![6f32, 8.0, 16.0, 20.0])?);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not fit, the result is beyond [`dense_limit`](Self::dense_limit), or an
    /// integer does not fit its type.
    pub fn matmul_dense(&self, other: &DenseTensor) -> Result<DenseTensor> {
        let Sizes { rows: count, inner, columns, shape } = sizes(&self.shape(), other.shape())?;
        let entries = self.entries()?.sorted()?;
        let dtype = product_type(entries.values.dtype(), other.dtype());
        let elements = linear_size(&[count, columns])?;
        // What is added up in has up to 16 bytes.
        let what = format!("the matrix product of shape {shape:?}");
        self.dense_bytes(elements, dtype, &what)?;
        let elements = super::storage::coordinate(elements);
        let places = entries.places()?;
        let row_list = rows(places, inner);
        let a = Numbers::of(&entries.values.cast(dtype)?)?;
        let b = Numbers::of(&other.cast(dtype)?)?;
        macro_rules! product {
            ($a:expr, $b:expr, $zero:expr, $step:expr) => {{
                let (a, b) = ($a, $b);
                let mut out = vec![$zero; elements];
                let mut jobs = Vec::with_capacity(row_list.len());
                let (mut rest, mut first) = (out.as_mut_slice(), 0);
                for (row, range) in &row_list {
                    let (_, from) = rest.split_at_mut((row - first) * columns);
                    let (own, left) = from.split_at_mut(columns);
                    (rest, first) = (left, row + 1);
                    jobs.push((range.clone(), own));
                }
                jobs.into_par_iter().for_each(|(range, out)| {
                    for i in range {
                        let from = cell(places[i], inner).1 * columns;
                        for (out, b) in out.iter_mut().zip(&b[from..][..columns]) {
                            *out = $step(*out, a[i], *b);
                        }
                    }
                });
                out
            }};
        }
        let out = match (a, b) {
            (Numbers::Int(a), Numbers::Int(b)) => Numbers::Int(product!(a, b, 0i128, int_step)),
            (a, b) => Numbers::Float(product!(a.floats(), b.floats(), 0f64, float_step)),
        };
        out.into_dense(dtype, "a matrix product")?.reshape(shape)
    }

    /// Matrix product with a sparse matrix or vector: sparse, stored where any two entries meet.
    ///
    /// # Errors
    /// As [`matmul_dense`](Self::matmul_dense), without the limit; a result of more than 2^63 elements
    /// is refused.
    pub fn matmul(&self, other: &Self) -> Result<Self> {
        let Sizes { rows: count, inner, columns, shape } = sizes(&self.shape(), &other.shape())?;
        linear_size(&[count, columns])?;
        let (a, b) = (self.entries()?.sorted()?, other.entries()?.sorted()?);
        let dtype = product_type(a.values.dtype(), b.values.dtype());
        let (ap, bp) = (a.places()?, b.places()?);
        let (a_rows, b_rows) = (rows(ap, inner), rows(bp, columns));
        let av = Numbers::of(&a.values.cast(dtype)?)?;
        let bv = Numbers::of(&b.values.cast(dtype)?)?;
        macro_rules! product {
            ($a:expr, $b:expr, $zero:expr, $step:expr) => {{
                let (av, bv) = ($a, $b);
                let of_row = |(row, range): &(usize, std::ops::Range<usize>)| {
                    // Every product with its column, in the order of the inner axis.
                    let mut cells = Vec::new();
                    for i in range.clone() {
                        let k = cell(ap[i], inner).1;
                        let Ok(at) = b_rows.binary_search_by_key(&k, |(row, _)| *row) else {
                            continue;
                        };
                        cells.extend(b_rows[at].1.clone().map(|j| (cell(bp[j], columns).1, i, j)));
                    }
                    // Stable: sums do not depend on how rows are divided.
                    cells.sort_by_key(|(column, _, _)| *column);
                    let mut sums = Vec::new();
                    for (column, i, j) in cells {
                        match sums.last_mut() {
                            Some((last, sum)) if *last == column => {
                                *sum = $step(*sum, av[i], bv[j]);
                            }
                            _ => sums.push((column, $step($zero, av[i], bv[j]))),
                        }
                    }
                    (*row, sums)
                };
                let all: Vec<_> = a_rows.par_iter().map(of_row).collect();
                let (mut places, mut values) = (Vec::new(), Vec::new());
                for (row, cells) in all {
                    let first = row as u64 * columns as u64;
                    places.extend(cells.iter().map(|(column, _)| place(first + *column as u64)));
                    values.extend(cells.into_iter().map(|(_, value)| value));
                }
                (places, values)
            }};
        }
        let (places, numbers) = match (av, bv) {
            (Numbers::Int(a), Numbers::Int(b)) => {
                let (places, values) = product!(a, b, 0i128, int_step);
                (places, Numbers::Int(values))
            }
            (a, b) => {
                let (places, values) = product!(a.floats(), b.floats(), 0f64, float_step);
                (places, Numbers::Float(values))
            }
        };
        let values = numbers.into_dense(dtype, "a matrix product")?;
        self.with_values(Entries::new(shape, places, values)?)
    }
}
