//! Look-ups of leaves (innermost values of lists) in a table: `ragged_lookup`, `ragged_bin`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use arrow::array::{Array, ArrayRef, AsArray, ListArray};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use serrate_core::internal::lock_mutex;
use serrate_core::internal::lookup::{self, LookupIndex};

use super::args::{BatchCall, CallPlan};
use super::def::{Def, FunctionFacts, TableArgument, make_nullable};
use super::doc::{Doc, FunctionSection};
use super::example;
use super::file_cache::FileCache;
use super::lists::NestedListType;
use super::vocabulary_codes::find_local_codes;
use crate::access;
use crate::array::list_depth;
use crate::error::{Error, Result};
use crate::io::parquet::{self, ParquetReadOptions};
use crate::memory::MemoryCharge;

const FROM: (&str, &str) = (
    "from",
    "the name of a table or view, a file, or a query, as a string literal. A Parquet file, or a folder with a `codes.parquet`, works everywhere; other sources work in statements that `serrate` or `serrate::sql::sql` runs",
);

/// Field names of the key-value structs that the subquery of a look-up table returns.
pub(crate) const PAIR: [&str; 2] = ["k", "v"];

pub(crate) const BIN_COLUMNS: [&str; 2] = ["code", "cuts"];

static FILES: FileCache<LookupFile> = FileCache::new();

/// Look-up tables of running queries, found by the address of the list that a subquery returned.
static GIVEN: Mutex<Vec<(Weak<ListArray>, TableSlot)>> = Mutex::new(Vec::new());

/// A look-up table, or `None` before it is made. The lock is held while the table is made, so that
/// partitions that start together make it only once. Readers of other tables do not wait.
type TableSlot = Arc<Mutex<Option<Arc<LookupTable>>>>;

fn make_table(
    slot: &TableSlot,
    make: impl FnOnce() -> Result<LookupTable>,
) -> Result<Arc<LookupTable>> {
    let mut slot = lock_mutex(slot);
    if let Some(table) = slot.as_ref() {
        return Ok(Arc::clone(table));
    }
    let table = Arc::new(make()?);
    *slot = Some(Arc::clone(&table));
    Ok(table)
}

struct LookupTable {
    keys: LookupIndex,
    values: ArrayRef,
    /// The values as lists of bin boundaries, for `ragged_bin`; converted on first use.
    cuts: std::sync::OnceLock<ListArray>,
    _charge: MemoryCharge,
}

impl LookupTable {
    fn try_new(keys: &ArrayRef, values: &ArrayRef) -> Result<Self> {
        // The index of the keys takes about as much memory as the keys.
        let bytes = keys.get_array_memory_size().saturating_mul(2);
        let bytes = bytes.saturating_add(values.get_array_memory_size());
        let charge = MemoryCharge::take("a look-up table", bytes)?;
        let (keys, values) = (LookupIndex::try_new(keys)?, Arc::clone(values));
        Ok(Self { keys, values, cuts: std::sync::OnceLock::new(), _charge: charge })
    }

    fn cuts(&self) -> Result<&ListArray> {
        match self.cuts.get() {
            Some(cuts) => Ok(cuts),
            None => {
                let cuts = lookup::read_cuts(&self.values)?;
                Ok(self.cuts.get_or_init(|| cuts))
            }
        }
    }
}

/// A Parquet file and its look-up tables, by the names of their key and value columns.
struct LookupFile {
    path: PathBuf,
    made: Mutex<HashMap<[String; 2], TableSlot>>,
}

impl LookupFile {
    fn get(path: &str, columns: [&str; 2]) -> Result<Arc<LookupTable>> {
        let file = FILES.get(&find_local_codes(path)?, |path| {
            Ok(Self { path: path.to_path_buf(), made: Mutex::new(HashMap::new()) })
        })?;
        make_table(&file.find_slot(columns), || {
            let wanted = match columns {
                [key, value] if key == value => vec![key.to_owned()],
                names => names.map(str::to_owned).to_vec(),
            };
            let options = ParquetReadOptions { columns: Some(wanted), ..Default::default() };
            let whole = parquet::read(&file.path, &options)?;
            let of = |name: &str| whole.column_array(whole.column(name)?)?.to_arrow();
            LookupTable::try_new(&of(columns[0])?, &of(columns[1])?)
        })
    }

    fn find_slot(&self, columns: [&str; 2]) -> TableSlot {
        let mut made = lock_mutex(&self.made);
        Arc::clone(made.entry(columns.map(str::to_owned)).or_default())
    }
}

/// Returns the look-up table of the key-value pairs in `list`, which a subquery returned. Builds
/// the table on the first call for this list.
fn make_subquery_table(list: &ScalarValue) -> Result<Arc<LookupTable>> {
    let ScalarValue::List(list) = list else {
        return Err(Error::invalid(format!(
            "internal error: the table must be a list of pairs, not {}; please report it",
            list.data_type()
        )));
    };
    make_table(&find_given_slot(list), || read_pairs(list))
}

fn find_given_slot(list: &Arc<ListArray>) -> TableSlot {
    let mut tables = lock_mutex(&GIVEN);
    tables.retain(|(known, _)| known.strong_count() > 0);
    let same = |(known, _): &&(Weak<ListArray>, TableSlot)| known.as_ptr() == Arc::as_ptr(list);
    if let Some((_, slot)) = tables.iter().find(same) {
        return Arc::clone(slot);
    }
    let slot = TableSlot::default();
    tables.push((Arc::downgrade(list), Arc::clone(&slot)));
    slot
}

fn read_pairs(list: &ListArray) -> Result<LookupTable> {
    let pairs = match list.is_empty() || list.is_null(0) {
        true => list.values().slice(0, 0),
        false => list.value(0),
    };
    let pairs =
        pairs.as_struct_opt().filter(|pairs| pairs.num_columns() == 2).ok_or_else(|| {
            Error::invalid(format!(
                "internal error: the rows of a look-up table must be structs of a key and a value, not {}; please report it",
                pairs.data_type()
            ))
        })?;
    LookupTable::try_new(pairs.column(0), pairs.column(1))
}

/// Returns the names of the key and value columns of a look-up table: the arguments `from + 1` and
/// `from + 2`, which `text` reads. The default of a name that is not given is in [`BIN_COLUMNS`].
fn read_column_names<'a>(
    text: impl Fn(usize) -> Result<Option<&'a str>>,
    from: usize,
) -> Result<[&'a str; 2]> {
    let [key, value] = BIN_COLUMNS;
    Ok([text(from + 1)?.unwrap_or(key), text(from + 2)?.unwrap_or(value)])
}

fn plan_types(plan: &CallPlan<'_>, from: usize) -> Result<[DataType; 2]> {
    const SUCH: &str = "'codes.parquet'";
    let Some(path) = plan.find_literal_text(from, "the table", SUCH)? else {
        return Err(plan.refuse_call(format!(
            "argument {} (the table) is missing; give the path of a file, such as 'codes.parquet'",
            from + 1
        )));
    };
    let names =
        read_column_names(|i| plan.find_literal_text(i, "the name of a column", "'code'"), from)?;
    if plan.len() > from + 3 {
        if let DataType::List(pairs) = plan.data_type(from + 3)
            && let DataType::Struct(fields) = pairs.data_type()
            && let [key, value] = fields.as_ref()
        {
            return Ok([key.data_type().clone(), value.data_type().clone()]);
        }
        return Err(plan.refuse_call(format!(
            "argument {} is one too many; give at most {} arguments",
            from + 4,
            from + 3
        )));
    }
    if !access::is_store_url(path) && !access::exists(Path::new(path)) {
        return Err(plan.refuse_call(format!(
            "argument {} ({path:?}) is not a file; check the path. The name of a table is accepted only in statements that run through serrate::sql::sql",
            from + 1
        )));
    }
    let table = LookupFile::get(path, names)?;
    Ok([table.keys.data_type().clone(), table.values.data_type().clone()])
}

fn read_table(call: &BatchCall<'_>, from: usize) -> Result<Arc<LookupTable>> {
    if call.len() > from + 3 {
        return match call.find_constant(from + 3) {
            Some(pairs) => make_subquery_table(pairs),
            None => make_subquery_table(&read_common_value(call, from + 3)?),
        };
    }
    let path = call.read_text(from).ok_or_else(|| make_varying_table_error(call, from))?;
    LookupFile::get(path, read_column_names(|i| Ok(call.read_text(i)), from)?)
}

/// Returns the value of argument `i`, a subquery that reads the look-up table. If a join has
/// replaced the subquery, the argument is an array that repeats this value in every row; different
/// values are an error. The planner adds this argument after the table and the names of two
/// columns.
fn read_common_value(call: &BatchCall<'_>, i: usize) -> Result<ScalarValue> {
    let values = call.read_array(i)?;
    if values.is_empty() {
        return Ok(ScalarValue::try_new_null(values.data_type())?);
    }
    let first = values.slice(0, 1).to_data();
    match (1..values.len()).all(|row| values.slice(row, 1).to_data() == first) {
        true => Ok(ScalarValue::try_from_array(&values, 0)?),
        false => Err(make_varying_table_error(call, i - 3)),
    }
}

/// Returns the error that argument `i`, the table, has several values.
fn make_varying_table_error(call: &BatchCall<'_>, i: usize) -> Error {
    Error::invalid(format!(
        "{}: argument {} (the table) must be the same for all rows; give a literal such as 'codes.parquet'",
        call.name(),
        i + 1
    ))
}

fn name_table(plan: &CallPlan<'_>, e: &Error) -> Error {
    Error::invalid(format!("{}: {e}", plan.name()))
}

pub(super) static LOOKUP: Def = Def {
    name: "ragged_lookup",
    arity: (4, 5),
    doc: Doc {
        section: FunctionSection::Codes,
        description: "Looks each value up in a table: it returns `column` of the row whose `key` equals the value. The table is read once per query. Each value of a dictionary is looked up once; other values are looked up in a hash map, or in an array if the keys are integers close to each other.",
        syntax: &["ragged_lookup(x, from, key, column)"],
        args: &[
            ("x", "a list of any depth, or scalars: integers, strings, dates or timestamps"),
            FROM,
            ("key", "the column of the table that holds the keys, a literal"),
            ("column", "the column of the table that is returned, a literal"),
        ],
        missing: "A value that is not a key returns NULL, and NULL values stay NULL. A NULL key never matches. A duplicate key is an error.",
        duckdb: "a join of the unnested values with the table, grouped back into lists.",
        example: example!("ragged_lookup"),
    },
    plan: |plan| {
        let [keys, values] = plan_types(plan, 1)?;
        let lists = NestedListType::from_type(plan.data_type(0));
        lookup::check_comparable(lists.leaf(), &keys).map_err(|e| name_table(plan, &e))?;
        if list_depth(&values) > 0 {
            return Err(plan.refuse_call(format!(
                "argument 4 must name a column of scalars, one value per key; the column holds {values}, so name another column"
            )));
        }
        Ok(make_result_field(&lists, values))
    },
    call: |call| {
        let table = read_table(call, 1)?;
        call.to_lists(&lookup::look_up_values(&call.read_ragged(0)?, &table.keys, &table.values)?)
    },
    facts: FunctionFacts {
        table: Some(TableArgument { index: 1, has_default_columns: false }),
        reads_paths: true,
        ..FunctionFacts::COMPARES
    },
    ..Def::DEFAULTS
};

pub(super) static BIN: Def = Def {
    name: "ragged_bin",
    arity: (3, 6),
    doc: Doc {
        section: FunctionSection::Codes,
        description: "Returns the bin of each value among the cuts of its code, such as the quantiles of a lab: the number of cuts that are not greater than the value. Together with `ragged_encode(code, ..)`, bins serve as tokens of values.",
        syntax: &["ragged_bin(val, code, from [, key, cuts])"],
        args: &[
            ("val", "numbers: a list of any depth, or scalars"),
            (
                "code",
                "the code of each value: the same lists, or fewer levels, with the lists of the outer axes",
            ),
            FROM,
            ("key", "the column of the table that holds the codes, a literal; `'code'` by default"),
            (
                "cuts",
                "the column of the table that holds ascending cuts, a list of numbers or a struct of numbers, a literal; `'cuts'` by default",
            ),
        ],
        missing: "NULL and NaN return NULL, and so do codes that are not in the table and codes whose cuts are NULL. Cuts that do not ascend and duplicate codes are errors. A value equal to a cut belongs to the bin above it.",
        duckdb: "a join of the unnested values with the table, `len(list_filter(cuts, lambda c: c <= val))`, grouped back into lists.",
        example: example!("ragged_bin"),
    },
    plan: |plan| {
        if plan.is_untyped_null(1) {
            return Ok(make_result_field(
                &NestedListType::from_type(plan.data_type(0)),
                DataType::UInt32,
            ));
        }
        let [keys, cuts] = plan_types(plan, 2)?;
        let (lists, codes) = (
            NestedListType::from_type(plan.data_type(0)),
            NestedListType::from_type(plan.data_type(1)),
        );
        if !lists.leaf().is_numeric() && !lists.leaf().is_null() {
            return Err(plan.refuse_call(format!(
                "argument 1 must be numbers; the values are {}, so cast them first",
                lists.leaf()
            )));
        }
        if codes.depth() > lists.depth() {
            return Err(plan.refuse_call(format!(
                "argument 2 (the codes) has {} level(s) of lists, but argument 1 (the values) has {}; give one code for each value, or one for each list of values",
                codes.depth(),
                lists.depth()
            )));
        }
        lookup::check_comparable(codes.leaf(), &keys).map_err(|e| name_table(plan, &e))?;
        let numbers = match &cuts {
            DataType::Struct(fields) => fields.iter().all(|f| f.data_type().is_numeric()),
            t => list_depth(t) == 1 && NestedListType::from_type(t).leaf().is_numeric(),
        };
        if !numbers {
            return Err(plan.refuse_call(format!(
                "argument 5 (the cuts) must be lists of numbers; they are {cuts}, so cast them first"
            )));
        }
        Ok(make_result_field(&lists, DataType::UInt32))
    },
    call: |call| {
        let values = call.read_ragged(0)?;
        if call.read_array(1)?.data_type().is_null() {
            let none = arrow::array::new_null_array(&DataType::UInt32, values.leaves().len());
            return call.to_lists(&values.with_leaves(none)?);
        }
        let table = read_table(call, 2)?;
        call.to_lists(&lookup::find_bins(
            &values,
            &call.read_ragged(1)?,
            &table.keys,
            table.cuts()?,
        )?)
    },
    facts: FunctionFacts {
        table: Some(TableArgument { index: 2, has_default_columns: true }),
        reads_paths: true,
        ..FunctionFacts::COMPARES
    },
    ..Def::DEFAULTS
};

fn make_result_field(lists: &NestedListType, leaf: DataType) -> FieldRef {
    make_nullable(lists.make_plain_leaf(leaf))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_for_other_columns_of_a_file() {
        let file = LookupFile { path: PathBuf::new(), made: Mutex::default() };
        let busy = file.find_slot(["code", "cuts"]);
        let held = busy.lock().unwrap();
        assert!(file.find_slot(["code", "name"]).try_lock().is_ok());
        assert!(file.find_slot(["code", "cuts"]).try_lock().is_err());
        drop(held);
        assert!(file.find_slot(["code", "cuts"]).try_lock().is_ok());
    }

    #[test]
    fn a_table_that_was_not_made_is_made_again() {
        let slot = TableSlot::default();
        let keys: ArrayRef = Arc::new(arrow::array::Int64Array::from(vec![1, 2]));
        assert!(make_table(&slot, || Err(Error::invalid("no table"))).is_err());
        let made = make_table(&slot, || LookupTable::try_new(&keys, &keys)).unwrap();
        let again = make_table(&slot, || Err(Error::invalid("made twice"))).unwrap();
        assert!(Arc::ptr_eq(&made, &again));
    }
}
