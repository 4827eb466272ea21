//! Random health records as nested lists, and the batches that the loader must build from them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, UInt8Array, UInt16Array, UInt32Array,
};
use proptest::prelude::*;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serrate::dense::{DenseTensor, PaddingSide};
use serrate::loader::meds::{
    MedsOptions, SequenceUnit, SequenceWindow, ShardSubjects, StaticsMode,
};
use serrate::loader::{Batch, BatchForm};
use serrate::table::RaggedTable;

use crate::support::name_tensors;

pub(crate) type Measurement = (i64, f32);

#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) id: i64,
    pub(crate) facts: Vec<Measurement>,
    /// Time of each event, time since the previous event, and measurements.
    pub(crate) events: Vec<(i64, f32, Vec<Measurement>)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub(crate) subject: i64,
    pub(crate) time: i64,
    pub(crate) boolean: Option<bool>,
    pub(crate) category: Option<&'static str>,
}

pub(crate) fn draw_number(rng: &mut ChaCha8Rng) -> f32 {
    if rng.random_bool(0.4) { f32::NAN } else { rng.random_range(-50..50) as f32 / 4.0 }
}

pub(crate) fn draw_subjects(rng: &mut ChaCha8Rng, n: usize) -> Vec<Subject> {
    let mut code = 0;
    let mut measurements = |rng: &mut ChaCha8Rng, most: usize, least: usize| -> Vec<Measurement> {
        let n = if rng.random_bool(0.15) { least } else { rng.random_range(least..=most) };
        (0..n)
            .map(|_| {
                code = code % 200 + 1;
                (code, draw_number(rng))
            })
            .collect()
    };
    (0..n)
        .map(|i| {
            let facts = measurements(rng, 4, 0);
            // Some subjects have no events. They have only static facts, or nothing.
            let events = if rng.random_bool(0.2) { 0 } else { rng.random_range(0..14) };
            let mut time = 1000 * i as i64;
            let events = (0..events)
                .map(|e| {
                    time += rng.random_range(1..5);
                    let delta = if e == 0 { f32::NAN } else { rng.random_range(1..9) as f32 };
                    (time, delta, measurements(rng, 5, usize::from(e % 5 != 4)))
                })
                .collect();
            Subject { id: 100 + 7 * i as i64, facts, events }
        })
        .collect()
}

/// Converts the subjects to `cuts` shards. In every second shard, NaN becomes NULL. Codes have the
/// narrowest type, and the first shard is a slice of a longer table.
pub(crate) fn cut_shards(subjects: &[Subject], cuts: usize) -> Vec<ShardSubjects> {
    let size = subjects.len().div_ceil(cuts).max(1);
    let mut shards: Vec<ShardSubjects> =
        subjects.chunks(size).enumerate().map(|(i, part)| make_shard(part, i)).collect();
    if shards.is_empty() {
        shards.push(make_shard(&[], 0));
    }
    shards
}

pub(crate) fn make_shard(part: &[Subject], i: usize) -> ShardSubjects {
    let before = Subject { id: -1, facts: vec![(9, 1.0)], events: vec![(0, 0.0, vec![(9, 1.0)])] };
    let all: Vec<&Subject> = std::iter::once(&before).filter(|_| i == 0).chain(part).collect();
    let numbers = |values: Vec<f32>| -> ArrayRef {
        match i % 3 {
            0 => Arc::new(Float32Array::from(values)),
            1 => Arc::new(
                values.into_iter().map(|v| (!v.is_nan()).then_some(v)).collect::<Float32Array>(),
            ),
            _ => Arc::new(Float64Array::from_iter_values(values.into_iter().map(f64::from))),
        }
    };
    let codes = |values: Vec<i64>| -> ArrayRef {
        match i % 3 {
            0 => Arc::new(Int64Array::from(values)),
            1 => Arc::new(UInt8Array::from_iter_values(values.into_iter().map(|v| v as u8))),
            _ => Arc::new(UInt16Array::from_iter_values(values.into_iter().map(|v| v as u16))),
        }
    };
    let events: Vec<_> = all.iter().flat_map(|s| s.events.clone()).collect();
    let measurements: Vec<Measurement> = events.iter().flat_map(|e| e.2.clone()).collect();
    let facts: Vec<Measurement> = all.iter().flat_map(|s| s.facts.clone()).collect();
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(all.iter().map(|s| s.id)));
    let times = TimestampMicrosecondArray::from_iter_values(events.iter().map(|e| e.0));
    let table = RaggedTable::builder()
        .rows(all.len())
        .lengths(all.iter().map(|s| s.events.len()))
        .unwrap()
        .lengths(events.iter().map(|e| e.2.len()))
        .unwrap()
        .column("subject_id", 0, Arc::clone(&ids))
        .column("time", 1, Arc::new(times))
        .column("time_delta_days", 1, numbers(events.iter().map(|e| e.1).collect()))
        .column("code", 2, codes(measurements.iter().map(|m| m.0).collect()))
        .column("numeric_value", 2, numbers(measurements.iter().map(|m| m.1).collect()))
        .build()
        .unwrap();
    let tokens = UInt32Array::from_iter_values(facts.iter().map(|m| m.0 as u32));
    let statics = RaggedTable::builder()
        .rows(all.len())
        .lengths(all.iter().map(|s| s.facts.len()))
        .unwrap()
        .column("subject_id", 0, ids)
        .column("static_code", 1, Arc::new(tokens))
        .column("static_numeric_value", 1, numbers(facts.iter().map(|m| m.1).collect()))
        .build()
        .unwrap();
    let rows = all.len() - part.len()..all.len();
    ShardSubjects {
        name: format!("train/{i}"),
        events: table.slice(rows.start, rows.len()).unwrap(),
        statics: Some(statics.slice(rows.start, rows.len()).unwrap()),
    }
}

pub(crate) fn label_batch(labels: &[Label]) -> RecordBatch {
    let times = TimestampMicrosecondArray::from_iter_values(labels.iter().map(|l| l.time));
    let ids = Int64Array::from_iter_values(labels.iter().map(|l| l.subject));
    RecordBatch::try_from_iter([
        ("subject_id", Arc::new(ids) as ArrayRef),
        ("prediction_time", Arc::new(times)),
        ("boolean_value", Arc::new(labels.iter().map(|l| l.boolean).collect::<BooleanArray>())),
        (
            "integer_value",
            arrow::array::new_null_array(&arrow::datatypes::DataType::Int64, labels.len()),
        ),
        ("categorical_value", Arc::new(labels.iter().map(|l| l.category).collect::<StringArray>())),
    ])
    .unwrap()
}

pub(crate) fn draw_labels(rng: &mut ChaCha8Rng, subjects: &[Subject]) -> Vec<Label> {
    let n = rng.random_range(1..12);
    (0..n)
        .map(|_| {
            let unknown = rng.random_bool(0.2) || subjects.is_empty();
            let i = if unknown { 0 } else { rng.random_range(0..subjects.len()) };
            Label {
                subject: if unknown { 3 } else { subjects[i].id },
                // The time is anywhere from before the first event of the subject to after its last
                // one.
                time: 1000 * i as i64 + rng.random_range(-2..50),
                boolean: rng.random_bool(0.8).then(|| rng.random_bool(0.5)),
                category: rng.random_bool(0.8).then(|| ["b", "a", "c"][rng.random_range(0..3)]),
            }
        })
        .collect()
}

#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) len: usize,
    pub(crate) unit: SequenceUnit,
    pub(crate) window: SequenceWindow,
    pub(crate) statics: StaticsMode,
    pub(crate) side: PaddingSide,
    pub(crate) form: BatchForm,
    pub(crate) cap: Option<usize>,
    pub(crate) fixed: bool,
    pub(crate) compat: bool,
}

impl Setup {
    pub(crate) fn options(&self, batch: usize) -> MedsOptions {
        let mut options = MedsOptions::new(batch, self.len)
            .unit(self.unit)
            .window(self.window)
            .statics(self.statics)
            .side(self.side)
            .form(self.form)
            .fixed_shape(self.fixed)
            .compat(self.compat)
            .window_counts(true);
        if let Some(cap) = self.cap {
            options = options.measurements_per_event(cap);
        }
        options
    }

    /// Returns the number of elements that prepended facts take at the start of a sequence.
    pub(crate) fn before(&self, subject: &Subject) -> usize {
        match (self.statics, self.unit) {
            (StaticsMode::Prepend, SequenceUnit::Event) => 1,
            (StaticsMode::Prepend, SequenceUnit::Measurement) if self.compat => subject.facts.len(),
            (StaticsMode::Prepend, SequenceUnit::Measurement) => {
                subject.facts.len().min(self.len - 1)
            }
            _ => 0,
        }
    }

    /// Returns the number of elements (events or measurements) in the first `events` events of a
    /// subject.
    pub(crate) fn count(&self, subject: &Subject, events: usize) -> usize {
        match self.unit {
            SequenceUnit::Event => events,
            SequenceUnit::Measurement => subject.events[..events].iter().map(|e| e.2.len()).sum(),
        }
    }

    /// Returns the windows of a subject with `len` visible elements. `None` stands for a window at
    /// a random position.
    pub(crate) fn windows(&self, subject: &Subject, len: usize) -> Vec<Option<Range<usize>>> {
        let window = self.len - self.before(subject);
        let stride = match self.window {
            SequenceWindow::Random | SequenceWindow::BalancedRandom if len > window => {
                return vec![None];
            }
            SequenceWindow::FromStart => return vec![Some(0..len.min(window))],
            SequenceWindow::Random | SequenceWindow::BalancedRandom | SequenceWindow::ToEnd => {
                return vec![Some(len.saturating_sub(window)..len)];
            }
            SequenceWindow::Step { stride } => stride,
            SequenceWindow::Overlap { overlap } => window - overlap,
        };
        if len <= window {
            return vec![Some(0..len)];
        }
        let mut all = Vec::new();
        let mut start = 0;
        while start < len {
            all.push(Some(start..len.min(start + window)));
            if start + window >= len {
                break;
            }
            start += stride;
        }
        if self.compat {
            if start >= len {
                all.push(None);
            }
            *all.last_mut().unwrap() = Some(len - window..len);
        }
        all
    }
}

pub(crate) fn draw_setup() -> impl Strategy<Value = Setup> {
    let window = prop_oneof![
        Just(SequenceWindow::Random),
        Just(SequenceWindow::BalancedRandom),
        Just(SequenceWindow::ToEnd),
        Just(SequenceWindow::FromStart),
        (1usize..9).prop_map(|stride| SequenceWindow::Step { stride }),
        (0usize..3).prop_map(|overlap| SequenceWindow::Overlap { overlap }),
    ];
    let unit = prop_oneof![Just(SequenceUnit::Measurement), Just(SequenceUnit::Event)];
    let statics = prop_oneof![
        Just(StaticsMode::Include),
        Just(StaticsMode::Prepend),
        Just(StaticsMode::Omit)
    ];
    let cap = proptest::option::of(1usize..6);
    ((2usize..16), unit, window, statics, cap, any::<[bool; 4]>()).prop_map(
        |(len, unit, window, statics, cap, [left, packed, fixed, compat])| {
            let mut setup = Setup {
                len,
                unit,
                window,
                statics,
                side: if left { PaddingSide::Left } else { PaddingSide::Right },
                form: if packed { BatchForm::Packed } else { BatchForm::Padded },
                cap: cap.filter(|_| unit == SequenceUnit::Event && !packed),
                fixed: fixed && !packed,
                compat: compat && !packed && !fixed,
            };
            if packed {
                setup.side = PaddingSide::Right;
            }
            // Makes sequences longer. Otherwise, such windows would leave no room for prepended
            // facts, or would omit elements.
            let stepped =
                matches!(window, SequenceWindow::Step { .. } | SequenceWindow::Overlap { .. });
            if stepped && statics == StaticsMode::Prepend
                || matches!(window, SequenceWindow::Overlap { .. })
            {
                setup.len += 8;
            }
            if setup.compat {
                setup.len += 5;
            }
            setup
        },
    )
}

/// A measurement in a sequence: token, number, time since the previous event, and whether it is a
/// static fact.
pub(crate) type Cell = (i64, f32, f32, bool);

/// Returns the expected sequence of an item. Its elements are events, or lists of one measurement
/// each.
pub(crate) fn build_sequence(
    setup: &Setup,
    subject: &Subject,
    window: &Range<usize>,
) -> Vec<(f32, bool, Vec<Cell>)> {
    let fact = |m: &Measurement| (m.0, m.1, 0.0, true);
    let zero = |v: f32| if v.is_nan() { 0.0 } else { v };
    let before = setup.before(subject);
    let mut all = Vec::new();
    match setup.unit {
        SequenceUnit::Event => {
            if before > 0 {
                all.push((0.0, true, subject.facts.iter().map(fact).collect()));
            }
            for (_, delta, measurements) in &subject.events[window.clone()] {
                let cells = measurements.iter().map(|m| (m.0, m.1, 0.0, false)).collect();
                all.push((zero(*delta), false, cells));
            }
        }
        SequenceUnit::Measurement => {
            all.extend(subject.facts[..before].iter().map(|m| (0.0, true, vec![fact(m)])));
            let flat: Vec<_> = subject
                .events
                .iter()
                .flat_map(|(_, delta, measurements)| {
                    measurements.iter().enumerate().map(|(i, m)| {
                        let delta = if i == 0 { zero(*delta) } else { 0.0 };
                        (delta, false, vec![(m.0, m.1, delta, false)])
                    })
                })
                .collect();
            all.extend(flat[window.clone()].iter().cloned());
        }
    }
    all
}

/// Pads or truncates each list to `size` elements, and concatenates the lists.
pub(crate) fn pad_lists<T: Copy>(
    lists: &[Vec<T>],
    size: usize,
    side: PaddingSide,
    fill: T,
) -> Vec<T> {
    let mut out = Vec::new();
    for list in lists {
        let kept = list.len().min(size);
        let rest = std::iter::repeat_n(fill, size - kept);
        match side {
            PaddingSide::Right => {
                out.extend(&list[..kept]);
                out.extend(rest);
            }
            PaddingSide::Left => {
                out.extend(rest);
                out.extend(&list[list.len() - kept..]);
            }
        }
    }
    out
}

pub(crate) fn make_bools(shape: &[usize], values: Vec<bool>) -> DenseTensor {
    DenseTensor::from_bools(shape, values).unwrap()
}

/// Returns the expected tensors of a batch with these sequences, by name.
pub(crate) fn build_expected(
    setup: &Setup,
    sequences: &[Vec<(f32, bool, Vec<Cell>)>],
    subjects: &[&Subject],
) -> BTreeMap<String, DenseTensor> {
    let mut out = BTreeMap::new();
    let b = sequences.len();
    let number = |v: f32| if v.is_nan() { 0.0 } else { v };
    let mut put =
        |name: &str, tensor: DenseTensor| assert!(out.insert(name.into(), tensor).is_none());
    if setup.form == BatchForm::Packed {
        let events: Vec<_> = sequences.iter().flatten().collect();
        let cells: Vec<&Cell> = events.iter().flat_map(|e| &e.2).collect();
        let n = [cells.len()];
        put("code", DenseTensor::from_vec(n, cells.iter().map(|c| c.0).collect()).unwrap());
        let values = cells.iter().map(|c| number(c.1)).collect();
        put("numeric_value", DenseTensor::from_vec(n, values).unwrap());
        put("numeric_value_mask", make_bools(&n, cells.iter().map(|c| !c.1.is_nan()).collect()));
        let m = [events.len()];
        let days = events.iter().map(|e| e.0).collect();
        put("time_delta_days", DenseTensor::from_vec(m, days).unwrap());
        let ends = |lengths: Vec<usize>| {
            let mut ends = vec![0i32];
            lengths.into_iter().for_each(|n| ends.push(ends.last().unwrap() + n as i32));
            DenseTensor::from_vec([ends.len()], ends).unwrap()
        };
        put("dim1/cu_seqlens", ends(sequences.iter().map(Vec::len).collect()));
        if setup.unit == SequenceUnit::Event {
            let whole = |s: &Vec<(f32, bool, Vec<Cell>)>| s.iter().map(|e| e.2.len()).sum();
            put("dim2/cu_seqlens", ends(sequences.iter().map(whole).collect()));
            put("dim2/offsets", ends(events.iter().map(|e| e.2.len()).collect()));
        }
        match setup.statics {
            StaticsMode::Prepend => {
                put("static_mask", make_bools(&m, events.iter().map(|e| e.1).collect()))
            }
            StaticsMode::Include => {
                let facts: Vec<_> = subjects.iter().flat_map(|s| &s.facts).collect();
                let n = [facts.len()];
                put(
                    "static_code",
                    DenseTensor::from_vec(n, facts.iter().map(|f| f.0).collect()).unwrap(),
                );
                let values = facts.iter().map(|f| number(f.1)).collect();
                put("static_numeric_value", DenseTensor::from_vec(n, values).unwrap());
                put(
                    "static_numeric_value_mask",
                    make_bools(&n, facts.iter().map(|f| !f.1.is_nan()).collect()),
                );
                put("static/cu_seqlens", ends(subjects.iter().map(|s| s.facts.len()).collect()));
            }
            StaticsMode::Omit => {}
        }
        return out;
    }

    let longest = sequences.iter().map(Vec::len).max().unwrap_or(0);
    let size = if setup.fixed { setup.len } else { longest };
    let absent = (0.0, false, Vec::new());
    let lists: Vec<Vec<&(f32, bool, Vec<Cell>)>> =
        sequences.iter().map(|s| s.iter().collect()).collect();
    let events = pad_lists(&lists, size, setup.side, &absent);
    let there = pad_lists(
        &lists.iter().map(|l| vec![true; l.len()]).collect::<Vec<_>>(),
        size,
        setup.side,
        false,
    );
    let (shape, cells) = match setup.unit {
        SequenceUnit::Measurement => {
            (vec![b, size], events.iter().map(|e| e.2.first().copied()).collect::<Vec<_>>())
        }
        SequenceUnit::Event => {
            let longest = lists.iter().flatten().map(|e| e.2.len()).max().unwrap_or(0);
            let inner = match setup.cap {
                Some(cap) if setup.fixed => cap,
                Some(cap) => longest.min(cap),
                None => longest,
            };
            let lists: Vec<Vec<Option<Cell>>> =
                events.iter().map(|e| e.2.iter().copied().map(Some).collect()).collect();
            (vec![b, size, inner], pad_lists(&lists, inner, setup.side, None))
        }
    };
    let codes = cells.iter().map(|c| c.map_or(0, |c| c.0)).collect();
    put("code", DenseTensor::from_vec(shape.clone(), codes).unwrap());
    let values = cells.iter().map(|c| c.map_or(0.0, |c| number(c.1))).collect();
    put("numeric_value", DenseTensor::from_vec(shape.clone(), values).unwrap());
    let mask = cells.iter().map(|c| c.map_or(setup.compat, |c| !c.1.is_nan())).collect();
    put("numeric_value_mask", make_bools(&shape, mask));
    let days = events.iter().map(|e| e.0).collect();
    put("time_delta_days", DenseTensor::from_vec([b, size], days).unwrap());
    if setup.unit == SequenceUnit::Event {
        put("event_mask", make_bools(&[b, size], there));
    }
    match setup.statics {
        StaticsMode::Prepend if setup.compat => {
            let first = |s: &&Subject| -> Vec<bool> {
                let n = if setup.unit == SequenceUnit::Event { 1 } else { s.facts.len() };
                (0..size).map(|i| i < n).collect()
            };
            put("static_mask", make_bools(&[b, size], subjects.iter().flat_map(first).collect()));
        }
        StaticsMode::Prepend => {
            put("static_mask", make_bools(&[b, size], events.iter().map(|e| e.1).collect()));
        }
        StaticsMode::Include => {
            let facts: Vec<_> =
                subjects.iter().map(|s| s.facts.iter().map(Some).collect()).collect();
            let longest = subjects.iter().map(|s| s.facts.len()).max().unwrap_or(0);
            let cells =
                pad_lists::<Option<&Measurement>>(&facts, longest, PaddingSide::Right, None);
            let shape = [b, longest];
            let codes = cells.iter().map(|c| c.map_or(0, |c| c.0)).collect();
            put("static_code", DenseTensor::from_vec(shape, codes).unwrap());
            let values = cells.iter().map(|c| c.map_or(0.0, |c| number(c.1))).collect();
            put("static_numeric_value", DenseTensor::from_vec(shape, values).unwrap());
            let mask = cells.iter().map(|c| c.map_or(setup.compat, |c| !c.1.is_nan())).collect();
            put("static_numeric_value_mask", make_bools(&shape, mask));
        }
        StaticsMode::Omit => {}
    }
    out
}

pub(crate) fn make_numbers(values: impl IntoIterator<Item = i64>) -> DenseTensor {
    let values: Vec<i64> = values.into_iter().collect();
    DenseTensor::from_vec([values.len()], values).unwrap()
}

pub(crate) fn map_tensors(batch: &Batch) -> BTreeMap<String, DenseTensor> {
    name_tensors(batch).into_iter().collect()
}
