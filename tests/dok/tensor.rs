//! Sparse tensors compared with dense ones: indexing, views, writing, reductions and products.

use proptest::prelude::*;
use serrate::Error;
use serrate::dense::{DType, DenseTensor};
use serrate::dok::{DokTensor, DokUnary, DuplicateEntries, ReducedAxes};
use serrate::index::{Index, IndexArray, parse_index};

fn make_dense(shape: &[usize], values: &[i32]) -> DenseTensor {
    let n = shape.iter().product();
    let values: Vec<i32> = values.iter().copied().cycle().take(n).collect();
    DenseTensor::from_vec(shape.to_vec(), values).unwrap()
}

fn draw_shapes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0usize..5, 0..5)
}

/// Draws integers, most of which are zero.
fn draw_entries() -> impl Strategy<Value = Vec<i32>> {
    prop::collection::vec(prop_oneof![3 => Just(0), 2 => -9i32..9], 1..60)
}

/// Makes an index item for the first axes of the shape `sizes` from random numbers, and returns it
/// with the number of axes it indexes. Some items are out of range.
fn make_item(sizes: &[usize], pick: u32, a: i64, b: i64, bits: u64) -> (Index, usize) {
    let Some(size) = sizes.first().copied() else {
        return (if pick.is_multiple_of(2) { Index::NewAxis } else { Index::Rest }, 0);
    };
    let n = size as i64;
    let at = |v: i64| if n == 0 { v } else { (v.rem_euclid(2 * n + 1)) - n - i64::from(v == 7) };
    let mask = |shape: Vec<usize>| {
        let count = shape.iter().product::<usize>();
        let values = (0..count).map(|i| bits >> (i % 64) & 1 == 1).collect();
        Index::Mask(IndexArray::try_new(shape, values).unwrap())
    };
    match pick % 12 {
        0 | 1 => (Index::At(at(a).min(n.max(1) - 1)), 1),
        2 | 3 => {
            let part = |v: i64, bit: u64| (bits & bit == 0).then_some(v);
            let step = part((b.rem_euclid(4)) - 2, 4).filter(|s| *s != 0);
            (Index::Slice { start: part(a - 4, 1), stop: part(b - 4, 2), step }, 1)
        }
        4 => (Index::ALL, 1),
        5 | 6 => {
            let count = (bits % 4) as usize;
            let values = (0..count as i64).map(|i| at(a + i * b).min(n - 1)).collect::<Vec<_>>();
            (Index::Array(values.into()), 1)
        }
        7 => {
            let values = (0..2).map(|i| at(a + i * b).min(n - 1)).collect::<Vec<_>>();
            let shape = if bits & 1 == 0 { vec![2, 1] } else { vec![1, 2] };
            (Index::Array(IndexArray::try_new(shape, values).unwrap()), 1)
        }
        8 => (mask(vec![size]), 1),
        9 => match sizes.get(1) {
            Some(second) => (mask(vec![size, *second]), 2),
            None => (mask(vec![size]), 1),
        },
        10 => (Index::NewAxis, 0),
        _ => (Index::Rest, 0),
    }
}

type Random = (u32, i64, i64, u64);

fn draw_randoms() -> impl Strategy<Value = Vec<Random>> {
    prop::collection::vec((any::<u32>(), 0i64..9, 0i64..9, any::<u64>()), 0..6)
}

fn make_index(shape: &[usize], randoms: &[Random]) -> Vec<Index> {
    let mut out = Vec::new();
    let (mut left, mut rest) = (shape, false);
    for (pick, a, b, bits) in randoms {
        let (item, takes) = make_item(left, *pick, *a, *b, *bits);
        if item == Index::Rest && std::mem::replace(&mut rest, true) {
            continue;
        }
        left = &left[takes..];
        out.push(item);
    }
    out
}

/// Permutes the axes of a sparse tensor, as a view, and those of the equal dense tensor, as a copy.
fn view_both(t: &DokTensor, d: &DenseTensor, order: u64) -> (DokTensor, DenseTensor) {
    let n = d.ndim();
    let mut axes: Vec<i64> = (0..n as i64).collect();
    let mut bits = order;
    for i in (1..n).rev() {
        axes.swap(i, (bits % (i as u64 + 1)) as usize);
        bits /= i as u64 + 1;
    }
    let view = t.permute(&axes).unwrap();
    let shape: Vec<usize> = axes.iter().map(|a| d.shape()[*a as usize]).collect();
    let strides = d.strides();
    let all = d.as_slice::<i32>().unwrap();
    let mut out = Vec::new();
    let mut at = vec![0usize; n];
    if !shape.contains(&0) {
        'all: loop {
            out.push(all[(0..n).map(|k| at[k] * strides[axes[k] as usize]).sum::<usize>()]);
            for k in (0..n).rev() {
                at[k] += 1;
                if at[k] < shape[k] {
                    continue 'all;
                }
                at[k] = 0;
            }
            break;
        }
    }
    (view, DenseTensor::from_vec(shape, out).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn indexing_equals_indexing_of_the_dense_tensor(
        shape in draw_shapes(), values in draw_entries(),
        randoms in draw_randoms(), order in any::<u64>(),
    ) {
        let d = make_dense(&shape, &values);
        let t = DokTensor::from_dense(&d).unwrap();
        prop_assert_eq!(&t.to_dense().unwrap(), &d);
        let (t, d) = view_both(&t, &d, order);
        prop_assert_eq!(&t.to_dense().unwrap(), &d);
        let index = make_index(d.shape(), &randoms);
        match (t.index(&index), d.index(&index)) {
            (Ok(found), Ok(expected)) => {
                prop_assert_eq!(&found, &expected);
                let sparse = t.index_sparse(&index).unwrap();
                prop_assert_eq!(sparse.shape(), expected.shape());
                prop_assert_eq!(&sparse.to_dense().unwrap(), &expected);
                prop_assert_eq!(sparse.nnz().unwrap(), DokTensor::from_dense(&expected).unwrap().nnz().unwrap());
            }
            (Err(_), Err(_)) => prop_assert!(t.index_sparse(&index).is_err()),
            (found, expected) => prop_assert!(false, "{index:?} of {d}: {found:?}, {expected:?}"),
        }
    }

    #[test]
    fn writing_by_index_equals_writing_to_the_dense_tensor(
        shape in draw_shapes(), values in draw_entries(),
        randoms in draw_randoms(), order in any::<u64>(),
        new in prop::collection::vec(prop_oneof![1 => Just(0), 2 => 10i32..99], 1..7),
        how in 0u32..4,
    ) {
        let base = make_dense(&shape, &values);
        let owner = DokTensor::from_dense(&base).unwrap();
        let (mut t, d) = view_both(&owner, &base, order);
        let index = make_index(d.shape(), &randoms);
        // Indexing a tensor whose elements are their own positions gives the positions to write to.
        let n = d.num_elements();
        let places = DenseTensor::from_vec(d.shape().to_vec(), (0..n as i64).collect()).unwrap();
        let Ok(places) = places.index(&index) else {
            prop_assert!(t.set(&index, 1).is_err());
            return Ok(());
        };
        let part = match how {
            0 => make_dense(&[], &new),
            1 => make_dense(places.shape(), &new),
            2 => make_dense(&places.shape()[places.ndim().saturating_sub(1)..], &new),
            _ => make_dense(places.shape(), &new),
        };
        let mut expected = d.as_slice::<i32>().unwrap().to_vec();
        let given = part.as_slice::<i32>().unwrap();
        let sparse = DokTensor::from_dense(&part).unwrap();
        let unique = {
            let mut all = places.as_slice::<i64>().unwrap().to_vec();
            all.sort_unstable();
            all.windows(2).all(|w| w[0] != w[1])
        };
        for (i, place) in places.as_slice::<i64>().unwrap().iter().enumerate() {
            expected[*place as usize] = given[i % given.len()];
        }
        match how {
            0 => t.set(&index, given[0]).unwrap(),
            3 if unique => t.set(&index, &sparse).unwrap(),
            _ => t.set(&index, &part).unwrap(),
        }
        let expected = DenseTensor::from_vec(d.shape().to_vec(), expected).unwrap();
        prop_assert_eq!(&t.to_dense().unwrap(), &expected);
        // No stored entry is zero, and writing to the view has changed the tensor that owns the
        // entries.
        let nonzero = expected.as_slice::<i32>().unwrap().iter().filter(|v| **v != 0).count();
        prop_assert_eq!(owner.nnz().unwrap(), nonzero);
        let (again, _) = view_both(&owner, &base, order);
        prop_assert_eq!(again.to_dense().unwrap(), expected);
    }

    #[test]
    fn orthogonal_indexing_equals_indexing_axis_by_axis(
        shape in prop::collection::vec(1usize..5, 1..4), values in draw_entries(),
        randoms in draw_randoms(),
    ) {
        let d = make_dense(&shape, &values);
        let t = DokTensor::from_dense(&d).unwrap();
        let index: Vec<Index> = make_index(&shape, &randoms)
            .into_iter()
            .filter(|i| !matches!(i, Index::NewAxis | Index::Rest))
            .filter(|i| !matches!(i, Index::Mask(m) if m.shape().len() > 1))
            .take(shape.len())
            .collect();
        // Indexes one axis after the other, the last one first, so that an axis that is removed
        // does not renumber those left to index.
        let mut expected = Ok(d);
        for (axis, item) in index.iter().enumerate().rev() {
            let mut one = vec![Index::ALL; axis];
            one.push(item.clone());
            expected = expected.and_then(|d| d.index(&one));
        }
        match (t.index_orthogonal(&index), expected) {
            (Ok(found), Ok(expected)) => {
                prop_assert_eq!(&found, &expected);
                prop_assert_eq!(t.index_orthogonal_sparse(&index).unwrap().to_dense().unwrap(), expected);
            }
            (Err(_), Err(_)) => {}
            (found, expected) => prop_assert!(false, "{index:?}: {found:?}, {expected:?}"),
        }
    }

    #[test]
    fn reductions_equal_those_of_the_dense_tensor(
        shape in prop::collection::vec(1usize..5, 1..5), values in draw_entries(),
        which in any::<u8>(),
        keep in any::<bool>(), order in any::<u64>(),
        p in prop_oneof![Just(0.0), Just(1.0), Just(2.0), Just(3.5), Just(f64::INFINITY), Just(f64::NEG_INFINITY), Just(-1.0)],
    ) {
        let d = make_dense(&shape, &values);
        let (t, d) = view_both(&DokTensor::from_dense(&d).unwrap(), &d, order);
        let n = d.ndim();
        let gone: Vec<usize> = (0..n).filter(|a| which >> a & 1 == 1).collect();
        let axes: Vec<i64> = gone.iter().map(|a| if a % 2 == 0 { *a as i64 } else { *a as i64 - n as i64 }).collect();
        let kept: Vec<usize> = (0..n).map(|a| if gone.contains(&a) { 1 } else { d.shape()[a] }).collect();
        let strides = d.strides();
        let mut groups: Vec<Vec<f64>> = vec![Vec::new(); kept.iter().product()];
        for (i, v) in d.as_slice::<i32>().unwrap().iter().enumerate() {
            let group = (0..n).fold(0, |g, a| {
                let at = i / strides[a] % d.shape()[a];
                g * kept[a] + if gone.contains(&a) { 0 } else { at }
            });
            groups[group].push(f64::from(*v));
        }
        let shape: Vec<usize> = if keep { kept } else { (0..n).filter(|a| !gone.contains(a)).map(|a| d.shape()[a]).collect() };
        let reduced = if keep { ReducedAxes::Keep } else { ReducedAxes::Remove };
        let sum = t.sum(Some(&axes), reduced).unwrap();
        let sums: Vec<i64> = groups.iter().map(|g| g.iter().sum::<f64>() as i64).collect();
        prop_assert_eq!(sum.to_dense().unwrap(), DenseTensor::from_vec(shape.clone(), sums).unwrap());
        let norm = |g: &Vec<f64>| -> f64 {
            let m = g.iter().map(|v| v.abs());
            if p == f64::INFINITY { m.fold(0.0, f64::max) }
            else if p == f64::NEG_INFINITY { m.fold(f64::INFINITY, f64::min) }
            else if p == 0.0 { m.filter(|v| *v > 0.0).count() as f64 }
            else { m.map(|v| v.powf(p)).sum::<f64>().powf(1.0 / p) }
        };
        let found = t.norm(p, Some(&axes), reduced).unwrap().to_dense().unwrap();
        prop_assert_eq!(found.shape(), shape.as_slice());
        for (found, group) in found.as_slice::<f64>().unwrap().iter().zip(&groups) {
            prop_assert!((found - norm(group)).abs() < 1e-9, "{} of {:?}: {}", p, group, found);
        }
        let mean = t.mean(Some(&axes), reduced).unwrap().to_dense().unwrap();
        for (found, group) in mean.as_slice::<f64>().unwrap().iter().zip(&groups) {
            prop_assert!((found - group.iter().sum::<f64>() / group.len() as f64).abs() < 1e-9);
        }
    }

    #[test]
    fn products_and_sums_equal_those_of_dense_tensors(
        m in 0usize..5, k in 0usize..5, n in 0usize..5, a in draw_entries(), b in draw_entries(),
    ) {
        let (da, db) = (make_dense(&[m, k], &a), make_dense(&[k, n], &b));
        let (ta, tb) = (DokTensor::from_dense(&da).unwrap(), DokTensor::from_dense(&db).unwrap());
        let (va, vb) = (da.as_slice::<i32>().unwrap(), db.as_slice::<i32>().unwrap());
        let cell = |i: usize| (0..k).map(|j| va[i / n * k + j] * vb[j * n + i % n]).sum();
        let expected = DenseTensor::from_vec([m, n], (0..m * n).map(cell).collect::<Vec<i32>>()).unwrap();
        prop_assert_eq!(&ta.matmul_dense(&db).unwrap(), &expected);
        prop_assert_eq!(&ta.matmul(&tb).unwrap().to_dense().unwrap(), &expected);
        let float = ta.cast(DType::F32).unwrap().matmul(&tb.cast(DType::F32).unwrap()).unwrap();
        prop_assert_eq!(&float.to_dense().unwrap().cast(DType::I32).unwrap(), &expected);
        // Elementwise operations take tensors of equal shapes.
        let dc = make_dense(&[m, k], &b);
        let tc = DokTensor::from_dense(&dc).unwrap();
        let vc = dc.as_slice::<i32>().unwrap();
        let each = |f: fn(i32, i32) -> i32| {
            DenseTensor::from_vec([m, k], va.iter().zip(vc).map(|(a, c)| f(*a, *c)).collect::<Vec<i32>>()).unwrap()
        };
        prop_assert_eq!(ta.add(&tc).unwrap().to_dense().unwrap(), each(|a, c| a + c));
        prop_assert_eq!(ta.sub(&tc).unwrap().to_dense().unwrap(), each(|a, c| a - c));
        prop_assert_eq!(ta.mul(&tc).unwrap().to_dense().unwrap(), each(|a, c| a * c));
        prop_assert_eq!(ta.add_dense(&dc).unwrap(), each(|a, c| a + c));
        prop_assert_eq!(ta.mul_dense(&dc).unwrap().to_dense().unwrap(), each(|a, c| a * c));
        prop_assert_eq!(ta.scale(3).unwrap().to_dense().unwrap(), each(|a, _| a * 3));
    }

    #[test]
    fn conversions_from_and_to_other_forms_keep_the_entries(
        shape in prop::collection::vec(1usize..5, 1..5),
        values in draw_entries(),
    ) {
        let d = make_dense(&shape, &values);
        let t = DokTensor::from_dense(&d).unwrap();
        let coo = t.to_coo().unwrap();
        let again = DokTensor::from_coo(coo.shape.clone(), &coo.indices, &coo.values, DuplicateEntries::Sum).unwrap();
        prop_assert_eq!(again.to_coo().unwrap(), coo);
        if let [_, _] = shape[..] {
            let csr = t.to_csr().unwrap();
            let again = DokTensor::from_csr(csr.shape, &csr.crow_indices, &csr.col_indices, &csr.values).unwrap();
            prop_assert_eq!(again.to_dense().unwrap(), d.clone());
        }
        // Ragged lists end at the last entry, so that the tensor made from them may be smaller
        // until it is resized.
        let ragged = t.to_ragged().unwrap();
        let mut back = DokTensor::from_ragged(&ragged).unwrap();
        prop_assert_eq!(back.shape()[0], shape[0]);
        back.resize(&shape.iter().map(|s| *s as i64).collect::<Vec<_>>()).unwrap();
        prop_assert_eq!(back.to_dense().unwrap(), d.clone());
        let n = d.num_elements() as i64;
        prop_assert_eq!(t.flatten().unwrap().to_dense().unwrap(), d.reshape([n as usize]).unwrap());
        let (view, dv) = view_both(&t, &d, 5);
        prop_assert_eq!(view.reshape(&[1, -1]).unwrap().to_dense().unwrap(), dv.reshape([1, n as usize]).unwrap());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.safetensors");
        serrate::io::dok::write(&path, &view, &Default::default()).unwrap();
        prop_assert_eq!(serrate::io::dok::read(&path).unwrap().to_dense().unwrap(), dv);
    }
}

#[test]
fn views_share_entries_and_compose() {
    let d = make_dense(&[2, 3, 4], &(1..25).collect::<Vec<_>>());
    let t = DokTensor::from_dense(&d).unwrap();
    let twice = t.permute(&[1, 2, 0]).unwrap().permute(&[1, 2, 0]).unwrap();
    assert_eq!(twice.shape(), [4, 2, 3]);
    let mut column = t.select(2, -1).unwrap();
    let mut picked = t.index_select(1, &[2, 0, 2]).unwrap();
    assert_eq!(column.to_dense().unwrap(), d.index(&parse_index(":, :, -1").unwrap()).unwrap());
    assert_eq!(picked.to_dense().unwrap(), d.index(&parse_index(":, [2, 0, 2]").unwrap()).unwrap());
    assert_eq!(picked.nnz().unwrap(), 24);
    column.set(&parse_index("0").unwrap(), 100).unwrap();
    assert_eq!(twice.at(&[3, 0, 2]).unwrap().to_string(), "100");
    assert_eq!(
        picked.index(&parse_index("0, :, -1").unwrap()).unwrap().as_slice::<i32>().unwrap(),
        [100; 3]
    );
    picked.set(&parse_index("1, 0").unwrap(), &make_dense(&[4], &[7, 0, 8, 9])).unwrap();
    assert_eq!(
        t.index(&parse_index("1, 2").unwrap()).unwrap().as_slice::<i32>().unwrap(),
        [7, 0, 8, 9]
    );
    // Views can be made of views.
    let deep = picked.select(0, 1).unwrap().t().unwrap().index_select(0, &[-1, 0]).unwrap();
    assert_eq!(deep.to_dense().unwrap().as_slice::<i32>().unwrap(), [9, 16, 9, 7, 13, 7]);
    assert_eq!(deep.index_sparse(&parse_index("0").unwrap()).unwrap().nnz().unwrap(), 3);
    let copy = deep.try_clone().unwrap();
    picked.clear().unwrap();
    assert_eq!(copy.nnz().unwrap(), 6);
    assert_eq!(t.nnz().unwrap(), 8);
    assert!(t.t().is_err() && t.permute(&[0, 1]).is_err() && t.permute(&[0, 0, 1]).is_err());
    assert!(
        t.select(3, 0).is_err() && t.select(0, 2).is_err() && t.index_select(0, &[-3]).is_err()
    );
    // A tensor cannot be resized while views share its entries.
    let mut t = t;
    assert!(t.resize(&[1]).unwrap_err().to_string().contains("clone it first"));
    drop((twice, column, picked, deep));
    t.resize(&[1, 3, 9]).unwrap();
    assert_eq!((t.shape(), t.nnz().unwrap()), (vec![1, 3, 9], 4));
}

#[test]
fn sizes_are_checked_up_to_2_to_the_63() {
    let mut t =
        DokTensor::new([1 << 9, 1 << 9, 1 << 9, 1 << 9, 1 << 9, 1 << 6, 1 << 6, 1 << 6], DType::U8)
            .unwrap();
    assert_eq!((t.ndim(), t.num_elements().unwrap()), (8, 1 << 63));
    t.set_at(&[-1; 8], 3).unwrap();
    t.set_at(&[0; 8], 4).unwrap();
    assert_eq!(t.at(&[511, 511, 511, 511, 511, 63, 63, 63]).unwrap().to_string(), "3");
    let coo = t.to_coo().unwrap();
    assert_eq!(coo.indices.as_slice::<i64>().unwrap()[1], 511);
    let again =
        DokTensor::from_coo(t.shape(), &coo.indices, &coo.values, DuplicateEntries::Last).unwrap();
    assert_eq!(again.flatten().unwrap().at(&[-1]).unwrap().to_string(), "3");
    assert_eq!(t.sum(None, ReducedAxes::Remove).unwrap().at(&[]).unwrap().to_string(), "7");
    assert_eq!(t.index_sparse(&parse_index("::-1, ..., :2").unwrap()).unwrap().nnz().unwrap(), 1);
    for shape in [vec![1 << 32, 1 << 32], vec![usize::MAX], vec![1 << 63, 2]] {
        let e = DokTensor::new(shape, DType::U8).unwrap_err().to_string();
        assert!(e.contains("2^63"), "{e}");
    }
    assert!(DokTensor::new([usize::MAX, 0, usize::MAX], DType::U8).is_ok());
    let wide = DokTensor::new([1, 1 << 40], DType::U8).unwrap();
    assert!(wide.index_select(0, &vec![0; 1 << 24]).is_err());
    // A dense result that is too large is an error with its size in bytes, and no memory is
    // allocated for it.
    for e in [t.to_dense().unwrap_err(), t.set(&[Index::Rest], 1).unwrap_err()] {
        assert!(matches!(e, Error::TooLarge { .. }), "{e}");
    }
    assert!(t.to_dense().unwrap_err().to_string().contains("9223372036854775808 bytes"));
    t.set_dense_limit(Some(1));
    assert!(t.index(&parse_index("0, 0, 0, 0, 0, 0, 0, :2").unwrap()).is_err());
    assert!(t.index(&parse_index("0, 0, 0, 0, 0, 0, 0, :1").unwrap()).is_ok());
    // Writing zero to all elements needs no dense tensor.
    t.set(&[Index::Rest], 0).unwrap();
    assert_eq!(t.nnz().unwrap(), 0);
}

#[test]
fn softmax_ignores_elements_that_are_not_stored() {
    let indices = DenseTensor::from_vec([2, 4], vec![0i64, 0, 0, 1, 0, 2, 3, 1]).unwrap();
    let values = DenseTensor::from_vec([4], vec![1.0, 0.0, 2.0, -800.0]).unwrap();
    let t = DokTensor::from_coo([2, 4], &indices, &values, DuplicateEntries::Last).unwrap();
    let soft = t.softmax(&[-1]).unwrap();
    let (e, sum) = (1f64.exp(), 1f64.exp() + 1.0 + 2f64.exp());
    let expected = [e / sum, 0.0, 1.0 / sum, e * e / sum, 0.0, 1.0, 0.0, 0.0];
    for (a, b) in soft.to_dense().unwrap().as_slice::<f64>().unwrap().iter().zip(expected) {
        assert!((a - b).abs() < 1e-15);
    }
    let log = t.log_softmax(&[1]).unwrap();
    assert!((log.at(&[0, 2]).unwrap().to_f64().unwrap() + sum.ln()).abs() < 1e-15);
    assert_eq!(log.nnz().unwrap(), 4);
    assert!(t.softmax(&[]).is_err() && t.softmax(&[1, 1]).is_err());
    assert!(t.cast(DType::I32).unwrap().softmax(&[0]).is_err());
    assert!(t.cast(DType::I32).unwrap().sqrt().is_err());
    assert_eq!(
        t.map(DokUnary::Sign)
            .unwrap()
            .sum(None, ReducedAxes::Remove)
            .unwrap()
            .at(&[])
            .unwrap()
            .to_string(),
        "1"
    );
}

#[test]
fn stored_zeros_can_be_pruned_and_overflow_is_an_error() {
    let indices = DenseTensor::from_vec([1, 3], vec![0i64, 1, 1]).unwrap();
    let values = DenseTensor::from_vec([3], vec![0u8, 200, 100]).unwrap();
    let mut t = DokTensor::from_coo([4], &indices, &values, DuplicateEntries::Last).unwrap();
    assert_eq!((t.nnz().unwrap(), t.sparsity().unwrap()), (2, 0.5));
    t.prune().unwrap();
    assert_eq!(t.nnz().unwrap(), 1);
    let e =
        DokTensor::from_coo([4], &indices, &values, DuplicateEntries::Sum).unwrap_err().to_string();
    assert!(e.contains("does not fit uint8"), "{e}");
    assert!(
        t.add(&t).is_ok() && t.scale(3).is_err() && t.scale(0.5).unwrap().dtype() == DType::F64
    );
    let big = DenseTensor::from_vec([2], vec![i64::MAX, 1]).unwrap();
    let big = DokTensor::from_dense(&big).unwrap();
    assert!(matches!(big.sum(None, ReducedAxes::Remove).unwrap_err(), Error::Overflow(_)));
    assert!(matches!(big.add(&big).unwrap_err(), Error::Overflow(_)));
    let top = DenseTensor::from_vec([1, 2], vec![u64::MAX; 2]).unwrap();
    let product = DokTensor::from_dense(&top).unwrap().matmul_dense(&top.reshape([2, 1]).unwrap());
    assert!(matches!(product.unwrap_err(), Error::Overflow(_)));
    assert!(
        t.set_at(&[0], 300).is_err() && t.set_at(&[4], 1).is_err() && t.set_at(&[0, 0], 1).is_err()
    );
    t.set_at(&[3], 2.9).unwrap();
    assert_eq!(t.at(&[3]).unwrap().to_string(), "2");
    for bad in [vec![0i64, 4], vec![-1, 0]] {
        let bad = DenseTensor::from_vec([1, 2], bad).unwrap();
        let two = DenseTensor::from_vec([2], vec![1f32, 2.0]).unwrap();
        assert!(DokTensor::from_coo([4], &bad, &two, DuplicateEntries::Last).is_err());
    }
}

#[test]
fn the_last_value_written_to_a_repeated_index_wins_even_if_it_is_zero() {
    let value = |dense: &[i32]| {
        DokTensor::from_dense(&DenseTensor::from_vec([dense.len()], dense.to_vec()).unwrap())
    };
    for (index, written, expected) in [
        ("[1, 1]", vec![9, 0], [1, 0, 3]),
        ("[1, 1]", vec![0, 9], [1, 9, 3]),
        ("[1, 1]", vec![8, 9], [1, 9, 3]),
        ("[-1, 0, 2, 0]", vec![5, 6, 0, 7], [7, 2, 0]),
        ("[2, 0, 2, 1, 0]", vec![5, 0, 6, 0, 0], [0, 0, 6]),
    ] {
        let mut t = value(&[1, 2, 3]).unwrap();
        let dense = DenseTensor::from_vec([written.len()], written.clone()).unwrap();
        let mut by_dense = t.try_clone().unwrap();
        let index = parse_index(index).unwrap();
        by_dense.set(&index, &dense).unwrap();
        t.set(&index, &value(&written).unwrap()).unwrap();
        assert_eq!(t.to_dense().unwrap().as_slice::<i32>().unwrap(), expected, "{written:?}");
        assert_eq!(t.to_dense().unwrap(), by_dense.to_dense().unwrap());
    }
}

#[test]
fn rounding_takes_any_number_of_decimals() {
    let t = DokTensor::from_dense(&DenseTensor::from_vec([2], vec![1234.5f64, -0.25]).unwrap());
    let t = t.unwrap();
    for single in [false, true] {
        let t = if single { t.cast(DType::F32).unwrap() } else { t.try_clone().unwrap() };
        for (decimals, expected) in
            [(i32::MIN, [0.0, 0.0]), (-400, [0.0, 0.0]), (i32::MAX, [1234.5, -0.25])]
        {
            let rounded = t.round(decimals).unwrap().cast(DType::F64).unwrap().to_dense().unwrap();
            assert_eq!(rounded.as_slice::<f64>().unwrap(), expected, "{decimals}");
        }
    }
}

#[test]
fn limits_count_intermediate_results() {
    let ones = DenseTensor::from_vec([1000], vec![1i8; 1000]).unwrap();
    let mut column = DokTensor::from_dense(&ones).unwrap().reshape(&[1000, 1]).unwrap();
    // Products of int8 are accumulated in 16 bytes per element.
    let row = ones.reshape([1, 1000]).unwrap();
    column.set_dense_limit(Some(17_000_000));
    assert!(column.matmul_dense(&row).is_ok());
    column.set_dense_limit(Some(16_999_999));
    assert!(matches!(column.matmul_dense(&row).unwrap_err(), Error::TooLarge { .. }));
    let mut flat = DokTensor::from_dense(&ones).unwrap();
    flat.set_dense_limit(Some(16_000));
    assert_eq!(flat.to_ragged().unwrap().len(), 1000);
    flat.set_dense_limit(Some(15_999));
    assert!(matches!(flat.to_ragged().unwrap_err(), Error::TooLarge { .. }));
    flat.set_dense_limit(Some(2000));
    assert_eq!(flat.add_dense(&ones).unwrap().as_slice::<i8>().unwrap(), [2; 1000]);
    flat.set_dense_limit(Some(1999));
    assert!(matches!(flat.add_dense(&ones).unwrap_err(), Error::TooLarge { .. }));
}

#[test]
fn dense_sums_are_the_same_in_any_number_of_blocks() {
    let n = 3 * (1 << 16) + 5;
    let values: Vec<i32> = (0..n).map(|i| i % 7 - 3).collect();
    let d = DenseTensor::from_vec([n as usize], values.clone()).unwrap();
    let t = DokTensor::from_dense(&d).unwrap();
    let by = DenseTensor::from_vec([1], vec![0.5f32]).unwrap();
    let sum = t.add_dense(&by).unwrap();
    let expected: Vec<f64> = values.iter().map(|v| f64::from(*v) + 0.5).collect();
    assert_eq!(sum.as_slice::<f64>().unwrap(), expected);
    let top = DenseTensor::from_vec([1], vec![i32::MAX]).unwrap();
    assert!(t.add_dense(&top).is_err());
}

#[test]
fn views_and_indices_that_repeat_entries_are_limited() {
    let mut t = DokTensor::new([4, 4], DType::I32).unwrap();
    t.set_at(&[0, 0], 7).unwrap();
    // A view or an index with 2^40 positions that all refer to one entry.
    let zeros = vec![0i64; 1 << 20];
    let view = t.index_select(0, &zeros).unwrap().index_select(1, &zeros).unwrap();
    assert_eq!(view.shape(), [1 << 20, 1 << 20]);
    let index = [Index::from(zeros.clone()), Index::from(zeros)];
    for e in [
        view.indices().unwrap_err(),
        t.index_orthogonal_sparse(&index).unwrap_err(),
        t.set_orthogonal(&index, 0).unwrap_err(),
    ] {
        assert!(matches!(e, Error::TooLarge { .. }), "{e}");
    }
    assert_eq!(t.nnz().unwrap(), 1);
    let column = IndexArray::try_new([1 << 20, 1], vec![0i64; 1 << 20]).unwrap();
    let index = [Index::Array(column), Index::from(vec![0i64; 1 << 20])];
    let e = t.index_sparse(&index).unwrap_err();
    assert!(matches!(e, Error::TooLarge { .. }), "{e}");
}

#[test]
fn indices_of_csr_must_be_integers() {
    let (rows, columns) = (vec![0.0f64, 1.5, 2.0], vec![0.0f64, 1.0]);
    let whole = DenseTensor::from_vec([3], vec![0i64, 1, 2]).unwrap();
    let values = DenseTensor::from_vec([2], vec![1i32, 2]).unwrap();
    let rows = DenseTensor::from_vec([3], rows).unwrap();
    let columns = DenseTensor::from_vec([2], columns).unwrap();
    let few = DenseTensor::from_vec([2], vec![0u8, 1]).unwrap();
    assert!(DokTensor::from_csr([2, 2], &whole, &few, &values).is_ok());
    for (rows, columns, name) in [(&rows, &few, "crow_indices"), (&whole, &columns, "col_indices")]
    {
        let e = DokTensor::from_csr([2, 2], rows, columns, &values).unwrap_err().to_string();
        assert!(e.contains(&format!("{name} must be integers, but have the type float64")), "{e}");
    }
}
