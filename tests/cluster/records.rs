//! The records of functions, with each table they create as three files that workers read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_plan::displayable;
use datafusion::prelude::SessionContext;
use serrate::cluster::{ClientConfig, Cluster};
use serrate::datafusion;
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};

use crate::processes::{run_query, start_workers};
use crate::templates::read_scripts;

/// How many queries over files ran in several tasks, and why the others did not.
#[derive(Default)]
struct Counts {
    divided: usize,
    whole: BTreeMap<String, usize>,
}

struct Divided {
    context: SessionContext,
    cluster: Cluster,
    folder: PathBuf,
    /// Names of the tables that are files.
    files: Vec<String>,
    counts: Arc<Mutex<Counts>>,
}

impl Divided {
    /// Replaces a table in memory by three Parquet files with its rows, if they hold all of its types.
    async fn write_files(&mut self, name: &str) -> Result<()> {
        let table = run_query(&self.context, &format!("SELECT * FROM {name}")).await?;
        let rows: usize = table.iter().map(|b| b.num_rows()).sum();
        let folder = self.folder.join(format!("{}-{name}", self.files.len()));
        std::fs::create_dir_all(&folder).map_err(DataFusionError::from)?;
        let part = rows.div_ceil(3).max(1);
        for (i, from) in (0..rows).step_by(part).enumerate() {
            let path = folder.join(format!("{i}.parquet"));
            let copy = format!(
                "COPY (SELECT * FROM {name} LIMIT {part} OFFSET {from}) TO '{}' OPTIONS (max_row_group_size 1)",
                path.display()
            );
            run_query(&self.context, &copy).await?;
        }
        if rows == 0 {
            return Ok(());
        }
        let create = format!(
            "CREATE EXTERNAL TABLE {name}_files STORED AS PARQUET LOCATION '{}/'",
            folder.display()
        );
        run_query(&self.context, &create).await?;
        let read = run_query(&self.context, &format!("SELECT * FROM {name}_files LIMIT 0")).await?;
        // Parquet has no type for some columns.
        if read[0].schema().fields() != table[0].schema().fields() {
            return Ok(());
        }
        run_query(&self.context, &format!("DROP TABLE {name}")).await?;
        let create = create.replacen(&format!("{name}_files"), name, 1);
        run_query(&self.context, &create).await?;
        self.files.push(name.to_owned());
        Ok(())
    }

    async fn count_query(&self, sql: &str) -> Result<()> {
        let plan = self.context.sql(sql).await?.create_physical_plan().await?;
        let shown = displayable(plan.as_ref()).indent(false).to_string();
        let notes = self.cluster.take_notes();
        let mut counts = self.counts.lock().unwrap();
        if shown.contains("DistributedExec") {
            counts.divided += 1;
        } else if shown.contains(".parquet") && !shown.contains("1 group:") {
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
        // The files get the rows in the order of the statement.
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
            // Tables of other types stay in memory.
            let _ = self.write_files(&name).await;
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

/// Runs the records; `SERRATE_SLT` names a part of them, and without it one in eight runs.
#[tokio::test(flavor = "multi_thread")]
async fn records_hold_on_workers() {
    let workers = start_workers(3);
    let addresses: Vec<&str> = workers.iter().map(|w| w.address.as_str()).collect();
    let cluster = Cluster::new(&ClientConfig::new(&addresses.join(","))).unwrap();
    let mut scripts = read_scripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/slt"));
    // Their errors name the bytes and rows of a batch, which has other rows in files.
    scripts.retain(|s| {
        !["/densify.slt", " for densify", "/ragged_get.slt"].iter().any(|e| s.name.ends_with(*e))
    });
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
                files: Vec::new(),
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
    for (why, n) in &counts.whole {
        eprintln!("  {n} not: {why}");
    }
    assert!(failures.is_empty(), "{} scripts\n{}", failures.len(), failures.join("\n\n"));
    assert!(counts.divided * 10 >= (counts.divided + whole) * 6);
}
