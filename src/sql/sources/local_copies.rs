//! Local copies of objects (feature `cloud`), for functions that read whole files: `meds`,
//! `meds_asof`, labels, vocabularies, cohorts and features.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::stream::TryStreamExt;
use object_store::path::Path;
use object_store::{
    Error as StoreError, GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt,
};
use serrate_core::internal::NameLease;
use serrate_core::internal::lock_mutex;
use url::Url;

use crate::access;
use crate::sql::sources::stores::open_from_environment;

/// Time for which a copy is used before the store is asked again whether the objects have changed.
const RECHECK_TIME: Duration = Duration::from_secs(1);

/// Maximum number of bytes that one request asks for. A larger answer may exceed the time limit of
/// a request, by default 30 seconds until the whole answer has arrived.
const MAX_RANGE_BYTES: u64 = 16 << 20;

/// Path, size, ETag and time of last change, in seconds since 1970, of each object of a copy.
type CopyVersion = Vec<(String, u64, Option<String>, i64)>;

/// The local copies that this process has made. They stay on the disk when the process ends,
/// because a static is never dropped. The next process that acquires a [`NameLease`] (the use of
/// temporary names) in the same folder removes them.
static COPIES: Mutex<Option<LocalCopies>> = Mutex::new(None);

struct LocalCopies {
    lease: NameLease,
    slots: HashMap<(String, String), CopySlot>,
    /// Number of copies so far. Each has its own folder, so that queries can go on reading older
    /// copies.
    count: usize,
}

/// The latest copy for a URL and a list of requested files. `fetch_copy` locks only this slot while
/// it waits for the store, so other queries can fetch other copies.
type CopySlot = Arc<Mutex<Option<LocalCopy>>>;

struct LocalCopy {
    path: PathBuf,
    version: CopyVersion,
    checked: Instant,
}

impl LocalCopies {
    fn new() -> io::Result<Self> {
        let lease = NameLease::acquire_new(&std::env::temp_dir())?;
        access::create_dir_all(lease.data_path())?;
        Ok(Self { lease, slots: HashMap::new(), count: 0 })
    }
}

/// Returns the path of a local copy of the object or folder at a URL. If `only` is not empty, only
/// these files of a folder are copied. Objects that have changed are copied again.
pub(in crate::sql) fn fetch_copy(url: &str, only: &[&str]) -> io::Result<PathBuf> {
    let parsed = Url::parse(url).map_err(io::Error::other)?;
    let slot = use_copies(|copies| {
        let slot = copies.slots.entry((url.to_owned(), only.join(","))).or_default();
        Arc::clone(slot)
    })?;
    let mut latest = lock_mutex(&slot);
    if let Some(latest) = &*latest
        && latest.checked.elapsed() < RECHECK_TIME
    {
        return Ok(latest.path.clone());
    }
    let version = latest.as_ref().map(|latest| latest.version.clone());
    let target = use_copies(|copies| {
        copies.count = copies.count.saturating_add(1);
        copies.lease.data_path().join(copies.count.to_string())
    })?;
    let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
    let (folder, checked) = (target.clone(), Instant::now());
    // A new thread makes the copy: the caller may be on a thread of the query's runtime, which must
    // not wait for a task of the same runtime.
    let run = move || -> io::Result<Option<(PathBuf, CopyVersion)>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(copy_objects(&parsed, &only, version.as_ref(), &folder))
    };
    let copied = std::thread::spawn(run).join().unwrap_or_else(|_| {
        Err(io::Error::other("internal error: copying the objects panicked; please report it"))
    });
    match copied {
        Ok(None) => match &mut *latest {
            Some(latest) => {
                latest.checked = checked;
                Ok(latest.path.clone())
            }
            None => Err(io::ErrorKind::NotFound.into()),
        },
        Ok(Some((path, version))) => {
            *latest = Some(LocalCopy { path: path.clone(), version, checked });
            Ok(path)
        }
        Err(e) => {
            let _ = access::remove_spilled(&target);
            Err(e)
        }
    }
}

fn use_copies<T>(with: impl FnOnce(&mut LocalCopies) -> T) -> io::Result<T> {
    let mut copies = lock_mutex(&COPIES);
    Ok(with(match &mut *copies {
        Some(copies) => copies,
        none => none.insert(LocalCopies::new()?),
    }))
}

/// Copies objects at or below `url` to the new folder `target`; from a folder, only those named in
/// `only`, unless `only` is empty. Returns the path of the copy and the version of the objects. If
/// this version is `known`, copies nothing and returns `None`. Returns an error if there are no
/// objects.
async fn copy_objects(
    url: &Url,
    only: &[String],
    known: Option<&CopyVersion>,
    target: &std::path::Path,
) -> io::Result<Option<(PathBuf, CopyVersion)>> {
    let store =
        open_from_environment(url).map_err(|e| io::Error::other(e.message().into_owned()))?;
    let root = Path::from_url_path(url.path()).map_err(io::Error::other)?;
    let file = match root.filename().is_none() || url.path().ends_with('/') {
        true => None,
        false => match store.head(&root).await {
            Ok(meta) => Some(meta),
            Err(StoreError::NotFound { .. }) => None,
            Err(e) => return Err(e.into()),
        },
    };
    let is_file = file.is_some();
    let mut objects: Vec<ObjectMeta> = match file {
        Some(meta) => vec![meta],
        None => store.list(Some(&root)).try_collect().await?,
    };
    objects.retain(|meta| {
        let below = name_below(&root, &meta.location);
        only.is_empty() || is_file || only.iter().any(|name| *name == below.join("/"))
    });
    objects.sort_by(|a, b| a.location.cmp(&b.location));
    if objects.is_empty() {
        let why = "there is no object of this name, and no object in a folder of this name";
        return Err(io::Error::new(io::ErrorKind::NotFound, why));
    }
    let version: CopyVersion = objects.iter().map(to_stamp).collect();
    if known == Some(&version) {
        return Ok(None);
    }
    let is_web = matches!(url.scheme(), "http" | "https");
    for meta in &objects {
        let mut path = target.to_path_buf();
        match is_file {
            true => path.push(root.filename().unwrap_or("object")),
            false => path.extend(name_below(&root, &meta.location)),
        }
        copy_object(&store, meta, is_web, &path).await?;
    }
    let path = match is_file {
        true => target.join(root.filename().unwrap_or("object")),
        false => target.to_path_buf(),
    };
    Ok(Some((path, version)))
}

/// Returns the names of the folders between `root` and an object in it, then the object's name.
fn name_below(root: &Path, location: &Path) -> Vec<String> {
    let below = location.prefix_match(root).into_iter().flatten();
    below
        .map(|part| {
            let name: &str = part.as_ref();
            name.to_owned()
        })
        .collect()
}

fn to_stamp(meta: &ObjectMeta) -> (String, u64, Option<String>, i64) {
    (meta.location.to_string(), meta.size, meta.e_tag.clone(), meta.last_modified.timestamp())
}

/// Copies one object to the new file `path`, in several requests if it has more than
/// [`MAX_RANGE_BYTES`] bytes. All requests must find the same version of the object. `is_web` is
/// whether the store is a web server.
async fn copy_object(
    store: &Arc<dyn ObjectStore>,
    meta: &ObjectMeta,
    is_web: bool,
    path: &std::path::Path,
) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        access::create_dir_all(folder)?;
    }
    let mut file = access::create_new(path)?;
    let mut version = None;
    let mut start = 0u64;
    loop {
        let answer = request_range(store, meta, is_web, start).await?;
        let found = (answer.meta.size, answer.meta.e_tag.clone(), answer.meta.last_modified);
        if *version.get_or_insert_with(|| found.clone()) != found {
            return Err(io::Error::other(format!(
                "{} changed while it was copied; run the statement again",
                meta.location
            )));
        }
        let mut bytes = answer.into_stream();
        let mut size = 0u64;
        while let Some(bytes) = bytes.try_next().await? {
            size = size.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
            file.write_all(&bytes)?;
        }
        start = start.saturating_add(size);
        if size == 0 || start >= meta.size {
            break;
        }
    }
    match start == meta.size {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "the store sent {start} bytes of {} instead of {}; run the statement again",
            meta.location, meta.size
        ))),
    }
}

/// Requests at most [`MAX_RANGE_BYTES`] bytes of an object, from the byte `start` on. If the store
/// is a web server (`is_web`) that does not answer this request, requests the whole object.
async fn request_range(
    store: &Arc<dyn ObjectStore>,
    meta: &ObjectMeta,
    is_web: bool,
    start: u64,
) -> object_store::Result<GetResult> {
    let whole = GetOptions { if_match: meta.e_tag.clone(), ..GetOptions::default() };
    if meta.size <= MAX_RANGE_BYTES {
        return store.get_opts(&meta.location, whole).await;
    }
    let end = start.saturating_add(MAX_RANGE_BYTES).min(meta.size);
    let range = Some(GetRange::Bounded(start..end));
    let answer = store.get_opts(&meta.location, GetOptions { range, ..whole.clone() }).await;
    match answer {
        // Some web servers do not answer requests for a range.
        Err(_) if is_web && start == 0 => store.get_opts(&meta.location, whole).await,
        answer => answer,
    }
}
