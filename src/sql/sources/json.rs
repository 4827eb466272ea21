//! Infers the columns of JSON files, which have one of two forms: one record per line, or a list of
//! records.

use std::any::Any;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::json::reader::{ValueIter, infer_json_schema_from_iterator};
use bytes::Buf;
use datafusion::catalog::Session;
use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfig, FileScanConfigBuilder, FileSource, JsonSource,
};
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::Partitioning;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{GetResultPayload, ObjectMeta, ObjectStore, ObjectStoreExt};
use serde_json::Value;

use crate::sql::base::blocking::run_blocking;
use crate::sql::sources::json_scan::{ListReader, skip_mark};
use crate::sql::sources::urls::format_location;

/// Changes a JSON format so that it infers the schema from all records, unless the statement limits
/// the number of records. The reader ignores fields that are not in the schema and fractions in
/// columns of integers, so a schema of the first records would lose later values (test
/// `stock_late_fields_of_json_are_still_lost`).
pub(in crate::sql) fn infer_all(format: Arc<dyn FileFormat>) -> Arc<dyn FileFormat> {
    let any: &dyn Any = format.as_ref();
    match any.downcast_ref::<JsonFormat>().map(JsonFormat::options) {
        Some(options) if options.schema_infer_max_rec.is_none() => {
            let json = JsonFormat::default().with_options(options.clone());
            Arc::new(json.with_schema_infer_max_rec(usize::MAX))
        }
        _ => format,
    }
}

/// Infers one schema for files of records, one per line if `has_lines`; it has the columns of all
/// files. A column of numbers is Float64 if a number in any file has a fraction; the same rule
/// holds within one file.
///
/// # Errors
/// If a file is not JSON, or if no column type can hold all values of a field.
pub(in crate::sql) async fn infer_records(
    json: &JsonFormat,
    has_lines: bool,
    state: &dyn Session,
    store: &Arc<dyn ObjectStore>,
    objects: &[ObjectMeta],
) -> Result<SchemaRef> {
    let options = json.options();
    let compression = FileCompressionType::from(options.compression);
    let limit = options.schema_infer_max_rec.unwrap_or(usize::MAX);
    // A limit counts the records of all files together, so under a limit files are read one by one.
    let parallel = match limit {
        usize::MAX => state.config().target_partitions().max(1),
        _ => 1,
    };
    let left = Arc::new(AtomicUsize::new(limit));
    let inferred = stream::iter(objects.to_vec()).map(|object| {
        let (store, left) = (Arc::clone(store), Arc::clone(&left));
        async move {
            let most = left.load(Ordering::Relaxed);
            if most == 0 {
                return Ok::<_, DataFusionError>((object, Fields::empty()));
            }
            let (fields, read) = infer_file(&store, &object, compression, has_lines, most).await?;
            left.store(most.saturating_sub(read), Ordering::Relaxed);
            Ok((object, fields))
        }
    });
    let mut inferred = inferred.buffered(parallel);
    let mut fields = Fields::empty();
    while let Some(one) = inferred.next().await {
        let (object, of_file): (ObjectMeta, Fields) = one?;
        fields = unite_fields(&fields, &of_file).map_err(|difference| {
            plan_datafusion_err!(
                "{}: {difference}; write the column with one type, or read this file as a separate table",
                format_location(&object.location)
            )
        })?;
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// Infers columns from up to `most` records of a file, and counts these records, on another thread.
/// `has_lines` is whether the file has one record per line.
async fn infer_file(
    store: &Arc<dyn ObjectStore>,
    object: &ObjectMeta,
    compression: FileCompressionType,
    has_lines: bool,
    most: usize,
) -> Result<(Fields, usize)> {
    let answer = store.get(&object.location).await?;
    let reader: Box<dyn Read + Send> = match answer.payload {
        GetResultPayload::File(file, _) => compression.convert_read(file)?,
        GetResultPayload::Stream(_) => compression.convert_read(answer.bytes().await?.reader())?,
    };
    // A cancelled statement drops this future, and with it `running`. The thread that reads the
    // file then stops at the next record, because it checks `watched`.
    let running = Arc::new(());
    let watched = Arc::downgrade(&running);
    let infer = move || {
        let reader: Box<dyn BufRead> = match has_lines {
            true => Box::new(BufReader::new(skip_mark(reader)?)),
            false => Box::new(ListReader::try_new(reader)?),
        };
        let mut read = 0usize;
        let records = ValueIter::new(reader, None).take(most);
        let records = records.take_while(|_| watched.strong_count() > 0).map(|record| {
            read = read.saturating_add(1);
            record.map(|mut value| {
                omit_nulls(&mut value);
                value
            })
        });
        let schema = infer_json_schema_from_iterator(records)?;
        Ok::<_, ArrowError>((schema.fields, read))
    };
    let location = object.location.clone();
    let infer =
        move || infer().map_err(|e| plan_datafusion_err!("{}: {e}", format_location(&location)));
    let inferred = run_blocking(infer).await;
    drop(running);
    inferred
}

/// Maximum number of bytes that are read from the start of a file to find the columns of its first
/// records.
const START_BYTES: u64 = 1 << 20;

/// Infers columns from the records in the first megabyte of a file. `has_lines` is whether the file
/// has one record per line.
///
/// # Errors
/// If the file cannot be read, or if no column type can hold all values of a field.
pub(in crate::sql) async fn infer_start(
    json: &JsonFormat,
    has_lines: bool,
    store: &Arc<dyn ObjectStore>,
    object: &ObjectMeta,
) -> Result<SchemaRef> {
    let bytes = store.get_range(&object.location, 0..object.size.min(START_BYTES)).await?;
    let compression = FileCompressionType::from(json.options().compression);
    let reader = compression.convert_read(bytes.reader())?;
    let reader: Box<dyn BufRead> = match has_lines {
        true => Box::new(BufReader::new(skip_mark(reader)?)),
        false => Box::new(ListReader::try_new(reader)?),
    };
    // The last of these records may be cut, so records are read up to the first error.
    let records = ValueIter::new(reader, None).map_while(std::result::Result::ok);
    let records = records.map(|mut value| {
        omit_nulls(&mut value);
        Ok::<Value, ArrowError>(value)
    });
    Ok(Arc::new(infer_json_schema_from_iterator(records)?))
}

/// Removes NULL from lists. Arrow's inference treats NULL in a list as a scalar, so that `[{"a":
/// 1}, null]` is an error (test `stock_lists_of_structs_with_null_still_fail`). No type is lost,
/// because inferred fields are nullable in any case.
fn omit_nulls(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.retain(|item| !item.is_null());
            items.iter_mut().for_each(omit_nulls);
        }
        Value::Object(fields) => fields.values_mut().for_each(omit_nulls),
        _ => {}
    }
}

/// Returns the fields of `a`, then the fields that only `b` has. A field that both have gets a type
/// that holds the values of both. If there is no such type, the error names the field.
fn unite_fields(a: &Fields, b: &Fields) -> std::result::Result<Fields, String> {
    let mut united: Vec<FieldRef> = a.iter().map(Arc::clone).collect();
    let places: HashMap<&str, usize> =
        a.iter().enumerate().map(|(at, field)| (field.name().as_str(), at)).collect();
    for field in b {
        let place = places.get(field.name().as_str());
        let Some(known) = place.and_then(|at| united.get_mut(*at)) else {
            united.push(Arc::clone(field));
            continue;
        };
        let data_type = unite_types(known.data_type(), field.data_type()).ok_or_else(|| {
            format!(
                "the column '{}' has the type {}, but {} in the files before it",
                field.name(),
                field.data_type(),
                known.data_type()
            )
        })?;
        *known = Arc::new(known.as_ref().clone().with_data_type(data_type));
    }
    Ok(united.into())
}

fn unite_types(a: &DataType, b: &DataType) -> Option<DataType> {
    Some(match (a, b) {
        (a, b) if a == b => a.clone(),
        (DataType::Null, other) | (other, DataType::Null) => other.clone(),
        (DataType::Int64, DataType::Float64) | (DataType::Float64, DataType::Int64) => {
            DataType::Float64
        }
        (DataType::List(a), DataType::List(b)) => {
            let data_type = unite_types(a.data_type(), b.data_type())?;
            DataType::List(Arc::new(a.as_ref().clone().with_data_type(data_type)))
        }
        (DataType::Struct(a), DataType::Struct(b)) => DataType::Struct(unite_fields(a, b).ok()?),
        // Scalars of different types become text, as within one file.
        (a, b) if !a.is_nested() && !b.is_nested() => DataType::Utf8,
        _ => return None,
    })
}

/// Returns a format that reads a JSON file as one list of records. Returns `None` unless `format`
/// reads uncompressed records line by line: for a compressed file, the first byte does not show
/// whether the file is a list.
pub(in crate::sql) fn as_array(format: &Arc<dyn FileFormat>) -> Option<Arc<dyn FileFormat>> {
    let any: &dyn Any = format.as_ref();
    let json = any.downcast_ref::<JsonFormat>()?;
    let plain = !format.compression_type().is_some_and(|c| c.is_compressed());
    (plain && json.is_newline_delimited()).then(|| {
        let options = json.options().clone();
        let array = JsonFormat::default().with_options(options).with_newline_delimited(false);
        Arc::new(array) as Arc<dyn FileFormat>
    })
}

/// Whether files are lists of records. Returns an error if the files have both forms.
pub(in crate::sql) async fn are_arrays(
    state: &dyn Session,
    store: &Arc<dyn ObjectStore>,
    objects: &[ObjectMeta],
) -> Result<bool> {
    let parallel = state.config_options().execution.meta_fetch_concurrency.get();
    let forms: Vec<bool> = stream::iter(objects.to_vec())
        .map(|object| {
            let store = Arc::clone(store);
            async move { is_array(&store, &object).await }
        })
        .buffered(parallel)
        .try_collect()
        .await?;
    let find = |form| forms.iter().position(|f| *f == form).and_then(|i| objects.get(i));
    match (find(true), find(false)) {
        (Some(list), Some(lines)) => plan_err!(
            "{} is a list of records, but {} has one record per line; convert one of them, because all files of a table must have the same form",
            format_location(&list.location),
            format_location(&lines.location)
        ),
        (list, _) => Ok(list.is_some()),
    }
}

/// Whether the first character of a file opens a list.
async fn is_array(store: &Arc<dyn ObjectStore>, object: &ObjectMeta) -> Result<bool> {
    const PIECE: u64 = 1024;
    let mut start = 0;
    while start < object.size {
        let end = object.size.min(start + PIECE);
        let bytes = store.get_range(&object.location, start..end).await?;
        let text = bytes.strip_prefix(b"\xEF\xBB\xBF".as_slice()).unwrap_or(&bytes);
        if let Some(first) = text.iter().find(|b| !b.is_ascii_whitespace()) {
            return Ok(*first == b'[');
        }
        start = end;
    }
    Ok(false)
}

/// Changes a JSON scan to read lists of records if its first file is such a list. Returns the scan,
/// and whether it reads one record per line.
pub(in crate::sql) async fn adapt_scan(
    state: &dyn Session,
    conf: FileScanConfig,
) -> Result<(FileScanConfig, bool)> {
    let file = conf.file_groups.iter().flat_map(FileGroup::iter).next();
    let source = conf.file_source().downcast_ref::<JsonSource>();
    let (Some(file), Some(source)) = (file, source) else { return Ok((conf, true)) };
    let store = state.runtime_env().object_store(&conf.object_store_url)?;
    if !is_array(&store, &file.object_meta).await? {
        return Ok((conf, true));
    }
    let source: Arc<dyn FileSource> = Arc::new(source.clone().with_newline_delimited(false));
    // A list of records cannot be read in byte ranges. So the scan declares its partitioning:
    // DataFusion then does not divide its files.
    let partitions = Partitioning::UnknownPartitioning(conf.file_groups.len());
    let list = FileScanConfigBuilder::from(conf)
        .with_source(source)
        .with_output_partitioning(Some(partitions))
        .build();
    Ok((list, false))
}
