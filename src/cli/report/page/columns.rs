//! Writes the section about columns (types, missing values, ranges) and about tensors (shapes).

use arrow::array::DurationMicrosecondArray;
use serrate_core::internal::times::make_span_formatter;

use super::card_table::HtmlTableWriter;
use super::find_rows;
use crate::cli::output::{compute_safe_ratio, format_percent, format_rounded, group_digits};
use crate::cli::report::chart_times::{TimeScale, format_number};
use crate::cli::report::html::HtmlWriter;
use crate::cli::report::profile::{ColumnProfile, TableProfile, ValueKind};
use crate::cli::report::svg::draw_tiny_bars;
use crate::cli::report::tensors::TensorFacts;
use crate::cli::report::{Report, ReportContent};
use crate::cli::stats::{ColumnGroup, name_axis};
use crate::table::ColumnStats;

const BARS: usize = 24;
const NONE: &str = "–";
/// Number of microseconds in a day.
const DAY: f64 = 86_400e6;
/// Number of microseconds in 365 days.
const YEAR: f64 = 365.0 * DAY;

pub(super) fn write_column_section(html: &mut HtmlWriter, report: &Report) {
    if let Some(rows) = find_rows(report) {
        html.write_element(
            "p",
            &[],
            "Missing values, the range of the finite values, and their distribution between the quantiles \
             0.01 and 0.99. Quantiles of more than 65,536 distinct numbers are rounded.",
        );
        for group in &rows.groups {
            write_group(html, group);
        }
    }
    if let ReportContent::Tensors(content) = &report.content {
        if let Some(reason) = content.unread {
            let text = format!("Only the tensors are listed, because {reason}.");
            html.write_element("p", &[], text);
        }
        write_tensors(html, &content.tensors);
    }
}

fn write_group(html: &mut HtmlWriter, group: &ColumnGroup<TableProfile>) {
    let stats = &group.stats;
    let header = [
        "column",
        "per",
        "type",
        "values",
        "null",
        "NaN",
        "infinite",
        "distinct",
        "min",
        "p25",
        "median",
        "p75",
        "max",
        "distribution",
    ];
    let row = name_axis(stats, 0);
    let caption = match stats.columns().first().map(|c| c.name.as_str()) {
        Some("static_code") => format!("Static facts, one list per {row}"),
        _ => format!("Columns, one row per {row}"),
    };
    let mut table = HtmlTableWriter::open(html, &caption, &header, 3);
    for (column, profile) in stats.columns().iter().zip(&group.profile.columns) {
        write_column(html, &mut table, column, profile, &name_axis(stats, column.axis));
    }
    table.close(html);
    for column in stats.columns().iter().filter(|c| c.null_lists > 0) {
        let text = format!("{}: {} null lists", column.name, group_digits(column.null_lists));
        html.write_element("p", &[("class", "small")], text);
    }
}

fn write_column(
    html: &mut HtmlWriter,
    table: &mut HtmlTableWriter<'_>,
    column: &ColumnStats,
    profile: &ColumnProfile,
    axis: &str,
) {
    let share = |n: u64| match n {
        0 => "0".to_owned(),
        n => format_percent(compute_safe_ratio(n, column.values)),
    };
    let is_float = column.data_type.is_floating();
    let if_float = |n: u64| if is_float { share(n) } else { NONE.into() };
    table.open_row(html);
    table.write_cell(html, "code", &column.name);
    table.write_cell(html, "", axis);
    table.write_cell(html, "", column.data_type.to_string());
    let distinct = match (profile.count_distinct(), profile.exceeded_distinct()) {
        (Some(n), _) => group_digits(n),
        (None, Some(n)) => format!(">{}", group_digits(n)),
        (None, None) => NONE.into(),
    };
    let mut cells = vec![
        group_digits(column.values),
        share(column.nulls),
        if_float(column.nans),
        if_float(profile.infinite),
        distinct,
    ];
    cells.extend(list_quantiles(profile));
    for cell in &cells {
        table.open_cell(html, if cell == NONE { "none" } else { "" });
        match cell.split_once(' ') {
            // A line may end between the date and the time, but nowhere else.
            Some((date, time)) => {
                html.write_text(date);
                html.write_markup(" <wbr/>");
                html.write_text(time);
            }
            None => html.write_text(cell),
        }
        table.close_cell(html);
    }
    let bins = profile.sketch.count_bins(BARS, 0.01, 0.99);
    let bins = bins.filter(|_| profile.kind != ValueKind::Flag);
    table.open_cell(html, if bins.is_some() { "" } else { "none" });
    match bins {
        Some(bins) => {
            let [low, high] = [0.01, 0.99].map(|q| format_quantile(profile, q));
            let description = format!("Distribution of {} from {low} to {high}", column.name);
            draw_tiny_bars(html, &description, &bins);
        }
        None => html.write_text(NONE),
    }
    table.close_cell(html);
    table.close_row(html);
}

/// Returns the minimum, the three quartiles and the maximum of a column as text.
fn list_quantiles(profile: &ColumnProfile) -> [String; 5] {
    let mut texts = [0.0, 0.25, 0.5, 0.75, 1.0].map(|q| format_quantile(profile, q));
    if let (Some((low, high)), ValueKind::Integer) = (profile.integers, profile.kind) {
        texts[0] = low.to_string();
        texts[4] = high.to_string();
    }
    texts
}

/// Formats quantile `q` of a column. If the sketch counts ranges of values instead of each value, a
/// quantile between the minimum and the maximum is inexact, and its uncertain digits are rounded
/// away.
fn format_quantile(profile: &ColumnProfile, q: f64) -> String {
    let Some(value) = profile.sketch.find_quantile(q) else { return NONE.into() };
    let is_rounded = profile.sketch.count_distinct().is_none() && q > 0.0 && q < 1.0;
    match profile.kind {
        ValueKind::Time => match profile.sketch.bounds().filter(|_| is_rounded) {
            Some((low, high)) => TimeScale::Microseconds.format_at(value, (high - low).min(YEAR)),
            None => TimeScale::Microseconds.format_exact(value),
        },
        ValueKind::Duration => format_duration(value, is_rounded),
        ValueKind::Flag => if value > 0.0 { "true" } else { "false" }.into(),
        ValueKind::Integer if value.abs() < 1e10 => {
            // Integers of up to ten digits are written in full. In an inexact quantile, all digits
            // after the fourth are 0: `123400`.
            let mut unit: f64 = 1.0;
            while is_rounded && value.abs() >= unit * 10_000.0 {
                unit *= 10.0;
            }
            format!("{:.0}", (value / unit).round() * unit)
        }
        _ => format_number(value),
    }
}

/// Formats a number of microseconds as `1d 03:00`. An inexact duration of at least 1000 days is
/// rounded to days, and a shorter one likewise to hours, minutes, seconds or milliseconds.
fn format_duration(microseconds: f64, is_rounded: bool) -> String {
    let units = [DAY, DAY / 24.0, 60e6, 1e6, 1e3];
    let is_long = |unit: &f64| is_rounded && microseconds.abs() >= unit * 1000.0;
    let unit = units.into_iter().find(is_long).unwrap_or(1.0);
    #[expect(clippy::cast_possible_truncation, reason = "a number of whole microseconds")]
    let microseconds = ((microseconds / unit).round() * unit) as i64;
    let durations = DurationMicrosecondArray::from(vec![microseconds]);
    make_span_formatter(&durations).map_or_else(|| NONE.into(), |format| format(0))
}

fn write_tensors(html: &mut HtmlWriter, tensors: &[TensorFacts]) {
    let header = ["tensor", "type", "shape", "files", "size"];
    let mut table = HtmlTableWriter::open(
        html,
        "Tensors; a range stands for sizes that differ between files",
        &header,
        2,
    );
    for tensor in tensors {
        let sizes = tensor.sizes.as_ref().map(|sizes| {
            let sizes = sizes.iter().map(|(low, high)| match low == high {
                true => group_digits(low),
                false => format!("{}–{}", group_digits(low), group_digits(high)),
            });
            sizes.collect::<Vec<_>>().join(" × ")
        });
        let cells = [
            tensor.name.clone(),
            tensor.types.join(", "),
            sizes.unwrap_or_else(|| "different numbers of axes".into()),
            group_digits(tensor.files),
            format_rounded(tensor.bytes),
        ];
        table.write_row(html, &cells);
    }
    table.close(html);
}
