//! The command-line arguments of `serrate`.

use std::path::{Path, PathBuf};

use clap::builder::RangedU64ValueParser;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  serrate                                  open a shell
  serrate query.sql                        run a script
  serrate -c \"SELECT count(*) FROM 'x.nrt'\"
  serrate -c \"FROM 'x.nrt' LIMIT 5\" --format ndjson
  serrate -c \"FROM 'x.nrt'\" --format arrow | python notebook.py
  serrate query.sql -o result.csv          the format follows from the name
  echo 'SELECT 1' | serrate --timing
  serrate inspect x.nrt                    axes, columns, lengths, dense size
  serrate report meds/ -o report.html      the same and more as an HTML page
  serrate check meds/                      find faults in data and labels
  serrate convert meds/ patients.nrt       from any format to any other
  serrate densify x.nrt -o batch.safetensors --rows 0..64 --max-len 256,64
  serrate batches cohort/ --batch 256 --len 512 --shuffle --seed 7 -o train/
  serrate features meds/ --labels labels/ --prefix LAB// -o features.parquet
  serrate cohort meds/ task.yaml -o labels/
  serrate generate --patients 1000 -o synthetic.nrt

Exit codes: 0 success, 1 a query or file failed, 2 wrong usage,
130 interrupted, 143 terminated.
To run a script whose name is that of a command, write its path: ./inspect.";

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
    #[command(flatten)]
    pub(super) limits: super::process_limits::LimitArgs,
}

/// The commands other than SQL.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show axes, columns, lengths, missing values and the dense size of a file or folder.
    Inspect(super::inspect::InspectArgs),
    /// Write one HTML page about a file or folder: charts of lengths, padding, columns, codes, timelines.
    Report(super::report::ReportArgs),
    /// Check a MEDS folder or a tensorized cohort for faults.
    Check(super::check::CheckArgs),
    /// Convert a file or folder to another format.
    Convert(super::convert_files::ConvertArgs),
    /// Write rows as padded tensors with masks.
    Densify(super::densify::DensifyArgs),
    /// Write training batches of a MEDS folder or a tensorized cohort.
    Batches(super::batches::BatchesArgs),
    /// Write a table of features for labels: one feature per code, time window and aggregate.
    Features(super::features::FeaturesArgs),
    /// Find a cohort by criteria and write its labels: predicates and windows in the language of ACES.
    Cohort(super::cohort::CohortArgs),
    /// Generate synthetic patients.
    Generate(super::generate::GenerateArgs),
    /// Run parts of queries for sessions on other machines.
    #[cfg(feature = "cluster")]
    Worker(super::worker_command::WorkerArgs),
    /// Answer queries of other programs over Flight SQL.
    #[cfg(feature = "serve")]
    Serve(Box<super::serve::ServeArgs>),
}

impl Command {
    pub(super) fn output_path(&self) -> Option<&Path> {
        let output = match self {
            Self::Inspect(_) | Self::Check(_) => return None,
            #[cfg(feature = "cluster")]
            Self::Worker(_) => return None,
            #[cfg(feature = "serve")]
            Self::Serve(_) => return None,
            Self::Report(args) => &args.output,
            Self::Convert(args) => &args.output,
            Self::Densify(args) => &args.output,
            Self::Batches(args) => &args.output,
            Self::Features(args) => &args.output,
            Self::Cohort(args) => args.output.as_ref()?,
            Self::Generate(args) => &args.output,
        };
        // `-` is standard output.
        (output.as_os_str() != "-").then_some(output)
    }
}

pub(super) fn is_command(name: &str) -> bool {
    Cli::command().get_subcommands().any(|command| command.get_name() == name)
}

/// Maximum number of threads that a command starts.
pub(super) const THREADS: usize = 1024;
/// Maximum of `--batch` (samples), `--bucket` (batches per pool) and `--block` (labels at a time).
pub(super) const BATCH: usize = 1 << 24;
pub(super) const LENGTH: usize = 1 << 31;
/// Maximum number of patients that `serrate generate` writes. Each takes some kilobytes on disk.
pub(super) const PATIENTS: u64 = 1_000_000_000;
/// Maximum number of files that `serrate generate` writes to a folder.
pub(super) const SHARDS: u64 = 100_000;

/// Returns a parser that refuses numbers above `limit`. Most limits are larger than any machine can
/// use, so that they refuse only typing errors.
pub(super) fn parse_up_to(limit: usize) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(..=u64::try_from(limit).unwrap_or(u64::MAX))
}

/// Parses the value of an option with [`FromStr`](std::str::FromStr) of its type.
pub(super) fn parse_value<T: std::str::FromStr<Err = crate::Error>>(
    text: &str,
) -> Result<T, String> {
    text.parse().map_err(|e: crate::Error| e.to_string())
}

/// Arguments for running SQL.
#[derive(Args, Debug)]
pub(super) struct QueryArgs {
    /// SQL scripts to run, in order; `-` is standard input.
    #[arg(value_name = "FILE.sql")]
    pub(super) files: Vec<PathBuf>,
    /// SQL to run after any files; may be given more than once.
    #[arg(short = 'c', long = "command", value_name = "SQL", allow_hyphen_values = true)]
    pub(super) commands: Vec<String>,
    /// Open the shell after running files and commands.
    #[arg(short, long, conflicts_with = "output")]
    pub(super) interactive: bool,
    /// Format of results [default: by the extension of the -o file, else table].
    #[arg(short, long, value_enum)]
    pub(super) format: Option<Format>,
    /// Write results to a file, which is created only if every statement succeeds.
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Replace an existing output file.
    #[arg(long, alias = "force")]
    pub(super) overwrite: bool,
    /// Print `elapsed_ms=..` for each statement on stderr.
    #[arg(long)]
    pub(super) timing: bool,
    #[command(flatten)]
    pub(super) table: TableArgs,
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    pub(super) cluster: super::worker_command::ClusterArgs,
}

/// Arguments for the display of results. `max_rows` and `max_width` apply to the formats `table` and
/// `line`, because other formats are never shortened; `types` applies to `table` and `markdown`.
#[derive(Args, Clone, Debug)]
pub(super) struct TableArgs {
    /// Maximum number of rows shown per result; 0 shows all [default: 40].
    #[arg(long, value_name = "N", default_value_t = 40, hide_default_value = true)]
    pub(super) max_rows: usize,
    /// Maximum number of characters shown per value; 0 shows all [default: 48, fewer on a narrow
    /// terminal].
    #[arg(long, value_name = "N")]
    pub(super) max_width: Option<usize>,
    /// Show the type of each column in a table.
    #[arg(long)]
    pub(super) types: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// An aligned table; long values and results are shortened.
    #[value(aliases = ["box", "duckbox", "column"])]
    Table,
    /// One line per value, `name = value`; long values and results are shortened.
    #[value(aliases = ["lines", "expanded", "vertical"])]
    Line,
    /// Comma-separated values with a header; lists are JSON in which NaN is null; an empty string is "", and
    /// NULL is an empty field.
    Csv,
    /// One array of objects; NaN becomes null.
    Json,
    /// One object per line; NaN becomes null.
    #[value(aliases = ["jsonl", "jsonlines"])]
    Ndjson,
    /// Arrow IPC: a stream on standard output, a file with -o.
    Arrow,
    /// A Markdown table, not shortened.
    #[value(alias = "md")]
    Markdown,
}

impl Format {
    pub(super) fn from_extension(path: &std::path::Path) -> Option<Self> {
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
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
