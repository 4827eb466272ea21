//! Changes the dictionary of a Parquet file so that it declares more values than it has.

/// Number of values that [`overstate_dictionary`] declares.
pub(crate) const OVERSTATED: usize = (1 << 20) - 1;

/// Changes the header of the first page of a Parquet file, a dictionary of 10,000 values, so that
/// it declares [`OVERSTATED`] values.
pub(crate) fn overstate_dictionary(file: &mut [u8]) {
    // Thrift's compact protocol: the struct of field 7 begins with the integer 10,000 in zigzag
    // encoding, which takes as many bytes as the larger number.
    let header = [0x4c, 0x15, 0xa0, 0x9c, 0x01];
    let at = file.windows(5).position(|bytes| bytes == header);
    let at = at.expect("a dictionary of 10,000 values") + 2;
    file[at..at + 3].copy_from_slice(&[0xfe, 0xff, 0x7f]);
}
