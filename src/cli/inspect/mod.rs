//! `serrate inspect`: describes the contents of a file or folder, and its size in dense storage.

mod batches;
mod meds;

use std::io::Write;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use clap::Args;
use serde_json::{Value, json};

use self::batches::BatchReport;
use self::meds::MedsReport;
use super::error::{Failure, Outcome};
use super::files::{DeclaredTypes, FileFormat, InputSource, conform};
use super::interrupt;
use super::output::{TextTable, group_digits};
use super::progress::Progress;
use crate::error::Error;
use crate::io::meds::{MedsReadOptions, MedsSummary};
use crate::io::safetensors::SafetensorsFile;
use crate::table::{AXES_METADATA, ColumnStats, RaggedTable, TableStats};

const EXAMPLES: &str = "\
Examples:
  serrate inspect patients.nrt
  serrate inspect shards/            all shards together
  serrate inspect x.parquet --json
  serrate inspect meds/ --codes 20   splits, shards and codes of MEDS data
  serrate inspect train/             tensors of training batches

Reads .nrt, .parquet, .arrow (.ipc, .feather), .json, .ndjson (.jsonl),
.safetensors, MEDS folders, tensorized cohorts made by
convert --to meds-torch-data, and folders of batches made by batches.

Dense storage is every column padded to the longest list of each axis, plus a
mask per axis. For MEDS data, the padded size is that of a model's input with
every subject at full length: SM as subject x measurement, SEM as subject x
event x measurement; codes int64, numbers and time deltas float32, masks one
byte.";

/// Arguments of `serrate inspect`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct InspectArgs {
    /// File or folder to inspect.
    #[arg(value_name = "FILE|DIR")]
    path: PathBuf,
    #[command(flatten)]
    declared: DeclaredTypes,
    /// Number of most frequent codes of MEDS data to list [default: 10; all in JSON].
    #[arg(long, value_name = "N")]
    codes: Option<usize>,
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &InspectArgs) -> Outcome {
    let mut out = std::io::stdout().lock();
    if FileFormat::of(&args.path) == Some(FileFormat::Safetensors) && args.path.is_file() {
        let file = SafetensorsFile::open(&args.path, true)?;
        return match args.json {
            true => writeln!(out, "{:#}", list_tensors(&args.path, &file)?).map_err(Failure::from),
            false => write_tensors(&args.path, &file, &mut out),
        };
    }
    if let Some(report) = BatchReport::read(&args.path)? {
        return match args.json {
            true => writeln!(out, "{:#}", report.to_json(&args.path)).map_err(Failure::from),
            false => report.write_tables(&args.path, &mut out),
        };
    }
    let mut source = InputSource::open(&args.path)?;
    source.declare_types(&args.declared)?;
    let progress = Progress::new(source.shards.len());
    let (groups, summary) = collect_stats(&source, &progress)?;
    progress.finish();
    let bytes = source.count_bytes()?;
    let meds = match &source.meds {
        Some(folder) => Some(MedsReport::new(folder, summary)?),
        None if args.codes.is_some() => {
            return Err(Failure::usage(
                "--codes applies only to folders of MEDS data; remove the flag",
            ));
        }
        None => None,
    };
    if args.json {
        let mut report = build_report(&source, &groups, bytes);
        if let (Some(meds), Value::Object(report)) = (&meds, &mut report) {
            report.extend(meds.to_json(args.codes.unwrap_or(usize::MAX)));
        }
        return Ok(writeln!(out, "{report:#}")?);
    }
    write_report(&source, &groups, bytes, &mut out)?;
    match &meds {
        Some(meds) => meds.write_tables(args.codes.unwrap_or(10), &mut out),
        None => Ok(()),
    }
}

/// Columns whose lists have the same lengths, with their statistics.
struct ColumnGroup {
    columns: Vec<usize>,
    stats: TableStats,
}

/// Reads all rows and groups the columns whose lists have the same lengths. If the lists of a column have
/// other lengths than its group, the column moves to the next group and the read starts over. Most files are
/// one ragged table and are read once.
fn collect_stats(
    source: &InputSource,
    progress: &Progress,
) -> Outcome<(Vec<ColumnGroup>, MedsSummary)> {
    let schema = source.schema()?;
    let mut split: Vec<Vec<usize>> = vec![(0..schema.fields().len()).collect()];
    if source.meds.is_some() {
        // The last columns hold static measurements. The lists of these columns never have the lengths of the
        // lists of events.
        let first = schema.fields().iter().position(|f| f.name() == "static_code");
        if let Some(first) = first {
            let statics = split[0].split_off(first);
            split.push(statics);
        }
    }
    loop {
        let mut summary = MedsSummary::default();
        let mut groups: Vec<ColumnGroup> = split
            .iter()
            .map(|columns| ColumnGroup { columns: columns.clone(), stats: TableStats::default() })
            .collect();
        match count_batches(source, &schema, &mut groups, &mut summary, progress)? {
            None => return Ok((groups, summary)),
            Some((group, column)) => {
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

/// Adds all batches to the statistics of the groups. Returns the first column that does not fit its group, as
/// the indices (group, column).
fn count_batches(
    source: &InputSource,
    schema: &arrow::datatypes::SchemaRef,
    groups: &mut [ColumnGroup],
    summary: &mut MedsSummary,
    progress: &Progress,
) -> Outcome<Option<(usize, usize)>> {
    let mut any = false;
    for (i, shard) in source.shards.iter().enumerate() {
        progress.file(&shard.path);
        let batches = match &source.meds {
            Some(folder) => {
                let read = folder.read(i, &MedsReadOptions::default())?;
                summary.push(&read)?;
                Box::new(std::iter::once(Ok(read.to_batch()?)))
            }
            None => shard.batches(Some(schema))?,
        };
        for batch in batches {
            interrupt::check()?;
            let batch = conform(&batch?, schema)?;
            any = true;
            if let Some(found) =
                count_batch(&batch, groups).map_err(|f| f.at(shard.path.display()))?
            {
                return Ok(Some(found));
            }
            progress.rows(batch.num_rows());
        }
    }
    if !any {
        return count_batch(&RecordBatch::new_empty(schema.clone()), groups);
    }
    Ok(None)
}

fn count_batch(batch: &RecordBatch, groups: &mut [ColumnGroup]) -> Outcome<Option<(usize, usize)>> {
    for (i, group) in groups.iter_mut().enumerate() {
        let mut part = batch.project(&group.columns)?;
        if i > 0 {
            // The axis names in the schema apply only to the columns of the first group.
            part = reset_axis_names(part)?;
        }
        match RaggedTable::try_from_batch(&part) {
            Ok(table) => group.stats.push(&table)?,
            Err(Error::Disagree { right, .. }) if group.columns.len() > 1 => {
                let top = right.split('.').next().unwrap_or(&right);
                let column = batch.schema_ref().index_of(top)?;
                return Ok(Some((i, column)));
            }
            Err(e) => return Err(e.into()),
        }
    }
    Ok(None)
}

/// Removes the axis names of a batch or, if its columns are static measurements, sets their axis names.
fn reset_axis_names(batch: RecordBatch) -> Outcome<RecordBatch> {
    let mut metadata = batch.schema_ref().metadata().clone();
    metadata.remove(AXES_METADATA);
    let facts = batch.schema_ref().fields().first().is_some_and(|f| f.name() == "static_code");
    if facts {
        metadata.insert(AXES_METADATA.to_owned(), json!(["subject", "static"]).to_string());
    }
    let schema = batch.schema_ref().as_ref().clone().with_metadata(metadata);
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.into(), batch.columns().to_vec(), &options)?)
}

fn describe_group(source: &InputSource, groups: &[ColumnGroup], i: usize) -> String {
    match (source.meds.is_some(), i) {
        (true, 0) => "events, one list per subject".into(),
        (true, 1) => "static facts, one list per subject".into(),
        _ => {
            let columns: Vec<&str> =
                groups[i].stats.columns().iter().map(|c| c.name.as_str()).collect();
            let (n, count) = (i + 1, groups.len());
            format!(
                "table {n} of {count}, of columns that share their lists: {}",
                columns.join(", ")
            )
        }
    }
}

fn write_report(
    source: &InputSource,
    groups: &[ColumnGroup],
    bytes: u64,
    out: &mut impl Write,
) -> Outcome {
    let files = source.shards.len();
    let rows = groups.first().map_or(0, |g| g.stats.rows());
    writeln!(out, "{}: {}", source.path.display(), source.format.name())?;
    if source.is_folder() {
        writeln!(
            out,
            "{} in {files} {}",
            format_size(bytes.into()),
            choose_plural(files, "file", "files")
        )?;
    } else {
        writeln!(out, "{}", format_size(bytes.into()))?;
    }
    writeln!(out, "{} {}", group_digits(rows), choose_plural(rows, "row", "rows"))?;
    for (i, group) in groups.iter().enumerate() {
        if groups.len() > 1 {
            writeln!(out, "\n{}", describe_group(source, groups, i))?;
        }
        let stats = &group.stats;
        if stats.ndim() > 1 {
            let header =
                ["axis", "name", "lists", "elements", "min", "median", "p99", "max", "occupied"];
            let mut axes = TextTable::new(&header, 2);
            for axis in 1..stats.ndim() {
                let lengths = stats.lengths(axis)?;
                let or_none = |n: Option<usize>| n.map_or("-".into(), group_digits);
                axes.add_row([
                    axis.to_string(),
                    stats.axis_name(axis).unwrap_or("").to_owned(),
                    group_digits(lengths.lists()),
                    group_digits(lengths.total()),
                    or_none(lengths.min()),
                    or_none(lengths.quantile(0.5)),
                    or_none(lengths.quantile(0.99)),
                    or_none(lengths.max()),
                    stats.occupied(axis).map_or("-".into(), format_percent),
                ]);
            }
            axes.write(out)?;
        }
        let mut columns = TextTable::new(&["column", "axis", "type", "values", "null", "NaN"], 3);
        for column in stats.columns() {
            let share = |n: u64| match (n, column.values) {
                (0, _) => "0".into(),
                (n, all) => format_percent(safe_ratio(n, all)),
            };
            columns.add_row([
                column.name.clone(),
                column.axis.to_string(),
                column.data_type.to_string(),
                group_digits(column.values),
                share(column.nulls),
                if is_float(column) { share(column.nans) } else { "-".into() },
            ]);
        }
        columns.write(out)?;
        for column in stats.columns().iter().filter(|c| c.null_lists > 0) {
            let lists = choose_plural(column.null_lists, "list is", "lists are");
            writeln!(out, "{}: {} {lists} null", column.name, group_digits(column.null_lists))?;
        }
    }
    let dense: u128 = groups.iter().map(|g| g.stats.dense_bytes()).sum();
    write!(out, "dense: {}", format_size(dense))?;
    if bytes > 0 && dense > 0 {
        #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
        let times = dense as f64 / bytes as f64;
        write!(out, ", {times:.1} times the {}", choose_plural(files, "file", "files"))?;
    }
    writeln!(out)?;
    Ok(())
}

fn build_report(source: &InputSource, groups: &[ColumnGroup], bytes: u64) -> Value {
    let dense: u128 = groups.iter().map(|g| g.stats.dense_bytes()).sum();
    let tables: Vec<Value> = groups.iter().map(|g| stats_to_json(&g.stats)).collect();
    json!({
        "path": source.path,
        "format": source.format.name(),
        "files": source.shards.len(),
        "bytes": bytes,
        "rows": groups.first().map_or(0, |g| g.stats.rows()),
        "dense_bytes": to_json_number(dense),
        "tables": tables,
    })
}

fn stats_to_json(stats: &TableStats) -> Value {
    let axes: Vec<Value> = (1..stats.ndim())
        .filter_map(|axis| {
            let lengths = stats.lengths(axis).ok()?;
            Some(json!({
                "axis": axis,
                "name": stats.axis_name(axis),
                "lists": lengths.lists(),
                "elements": lengths.total(),
                "min": lengths.min(),
                "median": lengths.quantile(0.5),
                "p99": lengths.quantile(0.99),
                "max": lengths.max(),
                "occupied": stats.occupied(axis),
            }))
        })
        .collect();
    let columns: Vec<Value> = stats
        .columns()
        .iter()
        .map(|c| {
            json!({
                "name": c.name,
                "axis": c.axis,
                "type": c.data_type.to_string(),
                "values": c.values,
                "nulls": c.nulls,
                "nans": is_float(c).then_some(c.nans),
                "null_lists": c.null_lists,
            })
        })
        .collect();
    json!({ "dense_bytes": to_json_number(stats.dense_bytes()), "axes": axes, "columns": columns })
}

fn write_tensors(path: &Path, file: &SafetensorsFile, out: &mut impl Write) -> Outcome {
    let bytes = std::fs::metadata(path).map_err(|e| Error::io(path, e))?.len();
    writeln!(out, "{}: safetensors\n{}", path.display(), format_size(bytes.into()))?;
    let mut tensors = TextTable::new(&["tensor", "type", "shape", "bytes"], 2);
    for tensor in file.tensors() {
        tensors.add_row([
            tensor.name().to_owned(),
            format!("{:?}", tensor.dtype()),
            format!("{:?}", tensor.shape()),
            group_digits(tensor.nbytes()),
        ]);
    }
    tensors.write(out)?;
    Ok(())
}

fn list_tensors(path: &Path, file: &SafetensorsFile) -> Outcome<Value> {
    let bytes = std::fs::metadata(path).map_err(|e| Error::io(path, e))?.len();
    let tensors: Vec<Value> = file
        .tensors()
        .iter()
        .map(|t| {
            json!({
                "name": t.name(),
                "type": format!("{:?}", t.dtype()),
                "shape": t.shape(),
                "bytes": t.nbytes(),
            })
        })
        .collect();
    Ok(json!({ "path": path, "format": "safetensors", "bytes": bytes, "tensors": tensors }))
}

fn is_float(column: &ColumnStats) -> bool {
    column.data_type.is_floating()
}

/// Returns a number as JSON, or as a string if it exceeds 64 bits.
fn to_json_number(n: u128) -> Value {
    u64::try_from(n).map_or_else(|_| Value::from(n.to_string()), Value::from)
}

#[expect(clippy::cast_precision_loss, reason = "a share for people")]
fn safe_ratio(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}

fn format_percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if p > 0.0 && p < 0.01 => "<0.01%".into(),
        p if p < 1.0 => format!("{p:.2}%"),
        // A share below 100 % never shows as 100.0%.
        p if (99.95..100.0).contains(&p) => ">99.9%".into(),
        p => format!("{p:.1}%"),
    }
}

fn choose_plural(n: impl TryInto<u64>, one: &'static str, more: &'static str) -> &'static str {
    if n.try_into().is_ok_and(|n| n == 1) { one } else { more }
}

/// Formats a size, such as `1.2 kB (1,234 bytes)`.
fn format_size(bytes: u128) -> String {
    let exact = format!("{} bytes", group_digits(bytes));
    match format_rounded(bytes) {
        small if small == exact => exact,
        rounded => format!("{rounded} ({exact})"),
    }
}

/// Formats a rounded size, such as `1.2 kB`, or `12 bytes`.
pub(super) fn format_rounded(bytes: u128) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a rounded size for people")]
    let mut rounded = bytes as f64;
    let mut unit = "";
    for next in ["kB", "MB", "GB", "TB", "PB"] {
        if rounded < 999.95 {
            break;
        }
        rounded /= 1000.0;
        unit = next;
    }
    if unit.is_empty() {
        format!("{} bytes", group_digits(bytes))
    } else {
        format!("{rounded:.1} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_shares_are_readable() {
        assert_eq!(format_size(12), "12 bytes");
        assert_eq!(format_size(1_234_567), "1.2 MB (1,234,567 bytes)");
        assert_eq!(format_size(999_960), "1.0 MB (999,960 bytes)");
        let shares: Vec<_> = [0.000_001, 0.005, 0.5, 0.99999, 1.0].map(format_percent).into();
        assert_eq!(shares, ["<0.01%", "0.50%", "50.0%", ">99.9%", "100.0%"]);
    }
}
