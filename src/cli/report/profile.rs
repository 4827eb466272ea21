//! Statistics of each column, collected in one pass over the rows.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, DurationMicrosecondType, Float64Type, Int32Type, Int64Type, TimeUnit, UInt64Type,
};

use super::sketch::{MAX_EXACT, NumberSketch};
use crate::cli::command_failure::Outcome;
use crate::cli::stats::{DurationHistogram, GroupProfile, cast_to_microseconds, find_table_ranges};
use crate::table::{Column, LengthHistogram, RaggedTable};

/// Maximum number of distinct strings of a column. If there are more, the counts of its strings are
/// dropped.
const MAX_DISTINCT_TEXTS: usize = 1 << 20;
/// Precision of the [`NumberSketch`] of a numeric column, in bits. If the column has too many
/// distinct numbers to count each, the sketch counts the numbers in ranges with a relative width of
/// 2^-11. A quantile is then wrong by at most half of this width (0.025 %), which affects only the
/// last of the four digits that the report shows.
const NUMBER_BITS: u32 = 11;
/// Precision of the [`NumberSketch`] of a column of times, in bits: ranges have a relative width of
/// 2^-18. Times are microseconds since 1970, so ranges are wider the further they are from 1970.
/// From 2006 to 2041, a range is 1.2 hours.
const TIME_BITS: u32 = 18;

/// Statistics of columns whose lists have the same lengths.
#[derive(Default)]
pub(super) struct TableProfile {
    pub(super) columns: Vec<ColumnProfile>,
    /// For each axis from axis 2 on, a histogram of the number of its elements per row.
    pub(super) totals: Vec<LengthHistogram>,
    pub(super) spans: DurationHistogram,
}

impl GroupProfile for TableProfile {
    fn push(&mut self, table: &RaggedTable) -> Outcome {
        if self.columns.is_empty() {
            self.columns = table.columns().iter().map(ColumnProfile::new).collect();
            self.totals = vec![LengthHistogram::default(); table.axes().len().saturating_sub(1)];
        }
        for (profile, column) in self.columns.iter_mut().zip(table.columns()) {
            profile.add(column)?;
        }
        for (i, totals) in self.totals.iter_mut().enumerate() {
            find_table_ranges(table, i + 2)?.for_each(|range| totals.push(range.len()));
        }
        self.spans.push(table)
    }
}

/// Groups of column types; the report shows all types of a group in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    Integer,
    Float,
    Time,
    Duration,
    Flag,
    Text,
    /// Other types, such as binary and structs, whose values are not counted.
    Other,
}

impl ValueKind {
    pub(super) fn from_type(data_type: &DataType) -> Self {
        match data_type {
            DataType::Boolean => Self::Flag,
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => Self::Time,
            DataType::Duration(_) => Self::Duration,
            DataType::Dictionary(_, values) if values.is_string() => Self::Text,
            t if t.is_string() => Self::Text,
            t if t.is_integer() => Self::Integer,
            t if t.is_floating() || t.is_decimal() => Self::Float,
            _ => Self::Other,
        }
    }
}

pub(super) struct ColumnProfile {
    pub(super) name: String,
    pub(super) axis: usize,
    pub(super) kind: ValueKind,
    /// Counts of the numbers of the column, of its times in microseconds since 1970, or of its
    /// durations in microseconds.
    pub(super) sketch: NumberSketch,
    pub(super) infinite: u64,
    /// The smallest and the largest value of an integer column, exactly; `None` for other types.
    pub(super) integers: Option<(i128, i128)>,
    pub(super) texts: TextCounts,
}

impl ColumnProfile {
    fn new(column: &Column) -> Self {
        let kind = ValueKind::from_type(column.data_type());
        let bits = if kind == ValueKind::Time { TIME_BITS } else { NUMBER_BITS };
        Self {
            name: column.name().to_owned(),
            axis: column.axis(),
            kind,
            sketch: NumberSketch::new(bits),
            infinite: 0,
            integers: None,
            texts: TextCounts::default(),
        }
    }

    fn add(&mut self, column: &Column) -> Outcome {
        let values = column.values();
        match self.kind {
            ValueKind::Time => {
                let times = cast_to_microseconds(column)?;
                self.sketch.extend(times.into_iter().flatten().map(|t| t as f64));
            }
            ValueKind::Duration => {
                let durations = cast(values, &DataType::Duration(TimeUnit::Microsecond))?;
                let durations = durations.as_primitive::<DurationMicrosecondType>();
                self.sketch.extend(durations.iter().flatten().map(|d| d as f64));
            }
            ValueKind::Float => {
                let numbers = cast(values, &DataType::Float64)?;
                let numbers = numbers.as_primitive::<Float64Type>();
                let infinite = numbers.iter().flatten().filter(|n| n.is_infinite()).count();
                self.infinite += infinite as u64;
                self.sketch.extend(numbers.iter().flatten());
            }
            ValueKind::Integer if *values.data_type() == DataType::UInt64 => {
                let numbers = values.as_primitive::<UInt64Type>();
                self.add_integers(numbers.iter().flatten().map(i128::from));
            }
            ValueKind::Integer => {
                let numbers = cast(values, &DataType::Int64)?;
                let numbers = numbers.as_primitive::<Int64Type>();
                self.add_integers(numbers.iter().flatten().map(i128::from));
            }
            ValueKind::Flag => {
                self.sketch
                    .extend(values.as_boolean().iter().flatten().map(|b| f64::from(u8::from(b))));
            }
            ValueKind::Text => self.texts.add(values)?,
            ValueKind::Other => {}
        }
        Ok(())
    }

    fn add_integers(&mut self, numbers: impl Iterator<Item = i128> + Clone) {
        for n in numbers.clone() {
            let (low, high) = self.integers.unwrap_or((n, n));
            self.integers = Some((low.min(n), high.max(n)));
        }
        self.sketch.extend(numbers.map(|n| n as f64));
    }

    pub(super) fn count_distinct(&self) -> Option<usize> {
        match self.kind {
            ValueKind::Text => self.texts.known_counts().map(HashMap::len),
            // The sketch has floats. Distinct integers beyond 2^53 may be the same float, so their
            // number is unknown.
            ValueKind::Integer => {
                let exact = |n: i128| n.unsigned_abs() <= 1 << 53;
                self.integers.filter(|(low, high)| exact(*low) && exact(*high))?;
                self.sketch.count_distinct()
            }
            ValueKind::Flag | ValueKind::Float | ValueKind::Time | ValueKind::Duration => {
                self.sketch.count_distinct()
            }
            ValueKind::Other => None,
        }
    }

    /// If a column has too many distinct values to count them, returns the limit that their number
    /// exceeds. Otherwise, returns `None`, also for types whose values are not counted.
    pub(super) fn exceeded_distinct(&self) -> Option<usize> {
        match self.kind {
            ValueKind::Text => self.texts.is_full.then_some(MAX_DISTINCT_TEXTS),
            ValueKind::Other => None,
            _ => self.sketch.count_distinct().is_none().then_some(MAX_EXACT),
        }
    }
}

/// Number of occurrences of each string; unknown if there are more than [`MAX_DISTINCT_TEXTS`]
/// distinct strings.
#[derive(Default)]
pub(super) struct TextCounts {
    counts: HashMap<Box<str>, u64>,
    is_full: bool,
}

impl TextCounts {
    pub(super) fn known_counts(&self) -> Option<&HashMap<Box<str>, u64>> {
        (!self.is_full).then_some(&self.counts)
    }

    fn add(&mut self, values: &ArrayRef) -> Outcome {
        if self.is_full {
            return Ok(());
        }
        let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let values = cast(values, &dictionary)?;
        let values = values.as_dictionary::<Int32Type>();
        let names = values.values().as_string::<i32>();
        // Counts dictionary keys first, so that each distinct string is looked up only once per
        // array.
        let mut found = vec![0u64; names.len()];
        for key in values.keys().iter().flatten() {
            if let Some(count) = usize::try_from(key).ok().and_then(|key| found.get_mut(key)) {
                *count += 1;
            }
        }
        for (name, count) in names.iter().zip(found).filter(|(_, count)| *count > 0) {
            let Some(name) = name else { continue };
            match self.counts.get_mut(name) {
                Some(known) => *known += count,
                None => {
                    self.counts.insert(name.into(), count);
                }
            }
        }
        if self.counts.len() > MAX_DISTINCT_TEXTS {
            self.is_full = true;
            self.counts = HashMap::new();
        }
        Ok(())
    }
}
