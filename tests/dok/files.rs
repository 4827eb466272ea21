//! Files of sparse tensors and of dictionaries, and the errors for invalid files.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, DictionaryArray, Float64Array, Int64Array,
    StringArray, StringViewArray, TimestampMicrosecondArray, UInt16Array,
};
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type};
use serrate::arrow;
use serrate::dense::{DType, DenseTensor};
use serrate::dok::{Dictionary, DokTensor, MapOptions};
use serrate::io::dok::{DokFile, read, write};
use serrate::io::safetensors::{FileAccess, SafetensorsFile, SaveOptions, dense};
use serrate::io::{dictionary, dok};

fn write_raw(path: &Path, indices: &DenseTensor, values: &DenseTensor, metadata: &[(&str, &str)]) {
    let metadata = metadata.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let options = SaveOptions { overwrite: true, metadata };
    dense::write(path, [("indices", indices), ("values", values)], &options).unwrap();
}

#[test]
fn a_file_is_indices_values_and_a_shape() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.safetensors");
    for dtype in DType::ALL {
        let mut t = DokTensor::new([5, 1 << 40], dtype).unwrap();
        t.set_at(&[3, 1 << 39], 1).unwrap();
        t.set_at(&[0, 7], 1).unwrap();
        let options = SaveOptions { overwrite: true, ..Default::default() };
        write(&path, &t, &options).unwrap();
        let file = SafetensorsFile::open(&path, FileAccess::Map).unwrap();
        assert_eq!(file.header().metadata()["shape"], "[5, 1099511627776]");
        assert_eq!(file.header().metadata()["format"], dok::FORMAT);
        assert_eq!(file.tensor("indices").unwrap().shape(), [2, 2]);
        let opened = DokFile::open(&path, FileAccess::Map).unwrap();
        assert_eq!((opened.nnz(), opened.dtype(), opened.shape()), (2, dtype, &[5, 1 << 40][..]));
        let (axes, values) = opened.columns().unwrap();
        assert_eq!(axes[1].as_primitive::<Int64Type>().values(), &[7, 1 << 39]);
        assert_eq!(values.len(), 2);
        assert_eq!(read(&path).unwrap().to_coo().unwrap(), t.to_coo().unwrap());
        // Entries are written in row-major order, so that the bytes do not depend on the order of
        // insertion.
        let before = std::fs::read(&path).unwrap();
        write(&path, &read(&path).unwrap(), &options).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), before);
        assert!(write(&path, &t, &SaveOptions::default()).is_err());
    }
    let empty = DokTensor::new([0, 3], DType::F32).unwrap();
    write(&path, &empty, &SaveOptions { overwrite: true, ..Default::default() }).unwrap();
    assert_eq!(read(&path).unwrap().shape(), [0, 3]);
}

#[test]
fn files_that_do_not_describe_a_tensor_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.safetensors");
    let two = DenseTensor::from_vec([2], vec![1f32, 2.0]).unwrap();
    let at = |v: Vec<i64>| DenseTensor::from_vec([2, 2], v).unwrap();
    let good = at(vec![0, 1, 0, 2]);
    let shape = [("shape", "[2, 3]")];
    write_raw(&path, &good, &two, &shape);
    assert_eq!(read(&path).unwrap().nnz().unwrap(), 2);
    for (indices, values, metadata, what) in [
        (&good, &two, &[][..], "no \"shape\""),
        (&good, &two, &[("shape", "[2, -3]")], "not a list of sizes"),
        (
            &good,
            &two,
            &[("shape", "[2]")],
            "but 2 values of a tensor of shape [2] require the shape [1, 2]",
        ),
        (&good, &two, &[("shape", "[4294967296, 4294967296]")], "2^63"),
        (&good, &two, &[("shape", "[2, 3]"), ("format", "other")], "format"),
        (
            &at(vec![0, 1, 0, 3]),
            &two,
            &shape,
            "entry 1 has the coordinate 3 on axis 1, where coordinates must be at least 0 and less than the size 3; create the file again",
        ),
        (&at(vec![-1, 1, 0, 2]), &two, &shape, "coordinate -1"),
        (&at(vec![1, 1, 2, 2]), &two, &shape, "entry 1 repeats the coordinates [1, 2]"),
        (
            &good,
            &good,
            &shape,
            "with the shapes [number of axes, number of values] and [number of values]",
        ),
        (&good.cast(DType::F64).unwrap(), &two, &shape, "integers"),
        (&good, &two.slice(0, 1).unwrap(), &shape, "but 1 values of a tensor"),
    ] {
        write_raw(&path, indices, values, metadata);
        let e = read(&path).unwrap_err().to_string();
        assert!(e.contains(what) && e.contains("m.safetensors"), "{e} / {what}");
    }
    let more = [("indices", &good), ("values", &two), ("more", &two)];
    let options =
        SaveOptions { overwrite: true, metadata: [("shape".into(), "[2, 3]".into())].into() };
    dense::write(&path, more, &options).unwrap();
    assert!(read(&path).unwrap_err().to_string().contains("more"));
    std::fs::write(&path, b"nothing").unwrap();
    assert!(read(&path).is_err());
}

fn make_field(name: &str, array: &ArrayRef) -> Arc<Field> {
    Arc::new(Field::new(name, array.data_type().clone(), true))
}

#[test]
fn dictionaries_with_keys_of_all_types_are_written_and_read() {
    let dir = tempfile::tempdir().unwrap();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("subject_id", Arc::new(Int64Array::from(vec![7, 7, 8, -1]))),
        ("code", Arc::new(StringArray::from(vec!["a", "b", "a", ""]))),
        ("day", Arc::new(Date32Array::from(vec![1, 1, 1, 1]))),
        ("time", Arc::new(TimestampMicrosecondArray::from(vec![5, 5, 6, 5]).with_timezone("UTC"))),
        ("flag", Arc::new(BooleanArray::from(vec![true, true, false, true]))),
        ("x", Arc::new(Float64Array::from(vec![0.0, f64::NAN, 1.0, 2.0]))),
        ("small", Arc::new(UInt16Array::from(vec![1, 2, 3, 4]))),
    ];
    let value: ArrayRef = Arc::new(StringViewArray::from(vec!["one", "two", "one", "four"]));
    for count in 1..=columns.len() {
        let keys = &columns[columns.len() - count..];
        let fields = keys.iter().map(|(n, a)| make_field(n, a)).collect();
        let mut d =
            Dictionary::new(fields, make_field("value", &value), MapOptions::default()).unwrap();
        let arrays: Vec<ArrayRef> = keys.iter().map(|(_, a)| Arc::clone(a)).collect();
        assert_eq!(d.set(&arrays, &value).unwrap(), [true; 4]);
        assert_eq!(d.set(&arrays, &value).unwrap(), [false; 4]);
        let path = dir.path().join(format!("{count}.safetensors"));
        dictionary::write(&path, &d, &SaveOptions::default()).unwrap();
        assert!(dictionary::is_dictionary(&path).unwrap());
        let mut read = dictionary::read(&path).unwrap();
        assert_eq!(read.schema().fields().len(), count + 1);
        for d in [&d, &read] {
            assert_eq!(&d.get(&arrays).unwrap(), &value);
            assert_eq!(&d.values().unwrap(), &value);
            assert_eq!(format!("{:?}", d.keys().unwrap()), format!("{arrays:?}"));
            assert!(d.contains(&arrays).unwrap().iter().all(|v| v == Some(true)));
        }
        let some: Vec<ArrayRef> = arrays.iter().map(|a| a.slice(1, 2)).collect();
        assert_eq!(read.remove(&some).unwrap(), [true, true]);
        assert_eq!((read.len(), read.get(&arrays).unwrap().null_count()), (2, 2));
        assert!(dok::read(&path).is_err());
    }
}

#[test]
fn null_keys_are_not_found_and_not_accepted() {
    let key: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let value: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let mut d = Dictionary::new(
        vec![make_field("k", &key)],
        make_field("v", &value),
        MapOptions::default(),
    )
    .unwrap();
    d.set(std::slice::from_ref(&key), &value).unwrap();
    // Keys may be encoded as an Arrow dictionary. Here, one of them is not a key of the dictionary.
    let dictionary: DictionaryArray<Int32Type> =
        [Some("b"), None, Some("zzz"), Some("a")].into_iter().collect();
    let asked: ArrayRef = Arc::new(dictionary);
    let found = d.get(std::slice::from_ref(&asked)).unwrap();
    let found: Vec<_> = found.as_primitive::<Int64Type>().iter().collect();
    assert_eq!(found, [Some(2), None, None, Some(1)]);
    let there = d.contains(std::slice::from_ref(&asked)).unwrap();
    assert_eq!(there, BooleanArray::from(vec![true, false, false, true]));
    let nulls: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
    assert!(d.set(std::slice::from_ref(&nulls), &value).is_err());
    assert!(
        d.set(
            std::slice::from_ref(&key),
            &(Arc::new(Int64Array::from(vec![Some(1), None])) as ArrayRef)
        )
        .is_err()
    );
    assert_eq!(d.remove(&[nulls]).unwrap(), [true, false]);
    assert_eq!(d.len(), 1);
    let wrong: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    assert!(
        d.get(std::slice::from_ref(&wrong)).is_err()
            && d.get(&[]).is_err()
            && d.get(&[key.clone(), key]).is_err()
    );
    let list = Arc::new(Field::new("l", DataType::new_list(DataType::Int64, true), true));
    let v = make_field("v", &wrong);
    assert!(Dictionary::new(vec![list], v.clone(), MapOptions::default()).is_err());
    assert!(Dictionary::new(vec![], v.clone(), MapOptions::default()).is_err());
    assert!(Dictionary::new(vec![v.clone(), v.clone()], v, MapOptions::default()).is_err());
}
