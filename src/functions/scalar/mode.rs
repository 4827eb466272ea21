use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use arrow::compute::{cast, take};
use arrow::datatypes::DataType;
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::array::{RaggedArray, leaf_type};
use crate::functions::nested_comparison::compare_nested;
use crate::functions::{call_on_arrays, declare};
use crate::kernels::reduce::{self, Reduction};

use serrate_core::internal::to_canonical_floats;

use super::documents::{DocumentationText, document};
use super::list_types;

const NAME: &str = "mode_of_elements";

/// Returns `mode_of_elements(list)`, to which `mode(x)` expands: the most frequent element, or the
/// least of several such elements. Elements that are lists or structs are compared as a whole.
pub(super) fn build_mode_of_elements() -> ScalarUDF {
    ScalarUDF::new_from_impl(ElementMode)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ElementMode;

fn refuse_types<T>(types: &[DataType]) -> Result<T> {
    plan_err!("{NAME} takes one list, as in {NAME}([1, 2, 2]), but found {}", list_types(types))
}

impl ScalarUDFImpl for ElementMode {
    declare!(NAME, Signature::user_defined(Volatility::Immutable));

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [DataType::Null] => Ok(vec![DataType::new_list(DataType::Null, true)]),
            [DataType::List(_)] => Ok(types.to_vec()),
            [DataType::LargeList(field) | DataType::FixedSizeList(field, _)] => {
                Ok(vec![DataType::List(Arc::clone(field))])
            }
            types => refuse_types(types),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::List(field)] => Ok(field.data_type().clone()),
            types => refuse_types(types),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(NAME, &args, |[lists]| find_modes(&lists))
    }

    fn documentation(&self) -> Option<&Documentation> {
        document!(DocumentationText {
            syntax: "mode_of_elements(list)",
            description: "Returns the most frequent element of a list; the least if several are equally frequent. `mode(x)` is `mode_of_elements(array_agg(x))`.",
            missing: "NULL elements are ignored. The result is NULL for a NULL list, and for a list without values. Elements that are lists or structs count as a whole, so that [1, NULL] is a value.",
            example: "SELECT mode_of_elements([[1, 2], [1, 2], [3]]);   -- [1, 2]",
            ..DocumentationText::EMPTY
        })
    }
}

fn find_modes(lists: &ArrayRef) -> Result<ArrayRef> {
    match lists.data_type() {
        DataType::List(field) if field.data_type().is_nested() => find_nested_modes(lists),
        t => {
            let element = leaf_type(t).clone();
            let lists = RaggedArray::try_from_arrow(lists)?;
            let modes = reduce::reduce(&lists, Reduction::Mode, Some(1))?;
            // For a dictionary, the result has the type of the values in the dictionary.
            Ok(cast(modes.leaves(), &element)?)
        }
    }
}

fn find_nested_modes(lists: &ArrayRef) -> Result<ArrayRef> {
    let lists = lists.as_list::<i32>();
    // Replaces floats that are equal by identical floats, so that the result does not depend on the
    // order of the elements: 0.0 and -0.0 are equal.
    let elements = &to_canonical_floats(lists.values())?;
    let compare = compare_nested(elements, elements)?;
    let mut sorted: Vec<usize> = Vec::new();
    let bounds = lists.offsets().windows(2).enumerate();
    let modes = bounds.map(|(row, bounds)| {
        let at = |i: usize| bounds.get(i).and_then(|at| usize::try_from(*at).ok()).unwrap_or(0);
        sorted.clear();
        if lists.is_valid(row) {
            sorted.extend((at(0)..at(1)).filter(|element| elements.is_valid(*element)));
        }
        sorted.sort_by(|a, b| compare(*a, *b));
        let mut best: &[usize] = &[];
        for run in sorted.chunk_by(|a, b| compare(*a, *b).is_eq()) {
            if run.len() > best.len() {
                best = run;
            }
        }
        best.first().map(|element| *element as u64)
    });
    Ok(take(elements, &modes.collect::<UInt64Array>(), None)?)
}
