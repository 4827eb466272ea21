//! Elementwise functions of one value.

use std::sync::Arc;

use arrow::array::{AsArray, Float64Array, UInt8Array};
use arrow::datatypes::DataType;
use proptest::prelude::*;
use serrate::kernels::unary::{UnaryOp, round, unary};

use crate::common::torture::{
    Node, Spec, assert_alike, decode_ragged, draw_torture, one_of, seed_random,
};
use crate::configure_cases;
use crate::support::{make_ints, make_row, shares_lists};

proptest! {
    #![proptest_config(configure_cases(400))]

    #[test]
    fn functions_of_one_number_equal_the_reference(seed: u64, levels in 1usize..4) {
        let mut rng = seed_random(seed);
        let leaf = one_of(&[DataType::Int16, DataType::Float32, DataType::Float64], &mut rng);
        let spec = Spec { odd_floats: true, ..Spec::new(levels, leaf.clone()) };
        let case = draw_torture(&spec, &mut rng);
        let a = case.ragged();
        type Reference = fn(f64) -> f64;
        let all: [(UnaryOp, Reference, bool); 11] = [
            (UnaryOp::Neg, |x| -x, true),
            (UnaryOp::Abs, f64::abs, true),
            (UnaryOp::Sign, |x| if x == 0.0 || x.is_nan() { x } else { x.signum() }, true),
            (UnaryOp::Ceil, f64::ceil, true),
            (UnaryOp::Floor, f64::floor, true),
            (UnaryOp::Round(0), f64::round_ties_even, true),
            (UnaryOp::Sqrt, f64::sqrt, false),
            (UnaryOp::Exp, f64::exp, false),
            (UnaryOp::Ln, f64::ln, false),
            (UnaryOp::Log2, f64::log2, false),
            (UnaryOp::Log10, f64::log10, false),
        ];
        for (function, reference, keeps) in all {
            let expected: Vec<Node> = case.rows.iter().map(|r| r.map_at(levels, &mut |l| {
                let Some(x) = l.float() else { return Node::Null };
                let y = reference(x);
                if keeps && leaf.is_integer() { Node::Int(y as i64) } else { Node::Float(y) }
            })).collect();
            assert_alike(&decode_ragged(&unary(function, &a).unwrap()), &expected);
            let out = unary(function, &a).unwrap();
            prop_assert_eq!(out.leaf_type(), &function.output_type(leaf).unwrap());
            shares_lists(&out, &a);
        }
        let nulls: Vec<Node> = case.rows.iter()
            .map(|r| r.map_at(levels, &mut |l| Node::Bool(l.is_null()))).collect();
        assert_alike(&decode_ragged(&unary(UnaryOp::IsNull, &a).unwrap()), &nulls);
        let nans: Vec<Node> = case.rows.iter().map(|r| r.map_at(levels, &mut |l| match l {
            Node::Null => Node::Null,
            l => Node::Bool(l.float().unwrap().is_nan()),
        })).collect();
        assert_alike(&decode_ragged(&unary(UnaryOp::IsNan, &a).unwrap()), &nans);
    }
}

#[test]
fn rounding_equals_that_of_numpy() {
    let of = |v: Vec<f64>, d| {
        let out = round(&make_row(Arc::new(Float64Array::from(v))), d).unwrap();
        out.leaves().as_primitive::<arrow::datatypes::Float64Type>().values().to_vec()
    };
    assert_eq!(of(vec![0.5, 1.5, -2.5, 2.4], 0), [0.0, 2.0, -2.0, 2.0]);
    assert_eq!(of(vec![1.25, -0.125, 1e300], 1), [1.2, -0.1, 1e300]);
    assert_eq!(of(vec![125.0, 135.0, -149.0], -1), [120.0, 140.0, -150.0]);
    assert_eq!(of(vec![1.5], 400), [1.5]);
    let whole = |v: &[i64], d| round(&make_row(make_ints(v)), d).unwrap();
    assert_eq!(whole(&[125, 135, -149, 7], -1), make_row(make_ints(&[120, 140, -150, 10])));
    assert_eq!(whole(&[125, i64::MAX], -30), make_row(make_ints(&[0, 0])));
    assert_eq!(whole(&[125], 3), make_row(make_ints(&[125])));
    let bytes = make_row(Arc::new(UInt8Array::from(vec![255])));
    assert!(round(&bytes, -1).unwrap_err().to_string().contains("wider"));
    assert!(unary(UnaryOp::Abs, &make_row(make_ints(&[i64::MIN]))).is_err());
    assert!(unary(UnaryOp::Neg, &bytes).is_err());
    assert!(
        unary(UnaryOp::Sqrt, &make_row(Arc::new(arrow::array::StringArray::from(vec!["x"]))))
            .is_err()
    );
}
