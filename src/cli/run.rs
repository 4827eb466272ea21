//! Running statements and showing their results.

use std::io::{self, Read, Write};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, UInt64Type};
use datafusion::common::config::Dialect;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use futures::{FutureExt, StreamExt};

use super::args::{Format, QueryArgs};
use super::batches::of_tasks;
use super::error::{Failure, Outcome};
use super::interrupt;
use super::output::{self, Look, ResultWriter, Target, grouped, terminal_width};
use super::panics;
use super::script::{self, Statement};
use crate::io::meds_torch::TensorizedCohort;
use crate::sql::of_statement;

/// A session and where its results go.
pub(super) struct Runner {
    context: SessionContext,
    format: Format,
    look: Look,
    timing: bool,
    target: Target,
    /// Where the result goes when not to standard output.
    path: Option<PathBuf>,
    results: usize,
}

impl Runner {
    pub(super) fn try_new(args: &QueryArgs) -> Outcome<Self> {
        let target = match &args.output {
            None if args.overwrite => {
                return Err(Failure::usage(
                    "--overwrite replaces the file that -o FILE names, and there is none; COPY has an option of its own: COPY (SELECT ..) TO 'FILE' OPTIONS (overwrite true)",
                ));
            }
            None => Target::stdout(),
            Some(path) => Target::file(path, args.overwrite)?,
        };
        let by_name = args.output.as_deref().and_then(Format::of_extension);
        if let (None, None, Some(path)) = (args.format, by_name, &args.output)
            && let Some(extension) = path.extension()
        {
            let extension = extension.to_string_lossy();
            return Err(Failure::usage(format!(
                "-o writes csv, json, ndjson, arrow, md or txt, not .{extension}: say --format, or write other formats with COPY (SELECT ..) TO '{}'",
                path.display()
            )));
        }
        let line = if target.is_file() { None } else { terminal_width() };
        Ok(Self {
            context: super::session()?,
            format: args.format.or(by_name).unwrap_or(Format::Table),
            look: Look::new(&args.table, line),
            timing: args.timing,
            target,
            path: args.output.clone(),
            results: 0,
        })
    }

    pub(super) fn context(&self) -> &SessionContext {
        &self.context
    }

    pub(super) fn timing(&mut self) -> &mut bool {
        &mut self.timing
    }

    pub(super) fn format(&mut self) -> &mut Format {
        &mut self.format
    }

    /// The SQL dialect of the session.
    pub(super) fn dialect(&self) -> Dialect {
        self.context.state().config().options().sql_parser.dialect
    }

    /// Runs a script file, `-` for standard input.
    pub(super) async fn file(&mut self, path: &Path) -> Outcome {
        let name = path.display().to_string();
        if path.as_os_str() == "-" {
            let mut sql = String::new();
            interrupt::reading(|| io::stdin().read_to_string(&mut sql))
                .map_err(|e| Failure::message(format!("standard input: {e}")))?;
            return self.script("standard input", &sql).await;
        }
        let sql = std::fs::read_to_string(path).map_err(|e| {
            let hint = match e.kind() {
                _ if path.is_dir() => {
                    let hint = format!(
                        "{name} is a folder, and no script; `serrate inspect {name}` says what is in it, and SQL reads a MEDS folder as FROM meds('{name}')"
                    );
                    return Failure::message(hint);
                }
                io::ErrorKind::NotFound if path.extension().is_none() => {
                    "; it is neither a script nor one of the commands (see --help)"
                }
                io::ErrorKind::InvalidData => "; a script is SQL text (see --help for `inspect`)",
                _ => "",
            };
            Failure::message(format!("{name}: {e}{hint}"))
        })?;
        self.script(&name, &sql).await
    }

    /// Runs the statements of `sql`; the first that fails ends it. `name` stands in messages.
    pub(super) async fn script(&mut self, name: &str, sql: &str) -> Outcome {
        let script = script::split(sql, &self.dialect()).map_err(|e| {
            Failure::message(format!("{name}:{}:{}: {}", e.line, e.column, e.message))
        })?;
        for statement in &script.statements {
            self.title(statement)?;
            let result = self.statement(statement).await;
            result.map_err(|failure| match failure {
                Failure::Failed(_) if self.target.is_closed() => Failure::Closed,
                Failure::Failed(message) => Failure::Failed(format!(
                    "{name}:{}: {message}{}\n  in: {}",
                    statement.line,
                    hint_folder(&message).unwrap_or_default(),
                    statement.summary(100)
                )),
                other => other,
            })?;
        }
        Ok(())
    }

    /// The comment above a statement is the heading of its result, in tables on standard output.
    fn title(&mut self, statement: &Statement) -> Outcome {
        if self.format == Format::Table && !self.target.is_file() && !statement.title.is_empty() {
            writeln!(self.target)?;
            for line in &statement.title {
                writeln!(self.target, "{line}")?;
            }
            self.target.flush()?;
        }
        Ok(())
    }

    async fn statement(&mut self, statement: &Statement) -> Outcome {
        let start = Instant::now();
        let context = self.context.clone();
        let sql = statement.in_place();
        // A panic ends the statement, not the shell with its tables.
        let execute = AssertUnwindSafe(self.execute(&context, &sql)).catch_unwind();
        let result = interrupt::or_cancel(async { Ok(execute.await) }).await;
        if result.is_err() {
            interrupt::settle().await;
        }
        let result = result?;
        result.unwrap_or_else(|panic| Err(panics::failure(panic.as_ref())))?;
        if self.timing {
            eprintln!("elapsed_ms={:.3}", start.elapsed().as_secs_f64() * 1e3);
        }
        Ok(())
    }

    async fn execute(&mut self, context: &SessionContext, sql: &str) -> Outcome {
        let (context, sql) = (context.clone(), sql.to_owned());
        // Planning reads files, and neither it nor a kernel yields.
        let Some(begun) = interrupt::on_worker(begin(context, sql)).await? else { return Ok(()) };
        let stream = interrupt::stream_on_worker(begun.stream);
        self.results_of(stream, begun.done, begun.explains).await?;
        note_labels(&begun.plan);
        Ok(())
    }

    /// Shows what a statement gives; `done` says what one that writes has done, and to what.
    async fn results_of(
        &mut self,
        mut stream: SendableRecordBatchStream,
        done: Option<(&str, String)>,
        explains: bool,
    ) -> Outcome {
        if let Some((verb, object)) = done {
            let mut rows = 0u64;
            while let Some(batch) = stream.next().await {
                rows += counted(&batch?);
            }
            let noun = if rows == 1 { "row" } else { "rows" };
            return self.say(&format!("{verb} {} {noun}{object}", grouped(rows)));
        }
        let schema = stream.schema();
        if schema.fields().is_empty() {
            // CREATE, SET and the like; they still have to run.
            while let Some(batch) = stream.next().await {
                batch?;
            }
            return Ok(());
        }
        if explains && self.format == Format::Table {
            self.results += 1;
            return self.plans(stream).await;
        }
        if self.results > 0 {
            match (self.format, &self.path) {
                (Format::Json | Format::Arrow | Format::Csv, Some(path)) => {
                    return Err(output::one_result_only(self.format, path));
                }
                (Format::Markdown | Format::Csv, _) => writeln!(self.target)?,
                _ => {}
            }
        }
        self.results += 1;
        let mut writer = ResultWriter::try_new(self.format, &schema, &self.look, &mut self.target)?;
        while let Some(batch) = stream.next().await {
            writer.write(&batch?)?;
        }
        writer.finish()
    }

    /// The plans of an EXPLAIN, whole and line by line instead of in a table.
    async fn plans(&mut self, mut stream: SendableRecordBatchStream) -> Outcome {
        while let Some(batch) = stream.next().await {
            let batch = batch?;
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

    /// A message between results: part of a table's output, beside that of other formats.
    fn say(&mut self, message: &str) -> Outcome {
        if self.format == Format::Table && !self.target.is_file() {
            writeln!(self.target, "{message}")?;
            self.target.flush()?;
        } else {
            eprintln!("{message}");
        }
        Ok(())
    }

    /// Everything ran: the output file appears.
    pub(super) fn finish(self) -> Outcome {
        if let (Some(path), 0) = (&self.path, self.results) {
            return Err(Failure::message(format!(
                "no statement had a result: {} is not written",
                path.display()
            )));
        }
        self.target.commit()?;
        Ok(())
    }
}

/// A statement that runs.
struct Begun {
    plan: Arc<dyn ExecutionPlan>,
    stream: SendableRecordBatchStream,
    /// The verb and the target to report for a statement that writes a file.
    done: Option<(&'static str, String)>,
    explains: bool,
}

/// Plans a statement and starts it; `None` of no statement.
async fn begin(context: SessionContext, sql: String) -> Outcome<Option<Begun>> {
    let mut statements = crate::sql::parse(&context, &sql)?;
    let Some(statement) = statements.pop() else { return Ok(None) };
    let plan = crate::sql::plan(&context, statement).await?;
    let done = match &plan {
        LogicalPlan::Copy(copy) => Some(("wrote", format!(" to {}", copy.output_url))),
        LogicalPlan::Dml(dml) => Some(("changed", format!(" of {}", dml.table_name))),
        _ => None,
    };
    let explains = matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_));
    let frame = context.execute_logical_plan(plan).await.map_err(of_statement)?;
    let task = Arc::new(frame.task_ctx());
    let plan = frame.create_physical_plan().await.map_err(of_statement)?;
    let stream = execute_stream(Arc::clone(&plan), task)?;
    Ok(Some(Begun { plan, stream, done, explains }))
}

/// How a folder is read whose name was taken for that of a table.
fn hint_folder(message: &str) -> Option<String> {
    let (_, name) = message.split_once("table 'datafusion.public.")?;
    let (name, _) = name.split_once("' not found")?;
    let folder = Path::new(name);
    if !folder.is_dir() {
        return None;
    }
    Some(match TensorizedCohort::is_at(folder) || folder.join("data").is_dir() {
        true => format!("; {name} is a MEDS folder, which is read as meds('{name}')"),
        false => format!("; {name} is a folder, whose files are read as '{name}/'"),
    })
}

/// Says how many labels of `meds_asof` had no row, and when they are of several tasks.
fn note_labels(plan: &Arc<dyn ExecutionPlan>) {
    let tasks = crate::sql::label_tasks(plan);
    if !tasks.is_empty() {
        eprintln!("{}", of_tasks(&tasks));
    }
    let unknown = crate::sql::unknown_labels(plan);
    if unknown > 0 {
        let noun = if unknown == 1 { "label is" } else { "labels are" };
        let gone = if unknown == 1 { "it has no row" } else { "they have no row" };
        eprintln!("{} {noun} of subjects that are not in the data: {gone}", grouped(unknown));
    }
}

/// The sum of the one column of counts that COPY and INSERT return.
fn counted(batch: &RecordBatch) -> u64 {
    let Some(column) = batch.columns().first() else { return 0 };
    match cast(column, &DataType::UInt64) {
        Ok(counts) => counts.as_primitive::<UInt64Type>().iter().flatten().sum(),
        Err(_) => u64::try_from(column.len()).unwrap_or(0),
    }
}
