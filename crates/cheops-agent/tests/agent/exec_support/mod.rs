//! What the tests of the executor share: a store in a folder, jobs, and looking after processes.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cheops_agent::exec::{ContentStore, ExecSettings, Executor, RunToken, Saving};
use cheops_core::engine::{Job, JobId, Task};
use cheops_core::model::{
    Author, BlobId, EntryId, FileRef, Header, Incarnation, Operation, OperationId, OperationType,
    Outcome, Payload, Replaces, ResourceId, SiteId, Stamp,
};
use cheops_core::plan::SnapshotId;

/// Blobs and saved states as files.
#[derive(Clone)]
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn put(&self, name: &str, content: &[u8]) -> FileRef {
        let blob = BlobId(*blake3::hash(content).as_bytes());
        fs::write(self.0.join(blob.to_string()), content).unwrap();
        FileRef { name: name.to_owned(), blob, size: content.len() as u64 }
    }

    pub(crate) fn state(&self, resource: &ResourceId, id: SnapshotId) -> PathBuf {
        let name = blake3::hash(resource.as_str().as_bytes()).to_hex();
        self.0.join(format!("state-{name}-{}", id.0))
    }
}

impl ContentStore for Folder {
    fn copy_to(&self, blob: &BlobId, path: &Path) -> io::Result<()> {
        fs::copy(self.0.join(blob.to_string()), path).map(|_| ())
    }

    fn open(&self, blob: &BlobId) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(fs::File::open(self.0.join(blob.to_string()))?))
    }

    fn save(&self, resource: &ResourceId, id: SnapshotId) -> io::Result<Box<dyn Saving>> {
        let path = self.state(resource, id);
        let file = fs::File::create(path.with_extension("part"))?;
        Ok(Box::new(Part { file, path }))
    }

    fn saved(&self, resource: &ResourceId, id: SnapshotId) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(fs::File::open(self.state(resource, id))?))
    }
}

struct Part {
    file: fs::File,
    path: PathBuf,
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Saving for Part {
    fn finish(self: Box<Self>) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(self.path.with_extension("part"), &self.path)
    }
}

/// One site with an executor, in a folder that goes with it.
pub(crate) struct Site {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) folder: Folder,
    pub(crate) exec: Executor,
}

impl Site {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut ExecSettings)) -> Self {
        Self::over(change, |folder| folder)
    }

    /// The same, with a store made of that folder.
    pub(crate) fn over<C: ContentStore>(
        change: impl FnOnce(&mut ExecSettings),
        store: impl FnOnce(Folder) -> C,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder(dir.path().join("store"));
        fs::create_dir(&folder.0).unwrap();
        let run = RunToken::new(dir.path()).unwrap();
        let mut settings =
            ExecSettings::new(SiteId::new("here").unwrap(), run, dir.path().join("scratch"));
        settings.time_limit = Duration::from_secs(30);
        settings.grace = Duration::from_millis(200);
        change(&mut settings);
        let exec = Executor::new(settings, store(folder.clone())).unwrap();
        Self { dir, folder, exec }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    /// Runs a command on the resource `thing`.
    pub(crate) async fn sh(&self, command: &str) -> Outcome {
        self.exec.run(&job("thing", Task::Run(operation(Payload::shell(command))))).await
    }
}

pub(crate) fn operation(payload: Payload) -> Arc<Operation> {
    let author = Author { site: SiteId::new("there").unwrap(), incarnation: Incarnation(1) };
    Arc::new(Operation {
        id: OperationId(EntryId { author, n: 7 }),
        resource: ResourceId::new("thing").unwrap(),
        stamp: Stamp::default(),
        claimed: Stamp::default(),
        parents: Vec::new(),
        kind: OperationType::new("set").unwrap(),
        payload,
        replaces: Replaces::Nothing,
        declares: None,
        needs: Default::default(),
        asked_by: None,
    })
}

pub(crate) fn job(resource: &str, task: Task) -> Job {
    Job {
        id: JobId(1),
        resource: ResourceId::new(resource).unwrap(),
        again: false,
        task,
        inline_body: None,
    }
}

pub(crate) fn request(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<FileRef>,
) -> Job {
    let header = |(name, value): &(&str, &str)| Header {
        name: (*name).to_owned(),
        value: (*value).to_owned(),
    };
    let payload = Payload::Http {
        service: "app".to_owned(),
        method: method.to_owned(),
        path: path.to_owned(),
        headers: headers.iter().map(header).collect(),
        body,
        service_ref: None,
    };
    job("thing", Task::Run(operation(payload)))
}

pub(crate) fn printed(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Exited { code: 0, output } if !output.truncated => &output.text,
        other => panic!("it did not succeed: {other:?}"),
    }
}

/// Whether a process is there and not just a name that its parent has not taken note of.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The process ids that commands wrote to files, once they are all there.
pub(crate) async fn pids(site: &Site, names: &[&str]) -> Vec<u32> {
    let read = |name: &&str| {
        let text = fs::read_to_string(site.path(name)).ok()?;
        text.strip_suffix('\n')?.parse().ok()
    };
    let mut found = Vec::new();
    until("commands say who they are", || {
        found = names.iter().filter_map(read).collect();
        found.len() == names.len()
    })
    .await;
    found
}

pub(crate) async fn gone(pids: &[u32]) {
    until("processes are gone", || pids.iter().all(|pid| !is_alive(*pid))).await;
}
