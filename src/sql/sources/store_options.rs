//! Parses the names of options of object stores (feature `cloud`).

use std::collections::BTreeMap;
use std::str::FromStr;

use datafusion::common::plan_err;
use datafusion::error::Result;

/// Returns the options of a store by the keys of `object_store`. In a statement, the names of these
/// options begin with `prefix`. `known` lists some of them, for the error about an unknown option.
///
/// # Errors
/// If an option is unknown, or given twice under two of its names, such as `region` and
/// `aws_region`: only one of the values would have an effect.
pub(super) fn parse_options<'a, K: FromStr + PartialEq>(
    options: &'a BTreeMap<String, String>,
    prefix: &str,
    known: &str,
) -> Result<Vec<(K, &'a String)>> {
    let mut parsed: Vec<(K, &String)> = Vec::new();
    for (name, value) in options {
        // `datafusion-cli` has the first name for this option of Google's stores.
        let plain = match name.as_str() {
            "application_credentials_path" => "application_credentials",
            name => name,
        };
        let Ok(key) = plain.parse::<K>() else {
            return plan_err!(
                "the option {prefix}.{name} is unknown; known options include {known}"
            );
        };
        if parsed.iter().any(|(other, _)| *other == key) {
            return plan_err!(
                "the option {prefix}.{name} is given twice, under two of its names; write it once"
            );
        }
        parsed.push((key, value));
    }
    Ok(parsed)
}
