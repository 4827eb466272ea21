use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, UInt64Array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};

use super::elementwise::{OperandPair, pair_arrays};
use super::times::find_parsed_type;
use super::zones::local_to_instants;
use crate::array::RaggedArray;
use crate::array::exact_casts::cast_strictly;
use crate::error::{Error, Result};

/// Converts values to another type. Returns an error if the type cannot represent a value (0.5 as
/// an integer, a timestamp with a time of day as a date, 300 as a byte), except that a float type
/// rounds floats and decimals (0.1 as float32). Dates and timestamps without a zone become
/// timestamps with a zone as local times in this zone. Nulls stay null. `what` names the values in
/// the error.
pub fn cast_exactly(what: &str, values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let from = values.data_type();
    if from == to {
        return Ok(values.clone());
    }
    let refuse = |why: String| {
        Error::invalid(format!(
            "{what} cannot be converted exactly to {to}{why}; give a value that this type can represent"
        ))
    };
    let cast = |from: &ArrayRef, to| cast_strictly(from, to).map_err(|e| refuse(format!(": {e}")));
    if let DataType::Timestamp(unit, Some(_)) = to
        && matches!(from, DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64)
    {
        let local = cast_exactly(what, values, &DataType::Timestamp(*unit, None))?;
        return local_to_instants(&local, to, false).map_err(|e| refuse(format!(": {e}")));
    }
    let parsed = find_parsed_type(to);
    if from.is_string() && parsed != *to {
        return cast_exactly(what, &cast(values, &parsed)?, to);
    }
    let made = cast(values, to)?;
    // Convert numbers and times back to find those that the cast changed. Strings are not compared,
    // because several strings can mean the same number ("1" and "01").
    let rounds = to.is_floating() && !from.is_integer();
    if rounds && from.is_numeric() {
        let finite = |values: &ArrayRef| -> Result<Vec<bool>> {
            let values = cast(values, &DataType::Float64)?;
            let values = values.as_primitive::<Float64Type>();
            Ok(values.values().iter().map(|x| x.is_finite()).collect())
        };
        if finite(&made)? != finite(values)? {
            return Err(refuse(String::new()));
        }
    }
    if !rounds && (from.is_numeric() || from.is_temporal()) {
        // A value that the original type cannot represent becomes null, and so differs.
        let back = cast_with_options(&made, from, &CastOptions::default())?;
        if *back != **values {
            let differs = |i: &usize| back.slice(*i, 1) != values.slice(*i, 1);
            let found = (0..values.len())
                .find(differs)
                .and_then(|i| arrow::util::display::array_value_to_string(values, i).ok());
            return Err(refuse(found.map_or_else(String::new, |v| format!(": {v}"))));
        }
    }
    Ok(made)
}

/// An integer argument: one integer for all elements of an axis, or one integer per element.
///
/// If there is one integer per element of an outer axis, each integer applies to all elements
/// within its outer element.
#[derive(Clone, Copy, Debug)]
pub enum CountArgument<'a> {
    /// The same integer for all elements.
    All(usize),
    /// One integer per element of the axis, or per element of an outer axis.
    Each(&'a RaggedArray),
}

impl CountArgument<'_> {
    /// Returns the integer for each element of axis `axis` of `array`; `None` if it is null.
    /// Negative integers, values of other types, more levels of lists than `axis`, and lists that
    /// differ from the lists of `array` are errors. `what` names the argument in errors.
    pub(crate) fn expand_to_elements(
        &self,
        what: &str,
        array: &RaggedArray,
        axis: usize,
    ) -> Result<Vec<Option<usize>>> {
        let elements = array.axis_len(axis)?;
        let given = match self {
            Self::All(n) => return Ok(vec![Some(*n); elements]),
            Self::Each(given) => *given,
        };
        let numbers = cast_arg_integers(what, given.leaves())?;
        if given.axes().len() > axis {
            return Err(Error::invalid(format!(
                "{what}: the counts have {} level(s) of lists for axis {axis}; give counts with at most {axis} level(s)",
                given.axes().len()
            )));
        }
        let ids: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..elements as u64));
        let indexed = RaggedArray::try_new(array.len(), array.axes()[..axis].to_vec(), ids)?;
        let OperandPair { left, right, .. } =
            pair_arrays(&indexed, &given.with_leaves(Arc::new(numbers))?)?;
        let (ids, numbers) = (left.as_primitive::<UInt64Type>(), right.as_primitive::<Int64Type>());
        // `ids` has the index of the element for each count in `numbers`. An index occurs twice if
        // a list of one element was paired with a list of several counts, because pairing repeats
        // the element.
        if ids.values().windows(2).any(|w| w[0] == w[1]) {
            return Err(Error::invalid(format!(
                "{what}: on axis {axis}, a list has one element, but its list of counts has several; give one count per element"
            )));
        }
        let mut out = vec![None; elements];
        for (id, number) in ids.values().iter().zip(numbers.iter()) {
            let Some(number) = number else { continue };
            let count = usize::try_from(number).map_err(|_| {
                Error::invalid(format!("{what}: the count {number} is negative; give 0 or more"))
            })?;
            if let Some(slot) = usize::try_from(*id).ok().and_then(|i| out.get_mut(i)) {
                *slot = Some(count);
            }
        }
        Ok(out)
    }
}

/// Returns the width of a value in bits; 64 for types of variable width.
pub(crate) fn find_bit_width(data_type: &DataType) -> usize {
    match data_type {
        DataType::Boolean => 1,
        other => other.primitive_width().unwrap_or(8).saturating_mul(8),
    }
}

pub(crate) fn cast_arg_integers(what: &str, values: &ArrayRef) -> Result<Int64Array> {
    if !values.data_type().is_integer() && !values.data_type().is_null() {
        return Err(Error::type_of(what, "integers (cast the values first)", values.data_type()));
    }
    let wide = cast_strictly(values, &DataType::Int64)?;
    Ok(wide.as_primitive::<Int64Type>().clone())
}
