//! Errors of calls: unknown functions, and arguments that a function does not take.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use datafusion::common::utils::datafusion_strsim::levenshtein;
use datafusion::error::DataFusionError;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::Documentation;
use datafusion::logical_expr::sqlparser::ast::{Expr, FunctionArguments, Visit, Visitor};
use datafusion::sql::parser::{CopyToSource, Statement};

use crate::sql::sources::from::to_plain_name;
use crate::sql::statement::hints::top_level;
use crate::sql::statement::shorthands::shorthand_arities;

/// Functions of DuckDB, Polars, numpy, pandas and awkward, and what to write instead. `..` represents the arguments.
/// Names that only lack the prefix `ragged_`, `array_` or `list_` are found without an entry.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (&["list_mode"], "ragged_mode(x) for the most frequent value of a list"),
    (
        &["histogram", "value_counts", "map_from_entries"],
        "ragged_histogram_agg(x) for the number of occurrences of each value",
    ),
    (&["n_unique", "nunique"], "ragged_nunique(x), or count(DISTINCT x) of rows"),
    (&["approx_n_unique"], "approx_distinct(x)"),
    (
        &["std", "stdev", "nanstd", "list_stddev_samp"],
        "stddev(x) of rows, or ragged_std(x) of a list",
    ),
    (&["variance", "nanvar", "list_var_samp"], "var(x) of rows, or ragged_var(x) of a list"),
    (
        &["quantile", "percentile", "nanquantile", "nanpercentile"],
        "quantile_cont(x, 0.5) of rows, or ragged_quantile(x, 0.5) of a list",
    ),
    (&["nanmean"], "avg(x) of rows, or ragged_mean(x) of a list"),
    (&["nansum"], "sum(x) of rows, or ragged_sum(x) of a list"),
    (&["nanmedian", "list_median"], "median(x) of rows, or ragged_median(x) of a list"),
    (&["nanmin", "amin"], "min(x) of rows, or ragged_min(x) of a list"),
    (&["nanmax", "amax"], "max(x) of rows, or ragged_max(x) of a list"),
    (&["sumkahan", "kahan_sum"], "sum(x), which is exact for floats"),
    (&["product", "list_prod"], "ragged_prod(list(x)), or ragged_prod(x) of a list"),
    (&["group_concat", "listagg", "str_concat"], "string_agg(x, ',')"),
    (&["list_count"], "ragged_count(x)"),
    (
        &["list_aggregate", "list_aggr", "array_aggregate", "array_aggr", "aggregate"],
        "the reduction of the list, such as ragged_sum(x) or ragged_mean(x)",
    ),
    (
        &["list_reduce", "array_reduce", "reduce"],
        "a reduction such as ragged_sum(x), or ragged_cumsum(x)",
    ),
    (&["apply", "list_eval", "map_elements"], "ragged_map(x, lambda v: ..)"),
    (&["list_where", "array_where", "boolean_mask", "compress"], "ragged_filter(x, mask)"),
    (&["list_select", "array_select", "list_gather"], "ragged_take(x, positions)"),
    (&["list_grade_up", "array_grade_up", "grade_up", "arg_sort"], "ragged_argsort(x)"),
    (&["array_value"], "[1, 2]"),
    (&["list_dot_product", "array_dot_product", "list_inner_product"], "ragged_sum(a * b)"),
    (
        &["list_cosine_similarity", "array_cosine_similarity"],
        "ragged_sum(ragged_normalize(a) * ragged_normalize(b))",
    ),
    (&["struct_pack"], "{'a': 1}"),
    (&["struct_extract"], "s['a']"),
    (
        &["num", "list_lengths", "lens"],
        "ragged_lengths(x), or ragged_lengths(x, 2) for inner lists",
    ),
    (&["nelements", "total_size"], "ragged_count(x)"),
    (&["firsts"], "ragged_first(x)"),
    (&["singletons", "expand_dims"], "ragged_unsqueeze(x, 1)"),
    (&["ravel"], "ragged_flatten(x)"),
    (
        &["is_none", "is_null", "isna", "isnull", "is_missing"],
        "x IS NULL, or ragged_is_null(x) for the mask of a list",
    ),
    (
        &["is_not_null", "notna", "notnull"],
        "x IS NOT NULL, or ragged_not(ragged_is_null(x)) for the mask of a list",
    ),
    (&["is_nan"], "isnan(x), or ragged_is_nan(x) for the mask of a list"),
    (
        &["fill_none", "fillna", "fill_null"],
        "coalesce(x, 0), or ragged_fill_null(x, 0) for the values of a list",
    ),
    (&["drop_none", "dropna", "drop_nulls"], "ragged_filter(x, ragged_not(ragged_is_null(x)))"),
    (&["pad_none", "rpad_and_clip"], "ragged_pad(x, [3])"),
    (&["to_regular", "to_numpy", "to_dense", "to_array"], "densify(x, [4, 8])"),
    (&["forward_fill", "ffill"], "ragged_ffill(x)"),
    (&["backward_fill", "bfill"], "ragged_bfill(x)"),
    (&["cum_sum", "prefix_sum"], "ragged_cumsum(x), or sum(x) OVER (ORDER BY y) of rows"),
    (&["cum_max"], "ragged_cummax(x)"),
    (&["cum_min"], "ragged_cummin(x)"),
    (&["cum_prod"], "ragged_cumprod(x)"),
    (&["pct_change", "differences", "ediff1d"], "ragged_diff(x)"),
    (&["roll", "shift_and_fill"], "ragged_shift(x, 1)"),
    (&["ragged_locf", "locf"], "ragged_ffill(x)"),
    (&["ragged_avg", "ragged_average"], "ragged_mean(x)"),
    (&["ragged_len"], "ragged_lengths(x), or ragged_count(x)"),
    (&["ragged_slope", "slope", "linregress"], "ragged_regr_slope(y, x)"),
    (&["ragged_correlation"], "ragged_corr(y, x)"),
    (
        &["ragged_group_by", "ragged_histogram", "list_histogram"],
        "ragged_group(x, keys) with ragged_group_keys(keys)",
    ),
    (&["ragged_resample"], "ragged_group(x, date_trunc('day', time))"),
    (&["ragged_rolling_mean"], "ragged_rolling(x, 3, 'mean')"),
    (
        &["rolling_mean", "rolling_sum", "rolling_max", "rolling_min", "moving_average"],
        "ragged_rolling(x, 3, 'mean')",
    ),
    (
        &["rolling_median", "rolling_quantile", "moving_median"],
        "ragged_rolling(x, 3, 'quantile', q => 0.9)",
    ),
    (
        &["digitize", "cut", "width_bucket", "searchsorted"],
        "ragged_searchsorted([0, 10, 20], x), the number of bounds below x",
    ),
    (
        &["clip"],
        "greatest(least(x, high), low), or ragged_minimum(ragged_maximum(x, low), high) for the values of a list",
    ),
    (
        &["isin", "in1d", "is_in", "list_has_value"],
        "x IN (1, 2), or ragged_isin(x, [1, 2]) for the mask of a list",
    ),
    (&["is_between"], "x BETWEEN a AND b, or ragged_between(x, a, b) for the mask of a list"),
    (&["run_lengths", "local_index"], "ragged_lengths(x)"),
    (
        &["cartesian", "combinations", "argcartesian"],
        "ragged_ngrams(x, 2) for neighbours; pairs of all values need unnest twice",
    ),
    (&["explode"], "unnest(x), or FROM ragged_explode('t')"),
    (&["implode"], "array_agg(x), or ragged_nest_agg(x)"),
    (&["strptime", "try_strptime", "str_to_date", "to_datetime"], "to_timestamp(s, '%Y-%m-%d')"),
    (&["age"], "a - b"),
    (&["date_add", "dateadd"], "t + INTERVAL '1 day'"),
    (&["date_sub", "datesub", "timestampdiff"], "date_diff('day', start, end)"),
    (&["typeof"], "arrow_typeof(x)"),
    (&["glob"], "s LIKE 'a%'"),
    (&["format", "printf"], "concat(..) or x || y"),
    (&["read_csv_auto"], "FROM read_csv('x.csv')"),
    (&["parquet_scan"], "FROM read_parquet('x.parquet')"),
    (&["describe"], "DESCRIBE SELECT .."),
    (&["iif"], "CASE WHEN a THEN b ELSE c END"),
    (&["square"], "x * x"),
];

/// Returns Serrate's counterpart of a function of another program, if [`ELSEWHERE`] has one.
pub(crate) fn find_counterpart(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    ELSEWHERE.iter().find(|(names, _)| names.contains(&name.as_str())).map(|(_, ours)| *ours)
}

/// Returns the known names that are similar to the unknown name `name`, or that are `name` with a prefix such as
/// `ragged_`. The most similar names come first.
pub(crate) fn similar_names<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let name = name.to_lowercase();
    let sorted = |text: &str| {
        let mut chars: Vec<char> = text.chars().collect();
        chars.sort_unstable();
        chars
    };
    let letters = sorted(&name);
    let allowed = match name.chars().count() {
        0..=3 => 0,
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
        // Exchanged letters count as one mistake.
        match levenshtein(&name, candidate) {
            0 => None,
            distance if distance <= allowed && sorted(candidate) == letters => Some((1, 0)),
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

/// Finds the calls that have the name of a shorthand but other arguments than it takes. Returns a
/// description of each for error messages, by name.
pub(in crate::sql) fn unexpanded_calls(statement: &Statement) -> BTreeMap<String, String> {
    let mut found = Calls::default();
    let mut statement = statement;
    loop {
        match statement {
            Statement::Statement(inner) => {
                let _ = inner.visit(&mut found);
            }
            Statement::CopyTo(copy) => {
                if let CopyToSource::Query(query) = &copy.source {
                    let _ = query.visit(&mut found);
                }
            }
            Statement::Explain(explain) => {
                statement = explain.statement.as_ref();
                continue;
            }
            Statement::CreateExternalTable(_) | Statement::Reset(_) => {}
        }
        return found.0;
    }
}

#[derive(Default)]
struct Calls(BTreeMap<String, String>);

impl Visitor for Calls {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(call) = expr
            && let Some(name) = to_plain_name(&call.name)
            && !shorthand_arities(&name).is_empty()
        {
            let count = match &call.args {
                FunctionArguments::List(list) => list.args.len(),
                _ => 0,
            };
            self.0.entry(name).or_insert_with(|| format!("{count} given, in {call}"));
        }
        ControlFlow::Continue(())
    }
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
            let said = explain_unknown_function(&message, state, unexpanded)
                .or_else(|| explain_arguments(&message, state))
                .or_else(|| explain_substring(&message));
            DataFusionError::Plan(said.unwrap_or(message))
        }
        other => other,
    }
}

fn explain_unknown_function(
    message: &str,
    state: &SessionState,
    unexpanded: &BTreeMap<String, String>,
) -> Option<String> {
    let (name, _) = message.strip_prefix("Invalid function '")?.split_once('\'')?;
    let arities = shorthand_arities(name);
    if let (Some(given), [_, ..]) = (unexpanded.get(name), arities.as_slice()) {
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
    if state.table_functions().contains_key(name) {
        return Some(format!("{name} is a table function; write FROM {name}(..)"));
    }
    if let Some(ours) = find_counterpart(name) {
        return Some(format!("there is no function {name}; write {ours}"));
    }
    let known: BTreeSet<&str> = state
        .scalar_functions()
        .keys()
        .chain(state.aggregate_functions().keys())
        .chain(state.window_functions().keys())
        .chain(state.higher_order_functions().keys())
        .map(String::as_str)
        .collect();
    let similar = similar_names(name, known.into_iter());
    Some(match similar.is_empty() {
        true => format!(
            "there is no function {name}; docs/functions and the shell command .functions list all functions"
        ),
        false => format!("there is no function {name}; did you mean {}?", similar.join(" or ")),
    })
}

/// Parts of DataFusion's messages about the arguments of any function.
const GENERAL: [&str; 4] = [
    "Function '",
    "does not support zero arguments",
    "must have at least one argument",
    "Failed to coerce arguments",
];

/// Shortens DataFusion's messages about arguments, which repeat each other and list all signatures. Returns
/// `None` for other messages.
fn explain_arguments(message: &str, state: &SessionState) -> Option<String> {
    let (before, rest) =
        message.split_once("No function matches the given name and argument types '")?;
    let (call, candidates) = rest.split_once("'. You might")?;
    let (name, given) = call.split_once('(')?;
    let own = before.rsplit("failed with: ").next().unwrap_or(before).trim();
    let own = own.strip_prefix("Error during planning: ").unwrap_or(own);
    // A message from the function itself is more specific than a list of its signatures.
    if !own.is_empty() && !GENERAL.iter().any(|general| own.contains(general)) {
        return Some(own.trim_end_matches('.').to_owned());
    }
    let given = given.strip_suffix(')').unwrap_or(given);
    let forms = list_signatures(name, given, candidates, state);
    Some(match given.is_empty() {
        true => format!("{name} is called without arguments; use {forms}"),
        false => format!("{name} does not accept arguments of the types ({given}); use {forms}"),
    })
}

/// Returns a function's signatures for an error message: up to four signatures with types if they take the
/// given number of arguments, else the syntax in the function's documentation.
fn list_signatures(name: &str, given: &str, candidates: &str, state: &SessionState) -> String {
    let documented = documentation_of(name, state).map(|doc| doc.syntax_example.clone());
    let listed: Vec<&str> =
        candidates.lines().map(str::trim).filter(|line| line.starts_with(name)).collect();
    let is_typed = |form: &&str| {
        ["UserDefined", "Any", "..", "Variadic"].iter().all(|vague| !form.contains(vague))
    };
    let types = |form: &str| {
        let types = form.split_once('(').and_then(|(_, types)| types.strip_suffix(')'));
        top_level(types.unwrap_or_default()).len()
    };
    let fitting: Vec<&str> = listed
        .iter()
        .copied()
        .filter(|form| is_typed(form) && types(form) == top_level(given).len())
        .collect();
    match (fitting.len(), documented) {
        (1..=4, _) => fitting.join(" or "),
        (_, Some(documented)) => documented,
        _ => listed.join(" or "),
    }
}

fn documentation_of<'a>(name: &str, state: &'a SessionState) -> Option<&'a Documentation> {
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
    fn every_counterpart_is_a_function() {
        let state = crate::sql::session().state();
        let exists = |name: &str| {
            state.scalar_functions().contains_key(name)
                || state.aggregate_functions().contains_key(name)
                || state.higher_order_functions().contains_key(name)
                || !shorthand_arities(name).is_empty()
                || ["unnest", "ragged_explode", "read_csv", "read_parquet", "list"].contains(&name)
        };
        for (names, ours) in ELSEWHERE {
            for name in *names {
                assert!(!exists(name), "{name} is a function itself");
            }
            for (at, _) in ours.match_indices('(') {
                let is_name = |c: char| c.is_alphanumeric() || c == '_';
                let name = ours[..at].rsplit(|c| !is_name(c)).next().unwrap();
                assert!(name.is_empty() || exists(name), "{names:?}: {name} is no function");
            }
        }
    }

    #[test]
    fn similar_names_are_few_and_near() {
        let known = ["ragged_max", "ragged_mean", "ragged_minimum", "ragged_mode", "log2", "cosh"];
        let similar = |name: &str| similar_names(name, known.into_iter());
        assert_eq!(similar("ragged_meann"), ["ragged_mean"]);
        assert_eq!(similar("ragged_maen"), ["ragged_mean"]);
        assert_eq!(similar("MODE"), ["ragged_mode"]);
        assert_eq!(similar("epoch"), [""; 0]);
        assert_eq!(similar(""), [""; 0]);
    }
}
