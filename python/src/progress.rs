//! Shows the progress of statements that take longer than a second.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pyo3::prelude::*;
use serrate::datafusion::physical_plan::ExecutionPlan;
use serrate::datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

/// Time after which the progress of a statement is first shown.
const FIRST: Duration = Duration::from_secs(1);

/// Time between two updates.
const EACH: Duration = Duration::from_millis(200);

/// The plan of a statement, which is set when the statement starts to run.
#[derive(Clone, Default)]
pub(crate) struct RunningPlan(Arc<OnceLock<Arc<dyn ExecutionPlan>>>);

impl RunningPlan {
    pub(crate) fn begin_plan(&self, plan: &Arc<dyn ExecutionPlan>) {
        let _ = self.0.set(Arc::clone(plan));
    }

    /// Returns the number of rows read so far, and the total if all sources know theirs.
    fn rows(&self) -> (usize, Option<usize>) {
        self.0.get().map_or((0, None), read_rows)
    }
}

fn read_rows(plan: &Arc<dyn ExecutionPlan>) -> (usize, Option<usize>) {
    let children = plan.children();
    if children.is_empty() {
        let read = plan.metrics().and_then(|m| m.output_rows()).unwrap_or(0);
        let known = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()).ok();
        return (read, known.and_then(|s| s.num_rows.get_value().copied()));
    }
    let all = children.into_iter().map(read_rows);
    all.fold((0, Some(0)), |(read, total), (more, known)| {
        let total = total.zip(known).and_then(|(a, b)| a.checked_add(b));
        (read.saturating_add(more), total)
    })
}

/// Shows the progress of one statement.
pub(crate) struct StatementProgress {
    /// A Python function that creates the display; `None` if no progress is shown.
    start: Option<Py<PyAny>>,
    running: RunningPlan,
    shown: Option<Py<PyAny>>,
    last: Duration,
}

impl StatementProgress {
    pub(crate) fn new(start: Option<Py<PyAny>>, running: RunningPlan) -> Self {
        Self { start, running, shown: None, last: Duration::ZERO }
    }

    pub(crate) fn show_progress(&mut self, py: Python<'_>, since: Duration) -> PyResult<()> {
        if self.start.is_none() || since < FIRST || since < self.last.saturating_add(EACH) {
            return Ok(());
        }
        self.last = since;
        let shown = match (&self.shown, &self.start) {
            (Some(shown), _) => shown.clone_ref(py),
            (None, Some(start)) => start.call0(py)?,
            (None, None) => return Ok(()),
        };
        if shown.is_none(py) {
            self.start = None;
            return Ok(());
        }
        let (rows, total) = self.running.rows();
        shown.call_method1(py, "update", (since.as_secs_f64(), rows, total))?;
        self.shown = Some(shown);
        Ok(())
    }
}

impl Drop for StatementProgress {
    fn drop(&mut self) {
        if let Some(shown) = self.shown.take() {
            // The call succeeds even if the display cannot be closed.
            Python::attach(|py| drop(shown.call_method0(py, "close")));
        }
    }
}
