//! The `serrate` command: arguments, scripts, the shell, and the file commands.
//!
//! Exit codes: 0 success, 1 a query or a file failed, 2 wrong usage, 130 interrupted, 143
//! terminated.

mod arguments;
mod batches;
mod bus_errors;
mod check;
mod code_prefixes;
mod cohort;
mod command_failure;
mod command_line;
mod convert_files;
mod densify;
mod error_places;
mod failure_output;
mod features;
mod files;
mod generate;
mod histogram_bins;
mod inspect;
mod interrupt;
#[cfg(any(feature = "cluster", feature = "serve"))]
mod network;
mod output;
mod panics;
mod process_limits;
mod progress;
mod report;
mod script;
#[cfg(feature = "serve")]
mod serve;
mod shell;
mod statement_runner;
mod stats;
mod tensorize;
#[cfg(feature = "cluster")]
mod worker_command;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::access;
use command_failure::{Failure, Outcome};
use command_line::{Cli, Command, QueryArgs};
use statement_runner::StatementRunner;

/// Maximum time that a failed command waits for writes in other threads to end.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(1);

/// Maximum time to wait for running tasks and blocking calls after an interrupt. Reads of standard
/// input cannot be cancelled and take all of this time.
const INTERRUPTED_SHUTDOWN_LIMIT: Duration = Duration::from_millis(150);

/// Runs the command with the arguments of the process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            // `--help` and `--version` arrive here, too: they go to stdout with exit code 0.
            // Ignores an error of the print, because a closed pipe is not a failure.
            let _ = e.print();
            return ExitCode::from(if e.use_stderr() { 2 } else { 0 });
        }
    };
    panics::install_hook();
    bus_errors::install_handler();
    match run_on_deep_stack(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.print_failure(),
    }
}

/// Stack size of each thread that plans and runs queries. Planning, evaluating and dropping an
/// expression recurse as deep as the expression is nested. Unused stack takes no memory.
const STACK: usize = 64 << 20;

fn run_on_deep_stack(cli: Cli) -> Outcome {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(move || run_command(cli));
    match thread.map(std::thread::JoinHandle::join) {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(panic)) => Err(panics::to_failure(panic.as_ref())),
        Err(e) => Err(Failure::from_message(format!(
            "cannot start the main thread; check the limits on processes and memory: {e}"
        ))),
    }
}

fn run_command(cli: Cli) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(STACK)
        .enable_all()
        .build()
        .map_err(|e| {
            Failure::from_message(format!(
                "cannot start the worker threads; check the limits on processes and memory: {e}"
            ))
        })?;
    #[cfg(feature = "cluster")]
    let cli = read_secrets(cli)?;
    #[cfg(feature = "serve")]
    let secrets = match &cli.command {
        Some(Command::Serve(args)) => Some(args.read_secrets(cli.limits.root_folder())?),
        _ => None,
    };
    cli.limits.apply_limits()?;
    interrupt::listen_to_signals()?;
    let result = runtime.block_on(async {
        match cli.command {
            None => run_queries(cli.query).await,
            #[cfg(feature = "cluster")]
            Some(Command::Worker(args)) => worker_command::run_worker(args).await,
            #[cfg(feature = "serve")]
            Some(Command::Serve(args)) => match secrets {
                Some(secrets) => serve::run_server(*args, secrets).await,
                None => Err(Failure::from_message(
                    "internal error: the secrets of the server were not read; please report it",
                )),
            },
            Some(command) => run_file_command(command).await,
        }
    });
    match &result {
        // Does not wait for blocking calls on other threads, such as reads of rows that the result
        // does not need, because they cannot be cancelled.
        Ok(()) => runtime.shutdown_background(),
        // Waits for running tasks: after this call, a writer would create its temporary folder again.
        Err(Failure::Interrupted) => {
            runtime.shutdown_timeout(INTERRUPTED_SHUTDOWN_LIMIT);
            interrupt::remove_leftovers();
        }
        // After an error in one of several files, waits for the writers of the other files: when
        // they are dropped, they remove their incomplete files and folders.
        Err(_) => runtime.shutdown_timeout(SHUTDOWN_LIMIT),
    }
    result
}

/// For `serrate worker` and for queries, reads the files with tokens, keys and certificates that
/// the arguments name, and stores their contents in the arguments. Does nothing for other commands.
#[cfg(feature = "cluster")]
fn read_secrets(mut cli: Cli) -> Outcome<Cli> {
    match &mut cli.command {
        None => cli.query.cluster.read_files()?,
        Some(Command::Worker(args)) => args.read_files(cli.limits.root_folder())?,
        Some(_) => {}
    }
    Ok(cli)
}

async fn run_file_command(command: Command) -> Outcome {
    // Checks the output path before the work, because the output is written only at the end.
    if let Some(output) = command.output_path() {
        access::check_write(output).map_err(|e| crate::Error::io(output, e))?;
    }
    // The commands block their thread, so they run on a thread of tokio for blocking work. They
    // poll for Ctrl-C between batches.
    let work = move || match &command {
        Command::Inspect(args) => inspect::run(args),
        Command::Check(args) => check::run(args),
        Command::Report(args) => report::run(args),
        Command::Convert(args) => convert_files::run(args),
        Command::Densify(args) => densify::run(args),
        Command::Batches(args) => batches::run(args),
        Command::Features(args) => features::run(args),
        Command::Cohort(args) => cohort::run(args),
        Command::Generate(args) => generate::run(args),
        #[cfg(feature = "cluster")]
        Command::Worker(_) => Err(Failure::from_message(
            "internal error: serrate worker was run as a file command; please report it",
        )),
        #[cfg(feature = "serve")]
        Command::Serve(_) => Err(Failure::from_message(
            "internal error: serrate serve was run as a file command; please report it",
        )),
    };
    tokio::task::spawn_blocking(work).await.map_err(|e| match e.try_into_panic() {
        Ok(panic) => panics::to_failure(panic.as_ref()),
        Err(e) => Failure::from_message(e.to_string()),
    })?
}

/// Returns an error if the first script does not exist, and has the name of a command or the name
/// `help`. The parser of arguments takes a command for a script if an option precedes it. The error
/// says what to write instead.
fn refuse_command_names(scripts: &[PathBuf]) -> Outcome {
    let [script, more @ ..] = scripts else { return Ok(()) };
    let Some(name) = script.to_str() else { return Ok(()) };
    let is_command = command_line::is_command(name);
    if !(is_command || name == "help") || access::is_file(script) {
        return Ok(());
    }
    if is_command {
        return Err(Failure::from_usage(format!(
            "the command {name} follows options, but must be the first argument; write serrate {name} .. --root DIR, or ./{name} to run a script of this name"
        )));
    }
    let command = more.first().and_then(|name| name.to_str());
    let command = command.filter(|name| command_line::is_command(name));
    Err(Failure::from_usage(match command {
        Some(name) => format!("there is no file help; write serrate {name} --help"),
        None => "there is no file help; write serrate --help".to_owned(),
    }))
}

async fn run_queries(args: QueryArgs) -> Outcome {
    let is_piped = !std::io::stdin().is_terminal();
    let has_statements = !args.files.is_empty() || !args.commands.is_empty();
    refuse_command_names(&args.files)?;
    let mut runner = StatementRunner::try_new(&args)?;
    for file in &args.files {
        runner.run_file(file).await?;
    }
    for (i, sql) in args.commands.iter().enumerate() {
        let name = if args.commands.len() == 1 { "-c".into() } else { format!("-c #{}", i + 1) };
        runner.run_script(&name, sql).await?;
    }
    if args.interactive || (!has_statements && !is_piped) {
        return shell::run(runner).await;
    }
    if !has_statements {
        runner.run_file(Path::new("-")).await?;
    }
    runner.finish()
}
