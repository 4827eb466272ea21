//! Vocabularies: the reader returns an error, or a vocabulary that decodes the token of each code
//! to the code.

use crate::rows::as_parquet;
use crate::{ENCODED, place_file, read_within};
use serrate::io::meds::{CodeHierarchy, Vocabulary, VocabularyId, descriptions};

pub fn run(data: &[u8]) {
    let names = ["code", "code/vocab_index", "description", "parent_codes"];
    let Some(data) = as_parquet(data, &names) else { return };
    let path = place_file("codes.parquet", &data);
    if let Ok(vocabulary) = read_within(&data, ENCODED, || Vocabulary::read(&path)) {
        assert_eq!(vocabulary.iter().len(), vocabulary.len());
        for (code, token) in vocabulary.iter() {
            assert_eq!(vocabulary.encode(code), token);
            assert_eq!(vocabulary.decode(token), Some(code));
        }
        let id = vocabulary.id();
        assert!(VocabularyId::parse(&id.to_string()).is_some_and(|found| found == id));
    }
    if let Ok(hierarchy) = read_within(&data, ENCODED, || CodeHierarchy::read(&path)) {
        assert!(hierarchy.descendants(&["A"]).contains("A"));
    }
    let _ = read_within(&data, ENCODED, || descriptions(&path));
}
