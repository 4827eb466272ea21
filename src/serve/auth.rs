//! Checks the tokens of clients.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use tonic::metadata::MetadataMap;
use tonic::{Request, Status};

use super::request_origin::Caller;
use super::sessions::ServerSessions;
use crate::secret::is_equal_secret;

#[derive(Clone)]
pub(super) struct TokenGate {
    token: Option<Arc<str>>,
    sessions: Arc<ServerSessions>,
}

impl TokenGate {
    pub(super) fn new(token: Option<&str>, sessions: Arc<ServerSessions>) -> Self {
        Self { token: token.map(Arc::from), sessions }
    }

    /// Finds the [`Caller`] of a request, and stores it in the request. Returns an error if the
    /// token is missing or wrong, or if the session of the caller has ended.
    #[allow(clippy::result_large_err, reason = "the type of tonic's interceptors")]
    pub(super) fn check_request(&self, mut request: Request<()>) -> Result<Request<()>, Status> {
        match self.find_caller(request.metadata()) {
            Some(caller) => {
                request.extensions_mut().insert(caller);
                Ok(request)
            }
            None => {
                self.sessions.server_metrics().unauthenticated.add(1);
                Err(Status::unauthenticated(match self.token {
                    Some(_) => {
                        "the token is missing or wrong, or the session has ended; connect again, with the token of this server as the password or as a bearer token"
                    }
                    None => "the session has ended; connect again",
                }))
            }
        }
    }

    fn find_caller(&self, metadata: &MetadataMap) -> Option<Caller> {
        let Some(header) = metadata.get("authorization") else {
            return self.token.is_none().then_some(Caller::Client);
        };
        let (scheme, credential) = header.to_str().ok()?.trim().split_once(' ')?;
        let credential = credential.trim();
        match scheme.to_ascii_lowercase().as_str() {
            "bearer" => {
                if self.is_token(credential) {
                    return Some(Caller::Client);
                }
                let known = self.sessions.is_open(credential);
                known.then(|| Caller::OfSession(credential.to_owned()))
            }
            "basic" => {
                let decoded = BASE64_STANDARD.decode(credential).ok()?;
                let text = String::from_utf8(decoded).ok()?;
                // Any user name is accepted.
                let (_, password) = text.split_once(':')?;
                let is_client = self.token.is_none() || self.is_token(password);
                is_client.then_some(Caller::Client)
            }
            _ => None,
        }
    }

    fn is_token(&self, text: &str) -> bool {
        let token = self.token.as_deref();
        token.is_some_and(|token| is_equal_secret(text.as_bytes(), token.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::sessions::tests::make_sessions;
    use super::*;

    fn caller(gate: &TokenGate, header: &str) -> Option<Caller> {
        let mut metadata = MetadataMap::new();
        metadata.insert("authorization", header.parse().unwrap());
        gate.find_caller(&metadata)
    }

    #[test]
    fn tokens_are_checked() {
        let gate = TokenGate::new(Some("secret"), make_sessions(1));
        assert_eq!(gate.find_caller(&MetadataMap::new()), None);
        assert_eq!(caller(&gate, "Bearer secret"), Some(Caller::Client));
        // The credential encodes `user:secret`, and the one in `wrong` encodes `user:secret2`.
        assert_eq!(caller(&gate, "Basic dXNlcjpzZWNyZXQ="), Some(Caller::Client));
        let wrong =
            ["Bearer secre", "bearer", "Basic dXNlcjpzZWNyZXQy", "Basic ?", "Digest secret"];
        for header in wrong {
            assert_eq!(caller(&gate, header), None, "{header}");
        }
    }

    #[test]
    fn a_server_without_token_knows_its_sessions_only() {
        let gate = TokenGate::new(None, make_sessions(1));
        assert_eq!(gate.find_caller(&MetadataMap::new()), Some(Caller::Client));
        assert_eq!(caller(&gate, "Basic dXNlcjo="), Some(Caller::Client));
        assert_eq!(caller(&gate, "Bearer x"), None);
    }
}
