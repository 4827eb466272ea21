//! Tests whether each leaf is one of a set of values, like `IN` in SQL.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, BooleanArray, Float64Array,
    Scalar, downcast_primitive, new_empty_array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::kernels::cmp;
use arrow::compute::{cast, filter, is_not_null};
use arrow::datatypes::{DataType, Float64Type, TimeUnit, UInt8Type, UInt16Type, UInt32Type};

use super::dictionary_predicate::{look_up, over_values, value_type};
use super::elementwise::spans::is_span;
use super::text::{is_overflow, is_text};
use super::time_texts::complete_texts;
use super::times::{are_whole_microseconds, cast_time, convert_exactly, find_parsed_type};
use super::zones::local_to_instants;
use crate::array::RaggedArray;
use crate::array::canonical::to_canonical_floats;
use crate::array::exact_casts::{cast_nearest, cast_strictly};
use crate::error::{Error, Result};

macro_rules! among_primitives {
    ($t:ty, $leaves:ident, $values:ident) => {
        find_in_sorted::<$t>($leaves, $values)
    };
}

/// Unsigned leaves are looked up in a bitmap only if all values to search for are below this limit.
const BITMAP_LIMIT: u32 = 1 << 20;

/// Returns whether each leaf is one of `values`, a flat array (`IN` of SQL).
///
/// Shares the lists of the array.
///
/// A null leaf gives null, and so does a leaf that is not found if the values contain a null, as in
/// SQL. The values are converted to the type of the leaves; strings are parsed. A number or time
/// among the values that the type of the leaves cannot represent matches nothing (1.5 or 300 for
/// `uint8` leaves, the `float64` 0.1 for `float32` leaves). A float and an integer or decimal
/// compare as `float64`, as with `=`. NaN matches NaN, and 0.0 matches -0.0. If the leaves are a
/// dictionary, each of its values is tested once.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// use arrow::array::{ArrayRef, BooleanArray, StringArray};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::isin::isin;
/// let codes = Arc::new(StringArray::from(vec!["a", "b", "c"]));
/// let codes = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], codes)?;
/// let wanted: ArrayRef = Arc::new(StringArray::from(vec!["c", "a"]));
/// let found = isin(&codes, &wanted)?;
/// assert_eq!(found.leaves().as_ref(), &BooleanArray::from(vec![true, false, true]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If values and leaves cannot be compared, or a string cannot be parsed.
pub fn isin(array: &RaggedArray, values: &ArrayRef) -> Result<RaggedArray> {
    let leaves = array.leaves();
    if leaves.data_type().is_null() {
        return array.with_leaves(Arc::new(BooleanArray::new_null(leaves.len())));
    }
    check_types(leaves.data_type(), values.data_type())?;
    let leaf = value_type(leaves.data_type());
    if must_compare_as_floats(leaf, values)? {
        let floats = cast_strictly(&cast(leaves, leaf)?, &DataType::Float64)?;
        let wanted = SearchSet::new(&DataType::Float64, values)?;
        return array.with_leaves(Arc::new(wanted.find_each(&floats)?));
    }
    if let Some(zoned) = find_zone_of_values(leaf, values.data_type()) {
        let instants = local_to_instants(&cast(leaves, leaf)?, &zoned, false)?;
        let wanted = SearchSet::new(&zoned, values)?;
        return array.with_leaves(Arc::new(wanted.find_each(&instants)?));
    }
    let wanted = SearchSet::new(leaf, values)?;
    array.with_leaves(Arc::new(over_values(leaves, |leaves| wanted.find_each(leaves))?))
}

/// Checks that leaves of the type `leaves` can be compared with values of the type `values`.
///
/// ```
/// # use serrate_core as serrate;
/// # use arrow::datatypes::DataType;
/// use serrate::kernels::isin::check_types;
/// assert!(check_types(&DataType::Int32, &DataType::Int64).is_ok());
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the types cannot be compared; the message names both.
#[doc(hidden)]
pub fn check_types(leaves: &DataType, values: &DataType) -> Result<()> {
    let (leaf, value) = (value_type(leaves), value_type(values));
    let time =
        |t: &DataType| matches!(t, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..));
    // Reject interval leaves: Arrow compares intervals by field, so 1 day would not equal 24 hours.
    let scalar =
        !leaf.is_nested() && !matches!(leaf, DataType::RunEndEncoded(..) | DataType::Interval(_));
    let fits = leaf.is_null()
        || value.is_null()
        || leaf == value
        || (is_text(leaf) && is_text(value))
        || (leaf.is_numeric() && value.is_numeric())
        || (time(leaf) && time(value))
        || (matches!(leaf, DataType::Duration(_)) && is_span(value))
        || (is_text(value)
            && (leaf.is_numeric() || leaf.is_temporal() || *leaf == DataType::Boolean));
    match scalar && fits {
        true => Ok(()),
        false => Err(Error::type_of(
            format!("the values to search for among leaves of type {leaf}"),
            format!("a type that compares with {leaf} (cast the values first)"),
            value,
        )),
    }
}

/// Rounds floats and decimals, the literals to search for among `Float16` or `Float32` leaves, to
/// the type of these leaves, so that [`isin`] compares them as `=` compares a literal.
///
/// Returns the rounded literals as `Float64`. A finite literal that would become infinite is not
/// rounded. Literals of other types, and literals for leaves of other types, are returned
/// unchanged.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// use arrow::array::{ArrayRef, AsArray, Float64Array, types::Float64Type};
/// use arrow::datatypes::DataType;
/// use serrate::kernels::isin::round_literals;
/// let literals: ArrayRef = Arc::new(Float64Array::from(vec![0.1]));
/// let rounded = round_literals(&literals, &DataType::Float32)?;
/// assert_eq!(rounded.as_primitive::<Float64Type>().value(0), f64::from(0.1f32));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If a cast fails.
#[doc(hidden)]
pub fn round_literals(literals: &ArrayRef, leaves: &DataType) -> Result<ArrayRef> {
    let (leaf, given) = (value_type(leaves), value_type(literals.data_type()));
    let is_rounded = matches!(leaf, DataType::Float16 | DataType::Float32)
        && (given.is_floating() || given.is_decimal());
    if !is_rounded {
        return Ok(Arc::clone(literals));
    }
    let doubles = cast(&cast(literals, given)?, &DataType::Float64)?;
    let rounded = cast(&cast(&doubles, leaf)?, &DataType::Float64)?;
    let pairs = doubles.as_primitive::<Float64Type>().iter();
    let pairs = pairs.zip(rounded.as_primitive::<Float64Type>());
    let choose = |(x, near): (Option<f64>, Option<f64>)| match (x, near) {
        (Some(finite), Some(y)) if finite.is_finite() && y.is_infinite() => x,
        _ => near,
    };
    Ok(Arc::new(pairs.map(choose).collect::<Float64Array>()))
}

/// Whether `=` compares leaves of type `leaf` and `values` as `float64`: decimals with floats, and
/// 64-bit integers with a float of 2^53 or more, which equals several integers.
fn must_compare_as_floats(leaf: &DataType, values: &ArrayRef) -> Result<bool> {
    if leaf.is_decimal() && value_type(values.data_type()).is_floating() {
        return Ok(true);
    }
    if !matches!(leaf, DataType::Int64 | DataType::UInt64)
        || !value_type(values.data_type()).is_floating()
    {
        return Ok(false);
    }
    let values = cast(values, value_type(values.data_type()))?;
    let values = cast(&values, &DataType::Float64)?;
    let large = |x: f64| x.is_finite() && x.abs() >= 2f64.powi(53);
    Ok(values.as_primitive::<Float64Type>().iter().flatten().any(large))
}

/// Returns the type of the leaves with the zone of the values if only the values have a zone, else
/// `None`. Like `=`, `IN` then reads the leaves as local times in this zone.
fn find_zone_of_values(leaf: &DataType, values: &DataType) -> Option<DataType> {
    match (leaf, value_type(values)) {
        (DataType::Timestamp(unit, None), DataType::Timestamp(_, Some(zone))) => {
            Some(DataType::Timestamp(*unit, Some(Arc::clone(zone))))
        }
        _ => None,
    }
}

/// Reads timestamps without a zone as local times in the zone of `leaf`, if it has one, and drops
/// those that the type `leaf` cannot represent.
fn convert_local_values(values: &ArrayRef, leaf: &DataType) -> Result<ArrayRef> {
    let DataType::Timestamp(unit, Some(_)) = leaf else { return Ok(Arc::clone(values)) };
    let local = cast(values, &DataType::Timestamp(*unit, None))?;
    let kept = cmp::eq(&cast(&local, values.data_type())?, values)?;
    let instants = local_to_instants(&filter(&local, &kept)?, leaf, true)?;
    Ok(filter(&instants, &is_not_null(&instants)?)?)
}

fn is_timestamp(t: &DataType) -> bool {
    matches!(t, DataType::Timestamp(..))
}

/// The values to search for, in the type of the leaves and without nulls.
struct SearchSet {
    values: ArrayRef,
    has_null: bool,
}

impl SearchSet {
    fn new(leaf: &DataType, values: &ArrayRef) -> Result<Self> {
        let mut values = cast(values, value_type(values.data_type()))?;
        let has_null = values.logical_null_count() > 0;
        if has_null {
            values = filter(&values, &is_not_null(&values)?)?;
        }
        let parsed = find_parsed_type(leaf);
        if is_text(values.data_type()) && (parsed != *leaf || is_timestamp(leaf)) {
            values = parse_times(&values, &parsed)?;
        }
        if matches!(values.data_type(), DataType::Timestamp(_, None)) {
            values = convert_local_values(&values, leaf)?;
        }
        let values = convert_values(&values, leaf)?;
        Ok(Self { values, has_null })
    }

    fn find_each(&self, leaves: &ArrayRef) -> Result<BooleanArray> {
        let (values, t) = (&self.values, leaves.data_type());
        let bits = match t {
            DataType::Dictionary(..) => return over_values(leaves, |l| self.find_each(l)),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                let set: HashSet<&str> = values.as_string::<i32>().iter().flatten().collect();
                let found = |text: Option<&str>| text.is_some_and(|t| set.contains(t));
                match t {
                    DataType::Utf8 => leaves.as_string::<i32>().iter().map(found).collect(),
                    DataType::LargeUtf8 => leaves.as_string::<i64>().iter().map(found).collect(),
                    _ => leaves.as_string_view().iter().map(found).collect(),
                }
            }
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => {
                match build_bitmap(values, leaves.len())? {
                    Some(bitmap) => look_up(leaves, &bitmap)?,
                    None => match t {
                        DataType::UInt8 => find_in_sorted::<UInt8Type>(leaves, values),
                        DataType::UInt16 => find_in_sorted::<UInt16Type>(leaves, values),
                        _ => find_in_sorted::<UInt32Type>(leaves, values),
                    },
                }
            }
            _ => downcast_primitive! {
                t => (among_primitives, leaves, values),
                _ => compare_each_value(leaves, values)?
            },
        };
        let mut nulls = leaves.logical_nulls();
        // A leaf that is not found could equal the null, so it gives null.
        if self.has_null {
            nulls = NullBuffer::union(nulls.as_ref(), Some(&NullBuffer::new(bits.clone())));
        }
        Ok(BooleanArray::new(bits, nulls))
    }
}

/// Parses strings as values of the type `parsed`, and drops those that equal no leaf because they
/// have nanoseconds.
fn parse_times(texts: &ArrayRef, parsed: &DataType) -> Result<ArrayRef> {
    let texts = complete_texts(texts, parsed)?;
    let times = match cast_time(&texts, parsed) {
        Some(times) => times?,
        None => cast_strictly(&texts, parsed)?,
    };
    match parsed {
        // The leaves have this unit or a coarser one.
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Ok(filter(&times, &are_whole_microseconds(&texts)?)?)
        }
        _ => Ok(times),
    }
}

/// Converts values without nulls to the type of the leaves, or to Utf8 for leaves that are strings.
/// Drops values that equal no leaf.
fn convert_values(values: &ArrayRef, leaf: &DataType) -> Result<ArrayRef> {
    let given = values.data_type();
    let to = if is_text(leaf) { &DataType::Utf8 } else { leaf };
    if given == to {
        return Ok(Arc::clone(values));
    }
    if given.is_numeric() && matches!(to, DataType::Float16 | DataType::Float32) {
        return keep_exact(values, to);
    }
    if given.is_null() {
        return Ok(new_empty_array(to));
    }
    if is_span(given) && is_span(to) {
        let converted = convert_exactly(values, to)?;
        return Ok(filter(&converted, &is_not_null(&converted)?)?);
    }
    // A number that `to` cannot represent becomes null, and is dropped below.
    let strict = is_text(given) || is_text(leaf);
    let converted = cast_nearest(values, to, !strict)?;
    if is_text(given) && leaf.is_floating() {
        return drop_overflows(values, &converted);
    }
    // Numbers are compared with float64 leaves as float64, so rounding by the cast is right. Any
    // other value that the cast changes equals no leaf, so drop it.
    if strict || leaf.is_floating() && given.is_numeric() {
        return Ok(converted);
    }
    // Arrow's `eq` distinguishes -0.0 from 0.0, but the integer 0 equals both.
    let back = to_canonical_floats(&cast(&converted, given)?)?;
    Ok(filter(&converted, &cmp::eq(&back, &to_canonical_floats(values)?)?)?)
}

/// Drops each number whose float64 is not a value of `to`, such as 16777217 and 0.1 for float32.
fn keep_exact(numbers: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    // Arrow's `eq` distinguishes -0.0 from 0.0, and NaN with different bits.
    let doubles = to_canonical_floats(&cast(numbers, &DataType::Float64)?)?;
    let floats = cast(&doubles, to)?;
    let back = to_canonical_floats(&cast(&floats, &DataType::Float64)?)?;
    Ok(filter(&floats, &cmp::eq(&back, &doubles)?)?)
}

/// Drops the floats that are infinite because the numbers in their strings are beyond the range of
/// their type.
fn drop_overflows(texts: &ArrayRef, floats: &ArrayRef) -> Result<ArrayRef> {
    let (texts, doubles) = (cast(texts, &DataType::Utf8)?, cast(floats, &DataType::Float64)?);
    let pairs = texts.as_string::<i32>().iter().zip(doubles.as_primitive::<Float64Type>());
    let fits = |(text, x): (Option<&str>, Option<f64>)| match (text, x) {
        (Some(text), Some(x)) => !is_overflow(text, x),
        _ => true,
    };
    let kept: BooleanArray = pairs.map(|pair| Some(fits(pair))).collect();
    Ok(filter(floats, &kept)?)
}

/// Returns a bitmap with the bits of the values set. Returns `None` if a value is [`BITMAP_LIMIT`]
/// or more, or if the bitmap would have more than about 64 bits per leaf.
fn build_bitmap(values: &ArrayRef, leaves: usize) -> Result<Option<BooleanBuffer>> {
    let values = cast(values, &DataType::UInt32)?;
    let values = values.as_primitive::<UInt32Type>().values();
    let most = values.iter().copied().max().unwrap_or(0);
    if most >= BITMAP_LIMIT || most as usize / 64 > leaves {
        return Ok(None);
    }
    let mut bits = vec![false; most as usize + 1];
    values.iter().for_each(|v| bits[*v as usize] = true);
    Ok(Some(BooleanBuffer::from(bits)))
}

fn find_in_sorted<T: ArrowPrimitiveType>(leaves: &ArrayRef, values: &ArrayRef) -> BooleanBuffer {
    // Adding zero turns -0.0 into 0.0 and changes nothing else.
    let one_zero = |v: T::Native| v.add_wrapping(T::Native::ZERO);
    let mut set: Vec<T::Native> =
        values.as_primitive::<T>().values().iter().map(|v| one_zero(*v)).collect();
    set.sort_unstable_by(|a, b| a.compare(*b));
    set.dedup_by(|a, b| a.is_eq(*b));
    // All NaN match each other, regardless of their bits.
    let is_nan = |v: T::Native| v.partial_cmp(&v).is_none();
    let nan = set.iter().any(|v| is_nan(*v));
    let leaves = leaves.as_primitive::<T>().values();
    match set.as_slice() {
        [] => BooleanBuffer::new_unset(leaves.len()),
        few if few.len() <= 4 => BooleanBuffer::collect_bool(leaves.len(), |i| {
            let leaf = one_zero(leaves[i]);
            few.iter().fold(nan & is_nan(leaf), |found, v| found | v.is_eq(leaf))
        }),
        many => BooleanBuffer::collect_bool(leaves.len(), |i| {
            let leaf = one_zero(leaves[i]);
            (nan && is_nan(leaf)) || many.binary_search_by(|v| v.compare(leaf)).is_ok()
        }),
    }
}

/// For types without a faster search: compares all leaves with one value after the other.
fn compare_each_value(leaves: &ArrayRef, values: &ArrayRef) -> Result<BooleanBuffer> {
    let mut found = BooleanBuffer::new_unset(leaves.len());
    for i in 0..values.len() {
        let equal = cmp::eq(leaves, &Scalar::new(values.slice(i, 1)))?;
        found = &found | equal.values();
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        Date32Array, Decimal128Array, Float32Array, Int8Array, Int32Array, Int64Array, NullArray,
        StringArray, TimestampMicrosecondArray, UInt8Array, UInt32Array,
    };

    use super::*;
    use crate::array::Offsets;

    fn found(leaves: impl Array + 'static, values: impl Array + 'static) -> Vec<Option<bool>> {
        let (leaves, values): (ArrayRef, ArrayRef) = (Arc::new(leaves), Arc::new(values));
        let axes = vec![Offsets::from_lengths([leaves.len(), 0]).unwrap().into()];
        let array = RaggedArray::try_new(2, axes, leaves).unwrap();
        let out = isin(&array, &values).unwrap();
        assert_eq!(out.lengths(1).unwrap(), array.lengths(1).unwrap());
        out.leaves().as_boolean().iter().collect()
    }

    const YES: Option<bool> = Some(true);
    const NO: Option<bool> = Some(false);

    #[test]
    fn text_is_found_in_every_encoding() {
        let texts = StringArray::from(vec![Some("a"), None, Some("b"), Some("")]);
        for t in [
            DataType::Utf8,
            DataType::LargeUtf8,
            DataType::Utf8View,
            DataType::Dictionary(Box::new(DataType::Int16), Box::new(DataType::Utf8View)),
        ] {
            let leaves = cast(&texts, &t).unwrap();
            for v in [DataType::Utf8, DataType::LargeUtf8, t.clone()] {
                let values = cast(&StringArray::from(vec!["c", "b", "b"]), &v).unwrap();
                assert_eq!(found(leaves.clone(), values), [NO, None, YES, NO], "{t} {v}");
            }
            let none = StringArray::from(Vec::<&str>::new());
            assert_eq!(found(leaves.clone(), none), [NO, None, NO, NO]);
            let nulls = StringArray::from(vec![None, Some("a")]);
            assert_eq!(found(leaves.clone(), nulls), [YES, None, None, None]);
            assert_eq!(found(leaves.clone(), NullArray::new(1)), [None; 4]);
        }
    }

    #[test]
    fn numbers_take_the_type_of_the_leaves() {
        let bytes = || UInt8Array::from(vec![Some(0), Some(2), None, Some(255)]);
        assert_eq!(found(bytes(), Int64Array::from(vec![255, 300, -1])), [NO, NO, None, YES]);
        assert_eq!(found(bytes(), Float64Array::from(vec![1.5, 2.0])), [NO, YES, None, NO]);
        assert_eq!(found(bytes(), Int64Array::from(vec![300])), [NO, NO, None, NO]);
        assert_eq!(found(bytes(), StringArray::from(vec!["2"])), [NO, YES, None, NO]);
        assert_eq!(found(bytes(), Float64Array::from(vec![-0.0])), [YES, NO, None, NO]);
        let tokens = || UInt32Array::from(vec![7, u32::MAX, 1 << 20]);
        assert_eq!(found(tokens(), Int64Array::from(vec![7, 8])), [YES, NO, NO]);
        assert_eq!(found(tokens(), Int64Array::from(vec![7, 1 << 20])), [YES, NO, YES]);
        assert_eq!(found(tokens(), Int64Array::from(vec![-1])), [NO, NO, NO]);
        // For one leaf, a bitmap up to the largest value costs too much; sorted values are used.
        for t in [DataType::UInt8, DataType::UInt16, DataType::UInt32] {
            let leaves = cast(&UInt8Array::from(vec![200]), &t).unwrap();
            let values = Int64Array::from(vec![200, 255, 60_000, 1 << 19]);
            assert_eq!(found(leaves.clone(), values), [YES], "{t}");
            assert_eq!(found(leaves, Int64Array::from(vec![201, 60_000, 1 << 19])), [NO], "{t}");
        }
        // Float32 leaves and numbers compare as float64, so no leaf equals 16777217 or 0.1.
        let floats = || Float32Array::from(vec![16_777_216.0, 0.1, f32::INFINITY]);
        assert_eq!(found(floats(), Int64Array::from(vec![16_777_217])), [NO, NO, NO]);
        assert_eq!(found(floats(), Int64Array::from(vec![16_777_216])), [YES, NO, NO]);
        assert_eq!(found(floats(), Float64Array::from(vec![0.1, 1e300])), [NO, NO, NO]);
        let exact = Float64Array::from(vec![f64::from(0.1f32), f64::INFINITY]);
        assert_eq!(found(floats(), exact), [NO, YES, YES]);
        let decimal = |digits: i128, scale: i8| {
            Decimal128Array::from(vec![digits]).with_precision_and_scale(38, scale).unwrap()
        };
        for tenth in [decimal(1, 1), decimal(1_000_000_001, 10)] {
            assert_eq!(found(floats(), tenth), [NO, NO, NO]);
        }
        assert_eq!(found(floats(), decimal(167_772_170, 1)), [NO, NO, NO]);
        assert_eq!(found(floats(), decimal(167_772_160, 1)), [YES, NO, NO]);
        let nearly_one = decimal(10i128.pow(20) + 1, 20);
        assert_eq!(found(Float64Array::from(vec![1.0, 0.5]), nearly_one), [YES, NO]);
        let many: Vec<i64> = (0..100).map(|i| i * 3 - 60).collect();
        let signed = Int8Array::from(vec![-60, -59, -128, 3]);
        assert_eq!(found(signed, Int64Array::from(many)), [YES, NO, NO, YES]);
    }

    #[test]
    fn floats_find_nan_and_both_zeros() {
        let leaves = || Float32Array::from(vec![0.0, -0.0, f32::NAN, 0.1]);
        assert_eq!(found(leaves(), Float64Array::from(vec![0.0])), [YES, YES, NO, NO]);
        assert_eq!(found(leaves(), Float64Array::from(vec![-0.0])), [YES, YES, NO, NO]);
        let literals: ArrayRef =
            Arc::new(Float64Array::from(vec![Some(0.1), Some(f64::NAN), None]));
        let rounded = round_literals(&literals, &DataType::Float32).unwrap();
        assert_eq!(found(leaves(), rounded), [None, None, YES, YES]);
        let large: ArrayRef = Arc::new(Float64Array::from(vec![1e300]));
        let rounded = round_literals(&large, &DataType::Float32).unwrap();
        assert_eq!(found(Float32Array::from(vec![f32::INFINITY]), rounded), [NO]);
        let many = [0.5, 1.5, 2.5, 3.5, -0.0, f64::NAN].to_vec();
        assert_eq!(found(leaves(), Float64Array::from(many.clone())), [YES, YES, YES, NO]);
        let other = Float32Array::from(vec![-f32::NAN]);
        assert_eq!(found(other.clone(), Float64Array::from(vec![f64::NAN])), [YES]);
        assert_eq!(found(other, Float64Array::from(many)), [YES]);
    }

    #[test]
    fn times_truth_and_the_rest() {
        let times = || TimestampMicrosecondArray::from(vec![0, 86_400_000_000, 1]);
        assert_eq!(found(times(), Date32Array::from(vec![1])), [NO, YES, NO]);
        assert_eq!(found(times(), StringArray::from(vec!["1970-01-02"])), [NO, YES, NO]);
        let days = Date32Array::from(vec![0, 1]);
        assert_eq!(found(days, times()), [YES, YES]);
        let truth = || BooleanArray::from(vec![Some(true), Some(false), None]);
        assert_eq!(found(truth(), BooleanArray::from(vec![true])), [YES, NO, None]);
        let decimal = || Decimal128Array::from(vec![100, 250]);
        assert_eq!(found(decimal(), decimal().slice(1, 1)), [NO, YES]);
        let bytes = || arrow::array::BinaryArray::from(vec![b"a".as_ref(), b"b"]);
        assert_eq!(found(bytes(), bytes().slice(1, 1)), [NO, YES]);
        assert_eq!(found(NullArray::new(2), Int64Array::from(vec![1])), [None, None]);
    }

    #[test]
    fn nothing_is_among_no_values_and_null_may_be_anything() {
        let leaves = Int32Array::from(vec![Some(1), None]);
        assert_eq!(found(leaves.clone(), NullArray::new(0)), [Some(false), None]);
        assert_eq!(found(leaves, NullArray::new(2)), [None, None]);
        assert_eq!(found(StringArray::from(vec!["a"]), NullArray::new(1)), [None]);
    }

    #[test]
    fn types_that_do_not_meet_are_refused() {
        assert!(check_types(&DataType::Utf8, &DataType::Int64).is_err());
        assert!(check_types(&DataType::Boolean, &DataType::Int64).is_err());
        assert!(check_types(&DataType::new_list(DataType::Int8, true), &DataType::Int8).is_err());
        let array = RaggedArray::try_new(1, vec![], Arc::new(Int64Array::from(vec![1]))).unwrap();
        let text: ArrayRef = Arc::new(StringArray::from(vec!["one"]));
        assert!(isin(&array, &text).is_err());
    }
}
