//! Replaces long chains of arithmetic, such as `a + b + c + ..` on scalars or lists, with one call
//! of [`ChainFunction`] or [`ListChain`] whose arguments are the operands.
//!
//! The parser nests each operator in the next operator. DataFusion computes the type and the name
//! of an operator from all operators nested in it, so planning time is quadratic in the length of a
//! chain. Evaluation recurses once per operator. Chains cannot be balanced, because order matters
//! for floats and for integers that overflow.

use std::fmt::Write;
use std::sync::{Arc, LazyLock};

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::{ScalarValue, internal_datafusion_err, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr as PhysicalBinary, Column, Literal};
use serrate_core::internal::build_record_batch;

use super::declare;

/// Minimum number of nested operators, as in `a + b + c`, that are replaced with one call of the
/// function [`ChainFunction`]. Optimizer rules do not recognize the call, so shorter expressions
/// stay unchanged.
const MIN_CHAIN: usize = 64;

/// Minimum number of operators on the result of a [`ChainFunction`] call that are appended to this
/// call, all at once. Fewer operators stay outside of the call.
const MIN_APPENDED: usize = 16;

/// Maximum number of computed operands (neither columns nor literals) of one call, because the
/// values of all of them are in memory at once.
const MAX_COMPUTED: usize = 64;

/// The operators that a [`ChainFunction`] call can contain, each with its letter in the first
/// argument of the call.
const OPERATORS: [(Operator, char); 10] = [
    (Operator::Plus, '+'),
    (Operator::Minus, '-'),
    (Operator::Multiply, '*'),
    (Operator::Divide, '/'),
    (Operator::Modulo, '%'),
    (Operator::BitwiseAnd, '&'),
    (Operator::BitwiseOr, '|'),
    (Operator::BitwiseXor, '#'),
    (Operator::BitwiseShiftLeft, '<'),
    (Operator::BitwiseShiftRight, '>'),
];

fn encode_operator(op: Operator) -> Option<char> {
    OPERATORS.iter().find(|(known, _)| *known == op).map(|(_, letter)| *letter)
}

fn decode_operator(letter: char) -> Result<Operator> {
    let found = OPERATORS.iter().find(|(_, known)| *known == letter);
    found.map(|(op, _)| *op).ok_or_else(|| {
        internal_datafusion_err!(
            "internal error: {letter} does not \
     encode an operator; please report it"
        )
    })
}

/// Whether an expression nests enough operators on its left to replace them with one
/// [`ChainFunction`] call: [`MIN_CHAIN`] operators, or [`MIN_APPENDED`] operators on a call of this
/// function.
pub(crate) fn is_long(expr: &Expr) -> bool {
    let mut next = expr;
    for length in 0..MIN_CHAIN {
        next = match next {
            Expr::BinaryExpr(binary) if encode_operator(binary.op).is_some() => &binary.left,
            other => return length >= MIN_APPENDED && as_chain(other).is_some(),
        };
    }
    true
}

/// Maximum depth of nested operators, so that a thread with a small stack can copy and compare
/// them.
pub(super) const MAX_DEPTH: usize = 256;

/// Whether an expression nests more than [`MAX_DEPTH`] operators, such as a date with many
/// intervals added. Long arithmetic on numbers and lists is replaced with calls before this check.
pub(super) fn is_too_deep(expr: &Expr) -> bool {
    let mut next = expr;
    let mut depth = 0usize;
    loop {
        next = match next {
            Expr::BinaryExpr(binary) => &binary.left,
            Expr::Cast(cast) => &cast.expr,
            _ => return false,
        };
        depth += 1;
        if depth > MAX_DEPTH {
            return true;
        }
    }
}

fn as_chain(expr: &Expr) -> Option<&ScalarFunction> {
    match expr {
        Expr::ScalarFunction(call) if Arc::ptr_eq(&call.func, &CHAIN) => Some(call),
        _ => None,
    }
}

pub(crate) fn is_chain(call: &ScalarFunction) -> bool {
    Arc::ptr_eq(&call.func, &CHAIN) || Arc::ptr_eq(&call.func, &LIST_CHAIN)
}

/// Replaces the nested operators of `expr` with one call of [`ChainFunction`]. If an operand is not
/// a number, returns `expr` unchanged as the error.
pub(crate) fn gather_operands(
    expr: Expr,
    schema: &datafusion::common::DFSchema,
) -> Result<Expr, Box<Expr>> {
    let is_number = |e: &Expr| e.get_type(schema).is_ok_and(|t| t.is_numeric());
    let mut next = &expr;
    while let Expr::BinaryExpr(BinaryExpr { left, op, right }) = next
        && encode_operator(*op).is_some()
    {
        if !is_number(right) {
            return Err(Box::new(expr));
        }
        next = left;
    }
    if !is_number(next) {
        return Err(Box::new(expr));
    }
    let mut rest = expr;
    let (mut letters, mut operands) = (Vec::new(), Vec::new());
    loop {
        match rest {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if encode_operator(op).is_some() => {
                letters.extend(encode_operator(op));
                operands.push(*right);
                rest = *left;
            }
            first => {
                rest = first;
                break;
            }
        }
    }
    letters.reverse();
    operands.reverse();
    let is_computed = |e: &&Expr| !matches!(e, Expr::Column(_) | Expr::Literal(..));
    let (mut written, mut args) = match rest {
        Expr::ScalarFunction(call)
            if Arc::ptr_eq(&call.func, &CHAIN)
                && call.args.iter().chain(&operands).filter(is_computed).count()
                    <= MAX_COMPUTED =>
        {
            let mut args = call.args;
            (write_letters(&args.remove(0)), args)
        }
        first => (String::new(), vec![first]),
    };
    written.extend(letters);
    args.extend(operands);
    args.insert(0, lit(written));
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&CHAIN), args)))
}

fn write_letters(expr: &Expr) -> String {
    match expr {
        Expr::Literal(ScalarValue::Utf8(Some(letters)), _) => letters.clone(),
        _ => String::new(),
    }
}

static CHAIN: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(ChainFunction)));

/// `__serrate_chain('+*', a, b, c)` computes `(a + b) * c`, and has the type of that expression.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ChainFunction;

impl ScalarUDFImpl for ChainFunction {
    declare!("__serrate_chain", Signature::variadic_any(Volatility::Immutable));

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        write_chain(args, |e| e.to_string())
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        write_chain(args, |e| e.schema_name().to_string())
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        internal_err!(
            "internal error: the result type of __serrate_chain is requested from types alone, but also depends on the value of argument 1; please report it"
        )
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let (Some(Some(ScalarValue::Utf8(Some(letters)))), [_, first, rest @ ..]) =
            (args.scalar_arguments.first(), args.arg_fields)
        else {
            return fail_without_operators("__serrate_chain");
        };
        let mut found = first.data_type().clone();
        for (letter, next) in letters.chars().zip(rest) {
            let op = decode_operator(letter)?;
            found = BinaryTypeCoercer::new(&found, &op, next.data_type()).get_result_type()?;
        }
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), found, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let mut args = args.args.into_iter();
        let (Some(ColumnarValue::Scalar(ScalarValue::Utf8(Some(letters)))), Some(mut so_far)) =
            (args.next(), args.next())
        else {
            return fail_without_operators("__serrate_chain");
        };
        for (letter, next) in letters.chars().zip(args) {
            so_far = apply_operator(so_far, decode_operator(letter)?, next, rows)?;
        }
        Ok(so_far)
    }
}

fn fail_without_operators<T>(function: &str) -> Result<T> {
    internal_err!(
        "internal error: argument 1 of {function} is not the string of its operators; please report it"
    )
}

fn write_chain(args: &[Expr], name: impl Fn(&Expr) -> String) -> Result<String> {
    let [letters, first, rest @ ..] = args else {
        return fail_without_operators("__serrate_chain");
    };
    let mut out = name(first);
    for (letter, next) in write_letters(letters).chars().zip(rest) {
        write!(out, " {} {}", decode_operator(letter)?, name(next))?;
    }
    Ok(out)
}

fn apply_operator(
    left: ColumnarValue,
    op: Operator,
    right: ColumnarValue,
    rows: usize,
) -> Result<ColumnarValue> {
    let types = (left.data_type(), right.data_type());
    let (to_left, to_right) = BinaryTypeCoercer::new(&types.0, &op, &types.1).get_input_types()?;
    let mut columns = OperandColumns::default();
    let left = columns.add(left, types.0, &to_left)?;
    let right = columns.add(right, types.1, &to_right)?;
    let schema = Arc::new(Schema::new(columns.fields));
    let batch = build_record_batch(schema, columns.arrays, rows)?;
    PhysicalBinary::new(left, op, right).evaluate(&batch)
}

/// Operands of one operator, collected as the columns of a batch. The operator is evaluated on this
/// batch.
#[derive(Default)]
struct OperandColumns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl OperandColumns {
    fn add(
        &mut self,
        value: ColumnarValue,
        found: DataType,
        to: &DataType,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let value = if found == *to { value } else { value.cast_to(to, None)? };
        Ok(match value {
            ColumnarValue::Scalar(scalar) => Arc::new(Literal::new(scalar)),
            ColumnarValue::Array(array) => {
                let (name, at) = ("operand", self.arrays.len());
                self.fields.push(Field::new(name, to.clone(), true));
                self.arrays.push(array);
                Arc::new(Column::new(name, at))
            }
        })
    }
}

/// Minimum number of nested operators on lists that are replaced with one call of the function
/// [`ListChain`].
const LONG_OF_LISTS: usize = 16;

/// Returns the letter for the operator of `call` in the first argument of a [`ListChain`]; `None`
/// if a [`ListChain`] cannot contain this operator.
fn list_letter(call: &ScalarFunction) -> Option<char> {
    let def = super::find_definition(&call.func).filter(|def| def.facts.chains)?;
    let letter = def.infix?.chars().next()?;
    (call.args.len() == 2).then_some(letter)
}

fn list_function(letter: char) -> Result<&'static Arc<ScalarUDF>> {
    let is_operator = |infix: &str| infix.starts_with(letter);
    let found =
        super::DEFS.iter().find(|def| def.facts.chains && def.infix.is_some_and(is_operator));
    found.and_then(|def| super::find_scalar(def.name)).ok_or_else(|| {
        internal_datafusion_err!(
            "internal error: {letter} does not encode an operator on \
         lists; please report it"
        )
    })
}

pub(super) fn is_list_chain(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if Arc::ptr_eq(&call.func, &LIST_CHAIN))
}

/// Merges operators on lists into one call. If the left operand of `call` is a [`ListChain`],
/// appends the operator to it. Otherwise, replaces deeply nested calls with one [`ListChain`].
pub(super) fn join_lists(call: Expr) -> Expr {
    let Expr::ScalarFunction(mut call) = call else { return call };
    let Some(letter) = list_letter(&call) else { return Expr::ScalarFunction(call) };
    if is_list_chain(&call.args[0]) {
        let right = call.args.remove(1);
        return match call.args.remove(0) {
            Expr::ScalarFunction(chain) => append_operator(chain, letter, right),
            other => other,
        };
    }
    let mut length = 1usize;
    let mut next = &call.args[0];
    while let Expr::ScalarFunction(inner) = next
        && length < LONG_OF_LISTS
        && list_letter(inner).is_some()
    {
        length += 1;
        next = &inner.args[0];
    }
    match length < LONG_OF_LISTS {
        true => Expr::ScalarFunction(call),
        false => gather_lists(call),
    }
}

fn gather_lists(call: ScalarFunction) -> Expr {
    let (mut letters, mut operands) = (Vec::new(), Vec::new());
    let mut rest = Expr::ScalarFunction(call);
    loop {
        match rest {
            Expr::ScalarFunction(mut call) if list_letter(&call).is_some() => {
                letters.extend(list_letter(&call));
                operands.push(call.args.remove(1));
                rest = call.args.remove(0);
            }
            first => {
                operands.push(first);
                break;
            }
        }
    }
    letters.reverse();
    operands.reverse();
    operands.insert(0, lit(letters.into_iter().collect::<String>()));
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&LIST_CHAIN), operands))
}

/// Appends the operator with the letter `letter` and its right operand to `chain`, a [`ListChain`]
/// call. A call with more than [`MAX_COMPUTED`] computed operands (neither columns nor literals)
/// becomes the left operand of a new call.
fn append_operator(mut chain: ScalarFunction, letter: char, right: Expr) -> Expr {
    let is_computed = |e: &&Expr| !matches!(e, Expr::Column(_) | Expr::Literal(..));
    if chain.args.iter().filter(is_computed).count() > MAX_COMPUTED {
        let args = vec![lit(letter.to_string()), Expr::ScalarFunction(chain), right];
        return Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&LIST_CHAIN), args));
    }
    let mut letters = chain.args.first().map(write_letters).unwrap_or_default();
    letters.push(letter);
    if let Some(first) = chain.args.first_mut() {
        *first = lit(letters);
    }
    chain.args.push(right);
    Expr::ScalarFunction(chain)
}

static LIST_CHAIN: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(ListChain)));

/// `__serrate_list_chain('+*', a, b, c)` is `(a + b) * c` on lists.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ListChain;

fn list_field(function: &ScalarUDF, left: &FieldRef, right: &FieldRef) -> Result<FieldRef> {
    let arg_fields = [Arc::clone(left), Arc::clone(right)];
    function.return_field_from_args(ReturnFieldArgs {
        arg_fields: &arg_fields,
        scalar_arguments: &[None, None],
    })
}

impl ScalarUDFImpl for ListChain {
    declare!("__serrate_list_chain", Signature::variadic_any(Volatility::Immutable));

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [letters, first, rest @ ..] = args else {
            return fail_without_operators("__serrate_list_chain");
        };
        let letters = write_letters(letters);
        let functions = letters
            .chars()
            .filter_map(|letter| super::find_definition(list_function(letter).ok()?));
        super::naming::write_chain_name(first, functions.zip(rest))
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        internal_err!(
            "internal error: the result type of __serrate_list_chain is requested from types alone, but also depends on the value of argument 1; please report it"
        )
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let (Some(Some(ScalarValue::Utf8(Some(letters)))), [_, first, rest @ ..]) =
            (args.scalar_arguments.first(), args.arg_fields)
        else {
            return fail_without_operators("__serrate_list_chain");
        };
        let mut found = Arc::clone(first);
        for (letter, next) in letters.chars().zip(rest) {
            found = list_field(list_function(letter)?, &found, next)?;
        }
        Ok(found)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let ScalarFunctionArgs { args, arg_fields, number_rows, config_options, .. } = args;
        let mut values = args.into_iter();
        let mut fields = arg_fields.into_iter().skip(1);
        let (
            Some(ColumnarValue::Scalar(ScalarValue::Utf8(Some(letters)))),
            Some(first),
            Some(field),
        ) = (values.next(), values.next(), fields.next())
        else {
            return fail_without_operators("__serrate_list_chain");
        };
        let (mut so_far, mut so_far_field) = (first, field);
        for (letter, (value, field)) in letters.chars().zip(values.zip(fields)) {
            let function = list_function(letter)?;
            let return_field = list_field(function, &so_far_field, &field)?;
            so_far = function.invoke_with_args(ScalarFunctionArgs {
                args: vec![so_far, value],
                arg_fields: vec![so_far_field, field],
                number_rows,
                return_field: Arc::clone(&return_field),
                config_options: Arc::clone(&config_options),
            })?;
            so_far_field = return_field;
        }
        Ok(so_far)
    }
}
