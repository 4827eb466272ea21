//! Arguments that several commands have, and the limits and parsers of values.

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};

/// Maximum number of threads that a command starts.
pub(super) const MAX_THREADS: usize = 1024;
/// Maximum of `--batch` (items), `--bucket` (batches per pool) and `--block` (labels at a time).
pub(super) const MAX_BATCH: usize = 1 << 24;
/// Maximum of `--len` (measurements or events of an item) and `--per-event` (measurements).
pub(super) const MAX_LENGTH: usize = 1 << 31;
/// Maximum number of patients that `serrate generate` writes. Each takes some kilobytes on disk, so
/// more patients would take terabytes.
pub(super) const MAX_PATIENTS: u64 = 1_000_000_000;
/// Maximum number of files that `serrate generate` writes to a folder.
pub(super) const MAX_SHARDS: u64 = 100_000;

/// Returns a parser that refuses numbers above `limit`. Most limits are larger than any machine can
/// use, so that they refuse only typing errors.
pub(super) fn parse_up_to(limit: usize) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(..=u64::try_from(limit).unwrap_or(u64::MAX))
}

pub(super) fn parse_value<T: std::str::FromStr<Err = crate::Error>>(
    text: &str,
) -> Result<T, String> {
    text.parse().map_err(|e: crate::Error| e.to_string())
}

/// Arguments for the display of results. `max_rows` and `max_width` apply to the formats `table`
/// and `line`, because other formats are never shortened; `types` applies to `table` and
/// `markdown`.
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
pub(super) enum OutputFormat {
    /// An aligned table; long values and results are shortened.
    #[value(aliases = ["box", "duckbox", "column"])]
    Table,
    /// One line per value, `name = value`; long values and results are shortened.
    #[value(aliases = ["lines", "expanded", "vertical"])]
    Line,
    /// Comma-separated values with a header; lists are JSON in which NaN is null; an empty string
    /// is "", and NULL is an empty field.
    Csv,
    /// One array with an object per row; NaN becomes null.
    Json,
    /// One object per row, each on its own line; NaN becomes null.
    #[value(aliases = ["jsonl", "jsonlines"])]
    Ndjson,
    /// Arrow IPC: a stream on standard output, a file with -o.
    Arrow,
    /// A Markdown table, not shortened.
    #[value(alias = "md")]
    Markdown,
}

impl OutputFormat {
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

    /// Whether results in this format are for a terminal, as in `table` and `line`.
    pub(super) fn is_human_readable(self) -> bool {
        matches!(self, Self::Table | Self::Line)
    }
}
