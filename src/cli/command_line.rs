//! The command-line arguments of `serrate`.

use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory, Parser, Subcommand};

use super::arguments::{OutputFormat, TableArgs};

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
  serrate convert meds/ patients.nrt       from one format to another
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
    /// Write one HTML page about a file or folder: charts of lengths, padding, columns, codes,
    /// timelines.
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
    /// Find a cohort by criteria and write its labels: predicates and windows in the language of
    /// ACES.
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
    pub(super) format: Option<OutputFormat>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
