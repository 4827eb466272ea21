//! Expression builders: each SQL function as a Rust function, for DataFusion's DataFrame API.
//!
//! Each builder has the name of its function in SQL. A function with optional arguments has one
//! builder per form of the call; the longer forms are named after the arguments that they add:
//! [`ragged_sum`] and [`ragged_sum_axis`]. `docs/functions/` describes the functions.
//!
//! Arguments are expressions or literals: numbers, strings, booleans, lists of numbers, and `None`
//! for NULL. A string is a literal and not a column; write `col("name")` for a column.
//!
//! Operators on lists are functions here, such as `ragged_gt(col("val"), 5)`, because Rust's
//! operators on [`Expr`] belong to DataFusion and work on scalars.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use serrate::datafusion::prelude::*;
//! use serrate::expr_fn::{ragged_count, ragged_filter, ragged_gt, ragged_sum_axis};
//! let ctx = serrate::sql::session();
//! let df = ctx.sql("SELECT [[1, 7], [9]] AS val").await?;
//! let high = ragged_filter(col("val"), ragged_gt(col("val"), 5));
//! let df = df.select(vec![ragged_count(high), ragged_sum_axis(col("val"), -1)])?;
//! assert_eq!(df.collect().await?[0].num_columns(), 2);
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::HigherOrderFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    lambda, lambda_var, lit,
};

use crate::functions::{self, declare};

/// An argument of an expression builder: an expression, or a value that becomes a literal.
///
/// ```
/// use serrate::datafusion::prelude::{col, lit};
/// use serrate::expr_fn::{ExprArgument, ragged_head};
/// assert_eq!(5i32.into_expr(), lit(5i64));
/// assert_eq!("code".into_expr(), lit("code"));
/// let (short, long) = (ragged_head(col("code"), 5), ragged_head(col("code"), lit(5i64)));
/// assert_eq!(short.to_string(), long.to_string());
/// ```
pub trait ExprArgument {
    /// Converts the argument to an expression.
    fn into_expr(self) -> Expr;
}

impl ExprArgument for Expr {
    fn into_expr(self) -> Expr {
        self
    }
}

impl ExprArgument for &Expr {
    fn into_expr(self) -> Expr {
        self.clone()
    }
}

impl ExprArgument for ScalarValue {
    fn into_expr(self) -> Expr {
        Expr::Literal(self, None)
    }
}

/// Converts `None` to a NULL literal.
impl<T: ExprArgument> ExprArgument for Option<T> {
    fn into_expr(self) -> Expr {
        self.map_or(Expr::Literal(ScalarValue::Null, None), ExprArgument::into_expr)
    }
}

macro_rules! literals {
    ($($t:ty),*) => {$(
        impl ExprArgument for $t {
            fn into_expr(self) -> Expr {
                lit(self)
            }
        }
    )*};
}
literals!(i64, f64, f32, bool, &str, String, u16, u32, u64);

/// Converts to an Int64 literal, because SQL integer literals have 64 bits.
impl ExprArgument for i32 {
    fn into_expr(self) -> Expr {
        lit(i64::from(self))
    }
}

macro_rules! lists {
    ($($t:ty => $value:ident, $data_type:ident;)*) => {$(
        impl<const N: usize> ExprArgument for [$t; N] {
            fn into_expr(self) -> Expr {
                self[..].into_expr()
            }
        }

        impl ExprArgument for &[$t] {
            fn into_expr(self) -> Expr {
                let values: Vec<_> =
                    self.iter().map(|v| ScalarValue::$value(Some((*v).into()))).collect();
                let data_type = arrow::datatypes::DataType::$data_type;
                let list = ScalarValue::new_list_nullable(&values, &data_type);
                Expr::Literal(ScalarValue::List(list), None)
            }
        }
    )*};
}
lists! {
    i32 => Int64, Int64;
    i64 => Int64, Int64;
    f64 => Float64, Float64;
    &str => Utf8, Utf8;
}

/// Returns a call of the function `name`. A test checks that every name is known; a call of an
/// unknown function fails when it is planned.
fn call_by_name(name: &'static str, args: Vec<Expr>) -> Expr {
    if let Some(f) = functions::find_scalar(name) {
        return f.call(args);
    }
    match functions::find_aggregate(name) {
        Some(f) => f.call(args),
        None => ScalarUDF::new_from_impl(UnknownFunction { name }).call(args),
    }
}

/// Stands for a function that does not exist. Builders return an [`Expr`] and not a `Result`, so
/// planning reports the error.
#[derive(Debug, PartialEq, Eq, Hash)]
struct UnknownFunction {
    name: &'static str,
}

impl ScalarUDFImpl for UnknownFunction {
    declare!(Signature::variadic_any(Volatility::Immutable));

    fn name(&self) -> &str {
        self.name
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        plan_err!("internal error: there is no function {}; please report it", self.name)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        plan_err!("internal error: there is no function {}; please report it", self.name)
    }
}

/// The argument for a parameter in the documentation example of a builder: as Rust code (`code`),
/// and as the displayed call shows it (`text`). For a parameter without an entry here, the argument
/// is a column with the name of the parameter.
macro_rules! example_argument {
    (code axis) => {
        "-1"
    };
    (text axis) => {
        "Int64(-1)"
    };
    (code n) => {
        "5"
    };
    (text n) => {
        "Int64(5)"
    };
    (code i) => {
        "0"
    };
    (text i) => {
        "Int64(0)"
    };
    (code index) => {
        "\"[:, -1]\""
    };
    (text index) => {
        "Utf8(\\\"[:, -1]\\\")"
    };
    (code more) => {
        "[1]"
    };
    (text more) => {
        "Int64(1)"
    };
    (code start) => {
        "0"
    };
    (text start) => {
        "Int64(0)"
    };
    (code stop) => {
        "-1"
    };
    (text stop) => {
        "Int64(-1)"
    };
    (code step) => {
        "2"
    };
    (text step) => {
        "Int64(2)"
    };
    (code sizes) => {
        "[4, 3]"
    };
    (text sizes) => {
        "List([4, 3])"
    };
    (code size) => {
        "8"
    };
    (text size) => {
        "Int64(8)"
    };
    (code fill) => {
        "0"
    };
    (text fill) => {
        "Int64(0)"
    };
    (code default) => {
        "0"
    };
    (text default) => {
        "Int64(0)"
    };
    (code value) => {
        "0"
    };
    (text value) => {
        "Int64(0)"
    };
    (code side) => {
        "\"left\""
    };
    (text side) => {
        "Utf8(\\\"left\\\")"
    };
    (code how) => {
        "\"first\""
    };
    (text how) => {
        "Utf8(\\\"first\\\")"
    };
    (code order) => {
        "\"desc\""
    };
    (text order) => {
        "Utf8(\\\"desc\\\")"
    };
    (code closed) => {
        "\"(]\""
    };
    (text closed) => {
        "Utf8(\\\"(]\\\")"
    };
    (code before) => {
        "30"
    };
    (text before) => {
        "Int64(30)"
    };
    (code after) => {
        "7"
    };
    (text after) => {
        "Int64(7)"
    };
    (code low) => {
        "10"
    };
    (text low) => {
        "Int64(10)"
    };
    (code high) => {
        "20"
    };
    (text high) => {
        "Int64(20)"
    };
    (code q) => {
        "0.5"
    };
    (text q) => {
        "Float64(0.5)"
    };
    (code p) => {
        "2"
    };
    (text p) => {
        "Int64(2)"
    };
    (code ddof) => {
        "1"
    };
    (text ddof) => {
        "Int64(1)"
    };
    (code digits) => {
        "2"
    };
    (text digits) => {
        "Int64(2)"
    };
    (code min_samples) => {
        "1"
    };
    (text min_samples) => {
        "Int64(1)"
    };
    (code data_type) => {
        "\"BIGINT\""
    };
    (text data_type) => {
        "Utf8(\\\"BIGINT\\\")"
    };
    (code pattern) => {
        "\"LAB//%\""
    };
    (text pattern) => {
        "Utf8(\\\"LAB//%\\\")"
    };
    (code regex) => {
        "\"^LAB//[0-9]+$\""
    };
    (text regex) => {
        "Utf8(\\\"^LAB//[0-9]+$\\\")"
    };
    (code flags) => {
        "\"i\""
    };
    (text flags) => {
        "Utf8(\\\"i\\\")"
    };
    (code prefix) => {
        "\"LAB//\""
    };
    (text prefix) => {
        "Utf8(\\\"LAB//\\\")"
    };
    (code from) => {
        "\"codes.parquet\""
    };
    (text from) => {
        "Utf8(\\\"codes.parquet\\\")"
    };
    (code key) => {
        "\"code\""
    };
    (text key) => {
        "Utf8(\\\"code\\\")"
    };
    (code column) => {
        "\"mean\""
    };
    (text column) => {
        "Utf8(\\\"mean\\\")"
    };
    (code roots) => {
        "\"ICD10CM/E11\""
    };
    (text roots) => {
        "Utf8(\\\"ICD10CM/E11\\\")"
    };
    (code name) => {
        "\"time\""
    };
    (text name) => {
        "Utf8(\\\"time\\\")"
    };
    (code names) => {
        "[\"time\", \"code\"]"
    };
    (text names) => {
        "Utf8(\\\"time\\\"), Utf8(\\\"code\\\")"
    };
    (code others) => {
        "[lit(\"code\"), col(\"code\")]"
    };
    (text others) => {
        "Utf8(\\\"code\\\"), code"
    };
    (code $column:ident) => {
        concat!("col(\"", stringify!($column), "\")")
    };
    (text $column:ident) => {
        stringify!($column)
    };
}

macro_rules! builders {
    ($($name:literal: $($f:ident($first:ident $(, $a:ident)* $(; $more:ident)?)),+;)*) => {
        $($(
            #[doc = concat!("Builds a call of the SQL function `", $name, "`.")]
            #[doc = ""]
            #[doc = "```"]
            #[doc = "use serrate::datafusion::prelude::*;"]
            #[doc = concat!("use serrate::expr_fn::", stringify!($f), ";")]
            #[doc = concat!(
                "let call = ", stringify!($f), "(", example_argument!(code $first),
                $(", ", example_argument!(code $a),)* $(", ", example_argument!(code $more),)? ");"
            )]
            #[doc = concat!(
                "assert_eq!(call.to_string(), \"", $name, "(", example_argument!(text $first),
                $(", ", example_argument!(text $a),)* $(", ", example_argument!(text $more),)? ")\");"
            )]
            #[doc = "```"]
            #[allow(clippy::too_many_arguments, reason = "SQL functions have optional arguments")]
            pub fn $f(
                $first: impl ExprArgument,
                $($a: impl ExprArgument,)*
                $($more: impl IntoIterator<Item = impl ExprArgument>)?
            ) -> Expr {
                #[allow(unused_mut)]
                let mut args = vec![$first.into_expr() $(, $a.into_expr())*];
                $(args.extend($more.into_iter().map(ExprArgument::into_expr));)?
                call_by_name($name, args)
            }
        )+)*

        /// The SQL function of each builder, its number of fixed arguments, and whether more may
        /// follow.
        #[cfg(test)]
        const BUILT: &[(&str, usize, bool)] = &[
            $($((
                $name,
                <[&str]>::len(&[stringify!($first) $(, stringify!($a))*]),
                !<[&str]>::is_empty(&[$(stringify!($more))?]),
            )),+),*
        ];
    };
}

builders! {
    // Shape
    "ragged_ndim": ragged_ndim(x);
    "ragged_shape": ragged_shape(x);
    "ragged_max_shape": ragged_max_shape(x);
    "ragged_lengths": ragged_lengths(x), ragged_lengths_axis(x, axis);
    "ragged_count": ragged_count(x), ragged_count_axis(x, axis);
    "ragged_flatten": ragged_flatten(x), ragged_flatten_axis(x, axis);
    "ragged_squeeze": ragged_squeeze(x, axis);
    "ragged_unsqueeze": ragged_unsqueeze(x, axis);
    "ragged_reshape": ragged_reshape(x, sizes), ragged_reshape_axis(x, sizes, axis);
    // Indexing
    "ragged_slice": ragged_slice(x, start, stop), ragged_slice_step(x, start, stop, step),
        ragged_slice_axis(x, start, stop, step, axis);
    "ragged_head": ragged_head(x, n), ragged_head_axis(x, n, axis);
    "ragged_tail": ragged_tail(x, n), ragged_tail_axis(x, n, axis);
    "ragged_get": ragged_get(x, index);
    "ragged_at": ragged_at(x, i; more);
    "ragged_at_or": ragged_at_or(x, default, i; more);
    "ragged_filter": ragged_filter(x, mask);
    "ragged_compress": ragged_compress(x, mask);
    "ragged_take": ragged_take(x, indices);
    "ragged_reverse": ragged_reverse(x), ragged_reverse_axis(x, axis);
    "ragged_repeat": ragged_repeat(x, n), ragged_repeat_axis(x, n, axis);
    "ragged_scatter": ragged_scatter(x, indices, values);
    "ragged_indices_from_mask": ragged_indices_from_mask(mask);
    "ragged_mask_from_indices": ragged_mask_from_indices(indices, size);
    "ragged_searchsorted": ragged_searchsorted(times, t), ragged_searchsorted_side(times, t, side);
    "ragged_between": ragged_between(x, low, high), ragged_between_times(x, time, low, high),
        ragged_between_closed(x, time, low, high, closed);
    // Reductions
    "ragged_sum": ragged_sum(x), ragged_sum_axis(x, axis);
    "ragged_prod": ragged_prod(x), ragged_prod_axis(x, axis);
    "ragged_mean": ragged_mean(x), ragged_mean_axis(x, axis);
    "ragged_min": ragged_min(x), ragged_min_axis(x, axis);
    "ragged_max": ragged_max(x), ragged_max_axis(x, axis);
    "ragged_std": ragged_std(x), ragged_std_axis(x, axis), ragged_std_ddof(x, axis, ddof);
    "ragged_var": ragged_var(x), ragged_var_axis(x, axis), ragged_var_ddof(x, axis, ddof);
    "ragged_median": ragged_median(x), ragged_median_axis(x, axis);
    "ragged_quantile": ragged_quantile(x, q), ragged_quantile_axis(x, q, axis);
    "ragged_argmin": ragged_argmin(x), ragged_argmin_axis(x, axis);
    "ragged_argmax": ragged_argmax(x), ragged_argmax_axis(x, axis);
    "ragged_first": ragged_first(x), ragged_first_axis(x, axis);
    "ragged_last": ragged_last(x), ragged_last_axis(x, axis);
    "ragged_nunique": ragged_nunique(x), ragged_nunique_axis(x, axis);
    "ragged_mode": ragged_mode(x), ragged_mode_axis(x, axis);
    "ragged_any": ragged_any(mask), ragged_any_axis(mask, axis);
    "ragged_all": ragged_all(mask), ragged_all_axis(mask, axis);
    // Cumulative functions and sorting
    "ragged_cumsum": ragged_cumsum(x), ragged_cumsum_axis(x, axis);
    "ragged_cumprod": ragged_cumprod(x), ragged_cumprod_axis(x, axis);
    "ragged_cummin": ragged_cummin(x), ragged_cummin_axis(x, axis);
    "ragged_cummax": ragged_cummax(x), ragged_cummax_axis(x, axis);
    "ragged_diff": ragged_diff(x), ragged_diff_n(x, n), ragged_diff_axis(x, n, axis);
    "ragged_shift": ragged_shift(x, n), ragged_shift_fill(x, n, fill),
        ragged_shift_axis(x, n, fill, axis);
    "ragged_ffill": ragged_ffill(x), ragged_ffill_axis(x, axis);
    "ragged_bfill": ragged_bfill(x), ragged_bfill_axis(x, axis);
    "ragged_sort": ragged_sort(x), ragged_sort_by(x, by), ragged_sort_order(x, by, order);
    "ragged_argsort": ragged_argsort(x), ragged_argsort_order(x, order);
    "ragged_rank": ragged_rank(x), ragged_rank_order(x, order);
    "ragged_unique": ragged_unique(x);
    // Groups and windows
    "ragged_group": ragged_group(x, keys), ragged_group_on(x, keys, groups);
    "ragged_group_keys": ragged_group_keys(keys);
    "ragged_window": ragged_window(x, time, at), ragged_window_how(x, time, at, how),
        ragged_window_before(x, time, at, how, before),
        ragged_window_after(x, time, at, how, before, after),
        ragged_window_closed(x, time, at, how, before, after, closed),
        ragged_window_quantile(x, time, at, how, before, after, closed, q);
    "ragged_asof": ragged_asof(x, time, at);
    "ragged_rolling": ragged_rolling(x, n, how), ragged_rolling_min(x, n, how, min_samples),
        ragged_rolling_quantile(x, n, how, min_samples, q);
    "ragged_ngrams": ragged_ngrams(x, n);
    "ragged_corr": ragged_corr(y, x), ragged_corr_axis(y, x, axis);
    "ragged_regr_slope": ragged_regr_slope(y, x), ragged_regr_slope_axis(y, x, axis);
    "ragged_regr_intercept": ragged_regr_intercept(y, x),
        ragged_regr_intercept_axis(y, x, axis);
    // Elementwise
    "ragged_add": ragged_add(a, b);
    "ragged_sub": ragged_sub(a, b);
    "ragged_mul": ragged_mul(a, b);
    "ragged_div": ragged_div(a, b);
    "ragged_mod": ragged_mod(a, b);
    "ragged_pow": ragged_pow(a, b);
    "ragged_minimum": ragged_minimum(a, b);
    "ragged_maximum": ragged_maximum(a, b);
    "ragged_eq": ragged_eq(a, b);
    "ragged_ne": ragged_ne(a, b);
    "ragged_lt": ragged_lt(a, b);
    "ragged_le": ragged_le(a, b);
    "ragged_gt": ragged_gt(a, b);
    "ragged_ge": ragged_ge(a, b);
    "ragged_and": ragged_and(a, b);
    "ragged_or": ragged_or(a, b);
    "ragged_xor": ragged_xor(a, b);
    "ragged_neg": ragged_neg(x);
    "ragged_not": ragged_not(mask);
    "ragged_is_null": ragged_is_null(x);
    "ragged_is_nan": ragged_is_nan(x);
    "ragged_round": ragged_round(x), ragged_round_digits(x, digits);
    "ragged_abs": ragged_abs(x);
    "ragged_sign": ragged_sign(x);
    "ragged_ceil": ragged_ceil(x);
    "ragged_floor": ragged_floor(x);
    "ragged_sqrt": ragged_sqrt(x);
    "ragged_exp": ragged_exp(x);
    "ragged_ln": ragged_ln(x);
    "ragged_log2": ragged_log2(x);
    "ragged_log10": ragged_log10(x);
    "ragged_where": ragged_where(mask, a, b);
    "ragged_fill_null": ragged_fill_null(x, value);
    "ragged_cast": ragged_cast(x, data_type);
    "ragged_try_cast": ragged_try_cast(x, data_type);
    "ragged_softmax": ragged_softmax(x), ragged_softmax_axis(x, axis);
    "ragged_log_softmax": ragged_log_softmax(x), ragged_log_softmax_axis(x, axis);
    "ragged_normalize": ragged_normalize(x), ragged_normalize_axis(x, axis),
        ragged_normalize_order(x, axis, p);
    // Text and codes
    "ragged_like": ragged_like(x, pattern);
    "ragged_ilike": ragged_ilike(x, pattern);
    "ragged_matches": ragged_matches(x, regex), ragged_matches_flags(x, regex, flags);
    "ragged_starts_with": ragged_starts_with(x, prefix);
    "ragged_isin": ragged_isin(x, values);
    "ragged_encode": ragged_encode(x, codes);
    "ragged_decode": ragged_decode(x, codes);
    "ragged_lookup": ragged_lookup(x, from, key, column);
    "ragged_bin": ragged_bin(val, code, from), ragged_bin_by(val, code, from, key, cuts);
    "descendants": descendants(roots), descendants_in(roots, codes);
    // Structs, broadcasting and coordinates
    "ragged_zip": ragged_zip(name, x; others);
    "ragged_unzip": ragged_unzip(x; names);
    "ragged_broadcast": ragged_broadcast(x, y), ragged_broadcast_how(x, y, how);
    "ragged_coords": ragged_coords(x), ragged_coords_axis(x, axis);
    // Dense tensors
    "densify": densify(x, sizes), densify_fill(x, sizes, fill), densify_side(x, sizes, fill, side);
    "densify_mask": densify_mask(x, sizes), densify_mask_side(x, sizes, side);
    "densify_valid": densify_valid(x, sizes), densify_valid_side(x, sizes, side);
    "ragged_pad": ragged_pad(x, sizes), ragged_pad_fill(x, sizes, fill),
        ragged_pad_side(x, sizes, fill, side);
    // Sparse tensors
    "dok_get": dok_get(m, i; more);
    "dok_contains": dok_contains(m, i; more);
    // Aggregates
    "ragged_sum_agg": ragged_sum_agg(x);
    "ragged_mean_agg": ragged_mean_agg(x);
    "ragged_min_agg": ragged_min_agg(x);
    "ragged_max_agg": ragged_max_agg(x);
    "ragged_max_shape_agg": ragged_max_shape_agg(x);
    "ragged_nest_agg": ragged_nest_agg(x);
    "ragged_concat_agg": ragged_concat_agg(x);
    "ragged_histogram_agg": ragged_histogram_agg(x), ragged_histogram_agg_top(x, n);
}

/// Returns a call of `ragged_map` over one list; `body` builds the expression from the lambda's
/// variable.
///
/// The variable has no type yet. Before you use the expression, resolve it with the schema it will
/// be evaluated on: `expr.resolve_lambda_variables(df.schema())?.data`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serrate::datafusion::prelude::*;
/// use serrate::expr_fn::{ragged_map, ragged_sum};
/// let df = serrate::sql::session().sql("SELECT [[1, 7], [9]] AS val, 10 AS k").await?;
/// let scaled = ragged_map(col("val"), |v| v * col("k") + lit(1));
/// let total = ragged_sum(scaled).resolve_lambda_variables(df.schema())?.data;
/// df.select(vec![total])?.show().await?;
/// # Ok(())
/// # }
/// ```
pub fn ragged_map(x: impl ExprArgument, body: impl FnOnce(Expr) -> Expr) -> Expr {
    map_call(vec![x.into_expr()], &["v"], |vars| {
        vars.into_iter().next().map_or(Expr::Literal(ScalarValue::Null, None), body)
    })
}

/// Applies a lambda like [`ragged_map`], but to several lists; `names` are its variables, one per
/// list.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serrate::datafusion::prelude::*;
/// use serrate::expr_fn::{ragged_map_over, ragged_sum};
/// let df = serrate::sql::session().sql("SELECT [1, 7] AS a, [10, 20] AS b").await?;
/// let sums = ragged_map_over([col("a"), col("b")], &["x", "y"], |v| v[0].clone() + v[1].clone());
/// let total = ragged_sum(sums).resolve_lambda_variables(df.schema())?.data;
/// let batches = df.select(vec![total.alias("s")])?.collect().await?;
/// assert_eq!(batches[0].num_rows(), 1);
/// # Ok(())
/// # }
/// ```
pub fn ragged_map_over(
    lists: impl IntoIterator<Item = impl ExprArgument>,
    names: &[&str],
    body: impl FnOnce(Vec<Expr>) -> Expr,
) -> Expr {
    map_call(lists.into_iter().map(ExprArgument::into_expr).collect(), names, body)
}

fn map_call(mut args: Vec<Expr>, names: &[&str], body: impl FnOnce(Vec<Expr>) -> Expr) -> Expr {
    let body = body(names.iter().map(|n| lambda_var(*n)).collect());
    args.push(lambda(names.iter().copied(), body));
    let map = Arc::clone(functions::get_map_function());
    Expr::HigherOrderFunction(HigherOrderFunction::new(map, args))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the line of `builders!` for a function with a syntax such as
    /// `f(x [, axis [, ddof]])`: one builder for the required arguments, and one per optional
    /// argument, named after that argument.
    fn write_builders(name: &str) -> String {
        let syntax = functions::find_first_syntax(name).unwrap();
        let inside = syntax.strip_prefix(name).and_then(|s| s.strip_prefix('(')).unwrap();
        let mut args: Vec<&str> = Vec::new();
        let mut builders = Vec::new();
        for (more, part) in inside.split('[').enumerate() {
            let given = part.trim_end_matches([')', ']']).split(',').map(str::trim);
            args.extend(given.filter(|a| !a.is_empty()));
            let plain = |a: &&str| a.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            assert!(args.iter().all(plain), "write the builders of {syntax} by hand");
            let suffix =
                if more > 0 { format!("_{}", args.last().unwrap()) } else { String::new() };
            builders.push(format!("{name}{suffix}({})", args.join(", ")));
        }
        format!("    {name:?}: {};\n", builders.join(", "))
    }

    #[test]
    fn builders_follow_the_syntax() {
        let found = write_builders("ragged_std");
        let expected = "ragged_std(x), ragged_std_axis(x, axis), ragged_std_ddof(x, axis, ddof)";
        assert_eq!(found, format!("    \"ragged_std\": {expected};\n"));
    }

    /// Adds the missing builders to this source file, for the next build.
    fn add_builders() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/expr_fn.rs");
        let mut source = std::fs::read_to_string(path).unwrap();
        for f in functions::all_scalar() {
            if !BUILT.iter().any(|(name, ..)| *name == f.name()) {
                let end = source.find("    // Aggregates\n").unwrap();
                source.insert_str(end, &write_builders(f.name()));
            }
        }
        std::fs::write(path, source).unwrap();
    }

    #[test]
    fn every_function_has_its_builders() {
        if std::env::var_os("SERRATE_BLESS").is_some() {
            return add_builders();
        }
        let scalar = functions::all_scalar();
        let aggregate = functions::all_aggregate();
        let names: Vec<&str> =
            scalar.iter().map(|f| f.name()).chain(aggregate.iter().map(|f| f.name())).collect();
        for name in &names {
            let (least, most) = functions::find_arity(name).unwrap();
            let built = |n: usize| {
                BUILT
                    .iter()
                    .any(|(b, least, open)| b == name && (*least == n || (*open && *least < n)))
            };
            // Only the planner makes calls with these numbers of arguments: it adds a look-up
            // table.
            let planned =
                |n: usize| matches!((*name, n), ("ragged_lookup", 5) | ("ragged_bin", 4 | 6));
            // A variadic function accepts any number of arguments. One builder makes all of its
            // calls, so it is enough to check calls with up to 8 optional arguments.
            for n in (least..=most.min(least + 8)).filter(|n| !planned(*n)) {
                assert!(built(n), "no builder of {name} with {n} argument(s)");
            }
        }
        for (name, ..) in BUILT {
            assert!(names.contains(name), "{name} is not a function");
        }
        for f in functions::all_higher_order() {
            assert_eq!(f.name(), "ragged_map");
        }
    }

    #[test]
    fn builders_call_their_function() {
        use datafusion::prelude::col;
        let text = |e: Expr| e.schema_name().to_string();
        assert_eq!(text(ragged_sum_axis(col("x"), -1)), "ragged_sum(x, -1)");
        assert_eq!(text(ragged_at(col("x"), 0, [1])), "ragged_at(x, 0, 1)");
        assert_eq!(text(ragged_slice(col("x"), None::<i64>, 3)), "ragged_slice(x, NULL, 3)");
        assert_eq!(text(ragged_pad_fill(col("x"), [2, 3], 0)), "ragged_pad(x, [2, 3], 0)");
        assert_eq!(text(ragged_gt(col("x"), 5)), "x > 5");
        assert_eq!(text(ragged_nest_agg(col("x"))), "ragged_nest_agg(x)");
        assert!(matches!(ragged_map(col("x"), |v| v + lit(1)), Expr::HigherOrderFunction(_)));
        for (name, ..) in BUILT {
            let known = functions::find_scalar(name).is_some();
            assert!(known || functions::find_aggregate(name).is_some(), "{name}");
        }
    }

    #[test]
    fn unknown_functions_are_errors() {
        use datafusion::common::DFSchema;
        use datafusion::logical_expr::ExprSchemable;
        let call = call_by_name("ragged_unknown", vec![lit(1)]);
        let error = call.get_type(&DFSchema::empty()).unwrap_err().to_string();
        assert!(error.contains("there is no function ragged_unknown"), "{error}");
    }
}
