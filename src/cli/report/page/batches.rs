//! Writes the section on training batches: padding, and which tensors determine the ends of lists.

use super::card_table::HtmlTableWriter;
use super::length_histograms::write_histogram;
use super::open_details;
use crate::cli::output::{format_count, format_percent, format_rounded, group_digits};
use crate::cli::report::batches::{BatchExtent, BatchStatistics};
use crate::cli::report::html::HtmlWriter;
use crate::cli::report::{Report, ReportContent};
use crate::table::LengthHistogram;

const MAX_LISTED: usize = 200;

fn find_batches(report: &Report) -> Option<&BatchStatistics> {
    match &report.content {
        ReportContent::Tensors(content) => content.batches.as_ref(),
        ReportContent::Rows(_) => None,
    }
}

pub(super) fn has_content(report: &Report) -> bool {
    find_batches(report).is_some()
}

pub(super) fn write_batch_section(html: &mut HtmlWriter, report: &Report) {
    let Some(batches) = find_batches(report) else { return };
    let total = &batches.total;
    let text = format!(
        "All {} of all epochs were read: {} in {} of tensors, {}.",
        format_count(total.batches, "batch", "batches"),
        format_count(total.items, "item", "items"),
        format_rounded(total.bytes.into()),
        match batches.is_packed {
            true => "packed without padding".to_owned(),
            false => format!("of which {} is padding", format_percent(batches.padding_share())),
        }
    );
    html.write_element("p", &[], text);
    html.write_element(
        "p",
        &[],
        "The other sections describe the items without padding; an item counts in each epoch.",
    );
    for sentence in &batches.basis {
        html.write_element("p", &[("class", "small")], sentence);
    }
    if !batches.is_packed && batches.sizes.len() > 1 {
        html.open("div", &[("class", "grid")]);
        write_histogram(html, "percent of padding per batch", "batches", &count_shares(batches));
        html.close("div");
    }
    write_sizes(html, batches);
}

/// Returns a histogram of the batches: for each whole percentage of padding, the number of batches.
fn count_shares(batches: &BatchStatistics) -> LengthHistogram {
    let percent = |size: &BatchExtent| {
        let padding = u128::from(size.bytes.saturating_sub(size.occupied));
        let percent = (padding * 100).checked_div(size.bytes.into()).unwrap_or(0);
        usize::try_from(percent).unwrap_or(100)
    };
    batches.sizes.iter().map(percent).collect()
}

fn write_sizes(html: &mut HtmlWriter, batches: &BatchStatistics) {
    let summary = match batches.sizes.len() > MAX_LISTED {
        true => format!("The first {MAX_LISTED} batches"),
        false => "Each batch".into(),
    };
    open_details(html, &summary);
    let header = ["batch", "items", "size", "padding"];
    let mut table = HtmlTableWriter::open(html, "Padding of each batch", &header, 1);
    for size in batches.sizes.iter().take(MAX_LISTED) {
        let cells = [
            size.file.clone(),
            group_digits(size.items),
            format_rounded(size.bytes.into()),
            format_percent(size.padding_share()),
        ];
        table.write_row(html, &cells);
    }
    table.close(html);
    html.close("details");
}
