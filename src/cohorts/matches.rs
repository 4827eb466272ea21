//! Finds the measurements of a shard that match plain predicates: conditions on one measurement.

use std::fmt;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, Float32Array, Scalar as One, StringArray,
};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::cmp;
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type, UInt32Type};
use regex::Regex;

use crate::error::{Error, Result};
use crate::table::RaggedTable;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ConfigScalar {
    Text(String),
    Bool(bool),
    Integer(i64),
    Float(f64),
}

impl fmt::Display for ConfigScalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Bool(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum CodePattern {
    One(String),
    Any(Vec<String>),
    /// Codes that contain a match of the regular expression.
    Regex(Regex),
}

impl CodePattern {
    fn matches_code(&self, code: &str) -> bool {
        match self {
            Self::One(own) => own == code,
            Self::Any(all) => all.iter().any(|own| own == code),
            Self::Regex(regex) => regex.is_match(code),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct ValueBound {
    limit: f64,
    inclusive: bool,
    text: String,
}

impl ValueBound {
    /// Rounds a limit with decimals to 32 bits, as ACES does, because values of MEDS are 32-bit
    /// floats: a limit of 98.6 then includes a value of 98.6. A limit that is an integer is
    /// compared exactly.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "limits are rounded to the precision in which they are compared"
    )]
    pub(super) fn new(value: &ConfigScalar, inclusive: bool) -> Self {
        let limit = match value {
            ConfigScalar::Integer(value) => *value as f64,
            ConfigScalar::Float(value) => f64::from(*value as f32),
            ConfigScalar::Text(_) | ConfigScalar::Bool(_) => f64::NAN,
        };
        Self { limit, inclusive, text: value.to_string() }
    }

    /// Whether a value is above the bound or, if `inclusive`, equal to it. NaN is above all
    /// numbers, as in ACES.
    fn is_above(&self, value: f32) -> bool {
        let value = f64::from(value);
        match (value.is_nan(), self.limit.is_nan()) {
            (true, nan) => self.inclusive || !nan,
            (false, true) => false,
            (false, false) => value > self.limit || (self.inclusive && value == self.limit),
        }
    }

    fn is_below(&self, value: f32) -> bool {
        let value = f64::from(value);
        match (value.is_nan(), self.limit.is_nan()) {
            (true, nan) => self.inclusive && nan,
            (false, true) => true,
            (false, false) => value < self.limit || (self.inclusive && value == self.limit),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct PlainPredicate {
    /// Key in the configuration, such as `predicates.death`.
    pub(super) key: String,
    pub(super) codes: CodePattern,
    pub(super) min: Option<ValueBound>,
    pub(super) max: Option<ValueBound>,
    /// Columns of the data other than `code` and `numeric_value`, and the values that they must
    /// have.
    pub(super) other_columns: Vec<(String, ConfigScalar)>,
}

impl PlainPredicate {
    pub(super) fn has_bounds(&self) -> bool {
        self.min.is_some() || self.max.is_some()
    }
}

impl fmt::Display for PlainPredicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.codes {
            CodePattern::One(code) => f.write_str(code)?,
            CodePattern::Any(codes) => f.write_str(&codes.join(" | "))?,
            CodePattern::Regex(regex) => write!(f, "/{regex}/")?,
        }
        for (bound, sign) in [(&self.min, '>'), (&self.max, '<')] {
            if let Some(ValueBound { inclusive, text, .. }) = bound {
                write!(f, ", {sign}{} {text}", if *inclusive { "=" } else { "" })?;
            }
        }
        self.other_columns.iter().try_for_each(|(name, value)| write!(f, ", {name} = {value}"))
    }
}

/// The measurements of a shard: either its measurements with a time, or its measurements without a
/// time.
pub(super) struct ShardMeasurements {
    codes: DictionaryArray<UInt32Type>,
    values: Option<Float32Array>,
    /// For each distinct code, the end of its range in `predicates`, which begins at the end of the
    /// range of the previous code. The range has the indices of the predicates that match the code.
    ends: Vec<usize>,
    predicates: Vec<usize>,
    /// For each predicate, one bit per measurement: whether its columns other than `code` and
    /// `numeric_value` have the required values. `None` if the predicate compares no such columns.
    others: Vec<Option<BooleanBuffer>>,
}

impl ShardMeasurements {
    /// Finds the codes that match each predicate. All columns of `table` have names with the prefix
    /// `prefix`, such as `static_`.
    pub(super) fn try_new(
        table: &RaggedTable,
        prefix: &str,
        plain: &[PlainPredicate],
    ) -> Result<Self> {
        let column = |name: &str| -> Result<&ArrayRef> {
            Ok(table.column(&format!("{prefix}{name}"))?.values())
        };
        let codes = column("code")?;
        let Some(codes) = codes.as_dictionary_opt::<UInt32Type>() else {
            return Err(Error::type_of(
                format!("column {prefix}code"),
                "Dictionary(UInt32, Utf8), as codes of MEDS data are read (convert the column)",
                codes.data_type(),
            ));
        };
        let values = match plain.iter().any(PlainPredicate::has_bounds) {
            false => None,
            true => {
                let values = column("numeric_value")?;
                match values.as_primitive_opt::<Float32Type>() {
                    Some(values) => Some(values.clone()),
                    None => {
                        return Err(Error::type_of(
                            format!("column {prefix}numeric_value"),
                            "Float32, as in MEDS data (convert the column)",
                            values.data_type(),
                        ));
                    }
                }
            }
        };
        let texts = cast(codes.values(), &DataType::Utf8)?;
        let (mut ends, mut predicates) = (Vec::with_capacity(texts.len()), Vec::new());
        for text in texts.as_string::<i32>() {
            if let Some(text) = text {
                let matching = |p: &usize| plain[*p].codes.matches_code(text);
                predicates.extend((0..plain.len()).filter(matching));
            }
            ends.push(predicates.len());
        }
        let others = plain
            .iter()
            .map(|predicate| {
                let mut both: Option<BooleanBuffer> = None;
                for (name, value) in &predicate.other_columns {
                    let own = compare_column(column(name)?, value).map_err(|e| match e {
                        ComparisonFault::Type(expected, found) => Error::invalid(format!(
                            "{}.{name}: the value is {value}, but column {name:?} of the data holds {found}; give {expected}",
                            predicate.key
                        )),
                        ComparisonFault::Arrow(e) => e,
                    })?;
                    both = Some(match both {
                        Some(other) => &other & &own,
                        None => own,
                    });
                }
                Ok(both)
            })
            .collect::<Result<_>>()?;
        Ok(Self { codes: codes.clone(), values, ends, predicates, others })
    }

    /// Returns the indices of the predicates that match a code of the shard. A predicate that
    /// matches several codes occurs several times.
    pub(super) fn list_predicates_of_codes(&self) -> &[usize] {
        &self.predicates
    }

    /// Calls `found` with the index of each predicate that the measurement `at` matches.
    #[inline]
    pub(super) fn visit_matches(
        &self,
        plain: &[PlainPredicate],
        at: usize,
        mut found: impl FnMut(usize),
    ) {
        if self.codes.is_null(at) {
            return;
        }
        let code = self.codes.keys().value(at) as usize;
        let start = if code == 0 { 0 } else { self.ends[code - 1] };
        for p in &self.predicates[start..self.ends[code]] {
            let PlainPredicate { min, max, .. } = &plain[*p];
            if min.is_some() || max.is_some() {
                let Some(value) = self.values.as_ref().filter(|v| v.is_valid(at)) else { continue };
                let value = value.value(at);
                if min.as_ref().is_some_and(|min| !min.is_above(value))
                    || max.as_ref().is_some_and(|max| !max.is_below(value))
                {
                    continue;
                }
            }
            if self.others[*p].as_ref().is_none_or(|matching| matching.value(at)) {
                found(*p);
            }
        }
    }
}

enum ComparisonFault {
    /// A column of the wrong type: the expected kind of value, and the type of the column.
    Type(&'static str, DataType),
    Arrow(Error),
}

impl<E: Into<Error>> From<E> for ComparisonFault {
    fn from(e: E) -> Self {
        Self::Arrow(e.into())
    }
}

/// The columns that can be compared with a value, as error messages describe them.
const COMPARABLE: &str = "a column of strings, numbers or booleans";

/// Returns for each value of `column` whether it equals `value`. NULL equals no value.
fn compare_column(
    column: &ArrayRef,
    value: &ConfigScalar,
) -> std::result::Result<BooleanBuffer, ComparisonFault> {
    let found = column.data_type();
    let base = match found {
        DataType::Dictionary(_, values) => values.as_ref(),
        other => other,
    };
    match (base, value) {
        (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, ConfigScalar::Text(text)) => {
            let text: ArrayRef = Arc::new(StringArray::from(vec![text.as_str()]));
            let equal = cmp::eq(column, &One::new(cast(&text, base)?))?;
            Ok(match equal.nulls() {
                Some(nulls) => equal.values() & nulls.inner(),
                None => equal.values().clone(),
            })
        }
        (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, _) => {
            Err(ComparisonFault::Type("a string", found.clone()))
        }
        (DataType::Boolean, ConfigScalar::Bool(value)) => {
            let column = column.as_boolean();
            Ok(BooleanBuffer::collect_bool(column.len(), |i| {
                column.is_valid(i) && column.value(i) == *value
            }))
        }
        (DataType::Boolean, _) => Err(ComparisonFault::Type("a boolean", found.clone())),
        (of, ConfigScalar::Integer(value)) if of.is_integer() => {
            // A number that does not fit Int64 becomes NULL, and does not equal any integer in a
            // configuration.
            let options = CastOptions { safe: true, ..CastOptions::default() };
            let column = cast_with_options(column, &DataType::Int64, &options)?;
            let column = column.as_primitive::<Int64Type>();
            Ok(BooleanBuffer::collect_bool(column.len(), |i| {
                column.is_valid(i) && column.value(i) == *value
            }))
        }
        (of, ConfigScalar::Integer(_) | ConfigScalar::Float(_))
            if of.is_integer() || of.is_floating() =>
        {
            let value = match (of, value) {
                (DataType::Float32, value) => ValueBound::new(value, true).limit,
                (_, ConfigScalar::Float(value)) => *value,
                (_, other) => ValueBound::new(other, true).limit,
            };
            let column = cast(column, &DataType::Float64)?;
            let column = column.as_primitive::<Float64Type>();
            let equal = |own: f64| own == value || (own.is_nan() && value.is_nan());
            Ok(BooleanBuffer::collect_bool(column.len(), |i| {
                column.is_valid(i) && equal(column.value(i))
            }))
        }
        (of, _) if of.is_integer() || of.is_floating() => {
            Err(ComparisonFault::Type("a number", found.clone()))
        }
        (DataType::Null, _) => Ok(BooleanBuffer::new_unset(column.len())),
        _ => Err(ComparisonFault::Type(COMPARABLE, found.clone())),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{BooleanArray, Float64Array, UInt64Array};

    use super::*;

    #[test]
    fn bounds_are_compared_as_polars_compares_32_bit_values() {
        let decimal = |inclusive| ValueBound::new(&ConfigScalar::Float(98.6), inclusive);
        assert!(decimal(true).is_above(98.6) && decimal(true).is_below(98.6));
        assert!(!decimal(false).is_above(98.6) && !decimal(false).is_below(98.6));
        let integer = ValueBound::new(&ConfigScalar::Integer(16_777_217), true);
        assert!(!integer.is_above(16_777_216.0) && integer.is_below(16_777_216.0));
        assert!(decimal(false).is_above(f32::NAN) && !decimal(true).is_below(f32::NAN));
        let infinite = ValueBound::new(&ConfigScalar::Float(f64::INFINITY), false);
        assert!(infinite.is_above(f32::NAN) && !infinite.is_above(f32::INFINITY));
    }

    #[test]
    fn columns_of_any_type_are_compared() {
        let equal = |column: ArrayRef, value: ConfigScalar| match compare_column(&column, &value) {
            Ok(equal) => equal.iter().collect::<Vec<_>>(),
            Err(ComparisonFault::Type(..)) => Vec::new(),
            Err(ComparisonFault::Arrow(e)) => panic!("{e}"),
        };
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("b")]));
        let dictionary = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
        for of in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View, dictionary] {
            let column = cast(&texts, &of).unwrap();
            let found = equal(Arc::clone(&column), ConfigScalar::Text("a".into()));
            assert_eq!(found, [true, false, false], "{of}");
            assert!(equal(column, ConfigScalar::Integer(1)).is_empty(), "{of}");
        }
        let numbers = UInt64Array::from(vec![Some(1), None, Some(u64::MAX)]);
        assert_eq!(
            equal(Arc::new(numbers.clone()), ConfigScalar::Integer(1)),
            [true, false, false]
        );
        assert_eq!(
            equal(Arc::new(numbers.clone()), ConfigScalar::Float(1.0)),
            [true, false, false]
        );
        assert!(equal(Arc::new(numbers), ConfigScalar::Bool(true)).is_empty());
        let floats = Float32Array::from(vec![Some(0.1), Some(-0.0), None, Some(f32::NAN)]);
        let floats: ArrayRef = Arc::new(floats);
        assert_eq!(equal(floats.clone(), ConfigScalar::Float(0.1)), [true, false, false, false]);
        assert_eq!(equal(floats.clone(), ConfigScalar::Integer(0)), [false, true, false, false]);
        assert_eq!(equal(floats, ConfigScalar::Float(f64::NAN)), [false, false, false, true]);
        let double: ArrayRef = Arc::new(Float64Array::from(vec![0.1, f64::from(0.1f32)]));
        assert_eq!(equal(double, ConfigScalar::Float(0.1)), [true, false]);
        let booleans = BooleanArray::from(vec![Some(true), Some(false), None]);
        assert_eq!(equal(Arc::new(booleans), ConfigScalar::Bool(false)), [false, true, false]);
    }
}
