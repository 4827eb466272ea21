//! Tensorized cohorts with one shard: the reader returns an error or valid tables. An input is a
//! `.nrt` file, followed by the Parquet file of its schema, which begins at the first `PAR1`.

use crate::{ENCODED, check_table, folder, place_file, read_within};
use serrate::audit;
use serrate::io::meds_torch::TensorizedCohort;

pub fn run(data: &[u8]) {
    let Some(schema) = data.windows(4).position(|bytes| bytes == b"PAR1") else { return };
    place_file("cohort/data/train/0.nrt", &data[..schema]);
    place_file("cohort/tokenization/schemas/train/0.parquet", &data[schema..]);
    let root = folder().join("cohort");
    let read = || {
        let cohort = TensorizedCohort::open(&root)?;
        Ok::<_, serrate::Error>((cohort.shards()[0].read()?, cohort.read_meds(0)))
    };
    if let Ok((tables, meds)) = read_within(data, ENCODED, read) {
        check_table(&tables.events);
        check_table(&tables.statics);
        if let Ok(meds) = meds {
            check_table(&meds.events);
            check_table(&meds.statics);
        }
    }
    let _ = read_within(data, ENCODED, || audit::check(&root, &Default::default()));
}
