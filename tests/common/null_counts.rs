//! Parquet files whose statistics lack the number of nulls.

use bytes::Bytes;
use datafusion::parquet::file::metadata::{ParquetMetaDataReader, ParquetMetaDataWriter};
use datafusion::parquet::file::statistics::{Statistics, ValueStatistics};
use serrate::datafusion;

/// Removes the null counts, which are optional, from the statistics in the footer of a Parquet
/// file.
pub(crate) fn remove_null_counts(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut reader = ParquetMetaDataReader::new();
    reader.try_parse(&Bytes::from(bytes.clone())).unwrap();
    let mut builder = reader.finish().unwrap().into_builder();
    let groups = builder.take_row_groups().into_iter().map(|group| {
        let chunks = group.columns().iter().map(|chunk| {
            let Some(known) = chunk.statistics() else { return chunk.clone() };
            chunk
                .clone()
                .into_builder()
                .set_statistics(without_null_count(known))
                .set_column_index_offset(None)
                .set_column_index_length(None)
                .build()
                .unwrap()
        });
        let chunks = chunks.collect();
        group.into_builder().set_column_metadata(chunks).build().unwrap()
    });
    let groups = groups.collect();
    let footer = builder.set_row_groups(groups).set_column_index(None).build();
    let end = bytes.len() - 8;
    let length = u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap());
    bytes.truncate(end - usize::try_from(length).unwrap());
    let mut written = Vec::new();
    ParquetMetaDataWriter::new(&mut written, &footer).finish().unwrap();
    bytes.extend(written);
    bytes
}

fn without_null_count(known: &Statistics) -> Statistics {
    macro_rules! uncounted {
        ($known:expr, $($kind:ident),*) => {
            match $known {
                $(Statistics::$kind(of) => Statistics::$kind(ValueStatistics::new(
                    of.min_opt().cloned(),
                    of.max_opt().cloned(),
                    None,
                    None,
                    false,
                )),)*
            }
        };
    }
    uncounted!(known, Boolean, Int32, Int64, Int96, Float, Double, ByteArray, FixedLenByteArray)
}
