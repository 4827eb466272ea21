//! Writes results to standard output or a file, in the requested format.

mod cell;
mod charset;
mod lines;
mod number_texts;
mod result_table;

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::writer::StreamWriter;
use arrow::json::writer::{JsonArray, LineDelimited, WriterBuilder};

use super::arguments::OutputFormat;
use super::command_failure::{Failure, Outcome};
use crate::functions::wrap_words;
use crate::io::arrow_ipc::{IpcTableWriter, IpcWriteOptions};
use serrate_core::internal::arrow_ipc::{as_schema, remove_dictionaries};
use serrate_core::internal::csv::{CsvQuotes, has_text, quote_fields};
use serrate_core::internal::spans::{convert_spans_to_texts, make_span_text_schema};
use serrate_core::internal::{AtomicFile, find_repeated_name};

pub(super) use cell::{cut_to_width, group_digits};
pub(super) use charset::Charset;
pub(super) use number_texts::{
    choose_plural, compute_safe_ratio, format_count, format_percent, format_rounded, format_size,
    to_json_number,
};
pub(super) use result_table::{TableStyle, TextTable, find_terminal_width};

pub(super) struct OutputTarget {
    to: OutputDestination,
    closed: bool,
}

enum OutputDestination {
    Stdout(BufWriter<io::Stdout>),
    /// A file that appears at its path when the output is [committed](OutputTarget::commit).
    File(Box<AtomicFile>),
}

impl OutputTarget {
    pub(super) fn new_stdout() -> Self {
        let out = BufWriter::with_capacity(1 << 16, io::stdout());
        Self { to: OutputDestination::Stdout(out), closed: false }
    }

    pub(super) fn new_file(path: &Path, overwrite: bool) -> crate::error::Result<Self> {
        let file = Box::new(AtomicFile::create(path, overwrite)?);
        Ok(Self { to: OutputDestination::File(file), closed: false })
    }

    pub(super) fn has_file(&self) -> bool {
        matches!(self.to, OutputDestination::File(_))
    }

    /// Whether the reader of standard output closed the pipe, as in `serrate .. | head`. The errors
    /// of Arrow's writers do not show this, so the target itself stores it.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    fn check_result<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        self.closed |= matches!(&result, Err(e) if e.kind() == io::ErrorKind::BrokenPipe);
        match &self.to {
            OutputDestination::Stdout(_) => result,
            OutputDestination::File(file) => result
                .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", file.target().display()))),
        }
    }

    /// Flushes standard output and returns `None`, or moves the output file to its path and returns
    /// the path.
    pub(super) fn commit(self) -> Outcome<Option<PathBuf>> {
        match self.to {
            OutputDestination::Stdout(mut out) => {
                out.flush()?;
                Ok(None)
            }
            OutputDestination::File(file) => {
                let path = file.target().to_path_buf();
                file.commit()?;
                Ok(Some(path))
            }
        }
    }
}

impl Write for OutputTarget {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let result = match &mut self.to {
            OutputDestination::Stdout(out) => out.write(data),
            OutputDestination::File(file) => file.write(data),
        };
        self.check_result(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = match &mut self.to {
            OutputDestination::Stdout(out) => out.flush(),
            OutputDestination::File(file) => file.flush(),
        };
        self.check_result(result)
    }
}

pub(super) enum ResultWriter<'a> {
    /// Stores the rows to show, and writes them at the end, because the widths of the columns
    /// depend on all of these rows.
    Table(result_table::TableWriter, &'a mut OutputTarget),
    Lines(lines::LineWriter, &'a mut OutputTarget),
    Csv(arrow::csv::Writer<&'a mut OutputTarget>),
    /// CSV in which Serrate, not Arrow, puts strings in quotes. Only the quotes distinguish an
    /// empty string, `""`, from NULL, an empty field.
    QuotedCsv(arrow::csv::Writer<&'a mut OutputTarget>),
    Json(arrow::json::Writer<&'a mut OutputTarget, JsonArray>),
    Ndjson(arrow::json::Writer<&'a mut OutputTarget, LineDelimited>),
    /// An IPC stream. Plain columns replace the dictionary columns of a result, because each batch
    /// would have its own dictionary, which not all readers allow within lists. `Some` is the
    /// schema with the plain columns; `None` if the result has no dictionaries.
    ArrowStream(StreamWriter<&'a mut OutputTarget>, Option<SchemaRef>),
    ArrowFile(IpcTableWriter<&'a mut OutputTarget>),
}

/// Returns an error if two columns have the same name: a JSON object would contain this name twice,
/// and readers of JSON keep only one of the values.
fn check_distinct(schema: &SchemaRef) -> Outcome {
    match find_repeated_name(schema.fields()) {
        None => Ok(()),
        Some(twice) => Err(Failure::from_message(format!(
            "the result has two columns named {twice:?}, of which readers of JSON keep only one; rename one of them with AS"
        ))),
    }
}

impl<'a> ResultWriter<'a> {
    pub(super) fn try_new(
        format: OutputFormat,
        schema: &SchemaRef,
        style: &TableStyle,
        out: &'a mut OutputTarget,
    ) -> Outcome<Self> {
        let json = || WriterBuilder::new().with_explicit_nulls(true);
        if matches!(format, OutputFormat::Json | OutputFormat::Ndjson) {
            check_distinct(schema)?;
        }
        Ok(match format {
            OutputFormat::Table => {
                Self::Table(result_table::TableWriter::new(schema.clone(), style.clone()), out)
            }
            OutputFormat::Markdown => Self::Table(
                result_table::TableWriter::new(schema.clone(), TableStyle::new_markdown(style)),
                out,
            ),
            OutputFormat::Line => {
                Self::Lines(lines::LineWriter::new(schema.clone(), style.clone()), out)
            }
            OutputFormat::Csv => {
                let csv = arrow::csv::WriterBuilder::new().with_header(true);
                // Writes an empty batch first, so that a result without rows has a header, too.
                let empty = RecordBatch::new_empty(schema.clone());
                let mut writer = match has_text(&make_span_text_schema(schema)) {
                    true => {
                        let csv = csv.with_quote_style(arrow::csv::QuoteStyle::Never);
                        Self::QuotedCsv(csv.build(out))
                    }
                    false => Self::Csv(csv.build(out)),
                };
                writer.write_rows(&empty)?;
                writer
            }
            OutputFormat::Json => Self::Json(json().build(out)),
            OutputFormat::Ndjson => Self::Ndjson(json().build(out)),
            OutputFormat::Arrow if out.has_file() => {
                Self::ArrowFile(IpcTableWriter::new(out, schema, &IpcWriteOptions::default())?)
            }
            OutputFormat::Arrow => {
                let plain = remove_dictionaries(schema);
                let stream = StreamWriter::try_new(out, &plain)?;
                Self::ArrowStream(stream, (plain != *schema).then_some(plain))
            }
        })
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Outcome {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        self.write_rows(batch)
    }

    fn write_rows(&mut self, batch: &RecordBatch) -> Outcome {
        match self {
            Self::Table(table, _) => table.push(batch),
            Self::Lines(lines, _) => lines.push(batch),
            Self::Csv(csv) => csv.write(batch)?,
            Self::QuotedCsv(csv) => {
                csv.write(&quote_fields(&convert_spans_to_texts(batch)?, &CsvQuotes::default())?)?;
            }
            Self::Json(json) => json.write(&convert_spans_to_texts(batch)?)?,
            Self::Ndjson(json) => json.write(&convert_spans_to_texts(batch)?)?,
            Self::ArrowStream(ipc, None) => ipc.write(batch)?,
            Self::ArrowStream(ipc, Some(plain)) => ipc.write(&as_schema(batch, plain)?)?,
            Self::ArrowFile(ipc) => ipc.write_batch(batch)?,
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Outcome {
        match self {
            Self::Table(table, out) => table.finish(out)?,
            Self::Lines(lines, out) => lines.finish(out)?,
            Self::Csv(csv) | Self::QuotedCsv(csv) => csv.into_inner().flush()?,
            Self::Json(mut json) => {
                json.finish()?;
                let out = json.into_inner();
                out.write_all(b"\n")?;
                out.flush()?;
            }
            Self::Ndjson(mut json) => {
                json.finish()?;
                json.into_inner().flush()?;
            }
            Self::ArrowStream(mut ipc, _) => {
                ipc.finish()?;
                ipc.get_mut().flush()?;
            }
            Self::ArrowFile(ipc) => {
                ipc.into_inner()?.flush()?;
            }
        }
        Ok(())
    }
}

/// Prints a sentence. If the width of the terminal is known, wraps the sentence between words.
pub(super) fn print_sentence(text: &str) -> Outcome {
    print_wrapped(text, 2)
}

/// Prints a line. If the width of the terminal is known, wraps the line between words, and indents
/// all parts but the first by `indent` spaces.
pub(super) fn print_wrapped(line: &str, indent: usize) -> Outcome {
    match find_terminal_width() {
        Some(width) => print_line(&wrap_words(line, width, indent)),
        None => print_line(line),
    }
}

pub(super) fn print_line(line: &str) -> Outcome {
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}

/// Returns the error for a second result that is written to the output file `path`, whose format
/// holds only one. `in_shell` is whether the shell's command `.output` opened the file.
pub(super) fn make_second_result_error(
    format: OutputFormat,
    path: &Path,
    in_shell: bool,
) -> Failure {
    let name = match format {
        OutputFormat::Arrow => "an Arrow file",
        OutputFormat::Csv => "a CSV file",
        _ => "a JSON file",
    };
    let advice = match in_shell {
        true => {
            "begin another file with .output FILE, or write both results to a file that ends in .ndjson"
        }
        false => "use --format ndjson, or COPY each query to its own file",
    };
    Failure::from_message(format!(
        "{name} holds only one result, and {} already has one; {advice}",
        path.display()
    ))
}
