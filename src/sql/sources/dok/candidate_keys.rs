//! Derives the keys of a DOK file (a sparse tensor or a dictionary) for which the conditions of a
//! query can be true.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use std::collections::HashSet;

use crate::kernels::text::is_text;

/// The limit on the number of keys to look up is the number of entries in the file, but not less
/// than `MIN_LIMIT` and not more than [`MAX_LIMIT`]. If conditions allow more keys, the scan checks
/// all entries.
const MIN_LIMIT: usize = 1 << 12;
/// Maximum number of keys to look up. Each key takes some hundred bytes during planning.
const MAX_LIMIT: usize = 1 << 17;

/// Maximum number of alternatives (operands of OR) of a condition. With more alternatives, an OR
/// limits no keys, and an AND limits keys only by its left operand.
const MAX_ALTERNATIVES: usize = 1 << 12;

/// One alternative (operand of OR) of a condition: the values that each key column may have. `None`
/// means any value.
type KeyValues = Vec<Option<HashSet<ScalarValue>>>;

/// Returns the keys for which all of `filters` may be true, as one array per key column; `None` for
/// too many keys, or if the filters allow any value in a key column. The caller must still check
/// the filters.
pub(super) fn find_keys(
    filters: &[Expr],
    schema: &SchemaRef,
    entries: usize,
) -> Result<Option<Vec<ArrayRef>>> {
    let columns = schema.fields().len().saturating_sub(1);
    let mut alternatives = vec![vec![None; columns]];
    for filter in filters {
        alternatives = intersect_alternatives(alternatives, find_alternatives(filter, schema));
    }
    let limit = entries.clamp(MIN_LIMIT, MAX_LIMIT);
    let mut rows: HashSet<Vec<ScalarValue>> = HashSet::new();
    for values in &alternatives {
        let Some(sets) = values.iter().map(Option::as_ref).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let count = sets.iter().try_fold(1usize, |n, set| n.checked_mul(set.len()));
        if count.and_then(|n| n.checked_add(rows.len())).is_none_or(|n| n > limit) {
            return Ok(None);
        }
        let mut partial: Vec<Vec<ScalarValue>> = vec![Vec::with_capacity(columns)];
        for set in sets {
            partial = partial
                .iter()
                .flat_map(|row| {
                    set.iter().map(|value| {
                        let mut row = row.clone();
                        row.push(value.clone());
                        row
                    })
                })
                .collect();
        }
        rows.extend(partial);
    }
    let mut rows: Vec<Vec<ScalarValue>> = rows.into_iter().collect();
    // Sorts the keys, so that a statement always returns rows in the same order.
    rows.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let mut arrays = Vec::with_capacity(columns);
    for (at, field) in schema.fields().iter().take(columns).enumerate() {
        let values = rows.iter().filter_map(|row| row.get(at).cloned());
        arrays.push(match rows.is_empty() {
            true => arrow::array::new_empty_array(field.data_type()),
            false => ScalarValue::iter_to_array(values)?,
        });
    }
    Ok(Some(arrays))
}

/// Returns the alternatives of `left AND right`. If these are too many or list too many values,
/// returns those of `left`, which allow more keys; the scan checks both conditions again.
fn intersect_alternatives(left: Vec<KeyValues>, right: Vec<KeyValues>) -> Vec<KeyValues> {
    let any = |values: &KeyValues| values.iter().all(Option::is_none);
    if right.iter().any(any) {
        return left;
    }
    if left.iter().any(any) {
        return right;
    }
    if left.len().checked_mul(right.len()).is_none_or(|n| n > MAX_ALTERNATIVES) {
        return left;
    }
    let mut out = Vec::with_capacity(left.len() * right.len());
    let mut room = MAX_LIMIT;
    for a in &left {
        for b in &right {
            let each = a.iter().zip(b).map(|(a, b)| match (a, b) {
                (Some(a), Some(b)) => Some(a.intersection(b).cloned().collect()),
                (Some(one), None) | (None, Some(one)) => Some(one.clone()),
                (None, None) => None,
            });
            let each: KeyValues = each.collect();
            // `room` is the number of values that further alternatives may list. A value in two
            // alternatives counts twice.
            match room.checked_sub(each.iter().flatten().map(HashSet::len).sum()) {
                Some(rest) => room = rest,
                None => return left,
            }
            out.push(each);
        }
    }
    out
}

/// Returns alternatives (operands of OR) such that each key for which `filter` can be true meets at
/// least one of them.
fn find_alternatives(filter: &Expr, schema: &SchemaRef) -> Vec<KeyValues> {
    let columns = schema.fields().len().saturating_sub(1);
    let any = || vec![vec![None; columns]];
    let only = |at: usize, values: HashSet<ScalarValue>| {
        let mut out = vec![None; columns];
        if let Some(column) = out.get_mut(at) {
            *column = Some(values);
        }
        vec![out]
    };
    match filter {
        Expr::Literal(ScalarValue::Boolean(Some(false) | None), _) => Vec::new(),
        Expr::Alias(alias) => find_alternatives(&alias.expr, schema),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => intersect_alternatives(
            find_alternatives(left, schema),
            find_alternatives(right, schema),
        ),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let (mut left, right) =
                (find_alternatives(left, schema), find_alternatives(right, schema));
            // `i = 1 OR i = 2` becomes one alternative, because both conditions are on the same
            // column.
            if let ([a], [b]) = (left.as_mut_slice(), right.as_slice())
                && let Some((at, _)) = find_single_column(a)
                && find_single_column(b).is_some_and(|(other, _)| other == at)
            {
                let more: Vec<ScalarValue> =
                    b.get(at).and_then(Option::as_ref).into_iter().flatten().cloned().collect();
                if let Some(Some(values)) = a.get_mut(at) {
                    values.extend(more);
                }
                return left;
            }
            if left.len() + right.len() > MAX_ALTERNATIVES {
                return any();
            }
            left.extend(right);
            left
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            let found = match (left.as_ref(), right.as_ref()) {
                (column, Expr::Literal(value, _)) | (Expr::Literal(value, _), column) => {
                    find_key_column(column, schema)
                        .and_then(|at| Some((at, find_stored_literal(value, at, schema)?)))
                }
                _ => None,
            };
            found.map_or_else(any, |(at, value)| only(at, value.into_iter().collect()))
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            let Some(at) = find_key_column(expr, schema) else { return any() };
            let values = list.iter().map(|item| match item {
                Expr::Literal(value, _) => find_stored_literal(value, at, schema),
                _ => None,
            });
            match values.collect::<Option<Vec<_>>>() {
                Some(values) => only(at, values.into_iter().flatten().collect()),
                None => any(),
            }
        }
        _ => any(),
    }
}

/// Returns the index and the values of the key column if an alternative limits only one column,
/// otherwise `None`.
fn find_single_column(values: &KeyValues) -> Option<(usize, &HashSet<ScalarValue>)> {
    let mut named = values.iter().enumerate().filter_map(|(at, v)| Some((at, v.as_ref()?)));
    named.next().filter(|_| named.next().is_none())
}

/// Returns the index of the key column if `expr` is a key column, or the cast of one from a string
/// type to another. Returns `None` for any other expression.
fn find_key_column(expr: &Expr, schema: &SchemaRef) -> Option<usize> {
    match expr {
        Expr::Column(column) => {
            let at = schema.index_of(&column.name).ok()?;
            (at + 1 < schema.fields().len()).then_some(at)
        }
        Expr::Cast(cast) if is_text(cast.field.data_type()) => {
            let at = find_key_column(&cast.expr, schema)?;
            is_text(schema.field(at).data_type()).then_some(at)
        }
        _ => None,
    }
}

/// Converts a literal to the type of key column `at`. Returns `Some(None)` for NULL, which equals
/// no key, and `None` if keys may equal the literal but it cannot be converted.
fn find_stored_literal(
    value: &ScalarValue,
    at: usize,
    schema: &SchemaRef,
) -> Option<Option<ScalarValue>> {
    let stored_type = schema.field(at).data_type();
    if value.is_null() {
        return Some(None);
    }
    let given = value.data_type();
    if given == *stored_type
        && !matches!(stored_type, DataType::Float16 | DataType::Float32 | DataType::Float64)
    {
        return Some(Some(value.clone()));
    }
    if is_text(stored_type) && is_text(&given) {
        return value.cast_to(stored_type).ok().map(Some);
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{Field, Schema};
    use datafusion::prelude::{col, in_list, lit};

    use super::*;

    fn schema() -> SchemaRef {
        let key = |name| Field::new(name, DataType::Int64, false);
        let value = Field::new("v", DataType::Float64, false);
        Arc::new(Schema::new(vec![key("i"), key("j"), value]))
    }

    fn among(name: &str, count: i64) -> Expr {
        in_list(col(name), (0..count).map(lit).collect(), false)
    }

    /// Combines expressions with OR into a balanced tree, as the planner does for long chains.
    fn either(all: &[Expr]) -> Expr {
        match all {
            [one] => one.clone(),
            all => {
                let (left, right) = all.split_at(all.len() / 2);
                either(left).or(either(right))
            }
        }
    }

    fn count(filters: &[Expr], entries: usize) -> Option<usize> {
        find_keys(filters, &schema(), entries).unwrap().map(|arrays| arrays[0].len())
    }

    #[test]
    fn keys_are_bounded_however_many_entries_there_are() {
        let pair = |n| [among("i", n), among("j", n)];
        assert_eq!(count(&pair(10), 0), Some(100));
        assert_eq!(count(&pair(64), 0), Some(MIN_LIMIT));
        assert_eq!(count(&pair(65), 0), None);
        assert_eq!(count(&pair(65), 10_000_000), Some(65 * 65));
        assert_eq!(count(&pair(362), 10_000_000), Some(362 * 362));
        assert_eq!(count(&pair(363), 10_000_000), None);
        assert_eq!(count(&pair(363), usize::MAX), None);
        assert_eq!(count(&pair(3000), usize::MAX), None);
    }

    #[test]
    fn alternatives_share_no_more_values_than_keys() {
        // Alternates `i` and `j`, because adjacent conditions on one column become one alternative.
        let by_turns = |n: i64| {
            let each = (0..n).map(|k| col(if k % 2 == 0 { "i" } else { "j" }).eq(lit(k)));
            either(&each.collect::<Vec<_>>())
        };
        let (schema, wide) = (schema(), among("i", 3000));
        let values = |filters: &Expr| -> usize {
            let found = find_alternatives(filters, &schema);
            found.iter().flatten().flatten().map(HashSet::len).sum()
        };
        for n in [10, 100, 1000, 4000] {
            let both = values(&wide.clone().and(by_turns(n)));
            assert!(both <= MAX_LIMIT, "{n}: {both}");
        }
        // These alternatives allow so few keys that `find_keys` returns all keys.
        let few = by_turns(10).and(among("i", 20)).and(among("j", 20));
        assert_eq!(count(&[few], 0), Some(10 * 20 - 5 * 5));
    }

    #[test]
    fn a_condition_that_says_nothing_costs_nothing() {
        let filters: Vec<Expr> = std::iter::once(among("i", 4000))
            .chain(std::iter::repeat_n(col("v").gt(lit(1.0)), 20_000))
            .chain([col("j").eq(lit(1i64))])
            .collect();
        assert_eq!(count(&filters, 0), Some(4000));
    }
}
