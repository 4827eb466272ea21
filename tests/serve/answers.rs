//! Results of the server: catalog, types, prepared statements, updates and sessions.

use std::sync::Arc;

use arrow_flight::FlightDescriptor;
use arrow_flight::sql::{
    CommandGetDbSchemas, CommandGetPrimaryKeys, CommandGetTables, CommandGetXdbcTypeInfo,
    CommandStatementIngest, CommandStatementQuery, ProstMessageExt, SqlInfo,
    TableDefinitionOptions, TableExistsOption, TableNotExistOption,
};
use datafusion::arrow::array::{
    ArrayRef, AsArray, Float64Array, Int64Array, ListArray, RecordBatch, StringArray,
};
use datafusion::arrow::datatypes::{DataType, Int64Type, Schema};
use datafusion::arrow::ipc::convert::try_schema_from_ipc_buffer;
use datafusion::arrow::util::pretty::pretty_format_batches;
use futures::stream;
use prost::Message;
use serrate::datafusion;
use tonic::Code;

use super::process::{
    Client, ServerProcess, query_number, query_refusal, read_batches, read_stream, run_query,
    show_setting, status_of,
};

/// Queries whose results have many types. Some of their columns are nullable, others are not.
const QUERIES: &[&str] = &[
    "SELECT 1 AS a, NULL AS b, 'x' AS c, true AS d, 1.5 AS e",
    "SELECT [1, 2] AS a, [[1], []] AS b, {'x': [1], 'y': 'z'} AS c",
    "SELECT count(*) AS n, sum(x) AS s FROM (VALUES (1), (2)) AS t(x)",
    "SELECT x, arrow_cast(x, 'LargeList(Int64)') AS l FROM (VALUES ([1, 2]), ([])) AS t(x)",
    "SELECT arrow_cast(x, 'Dictionary(Int32, Utf8)') AS d FROM (VALUES ('a'), ('b')) AS t(x)",
    "SELECT arrow_cast(x, 'Utf8View') AS v, arrow_cast([x], 'List(Utf8View)') AS w FROM (VALUES ('a'), (NULL)) AS t(x)",
    "SELECT TIMESTAMP '2024-01-01 10:00:00' AS t, DATE '2024-01-01' AS d, INTERVAL '1 day' AS i",
    "SELECT densify([[1, 2], [3]], [2, 2]) AS m",
    "SELECT ragged_sum([[1, 2], [3]]) AS s, ragged_lengths([[1, 2], [3]]) AS l",
    "SELECT 1 WHERE false",
    "SELECT arrow_cast('ab', 'Binary') AS b, arrow_cast(1.25, 'Decimal128(5, 2)') AS d",
    "SHOW datafusion.execution.batch_size",
    "EXPLAIN SELECT 1",
    "SUMMARIZE SELECT 1 AS a",
    "FROM (SELECT 1 AS a)",
    "SELECT x FROM (SELECT unnest(range(10000)) AS x)",
];

#[tokio::test]
async fn results_have_the_schema_of_their_flight_info() {
    let server = ServerProcess::start(&[]);
    let mut client = server.connect().await;
    let here = serrate::sql::session();
    for sql in QUERIES {
        // `run_query` asserts that the result has the schema of its FlightInfo.
        let rows = run_query(&mut client, sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
        let frame = serrate::sql::sql(&here, sql).await.unwrap();
        let expected = frame.collect().await.unwrap();
        let shown = |rows: &[RecordBatch]| pretty_format_batches(rows).unwrap().to_string();
        if !rows.is_empty() {
            assert_eq!(shown(&rows), shown(&expected), "{sql}");
        } else {
            assert_eq!(expected.iter().map(RecordBatch::num_rows).sum::<usize>(), 0, "{sql}");
        }
    }
    let rows = run_query(&mut client, QUERIES[3]).await.unwrap();
    assert!(matches!(rows[0].schema().field(1).data_type(), DataType::LargeList(_)));
    assert!(
        !run_query(&mut client, "SELECT 1 AS a").await.unwrap()[0].schema().field(0).is_nullable()
    );
}

#[tokio::test]
async fn the_catalog_lists_tables_and_their_types() {
    let server = ServerProcess::start(&[]);
    let mut client = server.connect().await;
    client
        .execute_update("CREATE TABLE visits AS SELECT 1 AS id, [[1, 2]] AS codes".into(), None)
        .await
        .unwrap();
    show_setting(&mut client, "CREATE SCHEMA other").await;
    show_setting(&mut client, "CREATE VIEW other.short AS SELECT id FROM visits").await;
    let info = client.get_catalogs().await.unwrap();
    assert_eq!(read_batches(&mut client, info).await.unwrap()[0].num_rows(), 1);
    let schemas =
        CommandGetDbSchemas { catalog: None, db_schema_filter_pattern: Some("oth%".into()) };
    let info = client.get_db_schemas(schemas).await.unwrap();
    let rows = read_batches(&mut client, info).await.unwrap();
    assert_eq!(rows[0].column(1).as_string::<i32>().value(0), "other");
    let tables = |kinds: &[&str], name: Option<&str>| CommandGetTables {
        catalog: None,
        db_schema_filter_pattern: None,
        table_name_filter_pattern: name.map(str::to_owned),
        table_types: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
        include_schema: true,
    };
    let info = client.get_tables(tables(&[], Some("vis%"))).await.unwrap();
    let rows = read_batches(&mut client, info).await.unwrap();
    assert_eq!(rows[0].num_rows(), 1);
    assert_eq!(rows[0].column(2).as_string::<i32>().value(0), "visits");
    let bytes = rows[0].column(4).as_binary::<i32>().value(0);
    let schema = try_schema_from_ipc_buffer(bytes).unwrap();
    let selected = run_query(&mut client, "SELECT * FROM visits").await.unwrap();
    assert_eq!(&schema, selected[0].schema().as_ref(), "the schema of a table with a list column");
    let info = client.get_tables(tables(&["VIEW"], None)).await.unwrap();
    let rows = read_batches(&mut client, info).await.unwrap();
    assert_eq!(rows[0].column(2).as_string::<i32>().value(0), "short");
    let info = client.get_table_types().await.unwrap();
    assert_eq!(read_batches(&mut client, info).await.unwrap()[0].num_rows(), 3);
    let info = client.get_sql_info(vec![SqlInfo::FlightSqlServerName]).await.unwrap();
    assert_eq!(read_batches(&mut client, info).await.unwrap()[0].num_rows(), 1);
    let types = CommandGetXdbcTypeInfo { data_type: None };
    let info = client.get_xdbc_type_info(types).await.unwrap();
    assert!(read_batches(&mut client, info).await.unwrap()[0].num_rows() > 10);
    let keys = CommandGetPrimaryKeys { catalog: None, db_schema: None, table: "visits".into() };
    let info = client.get_primary_keys(keys).await.unwrap();
    let rows = read_batches(&mut client, info).await.unwrap();
    assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
}

fn batch_of(columns: Vec<ArrayRef>) -> RecordBatch {
    let columns = columns.into_iter().enumerate();
    RecordBatch::try_from_iter_with_nullable(columns.map(|(i, c)| (format!("p{i}"), c, true)))
        .unwrap()
}

/// Runs a prepared statement with the given parameters, and returns its rows as a table of text.
async fn query_with(client: &mut Client, sql: &str, columns: Vec<ArrayRef>) -> String {
    let mut statement = client.prepare(sql.to_owned(), None).await.unwrap();
    statement.set_parameters(batch_of(columns)).unwrap();
    let info = statement.execute().await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    let rows = read_batches(client, info).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    statement.close().await.unwrap();
    pretty_format_batches(&rows).unwrap().to_string()
}

fn make_integers(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

#[tokio::test]
async fn prepared_statements_take_parameters() {
    let server = ServerProcess::start(&[]);
    let mut client = server.connect().await;
    show_setting(&mut client, "CREATE TABLE t AS SELECT unnest(range(10)) AS x").await;
    let said = query_with(
        &mut client,
        "SELECT count(*) AS n FROM t WHERE x >= ? AND x < ?",
        vec![make_integers(&[Some(3)]), make_integers(&[Some(7)])],
    )
    .await;
    assert!(said.contains("| 4 |"), "{said}");
    // A parameter keeps its type: 2.5 is not cast to the integer type of `x`.
    let half: ArrayRef = Arc::new(Float64Array::from(vec![2.5]));
    let said =
        query_with(&mut client, "SELECT count(*) AS n FROM t WHERE x > $1", vec![half]).await;
    assert!(said.contains("| 7 |"), "{said}");
    let said = query_with(
        &mut client,
        "SELECT x FROM t ORDER BY x LIMIT ?",
        vec![make_integers(&[Some(2)])],
    )
    .await;
    assert_eq!(said.lines().count(), 6, "{said}");
    let evil: ArrayRef = Arc::new(StringArray::from(vec!["'; DROP TABLE t; --"]));
    let said = query_with(&mut client, "SELECT $1 AS a, $1 || '!' AS b", vec![evil]).await;
    assert!(said.contains("'; DROP TABLE t; --!"), "{said}");
    let list: ArrayRef =
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1), None])]));
    let said = query_with(
        &mut client,
        "SELECT ragged_sum(?) AS s, ? IS NULL AS n",
        vec![list, make_integers(&[None])],
    )
    .await;
    assert!(said.contains("| 1 | true |"), "{said}");
    // For several rows of parameters, the result has the rows for each of them, one after the
    // other.
    let many = vec![make_integers(&[Some(1), Some(5)])];
    let said = query_with(&mut client, "SELECT x FROM t WHERE x = ?", many).await;
    assert!(said.contains("| 1 |") && said.contains("| 5 |"), "{said}");

    let mut query = client.prepare("SELECT x FROM t WHERE x = ?".into(), None).await.unwrap();
    query.set_parameters(batch_of(vec![make_integers(&[Some(1); 1025])])).unwrap();
    let refused = query.execute().await.unwrap_err();
    assert!(refused.to_string().contains("at most 1024 rows"), "{refused}");

    let statement = client.prepare("SELECT x, ? AS p FROM t WHERE x = $2".into(), None).await;
    drop(statement);
    let mut statement = client.prepare("SELECT x FROM t WHERE x = ?".into(), None).await.unwrap();
    let types = statement.parameter_schema().unwrap();
    assert_eq!((types.fields().len(), types.field(0).data_type()), (1, &DataType::Int64));
    let unbound = statement.execute().await.unwrap_err();
    assert!(unbound.to_string().contains("without values"), "{unbound}");
    statement
        .set_parameters(batch_of(vec![make_integers(&[Some(1)]), make_integers(&[Some(1)])]))
        .unwrap();
    let wrong = statement.execute().await.unwrap_err();
    assert!(
        wrong.to_string().contains("1 parameter(s), but a bound row has 2 value(s)"),
        "{wrong}"
    );
    let mut insert = client.prepare("INSERT INTO t VALUES (?)".into(), None).await.unwrap();
    insert.set_parameters(batch_of(vec![make_integers(&[Some(100), Some(101), None])])).unwrap();
    assert_eq!(insert.execute_update().await.unwrap(), 3);
    assert_eq!(query_number(&mut client, "SELECT count(*) FROM t WHERE x >= 100").await, 2);
    let prepared = client.prepare("SELECT 1 AS a, [2] AS b".into(), None).await.unwrap();
    assert_eq!(prepared.dataset_schema().unwrap().fields().len(), 2);
    let wrong = client.prepare("SELECT nothing FROM t".into(), None).await.unwrap_err();
    assert_eq!(status_of(wrong).code(), Code::InvalidArgument);
    assert!(query_refusal(&mut client, "SELECT ?").await.1.contains("prepare it"));
}

#[tokio::test]
async fn statements_with_side_effects_run_exactly_once() {
    let dir = tempfile::tempdir().unwrap();
    let server = ServerProcess::start_in(dir.path(), &[]);
    let mut client = server.connect().await;
    // The client does not read the result, but the statement runs.
    client.execute("CREATE TABLE t AS SELECT 1 AS x".into(), None).await.unwrap();
    assert_eq!(query_number(&mut client, "SELECT count(*) FROM t").await, 1);
    let info = client.execute("INSERT INTO t VALUES (2), (3)".into(), None).await.unwrap();
    let rows = read_batches(&mut client, info).await.unwrap();
    assert_eq!(pretty_format_batches(&rows).unwrap().to_string().lines().count(), 5);
    assert_eq!(query_number(&mut client, "SELECT count(*) FROM t").await, 3);
    assert_eq!(client.execute_update("DELETE FROM t WHERE x = 2".into(), None).await.unwrap(), 1);
    assert_eq!(client.execute_update("UPDATE t SET x = 7".into(), None).await.unwrap(), 2);
    assert_eq!(client.execute_update("SET serrate.mmap = false".into(), None).await.unwrap(), 0);
    assert_eq!(client.execute_update("SELECT 1".into(), None).await.unwrap(), -1);
    let copy = "COPY (SELECT [1, 2] AS x FROM t) TO 'x.nrt'";
    assert_eq!(client.execute_update(copy.into(), None).await.unwrap(), 2);
    let (code, said) = query_refusal(&mut client, copy).await;
    assert_eq!(code, Code::AlreadyExists, "{said}");
    assert_eq!(query_number(&mut client, "SELECT sum(ragged_sum(x)) FROM 'x.nrt'").await, 6);
    // GetSchema and CreatePreparedStatement do not run the statement.
    client.prepare("DROP TABLE t".into(), None).await.unwrap();
    let command = CommandStatementQuery { query: "DELETE FROM t".into(), transaction_id: None };
    let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
    client.inner_mut().get_schema(descriptor).await.unwrap();
    assert_eq!(query_number(&mut client, "SELECT count(*) FROM t").await, 2);
    let (code, said) = query_refusal(&mut client, "SELECT 1; SELECT 2").await;
    assert!(code == Code::InvalidArgument && said.contains("2 statements"), "{said}");
    assert!(client.begin_transaction().await.is_err());
}

#[tokio::test]
async fn clients_can_upload_tables() {
    let server = ServerProcess::start(&[]);
    let mut client = server.connect().await;
    let batch =
        || batch_of(vec![make_integers(&[Some(1), None]), make_integers(&[Some(5), Some(6)])]);
    let command = |if_exists: TableExistsOption| CommandStatementIngest {
        table_definition_options: Some(TableDefinitionOptions {
            if_not_exist: TableNotExistOption::Create.into(),
            if_exists: if_exists.into(),
        }),
        table: "Sent".into(),
        schema: None,
        catalog: None,
        temporary: false,
        transaction_id: None,
        options: Default::default(),
    };
    let batches = || stream::iter([Ok(batch()), Ok(batch())]);
    let sent = client.execute_ingest(command(TableExistsOption::Fail), batches()).await.unwrap();
    assert_eq!(sent, 4);
    assert_eq!(query_number(&mut client, "SELECT sum(p1) FROM \"Sent\"").await, 22);
    let again = client.execute_ingest(command(TableExistsOption::Fail), batches()).await;
    assert_eq!(status_of(again.unwrap_err()).code(), Code::AlreadyExists);
    client.execute_ingest(command(TableExistsOption::Append), batches()).await.unwrap();
    assert_eq!(query_number(&mut client, "SELECT count(*) FROM \"Sent\"").await, 8);
    client.execute_ingest(command(TableExistsOption::Replace), batches()).await.unwrap();
    assert_eq!(query_number(&mut client, "SELECT count(*) FROM \"Sent\"").await, 4);
    let tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'";
    assert_eq!(query_number(&mut client, tables).await, 1);
}

#[tokio::test]
async fn each_connection_has_its_session() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("init.sql"), "SET serrate.nrt_nan = 'nan'; CREATE TABLE shared AS SELECT 5 AS x; CREATE VIEW twice AS SELECT x * 2 AS y FROM shared").unwrap();
    std::fs::write(dir.path().join("a.csv"), "x\n1\n2\n").unwrap();
    let server =
        ServerProcess::start_in(dir.path(), &["--init", "init.sql", "--table", "csv=a.csv"]);
    let (mut a, mut b) = (server.connect().await, server.connect().await);
    show_setting(&mut a, "CREATE TABLE own AS SELECT 1 AS x").await;
    show_setting(&mut a, "SET datafusion.execution.batch_size = 77").await;
    assert!(show_setting(&mut a, "SHOW datafusion.execution.batch_size").await.contains("77"));
    assert!(!show_setting(&mut b, "SHOW datafusion.execution.batch_size").await.contains("77"));
    assert_eq!(query_refusal(&mut b, "SELECT * FROM own").await.0, Code::NotFound);
    for client in [&mut a, &mut b] {
        assert!(show_setting(client, "SHOW serrate.nrt_nan").await.contains("nan"));
        assert_eq!(query_number(client, "SELECT y FROM twice").await, 10);
        assert_eq!(query_number(client, "SELECT sum(x) FROM csv").await, 3);
    }
    // If a session drops a table of the initial script, other sessions keep it.
    show_setting(&mut a, "DROP TABLE shared").await;
    assert_eq!(query_number(&mut b, "SELECT x FROM shared").await, 5);
    assert_eq!(server.metric("sessions"), 2);
    drop(a);
    server.wait_for("sessions", 1).await;

    // A handshake creates a session, which any connection can use by its token.
    let mut c = server.connect().await;
    c.handshake("user", "").await.unwrap();
    let token = c.token().unwrap().clone();
    show_setting(&mut c, "CREATE TABLE kept AS SELECT 1 AS x").await;
    let mut d = server.connect().await;
    d.set_token(token.clone());
    assert_eq!(query_number(&mut d, "SELECT x FROM kept").await, 1);
    drop((c, d));
    let mut e = server.connect().await;
    e.set_token(token);
    assert_eq!(query_number(&mut e, "SELECT x FROM kept").await, 1);
    // CloseSession ends the session.
    let action = arrow_flight::Action::new("CloseSession", "");
    e.do_action(tonic::Request::new(action)).await.unwrap();
    assert_eq!(query_refusal(&mut e, "SELECT 1").await.0, Code::Unauthenticated);
}

#[tokio::test]
async fn get_schema_does_not_run_the_query() {
    let server = ServerProcess::start(&[]);
    let mut client = server.connect().await;
    let sql = "SELECT [1] AS a, arrow_cast('x', 'Utf8View') AS b";
    let command = CommandStatementQuery { query: sql.into(), transaction_id: None };
    let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
    let answer = client.inner_mut().get_schema(descriptor).await.unwrap().into_inner();
    let schema = Schema::try_from(answer).unwrap();
    let info = client.execute(sql.into(), None).await.unwrap();
    assert_eq!(info.clone().try_decode_schema().unwrap(), schema);
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let stream = client.do_get(ticket.clone()).await.unwrap();
    read_stream(stream, &schema).await.unwrap();
    // A result can be read only once.
    let again = client.do_get(ticket).await.map(|_| ()).map_err(status_of);
    assert_eq!(again.unwrap_err().code(), Code::NotFound);
    // A statement that changes the session does not even have an effect while it is planned.
    let query = "PREPARE five AS SELECT 5".into();
    let command = CommandStatementQuery { query, transaction_id: None };
    let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
    let answer = client.inner_mut().get_schema(descriptor).await.unwrap().into_inner();
    assert!(Schema::try_from(answer).unwrap().fields().is_empty());
    query_refusal(&mut client, "EXECUTE five").await;
}
