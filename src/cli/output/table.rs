//! Aligned tables for people, and Markdown.

use std::io::{self, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

use super::cell::{Cells, grouped, one_line};
use crate::cli::args::TableArgs;
use crate::cli::error::Outcome;

/// Width of a value when nothing asks for another.
const CELL_WIDTH: usize = 48;
/// No narrower than this for the sake of a narrow terminal.
const LEAST_WIDTH: usize = 16;

/// How a table looks.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Look {
    /// Rows shown; `None` shows all.
    max_rows: Option<usize>,
    /// Characters of one value; `None` shows all.
    max_width: Option<usize>,
    /// Characters of a line; tables shrink their values to fit.
    line: Option<usize>,
    types: bool,
    markdown: bool,
}

impl Look {
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

/// Characters on a line of the terminal, when standard output is one.
pub(in crate::cli) fn terminal_width() -> Option<usize> {
    Table::new().width().map(usize::from)
}

/// Collects the rows that are shown and counts the others.
pub(in crate::cli) struct TableWriter {
    schema: SchemaRef,
    look: Look,
    shown: Vec<RecordBatch>,
    rows: usize,
}

impl TableWriter {
    pub(super) fn new(schema: SchemaRef, look: Look) -> Self {
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
        let mut table = self.render(width)?;
        if let Some(line) = self.look.line {
            // Narrower values until a line fits; a table of very many columns runs over all the same.
            while let Some(w) = width.filter(|w| *w > LEAST_WIDTH) {
                if table.lines().all(|l| l.chars().count() <= line) {
                    break;
                }
                width = Some((w * 3 / 4).max(LEAST_WIDTH));
                table = self.render(width)?;
            }
        }
        write_lines(&table, out)?;
        let more = self.rows - self.shown.iter().map(RecordBatch::num_rows).sum::<usize>();
        if more > 0 {
            let rows = if more == 1 { "row" } else { "rows" };
            writeln!(out, "… {} more {rows}", grouped(more))?;
        }
        out.flush()?;
        Ok(())
    }

    fn render(&self, width: Option<usize>) -> Outcome<Table> {
        let mut table = Table::new();
        let preset =
            if self.look.markdown { presets::ASCII_MARKDOWN } else { presets::UTF8_FULL_CONDENSED };
        table.load_preset(preset).set_content_arrangement(ContentArrangement::Disabled);
        let escape = |text: String| match self.look.markdown {
            true => text.replace('|', "\\|"),
            false => text,
        };
        table.set_header(self.schema.fields().iter().map(|f| {
            let name = escape(one_line(f.name().clone()));
            match (self.look.types, self.look.markdown) {
                (false, _) => name,
                (true, false) => format!("{name}\n{}", f.data_type()),
                (true, true) => format!("{name} `{}`", f.data_type()),
            }
        }));
        for (i, field) in self.schema.fields().iter().enumerate() {
            if field.data_type().is_numeric()
                && let Some(column) = table.column_mut(i)
            {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for batch in &self.shown {
            let cells = self
                .schema
                .fields()
                .iter()
                .zip(batch.columns())
                .map(|(field, column)| Cells::try_new(field, column.as_ref()))
                .collect::<Result<Vec<_>, _>>()?;
            for row in 0..batch.num_rows() {
                table.add_row(cells.iter().map(|c| Cell::new(escape(c.text(row, width)))));
            }
        }
        Ok(table)
    }
}

fn write_lines(table: &Table, out: &mut impl Write) -> io::Result<()> {
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}
