//! Runs the statements of `docs/dates.md` and the examples that `.help` prints for scalar
//! functions, and compares their results.

use super::*;

/// A statement and the result in the comment after it: the values, separated by two blanks, or a
/// part of the error message.
struct Example {
    sql: String,
    expected: String,
}

/// Returns the statements in the lines of a text. The result of a statement is a comment behind it
/// or in the next line.
fn read_examples<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    for line in lines.map(str::trim) {
        if let Some(expected) = line.strip_prefix("-- ") {
            examples.last_mut().unwrap().expected = expected.to_owned();
        } else if line.starts_with("SELECT ") {
            let (sql, expected) = line.split_once("  -- ").unwrap_or((line, ""));
            let (sql, expected) = (sql.trim().to_owned(), expected.to_owned());
            examples.push(Example { sql, expected });
        }
    }
    examples
}

/// Runs a statement and returns the values of its row, separated by two blanks, or its error
/// message.
fn show_values(place: &Place, sql: &str) -> String {
    let said = place.run(&["-f", "line", "-c", sql]);
    if said.code != 0 {
        return said.err;
    }
    let value = |line: &str| line.rsplit_once(" = ").map(|(_, value)| value.to_owned());
    let values: Option<Vec<String>> = said.out.lines().map(value).collect();
    values.map_or(said.out, |values| values.join("  "))
}

fn check_examples(examples: &[Example]) {
    let place = Place::new();
    let mut wrong = Vec::new();
    for Example { sql, expected } in examples {
        let found = show_values(&place, sql);
        let is_expected = match found.strip_prefix("error: ") {
            Some(message) => !expected.is_empty() && message.contains(expected.as_str()),
            None => found == *expected,
        };
        if !is_expected {
            wrong.push(format!("{sql}\n  expected: {expected}\n  found:    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn statements_in_the_page_of_dates_have_the_stated_results() {
    let page = include_str!("../../docs/dates.md");
    let blocks = page.split("```sql\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let examples: Vec<Example> = blocks.flat_map(|block| read_examples(block.lines())).collect();
    assert!(examples.len() > 35, "{}", examples.len());
    check_examples(&examples);
}

/// Functions whose help must have an example. The page of `.help` on them must state how they treat
/// NULL.
const DOCUMENTED: [&str; 44] = [
    "arg_max",
    "arg_min",
    "bit_count",
    "bit_not",
    "count_if",
    "date_bin",
    "date_diff",
    "date_sub",
    "day",
    "dayname",
    "dayofweek",
    "dayofyear",
    "epoch",
    "epoch_ms",
    "epoch_ns",
    "epoch_us",
    "hour",
    "last_day",
    "log",
    "make_timestamp",
    "minute",
    "mode",
    "mode_of_elements",
    "month",
    "monthname",
    "quantile_disc",
    "quarter",
    "regexp_extract",
    "regexp_extract_all",
    "regexp_full_match",
    "regexp_matches",
    "regexp_replace",
    "regexp_split_to_array",
    "second",
    "strftime",
    "string_split",
    "time_bucket",
    "timezone",
    "to_days",
    "to_hours",
    "to_months",
    "to_seconds",
    "week",
    "year",
];

#[test]
fn help_shows_examples_with_their_results_and_rules_for_null() {
    let place = Place::new();
    let mut all = Vec::new();
    for name in DOCUMENTED {
        let said = place.run_with(&["-i"], &format!(".help {name}\n"));
        assert!(said.out.contains("NULL"), "{name}: {} {}", said.out, said.err);
        assert!(!said.out.contains("is a function, too"), "{name}: {}", said.out);
        let examples = read_examples(said.out.lines());
        assert!(!examples.is_empty(), "{name}: {}", said.out);
        all.extend(examples);
    }
    check_examples(&all);
    let said = place.run_with(&["-i"], ".help max_by\n.help datediff\n");
    assert!(said.out.contains("Another name of `arg_max(x, y)`"), "{}", said.out);
    assert!(said.out.contains("date_diff('day', start, end)"), "{}", said.out);
}
