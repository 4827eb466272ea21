//! Draws histograms of list lengths by axis, and of the days from the first to the last time of a
//! row.

use super::card_table::HtmlTableWriter;
use super::{find_rows, open_details};
use crate::cli::histogram_bins::{HistogramBin, group_into_bins};
use crate::cli::output::{compute_safe_ratio, format_percent, group_digits};
use crate::cli::report::html::HtmlWriter;
use crate::cli::report::svg::{SvgBar, SvgMark, draw_bars};
use crate::cli::report::{Report, RowStatistics};
use crate::cli::stats::{name_axis, pluralize_noun};
use crate::table::LengthHistogram;

const BARS: usize = 24;

/// Lengths of lists, with the nouns for the title of their chart, such as `codes per event`.
pub(super) struct SequenceLengths<'a> {
    /// Noun for the elements, in the plural.
    pub(super) units: String,
    /// Noun for a list, in the singular.
    pub(super) list: String,
    pub(super) lengths: &'a LengthHistogram,
}

impl SequenceLengths<'_> {
    pub(super) fn to_title(&self) -> String {
        format!("{} per {}", self.units, self.list)
    }
}

/// Returns the lengths to draw: for each axis, the lengths of its lists, such as measurements per
/// event. For each axis from 2 on, also its elements per row, such as measurements per subject.
pub(super) fn list_sequences(rows: &RowStatistics) -> Vec<SequenceLengths<'_>> {
    let mut sequences = Vec::new();
    for group in &rows.groups {
        let stats = &group.stats;
        for axis in 1..stats.ndim() {
            let units = pluralize_noun(&name_axis(stats, axis));
            if let Ok(lengths) = stats.lengths(axis) {
                let list = name_axis(stats, axis - 1);
                sequences.push(SequenceLengths { units: units.clone(), list, lengths });
            }
            if let Some(lengths) = axis.checked_sub(2).and_then(|i| group.profile.totals.get(i)) {
                sequences.push(SequenceLengths { units, list: name_axis(stats, 0), lengths });
            }
        }
    }
    sequences
}

pub(super) fn has_content(report: &Report) -> bool {
    find_rows(report).is_some_and(|rows| !list_sequences(rows).is_empty())
}

pub(super) fn write_length_section(html: &mut HtmlWriter, report: &Report) {
    let Some(rows) = find_rows(report) else { return };
    html.write_element(
        "p",
        &[],
        "How long the lists of each axis are. Bars count lists; the lines mark quantiles. \
         If lengths differ by orders of magnitude, each bar is twice as wide as the one before.",
    );
    html.open("div", &[("class", "grid")]);
    for sequence in list_sequences(rows) {
        write_histogram(
            html,
            &sequence.to_title(),
            &format!("{}s", sequence.list),
            sequence.lengths,
        );
    }
    for group in &rows.groups {
        let spans = &group.profile.spans.0;
        let row = name_axis(&group.stats, 0);
        if spans.lists() > 0 {
            let title = format!("days from first to last time per {row}");
            write_histogram(html, &title, &pluralize_noun(&row), spans);
        }
    }
    html.close("div");
}

/// Draws a histogram of `lengths` with quantiles, and writes a table of its numbers. `lists` is the
/// plural noun for what the histogram counts, such as `batches`.
pub(super) fn write_histogram(
    html: &mut HtmlWriter,
    title: &str,
    lists: &str,
    lengths: &LengthHistogram,
) {
    let counts: Vec<(u64, u64)> = lengths.counts().map(|(n, lists)| (n as u64, lists)).collect();
    let bins = group_into_bins(&counts, BARS);
    html.open("figure", &[]);
    html.open("figcaption", &[]);
    html.write_element("h3", &[], title);
    html.close("figcaption");
    if bins.is_empty() {
        html.write_element("p", &[], "There are no lists.");
        html.close("figure");
        return;
    }
    let share = |bin: &HistogramBin| format_percent(compute_safe_ratio(bin.count, lengths.lists()));
    let label = |bin: &HistogramBin| bin.to_label(group_digits, "–");
    let bars: Vec<SvgBar> = bins
        .iter()
        .map(|bin| SvgBar {
            label: group_digits(bin.low),
            count: bin.count,
            tip: format!("{}: {} {lists}, {}", label(bin), group_digits(bin.count), share(bin)),
        })
        .collect();
    let quantiles: Vec<(&str, usize)> =
        QUANTILES.iter().filter_map(|(name, q)| Some((*name, lengths.quantile(*q)?))).collect();
    let marks: Vec<SvgMark> = quantiles
        .iter()
        .filter(|(name, _)| ["median", "p90", "p99"].contains(name))
        .map(|(name, n)| SvgMark {
            at: place_in_bins(&bins, *n as u64),
            label: format!("{name} {}", group_digits(*n)),
        })
        .collect();
    let text: Vec<String> =
        quantiles.iter().map(|(name, n)| format!("{name} {}", group_digits(*n))).collect();
    let text = text.join(", ");
    let description =
        format!("Histogram of {title} over {} {lists}: {text}.", group_digits(lengths.lists()));
    draw_bars(html, &description, &bars, &marks);
    html.write_element("p", &[("class", "small")], text);
    open_details(html, "Numbers");
    let header = ["from – to", lists, "share"];
    let mut table = HtmlTableWriter::open(html, title, &header, 1);
    for bin in &bins {
        table.write_row(html, &[label(bin), group_digits(bin.count), share(bin)]);
    }
    table.close(html);
    html.close("details");
    html.close("figure");
}

const QUANTILES: [(&str, f64); 7] = [
    ("min", 0.0),
    ("p10", 0.1),
    ("p25", 0.25),
    ("median", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("max", 1.0),
];

/// Returns the horizontal position of `value` in a histogram of `bins`, whose bars all have the
/// same width: 0 at the left edge of the first bar, 1 at the right edge of the last.
fn place_in_bins(bins: &[HistogramBin], value: u64) -> f64 {
    let index = bins.iter().position(|b| value <= b.high).unwrap_or(bins.len().saturating_sub(1));
    let within = bins.get(index).map_or(0.0, |b| {
        let width = (b.high - b.low) as f64 + 1.0;
        (value.saturating_sub(b.low) as f64 + 0.5) / width
    });
    (index as f64 + within) / bins.len().max(1) as f64
}
