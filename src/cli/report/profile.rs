//! Statistics of each column, collected in the one pass over the rows.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int32Type, Int64Type, UInt64Type};

use super::sketch::Sketch;
use crate::cli::error::Outcome;
use crate::cli::stats::{Profile, Spans, cast_to_microseconds, table_ranges};
use crate::table::{Column, Lengths, RaggedTable};

/// Most distinct texts that are counted.
const TEXTS: usize = 1 << 20;
/// Ranges of numbers have a relative width of 2^-11, less than three digits show.
const NUMBER_BITS: u32 = 11;
/// Ranges of times are about an hour wide for times of this century.
const TIME_BITS: u32 = 18;

/// Statistics of the columns that share their lists.
#[derive(Default)]
pub(super) struct TableProfile {
    pub(super) columns: Vec<ColumnProfile>,
    /// Elements of each row on axis 2, 3, ..; those of axis 1 are the lengths of its lists.
    pub(super) totals: Vec<Lengths>,
    pub(super) spans: Spans,
}

impl Profile for TableProfile {
    fn push(&mut self, table: &RaggedTable) -> Outcome {
        if self.columns.is_empty() {
            self.columns = table.columns().iter().map(ColumnProfile::new).collect();
            self.totals = vec![Lengths::default(); table.axes().len().saturating_sub(1)];
        }
        for (profile, column) in self.columns.iter_mut().zip(table.columns()) {
            profile.add(column)?;
        }
        for (i, totals) in self.totals.iter_mut().enumerate() {
            table_ranges(table, i + 2)?.for_each(|range| totals.push(range.len()));
        }
        self.spans.push(table)
    }
}

/// Kinds of values that the page treats alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Float,
    Time,
    Flag,
    Text,
    /// Types that have neither an order nor an axis to draw: binary, durations, structs.
    Other,
}

impl Kind {
    pub(super) fn of_type(data_type: &DataType) -> Self {
        match data_type {
            DataType::Boolean => Self::Flag,
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => Self::Time,
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
    pub(super) kind: Kind,
    /// Numbers, or microseconds since 1970.
    pub(super) sketch: Sketch,
    pub(super) infinite: u64,
    /// Smallest and greatest integer, exactly.
    pub(super) integers: Option<(i128, i128)>,
    pub(super) texts: TextCounts,
}

impl ColumnProfile {
    fn new(column: &Column) -> Self {
        let kind = Kind::of_type(column.data_type());
        let bits = if kind == Kind::Time { TIME_BITS } else { NUMBER_BITS };
        Self {
            name: column.name().to_owned(),
            axis: column.axis(),
            kind,
            sketch: Sketch::new(bits),
            infinite: 0,
            integers: None,
            texts: TextCounts::default(),
        }
    }

    fn add(&mut self, column: &Column) -> Outcome {
        let values = column.values();
        match self.kind {
            Kind::Time => {
                let times = cast_to_microseconds(column)?;
                self.sketch.extend(times.into_iter().flatten().map(|t| t as f64));
            }
            Kind::Float => {
                let numbers = cast(values, &DataType::Float64)?;
                let numbers = numbers.as_primitive::<Float64Type>();
                let infinite = numbers.iter().flatten().filter(|n| n.is_infinite()).count();
                self.infinite += infinite as u64;
                self.sketch.extend(numbers.iter().flatten());
            }
            Kind::Integer if *values.data_type() == DataType::UInt64 => {
                let numbers = values.as_primitive::<UInt64Type>();
                self.add_integers(numbers.iter().flatten().map(i128::from));
            }
            Kind::Integer => {
                let numbers = cast(values, &DataType::Int64)?;
                let numbers = numbers.as_primitive::<Int64Type>();
                self.add_integers(numbers.iter().flatten().map(i128::from));
            }
            Kind::Flag => {
                self.sketch
                    .extend(values.as_boolean().iter().flatten().map(|b| f64::from(u8::from(b))));
            }
            Kind::Text => self.texts.add(values)?,
            Kind::Other => {}
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

    /// Returns the number of distinct values, if it is known.
    pub(super) fn count_distinct(&self) -> Option<usize> {
        match self.kind {
            Kind::Text => self.texts.known_counts().map(HashMap::len),
            // Integers beyond 2^53 may be equal as floats.
            Kind::Integer => {
                let exact = |n: i128| n.unsigned_abs() <= 1 << 53;
                self.integers.filter(|(low, high)| exact(*low) && exact(*high))?;
                self.sketch.count_distinct()
            }
            Kind::Flag | Kind::Float | Kind::Time => self.sketch.count_distinct(),
            Kind::Other => None,
        }
    }
}

/// Counts of texts, unless there are too many distinct ones.
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
        // Keys are counted first, so that names are looked up per distinct text.
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
        if self.counts.len() > TEXTS {
            self.is_full = true;
            self.counts = HashMap::new();
        }
        Ok(())
    }
}
