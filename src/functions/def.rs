//! The definition of a SQL function: its name, documentation, result type and computation.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, new_null_array};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Column, exec_err};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};

use super::args::{BatchArg, BatchCall, CallPlan};
use super::doc::{Doc, FunctionSection};
use super::{count_call_rows, naming, to_columnar};
use crate::array::{leaf_type, list_depth};
use crate::error::{Error, Result};

/// Definition of a scalar SQL function, which registration, documentation and tests use.
pub(crate) struct Def {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) arity: (usize, usize),
    pub(crate) doc: Doc,
    /// Checks the arguments at planning and returns the field of the result.
    pub(crate) plan: fn(&CallPlan<'_>) -> Result<FieldRef>,
    pub(crate) call: fn(&BatchCall<'_>) -> Result<ArrayRef>,
    /// The operator that column names show for a call, such as `>` in `val > 5`.
    pub(crate) infix: Option<&'static str>,
    pub(crate) fails: FailureCase,
    pub(crate) facts: FunctionFacts,
}

/// Facts about a function that optimizer rules use. [`NONE`](Self::NONE) is safe for every
/// function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionFacts {
    /// Whether the result of a call has fewer values than its arguments. If so, the rule
    /// `below_joins` moves calls of the function below joins.
    pub(crate) shrinks: bool,
    /// Whether a call with one argument depends on the values of a row, but not on how inner lists
    /// divide them. In `ragged_sum(ragged_filter(x, mask))`, `sql::pushdown::flat_filters` then
    /// replaces `ragged_filter` with `ragged_compress`, which builds no inner lists.
    pub(crate) whole_row: bool,
    /// The data that the function reads from its first argument, such as only the list lengths.
    /// The optimizer rule in `sql::pushdown::lengths` loads no other data of this argument.
    pub(crate) reads: ReadParts,
    /// The part of the list in the first argument on which a call depends. If the argument is a
    /// column of the table function `meds_asof` (the events of a subject up to a time), the scan
    /// copies only this part.
    pub(crate) part: ListPart,
    /// Whether the function compares values. If so, `sql::workarounds::types::times` refuses its
    /// calls on intervals, which have no order.
    pub(crate) compares: bool,
    /// Whether the function compares intervals with durations as durations.
    /// `sql::workarounds::types::times` then accepts intervals if the first argument has durations.
    pub(crate) compares_durations: bool,
    /// Whether argument 2 names the type of the result. `sql::checks::list_uses` checks this type.
    pub(crate) casts_to_named_type: bool,
    /// Whether `functions::chain` merges nested calls into one call, in which a letter represents
    /// each operator.
    pub(crate) chains: bool,
    /// Whether the first argument may be a scalar if another argument is a list. A NULL without a
    /// type is then such a scalar, otherwise a list that is NULL.
    pub(crate) starts_with_scalar: bool,
    /// Whether a call whose first argument is a NULL without a type returns another argument. Calls
    /// of other functions are NULL then.
    pub(crate) replaces_null: bool,
    /// Whether the first two arguments are parallel lists, whose values form pairs. FILTER (WHERE
    /// mask) then filters both lists.
    pub(crate) pairs: bool,
    /// Names of SQL functions that do for scalars or rows what this function does for lists. If one
    /// of them is called on a list, `sql::statement::errors::hints` suggests this function.
    pub(crate) instead_of: &'static [&'static str],
    /// Name of the SQL function whose calls on lists are planned as calls of this function.
    pub(crate) planned_for: Option<&'static str>,
    /// The argument that names a look-up table.
    pub(crate) table: Option<TableArgument>,
    /// Whether `cluster::preflight` evaluates calls in the session instead of on workers, because
    /// the function reads a file by path. A worker would resolve a relative path in its own working
    /// folder.
    #[cfg_attr(not(feature = "cluster"), allow(dead_code, reason = "clusters use it"))]
    pub(crate) reads_paths: bool,
}

/// The argument of a function that names a look-up table. Two arguments after it name the columns
/// of keys and values. The planner of statements adds one more argument, a subquery that reads the
/// table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableArgument {
    pub(crate) index: usize,
    /// Whether column names may be omitted. The names in `lookup::BIN_COLUMNS` then apply.
    pub(crate) has_default_columns: bool,
}

impl FunctionFacts {
    pub(crate) const NONE: Self = Self {
        shrinks: false,
        whole_row: false,
        reads: ReadParts::Values,
        part: ListPart::Whole,
        compares: false,
        compares_durations: false,
        casts_to_named_type: false,
        chains: false,
        starts_with_scalar: false,
        replaces_null: false,
        pairs: false,
        instead_of: &[],
        planned_for: None,
        table: None,
        reads_paths: false,
    };

    pub(crate) const OPERATES: Self = Self { starts_with_scalar: true, ..Self::NONE };

    pub(crate) const COMPARES: Self = Self { compares: true, ..Self::NONE };

    pub(crate) const REDUCES: Self = Self { shrinks: true, whole_row: true, ..Self::NONE };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadParts {
    Values,
    Lengths,
    /// The lengths of lists, and which values are NULL.
    LengthsAndNulls,
    /// If all arguments but the first are literals, the function only moves or drops values. The
    /// list lengths of its result then depend on list lengths of the first argument, not on values.
    Structure,
}

/// The part of a list on which a call depends if all arguments but the first, the list, are
/// literals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListPart {
    Whole,
    /// The call returns the elements before position `n`, as `ragged_head(x, n [, axis])` does.
    First,
    /// The call returns the last `n` elements, as `ragged_tail(x, n [, axis])` does.
    Last,
    /// The call returns a range of elements, as `ragged_slice(x, start, stop [, step])` does.
    Range,
    /// A call without further arguments returns the values of all levels in one list.
    Leaves,
    /// The call depends on one element, whose position is the second argument. The field says
    /// whether positions count from 0 or from 1.
    Element(i64),
    /// The call returns the length, as `ragged_lengths(x [, axis])` does.
    Length,
    /// A call without further arguments returns the number of values that are not NULL.
    Count,
}

impl ReadParts {
    pub(crate) fn is_length(self) -> bool {
        matches!(self, Self::Lengths | Self::LengthsAndNulls)
    }
}

/// When a call can fail although planning has accepted the types of its arguments. If a call cannot
/// fail, a rewrite may also evaluate it for rows that the query skips by a condition, a join or
/// another branch of CASE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureCase {
    Never,
    /// Can fail only if an argument other than the first is not a literal. Planning checks
    /// literals.
    ComputedArguments,
    /// Can fail only if lists that are matched element by element differ in length.
    UnequalLengths,
    /// Can fail only if a result does not fit the integers of its type.
    IntegerOverflow,
    /// Can fail for some values, such as an index out of range or a division by zero. The default.
    Values,
}

impl Def {
    /// Default values of the fields. Each definition sets `name`, `doc`, `plan` and `call` itself.
    pub(crate) const DEFAULTS: Self = Self {
        name: "",
        aliases: &[],
        arity: (1, 1),
        doc: Doc::EMPTY,
        plan: |plan| {
            Err(plan.refuse_call(
                "internal error: the function has no definition with which to check its arguments; please report it"
            ))
        },
        call: |_| {
            Err(Error::invalid("internal error: the function has no definition; please report it"))
        },
        infix: None,
        fails: FailureCase::Values,
        facts: FunctionFacts::NONE,
    };

    /// Whether a call can fail for some values. `shapes[i]` is a column with the list lengths of
    /// argument `i`, if known, so arguments with the same column have equal lengths. `written` is
    /// whether all arguments but the first are literals.
    pub(crate) fn can_fail(
        &self,
        types: &[DataType],
        shapes: &[Option<&Column>],
        written: bool,
    ) -> bool {
        match self.fails {
            FailureCase::Never => false,
            FailureCase::Values => true,
            FailureCase::ComputedArguments => !written,
            FailureCase::IntegerOverflow => types
                .iter()
                .any(|t| !matches!(leaf_type(t), DataType::Boolean) && !leaf_type(t).is_floating()),
            FailureCase::UnequalLengths => {
                let mut lists = types.iter().zip(shapes).filter(|(t, _)| list_depth(t) > 0);
                match lists.next() {
                    Some((_, Some(first))) => lists.any(|(_, shape)| *shape != Some(*first)),
                    Some((_, None)) => lists.next().is_some(),
                    None => false,
                }
            }
        }
    }

    /// Returns the names of the parameters. Returns `None` if the function takes any number of
    /// arguments, or if its syntaxes name different parameters.
    pub(crate) fn list_parameter_names(&self) -> Option<Vec<&'static str>> {
        let calls = self.doc.syntax.iter().filter_map(|syntax| parse_parameters(syntax));
        let calls: Vec<Vec<&str>> = calls.collect();
        let longest = calls.iter().max_by_key(|names| names.len())?;
        let agree = calls.iter().all(|names| longest.starts_with(names));
        (longest.len() == self.arity.1 && agree).then(|| longest.clone())
    }

    /// Whether the result has one value per value of the list arguments, as for elementwise
    /// functions.
    pub(crate) fn keeps_lengths(&self) -> bool {
        match self.doc.section {
            FunctionSection::Elementwise => true,
            FunctionSection::Codes => self.fails != FailureCase::Values,
            _ => false,
        }
    }
}

/// Returns the parameters in a syntax such as `f(x [, axis])`; `None` for the syntax of an
/// operator.
fn parse_parameters(syntax: &'static str) -> Option<Vec<&'static str>> {
    let (_, inside) = syntax.strip_suffix(')')?.split_once('(')?;
    let names: Vec<&str> =
        inside.split(',').map(|part| part.trim_matches([' ', '[', ']'])).collect();
    let is_name = |n: &&str| !n.is_empty() && n.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    names.iter().all(is_name).then_some(names)
}

/// Maximum arity of functions that take any number of arguments.
pub(crate) const ANY: usize = usize::MAX;

pub(crate) fn make_nullable(data_type: DataType) -> FieldRef {
    Arc::new(Field::new("", data_type, true))
}

/// Adds the function's name to an error about arguments or values, but not to others, such as an
/// error about a file.
fn add_function(def: &Def, error: Error) -> Error {
    match error {
        Error::Arrow(_)
        | Error::Invalid(_)
        | Error::NoSuchAxis { .. }
        | Error::Offsets { .. }
        | Error::OutOfRange { .. }
        | Error::OutOfRangeAt { .. }
        | Error::OutOfRangeIn { .. }
        | Error::Overflow(_)
        | Error::Type { .. } => Error::invalid(prefix_message(def, &error.to_string())),
        other => other,
    }
}

fn prefix_message(def: &Def, message: &str) -> String {
    if message.starts_with(def.name) {
        return message.to_owned();
    }
    let kernel = def.name.trim_start_matches("ragged_");
    let rest = message.strip_prefix(kernel).and_then(|rest| rest.strip_prefix(": "));
    let rest = rest.unwrap_or(message);
    match def.infix {
        Some(operator) => {
            let rest =
                rest.strip_prefix(operator).and_then(|r| r.strip_prefix(": ")).unwrap_or(rest);
            format!("{} ({operator}): {rest}", def.name)
        }
        None => format!("{}: {rest}", def.name),
    }
}

pub(crate) struct RaggedUdf {
    def: &'static Def,
    signature: Signature,
    aliases: Vec<String>,
    documentation: Documentation,
}

impl RaggedUdf {
    pub(crate) fn new_udf(def: &'static Def) -> ScalarUDF {
        ScalarUDF::new_from_impl(Self {
            def,
            // The function checks types itself, because its messages are more specific.
            signature: Signature::variadic_any(Volatility::Immutable),
            aliases: def.aliases.iter().map(ToString::to_string).collect(),
            documentation: def.doc.to_documentation(),
        })
    }
}

impl fmt::Debug for RaggedUdf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RaggedUdf").field(&self.def.name).finish()
    }
}

/// Functions have no state, so the name identifies them.
impl PartialEq for RaggedUdf {
    fn eq(&self, other: &Self) -> bool {
        self.def.name == other.def.name
    }
}

impl Eq for RaggedUdf {}

impl Hash for RaggedUdf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.def.name.hash(state);
    }
}

impl ScalarUDFImpl for RaggedUdf {
    fn name(&self) -> &str {
        self.def.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn schema_name(&self, args: &[Expr]) -> DfResult<String> {
        naming::name_call(self.def, args)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Declares scalar subqueries, which read the table of a look-up, as conditional arguments.
    /// Otherwise, if two calls read the same table, the optimizer would compute the table once as a
    /// column, which has a copy of the table in each row.
    ///
    /// The arguments after the first subquery are declared conditional, too: the elimination of
    /// common subexpressions numbers the unconditional arguments first, but later expects the
    /// numbers in the order of the arguments.
    fn conditional_arguments<'a>(
        &self,
        args: &'a [Expr],
    ) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        let mut unconditional: Vec<&Expr> = args.iter().collect();
        let first = args.iter().position(|e| matches!(e, Expr::ScalarSubquery(_)));
        let conditional = unconditional.split_off(first.unwrap_or(args.len()));
        Some((unconditional, conditional))
    }

    /// Whether a NULL argument always makes the result NULL. True only for functions of one
    /// argument: in other functions, NULL can stand for an argument that is not given.
    fn is_strict(&self) -> bool {
        self.def.arity == (1, 1)
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        exec_err!(
            "internal error: the result type of {} is requested from types alone, but also depends on the values of literal arguments; please report it",
            self.def.name
        )
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        let plan = CallPlan::new(self.def, args.arg_fields, args.scalar_arguments);
        plan.check_arity()
            .and_then(|()| {
                let facts = &self.def.facts;
                match plan.is_untyped_null(0) {
                    // The NULL may be a parameter whose type, once known, makes the call valid.
                    true if facts.starts_with_scalar && plan.has_list() => {
                        (self.def.plan)(&plan).or_else(|_| Ok(make_nullable(DataType::Null)))
                    }
                    true if !facts.replaces_null => Ok(make_nullable(DataType::Null)),
                    _ => (self.def.plan)(&plan),
                }
            })
            .map(|field| {
                let field = remove_other_extension(field, args.arg_fields);
                Arc::new(field.with_name(self.def.name))
            })
            .map_err(|e| match e {
                crate::Error::DataFusion(e) => *e,
                e => DataFusionError::Plan(prefix_message(self.def, &e.to_string())),
            })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        // If all arguments are constant, computes one row instead of the whole batch.
        let (is_one, rows) = count_call_rows(&args);
        let (field, config) = (&args.return_field, &args.config_options);
        let returns = field.data_type();
        let given: Vec<BatchArg> = args.args.into_iter().map(BatchArg::from).collect();
        let call = BatchCall::new(self.def, &given, rows, field, config);
        let array = match returns {
            DataType::Null => new_null_array(&DataType::Null, rows),
            _ => (self.def.call)(&call).map_err(|e| add_function(self.def, e))?,
        };
        if array.len() != rows || array.data_type() != returns {
            return exec_err!(
                "internal error: {} returned {} rows of type {}, but {rows} rows of type {returns} were planned; please report it",
                self.def.name,
                array.len(),
                array.data_type()
            );
        }
        to_columnar(array, is_one)
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&self.documentation)
    }
}

/// Keys of the metadata of a field that has an extension type.
const EXTENSION_NAME: &str = "ARROW:extension:name";
const EXTENSION_METADATA: &str = "ARROW:extension:metadata";

/// Removes the extension type of an argument from the field of a result, if the result and the
/// argument differ in type. Otherwise a list could be marked as a fixed-shape tensor, which readers
/// refuse.
pub(crate) fn remove_other_extension(field: FieldRef, args: &[FieldRef]) -> Field {
    let field = Arc::unwrap_or_clone(field);
    let extension = field.metadata().get(EXTENSION_NAME);
    let is_inherited = extension.is_some()
        && args.iter().any(|arg| {
            arg.metadata().get(EXTENSION_NAME) == extension && arg.data_type() != field.data_type()
        });
    if is_inherited { remove_extension(field) } else { field }
}

/// Removes the extension type from a field that has the metadata of a field of another type.
pub(crate) fn remove_extension(mut field: Field) -> Field {
    field.metadata_mut().remove(EXTENSION_NAME);
    field.metadata_mut().remove(EXTENSION_METADATA);
    field
}
