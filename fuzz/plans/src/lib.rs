//! The fuzz target of encoded plans, which workers receive over the network: decoding returns an
//! error or a plan, within a memory limit.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use serrate::access::{Confinement, confine};
use serrate::cluster::{ClientConfig, Cluster, decode_plan, encode_plan, make_worker_context};
use serrate::datafusion;
use serrate::sql::{session, sql};
use serrate_fuzz::{leave_contained_panics, read_within};
use tokio::runtime::Builder;

use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::displayable;

/// Maximum number of bytes that decoding a plan may allocate, in addition to 16 times the length of
/// its encoding. Functions of a session and the listing of files need most of them.
const MEMORY: usize = 64 << 20;

/// Maximum number of changes that an input makes to an encoded plan.
const CHANGES: usize = 16;

/// Statements whose encoded plans inputs change. Together, they have each plan node and table
/// source that workers receive.
pub const STATEMENTS: [&str; 9] = [
    "SELECT * FROM 'tests/vectors/nrt-files/readme.nrt'",
    "SELECT count(*) FROM 'tests/vectors/nrt-files/four_levels.nrt'",
    "SELECT * FROM 'tests/data/parquet-lists/split-delta.parquet'",
    "SELECT count(*) FROM 'tests/data/parquet-lists/pages-v1.parquet'",
    "SELECT subject_id, ragged_count(code) FROM meds('tests/data/tiny-meds')",
    "SELECT code, time FROM meds('tests/data/tiny-meds') LIMIT 3",
    "SELECT subject_id % 2 AS g, sum(ragged_sum(numeric_value)) FROM meds('tests/data/tiny-meds') GROUP BY g ORDER BY g",
    "SELECT a.subject_id FROM meds('tests/data/tiny-meds') a JOIN meds('tests/data/tiny-meds') b ON a.subject_id = b.subject_id + 1 WHERE a.subject_id > 2",
    "SELECT subject_id, list_transform([1, 2], c -> c + subject_id) FROM meds('tests/data/tiny-meds')",
];

/// Whether code of Serrate, not of another crate, has panicked.
static OWN_PANIC: AtomicBool = AtomicBool::new(false);

/// The context of a worker, and the encoded plans of [`STATEMENTS`].
static WORKER: LazyLock<(Arc<TaskContext>, Vec<Vec<u8>>)> =
    LazyLock::new(|| set_up_worker().unwrap_or_else(|e| panic!("{e}")));

/// Restricts the process to reading files of the tests, and encodes the plans of [`STATEMENTS`].
fn set_up_worker() -> Result<(Arc<TaskContext>, Vec<Vec<u8>>)> {
    leave_contained_panics();
    let end = take_hook();
    set_hook(Box::new(move |info| {
        let is_own = !info.location().is_some_and(|at| at.file().contains("/registry/"));
        OWN_PANIC.fetch_or(is_own, Ordering::Relaxed);
        end(info);
    }));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let root = root.canonicalize().unwrap_or_else(|e| panic!("{}: {e}", root.display()));
    let rules = Confinement::default().with_read_only(true).with_root(&root);
    confine(&rules).unwrap_or_else(|e| panic!("{e}"));
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // A session without workers plans the statements, so that no worker has to run.
        let here = session();
        for setting in [
            "datafusion.execution.target_partitions = 2",
            "datafusion.optimizer.repartition_file_min_size = 1",
        ] {
            sql(&here, &format!("SET {setting}")).await?.collect().await?;
        }
        let there = session();
        Cluster::new(&ClientConfig::new("127.0.0.1:1"))?.attach(&there);
        let context = make_worker_context(&there.state());
        let mut plans = Vec::new();
        for statement in STATEMENTS {
            let text = statement.replace("'tests", &format!("'{}", root.display()));
            let plan = sql(&here, &text).await?.create_physical_plan().await?;
            plans.push(encode_plan(&context, &plan)?);
        }
        Ok((context, plans))
    })
}

/// Decodes the plan of an input, and returns whether it was decoded. If the first byte is the index
/// of a statement in [`STATEMENTS`], the other bytes change the plan of this statement. Otherwise,
/// the other bytes are the plan.
pub fn run(data: &[u8]) -> bool {
    let Some((first, rest)) = data.split_first() else { return false };
    let (context, plans) = &*WORKER;
    let bytes = match plans.get(usize::from(*first)) {
        Some(plan) => change_bytes(plan.clone(), rest),
        None => rest.to_vec(),
    };
    let decode = || {
        let plan = decode_plan(context, &bytes)?;
        Ok::<_, datafusion::error::DataFusionError>(
            displayable(plan.as_ref()).indent(true).to_string(),
        )
    };
    // A worker survives a panic of another crate, which only ends the connection.
    match catch_unwind(AssertUnwindSafe(|| read_within(&bytes, MEMORY, decode))) {
        Ok(decoded) => decoded.is_ok(),
        Err(panic) if OWN_PANIC.load(Ordering::Relaxed) => resume_unwind(panic),
        Err(_) => false,
    }
}

/// Returns `bytes` with changes. Each four bytes of `choices` are a change: its kind, its position
/// in two bytes, and a value.
fn change_bytes(mut bytes: Vec<u8>, choices: &[u8]) -> Vec<u8> {
    for choice in choices.chunks_exact(4).take(CHANGES) {
        let [kind, high, low, value] = *choice else { continue };
        if bytes.is_empty() {
            break;
        }
        let at = usize::from(u16::from_be_bytes([high, low])) % bytes.len();
        match kind % 6 {
            0 => bytes[at] ^= value,
            1 => bytes[at] = value,
            2 => bytes[at] = bytes[at].wrapping_add(1),
            3 => bytes.insert(at, value),
            4 => drop(bytes.drain(at..bytes.len().min(at + usize::from(value)))),
            _ => bytes.truncate(at),
        }
    }
    bytes
}
