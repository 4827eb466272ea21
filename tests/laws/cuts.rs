//! Cuts: ways to run a statement that must not change its result.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::explained::OPTIMIZATIONS;
use crate::foreign::{Foreign, Writers};
use crate::sources::{HALF_EMPTY, run_query, split_rows};
use crate::tables::Table;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    Memory,
    Arrow,
    Parquet,
    Nrt,
}

/// How a cut stores the result of the statement before it reads the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrapping {
    /// The result is not stored: the cut runs the statement itself.
    Query,
    /// The cut runs CREATE TABLE .. AS with the statement, and selects all rows of this table.
    Table,
    /// The cut runs CREATE VIEW .. AS with the statement, and selects all rows of this view.
    View,
}

/// A cut: the source of the tables, the settings of the session, and how the result is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    pub source: Source,
    /// How another program writes the files, or `None` if we write them.
    pub foreign: Option<Foreign>,
    pub files: usize,
    pub partitions: usize,
    pub batch: usize,
    pub parquet_lists: bool,
    pub pushdown_filters: bool,
    /// A setting that switches off one or several of our rules, with its value.
    pub rule: Option<(String, String)>,
    /// A setting of DataFusion's planner with another value than the default.
    pub planner: Option<(String, String)>,
    /// Whether the plan checks the claims of its nodes (see [`crate::claims`]).
    pub claims: bool,
    pub wrapping: Wrapping,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            source: Source::Memory,
            foreign: None,
            files: 1,
            partitions: 1,
            batch: 8192,
            parquet_lists: true,
            pushdown_filters: true,
            rule: None,
            planner: None,
            claims: false,
            wrapping: Wrapping::Query,
        }
    }
}

impl Setup {
    /// Returns the names and values of the settings that the session of this cut has.
    pub fn settings(&self) -> Vec<(String, String)> {
        let one = |name: &str, value: &dyn fmt::Display| (name.to_string(), value.to_string());
        let mut out = vec![
            one("datafusion.execution.target_partitions", &self.partitions),
            one("datafusion.execution.batch_size", &self.batch),
            one("datafusion.execution.parquet.pushdown_filters", &self.pushdown_filters),
            one("serrate.parquet_lists", &self.parquet_lists),
            // A size of 0 lets even small files be divided into partitions.
            one("datafusion.optimizer.repartition_file_min_size", &0),
        ];
        out.extend(self.rule.clone());
        out.extend(self.planner.clone());
        out
    }

    /// Returns a label for each property of the cut, so that a run can count how often it was used.
    pub fn kinds(&self) -> Vec<String> {
        let mut out = vec![
            format!("source {:?}", self.source),
            format!("files {}", self.files),
            format!("partitions {}", self.partitions),
            format!("batch {}", self.batch),
        ];
        if self.source == Source::Parquet {
            out.push(format!("parquet_lists {}", self.parquet_lists));
            out.push(format!("pushdown_filters {}", self.pushdown_filters));
        }
        out.push(match &self.rule {
            None => "off no rule".into(),
            Some((name, value)) if value == "false" => format!("off {name}"),
            Some((_, names)) => format!("off {names}"),
        });
        let planner = self.planner.as_ref().map_or("the default", |(name, _)| name);
        out.push(format!("planner {planner}"));
        out.push(format!("claims {}", self.claims));
        out.push(format!("wrapping {:?}", self.wrapping));
        if let Some(foreign) = &self.foreign {
            let kinds = foreign.kinds(self.source);
            out.extend(kinds.iter().map(|kind| format!("foreign {:?}: {kind}", self.source)));
        }
        out
    }

    /// Returns the statements that set up this cut, after `CREATE TABLE` has created the tables in
    /// memory.
    pub fn script(&self, tables: &[&Table]) -> String {
        let mut out = format!("-- {self}\n");
        for (name, value) in self.settings() {
            // The value is quoted because it is a list of names with commas.
            match name == DISABLED {
                true => out.push_str(&format!("SET {name} = '{value}';\n")),
                false => out.push_str(&format!("SET {name} = {value};\n")),
            }
        }
        let extension = match self.source {
            Source::Memory => return out,
            Source::Arrow => "arrow",
            Source::Parquet => "parquet",
            Source::Nrt => "nrt",
        };
        if let Some(foreign) = &self.foreign {
            // The COPY statements of the script write other files than that program. With
            // SERRATE_LAWS_REPORT=FOLDER, the run keeps the original files.
            out.push_str(&format!("-- The difference needs the files of {foreign:?}\n"));
        }
        for table in tables {
            let name = &table.name;
            for (i, (from, n)) in
                split_rows(table.rows.num_rows(), self.files).into_iter().enumerate()
            {
                let options = match self.source {
                    Source::Parquet => " OPTIONS (max_row_group_size 5)",
                    _ => "",
                };
                out.push_str(&format!(
                    "COPY (SELECT * FROM {name} LIMIT {n} OFFSET {from}) TO '{name}/{i}.{extension}'{options};\n"
                ));
            }
            out.push_str(&format!(
                "DROP TABLE {name}; CREATE EXTERNAL TABLE {name} STORED AS {} LOCATION '{name}/';\n",
                extension.to_uppercase()
            ));
        }
        out
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} x{} partitions={} batch={}",
            self.source, self.files, self.partitions, self.batch
        )?;
        if self.source == Source::Parquet {
            write!(f, " lists={} pushdown={}", self.parquet_lists, self.pushdown_filters)?;
        }
        if let Some((name, value)) = &self.rule {
            write!(f, " {name}={value}")?;
        }
        if let Some((name, value)) = &self.planner {
            write!(f, " {name}={value}")?;
        }
        if self.claims {
            write!(f, " claims")?;
        }
        if self.wrapping != Wrapping::Query {
            write!(f, " as {:?}", self.wrapping)?;
        }
        if let Some(foreign) = &self.foreign {
            write!(f, " {foreign:?}")?;
        }
        Ok(())
    }
}

/// Deals values in random order. Each value is dealt once before any is dealt again.
#[derive(Clone, Debug)]
pub struct Deck<T> {
    values: Vec<T>,
    left: Vec<usize>,
}

impl<T: Clone> Deck<T> {
    pub fn new(values: Vec<T>) -> Self {
        Self { values, left: Vec::new() }
    }

    pub fn deal(&mut self, random: &mut ChaCha8Rng) -> T {
        if self.left.is_empty() {
            self.left = (0..self.values.len()).collect();
        }
        let at = random.random_range(0..self.left.len());
        self.values[self.left.swap_remove(at)].clone()
    }
}

/// The setting whose value is the names of the rules to switch off.
const DISABLED: &str = "serrate.disabled_rules";

/// The settings that a session lists and that a cut can change.
#[derive(Clone, Debug)]
pub struct Switches {
    /// Names of all our rules that only speed up queries.
    pub optimizations: Vec<String>,
    /// Settings that switch off rules which only speed up queries, each with the value that does
    /// so.
    pub rules: Vec<(String, String)>,
    /// Settings of DataFusion's planner, each with another value than the default.
    pub planner: Vec<(String, String)>,
}

impl Switches {
    /// Reads the settings from a session, so that cuts also change settings that are added later.
    pub async fn listed() -> Self {
        let ctx = serrate::sql::session();
        let sql = "SELECT name, value FROM information_schema.df_settings ORDER BY name";
        let rows = run_query(&ctx, sql).await.unwrap().rows;
        let all: Vec<(String, String)> = rows
            .iter()
            .map(|row| (row[0].trim_matches('"').into(), row[1].trim_matches('"').into()))
            .collect();
        let switched = all.iter().filter(|(name, _)| name.starts_with("serrate.rule."));
        let switched: Vec<String> = switched.map(|(name, _)| name.clone()).collect();
        let named = switched.iter().map(|name| name.replace("serrate.rule.", "serrate_"));
        let further = OPTIMIZATIONS.iter().map(|(name, _)| (*name).to_string());
        let optimizations: Vec<String> = named.chain(further).collect();
        let disable = |names: &str| (DISABLED.to_string(), names.to_string());
        let own = switched.iter().map(|name| (name.clone(), "false".to_string()));
        let single = optimizations.iter().map(|name| disable(name));
        let together = std::iter::once(disable(&optimizations.join(", ")));
        let rules = own.chain(single).chain(together).collect();
        let planner = all.iter().filter(|(name, value)| {
            name.starts_with("datafusion.optimizer.")
                && (value == "true" || name.contains("single_partition_threshold"))
        });
        let other = |value: &str| if value == "true" { "false" } else { "0" };
        Self {
            optimizations,
            rules,
            planner: planner.map(|(name, value)| (name.clone(), other(value).into())).collect(),
        }
    }
}

/// Deals the cuts for the statements of one world, so that each value of each property occurs
/// equally often.
pub struct Cuts {
    /// Sources of tables, each with whether another program writes the files.
    sources: Deck<(Source, bool)>,
    writers: Writers,
    files: Deck<usize>,
    partitions: Deck<usize>,
    batches: Deck<usize>,
    lists: Deck<bool>,
    filters: Deck<bool>,
    rules: Deck<Option<(String, String)>>,
    planner: Deck<Option<(String, String)>>,
    claims: Deck<bool>,
    wrappings: Deck<Wrapping>,
}

/// Returns the sources of the tables of a world, each with whether another program writes the
/// files.
///
/// A plain world has only values that `.nrt` can hold, and most of its cuts use `.nrt` files. Cuts
/// of other worlds use the other sources. A quarter of the worlds is plain, so that the four
/// sources occur about equally often. Some cuts of plain worlds use files of other programs,
/// because only values without NULL allow all fields of such files to be required.
fn list_sources(plain: bool) -> Vec<(Source, bool)> {
    let all = match plain {
        true => vec![
            (Source::Nrt, false),
            (Source::Nrt, false),
            (Source::Nrt, false),
            (Source::Parquet, true),
        ],
        false => vec![
            (Source::Memory, false),
            (Source::Memory, false),
            (Source::Arrow, false),
            (Source::Arrow, true),
            (Source::Parquet, false),
            (Source::Parquet, true),
        ],
    };
    match std::env::var("SERRATE_LAWS_FOREIGN").ok().as_deref() {
        None => all,
        Some("only") => vec![(Source::Arrow, true), (Source::Parquet, true)],
        Some("none") => all.into_iter().filter(|(_, is_foreign)| !is_foreign).collect(),
        Some(other) => panic!("SERRATE_LAWS_FOREIGN={other}"),
    }
}

impl Cuts {
    pub fn new(plain: bool, switches: &Switches) -> Self {
        let rules = std::iter::once(None).chain(switches.rules.iter().cloned().map(Some));
        // Half of the cuts have the default settings of the planner.
        let planner = switches.planner.iter().cloned().flat_map(|s| [Some(s), None]);
        let stored = vec![Wrapping::Table, Wrapping::View];
        Self {
            sources: Deck::new(list_sources(plain)),
            writers: Writers::new(),
            files: Deck::new(vec![1, 3, HALF_EMPTY]),
            partitions: Deck::new(vec![1, 2, 4]),
            batches: Deck::new(vec![1, 7, 8192]),
            lists: Deck::new(vec![true, false]),
            filters: Deck::new(vec![true, false]),
            rules: Deck::new(rules.collect()),
            planner: Deck::new(planner.collect()),
            claims: Deck::new(vec![true, false]),
            // Few cuts store the result, because a stored statement is planned three times.
            wrappings: Deck::new([vec![Wrapping::Query; 10], stored].concat()),
        }
    }

    pub fn deal(&mut self, random: &mut ChaCha8Rng) -> Setup {
        let (source, is_foreign) = self.sources.deal(random);
        let foreign = is_foreign.then(|| self.writers.deal(random));
        Setup {
            source,
            foreign,
            files: self.files.deal(random),
            partitions: self.partitions.deal(random),
            batch: self.batches.deal(random),
            parquet_lists: self.lists.deal(random),
            pushdown_filters: self.filters.deal(random),
            rule: self.rules.deal(random),
            planner: self.planner.deal(random),
            claims: self.claims.deal(random),
            wrapping: self.wrappings.deal(random),
        }
    }

    /// Returns all combinations of the properties, except that each setting of the planner, each
    /// kind of files of other programs and each way to store the result occurs only once.
    pub fn all(&self) -> Vec<Setup> {
        let mut out = Vec::new();
        let sources: BTreeSet<(Source, bool)> = self.sources.values.iter().copied().collect();
        for (source, is_foreign) in sources {
            if is_foreign {
                out.extend(Foreign::variants().into_iter().map(|foreign| Setup {
                    source,
                    foreign: Some(foreign),
                    files: 3,
                    partitions: 2,
                    batch: 7,
                    claims: true,
                    ..Setup::default()
                }));
                continue;
            }
            for wrapping in [Wrapping::Table, Wrapping::View] {
                out.push(Setup { source, wrapping, partitions: 2, ..Setup::default() });
            }
            for files in &self.files.values {
                for partitions in &self.partitions.values {
                    for batch in &self.batches.values {
                        for rule in &self.rules.values {
                            for read in 0..if source == Source::Parquet { 4 } else { 1 } {
                                out.push(Setup {
                                    source,
                                    foreign: None,
                                    files: *files,
                                    partitions: *partitions,
                                    batch: *batch,
                                    parquet_lists: read % 2 == 0,
                                    pushdown_filters: read < 2,
                                    rule: rule.clone(),
                                    planner: None,
                                    claims: true,
                                    wrapping: Wrapping::Query,
                                });
                            }
                        }
                    }
                }
            }
            for planner in self.planner.values.iter().flatten() {
                let planner = Some(planner.clone());
                out.push(Setup {
                    source,
                    partitions: 2,
                    planner,
                    claims: true,
                    ..Setup::default()
                });
            }
        }
        out
    }
}

/// How often each property of cuts was used in a run.
#[derive(Default)]
pub struct Counts(BTreeMap<String, usize>);

impl Counts {
    pub fn add(&mut self, name: impl Into<String>) {
        *self.0.entry(name.into()).or_default() += 1;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(name, n)| writeln!(f, "  {n:>8}  {name}"))
    }
}
