//! Collects the values of one column as they come, finds its depth and type.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Float16Array, Float32Array, Float64Array, Int8Array, Int16Array,
    Int32Array, Int64Array, LargeStringArray, NullArray, NullBufferBuilder, UInt8Array,
    UInt16Array, UInt32Array, UInt64Array, new_empty_array, new_null_array,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow::compute::{can_cast_types, cast};
use arrow::datatypes::{DataType, Field};
use half::f16;

use super::write::relabelled;
use crate::array::{ListAxis, Offsets, leaf_type, list_depth};
use crate::error::{Error, Result};
use crate::table::Incoming;

/// Lists within lists that are followed; more is no table and would exhaust the stack.
const MAX_DEPTH: usize = 64;

/// What elements at one depth are.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Nothing but this many nulls so far.
    Unknown(usize),
    List,
    Leaf,
}

#[derive(Debug)]
struct Level {
    ends: Vec<i64>,
    nulls: NullBufferBuilder,
}

impl Level {
    fn new() -> Self {
        Self { ends: Vec::new(), nulls: NullBufferBuilder::new(0) }
    }

    fn push(&mut self, end: usize, valid: bool) {
        // Ends count values in memory.
        self.ends.push(i64::try_from(end).unwrap_or(i64::MAX));
        self.nulls.append(valid);
    }
}

/// A number, text or truth value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scalar<'a> {
    Bool(bool),
    /// A number without fraction or exponent.
    Int(i128),
    /// A whole number beyond all integer types, or a float that reads the same.
    Huge(f64),
    Float(f64),
    Text(&'a str),
}

impl std::fmt::Display for Scalar<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool(b) => write!(f, "{b}"),
            Self::Int(i) => write!(f, "the number {i}"),
            Self::Huge(x) | Self::Float(x) => write!(f, "the number {x:?}"),
            Self::Text(t) => {
                let short: String = t.chars().take(40).collect();
                write!(f, "the text {short:?}")
            }
        }
    }
}

/// One column in the making: fed with `begin`, `end`, `null` and `scalar` in document order.
#[derive(Debug)]
pub(super) struct ColumnSink {
    name: String,
    /// Added to the row number in paths.
    first_row: usize,
    declared: Option<DataType>,
    kinds: Vec<Kind>,
    levels: Vec<Level>,
    /// Elements so far at each depth.
    counts: Vec<usize>,
    /// Where we are: index of the current element within each open list.
    at: Vec<usize>,
    leaves: Leaves,
}

impl ColumnSink {
    /// `declared` is the type of the leaves, or a list type that fixes the depth as well.
    pub(super) fn new(name: &str, declared: Option<&DataType>, first_row: usize) -> Self {
        let depth = declared.map_or(0, list_depth);
        let mut kinds = vec![Kind::List; depth];
        kinds.push(if depth > 0 { Kind::Leaf } else { Kind::Unknown(0) });
        let declared = declared.map(leaf_type).cloned();
        Self {
            name: name.to_owned(),
            first_row,
            kinds,
            levels: (0..depth).map(|_| Level::new()).collect(),
            counts: vec![0; depth + 1],
            at: vec![0],
            leaves: Leaves::new(declared.as_ref()),
            declared,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn rows(&self) -> usize {
        self.counts[0]
    }

    fn depth(&self) -> usize {
        self.at.len() - 1
    }

    pub(super) fn begin(&mut self) -> Result<()> {
        let d = self.depth();
        match self.kinds[d] {
            Kind::List => {}
            Kind::Leaf => return Err(self.depth_varies("a value", "a list")),
            Kind::Unknown(nulls) => {
                if d + 1 >= MAX_DEPTH {
                    return Err(self.depth_varies("at most 64 lists within each other", "another"));
                }
                self.open_level(nulls);
            }
        }
        self.at.push(0);
        Ok(())
    }

    /// The deepest elements turn out to be lists; all of them so far are null.
    fn open_level(&mut self, nulls: usize) {
        self.kinds.pop();
        self.kinds.extend([Kind::List, Kind::Unknown(0)]);
        self.counts.push(0);
        let mut level = Level::new();
        (0..nulls).for_each(|_| level.push(0, false));
        self.levels.push(level);
    }

    pub(super) fn end(&mut self) {
        self.at.pop();
        let d = self.depth();
        self.levels[d].push(self.counts[d + 1], true);
        self.step();
    }

    pub(super) fn null(&mut self) {
        let d = self.depth();
        match &mut self.kinds[d] {
            Kind::List => self.levels[d].push(self.counts[d + 1], false),
            Kind::Leaf => self.leaves.push_null(),
            Kind::Unknown(nulls) => *nulls += 1,
        }
        self.step();
    }

    pub(super) fn scalar(&mut self, value: Scalar<'_>) -> Result<()> {
        let d = self.depth();
        match self.kinds[d] {
            Kind::Leaf => {}
            Kind::List => return Err(self.depth_varies("a list", &value.to_string())),
            Kind::Unknown(nulls) => {
                self.kinds[d] = Kind::Leaf;
                (0..nulls).for_each(|_| self.leaves.push_null());
            }
        }
        let known = self.declared.as_ref();
        let pushed = match known {
            None => self.leaves.push(value).map_err(str::to_owned),
            Some(t) => self.leaves.push_as(t, value),
        };
        if let Err(expected) = pushed {
            return Err(self.wrong_value(expected, value.to_string()));
        }
        self.step();
        Ok(())
    }

    fn step(&mut self) {
        let d = self.depth();
        self.counts[d] += 1;
        self.at[d] += 1;
    }

    fn path(&self) -> String {
        path_of(&self.name, self.first_row, &self.at)
    }

    pub(super) fn depth_varies(&self, expected: &str, found: &str) -> Error {
        Error::DepthVaries {
            path: self.path(),
            expected: expected.to_owned(),
            found: found.to_owned(),
        }
    }

    pub(super) fn wrong_value(&self, expected: impl Into<String>, found: String) -> Error {
        Error::ValueType { path: self.path(), expected: expected.into(), found }
    }

    /// The column; `known` is its type with lists where an earlier part of the input told it.
    pub(super) fn finish(mut self, known: Option<&DataType>) -> Result<Incoming> {
        // Without any value, what is known from before decides.
        if let Some(known) = known.filter(|_| self.is_undecided()) {
            while self.levels.len() < list_depth(known)
                && let Some(Kind::Unknown(nulls)) = self.kinds.last().copied()
            {
                self.open_level(nulls);
            }
            if self.declared.is_none() {
                self.declared = Some(leaf_type(known).clone());
            }
        }
        if let Some(Kind::Unknown(nulls)) = self.kinds.last().copied() {
            (0..nulls).for_each(|_| self.leaves.push_null());
        }
        let Self { name, first_row, declared, levels, mut leaves, .. } = self;
        let nulls = leaves.nulls.finish();
        let values = match &declared {
            None => leaves.store.infer(nulls).map_err(|why| why.error(&name))?,
            Some(t) => leaves.store.make(t, nulls).map_err(|failure| match failure {
                Failure::NoCast(found) => {
                    Error::type_of(format!("column {name:?}"), t.to_string(), &found)
                }
                Failure::Leaf(i, found) => Error::ValueType {
                    path: leaf_path(&name, first_row, &levels, i),
                    expected: t.to_string(),
                    found,
                },
                Failure::Arrow(e) => e.into(),
            })?,
        };
        let levels = levels
            .into_iter()
            .map(|mut l| ListAxis::try_new(Offsets::from_bounds(l.ends, &name)?, l.nulls.finish()))
            .collect::<Result<_>>()?;
        let field = Arc::new(Field::new(&name, values.data_type().clone(), true));
        Ok(Incoming { path: vec![name], field, levels, values })
    }

    fn is_undecided(&self) -> bool {
        matches!(self.kinds.last(), Some(Kind::Unknown(_)))
    }
}

fn path_of(name: &str, first_row: usize, at: &[usize]) -> String {
    let mut path = name.to_owned();
    for (d, i) in at.iter().enumerate() {
        // Writing to a string does not fail.
        let _ = write!(path, "[{}]", if d == 0 { first_row + i } else { *i });
    }
    path
}

/// Path of the `leaf`-th leaf.
fn leaf_path(name: &str, first_row: usize, levels: &[Level], leaf: usize) -> String {
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
    path_of(name, first_row, &at)
}

/// The values so far, in the narrowest of a few kinds.
#[derive(Debug)]
enum Store {
    /// Only nulls.
    Nothing(usize),
    Bool(Vec<bool>),
    Int(Vec<i64>),
    /// Integers of which one is beyond 63 bits.
    Wide(Vec<i128>),
    Float(Floats),
    Text(Texts),
}

#[derive(Debug, Default)]
struct Floats {
    values: Vec<f64>,
    /// No number was among them, only the texts NaN, Infinity and -Infinity.
    only_texts: bool,
    /// A number that may be an integer of more than 64 bits, and whether there is no other float.
    huge: Option<f64>,
    only_huge: bool,
}

#[derive(Debug, Default)]
struct Texts {
    bytes: Vec<u8>,
    ends: Vec<i64>,
}

impl Texts {
    fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.ends.push(i64::try_from(self.bytes.len()).unwrap_or(i64::MAX));
    }
}

#[derive(Debug)]
struct Leaves {
    store: Store,
    nulls: NullBufferBuilder,
}

/// The floats that JSON has no numbers for.
pub(super) fn special(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// As [`special`] reads it.
pub(super) fn special_name(x: f64) -> Option<&'static str> {
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

#[expect(clippy::cast_precision_loss, reason = "numbers become the nearest float, as in numpy")]
fn int_to_float(i: i128) -> f64 {
    i as f64
}

impl Leaves {
    fn new(declared: Option<&DataType>) -> Self {
        let store = match declared {
            Some(DataType::Boolean) => Store::Bool(Vec::new()),
            Some(t) if t.is_floating() => Store::Float(Floats::default()),
            Some(DataType::UInt64) => Store::Wide(Vec::new()),
            Some(t) if t.is_integer() => Store::Int(Vec::new()),
            Some(DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => {
                Store::Text(Texts::default())
            }
            _ => Store::Nothing(0),
        };
        Self { store, nulls: NullBufferBuilder::new(0) }
    }

    fn push_null(&mut self) {
        self.nulls.append_null();
        match &mut self.store {
            Store::Nothing(n) => *n += 1,
            Store::Bool(v) => v.push(false),
            Store::Int(v) => v.push(0),
            Store::Wide(v) => v.push(0),
            Store::Float(f) => f.values.push(0.0),
            Store::Text(t) => t.push(""),
        }
    }

    /// Adds a value to a column of which nothing is declared; the error is what was expected.
    fn push(&mut self, value: Scalar<'_>) -> Result<(), &'static str> {
        if !self.fits(value) {
            self.make_room(value)?;
        }
        match (&mut self.store, value) {
            (Store::Bool(v), Scalar::Bool(b)) => v.push(b),
            (Store::Int(v), Scalar::Bool(b)) => v.push(b.into()),
            (Store::Int(v), Scalar::Int(i)) => v.push(i64::try_from(i).unwrap_or(0)),
            (Store::Wide(v), Scalar::Bool(b)) => v.push(b.into()),
            (Store::Wide(v), Scalar::Int(i)) => v.push(i),
            (Store::Float(f), value) => {
                let (x, text) = match value {
                    Scalar::Bool(b) => (f64::from(u8::from(b)), false),
                    Scalar::Int(i) => (int_to_float(i), false),
                    Scalar::Float(x) | Scalar::Huge(x) => (x, false),
                    Scalar::Text(t) => (special(t).unwrap_or(f64::NAN), true),
                };
                f.only_texts &= text;
                match value {
                    Scalar::Huge(x) => f.huge = Some(x),
                    Scalar::Float(_) | Scalar::Text(_) => f.only_huge = false,
                    _ => {}
                }
                f.values.push(x);
            }
            (Store::Text(t), Scalar::Text(s)) => t.push(s),
            // `make_room` leaves no other pair.
            _ => return Err("a value of the same kind as the others"),
        }
        self.nulls.append_non_null();
        Ok(())
    }

    /// Whether the store holds values of this kind already, as it nearly always does.
    fn fits(&self, value: Scalar<'_>) -> bool {
        match (&self.store, value) {
            (Store::Bool(_), Scalar::Bool(_))
            | (Store::Float(_), Scalar::Float(_))
            | (Store::Text(_), Scalar::Text(_)) => true,
            (Store::Int(_), Scalar::Int(i)) => i64::try_from(i).is_ok(),
            _ => false,
        }
    }

    /// Changes the store so that it can hold `value`.
    fn make_room(&mut self, value: Scalar<'_>) -> Result<(), &'static str> {
        const NUMBER: &str = "a number or a truth value, as before in this column";
        let store = std::mem::replace(&mut self.store, Store::Nothing(0));
        let wide = |i: i128| i64::try_from(i).is_err();
        let floats = |values: Vec<f64>, only_texts, only_huge| {
            Store::Float(Floats { values, only_texts, huge: None, only_huge })
        };
        let is_huge = matches!(value, Scalar::Huge(_));
        let is_float = is_huge
            || matches!(value, Scalar::Float(_))
            || matches!(value, Scalar::Text(t) if special(t).is_some());
        let mut refused = None;
        self.store = match (store, value) {
            (Store::Nothing(n), Scalar::Bool(_)) => Store::Bool(vec![false; n]),
            (Store::Nothing(n), Scalar::Int(i)) if wide(i) => Store::Wide(vec![0; n]),
            (Store::Nothing(n), Scalar::Int(_)) => Store::Int(vec![0; n]),
            (Store::Nothing(n), Scalar::Text(_)) if is_float => floats(vec![0.0; n], true, false),
            (Store::Nothing(n), Scalar::Text(_)) => {
                Store::Text(Texts { bytes: Vec::new(), ends: vec![0; n] })
            }
            (Store::Nothing(n), _) => floats(vec![0.0; n], false, is_huge),
            (Store::Bool(v), Scalar::Int(i)) if wide(i) => {
                Store::Wide(v.into_iter().map(i128::from).collect())
            }
            (Store::Bool(v), Scalar::Int(_)) => Store::Int(v.into_iter().map(i64::from).collect()),
            (Store::Bool(v), _) if is_float => {
                floats(v.into_iter().map(|b| u8::from(b).into()).collect(), false, is_huge)
            }
            (Store::Int(v), Scalar::Int(i)) if wide(i) => {
                Store::Wide(v.into_iter().map(i128::from).collect())
            }
            (Store::Int(v), _) if is_float => {
                floats(v.into_iter().map(|i| int_to_float(i.into())).collect(), false, is_huge)
            }
            (Store::Wide(v), _) if is_float => {
                floats(v.into_iter().map(int_to_float).collect(), false, is_huge)
            }
            // Texts such as "NaN" came first and were taken for floats.
            (Store::Float(f), Scalar::Text(_)) if f.only_texts && !is_float => {
                let mut texts = Texts::default();
                for x in f.values {
                    texts.push(special_name(x).unwrap_or(""));
                }
                Store::Text(texts)
            }
            (store @ (Store::Bool(_) | Store::Int(_) | Store::Wide(_)), Scalar::Text(_)) => {
                refused = Some(NUMBER);
                store
            }
            (store @ Store::Float(_), Scalar::Text(_)) if !is_float => {
                refused = Some(NUMBER);
                store
            }
            (store @ Store::Text(_), value) if !matches!(value, Scalar::Text(_)) => {
                refused = Some("a text, as before in this column");
                store
            }
            (store, _) => store,
        };
        refused.map_or(Ok(()), Err)
    }

    /// Adds a value to a column of a declared type; the error is what was expected.
    fn push_as(&mut self, declared: &DataType, value: Scalar<'_>) -> Result<(), String> {
        let expected = || declared.to_string();
        match &mut self.store {
            Store::Bool(v) if *declared == DataType::Boolean => v.push(match value {
                Scalar::Bool(b) => b,
                Scalar::Int(0) => false,
                Scalar::Int(1) => true,
                _ => return Err(expected()),
            }),
            Store::Int(v) if declared.is_integer() => {
                let i = integer(value, declared).ok_or_else(expected)?;
                v.push(i64::try_from(i).map_err(|_| expected())?);
            }
            Store::Wide(v) if declared.is_integer() => {
                v.push(integer(value, declared).ok_or_else(expected)?);
            }
            Store::Float(f) if declared.is_floating() => {
                let x = match value {
                    Scalar::Bool(b) => f64::from(u8::from(b)),
                    Scalar::Int(i) => int_to_float(i),
                    Scalar::Float(x) | Scalar::Huge(x) => x,
                    Scalar::Text(t) => special(t).ok_or_else(expected)?,
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
            Store::Text(t) if is_text(declared) => match value {
                Scalar::Text(s) => t.push(s),
                _ => return Err(expected()),
            },
            // Times, decimals and the like: collected as they come, cast in the end.
            _ => return self.push(value).map_err(|_| expected()),
        }
        self.nulls.append_non_null();
        Ok(())
    }
}

fn is_text(t: &DataType) -> bool {
    matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// An integer of the declared type; floats are cut towards zero as numpy casts them.
fn integer(value: Scalar<'_>, declared: &DataType) -> Option<i128> {
    let i = match value {
        Scalar::Bool(b) => b.into(),
        Scalar::Int(i) => i,
        #[expect(clippy::cast_possible_truncation, reason = "within 2^65, cut on purpose")]
        Scalar::Float(x) if x.abs() < 3.0e19 => x as i128,
        _ => return None,
    };
    let (least, most) = match declared {
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => (i64::MIN.into(), i64::MAX.into()),
        DataType::UInt8 => (0, u8::MAX.into()),
        DataType::UInt16 => (0, u16::MAX.into()),
        DataType::UInt32 => (0, u32::MAX.into()),
        _ => (0, u64::MAX.into()),
    };
    (least..=most).contains(&i).then_some(i)
}

/// Why no type can be inferred.
enum NoType {
    Nothing,
    Floats(f64),
    Huge(f64),
    Ints(String, String),
}

impl NoType {
    fn error(self, name: &str) -> Error {
        Error::invalid(match self {
            Self::Nothing => format!(
                "column {name:?} has no values to infer a type from; declare its type in the schema"
            ),
            Self::Floats(x) => format!(
                "column {name:?} holds {x:?}, which does not fit the float32 that numbers with a fraction become; declare it as float64"
            ),
            Self::Huge(x) => format!(
                "column {name:?} holds {x:?}, an integer of more than 64 bits or a float as large; declare it as float32 or float64 to read floats"
            ),
            Self::Ints(least, most) => format!(
                "column {name:?} holds integers from {least} to {most}, which fit no 64-bit integer type; declare it as float64"
            ),
        })
    }
}

/// Why the values do not make an array of the declared type.
enum Failure {
    /// Never, from this type.
    NoCast(DataType),
    /// This leaf does not.
    Leaf(usize, String),
    Arrow(arrow::error::ArrowError),
}

/// Collects integers known to fit.
macro_rules! narrow {
    ($array:ident, $values:expr, $nulls:expr) => {
        Arc::new($array::new(
            $values.into_iter().map(|i| i.try_into().unwrap_or_default()).collect(),
            $nulls,
        ))
    };
}

impl Store {
    /// The array of the type that nested_ragged_tensors would choose.
    fn infer(self, nulls: Option<NullBuffer>) -> Result<ArrayRef, NoType> {
        fn valid<T: Copy>(v: &[T], nulls: Option<&NullBuffer>) -> impl Iterator<Item = T> {
            v.iter()
                .enumerate()
                .filter(move |(i, _)| nulls.is_none_or(|n| n.is_valid(*i)))
                .map(|(_, x)| *x)
        }
        Ok(match self {
            Self::Nothing(_) => return Err(NoType::Nothing),
            Self::Bool(v) => Arc::new(BooleanArray::new(v.into(), nulls)),
            Self::Int(v) => {
                let (least, most) = valid(&v, nulls.as_ref())
                    .fold((i64::MAX, i64::MIN), |(a, b), x| (a.min(x), b.max(x)));
                if least >= 0 {
                    if u8::try_from(most).is_ok() {
                        narrow!(UInt8Array, v, nulls)
                    } else if u16::try_from(most).is_ok() {
                        narrow!(UInt16Array, v, nulls)
                    } else if u32::try_from(most).is_ok() {
                        narrow!(UInt32Array, v, nulls)
                    } else {
                        narrow!(UInt64Array, v, nulls)
                    }
                } else if i8::try_from(least).is_ok() && i8::try_from(most).is_ok() {
                    narrow!(Int8Array, v, nulls)
                } else if i16::try_from(least).is_ok() && i16::try_from(most).is_ok() {
                    narrow!(Int16Array, v, nulls)
                } else if i32::try_from(least).is_ok() && i32::try_from(most).is_ok() {
                    narrow!(Int32Array, v, nulls)
                } else {
                    Arc::new(Int64Array::new(v.into(), nulls))
                }
            }
            Self::Wide(v) => {
                let (least, most) = valid(&v, nulls.as_ref())
                    .fold((i128::MAX, i128::MIN), |(a, b), x| (a.min(x), b.max(x)));
                if least < i64::MIN.into() || most > u64::MAX.into() {
                    return Err(NoType::Ints(least.to_string(), most.to_string()));
                }
                if least >= 0 {
                    narrow!(UInt64Array, v, nulls)
                } else {
                    // No integer type holds both: numpy makes floats of them.
                    let floats = v.into_iter().map(int_to_float).collect();
                    single(floats, nulls)
                }
            }
            Self::Float(f) => {
                if let Some(x) = f.huge.filter(|_| f.only_huge) {
                    return Err(NoType::Huge(x));
                }
                let most = f64::from(f32::MAX);
                let bad = valid(&f.values, nulls.as_ref()).find(|x| x.abs() > most);
                if let Some(x) = bad {
                    return Err(NoType::Floats(x));
                }
                single(f.values, nulls)
            }
            Self::Text(t) => {
                let text = text_array(t, nulls);
                // 32-bit offsets as long as they suffice.
                cast(&text, &DataType::Utf8).unwrap_or(text)
            }
        })
    }

    fn make(self, t: &DataType, nulls: Option<NullBuffer>) -> Result<ArrayRef, Failure> {
        Ok(match (self, t) {
            (Self::Nothing(n), DataType::Null) => Arc::new(NullArray::new(n)),
            (Self::Nothing(0), _) => new_empty_array(t),
            (Self::Nothing(n), _) => new_null_array(t, n),
            (Self::Bool(v), DataType::Boolean) => Arc::new(BooleanArray::new(v.into(), nulls)),
            (Self::Float(f), DataType::Float16) => {
                let values = f.values.into_iter().map(f16::from_f64).collect();
                Arc::new(Float16Array::new(values, nulls))
            }
            (Self::Float(f), DataType::Float32) => single(f.values, nulls),
            (Self::Float(f), DataType::Float64) => {
                Arc::new(Float64Array::new(f.values.into(), nulls))
            }
            (Self::Int(v), DataType::Int8) => narrow!(Int8Array, v, nulls),
            (Self::Int(v), DataType::Int16) => narrow!(Int16Array, v, nulls),
            (Self::Int(v), DataType::Int32) => narrow!(Int32Array, v, nulls),
            (Self::Int(v), DataType::Int64) => Arc::new(Int64Array::new(v.into(), nulls)),
            (Self::Int(v), DataType::UInt8) => narrow!(UInt8Array, v, nulls),
            (Self::Int(v), DataType::UInt16) => narrow!(UInt16Array, v, nulls),
            (Self::Int(v), DataType::UInt32) => narrow!(UInt32Array, v, nulls),
            (Self::Wide(v), DataType::UInt64) => narrow!(UInt64Array, v, nulls),
            (store, _) => {
                let from: ArrayRef = match store {
                    Self::Text(t) => text_array(t, nulls),
                    Self::Int(v) => Arc::new(Int64Array::new(v.into(), nulls)),
                    Self::Wide(v) => narrow!(UInt64Array, v, nulls),
                    Self::Float(f) => Arc::new(Float64Array::new(f.values.into(), nulls)),
                    Self::Bool(v) => Arc::new(BooleanArray::new(v.into(), nulls)),
                    Self::Nothing(n) => new_null_array(t, n),
                };
                cast_all(&from, t)?
            }
        })
    }
}

/// Casts; a value that becomes null is a failure.
fn cast_all(from: &ArrayRef, t: &DataType) -> Result<ArrayRef, Failure> {
    // The zone is a label on instants; a text says its own offset.
    if let DataType::Timestamp(unit, Some(_)) = t {
        let utc = DataType::Timestamp(*unit, Some("+00:00".into()));
        if *t != utc {
            return relabelled(&cast_all(from, &utc)?, t.clone()).map_err(Failure::Arrow);
        }
    }
    // Days come as 32-bit integers or texts.
    let step = match (from.data_type(), t) {
        (DataType::Int64, DataType::Date32 | DataType::Time32(_)) => {
            cast(from, &DataType::Int32).map_err(Failure::Arrow)?
        }
        _ => from.clone(),
    };
    if !can_cast_types(step.data_type(), t) {
        return Err(Failure::NoCast(from.data_type().clone()));
    }
    let made = cast(&step, t).map_err(Failure::Arrow)?;
    if made.null_count() > from.null_count()
        && let Some(i) = (0..made.len()).find(|i| made.is_null(*i) && from.is_valid(*i))
    {
        let found = arrow::util::display::array_value_to_string(from, i).unwrap_or_default();
        return Err(Failure::Leaf(i, format!("{found:?}")));
    }
    Ok(made)
}

#[expect(clippy::cast_possible_truncation, reason = "rounding to float32 is what is asked for")]
fn single(values: Vec<f64>, nulls: Option<NullBuffer>) -> ArrayRef {
    Arc::new(Float32Array::new(values.into_iter().map(|x| x as f32).collect(), nulls))
}

fn text_array(texts: Texts, nulls: Option<NullBuffer>) -> ArrayRef {
    let mut offsets = Vec::with_capacity(texts.ends.len() + 1);
    offsets.push(0);
    offsets.extend(texts.ends);
    let offsets = OffsetBuffer::new(offsets.into());
    // SAFETY: the bytes are those of `str`s and the offsets their ends.
    Arc::new(unsafe {
        LargeStringArray::new_unchecked(offsets, Buffer::from_vec(texts.bytes), nulls)
    })
}
