//! An object store whose errors are one sentence each, and whose objects differ from those of other
//! stores.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error as StoreError, GetOptions, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, RenameOptions, UploadPart,
};
use url::Url;

/// Maximum number of times that a failed request is sent again, with growing pauses.
pub(super) const RETRIES: usize = 5;

/// Number of stores that this process has opened. Each store computes its
/// [`CloudStore::time_shift`] from this number, so that no two stores have the same duration.
static OPENED: AtomicU32 = AtomicU32::new(0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreKind {
    S3,
    Google,
    Azure,
    Http,
}

impl StoreKind {
    pub(super) fn from_url(url: &Url) -> Option<Self> {
        match url.scheme() {
            "s3" => Some(Self::S3),
            "gs" => Some(Self::Google),
            "az" => Some(Self::Azure),
            "http" | "https" => Some(Self::Http),
            _ => None,
        }
    }

    /// Returns the prefix of the store's options in a statement, such as `aws` in `aws.region`.
    pub(super) fn option_prefix(self) -> &'static str {
        match self {
            Self::S3 => "aws",
            Self::Google => "gcp",
            Self::Azure => "azure",
            Self::Http => "http",
        }
    }

    /// Returns the name of this kind of store for error messages.
    fn name(self) -> &'static str {
        match self {
            Self::S3 => "S3",
            Self::Google => "GCS",
            Self::Azure => "Azure",
            Self::Http => "HTTP",
        }
    }

    pub(super) fn give_advice(self) -> &'static str {
        match self {
            Self::S3 => {
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_REGION), or AWS_SKIP_SIGNATURE=true for a public bucket"
            }
            Self::Google => {
                "set GOOGLE_SERVICE_ACCOUNT, or GOOGLE_SKIP_SIGNATURE=true for a public bucket"
            }
            Self::Azure => "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
            Self::Http => "check the URL",
        }
    }

    /// Returns the environment variable or the option that sets the maximum time of a request, as
    /// an error message names it.
    fn name_timeout(self) -> &'static str {
        match self {
            Self::S3 => "AWS_TIMEOUT",
            Self::Google => "GOOGLE_TIMEOUT",
            Self::Azure => "AZURE_TIMEOUT",
            Self::Http => "the option http.timeout",
        }
    }
}

/// A store whose errors are one sentence each, without addresses and answers of the server.
pub(super) struct CloudStore {
    inner: Arc<dyn ObjectStore>,
    name: StoreName,
    /// A duration that is added to the time of change of each object, and differs between stores.
    /// Caches identify an object by path, size and time of change, but not by bucket. Without this
    /// duration, caches could confuse objects of two buckets.
    time_shift: Duration,
}

/// The kind and the URL of a store, which error messages name.
#[derive(Clone, Debug)]
struct StoreName {
    kind: StoreKind,
    /// Scheme and bucket of the URL of the store, such as `s3://bucket`.
    root: String,
}

impl StoreName {
    fn refuse_with(&self, why: impl fmt::Display) -> StoreError {
        let source = format!("{}: {why}", self.root).into();
        StoreError::Generic { store: self.kind.name(), source }
    }

    /// Returns the error of a request as one sentence. Messages of the client and of the server are
    /// left out, because they have several lines, and may contain signatures.
    fn explain_error(&self, e: StoreError) -> StoreError {
        let text = e.to_string();
        let code = find_text_between(&text, "<Code>", "</Code>").unwrap_or_default();
        let status = find_text_between(&text, "status code: ", ":").unwrap_or_default().trim();
        let answer = format!("{status} {code}");
        let answer = answer.trim();
        match e {
            // `object_store` reports a failed listing as a generic error, in which only the code
            // says that the bucket is missing.
            StoreError::NotFound { .. } | StoreError::Generic { .. }
                if matches!(code, "NoSuchBucket" | "ContainerNotFound")
                    || text.contains("bucket does not exist") =>
            {
                self.refuse_with("the bucket does not exist; check its name, and the endpoint and region of the store")
            }
            StoreError::NotFound { path, .. } => StoreError::NotFound {
                path,
                source: format!("{} has no such object", self.root).into(),
            },
            StoreError::PermissionDenied { path, .. } | StoreError::Unauthenticated { path, .. } => {
                self.refuse_with(format!(
                    "the store refuses access to {path} ({answer}); check the credentials and their permissions: {}",
                    self.kind.give_advice()
                ))
            }
            StoreError::AlreadyExists { path, .. } => {
                let source = format!("the store answered {answer}").into();
                StoreError::AlreadyExists { path, source }
            }
            StoreError::Precondition { path, .. } => {
                let source = "the object changed after the query was planned; run the query again".into();
                StoreError::Precondition { path, source }
            }
            StoreError::NotSupported { .. } if text.contains("Range request") => self.refuse_with(
                "the server does not support Range requests, which this format needs; use a server that supports them, or a local copy of the file",
            ),
            StoreError::Generic { source, .. } => self.explain_failure(&text, answer, &*source),
            other => other,
        }
    }

    fn explain_failure(
        &self,
        text: &str,
        answer: &str,
        source: &(dyn std::error::Error + 'static),
    ) -> StoreError {
        if text.contains("169.254.169.254") || text.contains("metadata.google.internal") {
            return self
                .refuse_with(format!("no credentials were found; {}", self.kind.give_advice()));
        }
        let is_throttled = ["429", "503"].iter().any(|status| answer.starts_with(status));
        if is_throttled || text.contains("SlowDown") {
            return self.refuse_with(format!(
                "the store refuses requests because there are too many ({answer}), also after {RETRIES} repetitions; run the statement again later"
            ));
        }
        if text.contains("redirect without LOCATION") {
            return self.refuse_with(
                "the bucket is in another region; set AWS_REGION, or the option aws.region",
            );
        }
        if answer.is_empty() {
            let mut cause = source;
            while let Some(deeper) = cause.source() {
                cause = deeper;
            }
            // The innermost error comes from the operating system or the HTTP client. Its first
            // line is shown, unless the line contains a URL.
            let cause = cause.to_string();
            let cause = cause.lines().next().unwrap_or_default();
            let cause = match cause.contains("://") {
                true => "the request failed",
                false => cause,
            };
            let longer = match cause.contains("operation timed out") {
                true => format!(", set a longer time with {}", self.kind.name_timeout()),
                false => String::new(),
            };
            return self.refuse_with(format!(
                "{cause}; check the endpoint and the network{longer}, and run the statement again"
            ));
        }
        self.refuse_with(format!("the store answered {answer}; check the endpoint and the options"))
    }

    fn explain_list(&self, e: StoreError) -> StoreError {
        match self.kind {
            // HTTP servers without WebDAV answer a listing with errors of many kinds. All of them
            // mean that the URL does not name a file.
            StoreKind::Http if is_answer_to_list(&e.to_string()) => self.refuse_with(
                "the server has no file of this name, and lists no folders; name one existing file",
            ),
            _ => self.explain_error(e),
        }
    }
}

/// Whether an error is about the server's answer to a request for a listing, and not about the
/// connection.
fn is_answer_to_list(text: &str) -> bool {
    text.contains("status code") || text.to_ascii_lowercase().contains("propfind")
}

/// Returns the part of `text` between `start` and `end`, or all after `start` if `end` does not
/// follow. Returns `None` if `text` does not contain `start`.
fn find_text_between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    Some(rest.split_once(end).map_or(rest, |(found, _)| found))
}

/// Whether the connection was lost within the answer to a listing. `object_store` does not repeat
/// such a request, because it has received a part of the answer.
fn is_cut_list(e: &StoreError) -> bool {
    e.to_string().contains("list response body")
}

/// Lists objects, and begins again if the answer is cut before the first object.
fn repeat_list(
    list: impl Fn() -> BoxStream<'static, object_store::Result<ObjectMeta>> + Send + 'static,
) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
    let listed = async move {
        // The stream is fused, because `chain` polls it again after its end if the listing is
        // empty.
        let mut objects = list().fuse();
        let mut first = objects.next().await;
        for _ in 0..RETRIES {
            if !matches!(&first, Some(Err(e)) if is_cut_list(e)) {
                break;
            }
            objects = list().fuse();
            first = objects.next().await;
        }
        stream::iter(first).chain(objects)
    };
    stream::once(listed).flatten().boxed()
}

impl CloudStore {
    pub(super) fn new(inner: Arc<dyn ObjectStore>, kind: StoreKind, root: String) -> Self {
        let step = OPENED.fetch_add(1, Ordering::Relaxed) % 1_000_000;
        let time_shift = Duration::from_nanos(u64::from(step));
        Self { inner, name: StoreName { kind, root }, time_shift }
    }

    fn shift_time(&self, mut meta: ObjectMeta) -> ObjectMeta {
        meta.last_modified += self.time_shift;
        meta
    }

    fn explain_stream(
        &self,
        objects: BoxStream<'static, object_store::Result<ObjectMeta>>,
    ) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        let (name, time_shift) = (self.name.clone(), self.time_shift);
        let objects = objects.map(move |object| match object {
            Ok(mut meta) => {
                meta.last_modified += time_shift;
                Ok(meta)
            }
            Err(e) => Err(name.explain_list(e)),
        });
        objects.boxed()
    }
}

impl fmt::Debug for CloudStore {
    /// Shows no field of the inner store, because it has the credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CloudStore").field(&self.name.root).finish()
    }
}

impl fmt::Display for CloudStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name.root)
    }
}

#[async_trait]
impl ObjectStore for CloudStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> object_store::Result<PutResult> {
        let put = self.inner.put_opts(location, payload, options).await;
        put.map_err(|e| self.name.explain_error(e))
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        match self.inner.put_multipart_opts(location, options).await {
            Ok(inner) => Ok(Box::new(CloudUpload { inner, name: self.name.clone() })),
            Err(StoreError::NotImplemented { .. }) => Err(self.name.refuse_with(
                "the store does not support multipart uploads, which files above 8 MiB need; write a local file",
            )),
            Err(e) => Err(self.name.explain_error(e)),
        }
    }

    async fn get_opts(
        &self,
        location: &Path,
        options: GetOptions,
    ) -> object_store::Result<GetResult> {
        let found = self.inner.get_opts(location, options).await;
        let mut found = found.map_err(|e| self.name.explain_error(e))?;
        found.meta = self.shift_time(found.meta);
        found.payload = match found.payload {
            GetResultPayload::Stream(stream) => {
                let name = self.name.clone();
                let stream = stream.map(move |bytes| bytes.map_err(|e| name.explain_error(e)));
                GetResultPayload::Stream(stream.boxed())
            }
            file => file,
        };
        Ok(found)
    }

    async fn get_ranges(
        &self,
        location: &Path,
        ranges: &[Range<u64>],
    ) -> object_store::Result<Vec<Bytes>> {
        let bytes = self.inner.get_ranges(location, ranges).await;
        bytes.map_err(|e| self.name.explain_error(e))
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        let name = self.name.clone();
        let deleted = self.inner.delete_stream(locations);
        deleted.map(move |location| location.map_err(|e| name.explain_error(e))).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        let (inner, prefix) = (Arc::clone(&self.inner), prefix.cloned());
        self.explain_stream(repeat_list(move || inner.list(prefix.as_ref())))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        let (inner, prefix, offset) = (Arc::clone(&self.inner), prefix.cloned(), offset.clone());
        self.explain_stream(repeat_list(move || inner.list_with_offset(prefix.as_ref(), &offset)))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        let mut listed = self.inner.list_with_delimiter(prefix).await;
        for _ in 0..RETRIES {
            if !listed.as_ref().is_err_and(is_cut_list) {
                break;
            }
            listed = self.inner.list_with_delimiter(prefix).await;
        }
        let mut listed = listed.map_err(|e| self.name.explain_list(e))?;
        listed.objects = listed.objects.into_iter().map(|meta| self.shift_time(meta)).collect();
        Ok(listed)
    }

    async fn copy_opts(
        &self,
        from: &Path,
        to: &Path,
        options: CopyOptions,
    ) -> object_store::Result<()> {
        let copied = self.inner.copy_opts(from, to, options).await;
        copied.map_err(|e| self.name.explain_error(e))
    }

    async fn rename_opts(
        &self,
        from: &Path,
        to: &Path,
        options: RenameOptions,
    ) -> object_store::Result<()> {
        let renamed = self.inner.rename_opts(from, to, options).await;
        renamed.map_err(|e| self.name.explain_error(e))
    }
}

struct CloudUpload {
    inner: Box<dyn MultipartUpload>,
    name: StoreName,
}

impl fmt::Debug for CloudUpload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CloudUpload").field(&self.name.root).finish()
    }
}

#[async_trait]
impl MultipartUpload for CloudUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (part, name) = (self.inner.put_part(data), self.name.clone());
        let sent: BoxFuture<'static, object_store::Result<()>> =
            part.map(move |sent| sent.map_err(|e| name.explain_error(e))).boxed();
        sent
    }

    async fn complete(&mut self) -> object_store::Result<PutResult> {
        self.inner.complete().await.map_err(|e| self.name.explain_error(e))
    }

    async fn abort(&mut self) -> object_store::Result<()> {
        self.inner.abort().await.map_err(|e| self.name.explain_error(e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_requests_are_one_sentence() {
        let name = StoreName { kind: StoreKind::S3, root: "s3://b".into() };
        let failed = |text: &str| {
            let e = StoreError::Generic { store: "S3", source: text.into() };
            name.explain_error(e).to_string()
        };
        let text = failed(
            "Error performing GET http://h/b/k?sig=1 in 1s - Server returned non-2xx status code: 503 Slow Down: <Error>\n<Code>SlowDown</Code>",
        );
        assert!(text.contains("too many (503 Slow Down SlowDown)"), "{text}");
        assert!(!text.contains("sig=1") && !text.contains('\n'), "{text}");
        let text = failed("error sending request for url (http://h/b/k?sig=1)\nmore");
        assert!(text.contains("s3://b: the request failed; check the endpoint"), "{text}");
        let text = failed(
            "Error performing list request: Server returned non-2xx status code: 404 Not Found: <Error><Code>NoSuchBucket</Code>",
        );
        assert!(text.contains("the bucket does not exist"), "{text}");
        let missing = StoreError::NotFound { path: "k".into(), source: "404".into() };
        let missing = name.explain_error(missing);
        assert!(matches!(missing, StoreError::NotFound { .. }), "{missing}");
    }
}
