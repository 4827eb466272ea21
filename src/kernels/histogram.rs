//! How often each value occurs.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, UInt32Array, UInt64Array, new_empty_array,
};
use arrow::compute::{cast, concat, take};
use arrow::datatypes::{DataType, UInt8Type, UInt16Type, UInt32Type, UInt64Type};

use super::reduce::reinterpret;
use super::sort::{Order, argsort, same_values};
use crate::array::{Layout, RaggedArray};
use crate::error::{Error, Result};

/// Unsigned integers below this are counted in a table.
const TABLE: u32 = 1 << 20;

/// Counts of values, over as many arrays as are added.
///
/// Nulls are not counted. Integers of 8 and 16 bits, and wider unsigned ones while they are small, are
/// counted in a table; a dictionary counts its keys first, so that each of its values is looked at once.
/// NaN is one value, and so is zero.
///
/// ```
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
    /// Type of the values: dictionaries are counted as what they stand for.
    values: DataType,
    /// Counts by the number that a value is, from the lowest of its type on.
    table: Vec<u64>,
    /// Values that are no such numbers, and their counts; a value may come more than once.
    parts: Vec<(ArrayRef, UInt64Array)>,
    /// Values among the parts.
    waiting: usize,
}

impl Histogram {
    /// Nothing counted yet.
    ///
    /// # Errors
    /// When values of the type do not compare.
    pub fn new(values: &DataType) -> Result<Self> {
        let values = match values {
            DataType::Dictionary(_, values) => values,
            other => other,
        };
        if values.is_nested() {
            return Err(Error::type_of("a histogram", "flat values", values));
        }
        Ok(Self { values: values.clone(), table: Vec::new(), parts: Vec::new(), waiting: 0 })
    }

    /// Type of the values that are counted.
    pub fn value_type(&self) -> &DataType {
        &self.values
    }

    /// Counts the values of an array, the leaves of a [`RaggedArray`] for example.
    ///
    /// # Errors
    /// When they are of another type.
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
            self.check(dictionary.values().data_type())?;
            return self.add_counted(dictionary.values(), &UInt64Array::from(counts));
        }
        self.check(values.data_type())?;
        let table = &mut self.table;
        match values.data_type() {
            DataType::Null => {}
            DataType::UInt8 => count::<UInt8Type>(table, 1 << 8, values),
            DataType::UInt16 => count::<UInt16Type>(table, 1 << 16, values),
            DataType::Int8 => {
                count::<UInt8Type>(table, 1 << 8, &reinterpret(values, &DataType::UInt8)?);
            }
            DataType::Int16 => {
                count::<UInt16Type>(table, 1 << 16, &reinterpret(values, &DataType::UInt16)?);
            }
            DataType::UInt32 => {
                let most = arrow::compute::max(values.as_primitive::<UInt32Type>());
                let most = most.unwrap_or(0);
                if most >= TABLE {
                    return self.add_sorted(values);
                }
                let size = (most as usize + 1).next_power_of_two().max(table.len());
                count::<UInt32Type>(table, size, values);
            }
            _ => return self.add_sorted(values),
        }
        Ok(())
    }

    /// Adds what another histogram of the same type counted.
    ///
    /// # Errors
    /// When the types differ.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.check(&other.values)?;
        if self.table.len() < other.table.len() {
            self.table.resize(other.table.len(), 0);
        }
        self.table.iter_mut().zip(&other.table).for_each(|(a, b)| *a += b);
        for (values, counts) in &other.parts {
            self.push(values.clone(), counts.clone())?;
        }
        Ok(())
    }

    /// Adds values that were counted before: one count for each.
    ///
    /// # Errors
    /// When the values are of another type or not as many as the counts.
    pub fn add_counted(&mut self, values: &ArrayRef, counts: &UInt64Array) -> Result<()> {
        self.check(values.data_type())?;
        if values.len() != counts.len() {
            return Err(Error::invalid(format!(
                "{} counts for {} values",
                counts.len(),
                values.len()
            )));
        }
        self.push(values.clone(), counts.clone())
    }

    /// All values that were there, ascending, and how often.
    ///
    /// # Errors
    /// When values do not compare.
    pub fn counts(&self) -> Result<(ArrayRef, UInt64Array)> {
        let mut parts = self.parts.clone();
        let places: Vec<usize> = (0..self.table.len()).filter(|i| self.table[*i] > 0).collect();
        if !places.is_empty() {
            let counts = places.iter().map(|i| self.table[*i]).collect();
            parts.push((self.numbers(&places)?, counts));
        }
        summed(&self.values, &parts)
    }

    /// The `n` values that were there most often, the most frequent first; of equally frequent ones the
    /// lesser.
    ///
    /// # Errors
    /// As [`counts`](Self::counts).
    pub fn top(&self, n: usize) -> Result<(ArrayRef, UInt64Array)> {
        let (values, counts) = self.counts()?;
        let mut places: Vec<u32> = (0..u32::try_from(counts.len()).unwrap_or(u32::MAX)).collect();
        let key = |i: &u32| (std::cmp::Reverse(counts.value(*i as usize)), *i);
        if n > 0 && n < places.len() {
            places.select_nth_unstable_by_key(n - 1, key);
        }
        places.truncate(n);
        places.sort_unstable_by_key(key);
        let counts = places.iter().map(|i| counts.value(*i as usize)).collect();
        Ok((take(&values, &UInt32Array::from(places), None)?, counts))
    }

    fn check(&self, found: &DataType) -> Result<()> {
        match *found == self.values {
            true => Ok(()),
            false => {
                Err(Error::type_of("the values of a histogram", self.values.to_string(), found))
            }
        }
    }

    /// Places of the table as the values they stand for.
    fn numbers(&self, places: &[usize]) -> Result<ArrayRef> {
        let numbers = places.iter().map(|i| u32::try_from(*i).unwrap_or(u32::MAX));
        let numbers: ArrayRef = Arc::new(UInt32Array::from_iter_values(numbers));
        Ok(match &self.values {
            DataType::Int8 => reinterpret(&cast(&numbers, &DataType::UInt8)?, &DataType::Int8)?,
            DataType::Int16 => reinterpret(&cast(&numbers, &DataType::UInt16)?, &DataType::Int16)?,
            other => cast(&numbers, other)?,
        })
    }

    fn add_sorted(&mut self, values: &ArrayRef) -> Result<()> {
        let ones = UInt64Array::from(vec![1; values.len()]);
        let (values, counts) = summed(&self.values, &[(values.clone(), ones)])?;
        self.push(values, counts)
    }

    fn push(&mut self, values: ArrayRef, counts: UInt64Array) -> Result<()> {
        self.waiting += values.len();
        self.parts.push((values, counts));
        // Put together before they are many more than they stand for.
        if self.parts.len() > 1 && self.waiting > 1 << 16 {
            let (values, counts) = summed(&self.values, &self.parts)?;
            if values.len() * 2 <= self.waiting || self.parts.len() > 64 {
                self.waiting = values.len();
                self.parts = vec![(values, counts)];
            }
        }
        Ok(())
    }
}

/// How often each value of an array occurs: the values, ascending, and their counts. See [`Histogram`].
///
/// # Errors
/// When the values do not compare.
pub fn value_counts(values: &ArrayRef) -> Result<(ArrayRef, UInt64Array)> {
    let mut counts = Histogram::new(values.data_type())?;
    counts.add(values)?;
    counts.counts()
}

/// Two tables take turns, so that a value that follows itself need not wait.
fn count<T>(table: &mut Vec<u64>, size: usize, values: &ArrayRef)
where
    T: ArrowPrimitiveType<Native: TryInto<usize>>,
{
    let values = values.as_primitive::<T>();
    table.resize(size.max(table.len()), 0);
    let place = |v: T::Native| v.try_into().unwrap_or(usize::MAX);
    match values.nulls().filter(|n| n.null_count() > 0) {
        Some(nulls) => {
            for i in nulls.valid_indices() {
                if let Some(count) = table.get_mut(place(values.values()[i])) {
                    *count += 1;
                }
            }
        }
        None if values.len() < 4 * table.len() => {
            for v in values.values() {
                if let Some(count) = table.get_mut(place(*v)) {
                    *count += 1;
                }
            }
        }
        None => {
            let mut other = vec![0u64; table.len()];
            let (pairs, rest) = values.values().as_chunks::<2>();
            for [a, b] in pairs {
                if let Some(count) = table.get_mut(place(*a)) {
                    *count += 1;
                }
                if let Some(count) = other.get_mut(place(*b)) {
                    *count += 1;
                }
            }
            for v in rest {
                table[place(*v)] += 1;
            }
            table.iter_mut().zip(&other).for_each(|(a, b)| *a += b);
        }
    }
}

/// The values of all parts, ascending, each once, with the sum of its counts.
fn summed(t: &DataType, parts: &[(ArrayRef, UInt64Array)]) -> Result<(ArrayRef, UInt64Array)> {
    let values: Vec<&dyn Array> = parts.iter().map(|(v, _)| v.as_ref()).collect();
    if values.is_empty() || t.is_null() {
        return Ok((new_empty_array(t), UInt64Array::from(Vec::<u64>::new())));
    }
    let values = concat(&values)?;
    let counts: Vec<u64> = parts.iter().flat_map(|(_, c)| c.values().iter().copied()).collect();
    let nulls = values.logical_nulls();
    let one = vec![Layout::Uniform { size: values.len(), lists: 1 }.into()];
    let order = argsort(&RaggedArray::try_new(1, one, values.clone())?, Order::ASCENDING)?;
    let same = same_values(&values)?;
    let (mut kept, mut sums): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
    for place in order.leaves().as_primitive::<arrow::datatypes::Int64Type>().values() {
        let at = usize::try_from(*place).unwrap_or(usize::MAX);
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
