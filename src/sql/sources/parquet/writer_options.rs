//! Checks of the options of DataFusion's Parquet writer. The writer ignores options of columns that
//! a file does not have, panics or never ends for numbers out of range, and panics for encodings
//! that the type of a column does not have.

use datafusion::common::config::{ParquetOptions, TableParquetOptions};
use datafusion::common::plan_err;
use datafusion::datasource::physical_plan::FileSinkConfig;
use datafusion::error::Result;
use datafusion::parquet::arrow::ArrowSchemaConverter;
use datafusion::parquet::basic::Type;
use datafusion::parquet::schema::types::ColumnDescPtr;
use serrate_core::internal::parquet::to_stored_schema;

/// Returns an error that names an option without an effect, or one for which the writer panics.
pub(super) fn check_writer_options(
    options: &TableParquetOptions,
    conf: &FileSinkConfig,
) -> Result<()> {
    check_numbers(&options.global)?;
    check_statistics(options.global.statistics_enabled.as_deref())?;
    let named = &options.column_specific_options;
    for (name, column) in named {
        check_fpp(&format!("bloom_filter_fpp::{name}"), column.bloom_filter_fpp)?;
    }
    if options.global.encoding.is_none() && named.is_empty() {
        return Ok(());
    }
    let columns = find_stored_columns(conf)?;
    check_column_names(options, &columns)?;
    for column in &columns {
        let path = column.path().string();
        let own = named.get(&path).and_then(|options| options.encoding.as_ref());
        let Some(encoding) = own.or(options.global.encoding.as_ref()) else { continue };
        check_encoding(&encoding.to_lowercase(), &path, column.physical_type())?;
    }
    Ok(())
}

/// Returns the leaf columns of the files that `conf` describes.
fn find_stored_columns(conf: &FileSinkConfig) -> Result<Vec<ColumnDescPtr>> {
    let schema = to_stored_schema(conf.output_schema())?;
    let stored = ArrowSchemaConverter::new().convert(&schema)?;
    let is_folder = |column: &ColumnDescPtr| {
        let path = column.path().string();
        !conf.keep_partition_by_columns
            && conf.table_partition_cols.iter().any(|(name, _)| *name == path)
    };
    Ok(stored.columns().iter().filter(|column| !is_folder(column)).cloned().collect())
}

/// Returns an error if an option such as `compression::a` names a column that the files do not
/// have.
fn check_column_names(options: &TableParquetOptions, columns: &[ColumnDescPtr]) -> Result<()> {
    let columns: Vec<String> = columns.iter().map(|column| column.path().string()).collect();
    let named = options.column_specific_options.keys();
    match named.filter(|name| !columns.contains(name)).min() {
        None => Ok(()),
        Some(name) => plan_err!(
            "an option of PARQUET names the column '{name}', as in format.compression::{name}, but the columns of the files are {}; name one of these, which must be in lower case",
            columns.join(", ")
        ),
    }
}

fn check_numbers(set: &ParquetOptions) -> Result<()> {
    if set.max_row_group_size == 0 {
        return plan_err!(
            "the option max_row_group_size (row_group_size) of PARQUET must be at least 1 row, not 0"
        );
    }
    let counts = [
        // The writer would never end: it writes batches of this many values.
        ("write_batch_size", Some(set.write_batch_size)),
        ("column_index_truncate_length", set.column_index_truncate_length),
        ("statistics_truncate_length", set.statistics_truncate_length),
        ("maximum_parallel_row_group_writers", Some(set.maximum_parallel_row_group_writers)),
        (
            "maximum_buffered_record_batches_per_stream",
            Some(set.maximum_buffered_record_batches_per_stream),
        ),
    ];
    if let Some((name, _)) = counts.into_iter().find(|(_, count)| *count == Some(0)) {
        return plan_err!("the option {name} of PARQUET must be at least 1, not 0");
    }
    check_fpp("bloom_filter_fpp", set.bloom_filter_fpp)?;
    let chunks = &set.content_defined_chunking;
    if chunks.enabled
        && (chunks.min_chunk_size == 0 || chunks.max_chunk_size <= chunks.min_chunk_size)
    {
        return plan_err!(
            "the option content_defined_chunking.min_chunk_size of PARQUET must be at least 1 and less than max_chunk_size, but they are {} and {}",
            chunks.min_chunk_size,
            chunks.max_chunk_size
        );
    }
    Ok(())
}

/// Returns an error for unknown statistics, which the writer would ignore. It reports those of a
/// single column.
fn check_statistics(statistics: Option<&str>) -> Result<()> {
    match statistics {
        Some(name) if !["none", "chunk", "page"].contains(&name.to_lowercase().as_str()) => {
            plan_err!(
                "the option statistics_enabled of PARQUET must be none, chunk or page, not '{name}'"
            )
        }
        _ => Ok(()),
    }
}

/// Returns an error if the rate of false positives `fpp` of a Bloom filter is not a probability.
fn check_fpp(name: &str, fpp: Option<f64>) -> Result<()> {
    match fpp {
        Some(fpp) if !(fpp > 0.0 && fpp < 1.0) => plan_err!(
            "the option {name} of PARQUET must be greater than 0 and less than 1, not {fpp}"
        ),
        _ => Ok(()),
    }
}

/// Returns an error if the writer does not have `encoding`, in lower case, for columns of the type
/// `kind`.
fn check_encoding(encoding: &str, column: &str, kind: Type) -> Result<()> {
    let has_encoding = match encoding {
        "rle" => kind == Type::BOOLEAN,
        "delta_binary_packed" => matches!(kind, Type::INT32 | Type::INT64),
        "delta_length_byte_array" => kind == Type::BYTE_ARRAY,
        "delta_byte_array" => matches!(kind, Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY),
        "byte_stream_split" => !matches!(kind, Type::BOOLEAN | Type::INT96 | Type::BYTE_ARRAY),
        "plain_dictionary" | "rle_dictionary" => {
            return plan_err!(
                "the option encoding of PARQUET names the encoding of values without a dictionary, so it cannot be {encoding}; for dictionaries, set dictionary_enabled"
            );
        }
        "bit_packed" => false,
        // The writer reports unknown encodings.
        _ => true,
    };
    match has_encoding {
        true => Ok(()),
        false => plan_err!(
            "the column '{column}' has the Parquet type {kind}, which the encoding {encoding} does not apply to; choose another encoding, or name its columns, as in encoding::a"
        ),
    }
}
