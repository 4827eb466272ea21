//! Statistics of a folder of training batches. The tensors of each batch become tables with one
//! row per item and without padding, so that the report describes them like other data.

use std::path::PathBuf;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::{not, nullif};

use super::codes::CodeOverview;
use super::profile::TableProfile;
use super::row_statistics::RowStatistics;
use super::tensors::TensorFacts;
use crate::array::{Layout, Offsets};
use crate::cli::command_failure::{Failure, Outcome};
use crate::cli::interrupt;
use crate::cli::output::compute_safe_ratio;
use crate::cli::progress::Progress;
use crate::cli::stats::{ColumnGroup, GroupProfile};
use crate::error::{Error, Result};
use crate::io::safetensors::{Dtype, FileAccess, SafetensorsFile, TensorEntry, dense};
use crate::loader::EpochStats;
use crate::table::RaggedTable;

pub(super) struct BatchStatistics {
    pub(super) rows: RowStatistics,
    pub(super) sizes: Vec<BatchExtent>,
    pub(super) total: EpochStats,
    pub(super) is_packed: bool,
    /// Sentences for the report. They say which tensors determine where lists end and which values
    /// are missing.
    pub(super) basis: Vec<String>,
}

impl BatchStatistics {
    pub(super) fn padding_share(&self) -> f64 {
        compute_safe_ratio(self.total.bytes.saturating_sub(self.total.occupied), self.total.bytes)
    }
}

/// Size of a batch: the bytes of its tensors, and how many of these bytes are not padding.
pub(super) struct BatchExtent {
    pub(super) file: String,
    pub(super) items: usize,
    pub(super) bytes: u64,
    pub(super) occupied: u64,
}

impl BatchExtent {
    pub(super) fn padding_share(&self) -> f64 {
        compute_safe_ratio(self.bytes.saturating_sub(self.occupied), self.bytes)
    }
}

/// Tensors of static measurements (measurements without a time). They form a table of their own,
/// because their lists differ in length from the lists of events.
const FACTS: [&str; 3] = ["static_code", "static_numeric_value", "static_numeric_value_mask"];
/// Tensors that only batches of health records have. The report recognizes such batches by these
/// tensors, and names the axes of such batches `event` and `measurement`.
const RECORDS: [&str; 4] =
    ["event_mask", "event_start", "numeric_value_mask", "static_numeric_value_mask"];
/// Maximum number of positions, with padding, of the deepest axis of a batch. The size of the file
/// does not limit this number: a tensor of the shape `[1000000000, 1000000000, 0]` has no bytes.
const MAX_POSITIONS: usize = 1 << 30;

/// How the report reads a batch: each [`TensorGroup`] of `parts` becomes one table.
pub(super) struct BatchLayout {
    is_packed: bool,
    parts: Vec<TensorGroup>,
}

/// Tensors whose lists have the same lengths, so that they are the columns of one table.
struct TensorGroup {
    axis_names: &'static [&'static str],
    members: Vec<GroupedTensor>,
    /// For each axis from axis 1 on, the tensors that determine where its lists end.
    lists: Vec<ListSource>,
}

struct GroupedTensor {
    tensor: String,
    axis: usize,
    role: TensorRole,
}

#[derive(PartialEq, Eq)]
enum TensorRole {
    /// A column. If a mask tensor says which of its values are present, `Some` has the name of this
    /// tensor.
    Column(Option<String>),
    /// The mask tensor of a column, such as `numeric_value_mask`.
    ValueMask,
    /// A tensor that is not a column: it says which elements of an axis are present, or its type is
    /// not supported.
    Other,
}

enum ListSource {
    Offsets(String),
    Mask(String),
    /// The batch has neither offsets nor a mask, so zeros are taken for padding. If the padding is
    /// on the right, a list ends after the last position at which a tensor is not 0. If it is on
    /// the left, a list begins at the first position at which a tensor is not 0.
    Values,
}

/// Returns where the lengths of the lists of each axis of a packed batch come from. `has` returns
/// whether there is a tensor of a name.
fn list_packed_sources(has: &dyn Fn(&str) -> bool) -> Vec<ListSource> {
    let names = (1usize..).map(|axis| match axis {
        1 => "dim1/cu_seqlens".to_owned(),
        axis => format!("dim{axis}/offsets"),
    });
    names.take_while(|name| has(name)).map(ListSource::Offsets).collect()
}

/// Returns where the lengths of the lists of axes 1 to `deepest` of a padded batch come from. `has`
/// returns whether there is a tensor of a name.
fn list_padded_sources(deepest: usize, has: &dyn Fn(&str) -> bool) -> Vec<ListSource> {
    let sources = (1..=deepest).map(|axis| match (axis, format!("dim{axis}/mask")) {
        (_, name) if has(&name) => ListSource::Mask(name),
        (1, _) if has("event_mask") => ListSource::Mask("event_mask".into()),
        _ => ListSource::Values,
    });
    sources.collect()
}

impl BatchLayout {
    /// Finds the layout of the batches in `files`. If they have no common layout, for example
    /// because they differ in their tensors, the inner error is the reason, which the report shows.
    pub(super) fn find_layout(
        files: &[PathBuf],
        tensors: &[TensorFacts],
    ) -> Outcome<std::result::Result<Self, &'static str>> {
        let Some(first) = files.first() else { return Ok(Err("there are no batches")) };
        if tensors.iter().any(|t| t.files != files.len() || t.types.len() != 1) {
            return Ok(Err("the batches do not have the same tensors"));
        }
        let first = SafetensorsFile::open(first, FileAccess::Map)?;
        let names: Vec<&str> = tensors.iter().map(|t| t.name.as_str()).collect();
        let has = |name: &str| names.contains(&name);
        let is_packed = has("dim1/cu_seqlens");
        let are_records = !has("dim1/mask") && RECORDS.iter().any(|name| has(name));
        let has_facts = if is_packed { has("static/cu_seqlens") } else { are_records };
        let axes = match is_packed {
            true => find_packed_axes(files, &names)?,
            false => tensors.iter().map(|t| t.sizes.as_ref()?.len().checked_sub(1)).collect(),
        };
        let mut records = Vec::new();
        let mut facts = Vec::new();
        for (tensor, axis) in first.tensors().iter().filter_map(|tensor| {
            let at = names.iter().position(|name| *name == tensor.name())?;
            Some((tensor, axes.get(at).copied().flatten()?))
        }) {
            let member = GroupedTensor {
                tensor: tensor.name().to_owned(),
                axis,
                role: find_role(tensor, &names, are_records),
            };
            match has_facts && FACTS.contains(&tensor.name()) {
                true => facts.push(member),
                false => records.push(member),
            }
        }
        let lists = match is_packed {
            true => list_packed_sources(&has),
            false => {
                let deepest = records.iter().map(|member| member.axis).max().unwrap_or(0);
                list_padded_sources(deepest, &has)
            }
        };
        let axis_names: &'static [&'static str] = match (are_records, lists.len()) {
            (true, 2) => &["item", "event", "measurement"],
            (true, 1) => &["item", "measurement"],
            _ => &["item"],
        };
        let mut parts = vec![TensorGroup { axis_names, members: records, lists }];
        if !facts.is_empty() {
            let lists = match is_packed {
                true => ListSource::Offsets("static/cu_seqlens".into()),
                false => ListSource::Values,
            };
            let axis_names = &["item", "static"];
            parts.push(TensorGroup { axis_names, members: facts, lists: vec![lists] });
        }
        Ok(Ok(Self { is_packed, parts }))
    }

    /// Reads batches one at a time. Returns their statistics with the `most` most frequent codes.
    pub(super) fn read_all(self, files: &[PathBuf], most: usize) -> Outcome<BatchStatistics> {
        let mut groups: Vec<ColumnGroup<TableProfile>> =
            self.parts.iter().map(|_| ColumnGroup::new(&[])).collect();
        let (mut sizes, mut total) = (Vec::new(), EpochStats::default());
        let progress = Progress::new(files.len());
        for path in files {
            interrupt::check_interrupt()?;
            progress.show_file(path);
            let file = SafetensorsFile::open(path, FileAccess::Map)?;
            let size = self.read_batch(&file, &mut groups).map_err(|f| f.with_file_name(path))?;
            progress.add_rows(size.items);
            let to_usize = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
            total.add(size.items, to_usize(size.bytes), to_usize(size.occupied));
            sizes.push(size);
        }
        progress.finish();
        let codes = groups.first().filter(|_| most > 0);
        let codes = codes.and_then(|group| CodeOverview::from_table(&group.profile, most));
        let (timelines, splits) = (Vec::new(), Vec::new());
        let rows = RowStatistics { groups, codes, timelines, splits, audit: None };
        let basis = self.describe_basis();
        Ok(BatchStatistics { rows, sizes, total, is_packed: self.is_packed, basis })
    }

    fn read_batch(
        &self,
        file: &SafetensorsFile,
        groups: &mut [ColumnGroup<TableProfile>],
    ) -> Outcome<BatchExtent> {
        let bytes: u64 = file.tensors().iter().map(TensorEntry::nbytes).sum();
        let (mut items, mut padding) = (0, 0u64);
        for (part, group) in self.parts.iter().zip(groups) {
            let table = match self.is_packed {
                true => part.read_packed(file)?,
                false => part.read_padded(file)?,
            };
            if !self.is_packed {
                padding = padding.saturating_add(part.count_padding(file, &table)?);
            }
            items = table.num_rows();
            group.stats.push(&table)?;
            group.profile.push(&table)?;
        }
        let name = file.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(BatchExtent { file: name, items, bytes, occupied: bytes.saturating_sub(padding) })
    }

    fn describe_basis(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        for part in &self.parts {
            for (axis, list) in (1..).zip(&part.lists) {
                let unit = part.name_elements(axis);
                sentences.push(match list {
                    ListSource::Offsets(name) | ListSource::Mask(name) => {
                        format!("The lists of {unit} follow from {name}.")
                    }
                    ListSource::Values => {
                        let names: Vec<&str> = part.list_marking(axis).collect();
                        format!(
                            "No mask tells which {unit} are padding: a list ends with the last position at \
                             which a value of {} is not 0, or begins with the first such position if the \
                             padding is on the left. An unknown code (token 0) at this end counts as padding.",
                            names.join(", ")
                        )
                    }
                });
            }
            let masked = part.members.iter().filter_map(|member| match &member.role {
                TensorRole::Column(Some(mask)) => Some(format!("{} ({mask})", member.tensor)),
                _ => None,
            });
            let masked: Vec<String> = masked.collect();
            if !masked.is_empty() {
                let all = masked.join(", ");
                sentences
                    .push(format!("Values that a mask marks as missing count as NULL: {all}."));
            }
        }
        sentences
    }
}

impl TensorGroup {
    /// Returns the plural noun for the elements of `axis`: its name with `s`, such as `events`, or
    /// `elements of axis 2` if it has no name.
    fn name_elements(&self, axis: usize) -> String {
        match self.axis_names.get(axis) {
            Some(&"static") => "static facts".into(),
            Some(name) => format!("{name}s"),
            None => format!("elements of axis {axis}"),
        }
    }

    /// Returns the tensors whose nonzero values show which positions of `axis`, which has no mask,
    /// hold an element: all tensors on this axis or a deeper one, except masks of values.
    fn list_marking(&self, axis: usize) -> impl Iterator<Item = &str> {
        // Masks of values do not mark padding: in batches for meds-torch-data, they are true for
        // padding, too.
        let marking = self.members.iter().filter(move |member| member.axis >= axis);
        marking.filter(|m| m.role != TensorRole::ValueMask).map(|m| m.tensor.as_str())
    }

    fn list_columns(&self) -> impl Iterator<Item = (&GroupedTensor, Option<&str>)> {
        self.members.iter().filter_map(|member| match &member.role {
            TensorRole::Column(mask) => Some((member, mask.as_deref())),
            _ => None,
        })
    }

    fn read_packed(&self, file: &SafetensorsFile) -> Result<RaggedTable> {
        let mut builder = RaggedTable::builder().names(self.axis_names);
        for list in &self.lists {
            let ListSource::Offsets(name) = list else { continue };
            let tensor = dense::read_one(file, file.tensor(name)?)?;
            let ends = tensor.as_slice::<i32>()?.iter().skip(1).map(|end| i64::from(*end));
            builder = builder.offsets(Offsets::from_bounds(ends, name)?);
        }
        for (member, mask) in self.list_columns() {
            let values = read_values(file, &member.tensor, mask)?;
            builder = builder.column(&member.tensor, member.axis, values);
        }
        builder.build()
    }

    fn read_padded(&self, file: &SafetensorsFile) -> Result<RaggedTable> {
        let sizes = self.find_sizes(file)?;
        let mut lists = sizes.first().copied().unwrap_or(0);
        let mut builder = RaggedTable::builder().rows(lists).names(self.axis_names);
        for size in sizes.iter().skip(1) {
            builder = builder.layout(Layout::Uniform { size: *size, lists });
            lists = lists.saturating_mul(*size);
        }
        for (member, mask) in self.list_columns() {
            let values = read_values(file, &member.tensor, mask)?;
            builder = builder.column(&member.tensor, member.axis, values);
        }
        let mut table = builder.build()?;
        // Filters the deepest axis first. `keep` has one flag per position of its axis, with
        // padding. Filtering an outer axis first would remove positions of the deeper axes, so that
        // their flags would no longer match.
        for (i, list) in self.lists.iter().enumerate().rev() {
            let axis = i + 1;
            let keep = match list {
                ListSource::Mask(name) => read_flags(file, name)?,
                _ => BooleanArray::from(self.find_elements(file, axis, &sizes)?),
            };
            table = table.filter_axis(i64::try_from(axis).unwrap_or(i64::MAX), &keep)?;
        }
        Ok(table)
    }

    /// Returns the size of each axis in the batch `file`, with padding: the shape of the tensor on
    /// the deepest axis. Returns an error if this axis has more than [`MAX_POSITIONS`] positions.
    fn find_sizes(&self, file: &SafetensorsFile) -> Result<Vec<usize>> {
        let Some(deepest) = self.members.iter().max_by_key(|m| m.axis) else {
            return Ok(Vec::new());
        };
        let sizes = file.tensor(&deepest.tensor)?.shape();
        let positions = sizes.iter().try_fold(1usize, |n, size| n.checked_mul((*size).max(1)));
        match positions.is_some_and(|n| n <= MAX_POSITIONS) {
            true => Ok(sizes.to_vec()),
            false => Err(Error::file(
                file.path(),
                format!(
                    "tensor {:?} has the shape {sizes:?}, which is too large for a report; write smaller batches",
                    deepest.tensor
                ),
            )),
        }
    }

    /// Returns one flag per position of `axis`, which has no mask tensor: true if the position
    /// holds an element, false if it is padding. `sizes` is the result of `find_sizes`.
    fn find_elements(
        &self,
        file: &SafetensorsFile,
        axis: usize,
        sizes: &[usize],
    ) -> Result<Vec<bool>> {
        let positions: usize = sizes.iter().take(axis.saturating_add(1)).product();
        let mut present = vec![false; positions];
        for name in self.list_marking(axis) {
            let tensor = dense::read_one(file, file.tensor(name)?)?;
            // Number of bytes per position of this axis, including its positions on deeper axes.
            let width = tensor.nbytes().checked_div(positions).unwrap_or(0);
            if width == 0 {
                continue;
            }
            for (present, bytes) in present.iter_mut().zip(tensor.as_bytes().chunks_exact(width)) {
                *present |= bytes.iter().any(|byte| *byte != 0);
            }
        }
        let size = sizes.get(axis).copied().unwrap_or(0);
        fill_lists(&mut present, size);
        Ok(present)
    }

    fn count_padding(&self, file: &SafetensorsFile, table: &RaggedTable) -> Result<u64> {
        let mut padding = 0u64;
        for member in &self.members {
            let tensor = file.tensor(&member.tensor)?;
            let (all, held) = (tensor.elements(), table.axis_len(member.axis)?);
            let bytes = u128::from(tensor.nbytes()) * all.saturating_sub(held) as u128;
            let bytes = bytes.checked_div(all as u128).unwrap_or(0);
            padding = padding.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        }
        Ok(padding)
    }
}

/// `present` has `size` flags per list. Makes each list one block of true flags, from the start of
/// the list to its last true flag: `[1, 0, 1, 0]` becomes `[1, 1, 1, 0]`. If the padding is on the
/// left, the block goes from the first true flag to the end: `[0, 1, 0, 1]` becomes `[0, 1, 1, 1]`.
fn fill_lists(present: &mut [bool], size: usize) {
    if size == 0 {
        return;
    }
    let ends = |list: &[bool]| {
        let first = list.iter().position(|held| *held)?;
        Some((first, list.iter().rposition(|held| *held)? + 1))
    };
    let found = || present.chunks(size).filter_map(ends);
    let is_left = found().any(|(first, _)| first > 0) && found().all(|(_, end)| end == size);
    for list in present.chunks_mut(size) {
        let Some((first, end)) = ends(list) else { continue };
        let start = if is_left { first } else { 0 };
        list[start..end].fill(true);
    }
}

fn find_role(tensor: &TensorEntry, names: &[&str], are_records: bool) -> TensorRole {
    let name = tensor.name();
    let has = |name: &str| names.contains(&name);
    let is_flag = tensor.dtype() == Dtype::BOOL;
    let marked = match name.strip_suffix("_mask").filter(|_| are_records) {
        Some(marked) => Some(marked),
        None => name.strip_suffix("/valid"),
    };
    if is_flag && marked.is_some_and(has) {
        return TensorRole::ValueMask;
    }
    let (top, rest) = name.split_once('/').unwrap_or((name, ""));
    let is_axis = top.strip_prefix("dim").is_some_and(|n| n.parse::<usize>().is_ok());
    let marks_axis = (is_axis || top == "static")
        && ["mask", "cu_seqlens", "offsets", "position_ids"].contains(&rest);
    if marks_axis
        || (are_records && name == "event_mask")
        || dense::from_dtype(tensor.dtype()).is_none()
    {
        return TensorRole::Other;
    }
    let mask = [format!("{name}/valid"), format!("{name}_mask")].into_iter();
    let mut mask = mask.filter(|mask| has(mask) && (are_records || mask.ends_with("/valid")));
    TensorRole::Column(mask.next())
}

/// Returns the axis of each tensor of packed batches. The shape of a packed tensor does not tell
/// its axis. Therefore, returns the outermost axis whose number of elements equals the number of
/// values of the tensor in every batch, or `None` if there is no such axis.
fn find_packed_axes(files: &[PathBuf], names: &[&str]) -> Outcome<Vec<Option<usize>>> {
    let has = |name: &str| names.contains(&name);
    let mut fits: Vec<Vec<bool>> = Vec::new();
    for path in files {
        interrupt::check_interrupt()?;
        let file = SafetensorsFile::open(path, FileAccess::Map)?;
        let items = file.tensor("dim1/cu_seqlens")?.elements().saturating_sub(1);
        let mut lengths = vec![items, read_last(&file, "dim1/cu_seqlens")?];
        for name in (2..).map(|axis| format!("dim{axis}/offsets")).take_while(|name| has(name)) {
            lengths.push(read_last(&file, &name)?);
        }
        let facts = match has("static/cu_seqlens") {
            true => Some([items, read_last(&file, "static/cu_seqlens")?]),
            false => None,
        };
        for (i, name) in names.iter().enumerate() {
            let elements = file.tensor(name)?.elements();
            let lengths = match &facts {
                Some(facts) if FACTS.contains(name) => &facts[..],
                _ => &lengths[..],
            };
            match fits.get_mut(i) {
                Some(known) => {
                    known.iter_mut().zip(lengths).for_each(|(fits, n)| *fits &= *n == elements);
                }
                None => fits.push(lengths.iter().map(|n| *n == elements).collect()),
            }
        }
    }
    Ok(fits.iter().map(|fits| fits.iter().position(|fits| *fits)).collect())
}

/// Returns the last offset in `name`, a tensor of the offsets of lists. It is the number of
/// elements of all lists together. Returns 0 if the tensor is empty.
fn read_last(file: &SafetensorsFile, name: &str) -> Outcome<usize> {
    let tensor = file.tensor(name)?;
    let wrong = |what: String| {
        Failure::from(Error::file(
            file.path(),
            format!("tensor {name:?}: {what}; create the batches again"),
        ))
    };
    if tensor.dtype() != Dtype::I32 {
        return Err(wrong(format!("offsets must have the type I32, not {}", tensor.dtype())));
    }
    let Some(last) = tensor.elements().checked_sub(1) else { return Ok(0) };
    let bytes = file.read_elements(tensor, last..tensor.elements())?;
    let end = bytes.as_slice().first_chunk().map_or(0, |bytes| i32::from_le_bytes(*bytes));
    usize::try_from(end)
        .map_err(|_| wrong(format!("the last offset is {end}, but must not be negative")))
}

/// Reads the values of a tensor. Values that the tensor `mask` marks as missing are NULL.
fn read_values(file: &SafetensorsFile, name: &str, mask: Option<&str>) -> Result<ArrayRef> {
    let values = dense::read_one(file, file.tensor(name)?)?.to_flat()?;
    let Some(mask) = mask else { return Ok(values) };
    let held = read_flags(file, mask)?;
    if held.len() != values.len() {
        return Err(Error::file(
            file.path(),
            format!(
                "the mask {mask:?} has {} elements, but the tensor {name:?} has {}; create the batches again",
                held.len(),
                values.len()
            ),
        ));
    }
    Ok(nullif(&values, &not(&held)?)?)
}

fn read_flags(file: &SafetensorsFile, name: &str) -> Result<BooleanArray> {
    let tensor = file.tensor(name)?;
    let flags = dense::read_one(file, tensor)?.to_flat()?;
    flags.as_boolean_opt().cloned().ok_or_else(|| {
        Error::file(
            file.path(),
            format!(
                "tensor {name:?} is a mask and must have the type BOOL, not {}; create the batches again",
                tensor.dtype()
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill_flags(flags: &[u8], size: usize) -> Vec<u8> {
        let mut present: Vec<bool> = flags.iter().map(|flag| *flag == 1).collect();
        fill_lists(&mut present, size);
        present.into_iter().map(u8::from).collect()
    }

    #[test]
    fn lists_end_where_the_padding_begins() {
        // Padding on the right. Two elements are 0 (unknown codes): one is within the first list,
        // and the other begins the second list.
        let right = [1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        assert_eq!(fill_flags(&right, 4), [1, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0]);
        // The first list begins with 0, an unknown code. The padding is on the right all the same,
        // because the second list ends with 0.
        assert_eq!(fill_flags(&[0, 1, 1, 1, 0, 0], 3), [1, 1, 1, 1, 0, 0]);
        let left = [0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1];
        let expected = [0, 1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1];
        assert_eq!(fill_flags(&left, 4), expected);
        assert_eq!(fill_flags(&[], 0), [0u8; 0]);
        assert_eq!(fill_flags(&[1, 0], 1), [1, 0]);
    }
}
