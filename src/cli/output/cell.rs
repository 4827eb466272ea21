//! Displays one value, such as `[[12, 7, … 34], [3], … 40 more lists]`, truncated to a width.

use std::ops::Range;

use arrow::array::{Array, AsArray, GenericListArray, OffsetSizeTrait};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use serrate_core::internal::times::make_span_formatter;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Display form of NULL. NaN is displayed as `NaN`.
const NULL: &str = "NULL";
/// Maximum width of a list inside another list, in terminal columns. If 40 % of the width of the
/// outer list is more than this, the maximum is these 40 %.
const INNER_WIDTH: usize = 14;
/// Minimum width, in terminal columns, of the first element of an outermost list that is narrower
/// than [`UNIT_WIDTH`]. An element that does not fit in the list is cut, but not below this width.
const FIRST_WIDTH: usize = 6;
/// Display form of an inner list that does not fit in a narrow outer list.
const ELLIPSIS: &str = "[…]";
/// Minimum width of a list that ends in `… 99 more values`. A narrower list ends in `… 99 more`.
const UNIT_WIDTH: usize = 28;

/// Formats the values of one column. A list that is too wide is shortened: an outermost list to
/// `[12, 7, … 34 more values]`, and a list inside another list to `[12, 7, … 5]`, in which 5 is its
/// last element.
pub(super) struct CellFormatter<'a> {
    node: CellNode<'a>,
    end: ListEnding,
}

enum ListEnding {
    Shape(String),
    Plain,
}

impl ListEnding {
    /// Describes the last `more` elements of an outermost list of `width` terminal columns.
    fn describe_rest(&self, element: &CellNode<'_>, more: usize, width: usize) -> String {
        let unit = match (self, element, more) {
            (Self::Shape(shape), ..) => return format!("… {shape}"),
            (Self::Plain, ..) if width < UNIT_WIDTH => "",
            (Self::Plain, CellNode::List { .. }, 1) => " list",
            (Self::Plain, CellNode::List { .. }, _) => " lists",
            (Self::Plain, _, 1) => " value",
            (Self::Plain, ..) => " values",
        };
        format!("… {} more{unit}", group_digits(more))
    }
}

enum CellNode<'a> {
    List {
        range: Box<dyn Fn(usize) -> Range<usize> + 'a>,
        nulls: Option<&'a NullBuffer>,
        child: Box<CellNode<'a>>,
    },
    Struct {
        fields: Vec<(&'a str, CellNode<'a>)>,
        nulls: Option<&'a NullBuffer>,
    },
    Duration {
        text: Box<dyn Fn(usize) -> String + 'a>,
        nulls: Option<&'a NullBuffer>,
    },
    Leaf {
        formatter: ArrayFormatter<'a>,
        /// True for numbers: a number in a list is never cut, because a number without its last
        /// digits would be read as another number.
        whole: bool,
    },
}

impl<'a> CellFormatter<'a> {
    pub(super) fn try_new(field: &Field, array: &'a dyn Array) -> Result<Self, ArrowError> {
        let end = find_tensor_shape(field).map_or(ListEnding::Plain, ListEnding::Shape);
        Ok(Self { node: CellNode::try_new(array, false)?, end })
    }

    /// Formats the value at index `row`, cut to `width` terminal columns; `None` sets no limit.
    pub(super) fn format_at(&self, row: usize, width: Option<usize>) -> String {
        let text = self.node.format_value(row, width, Some(&self.end));
        cut_text(escape_controls(text), width)
    }
}

impl<'a> CellNode<'a> {
    fn try_new(array: &'a dyn Array, nested: bool) -> Result<Self, ArrowError> {
        Ok(match array.data_type() {
            DataType::List(_) => Self::new_ragged(array.as_list::<i32>())?,
            DataType::LargeList(_) => Self::new_ragged(array.as_list::<i64>())?,
            DataType::FixedSizeList(_, size) => {
                let list = array.as_fixed_size_list();
                let size = usize::try_from(*size).unwrap_or(0);
                let range = move |i: usize| i * size..(i + 1) * size;
                Self::new_list(range, list.nulls(), list.values().as_ref())?
            }
            DataType::Struct(_) => {
                let array = array.as_struct();
                let fields = array
                    .fields()
                    .iter()
                    .zip(array.columns())
                    .map(|(f, c)| Ok((f.name().as_str(), Self::try_new(c.as_ref(), true)?)))
                    .collect::<Result<_, ArrowError>>()?;
                Self::Struct { fields, nulls: array.nulls() }
            }
            other => match make_span_formatter(array) {
                Some(text) => Self::Duration { text, nulls: array.nulls() },
                None => {
                    let options = FormatOptions::new()
                        .with_null(NULL)
                        .with_display_error(true)
                        .with_quoted_strings(nested);
                    let formatter = ArrayFormatter::try_new(array, &options)?;
                    Self::Leaf { formatter, whole: other.is_numeric() }
                }
            },
        })
    }

    fn cut_first(&self, text: String, width: usize) -> String {
        match self {
            Self::Leaf { whole: true, .. } => text,
            Self::List { .. } if text.width() > width.max(INNER_WIDTH / 2) => ELLIPSIS.to_owned(),
            _ => cut_text(text, Some(width)),
        }
    }

    fn new_ragged<O: OffsetSizeTrait>(list: &'a GenericListArray<O>) -> Result<Self, ArrowError> {
        let offsets = list.value_offsets();
        let range = move |i: usize| offsets[i].as_usize()..offsets[i + 1].as_usize();
        Self::new_list(range, list.nulls(), list.values().as_ref())
    }

    fn new_list(
        range: impl Fn(usize) -> Range<usize> + 'a,
        nulls: Option<&'a NullBuffer>,
        child: &'a dyn Array,
    ) -> Result<Self, ArrowError> {
        let child = Box::new(Self::try_new(child, true)?);
        Ok(Self::List { range: Box::new(range), nulls, child })
    }

    /// Formats the value at index `i`. `end` determines what follows the first elements of a list
    /// that is shortened, such as `… 34 more values`. `end` is `None` for a list inside another
    /// list; if such a list is shortened, its last element follows.
    fn format_value(&self, i: usize, width: Option<usize>, end: Option<&ListEnding>) -> String {
        let null = |nulls: &Option<&NullBuffer>| nulls.is_some_and(|n| n.is_null(i));
        match self {
            Self::Leaf { formatter, .. } => formatter.value(i).to_string(),
            Self::List { nulls, .. }
            | Self::Struct { nulls, .. }
            | Self::Duration { nulls, .. }
                if null(nulls) =>
            {
                NULL.into()
            }
            Self::Duration { text, .. } => text(i),
            Self::Struct { fields, .. } => format_struct(fields, i, width, end),
            Self::List { range, child, .. } => format_list(child, range(i), width, end),
        }
    }
}

fn format_struct(
    fields: &[(&str, CellNode<'_>)],
    i: usize,
    width: Option<usize>,
    end: Option<&ListEnding>,
) -> String {
    let mut text = String::from("{");
    for (k, (name, node)) in fields.iter().enumerate() {
        let left = width.map(|w| w.saturating_sub(text.width() + name.width()));
        if left.is_some_and(|left| k > 0 && left < 6) {
            text.push_str(", …");
            break;
        }
        let separator = if k == 0 { "" } else { ", " };
        let value = node.format_value(i, left, end);
        text.push_str(&format!("{separator}{name}: {value}"));
    }
    text.push('}');
    text
}

/// Formats the list that consists of the elements `range` of `child`.
fn format_list(
    child: &CellNode<'_>,
    range: Range<usize>,
    width: Option<usize>,
    end: Option<&ListEnding>,
) -> String {
    let Some(width) = width else {
        return join_list(range.map(|k| child.format_value(k, None, None)), "");
    };
    let limit = width.saturating_sub(2);
    if let Some(parts) = format_fitting(child, range.clone(), limit, Some(limit)).into_complete() {
        return join_list(parts.into_iter(), "");
    }
    let outermost = end.is_some();
    let more = |more: usize| match end {
        Some(end) => end.describe_rest(child, more, width),
        None => {
            let last = child.format_value(range.end - 1, Some(INNER_WIDTH), None);
            format!("… {}", cut_text(last, Some(INNER_WIDTH)))
        }
    };
    let is_shape = matches!(end, Some(ListEnding::Shape(_)));
    // The only element of an outermost list takes the whole width, because no count of further
    // elements follows it.
    let is_alone = outermost && !is_shape && range.len() == 1;
    let inner = match is_alone {
        true => limit,
        false => INNER_WIDTH.max(limit * 2 / 5).min(limit.max(INNER_WIDTH)),
    };
    // A list inside another list shows its last element after `…`, so `first` ends before the last
    // element.
    let first = range.start..range.end - usize::from(!outermost);
    let find_limit = |others: usize| limit.saturating_sub(more(others).width() + 2);
    let fit = |limit| format_fitting(child, first.clone(), limit, Some(inner)).0;
    // The elements share the line with the ending `… 999 more`, whose width depends on how many
    // elements are omitted. Therefore, chooses the elements twice: first as if the number of
    // omitted elements had its maximum, then, if the actual number has fewer digits, with the width
    // that this leaves.
    let mut limit = match is_alone {
        true => limit,
        false => find_limit(range.len().saturating_sub(1).max(1)),
    };
    let mut parts = fit(limit);
    if outermost && !parts.is_empty() {
        let wider = find_limit(range.len().saturating_sub(parts.len()).max(1));
        if wider > limit {
            limit = wider;
            parts = fit(limit);
        }
    }
    if parts.is_empty() && !first.is_empty() {
        let narrow = outermost && width < UNIT_WIDTH;
        let room = if narrow { limit.max(FIRST_WIDTH) } else { inner };
        let text = child.format_value(first.start, Some(room), None);
        parts.push(match narrow {
            true => child.cut_first(text, room),
            false => cut_text(text, Some(room)),
        });
    }
    let left = range.len().saturating_sub(parts.len());
    let ending = if left == 0 && !is_shape { String::new() } else { more(left) };
    join_list(parts.into_iter(), &ending)
}

/// Formats the elements of `range` one by one, each shortened to at most `each` terminal columns.
/// Stops before the element with which the text would exceed `width` columns. A caller that wants
/// no shortened elements passes `width` as `each`: the function then also stops before an element
/// that would be shortened. The returned flag is whether all elements are in the text.
fn format_fitting(
    node: &CellNode<'_>,
    range: Range<usize>,
    width: usize,
    each: Option<usize>,
) -> FittingParts {
    let mut parts = Vec::new();
    let mut used = 0;
    for k in range {
        let part = node.format_value(k, each, None);
        used += part.width() + if parts.is_empty() { 0 } else { 2 };
        if used > width || part.contains('…') && each == Some(width) {
            return FittingParts(parts, false);
        }
        parts.push(part);
    }
    FittingParts(parts, true)
}

struct FittingParts(Vec<String>, bool);

impl FittingParts {
    fn into_complete(self) -> Option<Vec<String>> {
        self.1.then_some(self.0)
    }
}

fn join_list(parts: impl Iterator<Item = String>, end: &str) -> String {
    let mut text = String::from("[");
    for part in parts.chain((!end.is_empty()).then(|| end.to_owned())) {
        if text.len() > 1 {
            text.push_str(", ");
        }
        text.push_str(&part);
    }
    text.push(']');
    text
}

/// Escapes control characters, which would break the lines of a table.
pub(super) fn escape_controls(text: String) -> String {
    if !text.contains(char::is_control) {
        return text;
    }
    text.chars()
        .flat_map(|c| {
            let (plain, escaped) = if c.is_control() { (None, Some(c)) } else { (Some(c), None) };
            plain.into_iter().chain(escaped.into_iter().flat_map(char::escape_default))
        })
        .collect()
}

/// Cuts text that is wider than `width`, and ends it with `…`. Text that ends in `]` stays
/// unchanged, because it is the text of a list, which is already shortened.
fn cut_text(text: String, width: Option<usize>) -> String {
    match width {
        Some(width) if width > 0 && !text.ends_with(']') => cut_to_width(text, width),
        _ => text,
    }
}

/// Cuts the text of a list to `width`: `[1967, 1968, … 34 more]` becomes `[1967, 19…, …]` or, if
/// that does not fit either, `[…]`. Text that omits no elements is cut like any other text.
pub(super) fn cut_list(text: String, width: usize) -> String {
    const END: &str = ", …]";
    match (text.split_once(", … "), width.checked_sub(END.width())) {
        (Some((first, _)), Some(room)) if room > 1 && text.ends_with(']') => {
            format!("{}{END}", cut_to_width(first.to_owned(), room))
        }
        (Some(_), _) if width >= ELLIPSIS.width() && text.ends_with(']') => ELLIPSIS.to_owned(),
        _ => cut_to_width(text, width),
    }
}

/// Truncates text that is wider than `width` terminal columns, and ends it with `…`.
pub(in crate::cli) fn cut_to_width(text: String, width: usize) -> String {
    if text.width() <= width {
        return text;
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= width
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// Returns the shape of each tensor in a column, such as `256×64`. Returns `None` unless `field`
/// has the extension type `arrow.fixed_shape_tensor`.
fn find_tensor_shape(field: &Field) -> Option<String> {
    if field.extension_type_name() != Some("arrow.fixed_shape_tensor") {
        return None;
    }
    let metadata: serde_json::Value =
        serde_json::from_str(field.extension_type_metadata()?).ok()?;
    let sizes = metadata.get("shape")?.as_array()?;
    let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
    Some(sizes.join("×"))
}

/// Formats a number with thousands separators, such as `1,234,567`.
pub(in crate::cli) fn group_digits(number: impl ToString) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, DurationMicrosecondArray, Float32Array, Int64Array, ListArray, RecordBatch,
        StringArray, StructArray,
    };
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::{Int32Type, UInt16Type};

    use super::*;

    fn show(array: &ArrayRef, row: usize, width: Option<usize>) -> String {
        let field = Field::new("x", array.data_type().clone(), true);
        CellFormatter::try_new(&field, array.as_ref()).unwrap().format_at(row, width)
    }

    fn lists<const N: usize>(rows: [Option<Vec<Option<i32>>>; N]) -> ArrayRef {
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(rows))
    }

    fn nested(lengths: &[usize], inner: ArrayRef) -> ArrayRef {
        let field = Arc::new(Field::new_list_field(inner.data_type().clone(), true));
        let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
        Arc::new(ListArray::new(field, offsets, inner, None))
    }

    #[test]
    fn short_lists_are_whole_and_null_is_not_empty() {
        let a = lists([Some(vec![Some(1), None, Some(3)]), Some(vec![]), None]);
        let shown: Vec<_> = (0..3).map(|i| show(&a, i, Some(48))).collect();
        assert_eq!(shown, ["[1, NULL, 3]", "[]", "NULL"]);
    }

    #[test]
    fn null_and_nan_differ() {
        let a: ArrayRef = Arc::new(Float32Array::from(vec![Some(f32::NAN), None, Some(1.5)]));
        let shown: Vec<_> = (0..3).map(|i| show(&a, i, Some(48))).collect();
        assert_eq!(shown, ["NaN", "NULL", "1.5"]);
    }

    #[test]
    fn a_long_flat_list_says_how_many_more_values_it_has() {
        let a: ArrayRef = lists([Some((0..1234).map(Some).collect())]);
        let text = show(&a, 0, Some(32));
        assert_eq!(text, "[0, 1, 2, … 1,231 more values]");
        assert!(text.chars().count() <= 32);
        assert_eq!(show(&a, 0, None).matches(',').count(), 1233);
    }

    #[test]
    fn long_lists_of_lists_end_with_the_last_value_inside_and_the_count_outside() {
        let inner = ListArray::from_iter_primitive::<UInt16Type, _, _>(
            (0..42u16)
                .map(|i| Some((0..if i % 2 == 0 { 30 } else { 1 }).map(move |k| Some(i * 3 + k)))),
        );
        let a = nested(&[42], Arc::new(inner));
        assert_eq!(show(&a, 0, Some(40)), "[[0, 1, 2, … 29], [3], … 40 more lists]");
    }

    #[test]
    fn a_slice_shows_its_own_rows() {
        let a = lists([Some(vec![Some(1)]), Some(vec![Some(2), Some(3)]), Some(vec![Some(4)])]);
        assert_eq!(show(&a.slice(1, 1), 0, Some(48)), "[2, 3]");
    }

    #[test]
    fn strings_are_quoted_within_lists_only_and_stay_on_one_line() {
        let s: ArrayRef = Arc::new(StringArray::from(vec!["a\nb", "c, d"]));
        assert_eq!(show(&s, 0, Some(48)), "a\\nb");
        assert_eq!(show(&nested(&[2], s), 0, Some(48)), "[\"a\\nb\", \"c, d\"]");
    }

    #[test]
    fn long_text_is_cut() {
        let s: ArrayRef = Arc::new(StringArray::from(vec!["ääääääääää"]));
        assert_eq!(show(&s, 0, Some(5)), "ääää…");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let s: ArrayRef = Arc::new(StringArray::from(vec!["血圧測定の結果"]));
        assert_eq!(show(&s, 0, Some(7)), "血圧測…");
        assert_eq!(show(&s, 0, Some(14)), "血圧測定の結果");
    }

    #[test]
    fn durations_in_lists_have_days_and_a_time() {
        let hours = [4951 * 24 + 3, 24].map(|hours| Some(hours * 3_600_000_000));
        let inner: ArrayRef = Arc::new(DurationMicrosecondArray::from(hours.to_vec()));
        assert_eq!(show(&inner, 0, Some(48)), "4951d 03:00");
        assert_eq!(show(&nested(&[2], inner), 0, Some(48)), "[4951d 03:00, 1d]");
        let none: ArrayRef = Arc::new(DurationMicrosecondArray::from(vec![None]));
        assert_eq!(show(&none, 0, Some(48)), "NULL");
    }

    #[test]
    fn narrow_lists_keep_their_count() {
        let a: ArrayRef = lists([Some((1967..2067).map(Some).collect())]);
        assert_eq!(show(&a, 0, Some(20)), "[1967, … 99 more]");
        // One element is shown, so 29 or 99 elements are omitted. Both numbers have two digits, so
        // they leave the same width for the element.
        let births: ArrayRef = Arc::new(StringArray::from(vec!["BIRTH"; 101]));
        for count in [30, 100] {
            let text = show(&nested(&[count], births.slice(0, count)), 0, Some(20));
            assert_eq!(text, format!("[\"BIRTH\", … {} more]", count - 1));
        }
        let inner = lists([Some((1..90).map(Some).collect()), None]);
        assert_eq!(show(&nested(&[2], inner), 0, Some(16)), "[[…], … 1 more]");
        let s: ArrayRef = Arc::new(StringArray::from(vec!["2003-01-01T00:00:00"; 3]));
        assert_eq!(show(&nested(&[3], s.clone()), 0, Some(24)), "[\"2003-01-01…, … 2 more]");
        // No count follows the only element of a list, so the element takes the whole width.
        assert_eq!(show(&nested(&[1], s.slice(0, 1)), 0, Some(16)), "[\"2003-01-01T0…]");
    }

    #[test]
    fn structs_name_their_fields() {
        let batch = RecordBatch::try_from_iter([
            ("t", Arc::new(Int64Array::from(vec![7])) as ArrayRef),
            ("v", lists([Some(vec![Some(1), Some(2)])])),
        ])
        .unwrap();
        let a: ArrayRef = Arc::new(StructArray::from(batch));
        assert_eq!(show(&a, 0, Some(48)), "{t: 7, v: [1, 2]}");
        assert_eq!(show(&nested(&[1], a), 0, Some(48)), "[{t: 7, v: [1, 2]}]");
    }

    #[test]
    fn every_width_gives_something_finite() {
        let inner = lists([Some(vec![Some(1); 50]), None, Some(vec![]), Some(vec![None; 9])]);
        let a = nested(&[4], inner);
        for width in 0..80 {
            let text = show(&a, 0, Some(width));
            assert!(text.starts_with('[') && text.ends_with(']'), "{width}: {text}");
            assert!(text.chars().count() <= width.max(40), "{width}: {text}");
        }
    }

    #[test]
    fn numbers_are_grouped() {
        let texts = [1, 12, 123, 1234, 1_234_567].map(group_digits);
        assert_eq!(texts, ["1", "12", "123", "1,234", "1,234,567"]);
    }
}
