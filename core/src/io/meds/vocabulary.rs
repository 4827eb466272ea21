//! Vocabularies: codes and their tokens, the integers that stand for the codes in tensors.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray, UInt32Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::file::MedsFile;
use crate::array::nested_types::is_string_like;
use crate::error::{Error, Result};
use crate::io::atomic::{AtomicFile, ExistingTarget};

/// Metadata key of Arrow fields that hold tokens, such as `code_id`. The value is the
/// [`VocabularyId`] of the vocabulary of the tokens; without this key, the vocabulary is unknown.
pub const VOCABULARY_METADATA: &str = "serrate.vocabulary";

/// Identity of a vocabulary, such as `1f0c..:401`: a hash of its codes and tokens, and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VocabularyId {
    hash: u64,
    size: u32,
}

impl VocabularyId {
    /// Returns the largest token plus one: the number of rows of an embedding that is indexed by
    /// token.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::Vocabulary;
    /// assert_eq!(Vocabulary::from_tokens([("a", 7), ("b", 9)])?.id().size(), 10);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Parses the output of [`Display`](fmt::Display); returns `None` for anything else.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::{Vocabulary, VocabularyId};
    /// let id = Vocabulary::from_codes(["a", "b"])?.id();
    /// assert_eq!(VocabularyId::parse(&id.to_string()), Some(id));
    /// assert_eq!(VocabularyId::parse("a:b"), None);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let (hash, size) = text.split_once(':')?;
        let plain = hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit());
        let hash = plain.then(|| u64::from_str_radix(hash, 16).ok())??;
        Some(Self { hash, size: size.parse().ok()? })
    }
}

impl fmt::Display for VocabularyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}:{}", self.hash, self.size)
    }
}

/// Codes and their tokens, the integers that stand for the codes in tensors.
///
/// Token 0 is reserved for padding and unknown codes.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::meds::Vocabulary;
/// let v = Vocabulary::from_codes(["LAB//2", "LAB//1"])?;
/// assert_eq!((v.encode("LAB//1"), v.encode("LAB//2"), v.encode("other")), (1, 2, 0));
/// assert_eq!(v.decode(2), Some("LAB//2"));
/// assert_eq!((v.len(), v.is_empty(), v.id().size()), (2, false, 3));
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Vocabulary {
    /// Tokens and codes, sorted by token, then code.
    entries: Arc<[(u32, Arc<str>)]>,
    by_code: Arc<HashMap<Arc<str>, u32>>,
    id: VocabularyId,
}

impl Vocabulary {
    /// Creates a vocabulary of distinct codes, with tokens from 1 on in byte order of the codes.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::Vocabulary;
    /// let v = Vocabulary::from_codes(["b", "a", "b"])?;
    /// assert_eq!(v.iter().collect::<Vec<_>>(), [("a", 1), ("b", 2)]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are 2^32 - 1 codes or more.
    pub fn from_codes<S: AsRef<str>>(codes: impl IntoIterator<Item = S>) -> Result<Self> {
        let sorted: BTreeSet<Arc<str>> = codes.into_iter().map(|c| c.as_ref().into()).collect();
        let entries = (1..).zip(sorted).map(|(token, code)| Ok((to_u32_token(token)?, code)));
        Self::new(entries.collect::<Result<_>>()?)
    }

    /// Creates a vocabulary from codes with tokens; several codes may share a token.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::{ArrayRef, StringArray};
    /// use serrate::io::ExistingTarget;
    /// use serrate::io::meds::{Vocabulary, VocabularyId};
    /// let v = Vocabulary::from_tokens([("a", 7), ("b", 9)])?;
    /// assert_eq!((v.is_empty(), v.iter().collect::<Vec<_>>()), (false, vec![("a", 7), ("b", 9)]));
    /// let codes: ArrayRef = Arc::new(StringArray::from(vec![Some("b"), Some("c"), None]));
    /// let tokens: Vec<_> = v.encode_array(&codes)?.iter().collect();
    /// assert_eq!(tokens, [Some(9), Some(0), None]);
    /// assert_eq!(VocabularyId::parse(&v.id().to_string()), Some(v.id()));
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("codes.parquet");
    /// v.write(&path, |_| None, ExistingTarget::Refuse)?;
    /// assert_eq!(Vocabulary::read(&path)?.id(), v.id());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If a token is 0 or 2^32 - 1, or a code has two tokens.
    pub fn from_tokens<S: AsRef<str>>(entries: impl IntoIterator<Item = (S, u32)>) -> Result<Self> {
        Self::new(entries.into_iter().map(|(code, token)| (token, code.as_ref().into())).collect())
    }

    fn new(mut entries: Vec<(u32, Arc<str>)>) -> Result<Self> {
        entries.sort();
        entries.dedup();
        let mut by_code = HashMap::with_capacity(entries.len());
        for (token, code) in &entries {
            if *token == 0 || *token == u32::MAX {
                return Err(Error::invalid(format!(
                    "code {code:?} has the token {token}; give it a token from 1 to 4294967294 (0 is padding)"
                )));
            }
            if let Some(other) = by_code.insert(Arc::clone(code), *token) {
                return Err(Error::invalid(format!(
                    "code {code:?} has two tokens, {other} and {token}; give the code one token"
                )));
            }
        }
        let id = VocabularyId {
            hash: hash_entries(&entries),
            size: entries.last().map_or(1, |(token, _)| token + 1),
        };
        Ok(Self { entries: entries.into(), by_code: Arc::new(by_code), id })
    }

    /// Reads the codes and tokens of a MEDS `codes.parquet` (columns `code` and
    /// `code/vocab_index`).
    ///
    /// Codes without a token are omitted. If the file lacks `code/vocab_index`, the tokens number
    /// the codes in byte order.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::Vocabulary;
    /// let v = Vocabulary::read("../tests/data/synthea-meds/metadata/codes.parquet")?;
    /// assert_eq!((v.len(), v.encode("BIRTH_YEAR")), (400, 1));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read, has no column `code`, or gives a code two tokens, a negative
    /// token or 0; the message names file, column and row.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let source = MedsFile::open(path)?;
        source.check_code_column()?;
        let schema = source.schema();
        let index = schema.field_with_name("code/vocab_index").ok().map(|f| f.data_type().clone());
        if let Some(t) = index.as_ref().filter(|t| !t.is_integer()) {
            return Err(source.make_type_error(
                "code/vocab_index",
                "integers (cast the column in the file)",
                t,
            ));
        }
        let batch = source.read(&["code", "code/vocab_index"], None)?;
        let named = |name| source.require_column(&batch, name);
        let codes = cast(named("code")?, &DataType::Utf8)?;
        let codes = codes.as_string::<i32>();
        if let Some(row) = (0..codes.len()).find(|i| codes.is_null(*i)) {
            return Err(source.make_value_error(
                "code",
                row,
                "the value is NULL, but a code is required; correct the row or remove it",
            ));
        }
        if index.is_none() {
            return Self::from_codes(codes.iter().flatten());
        }
        let index =
            source.cast_column("code/vocab_index", named("code/vocab_index")?, &DataType::Int64)?;
        let index: &Int64Array = index.as_primitive::<Int64Type>();
        let mut entries = Vec::with_capacity(codes.len());
        for (row, (code, token)) in codes.iter().zip(index).enumerate() {
            if let (Some(code), Some(token)) = (code, token) {
                let token = u32::try_from(token)
                    .ok()
                    .filter(|t| *t != 0 && *t != u32::MAX)
                    .ok_or_else(|| {
                        source.make_value_error(
                            "code/vocab_index",
                            row,
                            &format!("{token} is not a token; give the code a token from 1 to 4294967294 (0 is padding)"),
                        )
                    })?;
                entries.push((token, code.into()));
            }
        }
        Self::new(entries).map_err(|e| Error::file(path, e.to_string()))
    }

    /// Writes a `codes.parquet` with `code`, `code/vocab_index`, and `description` if any code has
    /// one.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::ExistingTarget;
    /// use serrate::io::meds::{Vocabulary, descriptions};
    /// let v = Vocabulary::from_codes(["LAB//1", "LAB//2"])?;
    /// let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("codes.parquet");
    /// v.write(&path, |code| Some(code.to_lowercase()), ExistingTarget::Refuse)?;
    /// assert_eq!(Vocabulary::read(&path)?, v);
    /// assert_eq!(descriptions(&path)?["LAB//1"], "lab//1");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file exists and `existing` is [`ExistingTarget::Refuse`], or it cannot be written.
    pub fn write(
        &self,
        path: impl AsRef<Path>,
        describe: impl Fn(&str) -> Option<String>,
        existing: ExistingTarget,
    ) -> Result<()> {
        let codes: StringArray = self.entries.iter().map(|(_, c)| Some(c.as_ref())).collect();
        let text: StringArray = self.entries.iter().map(|(_, c)| describe(c)).collect();
        let tokens: Int64Array = self.entries.iter().map(|(t, _)| i64::from(*t)).collect();
        let mut columns: Vec<(&str, ArrayRef, bool)> = vec![("code", Arc::new(codes), false)];
        if text.null_count() < text.len() {
            columns.push(("description", Arc::new(text), true));
        }
        columns.push(("code/vocab_index", Arc::new(tokens), false));
        let batch = RecordBatch::try_from_iter_with_nullable(columns)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .build();
        let file = AtomicFile::create(path, existing == ExistingTarget::Replace)?;
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties))?;
        writer.write(&batch)?;
        writer.into_inner()?.commit()
    }

    /// Returns the token of a code; 0 if the code is not in the vocabulary.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::Vocabulary;
    /// let v = Vocabulary::from_codes(["LAB//1", "LAB//2"])?;
    /// assert_eq!((v.encode("LAB//2"), v.encode("LAB//3")), (2, 0));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn encode(&self, code: &str) -> u32 {
        self.by_code.get(code).copied().unwrap_or(0)
    }

    /// Returns the tokens of an array of strings (plain, large, view or dictionary).
    ///
    /// NULL stays NULL, unknown codes are 0. Each dictionary value is looked up once.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{ArrayRef, StringArray, UInt32Array};
    /// use serrate::io::meds::Vocabulary;
    /// let v = Vocabulary::from_codes(["LAB//1", "LAB//2"])?;
    /// let codes: ArrayRef = Arc::new(StringArray::from(vec![Some("LAB//2"), Some("?"), None]));
    /// assert_eq!(v.encode_array(&codes)?, UInt32Array::from(vec![Some(2), Some(0), None]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the array does not hold strings.
    pub fn encode_array(&self, codes: &ArrayRef) -> Result<UInt32Array> {
        let token = |code: Option<&str>| code.map(|c| self.encode(c));
        Ok(match codes.data_type() {
            DataType::Utf8 => codes.as_string::<i32>().iter().map(token).collect(),
            DataType::LargeUtf8 => codes.as_string::<i64>().iter().map(token).collect(),
            DataType::Utf8View => codes.as_string_view().iter().map(token).collect(),
            DataType::Dictionary(_, values) if is_string_like(values) => {
                let dictionary = codes.as_any_dictionary();
                let values = self.encode_array(dictionary.values())?;
                let tokens = arrow::compute::take(&values, dictionary.keys(), None)?;
                tokens.as_primitive().clone()
            }
            found => {
                return Err(Error::type_of(
                    "the codes that a vocabulary encodes",
                    "strings (cast the codes first)",
                    found,
                ));
            }
        })
    }

    /// Returns the code with this token, or `None` if no code has the token. If several codes have
    /// it, returns the first of them in byte order.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::Vocabulary;
    /// let v = Vocabulary::from_codes(["LAB//1", "LAB//2"])?;
    /// assert_eq!((v.decode(2), v.decode(0)), (Some("LAB//2"), None));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn decode(&self, token: u32) -> Option<&str> {
        let first = self.entries.partition_point(|(t, _)| *t < token);
        self.entries.get(first).filter(|(t, _)| *t == token).map(|(_, code)| code.as_ref())
    }

    /// Returns the number of rows of a table indexed by token, with token 0 for padding. Returns
    /// `None` if too many rows are unused, such as for two codes with the tokens 1 and 4 billion.
    pub(crate) fn dense_size(&self) -> Option<usize> {
        /// The table may have this many rows for unused tokens, plus 15 for each code.
        const GAPS: usize = 1 << 20;
        let most = self.len().saturating_mul(16).saturating_add(GAPS);
        usize::try_from(self.id.size).ok().filter(|size| *size <= most)
    }

    /// Returns the number of codes.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the vocabulary has no code.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Iterates over codes and tokens, sorted by token.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::Vocabulary;
    /// let v = Vocabulary::from_tokens([("b", 3), ("a", 5)])?;
    /// assert_eq!(v.iter().collect::<Vec<_>>(), [("b", 3), ("a", 5)]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, u32)> {
        self.entries.iter().map(|(token, code)| (code.as_ref(), *token))
    }

    /// Returns the identity of the vocabulary: a hash of its codes and tokens, and its size.
    ///
    /// Vocabularies with equal codes and tokens have equal identities.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::Vocabulary;
    /// let v = Vocabulary::from_codes(["a", "b"])?;
    /// assert_eq!(v.id(), Vocabulary::from_tokens([("b", 2), ("a", 1)])?.id());
    /// assert_ne!(v.id(), Vocabulary::from_codes(["a", "c"])?.id());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn id(&self) -> VocabularyId {
        self.id
    }
}

impl PartialEq for Vocabulary {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

fn to_u32_token(token: u64) -> Result<u32> {
    u32::try_from(token).map_err(|_| {
        Error::invalid(
            "the vocabulary has more than 2^32 - 2 codes, but there are only 2^32 - 2 tokens; remove codes",
        )
    })
}

/// Computes FNV-1a over token, length and bytes of each code; all machines get the same result.
fn hash_entries(entries: &[(u32, Arc<str>)]) -> u64 {
    let mut h = 0xcbf2_9ce4_8422_2325u64;
    let mut eat = |bytes: &[u8]| {
        for b in bytes {
            h = (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for (token, code) in entries {
        eat(&token.to_le_bytes());
        eat(&(code.len() as u64).to_le_bytes());
        eat(code.as_bytes());
    }
    h
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_go_out_and_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("codes.parquet");
        let v = Vocabulary::from_tokens([("b", 7), ("a", 3), ("also b", 7)]).unwrap();
        let describe = |c: &str| (c == "a").then(|| "the first".into());
        v.write(&path, describe, ExistingTarget::Refuse).unwrap();
        let back = Vocabulary::read(&path).unwrap();
        assert_eq!(back, v);
        assert_eq!(back.id(), v.id());
        assert_eq!(back.id().size(), 8);
        assert_eq!(back.decode(7), Some("also b"));
        assert_eq!((back.decode(0), back.decode(4), back.decode(8)), (None, None, None));
        let refused = v.write(&path, |_| None, ExistingTarget::Refuse);
        assert!(matches!(refused, Err(Error::Exists(_))));
    }

    #[test]
    fn the_identity_tells_vocabularies_apart_and_is_stable() {
        let v = Vocabulary::from_codes(["a", "b"]).unwrap();
        assert_eq!(v.id(), Vocabulary::from_codes(["b", "a", "b"]).unwrap().id());
        assert_ne!(v.id(), Vocabulary::from_codes(["ab"]).unwrap().id());
        assert_ne!(v.id(), Vocabulary::from_tokens([("a", 2), ("b", 1)]).unwrap().id());
        assert_eq!(VocabularyId::parse(&v.id().to_string()), Some(v.id()));
        assert_eq!(VocabularyId::parse("12:3"), None);
        assert_eq!(VocabularyId::parse("+123456789012345:3"), None);
        assert_eq!(
            Vocabulary::from_codes::<&str>([]).unwrap().id().to_string(),
            "cbf29ce484222325:1"
        );
    }

    #[test]
    fn what_is_no_vocabulary_is_refused() {
        assert!(Vocabulary::from_tokens([("a", 0)]).is_err());
        assert!(Vocabulary::from_tokens([("a", u32::MAX)]).is_err());
        let e = Vocabulary::from_tokens([("a", 1), ("a", 2)]).unwrap_err();
        assert!(e.to_string().contains("two tokens, 1 and 2"), "{e}");
    }

    #[test]
    fn every_encoding_of_strings_gives_the_same_tokens() {
        let v = Vocabulary::from_codes(["x", "y"]).unwrap();
        let plain: ArrayRef =
            Arc::new(StringArray::from(vec![Some("y"), None, Some("z"), Some("x")]));
        let expected = UInt32Array::from(vec![Some(2), None, Some(0), Some(1)]);
        for t in [
            DataType::Utf8,
            DataType::LargeUtf8,
            DataType::Utf8View,
            DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)),
            DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::LargeUtf8)),
        ] {
            let codes = cast(&plain, &t).unwrap();
            assert_eq!(v.encode_array(&codes).unwrap(), expected, "{t}");
        }
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        assert!(v.encode_array(&numbers).is_err());
    }
}
