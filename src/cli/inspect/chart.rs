//! Draws histograms as text that fits the terminal, in ASCII unless the locale uses UTF-8.

use std::io::Write;

use crate::cli::command_failure::Outcome;
use crate::cli::histogram_bins::group_into_bins;
use crate::cli::output::{
    Charset, compute_safe_ratio, find_terminal_width, format_percent, group_digits,
};
use crate::table::LengthHistogram;

/// Number of characters of a line if standard output is a file or a pipe.
const FILE_WIDTH: usize = 80;
/// Minimum and maximum width of a chart on a terminal, in characters. On a wide terminal, longer
/// bars would not be easier to compare.
const WIDTH_LIMITS: (usize, usize) = (40, 120);
/// Maximum number of characters of the label of a bar, or half of the chart's width if that is
/// less.
const MAX_LABEL_WIDTH: usize = 30;
const BARS: usize = 10;
/// The characters of a bar: a blank, the blocks of one eighth to seven eighths of a cell, and the
/// full block.
const EIGHTHS: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

impl Charset {
    fn range_dash(self) -> &'static str {
        if self == Self::Utf8 { "–" } else { "-" }
    }

    fn end_mark(self) -> &'static str {
        if self == Self::Utf8 { "…" } else { ".." }
    }
}

#[derive(Clone, Copy)]
pub(super) struct ChartCanvas {
    charset: Charset,
    line: usize,
}

impl ChartCanvas {
    pub(super) fn from_terminal() -> Self {
        let line = find_terminal_width()
            .map_or(FILE_WIDTH, |width| width.clamp(WIDTH_LIMITS.0, WIDTH_LIMITS.1));
        Self { charset: Charset::from_locale(), line }
    }
}

pub(super) struct ChartBar {
    pub(super) label: String,
    pub(super) count: u64,
}

/// Writes a histogram of lengths. Quantiles of the lengths follow the title.
pub(super) fn write_lengths(
    title: &str,
    lengths: &LengthHistogram,
    canvas: ChartCanvas,
    out: &mut impl Write,
) -> Outcome {
    let of = |q: f64| lengths.quantile(q).map_or_else(String::new, group_digits);
    let counts: Vec<(u64, u64)> = lengths.counts().map(|(n, lists)| (n as u64, lists)).collect();
    let bars: Vec<ChartBar> = group_into_bins(&counts, BARS)
        .iter()
        .map(|bin| ChartBar {
            label: bin.to_label(group_digits, canvas.charset.range_dash()),
            count: bin.count,
        })
        .collect();
    let quantiles = format!("(median {}, p90 {}, p99 {})", of(0.5), of(0.9), of(0.99));
    let fits = title.chars().count() + 1 + quantiles.chars().count() <= canvas.line;
    let title = format!("{title}{}{quantiles}", if fits { " " } else { "\n" });
    write_bars(&title, &bars, true, canvas, out)
}

/// Writes a title and one line per bar: label (on the right of its column if `align_right`), bar,
/// count, share of all counts. Writes nothing, not even the title, if all counts are 0.
pub(super) fn write_bars(
    title: &str,
    bars: &[ChartBar],
    align_right: bool,
    canvas: ChartCanvas,
    out: &mut impl Write,
) -> Outcome {
    let ChartCanvas { charset, line } = canvas;
    let total: u64 = bars.iter().map(|b| b.count).sum();
    let most = bars.iter().map(|b| b.count).max().unwrap_or(0);
    if most == 0 {
        return Ok(());
    }
    let most_label = MAX_LABEL_WIDTH.min(line / 2);
    let labels: Vec<String> =
        bars.iter().map(|b| shorten_label(&b.label, most_label, charset)).collect();
    let width = labels.iter().map(|l| l.chars().count()).max().unwrap_or(0);
    let counts: Vec<String> = bars.iter().map(|b| group_digits(b.count)).collect();
    let digits = counts.iter().map(String::len).max().unwrap_or(0);
    // `room` is the width of the bar: the width of the line minus the indent (2), the label, the
    // count, the share (6) and the spaces between them.
    let room = line.saturating_sub(2 + width + 1 + 1 + digits + 1 + 6).max(4);
    writeln!(out, "\n{title}")?;
    for ((label, bar), count) in labels.iter().zip(bars).zip(&counts) {
        let drawn = draw_bar(bar.count, most, room, charset);
        let share = format_percent(compute_safe_ratio(bar.count, total));
        let pad = " ".repeat(width.saturating_sub(label.chars().count()));
        let (before, after) = if align_right { (pad, String::new()) } else { (String::new(), pad) };
        writeln!(out, "  {before}{label}{after} {drawn} {count:>digits$} {share:>6}")?;
    }
    Ok(())
}

fn shorten_label(label: &str, most: usize, charset: Charset) -> String {
    let label: String = label.chars().flat_map(|c| escape_char(c, charset)).collect();
    if label.chars().count() <= most {
        return label;
    }
    let end = charset.end_mark();
    let kept = most.saturating_sub(end.chars().count());
    label.chars().take(kept).chain(end.chars()).collect()
}

fn escape_char(c: char, charset: Charset) -> Vec<char> {
    match c.is_control() || (charset == Charset::Ascii && !c.is_ascii()) {
        true => c.escape_default().collect(),
        false => vec![c],
    }
}

/// Draws a bar that has `width` characters if `count` equals `most`, and is empty only if `count`
/// is 0.
fn draw_bar(count: u64, most: u64, width: usize, charset: Charset) -> String {
    let steps = if charset == Charset::Utf8 { 8 } else { 1 };
    let all = (width * steps) as u128;
    let filled = (u128::from(count) * all * 2 / u128::from(most.max(1))).div_ceil(2).min(all);
    let filled = usize::try_from(filled).unwrap_or(0).max(usize::from(count > 0));
    let mut text = match charset {
        Charset::Utf8 => "█".repeat(filled / 8),
        Charset::Ascii => "#".repeat(filled),
    };
    if charset == Charset::Utf8 && !filled.is_multiple_of(8) {
        text.push(EIGHTHS[filled % 8]);
    }
    let missing = width.saturating_sub(text.chars().count());
    text + &" ".repeat(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw_text(lengths: &LengthHistogram, charset: Charset, line: usize) -> String {
        let mut out = Vec::new();
        write_lengths("events per subject", lengths, ChartCanvas { charset, line }, &mut out)
            .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn bars_fit_the_line_and_are_proportional() {
        let lengths: LengthHistogram = (0..1000usize).map(|i| i % 40).collect();
        for charset in [Charset::Utf8, Charset::Ascii] {
            for line in [40, FILE_WIDTH, 120] {
                let text = draw_text(&lengths, charset, line);
                assert!(text.lines().all(|l| l.chars().count() <= line), "{text}");
                assert_eq!(text.lines().last().map(|l| l.chars().count()), Some(line), "{text}");
                assert!(text.contains("(median 19, p90 35, p99 39)"), "{text}");
                assert_eq!(text.is_ascii(), charset == Charset::Ascii);
            }
            assert_eq!(draw_text(&lengths, charset, FILE_WIDTH).lines().count(), 2 + 8);
        }
        let one: LengthHistogram = [3].into_iter().collect();
        assert!(draw_text(&one, Charset::Ascii, FILE_WIDTH).contains("  3 ####"));
        assert_eq!(draw_text(&LengthHistogram::default(), Charset::Utf8, FILE_WIDTH), "");
        assert_eq!(draw_bar(1, 1_000_000, 10, Charset::Utf8), "▏         ");
        assert_eq!(draw_bar(1, 1_000_000, 4, Charset::Ascii), "#   ");
        assert_eq!(draw_bar(u64::MAX, u64::MAX, 3, Charset::Utf8), "███");
        assert_eq!(draw_bar(0, 0, 2, Charset::Utf8), "  ");
    }

    #[test]
    fn labels_are_short_and_printable() {
        let bars = [
            ChartBar { label: "A\n\u{1b}[2J".repeat(20), count: 1 },
            ChartBar { label: "ä".into(), count: 2 },
        ];
        for charset in [Charset::Utf8, Charset::Ascii] {
            for line in [40, FILE_WIDTH] {
                let mut out = Vec::new();
                write_bars("shares", &bars, false, ChartCanvas { charset, line }, &mut out)
                    .unwrap();
                let text = String::from_utf8(out).unwrap();
                assert!(text.lines().all(|l| l.chars().count() <= line), "{text}");
                assert!(!text.contains('\u{1b}') && text.lines().count() == 4, "{text}");
            }
        }
    }
}
