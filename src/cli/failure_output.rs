//! Prints a [`Failure`], and chooses the exit code of the process.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use super::command_failure::Failure;
use super::interrupt;
use super::output::find_terminal_width;
use crate::functions::wrap_words;

impl Failure {
    pub(super) fn print_failure(&self) -> ExitCode {
        match self {
            Self::Closed => ExitCode::SUCCESS,
            Self::Interrupted => {
                let what = if interrupt::is_terminated() { "terminated" } else { "interrupted" };
                eprintln!("{what}");
                ExitCode::from(interrupt::exit_code())
            }
            Self::Failed(message) => {
                eprintln!("{}", wrap_for_terminal(&format!("error: {message}")));
                ExitCode::from(1)
            }
            Self::Usage(message) => {
                eprintln!(
                    "{}\n\nFor more information, try '--help'.",
                    wrap_for_terminal(&format!("error: {message}"))
                );
                ExitCode::from(2)
            }
        }
    }
}

/// Wraps the lines of a message between words if stderr is a terminal, which would break them
/// within words.
fn wrap_for_terminal(message: &str) -> String {
    match find_terminal_width().filter(|_| io::stderr().is_terminal()) {
        Some(width) => wrap_lines(message, width),
        None => message.to_owned(),
    }
}

/// Wraps long lines between words, except indented lines, which show a statement and a caret.
fn wrap_lines(message: &str, width: usize) -> String {
    let wrap = |line: &str| match line.starts_with(' ') {
        true => line.to_owned(),
        false => wrap_words(line, width, 0),
    };
    message.split('\n').map(wrap).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_broken_between_words() {
        let message = "error: one two three\n  SELECT one, two, three\n         ^";
        let expected = "error: one\ntwo three\n  SELECT one, two, three\n         ^";
        assert_eq!(wrap_lines(message, 12), expected);
        assert_eq!(wrap_lines(message, 80), message);
    }
}
