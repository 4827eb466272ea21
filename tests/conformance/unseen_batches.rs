//! Tests the runner of the batch cases with cases that the vectors do not have: other types, more
//! axes, empty batches, omitted fields and other kinds of errors.

use crate::batches::FILLER;
use crate::format::{Case, Outcome};
use crate::json::Json;
use crate::{batching_helpers, ragged_batch};

fn run_unseen(op: &str, case: &str) -> Result<Outcome, String> {
    let case = Json::parse(&format!("{{\"name\": \"unseen\", {case}}}")).unwrap();
    let case = Case::new(std::path::Path::new("."), op, &case)?;
    match ragged_batch::run(&case) {
        Err(e) if e.contains("is unknown") && e.contains("operation") => {
            batching_helpers::run(&case)
        }
        other => other,
    }
}

#[track_caller]
fn assert_passes(op: &str, case: &str) {
    assert_eq!(run_unseen(op, case), Ok(Outcome::Passed), "{op} {case}");
}

#[track_caller]
fn assert_fails(op: &str, case: &str) {
    assert!(run_unseen(op, case).is_err(), "{op} {case}");
}

fn write_tensor(dtype: &str, shape: &str, data: &str) -> String {
    format!(r#"{{"dtype": "{dtype}", "shape": [{shape}], "data": [{data}]}}"#)
}

fn write_batch(tensor: &str, sizes: &str, dim: usize, batch_dims: usize) -> String {
    format!(
        r#"{{"ragged_batch": {{"tensor": {tensor}, "sample_sizes": {sizes}, "non_uniform_dim": {dim}, "num_batch_dims": {batch_dims}}}}}"#
    )
}

fn write_input(parts: &[(&str, &str)]) -> String {
    let parts: Vec<String> = parts.iter().map(|(n, v)| format!("\"{n}\": {v}")).collect();
    format!("\"input\": {{{}}}", parts.join(", "))
}

const INDEX_ERROR: &str = r#""error": {"kind": "IndexError", "gist": "no"}"#;
const ERROR: &str = r#""error": {"kind": "AssertionError", "gist": "no"}"#;

#[test]
fn cases_of_every_type_are_read_and_written() {
    for (dtype, a, b) in [
        ("bfloat16", "1.5", "\"NaN\""),
        ("float16", "-0.5", "\"Infinity\""),
        ("float64", "1e300", "2.0"),
        ("uint64", "18446744073709551615", "0"),
        ("int8", "-128", "127"),
        ("bool", "true", "false"),
    ] {
        let data = write_tensor(dtype, "1, 2", &format!("{a}, {b}"));
        let ids = write_batch(
            &write_tensor("int32", "1, 3", "1, -2, 77"),
            &write_tensor("int32", "1", "2"),
            1,
            1,
        );
        let zero = if dtype == "bool" { "false" } else { "0" };
        let taken = write_tensor(dtype, "1, 3", &format!("{b}, {a}, {zero}"));
        let given = write_input(&[
            ("input_data", &format!("{{\"tensor\": {data}}}")),
            ("input_indices", &ids),
        ]);
        let expect = format!(
            r#""expect": {{"tensor": {taken}, "sample_sizes": {}, "non_uniform_dim": 1, "num_batch_dims": 1}}"#,
            write_tensor("int32", "1", "2")
        );
        for args in ["", r#""args": {"filler_value": 0.0, "dim_to_index_in": null},"#] {
            assert_passes("batched_indexing_access", &format!("{given}, {args} {expect}"));
        }
        assert_fails(
            "batched_indexing_access",
            &format!(r#"{given}, "args": {{"dim": 1}}, {expect}"#),
        );
        assert_fails("batched_indexing_access", &format!("{given}, {INDEX_ERROR}"));
        let written = write_input(&[
            ("to_write", &format!("{{\"tensor\": {taken}}}")),
            ("output_indices", &ids),
            ("to_write_into", &format!("{{\"tensor\": {data}}}")),
        ]);
        assert_passes(
            "batched_indexing_write",
            &format!(r#"{written}, "expect": {{"tensor": {data}}}"#),
        );
    }
}

#[test]
fn a_difference_in_filler_is_on_purpose_and_one_in_entries_a_failure() {
    let data = |filler: i64| {
        let data = write_tensor("int64", "1, 3", &format!("5, {filler}, 6"));
        write_batch(&data, &write_tensor("int64", "1", "1"), 1, 1)
    };
    let ids =
        write_batch(&write_tensor("int64", "1, 2", "0, 1"), &write_tensor("int64", "1", "2"), 1, 1);
    let case = |data: &str, found: &str| {
        let given = write_input(&[("input_data", data), ("input_indices", &ids)]);
        format!(r#"{given}, "expect": {{"tensor": {}}}"#, write_tensor("int64", "1, 2", found))
    };
    assert_passes("batched_indexing_access", &case(&data(0), "5, 0"));
    let differs = run_unseen("batched_indexing_access", &case(&data(9), "5, 9"));
    assert_eq!(differs, Ok(Outcome::Differs(FILLER)));
    // A difference in an entry is a failure.
    assert_fails("batched_indexing_access", &case(&data(9), "4, 9"));
    let items = |found: &str| {
        let given = write_input(&[("data", &data(9))]);
        let index = r#""args": {"index": [{"ellipsis": null}, {"slice": [null, 2, null]}]}"#;
        format!(r#"{given}, {index}, "expect": {}"#, write_tensor("int64", "1, 2", found))
    };
    assert_eq!(run_unseen("getitem", &items("5, 9")), Ok(Outcome::Differs(FILLER)));
    assert_passes("getitem", &items("5, 0"));
    assert_fails("getitem", &items("6, 9"));
}

#[test]
fn means_keep_the_order_of_data_axes() {
    // The shape is [1, 2, 3, 1], and the last axis is the non-uniform one. The Python library
    // returns means of shape [1, 3, 2].
    let data = write_batch(
        &write_tensor("int16", "1, 2, 3, 1", "1, 2, 3, 4, 5, 6"),
        &write_tensor("int64", "1", "1"),
        3,
        1,
    );
    let given = write_input(&[("data", &data)]);
    let case = |shape: &str, found: &str| {
        format!(r#"{given}, "expect": {}"#, write_tensor("float32", shape, found))
    };
    assert_passes("average_over_targets", &case("1, 2, 3", "1.0, 2.0, 3.0, 4.0, 5.0, 6.0"));
    let swapped =
        run_unseen("average_over_targets", &case("1, 3, 2", "1.0, 4.0, 2.0, 5.0, 3.0, 6.0"));
    assert!(matches!(swapped, Ok(Outcome::Differs(_))), "{swapped:?}");
    assert_fails("average_over_targets", &case("1, 3, 2", "1.0, 2.0, 3.0, 4.0, 5.0, 6.0"));
    let sums = write_tensor("int16", "1, 2, 3", "1, 2, 3, 4, 5, 6");
    assert_passes("sum_over_targets", &format!(r#"{given}, "expect": {sums}"#));
}

#[test]
fn cases_of_empty_batches_pass() {
    let none = write_tensor("float32", "0, 0", "");
    let sizes = write_tensor("int64", "0", "");
    let made = write_input(&[("tensor", &none), ("sample_sizes", &sizes)]);
    let expect = format!(
        r#""expect": {{"tensor": {none}, "sample_sizes": {sizes}, "mask": {}, "batch_shape": [0], "total_num_entries": 0, "max_sample_size": 0, "shape": [0, 0], "dtype": "float32", "dim": 2}}"#,
        write_tensor("bool", "0, 0", "")
    );
    assert_passes("construct", &format!("{made}, {expect}"));
    assert_passes("from_oversize_tensor", &format!("{made}, {expect}"));
    let data = write_batch(&none, &sizes, 1, 1);
    let mask = write_batch(&write_tensor("bool", "0, 0", ""), &sizes, 1, 1);
    let both = write_input(&[("input_data", &data), ("input_mask", &mask)]);
    assert_passes("batched_bool_indexing", &format!(r#"{both}, "expect": {{"tensor": {none}}}"#));
    assert_passes(
        "split",
        &format!(r#"{}, "expect": {{"split": []}}"#, write_input(&[("data", &data)])),
    );
    for op in ["sum_over_targets", "average_over_targets"] {
        let zero = write_tensor("float32", "0", "");
        assert_passes(op, &format!(r#"{}, "expect": {zero}"#, write_input(&[("data", &data)])));
    }
    let flat = format!(r#"{}, "expect": {{"tensor": {none}}}"#, write_input(&[("data", &data)]));
    assert_passes("flatten_batch_dims", &flat);
    assert_passes(
        "empty",
        r#""args": {"num_dims": 3, "non_uniform_dim": 2, "batch_shape": 4}, "expect": {"shape": [4, 0, 0]}"#,
    );
}

#[test]
fn cases_of_invalid_batches_expect_errors() {
    let three = write_tensor("float32", "1, 3", "1.0, 2.0, 3.0");
    let sizes = |n: i64| write_tensor("int64", "1", &n.to_string());
    let mask = |m: &str| write_tensor("bool", "1, 3", m);
    let case = |parts: &[(&str, &str)]| format!("{}, {ERROR}", write_input(parts));
    let (all, gap) = (mask("true, true, true"), mask("true, false, true"));
    assert_passes("construct", &case(&[("tensor", &three), ("sample_sizes", &sizes(4))]));
    assert_passes("construct", &case(&[("tensor", &three), ("sample_sizes", &sizes(-1))]));
    assert_passes("construct", &case(&[("tensor", &three), ("mask", &gap)]));
    assert_passes(
        "construct",
        &case(&[("tensor", &three), ("mask", &all), ("sample_sizes", &sizes(2))]),
    );
    assert_fails(
        "construct",
        &case(&[("tensor", &three), ("mask", &all), ("sample_sizes", &sizes(3))]),
    );
    assert_fails("construct", &case(&[("tensor", &three), ("mask", &all), ("size", &sizes(3))]));
    for dim in ["-1", "0", "2"] {
        let case = case(&[("tensor", &three), ("mask", &all)]);
        assert_passes("construct", &format!(r#"{case}, "args": {{"non_uniform_dim": {dim}}}"#));
    }
    let data = write_input(&[("data", &write_batch(&three, &sizes(2), 1, 1))]);
    for (op, args) in [
        ("unsqueeze_batch_dim", r#"{"dim": -1}"#),
        ("squeeze_batch_dim", r#"{"batch_dim": 0}"#),
        ("reshape_batch_dims", r#"{"new_batch_shape": [2]}"#),
        ("repeat_samples", r#"{"num_repeats": -1}"#),
        ("get_non_uniform_dimension_transposed_to", r#"{"dim": -1}"#),
        ("getitem", r#"{"index": [{"str": "x"}]}"#),
        ("getitem", r#"{"index": [{"int": 0}, {"int": 3}]}"#),
    ] {
        assert_passes(op, &format!(r#"{data}, "args": {args}, {ERROR}"#));
    }
    assert_fails("no_such_operation", &data);
    assert_fails("split", &format!(r#"{data}, "expect": {{"split": [{three}]}}"#));
}

#[test]
fn cases_of_every_kind_of_selector_pass() {
    let data = write_batch(
        &write_tensor("int64", "2, 3", "1, 2, 3, 4, 5, 6"),
        &write_tensor("int64", "2", "3, 3"),
        1,
        1,
    );
    let given = write_input(&[("data", &data)]);
    for (index, shape, found) in [
        (r#"{"list": [1, 0]}, {"list": [-1, 0]}"#, "2", "6, 1"),
        (r#"{"list": [[0], [1]]}, {"int": 1}"#, "2, 1", "2, 5"),
        (r#"{"array": {"dtype": "int32", "shape": [1], "data": [1]}}"#, "1, 3", "4, 5, 6"),
        (r#"{"list": [false, true]}"#, "1, 3", "4, 5, 6"),
        (r#"{"newaxis": null}, {"int": 0}, {"slice": [0, 3, 2]}"#, "1, 2", "1, 3"),
        (r#"{"slice": [2, null, null]}"#, "0, 3", ""),
    ] {
        let expect = write_tensor("int64", shape, found);
        assert_passes(
            "getitem",
            &format!(r#"{given}, "args": {{"index": [{index}]}}, "expect": {expect}"#),
        );
    }
    let write = |value: &str, found: &str| {
        let given = write_input(&[("data", &data), ("value", value)]);
        let expect = write_tensor("int64", "2, 3", found);
        assert_passes(
            "setitem",
            &format!(
                r#"{given}, "args": {{"index": [{{"ellipsis": null}}, {{"int": -1}}]}}, "expect": {expect}"#
            ),
        );
    };
    write("7", "1, 2, 7, 4, 5, 7");
    write("2.9", "1, 2, 2, 4, 5, 2");
    write(&write_tensor("int32", "2", "8, 9"), "1, 2, 8, 4, 5, 9");
    write(&format!("{{\"tensor\": {}}}", write_tensor("float32", "1", "8.0")), "1, 2, 8, 4, 5, 8");
}
