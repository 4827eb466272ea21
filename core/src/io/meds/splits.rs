use std::collections::HashMap;
use std::path::Path;

use super::dataset::read_splits;
use crate::error::{Error, Result};

pub(crate) const TRAIN: &str = "train";

pub(crate) const KNOWN: [&str; 3] = [TRAIN, "tuning", "held_out"];

/// The splits of a data set, from the folders of its shards or from
/// `metadata/subject_splits.parquet`.
#[derive(Clone, Debug)]
pub(crate) struct SubjectSplits {
    names: Vec<String>,
    /// Split of each subject, an index into `names`; `None` without `subject_splits.parquet`.
    of_subject: Option<HashMap<i64, usize>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SplitSource<'a> {
    /// All subjects are in this split, which is the name of a folder on the shard's path.
    Split(&'a str),
    /// `subject_splits.parquet` has the split of each subject.
    BySubject,
    Unknown,
}

impl SubjectSplits {
    /// Reads the splits of a data set. A `subject_splits.parquet` with a subject in two splits is
    /// an error.
    pub(crate) fn read_splits(root: &Path) -> Result<Self> {
        let mut names: Vec<String> = KNOWN.iter().map(ToString::to_string).collect();
        let Some(pairs) = read_splits(root)? else {
            return Ok(Self { names, of_subject: None });
        };
        let mut of_subject = HashMap::with_capacity(pairs.len());
        for (subject, split) in pairs {
            let number = names.iter().position(|n| *n == split).unwrap_or_else(|| {
                names.push(split);
                names.len() - 1
            });
            if let Some(other) = of_subject.insert(subject, number)
                && other != number
            {
                return Err(Error::file(
                    root.join("metadata").join("subject_splits.parquet"),
                    format!(
                        "subject {subject} is in two splits, {:?} and {:?}; assign the subject to one split",
                        names[other], names[number]
                    ),
                ));
            }
        }
        Ok(Self { names, of_subject: Some(of_subject) })
    }

    pub(crate) fn is_given(&self) -> bool {
        self.of_subject.is_some()
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn find_split(&self, subject: i64) -> Option<usize> {
        self.of_subject.as_ref()?.get(&subject).copied()
    }

    /// Returns the first folder on the shard's path that has the name of a split; if there is none,
    /// `BySubject` if there is a `subject_splits.parquet`, else `Unknown`.
    pub(crate) fn find_shard_split(&self, shard: &str) -> SplitSource<'_> {
        let split = shard.split('/').find_map(|part| self.names.iter().find(|n| *n == part));
        match (split, &self.of_subject) {
            (Some(split), _) => SplitSource::Split(split),
            (None, Some(_)) => SplitSource::BySubject,
            (None, None) => SplitSource::Unknown,
        }
    }
}

/// Returns the name of a shard with the folder `split` in front: for the split `train`, `a/train/3`
/// and `a/3` become `train/a/3`.
pub(crate) fn move_below_split(split: &str, shard: &str) -> String {
    let mut parts: Vec<&str> = shard.split('/').collect();
    if parts.len() > 1
        && let Some(at) = parts.iter().position(|p| *p == split)
    {
        parts.remove(at);
    }
    parts.insert(0, split);
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_split_leads_the_name() {
        assert_eq!(move_below_split("train", "train/0"), "train/0");
        assert_eq!(move_below_split("train", "a/train/b/0"), "train/a/b/0");
        assert_eq!(move_below_split("train", "train"), "train/train");
        assert_eq!(move_below_split("held_out", "7"), "held_out/7");
    }

    #[test]
    fn folders_come_before_the_file() {
        let some = SubjectSplits {
            names: vec!["train".into(), "extra".into()],
            of_subject: Some([(1, 0), (2, 1)].into()),
        };
        assert_eq!(some.find_shard_split("extra/0"), SplitSource::Split("extra"));
        assert_eq!(some.find_shard_split("a/0"), SplitSource::BySubject);
        assert_eq!((some.find_split(2), some.find_split(3)), (Some(1), None));
        let none = SubjectSplits { of_subject: None, ..some };
        assert_eq!(
            (none.find_shard_split("trains/0"), none.find_split(1)),
            (SplitSource::Unknown, None)
        );
    }
}
