//! Finds the most frequent codes, and counts how often each occurs in each period of time.

use std::collections::HashMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, UInt64Type};
use datafusion::prelude::SessionContext;

use super::chart_times::{TimeScale, choose_time};
use super::profile::{ColumnProfile, TableProfile, ValueKind};
use crate::cli::code_prefixes::count_prefixes;
use crate::cli::command_failure::{Failure, Outcome};
use crate::cli::interrupt;
use crate::io::meds::MedsSummary;
use crate::sql::{quote_name, quote_text};

/// Maximum number of periods of a [`CodeTrend`].
const MAX_PERIODS: usize = 48;
/// The first period begins at this quantile of the times. A few early times, such as dates of
/// birth, would otherwise make each period years long.
const FIRST_PERIOD_QUANTILE: f64 = 0.01;
/// Number of the most frequent code prefixes that are listed; one more entry sums up all others.
const LISTED_PREFIXES: usize = 11;
/// Maximum number of distinct integers in a column of codes. An integer column with more of them is
/// not a column of codes.
const MAX_DISTINCT_INTEGERS: usize = 1 << 16;

pub(super) struct CodeOverview {
    pub(super) column: String,
    pub(super) distinct: usize,
    pub(super) total: u64,
    pub(super) top: Vec<CodeFacts>,
    /// Number of occurrences of each code prefix. Empty if the codes are integers, or if there are
    /// fewer than two codes per prefix on average, because such prefixes would summarize little.
    pub(super) prefixes: Vec<(String, u64)>,
    pub(super) trend: Option<CodeTrend>,
}

pub(super) struct CodeFacts {
    pub(super) code: String,
    pub(super) description: Option<String>,
    pub(super) count: u64,
    /// Number of occurrences of the code that have a numeric value; `None` if it is unknown.
    pub(super) with_number: Option<u64>,
}

/// Number of occurrences of codes in each of several periods of equal length.
pub(super) struct CodeTrend {
    pub(super) clock: TimeScale,
    pub(super) start: f64,
    pub(super) period: f64,
    pub(super) all: Vec<u64>,
    /// Number of occurrences of all codes before the first period.
    pub(super) earlier: u64,
    /// For each code of [`CodeOverview::top`], the number of its occurrences in each period.
    pub(super) codes: Vec<Vec<u64>>,
}

impl CodeTrend {
    pub(super) fn time_range(&self) -> (String, String) {
        let span = self.period * self.all.len() as f64;
        (self.clock.format_at(self.start, span), self.clock.format_at(self.start + span, span))
    }

    pub(super) fn label_period(&self, index: usize) -> String {
        let at = |i: usize| {
            self.clock.format_at(self.start + self.period * i as f64, self.period * 12.0)
        };
        format!("{} to {}", at(index), at(index + 1))
    }
}

impl CodeOverview {
    /// Returns the `most` most frequent codes of MEDS data, or `None` if the data has no codes.
    /// Counts measurements with and without a time. `names` maps codes to their descriptions.
    pub(super) fn from_meds(
        summary: &MedsSummary,
        names: &HashMap<String, String>,
        most: usize,
    ) -> Option<Self> {
        let codes = summary.codes();
        let count = |o: &crate::io::meds::CodeOccurrences| o.measurements + o.statics;
        let counts = codes.iter().map(|c| (c.code.as_str(), count(&c.occurrences)));
        let top = codes.iter().take(most).map(|c| CodeFacts {
            code: c.code.clone(),
            description: names.get(&c.code).cloned(),
            count: count(&c.occurrences),
            with_number: Some(c.occurrences.values),
        });
        (!codes.is_empty()).then(|| Self {
            column: "code".into(),
            distinct: codes.len(),
            total: counts.clone().map(|(_, n)| n).sum(),
            top: top.collect(),
            prefixes: list_prefixes(counts, codes.len()),
            trend: None,
        })
    }

    /// Returns the `most` most frequent codes in a table: the values of the column that
    /// [`choose_codes`] finds, and how often each occurs. Returns `None` if there is no such
    /// column, if its counts are unknown, or if no value occurs twice.
    pub(super) fn from_table(profile: &TableProfile, most: usize) -> Option<Self> {
        let column = choose_codes(profile)?;
        let mut counts: Vec<(String, u64)> = match column.kind {
            ValueKind::Text => {
                column.texts.known_counts()?.iter().map(|(c, n)| (c.to_string(), *n)).collect()
            }
            _ => column.sketch.iter_counts().map(|(code, n)| (format!("{code:.0}"), n)).collect(),
        };
        if column.kind == ValueKind::Text {
            counts.sort_by(|(a, n), (b, m)| m.cmp(n).then_with(|| a.cmp(b)));
        } else {
            // A stable sort keeps equally frequent integers in ascending order.
            counts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        }
        let (distinct, total) = (counts.len(), counts.iter().map(|(_, n)| n).sum());
        let prefixes = match column.kind {
            ValueKind::Text => {
                list_prefixes(counts.iter().map(|(c, n)| (c.as_str(), *n)), distinct)
            }
            _ => Vec::new(),
        };
        let top = counts.into_iter().take(most);
        let top = top.map(|(code, count)| CodeFacts {
            code,
            description: None,
            count,
            with_number: None,
        });
        let mut top = top.peekable();
        // If no value occurs twice, the values are names rather than codes, so they are not shown.
        (top.peek().is_some_and(|c| c.count > 1)).then(|| Self {
            column: column.name.clone(),
            distinct,
            total,
            top: top.collect(),
            prefixes,
            trend: None,
        })
    }
}

pub(super) fn choose_codes(profile: &TableProfile) -> Option<&ColumnProfile> {
    let is_code = |c: &&ColumnProfile| match c.kind {
        ValueKind::Text => c.texts.known_counts().is_some_and(|counts| !counts.is_empty()),
        ValueKind::Integer => {
            c.name == "code"
                && c.count_distinct().is_some_and(|n| n <= MAX_DISTINCT_INTEGERS && n > 0)
        }
        _ => false,
    };
    let codes = || profile.columns.iter().filter(is_code);
    let deepest = codes().map(|c| c.axis).max()?;
    codes().find(|c| c.name == "code").or_else(|| codes().find(|c| c.axis == deepest))
}

/// Returns the entries of [`CodeOverview::prefixes`]. `codes` has each code with its number of
/// occurrences, and `distinct` is the number of codes.
fn list_prefixes<'a>(
    codes: impl Iterator<Item = (&'a str, u64)> + Clone,
    distinct: usize,
) -> Vec<(String, u64)> {
    let prefixes = count_prefixes(codes.clone(), usize::MAX - 1).len();
    match prefixes * 2 <= distinct.max(2) {
        true => count_prefixes(codes, LISTED_PREFIXES),
        false => Vec::new(),
    }
}

/// Counts how often each of `codes` occurs in each period of time, and sets `codes.trend` to these
/// counts. One SQL query over `table` counts all codes. Sets no trend if the codes have no times.
pub(super) async fn count_trend(
    context: &SessionContext,
    table: &str,
    profile: &TableProfile,
    codes: &mut CodeOverview,
) -> Outcome {
    let Some(column) = profile.columns.iter().find(|c| c.name == codes.column) else {
        return Ok(());
    };
    let Some(time) = choose_time(profile, column.axis) else { return Ok(()) };
    let (Some(clock), Some((least, last))) =
        (TimeScale::from_kind(time.kind), time.sketch.bounds())
    else {
        return Ok(());
    };
    let first = time
        .sketch
        .find_quantile(FIRST_PERIOD_QUANTILE)
        .map_or(least, |first| first.floor().max(least));
    let Some(period) = choose_period(clock, time.kind, first, last) else { return Ok(()) };
    let sql = build_query(table, column, time, first, period, &codes.top);
    let batches =
        interrupt::run_or_cancel(interrupt::run_on_worker(run_query(context.clone(), sql))).await;
    interrupt::check_interrupt()?;
    let mut lists = read_counts(&batches?)?.into_iter();
    let PeriodCounts { all, earlier } = lists.next().unwrap_or_default();
    let periods = 1 + all.iter().rposition(|n| *n > 0).unwrap_or(0);
    let shorten = |mut list: Vec<u64>| {
        list.resize(periods, 0);
        list
    };
    codes.trend = Some(CodeTrend {
        clock,
        start: first,
        period,
        all: shorten(all),
        earlier,
        codes: lists.map(|counts| shorten(counts.all)).collect(),
    });
    Ok(())
}

/// Divides the time from `first` to `last` into at most [`MAX_PERIODS`] periods, and returns the
/// length of a period. The length is a whole number, unless the times are floats of an unknown
/// unit. Returns `None` if all times are equal, or if a time is too large for an exact float.
fn choose_period(clock: TimeScale, kind: ValueKind, first: f64, last: f64) -> Option<f64> {
    let period = (last - first) / MAX_PERIODS as f64;
    let period = match (clock, kind) {
        (TimeScale::Number, ValueKind::Float) => period,
        _ => period.floor() + 1.0,
    };
    // Integers above 2^53 are not exact as floats, so such times are not divided into periods.
    let exact = first.abs().max(last.abs()) <= 9_007_199_254_740_992.0;
    (exact && last > first && period.is_finite() && period > 0.0).then_some(period)
}

/// Builds a query that returns one row, in which each column is a list of (period, count) pairs:
/// the first column for all codes together, each further column for one of `codes`.
fn build_query(
    table: &str,
    column: &ColumnProfile,
    time: &ColumnProfile,
    first: f64,
    period: f64,
    codes: &[CodeFacts],
) -> String {
    let code = quote_name(&column.name);
    let index = write_period_index(time, first, period);
    let is = |facts: &CodeFacts| match column.kind {
        ValueKind::Text => format!("{code} = {}", quote_text(&facts.code)),
        _ => format!("{code} = {}", facts.code),
    };
    let (all, each): (String, Vec<String>) = if column.axis == 0 {
        let counts = format!("ragged_histogram_agg({index})");
        let each = codes.iter().map(|c| format!("{counts} FILTER (WHERE {})", is(c))).collect();
        (format!("{counts} FILTER (WHERE {code} IS NOT NULL)"), each)
    } else {
        let periods = match time.axis == column.axis {
            true => index,
            false => format!("ragged_broadcast({index}, {code})"),
        };
        let count =
            |mask: String| format!("ragged_histogram_agg(ragged_filter({periods}, {mask}))");
        let each = codes.iter().map(|c| count(is(c))).collect();
        (count(format!("ragged_not(ragged_is_null({code}))")), each)
    };
    let columns: Vec<String> = std::iter::once(all)
        .chain(each)
        .enumerate()
        .map(|(i, counts)| format!("{counts} AS c{i}"))
        .collect();
    format!("SELECT {} FROM {table}", columns.join(", "))
}

/// Returns an SQL expression for the index of the period that contains a time of the column `time`.
/// Period 0 begins at `first`, and each is `period` long. The index is exact unless times are
/// floats.
fn write_period_index(time: &ColumnProfile, first: f64, period: f64) -> String {
    let name = quote_name(&time.name);
    let is_list = time.axis > 0;
    let integers = match (time.kind, is_list) {
        (ValueKind::Float, _) => return format!("floor(({name} - ({first:?})) / {period:?})"),
        (ValueKind::Time, true) => {
            format!("ragged_cast(ragged_cast({name}, 'Timestamp(µs)'), 'BIGINT')")
        }
        (ValueKind::Time, false) => format!("CAST(arrow_cast({name}, 'Timestamp(µs)') AS BIGINT)"),
        (_, true) => format!("ragged_cast({name}, 'BIGINT')"),
        (_, false) => format!("CAST({name} AS BIGINT)"),
    };
    format!("({integers} - ({first:.0})) // {period:.0}")
}

async fn run_query(context: SessionContext, sql: String) -> Outcome<Vec<RecordBatch>> {
    let frame = crate::sql::sql(&context, &sql).await?;
    Ok(frame.collect().await?)
}

#[derive(Default)]
struct PeriodCounts {
    all: Vec<u64>,
    earlier: u64,
}

fn read_counts(batches: &[RecordBatch]) -> Outcome<Vec<PeriodCounts>> {
    let Some(batch) = batches.iter().find(|b| b.num_rows() > 0) else { return Ok(Vec::new()) };
    let wrong = || {
        Failure::from_message(
            "internal error: the query that counts codes returned a column of an unexpected type; please report it",
        )
    };
    let mut lists = Vec::new();
    for column in batch.columns() {
        let mut counts = PeriodCounts::default();
        let list = column.as_list_opt::<i32>().ok_or_else(wrong)?;
        if list.is_valid(0) {
            let pairs = list.value(0);
            let pairs = pairs.as_struct_opt().ok_or_else(wrong)?;
            let [periods, found] = pairs.columns() else { return Err(wrong()) };
            let periods = cast(periods, &DataType::Float64)?;
            let found = cast(found, &DataType::UInt64)?;
            let pairs = periods.as_primitive::<Float64Type>().iter();
            for (period, count) in pairs.zip(found.as_primitive::<UInt64Type>()) {
                let (Some(period), Some(count)) = (period, count) else { continue };
                if !period.is_finite() {
                    continue;
                }
                // `period` is the index of a period, and negative before the first period. A float
                // time at the very end has the index [`MAX_PERIODS`], and counts in the last
                // period.
                let Some(index) = (0..MAX_PERIODS).rfind(|i| *i as f64 <= period) else {
                    counts.earlier += count;
                    continue;
                };
                if counts.all.len() <= index {
                    counts.all.resize(index + 1, 0);
                }
                counts.all[index] += count;
            }
        }
        lists.push(counts);
    }
    Ok(lists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_are_quoted() {
        assert_eq!(quote_name("a\"b"), "\"a\"\"b\"");
    }

    #[test]
    fn periods_cover_the_range() {
        let period = choose_period(TimeScale::Microseconds, ValueKind::Time, 0.0, 96.0);
        assert_eq!(period, Some(3.0));
        assert_eq!(choose_period(TimeScale::Number, ValueKind::Float, 0.0, 24.0), Some(0.5));
        for (first, last) in [(1.0, 1.0), (0.0, f64::MAX), (f64::MIN, f64::MAX)] {
            assert_eq!(choose_period(TimeScale::Number, ValueKind::Integer, first, last), None);
        }
    }
}
