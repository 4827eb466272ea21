//! A server that implements a part of S3's protocol, with objects in memory. It counts the bytes of
//! objects that it sends.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The only access key that the server accepts.
pub(crate) const KEY: &str = "GOODKEY";

#[derive(Default)]
struct State {
    /// Contents of the objects by `bucket/path`.
    objects: BTreeMap<String, Vec<u8>>,
    uploads: HashMap<String, BTreeMap<usize, Vec<u8>>>,
    bytes: usize,
    /// First and last position of each byte range that was sent.
    ranges: Vec<(usize, usize)>,
    /// Whether the server changes an object after it has sent a range of it.
    changes: bool,
    /// Number of following requests to answer with 503 Slow Down.
    refused: usize,
    /// Number of following requests to answer by closing the connection.
    broken: usize,
    /// Number of the upload part to answer with 503 Slow Down.
    refused_part: Option<usize>,
    /// Whether the server accepts requests without a key.
    open: bool,
}

pub(crate) struct Server {
    url: String,
    state: Arc<Mutex<State>>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, state) = (stream.unwrap(), Arc::clone(&shared));
                std::thread::spawn(move || answer(stream, &state));
            }
        });
        Self { url, state }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn put_object(&self, name: &str, bytes: Vec<u8>) {
        self.state.lock().unwrap().objects.insert(name.to_owned(), bytes);
    }

    pub(crate) fn get_object(&self, name: &str) -> Option<Vec<u8>> {
        self.state.lock().unwrap().objects.get(name).cloned()
    }

    /// Returns the number of bytes of objects that were sent since the previous call.
    pub(crate) fn take_bytes(&self) -> usize {
        std::mem::take(&mut self.state.lock().unwrap().bytes)
    }

    /// Returns the first and last position of each byte range that was sent since the previous
    /// call.
    pub(crate) fn take_ranges(&self) -> Vec<(usize, usize)> {
        std::mem::take(&mut self.state.lock().unwrap().ranges)
    }

    /// Sets whether the server changes an object after it has sent a range of it.
    pub(crate) fn change_after_ranges(&self, changes: bool) {
        self.state.lock().unwrap().changes = changes;
    }

    pub(crate) fn refuse_next(&self, requests: usize) {
        self.state.lock().unwrap().refused = requests;
    }

    pub(crate) fn refuse_part(&self, number: usize) {
        self.state.lock().unwrap().refused_part = Some(number);
    }

    /// Returns the number of multipart uploads that are neither complete nor aborted.
    pub(crate) fn count_uploads(&self) -> usize {
        self.state.lock().unwrap().uploads.len()
    }

    pub(crate) fn break_next(&self, requests: usize) {
        self.state.lock().unwrap().broken = requests;
    }

    pub(crate) fn set_open(&self, open: bool) {
        self.state.lock().unwrap().open = open;
    }
}

struct Answer {
    status: &'static str,
    headers: Vec<String>,
    body: Vec<u8>,
}

fn to_xml(status: &'static str, body: String) -> Answer {
    Answer { status, headers: vec!["Content-Type: application/xml".into()], body: body.into() }
}

fn refuse(status: &'static str, code: &str) -> Answer {
    to_xml(status, format!("<Error><Code>{code}</Code><Message>of the server</Message></Error>"))
}

/// Decodes percent-encoded characters such as `%2F`.
fn decode(text: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
                let digits = String::from_utf8(digits.to_vec()).unwrap();
                out.push(u8::from_str_radix(&digits, 16).unwrap());
            }
            byte => out.push(byte),
        }
    }
    String::from_utf8(out).unwrap()
}

fn answer(stream: TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    if reader.read_line(&mut line).unwrap_or(0) == 0 {
        return;
    }
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap().to_owned(), words.next().unwrap().to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap();
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |n| n.parse().unwrap());
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let answer = {
        let mut state = state.lock().unwrap();
        if state.broken > 0 {
            state.broken -= 1;
            return;
        }
        let answer = respond(&mut state, &method, &target, &headers, body);
        if method == "GET" && answer.status.starts_with("20") && !target.contains("list-type") {
            state.bytes += answer.body.len();
        }
        answer
    };
    let mut head = format!("HTTP/1.1 {}\r\nConnection: close\r\n", answer.status);
    for header in &answer.headers {
        head.push_str(&format!("{header}\r\n"));
    }
    if !head.contains("Content-Length") {
        head.push_str(&format!("Content-Length: {}\r\n", answer.body.len()));
    }
    let mut stream = stream;
    let _ = stream.write_all(format!("{head}\r\n").as_bytes());
    if method != "HEAD" {
        let _ = stream.write_all(&answer.body);
    }
}

fn respond(
    state: &mut State,
    method: &str,
    target: &str,
    headers: &HashMap<String, String>,
    body: Vec<u8>,
) -> Answer {
    if state.refused > 0 {
        state.refused -= 1;
        return refuse("503 Slow Down", "SlowDown");
    }
    let signed = headers.get("authorization").is_some_and(|a| a.contains(&format!("={KEY}/")));
    if !signed && !state.open {
        return refuse("403 Forbidden", "InvalidAccessKeyId");
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let name = decode(path.trim_start_matches('/'));
    let query: HashMap<String, String> = query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(key, value)| (decode(key), decode(value)))
        .collect();
    let bucket = name.split('/').next().unwrap();
    if bucket != "bucket" {
        return refuse("404 Not Found", "NoSuchBucket");
    }
    match method {
        "GET" if query.contains_key("list-type") => {
            let prefix = query.get("prefix").cloned().unwrap_or_default();
            let mut found = String::new();
            for (name, bytes) in &state.objects {
                let key = name.strip_prefix("bucket/").unwrap();
                if key.starts_with(&prefix) {
                    found.push_str(&format!(
                        "<Contents><Key>{key}</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified><ETag>{}</ETag><Size>{}</Size></Contents>",
                        make_tag(bytes).replace('"', "&quot;"),
                        bytes.len()
                    ));
                }
            }
            to_xml("200 OK", format!("<ListBucketResult>{found}</ListBucketResult>"))
        }
        "GET" | "HEAD" => {
            let Some(bytes) = state.objects.get_mut(&name) else {
                return refuse("404 Not Found", "NoSuchKey");
            };
            let mut sent = vec![
                format!("ETag: {}", make_tag(bytes)),
                "Last-Modified: Fri, 02 Jan 2026 03:04:05 GMT".into(),
                "Accept-Ranges: bytes".into(),
            ];
            let Some((first, last)) = headers.get("range").map(|range| parse_range(range, bytes))
            else {
                sent.push(format!("Content-Length: {}", bytes.len()));
                return Answer { status: "200 OK", headers: sent, body: bytes.clone() };
            };
            let part = bytes[first..=last].to_vec();
            sent.push(format!("Content-Range: bytes {first}-{last}/{}", bytes.len()));
            sent.push(format!("Content-Length: {}", part.len()));
            if state.changes {
                bytes[0] ^= 1;
            }
            state.ranges.push((first, last));
            Answer { status: "206 Partial Content", headers: sent, body: part }
        }
        "POST" if query.contains_key("uploads") => {
            let id = format!("upload{}", state.uploads.len());
            state.uploads.insert(id.clone(), BTreeMap::new());
            to_xml(
                "200 OK",
                format!(
                    "<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
                ),
            )
        }
        "PUT" if query.contains_key("partNumber") => {
            let sent = vec![format!("ETag: {}", make_tag(&body))];
            let number = query["partNumber"].parse().unwrap();
            if state.refused_part == Some(number) {
                return refuse("503 Slow Down", "SlowDown");
            }
            state.uploads.get_mut(&query["uploadId"]).unwrap().insert(number, body);
            Answer { status: "200 OK", headers: sent, body: Vec::new() }
        }
        "POST" => {
            let parts = state.uploads.remove(&query["uploadId"]).unwrap();
            let whole: Vec<u8> = parts.into_values().flatten().collect();
            let tag = make_tag(&whole).replace('"', "&quot;");
            state.objects.insert(name, whole);
            to_xml(
                "200 OK",
                format!(
                    "<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>"
                ),
            )
        }
        "PUT" => {
            let sent = vec![format!("ETag: {}", make_tag(&body))];
            state.objects.insert(name, body);
            Answer { status: "200 OK", headers: sent, body: Vec::new() }
        }
        "DELETE" => {
            state.uploads.remove(query.get("uploadId").map_or("", |id| id.as_str()));
            Answer { status: "204 No Content", headers: Vec::new(), body: Vec::new() }
        }
        _ => refuse("405 Method Not Allowed", "MethodNotAllowed"),
    }
}

fn make_tag(bytes: &[u8]) -> String {
    let sum = bytes.iter().fold(0u64, |sum, b| sum.wrapping_mul(31).wrapping_add(u64::from(*b)));
    format!("\"{sum:x}-{}\"", bytes.len())
}

/// Parses the header `bytes=3-7`, `bytes=3-` or `bytes=-7` into the positions of the first and the
/// last byte of an object with the contents `bytes`.
fn parse_range(range: &str, bytes: &[u8]) -> (usize, usize) {
    let (first, last) = range.trim_start_matches("bytes=").split_once('-').unwrap();
    let end = bytes.len() - 1;
    match (first, last) {
        ("", count) => (bytes.len().saturating_sub(count.parse().unwrap()), end),
        (first, "") => (first.parse().unwrap(), end),
        (first, last) => (first.parse().unwrap(), end.min(last.parse().unwrap())),
    }
}
