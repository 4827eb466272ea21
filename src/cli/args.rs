//! The arguments of the command.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  serrate                                     open a shell
  serrate query.sql                           run a script
  serrate -c \"SELECT count(*) FROM 'x.nrt'\"    run one statement
  serrate -c \"FROM 'x.nrt' LIMIT 5\" --format ndjson
  serrate -c \"FROM 'x.nrt'\" --format arrow | python notebook.py
  serrate query.sql -o result.csv             the format follows the name
  echo 'SELECT 1' | serrate --timing
  serrate inspect x.nrt                       axes, columns, lengths, what dense would cost
  serrate check meds/                         what is wrong in a data set and its labels
  serrate convert meds/ patients.nrt          from any format to any other
  serrate densify x.nrt -o batch.safetensors --rows 0..64 --max-len 256,64
  serrate batches cohort/ --batch 256 --len 512 --shuffle --seed 7 -o train/
  serrate generate --patients 1000 -o synthetic.nrt

Exit codes: 0 all went well, 1 a query or file failed, 2 wrong usage, 130 interrupted, 143 terminated.
A script in a file called like a command is run as ./inspect.";

/// SQL over nested ragged data, and conversions between its formats.
#[derive(Debug, Parser)]
#[command(
    name = "serrate",
    version,
    about = "SQL over nested ragged data, and conversions between its formats",
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    max_term_width = 110
)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    #[command(flatten)]
    pub(super) query: QueryArgs,
}

/// The commands that are no SQL.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show axes, columns, lengths and missing values of a file or folder, and what dense would cost.
    Inspect(super::inspect::InspectArgs),
    /// Look for what is wrong in a MEDS folder or a tensorized cohort.
    Check(super::check::CheckArgs),
    /// Convert a file or folder to another format.
    Convert(super::convert::ConvertArgs),
    /// Write rows as padded tensors with masks.
    Densify(super::densify::DensifyArgs),
    /// Write training batches of a MEDS folder or a tensorized cohort.
    Batches(super::batches::BatchesArgs),
    /// Make synthetic patients.
    Generate(super::generate::GenerateArgs),
}

/// Threads that a command starts at most.
pub(super) const THREADS: usize = 1024;
/// Rows or items of a batch at most, and batches that are held at a time.
pub(super) const BATCH: usize = 1 << 24;
/// Length of an axis at most.
pub(super) const LENGTH: usize = 1 << 31;
/// Patients that are made at most: each is some kilobytes on disk.
pub(super) const PATIENTS: u64 = 1_000_000_000;
/// Files that are made at most.
pub(super) const SHARDS: u64 = 100_000;

/// Numbers up to a limit, past which no machine has the memory, the threads or the disk.
pub(super) fn up_to(limit: usize) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(..=u64::try_from(limit).unwrap_or(u64::MAX))
}

/// Running SQL.
#[derive(Args, Debug)]
pub(super) struct QueryArgs {
    /// SQL scripts to run, in order; `-` is standard input.
    #[arg(value_name = "FILE.sql")]
    pub(super) files: Vec<PathBuf>,
    /// SQL to run, after any files; may be given more than once.
    #[arg(short = 'c', long = "command", value_name = "SQL")]
    pub(super) commands: Vec<String>,
    /// Open the shell after the files and commands.
    #[arg(short, long, conflicts_with = "output")]
    pub(super) interactive: bool,
    /// How results are written [default: table, or what the name after -o says].
    #[arg(short, long, value_enum)]
    pub(super) format: Option<Format>,
    /// Write results to a file, which appears when everything has succeeded.
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Replace the output file when it exists.
    #[arg(long, alias = "force", requires = "output")]
    pub(super) overwrite: bool,
    /// Print `elapsed_ms=..` per statement on stderr.
    #[arg(long)]
    pub(super) timing: bool,
    #[command(flatten)]
    pub(super) table: TableArgs,
}

/// How tables look; the other formats are whole.
#[derive(Args, Clone, Debug)]
pub(super) struct TableArgs {
    /// Rows a table shows; 0 shows all.
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(super) max_rows: usize,
    /// Characters a value takes in a table; 0 shows all of it [default: 48, less on a narrow terminal].
    #[arg(long, value_name = "N")]
    pub(super) max_width: Option<usize>,
    /// Show the type of each column in a table.
    #[arg(long)]
    pub(super) types: bool,
}

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Aligned, for people: long values and long results are cut.
    Table,
    /// Comma-separated with a header; lists as JSON text, where NaN is null.
    Csv,
    /// One array of objects; NaN is null, as JSON has none.
    Json,
    /// One object per line; NaN is null.
    #[value(alias = "jsonl")]
    Ndjson,
    /// Arrow IPC: a stream on standard output, a file with -o.
    Arrow,
    /// A Markdown table, whole.
    #[value(alias = "md")]
    Markdown,
}

impl Format {
    /// The format a file name asks for.
    pub(super) fn of_extension(path: &std::path::Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "txt" => Self::Table,
            "csv" => Self::Csv,
            "json" => Self::Json,
            "ndjson" | "jsonl" => Self::Ndjson,
            "arrow" | "ipc" | "feather" => Self::Arrow,
            "md" | "markdown" => Self::Markdown,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
