//! The safetensors header: never a panic, and the tensors of an accepted header cover the whole
//! file without gaps.

use std::path::Path;

use crate::{FIXED, read_within};
use serrate::io::safetensors::{Header, SafetensorsFile};

pub fn run(data: &[u8]) {
    // Parses the input as the JSON of a header, and assumes a file long enough for all its tensors.
    let _ = read_within(data, FIXED, || Header::parse(Path::new("f"), data, u64::MAX));
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
