//! Arrow arrays may hold values below a NULL struct or list. No function returns them.

use datafusion::arrow::array::{FixedSizeListArray, ListArray, StringArray, StructArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::datasource::MemTable;
use datafusion::parquet::arrow::ArrowWriter;

use super::*;

/// Returns the rows 1 to 3. The struct and the lists of the second row are NULL, and their arrays
/// hold values for this row.
fn make_hidden_values() -> RecordBatch {
    let nulls = NullBuffer::from(vec![true, false, true]);
    let item = Arc::new(Field::new("item", DataType::Int64, true));
    let fields = vec![
        Field::new("a", DataType::Int64, true),
        Field::new("b", DataType::Utf8, true),
        Field::new("x", DataType::List(Arc::clone(&item)), true),
    ];
    let offsets = || OffsetBuffer::new(ScalarBuffer::from(vec![0, 1, 3, 4]));
    let open = ListArray::new(Arc::clone(&item), offsets(), make_ints([1, 2, 3, 4]), None);
    let columns: Vec<ArrayRef> = vec![
        make_ints([1, 7, 3]),
        Arc::new(StringArray::from(vec!["p", "q", "r"])),
        Arc::new(open),
    ];
    let structs = StructArray::new(fields.into(), columns, Some(nulls.clone()));
    let of = structs.clone();
    let outer = StructArray::new(
        vec![Field::new("s", of.data_type().clone(), true)].into(),
        vec![Arc::new(of)],
        Some(NullBuffer::from(vec![false, true, true])),
    );
    let lists =
        ListArray::new(Arc::clone(&item), offsets(), make_ints([1, 2, 3, 4]), Some(nulls.clone()));
    let inner = Arc::new(Field::new("item", lists.data_type().clone(), true));
    let nested = OffsetBuffer::new(ScalarBuffer::from(vec![0, 1, 2, 3]));
    let nested = ListArray::new(inner, nested, Arc::new(lists.clone()), None);
    let fixed = FixedSizeListArray::new(item, 2, make_ints([1, 2, 3, 4, 5, 6]), Some(nulls));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", make_ints([1, 2, 3])),
        ("s", Arc::new(structs)),
        ("o", Arc::new(outer)),
        ("x", Arc::new(lists)),
        ("xx", Arc::new(nested)),
        ("f", Arc::new(fixed)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn with_hidden(ctx: &SessionContext) {
    let batch = make_hidden_values();
    let schema: Arc<Schema> = batch.schema();
    let table = MemTable::try_new(schema, vec![vec![batch]]).unwrap();
    ctx.register_table("h", Arc::new(table)).unwrap();
}

#[tokio::test]
async fn fields_of_null_structs_are_null() {
    let ctx = create_parallel_session();
    with_hidden(&ctx);
    let folder = tempfile::tempdir().unwrap();
    let (arrow, parquet) = (folder.path().join("h.arrow"), folder.path().join("h.parquet"));
    for file in [&arrow, &parquet] {
        let copy = format!("COPY h TO '{}'", display_path(file));
        serrate::sql::sql(&ctx, &copy).await.unwrap().collect().await.unwrap();
    }
    let tables = [
        "h".to_owned(),
        format!("'{}'", display_path(&arrow)),
        format!("'{}'", display_path(&parquet)),
    ];
    let mut wrong = String::new();
    for table in tables {
        for (sql, expected) in [
            ("SELECT s.a FROM h ORDER BY id", "1; NULL; 3"),
            ("SELECT s['b'] FROM h ORDER BY id", "p; NULL; r"),
            ("SELECT id FROM h WHERE s.a = 7", ""),
            ("SELECT id FROM h WHERE s.a IS NULL", "2"),
            ("SELECT count(s.a), max(s.a), sum(s.a) FROM h", "2 3 4"),
            ("SELECT s.a FROM h ORDER BY id LIMIT 1 OFFSET 1", "NULL"),
            (
                "SELECT coalesce(s.a, -1) AS a, count(*) FROM h GROUP BY s.a ORDER BY a",
                "-1 1; 1 1; 3 1",
            ),
            ("SELECT o.s.a FROM h ORDER BY id", "NULL; NULL; 3"),
            ("SELECT o.s IS NULL FROM h ORDER BY id", "true; true; false"),
            ("SELECT s.x FROM h ORDER BY id", "[1]; NULL; [4]"),
            ("SELECT list_append(s.x, 9) FROM h ORDER BY id", "[1, 9]; [9]; [4, 9]"),
            ("SELECT id, unnest(s) FROM h ORDER BY id", "1 1 p [1]; 2 NULL NULL NULL; 3 3 r [4]"),
            ("SELECT a.id FROM h a JOIN h b ON a.s.a = b.s.a ORDER BY 1", "1; 3"),
        ] {
            let found = rows_or_error(
                &ctx,
                &sql.replace("FROM h", &format!("FROM {table}"))
                    .replace("JOIN h", &format!("JOIN {table}")),
            )
            .await;
            if found != expected {
                wrong.push_str(&format!("{table}: {sql}\n  has   {found}\n  not   {expected}\n"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Writes rows whose second struct is NULL. The fields of the struct may be NULL or not, as
/// `nullable` says.
fn write_structs(file: &std::path::Path, nullable: bool) {
    let inner = vec![Field::new("q", DataType::Int64, nullable)];
    let inner = StructArray::new(inner.into(), vec![make_ints([5, 6, 7])], None);
    let fields = vec![
        Field::new("a", DataType::Int64, nullable),
        Field::new("n", inner.data_type().clone(), nullable),
    ];
    let nulls = NullBuffer::from(vec![true, false, true]);
    let structs =
        StructArray::new(fields.into(), vec![make_ints([1, 2, 3]), Arc::new(inner)], Some(nulls));
    let columns: Vec<(&str, ArrayRef)> =
        vec![("id", make_ints([1, 2, 3])), ("s", Arc::new(structs))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = std::fs::File::create(file).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[tokio::test]
async fn required_fields_of_null_structs_are_null() {
    let dir = tempfile::tempdir().unwrap();
    let mixed = dir.path().join("mixed");
    std::fs::create_dir(&mixed).unwrap();
    write_structs(&dir.path().join("one.parquet"), false);
    write_structs(&mixed.join("1.parquet"), true);
    write_structs(&mixed.join("2.parquet"), false);
    let one = display_path(&dir.path().join("one.parquet"));
    let mixed = display_path(&mixed);
    let declared = format!(
        "CREATE EXTERNAL TABLE d (id BIGINT, s STRUCT(a BIGINT, n STRUCT(q BIGINT))) STORED AS PARQUET LOCATION '{one}'"
    );
    let mut cases: Vec<(String, &str)> = Vec::new();
    for table in
        [format!("'{one}'"), "d".to_owned(), format!("(SELECT * FROM '{mixed}/2.parquet')")]
    {
        cases.extend([
            (
                format!("SELECT id, s.a, s.n.q FROM {table} t ORDER BY id"),
                "1 1 5; 2 NULL NULL; 3 3 7",
            ),
            (format!("SELECT id FROM {table} t WHERE s.a IS NULL"), "2"),
            (format!("SELECT id FROM {table} t WHERE s.n.q IS NULL"), "2"),
            (format!("SELECT id FROM {table} t WHERE s.a = 3"), "3"),
            (format!("SELECT count(s.a), sum(s.n.q), count(*) FROM {table} t"), "2 12 3"),
            (
                format!("SELECT id, unnest(s) FROM {table} t ORDER BY id"),
                "1 1 {q: 5}; 2 NULL NULL; 3 3 {q: 7}",
            ),
        ]);
    }
    cases.push((
        format!("SELECT id, s.a FROM '{mixed}' ORDER BY id, s.a"),
        "1 1; 1 1; 2 NULL; 2 NULL; 3 3; 3 3",
    ));
    cases.push((format!("SELECT id FROM '{mixed}' WHERE s.a IS NULL"), "2; 2"));
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    for filters in ["true", "false"] {
        let setting = format!("SET datafusion.execution.parquet.pushdown_filters = {filters}");
        expect_rows(&[&setting, &declared], &cases).await;
    }
}

#[tokio::test]
async fn null_lists_have_no_elements() {
    let ctx = create_parallel_session();
    with_hidden(&ctx);
    let mut wrong = String::new();
    for (sql, expected) in [
        ("SELECT list_append(x, 7) FROM h ORDER BY id", "[1, 7]; [7]; [4, 7]"),
        ("SELECT list_prepend(7, x) FROM h ORDER BY id", "[7, 1]; [7]; [7, 4]"),
        ("SELECT array_append(f, 9) FROM h ORDER BY id", "[1, 2, 9]; [9]; [5, 6, 9]"),
        ("SELECT array_prepend(9, f) FROM h ORDER BY id", "[9, 1, 2]; [9]; [9, 5, 6]"),
        ("SELECT array_repeat(x, 2) FROM h ORDER BY id", "[[1], [1]]; [, ]; [[4], [4]]"),
        ("SELECT flatten(xx) FROM h ORDER BY id", "[1]; []; [4]"),
        ("SELECT flatten(array_agg(x ORDER BY id)) FROM h", "[1, 4]"),
        ("SELECT flatten(array_agg(f ORDER BY id)) FROM h", "[1, 2, 5, 6]"),
        (
            "SELECT list_append(nullif(x, [2, 3]), 7) FROM (SELECT coalesce(x, [2, 3]) AS x, id FROM h) ORDER BY id",
            "[1, 7]; [7]; [4, 7]",
        ),
        ("SELECT list_transform(array_agg(s ORDER BY id), z -> z['a']) FROM h", "[1, , 3]"),
        (
            "SELECT q['a'] FROM (SELECT unnest(r) AS q FROM (SELECT array_agg(s ORDER BY id) AS r FROM h))",
            "1; NULL; 3",
        ),
    ] {
        let found = rows_or_error(&ctx, sql).await;
        if found != expected {
            wrong.push_str(&format!("{sql}\n  has   {found}\n  not   {expected}\n"));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Functions of lists return the same for lists with and without hidden elements.
#[tokio::test]
async fn functions_of_lists_ignore_hidden_elements() {
    let ctx = create_parallel_session();
    with_hidden(&ctx);
    let plain = "CREATE TABLE p AS SELECT id, CASE WHEN id <> 2 THEN x END AS x, [CASE WHEN id <> 2 THEN x END] AS xx,
        CASE WHEN id <> 2 THEN {'a': s.a, 'b': s.b} END AS s FROM h";
    serrate::sql::sql(&ctx, plain).await.unwrap().collect().await.unwrap();
    let mut wrong = String::new();
    for call in [
        "array_any_value(x)",
        "array_concat(x, [1])",
        "array_dims(xx)",
        "array_dims(x)",
        "array_distance([1.0], [2.0])",
        "array_distinct(x)",
        "array_distinct(xx)",
        "array_element(x, 1)",
        "array_element(xx, 1)",
        "array_empty(x)",
        "array_except(x, [1])",
        "array_has(x, 2)",
        "array_has_all(x, [2])",
        "array_has_any(x, [2])",
        "array_intersect(x, [2])",
        "array_length(x)",
        "array_length(xx, 2)",
        "array_max(x)",
        "array_min(x)",
        "array_ndims(xx)",
        "array_pop_back(x)",
        "array_pop_back(xx)",
        "array_pop_front(x)",
        "array_position(x, 2)",
        "array_positions(x, 2)",
        "array_remove(x, 2)",
        "array_remove_all(x, 2)",
        "array_replace(x, 2, 5)",
        "array_replace_all(x, 2, 5)",
        "array_resize(x, 3, 0)",
        "array_reverse(x)",
        "array_reverse(xx)",
        "array_slice(x, 1, 2)",
        "array_sort(x)",
        "array_to_string(x, ',')",
        "array_to_string(xx, ',')",
        "array_union(x, [1])",
        "arrays_overlap(x, [2])",
        "cardinality(xx)",
        "x || 7",
        "7 || x",
        "x || x",
        "xx || xx",
        "list_sum(x)",
        "len(x)",
        "x = [2, 3]",
        "xx = [[2, 3]]",
        "x IN ([2, 3])",
        "md5(x::VARCHAR)",
        "x::VARCHAR",
        "xx::VARCHAR",
        "coalesce(x, [0])",
        "greatest(x, [0])",
        "list_transform(xx, z -> len(z))",
        "list_filter(x, z -> z > 0)",
        "s::VARCHAR",
        "s = {'a': 7, 'b': 'q'}",
        "array_has(array_repeat(s, 1), {'a': 7, 'b': 'q'})",
    ] {
        let hidden = format!(
            "SELECT {call} FROM (SELECT id, x, xx, nullif(CASE WHEN s IS NULL THEN {{'a': 7, 'b': 'q'}} ELSE {{'a': s.a, 'b': s.b}} END, {{'a': 7, 'b': 'q'}}) AS s FROM h) ORDER BY id"
        );
        let found = rows_or_error(&ctx, &hidden).await;
        let plain = rows_or_error(&ctx, &format!("SELECT {call} FROM p ORDER BY id")).await;
        if found != plain {
            wrong.push_str(&format!("{call}\n  has   {found}\n  not   {plain}\n"));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// When this test fails, `functions::hidden` need not replace `get_field` or mask structs.
#[tokio::test]
async fn stock_fields_of_null_are_still_values() {
    let ctx = SessionContext::new();
    with_hidden(&ctx);
    assert_eq!(stock_ints(&ctx, "SELECT max(s['a']) FROM h WHERE s IS NULL").await, [7]);
}

/// When this test fails, `functions::hidden` need not replace functions of lists.
#[tokio::test]
async fn stock_lists_of_null_still_have_elements() {
    let ctx = SessionContext::new();
    with_hidden(&ctx);
    let sql = "SELECT array_length(array_append(x, 7)) FROM h WHERE id = 2";
    assert_eq!(stock_ints(&ctx, sql).await, [3]);
}

const COMPUTED: [&str; 1] =
    ["CREATE TABLE t AS SELECT * FROM (VALUES (1, 7, {b: 'x'}), (2, 8, {b: 'y'})) v(a, c, s)"];

const COMPUTED_ROWS: [(&str, &str); 6] = [
    ("SELECT a, s.b FROM (SELECT -a AS a, s FROM t WHERE a > 0) ORDER BY a", "-2 y; -1 x"),
    ("SELECT a, s.b FROM (SELECT a * 10 AS a, s FROM t LIMIT 10) ORDER BY a", "10 x; 20 y"),
    ("SELECT a, s.b FROM (SELECT -a AS a, s FROM t) WHERE a < 0 ORDER BY a", "-2 y; -1 x"),
    ("SELECT a, count(s.b) FROM (SELECT -a AS a, s FROM t) GROUP BY a ORDER BY a", "-2 1; -1 1"),
    ("SELECT a, s.b FROM (SELECT c AS a, s FROM t LIMIT 10) ORDER BY a", "7 x; 8 y"),
    (
        "SELECT count(*) FROM (SELECT s, s.a AS f FROM (SELECT {a: random()} AS s FROM generate_series(1, 50))) WHERE s.a <> f",
        "0",
    ),
];

#[tokio::test]
async fn fields_do_not_replace_computed_columns() {
    expect_rows(&COMPUTED, &COMPUTED_ROWS).await;
    let dir = tempfile::tempdir().unwrap();
    let file = display_path(&dir.path().join("t.parquet"));
    let copy = format!("COPY t TO '{file}' OPTIONS (overwrite true)");
    let cases =
        COMPUTED_ROWS.map(|(sql, rows)| (sql.replace("FROM t", &format!("FROM '{file}'")), rows));
    let cases: Vec<(&str, &str)> = cases.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[COMPUTED[0], &copy], &cases).await;
}

/// When this test fails, `extract_leaf_expressions` and `push_down_leaf_projections` can run again.
#[tokio::test]
async fn stock_fields_still_replace_computed_columns() {
    let stock = SessionContext::new();
    let table = "CREATE TABLE t AS SELECT column1 AS a, named_struct('b', column2) AS s FROM (VALUES (1, 'x'), (2, 'y'))";
    stock_batches(&stock, table).await.unwrap();
    let sql =
        "SELECT a FROM (SELECT a, s['b'] FROM (SELECT -a AS a, s FROM t WHERE a > 0)) ORDER BY a";
    assert_ne!(stock_ints(&stock, sql).await, [-2, -1]);
}

#[tokio::test]
async fn keys_are_cast_to_the_key_type_of_the_map() {
    let setup = [
        "CREATE TABLE t AS SELECT MAP {1::INT: 'x', 2::INT: 'y'} AS m, MAP {DATE '2024-01-01': 5} AS d, MAP {'a': 1} AS s, 1 AS n",
    ];
    let cases = [
        ("SELECT m[1], m[2::BIGINT], m[3], m[1.5] FROM t", "x y NULL NULL"),
        (
            "SELECT d['2024-01-01'], s['a'], s[arrow_cast('a', 'Utf8View')], m[NULL] FROM t",
            "5 1 1 NULL",
        ),
        ("SELECT map_extract(s, 'a'), map_extract(NULLIF(s, s), 'a') FROM t", "[1] NULL"),
        (
            "SELECT len(map_extract(s, 'b')), len(map_extract(m, n + 5)), map_extract(m, n) FROM t",
            "0 0 [x]",
        ),
        (
            "SELECT len(map_extract(MAP {'a': NULL, 'b': 1}, 'a')), len(element_at(MAP {'a': 1}, NULL))",
            "1 0",
        ),
        (
            "SELECT map_extract(NULLIF(m, v), 'a') FROM (VALUES (MAP {'a': 1}, MAP {'a': 1}), (MAP {'a': 4}, MAP {'a': 7})) w(m, v)",
            "NULL; [4]",
        ),
    ];
    expect_rows(&setup, &cases).await;
}

#[tokio::test]
async fn maps_find_keys_of_other_types_and_zeros_of_either_sign() {
    let dir = tempfile::tempdir().unwrap();
    let file = display_path(&dir.path().join("m.parquet"));
    let table = "CREATE TABLE t AS SELECT * FROM (VALUES
        (1, MAP {1::INT: 'x', 2::INT: 'y'}, MAP {-0.0::DOUBLE: 5, 2.5: -6}, {'m': MAP {0.0::FLOAT: 7}}, 0.0::DOUBLE),
        (2, NULL, MAP {'NaN'::DOUBLE: 8}, {'m': NULL}, 'NaN'::DOUBLE)) v(id, m, d, s, k)";
    let copy = format!("COPY t TO '{file}'");
    let cases = [
        (
            "SELECT m[1], m[2::SMALLINT], m[1.5], m[-0.0] FROM t ORDER BY id LIMIT 1",
            "x y NULL NULL",
        ),
        (
            "SELECT d[0.0], d[-0.0], d[0], d[2.5] FROM t ORDER BY id",
            "5 5 5 -6; NULL NULL NULL NULL",
        ),
        ("SELECT d['NaN'::DOUBLE], d[-'NaN'::DOUBLE] FROM t ORDER BY id", "NULL NULL; 8 8"),
        ("SELECT s.m[0.0], s['m'][-0.0::DOUBLE] FROM t ORDER BY id", "7 7; NULL NULL"),
        ("SELECT map_extract(d, -k), element_at(d, k) FROM t ORDER BY id", "[5] [5]; [8] [8]"),
        ("SELECT d[-k], d[k], m[id], m[3 - id] FROM t ORDER BY id", "5 5 x y; 8 8 NULL NULL"),
        ("SELECT list_transform([0, 1], i -> m[i + 1]) FROM t ORDER BY id", "[x, y]; [, ]"),
        ("SELECT m[max(id) - 1] FROM t GROUP BY m ORDER BY 1", "NULL; NULL"),
        ("SELECT id FROM t WHERE d[0.0] = 5", "1"),
        (
            "SELECT map([0.0], [1])[-0.0], map_extract(map([-0.0], [1]), 0.0) FROM t LIMIT 1",
            "1 [1]",
        ),
        // A value of a map keeps the sign of zero.
        ("SELECT MAP {0.0: -0.0}[0.0]::VARCHAR FROM t LIMIT 1", "-0.0"),
    ];
    let files: Vec<(String, &str)> = cases
        .iter()
        .map(|(sql, rows)| (sql.replace("FROM t", &format!("FROM '{file}'")), *rows))
        .collect();
    expect_rows(&[table], &cases).await;
    let ctx = create_parallel_session();
    for sql in [table, copy.as_str()] {
        serrate::sql::sql(&ctx, sql).await.unwrap().collect().await.unwrap();
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(sql, rows)| (sql.as_str(), *rows)).collect();
    expect_rows(&[], &files).await;
}

#[tokio::test]
async fn required_fixed_size_lists_of_null_are_sorted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.parquet");
    let item = Arc::new(Field::new("item", DataType::Int64, false));
    let lists = FixedSizeListArray::new(item, 2, make_ints([1, 2, 9, 9, 0, 5]), None);
    let fields = vec![Field::new("f", lists.data_type().clone(), false)];
    let nulls = NullBuffer::from(vec![true, false, true]);
    let structs = StructArray::new(fields.into(), vec![Arc::new(lists)], Some(nulls));
    let columns: Vec<(&str, ArrayRef)> =
        vec![("id", make_ints([1, 2, 3])), ("s", Arc::new(structs))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    expect_rows(
        &[&format!("CREATE VIEW t AS SELECT * FROM '{}'", display_path(&path))],
        &[
            ("SELECT s FROM t ORDER BY s", "{f: [0, 5]}; {f: [1, 2]}; NULL"),
            ("SELECT id FROM t ORDER BY s DESC NULLS LAST LIMIT 2", "1; 3"),
            (
                "SELECT s, count(*) FROM t GROUP BY s ORDER BY s",
                "{f: [0, 5]} 1; {f: [1, 2]} 1; NULL 1",
            ),
            ("SELECT s.f FROM t ORDER BY s.f", "[0, 5]; [1, 2]; NULL"),
            ("SELECT id FROM t WHERE s.f[2] = 5", "3"),
            ("SELECT a.id FROM t a JOIN t b ON a.s = b.s ORDER BY a.id", "1; 3"),
            ("SELECT id FROM t WHERE s IS NULL", "2"),
        ],
    )
    .await;
}
