//! Measures Serrate or stock DataFusion on the nine questions of `questions.py`, and prints JSON:
//! the seconds of planning, the seconds of executing the plan, and the answer.
//!
//! `questions WHO WHERE FILE --code C --point P,E,M --rounds R --threads T`, where WHO is `serrate`
//! or `datafusion` and WHERE is `memory` (the Parquet file is loaded before) or `file`. Without
//! WHO, WHERE and FILE, as `cargo bench` calls it, it only prints a note.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use serrate::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use serrate::arrow::compute::cast;
use serrate::arrow::datatypes::{DataType, Float64Type};
use serrate::datafusion;
use serrate::io::parquet::{self, ParquetReadOptions};

use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{ParquetReadOptions as StockOptions, SessionConfig, SessionContext};

type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

struct Arguments {
    who: String,
    place: String,
    file: PathBuf,
    code: u64,
    point: [usize; 3],
    rounds: usize,
    threads: usize,
    only: Option<String>,
    explain: bool,
}

fn read_arguments() -> Done<Option<Arguments>> {
    use lexopt::Arg::{Long, Value as Given};
    let mut out = Arguments {
        who: String::new(),
        place: String::new(),
        file: PathBuf::new(),
        code: 1,
        point: [0; 3],
        rounds: 5,
        threads: 2,
        only: None,
        explain: false,
    };
    let mut parser = lexopt::Parser::from_env();
    let mut given = Vec::new();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("code") => out.code = parser.value()?.to_string_lossy().parse()?,
            Long("rounds") => out.rounds = parser.value()?.to_string_lossy().parse()?,
            Long("threads") => out.threads = parser.value()?.to_string_lossy().parse()?,
            Long("only") => out.only = Some(parser.value()?.to_string_lossy().into_owned()),
            Long("explain") => out.explain = true,
            // `cargo bench` passes this option.
            Long("bench") => {}
            Long("point") => {
                let text = parser.value()?.to_string_lossy().into_owned();
                let parts = text.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>()?;
                out.point = parts.try_into().map_err(|_| "--point takes three numbers")?;
            }
            Given(value) => given.push(value),
            other => return Err(Box::new(other.unexpected())),
        }
    }
    if given.is_empty() {
        return Ok(None);
    }
    let [who, place, file] = <[_; 3]>::try_from(given).map_err(|_| {
        "questions: serrate|datafusion memory|file FILE [--code C] [--point P,E,M] [--rounds R] [--threads T]"
    })?;
    out.who = who.to_string_lossy().into_owned();
    out.place = place.to_string_lossy().into_owned();
    out.file = file.into();
    Ok(Some(out))
}

/// Returns the questions as statements of Serrate. If a question has several statements, the
/// fastest one counts.
fn ours(code: u64, [p, e, m]: [usize; 3]) -> Vec<(&'static str, Vec<String>)> {
    vec![
        ("total codes", vec!["SELECT sum(ragged_count(code)) FROM p".into()]),
        (
            "top 5 codes",
            vec![
                "SELECT h.value, h.count FROM (SELECT unnest(ragged_histogram_agg(code, 5)) AS h FROM p)".into(),
                "SELECT c, count(*) AS n FROM (SELECT unnest(ragged_flatten(code)) AS c FROM p) GROUP BY c ORDER BY n DESC, c LIMIT 5".into(),
            ],
        ),
        (
            "patients with a code",
            vec![format!("SELECT count(*) FROM p WHERE ragged_any(code == {code})")],
        ),
        (
            "sum of means per event",
            vec!["SELECT sum(ragged_sum(ragged_mean(val, -1))) FROM p".into()],
        ),
        (
            "mean value of a code",
            vec![format!(
                "SELECT sum(ragged_sum(v)) / sum(ragged_count(v)) FROM (SELECT ragged_filter(val, code == {code}) AS v FROM p)"
            )],
        ),
        ("sum of val * 2 + 1", vec!["SELECT sum(ragged_sum(val * 2 + 1)) FROM p".into()]),
        (
            "codes in the last 10 events",
            vec!["SELECT sum(ragged_count(ragged_tail(code, 10))) FROM p".into()],
        ),
        ("sum of maxima per patient", vec!["SELECT sum(ragged_max(val)) FROM p".into()]),
        (
            "one point",
            vec![format!("SELECT ragged_at(code, {e}, {m}) FROM p LIMIT 1 OFFSET {p}")],
        ),
    ]
}

/// Returns the questions in the SQL of stock DataFusion, which has no functions over axes.
fn stock(code: u64, [p, e, m]: [usize; 3]) -> Vec<(&'static str, Vec<String>)> {
    let flat = "SELECT unnest(c) AS c, unnest(v) AS v FROM (SELECT unnest(code) AS c, unnest(val) AS v FROM p)";
    vec![
        (
            "total codes",
            vec![
                "SELECT sum(cardinality(code)) FROM p".into(),
                "SELECT sum(array_length(c)) FROM (SELECT unnest(code) AS c FROM p)".into(),
                "SELECT sum(array_length(flatten(code))) FROM p".into(),
            ],
        ),
        (
            "top 5 codes",
            vec![
                "SELECT c, count(*) AS n FROM (SELECT unnest(flatten(code)) AS c FROM p) GROUP BY c ORDER BY n DESC, c LIMIT 5".into(),
            ],
        ),
        (
            "patients with a code",
            vec![format!("SELECT count(*) FROM p WHERE array_has(flatten(code), arrow_cast({code}, 'UInt16'))")],
        ),
        (
            "sum of means per event",
            vec![
                "SELECT sum(array_sum(array_transform(val, v -> array_avg(v)))) FROM p".into(),
                "SELECT sum(m) FROM (SELECT array_avg(v) AS m FROM (SELECT unnest(val) AS v FROM p))".into(),
            ],
        ),
        (
            "mean value of a code",
            vec![
                format!("SELECT avg(CAST(v AS DOUBLE)) FROM ({flat}) WHERE c = {code}"),
                format!(
                    "SELECT avg(CAST(v AS DOUBLE)) FROM (SELECT unnest(flatten(code)) AS c, unnest(flatten(val)) AS v FROM p) WHERE c = {code}"
                ),
            ],
        ),
        (
            "sum of val * 2 + 1",
            vec![
                "SELECT sum(CAST(v AS DOUBLE) * 2 + 1) FROM (SELECT unnest(flatten(val)) AS v FROM p)".into(),
                "SELECT sum(array_sum(array_transform(flatten(val), v -> v * 2 + 1))) FROM p".into(),
            ],
        ),
        (
            "codes in the last 10 events",
            vec![
                "SELECT sum(cardinality(array_slice(code, -10, -1))) FROM p".into(),
                "SELECT sum(array_length(c)) FROM (SELECT unnest(array_slice(code, -10, -1)) AS c FROM p)".into(),
                "SELECT sum(array_length(flatten(array_slice(code, -10, -1)))) FROM p".into(),
            ],
        ),
        (
            "sum of maxima per patient",
            vec!["SELECT sum(array_max(flatten(val))) FROM p".into()],
        ),
        (
            "one point",
            vec![format!("SELECT code[{}][{}] FROM p LIMIT 1 OFFSET {p}", e + 1, m + 1)],
        ),
    ]
}

async fn session(arguments: &Arguments) -> Done<SessionContext> {
    let config = SessionConfig::new().with_target_partitions(arguments.threads);
    let file = arguments.file.display().to_string();
    let memory = arguments.place == "memory";
    if arguments.who == "serrate" {
        let ctx = serrate::sql::session_with(config);
        if memory {
            let table = parquet::read(&arguments.file, &ParquetReadOptions::default())?;
            serrate::sql::register_table(&ctx, "p", table)?;
        } else {
            // A view suffices, because the files do not change during a run.
            let view = format!("CREATE VIEW p AS SELECT * FROM '{file}'");
            serrate::sql::sql(&ctx, &view).await?.collect().await?;
        }
        return Ok(ctx);
    }
    let mut config = config;
    config.options_mut().sql_parser.dialect = datafusion::config::Dialect::DuckDB;
    let ctx = SessionContext::new_with_config(config);
    ctx.register_parquet("p", &file, StockOptions::default()).await?;
    if memory {
        // The table has the batches of the file, in as many partitions as there are threads.
        let frame = ctx.table("p").await?;
        let schema = Arc::clone(frame.schema().inner());
        let parts = frame.collect_partitioned().await?;
        ctx.deregister_table("p")?;
        let table = datafusion::datasource::MemTable::try_new(schema, parts)?;
        ctx.register_table("p", Arc::new(table))?;
    }
    Ok(ctx)
}

async fn planned(
    arguments: &Arguments,
    ctx: &SessionContext,
    sql: &str,
) -> Done<Arc<dyn ExecutionPlan>> {
    let frame = match arguments.who.as_str() {
        "serrate" => serrate::sql::sql(ctx, sql).await?,
        _ => ctx.sql(sql).await?,
    };
    Ok(frame.create_physical_plan().await?)
}

/// Returns the numbers of a result, row by row.
fn answer(batches: &[RecordBatch]) -> Done<Vec<f64>> {
    let mut out = Vec::new();
    for batch in batches {
        let columns = batch
            .columns()
            .iter()
            .map(|c| cast(c, &DataType::Float64))
            .collect::<Result<Vec<ArrayRef>, _>>()?;
        for row in 0..batch.num_rows() {
            for column in &columns {
                let column = column.as_primitive::<Float64Type>();
                out.push(if column.is_valid(row) { column.value(row) } else { f64::NAN });
            }
        }
    }
    Ok(out)
}

/// Returns the shortest times of planning and of execution of one statement, in several rounds.
async fn asked(arguments: &Arguments, ctx: &SessionContext, sql: &str) -> Done<Value> {
    let (mut planning, mut execution) = (f64::INFINITY, f64::INFINITY);
    let mut found = Vec::new();
    for _ in 0..arguments.rounds.max(1) {
        // Each round plans again, because a plan keeps the metrics and the state of its run.
        let start = Instant::now();
        let plan = planned(arguments, ctx, sql).await?;
        // The time of planning includes the task context, which copies the names of all functions.
        let task = ctx.task_ctx();
        planning = planning.min(start.elapsed().as_secs_f64());
        if arguments.explain && found.is_empty() {
            let text = datafusion::physical_plan::displayable(plan.as_ref()).indent(true);
            eprintln!("{sql}\n{text}");
        }
        let start = Instant::now();
        // The time of execution excludes both, because an application can prepare and keep them.
        let batches = collect(Arc::clone(&plan), Arc::clone(&task)).await?;
        execution = execution.min(start.elapsed().as_secs_f64());
        found = answer(&batches)?;
    }
    Ok(json!({ "planning": planning, "execution": execution, "answer": found, "asked": sql }))
}

async fn run(arguments: &Arguments) -> Done<Value> {
    let ctx = session(arguments).await?;
    let questions = match arguments.who.as_str() {
        "serrate" => ours(arguments.code, arguments.point),
        _ => stock(arguments.code, arguments.point),
    };
    let mut out = serde_json::Map::new();
    for (name, ways) in questions {
        if arguments.only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        let mut best: Option<Value> = None;
        for sql in ways {
            let one = match asked(arguments, &ctx, &sql).await {
                Ok(one) => one,
                Err(e) => {
                    eprintln!("{}: {sql}: {e}", arguments.who);
                    continue;
                }
            };
            let seconds = |v: &Value| v["execution"].as_f64().unwrap_or(f64::INFINITY);
            if best.as_ref().is_none_or(|best| seconds(&one) < seconds(best)) {
                best = Some(one);
            }
        }
        out.insert(name.into(), best.ok_or_else(|| format!("{name}: no way to ask works"))?);
    }
    Ok(Value::Object(out))
}

fn main() -> Done<()> {
    let Some(arguments) = read_arguments()? else {
        println!("questions: run benches/peers/run to compare with other libraries");
        return Ok(());
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(arguments.threads)
        .enable_all()
        .build()?;
    // The query starts on a worker thread, as in a server. On the main thread, each batch would
    // wake up another thread.
    let done = runtime
        .block_on(async move { tokio::spawn(async move { run(&arguments).await }).await })?;
    println!("{}", done?);
    Ok(())
}
