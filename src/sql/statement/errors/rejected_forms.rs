//! Says what to write instead of statements and operators of other systems that the parser rejects.

use crate::sql::base::tokens::begins_query;

/// If the tokens of a rejected text have, at `at`, syntax that Serrate does not support, returns
/// its name and what to write instead. Words in `written` are in upper case.
pub(super) fn find_rejected_form(
    written: &[&str],
    at: usize,
) -> Option<(&'static str, &'static str)> {
    let begins = match at.checked_sub(1) {
        Some(before) => written.get(before) == Some(&";"),
        None => true,
    };
    let rest = written.get(at..)?;
    if begins && let Some(found) = find_rejected_statement(rest) {
        return Some(found);
    }
    match rest {
        ["&&", ..] => Some((
            "the operator &&",
            "write list_has_any(a, b) for two lists, and AND for two conditions",
        )),
        ["@", "(", ..] => Some(("the operator @", "write abs(x)")),
        ["!", ..] => Some(("the operator !", "write NOT a for a condition, and factorial(n)")),
        ["BETWEEN", "SYMMETRIC", ..] => {
            Some(("BETWEEN SYMMETRIC", "write x BETWEEN least(a, b) AND greatest(a, b)"))
        }
        ["#", number, ..] if number.parse::<u32>().is_ok() => Some((
            "the number of a column after #",
            "write the name of the column; ORDER BY and GROUP BY take numbers such as 1",
        )),
        ["SELECT", _, ":", ..] => {
            Some(("an alias before its expression", "write SELECT 1 AS x instead of SELECT x: 1"))
        }
        ["INSERT", "INTO", _, "AS", ..] => {
            Some(("an alias of the table of INSERT", "remove AS and the alias"))
        }
        ["WITH", "NO", "DATA", ..] => Some((
            "WITH NO DATA",
            "write CREATE TABLE t AS SELECT .. LIMIT 0 for a table without rows",
        )),
        ["TABLE", _, "(", columns @ ..] if lists_untyped_names(columns) => Some((
            "a list of columns without types in CREATE TABLE",
            "name the columns in the query, as in CREATE TABLE t AS SELECT 1 AS a",
        )),
        _ => None,
    }
}

/// Same as [`find_rejected_form`], for the tokens at the beginning of a statement.
fn find_rejected_statement(rest: &[&str]) -> Option<(&'static str, &'static str)> {
    match rest {
        ["TABLE", _, ..] => Some(("the statement TABLE", "write FROM t")),
        ["DESCRIBE" | "DESC" | "SHOW"] | ["DESCRIBE" | "DESC" | "SHOW", ";", ..] => Some((
            "DESCRIBE or SHOW without a name",
            "write SHOW TABLES for the tables, and DESCRIBE t for the columns of one",
        )),
        ["DESCRIBE" | "DESC", name, "(", ..] if *name != "(" && !begins_query(name) => Some((
            "a call after DESCRIBE",
            "write DESCRIBE FROM and the call, as in DESCRIBE FROM meds('DIR')",
        )),
        ["COMMENT", "ON", ..] => {
            Some(("COMMENT ON", "remove the statement; tables and columns have no comments"))
        }
        ["CHECKPOINT", ..] => Some((
            "CHECKPOINT",
            "remove the statement; a statement that ends has written its files",
        )),
        ["EXPORT" | "IMPORT", "DATABASE", ..] => Some((
            "EXPORT or IMPORT DATABASE",
            "write COPY t TO 'FILE' for each table, and the files in FROM to read them",
        )),
        ["SET" | "RESET", "VARIABLE", ..] => Some((
            "SET VARIABLE",
            "write the value in a query of WITH, or PREPARE p AS SELECT .. with $1 and EXECUTE p(..)",
        )),
        _ => None,
    }
}

/// Whether tokens begin with names that are separated by commas, a closing parenthesis and AS.
fn lists_untyped_names(tokens: &[&str]) -> bool {
    let Some(end) = tokens.iter().position(|token| *token == ")") else { return false };
    let (names, after) = tokens.split_at(end);
    let has_query = after.get(1) == Some(&"AS");
    let is_separated = names.iter().enumerate().all(|(at, token)| (at % 2 == 1) == (*token == ","));
    has_query && names.len() % 2 == 1 && is_separated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_other_systems_are_found() {
        let find = |text: &str| {
            let words: Vec<&str> = text.split(' ').collect();
            (0..words.len()).find_map(|at| find_rejected_form(&words, at)).map(|(found, _)| found)
        };
        for (text, found) in [
            ("SELECT A && B", Some("the operator &&")),
            ("SELECT 1 ; TABLE T", Some("the statement TABLE")),
            ("DESCRIBE ;", Some("DESCRIBE or SHOW without a name")),
            ("DESCRIBE T )", None),
            ("DESCRIBE MEDS ( 'DIR' )", Some("a call after DESCRIBE")),
            ("DESCRIBE ( SELECT 1 )", None),
            ("DESCRIBE ( ( SELECT 1 ) )", None),
            ("DESCRIBE FROM ( SELECT 1", None),
            ("DESC SELECT ( 1", None),
            (
                "CREATE TABLE T ( A , B ) AS SELECT 1",
                Some("a list of columns without types in CREATE TABLE"),
            ),
            ("CREATE TABLE T ( A INT , B INT ) AS SELECT 1", None),
            ("CREATE TABLE T ( ) AS SELECT 1", None),
            ("SELECT X : 1", Some("an alias before its expression")),
            ("SELECT { 'A' : 1 } FROM )", None),
            ("WITH DATA AS ( SELECT 1 )", None),
        ] {
            assert_eq!(find(text), found, "{text}");
        }
    }
}
