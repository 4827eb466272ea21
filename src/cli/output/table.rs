//! Results as aligned tables or Markdown.

use std::io::{self, Write};
use std::ops::Range;

use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, SchemaRef};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

use super::cell::{CellFormatter, escape_controls, group_digits};
use crate::cli::args::TableArgs;
use crate::cli::error::Outcome;

const CELL_WIDTH: usize = 48;
/// Minimum width, in characters, to which values are truncated on a narrow terminal. If lines are still too
/// long, columns are omitted.
const LEAST_WIDTH: usize = 16;
const OMITTED: &str = "…";
/// Maximum number of omitted columns whose names are listed.
const NAMES: usize = 5;

#[derive(Clone, Debug)]
pub(in crate::cli) struct TableStyle {
    /// Maximum number of rows, or `None` for all.
    max_rows: Option<usize>,
    /// Maximum width of a value, or `None` for no limit.
    max_width: Option<usize>,
    /// Width of a line in characters, or `None` for no limit. Values are truncated and columns omitted to fit
    /// it.
    line: Option<usize>,
    types: bool,
    markdown: bool,
}

impl TableStyle {
    pub(in crate::cli) fn new(args: &TableArgs, line: Option<usize>) -> Self {
        Self {
            max_rows: (args.max_rows > 0).then_some(args.max_rows),
            max_width: match args.max_width {
                None => Some(CELL_WIDTH),
                Some(0) => None,
                width => width,
            },
            line: line.filter(|_| args.max_width.is_none()),
            types: args.types,
            markdown: false,
        }
    }

    pub(super) fn markdown(look: &Self) -> Self {
        Self { max_rows: None, max_width: None, line: None, types: look.types, markdown: true }
    }
}

/// Returns the width of the terminal in characters, if standard output is a terminal.
pub(in crate::cli) fn terminal_width() -> Option<usize> {
    Table::new().width().map(usize::from)
}

pub(in crate::cli) struct TableWriter {
    schema: SchemaRef,
    look: TableStyle,
    shown: Vec<RecordBatch>,
    rows: usize,
}

impl TableWriter {
    pub(super) fn new(schema: SchemaRef, look: TableStyle) -> Self {
        Self { schema, look, shown: Vec::new(), rows: 0 }
    }

    pub(super) fn push(&mut self, batch: &RecordBatch) {
        let left = self.look.max_rows.map_or(usize::MAX, |max| max.saturating_sub(self.rows));
        self.rows += batch.num_rows();
        if left > 0 {
            self.shown.push(batch.slice(0, left.min(batch.num_rows())));
        }
    }

    pub(super) fn finish(self, out: &mut impl Write) -> Outcome {
        let mut width = self.look.max_width;
        let all: Vec<Option<usize>> = (0..self.schema.fields().len()).map(Some).collect();
        let mut table = self.render_table(&all, width)?;
        let mut hidden = 0..0;
        if let Some(line) = self.look.line {
            // Truncates values until each line fits, then omits columns.
            while let Some(w) = width.filter(|w| *w > LEAST_WIDTH) {
                if table.lines().all(|l| l.chars().count() <= line) {
                    break;
                }
                width = Some((w * 3 / 4).max(LEAST_WIDTH));
                table = self.render_table(&all, width)?;
            }
            let widths: Vec<usize> =
                table.column_max_content_widths().into_iter().map(usize::from).collect();
            hidden = choose_hidden(&widths, line);
            if !hidden.is_empty() {
                let mut shown = all;
                shown.splice(hidden.clone(), [None]);
                table = self.render_table(&shown, width)?;
            }
        }
        write_lines(&table, out)?;
        let more = self.rows - self.shown.iter().map(RecordBatch::num_rows).sum::<usize>();
        if more > 0 {
            let rows = if more == 1 { "row" } else { "rows" };
            writeln!(out, "… {} more {rows}", group_digits(more))?;
        }
        if !hidden.is_empty() {
            let columns = if hidden.len() == 1 { "column" } else { "columns" };
            let names = self.schema.fields()[hidden.clone()].iter().map(|f| f.name().as_str());
            let names: Vec<&str> = names.take(NAMES).collect();
            let rest = if hidden.len() > NAMES { ", .." } else { "" };
            let n = group_digits(hidden.len());
            writeln!(out, "… {n} more {columns}: {}{rest}", escape_controls(names.join(", ")))?;
        }
        out.flush()?;
        Ok(())
    }

    /// Renders columns by index, with values of at most `width` characters. `None` marks omitted columns.
    fn render_table(&self, columns: &[Option<usize>], width: Option<usize>) -> Outcome<Table> {
        let mut table = Table::new();
        let preset =
            if self.look.markdown { presets::ASCII_MARKDOWN } else { presets::UTF8_FULL_CONDENSED };
        table.load_preset(preset).set_content_arrangement(ContentArrangement::Disabled);
        let escape = |text: String| match self.look.markdown {
            true => text.replace('|', "\\|"),
            false => text,
        };
        let fields: Vec<Option<&FieldRef>> =
            columns.iter().map(|at| at.map(|i| &self.schema.fields()[i])).collect();
        table.set_header(fields.iter().map(|f| {
            let Some(f) = f else { return OMITTED.to_owned() };
            let name = escape(escape_controls(f.name().clone()));
            match (self.look.types, self.look.markdown) {
                (false, _) => name,
                (true, false) => format!("{name}\n{}", f.data_type()),
                (true, true) => format!("{name} `{}`", f.data_type()),
            }
        }));
        for (i, field) in fields.iter().enumerate() {
            if field.is_some_and(|f| f.data_type().is_numeric())
                && let Some(column) = table.column_mut(i)
            {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for batch in &self.shown {
            let cells = fields
                .iter()
                .zip(columns)
                .map(|(field, at)| {
                    let (Some(field), Some(at)) = (field, at) else { return Ok(None) };
                    CellFormatter::try_new(field, batch.column(*at).as_ref()).map(Some)
                })
                .collect::<Result<Vec<_>, _>>()?;
            for row in 0..batch.num_rows() {
                table.add_row(cells.iter().map(|cells| match cells {
                    Some(cells) => Cell::new(escape(cells.text(row, width))),
                    None => Cell::new(OMITTED),
                }));
            }
        }
        Ok(table)
    }
}

/// Chooses the columns to omit so that the others and the mark `…` fit in a line. Omits columns in the
/// middle, because tables begin with identifiers and often end with computed columns.
fn choose_hidden(widths: &[usize], line: usize) -> Range<usize> {
    // A column takes its content, a space on either side, and a border.
    let full_width = |width: &usize| width.saturating_add(3);
    let mut left = line.saturating_sub(1);
    if widths.iter().map(full_width).sum::<usize>() <= left {
        return 0..0;
    }
    left = left.saturating_sub(full_width(&1));
    let mut hidden = 0..widths.len();
    // Shows columns from both ends in turn. After a column that is too wide, shows columns only from the
    // other end.
    let (mut front, mut open) = (true, [true, true]);
    while hidden.len() > 1 && open != [false, false] {
        let next = if front { hidden.start } else { hidden.end - 1 };
        let width = widths.get(next).map_or(usize::MAX, full_width);
        let side = &mut open[usize::from(front)];
        // At least one column is shown, however wide it is.
        let first = hidden.len() == widths.len();
        if *side && (width <= left || first) {
            left = left.saturating_sub(width);
            hidden = if front { next + 1..hidden.end } else { hidden.start..next };
        } else {
            *side = false;
        }
        front = !front;
    }
    if widths.len() < 2 { 0..0 } else { hidden }
}

fn write_lines(table: &Table, out: &mut impl Write) -> io::Result<()> {
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    fn write_columns(widths: &[usize], line: Option<usize>) -> String {
        let columns = widths.iter().enumerate().map(|(i, width)| {
            let values: ArrayRef = match i % 2 {
                0 => Arc::new(StringArray::from(vec!["v".repeat(*width)])),
                _ => Arc::new(Int64Array::from(vec![7])),
            };
            (format!("{i}{}", "_".repeat(width.saturating_sub(1))), values)
        });
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let look =
            TableStyle { max_rows: None, max_width: Some(48), line, types: false, markdown: false };
        let mut table = TableWriter::new(batch.schema(), look);
        table.push(&batch);
        let mut out = Vec::new();
        table.finish(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_in_the_middle_give_way() {
        let few = write_columns(&[10, 10, 10], Some(40));
        assert!(!few.contains("more column") && few.contains("1_________"), "{few}");
        let text = write_columns(&[10; 9], Some(60));
        assert!(text.lines().take(5).all(|l| l.chars().count() <= 60), "{text}");
        let header = text.lines().nth(1).unwrap();
        assert!(header.starts_with("│ 0_________ ┆ 1_________ ┆ … ┆ 7_________ ┆ 8___"), "{text}");
        let names = ["2_________", "3_________", "4_________", "5_________", "6_________"];
        assert!(text.ends_with(&format!("… 5 more columns: {}\n", names.join(", "))), "{text}");
        // After a column that is too wide, no column from the same end is shown, but columns from the other
        // end are.
        let text = write_columns(&[5, 14, 5, 40, 5, 5], Some(40));
        assert!(text.contains("0____ ┆ … ┆") || text.contains("0____ ┆ 1"), "{text}");
        assert!(text.contains("5____ │"), "{text}");
        assert!(text.lines().take(5).all(|l| l.chars().count() <= 40), "{text}");
        // Without a line width, no column is omitted.
        assert!(!write_columns(&[10; 9], None).contains("more column"));
        // At least one column is shown, however narrow the line is.
        assert!(write_columns(&[30, 30], Some(10)).contains("1 more column: 1___"));
        assert!(!write_columns(&[30], Some(10)).contains("more column"));
    }

    #[test]
    fn what_is_hidden_is_as_little_as_can_be() {
        assert_eq!(choose_hidden(&[], 80), 0..0);
        assert_eq!(choose_hidden(&[1, 1, 1], 13), 0..0);
        assert_eq!(choose_hidden(&[1, 1, 1], 12), 1..3);
        assert_eq!(choose_hidden(&[1, 1, 1, 1], 16), 1..3);
        for line in 0..200 {
            let widths = [3, 9, 27, 1, 4, 12, 2];
            let hidden = choose_hidden(&widths, line);
            let shown = widths.iter().enumerate().filter(|(i, _)| !hidden.contains(i));
            let taken: usize = shown.map(|(_, w)| w + 3).sum();
            let mark = if hidden.is_empty() { 0 } else { 4 };
            let alone = hidden == (1..widths.len());
            assert!(taken + mark < line.max(1) || alone, "{line}: {hidden:?}");
        }
    }
}
