//! Sorting, ranks and distinct values.

use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray, Float32Array, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type, TimeUnit};
use proptest::prelude::*;
use rand::RngExt;
use serrate::array::RaggedArray;
use serrate::kernels::sort::{SortOrder, argsort, is_sorted, rank, sort, sort_by, unique};

use crate::common::torture::{
    Node, Spec, assert_alike, build_plain, decode_ragged, draw_torture, draw_tree, one_of,
    seed_random,
};
use crate::configure_cases;
use crate::support::{LEAVES, compare_nodes, make_lists};

/// Returns the positions of the values in sorted order; equal values keep their order.
fn sort_indices(values: &[Node], order: SortOrder) -> Vec<usize> {
    let mut places: Vec<usize> = (0..values.len()).filter(|i| !values[*i].is_null()).collect();
    let nulls: Vec<usize> = (0..values.len()).filter(|i| values[*i].is_null()).collect();
    places.sort_by(|a, b| {
        let found = compare_nodes(&values[*a], &values[*b]);
        if order.descending { found.reverse() } else { found }
    });
    if order.nulls_first { [nulls, places].concat() } else { [places, nulls].concat() }
}

fn map_lists(rows: &[Node], levels: usize, f: &dyn Fn(&[Node]) -> Vec<Node>) -> Vec<Node> {
    let list = &mut |l: &Node| match l {
        Node::Null => Node::Null,
        l => Node::List(f(l.children())),
    };
    rows.iter().map(|r| r.map_at(levels - 1, list)).collect()
}

const ORDERS: [SortOrder; 4] = [
    SortOrder { descending: false, nulls_first: false },
    SortOrder { descending: true, nulls_first: false },
    SortOrder { descending: false, nulls_first: true },
    SortOrder { descending: true, nulls_first: true },
];

proptest! {
    #![proptest_config(configure_cases(150))]

    #[test]
    fn lists_are_sorted_ranked_and_made_distinct_like_the_reference(seed: u64, levels in 1usize..4) {
        let mut rng = seed_random(seed);
        let leaf = one_of(&LEAVES, &mut rng).clone();
        let mut spec = Spec::new(levels, leaf.clone());
        spec.reach = *one_of(&[2, 100], &mut rng);
        spec.odd_floats = true;
        spec.null_leaves = seed % 3 != 0;
        let case = draw_torture(&spec, &mut rng);
        let a = case.ragged();
        for order in ORDERS {
            let places = |v: &[Node]| sort_indices(v, order);
            let values = |v: &[Node]| places(v).into_iter().map(|i| v[i].clone()).collect();
            assert_alike(
                &decode_ragged(&sort(&a, order).unwrap()),
                &map_lists(&case.rows, levels, &values),
            );
            let numbers = |v: &[Node]| places(v).into_iter().map(|i| Node::Int(i as i64)).collect();
            assert_alike(
                &decode_ragged(&argsort(&a, order).unwrap()),
                &map_lists(&case.rows, levels, &numbers),
            );
            let ranks = |v: &[Node]| {
                let places = sort_indices(v, SortOrder { nulls_first: false, ..order });
                let mut out = vec![Node::Null; v.len()];
                for (rank, i) in places.into_iter().enumerate().filter(|(_, i)| !v[*i].is_null()) {
                    out[i] = Node::Int(rank as i64);
                }
                out
            };
            assert_alike(
                &decode_ragged(&rank(&a, order).unwrap()),
                &map_lists(&case.rows, levels, &ranks),
            );
            let flags = is_sorted(&a, order).unwrap();
            let list = &mut |l: &Node| match l {
                Node::Null => Node::Null,
                l => Node::Bool(places(l.children()).is_sorted()),
            };
            let expected: Vec<Node> = case.rows.iter().map(|r| r.map_at(levels - 1, list)).collect();
            assert_alike(&decode_ragged(&flags), &expected);
        }
        let different = |v: &[Node]| {
            let mut out: Vec<Node> = Vec::new();
            for i in sort_indices(v, SortOrder::ASCENDING).into_iter().filter(|i| !v[*i].is_null()) {
                if out.last().is_none_or(|l| compare_nodes(l, &v[i]).is_ne()) {
                    out.push(v[i].clone());
                }
            }
            out
        };
        assert_alike(
            &decode_ragged(&unique(&a).unwrap()),
            &map_lists(&case.rows, levels, &different),
        );
        if leaf == DataType::Utf8 {
            let tagged = DataType::Dictionary(Box::new(DataType::UInt16), Box::new(DataType::Utf8));
            let tagged = a.with_leaves(cast(a.leaves(), &tagged).unwrap()).unwrap();
            let found = sort(&tagged, SortOrder::DESCENDING).unwrap();
            let found = found.with_leaves(cast(found.leaves(), &DataType::Utf8).unwrap()).unwrap();
            prop_assert_eq!(
                decode_ragged(&found),
                decode_ragged(&sort(&a, SortOrder::DESCENDING).unwrap()),
            );
        }
    }

    #[test]
    fn sort_by_equals_the_reference_on_any_axis(seed: u64, levels in 1usize..4) {
        let mut rng = seed_random(seed);
        let leaf = one_of(&[DataType::Int8, DataType::Utf8, DataType::Float64], &mut rng).clone();
        let case = draw_torture(&Spec::new(levels, leaf), &mut rng);
        let axis = rng.random_range(1..=levels);
        let times = Spec { reach: 4, ..Spec::new(0, DataType::Int32) };
        let keys: Vec<Node> = case.rows.iter().map(|r| times_of(r, axis, &times, &mut rng)).collect();
        let by = build_plain(axis, &DataType::Int32, &keys);
        for order in ORDERS {
            let found = sort_by(&case.ragged(), &by, order).unwrap();
            let expected: Vec<Node> = case.rows.iter().zip(&keys)
                .map(|(r, k)| sorted_by(r, k, axis, order)).collect();
            assert_alike(&decode_ragged(&found), &expected);
        }
    }
}

fn times_of(
    row: &Node,
    levels: usize,
    spec: &Spec,
    rng: &mut crate::common::torture::Random,
) -> Node {
    match (levels, row) {
        (0, _) => draw_tree(spec, &[], rng),
        (_, Node::Null) => Node::Null,
        (n, row) => {
            Node::List(row.children().iter().map(|c| times_of(c, n - 1, spec, rng)).collect())
        }
    }
}

fn sorted_by(row: &Node, keys: &Node, levels: usize, order: SortOrder) -> Node {
    if row.is_null() {
        return Node::Null;
    }
    let (children, keys) = (row.children(), keys.children());
    Node::List(match levels {
        1 => sort_indices(keys, order).into_iter().map(|i| children[i].clone()).collect(),
        n => children.iter().zip(keys).map(|(c, k)| sorted_by(c, k, n - 1, order)).collect(),
    })
}

#[test]
fn nan_of_either_sign_sorts_last_and_zeros_are_equal() {
    let odd = vec![f32::NAN, -1.0, -f32::NAN, 0.0, -0.0, f32::INFINITY];
    let a = make_lists(&[6], Arc::new(Float32Array::from(odd)));
    let found = sort(&a, SortOrder::ASCENDING).unwrap();
    let found = found.leaves().as_primitive::<Float32Type>().values().to_vec();
    assert_eq!(found[..4], [-1.0, 0.0, 0.0, f32::INFINITY]);
    assert!(found[4].is_nan() && found[5].is_nan());
    let down = sort(&a, SortOrder::DESCENDING).unwrap();
    assert!(down.leaves().as_primitive::<Float32Type>().value(1).is_nan());
    assert_eq!(unique(&a).unwrap().lengths(1).unwrap(), [4]);
}

#[test]
fn sorted_times_keep_their_type_and_keys_must_fit() {
    let times = arrow::array::TimestampSecondArray::from(vec![9, 3, 5]).with_timezone("UTC");
    let a = make_lists(&[2, 1], Arc::new(times));
    let found = sort(&a, SortOrder::ASCENDING).unwrap();
    assert_eq!(found.leaf_type(), &DataType::Timestamp(TimeUnit::Second, Some("UTC".into())));
    assert_eq!(decode_ragged(&found)[0], Node::List(vec![Node::Int(3), Node::Int(9)]));
    let flat = RaggedArray::try_new(1, vec![], Arc::new(Int64Array::from(vec![1]))).unwrap();
    assert!(sort(&flat, SortOrder::ASCENDING).unwrap_err().to_string().contains("has no lists"));
    assert!(sort_by(&a, &flat, SortOrder::ASCENDING).is_err());
    let flags = make_lists(&[3], Arc::new(BooleanArray::from(vec![true, false, true])));
    let e = sort_by(&a, &flags, SortOrder::ASCENDING).unwrap_err().to_string();
    assert!(e.contains("2 row(s) on the left and 1 on the right"), "{e}");
}
