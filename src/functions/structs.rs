//! Conversion between several lists of the same lengths and one list of structs.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StructArray};
use arrow::buffer::NullBuffer;
use arrow::compute::nullif;
use arrow::datatypes::{DataType, Field, FieldRef, Fields};

use super::args::{BatchCall, CallPlan};
use super::def::{ANY, Def, make_nullable, remove_extension};
use super::doc::{Doc, FunctionSection};
use super::example;
use super::lists::NestedListType;
use crate::array::{ListAxis, RaggedArray, list_kind};
use crate::error::{Error, Result};

pub(super) static ZIP: Def = Def {
    name: "ragged_zip",
    arity: (2, ANY),
    doc: Doc {
        section: FunctionSection::Structure,
        description: "Combines sibling lists into one list of structs with named fields, so that elements stay together when they are filtered, sorted or unnested. It reads offsets only. If the lists differ in depth, the structs are on the levels that all lists have, and hold deeper levels as lists.",
        syntax: &["ragged_zip('name', x [, 'name', y, ..])"],
        args: &[
            ("name", "the name of a field, a literal"),
            (
                "x",
                "a list of any depth; all lists have the same lengths on the levels that they share",
            ),
        ],
        missing: "A list that is NULL in all arguments is NULL. If it is NULL in some, it counts as empty there. Lists of different length are an error that names both and the row.",
        duckdb: "`list_zip(x, y)`, whose fields have no names.",
        example: example!("ragged_zip"),
    },
    plan: |plan| {
        let (shared, fields) = zip_type(plan)?;
        Ok(make_nullable(
            shared.to_plain_fields().wrap_outer(shared.depth(), DataType::Struct(fields)),
        ))
    },
    call: zip_lists,
    ..Def::DEFAULTS
};

fn zip_type(plan: &CallPlan<'_>) -> Result<(NestedListType, Fields)> {
    if plan.len() % 2 == 1 {
        return Err(plan.refuse_call(format!(
            "argument {} has no list; write each name followed by its list, as in ragged_zip('time', time, 'code', code)",
            plan.len()
        )));
    }
    let mut names: Vec<&str> = Vec::new();
    let mut lists = Vec::new();
    for i in (0..plan.len()).step_by(2) {
        let Some(name) = plan.find_literal_text(i, "a name", "'time'")? else { continue };
        if names.contains(&name) {
            return Err(plan.refuse_call(format!(
                "argument {} repeats the name {name:?}; give each list its own name",
                i + 1
            )));
        }
        names.push(name);
        lists.push(plan.require_lists(i + 1)?);
    }
    let shared = lists.iter().map(NestedListType::depth).min().unwrap_or_default();
    let fields = names.iter().enumerate().map(|(i, name)| {
        let field = plan.field(2 * i + 1);
        let below = find_type_below(field.data_type(), shared).clone();
        remove_extension(Field::new(*name, below, true).with_metadata(field.metadata().clone()))
    });
    let fields = fields.collect();
    let outer =
        |l: &NestedListType| NestedListType::from_type(&l.wrap_outer(shared, DataType::Null));
    let first =
        lists.first().map(outer).unwrap_or_else(|| NestedListType::from_type(&DataType::Null));
    Ok((lists.iter().fold(first, |all, other| all.widen_by(other)), fields))
}

pub(super) fn find_type_below(data_type: &DataType, levels: usize) -> &DataType {
    match list_kind(data_type) {
        Some((_, field)) if levels > 0 => find_type_below(field.data_type(), levels - 1),
        _ => data_type,
    }
}

fn zip_lists(call: &BatchCall<'_>) -> Result<ArrayRef> {
    let levels = NestedListType::from_type(call.return_type()).depth();
    let columns = (1..call.len())
        .step_by(2)
        .map(|i| RaggedArray::try_from_arrow_levels(&call.read_array(i)?, levels))
        .collect::<Result<Vec<_>>>()?;
    let Some((first, rest)) = columns.split_first() else {
        return Err(Error::invalid(
            "ragged_zip has no arguments; give at least one name and list, as in ragged_zip('time', time)",
        ));
    };
    let mut axes = Vec::with_capacity(levels);
    for axis in 1..=levels {
        let own = first.axis(axis)?;
        let mut nulls = own.nulls().cloned();
        for (i, other) in rest.iter().enumerate() {
            let theirs = other.axis(axis)?;
            if let Some(list) = own.layout().first_difference(theirs.layout()) {
                let name = |i: usize| call.read_text(2 * i).unwrap_or_default();
                return Err(Error::invalid(format!(
                    "ragged_zip: list {list} of axis {axis} has {} element(s) in {:?} and {} in {:?}; zipped lists must have the same lengths",
                    own.layout().length(list),
                    name(0),
                    theirs.layout().length(list),
                    name(i + 1)
                )));
            }
            nulls = match (&nulls, theirs.nulls()) {
                (Some(a), Some(b)) => Some(NullBuffer::new(a.inner() | b.inner())),
                _ => None,
            };
        }
        axes.push(ListAxis::try_new(own.layout().clone(), nulls)?);
    }
    let DataType::Struct(fields) = NestedListType::from_type(call.return_type()).leaf().clone()
    else {
        return Err(Error::invalid(format!(
            "internal error: the result of ragged_zip must be a list of structs, not {}; please report it",
            call.return_type()
        )));
    };
    let leaves = columns.iter().map(|c| Arc::clone(c.leaves())).collect();
    let all = StructArray::try_new_with_length(fields, leaves, None, first.leaves().len())?;
    call.to_lists(&RaggedArray::try_new(first.len(), axes, Arc::new(all))?)
}

pub(super) static UNZIP: Def = Def {
    name: "ragged_unzip",
    arity: (1, ANY),
    doc: Doc {
        section: FunctionSection::Structure,
        description: "Returns one field of all structs of a list as a list: `ragged_unzip(visits, 'time')`. Further names select fields of nested lists: `ragged_unzip(visits, 'labs', 'value')` returns the values of the lists in `labs`. Without a name, it returns a struct of lists, one per field. Offsets and values are shared with `x`.",
        syntax: &["ragged_unzip(x, 'name' [, 'name', ..])", "ragged_unzip(x)"],
        args: &[
            ("x", "a list of structs, of any depth"),
            ("name", "the name of a field, a literal"),
        ],
        missing: "Lists keep their lengths. A NULL struct returns NULL.",
        duckdb: "`list_transform(x, lambda s: s.name)`.",
        example: example!("ragged_unzip"),
    },
    plan: |plan| {
        let lists = plan.require_lists(0)?;
        let DataType::Struct(fields) = lists.leaf() else {
            return Err(plan.refuse_call(format!(
                "argument 1 must be a list of structs; its values are {}, so make structs with ragged_zip first",
                lists.leaf()
            )));
        };
        if plan.len() == 1 {
            let parts = fields.iter().map(|f| {
                let part = f.as_ref().clone();
                let part = part.with_data_type(make_field_lists_type(&lists, f));
                remove_extension(part.with_nullable(true))
            });
            return Ok(make_nullable(DataType::Struct(parts.collect())));
        }
        let mut at = lists;
        let mut metadata = std::collections::HashMap::new();
        for i in 1..plan.len() {
            let name = plan.find_literal_text(i, "the name", "'time'")?.unwrap_or_default();
            let field = find_field(at.leaf(), i, name).map_err(|e| plan.refuse_call(e))?;
            metadata.clone_from(field.metadata());
            at = NestedListType::from_type(&make_field_lists_type(&at, field));
        }
        let out = at.replace_leaf(at.leaf().clone());
        let field = make_nullable(out).as_ref().clone().with_metadata(metadata);
        Ok(Arc::new(remove_extension(field)))
    },
    call: unzip_field,
    ..Def::DEFAULTS
};

fn make_field_lists_type(lists: &NestedListType, field: &Field) -> DataType {
    lists
        .to_plain_fields()
        .wrap_outer(lists.depth(), NestedListType::from_type(field.data_type()).open())
}

fn find_field<'a>(
    leaf: &'a DataType,
    i: usize,
    name: &str,
) -> std::result::Result<&'a FieldRef, String> {
    let DataType::Struct(fields) = leaf else {
        return Err(format!(
            "argument {} ({name:?}) names a field, but the values are {leaf}, not structs; remove the name",
            i + 1
        ));
    };
    fields.iter().find(|f| f.name() == name).ok_or_else(|| {
        let names: Vec<_> = fields.iter().map(|f| format!("{:?}", f.name())).collect();
        format!("argument {} ({name:?}) is not one of the fields {}", i + 1, names.join(", "))
    })
}

fn unzip_field(call: &BatchCall<'_>) -> Result<ArrayRef> {
    let mut x = call.read_ragged(0)?;
    if call.len() == 1 {
        let DataType::Struct(fields) = call.return_type() else {
            return Err(Error::invalid(format!(
                "internal error: the result of ragged_unzip must be a struct, not {}; please report it",
                call.return_type()
            )));
        };
        let columns = fields
            .iter()
            .map(|f| open_field(&x, f.name())?.to_arrow_as(f.data_type()))
            .collect::<Result<Vec<_>>>()?;
        let all = StructArray::try_new_with_length(fields.clone(), columns, None, x.len())?;
        return Ok(Arc::new(all));
    }
    for i in 1..call.len() {
        x = open_field(&x, call.read_text(i).unwrap_or_default())?;
    }
    call.to_lists(&x)
}

fn open_field(x: &RaggedArray, name: &str) -> Result<RaggedArray> {
    let all = x.leaves().as_struct();
    let Some(values) = all.column_by_name(name) else {
        return Err(Error::invalid(format!(
            "ragged_unzip: the structs have no field {name:?}; name one of their fields: {}",
            all.column_names().join(", ")
        )));
    };
    let values = match all.nulls() {
        None => Arc::clone(values),
        Some(nulls) => nullif(values, &BooleanArray::new(!nulls.inner(), None))?,
    };
    let below = RaggedArray::try_from_arrow(&values)?;
    let (rows, mut axes, _) = x.clone().into_parts();
    let (_, inner, leaves) = below.into_parts();
    axes.extend(inner);
    RaggedArray::try_new(rows, axes, leaves)
}
