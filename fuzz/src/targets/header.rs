//! The header of safetensors files: the parser does not panic, and the tensors of an accepted
//! header cover the file without gaps.

use std::path::Path;

use crate::{FIXED, read_within};
use serrate::io::safetensors::{SafetensorsFile, SafetensorsHeader};

pub fn run(data: &[u8]) {
    // Parses the input as the JSON of a header, of a file that is long enough for any tensor.
    let _ = read_within(data, FIXED, || SafetensorsHeader::parse(Path::new("f"), data, u64::MAX));
    let open = || SafetensorsFile::from_bytes("f", data.to_vec().into());
    let Ok(file) = read_within(data, FIXED, open) else { return };
    let mut end = file.header().data_start();
    for tensor in file.tensors() {
        assert_eq!(tensor.bytes().start, end, "tensors follow each other");
        end = tensor.bytes().end;
        assert!(file.read(tensor).is_ok_and(|b| b.len() as u64 == tensor.nbytes()));
        assert_eq!(file.header().get(tensor.name()), Some(tensor));
    }
    assert_eq!(end, data.len() as u64, "all of the file belongs to a tensor");
}
