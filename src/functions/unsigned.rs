//! Returns Int64 where DataFusion returns UInt64, as for numbers of rows, ranks and lengths.
//!
//! In arithmetic with a signed integer, a UInt64 becomes a DECIMAL(20, 0), whose quotients have
//! fractions. A UInt64 cannot be negated, and list functions do not accept a UInt64. Therefore:
//!
//! * Functions that count return Int64, as in DuckDB: `row_number`, `rank`, `dense_rank`, `ntile`,
//!   `approx_distinct`, and the functions of [`list_counts`](super::list_counts).
//! * Division of integers of any types truncates the quotient, and no operand is rounded
//!   ([`plan_quotient`]).
//! * Functions that accept an Int64 also accept a UInt64 within its range ([`takes_unsigned`]), and
//!   those that take a position in a list accept any UInt64.
//!
//! Remove the replacements of `row_number`, `rank`, `dense_rank` and `ntile` once
//! `stock_ranks_are_still_unsigned` in `tests/sql/integers.rs` fails.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, FieldRef, Int64Type, UInt64Type};
use arrow::error::ArrowError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DFSchema, ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::functions_window::ntile::ntile_udwf;
use datafusion::functions_window::rank::{dense_rank_udwf, rank_udwf};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::function::{
    ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs,
};
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::sqlparser::ast::BinaryOperator;
use datafusion::logical_expr::window_state::WindowAggState;
use datafusion::logical_expr::{
    BinaryExpr, Cast, ColumnarValue, Expr, ExprSchemable, LimitEffect, Operator,
    PartitionEvaluator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    WindowUDF, WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;

use super::common_decimal::find_common_decimal;
use super::common_unit::find_finest_unit;
use super::element_types::find_element_field;
use super::hidden::change_values;
use super::long_results::charge_result;
use super::stock_facts::{StockFact, has_fact};
use super::struct_elements::widen_structs;
use super::{call_on_arrays, chain, coerce_arguments, declare, delegate};
use crate::array::{leaf_type, list_depth};

/// Common type that DataFusion gives a UInt64 and a signed integer.
pub(super) const WIDE: DataType = DataType::Decimal128(20, 0);

/// Returns the window functions that count, with Int64 results. They replace DataFusion's.
pub(crate) fn build_signed_windows() -> [WindowUDF; 4] {
    [row_number_udwf(), rank_udwf(), dense_rank_udwf(), ntile_udwf()]
        .map(|inner| WindowUDF::new_from_impl(SignedWindow { inner }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct SignedWindow {
    inner: Arc<WindowUDF>,
}

impl WindowUDFImpl for SignedWindow {
    delegate!(inner: name, aliases, signature, coerce_types, documentation);

    fn expressions(&self, args: ExpressionArgs<'_>) -> Vec<Arc<dyn PhysicalExpr>> {
        self.inner.expressions(args)
    }

    fn partition_evaluator(
        &self,
        args: PartitionEvaluatorArgs<'_>,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        let inner = self.inner.partition_evaluator_factory(args)?;
        Ok(Box::new(SignedEvaluator { inner }))
    }

    fn field(&self, args: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        let field = self.inner.field(args)?;
        Ok(Arc::new(field.as_ref().clone().with_data_type(DataType::Int64)))
    }

    fn sort_options(&self) -> Option<arrow::compute::SortOptions> {
        self.inner.sort_options()
    }

    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        self.inner.inner().limit_effect(args)
    }
}

#[derive(Debug)]
struct SignedEvaluator {
    inner: Box<dyn PartitionEvaluator>,
}

/// Casts counts of rows to Int64, which they always fit.
fn to_signed(counts: &ArrayRef) -> Result<ArrayRef> {
    Ok(cast(counts, &DataType::Int64)?)
}

impl PartitionEvaluator for SignedEvaluator {
    fn memoize(&mut self, state: &mut WindowAggState) -> Result<()> {
        self.inner.memoize(state)
    }

    fn get_range(&self, row: usize, rows: usize) -> Result<Range<usize>> {
        self.inner.get_range(row, rows)
    }

    fn is_causal(&self) -> bool {
        self.inner.is_causal()
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        to_signed(&self.inner.evaluate_all(values, rows)?)
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        self.inner.evaluate(values, range)?.cast_to(&DataType::Int64)
    }

    fn evaluate_all_with_rank(&self, rows: usize, ranks: &[Range<usize>]) -> Result<ArrayRef> {
        to_signed(&self.inner.evaluate_all_with_rank(rows, ranks)?)
    }

    fn supports_bounded_execution(&self) -> bool {
        self.inner.supports_bounded_execution()
    }

    fn uses_window_frame(&self) -> bool {
        self.inner.uses_window_frame()
    }

    fn include_rank(&self) -> bool {
        self.inner.include_rank()
    }
}

/// Functions of DataFusion that accept Int64 but not UInt64. The test
/// `functions_of_integers_accept_unsigned_integers` in `tests/sql/integers.rs` fails if one is
/// missing.
const TAKING_SIGNED: [&str; 35] = [
    "array_append",
    "array_element",
    "array_has",
    "array_length",
    "array_position",
    "array_positions",
    "array_prepend",
    "array_remove",
    "array_remove_all",
    "array_remove_n",
    "array_repeat",
    "array_replace",
    "array_replace_all",
    "array_replace_n",
    "array_resize",
    "array_slice",
    "chr",
    "factorial",
    "from_unixtime",
    "gcd",
    "lcm",
    "left",
    "lpad",
    "make_date",
    "overlay",
    "regexp_count",
    "regexp_instr",
    "repeat",
    "right",
    "round",
    "rpad",
    "split_part",
    "substr",
    "substr_index",
    "trunc",
];

/// Functions of [`TAKING_SIGNED`] whose first argument is a list, and whose other arguments are
/// positions in this list. A position that does not fit an Int64 is beyond every list.
const TAKING_POSITIONS: [&str; 2] = ["array_element", "array_slice"];

pub(crate) fn is_for_signed(name: &str) -> bool {
    TAKING_SIGNED.contains(&name)
}

pub(crate) fn takes_unsigned(inner: Arc<ScalarUDF>) -> ScalarUDF {
    let signature = Signature::user_defined(inner.signature().volatility);
    ScalarUDF::new_from_impl(TakesUnsigned { inner, signature })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TakesUnsigned {
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

impl TakesUnsigned {
    fn takes_positions(&self) -> bool {
        TAKING_POSITIONS.contains(&self.inner.name())
    }
}

impl ScalarUDFImpl for TakesUnsigned {
    delegate!(inner: name, aliases, schema_name, return_type, return_field_from_args, documentation);

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let coerced = |types: &[DataType]| coerce_arguments(self.inner.as_ref(), types);
        let stock = coerced(types);
        let is_mended = |t: &DataType| {
            let leaf = leaf_type(t);
            is_unsigned_or_wide(leaf) || leaf.is_decimal() || is_time(leaf)
        };
        if let Some(wide) = widen_search(self.inner.name(), types) {
            return coerced(&wide).or(stock);
        }
        if stock.is_err()
            && let Some(numbers) = cast_text_to_number(self.inner.name(), types)
        {
            return self.coerce_types(&numbers).or(stock);
        }
        if stock.is_err()
            && let Some(bytes) = cast_to_bytes(self.inner.name(), types)
        {
            return coerced(&bytes).or(stock);
        }
        if stock.is_err()
            && let Some(widened) = widen_structs(self.inner.name(), types)
        {
            return coerced(&widened).or(stock);
        }
        if stock.is_ok() || !types.iter().any(is_mended) {
            return stock;
        }
        let signed = types.iter().map(|t| match is_unsigned_or_wide(t) {
            true => DataType::Int64,
            false => t.clone(),
        });
        let signed = coerced(&signed.collect::<Vec<_>>());
        if self.takes_positions() {
            return signed.map(|signed| keep_wide_positions(signed, types)).or(stock);
        }
        match find_element_types(self.inner.name(), types) {
            Some(common) => signed.or_else(|_| coerced(&common)).or(stock),
            None => signed.or(stock),
        }
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let inner = self.inner.inner().with_updated_config(config)?;
        Some(takes_unsigned(Arc::new(inner)))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let _charge = charge_result(self.inner.name(), &args)?;
        if self.takes_positions() {
            for position in args.args.iter_mut().skip(1) {
                if is_unsigned_or_wide(&position.data_type()) {
                    *position = change_values(position, clip_to_signed)?;
                }
            }
        }
        self.inner.invoke_with_args(args)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, info)
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.output_ordering(inputs)
    }
}

/// Returns the argument types `signed`, except that a position (any argument but the first) keeps
/// its type in `given` if this is UInt64 or a decimal, whose values can exceed an Int64.
fn keep_wide_positions(mut signed: Vec<DataType>, given: &[DataType]) -> Vec<DataType> {
    for (to, from) in signed.iter_mut().zip(given).skip(1) {
        if is_unsigned_or_wide(from) {
            *to = from.clone();
        }
    }
    signed
}

/// Casts UInt64 and decimals without fraction to Int64. A number that does not fit becomes the
/// least or greatest Int64.
fn clip_to_signed(numbers: &ArrayRef) -> Result<ArrayRef> {
    let clip = |number: i128| match i64::try_from(number) {
        Ok(number) => number,
        Err(_) if number < 0 => i64::MIN,
        Err(_) => i64::MAX,
    };
    let clipped: Int64Array = match numbers.data_type() {
        DataType::UInt64 => {
            numbers.as_primitive::<UInt64Type>().unary::<_, Int64Type>(|n| clip(n.into()))
        }
        DataType::Decimal128(_, 0) => {
            numbers.as_primitive::<Decimal128Type>().unary::<_, Int64Type>(clip)
        }
        _ => return Ok(Arc::clone(numbers)),
    };
    Ok(Arc::new(clipped))
}

/// Functions that return their list with elements added, removed or replaced.
const CHANGING: [&str; 8] = [
    "array_append",
    "array_prepend",
    "array_remove",
    "array_remove_all",
    "array_remove_n",
    "array_replace",
    "array_replace_all",
    "array_replace_n",
];

/// Returns the argument types of a call that searches a list of numbers for a string: the string is
/// cast to the type of the elements, as in a comparison of two scalars. If this cast fails, the
/// query fails. Returns `None` for other calls, and for lists of decimals, because the cast would
/// round the string.
fn cast_text_to_number(function: &str, types: &[DataType]) -> Option<Vec<DataType>> {
    let [list, value, ..] = types else { return None };
    let element = find_element_field(list)?.data_type();
    let is_number = element.is_integer() || element.is_floating();
    if !has_fact(function, StockFact::FindsElement) || !is_number || !value.is_string() {
        return None;
    }
    let mut found = types.to_vec();
    found[1] = element.clone();
    Some(found)
}

/// Returns the argument types of a call that searches a list of signed integers for a UInt64:
/// decimals, because DataFusion casts the UInt64 to Int64, which fails if it does not fit. Returns
/// `None` for other calls.
fn widen_search(function: &str, types: &[DataType]) -> Option<Vec<DataType>> {
    let [list, DataType::UInt64, ..] = types else { return None };
    let is_signed = find_element_field(list)?.data_type().is_signed_integer();
    let is_search = is_signed && has_fact(function, StockFact::FindsElement);
    is_search.then(|| find_element_types(function, types))?
}

/// Returns the argument types of a call that searches a list of bytes for bytes or NULL, or inserts
/// them into the list. The bytes or NULL get the type of the elements, because DataFusion finds no
/// common type of bytes and NULL, or of different types of bytes. Returns `None` for other calls.
fn cast_to_bytes(function: &str, types: &[DataType]) -> Option<Vec<DataType>> {
    use DataType::{Binary, BinaryView, FixedSizeBinary, LargeBinary, Null};
    let list = types.iter().find(|t| list_depth(t) > 0)?;
    let element = find_element_field(list)?.data_type();
    let has_any_length = matches!(element, Binary | LargeBinary | BinaryView);
    let takes_element = has_fact(function, StockFact::FindsElement) || CHANGING.contains(&function);
    if !takes_element || !has_any_length && !matches!(element, FixedSizeBinary(_)) {
        return None;
    }
    let convert = |t: &DataType| match t {
        Null => element.clone(),
        Binary | LargeBinary | BinaryView | FixedSizeBinary(_) if has_any_length => element.clone(),
        other => other.clone(),
    };
    let found: Vec<DataType> = types.iter().map(convert).collect();
    (found != types).then_some(found)
}

/// Returns the argument types of a call that searches a list for numbers or inserts numbers. The
/// elements and the numbers get a common type: a decimal that represents both or, if one of them is
/// a float, Float64. But a list of UInt64 into which integers are inserted keeps its type;
/// inserting a negative number is then an error. Timestamps, and likewise durations, get the finest
/// of their units, because DataFusion finds no common type for most pairs of units. Returns `None`
/// for other calls, and if there is no common type.
fn find_element_types(function: &str, types: &[DataType]) -> Option<Vec<DataType>> {
    let is_search = has_fact(function, StockFact::FindsElement);
    if !is_search && !CHANGING.contains(&function) {
        return None;
    }
    let at = types.iter().position(|t| list_depth(t) > 0)?;
    let field = find_element_field(&types[at])?;
    // Excludes an argument that is a number of elements or a position, not a value: the last
    // argument of `array_remove_n`, `array_replace_n` and `array_position`.
    let values = match function {
        "array_prepend" => 0..at,
        "array_position" | "array_remove_n" | "array_append" | "array_has" => at + 1..at + 2,
        "array_replace" | "array_replace_all" | "array_replace_n" => at + 1..at + 3,
        _ => at + 1..types.len(),
    };
    let compared: Vec<&DataType> =
        std::iter::once(field.data_type()).chain(types.get(values.clone())?).collect();
    let is_unsigned = *field.data_type() == DataType::UInt64;
    let common = match compared.iter().all(|t| t.is_integer() || t.is_null()) {
        true if is_unsigned && !is_search => DataType::UInt64,
        true if is_unsigned => WIDE,
        _ if compared.iter().any(|t| is_time(t)) => find_finest_unit(&compared)?,
        _ => find_common_decimal(&compared)?,
    };
    let field = Arc::new(field.as_ref().clone().with_data_type(common.clone()));
    let mut found = types.to_vec();
    found[values].fill(common);
    found[at] = match types[at] {
        DataType::LargeList(_) => DataType::LargeList(field),
        _ => DataType::List(field),
    };
    Some(found)
}

fn is_time(t: &DataType) -> bool {
    matches!(t, DataType::Timestamp(_, None) | DataType::Duration(_))
}

/// Whether a type is UInt64, or the decimal type that DataFusion computes from UInt64 in
/// arithmetic.
fn is_unsigned_or_wide(t: &DataType) -> bool {
    matches!(t, DataType::UInt64 | DataType::Decimal128(_, 0))
}

/// Casts the operand of a unary minus to a type that can represent the negated value.
pub(super) fn make_signed_operand(operand: Expr, schema: &DFSchema) -> Expr {
    let to = match operand.get_type(schema) {
        Ok(DataType::UInt8 | DataType::UInt16 | DataType::UInt32) => DataType::Int64,
        Ok(DataType::UInt64) => WIDE,
        _ => return operand,
    };
    Expr::Cast(Cast::new(Box::new(operand), to))
}

#[derive(Clone, Copy, PartialEq)]
enum IntegerKind {
    Signed,
    Unsigned,
    /// UInt8, UInt16 or UInt32, whose values fit both Int64 and UInt64.
    Small,
    /// A decimal without fraction, from arithmetic on a UInt64 and a signed integer.
    Wide,
}

impl IntegerKind {
    /// Returns the kind of a sum, product or remainder of operands of the kinds `self` and `other`.
    fn combine_with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Small, kind) | (kind, Self::Small) => kind,
            (left, right) if left == right => left,
            _ => Self::Wide,
        }
    }
}

/// Returns the kind of an integer expression, or `None` for any other expression, such as a decimal
/// column.
fn find_whole(expr: &Expr, schema: &DFSchema) -> Option<IntegerKind> {
    match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Modulo,
            right,
        }) => Some(find_whole(left, schema)?.combine_with(find_whole(right, schema)?)),
        // A long chain such as `a + b + c + ..` is one call. Combines the kinds of its operands,
        // which is much faster than computing the type of the call.
        Expr::ScalarFunction(call) if chain::is_chain(call) => {
            let mut operands = call.args.iter().skip(1);
            let first = find_whole(operands.next()?, schema)?;
            operands.try_fold(first, |whole, e| Some(whole.combine_with(find_whole(e, schema)?)))
        }
        Expr::Negative(of) => match of.as_ref() {
            Expr::Cast(cast) if *cast.field.data_type() == WIDE => {
                find_whole(&cast.expr, schema).map(|_| IntegerKind::Wide)
            }
            of => find_whole(of, schema),
        },
        Expr::ScalarFunction(call) if call.func.inner().is::<WholeQuotient>() => {
            match expr.get_type(schema).ok()? {
                DataType::Int64 => Some(IntegerKind::Signed),
                _ => Some(IntegerKind::Wide),
            }
        }
        expr => match expr.get_type(schema).ok()? {
            DataType::UInt64 => Some(IntegerKind::Unsigned),
            t if t.is_signed_integer() => Some(IntegerKind::Signed),
            t if t.is_unsigned_integer() => Some(IntegerKind::Small),
            _ => None,
        },
    }
}

fn find_unsigned_literal(expr: &Expr) -> Option<Expr> {
    let Expr::Literal(value, metadata) = expr else { return None };
    if value.is_null() || !value.data_type().is_signed_integer() {
        return None;
    }
    let value = value.cast_to(&DataType::UInt64).ok().filter(|v| !v.is_null())?;
    Some(Expr::Literal(value, metadata.clone()))
}

/// Plans `/` or `%` of two integers, such as a UInt64 and an Int64, that DataFusion would divide as
/// decimals, so that their quotient would have a fraction. Returns `None` for other operands. An
/// integer literal next to a UInt64 becomes a UInt64. The quotient of a UInt64 and an Int64 may fit
/// neither type (`/ -1`), so it is a DECIMAL(20, 0).
pub(super) fn plan_quotient(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let op = match expr.op {
        BinaryOperator::Divide => Operator::Divide,
        BinaryOperator::Modulo => Operator::Modulo,
        _ => return None,
    };
    let right = find_whole(&expr.right, schema)?;
    let left = find_whole(&expr.left, schema)?;
    let as_operator = |left: Expr, right: Expr| {
        Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
    };
    match (left, right) {
        (IntegerKind::Small, IntegerKind::Wide)
        | (IntegerKind::Wide, IntegerKind::Small | IntegerKind::Wide) => {}
        (left, right) if left == right => return None,
        (IntegerKind::Small, _) | (_, IntegerKind::Small) => return None,
        (IntegerKind::Unsigned, IntegerKind::Signed) => {
            if let Some(right) = find_unsigned_literal(&expr.right) {
                return Some(as_operator(expr.left.clone(), right));
            }
        }
        (IntegerKind::Signed, IntegerKind::Unsigned) => {
            if let Some(left) = find_unsigned_literal(&expr.left) {
                return Some(as_operator(left, expr.right.clone()));
            }
        }
        _ => {}
    }
    // DataFusion computes integers of these kinds as decimals of scale 0. The remainder of such
    // decimals also has scale 0, but their quotient has a fraction, so only `/` needs a function.
    (op == Operator::Divide).then(|| {
        ScalarUDF::new_from_impl(WholeQuotient).call(vec![expr.left.clone(), expr.right.clone()])
    })
}

/// `a / b` of integers in different types, rounded towards zero.
#[derive(Debug, PartialEq, Eq, Hash)]
struct WholeQuotient;

impl ScalarUDFImpl for WholeQuotient {
    declare!("__serrate_quotient", Signature::any(2, Volatility::Immutable));

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|e| e.to_string()).collect::<Vec<_>>().join(" / "))
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|e| e.schema_name().to_string()).collect::<Vec<_>>().join(" / "))
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            // A quotient is never larger than its dividend, so the width of the dividend suffices.
            [left, _] if left.is_signed_integer() => Ok(DataType::Int64),
            [DataType::Decimal128(digits, 0), _] => Ok(DataType::Decimal128(*digits, 0)),
            [_, _] => Ok(WIDE),
            types => plan_err!(
                "internal error: {} takes 2 operands, but has {}; please report it",
                self.name(),
                types.len()
            ),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(self.name(), &args, |[left, right]| {
            let exact = |value: &ArrayRef| cast(value, &DataType::Decimal128(38, 0));
            let (left, right) = (exact(&left)?, exact(&right)?);
            let quotients: Decimal128Array = arrow::compute::try_binary(
                left.as_primitive::<Decimal128Type>(),
                right.as_primitive::<Decimal128Type>(),
                |a, b| match b {
                    0 => Err(ArrowError::DivideByZero),
                    b => Ok(a / b),
                },
            )?;
            let quotients = quotients.with_precision_and_scale(38, 0)?;
            Ok(cast(&quotients, args.return_field.data_type())?)
        })
    }
}
