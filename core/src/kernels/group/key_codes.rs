use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StructArray, UInt32Array, UInt64Array};
use arrow::compute::{cast, take};
use arrow::datatypes::DataType;

use crate::array::Layout;
use crate::array::nulls::find_validity;
use crate::error::{Error, Result};
use crate::kernels::sort::{SortOrder, argsort_leaves, make_equality};

/// Converts structs, and dictionaries with at most as many values as keys, to integers in the same
/// order, because integers compare faster. Larger dictionaries are decoded. Null stays null.
pub(super) fn to_comparable_keys(keys: &ArrayRef) -> Result<ArrayRef> {
    match keys.data_type() {
        DataType::Struct(_) => Ok(Arc::new(number_structs(keys.as_struct())?)),
        DataType::Dictionary(_, values) => match keys.as_any_dictionary_opt() {
            // Ranking more values than keys costs more than comparing the keys.
            Some(dictionary) if dictionary.values().len() <= keys.len() => {
                let (ranks, _) = rank_values(dictionary.values())?;
                Ok(take(&ranks, dictionary.keys(), None)?)
            }
            _ => Ok(cast(keys, values)?),
        },
        _ => Ok(keys.clone()),
    }
}

/// Returns the rank of each value among the distinct values, and their number: `[b, a, b]` gives
/// `[1, 0, 1]` and 2. Nulls stay null. Returns an error for more than 2^32 - 1 values.
pub(in crate::kernels) fn rank_values(values: &ArrayRef) -> Result<(UInt32Array, u32)> {
    if u32::try_from(values.len()).is_err() {
        return Err(Error::invalid(format!(
            "the number of values to rank is {}, more than the maximum of 2^32 - 1; process fewer rows at a time",
            values.len()
        )));
    }
    let all = Layout::Uniform { size: values.len(), lists: 1 };
    let order = argsort_leaves(values, &all, SortOrder::ASCENDING)?;
    let same = make_equality(values)?;
    let nulls = find_validity(values);
    let mut ranks = vec![0u32; values.len()];
    let (mut found, mut last) = (0u32, None);
    for at in order.values().iter().filter_map(|at| usize::try_from(*at).ok()) {
        if nulls.as_ref().is_some_and(|n| n.is_null(at)) {
            continue;
        }
        if last.is_none_or(|last| !same(last, at)) {
            found += 1;
        }
        ranks[at] = found - 1;
        last = Some(at);
    }
    Ok((UInt32Array::try_new(ranks.into(), nulls)?, found))
}

/// Returns an integer for each struct. The integers have the order of the structs, in which a null
/// field is greater than any value.
fn number_structs(structs: &StructArray) -> Result<UInt64Array> {
    let mut numbers = vec![0u64; structs.len()];
    // All elements of `numbers` are less than this limit, which grows with each field.
    let mut limit = 1u64;
    for field in structs.columns() {
        let (ranks, different) = rank_values(&to_comparable_keys(field)?)?;
        let radix = u64::from(different) + 1;
        if limit.checked_mul(radix).is_none() {
            let all: ArrayRef = Arc::new(UInt64Array::from(numbers));
            let (ranks, different) = rank_values(&all)?;
            numbers = ranks.values().iter().map(|rank| u64::from(*rank)).collect();
            limit = u64::from(different);
        }
        for (number, rank) in numbers.iter_mut().zip(&ranks) {
            *number = *number * radix + u64::from(rank.unwrap_or(different));
        }
        limit = limit.saturating_mul(radix);
    }
    Ok(UInt64Array::try_new(numbers.into(), structs.nulls().cloned())?)
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float32Array, StringArray};
    use arrow::datatypes::{Field, Fields};

    use super::*;

    #[test]
    fn ranks_skip_null_and_join_equal_values() {
        let values: ArrayRef = Arc::new(Float32Array::from(vec![
            Some(0.0),
            None,
            Some(f32::NAN),
            Some(-0.0),
            Some(-1.0),
        ]));
        let (ranks, different) = rank_values(&values).unwrap();
        let expected = [Some(1), None, Some(2), Some(1), Some(0)];
        assert_eq!(ranks.iter().collect::<Vec<_>>(), expected);
        assert_eq!(different, 3);
    }

    #[test]
    fn structs_order_field_by_field() {
        let text = StringArray::from(vec![Some("b"), Some("a"), None, Some("a")]);
        let number = arrow::array::Int8Array::from(vec![1, 2, 0, 1]);
        let fields: Fields =
            vec![Field::new("t", DataType::Utf8, true), Field::new("n", DataType::Int8, true)]
                .into();
        let structs = StructArray::new(fields, vec![Arc::new(text), Arc::new(number)], None);
        let found = number_structs(&structs).unwrap();
        let mut order: Vec<usize> = (0..4).collect();
        order.sort_by_key(|i| found.value(*i));
        assert_eq!(order, [3, 1, 0, 2]);
    }
}
