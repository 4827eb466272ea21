//! Columns of lists straight from Parquet pages, beside the reader of the `parquet` crate.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, LargeListArray, ListArray, RecordBatch, make_array,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, TimeUnit};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
    RowSelector,
};
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use proptest::prelude::*;
use serrate::io::parquet::lists::{Parts, Source, ranges, read_column, supported};

/// A small generator, so that a case is known by one number.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// True in about `percent` of all cases.
    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

fn leaf_types() -> Vec<DataType> {
    use DataType::*;
    vec![
        Boolean,
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float32,
        Float64,
        Date32,
        Time32(TimeUnit::Millisecond),
        Time64(TimeUnit::Nanosecond),
        Timestamp(TimeUnit::Second, None),
        Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Timestamp(TimeUnit::Nanosecond, None),
        Duration(TimeUnit::Millisecond),
    ]
}

/// Lists around a leaf, each level List or LargeList, nullable or not.
fn random_field(draw: &mut Draw, name: &str, leaf: DataType, depth: usize) -> Field {
    let nullable = draw.chance(60);
    if depth == 0 {
        return Field::new(name, leaf, nullable);
    }
    let item = Arc::new(random_field(draw, "element", leaf, depth - 1));
    let list = if draw.chance(70) { DataType::List(item) } else { DataType::LargeList(item) };
    Field::new(name, list, nullable)
}

/// Nulls in stretches or at random, never where there may be none.
fn random_nulls(draw: &mut Draw, field: &Field, len: usize) -> Option<NullBuffer> {
    let share = *[0, 2, 50, 97, 100].get(draw.below(5)).unwrap();
    let stretch = 1 + draw.below(40);
    let mut valid = true;
    let bits = (0..len).map(|i| {
        if i % stretch == 0 {
            valid = !draw.chance(share);
        }
        valid
    });
    let nulls = NullBuffer::from(bits.collect::<Vec<bool>>());
    (field.is_nullable() && share > 0).then_some(nulls)
}

fn random_array(draw: &mut Draw, field: &Field, len: usize, longest: usize) -> ArrayRef {
    let nulls = random_nulls(draw, field, len);
    let valid = |i: usize| nulls.as_ref().is_none_or(|n| n.is_valid(i));
    match field.data_type() {
        DataType::List(item) | DataType::LargeList(item) => {
            let empty = *[0, 10, 90].get(draw.below(3)).unwrap();
            let mut ends = vec![0];
            for i in 0..len {
                let n = if draw.chance(empty) { 0 } else { draw.below(longest + 1) };
                ends.push(ends[i] + if valid(i) { n } else { 0 });
            }
            let values = random_array(draw, item, ends[len], longest);
            let item = Arc::clone(item);
            if matches!(field.data_type(), DataType::List(_)) {
                let ends = ends.iter().map(|e| i32::try_from(*e).unwrap()).collect::<Vec<_>>();
                Arc::new(ListArray::new(item, OffsetBuffer::new(ends.into()), values, nulls))
            } else {
                let ends = ends.iter().map(|e| i64::try_from(*e).unwrap()).collect::<Vec<_>>();
                Arc::new(LargeListArray::new(item, OffsetBuffer::new(ends.into()), values, nulls))
            }
        }
        leaf => {
            let different = *[1, 2, 5, 300, 100_000].get(draw.below(5)).unwrap();
            let stretch = 1 + draw.below(20);
            let mut value = 0;
            let values: Vec<u64> = (0..len)
                .map(|i| {
                    if i % stretch == 0 {
                        value = draw.below(different) as u64;
                        if different > 1000 {
                            value = value.wrapping_mul(0x9E37_79B9_7F4A_7C15);
                        }
                    }
                    value
                })
                .collect();
            let bytes: Vec<u8> = match leaf {
                DataType::Boolean => {
                    let mut bits = vec![0u8; len.div_ceil(8)];
                    for (i, v) in values.iter().enumerate() {
                        bits[i / 8] |= ((v & 1) as u8) << (i % 8);
                    }
                    bits
                }
                DataType::Time32(_) => {
                    values.iter().flat_map(|v| ((v % 86_400_000) as u32).to_le_bytes()).collect()
                }
                // Floats have to equal themselves.
                DataType::Float32 => {
                    values.iter().flat_map(|v| (*v as f32).to_le_bytes()).collect()
                }
                DataType::Float64 => {
                    values.iter().flat_map(|v| (*v as f64).to_le_bytes()).collect()
                }
                other => {
                    let width = other.primitive_width().unwrap();
                    values.iter().flat_map(|v| v.to_le_bytes()[..width].to_vec()).collect()
                }
            };
            let data = ArrayData::builder(leaf.clone())
                .len(len)
                .add_buffer(Buffer::from(bytes))
                .nulls(nulls)
                .align_buffers(true)
                .build()
                .unwrap();
            make_array(data)
        }
    }
}

fn random_properties(draw: &mut Draw, leaf: &DataType) -> WriterProperties {
    let compressions = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::try_new(1).unwrap()),
    ];
    let mut properties = WriterProperties::builder()
        .set_compression(compressions[draw.below(4)])
        .set_writer_version([WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0][draw.below(2)])
        .set_dictionary_enabled(draw.chance(60))
        .set_dictionary_page_size_limit([40, 400, 1 << 20][draw.below(3)])
        .set_data_page_size_limit([16, 200, 1 << 20][draw.below(3)])
        .set_data_page_row_count_limit([1, 7, 20_000][draw.below(3)])
        .set_write_batch_size([1, 3, 64, 1024][draw.below(4)])
        .set_max_row_group_row_count(Some([5, 40, 1 << 20][draw.below(3)]))
        .set_offset_index_disabled(draw.chance(30))
        .set_statistics_enabled(
            [EnabledStatistics::None, EnabledStatistics::Chunk, EnabledStatistics::Page]
                [draw.below(3)],
        );
    if *leaf != DataType::Boolean {
        let wide = leaf.is_integer() || leaf.is_temporal();
        properties = match draw.below(4) {
            0 if wide => properties.set_encoding(Encoding::DELTA_BINARY_PACKED),
            1 => properties.set_encoding(Encoding::BYTE_STREAM_SPLIT),
            2 => properties.set_encoding(Encoding::PLAIN),
            _ => properties,
        };
    } else if draw.chance(50) {
        properties = properties.set_encoding(Encoding::RLE);
    }
    properties.build()
}

fn written(field: &FieldRef, array: &ArrayRef, properties: WriterProperties) -> Bytes {
    let schema = Arc::new(Schema::new(vec![Arc::clone(field)]));
    let mut bytes = Vec::new();
    let mut writer =
        ArrowWriter::try_new(&mut bytes, Arc::clone(&schema), Some(properties)).unwrap();
    writer.write(&RecordBatch::try_new(schema, vec![Arc::clone(array)]).unwrap()).unwrap();
    writer.close().unwrap();
    bytes.into()
}

fn metadata(bytes: &Bytes, index: bool) -> ArrowReaderMetadata {
    let policy = if index { PageIndexPolicy::Optional } else { PageIndexPolicy::Skip };
    let options = ArrowReaderOptions::new().with_page_index_policy(policy);
    ArrowReaderMetadata::load(bytes, options).unwrap()
}

fn stock(
    bytes: &Bytes,
    metadata: &ArrowReaderMetadata,
    group: usize,
    root: usize,
    rows: &Range<usize>,
) -> ArrayRef {
    let reader =
        ParquetRecordBatchReaderBuilder::new_with_metadata(bytes.clone(), metadata.clone())
            .with_projection(ProjectionMask::roots(metadata.parquet_schema(), [root]))
            .with_row_groups(vec![group])
            .with_batch_size(rows.len().max(1))
            .with_row_selection(RowSelection::from(vec![
                RowSelector::skip(rows.start),
                RowSelector::select(rows.len()),
            ]))
            .build()
            .unwrap();
    let arrays: Vec<ArrayRef> = reader.map(|b| Arc::clone(b.unwrap().column(0))).collect();
    let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
    if arrays.is_empty() {
        arrow::array::new_empty_array(metadata.schema().field(root).data_type())
    } else {
        concat(&arrays).unwrap()
    }
}

/// The array with zeros for values.
fn zeroed(array: &ArrayRef) -> ArrayRef {
    let data = array.to_data();
    let children = data.child_data().iter().map(|c| zeroed(&make_array(c.clone())).to_data());
    let mut builder = data.clone().into_builder().child_data(children.collect());
    if !array.data_type().is_nested() {
        let zeros = Buffer::from(vec![0u8; data.buffers()[0].len() + 8 * data.offset() + 8]);
        builder = builder.buffers(vec![zeros]).align_buffers(true);
    }
    make_array(builder.build().unwrap())
}

/// Every row group of a column, whole and in parts, is what the `parquet` crate makes of it.
fn check(bytes: &Bytes, root: usize, draw: &mut Draw) {
    for index in [false, true] {
        let metadata = metadata(bytes, index);
        let parquet = metadata.metadata();
        let field = metadata.schema().field(root);
        assert!(supported(parquet, root, field), "{field}");
        let reader = Arc::new(bytes.clone());
        let source = Source { name: Path::new("f"), reader: &reader, metadata: parquet };
        for group in 0..parquet.num_row_groups() {
            let all = usize::try_from(parquet.row_group(group).num_rows()).unwrap();
            let mut wanted =
                vec![0..all, 0..0, all..all, 0..all.min(1), all.saturating_sub(1)..all];
            for _ in 0..3 {
                let start = draw.below(all + 1);
                wanted.push(start..start + draw.below(all - start + 1));
            }
            for rows in wanted {
                let expected = stock(bytes, &metadata, group, root, &rows);
                let got =
                    read_column(&source, group, root, field, rows.clone(), Parts::Values).unwrap();
                got.to_data().validate_full().unwrap();
                assert_eq!(got.data_type(), field.data_type());
                assert_eq!(&got, &expected, "rows {rows:?} of {all}, {field}");
                let lists =
                    read_column(&source, group, root, field, rows.clone(), Parts::Lists).unwrap();
                assert_eq!(&lists, &zeroed(&expected), "lists of rows {rows:?} of {all}, {field}");
                // Nothing else is read than what was said.
                let spans = ranges(Path::new("f"), parquet, group, root, rows.clone()).unwrap();
                let mut sparse = vec![0xA5; bytes.len()];
                for span in spans {
                    let span = span.start as usize..span.end as usize;
                    sparse[span.clone()].copy_from_slice(&bytes[span]);
                }
                let reader = Arc::new(Bytes::from(sparse));
                let source = Source { reader: &reader, ..source };
                let sparse = read_column(&source, group, root, field, rows, Parts::Values).unwrap();
                assert_eq!(&sparse, &expected);
            }
        }
    }
}

fn random_case(seed: u64, depth: usize, leaf: usize) -> (FieldRef, Bytes, Draw) {
    let mut draw = Draw(seed);
    let leaf = leaf_types().swap_remove(leaf % leaf_types().len());
    let field = Arc::new(random_field(&mut draw, "x", leaf.clone(), depth));
    let rows = *[0, 1, 30, 150].get(draw.below(4)).unwrap();
    let longest = if depth > 3 { 2 } else { *[1, 3, 9].get(draw.below(3)).unwrap() };
    let longest = if depth == 1 { longest * 30 } else { longest };
    let array = random_array(&mut draw, &field, rows, longest);
    let properties = random_properties(&mut draw, &leaf);
    let bytes = written(&field, &array, properties);
    (field, bytes, draw)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn columns_are_those_of_the_parquet_crate(seed: u64, depth in 0usize..4, leaf in 0usize..18) {
        let (_, bytes, mut draw) = random_case(seed, depth, leaf);
        check(&bytes, 0, &mut draw);
    }
}

#[test]
fn columns_of_seven_levels() {
    for depth in 4..=7 {
        for seed in 0..6 {
            let (_, bytes, mut draw) = random_case(seed, depth, seed as usize);
            check(&bytes, 0, &mut draw);
        }
    }
    // One more, and the level numbers have more bits than are looked at.
    let (field, bytes, _) = random_case(1, 8, 3);
    assert!(!supported(metadata(&bytes, false).metadata(), 0, &field));
}
