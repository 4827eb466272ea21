//! Secrets that machines and clients send with their requests, and the certificate of a server.

use std::fmt;
use std::time::Duration;

use datafusion::common::plan_datafusion_err;
use datafusion::error::Result;
use tonic::transport::{Identity, Server, ServerTlsConfig};

/// Maximum time for a TLS handshake.
const MAX_HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// Certificate and private key of a server or worker, as text of PEM files.
#[derive(Clone)]
#[cfg_attr(
    not(feature = "cluster"),
    allow(unreachable_pub, reason = "public as part of the configuration of a worker")
)]
pub struct TlsIdentity {
    /// Certificate, followed by the certificates of intermediate authorities, if there are any.
    pub certificate: String,
    /// Private key without a password.
    pub key: String,
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Omits the fields, because the key is a secret.
        f.debug_struct("TlsIdentity").finish_non_exhaustive()
    }
}

pub(crate) fn encrypt_server(server: Server, tls: Option<&TlsIdentity>) -> Result<Server> {
    let Some(tls) = tls else { return Ok(server) };
    let identity = Identity::from_pem(&tls.certificate, &tls.key);
    let tls = ServerTlsConfig::new().identity(identity).timeout(MAX_HANDSHAKE_TIME);
    server.tls_config(tls).map_err(|_| {
        // Omits the cause, whose text could contain the private key.
        plan_datafusion_err!(
            "--tls-cert and --tls-key do not name a certificate and its private key; give two PEM files, the key without a password"
        )
    })
}

/// Compares secrets of equal length in constant time, so that response times do not reveal how many
/// bytes are correct.
pub(crate) fn is_equal_secret(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |all, (x, y)| all | (x ^ y)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_compared_whole() {
        assert!(is_equal_secret(b"secret", b"secret"));
        assert!(!is_equal_secret(b"secret", b"secre"));
        assert!(!is_equal_secret(b"secret", b"Secret"));
    }
}
