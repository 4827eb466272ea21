//! Collects the values of one column of a JSON text, and infers its list depth and its type.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Float16Array, Float32Array,
    Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, LargeStringArray, NullArray,
    NullBufferBuilder, UInt8Array, UInt16Array, UInt32Array, UInt64Array, make_array,
    new_empty_array, new_null_array,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow::compute::{can_cast_types, cast};
use arrow::datatypes::{DataType, Field, TimeUnit};
use arrow::error::ArrowError;
use half::f16;

use crate::array::exact_casts::find_int_range;
use crate::array::{ListAxis, Offsets, leaf_type, list_depth};
use crate::error::{Error, Result};
use crate::kernels::span_texts::parse_duration;
use crate::table::IncomingColumn;

/// A value with this many nested lists is an error, because deeper values could exhaust the stack.
const MAX_DEPTH: usize = 64;

#[derive(Clone, Copy, Debug)]
enum ElementKind {
    /// All elements at this depth are null so far; the field is their number.
    Unknown(usize),
    List,
    Leaf,
}

#[derive(Debug)]
struct JsonLevel {
    ends: Vec<i64>,
    nulls: NullBufferBuilder,
}

impl JsonLevel {
    fn new() -> Self {
        Self { ends: Vec::new(), nulls: NullBufferBuilder::new(0) }
    }

    fn push(&mut self, end: usize, valid: bool) {
        self.ends.push(i64::try_from(end).unwrap_or(i64::MAX));
        self.nulls.append(valid);
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum JsonScalar<'a> {
    Bool(bool),
    Int(i128),
    /// A float from `serde_json` that may be an integer of more than 64 bits in the JSON text.
    Huge(f64),
    Float(f64),
    Text(&'a str),
}

impl std::fmt::Display for JsonScalar<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool(b) => write!(f, "{b}"),
            Self::Int(i) => write!(f, "the number {i}"),
            Self::Huge(x) | Self::Float(x) => write!(f, "the number {x:?}"),
            Self::Text(t) => {
                let short: String = t.chars().take(40).collect();
                write!(f, "the string {short:?}")
            }
        }
    }
}

/// Collects the values of one column of a JSON text, and infers list depth and type of the column.
/// The methods must be called in the order of the text.
#[derive(Debug)]
pub(super) struct ColumnSink {
    name: String,
    /// Number of rows of the input before the first row of this sink, to number rows in errors.
    first_row: usize,
    declared: Option<DataType>,
    kinds: Vec<ElementKind>,
    levels: Vec<JsonLevel>,
    counts_by_depth: Vec<usize>,
    /// Index of the current element within each list that has begun but not ended.
    at: Vec<usize>,
    leaves: LeafValues,
}

impl ColumnSink {
    /// `declared` is the type of the values at any depth (`Int64`), or a list type that also fixes
    /// the depth (`List(Int64)`).
    pub(super) fn new(name: &str, declared: Option<&DataType>, first_row: usize) -> Self {
        let depth = declared.map_or(0, list_depth);
        let mut kinds = vec![ElementKind::List; depth];
        kinds.push(if depth > 0 { ElementKind::Leaf } else { ElementKind::Unknown(0) });
        let declared = declared.map(leaf_type).cloned();
        Self {
            name: name.to_owned(),
            first_row,
            kinds,
            levels: (0..depth).map(|_| JsonLevel::new()).collect(),
            counts_by_depth: vec![0; depth + 1],
            at: vec![0],
            leaves: LeafValues::new(declared.as_ref()),
            declared,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn rows(&self) -> usize {
        self.counts_by_depth[0]
    }

    fn depth(&self) -> usize {
        self.at.len() - 1
    }

    pub(super) fn begin_list(&mut self) -> Result<()> {
        let d = self.depth();
        match self.kinds[d] {
            ElementKind::List => {}
            ElementKind::Leaf => return Err(self.make_varying_depth_error("a value", "a list")),
            ElementKind::Unknown(nulls) => {
                if d + 1 >= MAX_DEPTH {
                    return Err(self.make_element_error(
                        format!("at most {} nested lists (flatten them first)", MAX_DEPTH - 1),
                        "a deeper list".to_owned(),
                    ));
                }
                self.open_level(nulls);
            }
        }
        self.at.push(0);
        Ok(())
    }

    /// Adds a list level below the deepest level. The elements of the latter, so far `nulls` nulls,
    /// become null lists.
    fn open_level(&mut self, nulls: usize) {
        self.kinds.pop();
        self.kinds.extend([ElementKind::List, ElementKind::Unknown(0)]);
        self.counts_by_depth.push(0);
        let mut level = JsonLevel::new();
        (0..nulls).for_each(|_| level.push(0, false));
        self.levels.push(level);
    }

    pub(super) fn end_list(&mut self) {
        self.at.pop();
        let d = self.depth();
        self.levels[d].push(self.counts_by_depth[d + 1], true);
        self.advance_position();
    }

    pub(super) fn push_null(&mut self) {
        let d = self.depth();
        match &mut self.kinds[d] {
            ElementKind::List => self.levels[d].push(self.counts_by_depth[d + 1], false),
            ElementKind::Leaf => self.leaves.push_null(),
            ElementKind::Unknown(nulls) => *nulls += 1,
        }
        self.advance_position();
    }

    pub(super) fn push_scalar(&mut self, value: JsonScalar<'_>) -> Result<()> {
        let d = self.depth();
        match self.kinds[d] {
            ElementKind::Leaf => {}
            ElementKind::List => {
                return Err(self.make_varying_depth_error("a list", &value.to_string()));
            }
            ElementKind::Unknown(nulls) => {
                self.kinds[d] = ElementKind::Leaf;
                (0..nulls).for_each(|_| self.leaves.push_null());
            }
        }
        let known = self.declared.as_ref();
        let pushed = match known {
            None => self.leaves.push(value).map_err(str::to_owned),
            Some(t) => self.leaves.push_as(t, value),
        };
        if let Err(expected) = pushed {
            return Err(self.make_element_error(expected, value.to_string()));
        }
        self.advance_position();
        Ok(())
    }

    fn advance_position(&mut self) {
        let d = self.depth();
        self.counts_by_depth[d] += 1;
        self.at[d] += 1;
    }

    fn current_path(&self) -> String {
        format_path(&self.name, self.first_row, &self.at)
    }

    fn make_varying_depth_error(&self, expected: &str, found: &str) -> Error {
        Error::DepthVaries {
            path: self.current_path(),
            expected: expected.to_owned(),
            found: found.to_owned(),
        }
    }

    pub(super) fn make_element_error(&self, expected: impl Into<String>, found: String) -> Error {
        Error::ValueType { path: self.current_path(), expected: expected.into(), found }
    }

    /// `known` is the type of the column, with its lists, in earlier tables of the same input.
    pub(super) fn finish(mut self, known: Option<&DataType>) -> Result<IncomingColumn> {
        // A column without any value has the type that it had in earlier tables of the same input.
        if let Some(known) = known.filter(|_| self.is_undecided()) {
            while self.levels.len() < list_depth(known)
                && let Some(ElementKind::Unknown(nulls)) = self.kinds.last().copied()
            {
                self.open_level(nulls);
            }
            if self.declared.is_none() {
                self.declared = Some(leaf_type(known).clone());
            }
        }
        if let Some(ElementKind::Unknown(nulls)) = self.kinds.last().copied() {
            (0..nulls).for_each(|_| self.leaves.push_null());
        }
        let Self { name, first_row, declared, levels, mut leaves, .. } = self;
        let nulls = leaves.nulls.finish();
        let values = match &declared {
            None => leaves.store.infer_type(nulls).map_err(|why| why.into_error(&name))?,
            Some(t) => leaves.store.into_array(t, nulls).map_err(|failure| match failure {
                CastFailure::NoCast(found) => Error::type_of(
                    format!("column {name:?}"),
                    format!("values of the declared type {t} (correct the values or the type)"),
                    &found,
                ),
                CastFailure::Leaf(i, found) => Error::ValueType {
                    path: format_leaf_path(&name, first_row, &levels, i),
                    expected: t.to_string(),
                    found,
                },
                CastFailure::Arrow(e) => e.into(),
            })?,
        };
        let levels = levels
            .into_iter()
            .map(|mut l| ListAxis::try_new(Offsets::from_bounds(l.ends, &name)?, l.nulls.finish()))
            .collect::<Result<_>>()?;
        let field = Arc::new(Field::new(&name, values.data_type().clone(), true));
        Ok(IncomingColumn { path: vec![name], field, levels, values })
    }

    fn is_undecided(&self) -> bool {
        matches!(self.kinds.last(), Some(ElementKind::Unknown(_)))
    }
}

fn format_path(name: &str, first_row: usize, at: &[usize]) -> String {
    let mut path = name.to_owned();
    for (d, i) in at.iter().enumerate() {
        let _ = write!(path, "[{}]", if d == 0 { first_row + i } else { *i });
    }
    path
}

fn format_leaf_path(name: &str, first_row: usize, levels: &[JsonLevel], leaf: usize) -> String {
    let mut at = Vec::with_capacity(levels.len() + 1);
    let mut i = leaf;
    for level in levels.iter().rev() {
        let wanted = i64::try_from(i).unwrap_or(i64::MAX);
        let list = level.ends.partition_point(|e| *e <= wanted);
        let start = list.checked_sub(1).map_or(0, |p| level.ends[p]);
        at.push(i - usize::try_from(start).unwrap_or(0));
        i = list;
    }
    at.push(i);
    at.reverse();
    format_path(name, first_row, &at)
}

/// Values read so far, in the narrowest representation that holds them.
#[derive(Debug)]
enum ValueStore {
    Nulls(usize),
    Bool(Vec<bool>),
    Int(Vec<i64>),
    Wide(Vec<i128>),
    Float(FloatColumn),
    Text(StringValues),
}

#[derive(Debug, Default)]
struct FloatColumn {
    values: Vec<f64>,
    /// Whether all values come from the strings `NaN`, `Infinity` and `-Infinity`.
    only_texts: bool,
    /// The last value that `serde_json` may have read from an integer of more than 64 bits.
    huge: Option<f64>,
    /// Whether all floats may be integers of more than 64 bits, which need a declared type.
    only_huge: bool,
}

const SAME_KIND: &str =
    "a value of the same kind (boolean, number or string) as the earlier values of the column";

#[derive(Debug, Default)]
struct StringValues {
    bytes: Vec<u8>,
    ends: Vec<i64>,
}

impl StringValues {
    fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.ends.push(i64::try_from(self.bytes.len()).unwrap_or(i64::MAX));
    }
}

#[derive(Debug)]
struct LeafValues {
    store: ValueStore,
    nulls: NullBufferBuilder,
}

fn parse_special(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// Returns the text that stands for NaN or an infinity in JSON; `None` for a finite number.
pub(super) fn find_special_name(x: f64) -> Option<&'static str> {
    if x.is_nan() {
        Some("NaN")
    } else if x == f64::INFINITY {
        Some("Infinity")
    } else if x == f64::NEG_INFINITY {
        Some("-Infinity")
    } else {
        None
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers become the nearest float, as in NumPy")]
fn convert_int_to_float(i: i128) -> f64 {
    i as f64
}

impl LeafValues {
    fn new(declared: Option<&DataType>) -> Self {
        let store = match declared {
            Some(DataType::Boolean) => ValueStore::Bool(Vec::new()),
            Some(t) if t.is_floating() => ValueStore::Float(FloatColumn::default()),
            Some(DataType::UInt64) => ValueStore::Wide(Vec::new()),
            Some(t) if t.is_integer() => ValueStore::Int(Vec::new()),
            Some(DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => {
                ValueStore::Text(StringValues::default())
            }
            _ => ValueStore::Nulls(0),
        };
        Self { store, nulls: NullBufferBuilder::new(0) }
    }

    fn push_null(&mut self) {
        self.nulls.append_null();
        match &mut self.store {
            ValueStore::Nulls(n) => *n += 1,
            ValueStore::Bool(v) => v.push(false),
            ValueStore::Int(v) => v.push(0),
            ValueStore::Wide(v) => v.push(0),
            ValueStore::Float(f) => f.values.push(0.0),
            ValueStore::Text(t) => t.push(""),
        }
    }

    /// Adds a value of any type, and widens the store if needed. The error describes the expected
    /// value.
    fn push(&mut self, value: JsonScalar<'_>) -> Result<(), &'static str> {
        if !self.accepts_value(value) {
            self.widen_store(value)?;
        }
        match (&mut self.store, value) {
            (ValueStore::Bool(v), JsonScalar::Bool(b)) => v.push(b),
            (ValueStore::Int(v), JsonScalar::Bool(b)) => v.push(b.into()),
            (ValueStore::Int(v), JsonScalar::Int(i)) => v.push(i64::try_from(i).unwrap_or(0)),
            (ValueStore::Wide(v), JsonScalar::Bool(b)) => v.push(b.into()),
            (ValueStore::Wide(v), JsonScalar::Int(i)) => v.push(i),
            (ValueStore::Float(f), value) => {
                let (x, text) = match value {
                    JsonScalar::Bool(b) => (f64::from(u8::from(b)), false),
                    JsonScalar::Int(i) => (convert_int_to_float(i), false),
                    JsonScalar::Float(x) | JsonScalar::Huge(x) => (x, false),
                    JsonScalar::Text(t) => (parse_special(t).unwrap_or(f64::NAN), true),
                };
                f.only_texts &= text;
                match value {
                    JsonScalar::Huge(x) => f.huge = Some(x),
                    JsonScalar::Float(_) | JsonScalar::Text(_) => f.only_huge = false,
                    _ => {}
                }
                f.values.push(x);
            }
            (ValueStore::Text(t), JsonScalar::Text(s)) => t.push(s),
            // Unreachable: `widen_store` has widened the store for this value or has returned an
            // error.
            _ => return Err(SAME_KIND),
        }
        self.nulls.append_non_null();
        Ok(())
    }

    fn accepts_value(&self, value: JsonScalar<'_>) -> bool {
        match (&self.store, value) {
            (ValueStore::Bool(_), JsonScalar::Bool(_))
            | (ValueStore::Float(_), JsonScalar::Float(_))
            | (ValueStore::Text(_), JsonScalar::Text(_)) => true,
            (ValueStore::Int(_), JsonScalar::Int(i)) => i64::try_from(i).is_ok(),
            _ => false,
        }
    }

    fn widen_store(&mut self, value: JsonScalar<'_>) -> Result<(), &'static str> {
        const NUMBER: &str = "a number or a boolean, like the values before it in this column";
        let store = std::mem::replace(&mut self.store, ValueStore::Nulls(0));
        let wide = |i: i128| i64::try_from(i).is_err();
        let floats = |values: Vec<f64>, only_texts, only_huge| {
            ValueStore::Float(FloatColumn { values, only_texts, huge: None, only_huge })
        };
        let is_huge = matches!(value, JsonScalar::Huge(_));
        let is_float = is_huge
            || matches!(value, JsonScalar::Float(_))
            || matches!(value, JsonScalar::Text(t) if parse_special(t).is_some());
        let mut refused = None;
        self.store = match (store, value) {
            (ValueStore::Nulls(n), JsonScalar::Bool(_)) => ValueStore::Bool(vec![false; n]),
            (ValueStore::Nulls(n), JsonScalar::Int(i)) if wide(i) => ValueStore::Wide(vec![0; n]),
            (ValueStore::Nulls(n), JsonScalar::Int(_)) => ValueStore::Int(vec![0; n]),
            (ValueStore::Nulls(n), JsonScalar::Text(_)) if is_float => {
                floats(vec![0.0; n], true, false)
            }
            (ValueStore::Nulls(n), JsonScalar::Text(_)) => {
                ValueStore::Text(StringValues { bytes: Vec::new(), ends: vec![0; n] })
            }
            (ValueStore::Nulls(n), _) => floats(vec![0.0; n], false, is_huge),
            (ValueStore::Bool(v), JsonScalar::Int(i)) if wide(i) => {
                ValueStore::Wide(v.into_iter().map(i128::from).collect())
            }
            (ValueStore::Bool(v), JsonScalar::Int(_)) => {
                ValueStore::Int(v.into_iter().map(i64::from).collect())
            }
            (ValueStore::Bool(v), _) if is_float => {
                floats(v.into_iter().map(|b| u8::from(b).into()).collect(), false, is_huge)
            }
            (ValueStore::Int(v), JsonScalar::Int(i)) if wide(i) => {
                ValueStore::Wide(v.into_iter().map(i128::from).collect())
            }
            (ValueStore::Int(v), _) if is_float => floats(
                v.into_iter().map(|i| convert_int_to_float(i.into())).collect(),
                false,
                is_huge,
            ),
            (ValueStore::Wide(v), _) if is_float => {
                floats(v.into_iter().map(convert_int_to_float).collect(), false, is_huge)
            }
            // The values so far are strings such as "NaN", read as floats: convert them back.
            (ValueStore::Float(f), JsonScalar::Text(_)) if f.only_texts && !is_float => {
                let mut texts = StringValues::default();
                for x in f.values {
                    texts.push(find_special_name(x).unwrap_or(""));
                }
                ValueStore::Text(texts)
            }
            (
                store @ (ValueStore::Bool(_) | ValueStore::Int(_) | ValueStore::Wide(_)),
                JsonScalar::Text(_),
            ) => {
                refused = Some(NUMBER);
                store
            }
            (store @ ValueStore::Float(_), JsonScalar::Text(_)) if !is_float => {
                refused = Some(NUMBER);
                store
            }
            (store @ ValueStore::Text(_), value) if !matches!(value, JsonScalar::Text(_)) => {
                refused = Some("a string, like the values before it in this column");
                store
            }
            (store, _) => store,
        };
        refused.map_or(Ok(()), Err)
    }

    /// Adds a value to a column of type `declared`. The error is the name of the expected type.
    fn push_as(&mut self, declared: &DataType, value: JsonScalar<'_>) -> Result<(), String> {
        let expected = || declared.to_string();
        match &mut self.store {
            ValueStore::Bool(v) if *declared == DataType::Boolean => v.push(match value {
                JsonScalar::Bool(b) => b,
                JsonScalar::Int(0) => false,
                JsonScalar::Int(1) => true,
                _ => return Err(expected()),
            }),
            ValueStore::Int(v) if declared.is_integer() => {
                let i = to_integer(value, declared).ok_or_else(expected)?;
                v.push(i64::try_from(i).map_err(|_| expected())?);
            }
            ValueStore::Wide(v) if declared.is_integer() => {
                v.push(to_integer(value, declared).ok_or_else(expected)?);
            }
            ValueStore::Float(f) if declared.is_floating() => {
                let x = match value {
                    JsonScalar::Bool(b) => f64::from(u8::from(b)),
                    JsonScalar::Int(i) => convert_int_to_float(i),
                    JsonScalar::Float(x) | JsonScalar::Huge(x) => x,
                    JsonScalar::Text(t) => parse_special(t).ok_or_else(expected)?,
                };
                let most = match declared {
                    DataType::Float16 => f16::MAX.to_f64(),
                    DataType::Float32 => f32::MAX.into(),
                    _ => f64::MAX,
                };
                if x.is_finite() && x.abs() > most {
                    return Err(expected());
                }
                f.values.push(x);
            }
            ValueStore::Text(t) if declared.is_string() => match value {
                JsonScalar::Text(s) => t.push(s),
                _ => return Err(expected()),
            },
            // Other types, such as times, are collected in their JSON type and cast at the end.
            _ => return self.push(value).map_err(|_| expected()),
        }
        self.nulls.append_non_null();
        Ok(())
    }
}

/// Truncates floats. Returns `None` for a string, or a number outside the range of the type.
fn to_integer(value: JsonScalar<'_>, declared: &DataType) -> Option<i128> {
    let i = match value {
        JsonScalar::Bool(b) => b.into(),
        JsonScalar::Int(i) => i,
        #[expect(clippy::cast_possible_truncation, reason = "below 2^65, truncation is intended")]
        JsonScalar::Float(x) if x.abs() < 3.0e19 => x as i128,
        _ => return None,
    };
    let (least, most) = find_int_range(declared)?;
    (least..=most).contains(&i).then_some(i)
}

enum NoType {
    Nothing,
    Floats(f64),
    Huge(f64),
    Ints(String, String),
}

impl NoType {
    fn into_error(self, name: &str) -> Error {
        Error::invalid(match self {
            Self::Nothing => format!(
                "column {name:?} has no values to infer a type from; declare its type in the schema"
            ),
            Self::Floats(x) => format!(
                "column {name:?} holds {x:?}, which does not fit float32, the inferred type of numbers with a fraction; declare it as float64"
            ),
            Self::Huge(x) => format!(
                "column {name:?} holds {x:?}, an integer of more than 64 bits or a float of that size; declare it as float32 or float64 to read it as a float"
            ),
            Self::Ints(least, most) => format!(
                "column {name:?} holds integers from {least} to {most}, which fit no 64-bit integer type; declare it as float64"
            ),
        })
    }
}

enum CastFailure {
    /// The values were read as this type, which cannot be cast to the declared type.
    NoCast(DataType),
    /// The leaf at this index does not cast to the declared type. The text describes the leaf.
    Leaf(usize, String),
    Arrow(ArrowError),
}

macro_rules! narrow_array {
    ($array:ident, $values:expr, $nulls:expr) => {
        Arc::new($array::new(
            $values.into_iter().map(|i| i.try_into().unwrap_or_default()).collect(),
            $nulls,
        ))
    };
}

impl ValueStore {
    /// Selects the type that the Python library `nested_ragged_tensors` would choose.
    fn infer_type(self, nulls: Option<NullBuffer>) -> Result<ArrayRef, NoType> {
        fn select_valid<T: Copy>(v: &[T], nulls: Option<&NullBuffer>) -> impl Iterator<Item = T> {
            v.iter()
                .enumerate()
                .filter(move |(i, _)| nulls.is_none_or(|n| n.is_valid(*i)))
                .map(|(_, x)| *x)
        }
        Ok(match self {
            Self::Nulls(_) => return Err(NoType::Nothing),
            Self::Bool(v) => Arc::new(BooleanArray::new(v.into(), nulls)),
            Self::Int(v) => {
                let (least, most) = select_valid(&v, nulls.as_ref())
                    .fold((i64::MAX, i64::MIN), |(a, b), x| (a.min(x), b.max(x)));
                if least >= 0 {
                    if u8::try_from(most).is_ok() {
                        narrow_array!(UInt8Array, v, nulls)
                    } else if u16::try_from(most).is_ok() {
                        narrow_array!(UInt16Array, v, nulls)
                    } else if u32::try_from(most).is_ok() {
                        narrow_array!(UInt32Array, v, nulls)
                    } else {
                        narrow_array!(UInt64Array, v, nulls)
                    }
                } else if i8::try_from(least).is_ok() && i8::try_from(most).is_ok() {
                    narrow_array!(Int8Array, v, nulls)
                } else if i16::try_from(least).is_ok() && i16::try_from(most).is_ok() {
                    narrow_array!(Int16Array, v, nulls)
                } else if i32::try_from(least).is_ok() && i32::try_from(most).is_ok() {
                    narrow_array!(Int32Array, v, nulls)
                } else {
                    Arc::new(Int64Array::new(v.into(), nulls))
                }
            }
            Self::Wide(v) => {
                let (least, most) = select_valid(&v, nulls.as_ref())
                    .fold((i128::MAX, i128::MIN), |(a, b), x| (a.min(x), b.max(x)));
                if least < i64::MIN.into() || most > u64::MAX.into() {
                    return Err(NoType::Ints(least.to_string(), most.to_string()));
                }
                if least >= 0 {
                    narrow_array!(UInt64Array, v, nulls)
                } else {
                    // No 64-bit type holds these numbers: convert to floats, as NumPy does.
                    let floats = v.into_iter().map(convert_int_to_float).collect();
                    build_float32_array(floats, nulls)
                }
            }
            Self::Float(f) => {
                if let Some(x) = f.huge.filter(|_| f.only_huge) {
                    return Err(NoType::Huge(x));
                }
                let most = f64::from(f32::MAX);
                let bad = select_valid(&f.values, nulls.as_ref()).find(|x| x.abs() > most);
                if let Some(x) = bad {
                    return Err(NoType::Floats(x));
                }
                build_float32_array(f.values, nulls)
            }
            Self::Text(t) => {
                let text = build_text_array(t, nulls);
                // Convert to 32-bit offsets if these suffice.
                cast(&text, &DataType::Utf8).unwrap_or(text)
            }
        })
    }

    fn into_array(self, t: &DataType, nulls: Option<NullBuffer>) -> Result<ArrayRef, CastFailure> {
        Ok(match (self, t) {
            (Self::Nulls(n), DataType::Null) => Arc::new(NullArray::new(n)),
            (Self::Nulls(0), _) => new_empty_array(t),
            (Self::Nulls(n), _) => new_null_array(t, n),
            (Self::Bool(v), DataType::Boolean) => Arc::new(BooleanArray::new(v.into(), nulls)),
            (Self::Float(f), DataType::Float16) => {
                let values = f.values.into_iter().map(f16::from_f64).collect();
                Arc::new(Float16Array::new(values, nulls))
            }
            (Self::Float(f), DataType::Float32) => build_float32_array(f.values, nulls),
            (Self::Float(f), DataType::Float64) => {
                Arc::new(Float64Array::new(f.values.into(), nulls))
            }
            (Self::Int(v), DataType::Int8) => narrow_array!(Int8Array, v, nulls),
            (Self::Int(v), DataType::Int16) => narrow_array!(Int16Array, v, nulls),
            (Self::Int(v), DataType::Int32) => narrow_array!(Int32Array, v, nulls),
            (Self::Int(v), DataType::Int64) => Arc::new(Int64Array::new(v.into(), nulls)),
            (Self::Int(v), DataType::UInt8) => narrow_array!(UInt8Array, v, nulls),
            (Self::Int(v), DataType::UInt16) => narrow_array!(UInt16Array, v, nulls),
            (Self::Int(v), DataType::UInt32) => narrow_array!(UInt32Array, v, nulls),
            (Self::Wide(v), DataType::UInt64) => narrow_array!(UInt64Array, v, nulls),
            (store, _) => {
                let from: ArrayRef = match store {
                    Self::Text(t) => build_text_array(t, nulls),
                    Self::Int(v) => Arc::new(Int64Array::new(v.into(), nulls)),
                    Self::Wide(v) => build_wide_array(v, t, nulls)?,
                    Self::Float(f) => Arc::new(Float64Array::new(f.values.into(), nulls)),
                    Self::Bool(v) => Arc::new(BooleanArray::new(v.into(), nulls)),
                    Self::Nulls(n) => new_null_array(t, n),
                };
                cast_all(&from, t)?
            }
        })
    }
}

/// Builds an array of 38-digit decimals if `t` is a decimal type, otherwise of UInt64. An integer
/// that does not fit is an error.
fn build_wide_array(
    values: Vec<i128>,
    t: &DataType,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, CastFailure> {
    let decimal = matches!(t, DataType::Decimal128(..) | DataType::Decimal256(..));
    // `i128::MIN` and `i128::MAX` count as too large: the parser clamps longer integers to them.
    let fits = |v: i128| match decimal {
        true => v != i128::MIN && v != i128::MAX,
        false => u64::try_from(v).is_ok(),
    };
    let valid = |i: &usize| nulls.as_ref().is_none_or(|n| n.is_valid(*i));
    if let Some(i) = (0..values.len()).filter(valid).find(|i| !fits(values[*i])) {
        // The error names a number outside the range of Int64, if there is one, because the column
        // could be Int64 without it. Otherwise, the error names `values[i]`, such as -1.
        let huge = (i..values.len()).filter(valid).find(|i| i64::try_from(values[*i]).is_err());
        let at = huge.unwrap_or(i);
        return Err(CastFailure::Leaf(at, format!("the number {}", values[at])));
    }
    if !decimal {
        return Ok(narrow_array!(UInt64Array, values, nulls));
    }
    let array = Decimal128Array::new(values.into(), nulls).with_precision_and_scale(38, 0);
    Ok(Arc::new(array.map_err(CastFailure::Arrow)?))
}

pub(super) fn reinterpret_as(
    values: &ArrayRef,
    data_type: DataType,
) -> Result<ArrayRef, ArrowError> {
    Ok(make_array(values.to_data().into_builder().data_type(data_type).build()?))
}

/// Casts values; fails if a value that is not null becomes null.
fn cast_all(from: &ArrayRef, t: &DataType) -> Result<ArrayRef, CastFailure> {
    // A string without an offset is in UTC: cast to UTC, then replace only the time zone.
    if let DataType::Timestamp(unit, Some(_)) = t {
        let utc = DataType::Timestamp(*unit, Some("+00:00".into()));
        if *t != utc {
            return reinterpret_as(&cast_all(from, &utc)?, t.clone()).map_err(CastFailure::Arrow);
        }
    }
    // Date32 and Time32 hold 32-bit integers, so cast Int64 to Int32 first.
    let step = match (from.data_type(), t) {
        (DataType::Int64, DataType::Date32 | DataType::Time32(_)) => {
            cast(from, &DataType::Int32).map_err(CastFailure::Arrow)?
        }
        _ => from.clone(),
    };
    let made = match (step.data_type(), t) {
        (DataType::LargeUtf8, DataType::Duration(unit)) => parse_durations(&step, *unit),
        (known, t) if !can_cast_types(known, t) => {
            return Err(CastFailure::NoCast(from.data_type().clone()));
        }
        _ => cast(&step, t),
    };
    let made = made.map_err(CastFailure::Arrow)?;
    if made.null_count() > from.null_count()
        && let Some(i) = (0..made.len()).find(|i| made.is_null(*i) && from.is_valid(*i))
    {
        let found = arrow::util::display::array_value_to_string(from, i).unwrap_or_default();
        return Err(CastFailure::Leaf(i, format!("{found:?}")));
    }
    Ok(made)
}

/// Parses strings such as `1d 03:00`. A string that is not a duration, or that has a fraction of
/// `unit`, becomes null.
fn parse_durations(texts: &ArrayRef, unit: TimeUnit) -> Result<ArrayRef, ArrowError> {
    let nanoseconds: i128 = match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    let parse = |text: &str| {
        let whole = parse_duration(text).filter(|length| length % nanoseconds == 0)?;
        i64::try_from(whole / nanoseconds).ok()
    };
    let counts = texts.as_string::<i64>().iter().map(|text| text.and_then(parse));
    let counts: ArrayRef = Arc::new(counts.collect::<Int64Array>());
    reinterpret_as(&counts, DataType::Duration(unit))
}

#[expect(clippy::cast_possible_truncation, reason = "rounding to float32 is intended")]
fn build_float32_array(values: Vec<f64>, nulls: Option<NullBuffer>) -> ArrayRef {
    Arc::new(Float32Array::new(values.into_iter().map(|x| x as f32).collect(), nulls))
}

fn build_text_array(texts: StringValues, nulls: Option<NullBuffer>) -> ArrayRef {
    let mut offsets = Vec::with_capacity(texts.ends.len() + 1);
    offsets.push(0);
    offsets.extend(texts.ends);
    let offsets = OffsetBuffer::new(offsets.into());
    // The constructor validates UTF-8 again, which takes much less time than parsing.
    Arc::new(LargeStringArray::new(offsets, Buffer::from_vec(texts.bytes), nulls))
}
