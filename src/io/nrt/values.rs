//! Arrow arrays from the bytes of a tensor.

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

/// Elements of a tensor as an Arrow array: in place, but BOOL (bytes) is packed into bits and BF16
/// widened to Float32.
pub(super) fn read(
    file: &SafetensorsFile,
    tensor: &TensorEntry,
    range: Range<usize>,
) -> Result<ArrayRef> {
    let start = range.start;
    let bytes = file.read_elements(tensor, range)?;
    Ok(match tensor.dtype() {
        Dtype::BOOL => Arc::new(booleans(file, tensor, start, &bytes)?),
        Dtype::U8 => primitive::<UInt8Type>(bytes),
        Dtype::U16 => primitive::<UInt16Type>(bytes),
        Dtype::U32 => primitive::<UInt32Type>(bytes),
        Dtype::U64 => primitive::<UInt64Type>(bytes),
        Dtype::I8 => primitive::<Int8Type>(bytes),
        Dtype::I16 => primitive::<Int16Type>(bytes),
        Dtype::I32 => primitive::<Int32Type>(bytes),
        Dtype::I64 => primitive::<Int64Type>(bytes),
        Dtype::F16 => primitive::<Float16Type>(bytes),
        Dtype::BF16 => {
            let wide = bytes.as_chunks().0.iter().map(|b| bf16::from_le_bytes(*b).to_f32());
            Arc::new(PrimitiveArray::<Float32Type>::from_iter_values(wide))
        }
        Dtype::F32 => primitive::<Float32Type>(bytes),
        Dtype::F64 => primitive::<Float64Type>(bytes),
        other => {
            return Err(Error::file(
                file.path(),
                format!("tensor {:?} has type {other}, which Arrow does not have", tensor.name()),
            ));
        }
    })
}

/// The bytes are whole elements and aligned to them.
fn primitive<T: ArrowPrimitiveType>(bytes: Buffer) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(bytes), None))
}

fn booleans(
    file: &SafetensorsFile,
    tensor: &TensorEntry,
    start: usize,
    bytes: &[u8],
) -> Result<BooleanArray> {
    // All at once first: this is one pass that the compiler makes wide.
    if bytes.iter().fold(0, |all, b| all | b) > 1 {
        let at = bytes.iter().position(|b| *b > 1).unwrap_or_default();
        let found = bytes.get(at).copied().unwrap_or_default();
        return Err(Error::file(
            file.path(),
            format!(
                "{}[{}] is the byte {found}; a BOOL is 0 or 1",
                tensor.name(),
                start.saturating_add(at)
            ),
        ));
    }
    let mut values = bytes.iter();
    let bits = BooleanBuffer::collect_bool(bytes.len(), |_| values.next() == Some(&1));
    Ok(BooleanArray::new(bits, None))
}
