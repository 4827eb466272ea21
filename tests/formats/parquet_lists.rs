//! Columns of lists decoded from Parquet pages, compared with the reader of the `parquet` crate.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, Int64Array, LargeListArray, ListArray, ListBuilder, RecordBatch,
    StringArray, StringBuilder, make_array,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow::compute::{concat, concat_batches};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, TimeUnit};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
    RowSelector,
};
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use proptest::prelude::*;
use serrate::io::parquet::lists::{DecodedParts, ListsFile, is_supported, ranges, read_column};
use serrate::io::parquet::{
    ParquetReadOptions, ParquetTableReader, ParquetTableWriter, ParquetWriteOptions,
};

use crate::common::torture::{Draw, Random, seed_random};

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

/// Draws a field of `depth` levels of lists around the type `leaf`. Each level is List or
/// LargeList, and nullable or not.
fn random_field(draw: &mut Random, name: &str, leaf: DataType, depth: usize) -> Field {
    let nullable = draw.chance(60);
    if depth == 0 {
        return Field::new(name, leaf, nullable);
    }
    let item = Arc::new(random_field(draw, "element", leaf, depth - 1));
    let list = if draw.chance(70) { DataType::List(item) } else { DataType::LargeList(item) };
    Field::new(name, list, nullable)
}

/// Draws nulls in runs of equal length. Returns `None` if the field is not nullable, and sometimes
/// otherwise.
fn random_nulls(draw: &mut Random, field: &Field, len: usize) -> Option<NullBuffer> {
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

fn random_array(draw: &mut Random, field: &Field, len: usize, longest: usize) -> ArrayRef {
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
                // Converts integers, because drawn bits may be NaN, which does not equal itself.
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

fn random_properties(draw: &mut Random, leaf: &DataType) -> WriterProperties {
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

fn write_parquet(field: &FieldRef, array: &ArrayRef, properties: WriterProperties) -> Bytes {
    let schema = Arc::new(Schema::new(vec![Arc::clone(field)]));
    let mut bytes = Vec::new();
    let mut writer =
        ArrowWriter::try_new(&mut bytes, Arc::clone(&schema), Some(properties)).unwrap();
    writer.write(&RecordBatch::try_new(schema, vec![Arc::clone(array)]).unwrap()).unwrap();
    writer.close().unwrap();
    bytes.into()
}

fn read_metadata(bytes: &Bytes, index: bool) -> ArrowReaderMetadata {
    let policy = if index { PageIndexPolicy::Optional } else { PageIndexPolicy::Skip };
    let options = ArrowReaderOptions::new().with_page_index_policy(policy);
    ArrowReaderMetadata::load(bytes, options).unwrap()
}

fn read_stock(
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

/// Returns the array with zeros in place of all values that are not lists.
fn zero_nulls(array: &ArrayRef) -> ArrayRef {
    let data = array.to_data();
    let children = data.child_data().iter().map(|c| zero_nulls(&make_array(c.clone())).to_data());
    let mut builder = data.clone().into_builder().child_data(children.collect());
    if !array.data_type().is_nested() {
        let zeros = Buffer::from(vec![0u8; data.buffers()[0].len() + 8 * data.offset() + 8]);
        builder = builder.buffers(vec![zeros]).align_buffers(true);
    }
    make_array(builder.build().unwrap())
}

/// Compares every row group of a column with the result of the `parquet` crate: all rows, and
/// ranges of rows.
fn check_file(bytes: &Bytes, root: usize, draw: &mut Random) {
    for index in [false, true] {
        let metadata = read_metadata(bytes, index);
        let parquet = metadata.metadata();
        let field = metadata.schema().field(root);
        assert!(is_supported(parquet, root, field), "{field}");
        let reader = Arc::new(bytes.clone());
        let source = ListsFile { name: Path::new("f"), reader: &reader, metadata: parquet };
        for group in 0..parquet.num_row_groups() {
            let all = usize::try_from(parquet.row_group(group).num_rows()).unwrap();
            let mut wanted =
                vec![0..all, 0..0, all..all, 0..all.min(1), all.saturating_sub(1)..all];
            for _ in 0..3 {
                let start = draw.below(all + 1);
                wanted.push(start..start + draw.below(all - start + 1));
            }
            for rows in wanted {
                let expected = read_stock(bytes, &metadata, group, root, &rows);
                let got =
                    read_column(&source, group, root, field, rows.clone(), DecodedParts::Values)
                        .unwrap();
                got.to_data().validate_full().unwrap();
                assert_eq!(got.data_type(), field.data_type());
                assert_eq!(&got, &expected, "rows {rows:?} of {all}, {field}");
                let lists =
                    read_column(&source, group, root, field, rows.clone(), DecodedParts::Lists)
                        .unwrap();
                assert_eq!(
                    &lists,
                    &zero_nulls(&expected),
                    "lists of rows {rows:?} of {all}, {field}"
                );
                // Outside the byte ranges of `ranges`, the file may have any bytes.
                let spans = ranges(Path::new("f"), parquet, group, root, rows.clone()).unwrap();
                let mut sparse = vec![0xA5; bytes.len()];
                for span in spans {
                    let span = span.start as usize..span.end as usize;
                    sparse[span.clone()].copy_from_slice(&bytes[span]);
                }
                let reader = Arc::new(Bytes::from(sparse));
                let source = ListsFile { reader: &reader, ..source };
                let sparse =
                    read_column(&source, group, root, field, rows, DecodedParts::Values).unwrap();
                assert_eq!(&sparse, &expected);
            }
        }
    }
}

fn random_case(seed: u64, depth: usize, leaf: usize) -> (FieldRef, Bytes, Random) {
    let mut draw = seed_random(seed);
    let leaf = leaf_types().swap_remove(leaf % leaf_types().len());
    let field = Arc::new(random_field(&mut draw, "x", leaf.clone(), depth));
    let rows = *[0, 1, 30, 150].get(draw.below(4)).unwrap();
    let longest = if depth > 3 { 2 } else { *[1, 3, 9].get(draw.below(3)).unwrap() };
    let longest = if depth == 1 { longest * 30 } else { longest };
    let array = random_array(&mut draw, &field, rows, longest);
    let properties = random_properties(&mut draw, &leaf);
    let bytes = write_parquet(&field, &array, properties);
    (field, bytes, draw)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    #[test]
    fn random_columns_equal_those_of_the_parquet_crate(seed: u64, depth in 0usize..4, leaf in 0usize..18) {
        let (_, bytes, mut draw) = random_case(seed, depth, leaf);
        check_file(&bytes, 0, &mut draw);
    }
}

#[test]
fn columns_of_up_to_seven_levels_are_supported() {
    for depth in 4..=7 {
        for seed in 0..6 {
            let (_, bytes, mut draw) = random_case(seed, depth, seed as usize);
            check_file(&bytes, 0, &mut draw);
        }
    }
    // The numbers of eight levels have more bits than the decoder supports.
    let (field, bytes, _) = random_case(1, 8, 3);
    assert!(!is_supported(read_metadata(&bytes, false).metadata(), 0, &field));
}

/// Returns the paths and contents of the files that pyarrow has written.
fn list_foreign() -> Vec<(PathBuf, Bytes)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/parquet-lists");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "parquet"));
    paths.sort();
    assert_eq!(paths.len(), 5);
    paths.into_iter().map(|p| (p.clone(), fs::read(p).unwrap().into())).collect()
}

#[test]
fn files_of_pyarrow_equal_those_of_the_parquet_crate() {
    for (path, bytes) in list_foreign() {
        let mut draw = seed_random(7);
        let metadata = read_metadata(&bytes, true);
        let fields = metadata.schema().fields();
        for root in 0..fields.len() {
            check_file(&bytes, root, &mut draw);
        }
        // Reads all columns with the table reader, in small chunks.
        let all = usize::try_from(metadata.metadata().file_metadata().num_rows()).unwrap();
        for rows in [None, Some(0..all), Some(all / 3..all - all / 5), Some(0..0)] {
            let stock: Vec<RecordBatch> = ParquetRecordBatchReaderBuilder::try_new(bytes.clone())
                .unwrap()
                .build()
                .unwrap()
                .collect::<Result<_, _>>()
                .unwrap();
            let stock = concat_batches(metadata.schema(), &stock).unwrap();
            let wanted = rows.clone().unwrap_or(0..all);
            let stock = stock.slice(wanted.start, wanted.len());
            for chunk_leaves in [1, 150, usize::MAX] {
                let options =
                    ParquetReadOptions { rows: rows.clone(), chunk_leaves, columns: None };
                let mut reader = ParquetTableReader::open(&path, &options).unwrap();
                let schema = reader.schema();
                let batches: Vec<RecordBatch> =
                    std::iter::from_fn(|| reader.next_batch()).map(Result::unwrap).collect();
                assert!(chunk_leaves > 1 || batches.len() == wanted.len());
                let got = concat_batches(&schema, &batches).unwrap();
                assert_eq!(got, stock, "{} {rows:?} {chunk_leaves}", path.display());
            }
        }
    }
}

#[test]
fn columns_of_the_list_decoder_and_of_the_parquet_crate_form_one_batch() {
    let item = Arc::new(Field::new("element", DataType::Utf8, true));
    let words = Field::new("words", DataType::List(item), true);
    let item = Arc::new(Field::new("element", DataType::Int16, true));
    let numbers = Field::new("numbers", DataType::List(item), true);
    let schema = Arc::new(Schema::new(vec![
        Field::new("first", DataType::Int64, false),
        words,
        numbers.clone(),
        Field::new("name", DataType::Utf8, true),
    ]));
    let mut text = ListBuilder::new(StringBuilder::new()).with_field(Arc::new(Field::new(
        "element",
        DataType::Utf8,
        true,
    )));
    for i in 0..100 {
        for j in 0..i % 4 {
            text.values().append_option((j != 2).then(|| format!("w{i}")));
        }
        text.append(i % 9 != 0);
    }
    let names: StringArray = (0..100).map(|i| (i % 3 > 0).then(|| format!("n{i}"))).collect();
    let batch = RecordBatch::try_new(
        schema,
        vec![
            Arc::new(Int64Array::from_iter_values(0..100)),
            Arc::new(text.finish()),
            random_array(&mut seed_random(3), &numbers, 100, 5),
            Arc::new(names),
        ],
    )
    .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    let options = ParquetWriteOptions { row_group_leaves: 60, ..Default::default() };
    let mut writer = ParquetTableWriter::create(&path, &batch.schema(), &options).unwrap();
    writer.write_batch(&batch).unwrap();
    writer.finish().unwrap();
    for columns in [None, Some(vec!["name", "numbers"]), Some(vec!["words"]), Some(vec![])] {
        let names = columns.clone().unwrap_or(vec!["first", "words", "numbers", "name"]);
        let mut places: Vec<usize> =
            names.iter().map(|n| batch.schema().index_of(n).unwrap()).collect();
        places.sort_unstable();
        let columns = columns.map(|c| c.into_iter().map(String::from).collect::<Vec<_>>());
        for rows in [None, Some(7..93)] {
            let options = ParquetReadOptions {
                columns: columns.clone(),
                rows: rows.clone(),
                chunk_leaves: 40,
            };
            let mut reader = ParquetTableReader::open(&path, &options).unwrap();
            let mut at = reader.rows().start;
            while let Some(got) = reader.next_batch() {
                let got = got.unwrap();
                let expected = batch.slice(at, got.num_rows()).project(&places).unwrap();
                assert_eq!(got.columns(), expected.columns());
                at += got.num_rows();
            }
            assert_eq!(at, rows.map_or(100, |r| r.end));
        }
    }
}

/// Reads all columns of a file that may be damaged. Returns the number of columns that were read,
/// and the errors of the others.
fn read_damaged(bytes: &Bytes, metadata: &ArrowReaderMetadata) -> (usize, Vec<String>) {
    let reader = Arc::new(bytes.clone());
    let parquet = metadata.metadata();
    let source = ListsFile { name: Path::new("some.parquet"), reader: &reader, metadata: parquet };
    let (mut read, mut errors) = (0, Vec::new());
    for (root, field) in metadata.schema().fields().iter().enumerate() {
        for group in 0..parquet.num_row_groups() {
            let all = usize::try_from(parquet.row_group(group).num_rows()).unwrap();
            for parts in [DecodedParts::Values, DecodedParts::Lists] {
                match read_column(&source, group, root, field, 0..all, parts) {
                    Ok(array) => {
                        assert_eq!(array.len(), all);
                        array.to_data().validate_full().unwrap();
                        read += 1;
                    }
                    Err(e) => errors.push(e.to_string()),
                }
            }
        }
    }
    (read, errors)
}

#[test]
fn errors_for_damaged_files_name_file_column_and_row_group() {
    let (mut read, mut errors) = (0, Vec::new());
    for (_, bytes) in list_foreign() {
        let metadata = read_metadata(&bytes, false);
        let end = metadata.metadata().row_groups().iter().flat_map(|g| g.columns());
        let end = end.map(|c| c.byte_range()).map(|(s, n)| s + n).max().unwrap() as usize;
        for case in 0..150 {
            let mut draw = seed_random(case);
            let mut damaged = bytes.to_vec();
            for _ in 0..1 + draw.below(3) {
                let at = 4 + draw.below(end - 4);
                damaged[at] = match draw.below(3) {
                    0 => damaged[at] ^ 1 << draw.below(8),
                    1 => 0xFF,
                    _ => draw.below(256) as u8,
                };
            }
            let (some, wrong) = read_damaged(&damaged.into(), &metadata);
            read += some;
            errors.extend(wrong);
        }
        // The file lacks the last byte of its last column chunk.
        let (_, wrong) = read_damaged(&bytes.slice(..end - 1), &metadata);
        assert!(!wrong.is_empty());
    }
    assert!(read > 1000 && errors.len() > 200, "{read} and {}", errors.len());
    for e in &errors {
        assert!(e.contains("some.parquet") && e.contains("column "), "{e}");
        assert!(e.contains("row group "), "{e}");
    }
}

/// Builds a file of one column with one page, `page`, which is not compressed, and a footer for it.
/// `max` has the maximum definition and repetition levels, and `values` is the number of values.
fn by_hand(max: (i16, i16), values: i32, page: &[u8]) -> (Bytes, ArrowReaderMetadata) {
    let item = Arc::new(Field::new("element", DataType::Int32, max.0 == 3));
    let list = Field::new("x", DataType::List(item), max.0 >= 2);
    let schema = Arc::new(Schema::new(vec![list]));
    let descriptor = ArrowSchemaConverter::new().convert(&schema).unwrap();
    assert_eq!((descriptor.column(0).max_def_level(), descriptor.column(0).max_rep_level()), max);
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(
        &mut bytes,
        descriptor.root_schema_ptr(),
        Arc::new(WriterProperties::builder().build()),
    )
    .unwrap();
    let mut group = file.next_row_group().unwrap();
    // Writes a column chunk with `values` rows, whose metadata becomes the footer. The pages are
    // replaced below.
    let mut column = group.next_column().unwrap().unwrap();
    let n = usize::try_from(values).unwrap();
    let levels = (vec![max.0; n], vec![0; n]);
    let written = vec![7; n];
    column
        .typed::<parquet::data_type::Int32Type>()
        .write_batch(&written, Some(&levels.0), Some(&levels.1))
        .unwrap();
    column.close().unwrap();
    group.close().unwrap();
    file.close().unwrap();
    let metadata = read_metadata(&bytes.into(), false);
    // The page header in Thrift's compact protocol: kind 0, the two sizes, and the header of a data
    // page.
    let zigzag = |n: i64| {
        let mut n = (n << 1 ^ n >> 63).cast_unsigned();
        let mut out = Vec::new();
        while n >= 0x80 {
            out.push(n as u8 | 0x80);
            n >>= 7;
        }
        out.push(n as u8);
        out
    };
    let size = zigzag(i64::try_from(page.len()).unwrap());
    let mut chunk = vec![0x15, 0, 0x15];
    chunk.extend(&size);
    chunk.push(0x15);
    chunk.extend(&size);
    chunk.extend([0x2C, 0x15]);
    chunk.extend(zigzag(values.into()));
    // Values have the encoding PLAIN, and levels the encoding RLE.
    chunk.extend([0x15, 0, 0x15, 6, 0x15, 6, 0, 0]);
    chunk.extend(page);
    let parquet = metadata.metadata();
    let old = parquet.row_group(0).column(0).clone();
    let column = old
        .into_builder()
        .set_data_page_offset(4)
        .set_dictionary_page_offset(None)
        .set_total_compressed_size(i64::try_from(chunk.len()).unwrap())
        .build()
        .unwrap();
    let group = parquet.row_group(0).clone().into_builder();
    let group = group.set_column_metadata(vec![column]).build().unwrap();
    let parquet = ParquetMetaData::new(parquet.file_metadata().clone(), vec![group]);
    let metadata = ArrowReaderMetadata::try_new(Arc::new(parquet), Default::default()).unwrap();
    let mut file = b"PAR1".to_vec();
    file.extend(chunk);
    (file.into(), metadata)
}

/// Returns encoded levels with their length in front.
fn encode_runs(bytes: &[u8]) -> Vec<u8> {
    let mut out = (bytes.len() as u32).to_le_bytes().to_vec();
    out.extend(bytes);
    out
}

#[test]
fn invalid_levels_are_errors() {
    // Two rows of one element each have the repetition levels 0 and 0 and the definition levels 3
    // and 3.
    let page = |rep: &[u8], def: &[u8], values: usize| {
        [encode_runs(rep), encode_runs(def), vec![1; 4 * values]].concat()
    };
    let good = page(&[2 << 1, 0], &[2 << 1, 3], 2);
    let (bytes, metadata) = by_hand((3, 1), 2, &good);
    assert_eq!(read_damaged(&bytes, &metadata), (2, vec![]));
    for (page, message) in [
        (
            page(&[2 << 1, 1], &[2 << 1, 3], 2),
            "data page 0: the first repetition level continues a row",
        ),
        (
            page(&[1 << 1, 0, 1 << 1, 1], &[1 << 1, 3, 1 << 1, 1], 1),
            "is too low for an element of this list",
        ),
        (page(&[1 << 1, 0, 1 << 1, 1], &[1 << 1, 0, 1 << 1, 3], 1), "null or empty list continues"),
        (page(&[1 << 1, 0, 1 << 1, 1], &[1 << 1, 1, 1 << 1, 3], 1), "null or empty list continues"),
        (page(&[1 << 1, 0, 1 << 1, 1], &[2 << 1, 3], 2), "the pages have 1 row(s) instead of 2"),
        (page(&[1 << 1, 0], &[2 << 1, 3], 2), "2 byte(s) of runs end before the last number"),
        (
            page(&[2 << 1, 0], &[2 << 1, 3], 1),
            "2 value(s) of 4 bytes are expected, but the page has only 4",
        ),
        (
            page(&[2 << 1, 0], &[2 << 1, 4], 2),
            "a run repeats the number 4, which does not fit 2 bit(s)",
        ),
        (page(&[2 << 1, 0], &[0xFF; 9], 2), "longer than the maximum of 35 bits"),
        (vec![200, 0, 0, 0, 1], "repetition levels take 200 byte(s), but only 1 are left"),
        (vec![], "begin with their length in 4 bytes, but only 0 byte(s) are left"),
    ] {
        let (bytes, metadata) = by_hand((3, 1), 2, &page);
        let (_, errors) = read_damaged(&bytes, &metadata);
        let e = errors.first().unwrap_or_else(|| panic!("no error instead of {message:?}"));
        assert!(e.contains(message), "{message:?} is not in {e}");
        assert!(e.contains("column x.list.element, row group 0"), "{e}");
    }
    // A definition level takes 2 bits, which can hold 3, but the maximum is 2.
    let page = [encode_runs(&[2 << 1, 0]), encode_runs(&[2 << 1, 3]), vec![1; 8]].concat();
    let (bytes, metadata) = by_hand((2, 1), 2, &page);
    let (_, errors) = read_damaged(&bytes, &metadata);
    assert!(errors[0].contains("definition levels up to 3, but the schema allows only 1 and 2"));
    // The footer counts fewer or more values than the page has.
    let (bytes, metadata) = by_hand((3, 1), 2, &good);
    for (count, message) in
        [(1, "2 value(s), but the footer counts only 1"), (3, "1 value(s) more")]
    {
        let parquet = metadata.metadata();
        let column = parquet.row_group(0).column(0).clone().into_builder();
        let column = column.set_num_values(count).build().unwrap();
        let group = parquet.row_group(0).clone().into_builder();
        let group = group.set_column_metadata(vec![column]).build().unwrap();
        let parquet = ParquetMetaData::new(parquet.file_metadata().clone(), vec![group]);
        let other = ArrowReaderMetadata::try_new(Arc::new(parquet), Default::default()).unwrap();
        let (_, errors) = read_damaged(&bytes, &other);
        assert!(errors[0].contains(message), "{errors:?}");
    }
}

#[test]
fn wrong_counts_in_the_footer_are_errors_before_memory_is_allocated() {
    let page = [encode_runs(&[2 << 1, 0]), encode_runs(&[2 << 1, 3]), vec![1; 8]].concat();
    let (bytes, metadata) = by_hand((3, 1), 2, &page);
    for (rows, values) in
        [(1 << 50, 1 << 50), (i64::MAX, i64::MAX), (2, i64::MAX), (-1, 2), (2, -1)]
    {
        let parquet = metadata.metadata();
        let column = parquet.row_group(0).column(0).clone().into_builder();
        let column = column.set_num_values(values).build().unwrap();
        let group = parquet.row_group(0).clone().into_builder().set_num_rows(rows);
        let group = group.set_column_metadata(vec![column]).build().unwrap();
        let parquet = ParquetMetaData::new(parquet.file_metadata().clone(), vec![group]);
        let reader = Arc::new(bytes.clone());
        let source = ListsFile { name: Path::new("f"), reader: &reader, metadata: &parquet };
        let field = metadata.schema().field(0);
        let rows = 0..usize::try_from(rows).unwrap_or(2);
        let e =
            read_column(&source, 0, 0, field, rows, DecodedParts::Values).unwrap_err().to_string();
        assert!(e.contains(" instead of ") || e.contains("the footer counts"), "{e}");
    }
}

#[test]
fn missing_rows_row_groups_and_columns_are_errors() {
    let (_, bytes) = list_foreign().swap_remove(0);
    let metadata = read_metadata(&bytes, true);
    let (parquet, fields) = (metadata.metadata(), metadata.schema().fields());
    let reader = Arc::new(bytes);
    let source = ListsFile { name: Path::new("f"), reader: &reader, metadata: parquet };
    let error = |group, rows| {
        read_column(&source, group, 0, &fields[0], rows, DecodedParts::Values)
            .unwrap_err()
            .to_string()
    };
    assert!(error(0, 0..100).contains(
        "rows 0..100 were requested, but the row group has 6 row(s); request rows within this range"
    ));
    assert!(error(9, 0..1).contains("row group 9"));
    assert!(ranges(Path::new("f"), parquet, 0, 99, 0..1).is_err());
    let wrong = Field::new("code", DataType::Int32, true);
    let e = read_column(&source, 0, 0, &wrong, 0..1, DecodedParts::Values).unwrap_err();
    assert!(
        e.to_string().contains("\"code\" of type Int32 cannot be read by the list decoder"),
        "{e}"
    );
}
