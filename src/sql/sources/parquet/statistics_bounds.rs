//! Removes from the statistics of Parquet files the bounds that do not hold for all values.

use arrow::datatypes::Schema;
use datafusion::common::stats::Precision;
use datafusion::common::{ScalarValue, Statistics};
use datafusion::parquet::file::metadata::ParquetMetaData;

use crate::array::leaf_type;

/// Removes the minimum and maximum of two kinds of columns from the statistics of a file: floats,
/// whose bounds omit NaN, and columns that have another type in the file than in the table, for
/// which DataFusion returns NULL as an exact bound (test
/// `stock_bounds_of_other_types_are_still_null`).
pub(super) fn remove_bounds(mut statistics: Statistics, schema: &Schema) -> Statistics {
    for (field, column) in schema.fields().iter().zip(&mut statistics.column_statistics) {
        let is_null =
            |bound: &Precision<ScalarValue>| bound.get_value().is_some_and(ScalarValue::is_null);
        if leaf_type(field.data_type()).is_floating()
            || is_null(&column.min_value)
            || is_null(&column.max_value)
        {
            column.min_value = Precision::Absent;
            column.max_value = Precision::Absent;
        }
    }
    statistics
}

/// Removes the minimum or maximum of a column if a row group with values lacks it, and the number
/// of nulls if a row group lacks that number, because DataFusion takes a missing number for 0.
///
/// Writers leave out the bounds of long values; pyarrow does so for values over 4,096 bytes.
/// DataFusion 55 then takes the bounds of the other row groups for the bounds of the file. It uses
/// these wrong bounds to answer queries, to skip the file, and to replace a column with a literal:
/// <https://github.com/apache/datafusion/issues/25226>. This workaround is obsolete once the test
/// `stock_bounds_of_some_row_groups_are_still_those_of_the_file` fails.
pub(super) fn remove_partial_bounds(
    mut statistics: Statistics,
    footer: &ParquetMetaData,
    schema: &Schema,
) -> Statistics {
    let leaves = footer.file_metadata().schema_descr().columns();
    for (field, column) in schema.fields().iter().zip(&mut statistics.column_statistics) {
        let is_column = |path: &[String]| matches!(path, [name] if name == field.name());
        let Some(leaf) = leaves.iter().position(|leaf| is_column(leaf.path().parts())) else {
            continue;
        };
        for group in footer.row_groups().iter().filter(|group| group.num_rows() > 0) {
            let known = group.columns().get(leaf).and_then(|chunk| chunk.statistics());
            let nulls = known.and_then(|known| known.null_count_opt());
            if nulls.is_none() {
                column.null_count = Precision::Absent;
            }
            if nulls.is_some_and(|nulls| Ok(nulls) == u64::try_from(group.num_rows())) {
                continue;
            }
            if known.is_none_or(|known| known.min_bytes_opt().is_none()) {
                column.min_value = Precision::Absent;
            }
            if known.is_none_or(|known| known.max_bytes_opt().is_none()) {
                column.max_value = Precision::Absent;
            }
            if known.is_none_or(|known| known.distinct_count_opt().is_none()) {
                column.distinct_count = Precision::Absent;
            }
        }
    }
    statistics
}
