//! Rejects options of CSV, JSON and Parquet that the writer ignores, and those with which a table
//! would not read back the rows that INSERT writes.

use datafusion::common::config::{CsvOptions, JsonOptions};
use datafusion::common::parsers::CsvQuoteStyle;
use datafusion::common::plan_err;
use datafusion::error::Result;
use regex::Regex;

/// Returns an error for an option of COPY that only readers of CSV files follow.
pub(super) fn check_copy_options(options: &CsvOptions) -> Result<()> {
    if options.null_regex.is_some() {
        return plan_err!(
            "the option null_regex of CSV applies only to reading; for COPY, set the text of NULL with null_value, as in OPTIONS (null_value 'NA')"
        );
    }
    let ignored = [
        ("newlines_in_values", options.newlines_in_values.is_some()),
        ("schema_infer_max_rec", options.schema_infer_max_rec.is_some()),
        ("truncated_rows", options.truncated_rows.is_some()),
    ];
    if let Some((option, _)) = ignored.into_iter().find(|(_, is_given)| *is_given) {
        return plan_err!("the option {option} of CSV applies only to reading; remove it");
    }
    match find_read_option(options) {
        Some(option) => plan_err!(
            "the option {option} of CSV applies only to reading: COPY always ends records with line breaks, and does not quote a field that begins with the comment character; remove the option"
        ),
        None => Ok(()),
    }
}

/// Returns an error for an option with which a table would not read back the rows that INSERT
/// writes: only the reader or only the writer follows it, or they disagree on NULL or on quotes.
/// `has_text` is whether the table has columns of strings.
pub(super) fn check_insert_options(options: &CsvOptions, has_text: bool) -> Result<()> {
    if let Some(option) = find_read_option(options) {
        return refuse_insert(option, "queries follow this option, but INSERT ignores it");
    }
    if reads_written_null_as_text(options) {
        return refuse_insert("null_regex", "it does not match the text that is written for NULL");
    }
    if !has_text {
        return Ok(());
    }
    let trimmed = [
        ("ignore_leading_whitespace", options.ignore_leading_whitespace),
        ("ignore_trailing_whitespace", options.ignore_trailing_whitespace),
    ];
    if let Some((option, _)) = trimmed.into_iter().find(|(_, is_on)| *is_on == Some(true)) {
        return refuse_insert(option, "INSERT would remove white space from strings");
    }
    if options.double_quote == Some(false) {
        let reason = "queries read a quote within a string as two quotes";
        return refuse_insert("double_quote", reason);
    }
    match options.quote_style {
        CsvQuoteStyle::Never => {
            refuse_insert("quote_style", "strings with a delimiter or a line break need quotes")
        }
        _ => Ok(()),
    }
}

/// Returns an error for an option of JSON that only readers follow. `is_copy` is whether the writer
/// is part of COPY, and not of INSERT.
pub(super) fn check_json_options(options: &JsonOptions, is_copy: bool) -> Result<()> {
    if !options.newline_delimited {
        return plan_err!(
            "the option newline_delimited false of JSON applies only to reading: COPY and INSERT write one record per line; remove the option"
        );
    }
    // Without this option, the types follow from all records.
    match options.schema_infer_max_rec.filter(|records| is_copy && *records != usize::MAX) {
        Some(_) => {
            plan_err!("the option schema_infer_max_rec of JSON applies only to reading; remove it")
        }
        None => Ok(()),
    }
}

/// The options of Parquet that only readers follow.
const PARQUET_READ_OPTIONS: [&str; 14] = [
    "binary_as_string",
    "bloom_filter_on_read",
    "coerce_int96",
    "coerce_int96_tz",
    "enable_page_index",
    "force_filter_selections",
    "max_in_list_size",
    "max_predicate_cache_size",
    "metadata_size_hint",
    "pruning",
    "pushdown_filters",
    "reorder_filters",
    "schema_force_view_types",
    "skip_metadata",
];

/// Returns an error for an option of COPY that only readers of Parquet files follow. `names` are
/// the names of the options, with or without the prefix `format.`.
pub(super) fn check_parquet_options(names: &[String]) -> Result<()> {
    let names = names.iter().map(|name| name.strip_prefix("format.").unwrap_or(name));
    let is_read_option = |name: &&str| {
        let name = name.to_ascii_lowercase();
        PARQUET_READ_OPTIONS.contains(&name.as_str()) || name.starts_with("crypto.file_decryption")
    };
    match names.filter(is_read_option).min() {
        Some(option) => {
            plan_err!("the option {option} of PARQUET applies only to reading; remove it")
        }
        None => Ok(()),
    }
}

fn find_read_option(options: &CsvOptions) -> Option<&'static str> {
    match options {
        options if options.comment.is_some() => Some("comment"),
        options if options.terminator.is_some() => Some("terminator"),
        _ => None,
    }
}

/// Whether the writer writes NULL as a string that `null_regex` does not match.
fn reads_written_null_as_text(options: &CsvOptions) -> bool {
    let Some(pattern) = &options.null_regex else { return false };
    let written = options.null_value.as_deref().unwrap_or_default();
    Regex::new(pattern).is_ok_and(|pattern| !pattern.is_match(written))
}

fn refuse_insert(option: &str, reason: &str) -> Result<()> {
    plan_err!(
        "INSERT into a table of CSV files with the option {option} is not supported, because {reason}, so that the table would return other rows than those inserted; create the table without {option}, or write the rows with COPY"
    )
}
