//! `serrate densify`: writes rows of a file as padded tensors with masks.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use clap::Args;

use super::arguments::parse_value;
use super::command_failure::{Failure, Outcome};
use super::convert_files::print_written_rows;
use super::files::{
    DeclaredTypes, FileFormat, InputSource, MedsPart, check_absent, check_name, conform_batch,
};
use super::interrupt;
use super::output::print_line;
use crate::config::parse_bytes;
use crate::dense::{AxisSize, DenseOptions, Fill, PaddingSide, TableDenseOptions};
use crate::io::nrt::{NrtFile, ReadOptions};
use crate::io::safetensors::{SaveOptions, dense};
use crate::table::RaggedTable;

const EXAMPLES: &str = "\
Examples:
  serrate densify x.nrt -o batch.safetensors --rows 0..64
  serrate densify x.nrt -o batch.safetensors --max-len 256,64 --side left
                                        the last 256 events
  serrate densify x.parquet -o b.safetensors --columns time,code --fill -1

The file has one tensor per column, under its name, and the masks `dim1/mask`,
`dim2/mask`, ..: true where there is a value.
In Python: `safetensors.torch.load_file(\"batch.safetensors\")`.";

/// Arguments of `serrate densify`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct DensifyArgs {
    /// File or folder to read.
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The safetensors file to write.
    #[arg(short, long, value_name = "OUT.safetensors")]
    pub(super) output: PathBuf,
    /// Rows to take, counted from 0: `A..B` (without B), `A..` or `..B` [default: all].
    #[arg(long, value_name = "A..B", value_parser = parse_rows)]
    rows: Option<RowRange>,
    /// Largest number of elements per axis after the rows; longer lists are cut on the side of the
    /// padding.
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    max_len: Vec<usize>,
    /// Side on which lists are padded and cut.
    #[arg(long, value_name = "left|right", default_value = "right", value_parser = parse_value::<PaddingSide>)]
    side: PaddingSide,
    /// Columns to take, in this order [default: all].
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    columns: Option<Vec<String>>,
    /// Value of padding [default: 0].
    #[arg(long, value_name = "X", allow_hyphen_values = true, value_parser = parse_fill)]
    fill: Option<Fill>,
    /// Maximum size of all tensors together, such as 500MB or 8GB; a larger result is an error.
    #[arg(long, value_name = "BYTES", default_value = "4GiB", value_parser = parse_limit)]
    limit: u64,
    #[command(flatten)]
    declared: DeclaredTypes,
    /// Keep the types of integers; by default they become int64, the type of embedding layers.
    #[arg(long)]
    keep_types: bool,
    /// Replace an existing file.
    #[arg(long, alias = "force")]
    overwrite: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RowRange {
    start: usize,
    end: Option<usize>,
}

pub(super) fn run(args: &DensifyArgs) -> Outcome {
    check_name(&args.output, Some(FileFormat::Safetensors), "a safetensors file")?;
    check_absent(&args.output, args.overwrite)?;
    let table = read_rows(args)?;
    let options = TableDenseOptions {
        dense: DenseOptions {
            side: args.side,
            fill: args.fill,
            limit: Some(args.limit),
            ..DenseOptions::default()
        },
        columns: args.columns.clone(),
        sizes: args.max_len.iter().map(|n| AxisSize::AtMost(*n)).collect(),
        tokens_as_i64: !args.keep_types,
        ..TableDenseOptions::default()
    };
    let tensors = table.to_dense_with(&options)?;
    let save = SaveOptions { overwrite: args.overwrite, ..SaveOptions::default() };
    dense::write(&args.output, tensors.iter().map(|(n, t)| (n.as_str(), t)), &save)?;
    for (name, tensor) in &tensors {
        print_line(&format!("{name}: {} {:?}", tensor.dtype(), tensor.shape()))?;
    }
    print_written_rows(table.num_rows() as u64, &args.output, None)
}

fn read_rows(args: &DensifyArgs) -> Outcome<RaggedTable> {
    let mut source = InputSource::open(&args.input)?;
    source.select_part(MedsPart::Tokens);
    source.declare_types(&args.declared)?;
    let rows = args.rows.unwrap_or(RowRange { start: 0, end: None });
    let past_end = |count: usize| {
        Failure::from_message(format!(
            "{}: --rows {}..{} is out of range, because the file has only {count} rows; give a smaller range",
            args.input.display(),
            rows.start,
            rows.end.map_or_else(String::new, |e| e.to_string())
        ))
    };
    if let [shard] = source.shards.as_slice()
        && shard.format == FileFormat::Nrt
    {
        // Only an .nrt file can be read from the first selected row; other formats start at row 0.
        let file = NrtFile::open(&shard.path, &ReadOptions::default())?;
        let end = rows.end.unwrap_or(file.num_rows());
        if rows.start > end || end > file.num_rows() {
            return Err(past_end(file.num_rows()));
        }
        let names: Option<Vec<&str>> =
            args.columns.as_ref().map(|c| c.iter().map(String::as_str).collect());
        return Ok(file.read(rows.start..end, names.as_deref())?);
    }
    let all = source.schema()?;
    let schema = select_columns(args, &all)?;
    let whole = rows.start..rows.end.unwrap_or(usize::MAX);
    let mut tables = Vec::new();
    let mut position = 0;
    'shards: for shard in &source.shards {
        for batch in shard.open_batches(Some(&all))? {
            interrupt::check_interrupt()?;
            if position >= whole.end {
                break 'shards;
            }
            let batch = batch?;
            let batch_rows = position..position + batch.num_rows();
            position = batch_rows.end;
            let part = intersect_ranges(&batch_rows, &whole);
            if !part.is_empty() || (tables.is_empty() && batch.num_rows() == 0) {
                let batch = batch.slice(part.start - batch_rows.start, part.len());
                tables.push(RaggedTable::try_from_batch(&conform_batch(&batch, &schema)?)?);
            }
        }
    }
    if rows.end.is_some_and(|end| end > position || rows.start > end) || rows.start > position {
        return Err(past_end(position));
    }
    if tables.is_empty() {
        let empty = arrow::array::RecordBatch::new_empty(schema);
        tables.push(RaggedTable::try_from_batch(&empty)?);
    }
    Ok(RaggedTable::concat(&tables)?)
}

/// Drops the columns that are not selected. Their lists may differ in length from the lists of the
/// selected columns, and a table with both would be an error.
fn select_columns(args: &DensifyArgs, all: &SchemaRef) -> Outcome<SchemaRef> {
    let Some(names) = &args.columns else { return Ok(Arc::clone(all)) };
    let indices = names.iter().map(|n| {
        all.index_of(n).map_err(|_| {
            let known: Vec<&str> = all.fields().iter().map(|f| f.name().as_str()).collect();
            Failure::from_message(format!(
                "{}: there is no column {n:?}; the columns are {}",
                args.input.display(),
                known.join(", ")
            ))
        })
    });
    Ok(all.project(&indices.collect::<Outcome<Vec<_>>>()?)?.into())
}

fn intersect_ranges(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    let start = a.start.max(b.start).min(a.end);
    start..a.end.min(b.end).max(start)
}

fn parse_rows(text: &str) -> Result<RowRange, String> {
    let wrong = || format!("{text:?} is not a range of rows; write A..B, A.. or ..B");
    let (start, end) = text.split_once("..").ok_or_else(wrong)?;
    let number = |t: &str| t.trim().parse::<usize>().map_err(|_| wrong());
    let start = if start.trim().is_empty() { 0 } else { number(start)? };
    let end = if end.trim().is_empty() { None } else { Some(number(end)?) };
    match end {
        Some(end) if end < start => Err(format!(
            "the range of rows {text:?} ends before it starts; write the smaller number first"
        )),
        end => Ok(RowRange { start, end }),
    }
}

fn parse_limit(text: &str) -> Result<u64, String> {
    parse_bytes(text).map_err(|e| e.message().into_owned())
}

fn parse_fill(text: &str) -> Result<Fill, String> {
    let float = || text.parse::<f64>().map(Fill::Float);
    let boolean = || text.parse::<bool>().map(Fill::Bool);
    text.parse::<i64>()
        .map(Fill::Int)
        .or_else(|_| text.parse::<u64>().map(Fill::UInt))
        .or_else(|_| float())
        .or_else(|_| boolean())
        .map_err(|_| format!("the fill value {text:?} is neither a number nor a boolean; write a value such as 0, nan or false"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_rows() {
        let rows = |start, end| Ok(RowRange { start, end });
        assert_eq!(parse_rows("3..10"), rows(3, Some(10)));
        assert_eq!(parse_rows("3.."), rows(3, None));
        assert_eq!(parse_rows("..10"), rows(0, Some(10)));
        for wrong in ["3", "10..3", "a..b", "-1..3", "1..=3"] {
            assert!(parse_rows(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn fills() {
        assert_eq!(parse_fill("-1"), Ok(Fill::Int(-1)));
        assert_eq!(parse_fill("18446744073709551615"), Ok(Fill::UInt(u64::MAX)));
        assert_eq!(parse_fill("0.5"), Ok(Fill::Float(0.5)));
        assert_eq!(parse_fill("true"), Ok(Fill::Bool(true)));
        assert!(parse_fill("x").is_err());
    }

    #[test]
    fn overlaps() {
        assert_eq!(intersect_ranges(&(0..10), &(3..usize::MAX)), 3..10);
        assert_eq!(intersect_ranges(&(10..20), &(0..5)).len(), 0);
        assert_eq!(intersect_ranges(&(10..20), &(30..40)).len(), 0);
        assert_eq!(intersect_ranges(&(10..20), &(12..15)), 12..15);
    }
}
