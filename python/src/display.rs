//! Formats results as text and HTML.

use std::fmt::Write;

use serrate::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use serrate::arrow::datatypes::{DataType, Schema};
use serrate::arrow::error::ArrowError;
use serrate::arrow::util::display::{ArrayFormatter, FormatOptions};

/// Maximum number of elements shown per list.
const ELEMENTS: usize = 8;

/// Maximum number of characters shown per cell of text.
const LETTERS: usize = 60;

/// Formats a value on one line, with lists in brackets. Long lists are cut: `[1, 2, .. 97 more]`.
fn format_cell(array: &dyn Array, row: usize, out: &mut String) -> Result<(), ArrowError> {
    if array.is_null(row) || array.data_type() == &DataType::Null {
        out.push_str("NULL");
        return Ok(());
    }
    let list: Option<ArrayRef> = match array.data_type() {
        DataType::List(_) => Some(array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => Some(array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => Some(array.as_fixed_size_list().value(row)),
        _ => None,
    };
    if let Some(list) = list {
        out.push('[');
        for i in 0..list.len().min(ELEMENTS) {
            if i > 0 {
                out.push_str(", ");
            }
            format_cell(list.as_ref(), i, out)?;
        }
        if let Some(more @ 1..) = list.len().checked_sub(ELEMENTS) {
            let _ = write!(out, ", .. {more} more");
        }
        out.push(']');
        return Ok(());
    }
    if let Some(fields) = array.as_struct_opt() {
        out.push('{');
        for (i, (name, column)) in fields.column_names().iter().zip(fields.columns()).enumerate() {
            let _ = write!(out, "{}{name}: ", if i > 0 { ", " } else { "" });
            format_cell(column.as_ref(), row, out)?;
        }
        out.push('}');
        return Ok(());
    }
    let options = FormatOptions::default();
    let _ = write!(out, "{}", ArrayFormatter::try_new(array, &options)?.value(row));
    Ok(())
}

/// Returns a short name of a type, such as `int64[][]` for lists of lists.
pub(crate) fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::List(f) | DataType::LargeList(f) => format!("{}[]", type_name(f.data_type())),
        DataType::FixedSizeList(f, n) => format!("{}[{n}]", type_name(f.data_type())),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".into(),
        DataType::Boolean => "bool".into(),
        DataType::Struct(fields) => {
            let each = fields.iter().map(|f| format!("{} {}", f.name(), type_name(f.data_type())));
            format!("struct({})", each.collect::<Vec<_>>().join(", "))
        }
        DataType::Timestamp(..) => "timestamp".into(),
        DataType::Dictionary(_, v) => type_name(v),
        other => other.to_string().to_lowercase(),
    }
}

fn format_cells(batches: &[RecordBatch], rows: usize) -> Result<Vec<Vec<String>>, ArrowError> {
    let mut out = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            if out.len() == rows {
                return Ok(out);
            }
            let mut line = Vec::with_capacity(batch.num_columns());
            for column in batch.columns() {
                let mut text = String::new();
                format_cell(column.as_ref(), row, &mut text)?;
                line.push(text);
            }
            out.push(line);
        }
    }
    Ok(out)
}

/// Formats a table as text: column names, types, the first rows, and `..` if there are more.
pub(crate) fn format_text(
    schema: &Schema,
    batches: &[RecordBatch],
    rows: usize,
    more: bool,
) -> Result<String, ArrowError> {
    let mut lines: Vec<Vec<String>> = vec![
        schema.fields().iter().map(|f| f.name().clone()).collect(),
        schema.fields().iter().map(|f| type_name(f.data_type())).collect(),
    ];
    lines.extend(format_cells(batches, rows)?);
    for line in &mut lines {
        for cell in line {
            *cell = cell.replace('\n', "\\n");
            if cell.chars().count() > LETTERS {
                *cell = cell.chars().take(LETTERS - 2).chain("..".chars()).collect();
            }
        }
    }
    let widths: Vec<usize> = (0..schema.fields().len())
        .map(|c| lines.iter().map(|l| l[c].chars().count()).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    let rule: Vec<String> = widths.iter().map(|w| "-".repeat(*w)).collect();
    for (i, line) in lines.iter().enumerate() {
        let padded: Vec<String> = line
            .iter()
            .zip(&widths)
            .map(|(cell, w)| format!("{cell}{}", " ".repeat(w - cell.chars().count())))
            .collect();
        let _ = writeln!(out, "{}", padded.join("  ").trim_end());
        if i == 1 {
            let _ = writeln!(out, "{}", rule.join("  "));
        }
    }
    if more {
        out.push_str("..\n");
    }
    Ok(out.trim_end_matches('\n').to_owned())
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Formats a table as HTML, for notebooks.
pub(crate) fn format_html(
    schema: &Schema,
    batches: &[RecordBatch],
    rows: usize,
    more: bool,
) -> Result<String, ArrowError> {
    let mut out = String::from("<table class=\"serrate\"><thead><tr>");
    for f in schema.fields() {
        let _ = write!(
            out,
            "<th style=\"text-align:left\">{}<br><small>{}</small></th>",
            escape_html(f.name()),
            escape_html(&type_name(f.data_type()))
        );
    }
    out.push_str("</tr></thead><tbody>");
    for line in format_cells(batches, rows)? {
        out.push_str("<tr>");
        for cell in line {
            let _ = write!(out, "<td style=\"text-align:left\">{}</td>", escape_html(&cell));
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table>");
    if more {
        let _ = write!(out, "<small>the first {rows} rows</small>");
    }
    Ok(out)
}

/// Formats a whole array as one list on one line. Long lists are cut.
pub(crate) fn format_value(array: &ArrayRef) -> Result<String, ArrowError> {
    let mut out = String::from("[");
    for i in 0..array.len().min(ELEMENTS) {
        if i > 0 {
            out.push_str(", ");
        }
        format_cell(array.as_ref(), i, &mut out)?;
    }
    if let Some(more @ 1..) = array.len().checked_sub(ELEMENTS) {
        let _ = write!(out, ", .. {more} more");
    }
    out.push(']');
    Ok(out)
}
