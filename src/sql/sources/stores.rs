//! Opens object stores by URL (feature `cloud`): `s3://`, `gs://`, `az://`, `http://` and
//! `https://`.
//!
//! A store is opened on the first use of its bucket. Credentials come from the environment or from
//! OPTIONS of CREATE EXTERNAL TABLE and COPY, which are removed from the statement before it is
//! planned. So no plan and no setting of the session contains them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::sqlparser::ast::Value;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::{ClientConfigKey, ClientOptions, ObjectStore, RetryConfig};
use serrate_core::internal::lock_mutex;
use url::{Position, Url};

use crate::access;
use crate::sql::sources::cloud_store::{CloudStore, RETRIES, StoreKind};
use crate::sql::sources::hidden_files::make_store_error;
use crate::sql::sources::store_options::parse_options;

/// Time since the first attempt after which a failed request is not sent again.
const RETRY_TIME: Duration = Duration::from_secs(60);

/// Substrings of the names of options whose values are secret or change with the credentials.
const CREDENTIALS: [&str; 6] = ["key", "token", "secret", "credential", "service_account", "sas"];

/// Options that name a bucket. They are errors, because the URL already names the bucket.
const BUCKETS: [&str; 5] =
    ["bucket", "bucket_name", "container_name", "aws_bucket", "google_bucket"];

type StoreOptions = BTreeMap<String, String>;

#[derive(Clone)]
struct OpenStore {
    store: Arc<dyn ObjectStore>,
    /// The options of the statement that opened the store, without credentials; `None` if no
    /// statement did.
    options: Option<StoreOptions>,
}

/// The object stores that a session has opened by URL. Keys are scheme, host and port. Each session
/// has its own stores, so that no session uses the credentials in a statement of another.
#[derive(Default)]
pub(in crate::sql) struct SessionStores {
    open: Mutex<HashMap<String, OpenStore>>,
}

impl fmt::Debug for SessionStores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = lock_mutex(&self.open);
        f.debug_set().entries(open.keys()).finish()
    }
}

impl SessionStores {
    /// Returns a copy with the same stores. Stores that are opened later are not shared.
    pub(in crate::sql) fn copy_open(&self) -> Self {
        let open = lock_mutex(&self.open).clone();
        Self { open: Mutex::new(open) }
    }

    /// Returns the store of the bucket of `url` if a statement has opened this store with OPTIONS;
    /// otherwise, returns `None`.
    pub(in crate::sql) fn find_given(&self, url: &Url) -> Option<Arc<dyn ObjectStore>> {
        let open = lock_mutex(&self.open);
        let found = open.get(find_bucket_name(url)).filter(|found| found.options.is_some())?;
        Some(Arc::clone(&found.store))
    }

    /// Returns the store of the bucket of a URL. Opens the store, with credentials from the
    /// environment, unless it is already open. Returns `None` if no kind of store has the scheme of
    /// the URL.
    pub(in crate::sql) fn open(&self, url: &Url) -> Result<Option<Arc<dyn ObjectStore>>> {
        let Some(kind) = StoreKind::from_url(url) else { return Ok(None) };
        check_url(url)?;
        let mut open = lock_mutex(&self.open);
        if let Some(found) = open.get(find_bucket_name(url)) {
            return Ok(Some(Arc::clone(&found.store)));
        }
        let store = open_store(kind, url, &StoreOptions::new())?;
        let opened = OpenStore { store: Arc::clone(&store), options: None };
        open.insert(find_bucket_name(url).to_owned(), opened);
        Ok(Some(store))
    }

    fn open_with(&self, kind: StoreKind, url: &Url, options: &StoreOptions) -> Result<()> {
        let bucket = find_bucket_name(url);
        let is_credential = |name: &str| CREDENTIALS.iter().any(|part| name.contains(part));
        let mut public = options.clone();
        public.retain(|name, _| !is_credential(name));
        let mut open = lock_mutex(&self.open);
        let known = open.get(bucket).and_then(|found| found.options.as_ref());
        if let Some(known) = known
            && *known != public
        {
            return plan_err!(
                "{bucket} is already open in this session with other options, and changing them would redirect existing tables to another store; give the same options (only credentials may differ), or use another session"
            );
        }
        let store = open_store(kind, url, options)?;
        open.insert(bucket.to_owned(), OpenStore { store, options: Some(public) });
        Ok(())
    }
}

/// Returns a runtime that opens stores by URL and keeps them in `stores`. A store that a program
/// registers, before or after this call, takes precedence over a store from the environment.
pub(in crate::sql) fn open_by_url(
    runtime: &RuntimeEnv,
    stores: Arc<SessionStores>,
) -> Arc<RuntimeEnv> {
    let inner = Arc::clone(&runtime.object_store_registry);
    let registry = Arc::new(CloudRegistry { inner, stores });
    Arc::new(RuntimeEnv { object_store_registry: registry, ..runtime.clone() })
}

#[derive(Debug)]
struct CloudRegistry {
    inner: Arc<dyn ObjectStoreRegistry>,
    stores: Arc<SessionStores>,
}

impl ObjectStoreRegistry for CloudRegistry {
    fn register_store(
        &self,
        url: &Url,
        store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        self.inner.register_store(url, store)
    }

    fn deregister_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        self.inner.deregister_store(url)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        if let Some(given) = self.stores.find_given(url) {
            check_url(url)?;
            return Ok(given);
        }
        match self.inner.get_store(url) {
            Ok(registered) => Ok(registered),
            Err(e) => self.stores.open(url)?.ok_or(e),
        }
    }
}

fn find_bucket_name(url: &Url) -> &str {
    &url[..Position::BeforePath]
}

/// Returns an error for a URL without a host, for a user or password, which plans would show, and
/// for a query (`?..`) or fragment (`#..`), which would be ignored.
fn check_url(url: &Url) -> Result<()> {
    let host = url.host_str().unwrap_or_default();
    if !url.username().is_empty() || url.password().is_some() {
        return plan_err!(
            "the URL {}://..@{host} has a user or password, which plans and errors would show; write only the bucket, and set the credentials in the environment",
            url.scheme()
        );
    }
    if host.is_empty() {
        return plan_err!(
            "the URL {}: names no bucket or host; write {}://NAME/PATH",
            url.scheme(),
            url.scheme()
        );
    }
    if url.query().is_some() || url.fragment().is_some() {
        return plan_err!(
            "the URL {}://{host}{} has a part after ? or #, which cannot be sent to the store; remove this part, or write %3F for ? and %23 for # if they belong to the name of the file",
            url.scheme(),
            url.path()
        );
    }
    Ok(())
}

/// Opens the stores of `locations` with the options `aws.*`, `gcp.*`, `azure.*` and `http.*`, and
/// removes these options from the statement. Opens nothing if there are no such options.
pub(in crate::sql) fn take_options(
    state: &SessionState,
    locations: &[String],
    options: &mut Vec<(String, Value)>,
) -> Result<()> {
    let kinds = [StoreKind::S3, StoreKind::Google, StoreKind::Azure, StoreKind::Http];
    let mut ours: Vec<(StoreKind, String, String)> = Vec::new();
    options.retain(|(key, value)| {
        let key = key.to_ascii_lowercase();
        let Some((prefix, name)) = key.split_once('.') else { return true };
        let Some(kind) = kinds.into_iter().find(|kind| kind.option_prefix() == prefix) else {
            return true;
        };
        let value = match value {
            Value::SingleQuotedString(text)
            | Value::DoubleQuotedString(text)
            | Value::EscapedStringLiteral(text) => text.clone(),
            other => other.to_string(),
        };
        ours.push((kind, name.to_owned(), value));
        false
    });
    let Some((first, name, _)) = ours.first() else { return Ok(()) };
    for location in locations {
        let url = Url::parse(location).ok();
        let Some((url, kind)) =
            url.and_then(|url| StoreKind::from_url(&url).map(|kind| (url, kind)))
        else {
            return plan_err!(
                "the option {}.{name} applies to object stores, but '{location}' is not in one; remove the option",
                first.option_prefix()
            );
        };
        check_url(&url)?;
        if let Some((other, name, _)) = ours.iter().find(|(of, _, _)| *of != kind) {
            return plan_err!(
                "the option {}.{name} does not apply to {}:// URLs; their options begin with {}.",
                other.option_prefix(),
                url.scheme(),
                kind.option_prefix()
            );
        }
        access::check_store().map_err(|e| crate::Error::io(find_bucket_name(&url), e))?;
        let given = ours.iter().map(|(_, name, value)| (name.clone(), value.clone())).collect();
        match state.config().get_extension::<SessionStores>() {
            Some(stores) => stores.open_with(kind, &url, &given)?,
            None => {
                return plan_err!(
                    "the session cannot open object stores with options; create the session with serrate::sql::session, or register the store"
                );
            }
        }
    }
    Ok(())
}

/// Opens the store of a URL with credentials from the environment, or returns an error if the URL
/// is not valid or has an unknown scheme.
pub(in crate::sql) fn open_from_environment(url: &Url) -> Result<Arc<dyn ObjectStore>> {
    check_url(url)?;
    match StoreKind::from_url(url) {
        Some(kind) => open_store(kind, url, &StoreOptions::new()),
        None => Err(make_store_error(url.scheme()).into()),
    }
}

/// Opens a store. The options override the environment, and the URL names the bucket.
fn open_store(kind: StoreKind, url: &Url, options: &StoreOptions) -> Result<Arc<dyn ObjectStore>> {
    let bucket = url.host_str().unwrap_or_default();
    let retry =
        RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_TIME, ..RetryConfig::default() };
    if let Some(name) = options.keys().find(|name| BUCKETS.contains(&name.as_str())) {
        return plan_err!(
            "the option {}.{name} is not supported, because the URL names the bucket; remove the option",
            kind.option_prefix()
        );
    }
    let built: object_store::Result<Arc<dyn ObjectStore>> = match kind {
        StoreKind::S3 => {
            let mut builder = AmazonS3Builder::from_env();
            for (key, value) in parse_names::<AmazonS3ConfigKey>(kind, options)? {
                builder = builder.with_config(key, value);
            }
            let store = builder.with_bucket_name(bucket).with_retry(retry).build();
            store.map(|store| Arc::new(store) as Arc<dyn ObjectStore>)
        }
        StoreKind::Google => {
            let mut builder = GoogleCloudStorageBuilder::from_env();
            for (key, value) in parse_names::<GoogleConfigKey>(kind, options)? {
                builder = builder.with_config(key, value);
            }
            let store = builder.with_bucket_name(bucket).with_retry(retry).build();
            store.map(|store| Arc::new(store) as Arc<dyn ObjectStore>)
        }
        StoreKind::Azure => {
            let mut builder = MicrosoftAzureBuilder::from_env();
            for (key, value) in parse_names::<AzureConfigKey>(kind, options)? {
                builder = builder.with_config(key, value);
            }
            let store = builder.with_container_name(bucket).with_retry(retry).build();
            store.map(|store| Arc::new(store) as Arc<dyn ObjectStore>)
        }
        StoreKind::Http => {
            let mut client = ClientOptions::new().with_allow_http(url.scheme() == "http");
            for (key, value) in parse_names::<ClientConfigKey>(kind, options)? {
                client = client.with_config(key, value);
            }
            let builder =
                HttpBuilder::new().with_url(find_bucket_name(url)).with_client_options(client);
            builder.with_retry(retry).build().map(|store| Arc::new(store) as Arc<dyn ObjectStore>)
        }
    };
    match built {
        Ok(inner) => Ok(Arc::new(CloudStore::new(inner, kind, find_bucket_name(url).to_owned()))),
        Err(e) => {
            let why = hide_values(e.to_string(), options);
            plan_err!("cannot open {}: {why}; {}", find_bucket_name(url), kind.give_advice())
        }
    }
}

/// Returns the error message of the builder of an object store. If the message quotes the value of
/// an option, such as an invalid key, returns another message, because the value may be a secret.
fn hide_values(message: String, options: &StoreOptions) -> String {
    let is_quoted = |value: &String| value.len() > 3 && message.contains(value.as_str());
    match options.values().any(is_quoted) {
        true => "the value of an option is not valid".to_owned(),
        false => message,
    }
}

fn parse_names<K: FromStr + PartialEq>(
    kind: StoreKind,
    options: &StoreOptions,
) -> Result<Vec<(K, &String)>> {
    let known = match kind {
        StoreKind::S3 => {
            "aws.access_key_id, aws.secret_access_key, aws.session_token, aws.region, aws.endpoint, aws.allow_http and aws.skip_signature"
        }
        StoreKind::Google => {
            "gcp.service_account_path, gcp.service_account_key, gcp.application_credentials_path and gcp.skip_signature"
        }
        StoreKind::Azure => {
            "azure.account_name, azure.account_key, azure.sas_token, azure.endpoint and azure.allow_http"
        }
        StoreKind::Http => "http.timeout, http.connect_timeout and http.proxy_url",
    };
    parse_options(options, kind.option_prefix(), known)
}

/// Cuts the text of a statement before the first credentials that it contains. Errors that show the
/// statement use this text.
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
pub(crate) fn hide_credentials(sql: &str) -> Cow<'_, str> {
    let lower = sql.to_ascii_lowercase();
    let users = lower.match_indices("://").filter_map(|(at, mark)| {
        let start = at.saturating_add(mark.len());
        let rest = lower.get(start..)?;
        let end = rest.find(['/', '\'', '"', ' ']).unwrap_or(rest.len());
        rest.get(..end)?.contains('@').then_some(start)
    });
    let queries = lower.match_indices("://").filter_map(|(at, mark)| {
        let schemes = ["s3", "gs", "az", "http", "https"];
        let is_store =
            schemes.iter().any(|scheme| lower.get(..at).is_some_and(|s| s.ends_with(scheme)));
        let start = at.saturating_add(mark.len());
        let rest = lower.get(start..).filter(|_| is_store)?;
        let end = rest.find(['\'', '"', ' ']).unwrap_or(rest.len());
        let query = rest.get(..end)?.find('?')?;
        Some(start.saturating_add(query).saturating_add(1))
    });
    let options = ["aws.", "gcp.", "azure.", "http."].into_iter().filter_map(|prefix| {
        let mut ends = lower.match_indices(prefix).filter_map(|(start, _)| {
            let rest = lower.get(start..)?;
            let in_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            let name = rest.get(..rest.find(|c| !in_name(c)).unwrap_or(rest.len()))?;
            let is_secret = CREDENTIALS.iter().any(|part| name.contains(part));
            is_secret.then_some(start.saturating_add(name.len()))
        });
        ends.next()
    });
    // A user may have omitted the prefix of the option, such as `aws.`.
    let bare = ["secret_access_key", "session_token", "account_key"];
    let bare = bare
        .into_iter()
        .filter_map(|name| lower.find(name).map(|start| start.saturating_add(name.len())));
    match users.chain(queries).chain(options).chain(bare).min() {
        Some(end) => Cow::Owned(format!("{} ..", sql.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(sql),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_cut_from_statements() {
        let sql = "COPY t TO 's3://b/x' OPTIONS ('AWS.Secret_Access_Key' 'abc', 'aws.region' 'x')";
        assert_eq!(
            hide_credentials(sql),
            "COPY t TO 's3://b/x' OPTIONS ('AWS.Secret_Access_Key .."
        );
        assert_eq!(hide_credentials("FROM 's3://a:b@c/d'"), "FROM 's3:// ..");
        assert_eq!(hide_credentials("FROM 's3://b/x?sig=1'"), "FROM 's3://b/x? ..");
        assert_eq!(
            hide_credentials("OPTIONS (AWS_SESSION_TOKEN 'abc')"),
            "OPTIONS (AWS_SESSION_TOKEN .."
        );
        for plain in [
            "FROM 's3://b/a@x'",
            "FROM 'file://a?.csv'",
            "COPY t TO 's3://b/x' OPTIONS (aws.region 'x')",
            "é",
        ] {
            assert_eq!(hide_credentials(plain), plain);
        }
    }

    #[test]
    fn a_bucket_has_one_place_per_session() {
        let stores = SessionStores::default();
        let url = Url::parse("s3://b/x").unwrap();
        let options = |region: &str, token: &str| {
            let all = [("region", region), ("session_token", token), ("access_key_id", "k")];
            let all = all.into_iter().chain([("secret_access_key", "s")]);
            all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<StoreOptions>()
        };
        assert!(stores.find_given(&url).is_none());
        stores.open_with(StoreKind::S3, &url, &options("r", "1")).unwrap();
        // A second call may change the credentials, but not the region.
        stores.open_with(StoreKind::S3, &url, &options("r", "2")).unwrap();
        let other = stores.open_with(StoreKind::S3, &url, &options("q", "2")).unwrap_err();
        assert!(other.to_string().contains("already open"), "{other}");
        assert!(stores.find_given(&url).is_some());
        assert!(!format!("{stores:?}").contains("secret"));
        for wrong in ["s3://u:p@b/x", "s3://b/x?y=1", "s3://b/x#y"] {
            assert!(stores.open(&Url::parse(wrong).unwrap()).is_err(), "{wrong}");
        }
        assert!(stores.open(&Url::parse("mem://b/x").unwrap()).unwrap().is_none());
    }
}
