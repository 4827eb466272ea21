//! `densify`, `densify_into` and masks, compared with a reference on trees.

use std::sync::{Arc, LazyLock};

use arrow::array::{
    Array, ArrayRef, BooleanArray, Date32Array, DictionaryArray, Int32Array, StringArray,
    TimestampMicrosecondArray, UInt8Array, UInt16Array, UInt64Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Int8Type};
use proptest::prelude::*;
use serrate::Error;
use serrate::array::{Layout, Offsets, RaggedArray};
use serrate::dense::{BufferPool, DType, DenseOptions, DenseTensor, Fill, PaddingSide};
use serrate::kernels::densify::{dense_bytes, densify, densify_into};
use serrate::kernels::mask::{mask, validity_mask};

use super::tree::{N, NestedRows, any_nested_rows};

/// Appends the slots of one element, padded and truncated to `shape`, to `out`. `leaf` returns the
/// value of a slot, for `None` that of padding.
fn list_places<T>(
    tree: Option<&N>,
    shape: &[usize],
    side: PaddingSide,
    leaf: &impl Fn(Option<&N>) -> T,
    out: &mut Vec<T>,
) {
    let Some((room, rest)) = shape.split_first() else { return out.push(leaf(tree)) };
    let children = tree.map_or(&[][..], N::children);
    let kept = children.len().min(*room);
    let missing = room - kept;
    let (kept, before) = match side {
        PaddingSide::Right => (&children[..kept], 0),
        PaddingSide::Left => (&children[children.len() - kept..], missing),
    };
    let padded = std::iter::repeat_n(None, before)
        .chain(kept.iter().map(Some))
        .chain(std::iter::repeat_n(None, missing - before));
    padded.for_each(|t| list_places(t, rest, side, leaf, out));
}

fn all_places<T>(
    rows: &[N],
    shape: &[usize],
    side: PaddingSide,
    leaf: impl Fn(Option<&N>) -> T,
) -> Vec<T> {
    let mut out = Vec::new();
    rows.iter().for_each(|t| list_places(Some(t), shape, side, &leaf, &mut out));
    out
}

fn find_longest(rows: &[N], levels: usize) -> Vec<usize> {
    let mut elements: Vec<&N> = rows.iter().collect();
    (0..levels)
        .map(|_| {
            let n = elements.iter().map(|t| t.children().len()).max().unwrap_or(0);
            elements = elements.iter().flat_map(|t| t.children()).collect();
            n
        })
        .collect()
}

/// All cases use this pool, so that their buffers contain bytes of earlier cases.
static POOL: LazyLock<BufferPool> = LazyLock::new(|| BufferPool::new(1 << 20));

fn draw_dtype() -> impl Strategy<Value = DType> {
    prop::sample::select(DType::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn densify_and_masks_equal_the_reference(
        nested in any_nested_rows(),
        stored in draw_dtype(),
        target in prop::option::of(draw_dtype()),
        sizes in prop::option::of([0usize..6, 0usize..6, 0usize..6]),
        left in any::<bool>(),
        fill in prop::option::of(prop_oneof![Just(1i64), Just(0), Just(7)]),
    ) {
        let side = if left { PaddingSide::Left } else { PaddingSide::Right };
        let array = nested.to_ragged(&stored.to_arrow());
        let levels = nested.kinds.len();
        let sizes = sizes.map(|s| s[..levels].to_vec());
        // `value` returns the integer of the result for a leaf: booleans become 0 and 1.
        let stored = DType::from_arrow(&stored.to_arrow()).unwrap();
        let target = target.filter(|t| *t != stored);
        let result = target.unwrap_or(stored);
        let bit = stored == DType::Bool || result == DType::Bool;
        let value = |v: i64| if bit { i64::from(v != 0) } else { v };
        let fill = fill.map(|f| if result == DType::Bool { value(f) } else { f });

        let shape = sizes.clone().unwrap_or_else(|| find_longest(&nested.rows, levels));
        let padding = fill.unwrap_or(0);
        let expected = all_places(&nested.rows, &shape, side, |t| match t {
            Some(N::Leaf(v)) => value(*v),
            _ => padding,
        });

        let plain = DenseOptions { side, fill: fill.map(Fill::from), dtype: target, ..Default::default() };
        let pooled = DenseOptions { pool: Some(POOL.clone()), ..plain.clone() };
        let whole_shape: Vec<usize> = std::iter::once(nested.rows.len()).chain(shape.clone()).collect();
        for options in [&plain, &pooled] {
            let t = densify(&array, sizes.as_deref(), options).unwrap();
            prop_assert_eq!(t.dtype(), result);
            prop_assert_eq!(t.shape(), &whole_shape[..]);
            let numbers = t.cast(DType::I64).unwrap();
            prop_assert_eq!(numbers.as_slice::<i64>().unwrap(), &expected[..]);

            // `densify_into` writes the same bytes to an unaligned buffer that was not cleared, and
            // nothing outside of it.
            let (dtype, shape, bytes) = dense_bytes(&array, sizes.as_deref(), options).unwrap();
            prop_assert_eq!((dtype, &shape, bytes), (result, &whole_shape, t.nbytes()));
            let mut dirty = vec![0xA5u8; bytes + 2];
            let got = densify_into(&array, sizes.as_deref(), options, &mut dirty[1..=bytes]).unwrap();
            prop_assert_eq!(got, whole_shape.clone());
            prop_assert_eq!(&dirty[1..=bytes], t.as_bytes());
            prop_assert_eq!((dirty[0], dirty[bytes + 1]), (0xA5, 0xA5));
            prop_assert!(densify_into(&array, sizes.as_deref(), options, &mut dirty).is_err());
        }

        for axis in 1..=levels {
            let here = all_places(&nested.rows, &shape[..axis], side, |t| u8::from(t.is_some()));
            for sizes in [sizes.as_deref(), sizes.as_deref().map(|s| &s[..axis])] {
                let m = mask(&array, axis as i64, sizes, &pooled).unwrap();
                prop_assert_eq!(m.dtype(), DType::Bool);
                prop_assert_eq!(m.shape(), &whole_shape[..=axis]);
                prop_assert_eq!(m.as_slice::<u8>().unwrap(), &here[..]);
                let inward = axis as i64 - 1 - levels as i64;
                prop_assert_eq!(mask(&array, inward, sizes, &plain).unwrap(), m);
            }
        }
        let valid = all_places(&nested.rows, &shape, side, |t| u8::from(matches!(t, Some(N::Leaf(_)))));
        let v = validity_mask(&array, sizes.as_deref(), &pooled).unwrap();
        prop_assert_eq!(v.as_slice::<u8>().unwrap(), &valid[..]);
    }
}

fn make_ragged(lengths: &[&[usize]], leaves: impl Array + 'static) -> RaggedArray {
    let rows = lengths.first().map_or(leaves.len(), |l| l.len());
    let axes = lengths.iter().map(|l| Offsets::from_lengths(l.iter().copied()).unwrap().into());
    RaggedArray::try_new(rows, axes.collect(), Arc::new(leaves)).unwrap()
}

#[test]
fn both_sides_pad_and_truncate_at_every_level() {
    // The array is [[[1, 2, 3], [4]], [], [[], [5, 6], [7]]].
    let a =
        make_ragged(&[&[2, 0, 3], &[3, 1, 0, 2, 1]], UInt16Array::from(vec![1, 2, 3, 4, 5, 6, 7]));
    let right = densify(&a, Some(&[2, 2]), &DenseOptions::default()).unwrap();
    assert_eq!(right.as_slice::<u16>().unwrap(), [1, 2, 4, 0, 0, 0, 0, 0, 0, 0, 5, 6]);
    let left = DenseOptions { side: PaddingSide::Left, ..Default::default() };
    let left = densify(&a, Some(&[2, 2]), &left).unwrap();
    assert_eq!(left.as_slice::<u16>().unwrap(), [2, 3, 0, 4, 0, 0, 0, 0, 5, 6, 0, 7]);
}

/// The array is so large that each level is divided among threads.
#[test]
fn several_threads_write_the_bytes_of_one() {
    let lists: Vec<usize> = (0..6000).map(|i| (i * 7919) % 120).collect();
    let leaves: usize = lists.iter().sum();
    let values: Vec<Option<i32>> = (0..leaves as i32).map(|v| (v % 11 > 0).then_some(v)).collect();
    let shapes: [(Vec<usize>, Vec<usize>); 3] = [
        (vec![1, 5000, 0, 999], vec![5500, 130]),
        (vec![6000], vec![6000, 60]),
        (vec![1500; 4], vec![1500, 1]),
    ];
    for (rows, sizes) in shapes {
        let a = make_ragged(&[&rows, &lists], Int32Array::from(values.clone()));
        for side in [PaddingSide::Left, PaddingSide::Right] {
            for fill in [0, -5, -1] {
                let one = DenseOptions {
                    side,
                    fill: Some(fill.into()),
                    parallel: false,
                    ..Default::default()
                };
                let many = DenseOptions { parallel: true, ..one.clone() };
                let t = densify(&a, Some(&sizes), &one).unwrap();
                assert_eq!(t, densify(&a, Some(&sizes), &many).unwrap());
                let mut dirty = vec![1u8; t.nbytes()];
                densify_into(&a, Some(&sizes), &many, &mut dirty).unwrap();
                assert!(dirty == t.as_bytes());
            }
        }
    }
    // An array without lists, and the same leaves as one list.
    let n = 3 << 20;
    let flat = UInt16Array::from_iter_values((0..n).map(|i| (i % 65_521) as u16));
    let expected: Vec<u16> = flat.values().to_vec();
    for a in [make_ragged(&[], flat.clone()), make_ragged(&[&[n]], flat)] {
        let t = densify(&a, None, &DenseOptions::default()).unwrap();
        assert!(t.as_slice::<u16>().unwrap() == expected);
    }
}

/// In a sparse tensor, a fill value whose bytes are all equal (-1) is written to groups of lists
/// before their values. Any other fill value (-2) is written only to the padding.
#[test]
fn values_are_written_over_padding_in_lists_of_any_size() {
    let lengths: Vec<usize> = (0..400).map(|i| (i * 31) % 97).collect();
    let rows = Offsets::from_lengths([100, 0, 250, 50]).unwrap();
    let wide = Offsets::I64(OffsetBuffer::from_lengths(lengths.iter().copied()));
    let narrow = Layout::from(Offsets::from_lengths(lengths).unwrap());
    for lists in [narrow, Layout::from(wide), Layout::Uniform { size: 48, lists: 400 }] {
        let n = lists.children();
        let leaves = Arc::new(Int32Array::from_iter_values(1..=n as i32));
        let axes = vec![rows.clone().into(), lists.into()];
        let a = RaggedArray::try_new(4, axes, leaves).unwrap();
        for side in [PaddingSide::Right, PaddingSide::Left] {
            for sizes in [[250, 10], [260, 97], [260, 1_100], [3, 40_000]] {
                for parallel in [false, true] {
                    let padded = |fill: i32| {
                        let fill = Some(fill.into());
                        let options = DenseOptions { side, fill, parallel, ..Default::default() };
                        densify(&a, Some(&sizes), &options).unwrap()
                    };
                    let (before, after) = (padded(-1), padded(-2));
                    let expected: Vec<i32> =
                        after.as_slice::<i32>().unwrap().iter().map(|v| (*v).max(-1)).collect();
                    assert!(before.as_slice::<i32>().unwrap() == expected, "{side:?} {sizes:?}");
                    let values = expected.iter().filter(|v| **v > 0).count();
                    assert_eq!(values == n, sizes[0] > 3 && sizes[1] > 96, "{side:?} {sizes:?}");
                }
            }
        }
    }
}

#[test]
fn buffers_of_a_pool_have_no_bytes_of_earlier_results() {
    for pool in [BufferPool::new(64 << 20), BufferPool::for_writers(64 << 20)] {
        check_reuse(&pool);
    }
}

fn check_reuse(pool: &BufferPool) {
    let options = |fill: i64| DenseOptions {
        pool: Some(pool.clone()),
        fill: Some(fill.into()),
        ..Default::default()
    };
    let lists: Vec<usize> = (0..400).map(|i| (i * 31) % 97).collect();
    let n: usize = lists.iter().sum();
    let a = make_ragged(&[&[100, 0, 250, 50], &lists], UInt8Array::from(vec![0xEE; n]));
    let mut at = None;
    // Sizes grow and shrink and fill values alternate, so that a buffer is reused after every kind
    // of contents.
    for (k, (rows, sizes, fill)) in [
        (4, [2500, 500], 0),
        (1, [2400, 500], 0),
        (4, [2400, 510], 0),
        (3, [2000, 500], 3),
        (2, [2500, 400], 0),
        (4, [2600, 500], 0),
        (4, [2500, 500], 0xEE),
        (4, [2300, 500], 0),
        (4, [2600, 500], 0),
    ]
    .into_iter()
    .enumerate()
    {
        let part = a.slice(0, rows).unwrap();
        let pooled = densify(&part, Some(&sizes), &options(fill)).unwrap();
        let fresh = DenseOptions { pool: None, ..options(fill) };
        assert_eq!(pooled, densify(&part, Some(&sizes), &fresh).unwrap(), "case {k}");
        let first = *at.get_or_insert(pooled.as_bytes().as_ptr());
        assert_eq!(first, pooled.as_bytes().as_ptr(), "case {k} does not reuse the buffer");
    }
    // A buffer is not reused while a result uses it.
    let held = densify(&a, Some(&[2500, 500]), &options(0)).unwrap();
    let copy = held.as_bytes().to_vec();
    let other = densify(&a, Some(&[2500, 500]), &options(1)).unwrap();
    assert_ne!(held.as_bytes().as_ptr(), other.as_bytes().as_ptr());
    assert!(copy == held.as_bytes());
}

#[test]
fn the_size_is_checked_before_memory_is_allocated() {
    let a = make_ragged(&[&[1, 2]], Int32Array::from(vec![1, 2, 3]));
    let limit = |n| DenseOptions { limit: Some(n), ..Default::default() };
    assert!(densify(&a, Some(&[4]), &limit(32)).is_ok());
    match densify(&a, Some(&[4]), &limit(31)) {
        Err(Error::TooLarge { bytes: 32, limit: 31, hint, .. }) => {
            assert!(hint.contains("[2]") && hint.contains("fewer rows"), "{hint}");
        }
        other => panic!("{other:?}"),
    }
    assert!(mask(&a, 1, Some(&[4]), &limit(8)).is_ok());
    assert!(mask(&a, 1, Some(&[4]), &limit(7)).is_err());
    // Without a limit, the result would be larger than memory, or than the address space.
    let none = DenseOptions { limit: None, ..Default::default() };
    for huge in [usize::MAX / 4, usize::MAX] {
        assert!(matches!(densify(&a, Some(&[huge]), &none), Err(Error::TooLarge { .. })));
    }
    let deep = make_ragged(&[&[1], &[1], &[1]], Int32Array::from(vec![1]));
    let e = densify(&deep, Some(&[usize::MAX; 3]), &none).unwrap_err();
    assert!(matches!(e, Error::TooLarge { .. }), "{e}");
    // A result without elements takes no memory, whatever its other sizes are.
    let t = densify(&deep, Some(&[usize::MAX, 0, usize::MAX]), &none).unwrap();
    assert_eq!((t.nbytes(), t.shape()), (0, &[1, usize::MAX, 0, usize::MAX][..]));
    // The limit counts bytes of the target type.
    let wide = DenseOptions { dtype: Some(DType::I64), ..limit(63) };
    assert!(densify(&a, Some(&[4]), &wide).is_err());
}

#[test]
fn only_numbers_have_a_dense_form() {
    let refused = |leaves: ArrayRef| {
        let a = RaggedArray::try_new(leaves.len(), vec![], leaves).unwrap();
        densify(&a, None, &DenseOptions::default()).unwrap_err().to_string()
    };
    let e = refused(Arc::new(StringArray::from(vec!["A", "B"])));
    assert!(e.contains("encode strings to integers"), "{e}");
    let e = refused(Arc::new(DictionaryArray::<Int8Type>::from_iter(["A", "B"])));
    assert!(e.contains("encode strings to integers"), "{e}");

    let days = make_ragged(&[&[1, 1]], Date32Array::from(vec![3, -4]));
    let t = densify(&days, None, &DenseOptions::default()).unwrap();
    assert_eq!(t.as_slice::<i32>().unwrap(), [3, -4]);
    let times = make_ragged(&[&[0, 2]], TimestampMicrosecondArray::from(vec![Some(5), None]));
    let t = densify(&times, None, &DenseOptions::default()).unwrap();
    assert_eq!(t.as_slice::<i64>().unwrap(), [0, 0, 5, 0]);
    // A mask can be computed for leaves of any type.
    let codes = make_ragged(&[&[1, 2]], StringArray::from(vec![Some("A"), None, Some("C")]));
    let valid = validity_mask(&codes, None, &DenseOptions::default()).unwrap();
    assert_eq!(valid.as_slice::<u8>().unwrap(), [1, 0, 0, 1]);
}

#[test]
fn values_that_do_not_fit_the_target_type_are_errors_unless_they_are_null() {
    let to = |dtype| DenseOptions { dtype: Some(dtype), ..Default::default() };
    let a = make_ragged(&[&[2]], UInt64Array::from(vec![1, u64::MAX]));
    let e = densify(&a, None, &to(DType::I64)).unwrap_err().to_string();
    assert!(e.contains("int64"), "{e}");
    // The value 300, which does not fit uint8, is null.
    let nulls = vec![true, false].into();
    let hidden = Int32Array::new(vec![7, 300].into(), Some(nulls));
    let t = densify(&make_ragged(&[&[2]], hidden), None, &to(DType::U8)).unwrap();
    assert_eq!(t.as_slice::<u8>().unwrap(), [7, 0]);
    let fill = DenseOptions { fill: Some(Fill::Float(0.5)), ..Default::default() };
    assert!(densify(&a, None, &fill).unwrap_err().to_string().contains("0.5"));
}

#[test]
fn invalid_sizes_and_axes_are_refused() {
    let a = make_ragged(&[&[2]], BooleanArray::from(vec![true, false]));
    let o = DenseOptions::default();
    assert!(densify(&a, Some(&[]), &o).is_err() && densify(&a, Some(&[1, 1]), &o).is_err());
    assert!(mask(&a, 0, None, &o).is_err() && mask(&a, -2, None, &o).is_err());
    assert!(mask(&a, 2, None, &o).is_err() && mask(&a, 1, Some(&[]), &o).is_err());
    assert!(mask(&a, 1, Some(&[1, 1]), &o).is_err());
}

#[test]
fn arrays_without_rows_or_leaves_are_densified() {
    let none = NestedRows { kinds: vec![], rows: vec![] }.to_ragged(&DataType::Float32);
    let t = densify(&none, None, &DenseOptions::default()).unwrap();
    assert_eq!((t.dtype(), t.shape()), (DType::F32, &[0][..]));
    let uniform = RaggedArray::try_new(
        2,
        vec![Layout::Uniform { size: 0, lists: 2 }.into()],
        Arc::new(Int32Array::from(Vec::<i32>::new())),
    )
    .unwrap();
    let t = densify(&uniform, None, &DenseOptions::default()).unwrap();
    assert_eq!(t.shape(), [2, 0]);
    let t = densify(&uniform, Some(&[2]), &DenseOptions::default()).unwrap();
    assert_eq!(t, DenseTensor::from_vec([2, 2], vec![0i32; 4]).unwrap());
}
