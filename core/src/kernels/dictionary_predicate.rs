//! Predicates on dictionaries, evaluated once per value and looked up by key.

use arrow::array::{AnyDictionaryArray, Array, ArrayRef, AsArray, BooleanArray};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow::compute::take;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};

use super::flags::{PackFlags, PortablePack};
use crate::error::{Error, Result};

/// Evaluates a predicate on every element of a flat array.
///
/// For a dictionary (with keys of any integer type), the predicate receives all values of the
/// dictionary once, used or not, and each element takes the result for its value. A dictionary with
/// more values than elements is decoded first; an array of another type is passed unchanged.
///
/// An element is null if its key, its value or the predicate's result for the value is null.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// use arrow::array::{ArrayRef, BooleanArray, DictionaryArray, Scalar, StringArray};
/// use arrow::compute::kernels::cmp;
/// use arrow::datatypes::Int8Type;
/// use serrate::kernels::dictionary_predicate::over_values;
/// let codes: DictionaryArray<Int8Type> = ["a", "b", "a", "a"].into_iter().collect();
/// let codes: ArrayRef = Arc::new(codes);
/// let a = Scalar::new(StringArray::from(vec!["a"]));
/// let found = over_values(&codes, |values| {
///     assert_eq!(values.len(), 2);
///     Ok(cmp::eq(values, &a)?)
/// })?;
/// assert_eq!(found, BooleanArray::from(vec![true, false, true, true]));
/// # Ok::<(), serrate::Error>(())
/// ```
///
/// # Errors
/// Errors of the predicate, and when it does not return one result per value.
pub fn over_values(
    leaves: &ArrayRef,
    test: impl FnOnce(&ArrayRef) -> Result<BooleanArray>,
) -> Result<BooleanArray> {
    let checked = |values: &ArrayRef| {
        let answers = test(values)?;
        if answers.len() != values.len() {
            return Err(Error::invalid(format!(
                "the predicate returned {} result(s) for {} value(s); write a predicate that returns one result per value",
                answers.len(),
                values.len()
            )));
        }
        Ok(answers)
    };
    let Some(dictionary) = leaves.as_any_dictionary_opt() else { return checked(leaves) };
    if dictionary.len() < dictionary.values().len() {
        return checked(&take(dictionary.values(), dictionary.keys(), None)?);
    }
    look_up_answers(dictionary, &checked(dictionary.values())?)
}

fn look_up_answers(
    dictionary: &dyn AnyDictionaryArray,
    answers: &BooleanArray,
) -> Result<BooleanArray> {
    let keys = dictionary.keys();
    let bits = look_up(keys, answers.values())?;
    let known = match answers.nulls().filter(|n| n.null_count() > 0) {
        Some(nulls) => Some(NullBuffer::new(look_up(keys, nulls.inner())?)),
        None => None,
    };
    Ok(BooleanArray::new(bits, NullBuffer::union(keys.nulls(), known.as_ref())))
}

/// Returns bit `key` of `table` for each key, or false for a key beyond the end of `table`. The
/// result for a null is the bit of the arbitrary key that the array stores for the null.
pub(crate) fn look_up(keys: &dyn Array, table: &BooleanBuffer) -> Result<BooleanBuffer> {
    let t = keys.data_type();
    Ok(match t {
        DataType::Int8 => look_up_bits(&to_unsigned::<Int8Type, u8>(keys), table),
        DataType::Int16 => look_up_bits(&to_unsigned::<Int16Type, u16>(keys), table),
        DataType::Int32 => look_up_bits(&to_unsigned::<Int32Type, u32>(keys), table),
        DataType::Int64 => look_up_bits(&to_unsigned::<Int64Type, u64>(keys), table),
        DataType::UInt8 => look_up_bits(&to_unsigned::<UInt8Type, u8>(keys), table),
        DataType::UInt16 => look_up_bits(&to_unsigned::<UInt16Type, u16>(keys), table),
        DataType::UInt32 => look_up_bits(&to_unsigned::<UInt32Type, u32>(keys), table),
        DataType::UInt64 => look_up_bits(&to_unsigned::<UInt64Type, u64>(keys), table),
        _ => {
            return Err(Error::type_of(
                "the keys of a dictionary",
                "integers (encode the dictionary again)",
                t,
            ));
        }
    })
}

/// Reads the bits of the keys as unsigned integers. Negative keys occur only where the array is
/// null, and become so large that [`look_up`] returns false.
fn to_unsigned<T: ArrowPrimitiveType, U: UnsignedKey>(keys: &dyn Array) -> ScalarBuffer<U> {
    let keys = keys.as_primitive::<T>().values();
    ScalarBuffer::new(keys.inner().clone(), 0, keys.len())
}

trait UnsignedKey: arrow::datatypes::ArrowNativeType {
    /// Number of possible keys; `None` if a table with one byte per key would be too large.
    const ALL: Option<usize>;

    fn compute_distance_from(self, other: Self) -> Self;

    fn from_position(position: usize) -> Option<Self>;
}

macro_rules! key {
    ($t:ty, $all:expr) => {
        impl UnsignedKey for $t {
            const ALL: Option<usize> = $all;

            #[inline]
            fn compute_distance_from(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            fn from_position(position: usize) -> Option<Self> {
                Self::try_from(position).ok()
            }
        }
    };
}

key!(u8, Some(1 << 8));
key!(u16, Some(1 << 16));
key!(u32, None);
key!(u64, None);

fn look_up_bits<K: UnsignedKey>(keys: &[K], table: &BooleanBuffer) -> BooleanBuffer {
    let set = table.count_set_bits();
    if set == 0 {
        return BooleanBuffer::new_unset(keys.len());
    }
    let first = table.set_indices().next().unwrap_or(0);
    // If the set bits are adjacent, as for a prefix in a sorted dictionary, test whether each key
    // is in their range, without the table.
    let run = table.slice(first, set.min(table.len() - first)).count_set_bits() == set;
    if let (true, Some(from), Some(last)) =
        (run, K::from_position(first), K::from_position(set - 1))
    {
        return collect_bits(keys, |key| u8::from(key.compute_distance_from(from) <= last));
    }
    let mut bytes: Vec<u8> = table.iter().map(u8::from).collect();
    if let Some(all) = K::ALL {
        // Lookups in a table of all possible keys need no bounds check.
        bytes.resize(all.max(bytes.len()), 0);
        return collect_bits(keys, |key| bytes[key.as_usize()]);
    }
    collect_bits(keys, |key| bytes.get(key.as_usize()).copied().unwrap_or(0))
}

#[inline]
fn collect_bits<K: Copy>(keys: &[K], test: impl Fn(K) -> u8) -> BooleanBuffer {
    let (chunks, rest) = keys.as_chunks::<64>();
    let mut words = Vec::with_capacity(chunks.len() + 1);
    let mut bytes = [0u8; 64];
    for chunk in chunks {
        for (byte, key) in bytes.iter_mut().zip(chunk) {
            *byte = test(*key);
        }
        words.push(PortablePack.pack_flags(&bytes));
    }
    if !rest.is_empty() {
        bytes.fill(0);
        for (byte, key) in bytes.iter_mut().zip(rest) {
            *byte = test(*key);
        }
        words.push(PortablePack.pack_flags(&bytes));
    }
    BooleanBuffer::new(Buffer::from_vec(words), 0, keys.len())
}

/// Returns the type of the values: that of the values of a dictionary, or `t` itself.
pub(crate) fn value_type(t: &DataType) -> &DataType {
    match t {
        DataType::Dictionary(_, values) => value_type(values),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{DictionaryArray, PrimitiveArray, StringArray};
    use arrow::datatypes::ArrowDictionaryKeyType;

    use super::*;

    fn starts_with_b(values: &ArrayRef) -> Result<BooleanArray> {
        let values = values.as_string::<i32>();
        Ok(values.iter().map(|v| v.map(|v| v.starts_with('b'))).collect())
    }

    fn every_key_type<T: ArrowDictionaryKeyType>(of: impl Fn(usize) -> T::Native) {
        // Values that start with b are adjacent only in some dictionaries.
        let dictionaries: [&[Option<&str>]; 5] = [
            &[Some("a"), Some("b1"), Some("b2"), Some("c")],
            &[Some("b1"), Some("a"), Some("b2"), None, Some("c")],
            &[Some("a"), Some("c")],
            &[Some("b")],
            &[None, Some("b"), Some("b"), Some("unused")],
        ];
        for values in dictionaries {
            for n in [0usize, 1, 3, 63, 64, 65, 100, 127] {
                let places: Vec<Option<usize>> =
                    (0..n).map(|i| (i % 11 != 7).then_some(i * 7 % values.len())).collect();
                let keys: PrimitiveArray<T> = places.iter().map(|p| p.map(&of)).collect();
                let expected: Vec<Option<bool>> = places
                    .iter()
                    .map(|p| p.and_then(|p| values[p]).map(|v| v.starts_with('b')))
                    .collect();
                let text: ArrayRef = Arc::new(StringArray::from(values.to_vec()));
                let array: ArrayRef = Arc::new(DictionaryArray::<T>::try_new(keys, text).unwrap());
                let found = over_values(&array, starts_with_b).unwrap();
                assert_eq!(found, BooleanArray::from(expected.clone()), "{values:?} x {n}");
                if n > 5 {
                    let part = over_values(&array.slice(3, n - 5), starts_with_b).unwrap();
                    assert_eq!(part, BooleanArray::from(expected[3..n - 2].to_vec()));
                }
            }
        }
    }

    #[test]
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
    fn keys_of_every_type_are_looked_up() {
        every_key_type::<Int8Type>(|i| i as i8);
        every_key_type::<Int16Type>(|i| i as i16);
        every_key_type::<Int32Type>(|i| i as i32);
        every_key_type::<Int64Type>(|i| i as i64);
        every_key_type::<UInt8Type>(|i| i as u8);
        every_key_type::<UInt16Type>(|i| i as u16);
        every_key_type::<UInt32Type>(|i| i as u32);
        every_key_type::<UInt64Type>(|i| i as u64);
    }

    #[test]
    fn a_null_may_have_any_key() {
        let keys = arrow::array::Int32Array::new(
            vec![0, -5, 1, 9_999, 0].into(),
            Some(NullBuffer::from(vec![true, false, true, false, true])),
        );
        for values in [vec!["b", "a", "b"], vec!["b", "a"]] {
            let text = Arc::new(StringArray::from(values));
            let array: ArrayRef = Arc::new(DictionaryArray::try_new(keys.clone(), text).unwrap());
            let found = over_values(&array, starts_with_b).unwrap();
            let expected = vec![Some(true), None, Some(false), None, Some(true)];
            assert_eq!(found, BooleanArray::from(expected));
        }
    }

    #[test]
    fn values_are_tested_once_each_and_never_more_than_there_are_elements() {
        let tested = |elements: usize, values: usize| {
            let text: ArrayRef =
                Arc::new(StringArray::from_iter_values((0..values).map(|i| i.to_string())));
            let keys = PrimitiveArray::<UInt64Type>::from_iter_values(
                (0..elements as u64).map(|i| i % values as u64),
            );
            let array: ArrayRef = Arc::new(DictionaryArray::try_new(keys, text).unwrap());
            let mut seen = Vec::new();
            over_values(&array, |v| {
                seen.push(v.len());
                starts_with_b(v)
            })
            .unwrap();
            seen
        };
        assert_eq!(tested(100_000, 7), [7]);
        assert_eq!(tested(7, 7), [7]);
        assert_eq!(tested(3, 100_000), [3]);
        assert_eq!(tested(0, 5), [0]);
    }

    #[test]
    fn a_test_answers_for_every_value() {
        let text: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        let e = over_values(&text, |_| Ok(BooleanArray::from(vec![true]))).unwrap_err();
        assert!(e.to_string().contains("1 result(s) for 2 value(s)"), "{e}");
    }
}
