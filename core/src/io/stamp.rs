use crate::access;
use std::fmt;
use std::fs::Metadata;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Length, times and inode of a file. If [`read_settled`](Self::read_settled) returns a stamp and a
/// later stamp of the path is equal, the file was not written in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStamp {
    length: u64,
    /// Modification time in nanoseconds since 1970; negative before 1970.
    modified: i128,
    /// Change time of the inode in nanoseconds, which users cannot set; 0 on systems without it.
    changed: i128,
    inode: u64,
}

/// Resolution of file times: changes within one kernel tick (1 to 10 ms) get the same time.
const FILE_TIME_STEP: Duration = Duration::from_millis(10);
/// Resolution of a file system whose times have no fraction of a second (FAT: 2 s).
const WHOLE_SECONDS: Duration = Duration::from_secs(2);
/// Maximum number of waits of [`FileStamp::read_settled`] for a file that keeps changing.
const ROUNDS: usize = 4;

impl FileStamp {
    /// Returns the current stamp of a file.
    pub fn of(path: &Path) -> io::Result<Self> {
        access::metadata(path).map(|m| Self::from_metadata(&m))
    }

    fn from_metadata(metadata: &Metadata) -> Self {
        let nanoseconds = |d: Duration| i128::try_from(d.as_nanos()).unwrap_or(i128::MAX);
        let modified = metadata.modified().map_or(0, |t| match t.duration_since(UNIX_EPOCH) {
            Ok(since) => nanoseconds(since),
            Err(before) => -nanoseconds(before.duration()),
        });
        #[cfg(unix)]
        let (changed, inode) = {
            use std::os::unix::fs::MetadataExt;
            let seconds = i128::from(metadata.ctime()) * 1_000_000_000;
            (seconds + i128::from(metadata.ctime_nsec()), metadata.ino())
        };
        #[cfg(not(unix))]
        let (changed, inode) = (0, 0);
        Self { length: metadata.len(), modified, changed, inode }
    }

    /// Waits until the last change of a file is older than the resolution of the times of files,
    /// then returns its stamp. Any later change then gives another stamp.
    ///
    /// The sleep is bounded, because the times of the file may come from another machine's clock.
    pub fn read_settled(path: &Path) -> io::Result<Self> {
        let mut stamp = Self::of(path)?;
        for _ in 0..ROUNDS {
            let Some(left) = stamp.time_to_settle(SystemTime::now()) else { break };
            std::thread::sleep(left);
            stamp = Self::of(path)?;
        }
        Ok(stamp)
    }

    /// Whether each later change of the file gives another stamp. False for a file that has changed
    /// within the resolution of the times of files.
    pub fn is_settled(&self) -> bool {
        self.time_to_settle(SystemTime::now()).is_none()
    }

    /// Returns how long a change after `now` may leave the times of the file unchanged. Returns
    /// `None` if every such change gives other times, or if the times are in the future.
    fn time_to_settle(&self, now: SystemTime) -> Option<Duration> {
        let whole = |time: i128| time % 1_000_000_000 == 0;
        let step = if whole(self.modified) && whole(self.changed) {
            WHOLE_SECONDS
        } else {
            FILE_TIME_STEP
        };
        let last = u64::try_from(self.modified.max(self.changed)).ok()?;
        // A time in the future comes from another machine's clock; `read_settled` must not sleep
        // until that time.
        let age = now.duration_since(UNIX_EPOCH + Duration::from_nanos(last)).ok()?;
        step.checked_sub(age).filter(|left| !left.is_zero())
    }
}

impl fmt::Display for FileStamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { length, modified, changed, inode } = self;
        write!(f, "{length:x}-{modified:x}-{changed:x}-{inode:x}")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_settled_stamp_differs_from_that_of_any_later_change() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        for i in 0..20u8 {
            fs::write(&path, [i]).unwrap();
            let before = FileStamp::read_settled(&path).unwrap();
            assert!(before.is_settled());
            assert_eq!(before, FileStamp::of(&path).unwrap());
            // The write keeps inode and length, so only the times of the stamps can differ.
            fs::write(&path, [i + 1]).unwrap();
            assert_ne!(before, FileStamp::of(&path).unwrap());
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_change_that_hides_its_time_gives_another_stamp() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::write(&path, "1").unwrap();
        let before = FileStamp::read_settled(&path).unwrap();
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        fs::write(&path, "2").unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), modified);
        assert_ne!(before, FileStamp::of(&path).unwrap());
    }

    #[test]
    fn nobody_waits_for_a_time_to_come() {
        let now = UNIX_EPOCH + Duration::from_secs(1000);
        let at = |ns: i128| FileStamp { length: 1, modified: ns, changed: 0, inode: 0 };
        let second = 1_000_000_000;
        assert_eq!(at(2000 * second + 1).time_to_settle(now), None);
        assert_eq!(at(-5).time_to_settle(now), None);
        assert_eq!(
            at(1000 * second - 1).time_to_settle(now),
            Some(FILE_TIME_STEP - Duration::from_nanos(1))
        );
        assert_eq!(at(999 * second).time_to_settle(now), Some(Duration::from_secs(1)));
        assert_eq!(at(998 * second).time_to_settle(now), None);
    }
}
