//! Types of Parquet files that Arrow's reader does not return.

use datafusion::parquet::data_type::{ByteArray, ByteArrayType};
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::parquet::file::writer::SerializedFileWriter;
use datafusion::parquet::schema::parser::parse_message_type;

use super::*;

const DUCKDB: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/parquet-types/duckdb.parquet");

#[tokio::test]
async fn uuids_are_strings_and_intervals_have_months() {
    let cases = [
        (
            "SELECT id, u FROM p ORDER BY id",
            "1 550e8400-e29b-41d4-a716-446655440000; 2 ffffffff-ffff-ffff-ffff-ffffffffffff; 3 NULL; 4 00000000-0000-0000-0000-00000000000a",
        ),
        ("SELECT id FROM p WHERE u = '550e8400-e29b-41d4-a716-446655440000'", "1"),
        ("SELECT id FROM p WHERE u > '5' ORDER BY id", "1; 2"),
        ("SELECT id FROM p WHERE u IS NULL", "3"),
        ("SELECT left(max(u), 8), left(min(u), 8), count(u) FROM p", "ffffffff 00000000 3"),
        ("SELECT a.id FROM p a JOIN p b ON a.u = b.s.u ORDER BY a.id", "1; 2; 4"),
        (
            "SELECT left(l[1], 8), l[2], list_contains(l, u) FROM p WHERE id = 2",
            "ffffffff NULL true",
        ),
        (
            "SELECT id, i::VARCHAR FROM p ORDER BY i NULLS LAST",
            "1 1mo 2d 03:00:00.5; 2 50d; 4 1y 2mo; 3 NULL",
        ),
        ("SELECT id FROM p WHERE i >= INTERVAL '2 months'", "4"),
        ("SELECT id FROM p WHERE i IS NULL", "3"),
        ("SELECT DATE '2020-01-01' + i FROM p WHERE id = 4", "2021-03-01T00:00:00"),
        ("SELECT s.i::VARCHAR, s.u = u FROM p WHERE id = 4", "1y 2mo true"),
    ];
    let declared = format!(
        "CREATE EXTERNAL TABLE p (id INT, u VARCHAR, i INTERVAL, l VARCHAR[], s STRUCT(u VARCHAR, i INTERVAL)) STORED AS PARQUET LOCATION '{DUCKDB}'"
    );
    let inferred = format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{DUCKDB}'");
    expect_rows(&[&inferred], &[("SELECT m['k']::VARCHAR FROM p WHERE id = 4", "1y 2mo")]).await;
    for table in [inferred, declared] {
        for filters in ["true", "false"] {
            let setting = format!("SET datafusion.execution.parquet.pushdown_filters = {filters}");
            expect_rows(&[&setting, &table], &cases).await;
        }
    }
}

#[tokio::test]
async fn enumerations_are_strings() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let schema = Arc::new(parse_message_type("message m { required binary e (ENUM); }").unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let values = ["b", "a", "c"].map(ByteArray::from);
    column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    let path = display_path(&path);
    let sorted = format!("SELECT e FROM '{path}' ORDER BY e");
    let found = format!("SELECT e || '!' FROM '{path}' WHERE e = 'b'");
    expect_rows(&[], &[(&sorted, "a; b; c"), (&found, "b!")]).await;
}

/// When this test fails, `read_intervals_as_bytes` of `sql::sources::parquet` can be removed.
#[tokio::test]
async fn stock_months_of_intervals_in_files_are_still_dropped() {
    let stock = SessionContext::new();
    let table = format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{DUCKDB}'");
    stock_batches(&stock, &table).await.unwrap();
    let sql = "SELECT count(*) FROM p WHERE arrow_typeof(i) = 'Interval(DayTime)'";
    assert_eq!(stock_one(&stock, sql).await, 4);
}

#[tokio::test]
async fn dictionaries_of_several_files_have_wide_keys() {
    use datafusion::arrow::array::{DictionaryArray, ListArray};
    use datafusion::arrow::buffer::OffsetBuffer;
    use datafusion::arrow::datatypes::{DataType, Field, Int8Type};
    use datafusion::arrow::ipc::writer::FileWriter;
    use datafusion::parquet::arrow::ArrowWriter;

    let dir = tempfile::tempdir().unwrap();
    for format in ["parquet", "arrow"] {
        std::fs::create_dir(dir.path().join(format)).unwrap();
        for file in 0..3 {
            let texts: Vec<String> = (0..100).map(|i| format!("c{}", file * 100 + i)).collect();
            let codes: DictionaryArray<Int8Type> = texts.iter().map(String::as_str).collect();
            let codes: ArrayRef = Arc::new(codes);
            let item = Arc::new(Field::new_list_field(codes.data_type().clone(), true));
            let offsets = OffsetBuffer::from_lengths([1; 100]);
            let lists = ListArray::new(item, offsets, Arc::clone(&codes), None);
            let ids = Int64Array::from_iter_values(file * 100..file * 100 + 100);
            let columns: Vec<(&str, ArrayRef)> =
                vec![("id", Arc::new(ids)), ("d", codes), ("l", Arc::new(lists))];
            let batch = RecordBatch::try_from_iter(columns).unwrap();
            let path = dir.path().join(format).join(format!("{file}.{format}"));
            let out = std::fs::File::create(path).unwrap();
            if format == "parquet" {
                let mut writer = ArrowWriter::try_new(out, batch.schema(), None).unwrap();
                writer.write(&batch).unwrap();
                writer.close().unwrap();
            } else {
                let mut writer = FileWriter::try_new(out, &batch.schema()).unwrap();
                writer.write(&batch).unwrap();
                writer.finish().unwrap();
            }
        }
        let wide = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let cases = [
            ("SELECT arrow_typeof(d) FROM p LIMIT 1", wide.to_string()),
            (
                "SELECT array_length(array_agg(d)), array_length(array_agg(l)) FROM p",
                "300 300".into(),
            ),
            ("SELECT count(*) FROM (SELECT DISTINCT d, l FROM p)", "300".into()),
            ("SELECT count(*) FROM p a JOIN p b ON a.d = b.d AND a.l = b.l", "300".into()),
            ("SELECT id, l[1] FROM p WHERE d = 'c250'", "250 c250".into()),
            ("SELECT max(d), min(id) FROM p WHERE d > 'c297'", "c99 3".into()),
        ];
        let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (*sql, &**rows)).collect();
        let folder = display_path(&dir.path().join(format));
        let table = format!("CREATE EXTERNAL TABLE p STORED AS {format} LOCATION '{folder}/'");
        expect_rows(&[&table], &cases).await;
    }
}
