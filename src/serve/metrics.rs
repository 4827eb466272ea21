//! Metrics of the server, in the text format of Prometheus.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::memory::{memory_limit, memory_used};

/// A number that threads can change without a lock: a gauge, or a counter, which never decreases.
#[derive(Debug, Default)]
pub(super) struct AtomicCount(AtomicU64);

impl AtomicCount {
    pub(super) fn add(&self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }

    pub(super) fn sub(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A function that returns the number of workers that can be used, and the number of all workers.
pub(crate) type CountWorkers = Arc<dyn Fn() -> (usize, usize) + Send + Sync>;

pub(super) struct ServerMetrics {
    started: Instant,
    workers: Option<CountWorkers>,
    pub(super) running: AtomicCount,
    pub(super) queued: AtomicCount,
    /// Number of queries whose client has not yet received the whole result. A query that waits for
    /// its client to read is one of them.
    pub(super) open: AtomicCount,
    pub(super) finished: AtomicCount,
    pub(super) failed: AtomicCount,
    pub(super) cancelled: AtomicCount,
    /// Number of queries that were refused, because the queue was full or they had waited too long.
    pub(super) rejected: AtomicCount,
    pub(super) rows: AtomicCount,
    pub(super) bytes: AtomicCount,
    pub(super) sessions: AtomicCount,
    pub(super) connections: AtomicCount,
    /// Number of requests with a wrong token or without a token.
    pub(super) unauthenticated: AtomicCount,
}

impl fmt::Debug for ServerMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerMetrics").finish_non_exhaustive()
    }
}

impl Default for ServerMetrics {
    fn default() -> Self {
        Self::new(None)
    }
}

impl ServerMetrics {
    pub(super) fn new(workers: Option<CountWorkers>) -> Self {
        Self {
            started: Instant::now(),
            workers,
            running: AtomicCount::default(),
            queued: AtomicCount::default(),
            open: AtomicCount::default(),
            finished: AtomicCount::default(),
            failed: AtomicCount::default(),
            cancelled: AtomicCount::default(),
            rejected: AtomicCount::default(),
            rows: AtomicCount::default(),
            bytes: AtomicCount::default(),
            sessions: AtomicCount::default(),
            connections: AtomicCount::default(),
            unauthenticated: AtomicCount::default(),
        }
    }

    /// Returns all metrics in the text format of Prometheus.
    pub(super) fn to_text(&self) -> String {
        let uptime = self.started.elapsed().as_secs();
        let memory = u64::try_from(memory_used()).unwrap_or(u64::MAX);
        let gauges = [
            ("queries_running", "Queries that run now", self.running.get()),
            ("queries_queued", "Queries that wait until they may run", self.queued.get()),
            ("queries_open", "Queries whose result is not fully read", self.open.get()),
            ("sessions", "Open sessions", self.sessions.get()),
            ("connections", "Open connections", self.connections.get()),
            ("memory_reserved_bytes", "Bytes charged to the memory limit", memory),
            ("uptime_seconds", "Seconds since the start", uptime),
        ];
        let counters = [
            ("queries_finished_total", "Queries that ended", self.finished.get()),
            ("queries_failed_total", "Queries that ended with an error", self.failed.get()),
            ("queries_cancelled_total", "Queries that were cancelled", self.cancelled.get()),
            (
                "queries_rejected_total",
                "Queries refused because the queue was full or they waited too long",
                self.rejected.get(),
            ),
            ("rows_sent_total", "Rows of results", self.rows.get()),
            ("bytes_sent_total", "Bytes of results", self.bytes.get()),
            (
                "unauthenticated_total",
                "Requests without the right token",
                self.unauthenticated.get(),
            ),
        ];
        let mut text = String::new();
        let mut add = |name: &str, what: &str, kind: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "# HELP serrate_{name} {what}.\n# TYPE serrate_{name} {kind}\nserrate_{name} {value}"
            );
        };
        for (name, what, value) in gauges {
            add(name, what, "gauge", &value.to_string());
        }
        if let Some(count) = &self.workers {
            let (usable, all) = count();
            let what = "Workers that could be used at the last check";
            add("workers_usable", what, "gauge", &usable.to_string());
            add("workers", "All workers of the server", "gauge", &all.to_string());
        }
        let limit = match memory_limit() {
            usize::MAX => "+Inf".to_owned(),
            bytes => bytes.to_string(),
        };
        add("memory_limit_bytes", "Memory limit of the process", "gauge", &limit);
        for (name, what, value) in counters {
            add(name, what, "counter", &value.to_string());
        }
        let version = env!("CARGO_PKG_VERSION");
        let _ = writeln!(
            text,
            "# HELP serrate_info Version of the server.\n# TYPE serrate_info gauge\nserrate_info{{version=\"{version}\"}} 1"
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_help_type_and_value() {
        let metrics = ServerMetrics::default();
        metrics.rows.add(7);
        metrics.running.add(1);
        let text = metrics.to_text();
        assert!(text.contains("\nserrate_rows_sent_total 7\n"), "{text}");
        assert!(text.contains("\nserrate_queries_running 1\n"), "{text}");
        assert_eq!(text.lines().count() % 3, 0, "{text}");
        assert!(!text.contains("workers"), "{text}");
        let text = ServerMetrics::new(Some(Arc::new(|| (1, 2)))).to_text();
        assert!(text.contains("\nserrate_workers_usable 1\n"), "{text}");
        assert!(text.contains("\nserrate_workers 2\n"), "{text}");
        metrics.running.sub();
        assert_eq!(metrics.running.get(), 0);
    }
}
