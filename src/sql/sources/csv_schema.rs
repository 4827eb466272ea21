//! Finds the columns of CSV files: their names in the headers, and their types by the first
//! records.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::csv::ReaderBuilder;
use arrow::csv::reader::Format;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::config::CsvOptions;
use datafusion::common::{exec_datafusion_err, plan_datafusion_err, plan_err};
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::error::{DataFusionError, Result};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use regex::Regex;
use serrate_core::internal::find_repeated;

use crate::sql::sources::csv_records::RecordSplitter;
use crate::sql::sources::exact_texts::names_zone;
use crate::sql::sources::file_adapter::describe_repeated_column;
use crate::sql::sources::merged_schemas::merge_schemas;
use crate::sql::sources::urls::format_location;

/// Returns the options for reading a format. Takes `has_header` and `newlines_in_values` from the
/// session if the statement does not set them. Converts `null_value`, which DataFusion's reader
/// ignores, to a `null_regex` such as `^NA$`, unless the statement sets `null_regex`.
pub(in crate::sql) fn resolve_options(csv: &CsvFormat, state: &dyn Session) -> CsvOptions {
    let catalog = &state.config_options().catalog;
    let mut options = csv.options().clone();
    options.has_header = Some(options.has_header.unwrap_or(catalog.has_header));
    options.newlines_in_values =
        Some(options.newlines_in_values.unwrap_or(catalog.newlines_in_values));
    if let (None, Some(null)) = (&options.null_regex, &options.null_value)
        && !null.is_empty()
    {
        options.null_regex = Some(format!("^{}$", regex::escape(null)));
    }
    options
}

/// Returns an error for an invalid `null_regex`, with which DataFusion would panic, for a
/// `compression_level` without compression, which DataFusion would ignore, and for a delimiter that
/// is also the quote or the escape character: the fields of such a file would be ambiguous.
pub(in crate::sql) fn check_options(options: &CsvOptions) -> Result<()> {
    if let Some(pattern) = &options.null_regex {
        parse_null_regex(pattern)?;
    }
    let compression = FileCompressionType::from(options.compression);
    if options.compression_level.is_some() && !compression.is_compressed() {
        return plan_err!(
            "the option compression_level of CSV has no effect without compression; remove it, or set the option compression"
        );
    }
    let characters = [("quote", Some(options.quote)), ("escape", options.escape)];
    let mut same = characters.iter().filter(|(_, byte)| *byte == Some(options.delimiter));
    if let Some((name, _)) = same.next() {
        return plan_err!(
            "the options delimiter and {name} of CSV are the same character '{}', so the ends of values could not be found; choose another character for one of them",
            char::from(options.delimiter)
        );
    }
    Ok(())
}

pub(in crate::sql) fn parse_null_regex(pattern: &str) -> Result<Regex> {
    Regex::new(pattern).map_err(|e| {
        plan_datafusion_err!(
            "the option null_regex of CSV is '{pattern}', which is not a valid regular expression; correct it: {e}"
        )
    })
}

/// Whether each file has a header that names all of its columns. False with the option
/// `truncated_rows`: later records may then have more columns than the header.
pub(in crate::sql) fn has_names(options: &CsvOptions) -> bool {
    options.has_header == Some(true) && options.truncated_rows != Some(true)
}

/// Maximum number of records of a file that determine the types of columns. `MAX_RECORDS_OF_ALL` is
/// the maximum of all files together.
const MAX_RECORDS: usize = 1000;
const MAX_RECORDS_OF_ALL: usize = 16_000;
/// Minimum number of records that are read from each file, however many files there are.
const FEWEST_RECORDS: usize = 64;

/// Infers the schema of CSV files: all columns of their headers. A column without values gets the
/// type text. After a thousand records, DataFusion reads no further files. It gives a column
/// without values the type Null, and its reader ignores all later values of such a column (test
/// `stock_columns_that_begin_empty_still_stay_empty`).
pub(in crate::sql) async fn infer_csv_schema(
    csv: &CsvFormat,
    state: &dyn Session,
    store: &Arc<dyn ObjectStore>,
    objects: &[ObjectMeta],
) -> Result<SchemaRef> {
    let options = resolve_options(csv, state);
    check_options(&options)?;
    let most = options.schema_infer_max_rec.unwrap_or(MAX_RECORDS);
    let share = MAX_RECORDS_OF_ALL / objects.len().max(1);
    let records = most.min(share.max(FEWEST_RECORDS));
    let compression = options.compression.into();
    let execution = &state.config_options().execution;
    let parallel = execution.meta_fetch_concurrency.get();
    let zone: Arc<str> = execution.time_zone.as_deref().unwrap_or("UTC").into();
    let schemas: Vec<SchemaRef> = stream::iter(objects.to_vec())
        .map(|object| {
            let (store, options, zone) = (Arc::clone(store), options.clone(), Arc::clone(&zone));
            async move {
                let start = read_start(&store, &object, compression, &options, records).await?;
                set_zones(start, &options, &zone)
            }
        })
        .buffered(parallel)
        .try_collect()
        .await?;
    if has_names(&options) {
        check_headers(objects, &schemas)?;
    }
    let schema = match schemas.as_slice() {
        [schema] => Arc::clone(schema),
        schemas => merge_schemas(objects, schemas, |a, b| {
            let data_type = unite_types(a.data_type(), b.data_type());
            Some(Arc::new(a.as_ref().clone().with_data_type(data_type)))
        })?,
    };
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Null => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)),
        _ => Arc::clone(field),
    });
    Ok(Arc::new(Schema::new(fields.collect::<Vec<FieldRef>>())))
}

/// Returns an error if the header of a file repeats a name, or has no name in common with the
/// headers of the earlier files.
fn check_headers(objects: &[ObjectMeta], schemas: &[SchemaRef]) -> Result<()> {
    let mut seen: HashSet<&str> = HashSet::new();
    for (object, schema) in objects.iter().zip(schemas) {
        let header: Vec<&String> = schema.fields().iter().map(|field| field.name()).collect();
        let is_strange = !header.iter().any(|name| seen.contains(name.as_str()));
        if !seen.is_empty() && !header.is_empty() && is_strange {
            return plan_err!(
                "{}: the header has {}, none of which is a column of the files before it; read the file as a separate table, or set has_header to false if the files have no header",
                format_location(&object.location),
                list_names(header.into_iter())
            );
        }
        if let Some(name) = find_repeated(header.iter().copied()) {
            return plan_err!("{}", describe_repeated_column(&object.location, name));
        }
        seen.extend(header.iter().map(|name| name.as_str()));
    }
    Ok(())
}

pub(in crate::sql) fn list_names<'a>(names: impl Iterator<Item = &'a String>) -> String {
    names.map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

/// Returns the type that would be inferred if the values of two files were in one file.
fn unite_types(a: &DataType, b: &DataType) -> DataType {
    use DataType::{Date32, Float64, Int64, Null, Timestamp, Utf8};
    match (a, b) {
        (a, b) if a == b => a.clone(),
        (Null, other) | (other, Null) => other.clone(),
        (Int64, Float64) | (Float64, Int64) => Float64,
        (Date32, Timestamp(unit, zone)) | (Timestamp(unit, zone), Date32) => {
            Timestamp(*unit, zone.clone())
        }
        (Timestamp(a, zone), Timestamp(b, other)) => {
            Timestamp(*a.max(b), zone.as_ref().or(other.as_ref()).cloned())
        }
        _ => Utf8,
    }
}

/// Maximum bytes read from the start of a file to find its columns and types.
const MOST_BYTES: usize = 64 << 20;

/// Returns the names in the header of a file, or no names for an empty file.
pub(in crate::sql) async fn read_header(
    store: &Arc<dyn ObjectStore>,
    meta: &ObjectMeta,
    compression: FileCompressionType,
    options: &CsvOptions,
) -> Result<Vec<String>> {
    let FileStart { schema, .. } = read_start(store, meta, compression, options, 0).await?;
    Ok(schema.fields().iter().map(|f| f.name().clone()).collect())
}

/// The header and the first records of a file, and its columns with the types of these records.
struct FileStart {
    text: Vec<u8>,
    schema: Schema,
}

/// Reads the start of a file, up to the end of record `records`.
async fn read_start(
    store: &Arc<dyn ObjectStore>,
    meta: &ObjectMeta,
    compression: FileCompressionType,
    options: &CsvOptions,
    records: usize,
) -> Result<FileStart> {
    let bytes = store.get(&meta.location).await?.into_stream().map_err(DataFusionError::from);
    let mut bytes = compression.convert_stream(bytes.boxed())?;
    let (mut start, mut ends) = (Vec::new(), RecordSplitter::new(options));
    let wanted = match options.has_header {
        Some(true) => records.saturating_add(1),
        _ => records.max(1),
    };
    while start.len() < MOST_BYTES {
        let Some(more) = bytes.next().await else { break };
        let more = more?;
        let end = ends.read_records(&more, wanted);
        start.extend_from_slice(more.get(..end.unwrap_or(more.len())).unwrap_or_default());
        if end.is_some() {
            break;
        }
    }
    let (schema, _) = make_csv_format(options)?.infer_schema(start.as_slice(), Some(records)).map_err(|e| {
        exec_datafusion_err!(
            "{}: the first records of the CSV file cannot be read; correct them or the options of the table: {e}",
            format_location(&meta.location)
        )
    })?;
    Ok(FileStart { text: start, schema })
}

/// Gives a column of times the zone `zone` if any of its first values has a zone or an offset, such
/// as `2020-01-01T00:00:00+02:00`. Arrow infers a type without a zone and drops the offsets, so the
/// column would be compared and displayed as local times (test
/// `stock_offsets_in_csv_files_are_still_dropped`).
fn set_zones(start: FileStart, options: &CsvOptions, zone: &Arc<str>) -> Result<SchemaRef> {
    let fields = start.schema.fields();
    let is_time = |field: &FieldRef| matches!(field.data_type(), DataType::Timestamp(_, None));
    let times: Vec<usize> = (0..fields.len()).filter(|at| is_time(&fields[*at])).collect();
    if times.is_empty() {
        return Ok(Arc::new(start.schema));
    }
    let as_text = |field: &FieldRef| Field::new(field.name(), DataType::Utf8, true);
    let texts = Arc::new(Schema::new(fields.iter().map(as_text).collect::<Vec<_>>()));
    let records = ReaderBuilder::new(texts)
        .with_format(make_csv_format(options)?)
        .with_projection(times.clone())
        .build(start.text.as_slice())?;
    let mut has_zone = vec![false; times.len()];
    for batch in records {
        let batch = batch?;
        for (found, column) in has_zone.iter_mut().zip(batch.columns()) {
            *found |= column.as_string::<i32>().iter().flatten().any(names_zone);
        }
    }
    let mut fields: Vec<FieldRef> = fields.iter().map(Arc::clone).collect();
    for at in times.into_iter().zip(has_zone).filter_map(|(at, found)| found.then_some(at)) {
        if let DataType::Timestamp(unit, _) = fields[at].data_type() {
            let data_type = DataType::Timestamp(*unit, Some(Arc::clone(zone)));
            fields[at] = Arc::new(fields[at].as_ref().clone().with_data_type(data_type));
        }
    }
    Ok(Arc::new(Schema::new(fields)))
}

fn make_csv_format(options: &CsvOptions) -> Result<Format> {
    let mut format = Format::default()
        .with_header(options.has_header == Some(true))
        .with_delimiter(options.delimiter)
        .with_quote(options.quote)
        .with_truncated_rows(options.truncated_rows == Some(true));
    if let Some(escape) = options.escape {
        format = format.with_escape(escape);
    }
    if let Some(comment) = options.comment {
        format = format.with_comment(comment);
    }
    if let Some(terminator) = options.terminator {
        format = format.with_terminator(terminator);
    }
    if let Some(pattern) = &options.null_regex {
        format = format.with_null_regex(parse_null_regex(pattern)?);
    }
    Ok(format)
}
