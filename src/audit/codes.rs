//! [`CodeTable`]: the codes of a data set by number, and what their counts say.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, AsArray, StringArray};
use arrow::datatypes::DataType;

use super::{Log, message, some};
use crate::io::meds::Vocabulary;
use crate::io::meds::file::{Source, string_like};

/// The event of a life that a code records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    None,
    Birth,
    Death,
}

impl Mark {
    /// `MEDS_BIRTH`, and with more behind it `MEDS_BIRTH//..`; as well for deaths.
    fn of(code: &str) -> Self {
        match code.split("//").next() {
            Some("MEDS_BIRTH") => Self::Birth,
            Some("MEDS_DEATH") => Self::Death,
            _ => Self::None,
        }
    }
}

/// The codes met so far, with their numbers of measurements in train, and elsewhere.
#[derive(Debug, Default)]
pub(super) struct CodeTable {
    ids: HashMap<Arc<str>, u32>,
    codes: Vec<(Arc<str>, Mark, [u64; 2])>,
}

impl CodeTable {
    /// The numbers of the codes of a dictionary.
    pub(super) fn ids(&mut self, dictionary: &StringArray) -> Vec<u32> {
        (0..dictionary.len())
            .map(|i| match dictionary.is_valid(i) {
                true => self.id(dictionary.value(i)),
                // No row has it: codes are not NULL.
                false => u32::MAX,
            })
            .collect()
    }

    fn id(&mut self, code: &str) -> u32 {
        if let Some(id) = self.ids.get(code) {
            return *id;
        }
        let (id, name) = (u32::try_from(self.codes.len()).unwrap_or(u32::MAX), Arc::from(code));
        self.codes.push((Arc::clone(&name), Mark::of(code), [0; 2]));
        self.ids.insert(name, id);
        id
    }

    /// One measurement more.
    #[inline]
    pub(super) fn count(&mut self, id: u32, train: bool) {
        if let Some((_, _, counts)) = self.codes.get_mut(id as usize) {
            counts[usize::from(!train)] += 1;
        }
    }

    #[inline]
    pub(super) fn mark(&self, id: u32) -> Mark {
        self.codes.get(id as usize).map_or(Mark::None, |(_, mark, _)| *mark)
    }

    pub(super) fn name(&self, id: u32) -> &str {
        self.codes.get(id as usize).map_or("", |(name, _, _)| name)
    }

    /// Findings about all codes together.
    pub(super) fn report(self, root: &Path, vocabulary: Option<&Vocabulary>, log: &mut Log) {
        let mut codes: Vec<(Arc<str>, [u64; 2])> = self
            .codes
            .into_iter()
            .filter(|(_, _, [train, other])| train + other > 0)
            .map(|(code, _, counts)| (code, counts))
            .collect();
        codes.sort_unstable();
        let say = |codes: &[(&Arc<str>, u64)]| {
            let measurements: u64 = codes.iter().map(|(_, n)| n).sum();
            let names = some(codes.iter().map(|(c, _)| c));
            format!("{} codes with {measurements} measurements: {names}", codes.len())
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
                    "{} of all measurements are lost with this vocabulary: it lacks {}",
                    percent(lost, all),
                    say(&unknown)
                );
                let expected = "the codes of the data (without the file, they are the vocabulary)";
                log.error("vocabulary-loss", &path, String::new, found, expected);
            } else if !unknown.is_empty() {
                let share = percent(lost, all);
                let found = format!("it lacks {} ({share} of all)", say(&unknown));
                log.warn("unknown-code", &path, String::new, found, "the codes of the data");
            }
        }
        let unseen: Vec<(&Arc<str>, u64)> =
            codes.iter().filter(|(_, [train, _])| *train == 0).map(|(c, [_, n])| (c, *n)).collect();
        if !unseen.is_empty() && codes.iter().any(|(_, [train, _])| *train > 0) {
            let found = format!("outside train, {}", say(&unseen));
            log.warn("unseen-code", &root.join("data"), String::new, found, "codes that train has");
        }
    }
}

/// A share, rounded down to tenths of a hundredth.
pub(super) fn percent(part: u64, whole: u64) -> String {
    let tenths = u128::from(part) * 1000 / u128::from(whole.max(1));
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// The vocabulary of `metadata/codes.parquet`, if it is sound. `modified` says that columns beside
/// `code` tell its rows apart.
pub(super) fn vocabulary(path: &Path, modified: bool, log: &mut Log) -> Option<Vocabulary> {
    if !modified {
        doubled_codes(path, log);
    }
    match Vocabulary::read(path) {
        Ok(vocabulary) => Some(vocabulary),
        Err(e) => {
            log.error("vocabulary", path, String::new, message(&e), "codes with tokens");
            None
        }
    }
}

/// Codes with several rows. What else is wrong is said when the vocabulary is read.
fn doubled_codes(path: &Path, log: &mut Log) {
    let Ok(source) = Source::open(path) else { return };
    let strings = |f: &arrow::datatypes::Field| string_like(f.data_type());
    if !source.schema().field_with_name("code").is_ok_and(strings) {
        return;
    }
    let Ok(batch) = source.read(&["code"], None) else { return };
    let Some(codes) = batch.column_by_name("code") else { return };
    let Ok(codes) = source.cast("code", codes, &DataType::LargeUtf8) else { return };
    let mut first_row: HashMap<&str, usize> = HashMap::new();
    for (row, code) in codes.as_string::<i64>().iter().enumerate() {
        let Some(code) = code else { continue };
        match first_row.get(code) {
            None => {
                first_row.insert(code, row);
            }
            Some(first) => log.error(
                "code-twice",
                path,
                || format!("row {row}"),
                format!("code {code:?}, which row {first} has already"),
                "a row per code; join the rows, or tables joined by code repeat its measurements",
            ),
        }
    }
}
