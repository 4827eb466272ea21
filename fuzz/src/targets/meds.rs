//! MEDS data sets with one shard: the reader, the loader and the audit return errors or valid
//! tables.

use crate::rows::as_parquet;
use crate::{ENCODED, check_batch, check_table, folder, place_file, read_within};
use serrate::audit;
use serrate::io::meds::{MedsDataset, MedsReadOptions, MedsSummary};
use serrate::table::UnsortedRows;

pub fn run(data: &[u8]) {
    let names = ["subject_id", "time", "code", "numeric_value", "text_value"];
    let Some(data) = as_parquet(data, &names) else { return };
    place_file("meds/data/train/0.parquet", &data);
    let root = folder().join("meds");
    for unsorted in [UnsortedRows::Refuse, UnsortedRows::Sort] {
        let options = MedsReadOptions { unsorted, ..MedsReadOptions::default() };
        let read = || {
            let dataset = MedsDataset::open(&root)?;
            let shard = dataset.shard("train/0")?;
            Ok::<_, serrate::Error>((shard.num_measurements()?, shard.read(&options)?))
        };
        let Ok((measurements, shard)) = read_within(&data, ENCODED, read) else { continue };
        check_table(&shard.events);
        check_table(&shard.statics);
        if let Ok(batch) = shard.to_batch() {
            check_batch(&batch);
        }
        let mut summary = MedsSummary::default();
        if summary.push(&shard).is_ok() {
            let total = summary.total();
            assert_eq!(total.measurements + total.statics, measurements as u64);
        }
    }
    let _ = read_within(&data, ENCODED, || audit::check(&root, &Default::default()));
}
