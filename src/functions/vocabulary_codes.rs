//! Functions that read a `codes.parquet`, a file that numbers codes such as 'ICD10CM/E11': they
//! convert codes to their numbers (tokens) and back, and find the descendants of a code.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, ListBuilder, StringArray, StringBuilder, UInt32Array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, UInt32Type};
use serrate_core::internal::cast_strictly;

use super::args::{BatchCall, CallPlan};
use super::def::{Def, FunctionFacts, make_nullable};
use super::doc::{Doc, FunctionSection};
use super::example;
use super::file_cache::FileCache;
use super::lists::NestedListType;
use super::untagged::SEVERAL_VOCABULARIES;
use crate::access;
use crate::array::RaggedArray;
use crate::config::SerrateOptions;
use crate::error::{Error, Result, find_original};
use crate::io::meds::{CodeHierarchy, VOCABULARY_METADATA, Vocabulary};
use crate::kernels::text::is_text;
use crate::memory::MemoryCharge;

const CODES: (&str, &str) =
    ("codes", "a `codes.parquet`, or the MEDS folder or tensorized cohort that has one, a literal");
const SUCH: &str = "'DIR/metadata/codes.parquet'";

static VOCABULARIES: FileCache<VocabularyCodes> = FileCache::new();
static HIERARCHIES: FileCache<CodeHierarchy> = FileCache::new();

struct VocabularyCodes {
    vocabulary: Vocabulary,
    /// Codes in the order of their tokens.
    texts: ArrayRef,
    tokens: Vec<u32>,
    /// At index `i`, the index in `texts` of the code of token `i`, or `None` if there is no token
    /// `i`. Empty if the tokens have such large gaps that the vector would be much too long; a
    /// look-up then searches `tokens`.
    places: Vec<Option<u32>>,
    _charge: MemoryCharge,
}

impl VocabularyCodes {
    fn read(path: &Path) -> Result<Self> {
        let vocabulary = Vocabulary::read(path)?;
        let texts: StringArray = vocabulary.iter().map(|(code, _)| Some(code)).collect();
        let tokens: Vec<u32> = vocabulary.iter().map(|(_, token)| token).collect();
        let size = vocabulary.id().size();
        let close = (size as usize) <= (1 << 16) + 8 * tokens.len();
        let places =
            if close { (0..size).map(|t| find_first(&tokens, t)).collect() } else { vec![] };
        // The codes are in memory three times: in `texts`, and twice in the vocabulary.
        let bytes = texts.get_array_memory_size().saturating_mul(3);
        let bytes = bytes.saturating_add(size_of_val(tokens.as_slice()));
        let bytes = bytes.saturating_add(size_of_val(places.as_slice()));
        let charge = MemoryCharge::take(
            &format!("the vocabulary {}", find_original(path).display()),
            bytes,
        )?;
        Ok(Self { vocabulary, texts: Arc::new(texts), tokens, places, _charge: charge })
    }

    fn from_path(path: &str) -> Result<Arc<Self>> {
        VOCABULARIES.get(&find_local_codes(path)?, Self::read)
    }

    /// Returns the index in `self.texts` of each token's code; NULL for NULL and for 0 (padding). A
    /// token that is not in the vocabulary is an error, which names the file at `path`.
    fn find_token_positions(&self, tokens: &UInt32Array, path: &str) -> Result<UInt32Array> {
        let find = |token: u32| match self.places.as_slice() {
            [] => find_first(&self.tokens, token),
            table => table.get(token as usize).copied().flatten(),
        };
        let unknown = |token: u32| {
            Error::invalid(format!(
                "token {token} is not in the vocabulary of {codes_file}, whose largest token is {largest}; check that the tokens are of this vocabulary",
                codes_file = locate_codes_file(path).display(),
                largest = self.vocabulary.id().size().saturating_sub(1)
            ))
        };
        let places = tokens.iter().map(|token| match token {
            None | Some(0) => Ok(None),
            Some(token) => find(token).map(Some).ok_or_else(|| unknown(token)),
        });
        places.collect()
    }
}

fn find_first(tokens: &[u32], token: u32) -> Option<u32> {
    let at = tokens.partition_point(|t| *t < token);
    if tokens.get(at) == Some(&token) { u32::try_from(at).ok() } else { None }
}

/// Returns the file of codes that `path` names: a file, or a folder with `metadata/codes.parquet`
/// or `codes.parquet`. For the URL of an object store, returns a local copy.
pub(crate) fn find_local_codes(path: &str) -> Result<PathBuf> {
    let local = access::localize_path(path, &["metadata/codes.parquet", "codes.parquet"])
        .map_err(|e| Error::io(&*access::hide_secrets(path), e))?;
    Ok(locate_codes_file(&local.to_string_lossy()))
}

fn locate_codes_file(path: &str) -> PathBuf {
    let path = Path::new(path.strip_prefix("file://").unwrap_or(path));
    if !access::is_dir(path) {
        return path.to_path_buf();
    }
    let inner = path.join("metadata").join("codes.parquet");
    let own = path.join("codes.parquet");
    if !access::exists(&inner) && access::exists(&own) { own } else { inner }
}

fn plan_codes<'a>(plan: &CallPlan<'a>) -> Result<(&'a str, Arc<VocabularyCodes>)> {
    match plan.find_literal_text(1, "the codes", SUCH)? {
        Some(path) => Ok((path, VocabularyCodes::from_path(path)?)),
        None => Err(plan.refuse_call(format!(
            "argument 2 (the codes) is missing; give the path of a file of codes, such as {SUCH}"
        ))),
    }
}

/// Returns the field for a result of the type `data_type`, with the id of the vocabulary of `codes`
/// in its metadata.
fn tag_field(data_type: DataType, codes: &VocabularyCodes) -> FieldRef {
    let id = codes.vocabulary.id().to_string();
    let metadata = [(VOCABULARY_METADATA.to_owned(), id)].into();
    Arc::new(Field::new("", data_type, true).with_metadata(metadata))
}

/// Returns the path and vocabulary of a call, or an error if the vocabulary has changed since
/// planning.
fn plan_vocabulary<'a>(call: &BatchCall<'a>) -> Result<(&'a str, Arc<VocabularyCodes>)> {
    let path = call.read_text(1).ok_or_else(|| {
        Error::invalid(format!(
            "{}: argument 2 (the codes) must be the same path for all rows; give a literal such as {SUCH}",
            call.name()
        ))
    })?;
    let codes = VocabularyCodes::from_path(path)?;
    let then = call.return_field().metadata().get(VOCABULARY_METADATA);
    if then.is_some_and(|id| *id != codes.vocabulary.id().to_string()) {
        return Err(Error::file(
            locate_codes_file(path),
            "the vocabulary in this file changed after the query was planned; run the query again",
        ));
    }
    Ok((path, codes))
}

pub(super) static ENCODE: Def = Def {
    name: "ragged_encode",
    arity: (2, 2),
    doc: Doc {
        section: FunctionSection::Codes,
        description: "Returns the token of each code in a vocabulary as `UInt32`, the form that `densify`, `.nrt` files and models need. Tokens are those of `code/vocab_index` in the file, else 1, 2, 3, .. in the order of the codes, as in `code_id` of `meds('DIR')`. The column names its vocabulary in its metadata (`serrate.vocabulary`).",
        syntax: &["ragged_encode(x, codes)"],
        args: &[("x", "a list of any depth of strings, or of a dictionary of strings"), CODES],
        missing: "A code that is not in the vocabulary becomes 0, the token of padding. NULL values stay NULL. The file is read once per query.",
        duckdb: "a join of the unnested codes with the vocabulary, grouped back into lists.",
        example: example!("ragged_encode"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        if !is_text(lists.leaf()) && !lists.leaf().is_null() {
            return Err(plan.refuse_call(format!(
                "argument 1 must be a list of strings; its values are {}, so cast them first",
                lists.leaf()
            )));
        }
        let (_, codes) = plan_codes(plan)?;
        Ok(tag_field(lists.make_plain_leaf(DataType::UInt32), &codes))
    },
    call: |call| {
        let x = call.read_ragged(0)?;
        let (_, codes) = plan_vocabulary(call)?;
        let tokens: ArrayRef = match x.leaf_type().is_null() {
            true => cast(x.leaves(), &DataType::UInt32)?,
            false => Arc::new(codes.vocabulary.encode_array(x.leaves())?),
        };
        call.to_lists(&x.with_leaves(tokens)?)
    },
    facts: FunctionFacts { reads_paths: true, ..FunctionFacts::COMPARES },
    ..Def::DEFAULTS
};

fn make_text_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8))
}

pub(super) static DECODE: Def = Def {
    name: "ragged_decode",
    arity: (2, 2),
    doc: Doc {
        section: FunctionSection::Codes,
        description: "Returns the code of each token in a vocabulary: the inverse of `ragged_encode`. The result is a dictionary over the vocabulary, which the column names in its metadata (`serrate.vocabulary`). If several codes have the same token, the first one is returned.",
        syntax: &["ragged_decode(x, codes)"],
        args: &[("x", "a list of any depth of integers"), CODES],
        missing: "0 (padding, or an unknown code) returns NULL, and NULL values stay NULL. A token that is not in the vocabulary is an error, and so is a column of another vocabulary, or of several. The file is read once per query.",
        duckdb: "a join of the unnested tokens with the vocabulary, grouped back into lists.",
        example: example!("ragged_decode"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        if !lists.leaf().is_integer() && !lists.leaf().is_null() {
            return Err(plan.refuse_call(format!(
                "argument 1 must be a list of integers; its values are {}, so cast them first",
                lists.leaf()
            )));
        }
        let (path, codes) = plan_codes(plan)?;
        let own = plan.field(0).metadata().get(VOCABULARY_METADATA);
        if own.is_some_and(|own| own == SEVERAL_VOCABULARIES) {
            return Err(plan.refuse_call(
                "argument 1 has tokens of several vocabularies, in which a token stands for different codes; decode the tokens of each vocabulary before a UNION or a table combines them"
            ));
        }
        if let Some(own) = own.filter(|own| **own != codes.vocabulary.id().to_string()) {
            return Err(plan.refuse_call(format!(
                "argument 2 ({path}) is the vocabulary {}, but the tokens are of the vocabulary {own}; decode them with the vocabulary that encoded them",
                codes.vocabulary.id()
            )));
        }
        Ok(tag_field(lists.make_plain_leaf(make_text_type()), &codes))
    },
    call: |call| {
        let x = call.read_ragged(0)?;
        let (path, codes) = plan_vocabulary(call)?;
        let tokens = cast_strictly(x.leaves(), &DataType::UInt32).map_err(|e| {
            Error::invalid(format!(
                "{}: argument 1 has a value that is not a token ({e}); give only integers from 0 to 4294967295",
                call.name()
            ))
        })?;
        let places = codes.find_token_positions(tokens.as_primitive::<UInt32Type>(), path)?;
        let decoded = DictionaryArray::try_new(places, Arc::clone(&codes.texts))?;
        call.to_lists(&x.with_leaves(Arc::new(decoded))?)
    },
    facts: FunctionFacts { reads_paths: true, ..FunctionFacts::NONE },
    ..Def::DEFAULTS
};

pub(super) static DESCENDANTS: Def = Def {
    name: "descendants",
    arity: (1, 2),
    doc: Doc {
        section: FunctionSection::Codes,
        description: "Returns the given codes and all codes below them: those that name one of them in `parent_codes`, those that name one of these, and so on. The result is a list in string order, for `ragged_isin` or, unnested, for a join.",
        syntax: &["descendants(roots [, codes])"],
        args: &[
            ("roots", "a code, or a list of codes; they need not be in the file"),
            (
                "codes",
                "a `codes.parquet` with the column `parent_codes`, or the MEDS folder that has one, a literal; the setting `serrate.codes` by default",
            ),
        ],
        missing: "NULL returns NULL, and a NULL among the roots is ignored. A code that no other code names as its parent returns itself only. Circular references are allowed. A file without `parent_codes` is an error. The file is read once per query.",
        duckdb: "`WITH RECURSIVE` over `unnest(parent_codes)`.",
        example: example!("descendants"),
    },
    plan: |plan| {
        let given = plan.data_type(0);
        let roots = NestedListType::from_type(given);
        if roots.depth() > 1 || !(is_text(roots.leaf()) || roots.leaf().is_null()) {
            return Err(
                plan.refuse_call(format!("argument 1 must be a code or a list of codes, which are strings; it is {given}, so cast it first"))
            );
        }
        match plan.find_literal_text(1, "the codes", SUCH) {
            Err(_) if plan.find_known_literal(1).is_some_and(|v| v.is_null()) => {}
            other => {
                other?;
            }
        }
        Ok(make_nullable(DataType::new_list(DataType::Utf8, true)))
    },
    call: |call| {
        let setting = &SerrateOptions::of(call.config()).codes;
        let path = match call.read_text(1) {
            Some(path) => path,
            None if !setting.is_empty() => setting.as_str(),
            None => {
                return Err(Error::invalid(format!(
                    "{}: no file of codes is given; name a codes.parquet or the folder that has one, as in descendants('ICD10CM/E11', 'DIR'), or SET serrate.codes = 'DIR'",
                    call.name()
                )));
            }
        };
        let hierarchy = HIERARCHIES.get(&find_local_codes(path)?, |p| CodeHierarchy::read(p))?;
        let roots = RaggedArray::try_from_arrow(&call.read_array(0)?)?;
        let texts = cast(roots.leaves(), &DataType::Utf8)?;
        let texts = texts.as_string::<i32>();
        let mut out = ListBuilder::new(StringBuilder::new());
        for row in 0..roots.len() {
            let (range, valid) = match roots.axes().first() {
                Some(axis) => {
                    (axis.layout().range(row), axis.nulls().is_none_or(|n| n.is_valid(row)))
                }
                None => (row..row + 1, texts.is_valid(row)),
            };
            let own: Vec<&str> =
                range.filter(|i| texts.is_valid(*i)).map(|i| texts.value(i)).collect();
            if valid {
                hierarchy.descendants(&own).into_iter().for_each(|c| out.values().append_value(c));
            }
            out.append(valid);
        }
        Ok(Arc::new(out.finish()))
    },
    facts: FunctionFacts { reads_paths: true, ..FunctionFacts::NONE },
    ..Def::DEFAULTS
};
