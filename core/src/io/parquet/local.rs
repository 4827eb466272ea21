use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

use crate::access;
use crate::io::safetensors::read_exact_at;

/// Buffer size in bytes for page headers, which are rarely longer.
const HEADER: usize = 256;

/// Gives each of several `parquet` readers its own offset; readers of one [`File`] would share it.
#[derive(Clone, Debug)]
pub(crate) struct LocalFile {
    file: Arc<File>,
    length: u64,
}

impl LocalFile {
    pub(crate) fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let file = access::open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { file: Arc::new(file), length })
    }
}

impl Length for LocalFile {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for LocalFile {
    type T = BufReader<FromPlace>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::with_capacity(HEADER, FromPlace { file: self.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let rest = self.length.saturating_sub(start);
        if length as u64 > rest {
            return Err(ParquetError::EOF(format!(
                "{length} bytes from byte {start} reach past the end of the file of {} bytes, which is damaged or truncated; create it again",
                self.length
            )));
        }
        // The length may be damaged and large: a failed allocation would abort the process.
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|e| ParquetError::External(Box::new(e)))?;
        bytes.resize(length, 0);
        read_exact_at(&self.file, &mut bytes, start)?;
        Ok(bytes.into())
    }
}

#[derive(Debug)]
pub(crate) struct FromPlace {
    file: LocalFile,
    at: u64,
}

impl Read for FromPlace {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.file.length.saturating_sub(self.at);
        let n = buffer.len().min(usize::try_from(rest).unwrap_or(usize::MAX));
        read_exact_at(&self.file.file, &mut buffer[..n], self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}
