use std::sync::Arc;

use arrow::array::{AsArray, ListBuilder, StringArray, StringBuilder};
use arrow::datatypes::DataType;
use datafusion::common::{exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use regex::Regex;

use super::documents::{Text, document};
use super::list_types;
use super::regexp_extract::{compile_pattern, is_text, read_group};

/// Returns `regexp_extract_all(text, pattern [, group])`, a list of all matches or of one group of each, and
/// `regexp_split_to_array(text, pattern)`, a list of the parts between the matches. A NULL argument yields NULL.
pub(super) fn regexp_lists() -> [ScalarUDF; 2] {
    let aliases = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let signature = || Signature::user_defined(Volatility::Immutable);
    [
        RegexpList { splits: false, aliases: Vec::new(), signature: signature() },
        RegexpList {
            splits: true,
            aliases: aliases(&["string_split_regex", "str_split_regex"]),
            signature: signature(),
        },
    ]
    .map(ScalarUDF::new_from_impl)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RegexpList {
    /// Whether the list has the parts between the matches instead of the matches.
    splits: bool,
    aliases: Vec<String>,
    signature: Signature,
}

impl ScalarUDFImpl for RegexpList {
    fn name(&self) -> &str {
        match self.splits {
            true => "regexp_split_to_array",
            false => "regexp_extract_all",
        }
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let most = usize::from(!self.splits);
        match types {
            [text, pattern, group @ ..]
                if is_text(text)
                    && is_text(pattern)
                    && group.len() <= most
                    && group.iter().all(|g| g.is_integer() || g.is_null()) =>
            {
                let texts = [DataType::Utf8, DataType::Utf8];
                Ok(texts.into_iter().chain(group.iter().map(|_| DataType::Int64)).collect())
            }
            _ => plan_err!(
                "{} takes a string and a pattern, as in {}(code, '[0-9]+'); it is given {}",
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
        let (rows, mut args) = (args.number_rows, args.args.into_iter());
        let (Some(text), Some(pattern)) = (args.next(), args.next()) else {
            return exec_err!(
                "{} takes a string and a pattern; an argument is missing",
                self.name()
            );
        };
        let group = read_group(self.name(), args.next())?;
        let (texts, patterns) = (text.to_array(rows)?, pattern.to_array(rows)?);
        let (texts, patterns) = (texts.as_string::<i32>(), patterns.as_string::<i32>());
        let lists = self.list_parts(texts, patterns, group)?.finish();
        Ok(ColumnarValue::Array(Arc::new(lists)))
    }

    fn documentation(&self) -> Option<&Documentation> {
        match self.splits {
            true => document!(Text {
                syntax: "regexp_split_to_array(text, pattern)",
                description: "Returns the parts of a text between the matches of a regular expression, as a list.",
                missing: "The result is NULL if an argument is NULL. An empty text has one part, the empty text.",
                example: r#"SELECT regexp_split_to_array('a1b22c', '[0-9]+');   -- ["a", "b", "c"]"#,
                ..Text::EMPTY
            }),
            false => document!(Text {
                syntax: "regexp_extract_all(text, pattern [, group])",
                description: "Returns all matches of a regular expression in a text, or one group of each match, as a list.",
                missing: "The result is NULL if an argument is NULL, and an empty list if the pattern does not match.",
                example: r#"SELECT regexp_extract_all('a1b22', '[0-9]+');   -- ["1", "22"]"#,
                ..Text::EMPTY
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
        // Keeps the last pattern compiled, because patterns rarely change from row to row.
        let mut last: Option<(&str, Regex)> = None;
        for (text, pattern) in texts.iter().zip(patterns) {
            let (Some(text), Some(pattern)) = (text, pattern) else {
                out.append_null();
                continue;
            };
            let regex = match last.take() {
                Some((source, regex)) if source == pattern => regex,
                _ => compile_pattern(self.name(), pattern)?,
            };
            if self.splits {
                regex.split(text).for_each(|part| out.values().append_value(part));
            } else {
                for found in regex.captures_iter(text) {
                    out.values().append_value(found.get(group).map_or("", |found| found.as_str()));
                }
            }
            out.append(true);
            last = Some((pattern, regex));
        }
        Ok(out)
    }
}
