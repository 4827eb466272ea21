//! List functions of DataFusion that compare floats, lists or structs and return elements.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, DynComparator, UInt64Array, make_array, make_comparator,
    new_empty_array,
};
use arrow::compute::{SortOptions, cast, concat, interleave, take};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::error::Result;
use datafusion::functions_nested::all_default_nested_functions;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl};
use datafusion::scalar::ScalarValue;
use serrate_core::internal::{holds_float, to_canonical_floats};

use super::list_fields::unify_lists;
use super::nested_elements::change_nested_elements;
use super::{are_scalars, compare_nested, count_call_rows, delegate, to_columnar};

/// Says which of several equal elements, such as -0.0 and 0.0, a function returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ReturnedElements {
    First,
    /// All equal elements, in any order: `array_sort` returns every element.
    All,
    /// The last of the equal elements: `array_remove` and `array_remove_n` remove the first ones,
    /// so the last ones are left. `array_remove_all` leaves none, so it could have any variant.
    Last,
    /// All equal elements, each at its old position, except those that the function replaces.
    InPlace,
}

const FUNCTIONS: [(&str, ReturnedElements); 13] = [
    ("array_distinct", ReturnedElements::First),
    ("array_except", ReturnedElements::First),
    ("array_intersect", ReturnedElements::First),
    ("array_max", ReturnedElements::First),
    ("array_min", ReturnedElements::First),
    ("array_remove", ReturnedElements::Last),
    ("array_remove_all", ReturnedElements::Last),
    ("array_remove_n", ReturnedElements::Last),
    ("array_replace", ReturnedElements::InPlace),
    ("array_replace_all", ReturnedElements::InPlace),
    ("array_replace_n", ReturnedElements::InPlace),
    ("array_sort", ReturnedElements::All),
    ("array_union", ReturnedElements::First),
];

/// Returns list functions that replace DataFusion's: they treat -0.0 and 0.0, and all NaN, as
/// equal, but return elements unchanged. Remove once `stock_lists_still_tell_zeros_apart` in
/// `tests/sql/float_keys.rs` fails.
pub(crate) fn float_lists() -> impl Iterator<Item = ScalarUDF> {
    all_default_nested_functions().into_iter().filter_map(|inner| {
        let (_, returned) = FUNCTIONS.iter().find(|(name, _)| *name == inner.name())?;
        let is_of_two = matches!(inner.name(), "array_except" | "array_intersect" | "array_union");
        let function = ScalarUDF::new_from_impl(FloatList { inner, returned: *returned });
        // DataFusion's functions of two lists fail if the element fields of the lists differ in
        // name, so `unify_lists` gives these fields one name.
        Some(if is_of_two { unify_lists(Arc::new(function)) } else { function })
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FloatList {
    inner: Arc<ScalarUDF>,
    returned: ReturnedElements,
}

impl FloatList {
    /// Returns the number of leading arguments that contain values that the function compares.
    fn count_compared(&self) -> usize {
        match self.returned {
            ReturnedElements::First | ReturnedElements::Last | ReturnedElements::InPlace => 2,
            ReturnedElements::All => 1,
        }
    }

    /// Returns the number of leading arguments that are lists from which the result takes elements.
    fn count_sources(&self) -> usize {
        match self.name() {
            "array_union" | "array_intersect" => 2,
            _ => 1,
        }
    }
}

impl ScalarUDFImpl for FloatList {
    delegate!(inner: name, aliases, schema_name, signature, coerce_types, return_type, return_field_from_args, documentation);

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        // If there are no rows, as over an empty side of a join, DataFusion 55 fails for lists of
        // strings with "Empty iterator". This workaround is obsolete once the test
        // `stock_extremes_of_no_lists_still_fail` fails.
        if self.is_extreme() && args.number_rows == 0 && !are_scalars(&args.args) {
            return Ok(ColumnarValue::Array(new_empty_array(args.return_type())));
        }
        if self.is_extreme() && args.return_type().is_nested() {
            let (is_one, rows) = count_call_rows(&args);
            if let [lists] = args.args.as_slice()
                && let Some(found) = self.find_nested_extremes(&lists.to_array(rows)?)?
            {
                return to_columnar(found, is_one);
            }
        }
        if let Some(found) = change_nested_elements(&self.inner, &args)? {
            return Ok(found);
        }
        let compared = args.args.iter().take(self.count_compared());
        if !compared.clone().any(|arg| holds_float(&arg.data_type())) {
            return self.inner.invoke_with_args(args);
        }
        let (is_one, rows) = count_call_rows(&args);
        let mut keyed = args.clone();
        let mut changed = false;
        for arg in keyed.args.iter_mut().take(self.count_compared()) {
            *arg = match &*arg {
                ColumnarValue::Array(values) => {
                    let keys = to_canonical_floats(values)?;
                    changed |= keys.as_ref() != values.as_ref();
                    ColumnarValue::Array(keys)
                }
                ColumnarValue::Scalar(value) => {
                    let values = value.to_array()?;
                    let keys = to_canonical_floats(&values)?;
                    changed |= keys.as_ref() != values.as_ref();
                    ColumnarValue::Scalar(ScalarValue::try_from_array(&keys, 0)?)
                }
            };
        }
        if !changed {
            return self.inner.invoke_with_args(args);
        }
        let found = self.inner.invoke_with_args(keyed.clone())?.into_array(rows)?;
        let arrays = |args: &ScalarFunctionArgs| {
            args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()
        };
        let restored = self.restore_elements(&arrays(&args)?, &arrays(&keyed)?, &found)?;
        to_columnar(restored.unwrap_or(found), is_one)
    }
}

impl FloatList {
    /// Returns `found` with the original floats of `args`. `found` is the result of the function
    /// for `keys`, which are `args` with canonical floats (0.0 for -0.0, one NaN). Returns `None`
    /// if the type of a list is not supported.
    fn restore_elements(
        &self,
        args: &[ArrayRef],
        keys: &[ArrayRef],
        found: &ArrayRef,
    ) -> Result<Option<ArrayRef>> {
        let (Some(source), Some(source_keys)) =
            (self.collect_elements(args)?, self.collect_elements(keys)?)
        else {
            return Ok(None);
        };
        let (values, value_keys) = (source.values, source_keys.values);
        let found_elements = find_list_elements(found).filter(|_| !self.is_extreme());
        let is_list = found_elements.is_some();
        let found_values = found_elements.unwrap_or_else(|| Arc::clone(found));
        let compare = |a: &ArrayRef, b: &ArrayRef| -> Option<DynComparator> {
            make_comparator(a, b, SortOptions::default()).ok()
        };
        let (Some(to_key), Some(of_keys), Some(of_found)) = (
            compare(&values, &value_keys),
            compare(&value_keys, &value_keys),
            compare(&found_values, &value_keys),
        ) else {
            return Ok(None);
        };
        let wanted = match (self.returned, keys.get(1)) {
            (ReturnedElements::InPlace, Some(wanted)) => compare(&value_keys, wanted),
            _ => None,
        };
        let most = match (self.name(), args.get(3)) {
            ("array_replace_n", Some(most)) => Some(cast(most, &DataType::Int64)?),
            _ => None,
        };
        let pairing = ElementPairing { function: self, to_key, of_keys, of_found, wanted, most };
        let mut takes: Vec<(usize, usize)> = (0..found_values.len()).map(|at| (1, at)).collect();
        for row in 0..found.len() {
            let within = find_row_elements(args, &source.lengths, row);
            let results = match is_list {
                true => find_elements_at(found, row),
                false if found.is_null(row) => 0..0,
                false => row..row.saturating_add(1),
            };
            for class in pairing.find_classes(&within) {
                for (to, from) in pairing.pair_elements(class, &within, &results, row) {
                    if let Some(taken) = takes.get_mut(to) {
                        *taken = (0, from);
                    }
                }
            }
        }
        let restored = interleave(&[values.as_ref(), found_values.as_ref()], &takes)?;
        if !is_list {
            return Ok(Some(restored));
        }
        let lists = found.to_data().into_builder().child_data(vec![restored.to_data()]);
        Ok(Some(make_array(lists.build()?)))
    }

    /// Returns the elements of the lists from which the result takes elements. Returns `None` if
    /// the type of a list is not supported.
    fn collect_elements(&self, lists: &[ArrayRef]) -> Result<Option<SourceElements>> {
        let lists = lists.iter().take(self.count_sources());
        let Some(all) = lists.map(find_list_elements).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let values = concat(&all.iter().map(AsRef::as_ref).collect::<Vec<_>>())?;
        Ok(Some(SourceElements { values, lengths: all.iter().map(|all| all.len()).collect() }))
    }

    fn is_extreme(&self) -> bool {
        ["array_max", "array_min"].contains(&self.name())
    }

    /// Returns the least or greatest element of each list of lists or structs, in the order of
    /// [`compare_nested`]: a NULL field is greatest. DataFusion takes it as least. Returns `None` if
    /// the elements have no order. Remove once the test
    /// `stock_extremes_of_structs_still_have_least_nulls` fails.
    fn find_nested_extremes(&self, lists: &ArrayRef) -> Result<Option<ArrayRef>> {
        let Some(values) = find_list_elements(lists) else { return Ok(None) };
        let Ok(compare) = compare_nested(&values, &values) else { return Ok(None) };
        let wanted = match self.name() {
            "array_max" => Ordering::Greater,
            _ => Ordering::Less,
        };
        let places = (0..lists.len()).map(|row| {
            let elements = find_elements_at(lists, row).filter(|at| values.is_valid(*at));
            let found = elements.reduce(|best, at| match compare(at, best) == wanted {
                true => at,
                false => best,
            });
            found.and_then(|at| u64::try_from(at).ok())
        });
        let places: UInt64Array = places.collect();
        Ok(Some(take(&values, &places, None)?))
    }
}

/// The elements of several list arrays, one array after the other.
struct SourceElements {
    values: ArrayRef,
    /// Number of elements of each list array.
    lengths: Vec<usize>,
}

/// Returns the indices in [`SourceElements`] of the elements in row `row` of `lists`.
fn find_row_elements(lists: &[ArrayRef], lengths: &[usize], row: usize) -> Vec<usize> {
    let mut within = Vec::new();
    let mut base = 0usize;
    for (list, length) in lists.iter().zip(lengths) {
        let range = find_elements_at(list, row);
        within.extend(range.map(|at| base.saturating_add(at)));
        base = base.saturating_add(*length);
    }
    within
}

/// Finds the source element whose value each element of a result receives.
struct ElementPairing<'a> {
    function: &'a FloatList,
    /// Compares a source element with a key of a source element.
    to_key: DynComparator,
    /// Compares the keys of two source elements.
    of_keys: DynComparator,
    /// Compares an element of the result with the key of a source element.
    of_found: DynComparator,
    /// Compares the key of a source element with the element that the function replaces in a row.
    wanted: Option<DynComparator>,
    /// Maximum number of elements that the function replaces in each row.
    most: Option<ArrayRef>,
}

impl ElementPairing<'_> {
    /// Returns one index for each set of equal elements in `within` that includes a non-canonical
    /// float, such as -0.0: the index of the first such float in the set.
    fn find_classes(&self, within: &[usize]) -> Vec<usize> {
        let mut classes: Vec<usize> = Vec::new();
        for at in within {
            if (self.to_key)(*at, *at) != Ordering::Equal
                && !classes.iter().any(|class| (self.of_keys)(*class, *at) == Ordering::Equal)
            {
                classes.push(*at);
            }
        }
        classes
    }

    /// Returns the index in the result, and the index of the source element, of each element in the
    /// range `results` of the result that is equal to `class`. `within` has the source elements of
    /// the row.
    fn pair_elements(
        &self,
        class: usize,
        within: &[usize],
        results: &Range<usize>,
        row: usize,
    ) -> Vec<(usize, usize)> {
        let equal = within.iter().copied();
        let mut equal = equal.filter(|at| (self.of_keys)(class, *at) == Ordering::Equal);
        let places = results.clone().filter(|at| (self.of_found)(*at, class) == Ordering::Equal);
        match self.function.returned {
            ReturnedElements::First => match equal.next() {
                Some(first) => places.map(|to| (to, first)).collect(),
                None => Vec::new(),
            },
            ReturnedElements::All => places.zip(equal).collect(),
            ReturnedElements::Last => places.rev().zip(equal.rev()).collect(),
            ReturnedElements::InPlace => {
                let first = within.first().copied().unwrap_or_default();
                equal
                    .skip(self.count_replaced(class, row))
                    .map(|from| (results.start.saturating_add(from.saturating_sub(first)), from))
                    .filter(|(to, _)| *to < results.end)
                    .collect()
            }
        }
    }

    /// Returns the number of elements equal to `class` that the function replaces in row `row`.
    fn count_replaced(&self, class: usize, row: usize) -> usize {
        let is_wanted = self.wanted.as_ref().is_some_and(|w| w(class, row) == Ordering::Equal);
        match (is_wanted, &self.most) {
            (false, _) => 0,
            (true, Some(most)) => {
                let most = most.as_primitive::<Int64Type>().value(row);
                usize::try_from(most).unwrap_or(0)
            }
            (true, None) if self.function.name() == "array_replace" => 1,
            (true, None) => usize::MAX,
        }
    }
}

fn find_list_elements(lists: &ArrayRef) -> Option<ArrayRef> {
    Some(match lists.data_type() {
        DataType::List(_) => Arc::clone(lists.as_list::<i32>().values()),
        DataType::LargeList(_) => Arc::clone(lists.as_list::<i64>().values()),
        DataType::FixedSizeList(..) => Arc::clone(lists.as_fixed_size_list().values()),
        _ => return None,
    })
}

/// Returns the range of the list in row `row` among the elements of all `lists`; empty for NULL.
fn find_elements_at(lists: &ArrayRef, row: usize) -> Range<usize> {
    let range = match lists.data_type() {
        _ if lists.is_null(row) => None,
        DataType::List(_) => {
            let offsets = lists.as_list::<i32>().value_offsets();
            to_range(offsets[row], offsets[row.saturating_add(1)])
        }
        DataType::LargeList(_) => {
            let offsets = lists.as_list::<i64>().value_offsets();
            to_range(offsets[row], offsets[row.saturating_add(1)])
        }
        DataType::FixedSizeList(_, length) => {
            let start = lists.as_fixed_size_list().value_offset(row);
            to_range(start, start.saturating_add(*length))
        }
        _ => None,
    };
    range.unwrap_or(0..0)
}

fn to_range<T: TryInto<usize>>(start: T, end: T) -> Option<Range<usize>> {
    Some(start.try_into().ok()?..end.try_into().ok()?)
}
