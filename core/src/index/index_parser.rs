//! Parses index expressions in NumPy's notation.

use super::Index;
use crate::error::{Error, Result};

/// Parses an index expression in NumPy's notation without the brackets.
///
/// Items are separated by commas; each is an integer, a slice `start:stop:step` with any part
/// omitted, a list of integers `[0, 2, -1]` or of booleans `[True, False]`, `None` (or `newaxis`),
/// or `...` (at most once).
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::index::{Index, parse_index};
/// let items = parse_index("2:5, -1, ::2, [0, 3]")?;
/// assert_eq!(items[1], Index::At(-1));
/// assert_eq!(items[2], Index::Slice { start: None, stop: None, step: Some(2) });
/// assert_eq!(items[3], vec![0, 3].into());
/// assert!(parse_index("1:x").unwrap_err().to_string().contains("position 2"));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// If `text` is empty, has an item of another form, or has a slice with a step of 0. The message
/// has the position of the error, in characters from 0.
pub fn parse_index(text: &str) -> Result<Vec<Index>> {
    let wrong = |position: usize, message: String| {
        Error::invalid(format!("index expression {text:?}, position {position}: {message}"))
    };
    if text.trim().is_empty() {
        return Err(wrong(
            0,
            "the expression is empty; write an index such as `0`, `2:5` or `::2, -1`".into(),
        ));
    }
    let mut items = Vec::new();
    let mut position = 0;
    let pieces = split_items(text);
    for (i, piece) in pieces.iter().enumerate() {
        let last = i + 1 == pieces.len();
        let at = position + piece.chars().take_while(|c| c.is_whitespace()).count();
        match piece.trim() {
            "..." if items.contains(&Index::Rest) => {
                return Err(wrong(
                    position,
                    "the index contains more than one `...`; use at most one".into(),
                ));
            }
            "..." => items.push(Index::Rest),
            "None" | "newaxis" | "np.newaxis" => items.push(Index::NewAxis),
            // NumPy allows a trailing comma.
            "" if last => {}
            "" => {
                return Err(wrong(
                    position,
                    "there is no item before this comma; write an integer or a slice".into(),
                ));
            }
            list if list.starts_with('[') => items.push(parse_list(list, at, &wrong)?),
            _ => items.push(parse_item(piece, position, &wrong)?),
        }
        position += piece.chars().count() + 1;
    }
    Ok(items)
}

/// Returns the position in `text`, in characters from 0, of each item that [`parse_index`] parses.
#[cfg(feature = "sql")]
pub fn find_item_positions(text: &str) -> Vec<usize> {
    let mut position = 0usize;
    let mut found = Vec::new();
    for piece in split_items(text) {
        let blank = piece.chars().take_while(|c| c.is_whitespace()).count();
        if !piece.trim().is_empty() {
            found.push(position.saturating_add(blank));
        }
        position = position.saturating_add(piece.chars().count()).saturating_add(1);
    }
    found
}

fn split_items(text: &str) -> Vec<&str> {
    let mut in_brackets = false;
    text.split(|c: char| {
        in_brackets = match c {
            '[' => true,
            ']' => false,
            _ => in_brackets,
        };
        c == ',' && !in_brackets
    })
    .collect()
}

fn parse_list(
    text: &str,
    mut position: usize,
    wrong: &dyn Fn(usize, String) -> Error,
) -> Result<Index> {
    let end = position + text.chars().count();
    let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    let inner = inner.ok_or_else(|| wrong(end, "expected ] at the end of the list".into()))?;
    position += 1;
    let (mut numbers, mut flags) = (Vec::new(), Vec::new());
    let values: Vec<&str> = inner.split(',').collect();
    for (i, value) in values.iter().enumerate() {
        let at = position + value.chars().take_while(|c| c.is_whitespace()).count();
        match value.trim() {
            "" if i + 1 == values.len() => {}
            "True" | "true" if numbers.is_empty() => flags.push(true),
            "False" | "false" if numbers.is_empty() => flags.push(false),
            number if flags.is_empty() => numbers.push(parse_number(number, at, wrong)?),
            other => {
                return Err(wrong(
                    at,
                    format!(
                        "the list starts with a boolean, so every item must be True or False, but {other:?} follows; write only booleans or only integers"
                    ),
                ));
            }
        }
        position += value.chars().count() + 1;
    }
    Ok(if flags.is_empty() { numbers.into() } else { flags.into() })
}

fn parse_number(number: &str, at: usize, wrong: &dyn Fn(usize, String) -> Error) -> Result<i64> {
    number.parse().map_err(|e: std::num::ParseIntError| match e.kind() {
        std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
            wrong(at, format!("{number} does not fit a 64-bit integer"))
        }
        _ => wrong(
            at,
            format!("expected an integer, a slice, a list, None or `...`, found {number:?}"),
        ),
    })
}

fn parse_item(
    piece: &str,
    mut position: usize,
    wrong: &dyn Fn(usize, String) -> Error,
) -> Result<Index> {
    let mut parts = [None; 3];
    let mut count = 0;
    for part in piece.split(':') {
        let number = part.trim();
        let at = position + part.chars().take_while(|c| c.is_whitespace()).count();
        let Some(slot) = parts.get_mut(count) else {
            return Err(wrong(
                at,
                "a slice has more than three parts; write start:stop:step with at most two colons"
                    .into(),
            ));
        };
        if !number.is_empty() {
            let n = parse_number(number, at, wrong)?;
            if count == 2 && n == 0 {
                return Err(wrong(
                    at,
                    "a slice has a step of 0; use a positive or negative step".into(),
                ));
            }
            *slot = Some(n);
        }
        count += 1;
        position += part.chars().count() + 1;
    }
    Ok(match (count, parts) {
        (1, [Some(n), ..]) => Index::At(n),
        (_, [start, stop, step]) => Index::Slice { start, stop, step },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_masks_and_new_axes() {
        let one = |text: &str| parse_index(text).unwrap().remove(0);
        assert_eq!(one("[0, 2, -1]"), vec![0, 2, -1].into());
        assert_eq!(one(" [ 7 ,]"), vec![7].into());
        assert_eq!(one("[]"), Vec::<i64>::new().into());
        assert_eq!(one("[True, false]"), vec![true, false].into());
        assert_eq!(one("None"), Index::NewAxis);
        assert_eq!(
            parse_index("newaxis, [1,2], ..., np.newaxis").unwrap(),
            [Index::NewAxis, vec![1, 2].into(), Index::Rest, Index::NewAxis]
        );
    }

    #[cfg(feature = "sql")]
    #[test]
    fn items_have_positions() {
        assert_eq!(find_item_positions("[0, 1], -1,  ..., "), [0, 8, 13]);
        assert_eq!(find_item_positions(" ä:2,3"), [1, 5]);
    }

    #[test]
    fn mistakes_have_a_position() {
        let at = |text: &str| parse_index(text).unwrap_err().to_string();
        assert!(at("0, [1, x]").contains("position 7: expected an integer"), "{}", at("0, [1, x]"));
        assert!(at("[1, 2").contains("position 5: expected ]"), "{}", at("[1, 2"));
        assert!(at("[1, True]").contains("position 4"), "{}", at("[1, True]"));
        assert!(
            at("[True, 1]").contains("position 7: the list starts with a boolean"),
            "{}",
            at("[True, 1]")
        );
        assert!(at("[1],,2").contains("position 4"), "{}", at("[1],,2"));
        assert!(at("[1]2").contains("expected ]") && at("[[1], [2]]").contains("position 1"));
        assert!(at("none").contains("found \"none\""));
    }
}
