use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int32Array, PrimitiveArray};
use arrow::compute::kernels::arity::unary;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use datafusion::common::{exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::functions::{call_on_arrays, declare};

use super::documents::{DocumentationText, document};

/// Returns `bit_count(x)`, which counts the bits of an integer that are 1, and `bit_not(x)`, which
/// inverts all bits and is the operator `~`. Integers are in two's complement: `bit_count(-1::INT)`
/// is 32.
pub(super) fn bit_functions() -> [ScalarUDF; 2] {
    [BitsFunction::Count, BitsFunction::Not].map(ScalarUDF::new_from_impl)
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum BitsFunction {
    Count,
    Not,
}

impl ScalarUDFImpl for BitsFunction {
    declare!(Signature::user_defined(Volatility::Immutable));

    fn name(&self) -> &str {
        match self {
            Self::Count => "bit_count",
            Self::Not => "bit_not",
        }
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match (self, args) {
            (Self::Not, [of]) => Ok(format!("~{}", of.schema_name())),
            (_, args) => {
                let args: Vec<String> = args.iter().map(|e| e.schema_name().to_string()).collect();
                Ok(format!("{}({})", self.name(), args.join(",")))
            }
        }
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [DataType::Null] => Ok(vec![DataType::Int64]),
            [t] if t.is_integer() => Ok(vec![t.clone()]),
            types => plan_err!(
                "{} takes one integer, but the argument types are {types:?}; cast the argument to an integer",
                self.name()
            ),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match (self, types) {
            (Self::Not, [of]) => of.clone(),
            _ => DataType::Int32,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        call_on_arrays(self.name(), &args, |[values]| match self {
            Self::Count => count_bits(&values),
            Self::Not => invert_bits(&values),
        })
    }

    fn documentation(&self) -> Option<&Documentation> {
        match self {
            Self::Count => document!(DocumentationText {
                syntax: "bit_count(i)",
                description: "Counts the bits of an integer that are 1, in two's complement.",
                missing: "The result is NULL for NULL.",
                example: "SELECT bit_count(5), bit_count(-1::INT);   -- 2  32",
                ..DocumentationText::EMPTY
            }),
            Self::Not => document!(DocumentationText {
                syntax: "bit_not(i)",
                also: &["~i"],
                description: "Inverts all bits of an integer. The result has its type.",
                missing: "The result is NULL for NULL.",
                example: "SELECT bit_not(5), ~5;   -- -6  -6",
                ..DocumentationText::EMPTY
            }),
        }
    }
}

/// Calls `$with::<T>($values)`, where `T` is the Arrow type of the integers in the array `$values`.
macro_rules! with_integers {
    ($values:expr, $with:ident) => {
        Ok(match $values.data_type() {
            DataType::Int8 => $with::<Int8Type>($values),
            DataType::Int16 => $with::<Int16Type>($values),
            DataType::Int32 => $with::<Int32Type>($values),
            DataType::Int64 => $with::<Int64Type>($values),
            DataType::UInt8 => $with::<UInt8Type>($values),
            DataType::UInt16 => $with::<UInt16Type>($values),
            DataType::UInt32 => $with::<UInt32Type>($values),
            DataType::UInt64 => $with::<UInt64Type>($values),
            other => {
                return exec_err!(
                    "internal error: the bits of values of type {other} are not defined; please report it"
                );
            }
        })
    };
}

fn invert_bits(values: &ArrayRef) -> Result<ArrayRef> {
    fn invert_typed<T: ArrowPrimitiveType<Native: std::ops::Not<Output = T::Native>>>(
        values: &ArrayRef,
    ) -> ArrayRef {
        let inverted: PrimitiveArray<T> = unary(values.as_primitive::<T>(), |value| !value);
        Arc::new(inverted)
    }
    with_integers!(values, invert_typed)
}

fn count_bits(values: &ArrayRef) -> Result<ArrayRef> {
    fn count_typed<T: ArrowPrimitiveType<Native: CountOnes>>(values: &ArrayRef) -> ArrayRef {
        let counts: Int32Array = unary(values.as_primitive::<T>(), |value| value.count_set());
        Arc::new(counts)
    }
    with_integers!(values, count_typed)
}

trait CountOnes {
    /// Returns the number of bits that are 1, at most 64.
    fn count_set(self) -> i32;
}

macro_rules! count_ones {
    ($($integer:ty),+) => {
        $(impl CountOnes for $integer {
            fn count_set(self) -> i32 {
                self.count_ones().cast_signed()
            }
        })+
    };
}
count_ones!(i8, i16, i32, i64, u8, u16, u32, u64);
