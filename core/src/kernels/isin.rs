//! Membership of leaves in a set of values.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, BooleanArray, Scalar,
    downcast_primitive, new_empty_array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::kernels::cmp;
use arrow::compute::{CastOptions, cast, cast_with_options, filter, is_not_null};
use arrow::datatypes::{DataType, Float64Type, TimeUnit, UInt8Type, UInt16Type, UInt32Type};

use super::canonical::to_canonical_floats;
use super::dictionary::{look_up, over_values};
use super::text::is_text;
use super::time_texts::complete_texts;
use super::times::{are_whole_microseconds, cast_time, convert_exactly, find_parsed_type};
use super::zones::local_to_instants;
use crate::array::RaggedArray;
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
/// A null leaf gives null, and so does a leaf that is not found if the values contain a null, as in SQL. The
/// values are converted to the type of the leaves; strings are parsed. A number or time that this type cannot
/// represent matches nothing (1.5 or 300 for `uint8` leaves), but a float type rounds floats and decimals, as
/// with `=` and a literal.
/// NaN matches NaN, and 0.0 matches -0.0. If the leaves are a dictionary, each of its values is tested once.
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
/// When values and leaves cannot be compared, or a string cannot be parsed.
pub fn isin(array: &RaggedArray, values: &ArrayRef) -> Result<RaggedArray> {
    let leaves = array.leaves();
    if leaves.data_type().is_null() {
        return array.with_leaves(Arc::new(BooleanArray::new_null(leaves.len())));
    }
    check_types(leaves.data_type(), values.data_type())?;
    if must_compare_as_floats(value_type(leaves.data_type()), values)? {
        let floats = cast(&cast(leaves, value_type(leaves.data_type()))?, &DataType::Float64)?;
        return array.with_leaves(Arc::new(
            SearchSet::new(&DataType::Float64, values)?.find_each(&floats)?,
        ));
    }
    if let Some(t) = find_zone_of_values(value_type(leaves.data_type()), values.data_type()) {
        let local = cast(leaves, value_type(leaves.data_type()))?;
        let instants = local_to_instants(&local, &t, false)?;
        return array.with_leaves(Arc::new(SearchSet::new(&t, values)?.find_each(&instants)?));
    }
    let wanted = SearchSet::new(value_type(leaves.data_type()), values)?;
    array.with_leaves(Arc::new(over_values(leaves, |leaves| wanted.find_each(leaves))?))
}

/// Checks that values of one type can be searched for among leaves of another.
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
/// When the types cannot be compared; the message names both.
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
            "the values to search for",
            format!("a type that compares with {leaf}, the type of the leaves (cast the values)"),
            value,
        )),
    }
}

/// Returns whether leaves and values must be compared as floats, as with `=`: decimals with floats,
/// or 64-bit integers with a float of magnitude 2^53 or more, which equals several integers.
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

/// If only the values have a time zone, returns the type of the leaves with this zone, because `=`
/// also reads such leaves as local times in the zone of the other operand. Otherwise returns
/// `None`.
fn find_zone_of_values(leaf: &DataType, values: &DataType) -> Option<DataType> {
    match (leaf, value_type(values)) {
        (DataType::Timestamp(unit, None), DataType::Timestamp(_, Some(zone))) => {
            Some(DataType::Timestamp(*unit, Some(Arc::clone(zone))))
        }
        _ => None,
    }
}

/// Converts local times to instants of the timestamp type `leaf`, and drops times that `leaf`
/// cannot represent. Returns the values unchanged if `leaf` has no zone.
fn convert_local_values(values: &ArrayRef, leaf: &DataType) -> Result<ArrayRef> {
    let DataType::Timestamp(unit, Some(_)) = leaf else { return Ok(Arc::clone(values)) };
    let local = cast(values, &DataType::Timestamp(*unit, None))?;
    let kept = cmp::eq(&cast(&local, values.data_type())?, values)?;
    let instants = local_to_instants(&filter(&local, &kept)?, leaf, true)?;
    Ok(filter(&instants, &is_not_null(&instants)?)?)
}

fn is_span(t: &DataType) -> bool {
    matches!(t, DataType::Duration(_) | DataType::Interval(_))
}

fn is_timestamp(t: &DataType) -> bool {
    matches!(t, DataType::Timestamp(..))
}

fn value_type(t: &DataType) -> &DataType {
    match t {
        DataType::Dictionary(_, values) => value_type(values),
        other => other,
    }
}

/// The values to search for, in the type of the leaves and without nulls.
struct SearchSet {
    values: ArrayRef,
    /// Whether the values contained a null. If so, a leaf that is not found gives null instead of false.
    unknown: bool,
}

impl SearchSet {
    fn new(leaf: &DataType, values: &ArrayRef) -> Result<Self> {
        let mut values = cast(values, value_type(values.data_type()))?;
        let unknown = values.logical_null_count() > 0;
        if unknown {
            values = filter(&values, &is_not_null(&values)?)?;
        }
        let parsed = find_parsed_type(leaf);
        if is_text(values.data_type()) && (parsed != *leaf || is_timestamp(leaf)) {
            let strict = CastOptions { safe: false, ..CastOptions::default() };
            let texts = complete_texts(&values, &parsed)?;
            values = match cast_time(&texts, &parsed) {
                Some(found) => found?,
                None => cast_with_options(&texts, &parsed, &strict)?,
            };
            // A string with nanoseconds equals no leaf in a coarser unit, so drop the string.
            if matches!(parsed, DataType::Timestamp(TimeUnit::Microsecond, _)) {
                values = filter(&values, &are_whole_microseconds(&texts)?)?;
            }
        }
        if matches!(values.data_type(), DataType::Timestamp(_, None)) {
            values = convert_local_values(&values, leaf)?;
        }
        let given = values.data_type().clone();
        let to = if is_text(leaf) { &DataType::Utf8 } else { leaf };
        if given.is_integer() && matches!(to, DataType::Float16 | DataType::Float32) {
            values = keep_exact(&values, to)?;
        } else if given.is_null() {
            // All values of an array of type `Null` were nulls, so there is no value to search for.
            values = new_empty_array(to);
        } else if is_span(&given) && is_span(to) && given != *to {
            let converted = convert_exactly(&values, to)?;
            values = filter(&converted, &is_not_null(&converted)?)?;
        } else if given != *to {
            // A string that cannot be parsed is an error. A number that the type `to` cannot
            // represent becomes null, and equals no leaf.
            let strict = is_text(&given) || is_text(leaf);
            let options = CastOptions { safe: !strict, ..CastOptions::default() };
            let converted = cast_with_options(&values, to, &options)?;
            // Floats and decimals are rounded to the type of float leaves, and integers to float64.
            // Other values that the cast changes equal no leaf, so drop them.
            let nearest = leaf.is_floating() && given.is_numeric();
            values = match strict || nearest {
                true => converted,
                false => {
                    // Arrow distinguishes -0.0, which is 0 for integer leaves, from 0.0.
                    let back = to_canonical_floats(&cast(&converted, &given)?)?;
                    filter(&converted, &cmp::eq(&back, &to_canonical_floats(&values)?)?)?
                }
            };
        }
        Ok(Self { values, unknown })
    }

    fn find_each(&self, leaves: &ArrayRef) -> Result<BooleanArray> {
        let (values, t) = (&self.values, leaves.data_type());
        let bits = match t {
            // For a dictionary, the caller passes its values, which can be a dictionary, too.
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
        if self.unknown {
            nulls = NullBuffer::union(nulls.as_ref(), Some(&NullBuffer::new(bits.clone())));
        }
        Ok(BooleanArray::new(bits, nulls))
    }
}

/// Converts integers to float64 and then to the float type `to`. Drops each integer whose float64
/// is not a value of `to`, such as 16777217 for float32.
fn keep_exact(integers: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let doubles = cast(integers, &DataType::Float64)?;
    let floats = cast(&doubles, to)?;
    let back = cast(&floats, &DataType::Float64)?;
    Ok(filter(&floats, &cmp::eq(&back, &doubles)?)?)
}

/// Builds a bitmap in which bit `v` is set for each value `v`. Returns `None` if a value is [`BITMAP_LIMIT`]
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

/// Compares the leaves with one value after the other, for types without a faster search.
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
        Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array, Int32Array,
        Int64Array, NullArray, StringArray, TimestampMicrosecondArray, UInt8Array, UInt32Array,
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
        // A bitmap for these large values would cost too much for one leaf, so another search is used.
        for t in [DataType::UInt8, DataType::UInt16, DataType::UInt32] {
            let leaves = cast(&UInt8Array::from(vec![200]), &t).unwrap();
            let values = Int64Array::from(vec![200, 255, 60_000, 1 << 19]);
            assert_eq!(found(leaves.clone(), values), [YES], "{t}");
            assert_eq!(found(leaves, Int64Array::from(vec![201, 60_000, 1 << 19])), [NO], "{t}");
        }
        // Floats to search for are rounded to the type of the float leaves, as with `=`; integers are not.
        let floats = || Float32Array::from(vec![16_777_216.0, 0.1, f32::INFINITY]);
        assert_eq!(found(floats(), Int64Array::from(vec![16_777_217])), [NO, NO, NO]);
        assert_eq!(found(floats(), Int64Array::from(vec![16_777_216])), [YES, NO, NO]);
        assert_eq!(found(floats(), Float64Array::from(vec![0.1])), [NO, YES, NO]);
        let decimal = |digits: i128, scale: i8| {
            Decimal128Array::from(vec![digits]).with_precision_and_scale(38, scale).unwrap()
        };
        for tenth in [decimal(1, 1), decimal(1_000_000_001, 10)] {
            assert_eq!(found(floats(), tenth), [NO, YES, NO]);
        }
        assert_eq!(found(floats(), decimal(167_772_170, 1)), [YES, NO, NO]);
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
        assert_eq!(found(leaves(), Float64Array::from(vec![0.1, f64::NAN])), [NO, NO, YES, YES]);
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
