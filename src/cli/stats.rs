//! Statistics of all rows of a source: list lengths per axis, missing values, and the further
//! statistics of a [`GroupProfile`].

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, SchemaRef, TimeUnit, TimestampMicrosecondType};
use serde_json::json;
use serrate_core::internal::build_record_batch;

use super::command_failure::Outcome;
use super::files::{InputSource, conform_batch};
use super::interrupt;
use super::progress::Progress;
use crate::error::Error;
use crate::io::meds::{MedsReadOptions, MedsSummary};
use crate::table::{AXES_METADATA, Column, LengthHistogram, RaggedTable, TableStats};

/// Statistics of a [`ColumnGroup`] in addition to its `stats`. They must not depend on how the rows
/// are divided into batches.
pub(super) trait GroupProfile: Default {
    fn push(&mut self, table: &RaggedTable) -> Outcome;
}

/// Columns whose lists have the same lengths, with their statistics.
pub(super) struct ColumnGroup<P> {
    pub(super) columns: Vec<usize>,
    pub(super) stats: TableStats,
    pub(super) profile: P,
}

impl<P: GroupProfile> ColumnGroup<P> {
    pub(super) fn new(columns: &[usize]) -> Self {
        Self { columns: columns.into(), stats: TableStats::default(), profile: P::default() }
    }
}

/// Reads all rows, and groups the columns: the columns of a group have lists of the same lengths.
/// Begins with all columns in one group, or in two for MEDS data. If a column does not fit its
/// group, moves the column to the next group, and starts again with the first row.
pub(super) fn collect_stats<P: GroupProfile>(
    source: &InputSource,
    progress: &Progress,
) -> Outcome<(Vec<ColumnGroup<P>>, MedsSummary)> {
    let schema = source.schema()?;
    let mut split: Vec<Vec<usize>> = vec![(0..schema.fields().len()).collect()];
    if source.meds.is_some() {
        // The columns from `static_code` on hold static measurements. Their lists differ in length
        // from the lists of events, so these columns begin in a group of their own.
        let first = schema.fields().iter().position(|f| f.name() == "static_code");
        if let Some(first) = first {
            let statics = split[0].split_off(first);
            split.push(statics);
        }
    }
    loop {
        let mut summary = MedsSummary::default();
        let mut groups: Vec<ColumnGroup<P>> = split.iter().map(|c| ColumnGroup::new(c)).collect();
        match count_batches(source, &schema, &mut groups, &mut summary, progress)? {
            None => return Ok((groups, summary)),
            Some(UnequalColumn { group, column }) => {
                split[group].retain(|c| *c != column);
                match split.get_mut(group + 1) {
                    Some(next) => {
                        next.push(column);
                        next.sort_unstable();
                    }
                    None => split.push(vec![column]),
                }
            }
        }
    }
}

/// A column whose lists differ in length from the lists of the other columns of its group. `group`
/// is the index of the group, and `column` is the index of the column in the schema.
struct UnequalColumn {
    group: usize,
    column: usize,
}

/// Adds all batches to the statistics of the groups. Stops at the first [`UnequalColumn`], and
/// returns it.
fn count_batches<P: GroupProfile>(
    source: &InputSource,
    schema: &SchemaRef,
    groups: &mut [ColumnGroup<P>],
    summary: &mut MedsSummary,
    progress: &Progress,
) -> Outcome<Option<UnequalColumn>> {
    let mut any = false;
    for (i, shard) in source.shards.iter().enumerate() {
        progress.show_file(&shard.path);
        let batches = match &source.meds {
            Some(folder) => {
                let read = folder.read(i, &MedsReadOptions::default())?;
                summary.push(&read)?;
                Box::new(std::iter::once(Ok(read.to_batch()?)))
            }
            None => shard.open_batches(Some(schema))?,
        };
        for batch in batches {
            interrupt::check_interrupt()?;
            let batch = conform_batch(&batch?, schema)?;
            any = true;
            if let Some(found) =
                count_batch(&batch, groups).map_err(|f| f.add_place(shard.path.display()))?
            {
                return Ok(Some(found));
            }
            progress.add_rows(batch.num_rows());
        }
    }
    if !any {
        return count_batch(&RecordBatch::new_empty(schema.clone()), groups);
    }
    Ok(None)
}

fn count_batch<P: GroupProfile>(
    batch: &RecordBatch,
    groups: &mut [ColumnGroup<P>],
) -> Outcome<Option<UnequalColumn>> {
    for (i, group) in groups.iter_mut().enumerate() {
        match read_group(batch, &group.columns, i)? {
            Ok(table) => {
                group.stats.push(&table)?;
                group.profile.push(&table)?;
            }
            Err(column) => return Ok(Some(UnequalColumn { group: i, column })),
        }
    }
    Ok(None)
}

/// Returns the columns of one group as a table. `columns` are their indices in the batch, and
/// `index` is the index of the group. If the lists of a column differ in length from the lists of
/// the columns before it, returns the index of this column in the batch as the inner error.
pub(super) fn read_group(
    batch: &RecordBatch,
    columns: &[usize],
    index: usize,
) -> Outcome<Result<RaggedTable, usize>> {
    let mut part = batch.project(columns)?;
    if index > 0 {
        // The axis names in the metadata of the schema apply only to the first group, so they are
        // removed from the others.
        part = reset_axis_names(part)?;
    }
    match RaggedTable::try_from_batch(&part) {
        Ok(table) => Ok(Ok(table)),
        Err(Error::Disagree { right, .. }) if columns.len() > 1 => {
            let top = right.split('.').next().unwrap_or(&right);
            Ok(Err(batch.schema_ref().index_of(top)?))
        }
        Err(e) => Err(e.into()),
    }
}

/// Removes the axis names of a batch. If the batch has static measurements, names their axes
/// `subject` and `static`.
fn reset_axis_names(batch: RecordBatch) -> Outcome<RecordBatch> {
    let mut metadata = batch.schema_ref().metadata().clone();
    metadata.remove(AXES_METADATA);
    let facts = batch.schema_ref().fields().first().is_some_and(|f| f.name() == "static_code");
    if facts {
        metadata.insert(AXES_METADATA.to_owned(), json!(["subject", "static"]).to_string());
    }
    let schema = batch.schema_ref().as_ref().clone().with_metadata(metadata);
    Ok(build_record_batch(schema.into(), batch.columns().to_vec(), batch.num_rows())?)
}

/// Returns the singular noun for the elements of `axis`: its name, such as `event`. Without a name,
/// it is `row` for axis 0, and `element of axis 2` for axis 2.
pub(super) fn name_axis(stats: &TableStats, axis: usize) -> String {
    match (stats.axis_name(axis), axis) {
        (Some("static"), _) => "static fact".into(),
        (Some(name), _) if !name.is_empty() => name.to_owned(),
        (_, 0) => "row".into(),
        (_, axis) => format!("element of axis {axis}"),
    }
}

pub(super) fn pluralize_noun(noun: &str) -> String {
    match noun.strip_prefix("element of ") {
        Some(axis) => format!("elements of {axis}"),
        None => format!("{noun}s"),
    }
}

const MICROSECONDS: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);
const DAY: i64 = 86_400_000_000;

/// Histogram of durations: for each row with times, the number of whole days from its first to its
/// last time.
#[derive(Default)]
pub(super) struct DurationHistogram(pub(super) LengthHistogram);

impl GroupProfile for DurationHistogram {
    fn push(&mut self, table: &RaggedTable) -> Outcome {
        let Some(column) = find_time_column(table).filter(|c| c.axis() > 0) else { return Ok(()) };
        let times = cast_to_microseconds(column)?;
        for range in find_table_ranges(table, column.axis())? {
            let row = range.filter_map(|i| times.get(i).copied().flatten());
            let (first, last) = row.fold((i64::MAX, i64::MIN), |(a, b), t| (a.min(t), b.max(t)));
            if first <= last {
                let days = last.saturating_sub(first) / DAY;
                self.0.push(usize::try_from(days).unwrap_or(usize::MAX));
            }
        }
        Ok(())
    }
}

/// Returns the column `time` if it has timestamps or dates, else the first column that has
/// timestamps or dates. Returns `None` if there is no such column.
fn find_time_column(table: &RaggedTable) -> Option<&Column> {
    let is_time = |c: &&Column| {
        matches!(c.data_type(), DataType::Timestamp(..) | DataType::Date32 | DataType::Date64)
    };
    let mut times = table.columns().iter().filter(is_time);
    table.columns().iter().filter(is_time).find(|c| c.name() == "time").or_else(|| times.next())
}

/// Returns each time in `column` as microseconds since 1970, or `None` if it is NULL or outside the
/// range of 64-bit microseconds.
pub(super) fn cast_to_microseconds(column: &Column) -> Outcome<Vec<Option<i64>>> {
    let plain = match column.data_type() {
        // Removing the time zone does not change the instant.
        DataType::Timestamp(unit, Some(_)) => {
            cast(column.values(), &DataType::Timestamp(*unit, None))?
        }
        _ => column.values().clone(),
    };
    let times = cast(&plain, &MICROSECONDS)?;
    Ok(times.as_primitive::<TimestampMicrosecondType>().iter().collect())
}

/// Returns, for each row of the table, the range of the elements of `axis` that belong to the row.
pub(super) fn find_table_ranges(
    table: &RaggedTable,
    axis: usize,
) -> Outcome<impl Iterator<Item = std::ops::Range<usize>>> {
    let layouts = (1..=axis).map(|a| table.layout(a)).collect::<Result<Vec<_>, _>>()?;
    Ok((0..table.num_rows())
        .map(move |row| layouts.iter().fold(row..row + 1, |range, layout| layout.ranges(range))))
}
