use std::sync::{Arc, LazyLock};

use arrow::array::{AsArray, ListBuilder, StringArray, StringBuilder};
use arrow::datatypes::DataType;
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::functions::declare;

use super::documents::{DocumentationText, document};
use super::list_types;
use super::regexp_extract::{LastPattern, coerce_pattern_types, read_pattern_arguments};

/// Returns `regexp_extract_all(text, pattern [, group])`, a list of all matches or of one group of
/// each, and `regexp_split_to_array(text, pattern)`, a list of the parts between the matches. A
/// NULL argument yields NULL.
pub(super) fn regexp_lists() -> [ScalarUDF; 2] {
    [false, true].map(|splits| ScalarUDF::new_from_impl(RegexpList { splits }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RegexpList {
    /// Whether the list has the parts between the matches instead of the matches.
    splits: bool,
}

impl ScalarUDFImpl for RegexpList {
    declare!(Signature::user_defined(Volatility::Immutable));

    fn name(&self) -> &str {
        match self.splits {
            true => "regexp_split_to_array",
            false => "regexp_extract_all",
        }
    }

    fn aliases(&self) -> &[String] {
        static ALIASES: LazyLock<[String; 2]> =
            LazyLock::new(|| ["string_split_regex", "str_split_regex"].map(str::to_owned));
        match self.splits {
            true => &ALIASES[..],
            false => &[],
        }
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match coerce_pattern_types(types, usize::from(!self.splits)) {
            Some(coerced) => Ok(coerced),
            None => plan_err!(
                "{} takes a string and a pattern, as in {}(code, '[0-9]+'), but found {}",
                self.name(),
                self.name(),
                list_types(types)
            ),
        }
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::new_list(DataType::Utf8, true))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (texts, patterns, group) = read_pattern_arguments(self.name(), &args)?;
        let (texts, patterns) = (texts.as_string::<i32>(), patterns.as_string::<i32>());
        let lists = self.list_parts(texts, patterns, group)?.finish();
        Ok(ColumnarValue::Array(Arc::new(lists)))
    }

    fn documentation(&self) -> Option<&Documentation> {
        match self.splits {
            true => document!(DocumentationText {
                syntax: "regexp_split_to_array(text, pattern)",
                description: "Returns the parts of a string between the matches of a regular expression, as a list.",
                missing: "The result is NULL if an argument is NULL. An empty string has one part, the empty string.",
                example: r#"SELECT regexp_split_to_array('a1b22c', '[0-9]+');   -- ["a", "b", "c"]"#,
                ..DocumentationText::EMPTY
            }),
            false => document!(DocumentationText {
                syntax: "regexp_extract_all(text, pattern [, group])",
                description: "Returns all matches of a regular expression in a string, or one group of each match, as a list.",
                missing: "The result is NULL if an argument is NULL, and an empty list if the pattern does not match.",
                example: r#"SELECT regexp_extract_all('a1b22', '[0-9]+');   -- ["1", "22"]"#,
                ..DocumentationText::EMPTY
            }),
        }
    }
}

impl RegexpList {
    fn list_parts(
        &self,
        texts: &StringArray,
        patterns: &StringArray,
        group: usize,
    ) -> Result<ListBuilder<StringBuilder>> {
        let mut out = ListBuilder::new(StringBuilder::new());
        let mut last = LastPattern::default();
        for (text, pattern) in texts.iter().zip(patterns) {
            let (Some(text), Some(pattern)) = (text, pattern) else {
                out.append_null();
                continue;
            };
            let regex = last.compile_pattern(self.name(), pattern)?;
            if self.splits {
                regex.split(text).for_each(|part| out.values().append_value(part));
            } else {
                for found in regex.captures_iter(text) {
                    out.values().append_value(found.get(group).map_or("", |found| found.as_str()));
                }
            }
            out.append(true);
        }
        Ok(out)
    }
}
