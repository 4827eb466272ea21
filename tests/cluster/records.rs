//! Runs the SQL records of `sql/slt` on workers: once as they are, and once with each table that
//! they create replaced by three files, which workers read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_plan::displayable;
use datafusion::prelude::SessionContext;
use serrate::cluster::{ClientConfig, Cluster};
use serrate::datafusion;
use sqllogictest::{
    AsyncDB, DBOutput, DefaultColumnType, ExpectedError, Record, Runner, StatementExpect,
};

use crate::processes::{list_addresses, run_query, start_workers};
use crate::templates::{RecordScript, read_scripts};

/// `divided` is the number of queries over files that ran in several tasks. `whole` counts the
/// other queries over files by the reason.
#[derive(Default)]
struct Counts {
    divided: usize,
    whole: BTreeMap<String, usize>,
    /// Number of replaced tables by the format of their files.
    tables: BTreeMap<&'static str, usize>,
}

struct Divided {
    context: SessionContext,
    cluster: Cluster,
    folder: PathBuf,
    /// Formats of the files that replace tables, in the order in which they are tried. A table
    /// whose values no format can hold stays in memory.
    formats: &'static [&'static str],
    /// Number of folders that were created for files, which makes their names distinct.
    folders: usize,
    counts: Arc<Mutex<Counts>>,
}

impl Divided {
    /// Replaces the table `name`, which is in memory, by three files with its rows. Returns false
    /// and keeps the table if the files have other types or values, or if the table is empty.
    async fn write_files(&mut self, name: &str, format: &'static str) -> Result<bool> {
        let table = run_query(&self.context, &format!("SELECT * FROM {name}")).await?;
        let rows: usize = table.iter().map(|b| b.num_rows()).sum();
        if rows == 0 {
            return Ok(false);
        }
        self.folders += 1;
        let folder = self.folder.join(format!("{}-{name}", self.folders));
        std::fs::create_dir_all(&folder).map_err(DataFusionError::from)?;
        let part = rows.div_ceil(3);
        let options = if format == "parquet" { " OPTIONS (max_row_group_size 1)" } else { "" };
        for (i, from) in (0..rows).step_by(part).enumerate() {
            let path = folder.join(format!("{i}.{format}"));
            let copy = format!(
                "COPY (SELECT * FROM {name} LIMIT {part} OFFSET {from}) TO '{}'{options}",
                path.display()
            );
            run_query(&self.context, &copy).await?;
        }
        let create = |table: &str| {
            format!(
                "CREATE EXTERNAL TABLE {table} STORED AS {} LOCATION '{}/'",
                format.to_uppercase(),
                folder.display()
            )
        };
        let files = format!("{name}_{format}");
        run_query(&self.context, &create(&files)).await?;
        let read = run_query(&self.context, &format!("SELECT * FROM {files}")).await?;
        run_query(&self.context, &format!("DROP TABLE {files}")).await?;
        // The format lacks a type of a column, or reads other values for NULL or NaN.
        let same_types = read[0].schema().fields() == table[0].schema().fields();
        if !same_types || show_values(&read)? != show_values(&table)? {
            return Ok(false);
        }
        run_query(&self.context, &format!("DROP TABLE {name}")).await?;
        run_query(&self.context, &create(name)).await?;
        *self.counts.lock().unwrap().tables.entry(format).or_default() += 1;
        Ok(true)
    }

    async fn count_query(&self, sql: &str) -> Result<()> {
        let plan = self.context.sql(sql).await?.create_physical_plan().await?;
        let shown = displayable(plan.as_ref()).indent(false).to_string();
        let notes = self.cluster.take_notes();
        let mut counts = self.counts.lock().unwrap();
        if shown.contains("DistributedExec") || shown.contains("SubqueriesFirstExec") {
            counts.divided += 1;
        } else if [".parquet", ".nrt"].iter().any(|format| shown.contains(format))
            && !shown.contains("1 group:")
        {
            let why = if notes.is_empty() { "nothing to divide".into() } else { notes.join("; ") };
            *counts.whole.entry(why).or_default() += 1;
        }
        Ok(())
    }
}

#[async_trait]
impl AsyncDB for Divided {
    type Error = DataFusionError;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>> {
        let creates = sql.trim_start().strip_prefix("CREATE TABLE ");
        // A single partition writes the rows to the files in the order in which CREATE TABLE makes
        // them.
        let partitions = if creates.is_some() { 1 } else { 3 };
        let setting = format!("SET datafusion.execution.target_partitions = {partitions}");
        run_query(&self.context, &setting).await?;
        let frame = self.context.sql(sql).await?;
        let columns = frame.schema().fields().len();
        let types = frame.schema().fields().iter().map(|f| match f.data_type() {
            t if t.is_integer() => DefaultColumnType::Integer,
            t if t.is_floating() => DefaultColumnType::FloatingPoint,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DefaultColumnType::Text,
            _ => DefaultColumnType::Any,
        });
        let types: Vec<_> = types.collect();
        let batches = frame.collect().await?;
        if let Some(rest) = creates {
            let name = rest.split([' ', '(', '\n']).next().unwrap_or_default().to_owned();
            for format in self.formats {
                if self.write_files(&name, format).await.unwrap_or(false) {
                    break;
                }
            }
        }
        if columns == 0 {
            return Ok(DBOutput::StatementComplete(0));
        }
        self.count_query(sql).await?;
        let options = FormatOptions::new().with_null("NULL").with_display_error(false);
        let mut rows = Vec::new();
        for batch in &batches {
            let columns: Vec<_> = batch
                .columns()
                .iter()
                .map(|c| ArrayFormatter::try_new(c, &options))
                .collect::<std::result::Result<_, _>>()?;
            for row in 0..batch.num_rows() {
                rows.push(columns.iter().map(|c| c.value(row).to_string()).collect());
            }
        }
        Ok(DBOutput::Rows { types, rows })
    }

    async fn shutdown(&mut self) {}
}

fn show_values(batches: &[RecordBatch]) -> Result<String> {
    Ok(pretty_format_batches(batches)?.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn records_hold_with_workers_attached() {
    run_records(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn records_hold_over_parquet_files() {
    run_records(&["parquet"]).await;
}

/// `.nrt` cannot hold strings and NULL; tables with these become Parquet files.
#[tokio::test(flavor = "multi_thread")]
async fn records_hold_over_nrt_files() {
    run_records(&["nrt", "parquet"]).await;
}

/// Parts of the expected errors of two records that name the row or the size of a batch. With
/// files, batches have other rows, so that these two records are left out.
const BATCH_ERRORS: [&str; 2] = ["of size 0 in row 2", "needs 400000 bytes"];

fn names_batch(record: &Record<DefaultColumnType>) -> bool {
    let Record::Statement { expected: StatementExpect::Error(error), .. } = record else {
        return false;
    };
    let ExpectedError::Inline(pattern) = error else { return false };
    BATCH_ERRORS.iter().any(|part| pattern.as_str().contains(part))
}

/// Runs the records, with their tables as files of the given formats if there are any. The variable
/// `SERRATE_SLT` is a part of the names of the scripts to run; without it, every eighth script
/// runs.
async fn run_records(formats: &'static [&'static str]) {
    let workers = start_workers(3);
    let cluster = Cluster::new(&ClientConfig::new(&list_addresses(&workers))).unwrap();
    let mut scripts = read_scripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/slt"));
    if !formats.is_empty() {
        let count =
            |scripts: &[RecordScript]| scripts.iter().map(|s| s.records.len()).sum::<usize>();
        let all = count(&scripts);
        for script in &mut scripts {
            script.records.retain(|record| !names_batch(record));
        }
        assert_eq!(all - count(&scripts), BATCH_ERRORS.len());
    }
    match std::env::var("SERRATE_SLT") {
        Ok(only) => scripts.retain(|s| s.name.contains(&only)),
        Err(_) => scripts = scripts.into_iter().step_by(8).collect(),
    }
    let counts = Arc::new(Mutex::new(Counts::default()));
    let mut failures = Vec::new();
    for script in scripts {
        let folder = tempfile::tempdir().unwrap();
        let mut runner = Runner::new(|| async {
            let context = serrate::sql::session();
            cluster.attach(&context);
            for setting in [
                "cluster.bytes_per_task = 1",
                "datafusion.optimizer.repartition_file_min_size = 1",
                "datafusion.execution.target_partitions = 3",
            ] {
                run_query(&context, &format!("SET {setting}")).await?;
            }
            Ok(Divided {
                context,
                cluster: cluster.clone(),
                folder: folder.path().to_owned(),
                formats,
                folders: 0,
                counts: Arc::clone(&counts),
            })
        });
        if let Err(e) = runner.run_multi_async(script.records).await {
            failures.push(format!("{}: {}", script.name, e.display(false)));
        }
    }
    let counts = counts.lock().unwrap();
    let whole: usize = counts.whole.values().sum();
    eprintln!(
        "{} of {} queries over files ran in several tasks",
        counts.divided,
        counts.divided + whole
    );
    for (format, n) in &counts.tables {
        eprintln!("  {n} tables over {format} files");
    }
    for (why, n) in &counts.whole {
        eprintln!("  {n} ran without workers: {why}");
    }
    assert!(failures.is_empty(), "{} scripts\n{}", failures.len(), failures.join("\n\n"));
    assert!(counts.divided * 10 >= (counts.divided + whole) * 6);
}
