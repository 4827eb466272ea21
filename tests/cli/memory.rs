//! `--memory-limit`: the peak memory of `serrate` processes, and their errors if the limit does not
//! suffice.

use std::sync::{Mutex, Weak};
use std::time::Duration;

use super::*;

/// A finished process, with its peak of anonymous memory in bytes. Pages of mapped files are not
/// included, because the operating system can reclaim them at any time.
struct Measured {
    code: i32,
    err: String,
    highest: u64,
}

fn measure_process(place: &Place, args: &[&str]) -> Measured {
    let mut command = place.command();
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let watch = std::thread::spawn(move || {
        let mut highest = 0u64;
        // The status of a process that has ended has no line on memory, or does not exist.
        while let Some(now) = fs::read_to_string(&status).ok().and_then(|s| find_anonymous(&s)) {
            highest = highest.max(now);
            std::thread::sleep(Duration::from_millis(2));
        }
        highest
    });
    let output = child.wait_with_output().unwrap();
    Measured {
        code: output.status.code().unwrap_or(-1),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
        highest: watch.join().unwrap(),
    }
}

fn find_anonymous(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
}

const LIMIT: u64 = 32 << 20;

/// Number of rows of `lists.parquet`. Each row has a key and a list of 1,000 integers, 8 KB, so
/// that the file holds ten times the limit.
const ROWS: u64 = 10 * LIMIT / 8192;

/// A folder with the file `lists.parquet`. Tests that run at the same time share the file, because
/// a development build takes long to write it.
struct ListPlace {
    place: Place,
    _shared: Arc<Place>,
}

impl ListPlace {
    fn new() -> Self {
        static SHARED: Mutex<Weak<Place>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap();
        let with_lists = shared.upgrade().unwrap_or_else(|| {
            let place = Place::new();
            let lists = format!(
                "COPY (SELECT value AS id, (value * 7919) % 1009 AS k, array_repeat(value, 1000) AS x \
                 FROM generate_series(1, {ROWS})) TO 'lists.parquet' OPTIONS (max_row_group_size 2000)"
            );
            place.ok(&["-c", &lists]);
            Arc::new(place)
        });
        *shared = Arc::downgrade(&with_lists);
        let place = Place::new();
        fs::hard_link(with_lists.path("lists.parquet"), place.path("lists.parquet")).unwrap();
        Self { place, _shared: with_lists }
    }
}

/// Returns the peak memory of a process that reads almost no rows.
fn measure_idle(place: &Place) -> u64 {
    measure_process(place, &["-c", "SELECT count(*) FROM 'lists.parquet' WHERE id < 3"]).highest
}

/// Runs `sql` under the limit `LIMIT`. In the result, `highest` is the peak memory above `idle`.
fn measure_query(place: &Place, idle: u64, sql: &str) -> Measured {
    let limit = LIMIT.to_string();
    let partitions = "SET datafusion.execution.target_partitions = 1; SET datafusion.execution.batch_size = 256;";
    let sql = format!("{partitions} {sql}");
    let mut measured = measure_process(place, &["--memory-limit", &limit, "-f", "csv", "-c", &sql]);
    measured.highest = measured.highest.saturating_sub(idle);
    eprintln!(
        "{:>6.1} MB of memory with a limit of {} MB: {sql}",
        measured.highest as f64 / 1e6,
        LIMIT / 1_000_000
    );
    measured
}

fn assert_within(measured: &Measured, sql: &str) {
    // In a development build, batches in transit between operators take up to as much memory as the
    // limit. A hash join does so in a release build, too, because it holds a batch that it has not
    // reserved memory for yet.
    let is_large = cfg!(debug_assertions) || sql.contains(" JOIN ");
    let most = if is_large { LIMIT * 2 } else { LIMIT / 10 * 13 };
    assert!(measured.highest <= most, "{sql}: {} bytes of memory", measured.highest);
}

#[test]
fn queries_that_stream_read_ten_times_the_limit() {
    let ListPlace { place, .. } = &ListPlace::new();
    let idle = measure_idle(place);
    for sql in [
        "SELECT sum(ragged_count(x)) AS n FROM 'lists.parquet'",
        "SELECT sum(ragged_sum(x)) AS n FROM 'lists.parquet' WHERE k > 3",
        "SELECT count(*) AS n FROM (SELECT unnest(x) AS v FROM 'lists.parquet') WHERE v > 0",
        "COPY (SELECT id, x FROM 'lists.parquet') TO 'copy.nrt'",
    ] {
        let measured = measure_query(place, idle, sql);
        assert_eq!(measured.code, 0, "{sql}: {}", measured.err);
        assert_within(&measured, sql);
    }
}

#[test]
fn operators_on_rows_with_lists_spill_or_fail_with_an_error_that_names_the_limit() {
    let ListPlace { place, .. } = &ListPlace::new();
    let idle = measure_idle(place);
    for sql in [
        "COPY (SELECT * FROM 'lists.parquet' ORDER BY k, id) TO 'sorted.parquet'",
        "COPY (SELECT k, ragged_concat_agg(x) AS x FROM 'lists.parquet' GROUP BY k) TO 'concat.parquet'",
        "COPY (SELECT k, array_agg(x) AS x FROM 'lists.parquet' GROUP BY k) TO 'lists-of-lists.parquet'",
        "COPY (SELECT a.id, a.x, b.x AS y FROM 'lists.parquet' a JOIN 'lists.parquet' b ON a.id = b.id + 1) TO 'joined.parquet'",
        "SELECT count(y) AS n FROM (SELECT id, max(x) AS y FROM 'lists.parquet' GROUP BY id)",
        "SELECT count(y) AS n FROM (SELECT k, min(x) AS y FROM 'lists.parquet' GROUP BY k)",
        "SELECT count(y) AS n FROM (SELECT id, any_value(x) AS y FROM 'lists.parquet' GROUP BY id)",
        "SELECT count(y) AS n FROM (SELECT id, first_value(x ORDER BY k) AS y FROM 'lists.parquet' GROUP BY id)",
    ] {
        let measured = measure_query(place, idle, sql);
        let said = &measured.err;
        eprintln!("  exit code {}", measured.code);
        assert!(
            measured.code == 0 || said.contains(&format!("the memory limit of {LIMIT} bytes")),
            "{sql}: {said}"
        );
        assert!(measured.code == 0 || said.contains("--memory-limit"), "{sql}: {said}");
        assert_within(&measured, sql);
    }
}

/// The keys are lists of 8 KB. The batches have 32 rows, so that a merge of spilled rows reads
/// several files.
#[test]
fn groupings_by_lists_spill() {
    let ListPlace { place, .. } = &ListPlace::new();
    let idle = measure_idle(place);
    for sql in [
        "COPY (SELECT x, count(*) AS n FROM 'lists.parquet' GROUP BY x) TO 'groups.parquet'",
        "SELECT count(*) AS n FROM (SELECT DISTINCT x, k FROM 'lists.parquet')",
    ] {
        let sql = format!("SET datafusion.execution.batch_size = 32; {sql}");
        let measured = measure_query(place, idle, &sql);
        assert_eq!(measured.code, 0, "{sql}: {}", measured.err);
        assert_within(&measured, &sql);
    }
    let lists =
        "SELECT count(*) AS n, sum(x[1]) AS s FROM 'groups.parquet' WHERE ragged_count(x) = 1000";
    let found = place.ok(&["-f", "csv", "-c", lists]);
    assert_eq!(found, format!("n,s\n{ROWS},{}\n", ROWS * (ROWS + 1) / 2));
}

#[test]
fn hash_joins_of_lists_hold_two_copies_of_the_smaller_input() {
    let ListPlace { place, .. } = &ListPlace::new();
    let idle = measure_idle(place);
    let small = "(SELECT * FROM 'lists.parquet' WHERE id <= 1400)";
    let sql = format!(
        "COPY (SELECT a.id, a.x, b.x AS y FROM {small} a JOIN 'lists.parquet' b ON a.id = b.id) TO 'joined.parquet'"
    );
    let measured = measure_query(place, idle, &sql);
    assert_eq!(measured.code, 0, "{sql}: {}", measured.err);
    assert_within(&measured, &sql);
}

/// Each sort and each aggregate of this plan has a twelfth of the limit. A batch of 8,192 strings,
/// which a sort counts several times, does not fit this share, and merges of such batches would
/// read two or three files at a time.
#[test]
fn batches_are_small_if_many_operators_share_the_limit() {
    let place = &Place::new();
    let rows = "SELECT 'x' || (value * 104729) % 1000003 || repeat('y', 60) AS s \
        FROM generate_series(1, 130000)";
    place.ok(&["-c", &format!("COPY ({rows}) TO 't.parquet'")]);
    let query = "SELECT count(*), max(r), max(n) FROM (SELECT s, count(*) AS n, \
        row_number() OVER (PARTITION BY length(s) ORDER BY s) AS r FROM 't.parquet' GROUP BY s)";
    let expected = place.ok(&["-f", "csv", "-c", query]);
    let limited = |sql: &str| {
        let sql = format!("SET datafusion.execution.target_partitions = 4; {sql}");
        place.ok(&["--memory-limit", "16MB", "-f", "csv", "-c", &sql])
    };
    assert_eq!(limited(query), expected);
    let plan = limited(&format!("EXPLAIN {query}"));
    assert!(plan.contains("BatchSizeExec: rows="), "{plan}");
}

/// Operators of one statement reserve memory in an order that depends on the scheduler. Without
/// shares for their merges, some of these statements fail in one run and succeed in another.
#[test]
fn several_sorts_groupings_and_joins_share_one_limit() {
    let place = &Place::new();
    let rows = "SELECT value AS id, (value * 7919) % 1009 AS k, \
        'x' || (value * 104729) % 1000003 || repeat('y', 60) AS s FROM generate_series(1, 200000)";
    place.ok(&["-c", &format!("COPY ({rows}) TO 't.parquet'")]);
    let rank = |keys: &str| {
        format!("(SELECT id, s, row_number() OVER (ORDER BY {keys}) AS r FROM 't.parquet')")
    };
    let (by_text, by_key, by_rest) = (rank("s, id"), rank("k, id"), rank("id % 997, s, id"));
    let union = format!("FROM {by_text} UNION ALL FROM {by_key} UNION ALL FROM {by_rest}");
    let queries = [
        format!("SELECT count(*), max(r), min(s), max(s) FROM ({union})"),
        format!("SELECT count(*), max(a.r + b.r) FROM {by_text} a JOIN {by_key} b ON a.id = b.id"),
        "SELECT count(*), max(r), max(n) FROM (SELECT s, count(*) AS n, \
             row_number() OVER (PARTITION BY length(s) ORDER BY s) AS r FROM 't.parquet' GROUP BY s)"
            .to_owned(),
    ];
    let sql = queries.join("; ");
    let expected = place.ok(&["-f", "csv", "-c", &sql]);
    for (partitions, hash_joins) in [(2, true), (4, true), (4, false)] {
        let sql = format!(
            "SET datafusion.execution.target_partitions = {partitions}; \
             SET datafusion.optimizer.prefer_hash_join = {hash_joins}; {sql}"
        );
        for _ in 0..2 {
            let found = place.ok(&["--memory-limit", "80MB", "-f", "csv", "-c", &sql]);
            assert_eq!(found, expected, "{sql}");
        }
    }
}

#[test]
fn memory_of_functions_readers_and_writers_counts_towards_the_limit() {
    let ListPlace { place, .. } = &ListPlace::new();
    let limit = (4 << 20).to_string();
    let keys = "SELECT 'c' || value AS code, value AS id FROM generate_series(1, 300000)";
    place.ok(&["-c", &format!("COPY ({keys}) TO 'codes.parquet'")]);
    place.ok(&["-c", "COPY (SELECT value AS i, value * 1.5 AS v FROM generate_series(1, 400000)) TO 'm.safetensors' STORED AS DOK OPTIONS (keys 'i')"]);
    place.ok(&["generate", "--patients", "500", "-o", "meds", "--to", "meds", "--shards", "1"]);
    place.file("large.json", format!("[{}]", vec!["{\"a\": [1, 2, 3]}"; 300_000].join(",")));
    for (sql, holder) in [
        ("SELECT ragged_encode(['c1'], 'codes.parquet')", "the vocabulary codes.parquet"),
        ("SELECT ragged_lookup(['c1'], 'codes.parquet', 'code', 'id')", "a look-up table"),
        ("SELECT count(*) FROM 'm.safetensors'", "the sparse tensor or dictionary"),
        (
            "COPY (SELECT x FROM 'lists.parquet') TO 'x.safetensors'",
            "the writer of safetensors files",
        ),
        (
            "COPY (SELECT value AS i, 1.0 AS v FROM generate_series(1, 400000)) TO 'new.safetensors' STORED AS DOK OPTIONS (keys 'i')",
            "the writer of DOK files",
        ),
        ("SELECT sum(ragged_count(code)) FROM meds('meds')", "the MEDS shard"),
        ("SELECT sum(x) FROM ragged_explode('lists.parquet')", "ragged_explode"),
    ] {
        let error = place.fails(1, &["--memory-limit", &limit, "-c", sql]);
        let named = error.contains(holder) && error.contains(&format!("limit of {limit} bytes"));
        assert!(named && error.contains("--memory-limit"), "{sql}: {error}");
    }
    let error = place.fails(1, &["convert", "large.json", "x.nrt", "--memory-limit", &limit]);
    assert!(error.contains("large.json") && error.contains("memory limit"), "{error}");
    assert!(
        !place.exists("x.nrt")
            && !place.exists("x.safetensors")
            && !place.exists("new.safetensors")
    );
}

#[test]
fn statements_can_lower_but_not_raise_the_limit_of_the_command() {
    let place = Place::new();
    let show =
        "SELECT value FROM information_schema.df_settings WHERE name = 'serrate.memory_limit'";
    let value = |args: &[&str], sql: &str| {
        place.ok(&[args, &["-f", "csv", "-c", sql]].concat()).lines().last().unwrap().to_owned()
    };
    assert_eq!(value(&["--memory-limit", "64MiB"], show), (64 << 20).to_string());
    assert_eq!(value(&["--memory-limit", "unlimited"], show), "unlimited");
    let own: u64 = value(&[], show).parse().unwrap();
    let all: u64 = value(&["--memory-limit", "100%"], show).parse().unwrap();
    assert!(own < all && own > all / 2, "{own} {all}");
    for set in
        ["SET serrate.memory_limit = '32MiB'", "SET datafusion.runtime.memory_limit = '32MiB'"]
    {
        let sql = format!("{set}; {show}");
        assert_eq!(value(&["--memory-limit", "64MiB"], &sql), (32 << 20).to_string());
        let back = format!("{set}; RESET datafusion.runtime.memory_limit; {show}");
        assert_eq!(value(&["--memory-limit", "64MiB"], &back), (64 << 20).to_string());
    }
    let error =
        place.fails(1, &["--memory-limit", "64MiB", "-c", "SET serrate.memory_limit = '1GB'"]);
    assert!(error.contains("more than --memory-limit allows"), "{error}");
    for wrong in ["0", "much", "200%"] {
        let error = place.fails(2, &["--memory-limit", wrong, "-c", "SELECT 1"]);
        assert!(error.starts_with("error: --memory-limit: "), "{error}");
        assert!(!error.contains("Configuration"), "{error}");
    }
}
