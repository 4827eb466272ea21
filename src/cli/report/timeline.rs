//! Reads the measurements of the first subjects, and counts them by period and by prefix of the
//! code.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::chart_times::{TimeScale, choose_time};
use super::codes::choose_codes;
use super::profile::{ColumnProfile, TableProfile, ValueKind};
use super::sketch::find_share_index;
use crate::cli::code_prefixes::{OTHERS, count_prefixes, find_code_prefix};
use crate::cli::command_failure::Outcome;
use crate::cli::files::{InputSource, conform_batch};
use crate::cli::interrupt;
use crate::cli::stats::{ColumnGroup, cast_to_microseconds, find_table_ranges, read_group};
use crate::table::{Column, RaggedTable};

/// Number of the most frequent code prefixes that have their own row in a chart. One more row shows
/// all other codes.
const LANES: usize = 7;
/// Number of periods into which a timeline is divided.
pub(super) const CELLS: usize = 96;
/// Maximum number of events listed per subject.
const MAX_EVENTS: usize = 60;
/// Maximum number of measurements listed per event.
const MAX_ITEMS: usize = 8;
/// Maximum number of measurements without a time that are listed per subject.
const MAX_FACTS: usize = 20;

pub(super) struct TimelineChart {
    pub(super) subject: String,
    pub(super) clock: TimeScale,
    pub(super) first: f64,
    pub(super) last: f64,
    pub(super) events: usize,
    pub(super) measurements: usize,
    pub(super) lanes: Vec<TimelineLane>,
    /// The first events with their first measurements.
    pub(super) listed: Vec<TimelineEvent>,
    /// The first measurements without a time, as text.
    pub(super) facts: Vec<String>,
}

pub(super) struct TimelineLane {
    pub(super) name: String,
    /// Number of measurements in each of the [`CELLS`] periods.
    pub(super) cells: Vec<u64>,
}

pub(super) struct TimelineEvent {
    pub(super) time: String,
    pub(super) items: Vec<String>,
    /// Number of measurements of the event that are not in `items`.
    pub(super) more: usize,
}

/// Reads the first `most` rows, and returns the timelines of the rows that have times.
pub(super) fn read_timelines(
    source: &InputSource,
    groups: &[ColumnGroup<TableProfile>],
    most: usize,
) -> Outcome<Vec<TimelineChart>> {
    let Some((group, plan)) =
        groups.first().and_then(|g| Some((g, TimelineColumns::new(&g.profile)?)))
    else {
        return Ok(Vec::new());
    };
    let schema = source.schema()?;
    let mut timelines: Vec<TimelineChart> = Vec::new();
    let mut seen = 0;
    for shard in &source.shards {
        for batch in shard.open_batches(Some(&schema))? {
            interrupt::check_interrupt()?;
            if seen >= most {
                return Ok(timelines);
            }
            let batch = conform_batch(&batch?, &schema)?;
            let batch = batch.slice(0, batch.num_rows().min(most - seen));
            let Ok(table) = read_group(&batch, &group.columns, 0)? else { return Ok(timelines) };
            for row in 0..table.num_rows() {
                let facts = list_facts(&batch.slice(row, 1), groups)?;
                timelines.extend(plan.read_row(&table.slice(row, 1)?, seen + row, facts)?);
            }
            seen += batch.num_rows();
        }
    }
    Ok(timelines)
}

struct TimelineColumns {
    time: String,
    clock: TimeScale,
    code: Option<String>,
    /// Names of the columns whose values are listed after the code, as in `LAB//50912 = 5.1`: at
    /// most two columns of floats, strings or booleans. They are on the axis of the codes or, if
    /// there are no codes, on the axis of the times.
    values: Vec<String>,
    subject: Option<String>,
}

impl TimelineColumns {
    fn new(profile: &TableProfile) -> Option<Self> {
        let deepest = profile.columns.iter().map(|c| c.axis).max()?;
        let code = choose_codes(profile).filter(|c| c.axis > 0);
        let time = choose_time(profile, code.map_or(deepest, |c| c.axis)).filter(|c| c.axis > 0)?;
        let beside = code.map_or(time.axis, |c| c.axis);
        let values = profile.columns.iter().filter(|c| {
            let shown = matches!(c.kind, ValueKind::Float | ValueKind::Text | ValueKind::Flag);
            c.axis == beside
                && shown
                && Some(&c.name) != code.map(|c| &c.name)
                && c.name != time.name
        });
        let id = |c: &&ColumnProfile| {
            c.axis == 0 && matches!(c.kind, ValueKind::Integer | ValueKind::Text)
        };
        let mut ids = profile.columns.iter().filter(id);
        let subject = profile.columns.iter().filter(id).find(|c| c.name == "subject_id");
        Some(Self {
            time: time.name.clone(),
            clock: TimeScale::from_kind(time.kind)?,
            code: code.map(|c| c.name.clone()),
            values: values.take(2).map(|c| c.name.clone()).collect(),
            subject: subject.or_else(|| ids.next()).map(|c| c.name.clone()),
        })
    }

    fn read_row(
        &self,
        table: &RaggedTable,
        row: usize,
        facts: Vec<String>,
    ) -> Outcome<Option<TimelineChart>> {
        let time = table.column(&self.time)?;
        let times = self.read_times(time)?;
        let code = self.code.as_ref().map(|name| table.column(name)).transpose()?;
        let axis = code.map_or(time.axis(), Column::axis);
        let prefixes = code.map(read_prefixes).transpose()?.unwrap_or_default();
        let finite = || times.iter().copied().flatten();
        let (Some(first), Some(last)) = (finite().reduce(f64::min), finite().reduce(f64::max))
        else {
            return Ok(None);
        };
        let subject = match self.subject.as_ref().map(|name| table.column(name)).transpose()? {
            Some(column) => format!("{} {}", column.name(), format_value(column.values(), 0)?),
            None => format!("row {row}"),
        };
        // Returns the indices of the measurements that belong to event `i`.
        let ranges = |i: usize| {
            (time.axis() + 1..=axis)
                .try_fold(i..i + 1, |range, a| table.layout(a).map(|layout| layout.ranges(range)))
        };
        let mut shown: Vec<ShownMeasurement> = Vec::new();
        let mut listed = Vec::new();
        for (i, at) in times.iter().enumerate() {
            let range = ranges(i)?;
            if let Some(at) = at {
                let span = last - first;
                let share = if span > 0.0 { (at - first) / span } else { 0.5 };
                let cell = find_share_index(share, CELLS);
                shown.extend(range.clone().map(|index| ShownMeasurement { cell, index }));
            }
            if listed.len() < MAX_EVENTS {
                let items = range.clone().take(MAX_ITEMS).map(|k| self.format_item(table, code, k));
                listed.push(TimelineEvent {
                    time: at.map_or_else(|| "no time".into(), |at| self.clock.format_exact(at)),
                    items: items.collect::<Outcome<_>>()?,
                    more: range.len().saturating_sub(MAX_ITEMS),
                });
            }
        }
        Ok(Some(TimelineChart {
            subject,
            clock: self.clock,
            first,
            last,
            events: times.len(),
            measurements: shown.len(),
            lanes: count_lanes(&shown, &prefixes, code.map_or("values", Column::name)),
            listed,
            facts,
        }))
    }

    fn read_times(&self, column: &Column) -> Outcome<Vec<Option<f64>>> {
        Ok(match self.clock {
            TimeScale::Microseconds => {
                cast_to_microseconds(column)?.into_iter().map(|t| t.map(|t| t as f64)).collect()
            }
            TimeScale::Number => {
                let numbers = cast(column.values(), &DataType::Float64)?;
                let numbers = numbers.as_primitive::<Float64Type>().iter();
                numbers.map(|n| n.filter(|n| n.is_finite())).collect()
            }
        })
    }

    fn format_item(
        &self,
        table: &RaggedTable,
        code: Option<&Column>,
        at: usize,
    ) -> Outcome<String> {
        let mut text = match code {
            Some(code) => format_value(code.values(), at)?,
            None => String::new(),
        };
        for name in &self.values {
            let column = table.column(name)?;
            if column.values().is_valid(at) {
                let value = format_value(column.values(), at)?;
                // Files without nulls store a missing number as NaN, so NaN is not shown.
                if value != "NaN" && !value.is_empty() {
                    text.push_str(if text.is_empty() { "" } else { " = " });
                    text.push_str(&value);
                }
            }
        }
        Ok(text)
    }
}

/// Returns the prefix ([`find_code_prefix`]) of each value of the column `codes`, such as `LAB` of
/// `LAB//50912`. Returns an empty vector if the column does not have strings.
fn read_prefixes(codes: &Column) -> Outcome<Vec<String>> {
    if ValueKind::from_type(codes.data_type()) != ValueKind::Text {
        return Ok(Vec::new());
    }
    let texts = cast(codes.values(), &DataType::Utf8)?;
    let texts = texts.as_string::<i32>().iter();
    Ok(texts.map(|text| find_code_prefix(text.unwrap_or("NULL")).to_owned()).collect())
}

/// A measurement of a timeline: the index of the period (`cell`) that contains its time, and the
/// index of the measurement in the table.
struct ShownMeasurement {
    cell: usize,
    index: usize,
}

fn count_lanes(shown: &[ShownMeasurement], prefixes: &[String], column: &str) -> Vec<TimelineLane> {
    let of = |k: usize| prefixes.get(k).map_or(column, String::as_str);
    let lanes = count_prefixes(shown.iter().map(|m| (of(m.index), 1)), LANES);
    let mut lanes: Vec<TimelineLane> =
        lanes.into_iter().map(|(name, _)| TimelineLane { name, cells: vec![0; CELLS] }).collect();
    let others = lanes.iter().position(|l| l.name == OTHERS);
    for measurement in shown {
        let lane = lanes.iter().position(|l| l.name == of(measurement.index)).or(others);
        if let Some(count) =
            lane.and_then(|lane| lanes.get_mut(lane)?.cells.get_mut(measurement.cell))
        {
            *count += 1;
        }
    }
    lanes
}

/// Returns the first [`MAX_FACTS`] measurements without a time of the subject in `row`, each as
/// `code` or `code = number`. Returns an empty vector if the data is not MEDS data.
fn list_facts(row: &RecordBatch, groups: &[ColumnGroup<TableProfile>]) -> Outcome<Vec<String>> {
    let Some(group) = groups.get(1) else { return Ok(Vec::new()) };
    let Ok(table) = read_group(row, &group.columns, 1)? else { return Ok(Vec::new()) };
    let Ok(codes) = table.column("static_code") else { return Ok(Vec::new()) };
    let numbers = table.column("static_numeric_value").ok();
    let range = find_table_ranges(&table, 1)?.next().unwrap_or_default();
    let mut facts = Vec::new();
    for i in range.take(MAX_FACTS) {
        let mut fact = format_value(codes.values(), i)?;
        if let Some(numbers) = numbers.filter(|n| n.values().is_valid(i)) {
            let number = format_value(numbers.values(), i)?;
            if number != "NaN" {
                fact = format!("{fact} = {number}");
            }
        }
        facts.push(fact);
    }
    Ok(facts)
}

fn format_value(values: &ArrayRef, at: usize) -> Outcome<String> {
    let at = u32::try_from(at).unwrap_or(u32::MAX);
    // Copies the value to an array of its own, because a formatter of `values` would prepare all
    // values.
    let value = take(values, &UInt32Array::from(vec![at]), None)?;
    let options = FormatOptions::default().with_null("NULL").with_display_error(true);
    Ok(ArrayFormatter::try_new(value.as_ref(), &options)?.value(0).to_string())
}
