//! Tests the runner of the `nrt` cases with cases that the vectors do not have: omitted fields,
//! other kinds of errors, and results where the Python library refuses.

use serrate::table::RaggedTable;

use crate::format::Case;
use crate::json::Json;
use crate::nrt::{self, Rule, Verdict};

/// Runs a case given as the text of its JSON members, without the name.
fn verdict(op: &str, case: &str) -> Result<Verdict, String> {
    let case = Json::parse(&format!("{{\"name\": \"unseen\", {case}}}")).unwrap();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    nrt::run(&Case::new(&root, op, &case)?)
}

fn assert_passes(op: &str, case: &str) {
    match verdict(op, case) {
        Ok(Verdict::Passed) => {}
        other => panic!("{op} {case}: {other:?}"),
    }
}

fn assert_differs(op: &str, case: &str, rule: Rule) {
    match verdict(op, case) {
        Ok(Verdict::Differs(found)) if found == rule => {}
        other => panic!("{op} {case}: {other:?}"),
    }
}

fn assert_fails(op: &str, case: &str) {
    if let Ok(passed) = verdict(op, case) {
        panic!("{op} {case}: {passed:?}");
    }
}

const FLAT: &str = r#""input": {"data": {"x": [1, 2]}, "schema": null}"#;
const NESTED: &str = r#""input": {"data": {"x": [[1, 2], [3]]}}"#;
const NONE: &str = r#""args": {"index": {"array": {"dtype": "int64", "shape": [0], "data": []}}}"#;

fn write_error(kind: &str) -> String {
    format!(r#""error": {{"kind": "{kind}", "gist": "no"}}"#)
}

#[test]
fn a_key_error_stands_for_a_missing_axis() {
    assert_passes("flatten", &format!("{FLAT}, {}", write_error("KeyError")));
    assert_passes(
        "flatten",
        &format!(r#"{FLAT}, "args": {{"dim": -1}}, {}"#, write_error("KeyError")),
    );
    // A result is not such an error, and neither is another exception or another operation.
    assert_fails("construct", &format!("{FLAT}, {}", write_error("KeyError")));
    assert_fails("flatten", &format!("{FLAT}, {}", write_error("FileNotFoundError")));
    assert_fails(
        "getitem_int",
        &format!(r#"{FLAT}, "args": {{"index": {{"int": 9}}}}, {}"#, write_error("KeyError")),
    );
}

#[test]
fn results_of_indices_that_the_library_refuses_are_compared_with_numpy() {
    for op in ["getitem_array", "getitem_unsupported"] {
        assert_differs(
            op,
            &format!("{NESTED}, {NONE}, {}", write_error("ValueError")),
            Rule::Indices,
        );
        assert_passes(
            op,
            &format!(r#"{NESTED}, {NONE}, {}, "tags": ["limitation"]"#, write_error("ValueError")),
        );
    }
    let file = r#""input": {"file": "nrt-files/readme.nrt"}"#;
    assert_differs(
        "load",
        &format!("{file}, {NONE}, {}", write_error("ValueError")),
        Rule::Indices,
    );
    // An IndexError is not explained by the kind of the index.
    assert_fails("getitem_array", &format!("{NESTED}, {NONE}, {}", write_error("IndexError")));
    let float = r#""args": {"index": {"array": {"dtype": "float64", "shape": [0], "data": []}}}"#;
    assert_passes("getitem_array", &format!("{NESTED}, {float}, {}", write_error("IndexError")));
}

#[test]
fn booleans_as_indices_are_integers() {
    for (index, value) in [("true", 3), ("false", 1)] {
        let tensor = |n: i64, data: &str| {
            format!(r#"{{"dtype": "uint8", "shape": [{n}], "data": [{data}]}}"#)
        };
        let expected = if value == 3 { tensor(1, "3") } else { tensor(2, "1, 2") };
        let case = format!(
            r#"{NESTED}, "args": {{"index": {{"int": {index}}}}}, "expect": {{"tensors": {{"dim0/x": {expected}}}}}"#
        );
        assert_passes("getitem_int", &case);
    }
}

#[test]
fn repeated_keys_count_once() {
    let case = |len: usize, keys: &str| {
        format!(
            r#""input": {{"file": "nrt-files/readme.nrt"}}, "args": {{"keys": {keys}}}, "expect": {{"keys": ["T"], "len": {len}}}"#
        )
    };
    assert_passes("load", &case(3, r#"["T", "T"]"#));
    assert_fails("load", &case(2, r#"["T", "T"]"#));
    assert_fails("load", &case(3, r#"["T", "id"]"#));
}

#[test]
fn tensors_of_removed_axes_are_not_compared() {
    let case = |name: &str| {
        format!(
            r#""input": {{"data": {{"x": [[1, 2], [3]], "n": [7, 8]}}}}, "args": {{"index": {{"int": 0}}}}, "expect": {{"tensors": {{"{name}": {{"dtype": "uint8", "shape": [1], "data": [7]}}, "dim0/x": {{"dtype": "uint8", "shape": [2], "data": [1, 2]}}}}}}"#
        )
    };
    assert_passes("getitem_int", &case("dim-1/n"));
    assert_fails("getitem_int", &case("dim0/n"));
    assert_fails("getitem_int", &case("dim1/n"));
}

#[test]
fn results_of_operations_that_the_library_limits_are_checked() {
    let tagged = |input: &str, args: &str| {
        format!(r#"{input}, "args": {args}, {}, "tags": ["limitation"]"#, write_error("ValueError"))
    };
    let single = r#""input": {"data": {"x": [[1], [3]]}}"#;
    assert_passes("unsqueeze", &tagged(NESTED, r#"{"dim": 1}"#));
    assert_passes("squeeze", &tagged(single, r#"{"dim": 1}"#));
    assert_passes(
        "flatten",
        &tagged(r#""input": {"data": {"x": [[[1], []], [[3]]]}}"#, r#"{"dim": 1}"#),
    );
    // This crate refuses the first case, too.
    assert_passes("squeeze", &tagged(NESTED, r#"{"dim": 1}"#));
    assert_passes("construct", &tagged(NESTED, "{}"));
    assert_passes("collate_roundtrip", &tagged(NESTED, r#"{"order": [1, 0, 1]}"#));
    for op in ["concatenate", "vstack"] {
        let items = r#""input": {"items": [{"data": {"x": [1]}}, {"data": {"x": [2.5, 3.0]}}]}"#;
        assert_passes(op, &tagged(items, "{}"));
    }
    // Without the tag, the result differs by a rule, and only for the message of that limitation.
    let case = |gist: &str| {
        format!(
            r#"{NESTED}, "args": {{"dim": 1}}, "error": {{"kind": "ValueError", "gist": "{gist}"}}"#
        )
    };
    assert_differs("unsqueeze", &case("Only supports dim = 0 for now; got 1"), Rule::AnyAxis);
    assert_fails("unsqueeze", &case("no"));
}

#[test]
fn tables_of_inputs_that_the_library_refuses_are_compared_with_the_input() {
    let case = |data: &str, schema: &str| {
        format!(r#""input": {{"data": {data}, "schema": {schema}}}, {}"#, write_error("ValueError"))
    };
    for data in [
        r#"{"x": [{"$str": "a"}], "y": [1]}"#,
        r#"{"x": [[{"$str": "NaN"}, {"$str": "Infinity"}], []]}"#,
        r#"{"x": [{"$str": "NaN"}], "y": ["NaN"]}"#,
    ] {
        assert_differs("construct", &case(data, "null"), Rule::Texts);
    }
    assert_differs(
        "infer_dtype",
        &format!(r#""input": {{"values": [{{"$str": "NaN"}}]}}, {}"#, write_error("TypeError")),
        Rule::Texts,
    );
    // A string among numbers is refused, and the string "NaN" is not a float.
    assert_passes("construct", &case(r#"{"x": [1, {"$str": "NaN"}]}"#, "null"));
    assert_fails("construct", &case(r#"{"x": [{"$str": "NaN"}]}"#, r#"{"x": "float32"}"#));
    assert_differs(
        "construct",
        &case(r#"{"x": [[1, null], null, [2.5, "NaN", true]]}"#, r#"{"x": "float16"}"#),
        Rule::Nulls,
    );
    assert_differs("construct", &case(r#"{"x": [[1, null], null, []]}"#, "null"), Rule::Nulls);
}

#[test]
fn as_given_refuses_tables_with_other_values_than_the_input() {
    let table = |json: &str| RaggedTable::from_json_text(json.as_bytes(), &Default::default());
    let given = |made: &str, raw: &str| {
        let input = Json::parse(&format!(r#"{{"data": {raw}}}"#)).unwrap();
        nrt::as_given(&input, &table(made).unwrap()).is_ok()
    };
    assert!(given(r#"{"x": [[1, null], null]}"#, r#"{"x": [[1, null], null]}"#));
    assert!(given(r#"{"x": ["a", null]}"#, r#"{"x": [{"$str": "a"}, null]}"#));
    assert!(given(r#"{"x": [0.1, "NaN"]}"#, r#"{"x": [0.1, "NaN"]}"#));
    for (made, raw) in [
        (r#"{"x": [[1, null], null]}"#, r#"{"x": [[1, null], []]}"#),
        (r#"{"x": [[1, null], null]}"#, r#"{"x": [[null, 1], null]}"#),
        (r#"{"x": [[1, null], null]}"#, r#"{"x": [[2, null], null]}"#),
        (r#"{"x": [1, null]}"#, r#"{"y": [1, null]}"#),
        (r#"{"x": ["a", null]}"#, r#"{"x": [{"$str": "b"}, null]}"#),
        (r#"{"x": ["NaN", 1.0]}"#, r#"{"x": [{"$str": "NaN"}, 1.0]}"#),
        (r#"{"x": ["1"]}"#, r#"{"x": [1]}"#),
        (r#"{"x": [true]}"#, r#"{"x": [false]}"#),
    ] {
        assert!(!given(made, raw), "{made} {raw}");
    }
}

/// Runs a case of each operation in which every optional field is omitted or null.
#[test]
fn optional_fields_may_be_missing() {
    let x = r#"{"dtype": "uint8", "shape": [2], "data": [1, 2]}"#;
    let state = format!(r#""expect": {{"tensors": {{"dim0/x": {x}}}, "dense": null}}"#);
    let row = format!(
        r#""expect": {{"tensors": {{"dim1/bounds": {{"dtype": "int64", "shape": [1], "data": [2]}}, "dim1/x": {x}}}}}"#
    );
    let file = r#""input": {"file": "nrt-files/one_d.nrt"}"#;
    let loaded = r#""expect": {"len": 4, "keys": ["T"], "schema": {"T": "uint8"}}"#;
    let all = r#"{"slice": [null, null, null]}"#;
    for args in
        ["", r#""args": null, "#, r#""args": {}, "tags": null, "note": null, "error": null, "#]
    {
        assert_passes("construct", &format!("{FLAT}, {args}{state}"));
        assert_passes(
            "infer_dtype",
            &format!(
                r#""input": {{"values": [1, 2]}}, {args}"expect": {{"dtype": "uint8", "stored": {x}}}"#
            ),
        );
        assert_passes("to_dense", &format!(r#"{FLAT}, {args}"expect": {{"x": {x}}}"#));
        assert_passes(
            "squeeze",
            &format!(r#""input": {{"data": {{"x": [[1, 2]]}}}}, {args}{state}"#),
        );
        assert_passes("unsqueeze", &format!("{FLAT}, {args}{row}"));
        assert_passes(
            "flatten",
            &format!(r#""input": {{"data": {{"x": [[1], [2]]}}}}, {args}{state}"#),
        );
        assert_passes(
            "concatenate",
            &format!(
                r#""input": {{"items": [{{"data": {{"x": [1]}}, "schema": null}}, {{"data": {{"x": [2]}}}}]}}, {args}{state}"#
            ),
        );
        assert_passes(
            "vstack",
            &format!(r#""input": {{"items": [{{"data": {{"x": [1, 2]}}}}]}}, {args}{row}"#),
        );
        assert_passes(
            "equals",
            &format!(
                r#""input": {{"a": {{"data": {{"x": [1]}}}}, "b": {{"data": {{"x": [1]}}, "schema": null}}}}, {args}"expect": {{"equal": true}}"#
            ),
        );
        assert_passes(
            "is_ndim_list",
            &format!(r#""input": {{"list": [1]}}, {args}"expect": {{"result": true}}"#),
        );
        assert_passes(
            "save",
            &format!(
                r#"{FLAT}, {args}"expect": {{"names": {{"dim0/x": {{"dtype": "U8", "shape": [2]}}}}, "has_metadata": false, "bytes": null, "sha256": null, "tensors": {{"dim0/x": {x}}}}}"#
            ),
        );
        assert_passes("load", &format!("{file}, {args}{loaded}"));
    }
    for (op, index) in [
        ("getitem_slice", all.to_owned()),
        ("getitem_tuple", format!(r#"{{"tuple": [{all}]}}"#)),
        ("getitem_array", r#"{"array": {"dtype": "int64", "shape": [2], "data": [0, 1]}}"#.into()),
    ] {
        assert_passes(op, &format!(r#"{FLAT}, "args": {{"index": {index}}}, {state}"#));
    }
    assert_passes(
        "getitem_int",
        &format!(
            r#""input": {{"data": {{"x": [[1, 2]]}}, "schema": null}}, "args": {{"index": {{"int": 0}}}}, {state}"#
        ),
    );
    assert_passes(
        "getitem_unsupported",
        &format!(r#"{FLAT}, "args": {{"index": {{"str": "x"}}}}, {}"#, write_error("TypeError")),
    );
    assert_passes(
        "collate_roundtrip",
        &format!(r#""input": {{"data": {{"x": [[1, 2]]}}}}, "args": {{"order": [0]}}, {row}"#),
    );
    assert_passes("load", &format!(r#"{file}, "args": {{"keys": null, "index": null}}, {loaded}"#));
}
