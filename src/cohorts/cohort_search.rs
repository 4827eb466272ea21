//! [`Cohort`]: finds the realizations of criteria (triggers that satisfy all of them) in MEDS data.

use std::ops::Range;

use super::boundary::WindowSide;
use super::cohort_rows::{CohortColumn, CohortRows, RealizationSlot};
use super::criteria::{CohortCriteria, EdgeCount, EdgeEnd, WindowEdge};
use super::events::{ShardEvents, SubjectCounts};
use super::matches::PlainPredicate;
use super::steps::Attrition;
use crate::error::{Error, Result};
use crate::io::meds::MedsReadOptions;
use crate::io::meds_torch::MedsFolder;
use serrate_core::internal::meds::NeededColumns;

#[derive(Debug)]
pub(crate) struct Cohort {
    pub(crate) folder: MedsFolder,
    pub(crate) criteria: CohortCriteria,
}

/// The range of time that a [`WindowEdge`] covers for one trigger.
#[derive(Clone, Copy)]
struct FoundRange {
    start: i64,
    end: i64,
    /// Time of the window end to which the edge leads: `start` if the edge is backward, else `end`.
    node: i64,
    /// `first..past` are the indices of those times of the subject that are in the range.
    first: usize,
    past: usize,
}

impl Cohort {
    pub(crate) fn new(folder: MedsFolder, criteria: CohortCriteria) -> Self {
        Self { folder, criteria }
    }

    /// Returns the name of a shard, such as `train/0`.
    pub(crate) fn format_shard_name(&self, shard: usize) -> String {
        match &self.folder {
            MedsFolder::Meds(data) => data.shards().nth(shard).map(|s| s.name().to_owned()),
            MedsFolder::Cohort(data) => data.shards().get(shard).map(|s| s.name().to_owned()),
        }
        .unwrap_or_default()
    }

    /// Reads a shard. Unless `shared_subjects`, a subject that is also in another shard is an
    /// error.
    pub(crate) fn read(&self, shard: usize, shared_subjects: bool) -> Result<ShardEvents> {
        let others = self.criteria.list_other_columns();
        let mut names = vec!["code".to_owned()];
        if self.criteria.plain.iter().any(PlainPredicate::has_bounds) {
            names.push("numeric_value".into());
        }
        names.extend(others.iter().cloned());
        if !self.criteria.statics.is_empty() {
            names.extend(names.clone().iter().map(|name| format!("static_{name}")));
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let options = MedsReadOptions {
            columns: Some(others),
            shared_subjects,
            ..MedsReadOptions::default()
        };
        let data = self.folder.read_needed(shard, &options, NeededColumns(Some(&names)))?;
        ShardEvents::try_new(&data, &self.criteria)
    }

    /// Finds the realizations (triggers that satisfy all criteria) of a range of subjects of a
    /// shard, in the order of subjects and times, with the numbers from which the result columns
    /// `columns` are built. Also counts the subjects and triggers that remain after each criterion.
    ///
    /// # Errors
    /// If times of a subject are not ascending, or an end of a window is outside the range of
    /// timestamps.
    pub(crate) fn search_subjects(
        &self,
        shard: &ShardEvents,
        subjects: Range<usize>,
        columns: &[CohortColumn],
    ) -> Result<(CohortRows, Attrition)> {
        let criteria = &self.criteria;
        let mut rows = CohortRows::new(criteria, columns);
        let mut attrition = Attrition::new(criteria);
        let mut counts = SubjectCounts::default();
        let mut found = Vec::with_capacity(criteria.edges.len());
        for row in subjects {
            let selected = counts.count_statics(shard, criteria, row);
            // Number of criteria that the subject satisfies. The 1 is for the criterion `data`,
            // which all subjects satisfy.
            let mut furthest = 1 + selected;
            if selected == criteria.statics.len() {
                counts.count_events(shard, criteria, row)?;
                let triggers = counts.find_column_sums(criteria.trigger);
                for (trigger, time) in counts.times.iter().enumerate() {
                    if triggers[trigger + 1] == triggers[trigger] {
                        continue;
                    }
                    found.clear();
                    let passed =
                        find_edges(criteria, &counts, *time, &mut found).map_err(|edge| {
                            Error::invalid(format!(
                                "shard {}: {} of subject {} is outside the range of timestamps; shorten the window, or correct the times of the subject",
                                shard.name(),
                                edge.name,
                                shard.ids[row]
                            ))
                        })?;
                    attrition.add_realization(passed);
                    furthest = furthest.max(2 + selected + passed);
                    if found.len() == criteria.edges.len() && passed == count_criteria(criteria) {
                        push_row(&mut rows, &counts, shard.ids[row], *time, &found);
                    }
                }
            }
            attrition.add_subject(furthest);
        }
        Ok((rows, attrition))
    }
}

fn count_criteria(criteria: &CohortCriteria) -> usize {
    criteria.edges.iter().map(|edge| 1 + edge.constraints.len()).sum()
}

/// Adds to `found` the time range of each edge for a trigger at the time `trigger`, up to the first
/// criterion that is not satisfied. Returns the number of satisfied criteria. If an edge ends
/// outside the range of timestamps, this edge is the error.
fn find_edges<'a>(
    criteria: &'a CohortCriteria,
    counts: &SubjectCounts,
    trigger: i64,
    found: &mut Vec<FoundRange>,
) -> std::result::Result<usize, &'a WindowEdge> {
    let mut passed = 0;
    for edge in &criteria.edges {
        let root = edge.parent.and_then(|parent| found.get(parent)).map_or(trigger, |f| f.node);
        let Some(node) = find_node(edge, counts, root)? else { return Ok(passed) };
        let (start, end) = match edge.target.is_backward() {
            true => (node, root),
            false => (root, node),
        };
        let (with_start, with_end) = edge.closed;
        let first = index_after(&counts.times, start, !with_start);
        let past = index_after(&counts.times, end, with_end).max(first);
        passed += 1;
        for constraint in &edge.constraints {
            let sums = counts.find_column_sums(constraint.column);
            let count = sums[past] - sums[first];
            if constraint.min.is_some_and(|min| count < min)
                || constraint.max.is_some_and(|max| count > max)
            {
                return Ok(passed);
            }
            passed += 1;
        }
        found.push(FoundRange { start, end, node, first, past });
    }
    Ok(passed)
}

/// Returns the index of the first of `times`, which are ascending, that is later than `time` or,
/// unless `exclusive`, equal to it. Returns `times.len()` if there is none.
fn index_after(times: &[i64], time: i64, exclusive: bool) -> usize {
    times.partition_point(|t| if exclusive { *t <= time } else { *t < time })
}

/// Returns the time to which an edge leads from the time `root`, or `None` if the edge ends at an
/// event and the subject has no such event. An event at `root` itself counts only if `edge.closed`
/// includes the end to which the edge leads. Returns the edge as an error if it ends outside the
/// range of timestamps.
fn find_node<'a>(
    edge: &'a WindowEdge,
    counts: &SubjectCounts,
    root: i64,
) -> std::result::Result<Option<i64>, &'a WindowEdge> {
    let times = &counts.times;
    let (with_start, with_end) = edge.closed;
    let next = || index_after(times, root, !with_end);
    let previous = || index_after(times, root, with_start);
    Ok(match edge.target {
        EdgeEnd::Offset(micros) => Some(root.checked_add(micros).ok_or(edge)?),
        EdgeEnd::Event { column, backward: false } => {
            let sums = counts.find_column_sums(column);
            let next = next();
            let past = next + sums[next..].partition_point(|sum| *sum == sums[next]);
            times.get(past - 1).copied().filter(|_| past < sums.len())
        }
        EdgeEnd::Event { column, backward: true } => {
            let sums = counts.find_column_sums(column);
            let past = previous();
            let at = sums[..=past].partition_point(|sum| *sum < sums[past]);
            at.checked_sub(1).and_then(|at| times.get(at)).copied()
        }
        EdgeEnd::LastEvent => times.last().copied().filter(|_| next() < times.len()),
        EdgeEnd::FirstEvent => times.first().copied().filter(|_| previous() > 0),
    })
}

fn push_row(
    rows: &mut CohortRows,
    counts: &SubjectCounts,
    subject: i64,
    trigger: i64,
    found: &[FoundRange],
) {
    for (slot, values) in rows.slots.iter().zip(&mut rows.values) {
        values.push(match slot {
            RealizationSlot::Subject => subject,
            RealizationSlot::Trigger => trigger,
            RealizationSlot::End(edge, WindowSide::Start) => found[*edge].start,
            RealizationSlot::End(edge, WindowSide::End) => found[*edge].end,
            RealizationSlot::Count(EdgeCount { edge, column }) => {
                let (sums, FoundRange { first, past, .. }) =
                    (counts.find_column_sums(*column), found[*edge]);
                sums[past] - sums[first]
            }
        });
    }
    rows.rows += 1;
}
