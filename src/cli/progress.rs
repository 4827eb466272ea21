//! Progress bar on stderr, drawn only on a terminal.

use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub(super) struct Progress {
    bar: ProgressBar,
    files: usize,
}

impl Progress {
    /// Starts a spinner for a number of files. Nothing is drawn if stderr is not a terminal.
    pub(super) fn new(files: usize) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(8));
        let style =
            ProgressStyle::with_template("{spinner} {msg} {human_pos} rows {elapsed} {per_sec}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        Self { bar, files }
    }

    pub(super) fn of_rows(rows: u64) -> Self {
        let progress = Self::new(0);
        progress.bar.set_length(rows);
        let style =
            ProgressStyle::with_template("{wide_bar} {human_pos}/{human_len} rows, {eta} left");
        progress.bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        progress
    }

    pub(super) fn file(&self, path: &Path) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if self.files > 1 {
            self.bar.set_message(format!("{name} ({} files)", self.files));
        } else {
            self.bar.set_message(name);
        }
    }

    pub(super) fn rows(&self, rows: usize) {
        self.bar.inc(rows as u64);
    }

    /// Sets the total number of processed rows.
    pub(super) fn position(&self, rows: u64) {
        self.bar.set_position(rows);
    }

    /// Prints a note on stderr without disturbing the bar.
    pub(super) fn note(&self, text: &str) {
        self.bar.suspend(|| eprintln!("note: {text}"));
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
