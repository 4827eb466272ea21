//! Runs the cases of sparse tensors.

use serrate::dense::{DType, DenseTensor, Fill};
use serrate::dok::{DokTensor, DokUnary, DokValue, DuplicateEntries, ReducedAxes};
use serrate::index::{Index, IndexArray};
use serrate::{Error, Result};

use crate::format::{
    Case, Expected, Outcome, check_only, parse_ints, parse_slice, parse_tensor, same_tensor,
};
use crate::json::Json;

type Checked<T> = std::result::Result<T, String>;

/// The reason why an example of the Python library's README differs: it indexes each axis by
/// itself, which here has the name `index_orthogonal`.
const ORTHOGONAL: &str = "sparse tensors: `index` is numpy's; axis by axis is `index_orthogonal`";

/// The result of an operation.
enum Found {
    Sparse(DokTensor),
    Dense(DenseTensor),
    /// Two dense tensors with their names.
    Both([(&'static str, DenseTensor); 2]),
}

/// Runs a case. Returns an error if its result differs or its operation is unknown.
pub(crate) fn run(case: &Case) -> Checked<Outcome> {
    match (&case.expected, run_operation(case)?) {
        (Expected::Error { kind, gist }, Ok(_)) => {
            Err(format!("no error; expected {kind}: {gist}"))
        }
        (Expected::Error { kind, gist }, Err(error)) => {
            if matches_kind(&error, kind)? {
                Ok(Outcome::Passed)
            } else {
                Err(format!("the error {error}; expected {kind}: {gist}"))
            }
        }
        (Expected::Result(expected), Err(error)) if case.has_tag("readme-conflict") => {
            let (t, index) = (parse_input(case)?, parse_selectors(case)?);
            let (Ok(t), Some(index)) = (t, index) else { return Err(error.to_string()) };
            let found = t.index_orthogonal(&index).map_err(|e| e.to_string())?;
            same_tensor("orthogonal", &found, expected)?;
            Ok(Outcome::Differs(ORTHOGONAL))
        }
        (Expected::Result(_), Err(error)) => Err(error.to_string()),
        (Expected::Result(expected), Ok(found)) => {
            check_found(case, found, expected).map(|()| Outcome::Passed)
        }
    }
}

fn matches_kind(error: &Error, kind: &str) -> Checked<bool> {
    Ok(match kind {
        "IndexError" => match error {
            Error::OutOfRange { .. } | Error::NoSuchAxis { .. } => true,
            Error::Invalid(m) => ["indices", "mask", "index"].iter().any(|w| m.contains(w)),
            _ => false,
        },
        "ValueError"
        | "TypeError"
        | "AssertionError"
        | "RuntimeError"
        | "OverflowError"
        | "NotImplementedError" => !matches!(error, Error::Io { .. }),
        other => return Err(format!("errors of kind {other:?} are unknown")),
    })
}

/// Reads a sparse tensor. An inner error means that the tensor is invalid.
fn parse_dok(json: &Json) -> Checked<Result<DokTensor>> {
    check_only(json, "a sparse tensor", &["shape", "dtype", "indices", "values"])?;
    let part = |name: &str| json.get(name).ok_or_else(|| format!("a sparse tensor without {name}"));
    let shape: Vec<usize> = parse_ints(part("shape")?)?;
    if json.get("values").is_none() {
        return Ok(Err(Error::invalid("indices without values")));
    }
    let (indices, values) = (parse_tensor(part("indices")?)?, parse_tensor(part("values")?)?);
    let values = match json.get("dtype") {
        None | Some(Json::Null) => values,
        Some(dtype) => {
            let dtype: DType = dtype.text()?.parse().map_err(|e: Error| e.to_string())?;
            values.cast(dtype).map_err(|e| e.to_string())?
        }
    };
    Ok(DokTensor::from_coo(shape, &indices, &values, DuplicateEntries::Last))
}

/// Reads the tensor on which the operation is called: the input itself, or its member `dok`.
fn parse_input(case: &Case) -> Checked<Result<DokTensor>> {
    parse_dok(case.input.get("dok").unwrap_or(&case.input))
}

/// Appends the leaves of a nested list to `out` and sets `shape` to its shape. A ragged list is an
/// error.
fn flatten_nested(
    json: &Json,
    depth: usize,
    shape: &mut Vec<usize>,
    out: &mut Vec<Json>,
) -> Checked<()> {
    let Json::List(items) = json else {
        if depth != shape.len() {
            return Err("a list of varying depth".into());
        }
        out.push(json.clone());
        return Ok(());
    };
    if shape.len() == depth && out.is_empty() {
        shape.push(items.len());
    }
    if shape.get(depth) != Some(&items.len()) {
        return Err("a list of varying lengths".into());
    }
    items.iter().try_for_each(|item| flatten_nested(item, depth + 1, shape, out))
}

/// Reads the index of a case. Returns `None` if one of its selectors has a kind that no index has.
fn parse_selectors(case: &Case) -> Checked<Option<Vec<Index>>> {
    let mut out = Vec::new();
    for selector in case.args.get("index").ok_or("no index")?.list()? {
        let [(kind, value)] = selector.members()? else {
            return Err("a selector has one member".into());
        };
        out.push(match kind.as_str() {
            "int" => Index::At(value.int()?),
            "ellipsis" => Index::Rest,
            "newaxis" => Index::NewAxis,
            "slice" => parse_slice(value)?,
            "list" => {
                let (mut shape, mut items) = (Vec::new(), Vec::new());
                flatten_nested(value, 0, &mut shape, &mut items)?;
                if !items.is_empty() && items.iter().all(|v| matches!(v, Json::Bool(_))) {
                    let mask = items.iter().map(Json::bool).collect::<Checked<_>>()?;
                    Index::Mask(IndexArray::try_new(shape, mask).map_err(|e| e.to_string())?)
                } else {
                    let Ok(positions) = items.iter().map(Json::int).collect() else {
                        return Ok(None);
                    };
                    Index::Array(IndexArray::try_new(shape, positions).map_err(|e| e.to_string())?)
                }
            }
            "array" | "mask" => {
                let array = parse_tensor(value)?;
                let shape = array.shape().to_vec();
                if array.dtype() == DType::Bool {
                    let mask = array.as_bytes().iter().map(|b| *b == 1).collect();
                    Index::Mask(IndexArray::try_new(shape, mask).map_err(|e| e.to_string())?)
                } else if array.dtype().is_integer() {
                    let array = array.cast(DType::I64).map_err(|e| e.to_string())?;
                    let values = array.as_slice::<i64>().map_err(|e| e.to_string())?.to_vec();
                    Index::Array(IndexArray::try_new(shape, values).map_err(|e| e.to_string())?)
                } else {
                    return Ok(None);
                }
            }
            "float" | "str" => return Ok(None),
            other => return Err(format!("the selector {other:?} is unknown")),
        });
    }
    Ok(Some(out))
}

/// Reads the numbers of one or more axes. Returns `None` for null.
fn parse_dims(json: Option<&Json>) -> Checked<Option<Vec<i64>>> {
    Ok(match json {
        None | Some(Json::Null) => None,
        Some(list @ Json::List(_)) => Some(parse_ints(list)?),
        Some(one) => Some(vec![one.int()?]),
    })
}

/// The value that an operation writes.
enum Value {
    Scalar(Fill),
    Dense(DenseTensor),
    Sparse(DokTensor),
}

impl Value {
    fn source(&self) -> DokValue<'_> {
        match self {
            Self::Scalar(v) => DokValue::Scalar(*v),
            Self::Dense(v) => DokValue::Dense(v),
            Self::Sparse(v) => DokValue::Sparse(v),
        }
    }
}

fn parse_value(case: &Case) -> Checked<Value> {
    let value = case.input.get("value").ok_or("no value")?;
    if let Some(scalar) = value.get("scalar") {
        return Ok(Value::Scalar(match scalar {
            Json::Bool(b) => Fill::Bool(*b),
            number => match number.int::<i64>() {
                Ok(v) => Fill::Int(v),
                Err(_) => Fill::Float(number.float()?),
            },
        }));
    }
    match value.get("tensor") {
        Some(t) => Ok(Value::Dense(parse_tensor(t)?)),
        None => parse_dok(value)?.map(Value::Sparse).map_err(|e| e.to_string()),
    }
}

fn run_operation(case: &Case) -> Checked<Result<Found>> {
    let args = &case.args;
    let int = |name: &str| args.get(name).ok_or_else(|| format!("no {name}"))?.int::<i64>();
    let flag = |name: &str| args.get(name).map_or(Ok(false), Json::bool);
    let reduced_axes =
        || flag("keepdim").map(|keep| if keep { ReducedAxes::Keep } else { ReducedAxes::Remove });
    let list = |name: &str| parse_ints::<i64>(args.get(name).ok_or_else(|| format!("no {name}"))?);
    let dim = || parse_dims(args.get("dim"));
    let p = || args.get("p").map_or(Ok(2.0), Json::float);
    /// Evaluates `$run` with the input tensor of the case as `$t`. If the tensor is invalid,
    /// returns the error.
    macro_rules! sparse {
        ($args:expr, $t:ident => $run:expr) => {{
            case.takes(&["dok"], $args)?;
            match parse_input(case)? {
                Ok($t) => $run,
                Err(e) => Err(e),
            }
        }};
    }
    let made = |t: Result<DokTensor>| t.map(Found::Sparse);
    Ok(match case.op.as_str() {
        "construct" => {
            case.takes(&["shape", "dtype", "indices", "values"], &[])?;
            made(parse_input(case)?)
        }
        "from_dense" => {
            case.takes(&["dense"], &[])?;
            made(DokTensor::from_dense(&parse_tensor(case.input.get("dense").ok_or("no dense")?)?))
        }
        "from_sparse_coo" => {
            case.takes(&["size", "indices", "values"], &[])?;
            let part = |name: &str| case.input.get(name).ok_or_else(|| format!("no {name}"));
            let (indices, values) =
                (parse_tensor(part("indices")?)?, parse_tensor(part("values")?)?);
            let size: Vec<usize> = parse_ints(part("size")?)?;
            made(DokTensor::from_coo(size, &indices, &values, DuplicateEntries::Sum))
        }
        "getitem_int" | "getitem_slice" | "getitem_array" | "getitem_mask" | "getitem_mixed"
        | "getitem_raises" => {
            case.takes(&["shape", "dtype", "indices", "values"], &["index"])?;
            let Some(index) = parse_selectors(case)? else {
                return Ok(Err(Error::invalid("what no array can be indexed with: bad indices")));
            };
            parse_input(case)?.and_then(|t| {
                let dense = t.index(&index)?;
                // Reading the selection as a sparse tensor must give the same elements.
                assert_eq!(t.index_sparse(&index)?.to_dense()?, dense);
                Ok(Found::Dense(dense))
            })
        }
        "setitem" | "setitem_sparse" => {
            case.takes(&["dok", "value"], &["index"])?;
            let Some(index) = parse_selectors(case)? else {
                return Ok(Err(Error::invalid("bad indices")));
            };
            let value = parse_value(case)?;
            parse_input(case)?.and_then(|mut t| {
                t.set(&index, value.source())?;
                Ok(Found::Sparse(t))
            })
        }
        "view_write" => {
            case.takes(&["dok", "value"], &["dim0", "dim1", "index"])?;
            let index = parse_selectors(case)?.ok_or("bad indices")?;
            let (value, a, b) = (parse_value(case)?, int("dim0")?, int("dim1")?);
            parse_input(case)?.and_then(|t| {
                let mut view = t.transpose(a, b)?;
                view.set(&index, value.source())?;
                Ok(Found::Both([("base", t.to_dense()?), ("view", view.to_dense()?)]))
            })
        }
        "clone" => {
            case.takes(&["dok", "value"], &["index"])?;
            let index = parse_selectors(case)?.ok_or("bad indices")?;
            let value = parse_value(case)?;
            parse_input(case)?.and_then(|t| {
                let mut copy = t.try_clone()?;
                copy.set(&index, value.source())?;
                Ok(Found::Both([("base", t.to_dense()?), ("clone", copy.to_dense()?)]))
            })
        }
        "transpose" => {
            let (a, b) = (int("dim0")?, int("dim1")?);
            sparse!(&["dim0", "dim1"], t => made(t.transpose(a, b)))
        }
        "permute" => {
            let orders = match args.get("orderings") {
                Some(orders) => {
                    orders.list()?.iter().map(parse_ints).collect::<Checked<Vec<_>>>()?
                }
                None => vec![list("ordering")?],
            };
            sparse!(&["ordering", "orderings"], t => {
                made(orders.iter().try_fold(t, |t, order| t.permute(order)))
            })
        }
        "t" => {
            let times = args.get("times").map_or(Ok(1), Json::int::<usize>)?;
            sparse!(&["times"], t => made((0..times).try_fold(t, |t, _| t.t())))
        }
        "flatten" => sparse!(&[], t => made(t.flatten())),
        "reshape" => {
            let shape = list("shape")?;
            sparse!(&["shape"], t => made(t.reshape(&shape)))
        }
        "resize" => {
            let sizes = list("new_size")?;
            sparse!(&["new_size"], t => {
                let mut t = t;
                t.resize(&sizes).map(|()| Found::Sparse(t))
            })
        }
        "select" => {
            let (dim, index) = (int("dim")?, int("index")?);
            sparse!(&["dim", "index"], t => made(t.select(dim, index)))
        }
        "index_select" => {
            let (dim, index) = (int("dim")?, list("index")?);
            sparse!(&["dim", "index"], t => made(t.index_select(dim, &index)))
        }
        "sum" => {
            let (dim, reduced) = (dim()?, reduced_axes()?);
            sparse!(&["dim", "keepdim"], t => made(t.sum(dim.as_deref(), reduced)))
        }
        "norm" => {
            let (dim, reduced, p) = (dim()?, reduced_axes()?, p()?);
            sparse!(&["dim", "keepdim", "p"], t => made(t.norm(p, dim.as_deref(), reduced)))
        }
        "normalize" => {
            let (dim, p) = (dim()?.unwrap_or(vec![-1]), p()?);
            let eps = args.get("eps").map_or(Ok(1e-12), Json::float)?;
            sparse!(&["dim", "p", "eps"], t => t.normalize(p, &dim, eps).and_then(|n| {
                let mut own = t.try_clone()?;
                own.normalize_in_place(p, &dim, eps)?;
                assert_eq!(own.to_coo()?, n.to_coo()?);
                Ok(Found::Sparse(n))
            }))
        }
        "softmax" => {
            let dim = dim()?.unwrap_or_default();
            sparse!(&["dim"], t => made(t.softmax(&dim)))
        }
        "log_softmax" => {
            let dim = dim()?.unwrap_or_default();
            sparse!(&["dim"], t => made(t.log_softmax(&dim)))
        }
        "unary" => {
            let decimals = match args.get("decimals") {
                None | Some(Json::Null) => 0,
                Some(n) => n.int()?,
            };
            let of = match args.get("op").ok_or("no op")?.text()? {
                "abs" => DokUnary::Abs,
                "sqrt" => DokUnary::Sqrt,
                "ceil" => DokUnary::Ceil,
                "floor" => DokUnary::Floor,
                "round" => DokUnary::Round(decimals),
                "neg" => DokUnary::Neg,
                "sign" => DokUnary::Sign,
                "trunc" => DokUnary::Trunc,
                other => return Err(format!("the function {other:?} is unknown")),
            };
            sparse!(&["op", "decimals"], t => made(t.map(of)))
        }
        "to_sparse_coo" => sparse!(&[], t => Ok(Found::Sparse(t))),
        "to_sparse_csr" => sparse!(&[], t => t.to_csr().map(|_| Found::Sparse(t))),
        "torch_ops" => {
            case.takes(&["a", "b", "dense"], &["op", "dim", "scalar"])?;
            let a = parse_dok(case.input.get("a").ok_or("no a")?)?;
            let other = || parse_dok(case.input.get("b").ok_or("no b")?);
            match args.get("op").ok_or("no op")?.text()? {
                "add" => {
                    let b = other()?;
                    made(a.and_then(|a| a.add(&b?)))
                }
                "mul" if args.get("scalar").is_some() => {
                    let by = args.get("scalar").ok_or("no scalar")?;
                    let by = match by.int::<i64>() {
                        Ok(v) => Fill::Int(v),
                        Err(_) => Fill::Float(by.float()?),
                    };
                    made(a.and_then(|a| a.scale(by)))
                }
                "mul" => {
                    let b = other()?;
                    made(a.and_then(|a| a.mul(&b?)))
                }
                "mm" => match case.input.get("dense") {
                    Some(dense) => {
                        let dense = parse_tensor(dense)?;
                        a.and_then(|a| {
                            let product = a.matmul_dense(&dense)?;
                            let sparse = a.matmul(&DokTensor::from_dense(&dense)?)?.to_dense()?;
                            assert_eq!(sparse.shape(), product.shape());
                            Ok(Found::Dense(product))
                        })
                    }
                    None => {
                        let b = other()?;
                        made(a.and_then(|a| a.matmul(&b?)))
                    }
                },
                "sparse_sum" => {
                    let dim = dim()?;
                    made(a.and_then(|a| a.sum(dim.as_deref(), ReducedAxes::Remove)))
                }
                other => return Err(format!("the operation {other:?} is unknown")),
            }
        }
        other => return Err(format!("the operation {other:?} is unknown")),
    })
}

/// Compares tensors. Floats may differ by rounding if the operation computes them.
fn check_close(case: &Case, name: &str, found: &DenseTensor, expected: &Json) -> Checked<()> {
    const EXACT: [&str; 8] = [
        "sum",
        "norm",
        "normalize",
        "softmax",
        "log_softmax",
        "unary",
        "torch_ops",
        "from_sparse_coo",
    ];
    if !EXACT.contains(&case.op.as_str()) || !found.dtype().is_float() {
        return same_tensor(name, found, expected);
    }
    let expected = parse_tensor(expected)?;
    if (found.dtype(), found.shape()) != (expected.dtype(), expected.shape()) {
        return Err(format!("{name}: found {found}, expected {expected}"));
    }
    let wide = |t: &DenseTensor| -> Checked<Vec<f64>> {
        let t = t.cast(DType::F64).map_err(|e| e.to_string())?;
        Ok(t.as_slice::<f64>().map_err(|e| e.to_string())?.to_vec())
    };
    let near = |(a, b): (&f64, &f64)| {
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-6 + 1e-5 * b.abs()
    };
    if wide(found)?.iter().zip(&wide(&expected)?).all(near) {
        return Ok(());
    }
    Err(format!("{name}: found {found}, expected {expected}"))
}

/// Returns a dense tensor in the JSON form of the vectors, so that a part of a result can be
/// compared.
fn write_tensor(dtype: &str, shape: Vec<usize>, data: &Json) -> Json {
    let number = |n: usize| Json::Number(n.to_string());
    Json::Object(vec![
        ("dtype".into(), Json::Text(dtype.into())),
        ("shape".into(), Json::List(shape.into_iter().map(number).collect())),
        ("data".into(), data.clone()),
    ])
}

fn check_found(case: &Case, found: Found, expected: &Json) -> Checked<()> {
    let text = |e: Error| e.to_string();
    match found {
        Found::Dense(found) => {
            check_close(case, "dense", &found, expected.get("dense").unwrap_or(expected))
        }
        Found::Both(pairs) => {
            check_only(expected, "the result", &[pairs[0].0, pairs[1].0])?;
            pairs.iter().try_for_each(|(name, found)| {
                check_close(case, name, found, expected.get(name).ok_or("a part is missing")?)
            })
        }
        Found::Sparse(t) => {
            for (name, part) in expected.members()? {
                let coo = || t.to_coo().map_err(text);
                let same = |holds: bool| {
                    if holds { Ok(()) } else { Err(format!("{name} of {t} is not {part:?}")) }
                };
                match name.as_str() {
                    "dense" => check_close(case, name, &t.to_dense().map_err(text)?, part)?,
                    "shape" | "size" => same(t.shape() == parse_ints::<usize>(part)?)?,
                    "ndim" => same(t.ndim() == part.int::<usize>()?)?,
                    "dtype" => same(t.dtype().name() == part.text()?)?,
                    "nnz" => same(t.nnz().map_err(text)? == part.int::<usize>()?)?,
                    "is_sparse" => same(part.bool()?)?,
                    "sparsity" => {
                        same((t.sparsity().map_err(text)? - part.float()?).abs() < 1e-12)?;
                    }
                    "items" => {
                        check_only(part, "the items", &["indices", "values"])?;
                        let (coo, member) = (coo()?, |n: &str| part.get(n).ok_or("no items"));
                        let count = coo.values.num_elements();
                        let found = coo.indices.as_slice::<i64>().map_err(text)?;
                        let row = |i: usize| (0..t.ndim()).map(|a| found[a * count + i]).collect();
                        let found: Vec<Vec<i64>> = (0..count).map(row).collect();
                        let rows = member("indices")?.list()?;
                        let rows =
                            rows.iter().map(parse_ints).collect::<Checked<Vec<Vec<i64>>>>()?;
                        same(found == rows)?;
                        let values = write_tensor(t.dtype().name(), vec![count], member("values")?);
                        check_close(case, "values", &coo.values, &values)?;
                    }
                    "indices" => same_tensor(name, &coo()?.indices, part)?,
                    "values" => check_close(case, name, &coo()?.values, part)?,
                    "crow_indices" => {
                        same_tensor(name, &t.to_csr().map_err(text)?.crow_indices, part)?;
                    }
                    "col_indices" => {
                        same_tensor(name, &t.to_csr().map_err(text)?.col_indices, part)?;
                    }
                    other => return Err(format!("the result has an unknown part {other:?}")),
                }
            }
            Ok(())
        }
    }
}
