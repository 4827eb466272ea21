//! The `serrate` command: arguments, scripts, the shell, and the file commands over the library.
//!
//! Exit codes: 0 when everything went well, 1 when a query or a file failed, 2 for wrong usage, 130
//! when interrupted, 143 when terminated.

mod args;
mod batches;
mod check;
mod cohort;
mod convert;
mod densify;
mod error;
mod files;
mod generate;
mod inspect;
mod interrupt;
mod output;
mod panics;
mod progress;
mod run;
mod script;
mod shell;

use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command, QueryArgs};
use error::{Failure, Outcome};
use run::Runner;

/// Runs the command on the arguments of the process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            // Help and version go to stdout with 0; a reader that went away is no failure.
            let _ = e.print();
            return ExitCode::from(if e.use_stderr() { 2 } else { 0 });
        }
    };
    panics::silence();
    match on_deep_stack(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// The session that runs SQL.
fn session() -> Outcome<datafusion::prelude::SessionContext> {
    Ok(crate::sql::session())
}

/// The stack of each thread that plans and runs queries: expressions are planned, computed and freed as deep as
/// they are written. What is not used takes no memory.
const STACK: usize = 64 << 20;

fn on_deep_stack(cli: Cli) -> Outcome {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(move || start(cli));
    match thread.map(std::thread::JoinHandle::join) {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(panic)) => Err(panics::failure(panic.as_ref())),
        Err(e) => Err(Failure::message(format!("cannot start: {e}"))),
    }
}

fn start(cli: Cli) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(STACK)
        .enable_all()
        .build()
        .map_err(|e| Failure::message(format!("cannot start: {e}")))?;
    interrupt::listen()?;
    let result = runtime.block_on(async {
        match cli.command {
            None => queries(cli.query).await,
            Some(command) => file_command(command).await,
        }
    });
    // A blocking read that was interrupted is not waited for.
    runtime.shutdown_background();
    result
}

async fn file_command(command: Command) -> Outcome {
    // Files are read and written by blocking calls; Ctrl-C is looked at between batches.
    let work = move || match &command {
        Command::Inspect(args) => inspect::run(args),
        Command::Check(args) => check::run(args),
        Command::Convert(args) => convert::run(args),
        Command::Densify(args) => densify::run(args),
        Command::Batches(args) => batches::run(args),
        Command::Generate(args) => generate::run(args),
    };
    tokio::task::spawn_blocking(work).await.map_err(|e| match e.try_into_panic() {
        Ok(panic) => panics::failure(panic.as_ref()),
        Err(e) => Failure::message(e.to_string()),
    })?
}

async fn queries(args: QueryArgs) -> Outcome {
    let piped = !std::io::stdin().is_terminal();
    let nothing_asked = args.files.is_empty() && args.commands.is_empty();
    let mut runner = Runner::try_new(&args)?;
    for file in &args.files {
        runner.file(file).await?;
    }
    for (i, sql) in args.commands.iter().enumerate() {
        let name = if args.commands.len() == 1 { "-c".into() } else { format!("-c {}", i + 1) };
        runner.script(&name, sql).await?;
    }
    if args.interactive || (nothing_asked && !piped) {
        return shell::run(runner).await;
    }
    if nothing_asked {
        let mut sql = String::new();
        interrupt::reading(|| std::io::stdin().read_to_string(&mut sql))
            .map_err(|e| Failure::message(format!("standard input: {e}")))?;
        runner.script("standard input", &sql).await?;
    }
    runner.finish()
}
