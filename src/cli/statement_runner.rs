//! Executes statements and displays their results.

use std::io::{self, IsTerminal, Read, Write};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use arrow::array::AsArray;
use datafusion::common::config::Dialect;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use futures::{FutureExt, StreamExt};

use super::arguments::OutputFormat;
use super::batches::describe_tasks;
use super::command_failure::{Failure, Outcome};
use super::command_line::QueryArgs;
use super::error_places::{ScriptErrors, choose_width};
use super::files::FileFormat;
use super::interrupt;
use super::output::{
    self, OutputTarget, ResultWriter, TableStyle, choose_plural, find_terminal_width, format_count,
};
use super::panics;
use super::progress::QueryProgress;
use super::script::{self, ScriptStatement};
use crate::access;
use crate::error::Error;
use crate::functions::wrap_words;
use crate::sql::{convert_internal_error, sum_counts, to_local_path};

pub(super) struct StatementRunner {
    context: SessionContext,
    format: OutputFormat,
    style: TableStyle,
    timing: bool,
    target: OutputTarget,
    /// Path of the output file, or `None` for standard output.
    path: Option<PathBuf>,
    /// While the shell command `.output` sends results to a file, the format to restore when
    /// results go to standard output again. `None` while results go to standard output, or to the
    /// file of the option `-o`.
    format_on_screen: Option<OutputFormat>,
    /// Whether an option or `.mode` has set the format. Such a format also applies to an output
    /// file whose extension names no format.
    format_is_chosen: bool,
    /// Format to restore when the format `line` is switched off.
    format_before_lines: OutputFormat,
    /// Number of results in the output file, or on standard output.
    results: usize,
    /// Whether anything was printed to standard output. If so, a blank line is printed before the
    /// title of the next statement.
    printed: bool,
    /// Lines of the `--` comment above the running statement. Empty once they are printed.
    title: Vec<String>,
    #[cfg(feature = "cluster")]
    cluster: Option<crate::cluster::Cluster>,
}

impl StatementRunner {
    pub(super) fn try_new(args: &QueryArgs) -> Outcome<Self> {
        let target = match &args.output {
            None if args.overwrite => {
                return Err(Failure::from_usage(
                    "--overwrite requires -o FILE, the file to replace; for COPY write COPY (SELECT ..) TO 'FILE' OPTIONS (overwrite true)",
                ));
            }
            None => OutputTarget::new_stdout(),
            Some(path) if path.as_os_str() == "-" => {
                return Err(Failure::from_usage(
                    "-o writes a file; omit -o - to print results on standard output, in the format of --format",
                ));
            }
            Some(path) => OutputTarget::new_file(path, args.overwrite)?,
        };
        let by_name = args.output.as_deref().and_then(OutputFormat::from_extension);
        if let (None, None, Some(path)) = (args.format, by_name, &args.output)
            && let Some(extension) = path.extension()
        {
            let extension = extension.to_string_lossy();
            return Err(Failure::from_usage(format!(
                "-o writes csv, json, ndjson, arrow, md or txt, not .{extension}; set --format, or write other formats with COPY (SELECT ..) TO '{}'",
                path.display()
            )));
        }
        let context = crate::sql::session();
        interrupt::watch_session(&context);
        #[cfg(feature = "cluster")]
        let cluster = args.cluster.connect_workers()?;
        #[cfg(feature = "cluster")]
        if let Some(cluster) = &cluster {
            cluster.attach(&context);
        }
        Ok(Self {
            context,
            format: args.format.or(by_name).unwrap_or(OutputFormat::Table),
            format_is_chosen: args.format.is_some(),
            style: TableStyle::new(&args.table),
            timing: args.timing,
            target,
            path: args.output.clone(),
            format_on_screen: None,
            format_before_lines: OutputFormat::Table,
            results: 0,
            printed: false,
            title: Vec::new(),
            #[cfg(feature = "cluster")]
            cluster,
        })
    }

    pub(super) fn context(&self) -> &SessionContext {
        &self.context
    }

    /// Sets whether the time that each statement takes is printed to stderr.
    pub(super) fn set_timing(&mut self, is_on: bool) {
        self.timing = is_on;
    }

    pub(super) fn format(&self) -> OutputFormat {
        self.format
    }

    pub(super) fn choose_format(&mut self, format: OutputFormat) {
        self.format = format;
        self.format_is_chosen = true;
    }

    /// Switches the format `line` on if `on` is true, and back to the previous format if it is
    /// false. `None` toggles between both. Returns the new format.
    pub(super) fn switch_lines(&mut self, on: Option<bool>) -> OutputFormat {
        match (on.unwrap_or(self.format != OutputFormat::Line), self.format) {
            (true, OutputFormat::Line) => {}
            (true, format) => {
                self.format_before_lines = format;
                self.format = OutputFormat::Line;
            }
            (false, OutputFormat::Line) => self.format = self.format_before_lines,
            (false, _) => {}
        }
        self.format
    }

    pub(super) fn table_style(&mut self) -> &mut TableStyle {
        &mut self.style
    }

    /// Completes the current output file, if it has results, and sends later results to the file
    /// `path`, or to standard output if `path` is `None`. The extension of `path` determines the
    /// format. Without a known extension, an option or `.mode` must have set a format. An existing
    /// file is an error unless `overwrite` is true.
    pub(super) fn redirect_results(&mut self, path: Option<&Path>, overwrite: bool) -> Outcome {
        // A format that an option or `.mode` has set does not apply to a file name such as
        // `x.parquet`, which names a format that only COPY can write.
        let chosen = |path: &Path| match FileFormat::from_path(path) {
            None => self.format_is_chosen.then(|| self.format_on_screen.unwrap_or(self.format)),
            Some(_) => None,
        };
        let format =
            path.and_then(|path| OutputFormat::from_extension(path).or_else(|| chosen(path)));
        if let (Some(path), None) = (path, format) {
            return Err(Failure::from_message(format!(
                ".output writes .txt, .csv, .json, .ndjson, .arrow and .md files and, if .mode has set a format, files without a known extension; write {} with COPY (SELECT ..) TO '{}'",
                path.display(),
                path.display()
            )));
        }
        let target = match path {
            Some(path) => OutputTarget::new_file(path, overwrite).map_err(|e| match e {
                Error::Exists(_) => Failure::from_message(format!(
                    "{path} already exists; to replace it, write .output {path} overwrite",
                    path = path.display()
                )),
                e => e.into(),
            })?,
            None => OutputTarget::new_stdout(),
        };
        let earlier = std::mem::replace(&mut self.target, target);
        let written = self.path.take().filter(|_| self.results > 0);
        let results = std::mem::take(&mut self.results);
        self.path = path.map(Path::to_path_buf);
        if let Some(format) = self.format_on_screen.take() {
            self.format = format;
        }
        if let Some(format) = format {
            self.format_on_screen = Some(std::mem::replace(&mut self.format, format));
        }
        if !earlier.has_file() || results > 0 {
            earlier.commit()?;
        }
        if let Some(path) = written {
            eprintln!("wrote {}", path.display());
        }
        Ok(())
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.context.state().config().options().sql_parser.dialect
    }

    /// Runs a script file, or standard input if the path is `-`.
    pub(super) async fn run_file(&mut self, path: &Path) -> Outcome {
        let name = path.display().to_string();
        if path.as_os_str() == "-" {
            let mut sql = String::new();
            interrupt::read_stdin(|| io::stdin().read_to_string(&mut sql)).map_err(|e| {
                Failure::from_message(format!(
                    "cannot read standard input; pass UTF-8 text, or the name of a file: {e}"
                ))
            })?;
            return self.run_script("standard input", &sql).await;
        }
        let sql = access::read_to_string(path).map_err(|e| {
            let hint = match e.kind() {
                _ if access::is_dir(path) => {
                    let hint = format!(
                        "{name} is a folder, not a script; `serrate inspect {name}` shows its contents, and SQL reads a MEDS folder as FROM meds('{name}')"
                    );
                    return Failure::from_message(hint);
                }
                io::ErrorKind::NotFound if path.extension().is_none() => {
                    "; it is neither a script nor a command (see --help)"
                }
                io::ErrorKind::InvalidData => "; a script must be SQL text (`serrate inspect` shows data files)",
                _ => "",
            };
            Failure::from_message(format!("{name}: {e}{hint}"))
        })?;
        self.run_script(&name, &sql).await
    }

    /// Runs the statements of `sql` up to the first that fails. `name` is the name of the script in
    /// messages.
    pub(super) async fn run_script(&mut self, name: &str, sql: &str) -> Outcome {
        // Some editors begin UTF-8 files with this byte order mark.
        let sql = sql.strip_prefix('\u{feff}').unwrap_or(sql);
        let width = choose_width(find_terminal_width());
        let errors = ScriptErrors { name, text: sql, dialect: self.dialect(), width };
        let script = script::split_statements(sql, &self.dialect())
            .map_err(|e| Failure::from_message(errors.format_token_error(&e)))?;
        for statement in &script.statements {
            self.title.clone_from(&statement.title);
            let result = self.run_statement(statement).await;
            if result.is_err() {
                // Flushes the heading of the statement, so that the error appears below it.
                let _ = self.target.flush();
            }
            result.map_err(|failure| match failure {
                Failure::Failed(_) if self.target.is_closed() => Failure::Closed,
                Failure::Failed(message) => {
                    Failure::Failed(errors.format_statement_error(statement, &message))
                }
                other => other,
            })?;
        }
        Ok(())
    }

    /// Whether results are printed to standard output in a human-readable format.
    fn prints_human_readable(&self) -> bool {
        self.format.is_human_readable() && !self.target.has_file()
    }

    /// Prints the comment above the statement as a heading, if results are tables on standard
    /// output. Called before the first output of the statement. Returns whether it printed a
    /// heading. Does not flush the heading, because a progress bar may be on the screen.
    fn print_title(&mut self) -> Outcome<bool> {
        let title = std::mem::take(&mut self.title);
        if !self.prints_human_readable() || title.is_empty() {
            return Ok(false);
        }
        if self.printed {
            writeln!(self.target)?;
        }
        self.printed = true;
        match find_terminal_width() {
            Some(width) => {
                for paragraph in join_lines(&title) {
                    writeln!(self.target, "{}", wrap_words(&paragraph, width, 0))?;
                }
            }
            None => {
                for line in &title {
                    writeln!(self.target, "{line}")?;
                }
            }
        }
        Ok(true)
    }

    async fn run_statement(&mut self, statement: &ScriptStatement) -> Outcome {
        let start = Instant::now();
        let context = self.context.clone();
        let sql = statement.pad_to_position();
        let first = statement.text.split_whitespace().next();
        let shows = first.is_some_and(|word| word.eq_ignore_ascii_case("show"));
        self.style.set_first_whole(shows);
        // A panic ends the statement but not the shell with its tables.
        let execute = AssertUnwindSafe(self.execute_statement(&context, &sql)).catch_unwind();
        let result = interrupt::run_or_cancel(async { Ok(execute.await) }).await;
        if result.is_err() {
            interrupt::wait_for_tasks().await;
        }
        let result = result?;
        result.unwrap_or_else(|panic| Err(panics::to_failure(panic.as_ref())))?;
        if self.timing {
            eprintln!("elapsed_ms={:.3}", start.elapsed().as_secs_f64() * 1e3);
        }
        Ok(())
    }

    async fn execute_statement(&mut self, context: &SessionContext, sql: &str) -> Outcome {
        let mut progress = QueryProgress::new();
        let (context, sql) = (context.clone(), sql.to_owned());
        // Plans on another thread: planning reads files and may run kernels without a pause, so on
        // this thread it would delay an interrupt.
        let started = interrupt::run_on_worker(start_statement(context, sql)).await;
        if let Ok(Some(started)) = &started {
            progress.watch_plan(&started.plan);
        }
        self.print_worker_notes();
        let Some(started) = started? else {
            return Ok(());
        };
        let stream = interrupt::stream_on_worker(started.stream);
        let shown = self.show_results(stream, started.kind, &mut progress).await;
        self.print_worker_notes();
        shown?;
        note_labels(&started.plan);
        Ok(())
    }

    /// Prints notes about workers since the last call: which workers were lost, and why a statement
    /// ran without workers.
    fn print_worker_notes(&self) {
        #[cfg(feature = "cluster")]
        for note in self.cluster.iter().flat_map(|cluster| cluster.take_notes()) {
            eprintln!("note: {note}");
        }
    }

    /// Runs a statement that writes rows, and reports their number: the verb `wrote` and the object
    /// ` to x.parquet` become `wrote 12 rows to x.parquet`.
    async fn report_change(
        &mut self,
        mut stream: SendableRecordBatchStream,
        verb: &str,
        object: &str,
        progress: &mut QueryProgress,
    ) -> Outcome {
        let mut rows = 0u64;
        while let Some(batch) = stream.next().await {
            rows += sum_counts(&batch?);
        }
        progress.remove_bar();
        self.print_note(&format!("{verb} {}{object}", format_count(rows, "row", "rows")))
    }

    /// Runs a statement and shows its result.
    async fn show_results(
        &mut self,
        mut stream: SendableRecordBatchStream,
        kind: ResultKind,
        progress: &mut QueryProgress,
    ) -> Outcome {
        if let ResultKind::Change { verb, object } = &kind {
            return self.report_change(stream, verb, object, progress).await;
        }
        let schema = stream.schema();
        if schema.fields().is_empty() {
            // The result of CREATE, SET and similar statements has no columns. Its stream must be
            // read, because this runs the statement.
            while let Some(batch) = stream.next().await {
                batch?;
            }
            return Ok(());
        }
        let is_titled = self.print_title()?;
        self.printed = true;
        if matches!(kind, ResultKind::Plans) && self.format.is_human_readable() {
            self.results += 1;
            return self.print_plans(stream, progress).await;
        }
        if self.results > 0 {
            match (self.format, &self.path) {
                (OutputFormat::Json | OutputFormat::Arrow | OutputFormat::Csv, Some(path)) => {
                    let in_shell = self.format_on_screen.is_some();
                    return Err(output::make_second_result_error(self.format, path, in_shell));
                }
                (OutputFormat::Markdown | OutputFormat::Csv | OutputFormat::Line, _)
                    if !is_titled =>
                {
                    writeln!(self.target)?;
                }
                _ => {}
            }
        }
        self.results += 1;
        self.style.set_line(if self.target.has_file() { None } else { find_terminal_width() });
        // Tables are written only when the query ends. If a terminal shows rows of other formats
        // while the query runs, the progress bar must be removed first.
        let at_end = self.format.is_human_readable() || self.format == OutputFormat::Markdown;
        let streams_to_terminal = !at_end && !self.target.has_file() && io::stdout().is_terminal();
        if streams_to_terminal && self.format == OutputFormat::Arrow {
            return Err(Failure::from_message(
                "Arrow IPC is binary and is not written to a terminal; write it to a file with -o FILE.arrow, or in the shell with .output FILE.arrow, or pass it to a program: serrate .. | program",
            ));
        }
        // Reads the first batch before creating the writer, because the CSV writer prints its
        // header when it is created, and a query that fails must not print a header.
        let mut next = stream.next().await.transpose()?;
        let mut writer =
            ResultWriter::try_new(self.format, &schema, &self.style, &mut self.target)?;
        while let Some(batch) = next {
            if streams_to_terminal {
                progress.remove_bar();
            }
            writer.write(&batch)?;
            next = stream.next().await.transpose()?;
        }
        progress.remove_bar();
        writer.finish()
    }

    /// Prints the plans of an EXPLAIN in full, line by line instead of in a table.
    async fn print_plans(
        &mut self,
        mut stream: SendableRecordBatchStream,
        progress: &mut QueryProgress,
    ) -> Outcome {
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            progress.remove_bar();
            let texts: Vec<_> =
                batch.columns().iter().filter_map(|c| c.as_string_opt::<i32>()).collect();
            let [names, plans] = texts.as_slice() else { continue };
            for (name, plan) in names.iter().zip(plans.iter()) {
                let (name, plan) = (name.unwrap_or_default(), plan.unwrap_or_default());
                writeln!(self.target, "{name}")?;
                for line in plan.trim_end().lines() {
                    writeln!(self.target, "  {line}")?;
                }
            }
        }
        self.target.flush()?;
        Ok(())
    }

    /// Prints a message to standard output if results are printed there as tables, else to stderr.
    fn print_note(&mut self, message: &str) -> Outcome {
        if self.prints_human_readable() {
            self.print_title()?;
            self.printed = true;
            writeln!(self.target, "{message}")?;
            self.target.flush()?;
        } else {
            eprintln!("{message}");
        }
        Ok(())
    }

    /// Completes the output after all statements, and moves the output file to its path.
    pub(super) fn finish(self) -> Outcome {
        if let (Some(path), 0) = (&self.path, self.results) {
            return Err(Failure::from_message(format!(
                "no statement returned a result, so {} is not written; add a SELECT",
                path.display()
            )));
        }
        self.target.commit()?;
        Ok(())
    }
}

struct RunningStatement {
    plan: Arc<dyn ExecutionPlan>,
    stream: SendableRecordBatchStream,
    kind: ResultKind,
}

/// The kind of the result of a statement.
enum ResultKind {
    Rows,
    /// The plans of an EXPLAIN.
    Plans,
    /// The number of rows that a statement wrote. The verb and the object are the words of a report
    /// around this number, such as `wrote` and ` to out.parquet`.
    Change {
        verb: &'static str,
        object: String,
    },
}

impl ResultKind {
    fn from_plan(plan: &LogicalPlan) -> Self {
        match plan {
            LogicalPlan::Copy(copy) => {
                let object = format!(" to {}", format_target(&copy.output_url));
                Self::Change { verb: "wrote", object }
            }
            LogicalPlan::Dml(dml) => {
                Self::Change { verb: "changed", object: format!(" of {}", dml.table_name) }
            }
            LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) => Self::Plans,
            _ => Self::Rows,
        }
    }
}

/// Returns the target of COPY for display: a local path, also if the planner has made it a URL.
fn format_target(url: &str) -> String {
    match to_local_path(url) {
        Some(path) => path.display().to_string(),
        None => url.to_owned(),
    }
}

/// Plans and starts a statement. Returns `None` if `sql` contains no statement.
async fn start_statement(
    context: SessionContext,
    sql: String,
) -> Outcome<Option<RunningStatement>> {
    let mut statements = crate::sql::parse(&context, &sql)?;
    let Some(statement) = statements.pop() else { return Ok(None) };
    let plan = crate::sql::plan(&context, statement).await?;
    let kind = ResultKind::from_plan(&plan);
    let frame = crate::sql::execute_plan(&context, plan, context.state())
        .await
        .map_err(convert_internal_error)?;
    let task = Arc::new(frame.task_ctx());
    let plan = frame.create_physical_plan().await.map_err(convert_internal_error)?;
    let plan = match kind {
        ResultKind::Rows => crate::sql::prefer_source_order(plan)?,
        ResultKind::Plans | ResultKind::Change { .. } => plan,
    };
    let stream = execute_stream(Arc::clone(&plan), task)?;
    Ok(Some(RunningStatement { plan, stream, kind }))
}

/// Joins the lines of a comment to paragraphs. An empty line ends a paragraph.
fn join_lines(lines: &[String]) -> Vec<String> {
    lines.split(String::is_empty).filter(|part| !part.is_empty()).map(|p| p.join(" ")).collect()
}

/// Prints up to two notes about a query that reads labels: that the labels belong to several
/// prediction tasks, and how many labels yield no row of the table function `meds_asof` because
/// their subjects are not in the data.
fn note_labels(plan: &Arc<dyn ExecutionPlan>) {
    let tasks = crate::sql::label_tasks(plan);
    if !tasks.is_empty() {
        eprintln!("{}", describe_tasks(&tasks));
    }
    let unknown = crate::sql::unknown_labels(plan);
    if unknown > 0 {
        let labels = format_count(unknown, "label is", "labels are");
        let consequence = choose_plural(unknown, "it yields no row", "they yield no row");
        eprintln!("{labels} of subjects that are not in the data: {consequence}");
    }
}
