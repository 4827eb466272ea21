//! Files of labels: the reader returns an error, or rows that are equal after they are written and
//! read again.

use crate::rows::as_parquet;
use crate::{ENCODED, check_array, check_batch, place_file, read_within};
use serrate::io::meds::Labels;

pub fn run(data: &[u8]) {
    let names = [
        "subject_id",
        "prediction_time",
        "boolean_value",
        "integer_value",
        "float_value",
        "categorical_value",
    ];
    let Some(data) = as_parquet(data, &names) else { return };
    let path = place_file("labels.parquet", &data);
    let Ok(labels) = read_within(&data, ENCODED, || Labels::read(&path)) else { return };
    check_array(labels.subject_ids());
    check_array(labels.prediction_times());
    for (kind, values) in labels.values() {
        assert_eq!(values.data_type(), &kind.data_type());
        assert_eq!(values.len(), labels.len());
    }
    check_batch(&labels.to_batch().unwrap_or_else(|e| panic!("{e}")));
    let same = Labels::try_new(
        labels.subject_ids().clone(),
        labels.prediction_times().clone(),
        labels.values().to_vec(),
    );
    assert!(same.is_ok_and(|same| same.len() == labels.len()));
}
