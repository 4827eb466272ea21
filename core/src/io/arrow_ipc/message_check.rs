//! Validates offsets and sizes in Arrow files and streams before Arrow's readers use them. These
//! readers allocate as much memory as a file declares, and abort the process if memory is
//! insufficient.

use std::io::{Cursor, ErrorKind, Read, Seek, SeekFrom};

use arrow::ipc::reader::{FileReader, read_footer_length};
use arrow::ipc::{
    Block, CompressionType, Footer, Message, MessageHeader, RecordBatch, Schema, root_as_footer,
    root_as_message,
};

const MAGIC: &[u8] = b"ARROW1";
/// Size in bytes of the end of a file: the length of the footer (4 bytes) and [`MAGIC`].
pub(super) const TAIL_BYTES: usize = 10;
/// Continuation marker before the length of a message, absent in old files.
const MARKER: [u8; 4] = [0xff; 4];

type CheckResult<T = ()> = std::result::Result<T, String>;

/// Checks the offsets and sizes in an Arrow file or stream whose length is known.
pub struct MessageChecker<R> {
    reader: R,
    length: u64,
}

impl<'a> MessageChecker<Cursor<&'a [u8]>> {
    /// Creates a checker of bytes in memory.
    pub fn from_message_bytes(bytes: &'a [u8]) -> Self {
        Self { reader: Cursor::new(bytes), length: bytes.len() as u64 }
    }
}

impl<R: Read + Seek> MessageChecker<R> {
    /// Creates a checker of the whole file `reader`, regardless of its read position.
    ///
    /// The read position afterwards is unspecified.
    pub fn try_new(mut reader: R) -> std::io::Result<Self> {
        let length = reader.seek(SeekFrom::End(0))?;
        Ok(Self { reader, length })
    }

    /// Reads `length` bytes from `start`; if the input ends earlier, returns an error without
    /// allocating.
    fn read(&mut self, start: u64, length: u64) -> CheckResult<Vec<u8>> {
        if start.checked_add(length).is_none_or(|end| end > self.length) {
            return Err(format!(
                "the file declares {length} bytes of data at byte {start}, but has only {} bytes, so it is damaged or truncated; create it again",
                self.length
            ));
        }
        let length = usize::try_from(length).map_err(|e| e.to_string())?;
        let mut bytes = vec![0; length];
        self.reader
            .seek(SeekFrom::Start(start))
            .and_then(|_| self.reader.read_exact(&mut bytes))
            .map_err(|e| e.to_string())?;
        Ok(bytes)
    }

    /// Checks the whole input: as a file if it begins with [`MAGIC`], otherwise as a stream.
    pub fn check(&mut self) -> CheckResult {
        let magic = self.length.min(MAGIC.len() as u64);
        match self.read(0, magic)? == MAGIC {
            true => self.check_file(),
            false => self.check_stream(),
        }
    }

    fn check_file(&mut self) -> CheckResult {
        let tail = TAIL_BYTES as u64;
        // The magic bytes at the start of the file are padded to 8 bytes.
        if self.length < 8 + tail {
            return Err(format!(
                "the file has {} bytes, too few for an Arrow file; it may be truncated, so create it again",
                self.length
            ));
        }
        let bytes = self.read(self.length - tail, tail)?;
        let bytes: [u8; TAIL_BYTES] = bytes.try_into().map_err(
            |_| "the file has no footer, so it is truncated or not an Arrow file; create it again",
        )?;
        let end = self.length - tail;
        let length = find_footer_length(bytes, end)? as u64;
        let footer = self.read(end - length, length)?;
        let (footer, _) = parse_footer(&footer)?;
        let dictionaries = footer.dictionaries().into_iter().flatten();
        for block in dictionaries.chain(footer.recordBatches().into_iter().flatten()) {
            self.check_block(block)?;
        }
        // Return an error if Arrow's file reader rejects the file. Otherwise, DataFusion would read
        // it as a stream, and the stream reader would take the magic bytes for a length and
        // allocate 1.3 GB.
        self.reader.seek(SeekFrom::Start(0)).map_err(|e| e.to_string())?;
        FileReader::try_new(&mut self.reader, None).map_err(|e| e.to_string())?;
        Ok(())
    }

    pub(super) fn check_block(&mut self, block: &Block) -> CheckResult {
        let number = |n: i64| {
            u64::try_from(n).map_err(|_| {
                format!("a batch has the position or size {n}, which is negative, so the file is damaged; create it again")
            })
        };
        let (start, head) = (number(block.offset())?, number(block.metaDataLength().into())?);
        let body = number(block.bodyLength())?;
        let end = start.checked_add(head).and_then(|n| n.checked_add(body));
        if end.is_none_or(|end| end > self.length) {
            return Err(format!(
                "a batch at byte {start} has {head} bytes of metadata and {body} bytes of data, which reach past the end of the file of {} bytes; the file is damaged or truncated, so create it again",
                self.length
            ));
        }
        let metadata = self.read(start, head)?;
        // The message follows its length field (four bytes, or eight with `MARKER` in newer files).
        let skip = if metadata.starts_with(&MARKER) { 8 } else { 4 };
        let message = metadata.get(skip..).ok_or(
            "a message is shorter than its length field, so the file is damaged; create it again",
        )?;
        let message = root_as_message(message).map_err(|e| {
            format!("the Arrow IPC message at byte {start} is damaged; create the file again: {e}")
        })?;
        let batch = find_batch(&message)
            .ok_or("expected a record batch, found a message without one; create the file again")?;
        self.check_batch(&batch, start + head, body)
    }

    /// Checks the messages of a stream up to its end marker, or to the end of the bytes.
    pub fn check_stream(&mut self) -> CheckResult {
        let mut at = 0u64;
        while at + 4 <= self.length {
            let four = |bytes: Vec<u8>| bytes.try_into().unwrap_or([0; 4]);
            let mut length = four(self.read(at, 4)?);
            at += 4;
            if length == MARKER {
                length = four(self.read(at, 4)?);
                at += 4;
            }
            let length = u64::try_from(i32::from_le_bytes(length)).map_err(|_| {
                format!(
                    "a message has the length {}, which is negative, so the file is damaged; create it again",
                    i32::from_le_bytes(length)
                )
            })?;
            if length == 0 {
                return Ok(());
            }
            let message = self.read(at, length)?;
            at += length;
            let message = root_as_message(&message).map_err(|e| {
                format!("an Arrow IPC message is damaged; create the file again: {e}")
            })?;
            let body = u64::try_from(message.bodyLength())
                .ok()
                .filter(|body| at.checked_add(*body).is_some_and(|end| end <= self.length))
                .ok_or_else(|| {
                    format!(
                        "a message declares a body of {} bytes, but only {} bytes are left, so the stream is damaged or truncated; create it again",
                        message.bodyLength(),
                        self.length - at
                    )
                })?;
            if let Some(batch) = find_batch(&message) {
                self.check_batch(&batch, at, body)?;
            }
            at += body;
        }
        Ok(())
    }

    fn check_batch(&mut self, batch: &RecordBatch<'_>, start: u64, length: u64) -> CheckResult {
        let codec = batch.compression().map(|c| c.codec());
        for (i, buffer) in batch.buffers().into_iter().flatten().enumerate() {
            let outside = || {
                format!(
                    "buffer {i} has an offset or a length outside its batch, so the file is damaged; create it again"
                )
            };
            let offset = u64::try_from(buffer.offset()).map_err(|_| outside())?;
            let size = u64::try_from(buffer.length()).map_err(|_| outside())?;
            let end = offset.checked_add(size).ok_or_else(outside)?;
            if end > length {
                return Err(format!(
                    "buffer {i} ends at byte {end}, but the body of its batch has only {length} bytes, so the file is damaged; create it again"
                ));
            }
            let Some(codec) = codec.filter(|_| size > 0) else { continue };
            let head = self.read(start + offset, size.min(8 + MAX_FRAME_HEADER_BYTES))?;
            let (claimed, frame) = head
                .split_first_chunk()
                .ok_or_else(|| format!("buffer {i} is too short to hold its uncompressed length, so the file is damaged; create it again"))?;
            let claimed = i64::from_le_bytes(*claimed);
            // A size of -1 means that the buffer is not compressed, 0 that it is empty.
            if claimed == -1 || claimed == 0 {
                continue;
            }
            if !u64::try_from(claimed).is_ok_and(|n| is_possible_size(codec, size - 8, frame, n)) {
                return Err(format!(
                    "buffer {i} declares an uncompressed size of {claimed} bytes for its {} compressed bytes, which is impossible, so the file is damaged; create it again",
                    size - 8
                ));
            }
        }
        Ok(())
    }
}

/// Returns the length of the footer of a file that ends in `tail`. The footer ends at byte `end`.
pub(super) fn find_footer_length(tail: [u8; TAIL_BYTES], end: u64) -> CheckResult<usize> {
    let length = read_footer_length(tail).map_err(|e| e.to_string())?;
    match end.checked_sub(length as u64) {
        Some(start) if start >= MAGIC.len() as u64 => Ok(length),
        _ => Err(
            "the footer is longer than the file, which is damaged or truncated; create it again"
                .into(),
        ),
    }
}

/// Parses the footer of a file, and returns it with its schema.
pub(super) fn parse_footer(bytes: &[u8]) -> CheckResult<(Footer<'_>, Schema<'_>)> {
    let footer = root_as_footer(bytes).map_err(|e| {
        format!("the footer of the Arrow file is damaged; create the file again: {e}")
    })?;
    let schema = footer
        .schema()
        .ok_or("the footer has no schema, so the file is damaged; create it again")?;
    Ok((footer, schema))
}

/// A stream for Arrow's reader, which receives only whole, checked messages. Memory grows with the
/// bytes that arrive, not with the lengths that the stream declares.
pub(super) struct CheckedStream<R> {
    reader: R,
    /// Bytes of the current message, including its length fields.
    message: Vec<u8>,
    /// Number of bytes of `message` that Arrow's reader has received.
    at: usize,
}

fn make_invalid_data_error(message: &str) -> std::io::Error {
    std::io::Error::new(ErrorKind::InvalidData, message)
}

impl<R: Read> CheckedStream<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, message: Vec::new(), at: 0 }
    }

    fn read_message_bytes(&mut self, length: u64) -> std::io::Result<()> {
        match self.reader.by_ref().take(length).read_to_end(&mut self.message)? as u64 == length {
            true => Ok(()),
            // Do not return `UnexpectedEof`, because Arrow's reader takes it for the end of the
            // stream.
            false => Err(make_invalid_data_error(
                "the stream ends within a message, so it is truncated; create it again",
            )),
        }
    }

    /// Reads the next message into `message`, which stays empty at the end of the stream.
    fn read_message(&mut self) -> std::io::Result<()> {
        self.message.clear();
        self.at = 0;
        if self.reader.by_ref().take(4).read_to_end(&mut self.message)? == 0 {
            return Ok(());
        }
        if self.message == MARKER {
            self.read_message_bytes(4)?;
        }
        let length = self.message.last_chunk().map_or(0, |four| i32::from_le_bytes(*four));
        let Some(length) = u64::try_from(length).ok().filter(|n| *n > 0) else { return Ok(()) };
        let start = self.message.len();
        self.read_message_bytes(length)?;
        let body = root_as_message(&self.message[start..])
            .map_err(|e| {
                make_invalid_data_error(&format!(
                    "an Arrow IPC message is damaged; create the file again: {e}"
                ))
            })?
            .bodyLength();
        self.read_message_bytes(
            u64::try_from(body).map_err(|e| make_invalid_data_error(&e.to_string()))?,
        )?;
        MessageChecker::from_message_bytes(&self.message)
            .check_stream()
            .map_err(|e| make_invalid_data_error(&e))
    }
}

impl<R: Read> Read for CheckedStream<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.message.len() {
            self.read_message()?;
        }
        let left = &self.message[self.at..];
        let n = left.len().min(out.len());
        out[..n].copy_from_slice(&left[..n]);
        self.at += n;
        Ok(n)
    }
}

fn find_batch<'a>(message: &Message<'a>) -> Option<RecordBatch<'a>> {
    match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch(),
        MessageHeader::DictionaryBatch => {
            message.header_as_dictionary_batch().and_then(|d| d.data())
        }
        _ => None,
    }
}

/// Maximum size in bytes of a Zstandard frame header (RFC 8878, 3.1.1.1).
const MAX_FRAME_HEADER_BYTES: u64 = 18;

/// Returns whether `length` compressed bytes that begin with `frame` can expand to `claimed`.
fn is_possible_size(codec: CompressionType, length: u64, frame: &[u8], claimed: u64) -> bool {
    // Every `of` compressed bytes expand to at most `most` bytes; `whole` is a margin in bytes for
    // the whole buffer. In LZ4, a byte of a match length encodes at most 255 bytes; in Zstandard,
    // an RLE block of 4 bytes encodes at most 128 KiB.
    let (most, of, whole) = match codec {
        CompressionType::ZSTD => (128 << 10, 4, 128 << 10),
        _ => (255, 1, 64 << 10),
    };
    let limit = (length / of).saturating_mul(most).saturating_add(whole);
    let written = if codec == CompressionType::ZSTD { find_content_size(frame) } else { None };
    claimed <= limit && written.is_none_or(|written| written == claimed)
}

fn find_content_size(frame: &[u8]) -> Option<u64> {
    let rest = frame.strip_prefix(&0xFD2F_B528_u32.to_le_bytes())?;
    let (descriptor, rest) = rest.split_first()?;
    let single_segment = descriptor & 0x20 != 0;
    let window = usize::from(!single_segment);
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size = rest.get(window + dictionary..)?;
    let number = |n: usize| {
        let mut bytes = [0; 8];
        bytes[..n].copy_from_slice(size.get(..n)?);
        Some(u64::from_le_bytes(bytes))
    };
    match (descriptor >> 6, single_segment) {
        (0, false) => None,
        (0, true) => number(1),
        (1, _) => number(2).map(|n| n + 256),
        (2, _) => number(4),
        _ => number(8),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};

    use super::*;

    fn batch(n: usize) -> RecordBatch {
        let x: ArrayRef =
            Arc::new(Int64Array::from_iter_values((0..n).map(|i| i64::from(i % 3 == 1))));
        let s: ArrayRef =
            Arc::new(StringArray::from_iter_values((0..n).map(|i| "é".repeat(i % 9))));
        RecordBatch::try_from_iter([("x", x), ("s", s)]).unwrap()
    }

    #[test]
    fn whole_files_and_streams_are_fine_however_well_they_compress() {
        for codec in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
            for rows in [0, 1, 5, 300, 70_000] {
                let batch = batch(rows);
                let zeros: ArrayRef = Arc::new(Int64Array::from(vec![0; rows]));
                let zeros = RecordBatch::try_from_iter([("zeros", zeros)]).unwrap();
                for batch in [batch, zeros] {
                    let options = IpcWriteOptions::default().try_with_compression(codec).unwrap();
                    let schema = batch.schema();
                    let mut file =
                        FileWriter::try_new_with_options(Vec::new(), &schema, options.clone())
                            .unwrap();
                    file.write(&batch).unwrap();
                    let file = file.into_inner().unwrap();
                    assert_eq!(
                        MessageChecker::from_message_bytes(&file).check(),
                        Ok(()),
                        "{codec:?} {rows}"
                    );
                    let mut stream =
                        StreamWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
                    stream.write(&batch).unwrap();
                    let stream = stream.into_inner().unwrap();
                    assert_eq!(
                        MessageChecker::from_message_bytes(&stream).check(),
                        Ok(()),
                        "{codec:?} {rows}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_length_that_compressed_bytes_cannot_have_is_found() {
        for (codec, length) in [(CompressionType::LZ4_FRAME, 1000), (CompressionType::ZSTD, 1000)] {
            assert!(is_possible_size(codec, length, &[], 100_000));
            assert!(!is_possible_size(codec, length, &[], 1 << 40));
        }
        // Header of a Zstandard frame that declares a single segment of 300 uncompressed bytes.
        let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x60, 44, 0, 0];
        assert_eq!(find_content_size(&frame), Some(300));
        assert!(!is_possible_size(CompressionType::ZSTD, 100, &frame, 301));
        assert_eq!(find_content_size(&frame[..5]), None);
    }
}
