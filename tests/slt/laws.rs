//! Laws that hold for every scalar function.

use std::sync::{Arc, LazyLock};

use super::run;
use datafusion::arrow::array::{Array, ArrayRef, new_empty_array, new_null_array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};
use serrate::datafusion;

/// Returns calls with constant arguments: those of [`CALLS`], and for functions that these do not
/// call, the calls on their cards.
pub(crate) fn list_calls() -> &'static [String] {
    static ALL: LazyLock<Vec<String>> = LazyLock::new(|| {
        let mut calls: Vec<String> = CALLS.iter().map(ToString::to_string).collect();
        for f in serrate::functions::all_scalar() {
            if !CALLS.iter().any(|call| split_arguments(call).0 == f.name()) {
                calls.extend(constant_calls(&super::read_card(f.name()), f.name()));
            }
        }
        calls
    });
    &ALL
}

/// Returns the calls of the function `name` in a text whose arguments are all literals.
fn constant_calls(text: &str, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, start) in text.match_indices(&format!("{name}(")) {
        let mut depth = 0;
        let inside = text[at + start.len() - 1..].char_indices().find(|(_, c)| {
            depth += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            depth == 0
        });
        let Some((end, _)) = inside else { continue };
        let call = &text[at..at + start.len() + end];
        let outside: String = call[start.len()..].split('\'').step_by(2).collect();
        let mut words = outside.split(|c: char| !c.is_alphanumeric() && c != '_');
        let literal = |word: &str| {
            matches!(word, "NULL" | "true" | "false")
                || word.chars().next().is_none_or(|c| c.is_ascii_digit())
        };
        if words.all(literal) {
            found.push(call.to_owned());
        }
    }
    found
}

/// Calls of functions whose cards do not show enough of them.
const CALLS: &[&str] = &[
    "ragged_shape([[1, 2], [], [3]])",
    "ragged_max_shape([[1, 2], [], [3]])",
    "ragged_lengths([[1, 2], NULL, [3]], 2)",
    "ragged_count([[1, NULL], [], [3]])",
    "ragged_flatten([[1, NULL], [], [3]])",
    "ragged_slice([1, 2, 3, 4], 1, NULL, 2)",
    "ragged_slice([[1, 2], [3]], -1, NULL, -1, 2)",
    "ragged_head([1, 2, 3], 2)",
    "ragged_tail([[1, 2], [3]], 1, 2)",
    "ragged_get([[1, 2], [3]], '1:, 0')",
    "ragged_get([[1, 2], [3]], '-1, -1')",
    "ragged_at([[1, 2], [3]], 0, 1)",
    "dok_get([[1, 2], [3]], 7, 1)",
    "ragged_at_or([[1, 2], [3]], 9, 7, 1)",
    "ragged_filter([[1, 2], [3]], [[true, false], [true]])",
    "ragged_compress([[1, 2], [3]], [[true, false], [true]])",
    "ragged_searchsorted([1, 3, 5], 3, 'right')",
    "ragged_sum([[1, 2], [3]], -1)",
    "ragged_prod([1, 2, 3])",
    "ragged_mean([[1, 2], []], -1)",
    "ragged_min([[1, 2], []], 1)",
    "ragged_max([1.5, NULL])",
    "ragged_any([[true], []], -1)",
    "ragged_all([[true], [NULL]])",
    "ragged_add([1, 2], 3)",
    "ragged_sub(3, [1, 2])",
    "ragged_mul([1, 2], [3, 4])",
    "ragged_div([[7], [8]], [2, 3])",
    "ragged_mod([7, NULL], 4)",
    "ragged_eq([1, 2], 2)",
    "ragged_ne([1, 2], [1, 1])",
    "ragged_lt([1.5, 2.5], 2)",
    "ragged_le([1, 2], 2)",
    "ragged_gt(['a', 'b'], 'a')",
    "ragged_ge([1, 2], 2)",
    "ragged_and([true, NULL], false)",
    "ragged_or([true, NULL], [false, true])",
    "ragged_neg([1, NULL])",
    "ragged_not([true, NULL])",
    "ragged_like([['LAB//1', 'DX//2'], [NULL]], 'LAB//%')",
    "ragged_like(['LAB//1'], NULL)",
    "ragged_ilike(['LAB//1', 'DX//2'], 'lab//_')",
    "ragged_matches(['LAB//1', 'DX//2'], '^lab', 'i')",
    "ragged_matches([['LAB//1'], ['DX//2']], '//2$')",
    "ragged_starts_with(['LAB//1', 'DX//2'], 'DX')",
    "ragged_isin([['LAB//1', 'DX//2'], [NULL]], ['DX//2', 'DX//3'])",
    "ragged_isin([1, 2, NULL], [2, NULL])",
    "ragged_encode([['DX//E11.9', 'LAB//new'], [NULL]], 'tests/data/tiny-codes')",
    "ragged_decode([[1, 0], [NULL, 4]], 'tests/data/tiny-codes')",
    "descendants(['ICD10CM/E11', 'LAB//HbA1c'], 'tests/data/tiny-codes')",
    "descendants('ICD10CM/E11.6', 'tests/data/tiny-codes')",
    "ragged_lookup([['DX//E11.9', 'LAB//new'], [NULL]], 'tests/data/tiny-codes', 'code', 'description')",
    "ragged_bin([1.0, 6.0, NULL], ['LAB//HbA1c', 'LAB//HbA1c', 'x'], 'tests/data/tiny-codes/cuts.parquet')",
    "dok_get('tests/data/tiny-dok/m.safetensors', 2, 3)",
    "dok_get('tests/data/tiny-dok/m.safetensors', 2, [2, NULL, 3], -1)",
    "dok_get('tests/data/tiny-dok/names.safetensors', 3, 'none')",
    "dok_contains('tests/data/tiny-dok/weights.safetensors', 7, ['DX//E11.9', NULL])",
    "densify([[1, 2, 3], [4]], [2, 2], -1, 'left')",
    "densify_mask([[1, 2, 3], [4]], [2, 2])",
    "densify_valid([1, NULL], [3])",
    "ragged_pad([[1, 2, 3], [4]], [3, 2], 0)",
    "ragged_ndim([[1, 2], [], [3]])",
    "ragged_count([[1, NULL], [], [3]], -1)",
    "ragged_std([[1, 2], [3]])",
    "ragged_var([[1, 2], [3]], -1, 0)",
    "ragged_median([[1, 2], [3]], 1)",
    "ragged_quantile([[1, 2], [3]], 0.25)",
    "ragged_quantile([[1, 2], [3]], [0.25, 0.5], -1)",
    "ragged_argmin([[1, 2], [3]])",
    "ragged_argmax([[1, 2], [3]], -1)",
    "ragged_first([[NULL, 2], [3]])",
    "ragged_last([[1, 2], [NULL]], 1)",
    "ragged_nunique([['a', 'b'], ['a']])",
    "ragged_xor([true, NULL], [false, true])",
    "ragged_pow([1, 2], 3)",
    "ragged_minimum([1, 5], 3)",
    "ragged_maximum(2.5, [1.5, NULL])",
    "ragged_between([1, 2, 3], 2, 3, '(]')",
    "ragged_between([[1], [2], []], [10, 20, 30], 10, NULL, '()')",
    "ragged_is_null([[1, NULL], [3]])",
    "ragged_is_nan([1.5, NULL])",
    "ragged_round([1.25, NULL], 1)",
    "ragged_abs([-1, 2])",
    "ragged_sign([-1, 2])",
    "ragged_ceil([1.5])",
    "ragged_floor([1.5])",
    "ragged_sqrt([4, 2])",
    "ragged_exp([0.5, 1.5])",
    "ragged_ln([1, 2])",
    "ragged_log2([1, 2])",
    "ragged_log10([1, 2])",
    "ragged_where([true, false], [1, 2], 0)",
    "ragged_where([[true], [NULL]], ['a', 'b'], 'c')",
    "ragged_fill_null([1, NULL], 7)",
    "ragged_cast([1, 2], 'Float32')",
    "ragged_try_cast(['1', 'x'], 'BIGINT')",
    "ragged_softmax([[1, 2], [3]])",
    "ragged_log_softmax([[1, 2], [3]], 1)",
    "ragged_normalize([[3, 4], [3]], -1, 1)",
    "ragged_zip('a', [1, 2], 'b', [[1], [2]])",
    "ragged_unzip([{a: 1, b: 2}], 'a')",
    "ragged_cumsum([[1, 2], [3]])",
    "ragged_cumprod([[1, 2], [3]], 1)",
    "ragged_cummin([[2, 1], [3]])",
    "ragged_cummax([[1, NULL], [3]])",
    "ragged_diff([[1, 4], [3]])",
    "ragged_diff([1, 4, 9], 2)",
    "ragged_shift([1, 4, 9], -1, 0)",
    "ragged_ffill([[1, NULL], [3]])",
    "ragged_bfill([[NULL, 1], [3]], 1)",
    "ragged_sort([[3, 1], [2]], 'desc')",
    "ragged_sort(['a', 'b'], [2, 1])",
    "ragged_argsort([[3, 1], [2]])",
    "ragged_rank([[3, 1], [2]], 'desc')",
    "ragged_unique([[3, 1, 3], [2]])",
    "ragged_searchsorted([1, 3, 5], [3, 0, NULL])",
    "ragged_searchsorted([[1, 3], [5]], [2, 7], 'right')",
    "ragged_group_keys([[3, NULL, 3], [2]])",
    "ragged_group_keys(['b', 'a', 'b'])",
    "ragged_group([1, 2, 3], ['b', 'a', 'b'])",
    "ragged_group([[1, 2], [3]], [2, 1])",
    "ragged_group([1, 2, 3], [2, 1, 2], [1, 7])",
    "ragged_window([1, 2, 3], [1, 4, 6], [4, 9])",
    "ragged_window([1, 2, 3], [1, 4, 6], 5, 'count')",
    "ragged_window([[1, 2], [3]], [1.5, 4.0], [4.0, NULL], 'sum', 2.5)",
    "ragged_window([1.5, 2.5, NULL], [1, 4, 6], [4, 9], 'mean', 3, 1)",
    "ragged_window(['a', 'b', 'c'], [1, 4, 6], [4, 9], 'max', 'unbounded', 2, '[)')",
    "ragged_window([true, false, NULL], [1, 4, 6], [4, 9], 'any', 3)",
    "ragged_window([1, 2, 3], [TIMESTAMP '2020-01-01', TIMESTAMP '2020-02-01', TIMESTAMP '2020-02-09'], [TIMESTAMP '2020-02-10'], 'last', INTERVAL '1 month')",
    "ragged_asof([1, 2, 3], [1, 4, 6], [4, 9, 0])",
    "ragged_asof([[1, 2], [3]], [1, 4], 5)",
    "ragged_rolling([[1, 2, 4], [3]], 2, 'sum')",
    "ragged_rolling([1.5, 2.5, NULL], 2, 'mean', 1)",
    "ragged_rolling([1.5, 2.5, NULL, 0.5], 3, 'quantile', 1, 0.25)",
    "ragged_window([1, 2, 3], [1, 4, 6], [9, 4, 5], 'median', 4)",
    "ragged_ngrams([[1, 2, 3], [4]], 2)",
    "ragged_corr([[1, 2, 4], [3, 1]], [[2, 3, 6], [1, 2]], -1)",
    "ragged_regr_slope([1.0, 2.0, 5.0], [0, 1, 4])",
    "ragged_regr_intercept([[1, 2, 4], [3]], [2.0, 1.0])",
    "ragged_squeeze([[1], [2]], -1)",
    "ragged_unsqueeze([1, 2], -1)",
    "ragged_reshape([1, 2, 3, 4], [-1, 2])",
    "ragged_take([1, 2, 3], [2, 0, -1])",
    "ragged_gather([[1, 2], [3]], [[1], [0, 0]])",
    "ragged_reverse([[1, 2], [3]], -1)",
    "ragged_repeat([1, 2], 2)",
    "ragged_repeat([[1, 2], [3]], [2, 1])",
    "ragged_scatter([1, 2, 3], [0, 2], [7, 8])",
    "ragged_scatter([1, 2, 3], [0, 2], 9)",
    "ragged_indices_from_mask([true, NULL, true])",
    "ragged_mask_from_indices([0, 2], 3)",
    "ragged_broadcast([1, 2], [[1, 2], [3]])",
    "ragged_broadcast(1, [1, 2], 'first')",
    "ragged_coords([[1, 2], [3]])",
    "ragged_coords([[1, 2], [3]], -1)",
];

/// Returns the name of the called function and its arguments.
pub(crate) fn split_arguments(call: &str) -> (&str, Vec<&str>) {
    let (name, rest) = call.split_once('(').unwrap();
    let rest = rest.strip_suffix(')').unwrap();
    let (mut depth, mut start, mut out) = (0, 0, Vec::new());
    let mut quoted = false;
    for (i, c) in rest.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            '[' | '(' | '{' => depth += 1,
            ']' | ')' | '}' => depth -= 1,
            ',' if depth == 0 && !quoted => {
                out.push(rest[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    out.push(rest[start..].trim());
    (name, out)
}

#[tokio::test]
async fn constants_and_columns_give_the_same_results() {
    let ctx = serrate::sql::session();
    let mut missing: Vec<String> =
        serrate::functions::all_scalar().iter().map(|f| f.name().to_string()).collect();
    for call in list_calls() {
        let (name, args) = split_arguments(call);
        missing.retain(|n| n != name);
        let folded = run(&ctx, &format!("SELECT {call} AS v FROM (VALUES (1), (1)) AS r(i)")).await;
        let (_, folded) = folded.unwrap_or_else(|e| panic!("{call}: {e}"));
        let folded = pretty_format_batches(&folded).unwrap().to_string();
        // Tries all combinations of arguments as columns. A column is refused only for an argument
        // that must be a literal.
        for choice in 1u32..(1 << args.len()) {
            let column = |i: usize| choice & (1 << i) != 0;
            let columns: Vec<_> =
                (0..args.len()).filter(|i| column(*i)).map(|i| format!("c{i}")).collect();
            let values: Vec<_> = (0..args.len()).filter(|i| column(*i)).map(|i| args[i]).collect();
            let given: Vec<_> = (0..args.len())
                .map(|i| if column(i) { format!("c{i}") } else { args[i].to_string() })
                .collect();
            let row = format!("({})", values.join(", "));
            let sql = format!(
                "SELECT {name}({}) AS v FROM (VALUES {row}, {row}) AS t({})",
                given.join(", "),
                columns.join(", ")
            );
            match run(&ctx, &sql).await {
                Ok((_, batches)) => {
                    let out = pretty_format_batches(&batches).unwrap().to_string();
                    assert_eq!(out, folded, "{sql}");
                }
                Err(e) => {
                    let e = e.to_string();
                    let literal = e.contains("must be a literal")
                        || e.contains("must be literals")
                        || e.contains("same for all");
                    // The first argument alone is accepted as a column, unless it is a string such
                    // as the name of a list.
                    let named = args[0].starts_with('\'');
                    assert!(literal && (choice != 1 || named), "{sql}: {e}");
                }
            }
        }
    }
    assert!(missing.is_empty(), "CALLS and the cards have no calls of {missing:?}");
}

/// Uses every function in a view, in GROUP BY and in COPY, with a column as the first argument if
/// it accepts one.
#[tokio::test]
async fn every_function_works_in_views_group_by_and_copy() {
    let ctx = serrate::sql::session();
    let folder = tempfile::tempdir().unwrap();
    for (number, call) in list_calls().iter().enumerate() {
        let (name, args) = split_arguments(call);
        let given: Vec<_> = (1..args.len()).map(|i| args[i].to_string()).collect();
        let first = std::iter::once("c0".to_string()).chain(given).collect::<Vec<_>>().join(", ");
        // If the first argument is a string literal, such as the name of a zipped list, all
        // arguments stay literals.
        let names_first = args[0].starts_with('\'');
        let made = if names_first { call.clone() } else { format!("{name}({first})") };
        let view = format!(
            "CREATE OR REPLACE VIEW w AS SELECT {made} AS v FROM (VALUES ({}), ({})) AS t(c0)",
            args[0], args[0]
        );
        run(&ctx, &view).await.unwrap_or_else(|e| panic!("{view}: {e}"));
        let (_, rows) = run(&ctx, "SELECT v FROM w").await.unwrap();
        let rows = pretty_format_batches(&rows).unwrap().to_string();
        let grouped = "SELECT v, count(*) AS n FROM w GROUP BY v";
        let (_, groups) = run(&ctx, grouped).await.unwrap_or_else(|e| panic!("{call}: {e}"));
        let groups = pretty_format_batches(&groups).unwrap().to_string();
        assert_eq!(groups.lines().count(), 5, "{call}:\n{groups}");
        assert!(groups.lines().nth(3).unwrap().trim_end_matches(['|', ' ']).ends_with('2'));
        let file = folder.path().join(format!("{number}.parquet"));
        let copy = format!("COPY (SELECT v FROM w) TO '{}'", file.display());
        run(&ctx, &copy).await.unwrap_or_else(|e| panic!("{call}: {e}"));
        let read = format!("SELECT v FROM '{}'", file.display());
        let (_, back) = run(&ctx, &read).await.unwrap_or_else(|e| panic!("{call}: {e}"));
        assert_eq!(pretty_format_batches(&back).unwrap().to_string(), rows, "{call}");
    }
}

#[tokio::test]
async fn functions_declared_strict_return_null_for_a_null_list() {
    let ctx = serrate::sql::session();
    let strict: Vec<_> =
        serrate::functions::all_scalar().into_iter().filter(|f| f.is_strict()).collect();
    assert!(strict.len() > 15);
    for f in strict {
        let call = list_calls().iter().find(|c| c.starts_with(&format!("{}(", f.name()))).unwrap();
        let (name, args) = split_arguments(call);
        let sql = format!(
            "SELECT {name}(x) AS v FROM (VALUES ({}), (NULL)) AS t(x) WHERE x IS NULL",
            args[0]
        );
        let (_, rows) = run(&ctx, &sql).await.unwrap();
        let nulls: usize = rows.iter().map(|b| b.column(0).logical_null_count()).sum();
        assert_eq!(nulls, 1, "{sql}");
    }
}

fn list_types() -> Vec<DataType> {
    use DataType::{
        Binary, Boolean, Date32, Decimal128, Dictionary, Duration, FixedSizeBinary, Float16,
        Float64, Int8, Int64, Interval, LargeList, List, ListView, Map, Null, RunEndEncoded,
        Struct, Time64, Timestamp, UInt64, Utf8, Utf8View,
    };
    let item = |t: DataType| Arc::new(Field::new_list_field(t, true));
    let plain = vec![
        Null,
        Boolean,
        Int8,
        Int64,
        UInt64,
        Float16,
        Float64,
        Utf8,
        Utf8View,
        Binary,
        FixedSizeBinary(3),
        Date32,
        Time64(TimeUnit::Microsecond),
        Timestamp(TimeUnit::Second, Some("UTC".into())),
        Duration(TimeUnit::Nanosecond),
        Interval(IntervalUnit::MonthDayNano),
        Decimal128(38, 10),
        Dictionary(Box::new(Int8), Box::new(Utf8)),
        Struct(vec![Field::new("a", Int64, true)].into()),
    ];
    let mut out = plain.clone();
    for t in plain {
        out.push(List(item(t.clone())));
        out.push(LargeList(item(List(item(t.clone())))));
        out.push(DataType::FixedSizeList(item(t.clone()), 2));
    }
    let entries = Struct(vec![Field::new("k", Utf8, false), Field::new("v", Int64, true)].into());
    out.extend([
        ListView(item(Int64)),
        List(item(ListView(item(Int64)))),
        DataType::FixedSizeList(item(Int64), 0),
        List(item(DataType::FixedSizeList(item(DataType::FixedSizeList(item(Int8), 0)), 3))),
        Map(Arc::new(Field::new("entries", entries, false)), false),
        RunEndEncoded(
            Arc::new(Field::new("run_ends", DataType::Int32, false)),
            Arc::new(Field::new("values", Int64, true)),
        ),
    ]);
    out
}

/// Returns arrays of a type: one with only NULL, one with the default value if the type has one,
/// and an empty one.
fn make_values(t: &DataType) -> Vec<ArrayRef> {
    let mut out = vec![new_null_array(t, 2)];
    // Arrow cannot create a default map.
    if !matches!(t, DataType::Map(..))
        && let Ok(v) = ScalarValue::new_default(t)
        && let Ok(a) = v.to_array_of_size(2)
    {
        out.push(a);
    }
    out.push(new_empty_array(t));
    out
}

fn list_literals() -> Vec<ScalarValue> {
    let ints = |v: &[i64]| {
        let v: Vec<_> = v.iter().map(|i| ScalarValue::Int64(Some(*i))).collect();
        ScalarValue::List(ScalarValue::new_list_nullable(&v, &DataType::Int64))
    };
    vec![
        ScalarValue::Null,
        ScalarValue::Int64(Some(1)),
        ScalarValue::Int64(Some(0)),
        ScalarValue::Int64(Some(-1)),
        ScalarValue::Int64(Some(i64::MIN)),
        ScalarValue::Int64(None),
        ScalarValue::UInt64(Some(u64::MAX)),
        ScalarValue::Float64(Some(f64::NAN)),
        ScalarValue::Utf8(Some("left".into())),
        ScalarValue::Utf8(Some(":, 0".into())),
        ScalarValue::Utf8(Some("tests/data/tiny-dok/names.safetensors".into())),
        ScalarValue::Boolean(Some(true)),
        ints(&[2]),
        ints(&[2, 2]),
        ints(&[i64::MAX, i64::MAX]),
    ]
}

/// Plans a call. Returns the fields of its arguments and the field of its result.
pub(crate) fn plan_call(
    f: &ScalarUDF,
    args: &[ColumnarValue],
) -> Result<(Vec<FieldRef>, FieldRef)> {
    let fields: Vec<FieldRef> =
        args.iter().map(|a| Arc::new(Field::new("a", a.data_type(), true))).collect();
    let scalars: Vec<_> = args
        .iter()
        .map(|a| match a {
            ColumnarValue::Scalar(s) => Some(s),
            ColumnarValue::Array(_) => None,
        })
        .collect();
    let planned = ReturnFieldArgs { arg_fields: &fields, scalar_arguments: &scalars };
    let returns = f.return_field_from_args(planned)?;
    Ok((fields, returns))
}

/// Plans a call and, if that succeeds, computes it. Returns whether both succeed. An error is
/// accepted, a panic is not.
fn attempt_call(f: &ScalarUDF, args: Vec<ColumnarValue>, rows: usize) -> bool {
    let Ok((fields, return_field)) = plan_call(f, &args) else { return false };
    let returns = return_field.data_type().clone();
    let out = f.invoke_with_args(ScalarFunctionArgs {
        args,
        arg_fields: fields,
        number_rows: rows,
        return_field,
        config_options: Arc::new(ConfigOptions::new()),
    });
    match out {
        Ok(out) => {
            assert_eq!(out.data_type(), returns, "{}", f.name());
            if let ColumnarValue::Array(a) = out {
                assert_eq!(a.len(), rows, "{}", f.name());
                a.to_data().validate_full().unwrap();
            }
            true
        }
        Err(_) => false,
    }
}

#[test]
fn no_function_panics_for_any_arguments() {
    let types = list_types();
    let literals = list_literals();
    let mut worked = 0;
    for f in serrate::functions::all_scalar() {
        let mut any = false;
        for t in &types {
            for x in make_values(t) {
                let rows = x.len();
                let array = || ColumnarValue::Array(Arc::clone(&x));
                any |= attempt_call(&f, vec![array()], rows);
                any |= attempt_call(&f, vec![array(), array()], rows);
                if rows > 0
                    && let Ok(s) = ScalarValue::try_from_array(&x, 0)
                {
                    let scalar = || ColumnarValue::Scalar(s.clone());
                    any |= attempt_call(&f, vec![scalar()], 3);
                    any |= attempt_call(&f, vec![scalar(), array()], rows);
                    any |= attempt_call(&f, vec![array(), scalar()], rows);
                }
                for l in &literals {
                    let literal = || ColumnarValue::Scalar(l.clone());
                    any |= attempt_call(&f, vec![array(), literal()], rows);
                    any |= attempt_call(&f, vec![literal(), array()], rows);
                    any |= attempt_call(&f, vec![array(), literal(), literal()], rows);
                    any |= attempt_call(&f, vec![array(), array(), literal()], rows);
                    any |= attempt_call(&f, vec![array(), literal(), literal(), literal()], rows);
                }
            }
        }
        assert!(any, "all calls of {} fail", f.name());
        worked += 1;
    }
    assert!(worked > 30);
}
