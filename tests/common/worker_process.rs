//! Worker processes of tests.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A worker process, which ends when the value is dropped.
pub(crate) struct WorkerProcess {
    pub(crate) child: Child,
    pub(crate) address: String,
}

impl WorkerProcess {
    pub(crate) fn start_worker(args: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", args)
    }

    pub(crate) fn start_at(address: &str, args: &[&str]) -> Self {
        Self::start_with(Command::new(env!("CARGO_BIN_EXE_serrate")), address, args)
    }

    /// Starts a worker that listens on `address`. `command` must run `serrate` with the arguments
    /// that it gets.
    pub(crate) fn start_with(mut command: Command, address: &str, args: &[&str]) -> Self {
        let mut child = command
            .args(["worker", "--listen", address])
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit(' ').next().unwrap().to_owned();
        assert!(address.contains(':'), "the worker printed no address but {line:?}");
        Self { child, address }
    }

    /// Sends the process the signal `name`, such as `KILL`.
    pub(crate) fn send_signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn start_workers(count: usize) -> Vec<WorkerProcess> {
    (0..count).map(|_| WorkerProcess::start_worker(&["--worker-timeout", "5"])).collect()
}

/// Returns the CPU time that all workers have used, in ticks of 10 ms.
pub(crate) fn count_ticks(workers: &[WorkerProcess]) -> u64 {
    let ticks = workers.iter().map(|worker| {
        let path = format!("/proc/{}/stat", worker.child.id());
        let text = std::fs::read_to_string(path).unwrap();
        let (_, fields) = text.rsplit_once(')').unwrap();
        let times = fields.split_whitespace().skip(11).take(2);
        times.map(|ticks| ticks.parse::<u64>().unwrap()).sum::<u64>()
    });
    ticks.sum()
}

/// Waits until the workers use less than 100 ms of CPU time in half a second.
pub(crate) async fn wait_until_idle(workers: &[WorkerProcess]) {
    let start = Instant::now();
    loop {
        let before = count_ticks(workers);
        tokio::time::sleep(Duration::from_millis(500)).await;
        if count_ticks(workers) < before + 10 {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "the workers do not become idle");
    }
}

/// Returns the addresses of the workers, separated by commas as `--workers` expects them.
pub(crate) fn list_addresses(workers: &[WorkerProcess]) -> String {
    let addresses: Vec<&str> = workers.iter().map(|w| w.address.as_str()).collect();
    addresses.join(",")
}

/// Returns the absolute path of a file in `tests`, such as a certificate.
pub(crate) fn shipped_file(path: &str) -> String {
    format!("{}/tests/{path}", env!("CARGO_MANIFEST_DIR"))
}
