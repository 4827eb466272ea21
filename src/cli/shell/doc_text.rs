//! Turns the Markdown in the documentation of functions into text for a terminal.

use unicode_width::UnicodeWidthStr;

/// A sentence in DataFusion's documentation, and the text that replaces it. The sentence refers to
/// a part of the website that the shell cannot show.
const FLAGS: (&str, &str) = (
    "Refer to the flags reference above for supported flags.",
    "They are i (ignore case), m (^ and $ match at each line), s (. matches newlines), U (swap greediness) and R (CRLF).",
);

/// If a table in an example is too wide, its columns are cut, but to no fewer terminal columns than
/// this.
const MIN_COLUMN: usize = 8;

/// Turns Markdown into plain text: removes the marks of code and bold text, and the addresses of
/// links.
pub(super) fn strip_markdown(text: &str) -> String {
    let mut text = text.replace(FLAGS.0, FLAGS.1);
    while let Some(middle) = text.find("](http")
        && let Some(start) = text[..middle].rfind('[')
        && let Some(length) = text[middle..].find(')')
    {
        let label = text[start + 1..middle].to_owned();
        text.replace_range(start..=(middle + length), &label);
    }
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("```"));
    let text = lines.collect::<Vec<_>>().join("\n");
    // Removes the `**` around bold text. In code and between spaces, `**` is an operator and stays.
    let parts = text.split('`').enumerate().map(|(i, part)| match i % 2 {
        0 => part.replace(" ** ", "\u{1}").replace("**", "").replace('\u{1}', " ** "),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
}

/// Returns the lines of an example without Markdown and without the prompt `> `. Draws its tables
/// like results in the shell, cut to `width`.
pub(super) fn format_example(example: &str, width: usize) -> Vec<String> {
    let mut shown = Vec::new();
    let mut table: Vec<&str> = Vec::new();
    for line in example.lines() {
        let text = line.trim();
        if text.starts_with(['+', '|']) {
            table.push(text);
            continue;
        }
        shown.extend(draw_table(&std::mem::take(&mut table), width));
        let is_reference = text.starts_with("[here](") || text.starts_with("Additional examples");
        if !text.starts_with("```") && !is_reference {
            shown.push(text.strip_prefix("> ").unwrap_or(line.trim_end()).to_owned());
        }
    }
    shown.extend(draw_table(&table, width));
    shown
}

fn draw_table(lines: &[&str], width: usize) -> Vec<String> {
    let unchanged = || lines.iter().map(|line| (*line).to_owned()).collect();
    let Some(border) = lines.first().filter(|line| line.starts_with('+')) else {
        return unchanged();
    };
    let columns = border.matches('+').count().saturating_sub(1).max(1);
    let mut rows: Vec<Option<Vec<String>>> = Vec::new();
    for line in lines {
        if line.starts_with('+') {
            rows.push(None);
            continue;
        }
        let inside = line.strip_prefix('|').unwrap_or(line);
        let inside = inside.strip_suffix('|').unwrap_or(inside);
        let cells: Vec<&str> = match columns {
            // The table has one column, so a `|` within the line is part of the cell, for example
            // in a regular expression.
            1 => vec![inside],
            _ => inside.split('|').collect(),
        };
        if cells.len() != columns {
            return unchanged();
        }
        let is_head = rows.iter().all(Option::is_none);
        let cells = cells.into_iter().map(|cell| {
            let cell = cell.strip_prefix(' ').unwrap_or(cell).trim_end();
            if is_head { write_literals(cell) } else { cell.to_owned() }
        });
        rows.push(Some(cells.collect()));
    }
    let mut widths = vec![1; columns];
    for row in rows.iter().flatten() {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(cell.width());
        }
    }
    let capacity = width.saturating_sub(3 * columns + 1);
    while widths.iter().sum::<usize>() > capacity
        && let Some(widest) = widths.iter_mut().max()
        && *widest > MIN_COLUMN
    {
        *widest -= 1;
    }
    let mut borders = 0;
    let last = rows.len() - 1;
    let drawn = rows.iter().enumerate().map(|(i, row)| match row {
        Some(cells) => {
            let cells = cells.iter().zip(&widths).map(|(cell, width)| fit_cell(cell, *width));
            format!("│ {} │", cells.collect::<Vec<_>>().join(" ┆ "))
        }
        None => {
            borders += 1;
            let (left, fill, middle, right) = match borders {
                1 => ("┌", "─", "┬", "┐"),
                _ if i == last => ("└", "─", "┴", "┘"),
                2 => ("╞", "═", "╪", "╡"),
                _ => ("├", "╌", "┼", "┤"),
            };
            let parts = widths.iter().map(|width| fill.repeat(width + 2));
            format!("{left}{}{right}", parts.collect::<Vec<_>>().join(middle))
        }
    });
    drawn.collect()
}

fn fit_cell(cell: &str, width: usize) -> String {
    let mut text = cell.to_owned();
    if text.width() > width {
        while text.width() >= width.max(1) {
            text.pop();
        }
        text.push('…');
    }
    let padding = width.saturating_sub(text.width());
    text + &" ".repeat(padding)
}

/// Replaces literals in a column name by SQL: `left(Utf8("ab"),Int64(1))` becomes `left('ab',1)`.
/// DataFusion's documentation shows names as its API prints them.
fn write_literals(name: &str) -> String {
    let mut text = name.to_owned();
    for kind in ["Utf8", "Int64", "Float64", "Boolean", "List"] {
        let call = format!("{kind}(");
        let mut from = 0;
        while let Some(at) = text[from..].find(&call) {
            let start = from + at;
            let inside = start + call.len();
            let is_name = text[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let Some(length) = find_closing_parenthesis(&text[inside..]).filter(|_| !is_name)
            else {
                from = inside;
                continue;
            };
            let value = &text[inside..inside + length];
            let value = match kind {
                "Utf8" => format!("'{}'", value.trim_matches(['"', '\''])),
                "List" if !value.starts_with('[') => format!("[{value}]"),
                _ => value.to_owned(),
            };
            text.replace_range(start..=(inside + length), &value);
            from = start;
            // Searches within the replaced literal, too: `List(List(Int64(1)))` contains another
            // `List`. Skips the text of a string, which may only look like a literal: `'Utf8(x)'`.
            if kind == "Utf8" {
                from += value.len();
            }
        }
    }
    text
}

fn find_closing_parenthesis(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(i),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_text() {
        let text = "A **bold** [link\nto x](https://a.b/c) and `x ** 2`.\n```sql\nSELECT 1\n```";
        assert_eq!(strip_markdown(text), "A bold link\nto x and `x ** 2`.\nSELECT 1");
        assert_eq!(strip_markdown("array[1](x)"), "array[1](x)");
    }

    #[test]
    fn tables_are_aligned() {
        let example = "```sql\n> SELECT f('a|b', [1]);\n+---+\n| f(Utf8(\"a|b\"),List([1]))|\n+---+\n| 3.0      |\n+---+\n```";
        let expected = [
            "SELECT f('a|b', [1]);",
            "┌──────────────┐",
            "│ f('a|b',[1]) │",
            "╞══════════════╡",
            "│ 3.0          │",
            "└──────────────┘",
        ];
        assert_eq!(format_example(example, 80), expected);
    }

    #[test]
    fn wide_tables_are_cut() {
        let table = format!("+-+-+\n| {} | b |\n+-+-+\n", "a".repeat(30));
        let shown = format_example(&table, 20);
        assert!(shown.iter().all(|line| line.width() == 20), "{shown:?}");
        assert!(shown[1].contains('…'), "{shown:?}");
    }

    #[test]
    fn literals_are_written_as_in_sql() {
        for (name, expected) in [
            ("left(Utf8(\"ab\"),Int64(1))", "left('ab',1)"),
            ("array_sort(List(3,1),'desc')", "array_sort([3,1],'desc')"),
            ("to_Int64(3)", "to_Int64(3)"),
            ("regexp_like(Utf8(\"(b|d)\"))", "regexp_like('(b|d)')"),
        ] {
            assert_eq!(write_literals(name), expected);
        }
    }
}
