//! Templates of calls of every function with their types, from which the generator of expressions
//! draws.
//!
//! A type is written as an `l` for each level of lists, or `*` for one or two levels, and the type
//! of the leaves: `i`nteger, `f`loat, `b`oolean, `s`tring, `t`ime, `?` for any of them, or `#` for
//! a number. In a template, `<l#.1>` is an argument of that type; arguments with the same number
//! have lists of the same lengths. An argument `<l#.1^>` has only the outer lists of those. `<i=1>`
//! is an argument that `{1}` repeats.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::logical_expr::ReturnFieldArgs;
use serrate::datafusion;

/// The template of a call and the type of its result.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub result: &'static str,
    pub text: &'static str,
    /// Whether the call fails for some values. Such calls are generated only in statements that may
    /// fail.
    pub fails: bool,
}

impl Call {
    /// Returns whether DuckDB has the call with the same name and meaning. Some operators differ:
    /// in DuckDB, the quotient of integers is a float, `BETWEEN` and `IN` bind more tightly than
    /// `=`, and sums of floats are rounded at each step.
    pub fn is_shared(&self) -> bool {
        let other = [
            " / ",
            "ragged_",
            "array_reverse",
            "array_concat",
            "first_value(<?> ORDER",
            "⟦",
            "sum(<f",
            "avg(<f",
            "min(<f",
            "max(<f",
            "stddev",
            "var_",
            "corr(",
            "regr_",
        ];
        !self.fails && !other.iter().any(|o| self.text.contains(o))
    }
}

const fn call(result: &'static str, text: &'static str) -> Call {
    Call { result, text, fails: false }
}

const fn fails(result: &'static str, text: &'static str) -> Call {
    Call { result, text, fails: true }
}

/// Functions of DataFusion.
pub const STOCK: &[Call] = &[
    call("i", "<i> + <i>"),
    call("i", "<i> - <i>"),
    call("i", "<i> * 2"),
    call("i", "abs(<i>)"),
    call("i", "coalesce(<i>, 0)"),
    call("i", "coalesce(<i>, <i>)"),
    call("i", "nullif(<i>, <i>)"),
    call("i", "greatest(<i>, <i>)"),
    call("i", "CASE WHEN <b> THEN <i> ELSE <i> END"),
    call("i", "CASE WHEN <b> THEN <i> END"),
    call("i", "CASE WHEN <i=1> <> 0 THEN <i> / {1} END"),
    call("i", "CASE WHEN <i=1> = 0 THEN -1 ELSE <i> % {1} END"),
    call("i", "<i> % 3"),
    call("i", "CAST(length(<s>) AS BIGINT)"),
    call("i", "CAST(<b> AS INT)"),
    call("i", "CAST(array_length(<l?>) AS BIGINT)"),
    call("i", "<li>[1]"),
    call("i", "CAST(date_part('day', <t>) AS BIGINT)"),
    call("f", "<f> + <f>"),
    call("f", "<f> * 0.5"),
    call("f", "CAST(<i> AS DOUBLE)"),
    call("f", "coalesce(<f>, 0.25)"),
    call("f", "CASE WHEN <b> THEN <f> ELSE <f> END"),
    call("f", "<lf>[2]"),
    call("b", "<i> = <i>"),
    call("b", "<i> < <i>"),
    call("b", "<i> >= 2"),
    call("b", "<i> <> <i>"),
    call("b", "<f> > <f>"),
    call("b", "<f> = <f>"),
    call("b", "<s> = <s>"),
    call("b", "<s> < 'q'"),
    call("b", "<t> < <t>"),
    call("b", "<b> AND <b>"),
    call("b", "<b> OR <b>"),
    call("b", "NOT <b>"),
    call("b", "<?> IS NULL"),
    call("b", "<?> IS NOT NULL"),
    call("b", "<*?> IS NULL"),
    call("b", "<s> LIKE 'p%'"),
    call("b", "<i> IN (1, 2, 3)"),
    call("b", "<i> NOT IN (1, NULL)"),
    call("b", "<i> BETWEEN <i> AND <i>"),
    call("b", "<i> IS DISTINCT FROM <i>"),
    call("b", "<s> IS NOT DISTINCT FROM <s>"),
    call("b", "coalesce(<b>, false)"),
    call("b", "coalesce(⟦<i> = <i> IS NULL⟧, true)"),
    call("b", "coalesce(⟦<s> = <s> IS NOT NULL⟧, true)"),
    call("b", "coalesce(⟦<i> = <i> IN (true, NULL)⟧, true)"),
    call("b", "coalesce(⟦<i> = <i> BETWEEN false AND <b>⟧, true)"),
    call("b", "array_has(<li>, <i>)"),
    call("b", "isnan(<f>)"),
    call("b", "CASE WHEN <b> THEN <b> ELSE <b> END"),
    call("s", "upper(<s>)"),
    call("s", "<s> || <s>"),
    call("s", "substr(<s>, 1, 1)"),
    call("s", "CAST(<i> AS VARCHAR)"),
    call("s", "coalesce(<s>, 'none')"),
    call("s", "CASE WHEN <b> THEN <s> ELSE <s> END"),
    call("s", "<ls>[1]"),
    call("t", "<t> + INTERVAL '1 day'"),
    call("t", "date_trunc('day', <t>)"),
    call("t", "coalesce(<t>, TIMESTAMP '2020-01-01')"),
    call("t", "CASE WHEN <b> THEN <t> ELSE <t> END"),
    call("t", "<lt>[1]"),
    call("l?.1", "coalesce(<l?.1>, <l?.1>)"),
    call("l?", "CASE WHEN <b> THEN <l?> ELSE <l?> END"),
    call("l?", "<l?>[1:2]"),
    call("l?", "array_concat(<l?>, <l?>)"),
    call("l?", "array_reverse(<l?>)"),
    call("l?", "<ll?>[1]"),
    call("li", "array_append(<li>, <i>)"),
];

/// Returns calls of our functions: those in [`OURS`], and generated ones of functions that it
/// lacks.
pub fn list_ours() -> &'static [Call] {
    static ALL: LazyLock<Vec<Call>> =
        LazyLock::new(|| OURS.iter().copied().chain(find_unnamed()).collect());
    &ALL
}

/// Returns calls with one list as argument for functions that [`OURS`] does not name, for each type
/// of list that they accept.
fn find_unnamed() -> Vec<Call> {
    let time = DataType::Timestamp(TimeUnit::Microsecond, None);
    let leaves = [
        ("i", DataType::Int64),
        ("f", DataType::Float64),
        ("b", DataType::Boolean),
        ("s", DataType::Utf8),
        ("t", time),
    ];
    let mut calls = Vec::new();
    for f in serrate::functions::all_scalar() {
        if OURS.iter().any(|call| find_names(call.text).any(|name| name == f.name())) {
            continue;
        }
        for (letter, leaf) in &leaves {
            let field = Field::new("x", DataType::new_list(leaf.clone(), true), true);
            let args =
                ReturnFieldArgs { arg_fields: &[Arc::new(field)], scalar_arguments: &[None] };
            let Ok(planned) = f.return_field_from_args(args) else { continue };
            let (depth, of) = match planned.data_type() {
                DataType::List(item) => ("l", item.data_type()),
                scalar => ("", scalar),
            };
            let same = match of {
                t if t.is_integer() => "i",
                t if t.is_floating() => "f",
                t if t.is_string() => "s",
                DataType::Boolean => "b",
                DataType::Timestamp(..) => "t",
                _ => continue,
            };
            calls.push(Call {
                result: format!("{depth}{same}").leak(),
                text: format!("{}(<l{letter}>)", f.name()).leak(),
                fails: !serrate::functions::is_total(f.name()),
            });
        }
    }
    calls
}

/// Calls of our functions, with each function in each form of its syntax. For a function that is
/// missing here, [`list_ours`] adds its shortest call.
pub const OURS: &[Call] = &[
    // Shape.
    call("i", "ragged_count(<*?>)"),
    call("li.1^", "ragged_count(<ll?.1>, -1)"),
    call("l?", "ragged_flatten(<ll?>)"),
    call("l?", "ragged_flatten(<ll?>, -1)"),
    call("i", "ragged_lengths(<*?>)"),
    call("li.1^", "ragged_lengths(<ll?.1>, 2)"),
    call("li", "ragged_max_shape(<*?>)"),
    call("i", "ragged_ndim(<*?>)"),
    call("li", "ragged_shape(<*?>)"),
    call("ll?", "ragged_reshape(ragged_pad(<l?>, 4), [2, 2])"),
    call("ll?", "ragged_reshape(<l?>, [-1, 1])"),
    fails("ll?", "ragged_reshape(<l?>, [2, -1])"),
    call("l?.1", "ragged_squeeze(ragged_unsqueeze(<l?.1>, -1), -1)"),
    call("?", "ragged_squeeze(ragged_pad(<l?>, 1), 1)"),
    fails("l?.1^", "ragged_squeeze(<ll?.1>, 2)"),
    fails("?", "ragged_squeeze(<l?>, 1)"),
    call("ll?", "ragged_unsqueeze(<l?>, 1)"),
    call("ll?", "ragged_unsqueeze(<l?>, -1)"),
    // Indexing.
    call("?", "ragged_at(<l?>, <i>)"),
    call("?", "ragged_at(<ll?>, <i>, <i>)"),
    call("i", "ragged_at_or(<li>, 0, <i>)"),
    call("s", "ragged_at_or(<lls>, 'none', <i>, 0)"),
    call("*b.1", "ragged_between(<*i.1>, 1, 4)"),
    call("*b.1", "ragged_between(<*f.1>, <f>, <f>, '()')"),
    call("l?", "ragged_between(<l?.1>, <lt.1>, <t>, <t>)"),
    call("l?", "ragged_between(<l?.1>, <li.1>, <i>, NULL, '(]')"),
    call("ll?", "ragged_between(<ll?.1>, <li.1^>, NULL, <i>, '[)')"),
    call("l?", "ragged_compress(<*?.1>, <*b.1>)"),
    call("*?", "ragged_filter(<*?.1>, <*b.1>)"),
    call("ll?", "ragged_filter(<ll?.1>, <lb.1^>)"),
    call("*?", "ragged_get(<*?>, '1:')"),
    call("*?", "ragged_get(<*?>, '::-1')"),
    fails("?", "ragged_get(<l?>, '0')"),
    fails("l?", "ragged_get(<ll?>, '-1')"),
    fails("l?.1^", "ragged_get(<ll?.1>, ':, 1')"),
    call("*?", "ragged_head(<*?>, 2)"),
    call("*?", "ragged_head(<*?>, <i>)"),
    call("ll?", "ragged_head(<ll?>, -1, 2)"),
    call("*i", "ragged_indices_from_mask(<*b>)"),
    call("lb", "ragged_mask_from_indices([0, 1], 3)"),
    call("lb", "ragged_mask_from_indices(ragged_indices_from_mask(<lb=1>), ragged_lengths({1}))"),
    fails("lb", "ragged_mask_from_indices(<li>, abs(<i>) % 6)"),
    call("*?", "ragged_repeat(<*?>, 2)"),
    call("l?", "ragged_repeat(<l?>, abs(<i>) % 3)"),
    call("l?", "ragged_repeat(<l?.1>, ragged_abs(<li.1>) % 3)"),
    call("l?", "ragged_reverse(<l?>)"),
    call("ll?.1", "ragged_scatter(<ll?.1>, ragged_coords(<ll?.1>, -1), <ll?.1>)"),
    call("ll?", "ragged_reverse(<ll?>, -1)"),
    call("li.1", "ragged_scatter(<li=1.1>, ragged_argsort({1}), {1})"),
    fails("li.1", "ragged_scatter(<li.1>, [0, 1], 7)"),
    call("i", "ragged_searchsorted(ragged_sort(<li>), <i>)"),
    call("i", "ragged_searchsorted(ragged_sort(<lt>), <t>, 'right')"),
    call("l?", "ragged_slice(<l?>, 1, 3)"),
    call("*?", "ragged_slice(<*?>, <i>, NULL, -1)"),
    call("ll?", "ragged_slice(<ll?>, 0, <i>, 1, 2)"),
    fails("l?", "ragged_slice(<l?>, 0, 2, <i>)"),
    call("*?", "ragged_tail(<*?>, 2)"),
    call("*?", "ragged_tail(<*?>, <i>)"),
    call("ll?", "ragged_tail(<ll?>, 1, -1)"),
    call("l?", "ragged_take(<l?.1>, ragged_argsort(<li.1>))"),
    call("ll?", "ragged_take(<ll?.1>, ragged_argsort(<lli.1>))"),
    call("ll?", "ragged_take(<ll?.1>, ragged_argsort(<li.1^>))"),
    fails("l?", "ragged_take(<l?>, [0, -1])"),
    fails("l?", "ragged_take(<l?>, <li>)"),
    // Reductions.
    call("b", "ragged_all(<*b>)"),
    call("lb.1^", "ragged_all(<llb.1>, -1)"),
    call("b", "ragged_any(<*b>)"),
    call("lb.1^", "ragged_any(<llb.1>, -1)"),
    call("i", "ragged_argmax(<*#>)"),
    call("li.1^", "ragged_argmax(<ll#.1>, -1)"),
    call("i", "ragged_argmin(<*?>)"),
    call("li", "ragged_argmin(<ll#>, 1)"),
    call("?", "ragged_first(<*?>)"),
    call("l?.1^", "ragged_first(<ll?.1>, -1)"),
    call("?", "ragged_last(<*?>)"),
    call("l?", "ragged_last(<ll?>, 1)"),
    call("#", "ragged_max(<*#>)"),
    call("s", "ragged_max(<*s>)"),
    call("l#.1^", "ragged_max(<ll#.1>, -1)"),
    call("f", "ragged_mean(<*#>)"),
    call("lf.1^", "ragged_mean(<ll#.1>, -1)"),
    call("lf", "ragged_mean(<ll#>, 1)"),
    call("f", "ragged_median(<*#>)"),
    call("lf.1^", "ragged_median(<lli.1>, -1)"),
    call("#", "ragged_min(<*#>)"),
    call("t", "ragged_min(<*t>)"),
    call("l#", "ragged_min(<ll#>, 1)"),
    call("i", "ragged_nunique(<*?>)"),
    call("li.1^", "ragged_nunique(<ll?.1>, -1)"),
    call("i", "ragged_prod(ragged_head(<li>, 3))"),
    call("f", "ragged_prod(<*f>)"),
    call("l#.1^", "ragged_prod(<ll#.1>, -1)"),
    call("f", "ragged_quantile(<*#>, 0.25)"),
    call("lf", "ragged_quantile(<l#>, [0.0, 0.9])"),
    call("lf.1^", "ragged_quantile(<ll#.1>, 0.5, -1)"),
    call("f", "ragged_std(<*#>)"),
    call("lf.1^", "ragged_std(<ll#.1>, -1, 0)"),
    call("#", "ragged_sum(<*#>)"),
    call("l#.1^", "ragged_sum(<ll#.1>, -1)"),
    call("l#", "ragged_sum(<ll#>, 1)"),
    call("f", "ragged_var(<*#>)"),
    call("lf.1^", "ragged_var(<ll#.1>, -1)"),
    // Functions whose result depends on the elements before or after.
    call("*i.1", "ragged_argsort(<*?.1>)"),
    call("*i.1", "ragged_argsort(<*?.1>, 'desc')"),
    call("*?.1", "ragged_bfill(<*?.1>)"),
    call("*#.1", "ragged_cummax(<*#.1>)"),
    call("*#.1", "ragged_cummin(<*#.1>)"),
    call("lf.1", "ragged_cumprod(<lf.1>)"),
    call("*i.1", "ragged_cumsum(<*i.1>)"),
    call("*f.1", "ragged_cumsum(<*f.1>)"),
    call("*#.1", "ragged_diff(<*#.1>)"),
    call("li.1", "ragged_diff(<li.1>, 2)"),
    call("*?.1", "ragged_ffill(<*?.1>)"),
    call("*i.1", "ragged_rank(<*?.1>)"),
    call("*i.1", "ragged_rank(<*#.1>, 'desc')"),
    call("*?.1", "ragged_shift(<*?.1>, 1)"),
    call("li.1", "ragged_shift(<li.1>, -1, 0)"),
    call("*?.1", "ragged_sort(<*?.1>)"),
    call("l?.1", "ragged_sort(<l?.1>, <l#.1>, 'desc')"),
    call("ll?", "ragged_sort(<ll?.1>, <l#.1^>)"),
    call("*?", "ragged_unique(<*?>)"),
    // Elementwise.
    call("*#.1", "ragged_abs(<*#.1>)"),
    call("*#.1", "ragged_add(<*#.1>, <*#.1>)"),
    call("*i.1", "<*i.1> + <i>"),
    call("lli.1", "<lli.1> + <li.1^>"),
    call("*b.1", "ragged_and(<*b.1>, <*b.1>)"),
    call("*b.1", "<*b.1> AND <*b.1>"),
    call("*f.1", "ragged_cast(<*i.1>, 'DOUBLE')"),
    call("*s.1", "ragged_cast(<*i.1>, 'VARCHAR')"),
    fails("*i.1", "ragged_cast(<*s.1>, 'BIGINT')"),
    call("*i.1", "ragged_try_cast(<*s.1>, 'BIGINT')"),
    call("*f.1", "ragged_ceil(<*f.1>)"),
    call("*f.1", "ragged_div(<*f.1>, <*f.1>)"),
    fails("*i.1", "<*i.1> // <*i.1>"),
    call("*b.1", "ragged_eq(<*?.1>, <*?.1>)"),
    call("*b.1", "<*i.1> = <i>"),
    call("*f.1", "ragged_exp(<*f.1>)"),
    call("*i.1", "ragged_fill_null(<*i.1>, <i>)"),
    call("*s.1", "ragged_fill_null(<*s.1>, 'none')"),
    call("*f.1", "ragged_floor(<*f.1>)"),
    call("*b.1", "ragged_ge(<*?.1>, <*?.1>)"),
    call("*b.1", "ragged_gt(<*#.1>, <#>)"),
    call("*b.1", "ragged_is_nan(<*f.1>)"),
    call("*b.1", "ragged_is_null(<*?.1>)"),
    call("*b.1", "ragged_le(<*s.1>, <s>)"),
    call("*f.1", "ragged_ln(<*f.1>)"),
    call("*f.1", "ragged_log10(<*f.1>)"),
    call("*f.1", "ragged_log2(<*f.1>)"),
    call("*f.1", "ragged_log_softmax(<*f.1>)"),
    call("*b.1", "ragged_lt(<*t.1>, <t>)"),
    call("*i.1", "ragged_map(<*i.1>, lambda v: v + 1)"),
    call("*i.1", "ragged_map(<*i.1>, v -> v * <i>)"),
    call("*s.1", "ragged_map(<*i.1>, lambda v: CASE WHEN v > 2 THEN 'high' ELSE 'low' END)"),
    call("*i.1", "ragged_map(<*i.1>, <*i.1>, lambda v, w: v - w)"),
    call("*#.1", "ragged_maximum(<*#.1>, <*#.1>)"),
    call("*#.1", "ragged_minimum(<*#.1>, <#>)"),
    call("*i.1", "ragged_mod(<*i.1>, 3)"),
    fails("*i.1", "ragged_mod(<*i.1>, <i>)"),
    call("*i.1", "<*i.1> % 3"),
    call("*i.1", "ragged_mul(<*i.1>, <i>)"),
    call("*f.1", "<*f.1> * <f>"),
    call("*b.1", "ragged_ne(<*?.1>, <*?.1>)"),
    call("*b.1", "<*s.1> <> <s>"),
    call("*#.1", "ragged_neg(<*#.1>)"),
    call("*f.1", "ragged_normalize(<*f.1>)"),
    call("*f.1", "ragged_normalize(<*f.1>, -1, 1)"),
    call("*b.1", "ragged_not(<*b.1>)"),
    call("*b.1", "ragged_or(<*b.1>, <*b.1>)"),
    call("*f.1", "ragged_pow(<*f.1>, 2)"),
    call("*f.1", "ragged_round(<*f.1>)"),
    call("*f.1", "ragged_round(<*f.1>, 1)"),
    call("*i.1", "ragged_sign(<*i.1>)"),
    call("*f.1", "ragged_softmax(<*f.1>)"),
    call("*f.1", "ragged_sqrt(<*f.1>)"),
    call("*#.1", "ragged_sub(<*#.1>, <*#.1>)"),
    call("*?.1", "ragged_where(<*b.1>, <*?.1>, <*?.1>)"),
    call("*i.1", "ragged_where(<*b.1>, <*i.1>, <i>)"),
    call("*b.1", "ragged_xor(<*b.1>, <*b.1>)"),
    // Groups and windows.
    call("*?", "ragged_group_keys(<*?>)"),
    call("ll?", "ragged_group(<l?.1>, <l?.1>)"),
    call("ll?", "ragged_group(<ll?.1>, <ls.1^>, NULL)"),
    call("ll?", "ragged_group(<l?.1>, <li.1>, [0, 1, NULL])"),
    call("ll?", "ragged_group(<l?.1>, <lt.1>, <lt>)"),
    call("li.1", "ragged_window(<l?.2>, <li.2>, <li.1>, 'count', 2)"),
    call(
        "lf.1",
        "ragged_window(<lf.2>, <lt.2>, <lt.1>, 'sum', INTERVAL '40 days', INTERVAL '1 month', '[]')",
    ),
    call("f", "ragged_window(<lf.2>, <lf.2>, <f>, 'mean', 1.5, 2)"),
    call("?", "ragged_window(<l?.2>, <lt.2>, <t>, 'last')"),
    call("ll?", "ragged_window(<l?.2>, <li.2>, <li>)"),
    call("l?.1", "ragged_asof(<l?.2>, <lt.2>, <lt.1>)"),
    call("?", "ragged_asof(<l?.2>, <li.2>, <i>)"),
    call("*f.1", "ragged_rolling(<*f.1>, 3, 'mean')"),
    call("*i.1", "ragged_rolling(<*i.1>, 2, 'max', 1)"),
    call("*f.1", "ragged_rolling(<*f.1>, 3, 'quantile', 1, 0.25)"),
    call("f", "ragged_window(<lf.2>, <lf.2>, <f>, 'median', 1.5, 2)"),
    call("ll?", "ragged_ngrams(<l?>, 2)"),
    call("f", "ragged_corr(<*f.1>, <*#.1>)"),
    call("lf.1^", "ragged_corr(<ll#.1>, <llf.1>, -1)"),
    call("f", "ragged_regr_slope(<*f.1>, <*i.1>)"),
    call("f", "ragged_regr_intercept(<ll#.1>, <li.1^>)"),
    // Dates and times over lists.
    call("*i.1", "ragged_cast(year(<*t.1>), 'BIGINT')"),
    call("*t.1", "date_trunc('month', <*t.1>)"),
    call("*t.1", "time_bucket(INTERVAL '7 days', <*t.1>)"),
    call("*s.1", "strftime(<*t.1>, '%Y-%m')"),
    call("*f.1", "epoch(<*t.1>)"),
    call("*i.1", "epoch_us(<*t.1>)"),
    call("*i.1", "ragged_cast(week(<*t.1>), 'BIGINT')"),
    call("*i.1", "ragged_cast(dayofweek(<*t.1>), 'BIGINT')"),
    call("*i.1", "date_diff('month', <*t.1>, <t>)"),
    call("*i.1", "date_sub('day', <*t.1>, <*t.1>)"),
    call("*t.1", "time_bucket(INTERVAL '2 months', <*t.1>)"),
    call("*t.1", "ragged_cast(last_day(<*t.1>), 'TIMESTAMP')"),
    call("*s.1", "monthname(<*t.1>)"),
    // Structure.
    call("ll?.1", "ragged_broadcast(<l?.1^>, <ll?.1>)"),
    call("ll?.1", "ragged_broadcast(<l?.1^>, <ll?.1>, 'first')"),
    call("*i.1", "ragged_coords(<*?.1>, -1)"),
    call("lli.1", "ragged_coords(<ll?.1>, 1)"),
    call("li.1", "ragged_unzip(ragged_coords(<l?.1>), 'axis1')"),
    call("*?.1", "ragged_unzip(ragged_zip('n', <*?.1>), 'n')"),
    call("l?.1", "ragged_unzip(ragged_zip('n', <l?.1>, 'm', <l?.1>), 'm')"),
    // Text and codes.
    call("ls", "descendants(<ls>, 'tests/data/tiny-codes')"),
    call("ls", "descendants('ICD10CM/E11', 'tests/data/tiny-codes')"),
    call("li.1", "ragged_bin(<lf.1>, <ls.1>, 'tests/data/tiny-codes/cuts.parquet')"),
    call("*s.1", "ragged_decode(ragged_abs(<*i.1>), 'tests/data/tiny-codes')"),
    call("*i.1", "ragged_encode(<*s.1>, 'tests/data/tiny-codes')"),
    call("*b.1", "ragged_ilike(<*s.1>, '%P%')"),
    call("*b.1", "<*s.1> ILIKE 'Q%'"),
    call("*b.1", "ragged_isin(<*i.1>, [1, 3])"),
    call("*b.1", "ragged_isin(<*s.1>, ['p', NULL])"),
    call("*b.1", "<*i.1> IN (1, 2)"),
    call("*b.1", "ragged_like(<*s.1>, 'p%')"),
    call("*b.1", "<*s.1> LIKE 'p%'"),
    call("*s.1", "ragged_lookup(<*s.1>, 'tests/data/tiny-codes', 'code', 'description')"),
    call("*s.1", "ragged_lookup(<*i.1>, 'names', 'key', 'name')"),
    call("*b.1", "ragged_matches(<*s.1>, '^[pq]')"),
    call("*b.1", "<*s.1> ~* 'P'"),
    call("*b.1", "ragged_starts_with(<*s.1>, 'p')"),
    call("*b.1", "starts_with(<*s.1>, 'LAB')"),
    // Sparse tensors.
    call("b", "dok_contains('tests/data/tiny-dok/m.safetensors', <i>, <i>)"),
    call("f", "dok_get('tests/data/tiny-dok/m.safetensors', <i>, <i>)"),
    call("f", "dok_get('tests/data/tiny-dok/m.safetensors', <i>, <i>, -1)"),
    call("lf.1", "dok_get('tests/data/tiny-dok/weights.safetensors', <i>, <ls.1>)"),
    // Dense.
    call("l#", "densify(<ll#>, [2, 2])"),
    call("l#", "densify(<l#>, [3], -1, 'left')"),
    call("lb", "densify_mask(<*?>, [3])"),
    call("lb", "densify_valid(<l#>, [3])"),
    call("l?", "ragged_pad(<l?>, 3)"),
    call("li", "ragged_pad(<li>, abs(<i>) % 5, 0)"),
    call("lli", "ragged_pad(<lli>, [NULL, 2], 0, 'left')"),
];

/// Aggregates. `ORDER` stands for sort keys that determine the order of the rows completely.
pub const AGGREGATES: &[Call] = &[
    call("i", "count(*)"),
    call("i", "count(<?>)"),
    call("i", "count(DISTINCT <i>)"),
    call("i", "count(<l?>)"),
    call("i", "sum(<i>)"),
    call("i", "sum(<i>) FILTER (WHERE <b>)"),
    call("i", "min(<i>)"),
    call("i", "max(<i>)"),
    call("s", "min(<s>)"),
    call("s", "max(<s>)"),
    call("t", "max(<t>)"),
    call("f", "avg(<i>)"),
    call("f", "sum(<f>)"),
    call("f", "sum(<f>) FILTER (WHERE <b>)"),
    call("f", "sum(DISTINCT <f>)"),
    call("f", "avg(<f>)"),
    call("f", "avg(DISTINCT <f>)"),
    call("f", "min(<f>)"),
    call("f", "max(<f>)"),
    call("f", "stddev(<f>)"),
    call("f", "var_pop(<f>)"),
    call("f", "corr(<f>, <f>)"),
    call("f", "regr_intercept(<f>, <i>)"),
    call("b", "bool_or(<b>)"),
    call("b", "bool_and(<b>)"),
    call("?", "first_value(<?> ORDER BY ORDER)"),
    call("l?", "array_agg(<?> ORDER BY ORDER)"),
    call("l?", "ragged_nest_agg(<?> ORDER BY ORDER)"),
    call("ll?", "ragged_nest_agg(<l?> ORDER BY ORDER)"),
    call("l?", "ragged_concat_agg(<l?> ORDER BY ORDER)"),
    call("ll?", "ragged_concat_agg(<ll?> ORDER BY ORDER)"),
    call("*#", "ragged_max_agg(<*#>)"),
    call("*#", "ragged_min_agg(<*#>)"),
    call("*i", "ragged_sum_agg(<*i>)"),
    call("*f", "ragged_mean_agg(<*i>)"),
    call("li", "ragged_max_shape_agg(<*?>)"),
    call("i", "CAST(array_length(ragged_histogram_agg(<*i>)) AS BIGINT)"),
    call("i", "CAST(ragged_sum(ragged_unzip(ragged_histogram_agg(<ls>), 'count')) AS BIGINT)"),
];

/// Window functions. `ORDER` stands for sort keys that determine the order of the rows completely.
pub const WINDOWS: &[Call] = &[
    call("i", "row_number() OVER (ORDER BY ORDER)"),
    call("i", "row_number() OVER (PARTITION BY <i> ORDER BY ORDER)"),
    call("i", "rank() OVER (PARTITION BY <s> ORDER BY <i>)"),
    call("i", "dense_rank() OVER (ORDER BY <i>)"),
    call("?", "lag(<?>) OVER (PARTITION BY <i> ORDER BY ORDER)"),
    call("?", "lag(<?.1>, -2, <?.1>) OVER (PARTITION BY <i> ORDER BY ORDER)"),
    call("i", "lead(<i>, 1, <i>) IGNORE NULLS OVER (ORDER BY ORDER)"),
    call("i", "bit_xor(<i>) OVER (ORDER BY ORDER ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING)"),
    call("t", "median(<t>) OVER (ORDER BY ORDER ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)"),
    call("l?", "lead(<l?>) OVER (ORDER BY ORDER)"),
    call(
        "i",
        "sum(<i>) OVER (PARTITION BY <i> ORDER BY ORDER ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    ),
    call("i", "sum(<i>) OVER (PARTITION BY <s>)"),
    call("f", "sum(<f>) OVER (ORDER BY ORDER ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)"),
    call("f", "avg(<f>) OVER (PARTITION BY <i> ORDER BY ORDER)"),
    call("f", "stddev(<f>) OVER (PARTITION BY <s>)"),
    call("i", "count(<?>) OVER (ORDER BY <i>)"),
    call("?", "first_value(<?>) OVER (PARTITION BY <i> ORDER BY ORDER)"),
    call("l?", "ragged_nest_agg(<?>) OVER (PARTITION BY <i> ORDER BY ORDER)"),
    call("i", "max(<i>) OVER (ORDER BY ORDER ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"),
];

/// Returns the names of the functions that an SQL text calls.
pub fn find_names(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('(').filter_map(move |(at, _)| {
        let start = text[..at].rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let name = &text[start.map_or(0, |s| s + 1)..at];
        (!name.is_empty()).then_some(name)
    })
}
