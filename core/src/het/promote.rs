//! Type promotion by PyTorch's rules.

use arrow::datatypes::DataType;

use crate::dense::DType;
use crate::table::promote_types;

/// Categories of types in PyTorch's promotion, in ascending order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TypeCategory {
    Bool,
    Integer,
    Float,
}

fn find_type_category(dtype: DType) -> TypeCategory {
    match dtype {
        DType::Bool => TypeCategory::Bool,
        d if d.is_integer() => TypeCategory::Integer,
        _ => TypeCategory::Float,
    }
}

/// Returns the type to which `a` and `b` are promoted: the type of the higher [`TypeCategory`], or
/// for two types of the same category the smallest type that holds the values of both: int16 and
/// uint16 give int32. A signed integer type and uint64 give float64, because no integer type holds
/// both.
pub(super) fn promote_dtypes(a: DType, b: DType) -> DType {
    // bfloat16 has no Arrow type, so treat it as float32.
    let plain = |d| if d == DType::BF16 { DType::F32 } else { d };
    let (a, b) = (plain(a), plain(b));
    match find_type_category(a).cmp(&find_type_category(b)) {
        std::cmp::Ordering::Less => b,
        std::cmp::Ordering::Greater => a,
        std::cmp::Ordering::Equal => promote_types(&a.to_arrow(), &b.to_arrow())
            .as_ref()
            .and_then(DType::from_arrow)
            .unwrap_or(DType::F64),
    }
}

/// Returns the common type of a tensor of type `tensor` and a number of type `number`: the type of
/// the tensor, or `number` if its [`TypeCategory`] is higher.
pub(super) fn promote_number(tensor: DType, number: DType) -> DType {
    if find_type_category(number) > find_type_category(tensor) {
        promote_dtypes(number, number)
    } else {
        tensor
    }
}

pub(super) fn find_division_type(dtype: DType) -> DType {
    if dtype.is_float() { dtype } else { DType::F32 }
}

pub(super) fn find_arrow_type(dtype: DType) -> DataType {
    dtype.to_arrow()
}
