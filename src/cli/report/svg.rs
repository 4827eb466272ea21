//! Charts as inline SVG. Horizontal positions are percentages, so that a chart fills the width of
//! the window without scaling its text.

use super::html::HtmlWriter;
use crate::cli::histogram_bins::find_round_number;
use crate::cli::output::{format_percent, group_digits};

/// Height of the area of bars and lines in a chart, in pixels.
const PLOT_HEIGHT: f64 = 150.0;
/// Height of a line of text, in pixels.
const LINE_HEIGHT: f64 = 15.0;
/// Width of a character of a label, and width of the narrowest chart (`MIN_WIDTH`), in pixels.
const CHARACTER_WIDTH: f64 = 7.0;
const MIN_WIDTH: f64 = 250.0;

/// A bar takes at most `1 / SLOTS` of the width of the histogram. Without this limit, a histogram
/// of two bars would have very wide bars.
const SLOTS: usize = 6;

pub(super) struct SvgBar {
    pub(super) label: String,
    pub(super) count: u64,
    pub(super) tip: String,
}

/// A vertical line in a histogram, with a label. `at` is its position: 0 at the left edge of the
/// first bar, 1 at the right edge of the last.
pub(super) struct SvgMark {
    pub(super) at: f64,
    pub(super) label: String,
}

/// Draws a histogram: bars, a vertical line for each of `marks`, and labels below some of the bars.
pub(super) fn draw_bars(
    html: &mut HtmlWriter,
    description: &str,
    bars: &[SvgBar],
    marks: &[SvgMark],
) {
    let top = LINE_HEIGHT * marks.len() as f64 + 6.0;
    let bottom = top + PLOT_HEIGHT;
    open_chart(html, "chart bars", description, bottom + LINE_HEIGHT + 8.0);
    let most = bars.iter().map(|b| b.count).max().unwrap_or(0).max(1);
    for tick in choose_ticks(most) {
        let y = bottom - PLOT_HEIGHT * compute_share(tick, most);
        draw_grid_line(html, y, &shorten_count(tick));
    }
    let width = 1.0 / bars.len().max(SLOTS) as f64;
    // A label takes about 60 pixels, and the chart has at least 250, so about four labels fit.
    let step = bars.len().div_ceil(4).max(1);
    for (i, bar) in bars.iter().enumerate() {
        let x = width * i as f64;
        draw_bar(html, bar, x, width, top, most);
        if i % step == 0 {
            let label = [
                ("x", &*to_percent(x)),
                ("y", &*to_pixels(bottom + LINE_HEIGHT)),
                ("class", "start"),
            ];
            html.write_element("text", &label, &bar.label);
        }
    }
    write_line(html, "base", (0.0, bottom), (1.0, bottom));
    draw_marks(html, marks, |at| at.clamp(0.0, 1.0) * width * bars.len() as f64, bottom);
    html.close("svg");
}

/// Draws a horizontal line of the grid, and its label on the left.
fn draw_grid_line(html: &mut HtmlWriter, y: f64, label: &str) {
    write_line(html, "grid", (0.0, y), (1.0, y));
    html.write_element("text", &[("x", "-6"), ("y", &to_pixels(y + 4.0)), ("class", "end")], label);
}

/// Draws a bar with its tooltip. A bar with the count `most` has the full height of the chart.
fn draw_bar(html: &mut HtmlWriter, bar: &SvgBar, x: f64, width: f64, top: f64, most: u64) {
    // A bar that counts any value has a minimum height, so that it is visible.
    let height =
        (PLOT_HEIGHT * compute_share(bar.count, most)).max(if bar.count > 0 { 1.5 } else { 0.0 });
    // The tooltip belongs to an invisible area of the full height of the chart, so that it is also
    // shown above a low bar.
    html.open("g", &[("class", "hit")]);
    html.write_empty(
        "rect",
        &[
            ("x", &to_percent(x)),
            ("width", &to_percent(width)),
            ("y", &to_pixels(top)),
            ("height", &to_pixels(PLOT_HEIGHT)),
            ("class", "area"),
        ],
    );
    let gap = width * 0.06;
    html.write_empty(
        "rect",
        &[
            ("x", &to_percent(x + gap)),
            ("width", &to_percent(width - 2.0 * gap)),
            ("y", &to_pixels(top + PLOT_HEIGHT - height)),
            ("height", &to_pixels(height)),
            ("class", "bar"),
        ],
    );
    html.write_element("title", &[], &bar.tip);
    html.close("g");
}

/// Draws a vertical line with a label for each of `marks`. `place` converts the position of a mark
/// among the bars to its position in the chart.
fn draw_marks(html: &mut HtmlWriter, marks: &[SvgMark], place: impl Fn(f64) -> f64, bottom: f64) {
    let fits = |mark: &SvgMark| {
        (1.0 - place(mark.at)) * MIN_WIDTH > CHARACTER_WIDTH * mark.label.len() as f64
    };
    // A line begins at the height of its label, and each label is one row below the previous one.
    // The lines with a label on the right come first, from left to right. The lines near the right
    // edge have their label on the left, and follow from right to left. In this order, no line
    // crosses the label of another line with a label on the same side.
    let on_left = marks.iter().rev().filter(|m| !fits(m));
    for (i, mark) in marks.iter().filter(|m| fits(m)).chain(on_left).enumerate() {
        let at = place(mark.at);
        let y = LINE_HEIGHT * (i as f64 + 1.0) - 3.0;
        write_line(html, "casing", (at, y - 8.0), (at, bottom));
        write_line(html, "mark", (at, y - 8.0), (at, bottom));
        let (class, shift) = if fits(mark) { ("start halo", 4.0) } else { ("end halo", -4.0) };
        html.write_element(
            "text",
            &[
                ("x", &to_percent(at)),
                ("y", &to_pixels(y)),
                ("dx", &to_pixels(shift)),
                ("class", class),
            ],
            &mark.label,
        );
    }
}

/// One curve of a chart of shares from 0 to 1.
pub(super) struct SvgCurve {
    pub(super) name: &'static str,
    pub(super) shares: Vec<f64>,
}

/// Draws one curve for each of `series`. The horizontal axis has the label `positions[i]` at the
/// share `i` of each curve. Curves differ in their dashes and in the shape of their points.
pub(super) fn draw_shares(
    html: &mut HtmlWriter,
    description: &str,
    positions: &[String],
    series: &[SvgCurve],
) {
    let (top, bottom) = (10.0, 10.0 + PLOT_HEIGHT);
    open_chart(html, "chart curves", description, bottom + LINE_HEIGHT + 8.0);
    for tick in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let y = bottom - PLOT_HEIGHT * tick;
        draw_grid_line(html, y, &format!("{:.0}%", tick * 100.0));
    }
    let last = positions.len().saturating_sub(1).max(1) as f64;
    let at = |i: usize| if positions.len() == 1 { 0.5 } else { i as f64 / last };
    for (number, series) in series.iter().enumerate() {
        let points = series.shares.iter().enumerate().map(|(i, share)| (at(i), *share));
        draw_curve(html, number, top, points);
        for (i, share) in series.shares.iter().enumerate() {
            let y = bottom - PLOT_HEIGHT * replace_nonfinite(*share);
            html.open("svg", &[("x", &to_percent(at(i))), ("y", &to_pixels(y)), ("class", "over")]);
            draw_shape(html, number);
            let tip = format!(
                "{}: {} {}",
                positions.get(i).map_or("", String::as_str),
                format_percent(*share),
                series.name
            );
            html.write_element("title", &[], tip);
            html.close("svg");
        }
    }
    let step = positions.len().div_ceil(6).max(1);
    for (i, label) in positions.iter().enumerate() {
        // Labels every `step`-th position and the last; omits labels too close to the last.
        let near = positions.len() - 1 - i;
        if near == 0 || (i % step == 0 && near >= step) {
            let class = match (i, near) {
                (0, 1..) => "start",
                (_, 0) => "end",
                _ => "middle",
            };
            html.write_element(
                "text",
                &[
                    ("x", &to_percent(at(i))),
                    ("y", &to_pixels(bottom + LINE_HEIGHT + 3.0)),
                    ("class", class),
                ],
                label,
            );
        }
    }
    html.close("svg");
}

/// Draws the line of the curve `number` through `points`, each with its position from left (0) to
/// right (1) and its share.
fn draw_curve(
    html: &mut HtmlWriter,
    number: usize,
    top: f64,
    points: impl Iterator<Item = (f64, f64)>,
) {
    let points: Vec<String> = points
        .map(|(at, share)| {
            format!(
                "{},{}",
                format_coordinate(at * 100.0),
                format_coordinate(100.0 - replace_nonfinite(share) * 100.0)
            )
        })
        .collect();
    // The curve is stretched to the width of the chart, but the width of its stroke is not.
    html.open(
        "svg",
        &[
            ("y", &to_pixels(top)),
            ("width", "100%"),
            ("height", &to_pixels(PLOT_HEIGHT)),
            ("viewBox", "0 0 100 100"),
            ("preserveAspectRatio", "none"),
            ("class", "over"),
        ],
    );
    let class = format!("line s{number}");
    html.write_empty("polyline", &[("points", &points.join(" ")), ("class", &class)]);
    html.close("svg");
}

fn draw_shape(html: &mut HtmlWriter, number: usize) {
    let class = format!("dot s{number}");
    match number % 3 {
        0 => html.write_empty("circle", &[("r", "4"), ("class", &class)]),
        1 => html.write_empty(
            "rect",
            &[("x", "-3.5"), ("y", "-3.5"), ("width", "7"), ("height", "7"), ("class", &class)],
        ),
        _ => html.write_empty("path", &[("d", "M0-5L4.7 3.5L-4.7 3.5Z"), ("class", &class)]),
    }
}

/// Draws the symbol of a curve for the legend: a short line with the dashes of the curve, and one
/// of its points. `number` is the index of the curve in the chart.
pub(super) fn draw_key(html: &mut HtmlWriter, number: usize) {
    html.open(
        "svg",
        &[("class", "key"), ("width", "34"), ("height", "12"), ("aria-hidden", "true")],
    );
    let class = format!("line s{number}");
    html.write_empty("polyline", &[("points", "0,6 34,6"), ("class", &class)]);
    html.open("svg", &[("x", "17"), ("y", "6"), ("class", "over")]);
    draw_shape(html, number);
    html.close("svg");
    html.close("svg");
}

/// Begins a drawing in the size of a word.
fn open_spark(html: &mut HtmlWriter, description: &str) {
    html.open(
        "svg",
        &[
            ("class", "spark"),
            ("viewBox", "0 0 120 24"),
            ("width", "120"),
            ("height", "24"),
            ("role", "img"),
            ("aria-label", description),
        ],
    );
}

/// Draws counts as a curve in the size of a word. Screen readers read `description` instead.
pub(super) fn draw_sparkline(html: &mut HtmlWriter, description: &str, counts: &[u64]) {
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let last = counts.len().saturating_sub(1).max(1) as f64;
    let point = |i: usize, count: u64| {
        (2.0 + 116.0 * i as f64 / last, 22.0 - 20.0 * compute_share(count, most))
    };
    let points: Vec<String> = counts
        .iter()
        .enumerate()
        .map(|(i, count)| point(i, *count))
        .map(|(x, y)| format!("{},{}", format_coordinate(x), format_coordinate(y)))
        .collect();
    open_spark(html, description);
    html.write_empty("polyline", &[("points", &points.join(" ")), ("class", "line")]);
    let highest = counts.iter().position(|n| *n == most);
    if let Some((x, y)) = highest.map(|i| point(i, most)) {
        html.write_empty(
            "circle",
            &[
                ("cx", &format_coordinate(x)),
                ("cy", &format_coordinate(y)),
                ("r", "2"),
                ("class", "peak"),
            ],
        );
    }
    html.write_element("title", &[], description);
    html.close("svg");
}

/// Draws counts as bars in the size of a word. Screen readers read `description` instead.
pub(super) fn draw_tiny_bars(html: &mut HtmlWriter, description: &str, counts: &[u64]) {
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let width = 120.0 / counts.len().max(1) as f64;
    open_spark(html, description);
    for (i, count) in counts.iter().enumerate().filter(|(_, n)| **n > 0) {
        let height = (22.0 * compute_share(*count, most)).max(1.0);
        html.write_empty(
            "rect",
            &[
                ("x", &format_coordinate(width * i as f64 + 0.5)),
                ("y", &format_coordinate(23.0 - height)),
                ("width", &format_coordinate(width - 1.0)),
                ("height", &format_coordinate(height)),
                ("class", "bar"),
            ],
        );
    }
    html.write_empty("path", &[("d", "M0 23.5H120"), ("class", "base")]);
    html.write_element("title", &[], description);
    html.close("svg");
}

/// A row of a timeline chart: its name and, for each period, a count and a tooltip.
pub(super) struct SvgLane {
    pub(super) name: String,
    pub(super) cells: Vec<(u64, String)>,
}

/// Draws the rows of a timeline chart, and below them `labels` at equal distances.
pub(super) fn draw_lanes(
    html: &mut HtmlWriter,
    description: &str,
    lanes: &[SvgLane],
    labels: &[String],
) {
    let pitch = 44.0;
    let bottom = pitch * lanes.len() as f64 + 4.0;
    open_chart(html, "chart lanes", description, bottom + LINE_HEIGHT + 8.0);
    let last = labels.len().saturating_sub(1).max(1) as f64;
    for i in 0..labels.len() {
        let x = i as f64 / last;
        write_line(html, "grid", (x, 0.0), (x, bottom));
    }
    let cells = lanes.iter().flat_map(|l| &l.cells);
    let most = cells.map(|(n, _)| *n).max().unwrap_or(0).max(1);
    for (i, lane) in lanes.iter().enumerate() {
        let base = pitch * (i as f64 + 1.0);
        write_line(html, "base", (0.0, base), (1.0, base));
        let width = 1.0 / lane.cells.len().max(1) as f64;
        for (k, (count, tip)) in lane.cells.iter().enumerate().filter(|(_, (n, _))| *n > 0) {
            // Heights grow with the square root of the counts, so that small bars remain visible.
            let height = (24.0 * compute_share(*count, most).sqrt()).max(3.0);
            html.open(
                "rect",
                &[
                    ("x", &to_percent(width * k as f64)),
                    ("y", &to_pixels(base - height)),
                    ("width", &to_percent(width * 0.92)),
                    ("height", &to_pixels(height)),
                    ("class", "bar hit"),
                ],
            );
            html.write_element("title", &[], tip);
            html.close("rect");
        }
        html.write_element(
            "text",
            &[("x", "0"), ("y", &to_pixels(base - 29.0)), ("class", "start lane halo")],
            &lane.name,
        );
    }
    for (i, label) in labels.iter().enumerate() {
        let class = match i {
            0 => "start",
            i if i + 1 == labels.len() => "end",
            // The style sheet hides these labels in windows in which they do not fit.
            _ if label.len() > 10 => "middle inner long",
            _ => "middle inner",
        };
        let x = to_percent(i as f64 / last);
        html.write_element(
            "text",
            &[("x", &x), ("y", &to_pixels(bottom + LINE_HEIGHT)), ("class", class)],
            label,
        );
    }
    html.close("svg");
}

fn open_chart(html: &mut HtmlWriter, class: &str, description: &str, height: f64) {
    html.open(
        "svg",
        &[
            ("class", class),
            ("height", &format_coordinate(height)),
            ("role", "img"),
            ("aria-label", description),
        ],
    );
}

fn write_line(html: &mut HtmlWriter, class: &str, from: (f64, f64), to: (f64, f64)) {
    html.write_empty(
        "line",
        &[
            ("x1", &to_percent(from.0)),
            ("y1", &to_pixels(from.1)),
            ("x2", &to_percent(to.0)),
            ("y2", &to_pixels(to.1)),
            ("class", class),
        ],
    );
}

/// Returns the counts to label on the vertical axis: 0, and up to five multiples of a round step
/// such as 20, none above `most`.
fn choose_ticks(most: u64) -> Vec<u64> {
    let step = find_round_number(|step| most / step <= 5);
    (0..=most / step).map(|i| i * step).collect()
}

/// Writes a round count for an axis, such as `20k`.
pub(super) fn shorten_count(count: u64) -> String {
    for (unit, name) in [(1_000_000_000, "G"), (1_000_000, "M"), (1000, "k")] {
        if count >= unit && count.is_multiple_of(unit / 10) {
            let tenths = count / (unit / 10);
            return match tenths % 10 {
                0 => format!("{}{name}", group_digits(tenths / 10)),
                rest => format!("{}.{rest}{name}", tenths / 10),
            };
        }
    }
    group_digits(count)
}

fn compute_share(count: u64, most: u64) -> f64 {
    count as f64 / most.max(1) as f64
}

fn replace_nonfinite(number: f64) -> f64 {
    if number.is_finite() { number } else { 0.0 }
}

/// Formats a coordinate. A number that is not finite becomes 0, because it would make the element
/// invalid.
fn format_coordinate(number: f64) -> String {
    let text = format!("{:.2}", replace_nonfinite(number));
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.to_owned() }
}

fn to_pixels(number: f64) -> String {
    format_coordinate(number)
}

fn to_percent(share: f64) -> String {
    format!("{}%", format_coordinate(share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_finite_and_short() {
        let texts = [0.0, -0.001, 12.345, 100.0, f64::NAN, f64::INFINITY].map(format_coordinate);
        assert_eq!(texts, ["0", "0", "12.35", "100", "0", "0"]);
        assert_eq!(to_percent(0.25), "25%");
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(choose_ticks(1), [0, 1]);
        assert_eq!(choose_ticks(7), [0, 2, 4, 6]);
        assert_eq!(choose_ticks(90_000), [0, 20_000, 40_000, 60_000, 80_000]);
        assert!(choose_ticks(u64::MAX).len() <= 6);
        let texts = [0, 999, 1000, 1500, 20_000, 1_200_000, 5_000_000_000].map(shorten_count);
        assert_eq!(texts, ["0", "999", "1k", "1.5k", "20k", "1.2M", "5G"]);
    }
}
