//! Files of sparse tensors and of dictionaries: the reader returns an error, or entries that
//! lookups find.

use crate::{FIXED, check_array, read_within};
use serrate::arrow::array::{Array, BooleanArray};
use serrate::dok::{MapOptions, ReducedAxes};
use serrate::io::dictionary;
use serrate::io::dok::DokFile;
use serrate::io::safetensors::SafetensorsFile;

pub fn run(data: &[u8]) {
    check_tensor(data);
    let read = || {
        let file = SafetensorsFile::from_bytes("f", data.to_vec().into())?;
        dictionary::read_file(&file, MapOptions::default())
    };
    let Ok(words) = read_within(data, FIXED, read) else { return };
    let (Ok(keys), Ok(values)) = (words.keys(), words.values()) else {
        panic!("a dictionary that was read has keys and values")
    };
    for column in keys.iter().chain([&values]) {
        assert_eq!(column.len(), words.len());
        check_array(column);
    }
    let found = words.contains(&keys).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(found, BooleanArray::from(vec![true; words.len()]));
    let again = words.get(&keys).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(&again, &values);
}

fn check_tensor(data: &[u8]) {
    let open = || DokFile::from_bytes("f", data.to_vec().into());
    let Ok(file) = read_within(data, FIXED, open) else { return };
    let columns = read_within(data, FIXED, || file.columns());
    if let Ok((coordinates, values)) = &columns {
        assert_eq!(coordinates.len(), file.shape().len());
        for column in coordinates.iter().chain([values]) {
            assert_eq!(column.len(), file.nnz());
            check_array(column);
        }
    }
    let Ok(tensor) = read_within(data, FIXED, || file.tensor(MapOptions::default())) else {
        return;
    };
    assert!(columns.is_ok(), "a tensor that can be read has columns");
    assert_eq!(tensor.nnz().ok(), Some(file.nnz()));
    assert_eq!(tensor.shape(), file.shape());
    let coo = tensor.to_coo().unwrap_or_else(|e| panic!("{e}"));
    // The indices have one row of coordinates per axis.
    let all = coo.indices.as_slice::<i64>().unwrap_or_else(|e| panic!("{e}"));
    let axes: Vec<&[i64]> = all.chunks_exact(file.nnz().max(1)).collect();
    if axes.len() == file.shape().len() {
        let found = tensor.lookup_columns(&axes, &Default::default());
        let found = found.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(found.values.as_bytes(), coo.values.as_bytes());
    }
    let _ = (tensor.sparsity(), tensor.sum(None, ReducedAxes::Remove), tensor.t());
}
