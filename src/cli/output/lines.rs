//! Writes results with one line `name = value` per value, for rows that are too wide for a table.

use std::io::Write;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use unicode_width::UnicodeWidthStr;

use super::cell::{CellFormatter, escape_controls};
use super::result_table::{ShownRows, TableStyle};
use crate::cli::command_failure::Outcome;

const EQUALS: &str = " = ";

pub(in crate::cli) struct LineWriter {
    schema: SchemaRef,
    style: TableStyle,
    rows: ShownRows,
}

impl LineWriter {
    pub(super) fn new(schema: SchemaRef, style: TableStyle) -> Self {
        let rows = ShownRows::new(style.max_rows);
        Self { schema, style, rows }
    }

    pub(super) fn push(&mut self, batch: &RecordBatch) {
        self.rows.push(batch);
    }

    pub(super) fn finish(self, out: &mut impl Write) -> Outcome {
        let fields = self.schema.fields();
        let names: Vec<String> = fields.iter().map(|f| escape_controls(f.name().clone())).collect();
        let longest = names.iter().map(|name| name.width()).max().unwrap_or(0);
        let width = self.style.compute_width_next_to(longest.saturating_add(EQUALS.len()));
        let mut first = true;
        for batch in &self.rows.batches {
            let cells = fields.iter().zip(batch.columns());
            let cells = cells.map(|(f, column)| CellFormatter::try_new(f, column));
            let cells = cells.collect::<Result<Vec<_>, _>>()?;
            for row in 0..batch.num_rows() {
                if !std::mem::take(&mut first) {
                    writeln!(out)?;
                }
                for (name, cells) in names.iter().zip(&cells) {
                    let indent = " ".repeat(longest - name.width());
                    writeln!(out, "{indent}{name}{EQUALS}{}", cells.format_at(row, width))?;
                }
            }
        }
        if first {
            writeln!(out, "no rows")?;
        }
        self.rows.write_rest(out)?;
        out.flush()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::*;
    use crate::cli::arguments::TableArgs;

    #[test]
    fn each_value_has_a_line_with_its_name() {
        let batch = RecordBatch::try_from_iter([
            ("id", Arc::new(Int64Array::from(vec![Some(1), None, Some(3)])) as ArrayRef),
            ("血圧", Arc::new(StringArray::from(vec!["v".repeat(60), "a\nb".into(), "".into()]))),
        ])
        .unwrap();
        let mut style = TableStyle::new(&TableArgs { max_rows: 2, max_width: None, types: false });
        style.set_line(Some(30));
        let mut lines = LineWriter::new(batch.schema(), style);
        lines.push(&batch);
        let mut out = Vec::new();
        lines.finish(&mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            format!(
                "  id = 1\n血圧 = {}…\n\n  id = NULL\n血圧 = a\\nb\n… 1 more row (3 in all)\n",
                "v".repeat(22)
            )
        );
    }
}
