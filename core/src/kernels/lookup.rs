//! Finds the row of a key in a table, and the bin of a number among the bin edges of a key.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, ListArray, UInt32Array, UInt32Builder,
};
use arrow::compute::kernels::cmp;
use arrow::compute::{CastOptions, cast, cast_with_options, concat, nullif, take};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type};
use arrow::util::display::array_value_to_string;

use super::align::share_lists;
use super::dictionary_predicate::value_type;
use super::secret_hash::SecretHashState;
use super::text::is_text;
use super::times::{compare_exactly, to_exact_seconds};
use super::zones::{local_to_instants, to_local};
use crate::array::RaggedArray;
use crate::error::{Error, Result};

/// An index from keys to their rows in a table. Strings and sparse integers are in a hash map,
/// dense integers in an array. Null keys are not indexed.
///
/// ```
/// # use serrate_core as serrate;
/// use std::sync::Arc;
/// use arrow::array::{ArrayRef, StringArray, UInt32Array};
/// use serrate::internal::lookup::LookupIndex;
///
/// let keys: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
/// let codes: ArrayRef = Arc::new(StringArray::from(vec![Some("b"), Some("?"), None, Some("a")]));
/// let found = LookupIndex::try_new(&keys)?.find_places(&codes)?;
/// assert_eq!(found, UInt32Array::from(vec![Some(1), None, None, Some(0)]));
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Debug)]
pub struct LookupIndex {
    data_type: DataType,
    index: KeyIndex,
}

#[derive(Debug)]
enum KeyIndex {
    Strings(HashMap<Box<str>, u32>),
    /// `table[key - first]` is the row of the key, or [`ABSENT`] if this integer is not a key.
    Dense {
        first: i64,
        table: Vec<u32>,
    },
    Sparse(HashMap<i64, u32, SecretHashState>),
}

/// Entry of [`KeyIndex::Dense`] for an integer that is not a key; tables have fewer rows.
const ABSENT: u32 = u32::MAX;

/// Checks that values of the type `values` can be looked up among keys of the type `keys`.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, StringArray};
/// # use arrow::datatypes::DataType;
/// use serrate::internal::lookup::{LookupIndex, check_comparable};
/// let keys: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
/// let lookup = LookupIndex::try_new(&keys)?;
/// assert!(check_comparable(&DataType::Utf8View, lookup.data_type()).is_ok());
/// assert!(check_comparable(&DataType::Int64, lookup.data_type()).is_err());
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the types cannot be compared.
pub fn check_comparable(values: &DataType, keys: &DataType) -> Result<()> {
    let kind = |t: &DataType| match value_type(t) {
        t if is_text(t) => 1,
        t if t.is_integer() => 2,
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => 3,
        _ => 0,
    };
    match (kind(values), kind(keys)) {
        (a, b) if a == b && a > 0 => Ok(()),
        _ if values.is_null() && kind(keys) > 0 => Ok(()),
        (_, 0) => Err(Error::invalid(format!(
            "the keys have the type {keys}; give integers, strings, dates or timestamps"
        ))),
        _ => Err(Error::invalid(format!(
            "values of type {values} cannot be looked up among keys of type {keys}; cast one of them"
        ))),
    }
}

impl LookupIndex {
    /// Indexes the keys of a table.
    ///
    /// Null keys are skipped; without keys, every lookup gives null.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, StringArray};
    /// # use arrow::datatypes::DataType;
    /// use serrate::internal::lookup::LookupIndex;
    /// let keys: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("b")]));
    /// assert_eq!(LookupIndex::try_new(&keys)?.data_type(), &DataType::Utf8);
    /// let twice: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "a"]));
    /// assert!(LookupIndex::try_new(&twice).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// For a duplicate key, keys of an unsupported type, and more than 2^32 - 2 keys.
    pub fn try_new(keys: &ArrayRef) -> Result<Self> {
        check_comparable(keys.data_type(), keys.data_type())?;
        let rows = u32::try_from(keys.len()).unwrap_or(ABSENT);
        if rows == ABSENT {
            return Err(Error::invalid(format!(
                "the table has {} keys, more than the maximum of 2^32 - 2; remove keys that are not looked up",
                keys.len()
            )));
        }
        let data_type = value_type(keys.data_type()).clone();
        let index = match is_text(&data_type) {
            true => index_strings(&cast(keys, &DataType::Utf8)?, rows)?,
            false => index_integers(&read_integer_keys(keys, &data_type)?, rows)?,
        };
        Ok(Self { data_type, index })
    }

    /// Returns the type of the keys; for a dictionary, the type of its values.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, DictionaryArray};
    /// # use arrow::datatypes::{DataType, Int16Type};
    /// use serrate::internal::lookup::LookupIndex;
    /// let keys: DictionaryArray<Int16Type> = ["a", "b"].into_iter().collect();
    /// let keys: ArrayRef = Arc::new(keys);
    /// assert_eq!(LookupIndex::try_new(&keys)?.data_type(), &DataType::Utf8);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Returns the row of each value among the keys; null if the value is null or not a key. If
    /// `values` is a dictionary array with at most as many dictionary values as rows, each
    /// dictionary value is looked up once.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, Int64Array, UInt32Array};
    /// use serrate::internal::lookup::LookupIndex;
    /// let keys: ArrayRef = Arc::new(Int64Array::from(vec![30, 10, 20]));
    /// let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(20), Some(5), None, Some(30)]));
    /// let rows = LookupIndex::try_new(&keys)?.find_places(&values)?;
    /// assert_eq!(rows, UInt32Array::from(vec![Some(2), None, None, Some(0)]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the type of the values cannot be compared with the keys.
    pub fn find_places(&self, values: &ArrayRef) -> Result<UInt32Array> {
        check_comparable(values.data_type(), &self.data_type)?;
        if let Some(dictionary) = values.as_any_dictionary_opt() {
            if dictionary.values().len() <= dictionary.len() {
                let found: ArrayRef = Arc::new(self.find_places(dictionary.values())?);
                let found = take(&found, dictionary.keys(), None)?;
                return Ok(found.as_primitive().clone());
            }
            return self.find_places(&take(dictionary.values(), dictionary.keys(), None)?);
        }
        match &self.index {
            KeyIndex::Strings(rows) => {
                let texts = cast(values, &DataType::Utf8)?;
                let texts = texts.as_string::<i32>();
                Ok(texts.iter().map(|t| t.and_then(|t| rows.get(t).copied())).collect())
            }
            KeyIndex::Dense { first, table } => {
                let numbers = to_key_integers(values, &self.data_type)?;
                let find = |number: i64| {
                    let slot = usize::try_from(number.checked_sub(*first)?).ok()?;
                    table.get(slot).copied().filter(|row| *row != ABSENT)
                };
                Ok(numbers.iter().map(|n| n.and_then(find)).collect())
            }
            KeyIndex::Sparse(rows) => {
                let numbers = to_key_integers(values, &self.data_type)?;
                Ok(numbers.iter().map(|n| n.and_then(|n| rows.get(&n).copied())).collect())
            }
        }
    }
}

fn index_strings(keys: &ArrayRef, rows: u32) -> Result<KeyIndex> {
    let strings = keys.as_string::<i32>();
    let mut rows_by_key = HashMap::with_capacity(strings.len());
    for (text, row) in strings.iter().zip(0..rows) {
        let Some(text) = text else { continue };
        match rows_by_key.entry(Box::from(text)) {
            Entry::Occupied(_) => return Err(make_repeated_key_error(&format!("{text:?}"))),
            Entry::Vacant(free) => free.insert(row),
        };
    }
    Ok(KeyIndex::Strings(rows_by_key))
}

/// Converts the keys of a table, which have the type `to` or are a dictionary of it, to integers.
/// Returns an error for a key that does not fit.
fn read_integer_keys(keys: &ArrayRef, to: &DataType) -> Result<Int64Array> {
    let whole = cast(keys, to)?;
    let numbers = to_key_integers(&whole, to)?;
    if numbers.null_count() > whole.null_count() {
        let lost = (0..whole.len()).find(|row| numbers.is_null(*row) && whole.is_valid(*row));
        let key = array_value_to_string(&whole, lost.unwrap_or_default())?;
        return Err(Error::invalid(format!(
            "the key {key} of the table does not fit a signed 64-bit integer; cast the keys to strings, and also the values to look up"
        )));
    }
    Ok(numbers)
}

fn index_integers(keys: &Int64Array, rows: u32) -> Result<KeyIndex> {
    let (mut least, mut most) = (i64::MAX, i64::MIN);
    for key in keys.iter().flatten() {
        (least, most) = (least.min(key), most.max(key));
    }
    // A dense table has at most 2^16 entries, and 8 more per key.
    let span = most.checked_sub(least).and_then(|s| usize::try_from(s).ok());
    let Some(span) = span.filter(|s| *s < (1 << 16) + 8 * keys.len()) else {
        let mut rows_by_key =
            HashMap::with_capacity_and_hasher(keys.len(), SecretHashState::default());
        for (key, row) in keys.iter().zip(0..rows) {
            let Some(key) = key else { continue };
            if rows_by_key.insert(key, row).is_some() {
                return Err(make_repeated_key_error(&key));
            }
        }
        return Ok(KeyIndex::Sparse(rows_by_key));
    };
    let mut table = vec![ABSENT; span + 1];
    for (key, row) in keys.iter().zip(0..rows) {
        let Some(key) = key else { continue };
        let slot = usize::try_from(key.wrapping_sub(least)).unwrap_or(0);
        if std::mem::replace(&mut table[slot], row) != ABSENT {
            return Err(make_repeated_key_error(&key));
        }
    }
    Ok(KeyIndex::Dense { first: least, table })
}

fn make_repeated_key_error(key: &dyn std::fmt::Display) -> Error {
    Error::invalid(format!(
        "the key {key} occurs twice; make the keys unique, for example with SELECT DISTINCT or GROUP BY"
    ))
}

/// Converts values to the integers that a [`KeyIndex`] has for keys of type `of`. A value that can
/// equal no key of this type becomes null.
fn to_key_integers(values: &ArrayRef, of: &DataType) -> Result<Int64Array> {
    let options = CastOptions { safe: true, ..CastOptions::default() };
    let values = &align_clocks(values, of)?;
    let values = match of.is_integer() || values.data_type() == of {
        true => Arc::clone(values),
        // A time that is not a multiple of the keys' unit equals no key, so it becomes null.
        false if compare_exactly(values.data_type(), of) => {
            let converted = cast_with_options(values, of, &options)?;
            let other = cmp::neq(&to_exact_seconds(&converted)?, &to_exact_seconds(values)?)?;
            nullif(&converted, &other)?
        }
        false => cast_with_options(values, of, &options)?,
    };
    let wide = cast_with_options(&values, &DataType::Int64, &options)?;
    Ok(wide.as_primitive::<Int64Type>().clone())
}

/// If only the keys have a time zone, converts the values from local times in this zone to
/// instants; if only the values have one, to local times. When clocks are set back, a local time
/// occurs twice: it stands for the later of the two instants, and the earlier instant becomes null.
fn align_clocks(values: &ArrayRef, keys: &DataType) -> Result<ArrayRef> {
    use DataType::{Date32, Date64, Timestamp};
    match (values.data_type(), keys) {
        (Timestamp(unit, None), Timestamp(_, Some(zone))) => {
            local_to_instants(values, &Timestamp(*unit, Some(Arc::clone(zone))), true)
        }
        (Date32 | Date64, Timestamp(_, Some(_))) => local_to_instants(values, keys, true),
        (of_values @ Timestamp(_, Some(_)), Timestamp(_, None) | Date32 | Date64) => {
            let local = to_local(values)?;
            let instants = local_to_instants(&local, of_values, true)?;
            Ok(nullif(&local, &cmp::neq(&instants, values)?)?)
        }
        _ => Ok(Arc::clone(values)),
    }
}

/// Finds the row of the key that equals each leaf, and returns the elements of `values` in these
/// rows; null if the leaf is null or not a key. The result shares the lists of the array.
///
/// ```
/// # use serrate_core as serrate;
/// use std::sync::Arc;
/// use arrow::array::{ArrayRef, Float64Array, UInt16Array};
/// use serrate::array::{Offsets, RaggedArray};
/// use serrate::internal::lookup::{LookupIndex, look_up_values};
///
/// let keys: ArrayRef = Arc::new(UInt16Array::from(vec![7, 9]));
/// let weights: ArrayRef = Arc::new(Float64Array::from(vec![0.7, 0.9]));
/// // [[9, 7], [8]]
/// let codes = Arc::new(UInt16Array::from(vec![9, 7, 8]));
/// let codes = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], codes)?;
/// let found = look_up_values(&codes, &LookupIndex::try_new(&keys)?, &weights)?;
/// let expected: ArrayRef = Arc::new(Float64Array::from(vec![Some(0.9), Some(0.7), None]));
/// assert_eq!(found.leaves(), &expected);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Same as [`LookupIndex::find_places`].
pub fn look_up_values(
    array: &RaggedArray,
    keys: &LookupIndex,
    values: &ArrayRef,
) -> Result<RaggedArray> {
    let rows = keys.find_places(array.leaves())?;
    array.with_leaves(take(values, &rows, None)?)
}

/// Returns the bin of every value (`numpy.digitize`): the number of cuts (bin edges) that are not
/// greater than the value. `cuts` has one ascending list per key, and the code of a value is the
/// key whose cuts apply to it. The bin is null for a null or NaN value, null cuts, and a code that
/// is null or not a key.
///
/// `codes` has the lists of `values`, or only their outer levels. In the second case, each element
/// of an outer axis has a code, which applies to all values below the element.
///
/// ```
/// # use serrate_core as serrate;
/// use std::sync::Arc;
/// use arrow::array::{ArrayRef, Float64Array, UInt16Array, UInt32Array};
/// use serrate::array::{Offsets, RaggedArray};
/// use serrate::internal::lookup::{LookupIndex, find_bins, read_cuts};
///
/// let keys: ArrayRef = Arc::new(UInt16Array::from(vec![7, 9]));
/// let lists = arrow::array::ListArray::from_iter_primitive::<arrow::datatypes::Float64Type, _, _>([
///     Some(vec![Some(1.0), Some(2.0)]),
///     Some(vec![Some(100.0)]),
/// ]);
/// let flat = |leaves: ArrayRef| {
///     RaggedArray::try_new(1, vec![Offsets::from_lengths([4])?.into()], leaves)
/// };
/// let values = flat(Arc::new(Float64Array::from(vec![0.5, 2.0, 99.0, 100.0])))?;
/// let codes = flat(Arc::new(UInt16Array::from(vec![7, 7, 9, 9])))?;
/// let found = find_bins(&values, &codes, &LookupIndex::try_new(&keys)?, &read_cuts(&(Arc::new(lists) as _))?)?;
/// let expected: ArrayRef = Arc::new(UInt32Array::from(vec![0, 2, 0, 1]));
/// assert_eq!(found.leaves(), &expected);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If lists differ in length, codes have more levels than values, values are not numbers, or `cuts`
/// has fewer lists than there are keys.
pub fn find_bins(
    values: &RaggedArray,
    codes: &RaggedArray,
    keys: &LookupIndex,
    cuts: &ListArray,
) -> Result<RaggedArray> {
    let (levels, outer) = (values.axes().len(), codes.axes().len());
    if outer > levels {
        return Err(Error::invalid(format!(
            "the codes have {outer} level(s) of lists, but the values have only {levels}; give one code per value, or one per list of values"
        )));
    }
    let (values, codes) = share_lists(values, codes, outer)?;
    let mut key_rows: Vec<Option<u32>> = keys.find_places(codes.leaves())?.iter().collect();
    for axis in outer + 1..=levels {
        let layout = values.axis(axis)?.layout();
        let lists = key_rows.iter().enumerate();
        key_rows = lists.flat_map(|(i, row)| std::iter::repeat_n(*row, layout.length(i))).collect();
    }
    if let Some(row) = key_rows.iter().flatten().max().filter(|row| **row as usize >= cuts.len()) {
        return Err(Error::invalid(format!(
            "the key in row {row} (counted from 0) has no cuts (bin edges), because these have only {} row(s); give one list of cuts per key",
            cuts.len()
        )));
    }
    let numbers = cast(values.leaves(), &DataType::Float64)?;
    let numbers = numbers.as_primitive::<Float64Type>();
    let offsets = cuts.value_offsets();
    let limits = cuts.values().as_primitive::<Float64Type>().values();
    let mut out = UInt32Builder::with_capacity(numbers.len());
    for (number, row) in numbers.iter().zip(&key_rows) {
        let row = row.map(|p| p as usize).filter(|p| cuts.is_valid(*p));
        out.append_option(match (number.filter(|n| !n.is_nan()), row) {
            (Some(number), Some(row)) => {
                let start = usize::try_from(offsets[row]).unwrap_or(0);
                let end = usize::try_from(offsets[row + 1]).unwrap_or(0);
                let bin = limits[start..end].partition_point(|limit| *limit <= number);
                u32::try_from(bin).ok()
            }
            _ => None,
        });
    }
    values.with_leaves(Arc::new(out.finish()))
}

/// Converts a column with the cuts (bin edges) of each key to lists, as [`find_bins`] takes them.
/// Accepts lists of numbers, and structs with one number per field in ascending order
/// (`values/quantiles` of MEDS metadata).
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, Float64Array, ListArray};
/// # use arrow::datatypes::Int64Type;
/// use serrate::internal::lookup::read_cuts;
/// let edges = vec![Some(vec![Some(1), Some(5)]), None];
/// let edges: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(edges));
/// assert_eq!(read_cuts(&edges)?.value(0).as_ref(), &Float64Array::from(vec![1.0, 5.0]));
/// let edges = vec![Some(vec![Some(5), Some(1)])];
/// let edges: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(edges));
/// assert!(read_cuts(&edges).is_err()); // 5 comes before 1
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// For cuts that do not ascend or contain null or NaN, and for other types.
pub fn read_cuts(values: &ArrayRef) -> Result<ListArray> {
    let item = Arc::new(Field::new_list_field(DataType::Float64, true));
    let lists = match values.data_type() {
        DataType::Struct(fields) if fields.iter().all(|f| f.data_type().is_numeric()) => {
            let structs = values.as_struct();
            let columns = structs
                .columns()
                .iter()
                .map(|c| cast(c, &DataType::Float64))
                .collect::<std::result::Result<Vec<_>, _>>()?;
            let rows = structs.len();
            let order: Vec<u64> = (0..rows)
                .flat_map(|r| (0..columns.len()).map(move |c| (c * rows + r) as u64))
                .collect();
            let columns: Vec<&dyn Array> = columns.iter().map(AsRef::as_ref).collect();
            let all: ArrayRef = match columns.is_empty() {
                true => Arc::new(Float64Array::from(Vec::<f64>::new())),
                false => take(&concat(&columns)?, &arrow::array::UInt64Array::from(order), None)?,
            };
            let lengths = std::iter::repeat_n(columns.len(), rows);
            let offsets = arrow::buffer::OffsetBuffer::from_lengths(lengths);
            ListArray::try_new(item, offsets, all, structs.nulls().cloned())?
        }
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
            cast(values, &DataType::List(item))
                .map_err(|e| {
                    Error::invalid(format!(
                        "the cuts (bin edges) must be lists of numbers, but have the type {}; cast them first: {e}",
                        values.data_type()
                    ))
                })?
                .as_list::<i32>()
                .clone()
        }
        t => {
            return Err(Error::type_of(
                "cuts (bin edges)",
                "a list of numbers or a struct of numbers for each key (cast them first)",
                t,
            ));
        }
    };
    for row in (0..lists.len()).filter(|r| lists.is_valid(*r)) {
        let cuts = lists.value(row);
        let cuts = cuts.as_primitive::<Float64Type>();
        let descent = cuts.values().windows(2).find(|pair| pair[0] > pair[1]);
        let fault = match descent {
            _ if cuts.null_count() > 0 => "one is NULL".to_owned(),
            _ if cuts.values().iter().any(|c| c.is_nan()) => "one is NaN".to_owned(),
            Some(pair) => format!("{} comes before {}", pair[0], pair[1]),
            None => continue,
        };
        return Err(Error::invalid(format!(
            "the cuts (bin edges) of row {row} must ascend without NULL and NaN, but {fault}; sort them, and remove NULL and NaN"
        )));
    }
    Ok(lists)
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        DictionaryArray, Int8Array, Int32Array, StringArray, StringViewArray, UInt64Array,
    };
    use arrow::datatypes::Int16Type;

    use super::*;

    fn places(keys: ArrayRef, values: ArrayRef) -> Vec<Option<u32>> {
        LookupIndex::try_new(&keys).unwrap().find_places(&values).unwrap().iter().collect()
    }

    #[test]
    fn integers_of_all_widths_are_found() {
        let values: ArrayRef = Arc::new(Int8Array::from(vec![Some(3), Some(-1), None, Some(4)]));
        let close: ArrayRef = Arc::new(UInt64Array::from(vec![Some(4), None, Some(3)]));
        assert_eq!(places(close, Arc::clone(&values)), [Some(2), None, None, Some(0)]);
        let wide: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX, i64::MIN, -1, 3]));
        assert_eq!(places(Arc::clone(&wide), values), [Some(3), Some(2), None, None]);
        let large: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX, i64::MAX as u64]));
        assert_eq!(places(wide, large), [None, Some(0)]);
        let none: ArrayRef = Arc::new(Int32Array::from(Vec::<i32>::new()));
        assert_eq!(places(Arc::clone(&none), Arc::new(Int32Array::from(vec![0]))), [None]);
    }

    #[test]
    fn texts_of_all_encodings_are_found() {
        let keys: ArrayRef = Arc::new(StringViewArray::from(vec![Some("a"), None, Some("b")]));
        let dictionary: DictionaryArray<Int16Type> =
            [Some("b"), None, Some("c"), Some("b")].into_iter().collect();
        assert_eq!(
            places(Arc::clone(&keys), Arc::new(dictionary.clone())),
            [Some(2), None, None, Some(2)]
        );
        // The slice has more dictionary values than elements, so each element is looked up.
        assert_eq!(places(keys, Arc::new(dictionary.slice(0, 1))), [Some(2)]);
    }

    #[test]
    fn what_cannot_be_looked_for_is_refused() {
        let text: ArrayRef = Arc::new(StringArray::from(vec!["a", "a"]));
        let twice = LookupIndex::try_new(&text).unwrap_err().to_string();
        assert!(twice.contains("\"a\" occurs twice"), "{twice}");
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![5, 6, 5]));
        assert!(LookupIndex::try_new(&numbers).unwrap_err().to_string().contains("5 occurs twice"));
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
        assert!(LookupIndex::try_new(&floats).is_err());
        let one: ArrayRef = Arc::new(Int32Array::from(vec![5]));
        assert!(LookupIndex::try_new(&one).unwrap().find_places(&text).is_err());
    }
}
