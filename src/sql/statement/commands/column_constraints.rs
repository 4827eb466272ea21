use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::sqlparser::ast::{
    ArrayElemTypeDef, ColumnDef, ColumnOption, ConstraintCharacteristics, DataType,
    DictionaryField, ExactNumberInfo, TableConstraint,
};
use serrate_core::internal::find_repeated;

use crate::sql::statement::folding::fold_name;

/// Returns an error for column options and constraints that DataFusion parses but does not store,
/// and for types that [`check_type`] rejects.
///
/// DataFusion does not check that the values of a PRIMARY KEY or UNIQUE column are unique, but
/// GROUP BY relies on their uniqueness, so repeated values lead to wrong groups. A key is therefore
/// accepted only if the statement declares it NOT ENFORCED.
pub(in crate::sql) fn check_columns(
    columns: &[ColumnDef],
    constraints: &[TableConstraint],
) -> Result<()> {
    for column in columns {
        check_type(&column.data_type)?;
        let defaults =
            column.options.iter().filter(|o| matches!(o.option, ColumnOption::Default(_)));
        if defaults.count() > 1 {
            return plan_err!("the column {} has two defaults; write only one", column.name);
        }
        for option in &column.options {
            match &option.option {
                ColumnOption::Null | ColumnOption::NotNull | ColumnOption::Default(_) => {}
                // The planner itself rejects FOREIGN KEY and CHECK.
                ColumnOption::ForeignKey(_) | ColumnOption::Check(_) => {}
                ColumnOption::PrimaryKey(key) => check_promise("PRIMARY KEY", key.characteristics)?,
                ColumnOption::Unique(key) => check_promise("UNIQUE", key.characteristics)?,
                other => {
                    return plan_err!(
                        "{other} of the column {} is not supported; write only a type, NOT NULL and DEFAULT",
                        column.name
                    );
                }
            }
        }
    }
    for constraint in constraints {
        match constraint {
            TableConstraint::PrimaryKey(key) => check_promise("PRIMARY KEY", key.characteristics)?,
            TableConstraint::Unique(key) => check_promise("UNIQUE", key.characteristics)?,
            // The planner itself rejects all other constraints of a table.
            _ => {}
        }
    }
    Ok(())
}

/// Returns an error for a decimal type with a negative scale, and for a struct with two fields of
/// the same name. DataFusion plans such types, but panics when it compares two such decimals, and
/// its cast to such a struct copies one field to both.
pub(in crate::sql) fn check_type(data_type: &DataType) -> Result<()> {
    match data_type {
        DataType::Decimal(info) | DataType::Numeric(info) | DataType::Dec(info) => match info {
            ExactNumberInfo::PrecisionAndScale(precision, scale) if *scale < 0 => plan_err!(
                "{data_type} has a negative scale, which is not supported; write DECIMAL({}, 0), and round(x, {scale}) to round",
                precision.saturating_add(scale.unsigned_abs())
            ),
            _ => Ok(()),
        },
        DataType::Array(
            ArrayElemTypeDef::AngleBracket(item)
            | ArrayElemTypeDef::SquareBracket(item, _)
            | ArrayElemTypeDef::Parenthesis(item),
        ) => check_type(item),
        DataType::Struct(fields, _) => {
            let names = fields.iter().filter_map(|field| field.field_name.as_ref());
            let names: Vec<String> = names.map(fold_name).collect();
            if let Some(name) = find_repeated(&names) {
                return refuse_field(name);
            }
            fields.iter().try_for_each(|field| check_type(&field.field_type))
        }
        _ => Ok(()),
    }
}

/// Returns an error for a struct such as `{'a': 1, 'a': 2}`, whose second field cannot be read.
pub(in crate::sql) fn check_entries(entries: &[DictionaryField]) -> Result<()> {
    match find_repeated(entries.iter().map(|entry| entry.key.value.as_str())) {
        Some(name) => refuse_field(name),
        None => Ok(()),
    }
}

fn refuse_field(name: &str) -> Result<()> {
    plan_err!("a struct has two fields named {name}; give each field its own name")
}

/// Removes UNIQUE from columns that may be NULL.
///
/// NULL may occur several times in a unique column. DataFusion 55 still takes the column for a key
/// of the rows, so DISTINCT and GROUP BY return a NULL several times:
/// <https://github.com/apache/datafusion/issues/23820>. Removing UNIQUE affects only speed.
pub(in crate::sql) fn drop_nullable_keys(
    columns: &mut [ColumnDef],
    constraints: &mut Vec<TableConstraint>,
) {
    let is_required = |column: &ColumnDef| {
        column
            .options
            .iter()
            .any(|o| matches!(o.option, ColumnOption::NotNull | ColumnOption::PrimaryKey(_)))
    };
    for column in columns.iter_mut().filter(|column| !is_required(column)) {
        column.options.retain(|o| !matches!(o.option, ColumnOption::Unique(_)));
    }
    constraints.retain(|constraint| {
        let TableConstraint::Unique(key) = constraint else { return true };
        key.columns.iter().all(|of| {
            let name = of.column.expr.to_string();
            columns.iter().any(|column| column.name.to_string() == name && is_required(column))
        })
    });
}

fn check_promise(key: &str, said: Option<ConstraintCharacteristics>) -> Result<()> {
    match said {
        Some(ConstraintCharacteristics {
            enforced: Some(false),
            deferrable: None,
            initially: None,
        }) => Ok(()),
        _ => plan_err!(
            "{key} is not supported, because INSERT does not check it; remove it, or write {key} NOT ENFORCED if all rows satisfy it"
        ),
    }
}
