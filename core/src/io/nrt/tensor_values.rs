use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, PrimitiveArray};
use arrow::buffer::{BooleanBuffer, Buffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use half::bf16;
use safetensors::Dtype;

use crate::error::{Error, Result};
use crate::io::safetensors::{SafetensorsFile, TensorEntry};

/// Reads the values `range` of a tensor as an Arrow array. Packs BOOL to bits and widens BF16 to
/// Float32; arrays of other types use the bytes of the file without a copy.
pub(super) fn read_values(
    file: &SafetensorsFile,
    tensor: &TensorEntry,
    range: Range<usize>,
) -> Result<ArrayRef> {
    let start = range.start;
    let bytes = file.read_elements(tensor, range)?;
    Ok(match tensor.dtype() {
        Dtype::BOOL => Arc::new(unpack_booleans(file, tensor, start, &bytes)?),
        Dtype::U8 => build_primitive_array::<UInt8Type>(bytes),
        Dtype::U16 => build_primitive_array::<UInt16Type>(bytes),
        Dtype::U32 => build_primitive_array::<UInt32Type>(bytes),
        Dtype::U64 => build_primitive_array::<UInt64Type>(bytes),
        Dtype::I8 => build_primitive_array::<Int8Type>(bytes),
        Dtype::I16 => build_primitive_array::<Int16Type>(bytes),
        Dtype::I32 => build_primitive_array::<Int32Type>(bytes),
        Dtype::I64 => build_primitive_array::<Int64Type>(bytes),
        Dtype::F16 => build_primitive_array::<Float16Type>(bytes),
        Dtype::BF16 => {
            let wide = bytes.as_chunks().0.iter().map(|b| bf16::from_le_bytes(*b).to_f32());
            Arc::new(PrimitiveArray::<Float32Type>::from_iter_values(wide))
        }
        Dtype::F32 => build_primitive_array::<Float32Type>(bytes),
        Dtype::F64 => build_primitive_array::<Float64Type>(bytes),
        other => {
            return Err(Error::file(
                file.path(),
                format!(
                    "tensor {:?} has the type {other}, which Arrow does not support; write it as BOOL, U8 to U64, I8 to I64, F16, BF16, F32 or F64",
                    tensor.name()
                ),
            ));
        }
    })
}

/// Builds an array from bytes, which must hold whole, aligned elements.
fn build_primitive_array<T: ArrowPrimitiveType>(bytes: Buffer) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(bytes), None))
}

fn unpack_booleans(
    file: &SafetensorsFile,
    tensor: &TensorEntry,
    start: usize,
    bytes: &[u8],
) -> Result<BooleanArray> {
    // Check that all bytes are 0 or 1 in one branchless pass, which the compiler vectorizes.
    if bytes.iter().fold(0, |all, b| all | b) > 1 {
        let at = bytes.iter().position(|b| *b > 1).unwrap_or_default();
        let found = bytes.get(at).copied().unwrap_or_default();
        return Err(Error::file(
            file.path(),
            format!(
                "{tensor}[{index}] is the byte {found}, but a BOOL must be 0 or 1; create the file again",
                tensor = tensor.name(),
                index = start.saturating_add(at)
            ),
        ));
    }
    let mut values = bytes.iter();
    let bits = BooleanBuffer::collect_bool(bytes.len(), |_| values.next() == Some(&1));
    Ok(BooleanArray::new(bits, None))
}
