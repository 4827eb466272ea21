//! Measures Rust calls that correspond to calls of the Python package, for `python.py`, and prints
//! JSON with the seconds of the fastest run of each. Without a file, as `cargo bench` calls it, it
//! only prints a note.
//!
//! `python_calls FILE.nrt --rows 0,7,.. --window W --rounds R` stacks and pads the first W events
//! of each row, with as many threads and the memory pool that the package uses, and runs small
//! statements over a table in memory, on one partition.

use std::error::Error;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use futures::TryStreamExt;
use serde_json::json;
use serrate::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use serrate::datafusion::physical_plan::execute_stream;
use serrate::datafusion::prelude::{SessionConfig, SessionContext};
use serrate::dense::{BufferPool, DenseOptions, TableDenseOptions};
use serrate::io::nrt::{NrtFile, ReadOptions};
use serrate::sql::{prefer_source_order, register_table, session_with};
use serrate::table::{Column, RaggedTable};

type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The statements that `python.py` runs, too.
const STATEMENTS: [&str; 2] = ["SELECT 1 AS a", "SELECT x FROM t"];

/// Returns the seconds of the fastest of `rounds` runs.
fn best(rounds: usize, mut run: impl FnMut() -> Done<()>) -> Done<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

async fn query(context: &SessionContext, text: &str) -> Done<Vec<RecordBatch>> {
    let frame = serrate::sql::sql(context, text).await?;
    let task = Arc::new(frame.task_ctx());
    let plan = prefer_source_order(frame.create_physical_plan().await?)?;
    Ok(execute_stream(plan, task)?.try_collect().await?)
}

fn main() -> Done<()> {
    use lexopt::Arg::{Long, Value};
    let (mut path, mut rows, mut window, mut rounds) = (PathBuf::new(), Vec::new(), 256, 20);
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("rows") => {
                let text = parser.value()?.to_string_lossy().into_owned();
                rows = text.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>()?;
            }
            Long("window") => window = parser.value()?.to_string_lossy().parse()?,
            // `cargo bench` passes this option.
            Long("bench") => {}
            Long("rounds") => rounds = parser.value()?.to_string_lossy().parse()?,
            Value(file) => path = file.into(),
            other => return Err(Box::new(other.unexpected())),
        }
    }

    if path.as_os_str().is_empty() {
        println!("python_calls: run benches/peers/run to compare with other libraries");
        return Ok(());
    }
    let file = NrtFile::open(&path, &ReadOptions { mmap: true, large_lists: true })?;
    let item = |row: usize| {
        let events = file.read(row..row + 1, None)?.squeeze(0)?;
        events.slice(0, window.min(events.num_rows()))
    };
    let items = rows.iter().map(|r| item(*r)).collect::<Result<Vec<_>, _>>()?;
    let pool = Some(BufferPool::for_writers(2 << 30));
    let dense = DenseOptions { parallel: true, pool, limit: None, ..Default::default() };
    let options = TableDenseOptions { dense, ..Default::default() };
    let stack = best(rounds, || {
        black_box(RaggedTable::vstack(&items)?.to_dense_with(&options)?);
        Ok(())
    })?;

    let context = session_with(SessionConfig::new().with_target_partitions(1));
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
    let table = RaggedTable::try_new(1000, None, vec![], vec![Column::new("x", 0, values)])?;
    register_table(&context, "t", table)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut statements = serde_json::Map::new();
    for text in STATEMENTS {
        runtime.block_on(query(&context, text))?;
        let seconds = best(10 * rounds, || {
            black_box(runtime.block_on(query(&context, text))?);
            Ok(())
        })?;
        statements.insert(text.to_owned(), seconds.into());
    }
    println!("{}", json!({"stack": stack, "statements": statements}));
    Ok(())
}
