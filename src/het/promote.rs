//! Types of results, as PyTorch promotes them.

use arrow::datatypes::DataType;

use crate::dense::DType;
use crate::table::promote_types;

/// Truth values below integers below floats.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Category {
    Bool,
    Integer,
    Float,
}

pub(super) fn category(dtype: DType) -> Category {
    match dtype {
        DType::Bool => Category::Bool,
        d if d.is_integer() => Category::Integer,
        _ => Category::Float,
    }
}

/// The type that two tensors meet in: that of the higher category, the wider within one. Integers
/// that no integer type holds together (uint64 with a signed one) meet as float64.
pub(super) fn promote(a: DType, b: DType) -> DType {
    // What Arrow has no type for is read as float32.
    let plain = |d| if d == DType::BF16 { DType::F32 } else { d };
    let (a, b) = (plain(a), plain(b));
    match category(a).cmp(&category(b)) {
        std::cmp::Ordering::Less => b,
        std::cmp::Ordering::Greater => a,
        std::cmp::Ordering::Equal => promote_types(&a.to_arrow(), &b.to_arrow())
            .as_ref()
            .and_then(DType::from_arrow)
            .unwrap_or(DType::F64),
    }
}

/// The type that a tensor and a number (or a tensor without axes) of a type meet in: the number's
/// only where its category is higher.
pub(super) fn promote_number(tensor: DType, number: DType) -> DType {
    if category(number) > category(tensor) { promote(number, number) } else { tensor }
}

/// The type in which values of a type are divided.
pub(super) fn divided(dtype: DType) -> DType {
    if dtype.is_float() { dtype } else { DType::F32 }
}

/// As Arrow's type.
pub(super) fn arrow(dtype: DType) -> DataType {
    dtype.to_arrow()
}
