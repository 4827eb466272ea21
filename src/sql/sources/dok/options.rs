//! OPTIONS of DOK tables (sparse tensors and dictionaries) and of COPY to DOK files.

use std::collections::HashMap;
use std::path::PathBuf;

use datafusion::common::plan_err;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::Result;

use crate::access;
use crate::dok::DuplicateEntries;
use serrate_core::internal::find_repeated;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DokOptions {
    pub(super) shape: Option<Vec<usize>>,
    pub(super) keys: Option<Vec<String>>,
    /// How rows with the same keys are treated: `None` if the option is missing, `Some(None)` if
    /// such rows are an error.
    pub(super) duplicates: Option<Option<DuplicateEntries>>,
    pub(super) overwrite: bool,
}

impl DokOptions {
    /// Parses options. An option that is not in `known` is an error.
    pub(super) fn parse(options: &HashMap<String, String>, known: &[&str]) -> Result<Self> {
        let mut out = Self::default();
        for (key, value) in options {
            // DataFusion adds this prefix to the options of COPY and CREATE.
            let name = key.strip_prefix("format.").unwrap_or(key).to_ascii_lowercase();
            if !known.contains(&name.as_str()) {
                return plan_err!(
                    "this statement has no option '{name}' for the format DOK; its options are {}",
                    known.join(", ")
                );
            }
            let text = value.trim();
            match name.as_str() {
                "shape" => out.shape = Some(parse_shape(text)?),
                "keys" => out.keys = Some(parse_names(text)?),
                "duplicates" => {
                    out.duplicates = Some(match text.to_ascii_lowercase().as_str() {
                        "error" => None,
                        "last" => Some(DuplicateEntries::Last),
                        "sum" => Some(DuplicateEntries::Sum),
                        _ => {
                            return plan_err!(
                                "option 'duplicates' must be 'error', 'last' or 'sum', not '{text}'"
                            );
                        }
                    });
                }
                _ => {
                    out.overwrite = match text.to_ascii_lowercase().as_str() {
                        "true" | "on" | "1" | "yes" => true,
                        "false" | "off" | "0" | "no" => false,
                        _ => {
                            return plan_err!(
                                "option '{name}' must be true or false, not '{text}'"
                            );
                        }
                    };
                }
            }
        }
        if out.shape.is_some() && out.keys.is_some() {
            return plan_err!(
                "the options 'shape' and 'keys' cannot be combined; use 'shape' for a tensor, or 'keys' for a dictionary"
            );
        }
        Ok(out)
    }
}

/// Parses the option `shape`: one size per axis, written as `1000, 50` or `[1000, 50]`. Any other
/// text is an error.
fn parse_shape(text: &str) -> Result<Vec<usize>> {
    let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    let sizes: std::result::Result<Vec<usize>, _> =
        inner.split(',').map(|size| size.trim().parse()).collect();
    match sizes {
        Ok(sizes) => Ok(sizes),
        Err(_) => plan_err!(
            "option 'shape' must have one size per axis, such as '1000, 50', not '{text}'"
        ),
    }
}

/// Parses the option `keys`: names of columns, written as `subject_id, code`. An empty name and a
/// name that is listed twice are errors.
fn parse_names(text: &str) -> Result<Vec<String>> {
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    if names.iter().any(String::is_empty) {
        return plan_err!(
            "option 'keys' must be a list of columns such as 'subject_id, code', but '{text}' has an empty name"
        );
    }
    match find_repeated(&names) {
        None => Ok(names),
        Some(name) => plan_err!("option 'keys' lists the column '{name}' twice; remove one"),
    }
}

pub(super) fn find_local_file(location: &str) -> Result<PathBuf> {
    let url = ListingTableUrl::parse(location)?;
    match url.get_url().to_file_path() {
        Ok(path)
            if url.scheme() == "file" && url.get_glob().is_none() && !access::is_dir(&path) =>
        {
            Ok(path)
        }
        _ => {
            plan_err!(
                "a table STORED AS DOK needs the path of one local file as its LOCATION, not {location}"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(options: &[(&str, &str)]) -> Result<DokOptions> {
        let options = options.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        DokOptions::parse(&options, &["shape", "keys", "duplicates", "overwrite"])
    }

    #[test]
    fn options_say_what_they_are() {
        let all =
            parse(&[("format.shape", "[3, 4]"), ("duplicates", "SUM"), ("overwrite", "true")]);
        assert_eq!(
            all.unwrap(),
            DokOptions {
                shape: Some(vec![3, 4]),
                keys: None,
                duplicates: Some(Some(DuplicateEntries::Sum)),
                overwrite: true
            }
        );
        let keys = parse(&[("keys", "subject_id ,code"), ("duplicates", "error")]).unwrap();
        assert_eq!(keys.keys.unwrap(), ["subject_id", "code"]);
        assert_eq!(keys.duplicates, Some(None));
    }

    #[test]
    fn what_is_none_is_refused() {
        for (key, value) in [
            ("shap", "3"),
            ("shape", "3, x"),
            ("shape", "3, -1"),
            ("shape", ""),
            ("keys", "a,,b"),
            ("keys", "a, a"),
            ("duplicates", "first"),
            ("overwrite", "perhaps"),
        ] {
            assert!(parse(&[(key, value)]).is_err(), "{key} {value}");
        }
        assert!(parse(&[("keys", "a"), ("shape", "3")]).is_err());
        let typo = parse(&[("shap", "3")]).unwrap_err().to_string();
        assert!(typo.contains("shape, keys, duplicates, overwrite"), "{typo}");
    }
}
