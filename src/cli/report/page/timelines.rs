//! Writes the timelines of the first subjects. The page shows one timeline at a time.

use super::card_table::HtmlTableWriter;
use super::{find_rows, open_details};
use crate::cli::output::{format_count, group_digits};
use crate::cli::report::Report;
use crate::cli::report::html::HtmlWriter;
use crate::cli::report::svg::{SvgLane, draw_lanes};
use crate::cli::report::timeline::{CELLS, TimelineChart};

pub(super) fn has_content(report: &Report) -> bool {
    find_rows(report).is_some_and(|rows| !rows.timelines.is_empty())
}

pub(super) fn write_timeline_section(html: &mut HtmlWriter, report: &Report) {
    let Some(rows) = find_rows(report) else { return };
    html.write_element(
        "p",
        &[],
        "Measurements over time, by code prefix. The height of a bar is the square root of \
         the number of measurements in its period.",
    );
    // The script of the page reveals this list. In a browser without scripts, it stays hidden, and
    // all timelines are shown one below the other.
    html.open("p", &[("id", "chooser"), ("hidden", "hidden")]);
    html.write_element("label", &[("for", "subject")], "Subject ");
    html.open("select", &[("id", "subject")]);
    for (i, timeline) in rows.timelines.iter().enumerate() {
        html.write_element("option", &[("value", &format!("subject-{i}"))], &timeline.subject);
    }
    html.close("select");
    html.close("p");
    for (i, timeline) in rows.timelines.iter().enumerate() {
        write_timeline(html, timeline, i);
    }
}

fn write_timeline(html: &mut HtmlWriter, timeline: &TimelineChart, index: usize) {
    let (first, last) = (timeline.first, timeline.last);
    let span = last - first;
    let exact = |at: f64| timeline.clock.format_exact(at);
    html.open("figure", &[("class", "wide timeline"), ("id", &format!("subject-{index}"))]);
    html.open("figcaption", &[]);
    html.write_element("h3", &[], &timeline.subject);
    html.close("figcaption");
    let text = format!(
        "{} with {} from {} to {}",
        format_count(timeline.events, "event", "events"),
        format_count(timeline.measurements, "measurement", "measurements"),
        exact(first),
        exact(last)
    );
    html.write_element("p", &[("class", "small")], &text);
    if !timeline.facts.is_empty() {
        let facts = format!("Without a time: {}", timeline.facts.join(", "));
        html.write_element("p", &[("class", "small code")], facts);
    }
    let at = |cell: usize| {
        timeline.clock.format_at(first + span * cell as f64 / CELLS as f64, span / 24.0)
    };
    let lanes: Vec<SvgLane> = timeline
        .lanes
        .iter()
        .map(|lane| SvgLane {
            name: format!(
                "{} ({})",
                shorten_name(&lane.name),
                group_digits(lane.cells.iter().sum::<u64>())
            ),
            cells: lane
                .cells
                .iter()
                .enumerate()
                .map(|(i, n)| {
                    (*n, format!("{} to {}: {} {}", at(i), at(i + 1), group_digits(n), lane.name))
                })
                .collect(),
        })
        .collect();
    let labels: Vec<String> = match span > 0.0 {
        true => (0..=3)
            .map(|i| timeline.clock.format_at(first + span * f64::from(i) / 3.0, span))
            .collect(),
        false => vec![exact(first)],
    };
    let names: Vec<&str> = lanes.iter().map(|l| l.name.as_str()).collect();
    let description =
        format!("Timeline of {}: {text}. By prefix: {}.", timeline.subject, names.join(", "));
    draw_lanes(html, &description, &lanes, &labels);
    let listed = timeline.listed.len();
    let summary = match timeline.events > listed {
        true => format!("The first {listed} events"),
        false => "Events".into(),
    };
    open_details(html, &summary);
    let caption = format!("Events of {}", timeline.subject);
    let mut table = HtmlTableWriter::open(html, &caption, &["time", "measurements"], 2);
    for event in &timeline.listed {
        let mut items = event.items.join("; ");
        if event.more > 0 {
            items.push_str(&format!(" and {} more", group_digits(event.more)));
        }
        table.write_row(html, &[event.time.clone(), items]);
    }
    table.close(html);
    html.close("details");
    html.close("figure");
}

/// Shortens a name that is too wide for a narrow chart: replaces its middle with `…`.
fn shorten_name(name: &str) -> String {
    const LONGEST: usize = 28;
    let count = name.chars().count();
    if count <= LONGEST {
        return name.to_owned();
    }
    let start = name.chars().take(LONGEST / 2);
    let end = name.chars().skip(count + 1 - LONGEST / 2);
    start.chain(std::iter::once('…')).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::shorten_name;

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(shorten_name("LAB"), "LAB");
        let name = "a sentence that stands for a code";
        assert_eq!(shorten_name(name), "a sentence tha…ds for a code");
    }
}
