//! The interactive shell.

mod complete;
mod help;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};

use super::args::Format;
use super::error::{Failure, Outcome};
use super::interrupt;
use super::output::terminal_width;
use super::run::Runner;
use complete::{SessionNames, ShellHelper};

const COMMANDS: &[(&str, &str)] = &[
    (".help [FUNCTION]", "this list, or help on a function"),
    (".functions [TEXT]", "functions whose name contains TEXT"),
    (".tables", "all tables"),
    (".schema TABLE", "columns of a table, a quoted file or a call meds('DIR')"),
    (".timing on|off", "print the time of each statement"),
    (".format NAME", "table, csv, json, ndjson, arrow or markdown"),
    (".read FILE", "run a script"),
    (".quit", "leave the shell, like Ctrl-D"),
];

/// Runs statements until the end of input. An error is reported and does not end the shell.
pub(super) async fn run(mut runner: Runner) -> Outcome {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .history_ignore_space(true)
        .max_history_size(10_000)
        .and_then(|c| c.history_ignore_dups(true))
        .map_err(terminal_error)?
        .build();
    let mut editor: Editor<ShellHelper, FileHistory> =
        Editor::with_config(config).map_err(terminal_error)?;
    editor.set_helper(Some(ShellHelper::new(runner.dialect(), SessionNames::read(&runner).await)));
    let history = history_file();
    if let Some(history) = &history {
        // Ignores an error, because no history exists on first use.
        let _ = editor.load_history(history);
    }
    // Prints the banner only on a terminal, because files and pipes receive only results.
    if std::io::stdout().is_terminal() {
        println!(
            "serrate {}; statements end with `;`, .help lists the rest",
            env!("CARGO_PKG_VERSION")
        );
    }
    interrupt::enter_shell();
    loop {
        let text = match interrupt::read_stdin(|| editor.readline("serrate> ")) {
            Ok(text) => text,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(e) => return Err(terminal_error(e)),
        };
        if text.trim().is_empty() {
            continue;
        }
        // A failed write of the history must not end the shell.
        let _ = editor.add_history_entry(text.trim_end());
        if let Some(history) = &history {
            let _ = editor.append_history(history);
        }
        interrupt::reset();
        let result = match text.trim().strip_prefix('.') {
            Some(command) => run_dot_command(&mut runner, command).await,
            None => runner.run_script("line", &text).await.map(|()| false),
        };
        match result {
            Ok(true) => break,
            Ok(false) => {}
            Err(Failure::Closed) => return Err(Failure::Closed),
            Err(Failure::Interrupted) if interrupt::is_terminated() => {
                return Err(Failure::Interrupted);
            }
            Err(failure) => {
                failure.report();
            }
        }
        interrupt::reset();
        if let Some(helper) = editor.helper_mut() {
            helper.names = SessionNames::read(&runner).await;
        }
    }
    runner.finish()
}

/// Runs a dot command. Returns true to end the shell.
async fn run_dot_command(runner: &mut Runner, command: &str) -> Outcome<bool> {
    let command = command.trim().trim_end_matches(';').trim_end();
    let (name, argument) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let argument = argument.trim();
    let mut out = std::io::stdout();
    match (name, argument) {
        ("quit" | "exit" | "q", "") => return Ok(true),
        ("help", "") => {
            for (name, what) in COMMANDS {
                writeln!(out, "{name:<20} {what}")?;
            }
        }
        ("help", function) => {
            let width = terminal_width().unwrap_or(80);
            write!(out, "{}", help::format_function(runner.context(), function, width)?)?;
        }
        ("functions", text) => write!(out, "{}", help::list_functions(runner.context(), text))?,
        ("tables", "") => {
            for table in SessionNames::read(runner).await.tables {
                writeln!(out, "{table}")?;
            }
        }
        ("schema", "") => {
            return Err(Failure::message(
                ".schema requires the name of a table, as in \
         .schema patients",
            ));
        }
        ("schema", call) if call.ends_with(')') => {
            runner.run_script(".schema", &format!("DESCRIBE SELECT * FROM {call}")).await?;
        }
        ("schema", name) if help::find_table_syntax(name).is_some() && !is_table(runner, name) => {
            let syntax = help::find_table_syntax(name).unwrap_or_default();
            return Err(Failure::message(format!(
                "{name} is a table function; .schema shows the columns of a call such as FROM {syntax}"
            )));
        }
        ("schema", table) => runner.run_script(".schema", &format!("DESCRIBE {table}")).await?,
        ("timing", "on") => *runner.timing() = true,
        ("timing", "off") => *runner.timing() = false,
        ("timing", _) => {
            return Err(Failure::message(".timing requires on or off, as in .timing on"));
        }
        ("format", name) => {
            *runner.format() = Format::from_str(name, true).map_err(|_| {
                Failure::message(format!("there is no format {name:?}; .help shows the formats"))
            })?;
        }
        ("read", "") => {
            return Err(Failure::message(".read requires a file, as in .read query.sql"));
        }
        ("read", path) => {
            let path = path.trim_matches(|c| c == '\'' || c == '"');
            runner.run_file(Path::new(path)).await?;
        }
        _ => {
            return Err(Failure::message(format!(
                "there is no command .{name}; .help lists the commands"
            )));
        }
    }
    Ok(false)
}

fn terminal_error(e: ReadlineError) -> Failure {
    Failure::message(format!("terminal error: {e}"))
}

/// Creates the folder `serrate` in the user's state folder and returns the path of the file `history` in it.
/// Returns `None` if there is no state folder or the folder cannot be created.
fn history_file() -> Option<PathBuf> {
    let state =
        match std::env::var_os(if cfg!(windows) { "LOCALAPPDATA" } else { "XDG_STATE_HOME" }) {
            Some(folder) if Path::new(&folder).is_absolute() => PathBuf::from(folder),
            _ => std::env::home_dir()?.join(".local").join("state"),
        };
    let folder = state.join("serrate");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}

fn is_table(runner: &Runner, name: &str) -> bool {
    runner.context().table_exist(name).unwrap_or(false)
}
