//! Cohorts by criteria: configurations in the language of ACES, evaluated over MEDS data in one pass.
//!
//! [`Criteria`] is a configuration read from YAML: predicates, a trigger, and windows whose ends form a
//! tree (`tree`). For each subject, `events` counts the predicates at each time. For each trigger,
//! [`Cohort`] walks the tree, finds the ends of windows by binary search, and takes the counts of a
//! window from prefix sums.

mod boundary;
mod config;
mod duration;
mod events;
mod explain;
mod matches;
mod rows;
mod search;
mod steps;
mod tree;
mod yaml;

pub(crate) use config::Criteria;
pub(crate) use rows::{CohortColumn, CohortRows};
pub(crate) use search::Cohort;
pub(crate) use steps::Attrition;
