//! Parses JSON text directly into columns, without building a tree of values.

use std::borrow::Cow;

use super::column_sink::{ColumnSink, JsonScalar};
use crate::error::{Error, Result};

/// Parser of one JSON text. Floats are correctly rounded, and integers stay distinct from floats.
#[derive(Debug)]
pub(super) struct JsonParser<'a> {
    bytes: &'a [u8],
    pos: usize,
    line: usize,
}

/// The byte order mark of UTF-8, which a file may begin with.
const MARK: &[u8] = b"\xEF\xBB\xBF";

impl<'a> JsonParser<'a> {
    /// Creates a parser of a text that begins at line `line` of its file.
    pub(super) fn new(bytes: &'a [u8], line: usize) -> Self {
        let marked = bytes.strip_prefix(MARK).filter(|_| line == 1);
        Self { bytes: marked.unwrap_or(bytes), pos: 0, line }
    }

    pub(super) fn make_error_here(&self, message: impl std::fmt::Display) -> Error {
        let before = &self.bytes[..self.pos.min(self.bytes.len())];
        let newlines = before.iter().filter(|b| **b == b'\n').count();
        let column = before.iter().rev().take_while(|b| **b != b'\n').count() + 1;
        Error::invalid(format!("line {}, column {column}: {message}", self.line + newlines))
    }

    fn describe_unexpected(&self, expected: &str) -> Error {
        match self.bytes.get(self.pos) {
            None => self.make_error_here(format!("{expected}, found the end of the input")),
            Some(b) => self.make_error_here(format!(
                "{expected}, found {:?}",
                char::from_u32(u32::from(*b)).unwrap_or('?')
            )),
        }
    }

    /// Skips white space and returns the next byte without consuming it; `None` at the end of the
    /// input.
    pub(super) fn peek_byte(&mut self) -> Option<u8> {
        while let Some(b) = self.bytes.get(self.pos) {
            if !matches!(b, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(*b);
            }
            self.pos += 1;
        }
        None
    }

    fn accept_byte(&mut self, byte: u8) -> bool {
        let next = self.peek_byte() == Some(byte);
        self.pos += usize::from(next);
        next
    }

    fn expect_byte(&mut self, byte: u8, what: &str) -> Result<()> {
        if self.accept_byte(byte) { Ok(()) } else { Err(self.describe_unexpected(what)) }
    }

    pub(super) fn expect_end(&mut self) -> Result<()> {
        match self.peek_byte() {
            None => Ok(()),
            Some(_) => Err(self.describe_unexpected(
                "expected the end of the input after the JSON value (remove the text that follows it)",
            )),
        }
    }

    pub(super) fn parse_object(
        &mut self,
        mut parse_member: impl FnMut(&mut Self, &str) -> Result<()>,
    ) -> Result<()> {
        self.expect_byte(b'{', "expected a JSON object in braces")?;
        if self.accept_byte(b'}') {
            return Ok(());
        }
        loop {
            self.peek_byte();
            let key = self.parse_string()?;
            self.expect_byte(b':', "expected a colon after the key of a JSON object")?;
            parse_member(self, &key)?;
            if self.accept_byte(b'}') {
                return Ok(());
            }
            self.expect_byte(
                b',',
                "expected a comma or a closing brace after the member of a JSON object",
            )?;
        }
    }

    pub(super) fn parse_array(
        &mut self,
        mut parse_element: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.expect_byte(b'[', "expected a JSON list in brackets")?;
        if self.accept_byte(b']') {
            return Ok(());
        }
        loop {
            parse_element(self)?;
            if self.accept_byte(b']') {
                return Ok(());
            }
            self.expect_byte(
                b',',
                "expected a comma or a closing bracket after the element of a JSON list",
            )?;
        }
    }

    pub(super) fn parse_element(&mut self, sink: &mut ColumnSink) -> Result<()> {
        match self.peek_byte() {
            Some(b'[') => {
                sink.begin_list()?;
                self.parse_array(|p| p.parse_element(sink))?;
                sink.end_list();
                Ok(())
            }
            Some(b'{') => Err(sink.make_element_error("a value or a list of values", "an object; write the members of the object as columns".into())),
            Some(b'"') => {
                let text = self.parse_string()?;
                sink.push_scalar(JsonScalar::Text(&text))
            }
            Some(b'n') => {
                self.parse_word("null")?;
                sink.push_null();
                Ok(())
            }
            Some(b't') => {
                self.parse_word("true")?;
                sink.push_scalar(JsonScalar::Bool(true))
            }
            Some(b'f') => {
                self.parse_word("false")?;
                sink.push_scalar(JsonScalar::Bool(false))
            }
            Some(b'-' | b'0'..=b'9') => {
                let number = self.parse_number()?;
                sink.push_scalar(number)
            }
            _ => Err(self.describe_unexpected("expected a JSON value (an object, a list, a string, a number, true, false or null)")),
        }
    }

    fn parse_word(&mut self, word: &str) -> Result<()> {
        if self.bytes[self.pos..].starts_with(word.as_bytes()) {
            self.pos += word.len();
            Ok(())
        } else {
            let rest = &self.bytes[self.pos..];
            let size = rest.iter().take(20).take_while(|b| b.is_ascii_alphanumeric()).count();
            let found = String::from_utf8_lossy(&rest[..size]);
            Err(self.make_error_here(format!(
                "expected the JSON word {word} (correct its spelling), found {found:?}"
            )))
        }
    }

    fn skip_digits(&mut self) -> usize {
        let rest = &self.bytes[self.pos..];
        let n = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        self.pos += n;
        n
    }

    fn parse_number(&mut self) -> Result<JsonScalar<'static>> {
        let start = self.pos;
        let next = |p: &Self| p.bytes.get(p.pos).copied();
        self.pos += usize::from(next(self) == Some(b'-'));
        let leading_zero = next(self) == Some(b'0');
        let whole = self.skip_digits();
        if whole == 0 || (leading_zero && whole > 1) {
            self.pos = start;
            return Err(self.make_error_here(if whole == 0 {
                "the number has no digit after its minus sign; write it like -0.5"
            } else {
                "the number has a leading zero, which JSON forbids; write it like 5 or 0.5"
            }));
        }
        let mut float = false;
        if next(self) == Some(b'.') {
            self.pos += 1;
            float = true;
            if self.skip_digits() == 0 {
                return Err(self.describe_unexpected(
                    "the number is incomplete: expected a digit after its decimal point",
                ));
            }
        }
        if matches!(next(self), Some(b'e' | b'E')) {
            self.pos += 1;
            float = true;
            self.pos += usize::from(matches!(next(self), Some(b'+' | b'-')));
            if self.skip_digits() == 0 {
                return Err(self.describe_unexpected(
                    "the number is incomplete: expected a digit in its exponent",
                ));
            }
        }
        let text = std::str::from_utf8(&self.bytes[start..self.pos]).unwrap_or_default();
        if !float {
            // Clamp an integer beyond 128 bits; later checks still find that it exceeds 64 bits.
            let most = if text.starts_with('-') { i128::MIN } else { i128::MAX };
            return Ok(JsonScalar::Int(text.parse().unwrap_or(most)));
        }
        text.parse().map(JsonScalar::Float).map_err(|_| {
            self.make_error_here(format!("{text:?} is not a JSON number; write it like 5 or -0.5"))
        })
    }

    fn parse_string(&mut self) -> Result<Cow<'a, str>> {
        if self.bytes.get(self.pos) != Some(&b'"') {
            return Err(self.describe_unexpected(
                "expected the opening quote of a JSON string (write the string in double quotes)",
            ));
        }
        let start = self.pos + 1;
        let mut end = start;
        let mut escaped = false;
        loop {
            match self.bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    end += 2;
                }
                Some(byte) if *byte < 0x20 => {
                    self.pos = end;
                    return Err(self.make_error_here(format!(
                        "the string has the control character U+{byte:04X}; write it as \\u{byte:04x}"
                    )));
                }
                Some(_) => end += 1,
                None => {
                    return Err(
                        self.make_error_here("the string has no closing quote; end it with \"")
                    );
                }
            }
        }
        let text = if escaped {
            let quoted = &self.bytes[start - 1..=end];
            serde_json::from_slice::<String>(quoted)
                .map(Cow::Owned)
                .map_err(|e| self.make_error_here(e))?
        } else {
            std::str::from_utf8(&self.bytes[start..end]).map(Cow::Borrowed).map_err(|_| {
                self.make_error_here("the string is not UTF-8; save the file as UTF-8")
            })?
        };
        self.pos = end + 1;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_number(text: &str) -> Result<JsonScalar<'static>> {
        let mut parser = JsonParser::new(text.as_bytes(), 1);
        let number = parser.parse_number()?;
        parser.expect_end()?;
        Ok(number)
    }

    #[test]
    fn numbers_are_read_as_written() {
        assert!(matches!(parse_number("-0"), Ok(JsonScalar::Int(0))));
        assert!(
            matches!(parse_number("18446744073709551615"), Ok(JsonScalar::Int(i)) if i == u64::MAX.into())
        );
        assert!(matches!(parse_number(&"9".repeat(60)), Ok(JsonScalar::Int(i128::MAX))));
        assert!(matches!(parse_number("-1.5e-3"), Ok(JsonScalar::Float(x)) if x == -1.5e-3));
        assert!(matches!(parse_number("1E400"), Ok(JsonScalar::Float(x)) if x.is_infinite()));
        // A number with more digits than a float holds becomes the nearest float.
        assert!(
            matches!(parse_number("0.1000000000000000055511151231257827"), Ok(JsonScalar::Float(x)) if x == 0.1)
        );
        for wrong in ["-", "01", "1.", ".5", "1e", "1e+", "+1", "0x1", "1 2", "Infinity"] {
            assert!(parse_number(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn texts_are_unescaped() {
        let text = |t: &str| JsonParser::new(t.as_bytes(), 1).parse_string().map(Cow::into_owned);
        assert_eq!(text(r#""a\u00e9\"\\\ud83d\ude00""#).unwrap(), "a\u{e9}\"\\\u{1F600}");
        assert_eq!(text("\"plain \u{1F600}\"").unwrap(), "plain \u{1F600}");
        for wrong in ["\"open", "\"\\", "\"\\\"", "\"\\q\"", "\"\n\"", r#""\ud83d""#, "bare"] {
            assert!(text(wrong).is_err(), "{wrong}");
        }
        assert!(JsonParser::new(b"\"\xff\"", 1).parse_string().is_err());
    }

    #[test]
    fn places_are_counted_from_one() {
        let mut parser = JsonParser::new(b"\n  [1,\n  ?]", 7);
        let error = parser.parse_array(|p| p.expect_byte(b'1', "expected a one")).unwrap_err();
        assert!(error.to_string().starts_with("line 9, column 3: expected a one"), "{error}");
    }
}
