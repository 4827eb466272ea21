//! Arrays whose buffers end with the bytes in use, so that sizes are not overestimated.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, GenericByteArray, PrimitiveArray, downcast_primitive_array,
    make_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowNativeType, ArrowPrimitiveType, BinaryType, ByteArrayType, DataType, LargeBinaryType,
    LargeUtf8Type, Utf8Type,
};
use bytes::Bytes;

use super::Offsets;

/// Returns the same array over buffers whose capacity is only the bytes in use. Buffers of a batch
/// that is sliced from a table have the capacity of the whole table, so memory accounting would
/// charge the whole table to the batch.
///
/// Copies no values, only the offsets of strings if they do not start at 0. Dictionary values and
/// the data of string views stay whole, because a key or view may refer to any part of them.
pub fn trim_extent(array: &ArrayRef) -> ArrayRef {
    downcast_primitive_array! {
        array => trim_primitive(array),
        _ => make_array(trim_data(&array.to_data())),
    }
}

/// Returns the same offsets, with the capacity of their buffer limited to the bytes in use; see
/// [`trim_extent`].
pub fn trim_offsets(offsets: &Offsets) -> Offsets {
    fn trim_offset_buffer<T: ArrowNativeType>(offsets: &OffsetBuffer<T>) -> OffsetBuffer<T> {
        // SAFETY: the buffer holds the same valid offsets as before.
        unsafe { OffsetBuffer::new_unchecked(trim_buffer(offsets.inner().inner()).into()) }
    }
    match offsets {
        Offsets::I32(offsets) => Offsets::I32(trim_offset_buffer(offsets)),
        Offsets::I64(offsets) => Offsets::I64(trim_offset_buffer(offsets)),
    }
}

fn trim_primitive<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> ArrayRef {
    let values = ScalarBuffer::<T::Native>::from(trim_buffer(array.values().inner()));
    let own = PrimitiveArray::<T>::new(values, array.nulls().map(trim_nulls));
    Arc::new(own.with_data_type(array.data_type().clone()))
}

fn trim_data(data: &ArrayData) -> ArrayData {
    match data.data_type() {
        DataType::Utf8 => return trim_strings::<Utf8Type>(data),
        DataType::Binary => return trim_strings::<BinaryType>(data),
        DataType::LargeUtf8 => return trim_strings::<LargeUtf8Type>(data),
        DataType::LargeBinary => return trim_strings::<LargeBinaryType>(data),
        _ => {}
    }
    let buffers = data.buffers().iter().map(trim_buffer).collect();
    let children = data.child_data().iter().map(trim_data).collect();
    let nulls = data.nulls().map(trim_nulls);
    let data = data.clone().into_builder().buffers(buffers).child_data(children).nulls(nulls);
    // SAFETY: `data` was valid, and its buffers hold the same values as before.
    unsafe { data.build_unchecked() }
}

/// Limits string or binary data to the bytes between the first and the last offset.
fn trim_strings<T: ByteArrayType>(data: &ArrayData) -> ArrayData {
    let (offsets, values, nulls) = GenericByteArray::<T>::from(data.clone()).into_parts();
    let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
    let values = values.slice_with_length(first.as_usize(), last.as_usize() - first.as_usize());
    let offsets: ScalarBuffer<T::Offset> = match first.as_usize() {
        0 => trim_buffer(offsets.inner().inner()).into(),
        _ => offsets.iter().map(|o| *o - first).collect(),
    };
    let nulls = nulls.as_ref().map(trim_nulls);
    // SAFETY: subtracting the first offset keeps the offsets in order and within the sliced values.
    // The bytes between two adjacent offsets are the same string as before.
    let strings = unsafe {
        let offsets = OffsetBuffer::new_unchecked(offsets);
        GenericByteArray::<T>::new_unchecked(offsets, trim_buffer(&values), nulls)
    };
    strings.into_data()
}

/// Returns the same nulls, with the capacity of their bitmap limited to the bytes in use; see
/// [`trim_extent`].
pub fn trim_nulls(nulls: &NullBuffer) -> NullBuffer {
    let bits = nulls.inner();
    let own = BooleanBuffer::new(trim_buffer(bits.inner()), bits.offset(), bits.len());
    // SAFETY: the bits, and therefore the null count, are unchanged. A recount takes as long as
    // summing the values.
    unsafe { NullBuffer::new_unchecked(own, nulls.null_count()) }
}

/// Returns the same bytes, without a copy, as a buffer whose capacity equals its length.
fn trim_buffer(buffer: &Buffer) -> Buffer {
    if buffer.capacity() == buffer.len() {
        return buffer.clone();
    }
    Buffer::from(Bytes::from_owner(BufferOwner(buffer.clone())))
}

struct BufferOwner(Buffer);

impl AsRef<[u8]> for BufferOwner {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        AsArray, BinaryArray, Int64Array, LargeStringArray, ListArray, StringArray,
        TimestampMicrosecondArray,
    };
    use arrow::datatypes::Field;

    use super::*;

    #[test]
    fn a_slice_is_charged_its_own_extent() {
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
        let part = trim_extent(&values.slice(10, 5));
        assert_eq!(*part, *values.slice(10, 5));
        assert!(part.get_array_memory_size() < 300, "{}", part.get_array_memory_size());
        let at = |a: &ArrayRef| a.to_data().buffers()[0].as_ptr();
        assert_eq!(at(&part), at(&values).wrapping_add(80));
    }

    #[test]
    fn offsets_and_validity_are_those_there_were() {
        let offsets = Offsets::from_lengths([1, 2, 3, 4]).unwrap().slice(1, 2);
        let own = trim_offsets(&offsets);
        assert_eq!((own.base(), own.children()), (1, 5));
        assert_eq!(own.lengths().collect::<Vec<_>>(), [2, 3]);
        let nulls = NullBuffer::from_iter((0..1000).map(|i| i % 3 > 0));
        for (start, len) in [(0, 1000), (7, 100), (990, 10), (0, 0)] {
            let part = nulls.slice(start, len);
            let own = trim_nulls(&part);
            assert_eq!(own, part);
            assert_eq!(own.null_count(), own.len() - own.inner().count_set_bits());
        }
        let times = TimestampMicrosecondArray::from(vec![Some(1), None, Some(3), Some(4)]);
        let times: ArrayRef = Arc::new(times.with_timezone("+01:00").slice(1, 2));
        let own = trim_extent(&times);
        assert_eq!((&*own, own.data_type()), (&*times, times.data_type()));
        own.to_data().validate_full().unwrap();
    }

    #[test]
    fn texts_are_charged_their_own_bytes() {
        let texts: Vec<Option<String>> =
            (0..1000).map(|i| (i % 7 != 3).then(|| "ü".repeat(i % 50))).collect();
        let plain: ArrayRef = Arc::new(StringArray::from(texts.clone()));
        let large: ArrayRef = Arc::new(LargeStringArray::from(texts.clone()));
        let bytes: ArrayRef = Arc::new(BinaryArray::from_iter(texts));
        let offsets = OffsetBuffer::from_lengths(vec![10; 100]);
        let field = Arc::new(Field::new_list_field(DataType::Utf8, true));
        let lists: ArrayRef = Arc::new(ListArray::new(field, offsets, plain.clone(), None));
        for (whole, rows) in [(plain, 10), (large, 10), (bytes, 10), (lists, 1)] {
            for start in [0, 40, 90] {
                let slice = whole.slice(start, rows);
                // `trim_extent` does not shorten the child of a sliced list, so take the part of
                // the child that the slice uses.
                let slice = match slice.as_list_opt::<i32>() {
                    None => slice,
                    Some(list) => list.values().slice(list.value_offsets()[0].as_usize(), 10),
                };
                let part = trim_extent(&slice);
                assert_eq!(*part, *slice);
                part.to_data().validate_full().unwrap();
                let held: usize = part.to_data().buffers().iter().map(Buffer::capacity).sum();
                assert!(held <= 10 * 100 + 11 * 8, "{held} bytes in {}", part.data_type());
            }
        }
        let none: ArrayRef = Arc::new(StringArray::from(Vec::<&str>::new()));
        assert_eq!(trim_extent(&none).len(), 0);
    }
}
