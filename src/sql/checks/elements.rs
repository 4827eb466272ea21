//! Error messages that explain why a list cannot be searched for a value, as in `array_has([[1]],
//! 1)`. They replace DataFusion's messages, which show only the types.

use crate::functions::{StockFact, has_fact};

/// Splits a list of types at the commas outside parentheses.
pub(in crate::sql) fn split_top_level(types: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0usize, 0usize, Vec::new());
    for (at, c) in types.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(types[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(types[start..].trim());
    parts
}

/// Explains why a list cannot be searched for a string: its elements have a type, such as DATE, to
/// which a string must be cast explicitly. `list` and `value` are the types of the two arguments as
/// text. Returns `None` if the function `name` does not compare elements with a value, and for
/// other types of elements or values.
pub(in crate::sql) fn explain_searched(name: &str, list: &str, value: &str) -> Option<String> {
    const TYPES: [(&str, &str); 10] = [
        ("Date", "DATE"),
        ("Timestamp", "TIMESTAMP"),
        ("Time", "TIME"),
        ("Decimal", "DECIMAL(10, 2)"),
        ("Duration", "INTERVAL"),
        ("Interval", "INTERVAL"),
        ("Boolean", "BOOLEAN"),
        ("Float", "DOUBLE"),
        ("Int", "BIGINT"),
        ("UInt", "BIGINT"),
    ];
    let searches = has_fact(name, StockFact::FindsElement);
    let compares = searches || ["array_remove", "array_remove_all"].contains(&name);
    if !compares || !["Utf8", "LargeUtf8", "Utf8View"].contains(&value) {
        return None;
    }
    let (_, element) = list.strip_suffix(')')?.split_once("List(")?;
    let element = element.rsplit_once(" x ").map_or(element, |(_, element)| element);
    let element = element.trim_start_matches("non-null ");
    let (_, to) = TYPES.iter().find(|(start, _)| element.starts_with(start))?;
    // Functions that search for an element cast the searched string to a number themselves:
    // `array_has([1], '1')` is valid.
    if searches && ["DOUBLE", "BIGINT"].contains(to) {
        return None;
    }
    let call = if name == "array_has" { "list_contains" } else { name };
    Some(format!(
        "{call} compares a value with the elements of {list}, but the value is a string ({value}); cast the string, as in {call}(x, s::{to})"
    ))
}

/// Explains why a call such as `array_has(x, 1)` fails: the elements of `x`, or the searched value,
/// are lists. `types` has the argument types. Returns `None` if the reason is another one.
pub(in crate::sql) fn explain_element(name: &str, types: &str) -> Option<String> {
    let types = split_top_level(types);
    if let [list, value, ..] = types.as_slice()
        && let Some(said) = explain_searched(name, list, value)
    {
        return Some(said);
    }
    let depth = |t: &&str| t.matches("List(").count();
    let (list, value) = match (name, types.as_slice()) {
        ("array_has" | "array_append" | "array_position" | "array_remove", [list, value]) => {
            (list, value)
        }
        ("array_prepend", [value, list]) => (list, value),
        _ => return None,
    };
    if let Some(said) = explain_order(name, list) {
        return Some(said);
    }
    // The value is nested as deep as `list` or deeper, so it cannot be an element of `list`. If the
    // type of `list` contains Null, the list may be empty, and the type of its elements is unknown.
    if name == "array_has"
        && depth(list) > 0
        && depth(value) >= depth(list)
        && !list.contains("Null")
    {
        return Some(format!(
            "list_contains and = ANY search for one element of {list}, but the value is a list ({value}); use ragged_isin(x, ['a', 'b']) to test for each value of x whether the other list has it, or ragged_any(ragged_isin(x, ['a', 'b'])) to test whether it has at least one of them"
        ));
    }
    if depth(list) < 2 || depth(value) > 0 {
        return None;
    }
    Some(match name {
        "array_has" => format!(
            "list_contains and = ANY search for an element, but the elements of {list} are lists; use list_contains(x, [1]) to search for a list, or ragged_any(x == 1) to search for a value at any depth"
        ),
        "array_append" | "array_prepend" => format!(
            "|| appends an element to a list, but the elements of {list} are lists; use x || [2] to append a list"
        ),
        _ => {
            format!(
                "{name} takes an element, but the elements of {list} are lists; use a list as the element, as in {name}(x, [1])"
            )
        }
    })
}

/// Explains that a call has an element where a list argument is needed, or returns `None` if the
/// argument is a list. `list` is the type of the argument. DataFusion's message has only this type,
/// and does not say which argument must be the list.
fn explain_order(name: &str, list: &str) -> Option<String> {
    if list.contains("List") || list == "Null" {
        return None;
    }
    match name {
        "array_append" => Some(format!(
            "list_append, array_append and array_push_back take the list first and then the element, but the first argument is not a list ({list}); write list_append([1, 2], 3)"
        )),
        "array_prepend" => Some(format!(
            "list_prepend, array_prepend and array_push_front take the element first and then the list, but the second argument is not a list ({list}); write list_prepend(0, [1, 2])"
        )),
        _ => None,
    }
}
