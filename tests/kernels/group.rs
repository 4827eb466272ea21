//! Grouping of the elements of each list by keys.

use std::sync::Arc;

use arrow::array::{Float32Array, Int64Array, StringArray, StructArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields};
use proptest::prelude::*;
use rand::RngExt;
use serrate::array::RaggedArray;
use serrate::kernels::group::{group, group_keys, group_on};
use serrate::kernels::reduce::sum;

use crate::common::torture::{
    Node, Random, Spec, assert_alike, build_plain, decode_ragged, decode_rows, draw_torture,
    draw_tree, one_of, seed_random,
};
use crate::configure_cases;
use crate::support::{compare_nodes, make_lists};

/// Returns the distinct keys in sorted order, null last.
fn list_different(keys: &[Node]) -> Vec<Node> {
    let mut out = keys.to_vec();
    out.sort_by(compare_nodes);
    out.dedup_by(|a, b| compare_nodes(a, b).is_eq());
    out
}

fn list_members(elements: &[Node], keys: &[Node], key: &Node) -> Node {
    let own = elements.iter().zip(keys).filter(|(_, k)| compare_nodes(k, key).is_eq());
    Node::List(own.map(|(e, _)| e.clone()).collect())
}

fn group_row(row: &Node, keys: &Node, levels: usize) -> Node {
    if row.is_null() || keys.is_null() {
        return Node::Null;
    }
    let (row, keys) = (row.children(), keys.children());
    Node::List(match levels {
        1 => list_different(keys).iter().map(|key| list_members(row, keys, key)).collect(),
        n => row.iter().zip(keys).map(|(r, k)| group_row(r, k, n - 1)).collect(),
    })
}

fn grouped_on(row: &Node, keys: &Node, wanted: &Node, levels: usize, own: usize) -> Node {
    // If a null list of wanted keys applies to several lists of the row, each of them becomes null.
    if row.is_null() || keys.is_null() || (wanted.is_null() && (own > 1 || levels == 1)) {
        return Node::Null;
    }
    let (row, keys) = (row.children(), keys.children());
    Node::List(match levels {
        1 => wanted.children().iter().map(|key| list_members(row, keys, key)).collect(),
        n => row
            .iter()
            .zip(keys)
            .enumerate()
            .map(|(i, (r, k))| match own {
                1 => grouped_on(r, k, wanted, n - 1, 1),
                own => grouped_on(r, k, &wanted.children()[i], n - 1, own - 1),
            })
            .collect(),
    })
}

/// Draws a key for each element of axis `levels` of a row. Null lists stay null.
fn keys_of(row: &Node, levels: usize, spec: &Spec, rng: &mut Random) -> Node {
    match (levels, row) {
        (0, _) => draw_tree(spec, &[], rng),
        (_, Node::Null) => Node::Null,
        (n, row) => {
            Node::List(row.children().iter().map(|c| keys_of(c, n - 1, spec, rng)).collect())
        }
    }
}

/// Draws a list of keys for each list of axis `levels` of a row, for which `group_on` returns the
/// groups.
fn wanted_of(row: &Node, levels: usize, spec: &Spec, rng: &mut Random) -> Node {
    match (levels, row) {
        (1, _) if rng.random_range(0..8) == 0 => Node::Null,
        (1, _) => {
            Node::List((0..rng.random_range(0..4)).map(|_| draw_tree(spec, &[], rng)).collect())
        }
        (_, Node::Null) => Node::Null,
        (n, row) => {
            Node::List(row.children().iter().map(|c| wanted_of(c, n - 1, spec, rng)).collect())
        }
    }
}

const KEYS: [DataType; 7] = [
    DataType::Int8,
    DataType::Int64,
    DataType::UInt16,
    DataType::Float32,
    DataType::Float64,
    DataType::Boolean,
    DataType::Utf8,
];

proptest! {
    #![proptest_config(configure_cases(200))]

    #[test]
    fn group_keys_are_the_distinct_values_in_order(seed: u64, levels in 1usize..4) {
        let mut rng = seed_random(seed);
        let leaf = one_of(&KEYS, &mut rng).clone();
        let mut spec = Spec::new(levels, leaf.clone());
        // Few or many distinct keys, in short and in long lists.
        spec.reach = if seed % 2 == 0 { 3 } else { 100 };
        spec.longest = if levels == 1 { 40 } else { 5 };
        spec.odd_floats = true;
        spec.null_leaves = seed % 3 != 0;
        let case = draw_torture(&spec, &mut rng);
        let list = &mut |l: &Node| match l {
            Node::Null => Node::Null,
            l => Node::List(list_different(l.children())),
        };
        let expected: Vec<Node> = case.rows.iter().map(|r| r.map_at(levels - 1, list)).collect();
        let found = group_keys(&case.ragged()).unwrap();
        assert_alike(&decode_ragged(&found), &expected);
        if leaf == DataType::Utf8 {
            let tagged = DataType::Dictionary(Box::new(DataType::Int32), Box::new(leaf));
            let plain = case.ragged();
            for other in [tagged, DataType::LargeUtf8, DataType::Utf8View] {
                let keys = plain.with_leaves(cast(plain.leaves(), &other).unwrap()).unwrap();
                let found = group_keys(&keys).unwrap();
                let texts = cast(found.leaves(), &DataType::Utf8).unwrap();
                assert_alike(&decode_ragged(&found.with_leaves(texts).unwrap()), &expected);
            }
        }
    }

    #[test]
    fn group_and_group_on_equal_the_reference_on_any_axis(seed: u64, levels in 1usize..4) {
        let mut rng = seed_random(seed);
        let leaf = one_of(&[DataType::Int16, DataType::Utf8, DataType::Float64], &mut rng).clone();
        let case = draw_torture(&Spec::new(levels, leaf), &mut rng);
        let axis = rng.random_range(1..=levels);
        let key = one_of(&KEYS, &mut rng).clone();
        let spec = Spec { reach: 2, odd_floats: true, ..Spec::new(0, key.clone()) };
        let mut keys: Vec<Node> =
            case.rows.iter().map(|r| keys_of(r, axis, &spec, &mut rng)).collect();
        // A row may have null in the keys although it has elements.
        if let Some(row) = keys.first_mut().filter(|_| seed % 5 == 0) {
            *row = Node::Null;
        }
        let by = build_plain(axis, &key, &keys);
        let found = group(&case.ragged(), &by).unwrap();
        let expected: Vec<Node> =
            case.rows.iter().zip(&keys).map(|(r, k)| group_row(r, k, axis)).collect();
        assert_alike(&decode_ragged(&found), &expected);

        let own = rng.random_range(1..=axis);
        let wanted: Vec<Node> =
            case.rows.iter().map(|r| wanted_of(r, own, &spec, &mut rng)).collect();
        let groups = build_plain(own, &key, &wanted);
        let found = group_on(&case.ragged(), &by, &groups).unwrap();
        let expected: Vec<Node> = case.rows.iter().zip(keys.iter().zip(&wanted))
            .map(|(r, (k, w))| grouped_on(r, k, w, axis, own)).collect();
        assert_alike(&decode_ragged(&found), &expected);
    }
}

#[test]
fn structs_are_grouped_by_all_their_fields() {
    let fields: Fields =
        vec![Field::new("a", DataType::Utf8, true), Field::new("b", DataType::Int64, true)].into();
    let a = StringArray::from(vec![Some("x"), None, Some("x"), Some("w"), None]);
    let b = Int64Array::from(vec![2, 1, 2, 9, 1]);
    let structs = StructArray::new(fields, vec![Arc::new(a), Arc::new(b)], None);
    let keys = make_lists(&[5], Arc::new(structs));
    let values = make_lists(&[5], Arc::new(Int64Array::from(vec![1, 2, 3, 4, 5])));
    let sums = sum(&group(&values, &keys).unwrap(), Some(-1)).unwrap();
    assert_eq!(decode_rows(sums.leaves()), [4, 4, 7].map(Node::Int));
    assert_eq!(group_keys(&keys).unwrap().lengths(1).unwrap(), [3]);
}

#[test]
fn nan_of_either_sign_is_one_key_and_so_are_zeros() {
    let odd = vec![f32::NAN, -0.0, -f32::NAN, 0.0, -1.0];
    let keys = make_lists(&[5], Arc::new(Float32Array::from(odd)));
    let found = group_keys(&keys).unwrap();
    let bits: Vec<u32> = cast(found.leaves(), &DataType::Float32)
        .map(|a| {
            let a = a.as_any().downcast_ref::<Float32Array>().unwrap();
            a.values().iter().map(|v| v.to_bits()).collect()
        })
        .unwrap();
    assert_eq!(bits, [(-1.0f32).to_bits(), 0, f32::NAN.to_bits()]);
    assert_eq!(group(&keys, &keys).unwrap().lengths(2).unwrap(), [1, 2, 2]);
}

#[test]
fn keys_that_cannot_be_grouped_are_refused() {
    let a = make_lists(&[2, 1], Arc::new(Int64Array::from(vec![1, 2, 3])));
    let flat = RaggedArray::try_new(2, vec![], Arc::new(Int64Array::from(vec![1, 2]))).unwrap();
    assert!(group_keys(&flat).unwrap_err().to_string().contains("no lists"));
    assert!(group(&a, &flat).unwrap_err().to_string().contains("at least one"));
    let other = make_lists(&[1, 2], Arc::new(Int64Array::from(vec![1, 2, 3])));
    let e = group(&a, &other).unwrap_err().to_string();
    assert!(e.contains("2 element(s) on the left and 1 on the right"), "{e}");
    let texts = make_lists(&[1, 1], Arc::new(StringArray::from(vec!["a", "b"])));
    assert!(group_on(&a, &a, &texts).is_err());
}
