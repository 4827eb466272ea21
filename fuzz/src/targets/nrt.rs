//! `.nrt` files: for any bytes, the reader returns an error or a table, and does not panic.

use crate::{FIXED, check_table, read_within};
use serrate::io::nrt::NrtFile;

pub fn run(data: &[u8]) {
    let open = || NrtFile::from_bytes("f", data.to_vec().into());
    let Ok(narrow) = read_within(data, FIXED, open) else { return };
    let rows = narrow.num_rows();
    let valid = narrow.validate().is_ok();
    for (file, large) in [(narrow.clone(), false), (narrow.with_large_lists(true), true)] {
        if let Ok(table) = read_within(data, FIXED, || file.table()) {
            assert!(valid, "a file that can be read whole is valid");
            assert_eq!(table.num_rows(), rows);
            check_table(&table);
            let _ = table.to_batch();
        }
        for row in 0..rows.min(64) {
            let read = read_within(data, FIXED, || file.read(row..row + 1, None));
            assert!(read.is_ok() || !valid || !large, "each row of a valid file can be read");
            if let Ok(read) = read {
                check_table(&read);
            }
            for axis in 0..file.ndim() {
                let _ = file.elements_before(row, axis);
                let _ = file.rows_within(row..rows, axis, 3);
            }
        }
        for column in file.columns() {
            let _ = file.read(0..rows, Some(&[column.name()]));
        }
        let _ = file.schema();
    }
}
