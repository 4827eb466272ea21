use std::sync::Arc;

use arrow::array::{AsArray, ListBuilder, StringArray, StringBuilder};
use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::functions::{call_on_arrays, declare};

use super::documents::{DocumentationText, document};

const NAME: &str = "string_split";

/// Returns `string_split(text, separator)`. Unlike in DataFusion's `string_to_array`, an empty text
/// has one part and an empty separator splits into characters. A NULL separator returns the string
/// as the only part.
pub(super) fn string_split() -> ScalarUDF {
    ScalarUDF::new_from_impl(StringSplit)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct StringSplit;

impl ScalarUDFImpl for StringSplit {
    declare!(
        NAME,
        aliases: ["str_split", "split"],
        Signature::exact(vec![DataType::Utf8, DataType::Utf8], Volatility::Immutable)
    );

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::new_list(DataType::Utf8, true))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(NAME, &args, |[texts, separators]| {
            let (texts, separators) = (texts.as_string::<i32>(), separators.as_string::<i32>());
            Ok(Arc::new(split_texts(texts, separators).finish()))
        })
    }

    fn documentation(&self) -> Option<&Documentation> {
        document!(DocumentationText {
            syntax: "string_split(text, separator)",
            description: "Splits a string at each separator. The result is a list of strings.",
            missing: "The result is NULL for a NULL string. A NULL separator returns the string as the only part. An empty string has one part, the empty string, and an empty separator splits into characters.",
            example: r#"SELECT string_split('a//b', '//'), string_split('ab', '');   -- ["a", "b"]  ["a", "b"]"#,
            ..DocumentationText::EMPTY
        })
    }
}

fn split_texts(texts: &StringArray, separators: &StringArray) -> ListBuilder<StringBuilder> {
    let mut out = ListBuilder::new(StringBuilder::new());
    for (text, separator) in texts.iter().zip(separators) {
        let Some(text) = text else {
            out.append_null();
            continue;
        };
        match separator {
            Some("") if !text.is_empty() => {
                let mut buffer = [0; 4];
                text.chars().for_each(|c| out.values().append_value(c.encode_utf8(&mut buffer)));
            }
            Some("") | None => out.values().append_value(text),
            Some(separator) => {
                text.split(separator).for_each(|part| out.values().append_value(part));
            }
        }
        out.append(true);
    }
    out
}
