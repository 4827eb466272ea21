//! Worker processes, and a session that uses them next to one that does not.

use std::path::{Path, PathBuf};
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::Result;
use datafusion::physical_plan::displayable;
use datafusion::prelude::SessionContext;
use serrate::cluster::{ClientConfig, Cluster};
use serrate::datafusion;
use tempfile::TempDir;

pub(crate) use crate::worker_process::{
    WorkerProcess, list_addresses, shipped_file, start_workers, wait_until_idle,
};

/// Two sessions with the same tables: `there` uses workers, `here` does not.
pub(crate) struct Pair {
    pub(crate) cluster: Cluster,
    pub(crate) here: SessionContext,
    pub(crate) there: SessionContext,
    /// Number of statements that ran in several tasks. `whole` has all other statements, with the
    /// notes that say why.
    pub(crate) divided: usize,
    pub(crate) whole: Vec<String>,
    failures: Vec<String>,
}

impl Pair {
    pub(crate) async fn new(workers: &[WorkerProcess]) -> Self {
        Self::with_config(ClientConfig::new(&list_addresses(workers))).await
    }

    pub(crate) async fn with_config(mut config: ClientConfig) -> Self {
        config.timeout = Duration::from_secs(5);
        let cluster = Cluster::new(&config).unwrap();
        let there = serrate::sql::session();
        cluster.attach(&there);
        let pair = Self {
            cluster,
            here: serrate::sql::session(),
            there,
            divided: 0,
            whole: Vec::new(),
            failures: Vec::new(),
        };
        // The same number of partitions on every machine gives the same plans, and the other two
        // settings divide even small files.
        pair.set_both("datafusion.execution.target_partitions", "6").await;
        pair.set_both("datafusion.optimizer.repartition_file_min_size", "1").await;
        run_query(&pair.there, "SET cluster.bytes_per_task = 1").await.unwrap();
        pair
    }

    pub(crate) async fn set_both(&self, name: &str, value: &str) {
        self.run_both(&format!("SET {name} = '{value}'")).await;
    }

    /// Runs a statement in both sessions and drops its result.
    pub(crate) async fn run_both(&self, sql: &str) {
        for context in [&self.here, &self.there] {
            run_query(context, sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
        }
    }

    /// Returns whether workers run the statement. One with scalar subqueries counts as well: it is
    /// divided only when it runs.
    pub(crate) async fn is_divided(&self, sql: &str) -> bool {
        let Ok(frame) = serrate::sql::sql(&self.there, sql).await else { return false };
        let Ok(plan) = frame.create_physical_plan().await else { return false };
        let shown = displayable(plan.as_ref()).indent(false).to_string();
        ["DistributedExec", "SubqueriesFirstExec"].iter().any(|node| shown.contains(node))
    }

    /// Runs a query in both sessions. Both must return the same rows, in the same order if the
    /// query has ORDER BY, or fail with the same error; other results are added to `failures`.
    pub(crate) async fn check_query(&mut self, sql: &str) {
        let divided = self.is_divided(sql).await;
        let notes = self.cluster.take_notes();
        match divided {
            true => self.divided += 1,
            false => self.whole.push(format!("{sql}\n    {}", notes.join("; "))),
        }
        let limit = Duration::from_secs(120);
        let there = tokio::time::timeout(limit, run_query(&self.there, sql)).await;
        let there = there.unwrap_or_else(|_| panic!("no result within {limit:?}: {sql}"));
        let here = run_query(&self.here, sql).await;
        match (here, there) {
            (Ok(here), Ok(there)) => {
                let sorted = !sql.contains("ORDER BY");
                let (here, there) = (show_rows(&here, sorted), show_rows(&there, sorted));
                if here != there {
                    self.failures.push(format!("{sql}\nhere\n{here}\non workers\n{there}"));
                }
            }
            (Err(here), Err(there)) => {
                let (here, there) = (here.strip_backtrace(), there.strip_backtrace());
                // Compares only the end of the messages. An error in the condition of a Parquet
                // scan is printed in its debug form.
                let of = |e: &str| {
                    let text = e.rsplit(": ").next().unwrap_or_default();
                    let text = text.rsplit("CastError(\"").next().unwrap_or_default();
                    text.trim_end_matches("\"), Some(\"\"))").to_owned()
                };
                if of(&here) != of(&there) {
                    self.failures.push(format!("{sql}\n{here}\n{there}"));
                }
            }
            (here, there) => {
                let (here, there) = (here.map(|_| "rows"), there.map(|_| "rows"));
                self.failures.push(format!("{sql}\nhere {here:?}\non workers {there:?}"));
            }
        }
    }

    /// Panics with the differences that `check_query` has found, if there are any.
    pub(crate) fn check_failures(&self) {
        assert!(
            self.failures.is_empty(),
            "{} differ\n{}",
            self.failures.len(),
            self.failures.join("\n\n")
        );
    }

    /// Calls [`check_query`](Self::check_query) and asserts that workers run the query.
    pub(crate) async fn check_divided(&mut self, sql: &str) {
        let before = self.divided;
        self.check_query(sql).await;
        assert!(
            self.divided > before,
            "the statement was not divided: {}",
            self.whole.last().unwrap()
        );
    }
}

pub(crate) async fn run_query(context: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    let frame = serrate::sql::sql(context, sql).await?;
    let schema = frame.schema().as_arrow().clone();
    let mut batches = frame.collect().await?;
    if batches.is_empty() {
        batches.push(RecordBatch::new_empty(schema.into()));
    }
    Ok(batches)
}

fn show_rows(batches: &[RecordBatch], sorted: bool) -> String {
    let text = pretty_format_batches(batches).unwrap().to_string();
    let mut lines: Vec<&str> = text.lines().collect();
    if sorted {
        lines.sort_unstable();
    }
    lines.join("\n")
}

pub(crate) fn data_path(path: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(path);
    path.display().to_string()
}

/// Starts workers, and creates the tables of [`create_tables`] in a temporary folder. Returns the
/// workers, the folder and the two sessions.
pub(crate) async fn start_pair(workers: usize, rows: usize) -> (Vec<WorkerProcess>, TempDir, Pair) {
    let workers = start_workers(workers);
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair::new(&workers).await;
    create_tables(&pair, folder.path(), rows).await;
    (workers, folder, pair)
}

/// Writes a table of ragged columns as five `.nrt` and five Parquet files. In both sessions, `n`
/// and `p` are tables of these files.
pub(crate) async fn create_tables(pair: &Pair, folder: &Path, rows: usize) {
    // Sibling lists have equal lengths, as `.nrt` requires.
    let columns = "value AS subject_id, value % 5 AS g, value / 7.0 AS v, \
         range(value % 4, value % 4 + value % 6) AS codes";
    let deep = "list_transform(range(0, value % 6), lambda i: range(i % 2, i % 4)) AS deep";
    let x = "list_transform(range(0, value % 6), \
         lambda i: CASE WHEN i = 1 THEN NULL ELSE i / 2.0 + value % 3 END)";
    let context = serrate::sql::session();
    let part = rows / 5;
    for i in 0..5 {
        let (from, to) = (i * part, (i + 1) * part - 1);
        for (format, options) in [("nrt", ""), ("parquet", " OPTIONS (max_row_group_size 50)")] {
            let x = match format {
                "nrt" => x.to_owned(),
                _ => format!("CASE WHEN value % 11 = 0 THEN NULL ELSE {x} END"),
            };
            let rows = format!(
                "SELECT {columns}, {x} AS x, {deep} FROM generate_series({from}, {to}) AS t(value)"
            );
            let folder = folder.join(format);
            std::fs::create_dir_all(&folder).unwrap();
            let path = folder.join(format!("{i} a%b.{format}")).display().to_string();
            let sql = format!("COPY ({rows} ORDER BY subject_id) TO '{path}'{options}");
            run_query(&context, &sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
        }
    }
    for (name, format) in [("n", "nrt"), ("p", "parquet")] {
        let path = folder.join(format).display().to_string();
        pair.run_both(&format!(
            "CREATE EXTERNAL TABLE {name} STORED AS {} LOCATION '{path}/'",
            format.to_uppercase()
        ))
        .await;
    }
}
