//! Safetensors: header, reader, streaming writer.
