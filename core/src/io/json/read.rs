//! Reads JSON records, as one text or line by line.

use std::collections::HashMap;
use std::io::BufRead;
use std::sync::Arc;

use arrow::datatypes::DataType;
use serde_json::Value;

use super::column_sink::{ColumnSink, JsonScalar};
use super::parse::JsonParser;
use super::{JsonOptions, RESERVED};
use crate::error::{Error, Result};
use crate::table::{IncomingColumn, RaggedTable, assemble_table};

#[derive(Debug, Default)]
pub(super) struct ColumnSinks {
    columns: Vec<ColumnSink>,
    positions: HashMap<String, usize>,
    /// Number of records that have been read completely.
    rows: usize,
    first_row: usize,
    seen_in_record: Vec<bool>,
}

impl ColumnSinks {
    fn new_starting_at(first_row: usize) -> Self {
        Self { first_row, ..Self::default() }
    }

    fn add(&mut self, name: &str, options: &JsonOptions) -> usize {
        if let Some(i) = self.positions.get(name) {
            return *i;
        }
        let i = self.columns.len();
        self.columns.push(ColumnSink::new(name, options.find_declared_type(name), self.first_row));
        self.positions.insert(name.to_owned(), i);
        self.seen_in_record.push(false);
        i
    }

    /// Returns the sink of the member `name` of the current record, after appending a null for
    /// each earlier record without this member. A repeated member is an error.
    fn start_member(&mut self, name: &str, options: &JsonOptions) -> Result<&mut ColumnSink> {
        let i = self.add(name, options);
        let row = self.first_row + self.rows;
        if std::mem::replace(&mut self.seen_in_record[i], true) {
            return Err(Error::invalid(format!(
                "record {row} has the key {name:?} twice; write each key once"
            )));
        }
        let sink = &mut self.columns[i];
        while sink.rows() < self.rows {
            sink.push_null();
        }
        Ok(sink)
    }

    fn end_record(&mut self) {
        self.rows += 1;
        for (sink, seen) in self.columns.iter_mut().zip(&mut self.seen_in_record) {
            if !std::mem::replace(seen, false) {
                while sink.rows() < self.rows {
                    sink.push_null();
                }
            }
        }
    }

    fn finish(
        self,
        rows: Option<usize>,
        options: &JsonOptions,
        known: &HashMap<String, DataType>,
    ) -> Result<RaggedTable> {
        let rows = rows.or_else(|| self.columns.first().map(ColumnSink::rows)).unwrap_or(0);
        if let Some(other) = self.columns.iter().find(|c| c.rows() != rows) {
            return Err(Error::Disagree {
                left: self.columns[0].name().to_owned(),
                right: other.name().to_owned(),
                axis: 0,
                list: 0,
                left_len: rows,
                right_len: other.rows(),
            });
        }
        let columns = self
            .columns
            .into_iter()
            .map(|c| {
                let known = known.get(c.name());
                c.finish(known)
            })
            .collect::<Result<Vec<IncomingColumn>>>()?;
        let names: Vec<Option<Arc<str>>> =
            options.axes.iter().map(|n| Some(Arc::from(n.as_str()))).collect();
        assemble_table(rows, &names, columns)
    }
}

fn refuse_reserved(name: &str) -> Result<()> {
    if RESERVED.contains(&name) {
        return Err(Error::invalid(format!(
            "{name:?} is reserved and cannot be a column name in the columns form; reserved names are {RESERVED:?}; rename the column"
        )));
    }
    Ok(())
}

impl RaggedTable {
    /// Reads a table from a JSON value: an object of columns or a list of records (one per row).
    ///
    /// See [`crate::io::json`] for depth, types and nulls.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use arrow::datatypes::DataType;
    /// use serrate::io::json::JsonOptions;
    /// use serrate::table::RaggedTable;
    ///
    /// let value = serde_json::json!({
    ///     "time": [[1, 2.5], [0]],
    ///     "code": [[[10, 11], []], [[300]]],
    /// });
    /// let table = RaggedTable::from_json(&value, &JsonOptions::default())?;
    /// assert_eq!(table.column("time")?.data_type(), &DataType::Float32);
    /// assert_eq!(table.column("code")?.data_type(), &DataType::UInt16);
    ///
    /// let uneven = serde_json::json!({"code": [[[1, 2]], [[3], 4]]});
    /// let error = RaggedTable::from_json(&uneven, &JsonOptions::default()).unwrap_err();
    /// assert!(error.to_string().contains("code[1][1]"));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the value has neither form; columns differ in the number of rows or in list lengths on a
    /// shared axis; values of a column differ in nesting depth, are nested in over 63 lists or do
    /// not fit the declared type; no type can be inferred (no values, numbers next to strings,
    /// numbers beyond 64 bits or float32); or a name is reserved in the columns form. The message
    /// names the column or the path.
    pub fn from_json(value: &Value, options: &JsonOptions) -> Result<Self> {
        let mut sinks = ColumnSinks::default();
        match value {
            Value::Object(columns) => {
                for (name, rows) in columns {
                    refuse_reserved(name)?;
                    let i = sinks.add(name, options);
                    let Value::Array(rows) = rows else {
                        return Err(make_rows_error(name, find_kind_name(rows)));
                    };
                    rows.iter().try_for_each(|row| push_element(row, &mut sinks.columns[i]))?;
                }
                sinks.finish(None, options, &HashMap::new())
            }
            Value::Array(records) => {
                options.schema.iter().for_each(|(name, _)| {
                    sinks.add(name, options);
                });
                for (i, record) in records.iter().enumerate() {
                    let Value::Object(members) = record else {
                        return Err(Error::ValueType {
                            path: format!("[{i}]"),
                            expected: "a record, an object with one element per column".into(),
                            found: find_kind_name(record).into(),
                        });
                    };
                    for (name, element) in members {
                        push_element(element, sinks.start_member(name, options)?)?;
                    }
                    sinks.end_record();
                }
                sinks.finish(Some(records.len()), options, &HashMap::new())
            }
            other => Err(make_form_error(find_kind_name(other))),
        }
    }

    /// Reads JSON text like [`from_json`](Self::from_json), without building a tree of values.
    ///
    /// Unlike `from_json`, it distinguishes integers beyond 64 bits from floats. Repeated names are
    /// an error.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::RaggedTable;
    /// use serrate::io::json::JsonOptions;
    /// let text = br#"{"age": [71, 38], "code": [[1, 2], []]}"#;
    /// let table = RaggedTable::from_json_text(text, &JsonOptions::default())?;
    /// assert_eq!((table.num_rows(), table.array("code")?.lengths(1)?), (2, vec![2, 0]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`from_json`](Self::from_json); also for invalid JSON, and repeated columns or keys.
    pub fn from_json_text(text: &[u8], options: &JsonOptions) -> Result<Self> {
        let mut parser = JsonParser::new(text, 1);
        let mut sinks = ColumnSinks::default();
        let rows = match parser.peek_byte() {
            Some(b'{') => {
                parser.parse_object(|p, name| {
                    refuse_reserved(name)?;
                    if sinks.positions.contains_key(name) {
                        return Err(p.make_error_here(format!(
                            "the column {name:?} occurs twice; rename one of the two"
                        )));
                    }
                    let i = sinks.add(name, options);
                    if p.peek_byte() != Some(b'[') {
                        return Err(make_rows_error(name, &describe_next(p.peek_byte())));
                    }
                    p.parse_array(|p| p.parse_element(&mut sinks.columns[i]))
                })?;
                None
            }
            Some(b'[') => {
                options.schema.iter().for_each(|(name, _)| {
                    sinks.add(name, options);
                });
                parser.parse_array(|p| parse_record(p, &mut sinks, options))?;
                Some(sinks.rows)
            }
            next => return Err(make_form_error(&describe_next(next))),
        };
        parser.expect_end()?;
        sinks.finish(rows, options, &HashMap::new())
    }
}

fn parse_record(
    parser: &mut JsonParser<'_>,
    sinks: &mut ColumnSinks,
    options: &JsonOptions,
) -> Result<()> {
    parser.parse_object(|p, name| p.parse_element(sinks.start_member(name, options)?))?;
    sinks.end_record();
    Ok(())
}

fn make_rows_error(name: &str, found: &str) -> Error {
    Error::ValueType {
        path: name.to_owned(),
        expected: "a list with one element per row".into(),
        found: found.to_owned(),
    }
}

fn make_form_error(found: &str) -> Error {
    Error::invalid(format!(
        "expected an object of columns or a list of records as the whole JSON value, found {found}; write the input in one of these forms"
    ))
}

fn find_kind_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn describe_next(next: Option<u8>) -> String {
    match next {
        None => "the end of the input".into(),
        Some(b'{') => "an object".into(),
        Some(b'[') => "a list".into(),
        Some(b'"') => "a string".into(),
        Some(b'-' | b'0'..=b'9') => "a number".into(),
        Some(b't' | b'f') => "a boolean".into(),
        Some(b'n') => "null".into(),
        Some(other) => format!("{:?}", char::from(other)),
    }
}

fn push_element(value: &Value, sink: &mut ColumnSink) -> Result<()> {
    match value {
        Value::Null => {
            sink.push_null();
            Ok(())
        }
        Value::Bool(b) => sink.push_scalar(JsonScalar::Bool(*b)),
        Value::String(s) => sink.push_scalar(JsonScalar::Text(s)),
        Value::Number(n) => sink.push_scalar(match (n.as_i128(), n.as_f64()) {
            (Some(i), _) => JsonScalar::Int(i),
            // `serde_json` reads integers of more than 64 bits as floats: mark floats of this size
            // `Huge`.
            (None, Some(x)) if x.abs() >= 9_223_372_036_854_775_808.0 && x.abs() < 1e30 => {
                JsonScalar::Huge(x)
            }
            (None, x) => JsonScalar::Float(x.unwrap_or(f64::NAN)),
        }),
        Value::Array(list) => {
            sink.begin_list()?;
            list.iter().try_for_each(|v| push_element(v, sink))?;
            sink.end_list();
            Ok(())
        }
        Value::Object(_) => Err(sink.make_element_error(
            "a value or a list of values",
            "an object; write the members of the object as columns".into(),
        )),
    }
}

/// Reads records, one JSON object per line, in tables of [`JsonOptions::batch_rows`] rows.
///
/// Skips empty lines. Infers undeclared types per table, so the type of a column may differ between
/// tables, such as UInt8 and UInt16 ([`RaggedTable::concat`] unifies them). A column without values
/// in a table keeps the type of the earlier tables. If no record of a table has a declared column,
/// or a column of an earlier table, this column is null in all rows of the table.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::io::json::{JsonOptions, NdjsonReader};
/// let text = "{\"id\": 1, \"code\": [5, 6]}\n{\"id\": 2, \"code\": []}\n";
/// let tables: Vec<_> = NdjsonReader::new(text.as_bytes(), JsonOptions::default())
///     .collect::<Result<_, _>>()?;
/// assert_eq!(tables[0].array("code")?.lengths(1)?, [2, 0]);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Debug)]
pub struct NdjsonReader<R> {
    input: R,
    options: JsonOptions,
    known: Vec<(String, DataType)>,
    line: usize,
    rows: usize,
    done: bool,
}

impl<R: BufRead> NdjsonReader<R> {
    /// Creates a reader of the records of `input`; reads nothing yet.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::json::{JsonOptions, NdjsonReader};
    /// let options = JsonOptions { batch_rows: 2, ..Default::default() };
    /// let text = &b"{\"x\": 1}\n{\"x\": 2}\n{\"x\": 3}\n"[..];
    /// assert_eq!(NdjsonReader::new(text, options).count(), 2); // tables of 2 rows and 1 row
    /// ```
    pub fn new(input: R, options: JsonOptions) -> Self {
        Self { input, options, known: Vec::new(), line: 0, rows: 0, done: false }
    }

    /// Reads the next table of up to `limit` rows; `None` after the last record. If the input has
    /// no records, the first call returns a table without rows.
    fn next_table(&mut self, limit: usize) -> Result<Option<RaggedTable>> {
        let mut sinks = ColumnSinks::new_starting_at(self.rows);
        for (name, _) in &self.options.schema {
            sinks.add(name, &self.options);
        }
        for (name, _) in &self.known {
            sinks.add(name, &self.options);
        }
        let mut line = Vec::new();
        while sinks.rows < limit {
            line.clear();
            let read = self.input.read_until(b'\n', &mut line);
            self.line += 1;
            if read.map_err(|e| {
                Error::invalid(format!("line {} cannot be read; check the input: {e}", self.line))
            })? == 0
            {
                self.done = true;
                break;
            }
            let mut parser = JsonParser::new(&line, self.line);
            if parser.peek_byte().is_none() {
                continue;
            }
            parse_record(&mut parser, &mut sinks, &self.options)?;
            parser.expect_end()?;
        }
        if sinks.rows == 0 && self.rows > 0 {
            return Ok(None);
        }
        self.rows += sinks.rows;
        let rows = sinks.rows;
        let known = self.known.iter().cloned().collect();
        let table = sinks.finish(Some(rows), &self.options, &known)?;
        self.known = table
            .arrow_schema()?
            .fields()
            .iter()
            .map(|f| (f.name().clone(), f.data_type().clone()))
            .collect();
        Ok(Some(table))
    }

    /// Reads all rows as one table, with types inferred from all of them.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use arrow::datatypes::DataType;
    /// use serrate::io::json::{JsonOptions, NdjsonReader};
    /// let text = &b"{\"x\": 1}\n\n{\"x\": 300}\n"[..];
    /// let table = NdjsonReader::new(text, JsonOptions::default()).read_all()?;
    /// assert_eq!(table.num_rows(), 2);
    /// assert_eq!(table.column("x")?.data_type(), &DataType::UInt16);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the input cannot be read, a line is not a JSON object or has a key twice,
    /// [`RaggedTable::from_json`] returns an error for the records, or the reader has already
    /// returned all rows. For text that is not JSON, the message has the line.
    pub fn read_all(mut self) -> Result<RaggedTable> {
        let table = self.next_table(usize::MAX)?;
        table.ok_or_else(|| {
            Error::invalid(
                "the reader has already returned all rows; open the input again to read more",
            )
        })
    }
}

impl<R: BufRead> Iterator for NdjsonReader<R> {
    type Item = Result<RaggedTable>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.next_table(self.options.batch_rows.max(1));
        if next.is_err() {
            self.done = true;
        }
        next.transpose()
    }
}
