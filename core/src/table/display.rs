//! The text form of a table.

use std::fmt;

use arrow::array::{Array, ArrayRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::{Column, RaggedTable};
use crate::array::Layout;

/// Maximum number of rows that are shown per column, and of elements that are shown per list.
const SHOWN: usize = 4;
const MAX_CHARACTERS: usize = 100;

/// Shows the axes with their sizes, and the columns with their types and first values.
///
/// ```
/// # use serrate_core as serrate;
/// use std::sync::Arc;
/// use arrow::array::{Int32Array, UInt16Array};
/// use serrate::table::RaggedTable;
/// let table = RaggedTable::builder()
///     .names(["patient", "visit", "code"])
///     .lengths([3, 1])?
///     .lengths([2, 5, 1, 3])?
///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
///     .column("code", 2, Arc::new(UInt16Array::from_iter_values(0..11)))
///     .build()?;
/// assert_eq!(table.to_string(), "\
/// RaggedTable: 2 columns on 3 axes
///   axis 0  patient  2
///   axis 1  visit    4   in lists of 1 to 3
///   axis 2  code     11  in lists of 1 to 5
///   age   @0  Int32   71, 38
///   code  @2  UInt16  [[0, 1], [2, 3, 4, …, 6], [7]], [[8, 9, 10]]");
/// # Ok::<(), serrate::Error>(())
/// ```
impl fmt::Display for RaggedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count =
            |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
        write!(
            f,
            "RaggedTable: {} on {}",
            count(self.columns().len(), "column", "columns"),
            count(self.ndim(), "axis", "axes")
        )?;
        let axes: Vec<[String; 3]> = (0..self.ndim())
            .map(|axis| {
                let layout =
                    axis.checked_sub(1).and_then(|i| self.axes().get(i)).map(|a| a.layout());
                let size = layout.map_or(self.num_rows(), Layout::children).to_string();
                [
                    self.axis_name(axis).unwrap_or_default().into(),
                    size,
                    layout.map(describe_lengths).unwrap_or_default(),
                ]
            })
            .collect();
        let widest = |texts: &mut dyn Iterator<Item = &str>| {
            texts.map(|t| t.chars().count()).max().unwrap_or(0)
        };
        let names = widest(&mut axes.iter().map(|a| a[0].as_str()));
        let sizes = widest(&mut axes.iter().map(|a| a[1].as_str()));
        for (axis, [name, size, lengths]) in axes.iter().enumerate() {
            let name = if names == 0 { String::new() } else { format!("{name:names$}  ") };
            write_line(f, &format!("  axis {axis}  {name}{size:sizes$}  {lengths}"))?;
        }
        let types: Vec<String> = self
            .columns()
            .iter()
            .map(|c| c.data_type().to_string())
            .chain(self.scalars().iter().map(|s| s.data_type().to_string()))
            .collect();
        let scalars = self.scalars().iter().map(super::Scalar::name);
        let names = widest(&mut self.names().chain(scalars));
        let kinds = widest(&mut types.iter().map(String::as_str));
        for (column, kind) in self.columns().iter().zip(&types) {
            let (name, axis) = (column.name(), column.axis());
            let values = self.format_first_values(column);
            write_line(f, &format!("  {name:names$}  @{axis}  {kind:kinds$}  {values}"))?;
        }
        for (scalar, kind) in self.scalars().iter().zip(&types[self.columns().len()..]) {
            let name = scalar.name();
            let value = format_value(scalar.value(), 0);
            write_line(f, &format!("  {name:names$}  =   {kind:kinds$}  {value}"))?;
        }
        Ok(())
    }
}

fn write_line(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    write!(f, "\n{}", text.trim_end())
}

fn describe_lengths(layout: &Layout) -> String {
    let lists = layout.lists();
    match (0..lists).map(|l| layout.length(l)).min() {
        None => String::new(),
        Some(least) if least == layout.max_length() => format!("in lists of {least}"),
        Some(least) => format!("in lists of {least} to {}", layout.max_length()),
    }
}

impl RaggedTable {
    fn format_first_values(&self, column: &Column) -> String {
        let mut out = String::new();
        for row in 0..self.num_rows() {
            let before = if row == 0 { "" } else { ", " };
            let text = self.format_element(column, 0, row);
            let left = MAX_CHARACTERS.saturating_sub(out.chars().count());
            if row == SHOWN || (row > 0 && text.chars().count() + 2 > left) {
                out.push_str(", …");
                break;
            }
            out.push_str(before);
            out.push_str(&text);
        }
        if out.chars().count() > MAX_CHARACTERS {
            out = out.chars().take(MAX_CHARACTERS).collect::<String>() + "…";
        }
        out
    }

    fn format_element(&self, column: &Column, axis: usize, index: usize) -> String {
        if axis == column.axis() {
            return format_value(column.values(), index);
        }
        if column.list_nulls()[axis].as_ref().is_some_and(|n| n.is_null(index)) {
            return "null".into();
        }
        let range = self.axes()[axis].layout().range(index);
        let mut parts = Vec::new();
        for child in range.clone() {
            let at = child - range.start;
            if range.len() > SHOWN && (SHOWN - 1..range.len() - 1).contains(&at) {
                if at == SHOWN - 1 {
                    parts.push("…".into());
                }
            } else {
                parts.push(self.format_element(column, axis + 1, child));
            }
        }
        format!("[{}]", parts.join(", "))
    }
}

fn format_value(values: &ArrayRef, index: usize) -> String {
    const LONGEST: usize = 40;
    let one = values.slice(index, 1);
    let options = FormatOptions::new().with_null("null");
    let Ok(formatter) = ArrayFormatter::try_new(&one, &options) else { return "?".into() };
    let Ok(text) = formatter.value(0).try_to_string() else { return "?".into() };
    let text = if text.chars().count() > LONGEST {
        text.chars().take(LONGEST).collect::<String>() + "…"
    } else {
        text
    };
    let is_text = matches!(
        values.data_type(),
        arrow::datatypes::DataType::Utf8
            | arrow::datatypes::DataType::LargeUtf8
            | arrow::datatypes::DataType::Utf8View
    );
    if is_text && one.is_valid(0) { format!("{text:?}") } else { text }
}
