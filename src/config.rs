//! [`SerrateOptions`]: the settings `serrate.*`.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Component, Path};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Once, OnceLock};

use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::common::config_err;
use datafusion::error::{DataFusionError, Result};
use sysinfo::System;

use crate::access;
use crate::memory::{memory_limit, set_memory_limit};

/// How SQL reads a NaN in a float column of an `.nrt` file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NrtNan {
    /// Reads NaN as NULL, because writers store NULL as NaN in `.nrt`. All formats then agree.
    #[default]
    Null,
    /// Reads NaN as NaN.
    Nan,
}

impl fmt::Display for NrtNan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Nan => "nan",
        })
    }
}

impl FromStr for NrtNan {
    type Err = DataFusionError;

    fn from_str(s: &str) -> Result<Self> {
        match s.trim().to_ascii_lowercase().as_str() {
            "null" => Ok(Self::Null),
            "nan" => Ok(Self::Nan),
            _ => config_err!("serrate.nrt_nan must be 'null' or 'nan', not '{s}'"),
        }
    }
}

/// Name and description of each optimizer rule that `SET serrate.rule.NAME = false` switches off.
/// These rules change the speed of a query, never its answer. [`DisabledRules`] can also switch off
/// rules without which answers may be wrong.
pub(crate) const RULES: [(&str, &str); 10] = [
    ("asof_projections", "Evaluate columns of a query in scans of meds_asof"),
    ("below_joins", "Evaluate functions that shrink lists below joins"),
    (
        "contains_pushdown",
        "Give Parquet scans the conditions ragged_any(x == v) and ragged_any(ragged_isin(x, ..))",
    ),
    ("flat_filters", "Filter without building lists where only a reduction reads the result"),
    ("leaf_batches", "Choose the rows of a batch by the leaves per row"),
    ("leaf_partitions", "Divide files of few rows and many leaves among the partitions"),
    ("lengths_below", "Evaluate functions of list lengths right above the scan"),
    ("lengths_into_scan", "Evaluate functions of list lengths in the scan"),
    ("list_keys", "Group by the bytes of lists instead of lists"),
    ("offset_into_scan", "Skip the rows of an OFFSET in the scan"),
];

/// Names of rules that a session does not apply, the value of `serrate.disabled_rules`.
///
/// The text form is the names with commas between them; empty text disables nothing. The table of
/// rules in `docs/internals/sql.md` has the names. Without a rule, answers may be wrong, and
/// statements may fail.
///
/// ```
/// use serrate::sql::{DisabledRules, session};
/// // The names are known from the first session of a process on.
/// let _ctx = session();
/// let rules: DisabledRules = "serrate_xor_pairs,keep_in_lists".parse()?;
/// assert!(rules.contains("keep_in_lists"));
/// assert_eq!(rules.to_string(), "keep_in_lists, serrate_xor_pairs");
/// assert!("no_such_rule".parse::<DisabledRules>().is_err());
/// # Ok::<(), serrate::datafusion::error::DataFusionError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DisabledRules(BTreeSet<&'static str>);

/// A function that looks up a name in the list of optimizer rules. Returns the name from the list,
/// or an error if there is no such rule or if the rule cannot be disabled.
type FindRule = fn(&str) -> Result<&'static str>;

static FIND_RULE: OnceLock<FindRule> = OnceLock::new();

/// Whether any session of this process has ever disabled a rule. Most rules run once per node of a
/// plan, so they read this flag before they look for the settings.
static ANY_DISABLED: AtomicBool = AtomicBool::new(false);

/// Sets the function that checks names of rules. The rules are in the module `sql`, on which this
/// module must not depend. Only the first call has an effect.
pub(crate) fn set_rule_finder(find: FindRule) {
    let _ = FIND_RULE.set(find);
}

impl DisabledRules {
    /// Returns whether a rule is disabled. Returns false if there is no rule of this name.
    ///
    /// ```
    /// assert!(!serrate::sql::DisabledRules::default().contains("serrate_xor_pairs"));
    /// ```
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Returns false if no session has ever disabled a rule: then the settings need not be read.
    pub(crate) fn may_exist() -> bool {
        ANY_DISABLED.load(Ordering::Relaxed)
    }
}

impl fmt::Display for DisabledRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.0.iter().enumerate() {
            write!(f, "{}{name}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl FromStr for DisabledRules {
    type Err = DataFusionError;

    fn from_str(text: &str) -> Result<Self> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let rules = names.map(|name| match FIND_RULE.get() {
            Some(find) => find(name),
            None => config_err!(
                "serrate.disabled_rules cannot be '{name}' before the process has created a session, because the names of the rules are then unknown; call serrate::sql::session first"
            ),
        });
        let rules = rules.collect::<Result<BTreeSet<_>>>()?;
        if !rules.is_empty() {
            ANY_DISABLED.store(true, Ordering::Relaxed);
        }
        Ok(Self(rules))
    }
}

/// The settings of Serrate in a DataFusion session, set with `SET serrate.NAME = VALUE`.
///
/// DataFusion carries the settings in the configuration, where functions and remote executors read
/// them.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serrate::sql::{SerrateOptions, session};
/// let ctx = session();
/// ctx.sql("SET serrate.leaf_batch_size = 1000").await?;
/// assert_eq!(SerrateOptions::of(ctx.state().config_options()).leaf_batch_size, 1000);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SerrateOptions {
    /// Maximum size in bytes of one dense tensor (of `densify`, or in a dense file). A larger
    /// tensor is refused before it is allocated. Default 4 GiB. Write a number, or a size such as
    /// `'512MiB'`, `'4GB'`.
    pub max_dense_bytes: u64,
    /// Whether local files are memory-mapped (default) or read. A mapped file must not be modified
    /// in place while it is in use; if it is truncated, the operating system ends the process.
    pub mmap: bool,
    /// How NaN in `.nrt` files is read: `'null'` (default) or `'nan'`.
    pub nrt_nan: NrtNan,
    /// Target number of leaf values (innermost list elements) per batch of a scan. Default 524288.
    pub leaf_batch_size: usize,
    /// Whether a MEDS subject may be in several shards, with one row per shard. By default, a
    /// subject in several shards is an error.
    pub meds_shared_subjects: bool,
    /// Path of the `codes.parquet` file, or of a MEDS folder with one, for calls of `descendants`
    /// without a file argument. Default: an empty string. Calls without a file argument are then
    /// errors.
    pub codes: String,
    /// Whether Serrate's own decoder reads list columns in Parquet files (default); if not,
    /// DataFusion's scan reads them.
    pub parquet_lists: bool,
    /// The optimizer rules that are switched off (`SET serrate.rule.below_joins = false`), to find
    /// out which rule slows down a query. None of these rules changes the answer of a query.
    /// Default none.
    pub rules_off: BTreeSet<&'static str>,
    /// Rules of any kind that are switched off by their full names (`SET serrate.disabled_rules =
    /// 'serrate_xor_pairs, keep_in_lists'`), for reports of bugs and for tests. Without a rule that
    /// works around a bug of DataFusion, answers may be wrong. Default none.
    pub disabled_rules: DisabledRules,
}

impl Default for SerrateOptions {
    fn default() -> Self {
        Self {
            max_dense_bytes: 4 << 30,
            mmap: true,
            nrt_nan: NrtNan::Null,
            leaf_batch_size: 524_288,
            meds_shared_subjects: false,
            codes: String::new(),
            parquet_lists: true,
            rules_off: BTreeSet::new(),
            disabled_rules: DisabledRules::default(),
        }
    }
}

impl SerrateOptions {
    /// Returns the settings of a session, or the defaults if the session has none.
    ///
    /// ```
    /// use serrate::datafusion::config::ConfigOptions;
    /// use serrate::sql::SerrateOptions;
    /// // The options of a plain session have no settings of Serrate.
    /// assert!(SerrateOptions::of(&ConfigOptions::default()).mmap);
    /// ```
    pub fn of(options: &ConfigOptions) -> &Self {
        static DEFAULT: LazyLock<SerrateOptions> = LazyLock::new(SerrateOptions::default);
        options.extensions.get::<Self>().unwrap_or(&DEFAULT)
    }

    fn set_rule(&mut self, name: &str, value: &str) -> Result<()> {
        let Some((name, _)) = RULES.iter().find(|(known, _)| *known == name) else {
            let known = RULES.map(|(name, _)| name).join(", ");
            return config_err!(
                "there is no optimizer rule serrate.rule.{name}; use one of {known}"
            );
        };
        match parse_bool(&format!("rule.{name}"), value)? {
            true => self.rules_off.remove(name),
            false => self.rules_off.insert(name),
        };
        Ok(())
    }
}

impl ConfigExtension for SerrateOptions {
    const PREFIX: &'static str = "serrate";
}

impl ExtensionOptions for SerrateOptions {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        if let Some(name) = key.strip_prefix("rule.") {
            return self.set_rule(name, value);
        }
        match key {
            "max_dense_bytes" => {
                self.max_dense_bytes = parse_bytes(value).map_err(|e| name_setting(key, &e))?;
            }
            "mmap" => self.mmap = parse_bool(key, value)?,
            "meds_shared_subjects" => self.meds_shared_subjects = parse_bool(key, value)?,
            "codes" => self.codes = value.into(),
            "memory_limit" => {
                let bytes = parse_memory(value).map_err(|e| name_setting(key, &e))?;
                let most = MEMORY_CAP.get().copied().unwrap_or(usize::MAX);
                if bytes > most {
                    return config_err!(
                        "serrate.memory_limit cannot be {value}, which is more than --memory-limit allows ({most} bytes); give a smaller limit, or start the process with a higher one"
                    );
                }
                set_memory_limit(bytes);
            }
            "parquet_lists" => self.parquet_lists = parse_bool(key, value)?,
            "nrt_nan" => self.nrt_nan = value.parse()?,
            "disabled_rules" => self.disabled_rules = value.parse()?,
            "leaf_batch_size" => {
                self.leaf_batch_size = match value.trim().parse() {
                    Ok(n) if n > 0 => n,
                    _ => {
                        return config_err!(
                            "serrate.leaf_batch_size must be a whole number above 0, not '{value}'"
                        );
                    }
                }
            }
            _ => {
                return config_err!(
                    "there is no setting serrate.{key}; use one of max_dense_bytes, mmap, nrt_nan, leaf_batch_size, meds_shared_subjects, codes, parquet_lists, memory_limit, disabled_rules, rule.NAME"
                );
            }
        }
        Ok(())
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let entry = |key: &str, value: String, description| ConfigEntry {
            key: format!("{}.{key}", Self::PREFIX),
            value: Some(value),
            description,
        };
        let mut entries = vec![
            entry(
                "max_dense_bytes",
                self.max_dense_bytes.to_string(),
                "Maximum number of bytes of one dense result; a larger one is refused before it is allocated",
            ),
            entry("mmap", self.mmap.to_string(), "Memory-map local files instead of reading them"),
            entry(
                "nrt_nan",
                self.nrt_nan.to_string(),
                "How NaN in .nrt files is read: 'null' or 'nan'",
            ),
            entry(
                "leaf_batch_size",
                self.leaf_batch_size.to_string(),
                "Number of leaf values per batch that scans of nested columns aim at",
            ),
            entry(
                "meds_shared_subjects",
                self.meds_shared_subjects.to_string(),
                "Read a MEDS subject that is in several shards as one row from each",
            ),
            entry(
                "codes",
                self.codes.clone(),
                "The codes.parquet or MEDS folder that descendants(..) uses by default",
            ),
            entry(
                "memory_limit",
                match memory_limit() {
                    usize::MAX => "unlimited".into(),
                    bytes => bytes.to_string(),
                },
                "Number of bytes that the process holds before queries spill to disk or fail; a size such as '4GB', or a share of the memory such as '80%'; it applies to all sessions",
            ),
            entry(
                "parquet_lists",
                self.parquet_lists.to_string(),
                "Read list columns in Parquet files with Serrate's own decoder",
            ),
            entry(
                "disabled_rules",
                self.disabled_rules.to_string(),
                "Names of rules that are not applied, with commas between them, to find a bug; answers may be wrong without a rule",
            ),
        ];
        entries.extend(RULES.map(|(name, description)| {
            let on = !self.rules_off.contains(name);
            entry(&format!("rule.{name}"), on.to_string(), description)
        }));
        entries
    }
}

/// Returns the error `e` about the value of the setting `serrate.{key}`, with the name of the
/// setting in front.
fn name_setting(key: &str, e: &DataFusionError) -> DataFusionError {
    DataFusionError::Configuration(format!("serrate.{key}: {}", e.message()))
}

fn parse_bool(key: &str, value: &str) -> Result<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => config_err!("serrate.{key} must be true or false, not '{value}'"),
    }
}

/// The memory limit of `--memory-limit`, in bytes. `SET serrate.memory_limit` refuses a higher
/// limit.
static MEMORY_CAP: OnceLock<usize> = OnceLock::new();

/// Share of the memory, in percent, that a process may use if no limit is set. The rest is for
/// other programs, and for memory that operators do not reserve, such as batches that they return.
const MEMORY_PERCENT: u64 = 70;

/// Sets the memory limit to `text`, such as `4GB`; SET can then only lower it. Without a call of
/// this function, the limit is [`MEMORY_PERCENT`] percent of the memory.
#[cfg_attr(not(feature = "cli"), allow(dead_code, reason = "the command sets it"))]
pub(crate) fn cap_memory(text: &str) -> Result<()> {
    let bytes = parse_memory(text)?;
    // The command calls this function only once, so the cell is empty.
    let _ = MEMORY_CAP.set(bytes);
    set_memory_limit(bytes);
    Ok(())
}

/// Returns the memory limit that applies before any SET, as a text that SET accepts.
pub(crate) fn default_memory() -> String {
    match MEMORY_CAP.get().copied().unwrap_or_else(|| compute_memory_share(MEMORY_PERCENT)) {
        usize::MAX => "unlimited".into(),
        bytes => bytes.to_string(),
    }
}

pub(crate) fn limit_memory_by_default() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if MEMORY_CAP.get().is_none() && memory_limit() == usize::MAX {
            set_memory_limit(compute_memory_share(MEMORY_PERCENT));
        }
    });
}

/// Returns `percent` percent, in bytes, of the memory that the process may use: the memory of the
/// machine or, if it is less, the limit of the control groups (cgroups) of the process.
fn compute_memory_share(percent: u64) -> usize {
    let mut system = System::new();
    system.refresh_memory();
    let total = system.total_memory();
    let usable = find_group_limit(Path::new("/")).map_or(total, |limit| limit.min(total));
    match usable {
        // 0 means that the operating system does not report the size of the memory.
        0 => usize::MAX,
        bytes => usize::try_from(bytes / 100 * percent).unwrap_or(usize::MAX),
    }
}

/// Returns the least memory limit of the control group of this process and the groups around it, in
/// bytes, or `None` if no group has a limit. `root` is the root of the file system.
/// `System::cgroup_limits` reads only the outermost group, which has no limit outside containers.
fn find_group_limit(root: &Path) -> Option<u64> {
    let groups = access::read_system_file(root.join("proc/self/cgroup")).ok()?;
    let mut least = None;
    for line in groups.lines() {
        // A line is `id:controllers:path`; in version 2 of control groups, `controllers` is empty.
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (mounts, file): (&[&str], &str) = match controllers {
            "" => (&["sys/fs/cgroup", "sys/fs/cgroup/unified"], "memory.max"),
            names if names.split(',').any(|name| name == "memory") => {
                (&["sys/fs/cgroup/memory"], "memory.limit_in_bytes")
            }
            _ => continue,
        };
        for mount in mounts {
            let mut folder = root.join(mount);
            let groups = Path::new(path).components();
            let groups = groups.filter(|group| matches!(group, Component::Normal(_)));
            for group in std::iter::once(None).chain(groups.map(Some)) {
                folder.extend(group);
                // In a container, the path can name groups outside of the container. Their files
                // cannot be read, so these groups are skipped.
                let text = access::read_system_file(folder.join(file)).ok();
                // The text is `max` if the group has no limit.
                let limit = text.and_then(|text| text.trim().parse::<u64>().ok());
                least = [least, limit].into_iter().flatten().min();
            }
        }
    }
    least
}

/// Parses a memory limit, and returns it in bytes: a number of bytes, a share of the memory such as
/// `80%`, or `unlimited`, which is `usize::MAX`. Any other string, and a limit of 0, is an error.
fn parse_memory(text: &str) -> Result<usize> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("unlimited") {
        return Ok(usize::MAX);
    }
    let bytes = match text.strip_suffix('%') {
        Some(number) => match number.trim().parse::<u64>() {
            Ok(percent @ 1..=100) => Ok(compute_memory_share(percent)),
            _ => {
                return config_err!(
                    "'{text}' is not a share of the memory; write one from '1%' to '100%'"
                );
            }
        },
        None => parse_bytes(text).map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
    };
    match bytes? {
        0 => {
            config_err!("the memory limit is 0 bytes, so no query could run; give at least '16MB'")
        }
        bytes => Ok(bytes),
    }
}

/// Parses a number of bytes with an optional unit: `1048576`, `512MiB`, `4 GB`.
pub(crate) fn parse_bytes(text: &str) -> Result<u64> {
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "kb" => 1_000,
        "m" | "mib" => 1 << 20,
        "mb" => 1_000_000,
        "g" | "gib" => 1 << 30,
        "gb" => 1_000_000_000,
        "t" | "tib" => 1 << 40,
        "tb" => 1_000_000_000_000,
        _ => 0,
    };
    match number.parse::<u64>().ok().and_then(|n| n.checked_mul(factor)) {
        Some(bytes) if factor > 0 => Ok(bytes),
        _ => config_err!(
            "'{text}' is not a whole number of bytes; write one such as 4294967296, '512MiB' or '4GB'"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_units() {
        assert_eq!(parse_bytes("17").unwrap(), 17);
        assert_eq!(parse_bytes("512MiB").unwrap(), 512 << 20);
        assert_eq!(parse_bytes("4 GB").unwrap(), 4_000_000_000);
        assert_eq!(parse_bytes(" 2 kib").unwrap(), 2048);
        for wrong in ["", "GB", "-1", "4 parsecs", "99999999999999TiB", "1.5GB"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_least_limit_of_the_control_groups_counts() {
        let find = |groups: &str, limits: &[(&str, &str)]| {
            let dir = tempfile::tempdir().unwrap();
            let files = limits.iter().map(|(name, text)| (format!("sys/fs/cgroup/{name}"), *text));
            for (name, text) in files.chain([("proc/self/cgroup".to_owned(), groups)]) {
                let path = dir.path().join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            find_group_limit(dir.path())
        };
        let unit = "0::/system.slice/query.service\n";
        let (slice, service) = ("system.slice/memory.max", "system.slice/query.service/memory.max");
        assert_eq!(find(unit, &[(slice, "max\n"), (service, "2147483648\n")]), Some(2 << 30));
        assert_eq!(find(unit, &[(slice, "1024\n"), (service, "2147483648\n")]), Some(1024));
        assert_eq!(find(unit, &[(slice, "max\n"), (service, "max\n")]), None);
        // A container sees its own group as the root of the mount, whatever the path says.
        assert_eq!(find(unit, &[("memory.max", "4096\n")]), Some(4096));
        assert_eq!(find("0::/../other\n", &[("memory.max", "4096\n")]), Some(4096));

        let first = "5:cpu,cpuacct:/a\n4:hugetlb,memory:/a/b\n0::/c\n";
        let (outer, inner) = ("memory/memory.limit_in_bytes", "memory/a/b/memory.limit_in_bytes");
        let unlimited = "9223372036854771712\n";
        assert_eq!(find(first, &[(outer, unlimited), (inner, "8192\n")]), Some(8192));
        assert_eq!(
            find(first, &[(inner, "8192\n"), ("unified/c/memory.max", "4096\n")]),
            Some(4096)
        );
        assert_eq!(find("", &[(outer, "8192\n")]), None);
    }

    #[test]
    fn memory_is_a_number_or_a_share() {
        assert_eq!(parse_memory("512MiB").unwrap(), 512 << 20);
        assert_eq!(parse_memory(" Unlimited ").unwrap(), usize::MAX);
        let (half, whole) = (parse_memory("50%").unwrap(), parse_memory("100 %").unwrap());
        assert!(half >= 16 << 20 && whole >= half && whole - 2 * half < 100, "{half} {whole}");
        for wrong in ["0", "0%", "101%", "x%", "-1", "", "much"] {
            assert!(parse_memory(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn unknown_names_and_values_are_refused() {
        let mut options = SerrateOptions::default();
        assert!(options.set("nrt_nan", "zero").unwrap_err().to_string().contains("'nan'"));
        assert!(options.set("nrt_man", "nan").unwrap_err().to_string().contains("nrt_nan"));
        assert!(options.set("leaf_batch_size", "0").is_err());
        assert!(options.set("mmap", "perhaps").is_err());
        options.set("nrt_nan", "NaN").unwrap();
        options.set("mmap", "false").unwrap();
        assert_eq!((options.nrt_nan, options.mmap), (NrtNan::Nan, false));
        assert!(
            options
                .set("rule.below_join", "false")
                .unwrap_err()
                .to_string()
                .contains("below_joins")
        );
        options.set("rule.below_joins", "false").unwrap();
        assert!(options.rules_off.contains("below_joins"));
        options.set("rule.below_joins", "true").unwrap();
        assert!(options.rules_off.is_empty());
    }
}
