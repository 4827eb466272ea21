//! String predicates on dictionaries compared with those on plain strings, and both with methods of
//! `str`.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, DictionaryArray, PrimitiveArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowDictionaryKeyType, DataType, Int8Type, Int64Type, UInt16Type, UInt32Type,
};
use proptest::prelude::*;
use rand::RngExt;
use serrate::array::RaggedArray;
use serrate::kernels::elementwise::{BinaryOp, Operand, binary};
use serrate::kernels::text::{TextTest, test};

use crate::common::torture::{
    Node, Random, Spec, assert_alike, decode_ragged, draw_torture, one_of, seed_random,
};
use crate::configure_cases;
use crate::support::is_met;

pub(crate) const WORDS: [&str; 9] =
    ["", "a", "A", "ab", "LAB//1", "LAB//2", "lab//1", "a%b", "\u{e9}t\u{e9}"];

/// Encodes strings as a dictionary whose values are in random order and may be repeated, null or
/// unused.
fn encode_dictionary<K: ArrowDictionaryKeyType>(texts: &ArrayRef, rng: &mut Random) -> ArrayRef
where
    K::Native: TryFrom<usize>,
{
    let texts = texts.as_string::<i32>();
    let mut values: Vec<Option<&str>> = texts.iter().collect();
    values.sort_unstable();
    values.dedup();
    values.extend((0..rng.random_range(0..4)).map(|_| Some(*one_of(&WORDS, rng))));
    if rng.random() {
        values.push(None);
    }
    for i in (1..values.len()).rev() {
        values.swap(i, rng.random_range(0..=i));
    }
    let keys = texts.iter().map(|t| {
        let places: Vec<usize> = (0..values.len()).filter(|i| values[*i] == t).collect();
        match t {
            // A null string has a null key or the key of a null value.
            None if places.is_empty() || rng.random() => None,
            _ => K::Native::try_from(*one_of(&places, rng)).ok(),
        }
    });
    let keys: PrimitiveArray<K> = keys.collect();
    let values = Arc::new(StringArray::from(values));
    Arc::new(DictionaryArray::<K>::try_new(keys, values).unwrap())
}

pub(crate) fn encode_texts(array: &RaggedArray, rng: &mut Random) -> RaggedArray {
    let texts = array.leaves();
    let leaves = match rng.random_range(0..6) {
        0 => encode_dictionary::<Int8Type>(texts, rng),
        1 => encode_dictionary::<UInt16Type>(texts, rng),
        2 => encode_dictionary::<UInt32Type>(texts, rng),
        3 => encode_dictionary::<Int64Type>(texts, rng),
        4 => cast(texts, &DataType::LargeUtf8).unwrap(),
        _ => cast(texts, &DataType::Utf8View).unwrap(),
    };
    array.with_leaves(leaves).unwrap()
}

/// Draws an array whose strings are from `WORDS`, with the lists of the torture generator. Returns
/// it with its rows.
pub(crate) fn draw_texts(seed: u64, levels: usize) -> (RaggedArray, Vec<Node>, Random) {
    let mut rng = seed_random(seed);
    let case = draw_torture(&Spec::new(levels, DataType::Utf8), &mut rng);
    let array = case.ragged();
    let words: StringArray = (array.leaves().as_string::<i32>().iter())
        .map(|t| t.map(|_| *one_of(&WORDS, &mut rng)))
        .collect();
    let array = array.with_leaves(Arc::new(words)).unwrap();
    let rows = decode_ragged(&array);
    (array, rows, rng)
}

pub(crate) fn map_texts(
    rows: &[Node],
    levels: usize,
    of: impl Fn(&str) -> Option<bool>,
) -> Vec<Node> {
    let mut leaf = |node: &Node| match node {
        Node::Text(t) => of(t).map_or(Node::Null, Node::Bool),
        _ => Node::Null,
    };
    rows.iter().map(|r| r.map_at(levels, &mut leaf)).collect()
}

proptest! {
    #![proptest_config(configure_cases(300))]

    #[test]
    fn comparisons_of_dictionaries_equal_those_of_their_strings(seed: u64, levels in 1usize..4) {
        let (plain, rows, mut rng) = draw_texts(seed, levels);
        let coded = encode_texts(&plain, &mut rng);
        let op = *one_of(&[BinaryOp::Eq, BinaryOp::NotEq, BinaryOp::Lt, BinaryOp::LtEq, BinaryOp::Gt, BinaryOp::GtEq], &mut rng);
        let word = *one_of(&WORDS, &mut rng);
        let literal: ArrayRef = Arc::new(StringArray::from(vec![word]));
        let compare = |o| Some(is_met(op, o));
        for array in [&plain, &coded] {
            let found = binary(op, Operand::Array(array), Operand::Scalar(&literal)).unwrap();
            assert_alike(
                &decode_ragged(&found),
                &map_texts(&rows, levels, |t| compare(t.cmp(word))),
            );
            let found = binary(op, Operand::Scalar(&literal), Operand::Array(array)).unwrap();
            assert_alike(
                &decode_ragged(&found),
                &map_texts(&rows, levels, |t| compare(word.cmp(t))),
            );
        }
        // In a slice of the rows, offsets and keys do not start at 0.
        let from = rng.random_range(0..=coded.len());
        let part = coded.slice(from, coded.len() - from).unwrap();
        let found = binary(op, Operand::Array(&part), Operand::Scalar(&literal)).unwrap();
        let rest = map_texts(&rows[from..], levels, |t| compare(t.cmp(word)));
        assert_alike(&decode_ragged(&found), &rest);
    }

    #[test]
    fn predicates_of_dictionaries_equal_those_of_their_strings(seed: u64, levels in 1usize..4) {
        let (plain, rows, mut rng) = draw_texts(seed, levels);
        let coded = encode_texts(&plain, &mut rng);
        type Case = (TextTest<'static>, fn(&str) -> bool);
        let cases: [Case; 6] = [
            (TextTest::Like("LAB//%"), |t| t.starts_with("LAB//")),
            (TextTest::Like("%b%"), |t| t.contains('b')),
            (TextTest::Like("a\\%_"), |t| t == "a%b"),
            (TextTest::ILike("lab//_"), |t| t.to_lowercase().starts_with("lab//")),
            (TextTest::StartsWith("a"), |t| t.starts_with('a')),
            (TextTest::Matches { pattern: "[0-9]$|^A", flags: None }, |t| {
                t.starts_with('A') || t.ends_with(|c: char| c.is_ascii_digit())
            }),
        ];
        let (question, answer) = *one_of(&cases, &mut rng);
        for array in [&plain, &coded] {
            let found = test(array, question).unwrap();
            assert_alike(&decode_ragged(&found), &map_texts(&rows, levels, |t| Some(answer(t))));
        }
    }
}
