//! The interactive shell.

mod complete;
mod help;

use std::io::Write;
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
use complete::{Names, ShellHelper};

const COMMANDS: &[(&str, &str)] = &[
    (".help [FUNCTION]", "this list, or what a function does"),
    (".functions [TEXT]", "the functions whose name contains TEXT"),
    (".tables", "the tables"),
    (".schema TABLE", "columns and types of a table, a quoted file or a call such as meds('DIR')"),
    (".timing on|off", "print how long each statement took"),
    (".format NAME", "table, csv, json, ndjson, arrow or markdown"),
    (".read FILE", "run a script"),
    (".quit", "leave (as does Ctrl-D)"),
];

/// Reads statements until the end of input; errors are shown and do not end it.
pub(super) async fn run(mut runner: Runner) -> Outcome {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .history_ignore_space(true)
        .max_history_size(10_000)
        .and_then(|c| c.history_ignore_dups(true))
        .map_err(broken)?
        .build();
    let mut editor: Editor<ShellHelper, FileHistory> =
        Editor::with_config(config).map_err(broken)?;
    editor.set_helper(Some(ShellHelper::new(runner.dialect(), Names::read(&runner).await)));
    let history = history_file();
    if let Some(history) = &history {
        // None yet, the first time.
        let _ = editor.load_history(history);
    }
    println!(
        "serrate {}; statements end with `;`, .help lists the rest",
        env!("CARGO_PKG_VERSION")
    );
    interrupt::enter_shell();
    loop {
        let text = match interrupt::reading(|| editor.readline("serrate> ")) {
            Ok(text) => text,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(e) => return Err(broken(e)),
        };
        if text.trim().is_empty() {
            continue;
        }
        // A history that cannot be written is no reason to stop.
        let _ = editor.add_history_entry(text.trim_end());
        if let Some(history) = &history {
            let _ = editor.append_history(history);
        }
        interrupt::reset();
        let result = match text.trim().strip_prefix('.') {
            Some(command) => dot_command(&mut runner, command).await,
            None => runner.script("line", &text).await.map(|()| false),
        };
        match result {
            Ok(true) => break,
            Ok(false) => {}
            Err(Failure::Closed) => return Err(Failure::Closed),
            Err(Failure::Interrupted) if interrupt::terminated() => {
                return Err(Failure::Interrupted);
            }
            Err(failure) => {
                failure.report();
            }
        }
        interrupt::reset();
        if let Some(helper) = editor.helper_mut() {
            helper.names = Names::read(&runner).await;
        }
    }
    runner.finish()
}

/// Runs a dot command; true ends the shell.
async fn dot_command(runner: &mut Runner, command: &str) -> Outcome<bool> {
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
            write!(out, "{}", help::function(runner.context(), function, width)?)?;
        }
        ("functions", text) => write!(out, "{}", help::functions(runner.context(), text))?,
        ("tables", "") => {
            for table in Names::read(runner).await.tables {
                writeln!(out, "{table}")?;
            }
        }
        ("schema", "") => return Err(Failure::message(".schema needs the name of a table")),
        ("schema", call) if call.ends_with(')') => {
            runner.script(".schema", &format!("DESCRIBE SELECT * FROM {call}")).await?;
        }
        ("schema", name) if help::in_from(name).is_some() && !is_table(runner, name) => {
            let syntax = help::in_from(name).unwrap_or_default();
            return Err(Failure::message(format!(
                "{name} is a function: .schema shows the columns of a call as in FROM {syntax}"
            )));
        }
        ("schema", table) => runner.script(".schema", &format!("DESCRIBE {table}")).await?,
        ("timing", "on") => *runner.timing() = true,
        ("timing", "off") => *runner.timing() = false,
        ("timing", _) => return Err(Failure::message(".timing is on or off")),
        ("format", name) => {
            *runner.format() = Format::from_str(name, true)
                .map_err(|_| Failure::message(format!("no format {name:?}; see .help")))?;
        }
        ("read", "") => return Err(Failure::message(".read needs a file")),
        ("read", path) => {
            let path = path.trim_matches(|c| c == '\'' || c == '"');
            runner.file(Path::new(path)).await?;
        }
        _ => return Err(Failure::message(format!("no command .{name}; see .help"))),
    }
    Ok(false)
}

fn broken(e: ReadlineError) -> Failure {
    Failure::message(format!("the terminal: {e}"))
}

/// `serrate/history` in the user's folder for state, made when missing.
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

/// Whether a name is that of a table.
fn is_table(runner: &Runner, name: &str) -> bool {
    runner.context().table_exist(name).unwrap_or(false)
}
