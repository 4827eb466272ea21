//! Finds the common type of decimals and floats, also of lists and structs that contain these.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;

/// Returns doubles in place of `types` if some are decimals and some floats: `[DECIMAL, FLOAT]`
/// becomes `[DOUBLE, DOUBLE]`. Does the same for the elements of lists and the fields of structs.
/// Returns `None` if no type changes.
pub(super) fn convert_types_to_doubles(types: &[DataType]) -> Option<Vec<DataType>> {
    let known: Vec<&DataType> = types.iter().filter(|t| !t.is_null()).collect();
    let replaced: Vec<DataType> = if known.iter().all(|t| t.is_numeric()) {
        let is_mixed =
            known.iter().any(|t| t.is_decimal()) && known.iter().any(|t| t.is_floating());
        is_mixed.then(|| vec![DataType::Float64; known.len()])?
    } else if let Some(elements) =
        known.iter().map(|t| find_element_field(t)).collect::<Option<Vec<_>>>()
    {
        let of_elements: Vec<DataType> = elements.iter().map(|f| f.data_type().clone()).collect();
        let doubles = convert_types_to_doubles(&of_elements)?;
        let lists = known.iter().zip(elements).zip(doubles);
        let list = |((list, field), to): ((&&DataType, &FieldRef), DataType)| {
            let field = Arc::new(field.as_ref().clone().with_data_type(to));
            match list {
                DataType::LargeList(_) => DataType::LargeList(field),
                DataType::FixedSizeList(_, size) => DataType::FixedSizeList(field, *size),
                _ => DataType::List(field),
            }
        };
        lists.map(list).collect()
    } else {
        convert_structs_to_doubles(&known)?
    };
    let mut replaced = replaced.into_iter();
    let all = types.iter().map(|t| if t.is_null() { Some(t.clone()) } else { replaced.next() });
    all.collect()
}

fn find_element_field(list: &DataType) -> Option<&FieldRef> {
    match list {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            Some(field)
        }
        _ => None,
    }
}

/// Does the same as [`convert_types_to_doubles`] for structs. Returns `None` if the structs differ
/// in the names of their fields.
fn convert_structs_to_doubles(types: &[&DataType]) -> Option<Vec<DataType>> {
    let fields = types.iter().map(|t| match t {
        DataType::Struct(fields) => Some(fields.to_vec()),
        _ => None,
    });
    let mut structs: Vec<Vec<FieldRef>> = fields.collect::<Option<_>>()?;
    let names = |fields: &[FieldRef]| fields.iter().map(|f| f.name().clone()).collect::<Vec<_>>();
    let first = names(structs.first()?);
    if structs.iter().any(|fields| names(fields) != first) {
        return None;
    }
    let mut changed = false;
    for at in 0..first.len() {
        let column: Vec<DataType> = structs.iter().map(|s| s[at].data_type().clone()).collect();
        let Some(doubles) = convert_types_to_doubles(&column) else { continue };
        for (fields, to) in structs.iter_mut().zip(doubles) {
            fields[at] = Arc::new(fields[at].as_ref().clone().with_data_type(to));
        }
        changed = true;
    }
    changed.then(|| structs.into_iter().map(|fields| DataType::Struct(fields.into())).collect())
}

/// Returns the decimal with the digits of a double literal, or `None` for more than 15 digits.
pub(super) fn to_written_decimal(e: &Expr) -> Option<Expr> {
    let Expr::Literal(ScalarValue::Float64(Some(value)), _) = e else { return None };
    let text = value.to_string();
    let digits = text.trim_start_matches('-');
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let (whole, scale) = (whole.trim_start_matches('0'), i8::try_from(fraction.len()).ok()?);
    let precision = u8::try_from(whole.len() + fraction.len()).ok()?.max(1);
    if !value.is_finite() || precision > 15 {
        return None;
    }
    let text = ScalarValue::from(text);
    let decimal = text.cast_to(&DataType::Decimal128(precision, scale)).ok()?;
    (!decimal.is_null()).then_some(Expr::Literal(decimal, None))
}
