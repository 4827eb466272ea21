//! `serrate inspect`: describes the contents of a file or folder, and its size in dense storage.

mod batches;
mod chart;
mod meds;

use std::io::Write;
use std::path::{Path, PathBuf};

use arrow::datatypes::DataType;
use clap::Args;
use serde_json::{Value, json};

use self::batches::BatchReport;
use self::chart::{ChartCanvas, write_lengths};
use self::meds::MedsReport;
use super::command_failure::{Failure, Outcome};
use super::files::{DeclaredTypes, FileFormat, InputSource};
use super::output::{
    TextTable, choose_plural, compute_safe_ratio, format_count, format_percent, format_size,
    group_digits, to_json_number,
};
use super::progress::Progress;
use super::stats::{ColumnGroup, DurationHistogram, collect_stats, name_axis, pluralize_noun};
use crate::access;
use crate::error::Error;
use crate::io::safetensors::{FileAccess, SafetensorsFile};
use crate::table::{ColumnStats, TableStats};

const EXAMPLES: &str = "\
Examples:
  serrate inspect patients.nrt
  serrate inspect shards/            all shards together
  serrate inspect x.parquet --json
  serrate inspect meds/ --codes 20   splits, shards and codes of MEDS data
  serrate inspect train/             tensors of training batches

Histograms show lengths per axis, spans of time and, for MEDS data, shares by
code prefix, as wide as the terminal; they are in ASCII if the locale is not
UTF-8. serrate report draws more of them in an HTML page.

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
    if FileFormat::from_path(&args.path) == Some(FileFormat::Safetensors)
        && access::is_file(&args.path)
    {
        let file = SafetensorsFile::open(&args.path, FileAccess::Map)?;
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
    let (groups, summary) = collect_stats::<DurationHistogram>(&source, &progress)?;
    progress.finish();
    let bytes = source.count_bytes()?;
    let meds = match &source.meds {
        Some(folder) => Some(MedsReport::new(folder, summary)?),
        None if args.codes.is_some() => {
            return Err(Failure::from_usage(
                "--codes requires MEDS data, but the input is neither a MEDS folder nor a tensorized cohort; remove --codes",
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
    if let Some(meds) = &meds {
        meds.write_tables(args.codes.unwrap_or(10), &mut out)?;
    }
    let canvas = ChartCanvas::from_terminal();
    for group in &groups {
        write_histograms(group, canvas, &mut out)?;
    }
    meds.map_or(Ok(()), |meds| meds.write_prefixes(canvas, &mut out))
}

fn describe_group(
    source: &InputSource,
    groups: &[ColumnGroup<DurationHistogram>],
    i: usize,
) -> String {
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
    groups: &[ColumnGroup<DurationHistogram>],
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
    writeln!(out, "{}", format_count(rows, "row", "rows"))?;
    for (i, group) in groups.iter().enumerate() {
        if groups.len() > 1 {
            writeln!(out, "\n{}", describe_group(source, groups, i))?;
        }
        let stats = &group.stats;
        if stats.ndim() > 1 {
            write_axes(stats, out)?;
        }
        write_columns(stats, out)?;
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

/// Writes a table with the lengths of the lists of each axis.
fn write_axes(stats: &TableStats, out: &mut impl Write) -> Outcome {
    let has_names = (1..stats.ndim()).any(|axis| stats.axis_name(axis).is_some());
    let texts = if has_names { vec!["axis", "name"] } else { vec!["axis"] };
    let numbers = ["lists", "elements", "min", "median", "p99", "max", "occupied"];
    let mut axes = TextTable::new(&[&texts[..], &numbers].concat(), texts.len());
    for axis in 1..stats.ndim() {
        let lengths = stats.lengths(axis)?;
        let or_none = |n: Option<usize>| n.map_or("-".into(), group_digits);
        let mut row = vec![axis.to_string()];
        row.extend(has_names.then(|| stats.axis_name(axis).unwrap_or("").to_owned()));
        row.extend([
            group_digits(lengths.lists()),
            group_digits(lengths.total()),
            or_none(lengths.min()),
            or_none(lengths.quantile(0.5)),
            or_none(lengths.quantile(0.99)),
            or_none(lengths.max()),
            stats.occupied(axis).map_or("-".into(), format_percent),
        ]);
        axes.add_row(row);
    }
    axes.write(out)?;
    Ok(())
}

/// Writes a table of the columns, then the number of null lists of each column that has any.
fn write_columns(stats: &TableStats, out: &mut impl Write) -> Outcome {
    let mut columns = TextTable::new(&["column", "axis", "type", "values", "null", "NaN"], 3);
    for column in stats.columns() {
        let share = |n: u64| match (n, column.values) {
            (0, _) => "0".into(),
            (n, all) => format_percent(compute_safe_ratio(n, all)),
        };
        columns.add_row([
            column.name.clone(),
            column.axis.to_string(),
            describe_type(&column.data_type),
            group_digits(column.values),
            share(column.nulls),
            if is_float(column) { share(column.nans) } else { "-".into() },
        ]);
    }
    columns.write(out)?;
    for column in stats.columns().iter().filter(|c| c.null_lists > 0) {
        let lists = format_count(column.null_lists, "list is", "lists are");
        writeln!(out, "{}: {lists} null", column.name)?;
    }
    Ok(())
}

/// Draws a histogram of the list lengths for each axis of the columns in `group`, and a histogram
/// of the durations of the rows: the number of days from the first to the last time of each row.
fn write_histograms(
    group: &ColumnGroup<DurationHistogram>,
    canvas: ChartCanvas,
    out: &mut impl Write,
) -> Outcome {
    let stats = &group.stats;
    for axis in 1..stats.ndim() {
        let (unit, list) = (name_axis(stats, axis), name_axis(stats, axis - 1));
        let title = format!("{} per {list}", pluralize_noun(&unit));
        write_lengths(&title, stats.lengths(axis)?, canvas, out)?;
    }
    let title = format!("days from first to last time per {}", name_axis(stats, 0));
    write_lengths(&title, &group.profile.0, canvas, out)
}

fn build_report(
    source: &InputSource,
    groups: &[ColumnGroup<DurationHistogram>],
    bytes: u64,
) -> Value {
    let dense: u128 = groups.iter().map(|g| g.stats.dense_bytes()).sum();
    let tables: Vec<Value> = groups.iter().map(|g| convert_stats_to_json(&g.stats)).collect();
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

fn convert_stats_to_json(stats: &TableStats) -> Value {
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
    let bytes = access::metadata(path).map_err(|e| Error::io(path, e))?.len();
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
    let bytes = access::metadata(path).map_err(|e| Error::io(path, e))?.len();
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

/// Returns the name of a column type for a table: `text (dictionary)` for a dictionary of strings
/// with keys of any type, else the name that Arrow displays.
fn describe_type(data_type: &DataType) -> String {
    match data_type {
        DataType::Dictionary(_, values) if values.is_string() => "text (dictionary)".to_owned(),
        other => other.to_string(),
    }
}

fn is_float(column: &ColumnStats) -> bool {
    column.data_type.is_floating()
}
