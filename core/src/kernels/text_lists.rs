//! Parses strings such as `[1, 2, NULL]` and `[['a, b'], []]` as lists.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, LargeListArray, StringArray, StringBuilder};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field};

use super::time_texts::complete_times;
use crate::array::{leaf_type, list_depth};
use crate::error::{Error, Result};

/// Parses each string as a list of the type `to`. A null string gives a null list.
///
/// A list is in brackets, with commas between its elements; blanks around an element are ignored.
/// `NULL`, in upper or lower case, is a null element. An element in single or double quotes may
/// contain any character; a backslash escapes the character after it. If `safe` is set, a string
/// that is not a list gives a null list, and an element that is not a value of the leaf type
/// becomes null.
///
/// ```
/// # use serrate_core as serrate;
/// # use arrow::array::{Array, AsArray, StringArray};
/// # use arrow::datatypes::{DataType, Int64Type};
/// use serrate::internal::parse_lists;
/// let strings = StringArray::from(vec![Some("[1, 2, NULL]"), None, Some("[]")]);
/// let lists = parse_lists(&strings, &DataType::new_list(DataType::Int64, true), false)?;
/// let lists = lists.as_list::<i32>();
/// assert_eq!(lists.value(0).as_primitive::<Int64Type>().value(1), 2);
/// assert!(lists.value(0).is_null(2) && lists.is_null(1) && lists.value(2).is_empty());
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If `to` is not a type of lists of scalars. Without `safe`, also if a string is not a list with
/// as many levels as `to`, or an element is not a value of the leaf type.
pub fn parse_lists(texts: &StringArray, to: &DataType, safe: bool) -> Result<ArrayRef> {
    let (depth, leaf) = (list_depth(to), leaf_type(to));
    if depth == 0 || leaf.is_nested() {
        return Err(Error::invalid(format!(
            "a string cannot be cast to {to}; choose a type of lists of numbers, strings, booleans or times"
        )));
    }
    let mut lists = ListLevels::new(depth);
    for text in texts {
        let parsed = text.map(|text| (text, ListParser { rest: text }.parse_whole_text(depth)));
        match parsed {
            None => lists.append_element(ParsedElement::Null, 0),
            Some((_, Some(list))) => lists.append_element(list, 0),
            Some((_, None)) if safe => lists.append_element(ParsedElement::Null, 0),
            Some((text, None)) => {
                let shape = format!("{}1, 2{}", "[".repeat(depth), "]".repeat(depth));
                return Err(Error::invalid(format!(
                    "the string {text:?} is not a list of {depth} level(s); write a list such as {shape}, or use TRY_CAST to get NULL"
                )));
            }
        }
    }
    let options = CastOptions { safe, ..CastOptions::default() };
    Ok(cast_with_options(&lists.build_lists(leaf, &options)?, to, &options)?)
}

enum ParsedElement {
    Null,
    Text(String),
    List(Vec<ParsedElement>),
}

struct ListParser<'a> {
    rest: &'a str,
}

impl ListParser<'_> {
    fn parse_whole_text(mut self, depth: usize) -> Option<ParsedElement> {
        self.skip_blanks();
        let list = self.parse_list(depth)?;
        self.skip_blanks();
        self.rest.is_empty().then_some(list)
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take_char(&mut self, expected: char) -> bool {
        match self.rest.strip_prefix(expected) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn parse_list(&mut self, depth: usize) -> Option<ParsedElement> {
        if !self.take_char('[') {
            return None;
        }
        let mut elements = Vec::new();
        self.skip_blanks();
        if self.take_char(']') {
            return Some(ParsedElement::List(elements));
        }
        loop {
            self.skip_blanks();
            elements.push(match depth {
                1 => self.parse_value()?,
                _ if self.rest.starts_with('[') => self.parse_list(depth - 1)?,
                _ => match self.parse_value()? {
                    ParsedElement::Null => ParsedElement::Null,
                    _ => return None,
                },
            });
            self.skip_blanks();
            if self.take_char(']') {
                return Some(ParsedElement::List(elements));
            }
            if !self.take_char(',') {
                return None;
            }
        }
    }

    fn parse_value(&mut self) -> Option<ParsedElement> {
        let quote = self.rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
        if let Some(quote) = quote {
            self.take_char(quote);
            return self.parse_quoted(quote).map(ParsedElement::Text);
        }
        let end = self.rest.find([',', ']'])?;
        let (value, rest) = self.rest.split_at(end);
        self.rest = rest;
        let value = value.trim();
        Some(match value.eq_ignore_ascii_case("null") {
            true => ParsedElement::Null,
            false if value.starts_with('[') => return None,
            false => ParsedElement::Text(value.to_owned()),
        })
    }

    /// Parses the rest of a quoted element, after its opening quote. Returns `None` without a
    /// closing quote.
    fn parse_quoted(&mut self, quote: char) -> Option<String> {
        let mut value = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => value.push(chars.next()?.1),
                c if c == quote => {
                    self.rest = &self.rest[at + c.len_utf8()..];
                    return Some(value);
                }
                c => value.push(c),
            }
        }
        None
    }
}

struct ListLevels {
    /// Lengths and validity of the lists of each level, outermost first.
    levels: Vec<(Vec<usize>, Vec<bool>)>,
    leaves: StringBuilder,
}

impl ListLevels {
    fn new(depth: usize) -> Self {
        Self { levels: vec![(Vec::new(), Vec::new()); depth], leaves: StringBuilder::new() }
    }

    fn append_element(&mut self, element: ParsedElement, level: usize) {
        let Some((lengths, valid)) = self.levels.get_mut(level) else {
            match element {
                ParsedElement::Text(text) => self.leaves.append_value(text),
                ParsedElement::Null | ParsedElement::List(_) => self.leaves.append_null(),
            }
            return;
        };
        match element {
            ParsedElement::List(elements) => {
                lengths.push(elements.len());
                valid.push(true);
                elements.into_iter().for_each(|element| self.append_element(element, level + 1));
            }
            ParsedElement::Null | ParsedElement::Text(_) => {
                lengths.push(0);
                valid.push(false);
            }
        }
    }

    /// Converts the strings to the type `leaf` and returns nested `LargeList`s of them. Returns an
    /// error if a string is not a value of this type, unless `options.safe` makes it null.
    fn build_lists(mut self, leaf: &DataType, options: &CastOptions<'_>) -> Result<ArrayRef> {
        let mut values: ArrayRef = Arc::new(self.leaves.finish());
        let is_time = matches!(leaf, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64);
        if is_time {
            values = complete_times(&values)?;
        }
        values = cast_with_options(&values, leaf, options)?;
        for (lengths, valid) in self.levels.into_iter().rev() {
            let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
            let offsets = OffsetBuffer::<i64>::from_lengths(lengths);
            let nulls = NullBuffer::from(valid);
            values = Arc::new(LargeListArray::try_new(field, offsets, values, Some(nulls))?);
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::util::display::array_value_to_string;

    fn parse_one(text: &str, to: &DataType) -> std::result::Result<String, String> {
        let lists = parse_lists(&StringArray::from(vec![text]), to, false);
        let lists = lists.map_err(|e| e.to_string())?;
        array_value_to_string(&lists, 0).map_err(|e| e.to_string())
    }

    #[test]
    fn lists_are_parsed() {
        let of = |t: DataType| DataType::new_list(t, true);
        for (text, to, shown) in [
            ("[1, 2, NULL]", of(DataType::Int32), "[1, 2, ]"),
            (" [ 1 ,2 ] ", of(DataType::Int32), "[1, 2]"),
            ("[]", of(DataType::Int32), "[]"),
            ("[a, \"b, c\", 'd]', null, a b ]", of(DataType::Utf8), "[a, b, c, d], , a b]"),
            ("[1,,2]", of(DataType::Utf8), "[1, , 2]"),
            (r#"["a\"b", 'c\\d']"#, of(DataType::Utf8), r#"[a"b, c\d]"#),
            ("[[1, 2], [], NULL]", of(of(DataType::Int64)), "[[1, 2], [], ]"),
            ("[2024-1-5]", of(DataType::Date32), "[2024-01-05]"),
            ("[\"NULL\"]", of(DataType::Utf8), "[NULL]"),
        ] {
            assert_eq!(parse_one(text, &to).as_deref(), Ok(shown), "{text}");
        }
    }

    #[test]
    fn other_texts_are_errors() {
        let of = |t: DataType| DataType::new_list(t, true);
        for text in ["", "abc", "1", "[1, 2", "[1] 2", "[1, 2]]", "[[1]]", "NULL", "['a", "[1 [2]]"]
        {
            assert!(parse_one(text, &of(DataType::Int32)).is_err(), "{text}");
            let safe = parse_lists(&StringArray::from(vec![text]), &of(DataType::Int32), true);
            assert!(safe.is_ok_and(|lists| lists.is_null(0)), "{text}");
        }
        assert!(parse_one("[1, a]", &of(DataType::Int32)).is_err());
        assert!(parse_one("[1]", &of(of(DataType::Int32))).is_err());
        let structs = of(DataType::Struct(vec![Field::new("a", DataType::Int32, true)].into()));
        assert!(parse_one("[]", &structs).is_err_and(|e| e.contains("cannot be cast")));
    }
}
