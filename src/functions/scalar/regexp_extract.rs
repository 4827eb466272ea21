use std::sync::Arc;

use arrow::array::{Array, AsArray, StringArray, StringBuilder};
use arrow::datatypes::DataType;
use datafusion::common::{exec_datafusion_err, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use regex::Regex;

use super::documents::{Text, document};
use super::list_types;

const NAME: &str = "regexp_extract";

/// Returns `regexp_extract(text, pattern [, group])`, which returns the first match of a pattern, or one
/// group of the match. The result is an empty string if the pattern does not match or has no such group.
pub(super) fn regexp_extract() -> ScalarUDF {
    ScalarUDF::new_from_impl(RegexpExtract {
        signature: Signature::user_defined(Volatility::Immutable),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RegexpExtract {
    signature: Signature,
}

impl ScalarUDFImpl for RegexpExtract {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [text, pattern, group @ ..]
                if is_text(text)
                    && is_text(pattern)
                    && group.len() <= 1
                    && group.iter().all(|g| g.is_integer() || g.is_null()) =>
            {
                let texts = [DataType::Utf8, DataType::Utf8];
                Ok(texts.into_iter().chain(group.iter().map(|_| DataType::Int64)).collect())
            }
            _ => plan_err!(
                "{NAME} takes a string, a pattern and the number of a group, as in {NAME}(code, '(.*)//', 1); it is given {}",
                list_types(types)
            ),
        }
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (rows, mut args) = (args.number_rows, args.args.into_iter());
        let (Some(text), Some(pattern)) = (args.next(), args.next()) else {
            return exec_err!(
                "{NAME} takes a string and a pattern, as in {NAME}(code, '[0-9]+'); an argument is missing"
            );
        };
        let group = read_group(NAME, args.next())?;
        let (texts, patterns) = (text.to_array(rows)?, pattern.to_array(rows)?);
        let (texts, patterns) = (texts.as_string::<i32>(), patterns.as_string::<i32>());
        Ok(ColumnarValue::Array(Arc::new(extract_groups(texts, patterns, group)?)))
    }

    fn documentation(&self) -> Option<&Documentation> {
        document!(Text {
            syntax: "regexp_extract(text, pattern [, group])",
            description: "Returns the first match of a regular expression in a text, or one group of the match.",
            args: &[
                ("text", "a text, or a list of texts"),
                (
                    "pattern",
                    "a regular expression in the syntax of Rust's regex crate, which may be a column"
                ),
                (
                    "group",
                    "the number of a group in parentheses; 0, the default, is the whole match"
                )
            ],
            missing: "The result is NULL if an argument is NULL, and an empty text if the pattern does not match or has no such group.",
            example: "SELECT regexp_extract('LAB//51', '[0-9]+');   -- 51
SELECT regexp_extract('LAB//51', '(.*)//(.*)', 1);   -- LAB",
            ..Text::EMPTY
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
    // Keeps the last pattern compiled, because patterns rarely change from row to row.
    let mut last: Option<(&str, Regex)> = None;
    for (text, pattern) in texts.iter().zip(patterns) {
        let (Some(text), Some(pattern)) = (text, pattern) else {
            out.append_null();
            continue;
        };
        let regex = match last.take() {
            Some((source, regex)) if source == pattern => regex,
            _ => compile_pattern(NAME, pattern)?,
        };
        let found = regex.captures(text).and_then(|found| found.get(group));
        out.append_value(found.map_or("", |found| found.as_str()));
        last = Some((pattern, regex));
    }
    Ok(out.finish())
}

pub(super) fn is_text(t: &DataType) -> bool {
    let plain = match t {
        DataType::Dictionary(_, values) => values.as_ref(),
        plain => plain,
    };
    plain.is_string() || plain.is_null()
}

/// Reads the third argument of a function: the number of a group in the pattern; 0, the whole match, if not given.
pub(super) fn read_group(function: &str, group: Option<ColumnarValue>) -> Result<usize> {
    let group = match group {
        None => return Ok(0),
        Some(ColumnarValue::Scalar(group)) => group,
        Some(ColumnarValue::Array(_)) => {
            return exec_err!(
                "{function}: argument 3 (the group) is a column; give a literal such as 1"
            );
        }
    };
    match i64::try_from(group).map(usize::try_from) {
        Ok(Ok(group)) => Ok(group),
        Ok(Err(_)) => exec_err!(
            "{function}: argument 3 (the group) is negative; the group must be 0 (the whole match) or more"
        ),
        Err(_) => Ok(0),
    }
}

pub(super) fn compile_pattern(function: &str, pattern: &str) -> Result<Regex> {
    Regex::new(pattern).map_err(|e| {
        exec_datafusion_err!("{function}: {pattern:?} is not a valid regular expression: {e}")
    })
}
