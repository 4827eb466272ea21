//! `dok_get` and `dok_contains`: look-ups in sparse tensors and dictionaries.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, UInt64Array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::kernels::zip::zip;
use arrow::compute::{can_cast_types, cast, take};
use arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
};
use serrate_core::internal::cast_strictly;

use super::args::{BatchCall, CallPlan};
use super::def::{ANY, Def, FunctionFacts, make_nullable};
use super::delegate;
use super::doc::{Doc, FunctionSection};
use super::example;
use super::index;
use super::lists::NestedListType;
use crate::array::RaggedArray;
use crate::dense::DenseTensor;
use crate::dok::{DokTensor, Fallback};
use crate::error::{Error, Result};
use crate::kernels::coords::coord;
use crate::kernels::text::is_text;
use serrate_core::internal::keyed::{self, KeyedContents, KeyedSpec, KeyedVersion};
use serrate_core::internal::{align_arrays, replace_validity, share_lists};

const TABLE: (&str, &str) = (
    "m",
    "a table `STORED AS DOK`, a literal: its name, which is resolved to a file when the query is planned, or the path of such a file",
);
const KEYS: (&str, &str) = (
    "i, j, ..",
    "one index per axis of the tensor, of any integer type (negative ones count from the end), or one value per key column of the dictionary, in that order. They may be lists of the same lengths; scalars are combined with every element",
);
const SUCH: &str = "'m'";

pub(super) static GET: Def = Def {
    name: "dok_get",
    arity: (2, ANY),
    doc: Doc {
        section: FunctionSection::Sparse,
        description: "Returns the value of an entry of a sparse tensor or dictionary, per row. It looks up a batch at a time in a hash table, without a join. The table name is resolved when the query is planned, and all rows see that version of the file.",
        syntax: &["dok_get('m', i, j, .. [, default])", "dok_get(x, i, j, ..)"],
        args: &[
            TABLE,
            KEYS,
            (
                "default",
                "the value if there is no entry: a scalar or a column; 0 by default for a tensor, NULL for a dictionary",
            ),
            ("x", "a list of any depth in place of a table; the function is then `ragged_at`"),
        ],
        missing: "If there is no entry, the result is the default. An index outside the tensor is not an error; it has no entry. A NULL index or key returns NULL, whatever the default; a NULL list returns NULL.",
        duckdb: "`LEFT JOIN m USING (i, j)` and `coalesce(v, default)`.",
        example: example!("dok_get"),
    },
    plan: |plan| {
        if !is_text(plan.data_type(0)) {
            return (index::AT.plan)(plan);
        }
        let spec = plan_dok_file(plan)?;
        let keys = spec.keys()?;
        if plan.len() == keys.len() + 2 {
            default(plan, keys.len() + 1, &spec.value()?)?;
        } else {
            check_count(plan, keys.len(), " [, default]", &keys)?;
        }
        make_result_field(plan, &keys, spec.value()?)
    },
    call: |call| {
        let Some(text) = call.find_constant(0).and_then(|s| s.try_as_str()) else {
            return (index::AT.call)(call);
        };
        let spec = KeyedSpec::parse(text.unwrap_or_default())?;
        let keys = spec.keys()?.len();
        let version = spec.load_version()?;
        let default = if call.len() > keys + 1 { Some(keys + 1) } else { None };
        look_up_rows(call, keys, default, |keys, default| look_up_values(&version, keys, default))
    },
    facts: FunctionFacts { reads_paths: true, ..FunctionFacts::NONE },
    ..Def::DEFAULTS
};

pub(super) static CONTAINS: Def = Def {
    name: "dok_contains",
    arity: (2, ANY),
    doc: Doc {
        section: FunctionSection::Sparse,
        description: "Returns whether a sparse tensor or dictionary has an entry, per row; see `dok_get`.",
        syntax: &["dok_contains('m', i, j, ..)"],
        args: &[TABLE, KEYS],
        missing: "An index outside the tensor returns false. A NULL index or key returns NULL, and so does a NULL list.",
        duckdb: "`EXISTS (FROM m WHERE m.i = t.i AND m.j = t.j)`.",
        example: example!("dok_contains"),
    },
    plan: |plan| {
        if !is_text(plan.data_type(0)) {
            return Err(plan.refuse_call(format!(
                "argument 1 (the table) must be a name, such as {SUCH}; it is {}",
                plan.data_type(0)
            )));
        }
        let spec = plan_dok_file(plan)?;
        let keys = spec.keys()?;
        check_count(plan, keys.len(), "", &keys)?;
        make_result_field(plan, &keys, DataType::Boolean)
    },
    call: |call| {
        let spec = KeyedSpec::parse(call.read_text(0).unwrap_or_default())?;
        let version = spec.load_version()?;
        look_up_rows(call, spec.keys()?.len(), None, |keys, _| look_up_keys(&version, keys))
    },
    facts: FunctionFacts { reads_paths: true, ..FunctionFacts::NONE },
    ..Def::DEFAULTS
};

fn plan_dok_file(plan: &CallPlan<'_>) -> Result<KeyedSpec> {
    let text = plan.find_literal_text(0, "the table", SUCH)?.unwrap_or_default();
    KeyedSpec::parse(text).map_err(|e| match e {
        Error::Invalid(message) => {
            plan.refuse_call(format!("argument 1 (the table) is invalid: {message}"))
        }
        other => other,
    })
}

fn check_count(
    plan: &CallPlan<'_>,
    expected: usize,
    more: &str,
    keys: &[(&str, DataType)],
) -> Result<()> {
    if plan.len() == expected + 1 {
        return Ok(());
    }
    let names: Vec<&str> = keys.iter().map(|(name, _)| *name).collect();
    Err(plan.refuse_call(format!(
        "the table (argument 1) has {expected} key(s), but {} argument(s) follow it; write {}({SUCH}, {}{more})",
        plan.len() - 1,
        plan.name(),
        names.join(", ")
    )))
}

/// Checks that the types of the arguments after the first match `keys`, the names and types of the
/// keys of the table. Returns the field of the result, whose values have the type `of`. If keys are
/// lists, the result has lists of such values.
fn make_result_field(
    plan: &CallPlan<'_>,
    keys: &[(&str, DataType)],
    of: DataType,
) -> Result<FieldRef> {
    let mut lists: Option<NestedListType> = None;
    for (i, (name, key)) in (1..).zip(keys) {
        if plan.is_list_view(i) {
            plan.require_lists(i)?;
        }
        let given = NestedListType::from_type(plan.data_type(i));
        let leaf = given.leaf();
        let fits = leaf.is_null()
            || leaf == key
            || (leaf.is_integer() && key.is_integer())
            || (is_text(leaf) && is_text(key));
        if !fits {
            return Err(plan.refuse_call(format!(
                "argument {} ({name}) must be {}; it is {leaf}, so cast it first",
                i + 1,
                describe_key(key)
            )));
        }
        if given.depth() == 0 {
            continue;
        }
        match &mut lists {
            None => lists = Some(given),
            Some(known) if known.depth() == given.depth() => *known = known.widen_by(&given),
            Some(known) => {
                return Err(plan.refuse_call(format!(
                    "argument {} ({name}) has {} level(s) of lists, but another key has {}; give keys that are scalars or lists of the same lengths",
                    i + 1,
                    given.depth(),
                    known.depth()
                )));
            }
        }
    }
    Ok(make_nullable(match lists {
        None => of,
        Some(lists) => lists.make_plain_leaf(of),
    }))
}

fn describe_key(key: &DataType) -> String {
    match key {
        t if is_text(t) => "a string".into(),
        t if t.is_integer() => "an integer".into(),
        t => t.to_string(),
    }
}

fn default(plan: &CallPlan<'_>, i: usize, value: &DataType) -> Result<()> {
    let given = plan.data_type(i);
    let fraction = |s: &ScalarValue| match s.cast_to(&DataType::Float64) {
        Ok(ScalarValue::Float64(Some(x))) => x.fract() != 0.0,
        _ => false,
    };
    let kind = |t: &DataType| (is_text(t), t.is_temporal(), *t == DataType::Boolean);
    let fits = given.is_null()
        || (kind(given) == kind(value)
            && can_cast_types(given, value)
            && !(value.is_integer() && plan.find_known_literal(i).is_some_and(fraction)));
    if fits {
        return Ok(());
    }
    let found = plan.find_known_literal(i).map_or_else(|| given.to_string(), ToString::to_string);
    Err(plan.refuse_call(format!(
        "argument {} (default) must fit the values, which are {value}; it is {found}, so cast it first",
        i + 1
    )))
}

/// Calls `look_up` with the keys and the default value of a call. The keys are the next `keys`
/// arguments (a number) after the first, and `default` is the index of the argument with the
/// default value, if there is one. If no key is a list, there is one look-up per row. Otherwise,
/// there is one per element of the lists, and the result has lists, too.
fn look_up_rows(
    call: &BatchCall<'_>,
    keys: usize,
    default: Option<usize>,
    look_up: impl Fn(&[ArrayRef], Option<&DefaultValue>) -> Result<ArrayRef>,
) -> Result<ArrayRef> {
    let default = default.map(|i| DefaultValue::from_argument(call, i)).transpose()?;
    let given = (1..=keys).map(|i| call.read_array(i)).collect::<Result<Vec<_>>>()?;
    let in_lists = |a: &ArrayRef| crate::array::list_depth(a.data_type()) > 0;
    if !given.iter().any(in_lists) {
        return look_up(&given, default.as_ref());
    }
    let mut lists: Option<RaggedArray> = None;
    for key in given.iter().filter(|a| in_lists(a)) {
        let key = RaggedArray::try_from_arrow(key)?;
        lists = Some(match lists {
            None => key,
            Some(lists) => share_lists(&lists, &key, lists.axes().len())?.0,
        });
    }
    let Some(lists) = lists else {
        return Err(Error::invalid("internal error: no key is a list; please report it"));
    };
    let rows = coord(&lists, 0)?;
    let rows: UInt64Array = cast(rows.leaves(), &DataType::UInt64)?.as_primitive().clone();
    let leaves = given.iter().map(|key| match in_lists(key) {
        true => {
            let key = RaggedArray::try_from_arrow(key)?;
            Ok(Arc::clone(align_arrays(&lists, &key, lists.axes().len())?.1.leaves()))
        }
        false => Ok(take(key, &rows, None)?),
    });
    let leaves = leaves.collect::<Result<Vec<_>>>()?;
    let default = match default {
        Some(DefaultValue::Rows(values)) => Some(DefaultValue::Rows(take(&values, &rows, None)?)),
        other => other,
    };
    let found = look_up(&leaves, default.as_ref())?;
    call.to_lists(&lists.with_leaves(found)?)
}

enum DefaultValue {
    One(ScalarValue),
    Rows(ArrayRef),
}

impl DefaultValue {
    fn from_argument(call: &BatchCall<'_>, i: usize) -> Result<Self> {
        match call.find_constant(i) {
            Some(value) => Ok(Self::One(value.clone())),
            None => Ok(Self::Rows(call.read_array(i)?)),
        }
    }

    /// Returns the default as an array of type `of`, and whether the array has one value for all
    /// rows instead of one per row.
    fn cast_default(&self, of: &DataType) -> Result<(ArrayRef, bool)> {
        let (values, one) = match self {
            Self::One(value) => (value.to_array_of_size(1)?, true),
            Self::Rows(values) => (Arc::clone(values), false),
        };
        let values = cast_strictly(&values, of).map_err(|e| {
            Error::invalid(format!("dok_get: the default cannot be cast to {of}, the type of the values: {e}; give another default"))
        })?;
        Ok((values, one))
    }
}

fn look_up_values(
    version: &KeyedVersion,
    keys: &[ArrayRef],
    default: Option<&DefaultValue>,
) -> Result<ArrayRef> {
    match &version.contents {
        KeyedContents::Tensor(tensor) => read_elements(tensor.tensor()?, keys, default),
        KeyedContents::Keys(contents) => {
            let dictionary = contents.as_dictionary();
            let fields: Vec<_> = dictionary.key_fields().cloned().collect();
            let (keys, nulls) = as_stored(keys, &fields)?;
            let found = dictionary.get(&keys)?;
            let Some(default) = default else { return Ok(found) };
            let missing = !&find_valid_bits(&found);
            let missing = match &nulls {
                Some(nulls) => &missing & nulls.inner(),
                None => missing,
            };
            fill_missing(found, &BooleanArray::new(missing, None), default)
        }
    }
}

fn find_valid_bits(array: &ArrayRef) -> BooleanBuffer {
    match array.logical_nulls() {
        Some(nulls) => nulls.inner().clone(),
        None => BooleanBuffer::new_set(array.len()),
    }
}

fn fill_missing(
    found: ArrayRef,
    missing: &BooleanArray,
    default: &DefaultValue,
) -> Result<ArrayRef> {
    let (values, one) = default.cast_default(found.data_type())?;
    Ok(match one {
        true => zip(missing, &arrow::array::Scalar::new(values), &found)?,
        false => zip(missing, &values, &found)?,
    })
}

fn look_up_keys(version: &KeyedVersion, keys: &[ArrayRef]) -> Result<ArrayRef> {
    match &version.contents {
        KeyedContents::Tensor(tensor) => {
            let tensor = tensor.tensor()?;
            let (indices, nulls) = normalize_indices(keys, &tensor.shape())?;
            let slices: Vec<&[i64]> = indices.iter().map(|i| i.values().as_ref()).collect();
            let fetched = tensor.lookup_columns(&slices, &Fallback::Zero)?;
            Ok(Arc::new(BooleanArray::new(BooleanBuffer::from(fetched.found), nulls)))
        }
        KeyedContents::Keys(contents) => {
            let dictionary = contents.as_dictionary();
            let fields: Vec<_> = dictionary.key_fields().cloned().collect();
            let (keys, nulls) = as_stored(keys, &fields)?;
            let found = dictionary.contains(&keys)?;
            Ok(Arc::new(BooleanArray::new(found.values().clone(), nulls)))
        }
    }
}

fn read_elements(
    tensor: &DokTensor,
    keys: &[ArrayRef],
    default: Option<&DefaultValue>,
) -> Result<ArrayRef> {
    let (indices, nulls) = normalize_indices(keys, &tensor.shape())?;
    let slices: Vec<&[i64]> = indices.iter().map(|i| i.values().as_ref()).collect();
    let value_type = tensor.dtype().to_arrow();
    let one = match default {
        Some(DefaultValue::One(value)) if !value.is_null() => {
            let (value, _) = DefaultValue::One(value.clone()).cast_default(&value_type)?;
            Fallback::Value(DenseTensor::from_flat(&value, "the default")?.reshape([])?)
        }
        _ => Fallback::Zero,
    };
    let fetched = tensor.lookup_columns(&slices, &one)?;
    let values = fetched.values.to_flat()?;
    match default {
        Some(DefaultValue::One(value)) if value.is_null() => {
            let found = NullBuffer::new(BooleanBuffer::from(fetched.found));
            replace_validity(&values, NullBuffer::union(nulls.as_ref(), Some(&found)))
        }
        Some(rows @ DefaultValue::Rows(_)) => {
            let missing = BooleanArray::new(!&BooleanBuffer::from(fetched.found), None);
            let values = fill_missing(values, &missing, rows)?;
            let nulls = NullBuffer::union(nulls.as_ref(), values.nulls());
            replace_validity(&values, nulls)
        }
        _ => replace_validity(&values, nulls),
    }
}

/// Converts indices to int64 positions from the start: a negative index counts from the end. `keys`
/// has the indices on each axis, and `shape` the sizes of the axes. An index outside its axis stays
/// outside. Also returns which rows have no NULL index (`None`: all).
fn normalize_indices(
    keys: &[ArrayRef],
    shape: &[usize],
) -> Result<(Vec<Int64Array>, Option<NullBuffer>)> {
    let mut nulls: Option<NullBuffer> = None;
    let mut out = Vec::with_capacity(keys.len());
    for (key, size) in keys.iter().zip(shape) {
        nulls = NullBuffer::union(nulls.as_ref(), key.logical_nulls().as_ref());
        let wide = cast(key, &DataType::Int64)?;
        let wide = wide.as_primitive::<Int64Type>();
        let beyond = wide.null_count() > key.logical_null_count();
        if !beyond && wide.values().iter().all(|i| *i >= 0) {
            out.push(wide.clone());
            continue;
        }
        let size = u64::try_from(*size).unwrap_or(u64::MAX);
        let from_start = |i: i64| match i {
            0.. => i,
            // An index before the start of the axis stays negative, so the look-up finds no value
            // for it.
            _ => i.checked_add_unsigned(size).unwrap_or(i64::MIN),
        };
        // An index that is too large for int64 became NULL in the cast. It is outside the tensor,
        // so it becomes a position at which the look-up finds no value.
        let each = wide.iter().map(|i| i.map_or(i64::MIN, from_start));
        out.push(each.collect::<Vec<_>>().into());
    }
    Ok((out, nulls))
}

/// Casts `keys`, one column per key, to the types of `fields`, the keys of the dictionary. A value
/// that the type cannot represent becomes NULL, which is never a key. Also returns which rows of
/// `keys` have no NULL (`None`: all).
fn as_stored(
    keys: &[ArrayRef],
    fields: &[FieldRef],
) -> Result<(Vec<ArrayRef>, Option<NullBuffer>)> {
    let mut nulls: Option<NullBuffer> = None;
    let mut out = Vec::with_capacity(keys.len());
    for (key, field) in keys.iter().zip(fields) {
        nulls = NullBuffer::union(nulls.as_ref(), key.logical_nulls().as_ref());
        let as_is = is_text(field.data_type()) && is_text(key.data_type());
        out.push(match as_is {
            true => Arc::clone(key),
            false => cast(key, field.data_type())?,
        });
    }
    Ok((out, nulls.filter(|n| n.null_count() > 0)))
}

pub(crate) trait TableNames: fmt::Debug + Send + Sync {
    /// Returns the contents of the table `name`, or `None` if the session has no table of this
    /// name. Returns an error if the table is not STORED AS DOK, that is, not a file of a sparse
    /// tensor or dictionary.
    fn find(&self, name: &str) -> DfResult<Option<Arc<KeyedVersion>>>;
}

/// A function whose first argument may be the name of a table of the session.
struct NamedTableUdf {
    /// The same function without table names: its first argument must be a path, or the text of a
    /// [`KeyedSpec`], which identifies one version of a file.
    inner: Arc<ScalarUDF>,
    names: Arc<dyn TableNames>,
    /// The file version that the plan uses, kept in memory for as long as the plan exists.
    bound: Option<Arc<KeyedVersion>>,
}

/// Returns `dok_get` and `dok_contains`, which find tables of a session through `names`.
pub(crate) fn build_lookup_functions(names: &Arc<dyn TableNames>) -> Vec<ScalarUDF> {
    let named = [&GET, &CONTAINS].into_iter().filter_map(|def| {
        let inner = Arc::clone(super::find_scalar(def.name)?);
        let names = Arc::clone(names);
        Some(ScalarUDF::new_from_impl(NamedTableUdf { inner, names, bound: None }))
    });
    named.collect()
}

impl NamedTableUdf {
    /// Returns the [`KeyedSpec`] text that replaces a table name or path in a call, and the file
    /// version that this text identifies. Returns `None` for any other `text`, which the call
    /// keeps.
    fn bind_name(&self, text: &str) -> DfResult<Option<(String, Arc<KeyedVersion>)>> {
        if text.starts_with('{') {
            return Ok(None);
        }
        let version = match self.names.find(text)? {
            Some(version) => version,
            None => match KeyedSpec::file(text) {
                Some(path) => keyed::open(path)?,
                None => return Ok(None),
            },
        };
        Ok(Some((KeyedSpec::of(&version).to_text(), version)))
    }
}

impl fmt::Debug for NamedTableUdf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Named").field(&self.inner.name()).finish()
    }
}

impl PartialEq for NamedTableUdf {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

impl Eq for NamedTableUdf {}

impl Hash for NamedTableUdf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl ScalarUDFImpl for NamedTableUdf {
    delegate!(inner: name, signature, documentation);

    fn schema_name(&self, args: &[Expr]) -> DfResult<String> {
        self.inner.schema_name(args)
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        let text = args.scalar_arguments.first().copied().flatten().and_then(|s| s.try_as_str());
        let Some((spec, _)) = text.flatten().map(|t| self.bind_name(t)).transpose()?.flatten()
        else {
            return self.inner.return_field_from_args(args);
        };
        let spec = ScalarValue::Utf8(Some(spec));
        let mut scalars = args.scalar_arguments.to_vec();
        if let Some(first) = scalars.first_mut() {
            *first = Some(&spec);
        }
        let args = ReturnFieldArgs { arg_fields: args.arg_fields, scalar_arguments: &scalars };
        self.inner.return_field_from_args(args)
    }

    fn simplify(
        &self,
        mut args: Vec<Expr>,
        _info: &SimplifyContext,
    ) -> DfResult<ExprSimplifyResult> {
        let text = match args.first() {
            Some(Expr::Literal(value, _)) => value.try_as_str().flatten(),
            _ => None,
        };
        let Some((spec, version)) = text.map(|t| self.bind_name(t)).transpose()?.flatten() else {
            return Ok(ExprSimplifyResult::Original(args));
        };
        if let Some(first) = args.first_mut() {
            *first = Expr::Literal(ScalarValue::Utf8(Some(spec)), None);
        }
        let bound = Self {
            inner: Arc::clone(&self.inner),
            names: Arc::clone(&self.names),
            bound: Some(version),
        };
        let function = Arc::new(ScalarUDF::new_from_impl(bound));
        let call = ScalarFunction::new_udf(function, args);
        Ok(ExprSimplifyResult::Simplified(Expr::ScalarFunction(call)))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let mut bound = self.bound.clone();
        if let Some(ColumnarValue::Scalar(first)) = args.args.first_mut()
            && let Some(text) = first.try_as_str().flatten()
            && let Some((spec, version)) = self.bind_name(text)?
        {
            *first = ScalarValue::Utf8(Some(spec));
            bound = Some(version);
        }
        let out = self.inner.invoke_with_args(args);
        drop(bound);
        out
    }
}
