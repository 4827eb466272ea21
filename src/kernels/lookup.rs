//! Looking values up in a table: by key, and by the bin of a number among the cuts of its key.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, ListArray, UInt32Array, UInt32Builder,
};
use arrow::compute::kernels::cmp;
use arrow::compute::{CastOptions, cast, cast_with_options, concat, nullif, take};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type};

use super::align::aligned;
use super::seeded::Seeded;
use super::text::is_text;
use super::times::{compare_exactly, exact_seconds};
use crate::array::RaggedArray;
use crate::error::{Error, Result};

/// Where each key of a table is.
///
/// Texts and wide integers are in a hash map, integers close to each other in a plain table. Keys that
/// are NULL are not there.
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::{ArrayRef, StringArray, UInt32Array};
/// use serrate::kernels::lookup::Lookup;
///
/// let keys: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
/// let codes: ArrayRef = Arc::new(StringArray::from(vec![Some("b"), Some("?"), None, Some("a")]));
/// let found = Lookup::try_new(&keys)?.places(&codes)?;
/// assert_eq!(found, UInt32Array::from(vec![Some(1), None, None, Some(0)]));
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Debug)]
pub struct Lookup {
    data_type: DataType,
    places: Places,
}

#[derive(Debug)]
enum Places {
    Texts(HashMap<Box<str>, u32>),
    /// By the distance from the first; [`ABSENT`] in between.
    Close {
        first: i64,
        table: Vec<u32>,
    },
    Wide(HashMap<i64, u32, Seeded>),
}

/// No place: tables have fewer rows.
const ABSENT: u32 = u32::MAX;

/// Whether values of one type can be looked for among keys of another.
///
/// # Errors
/// When they cannot; both types are named.
pub fn comparable(values: &DataType, keys: &DataType) -> Result<()> {
    let kind = |t: &DataType| match plain(t) {
        t if is_text(t) => 1,
        t if t.is_integer() => 2,
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => 3,
        _ => 0,
    };
    match (kind(values), kind(keys)) {
        (a, b) if a == b && a > 0 => Ok(()),
        _ if values.is_null() && kind(keys) > 0 => Ok(()),
        (_, 0) => Err(Error::invalid(format!(
            "keys are integers, texts, dates or timestamps; these are {keys}"
        ))),
        _ => Err(Error::invalid(format!("{values} cannot be looked for among keys of {keys}"))),
    }
}

/// The type below a dictionary.
fn plain(t: &DataType) -> &DataType {
    match t {
        DataType::Dictionary(_, values) => plain(values),
        t => t,
    }
}

impl Lookup {
    /// Over the keys of a table.
    ///
    /// # Errors
    /// A key that is there twice, which is named; keys of a type that cannot be looked for; more than
    /// 2^32 - 2 of them.
    pub fn try_new(keys: &ArrayRef) -> Result<Self> {
        comparable(keys.data_type(), keys.data_type())?;
        let rows = u32::try_from(keys.len()).unwrap_or(ABSENT);
        if rows == ABSENT {
            return Err(Error::invalid("a table of more than 2^32 - 2 keys"));
        }
        let data_type = plain(keys.data_type()).clone();
        let twice = |key: &dyn std::fmt::Display| {
            Error::invalid(format!(
                "the key {key} is there twice; take each key once, as SELECT DISTINCT or GROUP BY does"
            ))
        };
        if is_text(&data_type) {
            let texts = cast(keys, &DataType::Utf8)?;
            let texts = texts.as_string::<i32>();
            let mut places = HashMap::with_capacity(texts.len());
            for (text, row) in texts.iter().zip(0..rows) {
                let Some(text) = text else { continue };
                match places.entry(Box::from(text)) {
                    Entry::Occupied(_) => return Err(twice(&format!("{text:?}"))),
                    Entry::Vacant(free) => free.insert(row),
                };
            }
            return Ok(Self { data_type, places: Places::Texts(places) });
        }
        let whole = cast(keys, &data_type)?;
        let numbers = integers(&whole, &data_type)?;
        if numbers.null_count() > whole.null_count() {
            return Err(Error::invalid("keys beyond the signed 64-bit integers"));
        }
        let (mut least, mut most) = (i64::MAX, i64::MIN);
        for number in numbers.iter().flatten() {
            (least, most) = (least.min(number), most.max(number));
        }
        let span = most.checked_sub(least).and_then(|s| usize::try_from(s).ok());
        let places = match span.filter(|s| *s < (1 << 16) + 8 * numbers.len()) {
            Some(span) => {
                let mut table = vec![ABSENT; span + 1];
                for (number, row) in numbers.iter().zip(0..rows) {
                    let Some(number) = number else { continue };
                    let place = usize::try_from(number.wrapping_sub(least)).unwrap_or(0);
                    if std::mem::replace(&mut table[place], row) != ABSENT {
                        return Err(twice(&number));
                    }
                }
                Places::Close { first: least, table }
            }
            None => {
                let mut places =
                    HashMap::with_capacity_and_hasher(numbers.len(), Seeded::default());
                for (number, row) in numbers.iter().zip(0..rows) {
                    let Some(number) = number else { continue };
                    if places.insert(number, row).is_some() {
                        return Err(twice(&number));
                    }
                }
                Places::Wide(places)
            }
        };
        Ok(Self { data_type, places })
    }

    /// The type of the keys; of a dictionary, that of its values.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// The row of each value among the keys; null for a null value and for one that is not there.
    ///
    /// A dictionary with no more values than elements is looked up once per value.
    ///
    /// # Errors
    /// Values of a type that cannot be compared with the keys.
    pub fn places(&self, values: &ArrayRef) -> Result<UInt32Array> {
        comparable(values.data_type(), &self.data_type)?;
        if let Some(dictionary) = values.as_any_dictionary_opt() {
            if dictionary.values().len() <= dictionary.len() {
                let found: ArrayRef = Arc::new(self.places(dictionary.values())?);
                let found = take(&found, dictionary.keys(), None)?;
                return Ok(found.as_primitive().clone());
            }
            return self.places(&take(dictionary.values(), dictionary.keys(), None)?);
        }
        match &self.places {
            Places::Texts(places) => {
                let texts = cast(values, &DataType::Utf8)?;
                let texts = texts.as_string::<i32>();
                Ok(texts.iter().map(|t| t.and_then(|t| places.get(t).copied())).collect())
            }
            Places::Close { first, table } => {
                let numbers = integers(values, &self.data_type)?;
                let find = |number: i64| {
                    let place = usize::try_from(number.checked_sub(*first)?).ok()?;
                    table.get(place).copied().filter(|row| *row != ABSENT)
                };
                Ok(numbers.iter().map(|n| n.and_then(find)).collect())
            }
            Places::Wide(places) => {
                let numbers = integers(values, &self.data_type)?;
                Ok(numbers.iter().map(|n| n.and_then(|n| places.get(&n).copied())).collect())
            }
        }
    }
}

/// Integers, or dates and times in the unit of `of`; null beyond 64 bits.
fn integers(values: &ArrayRef, of: &DataType) -> Result<Int64Array> {
    let options = CastOptions { safe: true, ..CastOptions::default() };
    let values = match of.is_integer() || values.data_type() == of {
        true => Arc::clone(values),
        // A time between two of the unit is none of them.
        false if compare_exactly(values.data_type(), of) => {
            let there = cast_with_options(values, of, &options)?;
            let other = cmp::neq(&exact_seconds(&there)?, &exact_seconds(values)?)?;
            nullif(&there, &other)?
        }
        false => cast_with_options(values, of, &options)?,
    };
    let wide = cast_with_options(&values, &DataType::Int64, &options)?;
    Ok(wide.as_primitive::<Int64Type>().clone())
}

/// What a table says of every leaf: `values` at the row of its key; null where the key is null or not
/// there. Lists are those of the array.
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::{ArrayRef, Float64Array, UInt16Array};
/// use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::lookup::{Lookup, looked_up};
///
/// let keys: ArrayRef = Arc::new(UInt16Array::from(vec![7, 9]));
/// let weights: ArrayRef = Arc::new(Float64Array::from(vec![0.7, 0.9]));
/// // [[9, 7], [8]]
/// let codes = Arc::new(UInt16Array::from(vec![9, 7, 8]));
/// let codes = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], codes)?;
/// let found = looked_up(&codes, &Lookup::try_new(&keys)?, &weights)?;
/// let expected: ArrayRef = Arc::new(Float64Array::from(vec![Some(0.9), Some(0.7), None]));
/// assert_eq!(found.leaves(), &expected);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// As [`Lookup::places`].
pub fn looked_up(array: &RaggedArray, keys: &Lookup, values: &ArrayRef) -> Result<RaggedArray> {
    let places = keys.places(array.leaves())?;
    array.with_leaves(take(values, &places, None)?)
}

/// The bin of every number among the cuts of its code: how many of them are not greater than it, from 0
/// to the number of cuts (`numpy.digitize`). Null where the number is null or NaN, the code is null or
/// not a key, or its cuts are null.
///
/// `codes` has the lists of `values`, or those of its outer axes: then all values below an element are
/// of its code. `cuts` has a list for every key, ascending.
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::{ArrayRef, Float64Array, UInt16Array, UInt32Array};
/// use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::lookup::{Lookup, bins, cuts};
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
/// let found = bins(&values, &codes, &Lookup::try_new(&keys)?, &cuts(&(Arc::new(lists) as _))?)?;
/// let expected: ArrayRef = Arc::new(UInt32Array::from(vec![0, 2, 0, 1]));
/// assert_eq!(found.leaves(), &expected);
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Lists that differ in length, codes with more levels than values, values that are no numbers.
pub fn bins(
    values: &RaggedArray,
    codes: &RaggedArray,
    keys: &Lookup,
    cuts: &ListArray,
) -> Result<RaggedArray> {
    let (levels, outer) = (values.axes().len(), codes.axes().len());
    if outer > levels {
        return Err(Error::invalid(format!(
            "codes have {outer} levels of lists and values {levels}; there is one code for every value, or one for those of a list"
        )));
    }
    let (values, codes) = aligned(values, codes, outer)?;
    let mut places: Vec<Option<u32>> = keys.places(codes.leaves())?.iter().collect();
    for axis in outer + 1..=levels {
        let layout = values.axis(axis)?.layout();
        let lists = places.iter().enumerate();
        places =
            lists.flat_map(|(i, place)| std::iter::repeat_n(*place, layout.length(i))).collect();
    }
    let numbers = cast(values.leaves(), &DataType::Float64)?;
    let numbers = numbers.as_primitive::<Float64Type>();
    let offsets = cuts.value_offsets();
    let limits = cuts.values().as_primitive::<Float64Type>().values();
    let mut out = UInt32Builder::with_capacity(numbers.len());
    for (number, place) in numbers.iter().zip(&places) {
        let place = place.map(|p| p as usize).filter(|p| cuts.is_valid(*p));
        out.append_option(match (number.filter(|n| !n.is_nan()), place) {
            (Some(number), Some(place)) => {
                let start = usize::try_from(offsets[place]).unwrap_or(0);
                let end = usize::try_from(offsets[place + 1]).unwrap_or(0);
                let bin = limits[start..end].partition_point(|limit| *limit <= number);
                u32::try_from(bin).ok()
            }
            _ => None,
        });
    }
    values.with_leaves(Arc::new(out.finish()))
}

/// The cuts of a table as [`bins`] takes them: from lists of numbers, or from structs whose fields are
/// the numbers in their order (`values/quantiles` of MEDS metadata).
///
/// # Errors
/// Cuts that do not ascend, NULL or NaN among them, other types.
pub fn cuts(values: &ArrayRef) -> Result<ListArray> {
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
                .map_err(|e| Error::invalid(format!("cuts are lists of numbers: {e}")))?
                .as_list::<i32>()
                .clone()
        }
        t => return Err(Error::type_of("cuts", "lists of numbers, or structs of them", t)),
    };
    for row in (0..lists.len()).filter(|r| lists.is_valid(*r)) {
        let cuts = lists.value(row);
        let cuts = cuts.as_primitive::<Float64Type>();
        let wrong = cuts.null_count() > 0 || cuts.values().iter().any(|c| c.is_nan());
        if wrong || !cuts.values().is_sorted() {
            return Err(Error::invalid(format!(
                "the cuts of row {row} do not ascend: {:?}",
                cuts.values()
            )));
        }
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
        Lookup::try_new(&keys).unwrap().places(&values).unwrap().iter().collect()
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
        // More values than elements.
        assert_eq!(places(keys, Arc::new(dictionary.slice(0, 1))), [Some(2)]);
    }

    #[test]
    fn what_cannot_be_looked_for_is_refused() {
        let text: ArrayRef = Arc::new(StringArray::from(vec!["a", "a"]));
        let twice = Lookup::try_new(&text).unwrap_err().to_string();
        assert!(twice.contains("\"a\" is there twice"), "{twice}");
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![5, 6, 5]));
        assert!(Lookup::try_new(&numbers).unwrap_err().to_string().contains("5 is there twice"));
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
        assert!(Lookup::try_new(&floats).is_err());
        let one: ArrayRef = Arc::new(Int32Array::from(vec![5]));
        assert!(Lookup::try_new(&one).unwrap().places(&text).is_err());
    }
}
