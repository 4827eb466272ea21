//! Draws charts for lists that are all cut or padded to the same length. For each length, a chart
//! shows the share of elements that remain, of lists that are cut, and of padding.

use super::card_table::HtmlTableWriter;
use super::length_histograms::{SequenceLengths, list_sequences};
use super::{find_rows, open_details};
use crate::cli::output::{format_percent, group_digits};
use crate::cli::report::Report;
use crate::cli::report::html::HtmlWriter;
use crate::cli::report::padding::{LengthCut, list_cuts};
use crate::cli::report::svg::{SvgCurve, draw_key, draw_shares, shorten_count};

const NAMES: [&str; 3] =
    ["of the elements are kept", "of the lists are cut", "of the tensor is padding"];

pub(super) fn has_content(report: &Report) -> bool {
    find_rows(report)
        .is_some_and(|rows| list_sequences(rows).iter().any(|s| s.lengths.max() > Some(0)))
}

pub(super) fn write_padding_section(html: &mut HtmlWriter, report: &Report) {
    let Some(rows) = find_rows(report) else { return };
    html.write_element(
        "p",
        &[],
        "For each maximum length: the share of the elements that remain, the share of the lists that are \
         cut, and the share of padding in a tensor in which every list is padded to that length. The last \
         length is that of the longest list.",
    );
    html.open("ul", &[("class", "legend"), ("aria-label", "Legend")]);
    for (number, name) in NAMES.iter().enumerate() {
        html.open("li", &[]);
        draw_key(html, number);
        html.write_text(name);
        html.close("li");
    }
    html.close("ul");
    html.open("div", &[("class", "grid")]);
    for sequence in list_sequences(rows) {
        write_cuts(html, &sequence);
    }
    html.close("div");
}

fn write_cuts(html: &mut HtmlWriter, sequence: &SequenceLengths<'_>) {
    let cuts = list_cuts(sequence.lengths);
    if cuts.is_empty() {
        return;
    }
    let title = format!("cuts of {}", sequence.to_title());
    html.open("figure", &[]);
    html.open("figcaption", &[]);
    html.write_element("h3", &[], &title);
    html.close("figcaption");
    let series = [
        SvgCurve { name: NAMES[0], shares: cuts.iter().map(LengthCut::retained_share).collect() },
        SvgCurve { name: NAMES[1], shares: cuts.iter().map(LengthCut::cut_share).collect() },
        SvgCurve { name: NAMES[2], shares: cuts.iter().map(LengthCut::padding_share).collect() },
    ];
    let positions: Vec<String> = cuts.iter().map(|c| shorten_count(c.length as u64)).collect();
    let middle = cuts.get(cuts.len() / 2);
    let example = middle.map_or_else(String::new, |cut| {
        format!(
            "At length {}, {} of the elements are kept, {} of the lists are cut and {} of the tensor is padding.",
            group_digits(cut.length),
            format_percent(cut.retained_share()),
            format_percent(cut.cut_share()),
            format_percent(cut.padding_share())
        )
    });
    if cuts.len() > 1 {
        draw_shares(html, &format!("Shares by {title}. {example}"), &positions, &series);
    }
    html.write_element("p", &[("class", "small")], example);
    open_details(html, "Numbers");
    let header = ["cut", "kept", "lists cut", "padding", "elements of the tensor"];
    let mut table = HtmlTableWriter::open(html, &title, &header, 0);
    for cut in &cuts {
        let cells = [
            group_digits(cut.length),
            format_percent(cut.retained_share()),
            format_percent(cut.cut_share()),
            format_percent(cut.padding_share()),
            group_digits(cut.compute_tensor_size()),
        ];
        table.write_row(html, &cells);
    }
    table.close(html);
    html.close("details");
    html.close("figure");
}
