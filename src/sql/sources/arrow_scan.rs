use std::io::Cursor;
use std::sync::Arc;

use arrow::array::{ArrayData, ArrayRef, RecordBatch, make_array};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::ipc::convert::fb_to_schema;
use arrow::ipc::reader::{StreamReader, read_footer_length};
use arrow::ipc::root_as_footer;
use bytes::Bytes;
use datafusion::common::{exec_datafusion_err, exec_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{ArrowOpener, FileOpenFuture, FileOpener};
use datafusion::error::{DataFusionError, Result};
use futures::{StreamExt, stream};
use object_store::path::Path;
use object_store::{GetOptions, GetResultPayload, ObjectMeta, ObjectStore, ObjectStoreExt};
use serrate_core::internal::{build_record_batch, holds_type};

use crate::sql::sources::file_adapter::{FileAdapter, describe_repeated_column};
use crate::sql::sources::format_scan::{FormatScan, ReadFormat, ScannedColumns};
use crate::sql::sources::guarded_source::catch_panics;
use crate::sql::sources::urls::format_location;

/// A scan of Arrow files and streams that finds columns by name. DataFusion's source expects that
/// all files of a table have the Arrow file format or all the stream format, and takes column `i`
/// of a file for column `i` of the table, whatever its name (test
/// `stock_arrow_files_are_still_read_by_position`).
pub(in crate::sql) type ArrowScan = FormatScan<ArrowReader>;

#[derive(Clone)]
pub(in crate::sql) struct ArrowReader;

impl ReadFormat for ArrowReader {
    fn create_opener(&self, wanted: ScannedColumns) -> Arc<dyn FileOpener> {
        Arc::new(NamedOpener { store: wanted.store, wanted: wanted.columns })
    }
}

/// Opens one file or stream, and returns the columns `wanted` of the table.
struct NamedOpener {
    store: Arc<dyn ObjectStore>,
    wanted: SchemaRef,
}

impl FileOpener for NamedOpener {
    fn open(&self, mut file: PartitionedFile) -> Result<FileOpenFuture> {
        let (store, wanted) = (Arc::clone(&self.store), Arc::clone(&self.wanted));
        Ok(Box::pin(async move {
            let location = file.object_meta.location.clone();
            let (form, schema) = read_schema(&store, &file.object_meta).await?;
            let mut columns = find_columns(&location, &wanted, &schema)?;
            columns.sort_unstable();
            let read = Arc::new(schema.project(&columns)?);
            let adapter = FileAdapter::try_new(&location, &wanted, &read)?;
            let opener = match form {
                ArrowForm::File => ArrowOpener::new_file_opener(store, Some(columns)),
                ArrowForm::Stream => {
                    // A stream cannot be read in ranges of bytes, so the first range reads all of
                    // it.
                    if file.range.take().is_some_and(|range| range.start > 0) {
                        return Ok(stream::empty().boxed());
                    }
                    ArrowOpener::new_stream_file_opener(store, Some(columns))
                }
            };
            let batches = opener.open(file)?.await?;
            Ok(batches.map(move |batch| adapter.adapt_batch(&mask_null_keys(batch?)?)).boxed())
        }))
    }
}

/// Sets each dictionary key that refers to a NULL value to NULL, also in lists and structs.
///
/// Arrow and DataFusion test only the keys for NULL: for a NULL value of a dictionary column `d`,
/// `length(d)` would be 0, and the value would be `""` in JSON.
fn mask_null_keys(batch: RecordBatch) -> Result<RecordBatch> {
    if !batch.schema().fields().iter().any(|field| has_dictionary(field.data_type())) {
        return Ok(batch);
    }
    let columns = batch.columns().iter().map(|column| match has_dictionary(column.data_type()) {
        true => mark_null_keys(column.to_data()).map(make_array),
        false => Ok(Arc::clone(column)),
    });
    let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
    Ok(build_record_batch(batch.schema(), columns, batch.num_rows())?)
}

fn has_dictionary(t: &DataType) -> bool {
    holds_type(t, |t| matches!(t, DataType::Dictionary(..)))
}

fn mark_null_keys(data: ArrayData) -> Result<ArrayData> {
    if matches!(data.data_type(), DataType::Dictionary(..)) {
        let [values] = data.child_data() else { return Ok(data) };
        if values.null_count() == 0 {
            return Ok(data);
        }
        let nulls = make_array(data.clone()).logical_nulls();
        return Ok(data.into_builder().nulls(nulls).build()?);
    }
    if !has_dictionary(data.data_type()) {
        return Ok(data);
    }
    let children = data.child_data().iter().cloned().map(mark_null_keys);
    let children = children.collect::<Result<Vec<_>>>()?;
    Ok(data.into_builder().child_data(children).build()?)
}

/// Returns, for each of the columns `wanted` that a file has, the index of the column in the file.
fn find_columns(file: &Path, wanted: &SchemaRef, schema: &SchemaRef) -> Result<Vec<usize>> {
    let mut columns = Vec::with_capacity(wanted.fields().len());
    for field in wanted.fields() {
        let named = |at: &usize| schema.fields().get(*at).is_some_and(|f| f.name() == field.name());
        let mut places = (0..schema.fields().len()).filter(named);
        columns.extend(places.next());
        if places.next().is_some() {
            return exec_err!("{}", describe_repeated_column(file, field.name()));
        }
    }
    Ok(columns)
}

/// Returns the common schema of Arrow files and streams in an object store, or `None` if the store
/// is the local file system.
///
/// DataFusion reads an Arrow file in an object store as a stream, and expects its schema 8 bytes
/// after the start. Arrow's writers put it after 64 bytes (test
/// `stock_arrow_objects_still_have_no_schema`).
pub(in crate::sql) async fn infer_objects(
    store: &Arc<dyn ObjectStore>,
    objects: &[ObjectMeta],
) -> Result<Option<SchemaRef>> {
    let Some(first) = objects.first() else { return Ok(None) };
    let options = GetOptions::new().with_range(Some(0u64..1));
    let found = store.get_opts(&first.location, options).await?;
    if matches!(found.payload, GetResultPayload::File(..)) {
        return Ok(None);
    }
    let mut schemas = Vec::with_capacity(objects.len());
    for object in objects {
        let (_, schema) = catch_panics(&object.location, read_schema(store, object)).await?;
        schemas.push(schema.as_ref().clone());
    }
    Ok(Some(Arc::new(Schema::try_merge(schemas)?)))
}

enum ArrowForm {
    File,
    Stream,
}

/// Magic bytes at the start and at the end of a file.
const MAGIC: &[u8] = b"ARROW1";
/// Number of bytes at the end of a file: 4 for the length of the footer, and 6 magic bytes.
const TAIL_BYTES: u64 = 10;
/// Continuation marker before the length of a message, absent in old streams.
const MARKER: [u8; 4] = [0xff; 4];

async fn read_schema(
    store: &Arc<dyn ObjectStore>,
    meta: &ObjectMeta,
) -> Result<(ArrowForm, SchemaRef)> {
    let damaged = || {
        exec_datafusion_err!(
            "{}: the file is damaged, because its schema lies outside the file; create it again",
            format_location(&meta.location)
        )
    };
    let read = async |start: u64, end: u64| -> Result<Bytes> {
        if start > end || end > meta.size {
            return Err(damaged());
        }
        Ok(store.get_range(&meta.location, start..end).await?)
    };
    let first = read(0, meta.size.min(8)).await?;
    if first.starts_with(MAGIC) {
        let footer_end = meta.size.checked_sub(TAIL_BYTES).ok_or_else(damaged)?;
        let tail = read(footer_end, meta.size).await?;
        let tail = tail.as_ref().try_into().map_err(|_| damaged())?;
        let length = u64::try_from(read_footer_length(tail)?).map_err(|_| damaged())?;
        let start = footer_end.checked_sub(length).ok_or_else(damaged)?;
        let footer = read(start, footer_end).await?;
        let footer = root_as_footer(&footer).map_err(|_| damaged())?;
        let schema = fb_to_schema(footer.schema().ok_or_else(damaged)?);
        return Ok((ArrowForm::File, Arc::new(schema)));
    }
    let numbers: [u8; 8] = first.as_ref().try_into().map_err(|_| damaged())?;
    let [a, b, c, d, e, f, g, h] = numbers;
    let (head, length) = match [a, b, c, d] {
        MARKER => (8, [e, f, g, h]),
        length => (4, length),
    };
    let length = u64::try_from(i32::from_le_bytes(length)).map_err(|_| damaged())?;
    let message = read(0, head + length).await?;
    let reader =
        StreamReader::try_new(Cursor::new(message), None).map_err(DataFusionError::from)?;
    Ok((ArrowForm::Stream, reader.schema()))
}
