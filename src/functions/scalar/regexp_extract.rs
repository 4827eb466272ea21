//! The function `regexp_extract` of DuckDB.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder};
use arrow::datatypes::DataType;
use datafusion::common::{exec_datafusion_err, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use regex::Regex;

use crate::functions::declare;

use super::documents::{DocumentationText, document};
use super::list_types;

const NAME: &str = "regexp_extract";

/// Returns `regexp_extract(text, pattern [, group])`, which returns the first match of a pattern,
/// or one group of the match. The result is an empty string if the pattern does not match or has no
/// such group.
pub(super) fn regexp_extract() -> ScalarUDF {
    ScalarUDF::new_from_impl(RegexpExtract)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RegexpExtract;

impl ScalarUDFImpl for RegexpExtract {
    declare!(NAME, Signature::user_defined(Volatility::Immutable));

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match coerce_pattern_types(types, 1) {
            Some(coerced) => Ok(coerced),
            None => plan_err!(
                "{NAME} takes a string, a pattern and the number of a group, as in {NAME}(code, '(.*)//', 1), but found {}",
                list_types(types)
            ),
        }
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (texts, patterns, group) = read_pattern_arguments(NAME, &args)?;
        let (texts, patterns) = (texts.as_string::<i32>(), patterns.as_string::<i32>());
        Ok(ColumnarValue::Array(Arc::new(extract_groups(texts, patterns, group)?)))
    }

    fn documentation(&self) -> Option<&Documentation> {
        document!(DocumentationText {
            syntax: "regexp_extract(text, pattern [, group])",
            description: "Returns the first match of a regular expression in a string, or one group of the match.",
            args: &[
                ("text", "a string, or a list of strings"),
                (
                    "pattern",
                    "a regular expression in the syntax of Rust's regex crate, which may be a column"
                ),
                (
                    "group",
                    "the number of a group in parentheses; 0, the default, is the whole match"
                )
            ],
            missing: "The result is NULL if an argument is NULL, and an empty string if the pattern does not match or has no such group.",
            example: "SELECT regexp_extract('LAB//51', '[0-9]+');   -- 51
SELECT regexp_extract('LAB//51', '(.*)//(.*)', 1);   -- LAB",
            ..DocumentationText::EMPTY
        })
    }
}

/// Returns a group of the first match in each string: '' without a match, NULL for a NULL argument.
fn extract_groups(
    texts: &StringArray,
    patterns: &StringArray,
    group: usize,
) -> Result<StringArray> {
    let mut out = StringBuilder::with_capacity(texts.len(), 0);
    let mut last = LastPattern::default();
    for (text, pattern) in texts.iter().zip(patterns) {
        let (Some(text), Some(pattern)) = (text, pattern) else {
            out.append_null();
            continue;
        };
        let found =
            last.compile_pattern(NAME, pattern)?.captures(text).and_then(|found| found.get(group));
        out.append_value(found.map_or("", |found| found.as_str()));
    }
    Ok(out.finish())
}

/// Returns the types to which the arguments of a function are cast: a string, a pattern and at most
/// `most` group numbers. Returns `None` if other arguments are given.
pub(super) fn coerce_pattern_types(types: &[DataType], most: usize) -> Option<Vec<DataType>> {
    let [text, pattern, groups @ ..] = types else { return None };
    let fits = is_text(text)
        && is_text(pattern)
        && groups.len() <= most
        && groups.iter().all(|group| group.is_integer() || group.is_null());
    let texts = [DataType::Utf8, DataType::Utf8];
    fits.then(|| texts.into_iter().chain(groups.iter().map(|_| DataType::Int64)).collect())
}

fn is_text(t: &DataType) -> bool {
    let plain = match t {
        DataType::Dictionary(_, values) => values.as_ref(),
        plain => plain,
    };
    plain.is_string() || plain.is_null()
}

/// Reads the arguments of a function: the strings, the patterns, and the number of a capture group.
pub(super) fn read_pattern_arguments(
    function: &str,
    args: &ScalarFunctionArgs,
) -> Result<(ArrayRef, ArrayRef, usize)> {
    let [text, pattern, group @ ..] = args.args.as_slice() else {
        return exec_err!(
            "internal error: {function} has {} arguments instead of at least 2; please report it",
            args.args.len()
        );
    };
    let (group, rows) = (read_group(function, group.first())?, args.number_rows);
    Ok((text.to_array(rows)?, pattern.to_array(rows)?, group))
}

/// Reads argument 3 of a function: the number of a group, or 0 (the whole match) if not given. A
/// column and a negative number are errors.
fn read_group(function: &str, group: Option<&ColumnarValue>) -> Result<usize> {
    let group = match group {
        None => return Ok(0),
        Some(ColumnarValue::Scalar(group)) => group,
        Some(ColumnarValue::Array(_)) => {
            return exec_err!(
                "{function}: argument 3 (the group) is a column; give a literal such as 1"
            );
        }
    };
    match i64::try_from(group.clone()).map(usize::try_from) {
        Ok(Ok(group)) => Ok(group),
        Ok(Err(_)) => exec_err!(
            "{function}: argument 3 (the group) must be 0 (the whole match) or more; it is {group}"
        ),
        Err(_) => Ok(0),
    }
}

/// The pattern of the previous row and its compiled form, which a row with the same pattern reuses.
/// `None` before the first row.
#[derive(Default)]
pub(super) struct LastPattern<'a>(Option<(&'a str, Regex)>);

impl<'a> LastPattern<'a> {
    pub(super) fn compile_pattern(&mut self, function: &str, pattern: &'a str) -> Result<&Regex> {
        let regex = match self.0.take() {
            Some((last, regex)) if last == pattern => regex,
            _ => Regex::new(pattern).map_err(|e| {
                exec_datafusion_err!(
                    "{function}: {pattern:?} is not a valid regular expression; correct it: {e}"
                )
            })?,
        };
        Ok(&self.0.insert((pattern, regex)).1)
    }
}
