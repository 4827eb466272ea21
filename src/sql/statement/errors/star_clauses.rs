//! Rejects EXCLUDE, REPLACE and RENAME after a star if a part would have no effect, or if the error
//! of the parser or planner would not say what to write instead.

use std::collections::HashSet;

use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{SelectItem, SelectItemQualifiedWildcardKind};

use crate::sql::statement::columns::merged::list_excluded_names;
use crate::sql::statement::errors::wording::refuse_clause;
use crate::sql::statement::folding::fold_name;

/// Returns an error for a star with an alias or with ILIKE in SELECT, or if EXCLUDE or REPLACE has
/// a column twice, both have the same column, or EXCLUDE has a column of another table.
pub(super) fn check_star(item: &SelectItem) -> Result<()> {
    let (table, options) = match item {
        SelectItem::Wildcard(options) => (None, options),
        SelectItem::QualifiedWildcard(
            SelectItemQualifiedWildcardKind::ObjectName(table),
            options,
        ) => (Some(table), options),
        SelectItem::QualifiedWildcard(_, options) => (None, options),
        _ => return Ok(()),
    };
    if let Some(alias) = &options.opt_alias {
        return Err(refuse_clause(format!(
            "the alias AS {alias} after a star (*) is not supported: list the columns by name instead of the star, and give each its alias"
        )));
    }
    if let Some(pattern) = &options.opt_ilike {
        return Err(refuse_clause(format!(
            "{pattern} after a star is not supported: write COLUMNS with a regular expression for the names, as in SELECT COLUMNS('.*_id')"
        )));
    }
    let mut excluded = HashSet::new();
    for name in list_excluded_names(options) {
        let parts: Vec<String> =
            name.0.iter().filter_map(|part| part.as_ident()).map(fold_name).collect();
        // The rewriter has removed the name of the table itself from `t.* EXCLUDE (t.a)`.
        if let (Some(table), [_, .., column]) = (table, parts.as_slice()) {
            return Err(refuse_clause(format!(
                "EXCLUDE ({name}) names another table than the star {table}.*; write EXCLUDE ({column}) for a column of {table}"
            )));
        }
        if !excluded.insert(parts) {
            return Err(refuse_clause(format!(
                "EXCLUDE names the column {name} twice; write it once"
            )));
        }
    }
    let mut replaced = HashSet::new();
    for element in options.opt_replace.iter().flat_map(|replace| &replace.items) {
        let name = &element.column_name;
        if excluded.contains([fold_name(name)].as_slice()) {
            return Err(refuse_clause(format!(
                "the column {name} is in EXCLUDE and in REPLACE; remove it from one of them"
            )));
        }
        if !replaced.insert(fold_name(name)) {
            return Err(refuse_clause(format!(
                "REPLACE has two expressions for the column {name}; write one"
            )));
        }
    }
    Ok(())
}

/// Finds the clause of a star (RENAME, EXCLUDE and so on) that begins at the token with index `at`,
/// where the parser has failed. Returns the form that was found, and what to write instead.
/// `written` has the tokens of the text in upper case.
pub(super) fn find_star_form(written: &[&str], at: usize) -> Option<(&'static str, &'static str)> {
    let before = |count: usize| at.checked_sub(count).and_then(|at| written.get(at)).copied();
    // A `*` after one of these words or at the start is a star. After an operand, it is a product.
    let is_star = before(1) == Some("*")
        && before(2)
            .is_none_or(|word| ["SELECT", "DISTINCT", "ALL", ",", ".", "("].contains(&word));
    let after_list = before(1) == Some(")");
    let [word, rest @ ..] = written.get(at..)? else { return None };
    let has_list = rest.first() == Some(&"(");
    match *word {
        "RENAME" if is_star || (after_list && has_list) => Some((
            "RENAME after a star",
            "exclude the column, and write it with its new name, as in SELECT * EXCLUDE (a), a AS b",
        )),
        "LIKE" | "ILIKE" if is_star => Some((
            "LIKE after a star",
            "write COLUMNS with a regular expression for the names, as in SELECT COLUMNS('.*_id')",
        )),
        "EXCLUDING" | "WITHOUT" | "OMIT" | "DROP" if is_star && has_list => Some((
            "EXCLUDING, WITHOUT, OMIT or DROP after a star",
            "write EXCLUDE, as in SELECT * EXCLUDE (a, b)",
        )),
        "EXCLUDE" if has_list && !is_star => Some((
            "EXCLUDE that does not follow a star",
            "write it directly after the star and before REPLACE, as in SELECT * EXCLUDE (a) REPLACE (b + 1 AS b)",
        )),
        "EXCLUDE" if has_list && !lists_names(rest) => Some((
            "EXCLUDE of anything but names of columns",
            "write names between commas, as in SELECT * EXCLUDE (a, b)",
        )),
        "REPLACE" if is_star && (!has_list || !names_replaced(rest)) => Some((
            "REPLACE of a star without parentheses or without names",
            "write each expression with the name of the column that it replaces, as in SELECT * REPLACE (a + 1 AS a)",
        )),
        _ => None,
    }
}

/// Whether `tokens` begin with a list of names in parentheses, as in `(a, t.b)`.
fn lists_names(tokens: &[&str]) -> bool {
    let mut is_name_next = true;
    for token in tokens.iter().skip(1) {
        let begins_name = |c: char| c.is_alphabetic() || ['_', '"', '\''].contains(&c);
        match *token {
            ")" => return !is_name_next,
            "," | "." if !is_name_next => is_name_next = true,
            name if is_name_next && name.starts_with(begins_name) => is_name_next = false,
            _ => return false,
        }
    }
    false
}

/// Whether `tokens` begin with a list in parentheses whose items all have AS, as in `(a + 1 AS a)`.
fn names_replaced(tokens: &[&str]) -> bool {
    let (mut depth, mut is_named) = (0usize, false);
    for token in tokens {
        match *token {
            "(" | "[" => depth = depth.saturating_add(1),
            ")" if depth == 1 => return is_named,
            ")" | "]" => depth = depth.saturating_sub(1),
            "AS" if depth == 1 => is_named = true,
            "," if depth == 1 => match is_named {
                true => is_named = false,
                false => return false,
            },
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misused_words_after_a_star_are_found() {
        let find = |text: &str| {
            let words: Vec<&str> = text.split(' ').collect();
            (0..words.len()).find_map(|at| find_star_form(&words, at)).map(|(found, _)| found)
        };
        for (text, found) in [
            ("SELECT * RENAME ( A AS B ) FROM T", Some("RENAME after a star")),
            ("SELECT * EXCLUDE ( A ) RENAME ( B AS C ) FROM T", Some("RENAME after a star")),
            ("SELECT T . * LIKE 'a%' FROM T", Some("LIKE after a star")),
            ("SELECT * DROP ( A ) FROM T", Some("EXCLUDING, WITHOUT, OMIT or DROP after a star")),
            ("SELECT A EXCLUDE ( B ) FROM T", Some("EXCLUDE that does not follow a star")),
            (
                "SELECT * REPLACE ( A + 1 AS A ) EXCLUDE ( B ) FROM T",
                Some("EXCLUDE that does not follow a star"),
            ),
            ("SELECT * EXCLUDE ( ) FROM T", Some("EXCLUDE of anything but names of columns")),
            ("SELECT * EXCLUDE ( A + 1 ) FROM T", Some("EXCLUDE of anything but names of columns")),
            (
                "SELECT * REPLACE ( A * 2 ) FROM T",
                Some("REPLACE of a star without parentheses or without names"),
            ),
            (
                "SELECT * REPLACE A * 2 AS A FROM T",
                Some("REPLACE of a star without parentheses or without names"),
            ),
            ("SELECT * EXCLUDE ( A , T . B ) REPLACE ( F ( C , 1 ) AS C ) FROM T", None),
            ("SELECT A * REPLACE ( S , 'a' , 'b' ) FROM T", None),
            ("SELECT COUNT ( * ) FROM T", None),
        ] {
            assert_eq!(find(text), found, "{text}");
        }
    }
}
