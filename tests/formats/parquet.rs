//! Ragged tables in Parquet files.

use std::fs::{self, File};
use std::sync::Arc;

use arrow::array::{Array, AsArray, Int32Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use parquet::basic::Compression;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader};
use serrate::Error;
use serrate::generate::{SyntheticPatients, mimic_table};
use serrate::io::parquet::{
    self as io, ParquetReadOptions, ParquetTableReader, ParquetTableWriter, ParquetWriteOptions,
};
use serrate::table::RaggedTable;

use crate::make_mixed_table;

#[test]
fn columns_of_every_kind_are_read_as_written() {
    let dir = tempfile::tempdir().unwrap();
    for (i, table) in [
        make_mixed_table(),
        make_mixed_table().slice(1, 3).unwrap(),
        make_mixed_table().slice(2, 0).unwrap(),
    ]
    .into_iter()
    .enumerate()
    {
        let path = dir.path().join(format!("{i}.parquet"));
        io::write(&path, &table, &Default::default()).unwrap();
        let back = io::read(&path, &Default::default()).unwrap();
        assert_eq!(back.num_rows(), table.num_rows());
        for column in table.columns() {
            let name = column.name();
            assert_eq!(back.column(name).unwrap().data_type(), column.data_type(), "{name}");
            assert_eq!(back.array(name).unwrap(), table.array(name).unwrap(), "{name}");
        }
        assert_eq!(back.axis_name(1), Some("visit"));
    }
}

#[test]
fn row_groups_are_limited_by_leaves_and_rows_are_read_across_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    // The first row has 30,000 leaves, more than a row group may have. The others have up to 20.
    let lengths: Vec<usize> = (0..500).map(|i| if i == 0 { 30_000 } else { i % 21 }).collect();
    let total: usize = lengths.iter().sum();
    let table = RaggedTable::builder()
        .lengths(lengths.clone())
        .unwrap()
        .column("id", 0, Arc::new(Int64Array::from_iter_values(0..500)))
        .column("x", 1, Arc::new(Int32Array::from_iter_values(0..i32::try_from(total).unwrap())))
        .build()
        .unwrap();
    let options = ParquetWriteOptions { row_group_leaves: 1000, ..Default::default() };
    let mut writer =
        ParquetTableWriter::create(&path, &table.arrow_schema().unwrap(), &options).unwrap();
    for start in (0..500).step_by(7) {
        writer.write(&table.slice(start, (500 - start).min(7)).unwrap()).unwrap();
    }
    assert_eq!(writer.num_rows(), 500);
    assert!(!path.exists(), "the file has its name before it is complete");
    writer.finish().unwrap();

    let metadata = ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Required)
        .parse_and_finish(&File::open(&path).unwrap())
        .unwrap();
    assert!(metadata.column_index().is_some() && metadata.offset_index().is_some());
    let leaves = |r: std::ops::Range<usize>| lengths[r].iter().sum::<usize>();
    let mut row = 0;
    for (i, group) in metadata.row_groups().iter().enumerate() {
        let rows = usize::try_from(group.num_rows()).unwrap();
        let own = leaves(row..row + rows);
        if i == 0 {
            assert_eq!(rows, 1, "a row above the limit is alone in its row group");
        } else {
            assert!(own <= 1000);
            assert!(row + rows == 500 || own + lengths[row + rows] > 1000 || own > 900, "{own}");
        }
        let column = group.column(1);
        assert!(matches!(column.compression(), Compression::ZSTD(_)));
        assert!(column.statistics().is_some());
        row += rows;
    }
    assert_eq!(row, 500);

    for rows in [0..500, 0..1, 1..2, 3..3, 17..450, 499..500] {
        let options = ParquetReadOptions {
            rows: Some(rows.clone()),
            chunk_leaves: 300,
            ..Default::default()
        };
        let reader = ParquetTableReader::open(&path, &options).unwrap();
        assert_eq!((reader.rows(), reader.file_rows()), (rows.clone(), 500));
        let mut at = rows.start;
        for chunk in reader {
            let chunk = chunk.unwrap();
            let expected = table.slice(at, chunk.num_rows()).unwrap();
            assert_eq!(chunk, expected);
            at += chunk.num_rows();
        }
        assert_eq!(at, rows.end);
    }
    let one = ParquetReadOptions {
        columns: Some(vec!["x".into()]),
        rows: Some(5..9),
        ..Default::default()
    };
    assert_eq!(io::read(&path, &one).unwrap(), table.slice(5, 4).unwrap().select(&["x"]).unwrap());
}

#[test]
fn missing_columns_and_rows_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    io::write(&path, &make_mixed_table(), &Default::default()).unwrap();
    let e = io::write(&path, &make_mixed_table(), &Default::default()).unwrap_err();
    assert!(matches!(e, Error::Exists(_)));
    let overwrite = ParquetWriteOptions { overwrite: true, ..Default::default() };
    io::write(&path, &make_mixed_table(), &overwrite).unwrap();

    let error = |options: ParquetReadOptions| io::read(&path, &options).unwrap_err().to_string();
    let e = error(ParquetReadOptions { columns: Some(vec!["cod".into()]), ..Default::default() });
    assert!(e.contains("no column \"cod\"; the columns are id, name"), "{e}");
    let e = error(ParquetReadOptions { rows: Some(2..5), ..Default::default() });
    assert!(
        e.contains(
            "rows 2..5 were requested, but the file has 4 row(s); request rows within this range"
        ),
        "{e}"
    );
    fs::write(&path, b"PAR1").unwrap();
    assert!(error(Default::default()).contains("x.parquet"));
    let none = ParquetWriteOptions { row_group_leaves: 0, ..Default::default() };
    assert!(io::write(dir.path().join("y"), &make_mixed_table(), &none).is_err());
}

#[test]
fn columns_with_different_list_lengths_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    let list = |lengths: [usize; 2]| {
        let total = lengths[0] + lengths[1];
        let table = RaggedTable::builder()
            .lengths(lengths)
            .unwrap()
            .column("x", 1, Arc::new(Int64Array::from(vec![1; total])))
            .build()
            .unwrap();
        table.to_batch().unwrap().column(0).clone()
    };
    let (a, b) = (list([1, 2]), list([1, 3]));
    let batch = RecordBatch::try_from_iter([("a", a), ("b", b)]).unwrap();
    let mut writer =
        ParquetTableWriter::create(&path, &batch.schema(), &Default::default()).unwrap();
    writer.write_batch(&batch).unwrap();
    writer.finish().unwrap();
    let e = io::read(&path, &Default::default()).unwrap_err();
    assert!(matches!(e, Error::Disagree { list: 1, left_len: 2, right_len: 3, .. }), "{e}");
    let mut reader = ParquetTableReader::open(&path, &Default::default()).unwrap();
    assert_eq!(
        reader.next_batch().unwrap().unwrap(),
        batch,
        "the batch can be read without making a table of it"
    );
}

#[test]
fn metadata_of_extension_types_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    let item = Arc::new(Field::new_list_field(DataType::Float32, false));
    let tensor = Field::new("t", DataType::FixedSizeList(item, 6), false).with_metadata(
        [
            ("ARROW:extension:name".to_string(), "arrow.fixed_shape_tensor".to_string()),
            ("ARROW:extension:metadata".to_string(), "{\"shape\":[2,3]}".to_string()),
        ]
        .into(),
    );
    let schema = Arc::new(Schema::new(vec![tensor]));
    let writer = ParquetTableWriter::create(&path, &schema, &Default::default()).unwrap();
    writer.finish().unwrap();
    let reader = ParquetTableReader::open(&path, &Default::default()).unwrap();
    assert_eq!(reader.schema().field(0).metadata(), schema.field(0).metadata());
}

#[test]
fn chunks_have_the_requested_number_of_rows_or_leaves() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    let patients = SyntheticPatients::new(4, 24).unwrap().with_chunk_rows(5).unwrap();
    let mut seen = Vec::new();
    patients.write_parquet(&path, &Default::default(), |n| seen.push(n)).unwrap();
    assert_eq!(seen, [5, 10, 15, 20, 24]);
    let options = ParquetReadOptions { chunk_leaves: 40_000, ..Default::default() };
    let rows: Vec<usize> =
        ParquetTableReader::open(&path, &options).unwrap().map(|c| c.unwrap().num_rows()).collect();
    assert_eq!(rows.iter().sum::<usize>(), 24);
    assert!(rows.len() > 3, "{rows:?}");
    let whole = io::read(&path, &Default::default()).unwrap();
    let expected = mimic_table(24, 4).unwrap();
    assert_eq!(whole.column("code").unwrap().values(), expected.column("code").unwrap().values());
    let values = whole
        .column("numeric_value")
        .unwrap()
        .values()
        .as_primitive::<arrow::datatypes::Float32Type>()
        .clone();
    assert!(values.null_count() > 0 && values.iter().flatten().all(|v| !v.is_nan()));
}

#[test]
fn floats_of_measurements_are_dictionary_encoded() {
    // More leaves than an earlier limit of row groups. The values resemble measurements: they have
    // few digits, and most are missing.
    let (rows, each) = (40, 60_000);
    let n = rows * each;
    let number = |i: usize| match (i * 7919) % 10 {
        0..7 => f32::NAN,
        _ => ((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f32 % 100_000.0 / 8.0,
    };
    let values = arrow::array::Float32Array::from_iter_values((0..n).map(number));
    let table = RaggedTable::builder()
        .lengths(vec![each; rows])
        .unwrap()
        .column("value", 1, Arc::new(values))
        .build()
        .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    io::write(&path, &table, &Default::default()).unwrap();
    let file = File::open(&path).unwrap();
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&file).unwrap();
    assert_eq!(metadata.num_row_groups(), 1);
    let column = metadata.row_group(0).column(0);
    // A key takes 17 bits, and the dictionary comes once; plain values would take 4 bytes each.
    let dictionary = 4 * 100_000;
    let most = n * 18 / 8 + dictionary + n / 8;
    let bytes = usize::try_from(column.uncompressed_size()).unwrap();
    assert!(bytes < most, "{bytes} bytes, at most {most} expected");
    assert!(column.dictionary_page_offset().is_some());
    // Only the dictionary page is encoded as plain values.
    let pages = column.page_encoding_stats_mask();
    assert!(pages.is_none_or(|p| p.is_only(parquet::basic::Encoding::RLE_DICTIONARY)), "{pages:?}");
}

#[test]
fn intervals_without_an_arrow_schema_are_refused() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/parquet-types/duckdb.parquet");
    for (columns, refused) in [(vec!["id"], false), (vec!["id", "i"], true), (vec!["s"], true)] {
        let columns = Some(columns.into_iter().map(str::to_owned).collect());
        let options = ParquetReadOptions { columns, ..Default::default() };
        let opened = ParquetTableReader::open(path, &options);
        assert_eq!(opened.is_err_and(|e| e.to_string().contains("months")), refused);
    }
}
