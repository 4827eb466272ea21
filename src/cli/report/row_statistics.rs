//! [`RowStatistics`]: everything that a report shows about the rows of its input.

use super::codes::CodeOverview;
use super::profile::TableProfile;
use super::timeline::TimelineChart;
use crate::audit::Audit;
use crate::cli::stats::ColumnGroup;
use crate::io::meds::PartSummary;

pub(super) struct RowStatistics {
    pub(super) groups: Vec<ColumnGroup<TableProfile>>,
    pub(super) codes: Option<CodeOverview>,
    pub(super) timelines: Vec<TimelineChart>,
    pub(super) splits: Vec<PartSummary>,
    pub(super) audit: Option<Audit>,
}
