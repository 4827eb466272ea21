//! Products of sparse matrices with sparse and dense matrices.

use rayon::prelude::*;

use super::DokTensor;
use super::arith::{find_common_dtype, split_place};
use super::entries::SparseEntries;
use super::storage::{count_elements, to_place};
use super::wide_numbers::WideNumbers;
use crate::dense::DenseTensor;
use crate::error::{Error, Result};

/// Returns each row that has entries, with the range of its entries in `places`. `places` has the
/// row-major indices of all entries, ascending.
fn split_rows(places: &[i64], columns: usize) -> Vec<(usize, std::ops::Range<usize>)> {
    let mut out: Vec<(usize, std::ops::Range<usize>)> = Vec::new();
    for (i, at) in places.iter().enumerate() {
        let row = split_place(*at, columns).row;
        match out.last_mut() {
            Some((last, range)) if *last == row => range.end = i + 1,
            _ => out.push((row, i..i + 1)),
        }
    }
    out
}

/// Returns `sum + a * b`. On overflow, returns `i128::MAX`, for which the conversion to the type of
/// the result returns an error.
fn add_int_product(sum: i128, a: i128, b: i128) -> i128 {
    let next = a.checked_mul(b).and_then(|p| sum.checked_add(p));
    if sum == i128::MAX { sum } else { next.unwrap_or(i128::MAX) }
}

fn add_float_product(sum: f64, a: f64, b: f64) -> f64 {
    sum + a * b
}

struct MatmulSizes {
    rows: usize,
    inner: usize,
    columns: usize,
    /// Shape of the result: `[rows, columns]`, without the axis of an operand that is a vector.
    shape: Vec<usize>,
}

fn match_sizes(a: &[usize], b: &[usize]) -> Result<MatmulSizes> {
    let refused = || {
        Error::invalid(format!(
            "the shapes {a:?} and {b:?} have no matrix product; give matrices or vectors such that the last axis of the first and the first axis of the second have the same size"
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
    Ok(MatmulSizes { rows, inner, columns, shape })
}

impl DokTensor {
    /// Returns the dense matrix product with a dense matrix or vector.
    ///
    /// A vector is a row on the left and a column on the right, and the result has the common type
    /// of both operands, as in NumPy. Integers are added exactly, floats in float64.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let a = DenseTensor::from_vec([2, 3], vec![0f32, 2.0, 0.0, 1.0, 0.0, 3.0])?;
    /// let b = DenseTensor::from_vec([3, 2], vec![1f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    /// let product = DokTensor::from_dense(&a)?.matmul_dense(&b)?;
    /// assert_eq!(product, DenseTensor::from_vec([2, 2], vec![6f32, 8.0, 16.0, 20.0])?);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the shapes do not match, the result and its intermediate sums together have more bytes
    /// than [`dense_limit`](Self::dense_limit), or an integer result overflows.
    pub fn matmul_dense(&self, other: &DenseTensor) -> Result<DenseTensor> {
        let MatmulSizes { rows: count, inner, columns, shape } =
            match_sizes(&self.shape(), other.shape())?;
        let entries = self.collect_entries()?.into_sorted()?;
        let dtype = find_common_dtype(entries.values.dtype(), other.dtype());
        let elements = count_elements(&[count, columns])?;
        // Each element of the result also needs an accumulator: 16 bytes for integers, 8 for
        // floats.
        let accumulator = if dtype.is_float() { 8 } else { 16 };
        let what = format!("the matrix product of shape {shape:?}");
        self.check_bytes(elements, dtype.size() + accumulator, &what)?;
        let elements = super::storage::to_coordinate(elements);
        let places = entries.places()?;
        let row_list = split_rows(places, inner);
        let a = WideNumbers::from_dense(&entries.values.cast(dtype)?)?;
        let b = WideNumbers::from_dense(&other.cast(dtype)?)?;
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
                        let from = split_place(places[i], inner).column * columns;
                        for (out, b) in out.iter_mut().zip(&b[from..][..columns]) {
                            *out = $step(*out, a[i], *b);
                        }
                    }
                });
                out
            }};
        }
        let out = match (a, b) {
            (WideNumbers::Int(a), WideNumbers::Int(b)) => {
                WideNumbers::Int(product!(a, b, 0i128, add_int_product))
            }
            (a, b) => WideNumbers::Float(product!(
                a.into_floats(),
                b.into_floats(),
                0f64,
                add_float_product
            )),
        };
        out.into_dense(dtype, "a matrix product")?.reshape(shape)
    }

    /// Returns the sparse matrix product with a sparse matrix or vector.
    ///
    /// The result has an entry for every element to which a product of two entries contributes.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::dense::DenseTensor;
    /// use serrate::dok::DokTensor;
    /// let a = DokTensor::from_dense(&DenseTensor::from_vec([2, 2], vec![1, 0, 0, 2])?)?;
    /// let b = DokTensor::from_dense(&DenseTensor::from_vec([2, 1], vec![5, 7])?)?;
    /// assert_eq!(a.matmul(&b)?.to_dense()?.as_slice::<i32>()?, [5, 14]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`matmul_dense`](Self::matmul_dense), but instead of a limit in bytes, the shape of
    /// the result may have at most 2^63 elements.
    pub fn matmul(&self, other: &Self) -> Result<Self> {
        let MatmulSizes { rows: count, inner, columns, shape } =
            match_sizes(&self.shape(), &other.shape())?;
        count_elements(&[count, columns])?;
        let (a, b) =
            (self.collect_entries()?.into_sorted()?, other.collect_entries()?.into_sorted()?);
        let dtype = find_common_dtype(a.values.dtype(), b.values.dtype());
        let (ap, bp) = (a.places()?, b.places()?);
        let (a_rows, b_rows) = (split_rows(ap, inner), split_rows(bp, columns));
        let av = WideNumbers::from_dense(&a.values.cast(dtype)?)?;
        let bv = WideNumbers::from_dense(&b.values.cast(dtype)?)?;
        macro_rules! product {
            ($a:expr, $b:expr, $zero:expr, $step:expr) => {{
                let (av, bv) = ($a, $b);
                let multiply_row = |(row, range): &(usize, std::ops::Range<usize>)| {
                    // For each product in this row: its column, and the indices of its two factors.
                    let mut cells = Vec::new();
                    for i in range.clone() {
                        let k = split_place(ap[i], inner).column;
                        let Ok(at) = b_rows.binary_search_by_key(&k, |(row, _)| *row) else {
                            continue;
                        };
                        cells.extend(
                            b_rows[at]
                                .1
                                .clone()
                                .map(|j| (split_place(bp[j], columns).column, i, j)),
                        );
                    }
                    // The sort is stable, so each sum adds its products in the order of the inner
                    // axis.
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
                let all: Vec<_> = a_rows.par_iter().map(multiply_row).collect();
                let (mut places, mut values) = (Vec::new(), Vec::new());
                for (row, cells) in all {
                    let first = row as u64 * columns as u64;
                    places.extend(cells.iter().map(|(column, _)| to_place(first + *column as u64)));
                    values.extend(cells.into_iter().map(|(_, value)| value));
                }
                (places, values)
            }};
        }
        let (places, numbers) = match (av, bv) {
            (WideNumbers::Int(a), WideNumbers::Int(b)) => {
                let (places, values) = product!(a, b, 0i128, add_int_product);
                (places, WideNumbers::Int(values))
            }
            (a, b) => {
                let (places, values) =
                    product!(a.into_floats(), b.into_floats(), 0f64, add_float_product);
                (places, WideNumbers::Float(values))
            }
        };
        let values = numbers.into_dense(dtype, "a matrix product")?;
        self.replace_entries(SparseEntries::new(shape, places, values)?)
    }
}
