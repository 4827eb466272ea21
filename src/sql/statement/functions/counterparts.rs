//! Suggests equivalent expressions for names of functions in other programs (DuckDB, pandas, ..).

/// Names of functions in DuckDB, Polars, pandas, numpy, awkward and Spark, the equivalent SQL for
/// values in rows, and the equivalent SQL for values in lists: `avg(x)` and `ragged_mean(x)` for
/// `nanmean`. An empty string means that there is no equivalent for rows, or none for lists.
///
/// The names have no prefix `ragged_`, `list_` or `array_`, unless the function with the prefix has
/// a meaning of its own. If an existing function has the same name, the entry applies only to
/// `ragged_NAME` and `list_NAME`. In the equivalent SQL, `x` and `y` are numbers, `s` and `k`
/// strings, `mask` booleans, `t`, `a` and `b` times, `time` a list of times and `at` one time or a
/// list of times. A test plans all equivalents.
type ForeignCounterpart = (&'static [&'static str], &'static str, &'static str);

const COUNTERPARTS: &[ForeignCounterpart] = &[
    // Functions that count values.
    (
        &[
            "value_counts",
            "histogram",
            "histogram_exact",
            "bincount",
            "counter",
            "frequency",
            "frequencies",
            "hist",
        ],
        "ragged_histogram_agg(x)",
        "ragged_zip('value', ragged_group_keys(x), 'count', ragged_lengths(ragged_group(x, x), 2))",
    ),
    (
        &["n_unique", "nunique", "count_distinct", "distinct_count", "count_unique"],
        "count(DISTINCT x)",
        "ragged_nunique(x)",
    ),
    (&["approx_n_unique", "approx_count_distinct"], "approx_distinct(s)", "ragged_nunique(x)"),
    (
        &["count_if", "countif", "count_true"],
        "count_if(x > 3)",
        "ragged_count(ragged_filter(x, x > 3))",
    ),
    (
        &["null_count", "count_nulls"],
        "count(*) - count(x)",
        "ragged_sum(ragged_cast(ragged_is_null(x), 'BIGINT'))",
    ),
    (&["len", "size", "num", "lengths", "lens", "n_elements"], "", "ragged_lengths(x)"),
    (&["nelements", "total_size"], "", "ragged_count(x)"),
    (&["count_star"], "count(*)", ""),
    (&["is_empty"], "", "len(x) = 0"),
    // Reductions.
    (&["average", "nanmean", "avg"], "avg(x)", "ragged_mean(x)"),
    (&["nansum", "sumkahan", "kahan_sum"], "sum(x)", "ragged_sum(x)"),
    (&["nanmedian"], "median(x)", "ragged_median(x)"),
    (&["nanmin", "amin"], "min(x)", "ragged_min(x)"),
    (&["nanmax", "amax"], "max(x)", "ragged_max(x)"),
    (
        &["std", "stdev", "nanstd", "stddev", "stddev_samp", "standard_deviation"],
        "stddev(x)",
        "ragged_std(x)",
    ),
    (&["stddev_pop", "std_pop", "pstdev"], "stddev_pop(x)", "ragged_std(x, NULL, 0)"),
    (&["variance", "nanvar", "var_samp"], "var(x)", "ragged_var(x)"),
    (&["var_pop", "variance_pop", "pvariance"], "var_pop(x)", "ragged_var(x, NULL, 0)"),
    (
        &[
            "quantile",
            "percentile",
            "nanquantile",
            "nanpercentile",
            "quantile_cont",
            "quantile_disc",
            "percentile_cont",
            "approx_quantile",
            "approx_percentile",
            "percentile_approx",
            "reservoir_quantile",
        ],
        "quantile_cont(x, 0.9)",
        "ragged_quantile(x, 0.9)",
    ),
    (&["percentile_disc"], "quantile_disc(x, 0.9)", "ragged_quantile(x, 0.9)"),
    (
        &["iqr"],
        "quantile_cont(x, 0.75) - quantile_cont(x, 0.25)",
        "ragged_quantile(x, 0.75) - ragged_quantile(x, 0.25)",
    ),
    (&["mad", "median_absolute_deviation"], "", "ragged_median(abs(x - ragged_median(x)))"),
    (&["ptp"], "max(x) - min(x)", "ragged_max(x) - ragged_min(x)"),
    (&["mode"], "mode(x)", "ragged_mode(x)"),
    (&["product"], "ragged_prod(list(x))", "ragged_prod(x)"),
    (&["sem"], "sem(x)", "ragged_std(x) / sqrt(ragged_count(x))"),
    (&["geomean", "geometric_mean", "gmean"], "geomean(x)", "exp(ragged_mean(ln(x)))"),
    (
        &["weighted_mean", "weighted_avg", "weighted_average", "wavg"],
        "sum(x * y) / sum(y)",
        "ragged_sum(x * y) / ragged_sum(y)",
    ),
    (&["norm", "l2_norm"], "sqrt(sum(x * x))", "sqrt(ragged_sum(x * x))"),
    (
        &["zscore", "z_score", "standardize"],
        "(x - avg(x) OVER ()) / stddev(x) OVER ()",
        "(x - ragged_mean(x)) / ragged_std(x)",
    ),
    (
        &["group_concat", "listagg", "str_concat", "string_agg", "str_join"],
        "string_agg(s, ',')",
        "array_to_string(s, ',')",
    ),
    (&["bool_or", "any_true"], "bool_or(x > 3)", "ragged_any(x > 3)"),
    (&["bool_and", "all_true", "every"], "bool_and(x > 3)", "ragged_all(x > 3)"),
    (&["arg_max", "max_by"], "arg_max(x, y)", "ragged_at(x, ragged_argmax(y))"),
    (&["arg_min", "min_by"], "arg_min(x, y)", "ragged_at(x, ragged_argmin(y))"),
    (&["correlation", "pearson", "pearsonr", "corrcoef"], "corr(x, y)", "ragged_corr(x, y)"),
    (
        &["cov", "covar", "covar_samp", "covariance"],
        "covar_samp(x, y)",
        "ragged_corr(x, y) * ragged_std(x) * ragged_std(y)",
    ),
    (
        &["slope", "trend", "linregress", "linear_regression", "regression", "polyfit"],
        "regr_slope(y, x)",
        "ragged_regr_slope(y, x)",
    ),
    (&["dot", "vecdot", "dot_product", "inner_product"], "sum(x * y)", "ragged_sum(x * y)"),
    (&["cosine_similarity"], "", "ragged_sum(ragged_normalize(x) * ragged_normalize(y))"),
    (&["cosine_distance"], "", "1 - ragged_sum(ragged_normalize(x) * ragged_normalize(y))"),
    (
        &["entropy"],
        "",
        "-ragged_sum(ragged_map(ragged_lengths(ragged_group(x, x), 2) / ragged_count(x)::DOUBLE, lambda p: p * log2(p)))",
    ),
    (&["approx_top_k"], "ragged_histogram_agg(x, 3)", ""),
    (&["arbitrary"], "any_value(x)", "ragged_first(x)"),
    // Functions that select, sort or combine list elements.
    (&["list_select", "array_select", "list_gather", "array_gather"], "", "ragged_take(x, [0, 2])"),
    (&["list_get", "array_get", "nth", "item"], "", "ragged_at(x, 0)"),
    (&["firsts"], "", "ragged_first(x)"),
    (&["grade_up", "arg_sort"], "", "ragged_argsort(x)"),
    (&["reverse_sort", "sort_desc"], "", "ragged_sort(x, 'desc')"),
    (&["sort_by"], "list(x ORDER BY y)", "ragged_take(x, ragged_argsort(y))"),
    (&["gather_every"], "", "ragged_slice(x, NULL, NULL, 2)"),
    (
        &["top_k", "nlargest"],
        "list(x ORDER BY x DESC NULLS LAST)[:3]",
        "ragged_head(ragged_sort(x, 'desc'), 3)",
    ),
    (&["bottom_k", "nsmallest"], "list(x ORDER BY x)[:3]", "ragged_head(ragged_sort(x), 3)"),
    (&["list_where", "array_where", "boolean_mask", "compress"], "", "ragged_filter(x, mask)"),
    (&["nonzero", "flatnonzero", "arg_true", "argwhere"], "", "ragged_indices_from_mask(mask)"),
    (&["local_index"], "", "ragged_coords(x, -1)"),
    (&["drop_duplicates"], "", "ragged_unique(x)"),
    (&["distinct"], "", "ragged_unique(x)"),
    (&["index_of"], "", "list_position(x, 1)"),
    (&["contains", "list_has_value"], "", "list_contains(x, 1)"),
    (&["concat", "concatenate", "hstack"], "", "array_concat(x, y)"),
    (&["union1d", "set_union"], "", "array_union(x, y)"),
    (&["intersect1d", "set_intersection"], "", "array_intersect(x, y)"),
    (&["setdiff1d", "set_difference"], "", "array_except(x, y)"),
    (&["singletons", "expand_dims"], "", "ragged_unsqueeze(x, 1)"),
    (&["ravel"], "", "ragged_flatten(x)"),
    (&["apply", "eval", "map_elements", "applymap"], "", "ragged_map(x, lambda v: v * 2)"),
    (&["implode", "collect_list"], "array_agg(x)", "ragged_nest_agg(x)"),
    (&["array_value"], "[1, 2]", ""),
    (&["struct_pack"], "{'a': 1}", ""),
    (&["map_from_entries"], "map([1, 2], ['a', 'b'])", ""),
    (&["pad_none", "rpad_and_clip", "pad_sequence"], "", "ragged_pad(x, [3])"),
    (&["to_regular", "to_numpy", "to_dense", "to_array"], "", "densify(x, [4])"),
    // Functions of missing values (NULL and NaN).
    (&["is_none", "is_null", "isna", "isnull", "is_missing"], "x IS NULL", "ragged_is_null(x)"),
    (&["is_not_null", "notna", "notnull"], "x IS NOT NULL", "ragged_not(ragged_is_null(x))"),
    (&["is_nan"], "isnan(x)", "ragged_is_nan(x)"),
    (&["is_not_nan"], "NOT isnan(x)", "ragged_not(ragged_is_nan(x))"),
    (&["is_infinite"], "isinf(x)", "isinf(x)"),
    (&["fill_none", "fillna", "fill_null"], "coalesce(x, 0)", "ragged_fill_null(x, 0)"),
    (
        &["nan_to_none", "nan_to_null"],
        "if(isnan(x), NULL, x)",
        "ragged_where(ragged_is_nan(x), NULL, x)",
    ),
    (&["mask"], "if(mask, x, NULL)", "ragged_where(mask, x, NULL)"),
    (&["isclose", "is_close"], "abs(x - y) <= 1e-8", "ragged_abs(x - y) <= 1e-8"),
    (
        &["run_lengths", "rle"],
        "",
        "ragged_lengths(ragged_group(x, ragged_cumsum(ragged_cast(ragged_fill_null(ragged_ne(x, ragged_shift(x, 1)), false), 'INT'))), 2)",
    ),
    (&["fill_nan", "nan_to_num"], "nanvl(x, 0)", "ragged_where(ragged_is_nan(x), 0, x)"),
    (&["coalesce"], "coalesce(x, y)", "ragged_where(ragged_is_null(x), y, x)"),
    (&["drop_none", "dropna", "drop_nulls"], "", "ragged_filter(x, ragged_not(ragged_is_null(x)))"),
    (&["drop_nans"], "", "ragged_filter(x, ragged_not(ragged_is_nan(x)))"),
    (
        &["forward_fill", "ffill", "locf", "na_locf", "carry_forward"],
        "last_value(x IGNORE NULLS) OVER (ORDER BY t)",
        "ragged_ffill(x)",
    ),
    (&["backward_fill", "bfill", "nocb"], "", "ragged_bfill(x)"),
    // Functions of neighboring rows or elements.
    (
        &["cum_sum", "cumsum", "prefix_sum", "running_sum"],
        "sum(x) OVER (ORDER BY t)",
        "ragged_cumsum(x)",
    ),
    (&["cum_max", "cummax"], "max(x) OVER (ORDER BY t)", "ragged_cummax(x)"),
    (&["cum_min", "cummin"], "min(x) OVER (ORDER BY t)", "ragged_cummin(x)"),
    (&["cum_prod"], "", "ragged_cumprod(x)"),
    (
        &["cum_count"],
        "count(x) OVER (ORDER BY t)",
        "ragged_cumsum(ragged_cast(ragged_not(ragged_is_null(x)), 'BIGINT'))",
    ),
    (
        &["cummean", "cum_mean", "expanding_mean"],
        "avg(x) OVER (ORDER BY t)",
        "ragged_window(x, time, time, 'mean')",
    ),
    (
        &["bigrams", "n_gram", "n_grams", "ngrams", "windows", "windowed", "sliding_window"],
        "",
        "ragged_ngrams(x, 2)",
    ),
    (&["diff", "differences", "ediff1d"], "x - lag(x) OVER (ORDER BY t)", "ragged_diff(x)"),
    (
        &["pct_change", "percent_change"],
        "x / lag(x) OVER (ORDER BY t) - 1",
        "ragged_diff(x) / ragged_shift(x, 1)",
    ),
    (&["lag", "shift_and_fill"], "lag(x) OVER (ORDER BY t)", "ragged_shift(x, 1)"),
    (&["lead"], "lead(x) OVER (ORDER BY t)", "ragged_shift(x, -1)"),
    (&["roll"], "", "ragged_tail(x, 1) || ragged_head(x, -1)"),
    (&["rolling_std", "moving_std"], "", "ragged_std(ragged_ngrams(x, 3), -1)"),
    (&["rolling_var", "moving_var"], "", "ragged_var(ragged_ngrams(x, 3), -1)"),
    (
        &["window_std", "rolling_std_by"],
        "",
        "ragged_std(ragged_window(x, time, time, before => INTERVAL '30 days'), -1)",
    ),
    (&["join_asof", "merge_asof", "asof_join", "last_observation"], "", "ragged_asof(x, time, at)"),
    (
        &["time_since", "time_since_last", "since_last"],
        "t - lag(t) OVER (ORDER BY t)",
        "at - ragged_asof(time, time, at)",
    ),
    // Functions that divide values into groups or classes.
    (
        &["resample", "group_by_dynamic"],
        "GROUP BY date_trunc('day', t)",
        "ragged_group(x, date_trunc('day', time))",
    ),
    (&["group_by", "groupby"], "GROUP BY k", "ragged_group(x, k)"),
    (
        &["pivot", "pivot_table", "crosstab"],
        "sum(x) FILTER (WHERE k = 'a')",
        "ragged_sum(ragged_group(x, k, ['a', 'b']), -1)",
    ),
    (
        &["digitize", "cut", "width_bucket", "bucketize", "searchsorted", "search_sorted"],
        "ragged_searchsorted([0, 10, 20], x)",
        "ragged_searchsorted([0, 10, 20], x)",
    ),
    (&["qcut"], "ntile(4) OVER (ORDER BY x)", ""),
    (
        &["multi_hot", "multihot", "one_hot", "get_dummies", "to_dummies"],
        "CASE WHEN s = 'a' THEN 1 ELSE 0 END",
        "ragged_cast(ragged_fill_null(ragged_isin(['a', 'b'], s), false), 'INT')",
    ),
    (&["clip", "clamp"], "greatest(least(x, 10), 0)", "ragged_minimum(ragged_maximum(x, 0), 10)"),
    (&["isin", "in1d", "is_in"], "x IN (1, 2)", "ragged_isin(x, [1, 2])"),
    (&["is_between"], "x BETWEEN 0 AND 10", "ragged_between(x, 0, 10)"),
    (
        &["iif", "iff", "if_else", "when"],
        "CASE WHEN x > 1 THEN 1 ELSE 0 END",
        "ragged_where(x > 1, 1, 0)",
    ),
    // Numbers and strings.
    (&["square"], "x * x", "x * x"),
    (&["plus"], "x + y", "x + y"),
    (&["subtract", "minus"], "x - y", "x - y"),
    (&["multiply", "times"], "x * y", "x * y"),
    (&["divide", "true_divide", "truediv"], "x / y", "x / y"),
    (&["fmod"], "mod(x, y)", "ragged_mod(x, y)"),
    (&["greatest_common_divisor"], "gcd(12, 18)", ""),
    (&["least_common_multiple"], "lcm(4, 6)", ""),
    (&["log1p"], "ln(1 + x)", "ln(1 + x)"),
    (&["expm1"], "exp(x) - 1", "exp(x) - 1"),
    (&["arccos"], "acos(x)", "acos(x)"),
    (&["arcsin"], "asin(x)", "asin(x)"),
    (&["arctan"], "atan(x)", "atan(x)"),
    (&["truncate"], "trunc(x)", "trunc(x)"),
    (&["to_string"], "x::VARCHAR", "x::VARCHAR[]"),
    (&["astype", "values_astype"], "CAST(x AS INT)", "ragged_cast(x, 'INT')"),
    (&["sigmoid"], "1 / (1 + exp(-x))", ""),
    (&["linspace", "arange", "sequence"], "generate_series(1, 5)", ""),
    (&["typeof"], "arrow_typeof(x)", "arrow_typeof(x)"),
    (&["gen_random_uuid", "newid"], "uuid()", ""),
    (&["ord"], "ascii(s)", ""),
    (&["hex"], "encode(s, 'hex')", ""),
    (&["unhex", "from_hex"], "decode(s, 'hex')", ""),
    (&["to_base64", "base64"], "encode(s, 'base64pad')", ""),
    (&["from_base64"], "decode(s, 'base64pad')", ""),
    (&["glob"], "s LIKE 'a%'", "s LIKE 'a%'"),
    (&["startswith"], "starts_with(s, 'a')", "ragged_starts_with(s, 'a')"),
    (&["endswith", "ends_with"], "ends_with(s, 'a')", "s LIKE '%a'"),
    (&["str_contains"], "contains(s, 'a')", "s LIKE '%a%'"),
    (&["format", "printf"], "concat(s, ' = ', x)", ""),
    (&["to_uppercase", "upper"], "upper(s)", "upper(s)"),
    (&["to_lowercase", "lower"], "lower(s)", "lower(s)"),
    (&["to_titlecase", "title"], "initcap(s)", "initcap(s)"),
    (&["len_chars"], "length(s)", ""),
    (&["strip", "strip_chars", "trim"], "trim(s)", "trim(s)"),
    (&["str_replace", "replace", "replace_all"], "replace(s, 'a', 'b')", "replace(s, 'a', 'b')"),
    (&["regexp_replace"], "regexp_replace(s, 'a', 'b')", "regexp_replace(s, 'a', 'b')"),
    (
        &["regexp_extract", "regex_extract", "str_extract"],
        "regexp_extract(s, 'a')",
        "regexp_extract(s, 'a')",
    ),
    (&["extract_all"], "regexp_extract_all(s, 'a')", "regexp_extract_all(s, 'a')"),
    (&["rlike"], "regexp_like(s, 'a')", "ragged_matches(s, 'a')"),
    (&["count_matches"], "regexp_count(s, 'a')", "regexp_count(s, 'a')"),
    (&["split_part"], "split_part(s, ',', 1)", "split_part(s, ',', 1)"),
    (&["substr", "substring"], "substr(s, 1, 2)", "substr(s, 1, 2)"),
    (&["zfill"], "lpad(s, 5, '0')", "lpad(s, 5, '0')"),
    // Dates and times.
    (
        &["strptime", "try_strptime", "str_to_date", "to_datetime"],
        "to_timestamp(s, '%Y-%m-%d')::TIMESTAMP",
        "to_timestamp(s, '%Y-%m-%d')::TIMESTAMP[]",
    ),
    (&["age"], "a - b", "time - at"),
    (&["ago"], "now() - INTERVAL '1 day'", ""),
    (&["date_add", "dateadd", "offset_by"], "t + INTERVAL '1 day'", "time + INTERVAL '1 day'"),
    (&["add_months"], "t + INTERVAL '1 month'", "time + INTERVAL '1 month'"),
    (
        &["date_diff", "datediff", "days_between", "difftime"],
        "date_diff('day', a, b)",
        "date_diff('day', time, at)",
    ),
    (
        &["date_sub", "datesub", "timestampdiff", "timestamp_diff"],
        "date_sub('day', a, b)",
        "date_sub('day', time, at)",
    ),
    (&["months_between", "months"], "date_diff('month', a, b)", "date_diff('month', time, at)"),
    (&["years_between", "years"], "date_diff('year', a, b)", "date_diff('year', time, at)"),
    (
        &["days", "total_days"],
        "date_diff('day', a, b)",
        "extract(epoch FROM ragged_diff(time)) / 86400",
    ),
    (
        &["hours", "total_hours"],
        "date_diff('hour', a, b)",
        "extract(epoch FROM ragged_diff(time)) / 3600",
    ),
    (
        &["minutes", "total_minutes"],
        "date_diff('minute', a, b)",
        "extract(epoch FROM ragged_diff(time)) / 60",
    ),
    (
        &["seconds", "total_seconds"],
        "date_diff('second', a, b)",
        "extract(epoch FROM ragged_diff(time))",
    ),
    (
        &["total_milliseconds"],
        "date_diff('millisecond', a, b)",
        "extract(epoch FROM ragged_diff(time)) * 1000",
    ),
    (
        &["unix_timestamp", "to_unix_timestamp", "epoch", "epoch_seconds", "epoch_s"],
        "epoch(t)",
        "epoch(time)",
    ),
    (&["century"], "century(t)", "century(time)"),
    (&["decade"], "decade(t)", "decade(time)"),
    (&["millennium"], "millennium(t)", "millennium(time)"),
    (&["millisecond"], "millisecond(t)", "millisecond(time)"),
    (&["microsecond"], "microsecond(t)", "microsecond(time)"),
    (&["nanosecond"], "extract(nanosecond FROM t)", "extract(nanosecond FROM time)"),
    (&["isodow"], "isodow(t)", "isodow(time)"),
    (&["isoyear", "iso_year"], "isoyear(t)", "isoyear(time)"),
    (&["yearweek"], "isoyear(t) * 100 + week(t)", "isoyear(time) * 100 + week(time)"),
    (&["julian"], "epoch(t) / 86400 + 2440588", "epoch(time) / 86400 + 2440588"),
    (&["to_milliseconds"], "to_seconds(x / 1000)", ""),
    (&["to_microseconds"], "to_seconds(x / 1000000)", ""),
    (&["to_quarters"], "to_months(3)", ""),
    (&["to_decades"], "to_years(10)", ""),
    (&["to_centuries"], "to_years(100)", ""),
    (&["year"], "year(t)", "year(time)"),
    (&["quarter"], "quarter(t)", "quarter(time)"),
    (&["month"], "month(t)", "month(time)"),
    (&["week", "week_of_year", "iso_week"], "week(t)", "week(time)"),
    (&["day", "day_of_month"], "day(t)", "day(time)"),
    (&["hour"], "hour(t)", "hour(time)"),
    (&["minute"], "minute(t)", "minute(time)"),
    (&["second"], "second(t)", "second(time)"),
    (&["day_of_week", "dayofweek", "weekday"], "dayofweek(t)", "dayofweek(time)"),
    (&["day_of_year", "dayofyear", "ordinal_day"], "dayofyear(t)", "dayofyear(time)"),
    (&["day_name", "dayname"], "dayname(t)", "dayname(time)"),
    (&["month_name", "monthname"], "monthname(t)", "monthname(time)"),
    (
        &["date_trunc", "trunc_date", "floor_date", "month_start"],
        "date_trunc('month', t)",
        "date_trunc('month', time)",
    ),
    (&["month_end", "eomonth"], "last_day(t)", "last_day(time)"),
    (&["days_in_month"], "day(last_day(t))", "day(last_day(time))"),
    (&["convert_time_zone", "replace_time_zone"], "t AT TIME ZONE 'Europe/Berlin'", ""),
    (&["date_part"], "date_part('year', t)", "date_part('year', time)"),
    (&["strftime"], "strftime(t, '%Y-%m')", "strftime(time, '%Y-%m')"),
    (&["time_bucket"], "time_bucket(INTERVAL '7 days', t)", "time_bucket(INTERVAL '7 days', time)"),
    (&["getdate", "sysdate", "get_current_timestamp", "transaction_timestamp"], "now()", ""),
    (&["curdate"], "today()", ""),
];

/// Names of functions in other programs, with advice where no single expression replaces them.
const ADVICE: &[(&[&str], &str)] = &[
    (&["aggregate", "aggr"], "the reduction of the list, such as ragged_sum(x) or ragged_mean(x)"),
    (&["reduce", "fold"], "a reduction such as ragged_sum(x), or ragged_cumsum(x)"),
    (
        &["cartesian", "combinations", "argcartesian"],
        "FROM t, unnest(t.x) AS a (v), unnest(t.x) AS b (w) for all pairs, or ragged_ngrams(x, 2) for neighbours",
    ),
    (
        &["columns"],
        "the names of the columns, or the star without some of them: SELECT * EXCLUDE (a)",
    ),
    (
        &["interpolate", "interp"],
        "(ragged_ffill(x) + ragged_bfill(x)) / 2 for the mean of the values before and after, or ragged_ffill(x) for the value before",
    ),
    (
        &["ewm_mean", "ewma"],
        "ragged_rolling(x, 3, 'mean'), a moving average of equal weights; a recursive query can compute exponential weights",
    ),
    (&["describe"], "DESCRIBE SELECT .."),
    (&["explode"], "unnest(x), or FROM ragged_explode('t')"),
    (
        &["skew", "skewness"],
        "ragged_mean(((x - ragged_mean(x)) / ragged_std(x, NULL, 0)) ** 3) for the skewness of a list as a population",
    ),
    (
        &["kurt", "kurtosis", "kurtosis_pop"],
        "ragged_mean(((x - ragged_mean(x)) / ragged_std(x, NULL, 0)) ** 4) - 3 for the excess kurtosis of a list as a population",
    ),
    (
        &["unpivot", "melt"],
        "UNION ALL: SELECT 'a' AS name, a AS value FROM t UNION ALL SELECT 'b', b FROM t",
    ),
    (
        &["json_extract", "json_extract_string", "json_value", "json_array_length", "from_json"],
        "s['a'] for a field of a struct: FROM 'x.json' reads objects as structs, but text in JSON is not parsed",
    ),
    (&["sample", "shuffle"], "ORDER BY random() LIMIT 10"),
    (&["parquet_scan"], "FROM read_parquet('x.parquet')"),
    (&["read_csv_auto"], "FROM read_csv('x.csv')"),
    (&["struct_extract"], "s['a']"),
];

/// Reductions in other programs, each with the name of the same reduction in `ragged_rolling`,
/// `ragged_window` and after `ragged_`.
const REDUCTIONS: [(&str, &str); 13] = [
    ("any", "any"),
    ("all", "all"),
    ("average", "mean"),
    ("avg", "mean"),
    ("count", "count"),
    ("first", "first"),
    ("last", "last"),
    ("max", "max"),
    ("mean", "mean"),
    ("median", "median"),
    ("min", "min"),
    ("quantile", "quantile"),
    ("sum", "sum"),
];

pub(super) const LIST_PREFIXES: [&str; 3] = ["ragged_", "list_", "array_"];

/// Modules of Python whose functions users call in SQL by mistake, as in `ak.sum(x)`.
const MODULES: [&str; 6] = ["ak.", "awkward.", "np.", "numpy.", "pd.", "pl."];

pub(super) fn is_call_of_module(name: &str) -> bool {
    MODULES.iter().any(|module| name.starts_with(module))
}

/// Returns what to write instead of the function `name` of another program, or `None` if its
/// meaning is not known. For a name with a prefix such as `list_` or `ak.`, returns only the SQL
/// for lists.
/// `is_function` tests if a function exists.
pub(crate) fn find_counterpart(name: &str, is_function: impl Fn(&str) -> bool) -> Option<String> {
    let name = name.to_lowercase();
    let mut prefixes = LIST_PREFIXES.iter().chain(&MODULES);
    let stem = prefixes.find_map(|prefix| name.strip_prefix(prefix));
    if let Some(found) = find_form(&name, stem.is_some()) {
        return Some(found);
    }
    let stem = stem?;
    find_form(stem, true).or_else(|| {
        // `list_mean` and `array_std` have the meaning of `ragged_mean` and `ragged_std`, which are
        // therefore suggested.
        let ours = format!("ragged_{stem}");
        is_function(&ours).then(|| format!("{ours}(..)"))
    })
}

/// Returns what to write instead of the function `name`, or `None` for an unknown name. If there is
/// SQL for rows and SQL for lists, returns both, or only the SQL for lists if `of_lists` is true.
fn find_form(name: &str, of_lists: bool) -> Option<String> {
    let known = COUNTERPARTS.iter().find(|(names, ..)| names.contains(&name));
    if let Some((_, rows, lists)) = known {
        return Some(match (*rows, *lists) {
            (form, "") | ("", form) => form.to_owned(),
            (_, lists) if of_lists => lists.to_owned(),
            (rows, lists) if rows == lists => rows.to_owned(),
            (rows, lists) => format!("{rows} for rows, or {lists} for a list"),
        });
    }
    if let Some((_, text)) = ADVICE.iter().find(|(names, _)| names.contains(&name)) {
        return Some((*text).to_owned());
    }
    let (kind, how) = name.split_once('_')?;
    // `rolling_mean_by` of Polars moves by a span of time, as `ragged_window` does.
    let (kind, how) = match how.strip_suffix("_by") {
        Some(how) if kind == "rolling" => ("window", how),
        _ => (kind, how),
    };
    // `count_before` and `any_within` have the reduction first.
    let (kind, how) = match how {
        "before" | "within" => ("before", kind),
        _ => (kind, how),
    };
    let (_, how) = REDUCTIONS.iter().find(|(known, _)| *known == how)?;
    let quantile = if *how == "quantile" { ", q => 0.9" } else { "" };
    match kind {
        "rolling" | "moving" => Some(format!("ragged_rolling(x, 3, '{how}'{quantile})")),
        "window" => Some(format!(
            "ragged_window(x, time, time, '{how}', before => INTERVAL '30 days'{quantile})"
        )),
        "before" => Some(format!(
            "ragged_window(x, time, at, '{how}', before => INTERVAL '30 days'{quantile})"
        )),
        "group" | "grouped" => Some(match *how {
            "any" | "all" => format!("ragged_{how}(ragged_group(x > 3, k), -1)"),
            "quantile" => "ragged_quantile(ragged_group(x, k), 0.9, -1)".to_owned(),
            how => format!("ragged_{how}(ragged_group(x, k), -1)"),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_have_one_meaning() {
        let of_forms = COUNTERPARTS.iter().flat_map(|(names, ..)| *names);
        let of_advice = ADVICE.iter().flat_map(|(names, _)| *names);
        let mut seen = HashSet::new();
        for name in of_forms.chain(of_advice) {
            assert!(seen.insert(name), "{name} has two entries");
            assert!(name.to_lowercase() == **name, "{name} is not in lower case");
        }
    }

    /// An entry whose name is that of an existing function, such as `coalesce`, applies only to
    /// calls with a prefix, such as `list_coalesce`. Such an entry therefore needs SQL for lists.
    #[test]
    fn names_of_functions_have_forms_for_lists() {
        let state = crate::sql::session().state();
        for (names, _, lists) in COUNTERPARTS {
            for name in *names {
                let exists = state.scalar_functions().contains_key(*name)
                    || state.aggregate_functions().contains_key(*name)
                    || state.window_functions().contains_key(*name);
                assert!(!exists || !lists.is_empty(), "{name} is a function and has no list form");
            }
        }
    }

    #[tokio::test]
    async fn every_form_is_planned() {
        let ctx = crate::sql::session();
        for table in [
            "CREATE TABLE of_rows AS SELECT 1.0::DOUBLE AS x, 2.0::DOUBLE AS y, 'a' AS s, 'b' AS k, true AS mask, TIMESTAMP '2020-01-01' AS t, TIMESTAMP '2020-01-01' AS a, TIMESTAMP '2020-01-01' AS b",
            "CREATE TABLE of_lists AS SELECT [1.0::DOUBLE] AS x, [2.0::DOUBLE] AS y, ['a'] AS s, ['b'] AS k, [true] AS mask, [TIMESTAMP '2020-01-01'] AS time, TIMESTAMP '2020-01-01' AS at",
        ] {
            crate::sql::sql(&ctx, table).await.unwrap();
        }
        let mut wrong = Vec::new();
        let mut forms = Vec::new();
        for (names, rows, lists) in COUNTERPARTS {
            assert!(!rows.is_empty() || !lists.is_empty(), "{names:?} has no form");
            forms.extend([("of_rows", (*rows).to_owned()), ("of_lists", (*lists).to_owned())]);
        }
        for (name, _) in REDUCTIONS {
            let names = ["rolling_N", "window_N", "group_N", "N_before"];
            for name in names.map(|n| n.replace('N', name)) {
                let form = find_form(&name, true);
                forms.push(("of_lists", form.unwrap_or_else(|| panic!("{name} has no form"))));
            }
        }
        for (table, form) in forms.into_iter().filter(|(_, form)| !form.is_empty()) {
            let sql = match form.starts_with("GROUP BY") {
                true => format!("SELECT count(*) FROM {table} {form}"),
                false => format!("SELECT {form} FROM {table}"),
            };
            // The reductions 'any' and 'all' take the booleans `mask`; all others take the numbers
            // `x`.
            let sql = match form.contains("'any'") || form.contains("'all'") {
                true => sql.replace("(x, time", "(mask, time").replace("(x, 3", "(mask, 3"),
                false => sql,
            };
            let planned = async {
                let frame = crate::sql::sql(&ctx, &sql).await?;
                frame.create_physical_plan().await
            };
            if let Err(e) = planned.await {
                wrong.push(format!("{sql}: {e}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn forms_are_found_by_meaning() {
        let ours = ["ragged_mean", "ragged_std"];
        let form = |name: &str| find_counterpart(name, |function| ours.contains(&function));
        for (name, expected) in [
            ("list_mean", "ragged_mean(..)"),
            ("ARRAY_STD", "ragged_std(x)"),
            ("list_mode", "ragged_mode(x)"),
            ("ak.mean", "ragged_mean(..)"),
            ("ak.num", "ragged_lengths(x)"),
            ("np.nan_to_num", "ragged_where(ragged_is_nan(x), 0, x)"),
            ("ragged_variance", "ragged_var(x)"),
            ("variance", "var(x) for rows, or ragged_var(x) for a list"),
            ("list_where", "ragged_filter(x, mask)"),
            ("ragged_forward_fill", "ragged_ffill(x)"),
            ("ragged_rolling_sum", "ragged_rolling(x, 3, 'sum')"),
            ("moving_average", "ragged_rolling(x, 3, 'mean')"),
            ("rolling_quantile", "ragged_rolling(x, 3, 'quantile', q => 0.9)"),
            (
                "ragged_window_any",
                "ragged_window(x, time, time, 'any', before => INTERVAL '30 days')",
            ),
            (
                "rolling_mean_by",
                "ragged_window(x, time, time, 'mean', before => INTERVAL '30 days')",
            ),
            ("group_mean", "ragged_mean(ragged_group(x, k), -1)"),
            ("count_before", "ragged_window(x, time, at, 'count', before => INTERVAL '30 days')"),
            ("list_trend", "ragged_regr_slope(y, x)"),
            ("log1p", "ln(1 + x)"),
            ("list_is_empty", "len(x) = 0"),
            ("ragged_year", "year(time)"),
            (
                "list_aggregate",
                "the reduction of the list, such as ragged_sum(x) or ragged_mean(x)",
            ),
        ] {
            assert_eq!(form(name).as_deref(), Some(expected), "{name}");
        }
        for name in
            ["frobnicate", "ak.frobnicate", "ragged_frobnicate", "rolling_stone", "sum_any", ""]
        {
            assert_eq!(form(name), None, "{name}");
        }
    }
}
