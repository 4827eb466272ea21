use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions::regex;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
};

use crate::functions::delegate;

use super::documents::{DocumentationText, document};

/// Returns `regexp_replace`. In its replacement text, `\1` and `\\1` stand for a group, any other
/// `\\` for one backslash, and `$` for a dollar sign.
///
/// DataFusion 55 differs in two ways: it replaces `$1` and `$name` with groups, so that 'for $9'
/// becomes 'for ', and it keeps both backslashes of `\\`. The escaping of `$` is obsolete once the
/// test `stock_replacements_still_have_dollar_groups` fails.
pub(super) fn regexp_replace() -> ScalarUDF {
    ScalarUDF::new_from_impl(RegexpReplace { stock: regex::regexp_replace() })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RegexpReplace {
    stock: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for RegexpReplace {
    delegate!(stock: name, aliases, signature, return_type);

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let Some(replacement) = args.args.get_mut(2) {
            match replacement {
                ColumnarValue::Scalar(text) => {
                    if text.try_as_str().flatten().is_some_and(|text| text.contains(['$', '\\'])) {
                        let escaped = escape_replacements(&text.to_array()?)?;
                        *text = ScalarValue::try_from_array(&escaped, 0)?;
                    }
                }
                ColumnarValue::Array(texts) => *texts = escape_replacements(texts)?,
            }
        }
        self.stock.invoke_with_args(args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        document!(DocumentationText {
            syntax: "regexp_replace(text, pattern, replacement [, flags])",
            description: "Replaces the first match of a regular expression in a string.",
            args: &[
                (
                    "replacement",
                    r"the new string, in which `\1` is the first group of the match; `$` has no meaning"
                ),
                ("flags", "`'g'` replaces all matches, `'i'` ignores case")
            ],
            missing: "The result is NULL if an argument is NULL, and the string itself if the pattern does not match.",
            example: r"SELECT regexp_replace('a1b2', '[0-9]', 'x', 'g');   -- axbx
SELECT regexp_replace('a1', '([a-z])([0-9])', '\2\1');   -- 1a",
            ..DocumentationText::EMPTY
        })
    }
}

fn escape_replacements(texts: &ArrayRef) -> Result<ArrayRef> {
    let given = cast(texts, &DataType::Utf8)?;
    let given = given.as_string::<i32>();
    let escaped: StringArray = given.iter().map(|text| text.map(escape_replacement)).collect();
    Ok(cast(&escaped, texts.data_type())?)
}

/// Converts a replacement to DataFusion's syntax: doubles each `$`, and replaces `\\` with one
/// backslash, unless a digit follows, because a backslash and a digit name a group.
fn escape_replacement(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '$' => escaped.push_str("$$"),
            '\\' if rest.next_if_eq(&'\\').is_some() => {
                let is_group = rest.peek().is_some_and(char::is_ascii_digit);
                escaped.push_str(if is_group { "\\\\" } else { "\\" });
            }
            c => escaped.push(c),
        }
    }
    escaped
}
