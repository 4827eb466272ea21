use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float32Array, Int64Array, LargeListArray, RecordBatch, TimestampMicrosecondArray,
    UInt32Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::shard_builder::CohortShardBuilder;
use crate::error::{Error, Result};
use crate::io::atomic::AtomicFile;

/// Writes id, event times and static facts of each subject as Parquet; empty lists are NULL.
pub(super) fn write_schema_file(
    path: &Path,
    shard: &CohortShardBuilder,
    token_type: &DataType,
) -> Result<()> {
    let starts = std::iter::once(0).chain(shard.event_ends.iter().copied());
    let start_time: TimestampMicrosecondArray = starts
        .zip(&shard.event_ends)
        .map(|(start, end)| {
            let first = usize::try_from(start).ok().filter(|_| start < *end)?;
            shard.times.get(first).copied()
        })
        .collect();
    let mut last = 0;
    let measurements: UInt32Array = shard
        .measurement_ends
        .iter()
        .map(|end| {
            let length = end - std::mem::replace(&mut last, *end);
            u32::try_from(length).map(Some).map_err(|_| {
                Error::file(
                    path,
                    format!(
                        "an event has {length} measurements, but at most 2^32 - 1 are supported; divide the event"
                    ),
                )
            })
        })
        .collect::<Result<_>>()?;
    let static_code = cast(&UInt32Array::from(shard.static_codes.clone()), token_type)?;
    let static_values: Float32Array = shard.static_values.iter().copied().collect();
    let times = TimestampMicrosecondArray::from(shard.times.clone());
    let columns: [(&str, ArrayRef, bool); 6] = [
        ("subject_id", Arc::new(Int64Array::from(shard.subjects.clone())), true),
        ("static_code", build_lists(&shard.static_ends, static_code)?, true),
        ("static_numeric_value", build_lists(&shard.static_ends, Arc::new(static_values))?, true),
        ("start_time", Arc::new(start_time), true),
        ("time", build_lists(&shard.event_ends, Arc::new(times))?, true),
        ("measurements_per_event", build_lists(&shard.event_ends, Arc::new(measurements))?, true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns)?;
    let file = AtomicFile::create(path, false)?;
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(make_writer_properties()))?;
    writer.write(&batch)?;
    writer.into_inner()?.commit()
}

pub(super) fn make_writer_properties() -> WriterProperties {
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(concat!("serrate ", env!("CARGO_PKG_VERSION")).into())
        .build()
}

fn build_lists(ends: &[i64], values: ArrayRef) -> Result<ArrayRef> {
    let offsets: Vec<i64> = std::iter::once(0).chain(ends.iter().copied()).collect();
    let nulls: NullBuffer = offsets.windows(2).map(|w| w[0] < w[1]).collect();
    let item = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let offsets = OffsetBuffer::new(offsets.into());
    Ok(Arc::new(LargeListArray::try_new(item, offsets, values, Some(nulls))?))
}
