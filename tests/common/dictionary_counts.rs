//! Changes the dictionary of a Parquet file so that it declares more values than it has.

/// Number of values that [`overstate_dictionary`] declares.
pub(crate) const OVERSTATED: usize = 8191;

/// Changes the header of the first page of a Parquet file, a dictionary of 200 values, so that it
/// declares [`OVERSTATED`] values.
pub(crate) fn overstate_dictionary(file: &mut [u8]) {
    // Thrift's compact protocol: the struct of field 7 begins with the integer 200 in zigzag
    // encoding, which takes as many bytes as 8191.
    let header = [0x4c, 0x15, 0x90, 0x03];
    let at = file.windows(4).position(|bytes| bytes == header);
    let at = at.expect("a dictionary of 200 values") + 2;
    file[at..at + 2].copy_from_slice(&[0xfe, 0x7f]);
}
