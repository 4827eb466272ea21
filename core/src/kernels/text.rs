//! Tests a string predicate on every leaf: LIKE, a prefix or a regular expression.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Scalar, StringArray};
use arrow::compute::cast;
use arrow::compute::kernels::comparison::{ilike, like, starts_with};
use arrow::compute::kernels::regexp::regexp_is_match_scalar;
use arrow::datatypes::DataType;

use super::dictionary_predicate::over_values;
use crate::array::RaggedArray;
use crate::array::nested_types::is_string_like;
use crate::error::{Error, Result};

/// A predicate on strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextTest<'a> {
    /// SQL's `LIKE`: `%` matches any string, `_` any character; a backslash escapes them.
    Like(&'a str),
    /// Same as [`Like`](Self::Like), ignoring case.
    ILike(&'a str),
    /// The string starts with this prefix.
    StartsWith(&'a str),
    /// The string has a match of a regular expression, in the syntax of the `regex` crate.
    Matches {
        /// The regular expression.
        pattern: &'a str,
        /// Flags of the expression, such as `i` to ignore case.
        flags: Option<&'a str>,
    },
}

impl TextTest<'_> {
    /// Checks that the predicate can be evaluated.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::kernels::text::TextTest;
    /// assert!(TextTest::Like("LAB//%").check().is_ok());
    /// assert!(TextTest::Matches { pattern: "LAB(", flags: None }.check().is_err());
    /// ```
    ///
    /// # Errors
    /// If a regular expression is malformed; the message shows the position of the fault.
    pub fn check(&self) -> Result<()> {
        self.evaluate(&(Arc::new(StringArray::new_null(0)) as ArrayRef)).map(|_| ())
    }

    fn evaluate(&self, values: &ArrayRef) -> Result<BooleanArray> {
        let needle = match *self {
            Self::Matches { pattern, flags } => return match_pattern(values, pattern, flags),
            Self::Like(text) | Self::ILike(text) | Self::StartsWith(text) => text,
        };
        let needle: ArrayRef = Arc::new(StringArray::from(vec![needle]));
        let needle = Scalar::new(cast(&needle, values.data_type())?);
        Ok(match self {
            Self::ILike(_) => ilike(values, &needle)?,
            Self::StartsWith(_) => starts_with(values, &needle)?,
            _ => like(values, &needle)?,
        })
    }
}

fn match_pattern(values: &ArrayRef, pattern: &str, flags: Option<&str>) -> Result<BooleanArray> {
    let found = match values.data_type() {
        DataType::LargeUtf8 => regexp_is_match_scalar(values.as_string::<i64>(), pattern, flags),
        DataType::Utf8View => regexp_is_match_scalar(values.as_string_view(), pattern, flags),
        _ => regexp_is_match_scalar(values.as_string::<i32>(), pattern, flags),
    };
    found.map_err(|e| {
        let e = e.to_string();
        let why = extract_explanation(&e);
        match flags {
            Some(flags) => Error::invalid(format!(
                "the regular expression {pattern:?} (flags {flags:?}) is invalid; correct it: {why}"
            )),
            None => Error::invalid(format!(
                "the regular expression {pattern:?} is invalid; correct it: {why}"
            )),
        }
    })
}

/// Returns the lines between two lines of `~` in an error of the `regex` crate, or the whole error.
fn extract_explanation(error: &str) -> String {
    let is_rule = |line: &str| line.len() > 8 && line.chars().all(|c| c == '~');
    let mut lines = error.lines().skip_while(|line| !is_rule(line)).skip(1).peekable();
    if lines.peek().is_none() {
        return error.to_owned();
    }
    lines.take_while(|line| !is_rule(line)).collect::<Vec<_>>().join("\n")
}

/// Returns whether `text` is a number that is too large for its float type, such as `1e999`: then
/// `parsed`, the float parsed from it, is infinite. Returns false for `inf`, which has no digits.
pub(crate) fn is_overflow(text: &str, parsed: f64) -> bool {
    parsed.is_infinite() && text.bytes().any(|byte| byte.is_ascii_digit())
}

/// Returns whether leaves of this type are strings: Utf8, LargeUtf8, Utf8View, or a dictionary of
/// these.
///
/// ```
/// # use serrate_core as serrate;
/// # use arrow::datatypes::DataType;
/// use serrate::kernels::text::{TextTest, is_text};
/// assert!(is_text(&DataType::Utf8View) && !is_text(&DataType::Int32));
/// let wrong = TextTest::Matches { pattern: "(", flags: None };
/// assert!(wrong.check().is_err());
/// # Ok::<(), serrate::Error>(())
/// ```
pub fn is_text(leaf: &DataType) -> bool {
    is_string_like(leaf)
}

/// Evaluates a predicate on every leaf; null for a null leaf.
///
/// The result shares the lists of the array. For a dictionary, each of its values is tested once;
/// see [`over_values`].
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// use arrow::array::{BooleanArray, StringArray};
/// # use serrate::array::{Offsets, RaggedArray};
/// use serrate::kernels::text::{TextTest, test};
/// let codes = Arc::new(StringArray::from(vec!["LAB//1", "DX//2", "LAB//3"]));
/// let codes = RaggedArray::try_new(2, vec![Offsets::from_lengths([2, 1])?.into()], codes)?;
/// let labs = test(&codes, TextTest::Like("LAB//%"))?;
/// assert_eq!(labs.leaves().as_ref(), &BooleanArray::from(vec![true, false, true]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If the leaves are not strings, or a regular expression is malformed.
pub fn test(array: &RaggedArray, test: TextTest<'_>) -> Result<RaggedArray> {
    let leaves = array.leaves();
    if leaves.data_type().is_null() {
        return array.with_leaves(Arc::new(BooleanArray::new_null(leaves.len())));
    }
    if !is_text(leaves.data_type()) {
        return Err(Error::type_of(
            "the values to test with LIKE, ILIKE, starts_with or regexp_like",
            "strings (cast the values first)",
            leaves.data_type(),
        ));
    }
    array.with_leaves(Arc::new(over_values(leaves, |values| match values.data_type() {
        // The values of a dictionary may be a dictionary too; then test the values of the inner
        // dictionary.
        DataType::Dictionary(..) => over_values(values, |values| test.evaluate(values)),
        _ => test.evaluate(values),
    })?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Offsets;

    fn answers(t: &DataType, test: TextTest<'_>) -> Vec<Option<bool>> {
        let texts =
            [Some("LAB//1"), None, Some("lab//2"), Some("a%b"), Some("DX//LAB//1"), Some("")];
        let plain: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        let leaves = cast(&plain, t).unwrap();
        let axes = vec![Offsets::from_lengths([4, 0, 2]).unwrap().into()];
        let array = RaggedArray::try_new(3, axes, leaves).unwrap();
        let out = super::test(&array, test).unwrap();
        assert_eq!(out.lengths(1).unwrap(), [4, 0, 2]);
        out.leaves().as_boolean().iter().collect()
    }

    #[test]
    fn every_encoding_of_text_gives_the_same_answers() {
        let (yes, no) = (Some(true), Some(false));
        let cases = [
            (TextTest::Like("LAB//%"), [yes, None, no, no, no, no]),
            (TextTest::Like("%LAB//_"), [yes, None, no, no, yes, no]),
            (TextTest::Like("a\\%b"), [no, None, no, yes, no, no]),
            (TextTest::Like("a\\__"), [no, None, no, no, no, no]),
            (TextTest::ILike("lab//%"), [yes, None, yes, no, no, no]),
            (TextTest::StartsWith("LAB"), [yes, None, no, no, no, no]),
            (TextTest::StartsWith("a%"), [no, None, no, yes, no, no]),
            (TextTest::StartsWith(""), [yes, None, yes, yes, yes, yes]),
            (
                TextTest::Matches { pattern: "LAB//[0-9]$", flags: None },
                [yes, None, no, no, yes, no],
            ),
            (TextTest::Matches { pattern: "^lab", flags: Some("i") }, [yes, None, yes, no, no, no]),
            (TextTest::Matches { pattern: "", flags: None }, [yes, None, yes, yes, yes, yes]),
        ];
        let dictionary = |k: DataType, v: DataType| DataType::Dictionary(Box::new(k), Box::new(v));
        for t in [
            DataType::Utf8,
            DataType::LargeUtf8,
            DataType::Utf8View,
            dictionary(DataType::UInt32, DataType::Utf8),
            dictionary(DataType::Int8, DataType::LargeUtf8),
            dictionary(DataType::Int64, DataType::Utf8View),
        ] {
            for (test, expected) in cases {
                assert_eq!(answers(&t, test), expected, "{t} {test:?}");
            }
        }
    }

    #[test]
    fn what_is_no_text_or_no_expression_is_refused() {
        let numbers = Arc::new(arrow::array::Int64Array::from(vec![1]));
        let array = RaggedArray::try_new(1, vec![], numbers).unwrap();
        assert!(super::test(&array, TextTest::Like("1")).is_err());
        let e = TextTest::Matches { pattern: "a(", flags: None }.check().unwrap_err().to_string();
        assert!(e.contains("a(") && e.contains("unclosed group"), "{e}");
        assert!(!e.contains("Syntax") && !e.contains("~~~"), "{e}");
        TextTest::Matches { pattern: "a|b", flags: Some("i") }.check().unwrap();
        assert!(TextTest::Matches { pattern: "a|b", flags: Some("?") }.check().is_err());
    }
}
