//! Rewords errors about calls of unknown functions and about arguments that a function does not
//! take, and suggests similar names.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::common::utils::datafusion_strsim::levenshtein;
use datafusion::error::DataFusionError;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::Documentation;
use datafusion::logical_expr::sqlparser::ast::{Expr, FunctionArguments};
use datafusion::sql::parser::Statement;

use crate::sql::base::syntax::{for_each_expr, to_plain_name};
use crate::sql::checks::elements::split_top_level;
use crate::sql::from::table_function_planner::is_table_function;
use crate::sql::statement::functions::counterparts::{
    LIST_PREFIXES, find_counterpart, is_call_of_module,
};
use crate::sql::statement::functions::shorthands::{list_shorthand_arities, list_shorthand_names};
use crate::sql::statement::sql_parts::with_sql;

/// Returns the known names that are similar to `name`, or equal but for a prefix such as `ragged_`,
/// best first. Similar names share prefix and first letter, and differ in one or two letters.
pub(crate) fn find_similar_names<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str>,
) -> Vec<&'a str> {
    let name = name.to_lowercase();
    let sorted = |text: &str| {
        let mut chars: Vec<char> = text.chars().collect();
        chars.sort_unstable();
        chars
    };
    let (family, stem) = split_prefix(&name);
    let letters = sorted(stem);
    let allowed = match letters.len() {
        0..=2 => 0,
        3 => usize::from(!family.is_empty()),
        4..=6 => 1,
        _ => 2,
    };
    let distance = |candidate: &str| {
        let prefixes = ["ragged_", "array_", "list_", "approx_"];
        let prefixed = |(rank, prefix): (usize, &&str)| {
            (candidate.strip_prefix(prefix) == Some(name.as_str())).then_some(rank)
        };
        if let Some(rank) = prefixes.iter().enumerate().find_map(prefixed) {
            return Some((0, rank));
        }
        let (their_family, their_stem) = split_prefix(candidate);
        if their_family != family || their_stem.chars().next() != stem.chars().next() {
            return None;
        }
        match levenshtein(stem, their_stem) {
            0 => None,
            // Two exchanged letters, as in `smu` for `sum`, count as one mistake.
            1..=2 if allowed > 0 && sorted(their_stem) == letters => Some((1, 0)),
            distance if distance <= allowed => Some((distance, 1)),
            _ => None,
        }
    };
    let mut found: Vec<_> =
        known.filter_map(|candidate| Some((distance(candidate)?, candidate))).collect();
    found.sort_unstable();
    let best = found.first().map(|(distance, _)| *distance);
    found
        .into_iter()
        .filter(|(distance, _)| Some(*distance) == best)
        .map(|(_, n)| n)
        .take(3)
        .collect()
}

/// Splits the name of a function after a prefix for lists: `ragged_sum` into `ragged_` and `sum`.
/// The first part of a name without such a prefix is empty.
fn split_prefix(name: &str) -> (&str, &str) {
    let prefix = LIST_PREFIXES.iter().find(|prefix| name.starts_with(**prefix));
    name.split_at(prefix.map_or(0, |prefix| prefix.len()))
}

/// Finds calls of shorthands, such as `year(t)`, that were not expanded because the shorthand does
/// not take their arguments. Returns a description of the first such call of each shorthand, by the
/// name of the shorthand.
pub(in crate::sql) fn find_unexpanded_calls(statement: &Statement) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    with_sql!(statement, sql => for_each_expr(sql, |expr| {
        if let Expr::Function(call) = expr
            && let Some(name) = to_plain_name(&call.name)
            && !list_shorthand_arities(&name).is_empty()
        {
            let count = match &call.args {
                FunctionArguments::List(list) => list.args.len(),
                _ => 0,
            };
            found.entry(name).or_insert_with(|| format!("{count} given, in {call}"));
        }
    }));
    found
}

/// Rewords an error of DataFusion's planner about a call. Returns other errors unchanged.
pub(in crate::sql) fn explain_calls(
    e: DataFusionError,
    state: &SessionState,
    unexpanded: &BTreeMap<String, String>,
) -> DataFusionError {
    match e {
        DataFusionError::Diagnostic(diagnostic, inner) => {
            let inner = explain_calls(*inner, state, unexpanded);
            DataFusionError::Diagnostic(diagnostic, Box::new(inner))
        }
        DataFusionError::Plan(message) => {
            let explained = explain_unknown_function(&message, state, unexpanded)
                .or_else(|| explain_arguments(&message, state))
                .or_else(|| explain_substring(&message));
            DataFusionError::Plan(explained.unwrap_or(message))
        }
        DataFusionError::Collection(all) => DataFusionError::Collection(
            all.into_iter().map(|e| explain_calls(e, state, unexpanded)).collect(),
        ),
        other => other,
    }
}

fn explain_unknown_function(
    message: &str,
    state: &SessionState,
    unexpanded: &BTreeMap<String, String>,
) -> Option<String> {
    let (name, _) = message.strip_prefix("Invalid function '")?.split_once('\'')?;
    let arities = list_shorthand_arities(name);
    if let (Some(given), [_, ..]) = (unexpanded.get(name), arities.as_slice()) {
        if ["arg_max", "max_by", "argmax", "arg_min", "min_by", "argmin"].contains(&name) {
            return Some(format!(
                "{name} cannot be called with these arguments: {given}; write {name}(x, y), {name}(x, y, 3) with a number above 0, or {name}(x, y) OVER (PARTITION BY k) without ORDER BY and without a frame"
            ));
        }
        let forms = arities.iter().map(|n| {
            let names = ["x", "y", "z"];
            format!("{name}({})", names[..names.len().min(*n)].join(", "))
        });
        let forms = forms.collect::<Vec<_>>().join(" or ");
        return Some(format!(
            "{name} cannot be called with these arguments: {given}; write {forms}"
        ));
    }
    if state.window_functions().contains_key(name) {
        return Some(format!(
            "{name} is a window function and needs OVER; write {name}(..) OVER (ORDER BY x)"
        ));
    }
    let in_from = || Some(format!("{name} is a table function; write FROM {name}(..)"));
    if state.table_functions().contains_key(name) {
        return in_from();
    }
    let is_function = |name: &str| state.scalar_functions().contains_key(name);
    if let Some((value, call)) = name.rsplit_once('.')
        && is_function(call)
        && !is_call_of_module(name)
    {
        return Some(format!(
            "there is no function {name}; a call after a dot is not supported, so write {call}({value})"
        ));
    }
    if let Some(ours) = find_counterpart(name, is_function) {
        return Some(format!("there is no function {name}; write {ours}"));
    }
    if is_table_function(name) {
        return in_from();
    }
    let mut known: BTreeSet<&str> = state
        .scalar_functions()
        .keys()
        .chain(state.aggregate_functions().keys())
        .chain(state.window_functions().keys())
        .chain(state.higher_order_functions().keys())
        .map(String::as_str)
        .collect();
    for name in list_shorthand_names() {
        known.insert(name);
    }
    let similar = find_similar_names(name, known.into_iter());
    Some(match similar.is_empty() {
        true => format!(
            "there is no function {name}; docs/functions and the shell command .functions list all functions"
        ),
        false => format!("there is no function {name}; did you mean {}?", similar.join(" or ")),
    })
}

/// Substrings of the messages about arguments that DataFusion itself writes. Other messages come
/// from the called function.
const GENERAL: [&str; 4] = [
    "Function '",
    "does not support zero arguments",
    "must have at least one argument",
    "Failed to coerce arguments",
];

/// Shortens DataFusion's message about the arguments of a call, which repeats itself and lists all
/// signatures. Returns `None` for other messages.
fn explain_arguments(message: &str, state: &SessionState) -> Option<String> {
    let (before, rest) =
        message.split_once("No function matches the given name and argument types '")?;
    let (call, candidates) = rest.split_once("'. You might")?;
    let (name, given) = call.split_once('(')?;
    let own = before.rsplit("failed with: ").next().unwrap_or(before).trim();
    let own = own.strip_prefix("Error during planning: ").unwrap_or(own);
    // A message from the function itself is more specific than a list of its signatures.
    if !own.is_empty() && !GENERAL.iter().any(|general| own.contains(general)) {
        let own = own.trim_end_matches('.');
        return Some(explain_elements(own).unwrap_or_else(|| own.to_owned()));
    }
    let given = given.strip_suffix(')').unwrap_or(given);
    // `isfinite` and `isinf` expand to calls of these functions, so the message names all four.
    if ["abs", "isnan"].contains(&name)
        && ["Timestamp", "Date"].iter().any(|time| given.starts_with(time))
    {
        return Some(format!(
            "abs, isnan, isinf and isfinite take numbers, but the argument is a {given}; a date or timestamp is always finite, so write t IS NOT NULL"
        ));
    }
    let forms = list_signatures(name, given, candidates, state);
    Some(match given.is_empty() {
        true => format!("{name} is called without arguments; use {forms}"),
        false => format!("{name} does not accept arguments of the types ({given}); use {forms}"),
    })
}

/// Adds a hint to DataFusion's message that the elements of a list, or concatenated lists, have no
/// common type. Returns `None` for other messages.
pub(in crate::sql::statement) fn explain_elements(message: &str) -> Option<String> {
    let unified = message.strip_prefix("Failed to unify argument types of ")?;
    match unified.split_once(": ")? {
        ("make_array", types) => Some(format!(
            "the elements of a list have no common type: {types}; cast them to one type, as in [CAST(a AS VARCHAR), b]"
        )),
        ("array_concat", types) => Some(format!(
            "the concatenated lists have no common type: {types}; cast one of them, as in CAST(a AS VARCHAR[]) || b"
        )),
        _ => None,
    }
}

/// Returns signatures of the function `name` for an error message. `candidates` has one signature
/// per line, and `given` is the list of the argument types in the call. Returns the signatures that
/// have as many arguments as the call. If there are none or more than four, returns the documented
/// syntax of the function, or else all its signatures.
fn list_signatures(name: &str, given: &str, candidates: &str, state: &SessionState) -> String {
    let documented = find_documentation(name, state).map(|doc| doc.syntax_example.clone());
    let listed: Vec<&str> =
        candidates.lines().map(str::trim).filter(|line| line.starts_with(name)).collect();
    let is_typed = |form: &&str| {
        ["UserDefined", "Any", "..", "Variadic"].iter().all(|vague| !form.contains(vague))
    };
    let types = |form: &str| {
        let types = form.split_once('(').and_then(|(_, types)| types.strip_suffix(')'));
        split_top_level(types.unwrap_or_default()).len()
    };
    let fitting: Vec<&str> = listed
        .iter()
        .copied()
        .filter(|form| is_typed(form) && types(form) == split_top_level(given).len())
        .collect();
    match (fitting.len(), documented) {
        (1..=4, _) => fitting.join(" or "),
        (_, Some(documented)) => documented,
        _ => listed.join(" or "),
    }
}

fn find_documentation<'a>(name: &str, state: &'a SessionState) -> Option<&'a Documentation> {
    let scalar = state.scalar_functions().get(name).and_then(|f| f.documentation());
    let aggregate = || state.aggregate_functions().get(name).and_then(|f| f.documentation());
    let window = || state.window_functions().get(name).and_then(|f| f.documentation());
    let higher = || state.higher_order_functions().get(name).and_then(|f| f.documentation());
    scalar.or_else(aggregate).or_else(window).or_else(higher)
}

fn explain_substring(message: &str) -> Option<String> {
    message.starts_with("Substring without for/from").then(|| {
        "substr takes a string, a position and possibly a length; write substr(s, 2) or substr(s, 2, 3)"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_few_and_near() {
        let known = [
            "ragged_abs",
            "ragged_max",
            "ragged_mean",
            "ragged_minimum",
            "ragged_mode",
            "log2",
            "cosh",
            "list_remove",
            "today",
        ];
        let similar = |name: &str| find_similar_names(name, known.into_iter());
        assert_eq!(similar("ragged_meann"), ["ragged_mean"]);
        assert_eq!(similar("ragged_maen"), ["ragged_mean"]);
        assert_eq!(similar("MODE"), ["ragged_mode"]);
        assert_eq!(similar("ragged_sbs"), [""; 0]);
        assert_eq!(similar("ragged_abd"), ["ragged_abs"]);
        // Functions that have similar names but another meaning are not suggested.
        assert_eq!(similar("ragged_days"), [""; 0]);
        assert_eq!(similar("list_reduce"), [""; 0]);
        assert_eq!(similar("isoday"), [""; 0]);
        assert_eq!(similar("epoch"), [""; 0]);
        assert_eq!(similar(""), [""; 0]);
    }
}
