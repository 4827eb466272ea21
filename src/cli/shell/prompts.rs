//! The commands and the prompts of the shell.

pub(super) const COMMANDS: &[(&str, &str)] = &[
    (".help [NAME]", "this list, or help on a function or a command"),
    (".functions [TEXT]", "functions whose name contains TEXT"),
    (".tables [PATTERN]", "all tables, or those whose name matches PATTERN, as in sub%"),
    (".schema TABLE", "columns of a table, a quoted file or a call meds('DIR')"),
    (".mode NAME", "table, line, csv, json, ndjson, markdown or arrow"),
    ("\\x", "switch between a table and one line per value"),
    (".width N ..", "greatest widths of the first columns of tables; 0 or none: by the values"),
    (".maxrows N", "rows shown per result; 0 shows all"),
    (".output [FILE]", "write results to a new file (or FILE overwrite), or to the screen again"),
    (".timing on|off", "print the time of each statement"),
    (".read FILE", "run a script"),
    (".quit", "leave the shell, like Ctrl-D"),
];

pub(super) const PROMPT: &str = "serrate> ";
/// Prompt of each further line of a statement. It is as wide as [`PROMPT`].
pub(super) const CONTINUATION: &str = "    ...> ";
/// Indentation of each further line of a statement. The terminal shows [`CONTINUATION`] in its
/// place.
pub(super) const INDENT: &str = "         ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_of_one_width() {
        assert_eq!(PROMPT.len(), CONTINUATION.len());
        assert_eq!(PROMPT.len(), INDENT.len());
    }
}
