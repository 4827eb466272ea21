//! Differences that are known and not faults: statements that may be refused, and rules without
//! which results are wrong.

/// Our rules that only speed up queries and have no setting of their own, each with what it saves.
/// Cuts disable them by their names.
pub const OPTIMIZATIONS: &[(&str, &str)] = &[
    ("serrate_parquet_lists", "DataFusion decodes lists in Parquet files slowly"),
    ("serrate_parquet_fields", "scans of Parquet read whole structs for one field"),
];

/// Our rules without which results are wrong, each with the fault that it corrects.
pub const WORKAROUNDS: &[(&str, &str)] = &[
    ("SortLists", "ORDER BY lists with NULL and LIMIT loses rows"),
    ("serrate_asof_order", "rows of meds_asof come in any order"),
    ("serrate_cast_groups", "GROUP BY a cast and a column loses the column"),
    ("serrate_coarser_times", "casts to a coarser unit round times before 1970 up"),
    ("serrate_compact_texts", "sorts of strings count the buffers of other batches"),
    ("serrate_computed_keys", "ORDER BY a comparison of a function's result is refused"),
    ("serrate_computed_lists", "IN over a list with CASE finds values that the list has not"),
    ("serrate_constant_float_keys", "constant zeros and NaN of both signs are told apart"),
    ("serrate_copied_inputs", "hash joins of lists take up to twice the memory limit"),
    ("serrate_counted_sets", "EXCEPT ALL and INTERSECT ALL do not count"),
    ("serrate_decimal_texts", "strings of numbers with an exponent are not cast to decimals"),
    ("serrate_deep_stacks", "deep expressions overflow the stack"),
    ("serrate_dictionary_keys", "joins by dictionaries of integers fail"),
    ("serrate_distinct_recursions", "recursive queries lose rows with NULL and empty lists"),
    ("serrate_duration_windows", "windows ordered by durations are refused"),
    ("serrate_empty_queries", "queries without rows are taken for values that are never NULL"),
    (
        "serrate_exact_times",
        "times far from 1970 overflow, durations and intervals compare wrongly",
    ),
    (
        "serrate_flat_unions",
        "many UNIONs in a row take quadratic time; projections of nested ones take columns by name",
    ),
    ("serrate_float_keys", "zeros and NaN of both signs are told apart"),
    ("serrate_float_ranges", "casts of numbers beyond the range of FLOAT are infinite"),
    ("serrate_from_alone", "`FROM t` without SELECT has no columns"),
    ("serrate_grouped_outer", "subqueries in HAVING and SELECT do not find computed group keys"),
    ("serrate_hidden_values", "values below NULL structs and lists are returned"),
    ("serrate_inserted_nulls", "errors of NULL in NOT NULL columns do not name the column"),
    ("serrate_inserted_types", "INSERT of CASE and UNION writes other types than the table has"),
    ("serrate_join_orders", "joins of sorted sides claim the orders of both"),
    ("serrate_joined_groups", "GROUP BY and DISTINCT above joins with grouped tables lose keys"),
    ("serrate_lambda_parameters", "lambdas read columns in place of their parameters"),
    ("serrate_lambda_types", "lambdas over CASE whose branches have other lists fail"),
    ("serrate_lazy_conditions", "what a condition guards is evaluated next to it"),
    ("serrate_large_texts", "strings of numbers beyond the range of float32 equal infinity"),
    ("serrate_list_hints", "errors of operators over lists do not say what to write"),
    ("serrate_list_texts", "lists as strings do not show NULL"),
    ("serrate_local_times", "local times that clocks skip or repeat fail"),
    ("serrate_lost_constants", "constants are taken for such above outer joins and GROUPING SETS"),
    ("serrate_memory_order", "LIMIT over tables in memory takes other rows than the first"),
    ("serrate_merge_join_filters", "merge joins with a condition fail over rows without a partner"),
    ("serrate_merged_orders", "merges of partitions claim every order of them"),
    ("serrate_missing_partitions", "tables of several partitions without rows cannot be grouped"),
    ("serrate_missing_sorts", "plans lack sorts that operators need"),
    ("serrate_moved_keys", "rows by a rank and the key of a GROUP BY are not sorted by the key"),
    ("serrate_named_files", "errors do not name their file"),
    ("serrate_narrow_floats", "lists of float32 compare with subqueries as with literals"),
    ("serrate_nearest_floats", "decimals of many digits do not become the nearest double"),
    ("serrate_nested_constants", "windows over constant lists of lists fail"),
    ("serrate_nested_order", "lists with NULL compare in two orders"),
    ("serrate_number_truths", "an integer that is true counts as 1 in ORDER BY"),
    ("serrate_one_text", "LIKE of a dictionary and a column of text fails"),
    ("serrate_ordered_scan_limits", "LIMIT of an ordered scan takes other rows"),
    ("serrate_partition_constants", "merged partitions claim the order of each"),
    (
        "serrate_plain_equations",
        "windows divided by a column that equals an expression of itself fail",
    ),
    ("serrate_plain_changes", "INSERT and UPDATE of what cannot be changed are planned"),
    ("serrate_plain_negations", "`-x` of the least integer is this integer"),
    ("serrate_query_values", "IN and EXISTS as values are refused"),
    ("serrate_range_frames", "frames of NULL miss peers in later batches"),
    ("serrate_recursive_metadata", "recursive queries over files with metadata are refused"),
    ("serrate_repeated_constants", "long constants that are repeated for each row end the process"),
    ("serrate_rows_in", "rows in front of IN are refused"),
    ("serrate_similar_patterns", "SIMILAR TO is not anchored"),
    ("serrate_sorted_distinct", "DISTINCT with LIMIT over sorted rows fails"),
    (
        "serrate_sorted_inputs",
        "LIMIT over sorted inputs takes rows by their keys, not by their partitions",
    ),
    ("serrate_source_order", "rows come in another order than that of their source"),
    ("serrate_shared_once", "CTEs with random() have other rows in each place"),
    (
        "serrate_stable_decimals",
        "floats next to decimals become decimals, and types change while a plan is made",
    ),
    ("serrate_three_valued_in", "NOT IN (query) with NULL has rows"),
    ("serrate_text_lists", "lists as strings become lists of one element"),
    ("serrate_time_texts", "times as strings without seconds are errors"),
    ("serrate_chosen_tokens", "CASE and coalesce of tokens name no vocabulary"),
    ("serrate_union_tensors", "unions of tensors of several shapes claim the shape of the last"),
    ("serrate_unique_partitions", "windows by the key of a group and an aggregate of it fail"),
    ("serrate_unnest_dependencies", "keys of a group are taken for keys of its unnested rows"),
    ("serrate_unnested_names", "columns above unnest claim the order of others of their name"),
    ("serrate_unordered_keys", "grouping by constant lists of lists fails"),
    ("serrate_whole_float_groups", "TopK of groups tells zeros apart"),
    ("serrate_wide_frames", "frames that leave the type of their key include NULL"),
    ("serrate_window_keys", "windows over lists of lists and structs fail"),
    ("serrate_window_orders", "counts over sliding frames are not sorted"),
    ("serrate_volatile_between", "random operands of BETWEEN are evaluated twice"),
    ("serrate_volatile_coalesce", "random arguments of coalesce are evaluated twice"),
    ("serrate_dictionary_casts", "unused values of dictionaries fail"),
    ("serrate_cast_statistics", "extremes of casts are casts of the extremes of a file"),
    ("serrate_xor_pairs", "operands of `x ^ x` forget NULL"),
    ("serrate_yielding_joins", "joins without end cannot be interrupted"),
];

/// Parts of error messages with which one text of a statement may be refused although an equivalent
/// text is accepted, each with the reason.
const REFUSALS: &[(&str, &str)] = &[
    (
        "Physical plan does not support logical expression",
        "a query as a value where DataFusion makes no join of it",
    ),
    (
        "Cannot project plan column",
        "DataFusion fixes the types of a recursive query before it coerces a CASE in its first part",
    ),
    (
        "the correlated subqueries of this statement expand to more than",
        "nested correlated IN as values copies its query three times, up to a limit of plan nodes",
    ),
    (
        "Unsupported data type in sort merge join comparator",
        "DataFusion joins lists by hash alone, and a cut switches that off",
    ),
    (
        "Cannot infer common string type for string concat operation Dictionary(",
        "DataFusion appends only strings to dictionaries",
    ),
    ("but dates are not numbers", "a date is not compared or combined with an integer"),
    (
        "the elements of a list have no common type: [Date32, Int",
        "a list does not hold dates and integers",
    ),
];

/// Parts of messages of errors that a value causes. No statement of the generator `queries` may
/// cause one.
const FAILURES: &[&str] =
    &["Divide by zero", "Cast error", "Cannot cast string", "verflow", "panic"];

/// Returns the reason why a statement may be refused with an error, or `None` if it may not.
pub fn find_refusal(error: &str) -> Option<&'static str> {
    REFUSALS.iter().find(|(start, _)| error.contains(start)).map(|(_, reason)| *reason)
}

/// Returns whether an error message is about a value, or about a panic.
pub fn is_failure(error: &str) -> bool {
    find_refusal(error).is_none() && FAILURES.iter().any(|part| error.contains(part))
}
