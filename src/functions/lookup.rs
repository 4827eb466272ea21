//! Joining leaves with a table: `ragged_lookup`, `ragged_bin`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use arrow::array::{Array, ArrayRef, AsArray, ListArray};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;

use super::args::{Call, Plan};
use super::codes::codes_file;
use super::def::{Def, Fails, nullable};
use super::doc::{Doc, Section};
use super::example;
use super::kept::Kept;
use super::lists::Lists;
use crate::array::list_depth;
use crate::error::{Error, Result};
use crate::io::parquet::{self, ParquetReadOptions};
use crate::kernels::lookup::{self, Lookup};

const FROM: (&str, &str) = (
    "from",
    "the name of a table or view, a file, or a query, as a text that is written out; as a Parquet file, or the folder of a `codes.parquet`, wherever functions are; else in statements that `serrate` or `serrate::sql::sql` runs",
);

/// Names of the fields that a statement's own query gives of a table.
pub(crate) const PAIR: [&str; 2] = ["k", "v"];

/// Calls whose table a statement reads itself, with the column of keys and of values where the call
/// names none: function, how many arguments stand before the table.
pub(crate) const TABLES: [(&str, usize); 2] = [("ragged_lookup", 1), ("ragged_bin", 2)];

/// The columns of cuts where a call names none.
pub(crate) const BIN_COLUMNS: [&str; 2] = ["code", "cuts"];

static FILES: Kept<File> = Kept::new();

/// Tables of queries that run now, by the list that their query gave.
static GIVEN: Mutex<Vec<(Weak<ListArray>, Arc<Table>)>> = Mutex::new(Vec::new());

/// Two columns of a table, by key.
struct Table {
    keys: Lookup,
    values: ArrayRef,
    /// The values as cuts, if they are asked for.
    cuts: std::sync::OnceLock<ListArray>,
}

impl Table {
    fn try_new(keys: &ArrayRef, values: &ArrayRef) -> Result<Self> {
        let (keys, values) = (Lookup::try_new(keys)?, Arc::clone(values));
        Ok(Self { keys, values, cuts: std::sync::OnceLock::new() })
    }

    fn cuts(&self) -> Result<&ListArray> {
        match self.cuts.get() {
            Some(cuts) => Ok(cuts),
            None => {
                let cuts = lookup::cuts(&self.values)?;
                Ok(self.cuts.get_or_init(|| cuts))
            }
        }
    }
}

/// A file with the columns of it that were asked for.
struct File {
    path: PathBuf,
    made: Mutex<HashMap<[String; 2], Arc<Table>>>,
}

impl File {
    fn get(path: &str, columns: [&str; 2]) -> Result<Arc<Table>> {
        let file = FILES.get(&codes_file(path), |path| {
            Ok(Self { path: path.to_path_buf(), made: Mutex::new(HashMap::new()) })
        })?;
        let mut made = file.made.lock().unwrap_or_else(PoisonError::into_inner);
        let names = columns.map(str::to_owned);
        if let Some(table) = made.get(&names) {
            return Ok(Arc::clone(table));
        }
        let wanted = match &names {
            [key, value] if key == value => vec![key.clone()],
            names => names.to_vec(),
        };
        let options = ParquetReadOptions { columns: Some(wanted), ..Default::default() };
        let whole = parquet::read(&file.path, &options)?;
        let of = |name: &str| whole.column_array(whole.column(name)?)?.to_arrow();
        let table = Arc::new(Table::try_new(&of(columns[0])?, &of(columns[1])?)?);
        made.insert(names, Arc::clone(&table));
        Ok(table)
    }
}

/// The table that a statement's own query gave, made once for all batches of the statement.
fn given(list: &ScalarValue) -> Result<Arc<Table>> {
    let ScalarValue::List(list) = list else {
        return Err(Error::invalid(format!(
            "a table is a list of pairs, not {}",
            list.data_type()
        )));
    };
    let mut tables = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    tables.retain(|(known, _)| known.strong_count() > 0);
    let same = |(known, _): &&(Weak<ListArray>, Arc<Table>)| known.as_ptr() == Arc::as_ptr(list);
    if let Some((_, table)) = tables.iter().find(same) {
        return Ok(Arc::clone(table));
    }
    let pairs = match list.is_empty() || list.is_null(0) {
        true => list.values().slice(0, 0),
        false => list.value(0),
    };
    let pairs = pairs
        .as_struct_opt()
        .filter(|pairs| pairs.num_columns() == 2)
        .ok_or_else(|| Error::type_of("a table", "pairs of key and value", pairs.data_type()))?;
    // Under the lock, so that partitions that start together make it once.
    let table = Arc::new(Table::try_new(pairs.column(0), pairs.column(1))?);
    tables.push((Arc::downgrade(list), Arc::clone(&table)));
    Ok(table)
}

/// Where a call names its table: the position of `from`; the columns of keys and values follow, then
/// the pairs, if the statement gives them.
fn columns<'a>(
    text: impl Fn(usize) -> Result<Option<&'a str>>,
    from: usize,
) -> Result<[&'a str; 2]> {
    let [key, value] = BIN_COLUMNS;
    Ok([text(from + 1)?.unwrap_or(key), text(from + 2)?.unwrap_or(value)])
}

/// The types of keys and values, as they are known when a query is planned.
fn planned(plan: &Plan<'_>, from: usize) -> Result<[DataType; 2]> {
    const SUCH: &str = "'codes.parquet'";
    let Some(path) = plan.literal_text(from, "the table", SUCH)? else {
        return Err(plan.refuse(from, "(the table) must be given"));
    };
    let names = columns(|i| plan.literal_text(i, "the name of a column", "'code'"), from)?;
    if plan.len() > from + 3 {
        if let DataType::List(pairs) = plan.data_type(from + 3)
            && let DataType::Struct(fields) = pairs.data_type()
            && let [key, value] = fields.as_ref()
        {
            return Ok([key.data_type().clone(), value.data_type().clone()]);
        }
        return Err(plan.refuse(from + 3, "is not for people to give"));
    }
    if !Path::new(path).exists() {
        return Err(plan.refuse(
            from,
            format!(
                "({path:?}) is no file here; tables are known in statements that serrate::sql::sql runs"
            ),
        ));
    }
    let table = File::get(path, names)?;
    Ok([table.keys.data_type().clone(), table.values.data_type().clone()])
}

/// The table of a call.
fn table(call: &Call<'_>, from: usize) -> Result<Arc<Table>> {
    if call.len() > from + 3 {
        return match call.constant(from + 3) {
            Some(pairs) => given(pairs),
            None => Err(Error::invalid(format!("{}: its table is not constant", call.name()))),
        };
    }
    let path = call
        .text(from)
        .ok_or_else(|| Error::invalid(format!("{}: its table is not constant", call.name())))?;
    File::get(path, columns(|i| Ok(call.text(i)), from)?)
}

fn named(plan: &Plan<'_>, e: &Error) -> Error {
    Error::invalid(format!("{}: {e}", plan.name()))
}

/// `ragged_lookup(x, from, key, column)`.
pub(super) static LOOKUP: Def = Def {
    name: "ragged_lookup",
    aliases: &[],
    arity: (4, 5),
    doc: Doc {
        section: Section::Codes,
        description: "What a table says of every value: the value of `column` in the row whose `key` it is. The table is read once for a query; a dictionary is looked up once for each of its values, anything else in a hash map over the flat values, or a plain table where keys are integers close to each other.",
        syntax: &["ragged_lookup(x, from, key, column)"],
        args: &[
            ("x", "a list of any depth, or single values: integers, texts, dates or timestamps"),
            FROM,
            ("key", "the column of the table that values are looked for in, written out"),
            ("column", "the column of the table that is the result, written out"),
        ],
        missing: "NULL for what is not a key; NULL stays NULL, and keys that are NULL are never found. A key that is there twice is an error.",
        duckdb: "a join of the unnested values with the table, and grouping back.",
        example: example!("ragged_lookup"),
    },
    plan: |plan| {
        let [keys, values] = planned(plan, 1)?;
        let lists = Lists::of(plan.data_type(0));
        lookup::comparable(lists.leaf(), &keys).map_err(|e| named(plan, &e))?;
        if list_depth(&values) > 0 {
            return Err(plan.refuse(3, format!("is a column of one value per key, not {values}")));
        }
        Ok(out(&lists, values))
    },
    call: |call| {
        let table = table(call, 1)?;
        call.lists(&lookup::looked_up(&call.ragged(0)?, &table.keys, &table.values)?)
    },
    fails: Fails::Values,
    infix: None,
};

/// `ragged_bin(val, code, from [, key, cuts])`.
pub(super) static BIN: Def = Def {
    name: "ragged_bin",
    aliases: &[],
    arity: (3, 6),
    doc: Doc {
        section: Section::Codes,
        description: "The bin of every value among the cuts of its code, such as quantiles of a lab: how many cuts are not greater than it, 0 to the number of cuts. With `ragged_encode(code, ..)` beside it these are tokens of values.",
        syntax: &["ragged_bin(val, code, from [, key, cuts])"],
        args: &[
            ("val", "numbers: a list of any depth, or single values"),
            (
                "code",
                "the code of each value: the same lists, or with fewer levels those of the outer axes",
            ),
            FROM,
            ("key", "the column of the table with the codes, written out; `'code'` if not given"),
            (
                "cuts",
                "the column of the table with ascending cuts, a list of numbers or a struct of them, written out; `'cuts'` if not given",
            ),
        ],
        missing: "NULL for NULL and NaN, for a code that is not in the table, and where its cuts are NULL. Cuts that do not ascend and a code that is there twice are errors. A value at a cut is above it.",
        duckdb: "a join of the unnested values with the table, `len(list_filter(cuts, lambda c: c <= val))`, and grouping back.",
        example: example!("ragged_bin"),
    },
    plan: |plan| {
        if plan.is_untyped_null(1) {
            return Ok(out(&Lists::of(plan.data_type(0)), DataType::UInt32));
        }
        let [keys, cuts] = planned(plan, 2)?;
        let (lists, codes) = (Lists::of(plan.data_type(0)), Lists::of(plan.data_type(1)));
        if !lists.leaf().is_numeric() && !lists.leaf().is_null() {
            return Err(plan.refuse(0, format!("must be numbers; they are {}", lists.leaf())));
        }
        if codes.depth() > lists.depth() {
            return Err(plan.refuse(
                1,
                format!(
                    "has {} levels of lists and the values {}: there is one code for every value, or one for those of a list",
                    codes.depth(),
                    lists.depth()
                ),
            ));
        }
        lookup::comparable(codes.leaf(), &keys).map_err(|e| named(plan, &e))?;
        let numbers = match &cuts {
            DataType::Struct(fields) => fields.iter().all(|f| f.data_type().is_numeric()),
            t => list_depth(t) == 1 && Lists::of(t).leaf().is_numeric(),
        };
        if !numbers {
            return Err(plan.refuse(4, format!("(the cuts) are {cuts}, not lists of numbers")));
        }
        Ok(out(&lists, DataType::UInt32))
    },
    call: |call| {
        let values = call.ragged(0)?;
        if call.array(1)?.data_type().is_null() {
            let none = arrow::array::new_null_array(&DataType::UInt32, values.leaves().len());
            return call.lists(&values.with_leaves(none)?);
        }
        let table = table(call, 2)?;
        call.lists(&lookup::bins(&values, &call.ragged(1)?, &table.keys, table.cuts()?)?)
    },
    fails: Fails::Values,
    infix: None,
};

/// The same lists around other values.
fn out(lists: &Lists, leaf: DataType) -> FieldRef {
    nullable(lists.plain_leaf(leaf))
}
