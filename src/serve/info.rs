//! Descriptions of the server: SqlInfo, and the names of types for ODBC and JDBC.

use arrow_flight::error::FlightError;
use arrow_flight::sql::metadata::{
    SqlInfoData, SqlInfoDataBuilder, XdbcTypeInfo, XdbcTypeInfoData, XdbcTypeInfoDataBuilder,
};
use arrow_flight::sql::{
    Nullable, Searchable, SqlInfo, SqlSupportedCaseSensitivity, SqlSupportedTransaction,
    XdbcDataType,
};

use crate::access;

/// Maximum length of strings and binary values in bytes, as reported to clients.
const LONGEST: i32 = i32::MAX;

pub(super) fn describe_server() -> Result<SqlInfoData, FlightError> {
    let mut info = SqlInfoDataBuilder::new();
    info.append(SqlInfo::FlightSqlServerName, "serrate");
    info.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    info.append(SqlInfo::FlightSqlServerArrowVersion, arrow::ARROW_VERSION);
    info.append(SqlInfo::FlightSqlServerReadOnly, access::is_read_only());
    info.append(SqlInfo::FlightSqlServerSql, true);
    info.append(SqlInfo::FlightSqlServerSubstrait, false);
    info.append(SqlInfo::FlightSqlServerBulkIngestion, true);
    info.append(SqlInfo::FlightSqlServerIngestTransactionsSupported, false);
    info.append(SqlInfo::FlightSqlServerTransaction, SqlSupportedTransaction::None as i32);
    info.append(SqlInfo::FlightSqlServerCancel, true);
    info.append(SqlInfo::FlightSqlServerStatementTimeout, 0i32);
    info.append(SqlInfo::FlightSqlServerTransactionTimeout, 0i32);
    info.append(SqlInfo::SqlDdlCatalog, true);
    info.append(SqlInfo::SqlDdlSchema, true);
    info.append(SqlInfo::SqlDdlTable, true);
    info.append(
        SqlInfo::SqlIdentifierCase,
        SqlSupportedCaseSensitivity::SqlCaseSensitivityLowercase as i32,
    );
    info.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    info.append(
        SqlInfo::SqlQuotedIdentifierCase,
        SqlSupportedCaseSensitivity::SqlCaseSensitivityCaseInsensitive as i32,
    );
    info.append(SqlInfo::SqlAllTablesAreSelectable, true);
    info.append(SqlInfo::SqlTransactionsSupported, false);
    info.append(SqlInfo::SqlSchemaTerm, "schema");
    info.append(SqlInfo::SqlCatalogTerm, "catalog");
    info.append(SqlInfo::SqlCatalogAtStart, true);
    info.append(SqlInfo::SqlCorrelatedSubqueriesSupported, true);
    info.append(SqlInfo::SqlBatchUpdatesSupported, false);
    info.append(SqlInfo::SqlSavepointsSupported, false);
    info.append(SqlInfo::SqlSelectForUpdateSupported, false);
    info.append(SqlInfo::SqlStoredProceduresSupported, false);
    info.build()
}

/// One row of the table of types: the name of a type, its ODBC code, the size of a column, the
/// radix if this size counts digits, and the quote around a literal.
struct TypeRow(&'static str, XdbcDataType, i32, Option<i32>, Option<&'static str>);

/// Returns the types that ODBC and JDBC know. ODBC has no codes for lists and structs, so these are
/// missing.
pub(super) fn describe_types() -> Result<XdbcTypeInfoData, FlightError> {
    use XdbcDataType as Code;
    let rows = [
        TypeRow("BOOLEAN", Code::XdbcBit, 1, None, None),
        TypeRow("TINYINT", Code::XdbcTinyint, 3, Some(10), None),
        TypeRow("SMALLINT", Code::XdbcSmallint, 5, Some(10), None),
        TypeRow("INTEGER", Code::XdbcInteger, 10, Some(10), None),
        TypeRow("BIGINT", Code::XdbcBigint, 19, Some(10), None),
        TypeRow("REAL", Code::XdbcReal, 24, Some(2), None),
        TypeRow("DOUBLE", Code::XdbcDouble, 53, Some(2), None),
        TypeRow("DECIMAL", Code::XdbcDecimal, 76, Some(10), None),
        TypeRow("VARCHAR", Code::XdbcVarchar, LONGEST, None, Some("'")),
        TypeRow("BYTEA", Code::XdbcVarbinary, LONGEST, None, Some("'")),
        TypeRow("DATE", Code::XdbcDate, 10, None, Some("'")),
        TypeRow("TIME", Code::XdbcTime, 15, None, Some("'")),
        TypeRow("TIMESTAMP", Code::XdbcTimestamp, 26, None, Some("'")),
    ];
    let mut types = XdbcTypeInfoDataBuilder::new();
    for TypeRow(name, code, size, radix, quote) in rows {
        types.append(XdbcTypeInfo {
            type_name: name.into(),
            data_type: code,
            column_size: Some(size),
            literal_prefix: quote.map(Into::into),
            literal_suffix: quote.map(Into::into),
            create_params: (name == "DECIMAL")
                .then(|| vec!["precision".to_owned(), "scale".to_owned()]),
            nullable: Nullable::NullabilityNullable,
            case_sensitive: name == "VARCHAR",
            searchable: Searchable::Full,
            unsigned_attribute: radix.map(|_| false),
            fixed_prec_scale: false,
            auto_increment: radix.map(|_| false),
            local_type_name: Some(name.into()),
            minimum_scale: (name == "DECIMAL").then_some(0),
            maximum_scale: (name == "DECIMAL").then_some(76),
            sql_data_type: code,
            datetime_subcode: None,
            num_prec_radix: radix,
            interval_precision: None,
        });
    }
    types.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_descriptions_can_be_built() {
        let name = u32::try_from(SqlInfo::FlightSqlServerName as i32).unwrap();
        assert_eq!(describe_server().unwrap().record_batch([name]).unwrap().num_rows(), 1);
        assert_eq!(describe_types().unwrap().record_batch(None).unwrap().num_rows(), 13);
    }
}
