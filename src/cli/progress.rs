//! Progress bars on stderr, drawn only on a terminal and only for work that takes more than a
//! second.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::output::{format_count, format_rounded};

/// Time after which the progress of work is shown. Work that takes less time shows no progress.
const SHOW_DELAY: Duration = Duration::from_secs(1);
/// Time between two draws of the progress of a query.
const REDRAW_INTERVAL: Duration = Duration::from_millis(125);
/// Maximum number of times per second that a progress bar is drawn.
const MAX_DRAW_RATE: u8 = 8;

pub(super) struct Progress {
    bar: ProgressBar,
    files: usize,
    start: Instant,
    drawn: OnceLock<()>,
}

impl Progress {
    /// Starts a spinner that shows the number of rows so far and, for several files, which of the
    /// `files` files the command works on. Nothing is drawn if stderr is not a terminal.
    pub(super) fn new(files: usize) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let style =
            ProgressStyle::with_template("{spinner} {msg} {human_pos} rows {elapsed} {per_sec}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        Self { bar, files, start: Instant::now(), drawn: OnceLock::new() }
    }

    pub(super) fn from_rows(rows: u64) -> Self {
        let progress = Self::new(0);
        progress.bar.set_length(rows);
        let style =
            ProgressStyle::with_template("{wide_bar} {human_pos}/{human_len} rows, {eta} left");
        progress.bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        progress
    }

    fn draw_if_slow(&self) {
        if self.start.elapsed() >= SHOW_DELAY && self.drawn.set(()).is_ok() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(MAX_DRAW_RATE));
        }
    }

    pub(super) fn show_file(&self, path: &Path) {
        self.draw_if_slow();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if self.files > 1 {
            self.bar.set_message(format!("{name} ({} files)", self.files));
        } else {
            self.bar.set_message(name);
        }
        return_cursor(&self.bar);
    }

    pub(super) fn add_rows(&self, rows: usize) {
        self.draw_if_slow();
        self.bar.inc(rows as u64);
        return_cursor(&self.bar);
    }

    pub(super) fn set_position(&self, rows: u64) {
        self.draw_if_slow();
        self.bar.set_position(rows);
        return_cursor(&self.bar);
    }

    pub(super) fn show_note(&self, text: &str) {
        self.bar.suspend(|| eprintln!("note: {text}"));
        return_cursor(&self.bar);
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Moves the cursor from the end of the line of the bar, where indicatif leaves it, to the start of
/// this line. On Ctrl-C, the terminal prints `^C` at the cursor. At the end of the line, `^C` would
/// begin a new line, and indicatif would clear the new line instead of the bar.
fn return_cursor(bar: &ProgressBar) {
    if !bar.is_hidden() {
        let mut stderr = std::io::stderr();
        // Ignores an error: a statement must not fail because its progress bar cannot be drawn.
        let _ = stderr.write_all(b"\r").and_then(|()| stderr.flush());
    }
}

/// Draws how many rows and bytes a statement has read from its sources. Draws on a separate thread,
/// because the threads that run the query are busy.
pub(super) struct QueryProgress {
    plan: Arc<OnceLock<Arc<dyn ExecutionPlan>>>,
    thread: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl QueryProgress {
    /// Starts the thread that draws the progress after [`SHOW_DELAY`]. Nothing is drawn if stderr
    /// is not a terminal.
    pub(super) fn new() -> Self {
        let plan = Arc::new(OnceLock::new());
        let thread = std::io::stderr().is_terminal().then(|| {
            let (stop, stopped) = mpsc::channel();
            let watched = Arc::clone(&plan);
            let thread = std::thread::Builder::new().name("progress".into());
            thread.spawn(move || draw_query(&watched, &stopped)).ok().map(|thread| (stop, thread))
        });
        Self { plan, thread: thread.flatten() }
    }

    /// Sets the statement's plan. From now on, the progress shows the rows and bytes that the
    /// sources of the plan have read.
    pub(super) fn watch_plan(&self, plan: &Arc<dyn ExecutionPlan>) {
        let _ = self.plan.set(Arc::clone(plan));
    }

    pub(super) fn remove_bar(&mut self) {
        if let Some((stop, thread)) = self.thread.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

impl Drop for QueryProgress {
    fn drop(&mut self) {
        self.remove_bar();
    }
}

fn draw_query(plan: &OnceLock<Arc<dyn ExecutionPlan>>, stopped: &mpsc::Receiver<()>) {
    if stopped.recv_timeout(SHOW_DELAY) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let bar =
        ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(MAX_DRAW_RATE));
    bar.set_elapsed(SHOW_DELAY);
    set_style(&bar, None);
    let mut total = None;
    loop {
        if let Some(plan) = plan.get() {
            let total = *total.get_or_insert_with(|| {
                let total = count_rows(plan).filter(|total| *total > 0);
                set_style(&bar, total);
                total
            });
            let counts = SourceCounts::from_plan(plan);
            bar.set_position(total.map_or(counts.rows, |total| counts.rows.min(total)));
            bar.set_message(counts.to_string());
        }
        bar.tick();
        return_cursor(&bar);
        if stopped.recv_timeout(REDRAW_INTERVAL) != Err(RecvTimeoutError::Timeout) {
            bar.finish_and_clear();
            return;
        }
    }
}

fn set_style(bar: &ProgressBar, total: Option<u64>) {
    let template = match total {
        Some(total) => {
            bar.set_length(total);
            "{bar:24} {percent}% {msg} {elapsed}"
        }
        None => "{spinner} {msg} {elapsed}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SourceCounts {
    rows: u64,
    bytes: u64,
}

impl SourceCounts {
    fn from_plan(plan: &Arc<dyn ExecutionPlan>) -> Self {
        let mut counts = Self::default();
        counts.add_plan(plan);
        counts
    }

    fn add_plan(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        let children = plan.children();
        if let Some(metrics) = plan.metrics() {
            let count = |n: Option<usize>| n.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
            if children.is_empty() {
                self.rows += count(metrics.output_rows());
            }
            let read = count(metrics.sum_by_name("bytes_scanned").map(|v| v.as_usize()));
            // Partitions that share a row group read some pages twice, so that `read` may exceed
            // the size of the files. The progress shows at most this size.
            self.bytes += count_file_bytes(plan).map_or(read, |all| read.min(all));
        }
        children.into_iter().for_each(|child| self.add_plan(child));
    }
}

impl std::fmt::Display for SourceCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", format_count(self.rows, "row", "rows"))?;
        match self.bytes {
            0 => Ok(()),
            bytes => write!(f, ", {}", format_rounded(bytes.into())),
        }
    }
}

fn count_file_bytes(plan: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    let scan = plan.downcast_ref::<DataSourceExec>()?;
    let files = scan.data_source().downcast_ref::<FileScanConfig>()?;
    let files = files.file_groups.iter().flat_map(FileGroup::iter);
    // Maps each file to its size, so that it counts once even if several partitions read parts of
    // it.
    let sizes: HashMap<_, u64> =
        files.map(|file| (&file.object_meta.location, file.object_meta.size)).collect();
    Some(sizes.values().sum())
}

/// Returns the number of rows that the sources of a plan will read in all. Returns `None` if a
/// source does not know its number of rows.
fn count_rows(plan: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    let children = plan.children();
    if !children.is_empty() {
        let counts = children.into_iter().map(count_rows);
        return counts.sum();
    }
    let statistics =
        StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()).ok()?;
    u64::try_from(*statistics.num_rows.get_value()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::physical_plan::collect;

    #[tokio::test]
    async fn sources_are_counted() {
        let context = crate::sql::session();
        let sql = "SELECT count(*) FROM generate_series(1, 1000) AS a(v), (VALUES (1), (2)) b";
        let frame = crate::sql::sql(&context, sql).await.unwrap();
        let (task, plan) = (frame.task_ctx(), frame.create_physical_plan().await.unwrap());
        assert_eq!(SourceCounts::from_plan(&plan), SourceCounts::default());
        collect(Arc::clone(&plan), Arc::new(task)).await.unwrap();
        let counts = SourceCounts::from_plan(&plan);
        assert!(counts.rows >= 1000, "{counts:?}");
        assert_eq!(SourceCounts { rows: 1234, bytes: 0 }.to_string(), "1,234 rows");
        assert_eq!(SourceCounts { rows: 1, bytes: 12_300_000 }.to_string(), "1 row, 12.3 MB");
    }
}
