//! Rewrites options of COPY in the syntax of DuckDB, and those of `STORED AS BATCHES`, to the
//! syntax of DataFusion.

use std::borrow::Cow;
use std::collections::HashSet;

use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::sqlparser::dialect::Dialect;
use datafusion::logical_expr::sqlparser::keywords::Keyword;
use datafusion::logical_expr::sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use crate::sql::base::tokens::{find_keyword, is_word, quote_text, read_tokens};
use crate::sql::sources::training::BATCHES;

/// Rewrites DuckDB's options of COPY, `(FORMAT csv, HEADER false)`, to STORED AS and OPTIONS.
///
/// # Errors
/// If an option of DuckDB has no counterpart.
pub(in crate::sql) fn list_known_options<'a>(
    text: &'a str,
    dialect: &dyn Dialect,
) -> Result<Cow<'a, str>> {
    if !text.to_ascii_lowercase().contains("copy") {
        return Ok(Cow::Borrowed(text));
    }
    let Some(tokens) = read_tokens(text, dialect) else { return Ok(Cow::Borrowed(text)) };
    let tokens: Vec<&TokenWithSpan> = tokens.iter().collect();
    let mut out = String::new();
    let mut copied = 0;
    for statement in tokens.split(|t| t.token == Token::SemiColon) {
        let Some((target, options)) = find_options(statement) else { continue };
        let [open, .., close] = options else { continue };
        let start = find_byte_offset(text, open.span.start);
        let end = find_byte_offset(text, close.span.end);
        let (Some(before), Some(replaced)) = (text.get(copied..start), text.get(start..end)) else {
            continue;
        };
        out.push_str(before);
        let inner = options.iter().skip_while(|t| t.token != Token::LParen).copied();
        let inner: Vec<&TokenWithSpan> = inner.skip(1).collect();
        let inner = inner.split_last().map(|(_, inner)| inner).unwrap_or_default();
        out.push_str(&rewrite_options(&format_plain_text(&target.token), inner)?);
        // Keeps the line breaks of the replaced text, so that errors in later statements name the
        // right lines.
        out.push_str(&"\n".repeat(replaced.matches('\n').count()));
        copied = end;
    }
    if copied == 0 {
        return Ok(Cow::Borrowed(text));
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Ok(Cow::Owned(out))
}

/// Returns the target of COPY, and its options in `(..)` or `WITH (..)`. Returns `None` for any
/// other statement, and if COPY does not end with such options.
fn find_options<'a, 'b>(
    statement: &'a [&'b TokenWithSpan],
) -> Option<(&'b TokenWithSpan, &'a [&'b TokenWithSpan])> {
    if find_keyword(statement.first()?) != Some(Keyword::COPY) {
        return None;
    }
    let mut depth = 0usize;
    let mut to = None;
    for (at, token) in statement.iter().enumerate() {
        match token.token {
            Token::LParen => depth = depth.saturating_add(1),
            Token::RParen => depth = depth.saturating_sub(1),
            _ if depth == 0 && find_keyword(token) == Some(Keyword::TO) => to = Some(at),
            _ => {}
        }
    }
    // The target is one token after TO.
    let target = statement.get(to?.checked_add(1)?)?;
    let rest = statement.get(to?.checked_add(2)?..)?;
    let open = usize::from(find_keyword(rest.first()?) == Some(Keyword::WITH));
    let options = rest.get(open..)?;
    let first = options.first()?;
    let last = options.last()?;
    (first.token == Token::LParen && last.token == Token::RParen).then_some((target, rest))
}

fn find_byte_offset(text: &str, at: Location) -> usize {
    let line = usize::try_from(at.line.saturating_sub(1)).unwrap_or(usize::MAX);
    let column = usize::try_from(at.column.saturating_sub(1)).unwrap_or(usize::MAX);
    let before: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let rest = text.get(before..).unwrap_or_default();
    let within = rest.char_indices().nth(column).map_or(rest.len(), |(i, _)| i);
    before.saturating_add(within)
}

/// DuckDB's options of COPY, rewritten as parts of DataFusion's clauses of COPY.
#[derive(Default)]
struct CopyClauses {
    format: Option<String>,
    partitions: Option<String>,
    options: Vec<String>,
    compression: Option<String>,
    level: Option<String>,
    /// The first option that applies only to CSV, for the error if COPY writes another format.
    only_csv: Option<String>,
}

/// DuckDB's options of COPY that are supported only for CSV.
const ONLY_CSV: [&str; 11] = [
    "header",
    "delimiter",
    "delim",
    "sep",
    "quote",
    "escape",
    "null",
    "nullstr",
    "dateformat",
    "timestampformat",
    "force_quote",
];

/// Options of DuckDB that are not supported; `force_quote` is supported for `*` only.
const UNSUPPORTED: [&str; 21] = [
    "force_quote",
    "prefix",
    "suffix",
    "array",
    "append",
    "per_thread_output",
    "file_size_bytes",
    "filename_pattern",
    "file_extension",
    "use_tmp_file",
    "write_partition_columns",
    "row_group_size_bytes",
    "row_groups_per_file",
    "return_files",
    "field_ids",
    "encoding",
    "preserve_order",
    "write_bloom_filter",
    "parquet_version",
    "dictionary_size_limit",
    "hive_file_pattern",
];

fn rewrite_options(target: &str, tokens: &[&TokenWithSpan]) -> Result<String> {
    let mut clauses = CopyClauses::default();
    let mut names = HashSet::new();
    let mut depth = 0usize;
    for option in tokens.split(|t| {
        match t.token {
            Token::LParen => depth = depth.saturating_add(1),
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && t.token == Token::Comma
    }) {
        if let Some((name, value)) = option.split_first() {
            let written = format_plain_text(&name.token);
            let has_path = value.first().is_some_and(|t| t.token == Token::Period);
            if !has_path && !names.insert(written.to_ascii_lowercase()) {
                return plan_err!("the option {written} of COPY is given twice; write it once");
            }
            clauses.add_option(&name.token, value)?;
        }
    }
    clauses.write_clauses(target)
}

impl CopyClauses {
    fn add_option(&mut self, name: &Token, value: &[&TokenWithSpan]) -> Result<()> {
        let written = match name {
            Token::Word(word) => word.value.clone(),
            Token::SingleQuotedString(text) => text.clone(),
            other => other.to_string(),
        };
        // An option of DataFusion, such as `format.has_header`, stays unchanged.
        if value.first().is_some_and(|t| t.token == Token::Period) {
            let last = find_last_value(&written, value)?;
            self.options.push(format!("{name}{} {last}", format_option_suffix(value)));
            return Ok(());
        }
        let value = match value {
            [sign, value @ ..] if sign.token == Token::Eq => value,
            value => value,
        };
        let text =
            || value.iter().map(|t| format_plain_text(&t.token)).collect::<Vec<_>>().join("");
        let one = || match value {
            [_] => Ok(text()),
            _ => plan_err!(
                "the option {written} of COPY takes one value, as in {written} 'x'; found '{}'",
                text()
            ),
        };
        if ONLY_CSV.iter().any(|option| written.eq_ignore_ascii_case(option)) {
            self.only_csv.get_or_insert_with(|| written.clone());
        }
        match written.to_ascii_lowercase().as_str() {
            "format" => self.format = Some(one()?),
            "header" => {
                let on = value.is_empty() || parse_flag(&written, &one()?)?;
                self.push("has_header", &on.to_string());
            }
            "delimiter" | "delim" | "sep" => {
                let delimiter = one()?;
                self.push("delimiter", if delimiter == "\\t" { "\t" } else { &delimiter });
            }
            "quote" => self.push("quote", &one()?),
            "escape" if one()? == "\"" => {}
            "escape" => self.push("escape", &one()?),
            "null" | "nullstr" => self.push("null_value", &one()?),
            "dateformat" => self.push("date_format", &one()?),
            "timestampformat" => {
                let format = one()?;
                self.push("timestamp_format", &format);
                self.push("timestamp_tz_format", &format);
            }
            "force_quote" if matches!(value, [all] if all.token == Token::Mul) => {
                self.push("quote_style", "Always");
            }
            "compression" | "codec" => self.compression = Some(one()?),
            "compression_level" => self.level = Some(one()?),
            "row_group_size" => self.push("max_row_group_size", &one()?),
            "overwrite" | "overwrite_or_ignore" => {
                let on = value.is_empty() || parse_flag(&written, &one()?)?;
                self.options.push(format!("overwrite {}", quote_text(&on.to_string())));
            }
            "partition_by" => self.partitions = Some(list_columns(value)),
            name if UNSUPPORTED.contains(&name) => {
                return plan_err!(
                    "the option {written} of COPY is not supported; the options of DuckDB that are supported are format, header, delimiter, quote, escape, nullstr, dateformat, timestampformat, compression, compression_level, row_group_size, partition_by and overwrite"
                );
            }
            _ => {
                let last = find_last_value(&written, value)?;
                self.options.push(format!("{name}{} {last}", format_option_suffix(value)));
            }
        }
        Ok(())
    }

    fn push(&mut self, key: &str, value: &str) {
        self.options.push(format!("format.{key} {}", quote_text(value)));
    }

    fn write_clauses(mut self, target: &str) -> Result<String> {
        let format = self.format.as_deref().or_else(|| target.rsplit('.').next());
        let is_parquet = format.is_some_and(|f| f.eq_ignore_ascii_case("parquet"));
        let is_other = |format: &&str| {
            let others = ["json", "ndjson", "jsonl", "parquet", "arrow", "nrt"];
            others.iter().any(|other| format.eq_ignore_ascii_case(other))
        };
        if let (Some(option), Some(format)) = (&self.only_csv, format.filter(is_other)) {
            return plan_err!(
                "the option {option} of COPY applies only to CSV files, not to the format {format}; leave it out, or format the values in the query, as in COPY (SELECT strftime(d, '%d.%m.%Y') AS d FROM t) TO .."
            );
        }
        if self.level.is_some() && (self.compression.is_none() || !is_parquet) {
            return plan_err!(
                "the option COMPRESSION_LEVEL of COPY applies only to Parquet files, together with the option COMPRESSION; write (COMPRESSION zstd, COMPRESSION_LEVEL 3)"
            );
        }
        if let Some(codec) = self.compression.take() {
            let codec = codec.to_ascii_lowercase();
            let is_text = format.is_some_and(|format| {
                ["csv", "json", "ndjson"].iter().any(|text| format.eq_ignore_ascii_case(text))
            });
            let is_plain = ["none", "uncompressed", "auto"].contains(&codec.as_str());
            if is_text && !is_plain {
                return plan_err!(
                    "COMPRESSION {codec} is supported for Parquet files only; write the file without COMPRESSION, and compress the file with a program such as gzip"
                );
            }
            // DataFusion's Parquet writer requires a compression level for these codecs.
            let level = match (codec.as_str(), self.level.take()) {
                (_, Some(level)) if is_parquet => format!("({level})"),
                ("zstd", None) if is_parquet => "(3)".to_owned(),
                ("gzip" | "brotli", None) if is_parquet => "(6)".to_owned(),
                _ => String::new(),
            };
            if !(is_text && is_plain) {
                self.push("compression", &format!("{codec}{level}"));
            }
        }
        let mut text = String::new();
        if let Some(format) = self.format {
            text.push_str(&format!("STORED AS {format} "));
        }
        if let Some(columns) = self.partitions {
            text.push_str(&format!("PARTITIONED BY ({columns}) "));
        }
        if !self.options.is_empty() {
            text.push_str(&format!("OPTIONS ({})", self.options.join(", ")));
        }
        Ok(text)
    }
}

/// Returns the columns of PARTITION_BY, separated by commas and without quotes, which DataFusion's
/// parser would keep as a part of the name.
fn list_columns(value: &[&TokenWithSpan]) -> String {
    let names = value
        .iter()
        .filter(|t| matches!(t.token, Token::Word(_) | Token::SingleQuotedString(_)))
        .map(|t| format_plain_text(&t.token));
    names.collect::<Vec<String>>().join(", ")
}

/// Returns the part of an option's name after its first word: `.has_header` for
/// `format.has_header 'true'`.
fn format_option_suffix(value: &[&TokenWithSpan]) -> String {
    let name = value.split_last().map_or(value, |(_, name)| name);
    name.iter().map(|t| t.token.to_string()).collect()
}

fn find_last_value(name: &str, value: &[&TokenWithSpan]) -> Result<String> {
    match value.last() {
        Some(value) => Ok(quote_text(&format_plain_text(&value.token))),
        None => plan_err!(
            "the option {name} of COPY has no value; write its name and its value, as in (HEADER true)"
        ),
    }
}

fn parse_flag(option: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" | "yes" => Ok(true),
        "false" | "off" | "0" | "no" => Ok(false),
        _ => plan_err!("the option {option} of COPY must be true or false, not '{value}'"),
    }
}

fn format_plain_text(token: &Token) -> String {
    match token {
        Token::SingleQuotedString(text)
        | Token::DoubleQuotedString(text)
        | Token::EscapedStringLiteral(text) => text.clone(),
        Token::Word(word) => word.value.clone(),
        other => other.to_string(),
    }
}

/// Adds a suggestion to a parser error about options of COPY that use the syntax of another engine.
pub(in crate::sql::statement) fn suggest_options(
    text: &str,
    e: DataFusionError,
) -> DataFusionError {
    let message = match e.find_root() {
        DataFusionError::SQL(e, _) => e.to_string(),
        _ => return e,
    };
    let copies = text.split_whitespace().any(|word| word.eq_ignore_ascii_case("COPY"));
    // The parser reports `found: (` for options written as `(FORMAT csv, HEADER)` or
    // `WITH (HEADER)`.
    if !copies || !message.contains("found: (") {
        return e;
    }
    let message = message.trim_start_matches("sql parser error: ");
    plan_datafusion_err!(
        "{message}; write the options of COPY as in COPY .. TO 'x.csv' OPTIONS (format.has_header true), and choose the format by the file extension or as in COPY .. TO 'x' STORED AS CSV"
    )
}

/// Rewrites `STORED AS BATCHES (..)` to `STORED AS BATCHES OPTIONS (..)`.
pub(in crate::sql::statement) fn add_batches_options<'a>(
    text: &'a str,
    dialect: &dyn Dialect,
) -> Cow<'a, str> {
    if !text.to_ascii_lowercase().contains(BATCHES) {
        return Cow::Borrowed(text);
    }
    let Some(tokens) = read_tokens(text, dialect) else { return Cow::Borrowed(text) };
    let mut places = Vec::new();
    for four in tokens.windows(4) {
        if let [stored, alias, batches, open] = four
            && is_word(&stored.token, "stored")
            && is_word(&alias.token, "as")
            && is_word(&batches.token, BATCHES)
            && open.token == Token::LParen
        {
            places.push((open.span.start.line, open.span.start.column));
        }
    }
    if places.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + places.len() * 8);
    for (line, number) in text.split_inclusive('\n').zip(1u64..) {
        for (c, column) in line.chars().zip(1u64..) {
            if places.contains(&(number, column)) {
                out.push_str(" OPTIONS ");
            }
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::sqlparser::dialect::DuckDbDialect;

    use super::*;

    fn rewrite(text: &str) -> String {
        list_known_options(text, &DuckDbDialect {}).unwrap().into_owned()
    }

    #[test]
    fn options_become_clauses() {
        for (written, rewritten) in [
            ("COPY t TO 'x' (FORMAT parquet)", "COPY t TO 'x' STORED AS parquet "),
            (
                "COPY (SELECT 'to (' AS a) TO 'x.csv' WITH (HEADER, DELIM ';', NULLSTR 'it''s');",
                "COPY (SELECT 'to (' AS a) TO 'x.csv' OPTIONS (format.has_header 'true', format.delimiter ';', format.null_value 'it''s');",
            ),
            (
                "copy t to 'x' (format 'parquet',\n compression zstd, row_group_size 10, partition_by (a, b), overwrite_or_ignore true)",
                "copy t to 'x' STORED AS parquet PARTITIONED BY (a, b) OPTIONS (format.max_row_group_size '10', overwrite 'true', format.compression 'zstd(3)')\n",
            ),
            (
                "COPY t TO 'x' (FORMAT csv, COMPRESSION none, HEADER false)",
                "COPY t TO 'x' STORED AS csv OPTIONS (format.has_header 'false')",
            ),
            (
                "COPY t TO 'x.csv' (HEADER 1, OVERWRITE 0)",
                "COPY t TO 'x.csv' OPTIONS (format.has_header 'true', overwrite 'false')",
            ),
            (
                "COPY t TO 'x.csv' (format.has_header false)",
                "COPY t TO 'x.csv' OPTIONS (format.has_header 'false')",
            ),
        ] {
            assert_eq!(rewrite(written), rewritten, "{written}");
        }
        for same in [
            "SELECT 'COPY t TO x (FORMAT csv)'",
            "COPY t TO 'x.csv' OPTIONS (format.has_header true)",
            "COPY t TO 'x' STORED AS CSV OPTIONS (overwrite true)",
            "COPY t TO",
        ] {
            assert_eq!(rewrite(same), same);
        }
        for (written, named) in [
            ("COPY t TO 'x' (FILE_SIZE_BYTES 3)", "FILE_SIZE_BYTES"),
            ("COPY t TO 'x.parquet' (COMPRESSION_LEVEL 3)", "COMPRESSION_LEVEL"),
            ("COPY t TO 'x.csv' (COMPRESSION gzip, COMPRESSION_LEVEL 3)", "COMPRESSION_LEVEL"),
            ("COPY t TO 'x' (FORMAT csv, COMPRESSION gzip)", "for Parquet files only"),
            ("COPY t TO 'x' (FORMAT json, DATEFORMAT '%d')", "DATEFORMAT of COPY applies only"),
            ("COPY t TO 'x.json' (timestampformat '%d')", "not to the format json"),
            ("COPY t TO 'x.parquet' (HEADER)", "HEADER of COPY applies only"),
            ("COPY t TO 'x.csv' (HEADER, header false)", "header of COPY is given twice"),
            ("COPY t TO 'x' (FORMAT csv, FORMAT parquet)", "FORMAT of COPY is given twice"),
            (
                "COPY t TO 'x.csv' (HEADER maybe)",
                "HEADER of COPY must be true or false, not 'maybe'",
            ),
        ] {
            let refused = list_known_options(written, &DuckDbDialect {});
            assert!(refused.unwrap_err().to_string().contains(named), "{written}");
        }
    }
}
