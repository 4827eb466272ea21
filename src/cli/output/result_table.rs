//! Writes results as aligned tables, which are fitted to the terminal, or as Markdown tables.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::cell::{CellFormatter, cut_list, cut_to_width, escape_controls, group_digits};
use super::charset::Charset;
use super::number_texts::format_count;
use crate::cli::arguments::TableArgs;
use crate::cli::command_failure::Outcome;
use crate::functions::wrap_words;

/// Maximum width of a value, in terminal columns, unless the user sets another one.
const CELL_WIDTH: usize = 48;
/// Values and column names are not cut to fewer terminal columns than this. If the table still does
/// not fit the line, columns are omitted.
const LEAST_WIDTH: usize = 16;
/// If a [`TextTable`] does not fit the terminal, its column names are wrapped to lines of at most
/// this width.
const TEXT_HEADER: usize = 12;
const OMITTED: &str = "…";
/// Maximum number of omitted columns whose names are listed.
const MAX_LISTED_NAMES: usize = 5;

#[derive(Clone, Debug)]
pub(in crate::cli) struct TableStyle {
    pub(super) max_rows: Option<usize>,
    max_width: Option<usize>,
    /// Whether the user has set `max_width`. A table is then not fitted to the terminal, and may be
    /// wider.
    fixed: bool,
    /// Maximum width of a line, for which values are cut and columns are omitted; `None` for no
    /// limit.
    line: Option<usize>,
    /// Widths that the user has set for the first columns. A column without an entry here, or with
    /// the entry 0, has a width that depends on its values.
    widths: Vec<usize>,
    types: bool,
    markdown: bool,
    charset: Charset,
    /// If the table does not fit the terminal, column names are wrapped to lines of at most this
    /// width.
    header: usize,
    /// All columns from this index on are aligned to the right, whatever their types.
    numbers_from: usize,
    /// Whether the table shows the first column uncut and omits no column, even if the table is
    /// then wider than the terminal. SHOW sets this, because users copy the names of settings.
    first_whole: bool,
}

impl TableStyle {
    pub(in crate::cli) fn new(args: &TableArgs) -> Self {
        Self {
            max_rows: (args.max_rows > 0).then_some(args.max_rows),
            max_width: match args.max_width {
                None => Some(CELL_WIDTH),
                Some(0) => None,
                width => width,
            },
            fixed: args.max_width.is_some(),
            line: None,
            widths: Vec::new(),
            types: args.types,
            markdown: false,
            charset: Charset::Utf8,
            header: LEAST_WIDTH,
            numbers_from: usize::MAX,
            first_whole: false,
        }
    }

    /// Sets the maximum width of a line for the next result. If the user has set `max_width`, lines
    /// have no maximum.
    pub(in crate::cli) fn set_line(&mut self, line: Option<usize>) {
        self.line = line.filter(|_| !self.fixed);
    }

    pub(in crate::cli) fn set_first_whole(&mut self, whole: bool) {
        self.first_whole = whole;
    }

    pub(in crate::cli) fn set_widths(&mut self, widths: Vec<usize>) {
        self.widths = widths;
    }

    pub(in crate::cli) fn set_max_rows(&mut self, rows: usize) {
        self.max_rows = (rows > 0).then_some(rows);
    }

    /// Returns the maximum width of a value in the format `line`, after a name of width `name`.
    /// Returns `None` if values are written in full.
    pub(super) fn compute_width_next_to(&self, name: usize) -> Option<usize> {
        match self.line {
            Some(line) => Some(line.saturating_sub(name).max(LEAST_WIDTH)),
            None => self.max_width.filter(|_| self.fixed),
        }
    }

    pub(super) fn new_markdown(style: &Self) -> Self {
        Self {
            max_rows: None,
            max_width: None,
            line: None,
            widths: Vec::new(),
            markdown: true,
            ..style.clone()
        }
    }

    fn find_width_of_column(&self, at: usize) -> Option<usize> {
        self.widths.get(at).copied().filter(|width| *width > 0)
    }
}

/// Returns the width of the terminal: the environment variable `COLUMNS` or, if it is not set, the
/// width of the terminal on standard output. Returns `None` if both are unknown.
pub(in crate::cli) fn find_terminal_width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    columns.filter(|width| *width > 0).or_else(|| Table::new().width().map(usize::from))
}

pub(in crate::cli) struct TableWriter {
    schema: SchemaRef,
    style: TableStyle,
    rows: ShownRows,
}

pub(super) struct ShownRows {
    max: Option<usize>,
    pub(super) batches: Vec<RecordBatch>,
    total: usize,
}

impl ShownRows {
    pub(super) fn new(max: Option<usize>) -> Self {
        Self { max, batches: Vec::new(), total: 0 }
    }

    pub(super) fn push(&mut self, batch: &RecordBatch) {
        let left = self.max.map_or(usize::MAX, |max| max.saturating_sub(self.total));
        self.total += batch.num_rows();
        if left > 0 {
            self.batches.push(batch.slice(0, left.min(batch.num_rows())));
        }
    }

    /// Writes `… 12 more rows (52 in all)`, or nothing if all rows are shown.
    pub(super) fn write_rest(&self, out: &mut impl Write) -> io::Result<()> {
        let more = self.total - self.batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        if more == 0 {
            return Ok(());
        }
        let more = format_count(more, "more row", "more rows");
        writeln!(out, "… {more} ({} in all)", group_digits(self.total))
    }
}

/// A column in a printed table: a column of the result, or the column `…` in place of the omitted
/// columns.
#[derive(Clone, Copy, Debug)]
enum ShownColumn {
    Column {
        at: usize,
        width: Option<usize>,
        /// Maximum width of the lines into which the column name is broken; `None` for no limit.
        header: Option<usize>,
    },
    Omitted,
}

/// Whether values of a type are never cut: numbers, times and booleans. Without its last digits, a
/// number or a time would be read as another value.
fn is_shown_whole(t: &DataType) -> bool {
    t.is_numeric() || t.is_temporal() || matches!(t, DataType::Interval(_) | DataType::Boolean)
}

impl TableWriter {
    pub(super) fn new(schema: SchemaRef, style: TableStyle) -> Self {
        let rows = ShownRows::new(style.max_rows);
        Self { schema, style, rows }
    }

    pub(super) fn push(&mut self, batch: &RecordBatch) {
        self.rows.push(batch);
    }

    pub(super) fn finish(self, out: &mut impl Write) -> Outcome {
        let (shown, hidden) = self.choose_columns()?;
        write_lines(&self.render_table(&shown)?, out)?;
        self.rows.write_rest(out)?;
        if !hidden.is_empty() {
            let names = self.schema.fields()[hidden.clone()].iter().map(|f| f.name().as_str());
            let names: Vec<&str> = names.take(MAX_LISTED_NAMES).collect();
            let rest = if hidden.len() > MAX_LISTED_NAMES { ", .." } else { "" };
            let line = format!(
                "… {} ({} in all): {}{rest}",
                format_count(hidden.len(), "more column", "more columns"),
                group_digits(self.schema.fields().len()),
                escape_controls(names.join(", "))
            );
            match self.style.line {
                Some(width) => writeln!(out, "{}", wrap_words(&line, width, 2))?,
                None => writeln!(out, "{line}")?,
            }
        }
        out.flush()?;
        Ok(())
    }

    /// Returns the columns to show and the range of the omitted columns. The widths of the shown
    /// columns are such that the table fits the line.
    fn choose_columns(&self) -> Outcome<(Vec<ShownColumn>, Range<usize>)> {
        let count = self.schema.fields().len();
        // If lines have a maximum width, only this width limits a value, and `max_width` does not.
        let most = self.style.line.or(self.style.max_width);
        let free = |at| ShownColumn::Column {
            at,
            width: self.style.find_width_of_column(at).or(most),
            header: self.style.find_width_of_column(at),
        };
        let narrow = |at, width: usize| {
            let set = self.style.find_width_of_column(at);
            let width = set.unwrap_or(width);
            let is_whole = is_shown_whole(self.schema.field(at).data_type())
                || at == 0 && self.style.first_whole;
            let whole = set.is_none() && is_whole;
            ShownColumn::Column {
                at,
                width: (!whole).then_some(width),
                header: Some(width.min(self.style.header)),
            }
        };
        let all: Vec<ShownColumn> = (0..count).map(free).collect();
        let Some(line) = self.style.line else { return Ok((all, 0..0)) };
        let full: Vec<usize> =
            all.iter().map(|column| self.compute_full_width(*column)).collect::<Outcome<_>>()?;
        if full.iter().sum::<usize>() < line {
            return Ok((all, 0..0));
        }
        let least = (0..count).map(|at| self.compute_full_width(narrow(at, LEAST_WIDTH)));
        let hidden = match self.style.first_whole {
            true => 0..0,
            false => choose_hidden(&least.collect::<Outcome<Vec<_>>>()?, line),
        };
        let mark = if hidden.is_empty() { 0 } else { MARK };
        let room = line.saturating_sub(1).saturating_sub(mark);
        let kept: Vec<usize> = (0..count).filter(|at| !hidden.contains(at)).collect();
        // The greatest width to which values and names can be cut so that the table fits the line.
        let fits = find_greatest_width(LEAST_WIDTH, line, room, |width| {
            kept.iter().map(|at| self.compute_full_width(narrow(*at, width))).sum()
        })?;
        let mut shown: Vec<ShownColumn> = kept.iter().map(|at| narrow(*at, fits)).collect();
        let widths: Vec<usize> =
            shown.iter().map(|column| self.compute_full_width(*column)).collect::<Outcome<_>>()?;
        let mut left = room.saturating_sub(widths.iter().sum());
        for ((column, width), at) in shown.iter_mut().zip(widths).zip(&kept) {
            let more = full[*at].saturating_sub(width);
            if more <= left {
                *column = free(*at);
                left -= more;
            }
        }
        self.widen_headers(&mut shown, room)?;
        if !hidden.is_empty() {
            shown.insert(hidden.start, ShownColumn::Omitted);
        }
        Ok((shown, hidden))
    }

    /// Raises the maximum width of the lines into which the names of the columns `shown` are
    /// wrapped, as long as all columns together fit the width `room`. All names get the same
    /// maximum, except where the user has set the width of a column.
    fn widen_headers(&self, shown: &mut [ShownColumn], room: usize) -> Outcome {
        let widen = |column: ShownColumn, to: usize| match column {
            ShownColumn::Column { at, width, header: Some(least) }
                if self.style.find_width_of_column(at).is_none() =>
            {
                ShownColumn::Column { at, width, header: Some(least.max(to)) }
            }
            other => other,
        };
        let fits = find_greatest_width(0, room, room, |width| {
            shown.iter().map(|column| self.compute_full_width(widen(*column, width))).sum()
        })?;
        for column in shown {
            *column = widen(*column, fits);
        }
        Ok(())
    }

    /// Returns the number of terminal columns that `column` takes, with a space on each side and a
    /// border. Between the spaces, it is as wide as the widest value or the widest line of its
    /// name.
    fn compute_full_width(&self, column: ShownColumn) -> Outcome<usize> {
        let ShownColumn::Column { at, width, .. } = column else { return Ok(MARK) };
        let mut content =
            self.format_header(column).lines().map(UnicodeWidthStr::width).max().unwrap_or(0);
        for batch in &self.rows.batches {
            let cells = CellFormatter::try_new(&self.schema.fields()[at], batch.column(at))?;
            for row in 0..batch.num_rows() {
                content = content.max(self.format_cell(&cells, row, column, width).width());
            }
        }
        Ok(content.saturating_add(MARK - 1))
    }

    fn format_cell(
        &self,
        cells: &CellFormatter<'_>,
        row: usize,
        column: ShownColumn,
        width: Option<usize>,
    ) -> String {
        let text = cells.format_at(row, width);
        let ShownColumn::Column { at, .. } = column else { return text };
        // A list always shows an element, so `text` may be wider than `width`. If the user has set
        // this width, it must not be exceeded, so the text is cut again.
        match self.style.find_width_of_column(at) {
            Some(width) if text.width() > width => cut_list(text, width),
            _ => text,
        }
    }

    fn format_header(&self, column: ShownColumn) -> String {
        let ShownColumn::Column { at, header, .. } = column else { return OMITTED.to_owned() };
        let field = &self.schema.fields()[at];
        let name = self.escape_text(escape_controls(field.name().clone()));
        let name = match header {
            Some(width) => split_name(&name, width),
            None => name,
        };
        match (self.style.types, self.style.markdown) {
            (false, _) => name,
            (true, false) => {
                let kind = field.data_type().to_string();
                format!("{name}\n{}", header.map_or(kind.clone(), |w| cut_to_width(kind, w)))
            }
            (true, true) => format!("{name} `{}`", field.data_type()),
        }
    }

    fn escape_text(&self, text: String) -> String {
        if self.style.markdown { text.replace('|', "\\|") } else { text }
    }

    fn render_table(&self, columns: &[ShownColumn]) -> Outcome<Table> {
        let mut table = Table::new();
        let preset = match (self.style.markdown, self.style.charset) {
            (true, _) => presets::ASCII_MARKDOWN,
            (false, Charset::Utf8) => presets::UTF8_FULL_CONDENSED,
            (false, Charset::Ascii) => presets::ASCII_FULL_CONDENSED,
        };
        table.load_preset(preset).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(columns.iter().map(|column| self.format_header(*column)));
        for (i, column) in columns.iter().enumerate() {
            if let ShownColumn::Column { at, .. } = column
                && (self.schema.field(*at).data_type().is_numeric()
                    || *at >= self.style.numbers_from)
                && let Some(column) = table.column_mut(i)
            {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for batch in &self.rows.batches {
            let cells = columns.iter().map(|column| match column {
                ShownColumn::Column { at, .. } => {
                    CellFormatter::try_new(&self.schema.fields()[*at], batch.column(*at)).map(Some)
                }
                ShownColumn::Omitted => Ok(None),
            });
            let cells = cells.collect::<Result<Vec<_>, _>>()?;
            for row in 0..batch.num_rows() {
                table.add_row(cells.iter().zip(columns).map(|(cells, column)| {
                    match (cells, column) {
                        (Some(cells), ShownColumn::Column { width, .. }) => Cell::new(
                            self.escape_text(self.format_cell(cells, row, *column, *width)),
                        ),
                        _ => Cell::new(OMITTED),
                    }
                }));
            }
        }
        Ok(table)
    }
}

/// Returns the greatest width between `least` and `most` for which `compute_total` returns at most
/// `room`, or `least` if there is none. `compute_total` must not decrease as the width grows.
fn find_greatest_width(
    least: usize,
    most: usize,
    room: usize,
    compute_total: impl Fn(usize) -> Outcome<usize>,
) -> Outcome<usize> {
    let (mut fits, mut beyond) = (least, most.max(least));
    while fits < beyond {
        let width = (fits + beyond).div_ceil(2);
        if compute_total(width)? <= room {
            fits = width;
        } else {
            beyond = width - 1;
        }
    }
    Ok(fits)
}

/// Width of the column that marks omitted columns: the mark, a space on either side, and a border.
const MARK: usize = 4;

/// Returns the range of columns to omit so that the remaining columns and the column `…` fit in
/// `line`. Keeps the first and the last column or, if there is no room for both, only the first.
/// Then keeps further columns from the left, where ids usually are, then from the right. `widths`
/// has the width of each column with its border.
fn choose_hidden(widths: &[usize], line: usize) -> Range<usize> {
    let room = line.saturating_sub(1);
    let (Some(first), Some(last)) = (widths.first(), widths.last()) else { return 0..0 };
    if widths.len() < 2 || widths.iter().sum::<usize>() <= room {
        return 0..0;
    }
    let room = room.saturating_sub(MARK);
    let Some(mut left) = room.checked_sub(first.saturating_add(*last)) else {
        return 1..widths.len();
    };
    let mut take = |at: usize| match left.checked_sub(widths[at]) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    let mut hidden = 1..widths.len() - 1;
    while hidden.len() > 1 && take(hidden.start) {
        hidden.start += 1;
    }
    while hidden.len() > 1 && take(hidden.end - 1) {
        hidden.end -= 1;
    }
    hidden
}

/// Splits a column name into lines of at most `width` terminal columns. A line ends after `_`, a
/// blank or punctuation; a longer word is divided.
fn split_name(name: &str, width: usize) -> String {
    let mut lines = String::new();
    let mut line = String::new();
    let breaks = |c: char| !c.is_alphanumeric();
    for part in name.split_inclusive(breaks) {
        if !line.is_empty() && line.width() + part.width() > width {
            lines.push_str(line.trim_end());
            lines.push('\n');
            line.clear();
        }
        for c in part.chars() {
            if !line.is_empty() && line.width() + c.width().unwrap_or(0) > width {
                lines.push_str(&line);
                lines.push('\n');
                line.clear();
            }
            line.push(c);
        }
    }
    lines.push_str(&line);
    lines
}

/// A table of strings that fits the terminal.
pub(in crate::cli) struct TextTable {
    header: Vec<String>,
    columns: Vec<Vec<String>>,
    numbers_from: usize,
}

impl TextTable {
    /// Makes an empty table. The columns from `numbers_from` are aligned to the right.
    pub(in crate::cli) fn new(header: &[&str], numbers_from: usize) -> Self {
        let columns = vec![Vec::new(); header.len()];
        let header = header.iter().map(|name| (*name).to_owned()).collect();
        Self { header, columns, numbers_from }
    }

    pub(in crate::cli) fn add_row(&mut self, row: impl IntoIterator<Item = String>) {
        for (column, text) in self.columns.iter_mut().zip(row) {
            column.push(text);
        }
    }

    pub(in crate::cli) fn write(self, out: &mut impl Write) -> Outcome {
        let names = self.header.iter().map(|name| Field::new(name, DataType::Utf8, false));
        let schema = Arc::new(Schema::new(names.collect::<Vec<_>>()));
        let columns = self.columns.into_iter().map(|texts| {
            let texts: ArrayRef = Arc::new(StringArray::from(texts));
            texts
        });
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns.collect())?;
        let line = find_terminal_width();
        let style = TableStyle {
            max_rows: None,
            max_width: None,
            fixed: false,
            line,
            widths: Vec::new(),
            types: false,
            markdown: false,
            charset: Charset::from_locale(),
            header: TEXT_HEADER,
            numbers_from: self.numbers_from,
            first_whole: false,
        };
        let mut table = TableWriter::new(schema, style);
        table.push(&batch);
        table.finish(out)
    }
}

fn write_lines(table: &Table, out: &mut impl Write) -> io::Result<()> {
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;

    use super::*;

    fn make_style(line: Option<usize>) -> TableStyle {
        let mut style = TableStyle::new(&TableArgs { max_rows: 0, max_width: None, types: false });
        style.set_line(line);
        style
    }

    fn write_batch(batch: &RecordBatch, style: TableStyle) -> String {
        let mut table = TableWriter::new(batch.schema(), style);
        table.push(batch);
        let mut out = Vec::new();
        table.finish(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn write_columns(widths: &[usize], line: Option<usize>) -> String {
        let columns = widths.iter().enumerate().map(|(i, width)| {
            let values: ArrayRef = match i % 2 {
                0 => Arc::new(StringArray::from(vec!["v".repeat(*width)])),
                _ => Arc::new(Int64Array::from(vec![7])),
            };
            (format!("{i}{}", "x".repeat(width.saturating_sub(1))), values)
        });
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        write_batch(&batch, make_style(line))
    }

    #[test]
    fn columns_in_the_middle_give_way() {
        let few = write_columns(&[10, 10, 10], Some(40));
        assert!(!few.contains("more column") && few.contains("1xxxxxxxxx"), "{few}");
        let text = write_columns(&[10; 9], Some(60));
        assert!(text.lines().all(|l| l.chars().count() <= 60), "{text}");
        let header = text.lines().nth(1).unwrap();
        assert!(header.starts_with("│ 0xxxxxxxxx ┆ 1xxxxxxxxx ┆ 2xxxxxxxxx ┆ … ┆ 8xxx"), "{text}");
        let rest = text.split_once("└").unwrap().1.split_once('\n').unwrap().1.replace("\n  ", " ");
        let names = ["3xxxxxxxxx", "4xxxxxxxxx", "5xxxxxxxxx", "6xxxxxxxxx", "7xxxxxxxxx"];
        assert_eq!(rest, format!("… 5 more columns (9 in all): {}\n", names.join(", ")));
        // Without a line width, no column is omitted.
        assert!(!write_columns(&[10; 9], None).contains("more column"));
        // At least one column is shown, however narrow the line is.
        assert!(write_columns(&[30, 30], Some(10)).contains("1 more\n  column"));
        assert!(!write_columns(&[30], Some(10)).contains("more column"));
    }

    #[test]
    fn values_and_names_give_way_before_columns() {
        let batch = RecordBatch::try_from_iter([
            ("id", Arc::new(Int64Array::from(vec![7])) as ArrayRef),
            ("static_numeric_value", Arc::new(Int64Array::from(vec![1]))),
            ("text", Arc::new(StringArray::from(vec!["v".repeat(60)]))),
        ])
        .unwrap();
        let text = write_batch(&batch, make_style(Some(50)));
        assert!(text.lines().all(|l| l.width() <= 50), "{text}");
        assert!(text.contains("┆ static_numeric_ ┆"), "{text}");
        assert!(text.contains("vvvvvvvvvv…") && !text.contains("more column"), "{text}");
        // Widths of columns that the user has set also apply if lines have no maximum width.
        for line in [None, Some(50)] {
            let mut style = make_style(line);
            style.set_widths(vec![0, 8, 5]);
            let text = write_batch(&batch, style);
            assert!(text.contains("┆ vvvv… │") && text.contains("┆  static_ ┆"), "{text}");
        }
    }

    #[test]
    fn names_take_the_room_that_values_leave() {
        let one: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let (long, short) = ("ragged_window(make_array(1, 2, 3), 4)", "ragged_sum(make_array(5))");
        let batch = RecordBatch::try_from_iter([(long, one.clone()), (short, one)]).unwrap();
        let header = |line| {
            let text = write_batch(&batch, make_style(Some(line)));
            assert!(text.lines().all(|l| l.width() <= line), "{text}");
            text.lines().skip(1).take_while(|l| !l.starts_with('╞')).count()
        };
        assert_eq!([70, 60, 40].map(header), [1, 2, 3]);
    }

    #[test]
    fn a_set_width_is_never_exceeded() {
        let mut list = arrow::array::ListBuilder::new(arrow::array::StringBuilder::new());
        list.append_value([Some("1967-01-01"); 100]);
        let list: ArrayRef = Arc::new(list.finish());
        let batch = RecordBatch::try_from_iter([("x", list)]).unwrap();
        for width in 1..40 {
            let mut style = make_style(Some(80));
            style.set_widths(vec![width]);
            let text = write_batch(&batch, style);
            let cell = text.lines().nth(3).unwrap();
            assert!(cell.width() <= width + 4, "{width}: {text}");
            assert!(!cell.contains("… …"), "{width}: {text}");
        }
    }

    #[test]
    fn numbers_are_shown_whole() {
        let number: ArrayRef = Arc::new(Int64Array::from(vec![i64::MIN]));
        let text: ArrayRef = Arc::new(StringArray::from(vec!["v".repeat(30)]));
        let columns = [("a", number.clone()), ("b", text), ("c", number.clone()), ("d", number)];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let shown = write_batch(&batch, make_style(Some(70)));
        assert_eq!(shown.matches("-9223372036854775808").count(), 2, "{shown}");
        assert!(shown.contains("1 more column") && !shown.contains("9…"), "{shown}");
    }

    #[test]
    fn names_split_after_punctuation() {
        assert_eq!(split_name("static_numeric_value", 16), "static_numeric_\nvalue");
        assert_eq!(split_name("count(DISTINCT x)", 10), "count(\nDISTINCT\nx)");
        assert_eq!(split_name("abcdefgh", 3), "abc\ndef\ngh");
        assert_eq!(split_name("", 3), "");
    }

    #[test]
    fn what_is_hidden_is_as_little_as_can_be() {
        assert_eq!(choose_hidden(&[], 80), 0..0);
        assert_eq!(choose_hidden(&[4, 4, 4], 13), 0..0);
        assert_eq!(choose_hidden(&[4, 4, 4], 12), 1..3);
        assert_eq!(choose_hidden(&[4, 4, 4, 4], 16), 1..3);
        assert_eq!(choose_hidden(&[9, 9, 9, 30, 5, 9], 50), 3..4);
        assert_eq!(choose_hidden(&[9, 9, 30, 9, 9], 45), 2..3);
        assert_eq!(choose_hidden(&[50, 9, 9], 30), 1..3);
        for line in 0..200 {
            let widths = [6, 12, 30, 4, 7, 15, 5];
            let hidden = choose_hidden(&widths, line);
            let shown = widths.iter().enumerate().filter(|(i, _)| !hidden.contains(i));
            let taken: usize = shown.map(|(_, w)| w).sum();
            let mark = if hidden.is_empty() { 0 } else { MARK };
            let alone = hidden == (1..widths.len());
            assert!(taken + mark < line.max(1) || alone, "{line}: {hidden:?}");
        }
    }
}
