//! Checks how the two ends of a window refer to each other, and formats the ends as text.

use super::super::boundary::{BoundarySearch, WindowBoundary, WindowSide};
use super::super::tree::CohortWindow;

/// Checks that exactly one end of a window is defined from the other: either the start as a time
/// before the end, or the end as a time after the start. The error says what to write instead.
pub(super) fn check_order(window: &CohortWindow) -> Result<(), String> {
    let of_end = window.start.is_of(WindowSide::End);
    let of_start = window.end.is_of(WindowSide::Start);
    let describe = |boundary: &WindowBoundary| describe_boundary(boundary);
    match (of_end, of_start) {
        (true, false) if window.start.is_backward() == Some(false) => Err(format!(
            "`start: {}` is after the end of the window; replace '+' by '-', or '->' by '<-'",
            describe(&window.start)
        )),
        (false, true) if window.end.is_backward() == Some(true) => Err(format!(
            "`end: {}` is before the start of the window; replace '-' by '+', or '<-' by '->'",
            describe(&window.end)
        )),
        (true, false) | (false, true) => Ok(()),
        (true, true) => Err("start and end of the window refer to each other; define one of them from the trigger or from another window".into()),
        (false, false) => Err(format!(
            "neither start nor end refers to the other end of the window, found start: {} and end: {}; define one from the other, such as end: start + 24h",
            describe(&window.start),
            describe(&window.end)
        )),
    }
}

pub(super) fn describe_boundary(boundary: &WindowBoundary) -> String {
    let reference = &boundary.reference;
    match &boundary.way {
        None => reference.to_string(),
        Some(BoundarySearch::Event { predicate, backward: true }) => {
            format!("{reference} <- {predicate}")
        }
        Some(BoundarySearch::Event { predicate, backward: false }) => {
            format!("{reference} -> {predicate}")
        }
        Some(BoundarySearch::Offset(micros)) => {
            let sign = if *micros < 0 { '-' } else { '+' };
            format!("{reference} {sign} {}", describe_length(micros.unsigned_abs()))
        }
    }
}

/// Formats a number of microseconds in days, hours, minutes, seconds and microseconds, and omits
/// units that are zero: `7d`, `1d 30m`. Exactly one day is `24h`.
fn describe_length(micros: u64) -> String {
    const UNITS: [(&str, u64); 4] =
        [("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000)];
    if micros == UNITS[0].1 {
        return "24h".into();
    }
    let mut parts = Vec::new();
    let mut rest = micros;
    for (unit, length) in UNITS {
        if rest >= length {
            parts.push(format!("{}{unit}", rest / length));
            rest %= length;
        }
    }
    if rest > 0 {
        parts.push(format!("{rest}µs"));
    }
    parts.join(" ")
}
