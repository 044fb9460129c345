//! What is kept of a test that fails, in `target/e2e/<test>/`: its output, and the ends of the logs of the fleets that it used. Of a test that
//! passes nothing is kept, unless `FREEPORT_KEEP` is set.

use std::{
    cell::RefCell,
    collections::{BTreeSet, VecDeque},
    env, fmt,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write},
    ops::Range,
    panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind},
    path::{Path, PathBuf},
    time::Instant,
};

use crate::ground::is_simulated;

/// So much is kept of each log, from its end.
const OF_A_LOG: u64 = 512 * 1024;
/// How folders begin in which kubelet keeps the logs of our daemons: with their Namespace.
const OF_OUR_PODS: &str = "freeport-system_";
/// So many lines of a test's output are repeated where the test is said to have failed.
const LAST_LINES: usize = 12;
/// So many characters of its failure are.
const SHOWN: usize = 3000;

thread_local! {
    /// Of the test that this thread runs.
    static CURRENT: RefCell<Option<Record>> = const { RefCell::new(None) };
}

/// What a test that runs has said so far.
struct Record {
    path: String,
    folder: PathBuf,
    output: Option<File>,
    shows_all: bool,
    last: VecDeque<String>,
    begun: Instant,
    /// Lines have the seconds since then.
    lines_from: Instant,
    /// Directories of the fleets that it uses.
    fleets: BTreeSet<PathBuf>,
    failure: Option<String>,
}

/// Why a test failed.
pub(super) struct Failure {
    pub words: String,
    /// The last lines that it said.
    pub last: Vec<String>,
    /// The folder with its output and logs.
    pub kept: PathBuf,
}

impl Failure {
    /// Its first line.
    pub(super) fn first_line(&self) -> String {
        let line = self.words.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        line.chars().take(300).collect()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String = self.words.chars().take(SHOWN).collect();
        write!(text, "{}\n{shown}\nkept: {}", self.last.join("\n"), self.kept.display())
    }
}

/// Runs a test; when its turn began and ended, and why it failed.
pub(super) fn run(path: &str, test: fn(), shows_all: bool) -> (Range<Instant>, Option<Failure>) {
    CURRENT.set(Some(Record::of(path, shows_all)));
    let result = catch_unwind(AssertUnwindSafe(test));
    let Some(record) = CURRENT.take() else { unreachable!("nobody else takes it") };
    let turn = record.begun..Instant::now();
    if result.is_ok() {
        if !is_kept() {
            let _gone = fs::remove_dir_all(&record.folder);
        }
        return (turn, None);
    }
    let words = record.failure.unwrap_or_else(|| "a panic without words".to_owned());
    (turn, Some(Failure { words, last: record.last.into(), kept: record.folder }))
}

/// Whether the files of fleets stay, for somebody to look at.
pub fn is_kept() -> bool {
    env::var_os("FREEPORT_KEEP").is_some()
}

/// A line of the test that this thread runs. Without one it goes to stderr, unless a hunt runs it, which shows only why it failed.
pub fn note(line: &str) {
    let noted = CURRENT.with_borrow_mut(|current| current.as_mut().map(|record| record.note(line)));
    if noted.is_none() && !is_simulated() {
        drop(writeln!(io::stderr(), "{line}"));
    }
}

/// The test is to run once more: what was kept of it is in this folder from now on.
pub(super) fn set_aside(path: &str) -> PathBuf {
    let (kept, aside) = (folder(path), folder(&format!("{path}.first")));
    let _earlier = fs::remove_dir_all(&aside);
    drop(fs::rename(kept, &aside));
    aside
}

/// What was set aside of a test in an earlier run goes.
pub(super) fn forget(path: &str) {
    drop(fs::remove_dir_all(folder(&format!("{path}.first"))));
}

/// Keeps a text about the whole run of this program, in `target/e2e/<program>.<name>`.
pub(super) fn keep(name: &str, text: &str) {
    let file = folder(&format!("{}.{name}", program()));
    drop(file.parent().map(fs::create_dir_all));
    drop(fs::write(file, text));
}

/// The test has waited for its turn until now.
pub fn turn_begins() {
    with_current(|record| (record.begun, record.lines_from) = (Instant::now(), Instant::now()));
}

/// The clock of the test is another one from now on.
pub(crate) fn clock_starts() {
    with_current(|record| record.lines_from = Instant::now());
}

/// Keeps a file of a test that has failed.
pub(crate) fn keep_file(name: &str, content: &[u8]) {
    with_current(|record| drop(fs::write(record.folder.join(name), content)));
}

/// The test uses the fleet in this directory.
pub fn uses_fleet(dir: &Path) {
    with_current(|record| {
        record.fleets.insert(dir.to_owned());
    });
}

/// Directories of the fleets that the test uses.
pub fn fleets() -> BTreeSet<PathBuf> {
    CURRENT.with_borrow(|current| current.as_ref().map(|record| record.fleets.clone()).unwrap_or_default())
}

/// Path of the test that this thread runs; empty if it runs none.
pub(crate) fn current() -> String {
    CURRENT.with_borrow(|current| current.as_ref().map(|record| record.path.clone()).unwrap_or_default())
}

fn with_current(change: impl FnOnce(&mut Record)) {
    CURRENT.with_borrow_mut(|current| current.as_mut().map(change));
}

/// From now on, what a test was when it first panicked is kept: what it does after that may end its fleets.
pub(super) fn keep_what_fails() {
    let others = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let is_of_a_test =
            CURRENT.with_borrow_mut(|current| current.as_mut().map(|record| record.fail(panic)));
        if is_of_a_test.is_none() && !is_simulated() {
            others(panic);
        }
    }));
}

impl Record {
    fn of(path: &str, shows_all: bool) -> Self {
        let folder = folder(path);
        let _earlier = fs::remove_dir_all(&folder);
        let output = fs::create_dir_all(&folder).and_then(|()| File::create(folder.join("output"))).ok();
        let (begun, last) = (Instant::now(), VecDeque::new());
        Self {
            path: path.to_owned(),
            folder,
            output,
            shows_all,
            last,
            begun,
            lines_from: begun,
            fleets: BTreeSet::new(),
            failure: None,
        }
    }

    fn note(&mut self, line: &str) {
        let line = format!("{:7.2} {line}", self.lines_from.elapsed().as_secs_f64());
        if let Some(output) = &mut self.output {
            drop(writeln!(output, "{line}"));
        }
        if self.shows_all {
            drop(writeln!(io::stderr(), "{line}"));
        }
        self.last.push_back(line);
        if self.last.len() > LAST_LINES {
            self.last.pop_front();
        }
    }

    fn fail(&mut self, panic: &PanicHookInfo<'_>) {
        let text = panic.payload_as_str().unwrap_or("a panic without words");
        let at = panic.location().map(|at| format!(" ({at})")).unwrap_or_default();
        self.note(&format!("{text}{at}"));
        if self.failure.is_none() {
            self.failure = Some(format!("{text}{at}"));
            self.keep_logs();
        }
    }

    fn keep_logs(&self) {
        for fleet in &self.fleets {
            for log in logs(fleet) {
                let name = log.strip_prefix(fleet).unwrap_or(&log).display().to_string().replace('/', ".");
                drop(keep_end(&log, &self.folder.join(name)));
            }
        }
    }
}

/// `target/e2e/<test>`, as this program is `target/<profile>/deps/<program>`.
fn folder(path: &str) -> PathBuf {
    let program = env::current_exe().unwrap_or_default();
    program.ancestors().nth(3).unwrap_or(Path::new("target")).join("e2e").join(path.replace("::", "."))
}

/// `without_nodes` of `without_nodes-0123456789abcdef`.
pub(super) fn program() -> String {
    let program = env::current_exe().unwrap_or_default();
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    name.rsplit_once('-').map_or(&*name, |(name, _)| name).to_owned()
}

/// The logs of a fleet: `*.log` in its directory and two folders below, and those of our Pods, as long as the Pods are there:
/// `<cluster>/pods/freeport-system_<pod>_<uid>/<container>/0.log`.
fn logs(fleet: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![(fleet.to_owned(), 2)];
    while let Some((folder, below)) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_of_our_pod = entry.file_name().to_string_lossy().starts_with(OF_OUR_PODS);
            if path.extension().is_some_and(|extension| extension == "log") {
                found.push(path);
            } else if (below > 0 || is_of_our_pod) && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push((path, if is_of_our_pod { 1 } else { below - 1 }));
            }
        }
    }
    found
}

fn keep_end(log: &Path, copy: &Path) -> io::Result<()> {
    let mut log = File::open(log)?;
    let begin = log.metadata()?.len().saturating_sub(OF_A_LOG);
    log.seek(SeekFrom::Start(begin))?;
    io::copy(&mut log.take(OF_A_LOG), &mut File::create(copy)?)?;
    Ok(())
}

#[test]
fn logs_of_daemons_in_pods_are_found() {
    let fleet = tempfile::tempdir().unwrap();
    let kept =
        ["keeper.log", "east/logs/etcd.log", "east/pods/freeport-system_freeport-member-1_uid/member/0.log"];
    let others = ["east/pods/shop_web-1_uid/web/0.log", "east/pki/ca.crt"];
    for file in kept.iter().chain(&others) {
        let file = fleet.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
    }
    let found: BTreeSet<_> = logs(fleet.path()).into_iter().collect();
    assert_eq!(found, kept.iter().map(|file| fleet.path().join(file)).collect());
}
