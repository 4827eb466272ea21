//! Writes the section on codes: the most frequent codes with trends, and the share of each prefix.

use super::card_table::HtmlTableWriter;
use super::find_rows;
use crate::cli::output::{compute_safe_ratio, format_percent, group_digits};
use crate::cli::report::Report;
use crate::cli::report::codes::{CodeOverview, CodeTrend};
use crate::cli::report::html::HtmlWriter;
use crate::cli::report::svg::draw_sparkline;

fn find_codes(report: &Report) -> Option<&CodeOverview> {
    find_rows(report)?.codes.as_ref()
}

pub(super) fn has_content(report: &Report) -> bool {
    find_codes(report).is_some()
}

pub(super) fn write_code_section(html: &mut HtmlWriter, report: &Report) {
    let Some(codes) = find_codes(report) else { return };
    let shown = match codes.distinct > codes.top.len() {
        true => format!("the {} most frequent", codes.top.len()),
        false => "all".into(),
    };
    let mut text = format!(
        "Column {}: {} distinct values in {} occurrences; {shown} are shown.",
        codes.column,
        group_digits(codes.distinct),
        group_digits(codes.total)
    );
    if let Some(trend) = &codes.trend {
        let (start, end) = trend.time_range();
        text.push_str(&format!(
            " Trends count occurrences in {} periods of equal length from {start} to {end}; each has its own \
             scale, and the dot marks its highest period.",
            trend.all.len()
        ));
        if trend.earlier > 0 {
            text.push_str(&format!(
                " {} earlier occurrences are not drawn.",
                group_digits(trend.earlier)
            ));
        }
    }
    html.write_element("p", &[], text);
    if !codes.prefixes.is_empty() {
        write_prefixes(html, codes);
    }
    write_top(html, codes);
}

fn write_prefixes(html: &mut HtmlWriter, codes: &CodeOverview) {
    let most = codes.prefixes.iter().map(|(_, n)| *n).max().unwrap_or(0);
    html.open("figure", &[("class", "wide")]);
    html.open("figcaption", &[]);
    html.write_element("h3", &[], "occurrences by code prefix");
    html.close("figcaption");
    html.open("ul", &[("class", "shares")]);
    for (prefix, count) in &codes.prefixes {
        html.open("li", &[]);
        html.write_element("span", &[("class", "code")], prefix);
        write_meter(html, *count, most);
        let text = format!(
            "{} ({})",
            group_digits(count),
            format_percent(compute_safe_ratio(*count, codes.total))
        );
        html.write_element("span", &[("class", "n")], text);
        html.close("li");
    }
    html.close("ul");
    html.close("figure");
}

/// Draws a bar whose width is `count / most` of the cell, but at least 0.5 %, to be visible.
fn write_meter(html: &mut HtmlWriter, count: u64, most: u64) {
    let width = format!("{:.2}%", (compute_safe_ratio(count, most) * 100.0).max(0.5));
    html.open("svg", &[("class", "meter"), ("height", "12"), ("aria-hidden", "true")]);
    html.write_empty("rect", &[("width", &width), ("height", "12"), ("class", "bar")]);
    html.close("svg");
}

fn write_top(html: &mut HtmlWriter, codes: &CodeOverview) {
    let has_names = codes.top.iter().any(|c| c.description.is_some());
    let has_numbers = codes.top.iter().any(|c| c.with_number.is_some());
    let mut header = vec!["code"];
    header.extend(has_names.then_some("description"));
    let numbers_from = header.len();
    header.extend(["occurrences", "share"]);
    header.extend(has_numbers.then_some("with a number"));
    header.extend(codes.trend.as_ref().map(|_| "trend"));
    let mut table = HtmlTableWriter::open(html, "Most frequent codes", &header, numbers_from);
    for (i, facts) in codes.top.iter().enumerate() {
        let counts = codes.trend.as_ref().map(|t| t.codes.get(i).map_or(&[][..], Vec::as_slice));
        let with_number =
            facts.with_number.map(|n| format_percent(compute_safe_ratio(n, facts.count)));
        table.open_row(html);
        table.write_cell(html, "code", &facts.code);
        if has_names {
            table.write_cell(html, "", facts.description.as_deref().unwrap_or(""));
        }
        table.write_cell(html, "", group_digits(facts.count));
        table.write_cell(html, "", format_percent(compute_safe_ratio(facts.count, codes.total)));
        if has_numbers {
            table.write_cell(html, "", with_number.unwrap_or_default());
        }
        if let (Some(trend), Some(counts)) = (&codes.trend, counts) {
            write_trend(html, &mut table, trend, counts);
        }
        table.close_row(html);
    }
    if let Some(trend) = &codes.trend {
        let with_time = trend.all.iter().sum::<u64>() + trend.earlier;
        table.open_row(html);
        table.write_cell(html, "", "all codes with a time");
        if has_names {
            table.write_cell(html, "", "");
        }
        table.write_cell(html, "", group_digits(with_time));
        table.write_cell(html, "", format_percent(compute_safe_ratio(with_time, codes.total)));
        if has_numbers {
            table.write_cell(html, "", "");
        }
        write_trend(html, &mut table, trend, &trend.all);
        table.close_row(html);
    }
    table.close(html);
}

fn write_trend(
    html: &mut HtmlWriter,
    table: &mut HtmlTableWriter<'_>,
    trend: &CodeTrend,
    counts: &[u64],
) {
    table.open_cell(html, "");
    match counts.iter().any(|n| *n > 0) {
        true => draw_sparkline(html, &describe_trend(trend, counts), counts),
        false => html.write_text("without times"),
    }
    table.close_cell(html);
}

fn describe_trend(trend: &CodeTrend, counts: &[u64]) -> String {
    let first = counts.first().copied().unwrap_or(0);
    let last = counts.last().copied().unwrap_or(0);
    let most = counts.iter().copied().max().unwrap_or(0);
    let peak = counts.iter().position(|n| *n == most).unwrap_or(0);
    format!(
        "{} in the first period, {} in the last, at most {} ({})",
        group_digits(first),
        group_digits(last),
        group_digits(most),
        trend.label_period(peak)
    )
}
