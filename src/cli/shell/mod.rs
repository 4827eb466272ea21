//! The interactive shell: runs statements, and commands such as `.tables`, as the user enters them.

mod complete;
mod doc_text;
mod help;
mod prompts;

use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use datafusion::common::config::Dialect;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor, EventHandler, KeyCode, KeyEvent, Modifiers};

use super::arguments::OutputFormat;
use super::command_failure::{Failure, Outcome};
use super::command_line::is_command;
use super::interrupt;
use super::output::find_terminal_width;
use super::statement_runner::StatementRunner;
use crate::access;
use crate::functions::wrap_words;
use complete::{EnterKey, SessionNames, ShellHelper, find_command, is_complete, list_modes};
use prompts::{COMMANDS, PROMPT};

/// Runs statements until the end of input. An error is reported and does not end the shell.
pub(super) async fn run(mut runner: StatementRunner) -> Outcome {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .history_ignore_space(true)
        .max_history_size(10_000)
        .and_then(|c| c.history_ignore_dups(true))
        .map_err(convert_readline_error)?
        .build();
    let mut editor: Editor<ShellHelper, FileHistory> =
        Editor::with_config(config).map_err(convert_readline_error)?;
    editor.set_helper(Some(ShellHelper::new(&runner, SessionNames::read(&runner).await)));
    let enter = Box::new(EnterKey { dialect: runner.dialect() });
    let key = KeyEvent(KeyCode::Enter, Modifiers::NONE);
    editor.bind_sequence(key, EventHandler::Conditional(enter));
    let history = find_history_file();
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
    let is_piped = !std::io::stdin().is_terminal();
    loop {
        let line = match is_piped {
            true => interrupt::read_stdin(|| read_piped(&runner.dialect())),
            false => interrupt::read_stdin(|| editor.readline(PROMPT)),
        };
        let text = match line {
            Ok(text) => text,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(e) => return Err(convert_readline_error(e)),
        };
        if text.trim().is_empty() {
            continue;
        }
        // A failed write of the history must not end the shell.
        let _ = editor.add_history_entry(text.trim_end());
        if let Some(history) = &history {
            let _ = editor.append_history(history);
        }
        interrupt::clear_interrupt();
        let result = match find_command(&text) {
            Some(command) => run_command(&mut runner, command).await,
            None => runner.run_script("", &text).await.map(ControlFlow::Continue),
        };
        match result {
            Ok(ControlFlow::Break(())) => break,
            Ok(ControlFlow::Continue(())) => {}
            Err(Failure::Closed) => return Err(Failure::Closed),
            Err(Failure::Interrupted) if interrupt::is_terminated() => {
                return Err(Failure::Interrupted);
            }
            Err(failure) => {
                failure.print_failure();
            }
        }
        interrupt::clear_interrupt();
        if let Some(helper) = editor.helper_mut() {
            helper.update_names(SessionNames::read(&runner).await);
        }
    }
    runner.redirect_results(None, false)?;
    runner.finish()
}

/// Reads lines from a file or pipe until they make a complete statement or the input ends: the last
/// statement needs no `;`.
fn read_piped(dialect: &Dialect) -> rustyline::Result<String> {
    let mut text = String::new();
    while text.is_empty() || !is_complete(&text, dialect) {
        if std::io::stdin().read_line(&mut text)? == 0 {
            return if text.is_empty() { Err(ReadlineError::Eof) } else { Ok(text) };
        }
    }
    Ok(text)
}

/// Runs a command of the shell, such as `.tables`. `command` is without the dot or backslash.
/// Returns `Break` if the command ends the shell.
async fn run_command(runner: &mut StatementRunner, command: &str) -> Outcome<ControlFlow<()>> {
    let command = command.trim().trim_end_matches(';').trim_end();
    let (name, argument) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let argument = argument.trim();
    let mut out = std::io::stdout();
    match (name, argument) {
        ("quit" | "exit" | "q", "") => return Ok(ControlFlow::Break(())),
        ("help", subject) => print_help(runner, subject)?,
        ("functions", text) => {
            let width = find_terminal_width().unwrap_or(usize::MAX);
            let page = help::list_functions(runner.context(), text, width);
            if page.is_empty() {
                let note = format!("no function matches {text}; .functions lists all functions");
                eprintln!("{}", wrap_words(&note, width, 0));
            }
            write!(out, "{page}")?;
        }
        ("tables", pattern) | ("d", pattern @ "") => print_tables(runner, pattern).await?,
        ("schema", table) => describe_columns(runner, table).await?,
        ("d", table) => runner.run_script("", &format!("DESCRIBE {table}")).await?,
        ("timing", "on") => runner.set_timing(true),
        ("timing", "off") => runner.set_timing(false),
        ("timing", other) => {
            return Err(Failure::from_message(format!(
                ".timing requires on or off, as in .timing on; found {other:?}"
            )));
        }
        ("mode" | "format", "") => writeln!(out, "{}", name_format(runner.format()))?,
        ("mode" | "format", name) => choose_mode(runner, name)?,
        ("x", given) => {
            let format = runner.switch_lines(parse_switch(given)?);
            writeln!(out, "mode {}", name_format(format))?;
        }
        ("width", given) => runner.table_style().set_widths(parse_widths(given)?),
        ("maxrows", given) => runner.table_style().set_max_rows(parse_max_rows(given)?),
        ("output", "" | "stdout") => runner.redirect_results(None, false)?,
        ("output", file) => {
            let (file, overwrite) = match file.strip_suffix(" overwrite") {
                Some(file) => (file.trim_end(), true),
                None => (file, false),
            };
            runner.redirect_results(Some(Path::new(strip_quotes(file))), overwrite)?;
        }
        ("read", "") => {
            return Err(Failure::from_message(".read requires a file, as in .read query.sql"));
        }
        ("read", path) => runner.run_file(Path::new(strip_quotes(path))).await?,
        _ => {
            return Err(Failure::from_message(format!(
                "there is no command .{name}; .help lists the commands"
            )));
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn parse_switch(given: &str) -> Outcome<Option<bool>> {
    match given {
        "on" => Ok(Some(true)),
        "off" => Ok(Some(false)),
        "" => Ok(None),
        _ => Err(Failure::from_message(format!(
            "\\x accepts on, off or no argument, as in \\x on; found {given:?}"
        ))),
    }
}

fn parse_widths(given: &str) -> Outcome<Vec<usize>> {
    let widths = given.split_whitespace().map(str::parse).collect::<Result<Vec<usize>, _>>();
    widths.map_err(|_| {
        Failure::from_message(format!(
            ".width requires numbers of characters, as in .width 10 0 30; found {given:?}"
        ))
    })
}

fn parse_max_rows(given: &str) -> Outcome<usize> {
    given.parse::<usize>().map_err(|_| {
        Failure::from_message(format!(
            ".maxrows requires a number of rows, as in .maxrows 40; found {given:?}"
        ))
    })
}

/// Prints the list of commands if `subject` is empty. Otherwise, prints the help on `subject`, the
/// name of a function, or of a command with its dot or backslash.
fn print_help(runner: &StatementRunner, subject: &str) -> Outcome {
    let mut out = std::io::stdout();
    if subject.is_empty() {
        for command in COMMANDS {
            writeln!(out, "{}", describe_command(command))?;
        }
        return Ok(());
    }
    if subject.starts_with(['.', '\\']) {
        let found = COMMANDS.iter().find(|(syntax, _)| syntax.split(' ').next() == Some(subject));
        let Some(found) = found else {
            return Err(Failure::from_message(format!(
                "there is no command {subject}; .help lists the commands"
            )));
        };
        writeln!(out, "{}", describe_command(found))?;
        return Ok(());
    }
    let width = find_terminal_width().unwrap_or(80);
    let page = help::format_function(runner.context(), subject, width);
    // Some names are both a function and a command, such as `mode`. The page of the function has
    // priority over the hint.
    let page = page.map_err(|failure| match find_help_elsewhere(subject) {
        Some(hint) => Failure::from_message(format!("there is no function {subject:?}; {hint}")),
        None => failure,
    })?;
    write!(out, "{page}")?;
    Ok(())
}

/// Prints the names of the tables that match `pattern`. If there are none, prints a note.
async fn print_tables(runner: &StatementRunner, pattern: &str) -> Outcome {
    let tables = SessionNames::read(runner).await.tables;
    let pattern = strip_quotes(pattern);
    let mut found = tables.keys().filter(|table| matches_pattern(table, pattern)).peekable();
    // The note goes to stderr, because a program may read the names from standard output.
    if found.peek().is_none() {
        let note = match tables.is_empty() {
            true => "there are no tables; FROM 'x.parquet' reads a file, and CREATE VIEW v AS FROM 'x.parquet' gives it a name".to_owned(),
            false => format!("no table matches {pattern}; .tables lists all tables"),
        };
        eprintln!("{}", wrap_words(&note, find_terminal_width().unwrap_or(usize::MAX), 0));
    }
    let mut out = std::io::stdout();
    for table in found {
        writeln!(out, "{table}")?;
    }
    Ok(())
}

/// Prints the columns of `table`, which is the name of a table or the call of a table function.
async fn describe_columns(runner: &mut StatementRunner, table: &str) -> Outcome {
    if table.is_empty() {
        return Err(Failure::from_message(
            ".schema requires the name of a table, as in .schema patients",
        ));
    }
    if table.ends_with(')') {
        return runner.run_script("", &format!("DESCRIBE SELECT * FROM {table}")).await;
    }
    if let Some(syntax) = help::find_table_syntax(table)
        && !is_table(runner, table)
    {
        return Err(Failure::from_message(format!(
            "{table} is a table function; give .schema a call with arguments, such as .schema {syntax}"
        )));
    }
    runner.run_script("", &format!("DESCRIBE {table}")).await
}

fn choose_mode(runner: &mut StatementRunner, name: &str) -> Outcome {
    let format = OutputFormat::from_str(name, true).map_err(|_| {
        let known = list_modes().collect::<Vec<_>>().join(", ");
        Failure::from_message(format!("there is no mode {name:?}; the modes are {known}"))
    })?;
    runner.choose_format(format);
    let mut out = std::io::stdout();
    // Confirms the new format on a terminal only: in a file or pipe, the sentence would be among
    // the results.
    if out.is_terminal() {
        writeln!(out, "mode {}", name_format(format))?;
    }
    Ok(())
}

/// Statements whose names a user may pass to `.help`, although they are not functions.
const STATEMENTS: [&str; 9] =
    ["copy", "create", "describe", "drop", "explain", "insert", "select", "set", "show"];

/// Returns a hint that says where `name` is documented, if it is a command of the shell, a command
/// of `serrate` or a statement. Returns `None` for any other name.
fn find_help_elsewhere(name: &str) -> Option<String> {
    let lower = name.to_lowercase();
    let is_of_shell = |(syntax, _): &&(&str, &str)| {
        syntax.split(' ').next().and_then(|command| command.get(1..)) == Some(lower.as_str())
    };
    if let Some((syntax, _)) = COMMANDS.iter().find(is_of_shell) {
        let command = syntax.split(' ').next().unwrap_or_default();
        return Some(format!("did you mean .help {command}?"));
    }
    if is_command(&lower) {
        return Some(format!("serrate {lower} --help describes the command"));
    }
    STATEMENTS
        .contains(&lower.as_str())
        .then(|| "it is a statement, which docs/sql.md describes".to_owned())
}

fn describe_command((syntax, what): &(&str, &str)) -> String {
    let width = find_terminal_width().unwrap_or(80);
    wrap_words(&format!("{syntax:<20} {what}"), width, 21)
}

fn strip_quotes(text: &str) -> &str {
    text.trim_matches(|c| c == '\'' || c == '"')
}

fn name_format(format: OutputFormat) -> String {
    format.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Whether a name matches a pattern, ignoring case. `%` and `*` in the pattern stand for any text.
/// A pattern without `%` and `*` matches every name that contains the pattern.
fn matches_pattern(name: &str, pattern: &str) -> bool {
    let (name, pattern) = (name.to_lowercase(), pattern.to_lowercase());
    let parts: Vec<&str> = pattern.split(['%', '*']).collect();
    let [first, middle @ .., last] = parts.as_slice() else { return name.contains(&pattern) };
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    for part in middle {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

fn convert_readline_error(e: ReadlineError) -> Failure {
    Failure::from_message(format!("terminal error: {e}"))
}

/// Returns the path of the history, and creates its folder; `None` if this fails or is forbidden.
fn find_history_file() -> Option<PathBuf> {
    let state =
        match std::env::var_os(if cfg!(windows) { "LOCALAPPDATA" } else { "XDG_STATE_HOME" }) {
            Some(folder) if Path::new(&folder).is_absolute() => PathBuf::from(folder),
            _ => std::env::home_dir()?.join(".local").join("state"),
        };
    let folder = state.join("serrate");
    let file = folder.join("history");
    access::check_write(&file).ok()?;
    access::create_dir_all(&folder).ok()?;
    Some(file)
}

fn is_table(runner: &StatementRunner, name: &str) -> bool {
    runner.context().table_exist(name).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_tables() {
        for (pattern, matches) in [
            ("", true),
            ("bje", true),
            ("sub%", true),
            ("SUB*s", true),
            ("%", true),
            ("%jec%", true),
            ("s%b%s", true),
            ("subject%x", false),
            ("ubj%", false),
            ("subjects%subjects", false),
        ] {
            assert_eq!(matches_pattern("subjects", pattern), matches, "{pattern}");
        }
    }
}
