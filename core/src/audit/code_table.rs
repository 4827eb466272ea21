//! Counts the codes of a data set and compares them with the vocabulary.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, AsArray, StringArray};
use arrow::datatypes::DataType;

use super::{AuditLog, describe_core_error, list_names};
use crate::array::nested_types::is_string_like;
use crate::io::meds::Vocabulary;
use crate::io::meds::file::MedsFile;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LifeMark {
    None,
    Birth,
    Death,
}

impl LifeMark {
    /// Recognizes `MEDS_BIRTH` and `MEDS_DEATH`, with or without a suffix after `//`.
    fn from_code(code: &str) -> Self {
        match code.split("//").next() {
            Some("MEDS_BIRTH") => Self::Birth,
            Some("MEDS_DEATH") => Self::Death,
            _ => Self::None,
        }
    }
}

/// Codes in the data set, each with its number of measurements in the split `train` and in all
/// other splits.
#[derive(Debug, Default)]
pub(super) struct CodeTable {
    ids: HashMap<Arc<str>, u32>,
    codes: Vec<(Arc<str>, LifeMark, [u64; 2])>,
}

impl CodeTable {
    /// Returns, for each code of an Arrow dictionary, its index in this table. Adds missing codes.
    pub(super) fn number_codes(&mut self, dictionary: &StringArray) -> Vec<u32> {
        (0..dictionary.len())
            .map(|i| match dictionary.is_valid(i) {
                true => self.number_code(dictionary.value(i)),
                // `u32::MAX` stands for a NULL in the dictionary. No row refers to this NULL,
                // because `read_complete` drops rows whose code is NULL.
                false => u32::MAX,
            })
            .collect()
    }

    fn number_code(&mut self, code: &str) -> u32 {
        if let Some(id) = self.ids.get(code) {
            return *id;
        }
        let (id, name) = (u32::try_from(self.codes.len()).unwrap_or(u32::MAX), Arc::from(code));
        self.codes.push((Arc::clone(&name), LifeMark::from_code(code), [0; 2]));
        self.ids.insert(name, id);
        id
    }

    #[inline]
    pub(super) fn count(&mut self, id: u32, train: bool) {
        if let Some((_, _, counts)) = self.codes.get_mut(id as usize) {
            counts[usize::from(!train)] += 1;
        }
    }

    #[inline]
    pub(super) fn find_mark(&self, id: u32) -> LifeMark {
        self.codes.get(id as usize).map_or(LifeMark::None, |(_, mark, _)| *mark)
    }

    pub(super) fn name(&self, id: u32) -> &str {
        self.codes.get(id as usize).map_or("", |(name, _, _)| name)
    }

    pub(super) fn report_findings(
        self,
        root: &Path,
        vocabulary: Option<&Vocabulary>,
        log: &mut AuditLog,
    ) {
        let mut codes: Vec<(Arc<str>, [u64; 2])> = self
            .codes
            .into_iter()
            .filter(|(_, _, [train, other])| train + other > 0)
            .map(|(code, _, counts)| (code, counts))
            .collect();
        codes.sort_unstable();
        let describe = |codes: &[(&Arc<str>, u64)]| {
            let measurements: u64 = codes.iter().map(|(_, n)| n).sum();
            let names = list_names(codes.iter().map(|(c, _)| c));
            format!("{} code(s) with {measurements} measurement(s): {names}", codes.len())
        };
        if let Some(vocabulary) = vocabulary {
            let unknown: Vec<(&Arc<str>, u64)> = codes
                .iter()
                .filter(|(code, _)| vocabulary.encode(code) == 0)
                .map(|(code, [a, b])| (code, a + b))
                .collect();
            let path = root.join("metadata").join("codes.parquet");
            let all: u64 = codes.iter().map(|(_, [a, b])| a + b).sum();
            let lost: u64 = unknown.iter().map(|(_, n)| n).sum();
            if lost > all / 2 {
                let found = format!(
                    "{} of all measurements are lost with this vocabulary: the file lacks {}",
                    format_percent(lost, all),
                    describe(&unknown)
                );
                let expected = "all codes of the data; if you remove the file, these codes become the vocabulary";
                log.add_many(lost, "vocabulary-loss", &path, String::new(), found, expected);
            } else if !unknown.is_empty() {
                let share = format_percent(lost, all);
                let found = format!("the file lacks {} ({share} of all)", describe(&unknown));
                let expected = "the codes of the data";
                log.add_many(lost, "unknown-code", &path, String::new(), found, expected);
            }
        }
        let unseen: Vec<(&Arc<str>, u64)> =
            codes.iter().filter(|(_, [train, _])| *train == 0).map(|(c, [_, n])| (c, *n)).collect();
        if !unseen.is_empty() && codes.iter().any(|(_, [train, _])| *train > 0) {
            let found = format!("outside train, {}", describe(&unseen));
            log.add_many(
                unseen.iter().map(|(_, n)| n).sum(),
                "unseen-code",
                &root.join("data"),
                String::new(),
                found,
                "codes that train has",
            );
        }
    }
}

/// Formats a share in percent, rounded down to one decimal.
pub(super) fn format_percent(part: u64, whole: u64) -> String {
    let tenths = u128::from(part) * 1000 / u128::from(whole.max(1));
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Reads `metadata/codes.parquet`; reports an error and returns `None` if the file is invalid. Also
/// reports codes with several rows, unless `modified` is true, which means that `dataset.json`
/// lists columns in which the rows of a code may differ.
pub(super) fn read_vocabulary(
    path: &Path,
    modified: bool,
    log: &mut AuditLog,
) -> Option<Vocabulary> {
    if !modified {
        report_duplicate_codes(path, log);
    }
    match Vocabulary::read(path) {
        Ok(vocabulary) => Some(vocabulary),
        Err(e) => {
            log.add_finding(
                "vocabulary",
                path,
                String::new,
                describe_core_error(&e),
                "codes with tokens",
            );
            None
        }
    }
}

/// Reports codes with several rows in `metadata/codes.parquet`. Ignores other faults of the file,
/// which [`Vocabulary::read`] reports.
fn report_duplicate_codes(path: &Path, log: &mut AuditLog) {
    let Ok(source) = MedsFile::open(path) else { return };
    let strings = |f: &arrow::datatypes::Field| is_string_like(f.data_type());
    if !source.schema().field_with_name("code").is_ok_and(strings) {
        return;
    }
    let Ok(batch) = source.read(&["code"], None) else { return };
    let Some(codes) = batch.column_by_name("code") else { return };
    let Ok(codes) = source.cast_column("code", codes, &DataType::LargeUtf8) else { return };
    let mut first_row: HashMap<&str, usize> = HashMap::new();
    for (row, code) in codes.as_string::<i64>().iter().enumerate() {
        let Some(code) = code else { continue };
        match first_row.get(code) {
            None => {
                first_row.insert(code, row);
            }
            Some(first) => log.add_finding(
                "code-twice",
                path,
                || format!("row {row}"),
                format!("code {code:?} again, after row {first}"),
                "one row per code; merge the rows, or joins by code repeat its measurements",
            ),
        }
    }
}
