//! [`SqlDialect`]: the DuckDB dialect of the parser, with DuckDB's precedence of `||`, and with
//! syntax that the parser otherwise accepts only in other dialects.

use std::any::TypeId;

use datafusion::common::config::Dialect as Named;
use datafusion::logical_expr::sqlparser::ast::{Expr, Value};
use datafusion::logical_expr::sqlparser::dialect::{Dialect, DuckDbDialect, dialect_from_str};
use datafusion::logical_expr::sqlparser::parser::{Parser, ParserError};
use datafusion::logical_expr::sqlparser::tokenizer::Token;

pub(in crate::sql) fn parser_dialect(named: Named) -> Option<Box<dyn Dialect>> {
    match named {
        Named::DuckDB => Some(Box::new(SqlDialect(DuckDbDialect))),
        other => dialect_from_str(other),
    }
}

/// DuckDB's dialect, in which the operator `||` binds looser than arithmetic and tighter than comparison, as
/// in DuckDB and PostgreSQL: `[1] || 2 + 3` is `[1, 5]`. In the parser's DuckDB dialect, `||` has the
/// precedence of `*`. Obsolete once the test `the_parser_still_joins_before_it_adds` fails.
#[derive(Debug)]
struct SqlDialect(DuckDbDialect);

/// The precedence of `||`, between `|` (21) and `+` (30) in the numbers of the parser.
const CONCATENATION: u8 = 25;

/// Delegates methods without arguments to the parser's DuckDB dialect.
macro_rules! as_duckdb {
    ($($method:ident),* $(,)?) => {
        $(fn $method(&self) -> bool {
            self.0.$method()
        })*
    };
}

impl Dialect for SqlDialect {
    /// The parser recognizes the DuckDB dialect by this type.
    fn dialect(&self) -> TypeId {
        TypeId::of::<DuckDbDialect>()
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        match parser.peek_token_ref().token {
            Token::StringConcat => Some(Ok(CONCATENATION)),
            _ => None,
        }
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        self.0.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        self.0.is_identifier_part(ch)
    }

    /// `E'a\nb'` is a string with escapes.
    fn supports_string_escape_constant(&self) -> bool {
        true
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        let Token::EscapedStringLiteral(text) = &parser.peek_token_ref().token else { return None };
        let value = Value::SingleQuotedString(text.clone());
        parser.advance_token();
        Some(Ok(Expr::value(value)))
    }

    /// IGNORE NULLS is accepted within the parentheses of a call.
    fn supports_window_function_null_treatment_arg(&self) -> bool {
        true
    }

    // These are the methods without arguments that `DuckDbDialect` of sqlparser 0.62 overrides.
    as_duckdb!(
        supports_trailing_commas,
        supports_filter_during_aggregation,
        supports_group_by_expr,
        supports_bitwise_shift_operators,
        supports_named_fn_args_with_eq_operator,
        supports_named_fn_args_with_assignment_operator,
        supports_dictionary_syntax,
        support_map_literal_syntax,
        supports_lambda_functions,
        allow_extract_single_quotes,
        supports_explain_with_utility_options,
        supports_load_extension,
        supports_array_typedef_with_brackets,
        supports_from_first_select,
        supports_order_by_all,
        supports_select_wildcard_exclude,
        supports_notnull_operator,
        supports_install,
        supports_detach,
        supports_select_wildcard_replace,
        supports_comma_separated_trim,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_operator(dialect: &dyn Dialect, text: &str) -> String {
        match Parser::new(dialect).try_with_sql(text).unwrap().parse_expr().unwrap() {
            Expr::BinaryOp { op, .. } => op.to_string(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn concatenation_binds_less_than_arithmetic() {
        let ours = parser_dialect(Named::DuckDB).unwrap();
        for (text, last) in [
            ("a || b + c", "||"),
            ("a + b || c", "||"),
            ("a || b % c", "||"),
            ("a || b = c", "="),
            ("a = b || c", "="),
            ("a < b || c + d", "<"),
            ("a || b AND c", "AND"),
        ] {
            assert_eq!(last_operator(ours.as_ref(), text), last, "{text}");
        }
    }

    #[test]
    fn the_parser_still_joins_before_it_adds() {
        assert_eq!(last_operator(&DuckDbDialect, "a || b + c"), "+");
    }

    /// Fails if a newer `DuckDbDialect` overrides a method that [`SqlDialect`] does not delegate.
    #[test]
    fn the_dialect_is_that_of_the_parser_but_for_precedence() {
        let ours = parser_dialect(Named::DuckDB).unwrap();
        assert!(ours.is::<DuckDbDialect>());
        for text in [
            "SELECT * EXCLUDE (a) FROM t",
            "SELECT * REPLACE (a + 1 AS a) FROM t",
            "FROM t",
            "SELECT {'a': 1}, MAP {'b': 2}, [1, 2], lambda x: x + 1",
            "SELECT a, b FROM t GROUP BY ALL ORDER BY ALL",
            "SELECT a NOTNULL, extract('year' FROM t), f(a := 1), f(b = 2), 1 << 2, trim(a, 'b')",
            "SELECT count(*) FILTER (WHERE a) FROM t GROUP BY ROLLUP (a),",
            "SELECT a // 2, CAST(x AS INTEGER[])",
            "EXPLAIN (ANALYZE) SELECT 1",
            "INSTALL spatial",
            "DETACH DATABASE IF EXISTS d",
        ] {
            let parse =
                |dialect: &dyn Dialect| Parser::parse_sql(dialect, text).map_err(|e| e.to_string());
            assert_eq!(parse(ours.as_ref()), parse(&DuckDbDialect), "{text}");
        }
    }
}
