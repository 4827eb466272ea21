//! Facts about functions of DataFusion that planner rules use, in one row per function.
//!
//! The definitions of Serrate's own functions have such facts, too: `FunctionFacts` for scalar
//! functions, and [`AggFacts`] for aggregates.

use super::aggregate::AggFacts;

/// A property of a scalar function of DataFusion that planner rules use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StockFact {
    /// The simplifier may replace a call with one of its arguments.
    BecomesArgument,
    /// The function casts its first argument to the type that its second argument names.
    CastsToNamedType,
    /// The function returns one of its arguments, as `coalesce` does.
    Chooses,
    /// The function casts a timestamp to a coarser unit.
    CoarsensTimes,
    /// The function compares its arguments with each other.
    ComparesArguments,
    /// The function compares list elements. A call with lists of intervals is an error, because
    /// DataFusion would not treat 1 day and 24 hours as equal.
    ComparesElements,
    /// The function searches the list in its first argument for the element in its second argument.
    FindsElement,
    /// The function searches its first argument, a list, for the elements of its second.
    FindsElements,
    /// The function returns a value for all arguments that planning accepts. Other functions fail
    /// for some arguments: `abs` (the smallest integer), `power`, `chr`, `repeat`, `to_timestamp`,
    /// `split_part` (position 0), `regexp_like` (a computed pattern). Some of these other functions
    /// cannot fail for certain literals (`is_harmless_call`).
    NeverFails,
    /// The function reads one element of the list in its first argument, at the position in its
    /// second argument, which counts from 1.
    ReadsElement,
    /// The function reads only the lengths of a list.
    ReadsLengths,
    /// The function only moves or drops the elements of a list.
    ReadsStructure,
    /// The first argument of the function may be a string that is parsed as a time.
    ReadsTime,
    /// DataFusion plans the function for lists but refuses to evaluate it for them.
    RefusesLists,
}

use StockFact::{
    BecomesArgument, CastsToNamedType, Chooses, CoarsensTimes, ComparesArguments, ComparesElements,
    FindsElement, FindsElements, NeverFails, ReadsElement, ReadsLengths, ReadsStructure, ReadsTime,
    RefusesLists,
};

/// The facts about each scalar function, in the order of their names. Some functions, such as
/// `float_key`, are not DataFusion's: Serrate's planner rules insert calls of them.
static FUNCTIONS: &[(&str, &[StockFact])] = &[
    ("acos", &[NeverFails]),
    ("array_distinct", &[ComparesElements]),
    ("array_element", &[ReadsElement]),
    ("array_except", &[ComparesElements]),
    ("array_has", &[NeverFails, ComparesElements, FindsElement]),
    ("array_has_all", &[NeverFails, ComparesElements, FindsElements]),
    ("array_has_any", &[NeverFails, ComparesElements, FindsElements]),
    ("array_intersect", &[ComparesElements]),
    ("array_length", &[NeverFails, ReadsLengths]),
    ("array_max", &[ComparesElements]),
    ("array_min", &[ComparesElements]),
    ("array_ndims", &[NeverFails]),
    ("array_position", &[ComparesElements, FindsElement]),
    ("array_positions", &[ComparesElements, FindsElement]),
    ("array_remove", &[ComparesElements]),
    ("array_remove_all", &[ComparesElements]),
    ("array_remove_n", &[ComparesElements]),
    ("array_replace", &[ComparesElements]),
    ("array_replace_all", &[ComparesElements]),
    ("array_replace_n", &[ComparesElements]),
    ("array_slice", &[ReadsStructure]),
    ("array_sort", &[ComparesElements]),
    ("array_union", &[ComparesElements]),
    ("arrow_cast", &[CastsToNamedType]),
    ("arrow_try_cast", &[CastsToNamedType]),
    ("arrow_typeof", &[NeverFails]),
    ("ascii", &[NeverFails]),
    ("asin", &[NeverFails]),
    ("atan", &[NeverFails]),
    ("atan2", &[NeverFails]),
    ("bit_length", &[NeverFails]),
    ("btrim", &[NeverFails]),
    ("cardinality", &[NeverFails, ReadsLengths]),
    ("cbrt", &[NeverFails]),
    ("ceil", &[NeverFails]),
    ("character_length", &[NeverFails]),
    ("coalesce", &[NeverFails, Chooses, BecomesArgument]),
    ("complete_decimal", &[NeverFails]),
    ("complete_interval", &[NeverFails]),
    ("complete_time", &[NeverFails]),
    ("complete_time_of_day", &[NeverFails]),
    ("concat", &[NeverFails]),
    ("concat_ws", &[NeverFails]),
    ("contains", &[NeverFails]),
    ("cos", &[NeverFails]),
    ("cosh", &[NeverFails]),
    ("cot", &[NeverFails]),
    ("current_date", &[NeverFails]),
    ("date_part", &[NeverFails]),
    ("degrees", &[NeverFails]),
    ("empty", &[NeverFails]),
    ("ends_with", &[NeverFails]),
    ("exp", &[NeverFails]),
    ("float_key", &[NeverFails]),
    ("floor", &[NeverFails]),
    ("get_field", &[NeverFails]),
    ("greatest", &[NeverFails, Chooses, ComparesArguments]),
    ("initcap", &[NeverFails]),
    ("isnan", &[NeverFails]),
    ("iszero", &[NeverFails]),
    ("least", &[NeverFails, Chooses, ComparesArguments]),
    ("left", &[NeverFails]),
    ("levenshtein", &[NeverFails]),
    ("ln", &[NeverFails]),
    ("log10", &[NeverFails]),
    ("log2", &[NeverFails]),
    ("lower", &[NeverFails]),
    ("ltrim", &[NeverFails]),
    ("make_array", &[NeverFails]),
    ("map_keys", &[NeverFails]),
    ("map_values", &[NeverFails]),
    ("md5", &[NeverFails]),
    ("mode_of_elements", &[ComparesElements]),
    ("named_struct", &[NeverFails]),
    ("nanvl", &[NeverFails]),
    ("nearest_double", &[NeverFails]),
    ("nested_greatest", &[NeverFails]),
    ("nested_least", &[NeverFails]),
    ("nested_order", &[NeverFails]),
    ("now", &[NeverFails]),
    ("nullif", &[NeverFails, Chooses, ComparesArguments, BecomesArgument]),
    ("nvl", &[NeverFails, Chooses, BecomesArgument]),
    ("nvl2", &[NeverFails, BecomesArgument]),
    ("octet_length", &[NeverFails]),
    ("pi", &[NeverFails]),
    ("radians", &[NeverFails]),
    ("replace", &[NeverFails]),
    ("reverse", &[NeverFails]),
    ("right", &[NeverFails]),
    ("rtrim", &[NeverFails]),
    ("sha224", &[NeverFails]),
    ("sha256", &[NeverFails]),
    ("sha384", &[NeverFails]),
    ("sha512", &[NeverFails]),
    ("signum", &[NeverFails]),
    ("sin", &[NeverFails]),
    ("sinh", &[NeverFails]),
    ("sqrt", &[NeverFails]),
    ("starts_with", &[NeverFails]),
    ("strpos", &[NeverFails]),
    ("struct", &[NeverFails]),
    ("tagged_tokens", &[NeverFails]),
    ("tan", &[NeverFails]),
    ("tanh", &[NeverFails]),
    ("to_date", &[ReadsTime, RefusesLists]),
    ("to_local_time", &[RefusesLists]),
    ("to_time", &[RefusesLists]),
    ("to_timestamp", &[ReadsTime, RefusesLists]),
    ("to_timestamp_micros", &[ReadsTime, RefusesLists, CoarsensTimes]),
    ("to_timestamp_millis", &[ReadsTime, RefusesLists, CoarsensTimes]),
    ("to_timestamp_nanos", &[ReadsTime, RefusesLists]),
    ("to_timestamp_seconds", &[ReadsTime, RefusesLists, CoarsensTimes]),
    ("to_unixtime", &[CoarsensTimes]),
    ("translate", &[NeverFails]),
    ("upper", &[NeverFails]),
];

/// Aggregates in the order of their names. The test
/// `distinct_aggregates_aggregate_distinct_rows_or_are_refused` checks
/// the fact `refuses_distinct` of each.
static AGGREGATES: &[(&str, AggFacts)] = &[
    ("any_value", AggFacts::ANY_ROW),
    ("approx_distinct", AggFacts { orders_values: true, ..AggFacts::NONE }),
    ("approx_median", AggFacts { orders_values: true, ..AggFacts::NONE }),
    (
        "approx_percentile_cont",
        AggFacts {
            refuses_distinct: true,
            distinct_of_first: true,
            orders_values: true,
            ..AggFacts::NONE
        },
    ),
    ("arg_max", AggFacts::ANY_ROW),
    ("arg_min", AggFacts::ANY_ROW),
    ("array_agg", AggFacts::ANY_ROW),
    ("corr", AggFacts::REFUSES_DISTINCT),
    ("covar_pop", AggFacts::REFUSES_DISTINCT),
    ("covar_samp", AggFacts::REFUSES_DISTINCT),
    ("first_value", AggFacts::ANY_ROW),
    ("last_value", AggFacts::ANY_ROW),
    ("max", AggFacts::COMPARES),
    ("median", AggFacts { compares: true, orders_values: true, ..AggFacts::NONE }),
    ("min", AggFacts::COMPARES),
    ("mode", AggFacts::ANY_ROW),
    ("nth_value", AggFacts { refuses_distinct: true, any_row: true, ..AggFacts::NONE }),
    (
        "percentile_cont",
        AggFacts { distinct_of_first: true, orders_values: true, ..AggFacts::NONE },
    ),
    ("regr_avgx", AggFacts::REFUSES_DISTINCT),
    ("regr_avgy", AggFacts::REFUSES_DISTINCT),
    ("regr_count", AggFacts::REFUSES_DISTINCT),
    ("regr_intercept", AggFacts::REFUSES_DISTINCT),
    ("regr_r2", AggFacts::REFUSES_DISTINCT),
    ("regr_slope", AggFacts::REFUSES_DISTINCT),
    ("regr_sxx", AggFacts::REFUSES_DISTINCT),
    ("regr_sxy", AggFacts::REFUSES_DISTINCT),
    ("regr_syy", AggFacts::REFUSES_DISTINCT),
    ("string_agg", AggFacts { distinct_of_first: true, any_row: true, ..AggFacts::NONE }),
];

pub(crate) fn has_fact(function: &str, fact: StockFact) -> bool {
    let found = FUNCTIONS.binary_search_by_key(&function, |(name, _)| *name);
    found.is_ok_and(|at| FUNCTIONS[at].1.contains(&fact))
}

/// Returns the facts about an aggregate of DataFusion, or [`AggFacts::NONE`] for any other
/// aggregate.
pub(super) fn find_aggregate_facts(name: &str) -> &'static AggFacts {
    let found = AGGREGATES.binary_search_by_key(&name, |(known, _)| *known);
    found.map_or(&AggFacts::NONE, |at| &AGGREGATES[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_ascend() {
        assert!(FUNCTIONS.is_sorted_by(|(a, _), (b, _)| a < b));
        assert!(AGGREGATES.is_sorted_by(|(a, _), (b, _)| a < b));
    }
}
