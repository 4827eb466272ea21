//! Parses boundaries of windows, such as `trigger + 24h`, `input.end` and `start -> discharge`.

use std::fmt;

use super::duration::parse_duration;

/// Built-in predicate that matches any event. This predicate, `_RECORD_START` and `_RECORD_END`
/// need no definition in the configuration.
pub(super) const ANY_EVENT: &str = "_ANY_EVENT";
pub(super) const RECORD_START: &str = "_RECORD_START";
pub(super) const RECORD_END: &str = "_RECORD_END";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowSide {
    Start,
    End,
}

impl fmt::Display for WindowSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::End => "end",
        })
    }
}

/// The time from which a boundary (the start or end of a window) is defined, such as `trigger` or
/// `input.end`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum BoundaryReference {
    /// The other end of the same window.
    Own(WindowSide),
    /// A word other than `start` and `end`: `trigger`, or an unknown word, which `build_tree`
    /// reports.
    Word(String),
    Window(String, WindowSide),
}

impl fmt::Display for BoundaryReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(side) => side.fmt(f),
            Self::Word(word) => f.write_str(word),
            Self::Window(name, side) => write!(f, "{name}.{side}"),
        }
    }
}

/// How a boundary is found from its reference. A boundary without a search is at the time of its
/// reference.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum BoundarySearch {
    /// The boundary is this number of microseconds after (if negative, before) its reference.
    Offset(i64),
    /// The next event (the previous one if `backward`) that matches a predicate.
    Event { predicate: String, backward: bool },
}

impl BoundarySearch {
    fn is_backward(&self) -> bool {
        match self {
            Self::Offset(micros) => *micros < 0,
            Self::Event { backward, .. } => *backward,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct WindowBoundary {
    pub(super) reference: BoundaryReference,
    pub(super) way: Option<BoundarySearch>,
}

impl WindowBoundary {
    /// Returns the default start or end (`side`) of a window: the start or end of the record, that
    /// is, the first or last event of the subject.
    pub(super) fn from_record_edge(side: WindowSide) -> Self {
        let (other, predicate, backward) = match side {
            WindowSide::Start => (WindowSide::End, RECORD_START, true),
            WindowSide::End => (WindowSide::Start, RECORD_END, false),
        };
        let way = BoundarySearch::Event { predicate: predicate.into(), backward };
        Self { reference: BoundaryReference::Own(other), way: Some(way) }
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (forward, backward) = (text.contains("->"), text.contains("<-"));
        if forward || backward {
            if forward && backward {
                return Err(format!(
                    "{text:?} has both '->' and '<-', but an end of a window can have only one arrow; use one of them"
                ));
            }
            let arrow = if forward { "->" } else { "<-" };
            let (reference, predicate) = split_once(text, arrow)?;
            check_direction(predicate, backward)?;
            let way = BoundarySearch::Event { predicate: predicate.to_owned(), backward };
            return Ok(Self { reference: parse_reference(reference)?, way: Some(way) });
        }
        let (later, earlier) = (text.contains('+'), text.contains('-'));
        if later || earlier {
            if later && earlier {
                return Err(format!(
                    "{text:?} has both '+' and '-', but an end of a window can have only one offset; use one of them"
                ));
            }
            let (reference, length) = split_once(text, if later { "+" } else { "-" })?;
            let micros = parse_duration(length).map_err(|e| format!("{e}, found {length:?}"))?;
            let micros = if later { micros } else { -micros };
            let way = (micros != 0).then_some(BoundarySearch::Offset(micros));
            return Ok(Self { reference: parse_reference(reference)?, way });
        }
        Ok(Self { reference: parse_reference(text.trim())?, way: None })
    }

    /// Whether the boundary is defined from `other`, the other end of its window: `end: start +
    /// 24h`.
    pub(super) fn is_of(&self, other: WindowSide) -> bool {
        self.reference == BoundaryReference::Own(other)
    }

    pub(super) fn is_backward(&self) -> Option<bool> {
        self.way.as_ref().map(BoundarySearch::is_backward)
    }
}

fn split_once<'a>(text: &'a str, operator: &str) -> Result<(&'a str, &'a str), String> {
    match text.split(operator).collect::<Vec<_>>().as_slice() {
        [reference, rest] => Ok((reference.trim(), rest.trim())),
        _ => Err(format!("{operator:?} occurs more than once in {text:?}; write it once")),
    }
}

fn check_direction(predicate: &str, backward: bool) -> Result<(), String> {
    match (predicate, backward) {
        (RECORD_START, false) => Err(format!(
            "'-> {RECORD_START}' matches nothing, because the start of a record is never after another event; use '<-'"
        )),
        (RECORD_END, true) => Err(format!(
            "'<- {RECORD_END}' matches nothing, because the end of a record is never before another event; use '->'"
        )),
        _ => Ok(()),
    }
}

/// Whether `text` is a valid name: only letters, digits and `_`.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn parse_reference(text: &str) -> Result<BoundaryReference, String> {
    let side = |word: &str| match word {
        "start" => Some(WindowSide::Start),
        "end" => Some(WindowSide::End),
        _ => None,
    };
    match text.split_once('.') {
        None if !is_name(text) => {}
        None => {
            return Ok(match side(text) {
                Some(side) => BoundaryReference::Own(side),
                None => BoundaryReference::Word(text.to_owned()),
            });
        }
        Some((window, end)) => {
            if let (true, Some(side)) = (is_name(window), side(end)) {
                return Ok(BoundaryReference::Window(window.to_owned(), side));
            }
        }
    }
    Err(format!(
        "expected \"trigger\", the start or end of another window (such as \"input.start\" or \"input.end\"), or the other side of this window (\"start\" or \"end\"), found {text:?}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_are_parsed() {
        let parse = |text: &str| WindowBoundary::parse(text).unwrap();
        let day = 86_400_000_000;
        assert_eq!(
            parse("trigger + 24h"),
            WindowBoundary {
                reference: BoundaryReference::Word("trigger".into()),
                way: Some(BoundarySearch::Offset(day))
            }
        );
        assert_eq!(parse("end - 1 day").way, Some(BoundarySearch::Offset(-day)));
        assert_eq!(parse("start + 0h"), parse(" start "));
        assert_eq!(
            parse("input.end").reference,
            BoundaryReference::Window("input".into(), WindowSide::End)
        );
        assert_eq!(
            parse("end <- admission").way,
            Some(BoundarySearch::Event { predicate: "admission".into(), backward: true })
        );
        assert_eq!(parse("start->_RECORD_END"), WindowBoundary::from_record_edge(WindowSide::End));
        for (text, expected) in [
            ("start <-> death", "both"),
            ("end - 1h + 2h", "both"),
            ("end - 1h - 2h", "more than once"),
            ("start -> a -> b", "more than once"),
            ("start + soon", "expected a length of time"),
            ("start + 24", "found \"24\""),
            ("input.middle", "found \"input.middle\""),
            ("a.b.end", "found \"a.b.end\""),
            ("in put", "found \"in put\""),
            ("start -> _RECORD_START", "use '<-'"),
            ("end <- _RECORD_END", "use '->'"),
        ] {
            let said = WindowBoundary::parse(text).unwrap_err();
            assert!(said.contains(expected), "{text}: {said}");
        }
    }
}
