//! Short strings, such as time windows of features: the parser returns an error, or a value that is
//! equal after it is written and parsed again.

use crate::{FIXED, place_file, read_within};
use serrate::dense::DType;
use serrate::generate::PatientDistributions;
use serrate::io::features::{FeatureAggregate, FeatureForm, FeatureWindow};
use serrate::io::meds::VocabularyId;

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    read_within(data, FIXED, || {
        if let Ok(window) = text.parse::<FeatureWindow>() {
            let again = window.to_string().parse::<FeatureWindow>();
            assert!(again.is_ok_and(|again| again == window), "{window}");
        }
        if let Some(id) = VocabularyId::parse(text) {
            assert_eq!(VocabularyId::parse(&id.to_string()), Some(id));
        }
        let _ = (text.parse::<FeatureAggregate>(), text.parse::<FeatureForm>());
        let _ = text.parse::<DType>();
    });
    if text.starts_with('{') {
        let path = place_file("distributions.json", data);
        if let Ok(distributions) = read_within(data, FIXED, || PatientDistributions::open(&path)) {
            let _ = (distributions.means(), distributions.vocab_size());
        }
    }
}
