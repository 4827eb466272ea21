//! Writes HTML tables. In a narrow window, each row of a table is shown as a card.

use crate::cli::report::html::HtmlWriter;

/// A table that is being written, cell by cell. The first cell of a row names the row.
pub(super) struct HtmlTableWriter<'a> {
    header: &'a [&'a str],
    /// All columns from this index on contain numbers, which are aligned to the right.
    numbers_from: usize,
    column: usize,
}

impl<'a> HtmlTableWriter<'a> {
    /// Opens a table. If the table is wider than the window, it scrolls separately from the page.
    pub(super) fn open(
        html: &mut HtmlWriter,
        caption: &str,
        header: &'a [&'a str],
        numbers_from: usize,
    ) -> Self {
        html.open(
            "div",
            &[("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", caption)],
        );
        let class = if header.len() > 3 { "cards" } else { "plain" };
        // The ARIA roles tell screen readers that this is a table even if CSS lays it out as cards.
        html.open("table", &[("class", class), ("role", "table")]);
        html.write_element("caption", &[], caption);
        html.open("thead", &[("role", "rowgroup")]);
        html.open("tr", &[("role", "row")]);
        for (i, name) in header.iter().enumerate() {
            let class = if i >= numbers_from { "n" } else { "t" };
            let attributes = [("scope", "col"), ("role", "columnheader"), ("class", class)];
            html.write_element("th", &attributes, name);
        }
        html.close("tr");
        html.close("thead");
        html.open("tbody", &[("role", "rowgroup")]);
        Self { header, numbers_from, column: 0 }
    }

    pub(super) fn close(self, html: &mut HtmlWriter) {
        html.close("tbody");
        html.close("table");
        html.close("div");
    }

    pub(super) fn open_row(&mut self, html: &mut HtmlWriter) {
        self.column = 0;
        html.open("tr", &[("role", "row")]);
    }

    pub(super) fn close_row(&mut self, html: &mut HtmlWriter) {
        html.close("tr");
    }

    /// Opens the next cell of the row. The cell gets the CSS class `class`, unless it is empty.
    pub(super) fn open_cell(&mut self, html: &mut HtmlWriter, class: &str) {
        let align = if self.column >= self.numbers_from { "n" } else { "t" };
        let class = if class.is_empty() { align.to_owned() } else { format!("{align} {class}") };
        let label = self.header.get(self.column).copied().unwrap_or_default();
        match self.column {
            0 => html.open("th", &[("scope", "row"), ("role", "rowheader"), ("class", &class)]),
            _ => html.open("td", &[("role", "cell"), ("class", &class), ("data-label", label)]),
        }
        self.column += 1;
    }

    pub(super) fn close_cell(&mut self, html: &mut HtmlWriter) {
        html.close(if self.column == 1 { "th" } else { "td" });
    }

    pub(super) fn write_cell(&mut self, html: &mut HtmlWriter, class: &str, text: impl AsRef<str>) {
        self.open_cell(html, class);
        html.write_text(text);
        self.close_cell(html);
    }

    pub(super) fn write_row(&mut self, html: &mut HtmlWriter, cells: &[String]) {
        self.open_row(html);
        for cell in cells {
            self.write_cell(html, "", cell);
        }
        self.close_row(html);
    }
}
