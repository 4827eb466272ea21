//! Invalid and damaged files: each kind has its error message, and none causes a panic.

use std::sync::LazyLock;

use bytes::Bytes;
use proptest::prelude::*;
use serrate::io::nrt::NrtFile;
use serrate::io::safetensors::SafetensorsFile;

use crate::support::{bytes_of, file_of, file_with, i64_bytes, table_from, vectors};

type Tensor<'a> = (&'a str, &'a str, Vec<usize>, Vec<u8>);

fn header_error(bytes: Vec<u8>) -> String {
    SafetensorsFile::from_bytes("f", Bytes::from(bytes)).unwrap_err().to_string()
}

#[test]
fn invalid_headers_are_errors() {
    let table: &[(&str, Vec<u8>, &str)] = &[
        (
            "empty",
            vec![],
            "f: the file has 0 bytes, too few for a safetensors file, which starts with the 8-byte length of its header; give another file",
        ),
        (
            "short",
            vec![1, 2, 3],
            "f: the file has 3 bytes, too few for a safetensors file, which starts with the 8-byte length of its header; give another file",
        ),
        (
            "text",
            b"subject_id,time".to_vec(),
            "f: the first 8 bytes declare a header of 6878231818129274227 bytes, but at most 25000000 are accepted; check that the file is a safetensors file",
        ),
        (
            "truncated header",
            [100u64.to_le_bytes().to_vec(), b"{}".to_vec()].concat(),
            "f: the first 8 bytes declare a header of 100 bytes, but the file has only 10; it is truncated or not a safetensors file, so create it again",
        ),
        (
            "no header",
            0u64.to_le_bytes().to_vec(),
            "f: the header of the safetensors file cannot be read; create the file again: EOF while parsing a value at line 1 column 0",
        ),
        (
            "not utf-8",
            [2u64.to_le_bytes().to_vec(), vec![b'{', 0xff]].concat(),
            "f: the header is not UTF-8 at its byte 1, so the file is damaged; create it again",
        ),
        (
            "not json",
            file_of("{\"a\":", b""),
            "f: the header of the safetensors file cannot be read; create the file again: \"a\": EOF while parsing a value at line 1 column 5",
        ),
        (
            "not a map",
            file_of("[]", b""),
            "f: the header of the safetensors file cannot be read; create the file again: invalid type: sequence, expected a map of tensor names at line 1 column 0",
        ),
        (
            "two headers",
            file_of("{} {}", b""),
            "f: the header of the safetensors file cannot be read; create the file again: trailing characters at line 1 column 4",
        ),
        (
            "unknown type",
            file_of(r#"{"a":{"dtype":"I7","shape":[1],"data_offsets":[0,1]}}"#, b"x"),
            "f: the header of the safetensors file cannot be read; create the file again: \"a\": unknown variant `I7`, expected one of `BOOL`, `F4`, `F6_E2M3`, `F6_E3M2`, `U8`, `I8`, `F8_E5M2`, `F8_E4M3`, `F8_E8M0`, `F8_E4M3FNUZ`, `F8_E5M2FNUZ`, `I16`, `U16`, `F16`, `BF16`, `I32`, `U32`, `F32`, `C64`, `F64`, `I64`, `U64` at line 1 column 18",
        ),
        (
            "negative size",
            file_of(r#"{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}}"#, b"x"),
            "f: the header of the safetensors file cannot be read; create the file again: \"a\": invalid value: integer `-1`, expected usize at line 1 column 30",
        ),
        (
            "no offsets",
            file_of(r#"{"a":{"dtype":"U8","shape":[1]}}"#, b"x"),
            "f: the header of the safetensors file cannot be read; create the file again: \"a\": missing field `data_offsets` at line 1 column 31",
        ),
        (
            "three offsets",
            file_of(r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}}"#, b"x"),
            "f: the header of the safetensors file cannot be read; create the file again: \"a\": trailing characters at line 1 column 52",
        ),
        (
            "rank",
            file_of(
                &format!(
                    r#"{{"a":{{"dtype":"U8","shape":[{}1],"data_offsets":[0,1]}}}}"#,
                    "1,".repeat(32)
                ),
                b"x",
            ),
            "f: the header of the safetensors file cannot be read; create the file again: \"a\": reshape the tensor, because its shape has more than 32 dimensions at line 1 column 94",
        ),
        (
            "twice",
            file_of(
                r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}"#,
                b"xy",
            ),
            "f: tensor \"a\": another tensor of the header has the same name; create the file again with unique tensor names",
        ),
        (
            "metadata",
            file_of(r#"{"__metadata__":{"a":1}}"#, b""),
            "f: the header of the safetensors file cannot be read; create the file again: \"__metadata__\": invalid type: integer `1`, expected a string at line 1 column 22",
        ),
        (
            "backwards",
            file_of(r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}}"#, b"x"),
            "f: tensor \"a\": the data_offsets are [1, 0], but the second number must not be smaller than the first; create the file again",
        ),
        (
            "past the end",
            file_of(r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}"#, b"x"),
            "f: tensor \"a\": the tensor ends at byte 2 of the data, but the file has only 1 bytes of data, so the file is truncated; create it again",
        ),
        (
            "far past the end",
            file_of(
                r#"{"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,18446744073709551615]}}"#,
                b"x",
            ),
            "f: tensor \"a\": the tensor ends at byte 18446744073709551615 of the data, but the file has only 1 bytes of data, so the file is truncated; create it again",
        ),
        (
            "late start",
            file_of(r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}"#, b"xy"),
            "f: tensor \"a\": the tensor starts at byte 1 of the data, but the first tensor must start at byte 0; create the file again with tensors that neither overlap nor leave gaps",
        ),
        (
            "gap",
            file_of(
                r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}"#,
                b"xyz",
            ),
            "f: tensor \"b\": the tensor starts at byte 2 of the data, but the previous tensor \"a\" ends at byte 1; create the file again with tensors that neither overlap nor leave gaps",
        ),
        (
            "overlap",
            file_of(
                r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}"#,
                b"xyz",
            ),
            "f: tensor \"b\": the tensor starts at byte 1 of the data, but the previous tensor \"a\" ends at byte 2; create the file again with tensors that neither overlap nor leave gaps",
        ),
        (
            "size",
            file_of(r#"{"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,4]}}"#, b"wxyz"),
            "f: tensor \"a\": the type F32 and the shape [2, 3] take 24 bytes, but the data_offsets [0, 4] hold 4 bytes; create the file again",
        ),
        (
            "overflow",
            file_of(
                r#"{"a":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,0]}}"#,
                b"",
            ),
            "f: tensor \"a\": the type F32 and the shape [4294967296, 4294967296, 4] do not give a valid size in whole bytes; create the file again",
        ),
        (
            "half bytes",
            file_of(r#"{"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}}"#, b"xy"),
            "f: tensor \"a\": the type F4 and the shape [3] do not give a valid size in whole bytes; create the file again",
        ),
        (
            "left over",
            file_of(r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#, b"xyz"),
            "f: the tensors end at byte 1 of the data, but the file has 3 bytes of data; the rest of the data belongs to no tensor, so create the file again",
        ),
    ];
    let wrong: Vec<_> = table
        .iter()
        .map(|(what, bytes, message)| (what, header_error(bytes.clone()), message))
        .filter(|(_, found, message)| found != *message)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn opening_a_truncated_file_is_an_error() {
    let whole = std::fs::read(vectors().join("nrt-files/readme.nrt")).unwrap();
    for len in 0..whole.len() {
        let message = header_error(whole[..len].to_vec());
        let fits = ["too few", "truncated"].iter().any(|m| message.contains(m));
        assert!(fits, "{len}: {message}");
    }
}

fn open_error(tensors: &[Tensor<'_>]) -> String {
    NrtFile::from_bytes("f", file_with(tensors).into()).unwrap_err().to_string()
}

#[test]
fn tensors_that_do_not_form_a_table_are_errors() {
    let bounds = |axis: usize, ends: &[i64]| {
        let name: &'static str = ["", "dim1/bounds", "dim2/bounds", "dim3/bounds"][axis];
        (name, "I64", vec![ends.len()], i64_bytes(ends))
    };
    let bytes = |name, n: usize| -> Tensor<'static> { (name, "U8", vec![n], vec![0; n]) };
    let table: &[(&[Tensor<'_>], &str)] = &[
        (
            &[bytes("code", 1)],
            "f: the name of tensor \"code\" is not of the form dim{axis}/{key}, so the file is a safetensors file but not an .nrt file; give an .nrt file",
        ),
        (
            &[bytes("dim1", 1)],
            "f: the name of tensor \"dim1\" is not of the form dim{axis}/{key}, so the file is a safetensors file but not an .nrt file; give an .nrt file",
        ),
        (
            &[bytes("dim01/x", 1)],
            "f: the name of tensor \"dim01/x\" is not of the form dim{axis}/{key}, so the file is a safetensors file but not an .nrt file; give an .nrt file",
        ),
        (
            &[bytes("dim+1/x", 1)],
            "f: the name of tensor \"dim+1/x\" is not of the form dim{axis}/{key}, so the file is a safetensors file but not an .nrt file; give an .nrt file",
        ),
        (
            &[bytes("dim1/", 1)],
            "f: the name of tensor \"dim1/\" is not of the form dim{axis}/{key}, so the file is a safetensors file but not an .nrt file; give an .nrt file",
        ),
        (
            &[bytes("dim65/x", 1)],
            "f: tensor \"dim65/x\" has 65 levels of lists, but at most 64 are accepted; write the file with fewer levels",
        ),
        (
            &[bytes("dim99999999999999999999/x", 1)],
            "f: the name of tensor \"dim99999999999999999999/x\" is not of the form dim{axis}/{key}, so the file is a safetensors file but not an .nrt file; give an .nrt file",
        ),
        (
            &[bytes("dim0/bounds", 1)],
            "f: tensor \"dim0/bounds\": the key \"bounds\" of a tensor name is reserved, so a column cannot have it; rename the column",
        ),
        (
            &[bounds(1, &[1]), bytes("dim1/mask", 1)],
            "f: tensor \"dim1/mask\": the key \"mask\" of a tensor name is reserved, so a column cannot have it; rename the column",
        ),
        (
            &[("dim0/x", "U8", vec![2, 2], vec![0; 4])],
            "f: tensor \"dim0/x\": the shape is [2, 2], but tensors of an .nrt file must have one dimension; create the file again",
        ),
        (
            &[("dim1/bounds", "F32", vec![1], vec![0; 4])],
            "f: tensor \"dim1/bounds\": the bounds have the type F32, but bounds must be integers; create the file again",
        ),
        (
            &[("dim0/x", "C64", vec![1], vec![0; 8])],
            "f: tensor \"dim0/x\" has the type C64, which Arrow does not support; write it as BOOL, U8 to U64, I8 to I64, F16, BF16, F32 or F64",
        ),
        (
            &[bytes("dim1/x", 1)],
            "f: there is no tensor dim1/bounds, which the tensor \"dim1/x\" requires; create the file again",
        ),
        (
            &[bounds(1, &[1]), bytes("dim3/x", 1), bounds(3, &[1])],
            "f: there is no tensor dim2/bounds, which the tensor \"dim3/x\" requires; create the file again",
        ),
        (
            &[bounds(2, &[1])],
            "f: there is no tensor dim1/bounds, which the tensor \"dim2/bounds\" requires; create the file again",
        ),
        (
            &[bounds(1, &[1, 2]), bytes("dim0/x", 3)],
            "f: tensor dim1/bounds has 2 element(s) and tensor dim0/x has 3; both must have as many elements as axis 0, so create the file again",
        ),
        (
            &[bounds(1, &[1, 2]), bounds(2, &[1, 2, 3]), bytes("dim1/x", 2)],
            "f: tensor dim2/bounds has 3 element(s) and tensor dim1/x has 2; both must have as many elements as axis 1, so create the file again",
        ),
        (
            &[bounds(1, &[2]), bytes("dim1/x", 2), bytes("dim1/y", 1)],
            "f: tensor dim1/x has 2 element(s) and tensor dim1/y has 1; both must have as many elements as axis 1, so create the file again",
        ),
        (
            &[bounds(1, &[]), bytes("dim1/x", 2)],
            "f: the tensor dim1/bounds, which must have a bound for each list, is empty, but the axis of the lists has 2 element(s), so the file is damaged; create it again",
        ),
        (
            &[bounds(1, &[1, -2])],
            "f: dim1/bounds[1]: the bound is negative or does not fit 63 bits, so the file is damaged; create it again",
        ),
    ];
    for (tensors, message) in table {
        assert_eq!(open_error(tensors), *message);
    }
}

#[test]
fn invalid_bounds_are_errors_of_reads_that_need_them() {
    let open = |dtype: &str, bounds: Vec<u8>, n: usize, values: usize| {
        let file = file_with(&[
            ("dim1/bounds", dtype, vec![n], bounds),
            ("dim1/x", "U8", vec![values], vec![0; values]),
        ]);
        NrtFile::from_bytes("f", file.into()).unwrap()
    };
    let ends = |ends: &[i64]| open("I64", i64_bytes(ends), ends.len(), 9);
    let message = |f: &NrtFile| f.table().unwrap_err().to_string();

    let file = ends(&[2, 5, 4, 9]);
    assert_eq!(
        message(&file),
        "f: dim1/bounds[2]: the bound 4 follows 5; bounds must not decrease, so the file is damaged; create it again"
    );
    assert_eq!(file.validate().unwrap_err().to_string(), message(&file));
    // The rows before and after the invalid bound can be read.
    assert_eq!(file.read(0..2, None).unwrap().num_rows(), 2);
    assert_eq!(file.read(3..4, None).unwrap().axis_len(1).unwrap(), 5);
    assert!(file.read(2..3, None).is_err());

    assert_eq!(
        message(&ends(&[2, -5, 9])),
        "f: dim1/bounds[1]: the bound -5 is negative, so the file is damaged; create it again"
    );
    assert_eq!(
        message(&ends(&[-1, 9])),
        "f: dim1/bounds[0]: the bound -1 is negative, so the file is damaged; create it again"
    );
    assert_eq!(
        message(&ends(&[2, 10, 9])),
        "f: dim1/bounds[1]: the bound 10 exceeds 9, the number of values of its axis, so the file is damaged; create it again"
    );
    assert_eq!(
        message(&ends(&[2, 10])),
        "f: dim1/bounds[1]: the bound 10 exceeds 9, the number of values of its axis, so the file is damaged; create it again"
    );
    assert_eq!(
        message(&ends(&[2, 8])),
        "f: dim1/bounds[1]: the last bound of the lists is 8, but their axis has 9 element(s), so the file is damaged; create it again"
    );
    assert_eq!(
        message(&ends(&[i64::MAX, i64::MIN])),
        "f: dim1/bounds[0]: the bound 9223372036854775807 exceeds 9, the number of values of its axis, so the file is damaged; create it again"
    );
    assert_eq!(
        message(&ends(&[i64::MIN, 9])),
        "f: dim1/bounds[0]: the bound -9223372036854775808 is negative, so the file is damaged; create it again"
    );
    let wide = open("U64", u64::MAX.to_le_bytes().to_vec(), 1, 9);
    assert_eq!(
        message(&wide),
        "f: dim1/bounds[0]: the bound does not fit 63 bits, so the file is damaged; create it again"
    );
    let error = wide.elements_before(1, 1).unwrap_err().to_string();
    assert_eq!(
        error,
        "f: dim1/bounds[0]: the bound is negative or does not fit 63 bits, so the file is damaged; create it again"
    );
    let error = ends(&[2, 10, 9]).elements_before(2, 1).unwrap_err().to_string();
    assert_eq!(
        error,
        "f: dim1/bounds[1]: the bound 10 exceeds 9, the number of values of its axis, so the file is damaged; create it again"
    );
}

#[test]
fn bytes_of_booleans_must_be_zero_or_one() {
    let file = file_with(&[("dim0/t", "BOOL", vec![70], [vec![1; 67], vec![2, 0, 255]].concat())]);
    let file = NrtFile::from_bytes("f", file.into()).unwrap();
    let message = "f: dim0/t[67] is the byte 2, but a BOOL must be 0 or 1; create the file again";
    assert_eq!(file.table().unwrap_err().to_string(), message);
    assert_eq!(file.validate().unwrap_err().to_string(), message);
    assert_eq!(file.read(0..67, None).unwrap().num_rows(), 67);
    assert_eq!(
        file.read(68..70, None).unwrap_err().to_string(),
        "f: dim0/t[69] is the byte 255, but a BOOL must be 0 or 1; create the file again"
    );
}

#[test]
fn missing_rows_and_columns_are_errors() {
    let file = NrtFile::from_bytes("f", bytes_of(&table_from(&[vec![1], vec![2]])).into()).unwrap();
    for rows in [0..3, 3..3, 5..9, usize::MAX - 1..usize::MAX] {
        let error = file.read(rows, None).unwrap_err().to_string();
        assert!(error.ends_with("is out of range for axis 0 of size 2"), "{error}");
    }
    #[allow(clippy::reversed_empty_ranges)]
    let backwards = file.read(2..1, None);
    assert!(backwards.is_err());
    assert_eq!(
        file.read(0..1, Some(&["kode"])).unwrap_err().to_string(),
        "no column \"kode\"; the columns are subject_id, time, code, flag, numeric_value"
    );
    assert!(file.read(0..1, Some(&["code", "code"])).is_err());
    assert!(file.elements_before(3, 1).is_err());
    assert!(file.elements_before(0, 3).is_err());
    assert!(file.rows_within(1..3, 1, 5).is_err());
}

/// Calls every function of a file, so that a panic in any of them fails the test.
fn use_all(bytes: Vec<u8>) {
    let Ok(file) = NrtFile::from_bytes("f", Bytes::from(bytes)) else { return };
    let _ = file.validate();
    for file in [file.clone(), file.with_large_lists(true)] {
        if let Ok(table) = file.table() {
            for column in table.columns() {
                table.column_array(column).unwrap().to_arrow().unwrap();
            }
        }
        for row in 0..file.num_rows().min(20) {
            if let Ok(table) = file.read(row..row + 1, None) {
                table.row(0).unwrap();
            }
            for axis in 0..file.ndim() {
                let _ = file.elements_before(row, axis);
                let _ = file.rows_within(row..file.num_rows(), axis, 3);
            }
        }
        for column in file.columns() {
            let _ = file.read(0..file.num_rows(), Some(&[column.name()]));
        }
        file.schema();
    }
}

/// Valid files, which the tests below damage.
static WHOLE: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let tables: [Vec<Vec<usize>>; 4] = [
        vec![],
        vec![vec![], vec![]],
        vec![vec![2, 0, 3], vec![], vec![1, 1]],
        (0..9).map(|r| (0..r % 4).map(|e| (r + e) % 5).collect()).collect(),
    ];
    let python = std::fs::read_dir(vectors().join("nrt-files")).unwrap();
    let python = python.map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    tables.iter().map(|lengths| bytes_of(&table_from(lengths))).chain(python).collect()
});

/// Draws changes to a file: positions, and the bytes to write there.
fn draw_changes() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    let interesting = prop_oneof![
        any::<u8>(),
        Just(0u8),
        Just(1),
        Just(0xff),
        Just(b'0'),
        Just(b'9'),
        Just(b'"'),
        Just(b','),
        Just(b'-'),
    ];
    prop::collection::vec((any::<prop::sample::Index>(), interesting), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn damaged_files_are_errors_or_tables(
        base in 0usize..WHOLE.len(), changes in draw_changes(), cut in 0usize..40,
        header in any::<bool>()
    ) {
        let mut bytes = WHOLE[base].clone();
        let header_end = 8 + usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
        for (at, byte) in changes {
            // In half of the cases, changes only bounds and values, so that the header stays valid.
            let range = if header || header_end == bytes.len() { 0..bytes.len() } else { header_end..bytes.len() };
            let at = range.start + at.index(range.len());
            bytes[at] = byte;
        }
        if cut < 20 {
            bytes.truncate(bytes.len().saturating_sub(cut));
        }
        use_all(bytes);
    }

    /// Files with a valid header and random bounds are read further than damaged ones.
    #[test]
    fn wrong_numbers_are_errors_or_tables(
        sizes in prop::collection::vec(0usize..6, 4), data in prop::collection::vec(0u8..9, 24),
        types in prop::collection::vec(prop::sample::select(vec!["U8", "I8", "BOOL"]), 2)
    ) {
        let mut rest = data.as_slice();
        let mut part = |n: usize| {
            let (head, tail) = rest.split_at(n);
            rest = tail;
            head.to_vec()
        };
        let file = file_with(&[
            ("dim1/bounds", "U8", vec![sizes[0]], part(sizes[0])),
            ("dim2/bounds", "I8", vec![sizes[1]], part(sizes[1])),
            ("dim1/x", types[0], vec![sizes[2]], part(sizes[2])),
            ("dim2/y", types[1], vec![sizes[3]], part(sizes[3])),
        ]);
        use_all(file);
    }
}
