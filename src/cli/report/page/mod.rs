//! Writes the HTML page of a report: its head, its sections in order, and helpers that several
//! sections use.

mod batches;
mod card_table;
mod codes;
mod columns;
mod findings;
mod length_histograms;
mod overview;
mod padding;
mod timelines;

use super::html::HtmlWriter;
use super::{Report, ReportContent};

/// A section of the page. `has_content` tells whether the report has data for the section.
struct PageSection {
    anchor: &'static str,
    heading: &'static str,
    write: fn(&mut HtmlWriter, &Report),
    has_content: fn(&Report) -> bool,
}

const SECTIONS: [PageSection; 8] = [
    PageSection {
        anchor: "overview",
        heading: "Overview",
        write: overview::write_overview,
        has_content: |_| true,
    },
    PageSection {
        anchor: "lengths",
        heading: "Lengths",
        write: length_histograms::write_length_section,
        has_content: length_histograms::has_content,
    },
    PageSection {
        anchor: "batches",
        heading: "Padding of batches",
        write: batches::write_batch_section,
        has_content: batches::has_content,
    },
    PageSection {
        anchor: "padding",
        heading: "Cuts and padding",
        write: padding::write_padding_section,
        has_content: padding::has_content,
    },
    PageSection {
        anchor: "columns",
        heading: "Columns",
        write: columns::write_column_section,
        has_content: |_| true,
    },
    PageSection {
        anchor: "codes",
        heading: "Codes",
        write: codes::write_code_section,
        has_content: codes::has_content,
    },
    PageSection {
        anchor: "timelines",
        heading: "Timelines",
        write: timelines::write_timeline_section,
        has_content: timelines::has_content,
    },
    PageSection {
        anchor: "findings",
        heading: "Findings",
        write: findings::write_finding_section,
        has_content: findings::has_content,
    },
];

pub(super) fn render_page(report: &Report) -> String {
    let mut html = HtmlWriter::default();
    html.write_markup("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n");
    html.write_markup(
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
         base-uri 'none'; form-action 'none'\"/>\n\
         <link rel=\"icon\" href=\"data:,\"/>\n",
    );
    html.write_element("title", &[], format!("{} – Serrate report", report.name));
    html.write_markup(concat!(
        "<style>\n",
        include_str!("page.css"),
        "</style>\n</head>\n<body>\n"
    ));
    html.write_markup("<a class=\"skip\" href=\"#main\">Skip to the content</a>\n");
    write_header(&mut html, report);
    html.open("main", &[("id", "main")]);
    for section in list_shown_sections(report) {
        html.open("section", &[("id", section.anchor)]);
        html.write_element("h2", &[], section.heading);
        (section.write)(&mut html, report);
        html.close("section");
    }
    html.close("main");
    html.open("footer", &[]);
    html.write_element("p", &[], format!("Serrate {}", env!("CARGO_PKG_VERSION")));
    html.close("footer");
    html.write_markup("<div id=\"tip\" role=\"status\" hidden=\"hidden\"></div>\n");
    html.write_markup(concat!(
        "<script>\n",
        include_str!("page.js"),
        "</script>\n</body>\n</html>\n"
    ));
    html.finish()
}

pub(super) fn list_headings(report: &Report) -> Vec<&'static str> {
    list_shown_sections(report).map(|s| s.heading).collect()
}

fn list_shown_sections(report: &Report) -> impl Iterator<Item = &'static PageSection> + '_ {
    SECTIONS.iter().filter(|s| (s.has_content)(report))
}

fn write_header(html: &mut HtmlWriter, report: &Report) {
    html.open("header", &[]);
    html.write_element("h1", &[], &report.name);
    if let Some(note) = &report.note {
        html.write_element("p", &[("class", "note")], note);
    }
    html.open("nav", &[("aria-label", "Sections")]);
    html.open("ul", &[]);
    for section in list_shown_sections(report) {
        html.open("li", &[]);
        html.write_element("a", &[("href", &format!("#{}", section.anchor))], section.heading);
        html.close("li");
    }
    html.close("ul");
    html.close("nav");
    html.write_element(
        "button",
        &[("id", "theme"), ("type", "button"), ("hidden", "hidden")],
        "Theme: auto",
    );
    html.close("header");
}

/// Returns the statistics of rows, or of the items of batches; `None` if the report has neither.
fn find_rows(report: &Report) -> Option<&super::RowStatistics> {
    match &report.content {
        ReportContent::Rows(rows) => Some(rows),
        ReportContent::Tensors(tensors) => tensors.batches.as_ref().map(|batches| &batches.rows),
    }
}

fn open_details(html: &mut HtmlWriter, summary: &str) {
    html.open("details", &[]);
    html.write_element("summary", &[], summary);
}
