use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions::regex;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl};

use crate::functions::delegate;

/// Returns `regexp_replace`. In its replacement text, `\1` and `\\1` stand for a group, any other `\\` for one
/// backslash, and `$` for a dollar sign.
///
/// DataFusion 55 differs in two ways: it replaces `$1` and `$name` with groups, so that 'for $9' becomes
/// 'for ', and it keeps both backslashes of `\\`. The escaping of `$` is obsolete once the test
/// `stock_replacements_still_have_dollar_groups` fails.
pub(super) fn regexp_replace() -> ScalarUDF {
    ScalarUDF::new_from_impl(RegexpReplace { stock: regex::regexp_replace() })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RegexpReplace {
    stock: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for RegexpReplace {
    delegate!(stock: name, aliases, signature, return_type, documentation);

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
}

fn escape_replacements(texts: &ArrayRef) -> Result<ArrayRef> {
    let given = cast(texts, &DataType::Utf8)?;
    let given = given.as_string::<i32>();
    let escaped: StringArray = given.iter().map(|text| text.map(escape_replacement)).collect();
    Ok(cast(&escaped, texts.data_type())?)
}

/// Converts a replacement to DataFusion's syntax: doubles each `$`, and replaces `\\` with one backslash, unless a
/// digit follows, because a backslash and a digit name a group.
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
