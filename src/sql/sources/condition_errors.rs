//! Errors of conditions that DataFusion's Parquet reader evaluates.

use std::iter::Peekable;
use std::str::Chars;

use arrow::error::ArrowError;
use datafusion::error::DataFusionError;

/// Text before the error of a condition, in debug format, within the error of the reader.
const FAILED_CONDITION: &str = "Error evaluating filter predicate: ";

/// Returns the error of a condition, such as a division by zero in `WHERE 1 / n > 2`, as a filter
/// above the scan would return it. `text` is the error of a Parquet reader. Returns `None` for
/// errors of the file, and for errors of several fields, such as a path and a message.
///
/// DataFusion 55 converts the error of a condition to text in debug format, and wraps the text in a
/// Parquet error, so that the file seems to be damaged.
pub(super) fn find_condition_error(text: &str) -> Option<DataFusionError> {
    let (_, mut failed) = text.split_once(FAILED_CONDITION)?;
    while let Some(inner) = failed.strip_prefix("Context(") {
        failed = inner.split_once("\", ")?.1;
    }
    let arrow = failed.strip_prefix("ArrowError(");
    if arrow.is_some_and(|kind| kind.starts_with("DivideByZero")) {
        return Some(ArrowError::DivideByZero.into());
    }
    let message = read_literal(failed)?;
    let Some((kind, _)) = arrow.and_then(|kind| kind.split_once('(')) else {
        return Some(DataFusionError::Execution(message));
    };
    Some(match kind {
        "CastError" => ArrowError::CastError(message).into(),
        "ParseError" => ArrowError::ParseError(message).into(),
        "ArithmeticOverflow" => ArrowError::ArithmeticOverflow(message).into(),
        "InvalidArgumentError" => ArrowError::InvalidArgumentError(message).into(),
        _ => DataFusionError::Execution(message),
    })
}

/// Returns the first string literal of a text in debug format, without quotes and escapes. Returns
/// `None` if it is a field of a struct, because other fields may have the message.
fn read_literal(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('"').filter(|(kind, _)| !kind.contains('{'))?;
    let mut rest = rest.chars().peekable();
    let mut literal = String::new();
    loop {
        match rest.next()? {
            '"' => return Some(literal),
            '\\' => literal.push(read_escape(&mut rest)?),
            c => literal.push(c),
        }
    }
}

/// Returns the character of an escape in debug format, whose backslash has been read.
fn read_escape(rest: &mut Peekable<Chars<'_>>) -> Option<char> {
    Some(match rest.next()? {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        '0' => '\0',
        'u' if rest.peek() == Some(&'{') => {
            rest.next();
            let code: String = rest.take_while(|c| *c != '}').collect();
            char::from_u32(u32::from_str_radix(&code, 16).ok()?)?
        }
        c => c,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(failed: &DataFusionError) -> String {
        let reader = format!("Parquet error: External: {FAILED_CONDITION}{failed:?}");
        find_condition_error(&reader).unwrap().strip_backtrace()
    }

    #[test]
    fn errors_of_conditions_are_those_of_filters() {
        let text = "Cannot cast string 'a\"\\\n\u{7}é' to value of Int32 type".to_owned();
        let errors: [DataFusionError; 6] = [
            ArrowError::DivideByZero.into(),
            ArrowError::CastError(text.clone()).into(),
            ArrowError::ParseError(text.clone()).into(),
            ArrowError::ArithmeticOverflow("Overflow happened on: 1 + 2".into()).into(),
            ArrowError::InvalidArgumentError(text.clone()).into(),
            DataFusionError::Execution(text.clone()),
        ];
        for e in errors {
            assert_eq!(told(&e), e.strip_backtrace());
        }
        let within = DataFusionError::Execution(text.clone()).context("a step");
        assert_eq!(told(&within), DataFusionError::Execution(text).strip_backtrace());
    }

    #[test]
    fn errors_of_files_stay() {
        assert!(find_condition_error("Parquet error: EOF: expected 8 bytes").is_none());
        let of_file = DataFusionError::from(crate::Error::file("codes.parquet", "ends early"));
        let reader = format!("Parquet error: External: {FAILED_CONDITION}{of_file:?}");
        assert!(find_condition_error(&reader).is_none(), "{reader}");
    }
}
