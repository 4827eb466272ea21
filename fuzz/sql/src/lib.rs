//! The fuzz target of SQL statements: an error or a result, within the memory limit and the time
//! limit.

use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use libfuzzer_sys::arbitrary::Unstructured;
use serrate::access::{Confinement, confine};
use serrate::datafusion;
use serrate::memory::set_memory_limit;
use serrate::sql::{execute, parse, session_with, sql};
use serrate_fuzz::{check_batch, leave_contained_panics, read_within};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::Statement as SqlStatement;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement;

use generator::Generator;
use tables::TABLES;

#[allow(dead_code, reason = "the differential suite uses the rest")]
#[path = "../../../tests/laws/functions.rs"]
mod functions;
mod generator;
mod tables;
#[allow(clippy::unwrap_used, reason = "helpers of tests")]
#[path = "../../../tests/common/torture.rs"]
mod torture;

/// The memory limit of the session, in bytes.
const POOL: usize = 64 << 20;

/// Maximum number of bytes that a statement may allocate. It is larger than [`POOL`], because
/// operators do not reserve each of their buffers.
const MEMORY: usize = 512 << 20;

/// Time after which a statement is cancelled. A statement that does not yield until libFuzzer's
/// `-timeout` is a finding.
const LONGEST: Duration = Duration::from_secs(5);

/// Maximum number of statements of an input that run.
const STATEMENTS: usize = 4;

/// Maximum number of rows of a result that are read.
const ROWS: usize = 1 << 14;

/// Words of settings of memory, partitions and batches. Statements that contain one are not run.
const LIMITS: [&str; 3] = ["memory_limit", "max_dense_bytes", "datafusion."];

/// Functions of DataFusion with an argument that determines the size of the result, and that do not
/// check the memory limit.
const SIZED: [&str; 9] = [
    "repeat",
    "array_repeat",
    "list_repeat",
    "array_resize",
    "list_resize",
    "generate_series",
    "range",
    "lpad",
    "rpad",
];

/// Folder of the files that statements may read.
static FILES: LazyLock<String> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    let folder = folder.canonicalize().unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    folder.to_string_lossy().into_owned()
});

static CURRENT: Mutex<String> = Mutex::new(String::new());
static PANIC: Mutex<Option<(String, Backtrace)>> = Mutex::new(None);

thread_local! {
    static RUNTIME: Runtime =
        Builder::new_current_thread().enable_all().build().unwrap_or_else(|e| panic!("{e}"));
    /// The session of the last input, if all its statements were queries.
    static SESSION: RefCell<Option<SessionContext>> = const { RefCell::new(None) };
}

/// Returns the SQL text of an input. An input without a byte 0 is the text itself. Otherwise, the
/// bytes after the 0 are choices. They generate a value for each backquote of the text before the 0
/// or, if this text is empty, the whole statement.
pub fn read_statement(data: &[u8]) -> Option<String> {
    let end = data.iter().position(|byte| *byte == 0);
    let text = std::str::from_utf8(&data[..end.unwrap_or(data.len())]).ok()?;
    let text = match end {
        None => text.to_owned(),
        Some(end) => {
            let mut generator = Generator::new(Unstructured::new(&data[end + 1..]));
            if text.is_empty() { generator.make_statements() } else { generator.fill_text(text) }
        }
    };
    Some(text.replace("tests/data", &FILES))
}

/// Runs the statements of an input, and returns the number of statements that returned rows.
pub fn run(data: &[u8]) -> usize {
    set_up_process();
    let Some(text) = read_statement(data) else { return 0 };
    if may_exceed_limits(&text) {
        return 0;
    }
    *lock(&CURRENT) = text.clone();
    let work = || read_within(data, MEMORY, || run_text(&text));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        // The panic hook does not print panics of other crates, because Serrate may convert them to
        // errors. A panic that arrives here was not converted.
        if let Some((message, backtrace)) = lock(&PANIC).take() {
            eprintln!("{message}\n{backtrace}");
        }
        eprintln!("statement: {text}");
        resume_unwind(panic)
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Restricts the process to reading files of the tests, and installs a panic hook that prints the
/// statement.
fn set_up_process() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        leave_contained_panics();
        let end = take_hook();
        set_hook(Box::new(move |info| {
            *lock(&PANIC) = Some((info.to_string(), Backtrace::force_capture()));
            if !info.location().is_some_and(|at| at.file().contains("/registry/")) {
                eprintln!("statement: {}", lock(&CURRENT));
            }
            end(info);
        }));
        let rules = Confinement::default().with_read_only(true).with_root(FILES.as_str());
        confine(&rules).unwrap_or_else(|e| panic!("{e}"));
    });
}

fn may_exceed_limits(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let words = || text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_large = |word: &str| word.len() > 6 && word.bytes().all(|b| b.is_ascii_digit());
    LIMITS.iter().any(|word| text.contains(word))
        || words().any(|word| SIZED.contains(&word)) && words().any(is_large)
}

fn run_text(text: &str) -> usize {
    RUNTIME.with(|runtime| {
        runtime.block_on(async {
            let ctx = match SESSION.take() {
                Some(ctx) => ctx,
                None => make_session().await.unwrap_or_else(|e| panic!("{e}")),
            };
            let (answered, unchanged) = run_statements(&ctx, text).await;
            if unchanged {
                SESSION.set(Some(ctx));
            }
            answered
        })
    })
}

async fn make_session() -> Result<SessionContext> {
    set_memory_limit(POOL);
    let ctx = session_with(SessionConfig::new().with_target_partitions(2).with_batch_size(4));
    for (name, batches) in TABLES.iter() {
        let table = MemTable::try_new(batches[0].schema(), vec![batches.clone()])?;
        ctx.register_table(*name, Arc::new(table))?;
    }
    let codes = format!("SET serrate.codes = '{}/tiny-codes'", FILES.as_str());
    let setup = [
        "SET serrate.max_dense_bytes = '16MiB'",
        codes.as_str(),
        "CREATE TABLE names AS SELECT * FROM (VALUES (1, 'one'), (2, 'two')) v(key, name)",
    ];
    for text in setup {
        sql(&ctx, text).await?.collect().await?;
    }
    Ok(ctx)
}

/// Runs statements. Returns the number of statements that returned rows, and whether the session is
/// unchanged.
async fn run_statements(ctx: &SessionContext, text: &str) -> (usize, bool) {
    let Ok(statements) = parse(ctx, text) else { return (0, true) };
    // `SELECT .. INTO` is a query that creates a table.
    let (mut answered, mut unchanged) = (0, !text.to_ascii_lowercase().contains("into"));
    for statement in statements.into_iter().take(STATEMENTS) {
        unchanged &= is_query(&statement);
        let done = timeout(LONGEST, run_statement(ctx, statement)).await;
        answered += usize::from(done.is_ok_and(|rows| rows.is_ok()));
    }
    (answered, unchanged)
}

fn is_query(statement: &Statement) -> bool {
    matches!(statement, Statement::Statement(inner) if matches!(**inner, SqlStatement::Query(_)))
}

async fn run_statement(ctx: &SessionContext, statement: Statement) -> Result<()> {
    let mut stream = execute(ctx, statement).await?.execute_stream().await?;
    let mut rows = 0;
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        check_batch(&batch);
        rows += batch.num_rows();
        if rows > ROWS {
            break;
        }
    }
    Ok(())
}
