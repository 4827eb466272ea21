//! Characters of a string by position: `s[2]`, `s[2:3]`.

use datafusion::common::ScalarValue;
use datafusion::functions::unicode::expr_fn::{right, substr, substring};
use datafusion::logical_expr::{Expr, GetFieldAccess, lit};

/// Returns the expression for `text[2]`, `text[-1]`, `text[2:3]`, `text[2:]` or `text[-3:]`;
/// positions count from 1, and the position 0 is before the first character. Returns `None` for
/// other positions, for positions that are not integer literals, and for a step other than 1.
pub(super) fn plan_characters(text: &Expr, access: &GetFieldAccess) -> Option<Expr> {
    match access {
        GetFieldAccess::ListIndex { key } => match find_integer(key)? {
            -1 => Some(right(text.clone(), lit(1i64))),
            0 => Some(substring(text.clone(), lit(1i64), lit(0i64))),
            at if at > 0 => Some(substring(text.clone(), lit(at), lit(1i64))),
            _ => None,
        },
        GetFieldAccess::ListRange { start, stop, stride } if find_integer(stride)? == 1 => {
            let start = match find_integer(start)? {
                0 => 1,
                start => start,
            };
            match (start, find_integer(stop)?) {
                (start, -1) if start > 0 => Some(substr(text.clone(), lit(start))),
                (start, -1) if start < 0 => Some(right(text.clone(), lit(start.checked_neg()?))),
                (start, stop) if start > 0 && stop >= 0 => {
                    let length = stop.checked_sub(start)?.checked_add(1)?.max(0);
                    Some(substring(text.clone(), lit(start), lit(length)))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

fn find_integer(e: &Expr) -> Option<i64> {
    match e {
        Expr::Literal(ScalarValue::Int64(value), _) => *value,
        _ => None,
    }
}
