//! Cohorts by criteria: configurations in the language of ACES, evaluated over MEDS data in one
//! pass.
//!
//! [`CohortCriteria`] is a configuration read from YAML: predicates, a trigger, and windows whose
//! ends form a tree (`tree`). For each subject, `events` counts the predicates at each time. For
//! each trigger, [`Cohort`] walks the tree, finds the ends of windows by binary search, and takes
//! the counts of a window from prefix sums.

mod boundary;
mod cohort_rows;
mod cohort_search;
mod criteria;
mod duration;
mod events;
mod explain;
mod matches;
mod steps;
mod tree;
mod yaml;

pub(crate) use cohort_rows::{CohortColumn, CohortRows};
pub(crate) use cohort_search::Cohort;
pub(crate) use criteria::CohortCriteria;
pub(crate) use steps::Attrition;
