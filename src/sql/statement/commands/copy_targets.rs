//! Checks the options and the format of COPY and CREATE EXTERNAL TABLE, and the target of COPY.

use std::any::Any;
use std::collections::HashSet;
use std::path::Path;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::sql::parser::CopyToStatement;

use crate::access;
use crate::sql::sources::dok::DokFormatFactory;
use crate::sql::sources::listing::file_kind::list_known_formats;
use crate::sql::sources::nrt::NrtFormatFactory;
use crate::sql::sources::parquet::ParquetFileFormatFactory;
use crate::sql::sources::safetensors::SafetensorsFormatFactory;
use crate::sql::sources::training::BATCHES;
use crate::sql::sources::urls::to_local_path;
use crate::sql::sources::whole_file_format::WholeFileFormatFactory;

/// Whether COPY in a format writes a folder if the target has no extension, such as `'x'`.
fn writes_folders(state: &SessionState, format: &str) -> bool {
    let Some(factory) = state.get_file_format_factory(format) else { return false };
    let factory: &dyn Any = factory.as_ref();
    factory.is::<ParquetFileFormatFactory>() || factory.is::<WholeFileFormatFactory>()
}

/// Whether a path is a device such as `/dev/stdout`, which is not a file that COPY can write.
fn is_device(path: &Path) -> bool {
    let names = ["/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/null"];
    names.iter().any(|name| path == Path::new(name)) || path.starts_with("/dev/fd/")
}

/// Whether a format's writer returns an error for an existing file unless `overwrite` is set.
fn is_careful(state: &SessionState, format: &str) -> bool {
    let Some(factory) = state.get_file_format_factory(format) else { return false };
    let factory: &dyn Any = factory.as_ref();
    factory.is::<NrtFormatFactory>()
        || factory.is::<DokFormatFactory>()
        || factory.is::<SafetensorsFormatFactory>()
        || factory.is::<ParquetFileFormatFactory>()
        || factory.is::<WholeFileFormatFactory>()
}

/// Returns an error if the target of COPY is an existing file that DataFusion's writer would
/// replace, unless `OPTIONS (overwrite true)` is given. Removes that option, which DataFusion does
/// not accept. Also returns an error if the target is a device.
pub(in crate::sql::statement) fn keep_existing(
    state: &SessionState,
    copy: &mut CopyToStatement,
) -> Result<()> {
    let Some(path) = to_local_path(&copy.target) else {
        // For a target in an object store, `UploadPlanner` checks whether the object exists.
        return Ok(());
    };
    if is_device(&path) {
        return plan_err!(
            "COPY writes files, not {}; to print rows in a format, run the query without COPY, with `serrate -f csv` or, in the shell, after .mode csv",
            path.display()
        );
    }
    let path = path.as_path();
    let extension = path.extension().map(|e| e.to_string_lossy().into_owned());
    if copy.stored_as.as_ref().is_some_and(|f| f.eq_ignore_ascii_case(BATCHES)) {
        // `STORED AS BATCHES` always writes a folder, and its writer checks for existing files.
        return Ok(());
    }
    let is_folder =
        extension.is_none() || copy.target.ends_with('/') || !copy.partitioned_by.is_empty();
    let is_named_parquet =
        extension.as_ref().is_some_and(|extension| extension.eq_ignore_ascii_case("parquet"));
    let format = copy.stored_as.clone().or(extension).unwrap_or_default().to_ascii_lowercase();
    let writes_folder = is_folder && writes_folders(state, &format);
    let is_ours = |key: &str| {
        key.eq_ignore_ascii_case("overwrite") || key.eq_ignore_ascii_case("format.overwrite")
    };
    // Whether DataFusion's Parquet writer, which replaces existing files, writes the file.
    let stock = format == "parquet"
        && (!is_named_parquet || copy.options.iter().any(|(key, _)| !is_ours(key)));
    if is_careful(state, &format) && !writes_folder && !access::is_dir(path) && !stock {
        return Ok(());
    }
    let mut overwrite = false;
    copy.options.retain(|(key, value)| {
        let ours = is_ours(key);
        overwrite |= ours && value.to_string().trim_matches('\'').eq_ignore_ascii_case("true");
        !ours
    });
    if writes_folder && access::is_file(path) {
        let shown = path.display();
        return plan_err!(
            "COPY writes a folder of files to {shown}, which is a file; remove the file, or give the name an extension, as in '{shown}.{format}', to write one file"
        );
    }
    if access::is_file(path) && !overwrite {
        return Err(crate::Error::Exists(path.into()).into());
    }
    if access::is_dir(path) && overwrite {
        return plan_err!(
            "the option overwrite of COPY replaces one file, but {} is a folder, to which COPY adds files; remove the folder first, or omit the option to keep the files in the folder",
            path.display()
        );
    }
    Ok(())
}

/// Returns an error if an option is given twice, because only one of its values would have an
/// effect.
pub(in crate::sql::statement) fn check_repeated_options<V>(options: &[(String, V)]) -> Result<()> {
    let mut names = HashSet::new();
    for (key, _) in options {
        let name = key.strip_prefix("format.").unwrap_or(key);
        // In `compression::a`, `a` is the name of a column, whose case matters.
        let name = match name.contains("::") {
            true => name.to_owned(),
            false => name.to_ascii_lowercase(),
        };
        if !names.insert(name) {
            return plan_err!("the option {key} is given twice; write it once");
        }
    }
    Ok(())
}

/// Returns an error for an option such as `execution.batch_size`, which DataFusion accepts and
/// ignores. Only `execution.keep_partition_by_columns` has an effect, in a COPY with PARTITIONED
/// BY: `partitions` are the columns of this clause.
pub(in crate::sql::statement) fn check_execution_options<V>(
    options: &[(String, V)],
    partitions: &[String],
) -> Result<()> {
    for (key, _) in options {
        let name = key.to_ascii_lowercase();
        let Some(setting) = name.strip_prefix("execution.") else { continue };
        if setting != "keep_partition_by_columns" || partitions.is_empty() {
            return plan_err!(
                "the option {key} has no effect here: the only option of this kind is execution.keep_partition_by_columns, of a COPY with PARTITIONED BY; remove it, or set it for all statements, as in SET datafusion.execution.{setting} = .."
            );
        }
    }
    Ok(())
}

/// Returns an error if no format is called `format`. The error lists the known formats after the
/// words `accepts`, such as `STORED AS accepts`.
pub(in crate::sql::statement) fn check_format(
    state: &SessionState,
    format: &str,
    accepts: &str,
) -> Result<()> {
    if state.get_file_format_factory(format).is_some()
        || state.table_factories().contains_key(&format.to_uppercase())
    {
        return Ok(());
    }
    plan_err!("the format {format} is unknown; {accepts} {}", list_known_formats(state))
}

/// Returns an error if COPY writes one file and its name has the extension of another format: a
/// reader chooses the format by the extension.
pub(in crate::sql::statement) fn check_extension(
    copy: &CopyToStatement,
    format: &str,
) -> Result<()> {
    let written = find_format_of_extension(format);
    let path = Path::new(&copy.target);
    let named = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    let named = named.filter(|_| copy.partitioned_by.is_empty() && !copy.target.ends_with('/'));
    match named {
        // An extension that no format has, such as `.bak`, is accepted.
        Some(named)
            if find_format_of_extension(&named)
                .is_some_and(|of| written.is_some_and(|w| w != of)) =>
        {
            plan_err!(
                "COPY writes the format {format} to {}, but its name has the extension .{named} of another format; use the extension .{}, or leave out the format {format}",
                copy.target,
                written.unwrap_or_default()
            )
        }
        _ => Ok(()),
    }
}

/// Returns the usual extension of a format that STORED AS or the extension of a file names: `arrow`
/// for `feather`, and `json` for `ndjson`. Returns `None` for an unknown format.
fn find_format_of_extension(name: &str) -> Option<&'static str> {
    Some(match name.to_ascii_lowercase().as_str() {
        "nrt" => "nrt",
        "parquet" => "parquet",
        "csv" => "csv",
        "arrow" | "ipc" | "feather" | "arrows" => "arrow",
        "json" | "ndjson" | "jsonl" => "json",
        "safetensors" | "dok" => "safetensors",
        _ => return None,
    })
}
