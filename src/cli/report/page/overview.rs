//! Writes the first section, which says what the source is and how large it is.

use super::card_table::HtmlTableWriter;
use super::find_rows;
use crate::cli::output::{format_count, format_percent, format_rounded, format_size, group_digits};
use crate::cli::report::html::HtmlWriter;
use crate::cli::report::{Report, ReportContent};
use crate::cli::stats::{name_axis, pluralize_noun};
use crate::io::meds::PartSummary;

pub(super) fn write_overview(html: &mut HtmlWriter, report: &Report) {
    html.open("dl", &[("class", "facts")]);
    let mut write_fact = |name: &str, value: String| {
        html.open("div", &[]);
        html.write_element("dt", &[], name);
        html.write_element("dd", &[], value);
        html.close("div");
    };
    write_fact("format", report.format.to_owned());
    let files = format_count(report.files, "file", "files");
    write_fact("size", format!("{} in {files}", format_size(report.bytes.into())));
    for (i, group) in find_rows(report).into_iter().flat_map(|rows| &rows.groups).enumerate() {
        let stats = &group.stats;
        for axis in usize::from(i > 0)..stats.ndim() {
            let count = match axis {
                0 => stats.rows(),
                _ => stats.lengths(axis).map_or(0, |lengths| lengths.total()),
            };
            write_fact(&pluralize_noun(&name_axis(stats, axis)), group_digits(count));
        }
    }
    match &report.content {
        ReportContent::Tensors(content) => {
            write_fact("tensors", group_digits(content.tensors.len()));
            if let Some(batches) = &content.batches {
                write_fact("padding", format_percent(batches.padding_share()));
            }
        }
        ReportContent::Rows(rows) => {
            let dense = rows.groups.iter().map(|g| g.stats.dense_bytes()).sum();
            write_fact("padded to the longest lists", format_rounded(dense));
        }
    }
    html.close("dl");
    if let Some(rows) = find_rows(report).filter(|r| !r.splits.is_empty()) {
        write_splits(html, &rows.splits);
    }
}

fn write_splits(html: &mut HtmlWriter, splits: &[PartSummary]) {
    let header = [
        "split",
        "subjects",
        "events",
        "measurements",
        "static facts",
        "most events",
        "most measurements",
    ];
    let mut table =
        HtmlTableWriter::open(html, "Splits; the last two columns are per subject", &header, 1);
    for s in splits {
        let cells = [
            s.name.clone(),
            group_digits(s.subjects),
            group_digits(s.events),
            group_digits(s.measurements),
            group_digits(s.statics),
            group_digits(s.most_events),
            group_digits(s.most_measurements),
        ];
        table.write_row(html, &cells);
    }
    table.close(html);
}
