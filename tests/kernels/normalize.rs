//! Softmax, norms and normalization.

use std::sync::Arc;

use arrow::array::{AsArray, Float32Array};
use arrow::datatypes::{DataType, Float32Type};
use proptest::prelude::*;
use serrate::array::RaggedArray;
use serrate::kernels::normalize::{log_softmax, normalize, softmax};

use crate::common::torture::{
    Node, Spec, assert_alike, decode_ragged, draw_torture, one_of, seed_random,
};
use crate::configure_cases;
use crate::support::{make_ints, make_row, shares_lists};

proptest! {
    #![proptest_config(configure_cases(400))]

    #[test]
    fn softmax_and_norms_equal_the_reference(seed: u64, levels in 1usize..4, axis in 1usize..4) {
        let mut rng = seed_random(seed);
        let axis = axis.min(levels);
        let leaf = one_of(&[DataType::Int16, DataType::Float32, DataType::Float64], &mut rng);
        let case = draw_torture(&Spec { reach: 6, ..Spec::new(levels, leaf.clone()) }, &mut rng);
        let a = case.ragged();
        let at = i64::try_from(axis).unwrap();
        // Collects the leaves that lie along the axis, grouped by their positions on the other
        // axes.
        fn groups(
            node: &Node, path: &[usize], axis: usize, levels: usize, level: usize,
            out: &mut std::collections::BTreeMap<Vec<usize>, Vec<f64>>,
        ) {
            if level == levels {
                if let Some(x) = node.float() {
                    out.entry(path.to_vec()).or_default().push(x);
                }
                return;
            }
            for (i, child) in node.children().iter().enumerate() {
                let mut path = path.to_vec();
                if level + 1 != axis {
                    path.push(i);
                }
                groups(child, &path, axis, levels, level + 1, out);
            }
        }
        fn rewritten(
            node: &Node, path: &[usize], axis: usize, levels: usize, level: usize,
            value: &dyn Fn(&[usize], f64) -> f64,
        ) -> Node {
            if node.is_null() {
                return Node::Null;
            }
            if level == levels {
                return Node::Float(value(path, node.float().unwrap()));
            }
            Node::List(node.children().iter().enumerate().map(|(i, child)| {
                let mut path = path.to_vec();
                if level + 1 != axis {
                    path.push(i);
                }
                rewritten(child, &path, axis, levels, level + 1, value)
            }).collect())
        }
        let mut all = std::collections::BTreeMap::new();
        for (i, row) in case.rows.iter().enumerate() {
            groups(row, &[i], axis, levels, 0, &mut all);
        }
        let norm = |v: &[f64], p: f64| v.iter().map(|x| x.abs().powf(p)).sum::<f64>().powf(1.0 / p);
        let sum = |v: &[f64]| {
            let max = v.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            (max, v.iter().map(|x| (x - max).exp()).sum::<f64>())
        };
        let check = |found: RaggedArray, value: &dyn Fn(&[f64], f64) -> f64| {
            let expected: Vec<Node> = case.rows.iter().enumerate().map(|(i, row)| {
                rewritten(row, &[i], axis, levels, 0, &|path, x| value(&all[path], x))
            }).collect();
            assert_alike(&decode_ragged(&found), &expected);
            shares_lists(&found, &a);
        };
        check(softmax(&a, at).unwrap(), &|v, x| (x - sum(v).0).exp() / sum(v).1);
        check(log_softmax(&a, at).unwrap(), &|v, x| x - sum(v).0 - sum(v).1.ln());
        check(normalize(&a, at, 2.0, 1e-12).unwrap(), &|v, x| x / norm(v, 2.0).max(1e-12));
        check(normalize(&a, at, 1.0, 2.0).unwrap(), &|v, x| x / norm(v, 1.0).max(2.0));
        check(normalize(&a, at, 3.0, 1e-12).unwrap(), &|v, x| x / norm(v, 3.0).max(1e-12));
        check(normalize(&a, at, f64::INFINITY, 1e-12).unwrap(), &|v, x| {
            x / v.iter().fold(1e-12, |m: f64, x| m.max(x.abs()))
        });
        #[allow(clippy::cast_precision_loss)]
        check(normalize(&a, at, 0.0, 1e-12).unwrap(), &|v, x| {
            x / (v.iter().filter(|x| **x != 0.0).count() as f64).max(1e-12)
        });
    }
}

#[test]
fn softmax_accepts_large_infinite_and_nan_values() {
    let of = |v: Vec<f32>| {
        let out = softmax(&make_row(Arc::new(Float32Array::from(v))), -1).unwrap();
        out.leaves().as_primitive::<Float32Type>().values().to_vec()
    };
    assert_eq!(of(vec![1000.0, 1000.0]), [0.5, 0.5]);
    assert_eq!(of(vec![f32::NEG_INFINITY, 0.0]), [0.0, 1.0]);
    assert!(of(vec![f32::NEG_INFINITY]).iter().all(|v| v.is_nan()));
    assert!(of(vec![f32::NAN, 1.0]).iter().all(|v| v.is_nan()));
    assert!(normalize(&make_row(make_ints(&[1])), -1, -1.0, 0.0).is_err());
    assert!(softmax(&make_row(make_ints(&[1])), 0).is_err());
}
