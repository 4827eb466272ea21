//! Counts how often each distinct value occurs in arrays.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, UInt32Array, UInt64Array, new_empty_array,
};
use arrow::compute::{cast, concat, take};
use arrow::datatypes::{DataType, UInt8Type, UInt16Type, UInt32Type, UInt64Type};

use super::native::reinterpret_values;
use super::sort::{SortOrder, argsort, make_equality};
use crate::array::{Layout, RaggedArray};
use crate::error::{Error, Result};

/// A `UInt32` array with all values below this limit is counted in a table indexed by value.
const TABLE_LIMIT: u32 = 1 << 20;

/// Counts of values, accumulated over any number of arrays.
///
/// Nulls are not counted. For a dictionary the keys are counted first, so each of its values is
/// processed once. All NaN are one value, and so are both zeros.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, UInt16Array, UInt64Array};
/// use serrate::kernels::histogram::Histogram;
/// let mut counts = Histogram::new(&arrow::datatypes::DataType::UInt16)?;
/// for codes in [vec![7, 3, 7], vec![3, 9, 7]] {
///     let codes: ArrayRef = Arc::new(UInt16Array::from(codes));
///     counts.add(&codes)?;
/// }
/// let (values, counts) = counts.top(2)?;
/// assert_eq!(values.as_ref(), &UInt16Array::from(vec![7, 3]));
/// assert_eq!(counts, UInt64Array::from(vec![3, 2]));
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Histogram {
    value_type: DataType,
    /// Counts of integers of 8 or 16 bits, and of `UInt32` below [`TABLE_LIMIT`]. The index has the
    /// bits of the integer: 255 for the `Int8` -1.
    table: Vec<u64>,
    /// Values whose counts are not in `table`, and these counts. A value may occur several times,
    /// also in one part: its count is the sum. Null is not counted.
    parts: Vec<(ArrayRef, UInt64Array)>,
    part_values: usize,
}

impl Histogram {
    /// Creates an empty histogram.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use arrow::datatypes::DataType;
    /// use serrate::kernels::histogram::Histogram;
    /// let codes = DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8));
    /// assert_eq!(Histogram::new(&codes)?.value_type(), &DataType::Utf8);
    /// assert!(Histogram::new(&DataType::new_list(DataType::Int32, true)).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If values of the type cannot be compared.
    pub fn new(values: &DataType) -> Result<Self> {
        let values = match values {
            DataType::Dictionary(_, values) => values,
            other => other,
        };
        if values.is_nested() {
            return Err(Error::type_of(
                "values to count in a histogram",
                "scalars, not lists or structs (flatten lists first)",
                values,
            ));
        }
        Ok(Self {
            value_type: values.clone(),
            table: Vec::new(),
            parts: Vec::new(),
            part_values: 0,
        })
    }

    /// Returns the type of the counted values; for a dictionary, the type of its values.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use arrow::datatypes::DataType;
    /// use serrate::kernels::histogram::Histogram;
    /// assert_eq!(Histogram::new(&DataType::UInt16)?.value_type(), &DataType::UInt16);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn value_type(&self) -> &DataType {
        &self.value_type
    }

    /// Counts the values of an array, such as the leaves of a [`RaggedArray`].
    ///
    /// Nulls are not counted, and an empty array adds nothing.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, UInt16Array, UInt64Array};
    /// # use arrow::datatypes::DataType;
    /// use serrate::kernels::histogram::Histogram;
    /// let codes: ArrayRef = Arc::new(UInt16Array::from(vec![Some(7), None, Some(7)]));
    /// let mut histogram = Histogram::new(&DataType::UInt16)?;
    /// histogram.add(&codes)?;
    /// assert_eq!(histogram.counts()?.1, UInt64Array::from(vec![2]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the values have another type than the histogram.
    pub fn add(&mut self, values: &ArrayRef) -> Result<()> {
        if let Some(dictionary) = values.as_any_dictionary_opt() {
            let keys: ArrayRef = dictionary.keys().slice(0, values.len());
            let mut counts = vec![0u64; dictionary.values().len()];
            let keys = cast(&keys, &DataType::UInt64)?;
            for key in keys.as_primitive::<UInt64Type>().iter().flatten() {
                if let Some(count) = usize::try_from(key).ok().and_then(|k| counts.get_mut(k)) {
                    *count += 1;
                }
            }
            self.check_type(dictionary.values().data_type())?;
            return self.add_counted(dictionary.values(), &UInt64Array::from(counts));
        }
        self.check_type(values.data_type())?;
        let table = &mut self.table;
        match values.data_type() {
            DataType::Null => {}
            DataType::UInt8 => count_in_table::<UInt8Type>(table, 1 << 8, values),
            DataType::UInt16 => count_in_table::<UInt16Type>(table, 1 << 16, values),
            DataType::Int8 => {
                count_in_table::<UInt8Type>(
                    table,
                    1 << 8,
                    &reinterpret_values(values, &DataType::UInt8)?,
                );
            }
            DataType::Int16 => {
                count_in_table::<UInt16Type>(
                    table,
                    1 << 16,
                    &reinterpret_values(values, &DataType::UInt16)?,
                );
            }
            DataType::UInt32 => {
                let most = arrow::compute::max(values.as_primitive::<UInt32Type>());
                let most = most.unwrap_or(0);
                if most >= TABLE_LIMIT {
                    return self.add_sorted(values);
                }
                let size = (most as usize + 1).next_power_of_two().max(table.len());
                count_in_table::<UInt32Type>(table, size, values);
            }
            _ => return self.add_sorted(values),
        }
        Ok(())
    }

    /// Adds the counts of another histogram of the same type; an empty histogram adds nothing.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, UInt16Array, UInt64Array};
    /// # use arrow::datatypes::DataType;
    /// use serrate::kernels::histogram::Histogram;
    /// let codes: ArrayRef = Arc::new(UInt16Array::from(vec![7, 3, 7]));
    /// let mut histogram = Histogram::new(&DataType::UInt16)?;
    /// histogram.add(&codes)?;
    /// let other = histogram.clone();
    /// histogram.merge(&other)?;
    /// assert_eq!(histogram.counts()?.1, UInt64Array::from(vec![2, 4])); // of 3 and 7
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the types differ.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_type(&other.value_type)?;
        if self.table.len() < other.table.len() {
            self.table.resize(other.table.len(), 0);
        }
        self.table.iter_mut().zip(&other.table).for_each(|(a, b)| *a += b);
        for (values, counts) in &other.parts {
            self.push_part(values.clone(), counts.clone())?;
        }
        Ok(())
    }

    /// Adds values that are already counted: adds `counts[i]` to the count of `values[i]`.
    ///
    /// A null value, and a value with the count 0, adds nothing. `counts` must have no nulls.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, Int32Array, UInt64Array};
    /// # use arrow::datatypes::DataType;
    /// use serrate::kernels::histogram::Histogram;
    /// let values: ArrayRef = Arc::new(Int32Array::from(vec![7, 9]));
    /// let mut h = Histogram::new(&DataType::Int32)?;
    /// h.add_counted(&values, &UInt64Array::from(vec![2, 5]))?;
    /// let mut other = Histogram::new(h.value_type())?;
    /// other.add(&values)?;
    /// h.merge(&other)?;
    /// assert_eq!(h.counts()?, (values, UInt64Array::from(vec![3, 6])));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the values have another type than the histogram, or `values` and `counts` differ in
    /// length.
    pub fn add_counted(&mut self, values: &ArrayRef, counts: &UInt64Array) -> Result<()> {
        self.check_type(values.data_type())?;
        if values.len() != counts.len() {
            return Err(Error::invalid(format!(
                "{} count(s) are given for {} value(s); give one count per value",
                counts.len(),
                values.len()
            )));
        }
        self.push_part(values.clone(), counts.clone())
    }

    /// Returns all distinct values in ascending order, and their counts.
    ///
    /// Both arrays have no nulls, and are empty if nothing was counted.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, UInt16Array, UInt64Array};
    /// # use arrow::datatypes::DataType;
    /// use serrate::kernels::histogram::Histogram;
    /// let codes: ArrayRef = Arc::new(UInt16Array::from(vec![7, 3, 7]));
    /// let mut histogram = Histogram::new(&DataType::UInt16)?;
    /// histogram.add(&codes)?;
    /// let (values, counts) = histogram.counts()?;
    /// assert_eq!(values.as_ref(), &UInt16Array::from(vec![3, 7]));
    /// assert_eq!(counts, UInt64Array::from(vec![1, 2]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If values cannot be compared.
    pub fn counts(&self) -> Result<(ArrayRef, UInt64Array)> {
        let mut parts = self.parts.clone();
        let indices: Vec<usize> = (0..self.table.len()).filter(|i| self.table[*i] > 0).collect();
        if !indices.is_empty() {
            let counts = indices.iter().map(|i| self.table[*i]).collect();
            parts.push((self.build_table_values(&indices)?, counts));
        }
        merge_counts(&self.value_type, &parts)
    }

    /// Returns the `n` most frequent values by descending count; ties are ordered by value.
    ///
    /// If there are fewer values, returns all of them.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, UInt16Array, UInt64Array};
    /// # use arrow::datatypes::DataType;
    /// use serrate::kernels::histogram::Histogram;
    /// let codes: ArrayRef = Arc::new(UInt16Array::from(vec![7, 3, 9, 7, 3]));
    /// let mut histogram = Histogram::new(&DataType::UInt16)?;
    /// histogram.add(&codes)?;
    /// let (values, counts) = histogram.top(1)?;
    /// assert_eq!(values.as_ref(), &UInt16Array::from(vec![3])); // 7 is as frequent, but larger
    /// assert_eq!(counts, UInt64Array::from(vec![2]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`counts`](Self::counts).
    pub fn top(&self, n: usize) -> Result<(ArrayRef, UInt64Array)> {
        let (values, counts) = self.counts()?;
        let mut indices: Vec<u32> = (0..u32::try_from(counts.len()).unwrap_or(u32::MAX)).collect();
        let key = |i: &u32| (std::cmp::Reverse(counts.value(*i as usize)), *i);
        if n > 0 && n < indices.len() {
            indices.select_nth_unstable_by_key(n - 1, key);
        }
        indices.truncate(n);
        indices.sort_unstable_by_key(key);
        let counts = indices.iter().map(|i| counts.value(*i as usize)).collect();
        Ok((take(&values, &UInt32Array::from(indices), None)?, counts))
    }

    fn check_type(&self, found: &DataType) -> Result<()> {
        match *found == self.value_type {
            true => Ok(()),
            false => Err(Error::type_of(
                "values to add to a histogram",
                format!("{} (cast the values first)", self.value_type),
                found,
            )),
        }
    }

    fn build_table_values(&self, indices: &[usize]) -> Result<ArrayRef> {
        let numbers = indices.iter().map(|i| u32::try_from(*i).unwrap_or(u32::MAX));
        let numbers: ArrayRef = Arc::new(UInt32Array::from_iter_values(numbers));
        Ok(match &self.value_type {
            DataType::Int8 => {
                reinterpret_values(&cast(&numbers, &DataType::UInt8)?, &DataType::Int8)?
            }
            DataType::Int16 => {
                reinterpret_values(&cast(&numbers, &DataType::UInt16)?, &DataType::Int16)?
            }
            other => cast(&numbers, other)?,
        })
    }

    fn add_sorted(&mut self, values: &ArrayRef) -> Result<()> {
        let ones = UInt64Array::from(vec![1; values.len()]);
        let (values, counts) = merge_counts(&self.value_type, &[(values.clone(), ones)])?;
        self.push_part(values, counts)
    }

    fn push_part(&mut self, values: ArrayRef, counts: UInt64Array) -> Result<()> {
        self.part_values += values.len();
        self.parts.push((values, counts));
        // Add up the counts of equal values, which bounds the memory if values occur in many parts.
        if self.parts.len() > 1 && self.part_values > 1 << 16 {
            let (values, counts) = merge_counts(&self.value_type, &self.parts)?;
            if values.len() * 2 <= self.part_values || self.parts.len() > 64 {
                self.part_values = values.len();
                self.parts = vec![(values, counts)];
            }
        }
        Ok(())
    }
}

/// Returns the distinct values in ascending order, and their counts; nulls are not counted.
///
/// Both results of an empty array are empty. NaN, zeros and dictionaries are treated as in
/// [`Histogram`].
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, Int32Array, UInt64Array};
/// use serrate::kernels::histogram::value_counts;
/// let values: ArrayRef = Arc::new(Int32Array::from(vec![Some(7), Some(5), None, Some(7)]));
/// let (distinct, counts) = value_counts(&values)?;
/// assert_eq!(distinct.as_ref(), &Int32Array::from(vec![5, 7]));
/// assert_eq!(counts, UInt64Array::from(vec![1, 2]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the values cannot be compared.
pub fn value_counts(values: &ArrayRef) -> Result<(ArrayRef, UInt64Array)> {
    let mut counts = Histogram::new(values.data_type())?;
    counts.add(values)?;
    counts.counts()
}

/// Counts values in a table indexed by value. Many values without nulls are counted in two tables
/// alternately, so that a repeated value does not wait for the previous update of its counter.
fn count_in_table<T>(table: &mut Vec<u64>, size: usize, values: &ArrayRef)
where
    T: ArrowPrimitiveType<Native: TryInto<usize>>,
{
    let values = values.as_primitive::<T>();
    table.resize(size.max(table.len()), 0);
    let index = |v: T::Native| v.try_into().unwrap_or(usize::MAX);
    match values.nulls().filter(|n| n.null_count() > 0) {
        Some(nulls) => {
            for i in nulls.valid_indices() {
                if let Some(count) = table.get_mut(index(values.values()[i])) {
                    *count += 1;
                }
            }
        }
        None if values.len() < 4 * table.len() => {
            for v in values.values() {
                if let Some(count) = table.get_mut(index(*v)) {
                    *count += 1;
                }
            }
        }
        None => {
            let mut other = vec![0u64; table.len()];
            let (pairs, rest) = values.values().as_chunks::<2>();
            for [a, b] in pairs {
                if let Some(count) = table.get_mut(index(*a)) {
                    *count += 1;
                }
                if let Some(count) = other.get_mut(index(*b)) {
                    *count += 1;
                }
            }
            for v in rest {
                table[index(*v)] += 1;
            }
            table.iter_mut().zip(&other).for_each(|(a, b)| *a += b);
        }
    }
}

fn merge_counts(
    t: &DataType,
    parts: &[(ArrayRef, UInt64Array)],
) -> Result<(ArrayRef, UInt64Array)> {
    let values: Vec<&dyn Array> = parts.iter().map(|(v, _)| v.as_ref()).collect();
    if values.is_empty() || t.is_null() {
        return Ok((new_empty_array(t), UInt64Array::from(Vec::<u64>::new())));
    }
    let values = concat(&values)?;
    let counts: Vec<u64> = parts.iter().flat_map(|(_, c)| c.values().iter().copied()).collect();
    let nulls = values.logical_nulls();
    let one = vec![Layout::Uniform { size: values.len(), lists: 1 }.into()];
    let order = argsort(&RaggedArray::try_new(1, one, values.clone())?, SortOrder::ASCENDING)?;
    let same = make_equality(&values)?;
    let (mut kept, mut sums): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
    for index in order.leaves().as_primitive::<arrow::datatypes::Int64Type>().values() {
        let at = usize::try_from(*index).unwrap_or(usize::MAX);
        if counts[at] == 0 || nulls.as_ref().is_some_and(|n| n.is_null(at)) {
            continue;
        }
        let last = kept.last().map(|k| usize::try_from(*k).unwrap_or(usize::MAX));
        match (last.filter(|last| same(*last, at)), sums.last_mut()) {
            (Some(_), Some(sum)) => *sum += counts[at],
            _ => {
                kept.push(at as u64);
                sums.push(counts[at]);
            }
        }
    }
    Ok((take(&values, &UInt64Array::from(kept), None)?, UInt64Array::from(sums)))
}
