//! [`ShardTimeline`]: finds the events of measurements in a shard whose rows are lists of
//! measurements, without a level of events.

use std::ops::Range;

use arrow::array::OffsetSizeTrait;
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::ArrowNativeType;

use crate::array::{Layout, Offsets};
use crate::error::{Error, Result};
use crate::with_offsets;

/// The events that the measurements of a shard belong to. Each event may have a float32 value, such
/// as the days since the previous event. Batches hold this value at the event's first measurement.
#[derive(Debug)]
pub(super) struct ShardTimeline {
    rows: Layout,
    events: Offsets,
    /// One value per event; `None` if the events of the shard have no values.
    values: Option<ScalarBuffer<f32>>,
}

/// Consecutive events of a row that contain all measurements of a range.
#[derive(Clone, Debug, Default)]
pub(super) struct EventSpan {
    /// Index of the first event of the span within the shard.
    pub(super) first: usize,
    /// Indices of the events within their row; empty if the range of measurements is empty.
    pub(super) of_row: Range<usize>,
}

impl ShardTimeline {
    /// Builds a timeline: `rows` divides the events into rows, and `events` the measurements into
    /// events.
    ///
    /// # Errors
    /// If `events` does not have one list of measurements per event of `rows`, or `values` does not
    /// have one value per event.
    pub(super) fn new(
        rows: Layout,
        events: &Layout,
        values: Option<ScalarBuffer<f32>>,
    ) -> Result<Self> {
        let (found, expected) =
            (values.as_ref().map_or(events.lists(), |v| v.len()), rows.children());
        if events.lists() != expected || found != expected {
            return Err(Error::invalid(format!(
                "the rows have {expected} event(s), but {} list(s) of measurements and {found} event value(s) are given; give one list and one value per event",
                events.lists()
            )));
        }
        Ok(Self { rows, events: events.to_offsets()?, values })
    }

    /// Returns the offsets of the measurements of every row, or an error if they exceed 63 bits.
    pub(super) fn compute_row_offsets(&self) -> Result<Offsets> {
        Offsets::from_lengths((0..self.rows.lists()).map(|row| self.count_up_to(row, usize::MAX)))
    }

    /// Returns the number of measurements in the first `events` events of a row.
    pub(super) fn count_up_to(&self, row: usize, events: usize) -> usize {
        let all = self.rows.range(row);
        let end = all.start + all.len().min(events);
        self.events.ranges(all.start..end).len()
    }

    /// Returns the events of row `row` that the measurements `elements` belong to. `elements` are
    /// indices within the shard.
    pub(super) fn find_span(&self, row: usize, elements: &Range<usize>) -> EventSpan {
        let all = self.rows.range(row);
        if elements.is_empty() {
            return EventSpan { first: all.start, of_row: 0..0 };
        }
        with_offsets!(&self.events, o => {
            let (base, o) = (o[0].as_usize(), &o[all.start..=all.end]);
            // Skip events that end at or before the first measurement of `elements`, and take all
            // later events that start before `elements.end`. Some of these may have no
            // measurements.
            let first = o[1..].partition_point(|end| end.as_usize() - base <= elements.start);
            let after = o[first..].partition_point(|start| start.as_usize() - base < elements.end);
            EventSpan { first: all.start + first, of_row: first..first + after }
        })
    }

    /// Writes the value of each event at its first measurement, and 0 at all other measurements.
    pub(super) fn write_values(&self, span: &EventSpan, elements: &Range<usize>, out: &mut [u8]) {
        fn write_event_elements<O: OffsetSizeTrait>(
            o: &OffsetBuffer<O>,
            values: &[f32],
            span: &EventSpan,
            elements: &Range<usize>,
            out: &mut [[u8; 4]],
        ) {
            let base = o[0].as_usize();
            let events = span.first..span.first + span.of_row.len();
            let bounds = o[events.start..=events.end].array_windows();
            for ([start, end], value) in bounds.zip(&values[events]) {
                let (start, end) = (start.as_usize() - base, end.as_usize() - base);
                // An event without measurements has no first measurement, so its value is not
                // written.
                if start >= elements.start && start < end {
                    out[start - elements.start] = value.to_ne_bytes();
                }
            }
        }
        out.fill(0);
        let Some(values) = &self.values else { return };
        let out = out.as_chunks_mut().0;
        match &self.events {
            Offsets::I32(o) => write_event_elements(o, values, span, elements, out),
            Offsets::I64(o) => write_event_elements(o, values, span, elements, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_and_their_values_placed() {
        let rows = Layout::from(Offsets::from_lengths([4, 3]).unwrap());
        let lengths = [2, 0, 3, 1, 0, 2, 0];
        let values = (0..7u8).map(|i| f32::from(i) + 0.5).collect::<Vec<_>>();
        for skip in [0, 1] {
            // The results must be the same for sliced offsets, which do not start at 0.
            let lengths = std::iter::repeat_n(5, skip).chain(lengths);
            let events = Layout::from(Offsets::from_lengths(lengths).unwrap()).slice(skip, 7);
            let line =
                ShardTimeline::new(rows.clone(), &events, Some(values.clone().into())).unwrap();
            assert_eq!(line.compute_row_offsets().unwrap().lengths().collect::<Vec<_>>(), [6, 2]);
            assert_eq!(
                (line.count_up_to(0, 2), line.count_up_to(0, 3), line.count_up_to(1, 9)),
                (2, 5, 2)
            );
            for (row, starts) in [(0, vec![(0, 0), (2, 2), (5, 3)]), (1, vec![(6, 5)])] {
                let all = if row == 0 { 0..6 } else { 6..8 };
                let first_event = [0, 4][row];
                for start in all.clone() {
                    for end in start..=all.end {
                        let elements = start..end;
                        let span = line.find_span(row, &elements);
                        let mut out = vec![7; 4 * elements.len()];
                        line.write_values(&span, &elements, &mut out);
                        let mut expected = vec![0f32; elements.len()];
                        let inside = starts.iter().filter(|(at, _)| elements.contains(at));
                        for (at, event) in inside.clone() {
                            expected[at - start] = values[*event];
                        }
                        let bytes: Vec<u8> =
                            expected.iter().flat_map(|v| v.to_ne_bytes()).collect();
                        assert_eq!(out, bytes, "{row} {elements:?}");
                        if elements.is_empty() {
                            assert!(span.of_row.is_empty());
                            continue;
                        }
                        let of = |m: usize| starts.iter().rev().find(|(at, _)| *at <= m).unwrap().1;
                        let events = of(start) - first_event..of(end - 1) + 1 - first_event;
                        assert_eq!(span.of_row, events, "{row} {elements:?}");
                        assert_eq!(span.first, of(start));
                    }
                }
            }
        }
    }
}
