//! Matrices tried on real applications: the built-in profiles tell the truth, and one that does not is
//! found out.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use expect_test::{Expect, expect};
use serde_json::Value;
use tempfile::TempDir;

use crate::binary::running::{Ran, command};
use crate::e2e::cluster::{Redis, until};

fn samples(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cheops/samples").join(name)
}

/// A folder to try things in.
struct Ground {
    folder: TempDir,
}

impl Ground {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name).to_str().unwrap().to_owned()
    }

    fn text(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path(name)).ok()
    }

    /// `cheops matrix prove` with these arguments, in the folder.
    fn prove(&self, arguments: &[&str]) -> Command {
        let mut command = command(&["matrix", "prove"]);
        command.args(arguments).current_dir(self.folder.path()).env("TMPDIR", self.folder.path());
        command
    }

    fn proven(&self, arguments: &[&str]) -> Ran {
        self.prove(arguments).output().unwrap().into()
    }

    /// What else is left in the folder.
    fn names(&self) -> Vec<String> {
        let found = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            found.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Every claim of a profile was tried and holds.
fn assert_all_hold(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let proof = ran.json();
    let claims = proof["claims"].as_array().unwrap();
    let doubtful: Vec<&Value> = claims.iter().filter(|it| it["verdict"] != "holds").collect();
    assert!(doubtful.is_empty() && claims.len() > 3, "{doubtful:#?}");
    assert!(proof["suggestion"].is_null());
}

#[test]
fn the_profile_for_files_tells_the_truth() {
    let ground = Ground::new();
    ground.file("motd", "as it was\n");
    let file = samples("file.yaml");
    let arguments = ["--profile", "file", "--target", "motd", "--samples"];
    let ran = ground.proven(&[&arguments[..], &[file.to_str().unwrap(), "-o", "json"]].concat());
    assert_all_hold(&ran);
    assert_eq!(ground.text("motd").as_deref(), Some("as it was\n"));
    assert_eq!(ground.names(), ["motd"], "nothing else is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_profile_for_redis_tells_the_truth() {
    let ground = Ground::new();
    let redis = Redis::start(ground.folder.path()).await;
    redis.ask(&["set", "beside", "untouched"]);
    redis.ask(&["rpush", "trial", "as", "it", "was"]);
    let file = samples("redis.yaml");
    let mut command = ground.prove(&["--profile", "redis", "--target", "trial", "-o", "json"]);
    command.arg("--samples").arg(file).env("REDIS_CLI", "redis-cli -s redis.sock");
    assert_all_hold(&command.output().unwrap().into());
    assert_eq!(redis.ask(&["lrange", "trial", "0", "-1"]), "as\nit\nwas");
    assert_eq!(redis.ask(&["dbsize"]), "2");
}

/// The sample image store; ends when dropped.
struct ImageStore {
    process: Child,
    url: String,
}

impl ImageStore {
    fn start(folder: &Path) -> Self {
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/imagery/image.mjs");
        let mut command = Command::new("node");
        command.args([program, "--listen", "127.0.0.1:0", "--client-ids", "--data"]);
        let mut process =
            command.arg(folder.join("images")).stdout(Stdio::piped()).spawn().expect("node runs");
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on ").expect(&line).to_owned();
        Self { process, url }
    }
}

impl Drop for ImageStore {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _gone = self.process.wait();
    }
}

/// How the state of an image is read and written: the record without what each site fills in by
/// itself, its members in order, and its file.
const IMAGE: &str = r#"
Profile: http
State:
  Read: |
    status=$(curl -sS -o record.json -w '%{http_code}' "$target") || exit 1
    case $status in
      404) echo absent;;
      200) node -e '
        const { created, self, ...kept } = JSON.parse(require("fs").readFileSync("record.json"));
        console.log(JSON.stringify(Object.fromEntries(Object.entries(kept).sort())));' &&
        if grep -q '"status":"active"' record.json; then curl -fsS "$target/file"; fi;;
      *) exit 1;;
    esac
  Write: |
    IFS= read -r record || exit 1
    cat > content
    status=$(curl -sS -o /dev/null -w '%{http_code}' -X DELETE "$target") || exit 1
    [ "$record" = absent ] && exit 0
    curl -fsS -o /dev/null "${target%/*}" -d "$record" || exit 1
    case $record in
      *'"status":"active"'*) curl -fsS -X PUT "$target/file" --data-binary @content;;
    esac
"#;

#[test]
fn the_profile_for_http_tells_the_truth_about_the_sample_service() {
    let ground = Ground::new();
    let store = ImageStore::start(ground.folder.path());
    let matrix = ground.file("image.yaml", IMAGE);
    let target = format!("{}/v1/images/trial", store.url);
    let file = samples("http.yaml");
    let arguments = [&matrix, "--target", &target, "-o", "json", "--samples"];
    let ran = ground.proven(&[&arguments[..], &[file.to_str().unwrap()]].concat());
    assert_all_hold(&ran);
    assert!(ran.out.contains("post"), "{}", ran.out);
}

/// Of what a profile claims, nothing is false, and only what such samples do not do was not tried.
fn assert_none_is_false(ran: &Ran, without: &[&str]) {
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let proof = ran.json();
    let claims = proof["claims"].as_array().unwrap();
    let of = |verdict: &str| claims.iter().filter(|it| it["verdict"] == verdict).count();
    let is_about = |it: &&Value| {
        let types = it["types"].as_array().unwrap();
        types.iter().any(|kind| without.iter().any(|it| kind == it))
    };
    let untried: Vec<&Value> = claims.iter().filter(|it| it["verdict"] == "not-tried").collect();
    assert!(untried.iter().all(is_about), "{untried:#?}");
    assert!(of("holds") > 8 && of("false") == 0, "{claims:#?}");
}

#[test]
fn the_profile_for_http_reads_and_writes_the_records_of_the_sample_service_by_itself() {
    let ground = Ground::new();
    let store = ImageStore::start(ground.folder.path());
    let volatile = "{Profile: http, Volatile: [/created, /self]}";
    let matrix = ground.file("record.yaml", volatile);
    let target = format!("{}/v1/images/trial", store.url);
    let file = samples("http-record.yaml");
    let arguments = [&matrix, "--target", &target, "-o", "json", "--samples"];
    let ran = ground.proven(&[&arguments[..], &[file.to_str().unwrap()]].concat());
    assert_none_is_false(&ran, &["part"]);
    let mut gone = Command::new("curl");
    gone.args(["-sS", "-o", "/dev/null", "-w", "%{http_code}", &target]);
    let status = gone.output().unwrap().stdout;
    assert_eq!(String::from_utf8_lossy(&status), "404", "there was none before");
}

#[test]
fn the_profile_for_kubernetes_reads_and_writes_objects_of_a_model_of_its_server() {
    let ground = Ground::new();
    let before = r#"{"deployment/web": {"kind": "Deployment", "metadata": {"name": "web", "uid": "1"},
        "spec": {"replicas": 9}}}"#;
    ground.file("objects.json", before);
    let file = samples("kubernetes.yaml");
    let kubectl = format!("python3 {}", samples("kubectl.py").display());
    let arguments = ["--profile", "kubernetes", "--target", "deployment/web", "-o", "json"];
    let mut command = ground.prove(&arguments);
    command.arg("--samples").arg(file).env("KUBECTL", kubectl);
    command.env("KUBE_OBJECTS", ground.path("objects.json"));
    assert_none_is_false(&command.output().unwrap().into(), &[]);
    let after = ground.text("objects.json").unwrap();
    assert!(after.contains(r#""replicas": 9"#) && after.contains(r#""uid""#), "{after}");
}

const FALSE_MATRIX: &str = "\
ResolutionMatrix:
- {Before: set, After: set, Result: take-one}
- {Before: set, After: add, Result: take-both-reverse-order}
- {Before: add, After: add, Result: take-both}
Types:
  add: {Idempotent: true, Undo: 'sed -i 1d notes'}
State:
  Read: cat notes
  Write: cat > notes
";

const FALSE_SAMPLES: &str = "\
Samples:
  set: [echo a > notes, echo b > notes]
  add: [echo c >> notes, echo d >> notes]
";

fn check(mut ran: Ran, code: i32, want: &Expect) {
    assert!(ran.out.lines().all(|line| line.chars().count() <= 80), "{}", ran.out);
    // Where a command is when it is ended half-way differs, and so may what comes of it.
    let counted = |line: &str| match line.split_once(" (") {
        Some((told, rest)) if rest.ends_with(" comparisons)") => format!("{told} (…)\n"),
        _ => format!("{line}\n"),
    };
    ran.out = ran.out.lines().map(counted).collect();
    ran.check(code, want);
}

#[test]
fn a_matrix_that_says_what_is_not_so_is_found_out_with_both_states_side_by_side() {
    let ground = Ground::new();
    ground.file("notes", "old\n");
    let matrix = ground.file("false.yaml", FALSE_MATRIX);
    let samples = ground.file("samples.yaml", FALSE_SAMPLES);
    let ran = ground.proven(&["false.yaml", "--samples", &samples]);
    check(
        ran,
        1,
        &expect![[r#"
        false      two `add` may run in any order (add, add: take-both)
        false      `add` overwrites `set` (add, set: take-both-keep-order)
        holds      `set` overwrites a `set` before it (set, set: take-one)
        holds      `add` does the same each time, from the same state
        false      `add` twice is as good as once
        false      `Undo` takes `add` back
        holds      `set` does the same each time, from the same state

        false: two `add` may run in any order
          the order matters (…)
          true of the samples: `add`, `add`: `ordered`

          from: the state as it was
          echo c >> notes                       │ echo d >> notes
          echo d >> notes                       │ echo c >> notes
          ──────────────────────────────────────┼──────────────────────────────────────
          old                                   │ old
        ≠ c                                     │ d
        ≠ d                                     │ c

        false: `add` overwrites `set`
          a trace stays (…)
          true of the samples: `add`, `set`: `take-both-reverse-order`

          from: the state as it was
          echo a > notes                        │ echo c >> notes
          echo c >> notes                       │
          ──────────────────────────────────────┼──────────────────────────────────────
        ≠ a                                     │ old
          c                                     │ c

        false: `add` twice is as good as once
          a second time changes something (…)
          true of the samples: `add` without `Idempotent`

          from: the state as it was
          echo c >> notes                       │ echo c >> notes
          echo c >> notes                       │
          ──────────────────────────────────────┼──────────────────────────────────────
          old                                   │ old
          c                                     │ c
        ≠ c                                     │

        false: `Undo` takes `add` back
          a trace stays (…)
          true of the samples: `add` without `Undo`

          from: the state as it was
          echo c >> notes                       │ (nothing)
          Undo of: echo c >> notes              │
          ──────────────────────────────────────┼──────────────────────────────────────
        ≠ c                                     │ old

        false.yaml: 4 claims are false (4 samples of 2 types, from 1 state: 43 trials);
        `--suggest` prints a matrix that is true of the samples
    "#]],
    );
    assert_eq!(ground.text("notes").as_deref(), Some("old\n"));

    let suggested = ground.proven(&[&matrix, "--samples", &samples, "--suggest"]);
    assert_eq!(suggested.code, Some(1));
    assert!(suggested.err.contains("4 claims are false"), "{}", suggested.err);
    ground.file("better.json", &suggested.out);
    let ran = ground.proven(&["better.json", "--samples", &samples]);
    check(
        ran,
        0,
        &expect![[r#"
            holds      `set` overwrites `add` (set, add: take-both-keep-order)
            holds      `set` overwrites a `set` before it (set, set: take-one)
            holds      `add` does the same each time, from the same state
            holds      `set` does the same each time, from the same state

            better.json: no claim was found false (4 samples of 2 types, from 1 state: 33
            trials)
        "#]],
    );
}

#[test]
fn what_was_there_is_put_back_when_somebody_presses_ctrl_c() {
    let ground = Ground::new();
    ground.file("notes", "old\n");
    let samples = ground.file(
        "samples.yaml",
        "Samples: {set: ['echo a > notes', 'echo b > notes; echo x >> begun; sleep 600']}",
    );
    let matrix = ground.file("matrix.yaml", FALSE_MATRIX);
    let mut running = ground.prove(&[&matrix, "--samples", &samples, "--timeout", "700s"]);
    let mut running = running.stderr(Stdio::piped()).spawn().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(until("the sample runs", async || ground.text("begun").is_some()));
    assert_eq!(ground.text("notes").as_deref(), Some("b\n"));
    let interrupt = Command::new("kill").args(["-INT", &running.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    assert_eq!(running.wait().unwrap().code(), Some(130));
    let mut said = String::new();
    running.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("stopped before all was tried; the state before is put back"), "{said}");
    assert_eq!(ground.text("notes").as_deref(), Some("old\n"));
    assert_eq!(ground.names(), ["begun", "matrix.yaml", "notes", "samples.yaml"]);
}

#[test]
fn what_was_there_is_put_back_when_a_state_cannot_be_read_and_a_sample_that_hangs_ends_it() {
    let ground = Ground::new();
    ground.file("notes", "old\n");
    let matrix = ground.file("matrix.yaml", FALSE_MATRIX);
    let gone = ground.file("gone.yaml", "Samples: {set: rm notes}");
    ground.proven(&[&matrix, "--samples", &gone]).check(
        1,
        &expect![[r#"
        --- aside
        error: the state could not be read; the state before is put back
        because: cat: notes: No such file or directory
        hint: try the `Read` command by itself; a state of a trial is at most 16 MiB
    "#]],
    );
    assert_eq!(ground.text("notes").as_deref(), Some("old\n"));
    let slow = ground.file("slow.yaml", "Samples: {set: 'echo x > notes; sleep 600'}");
    ground.proven(&[&matrix, "--samples", &slow, "--timeout", "100ms"]).check(
        1,
        &expect![[r#"
        --- aside
        error: `echo x > notes; sleep 600` did not end within 100ms; the state before is
               put back
        hint: `--timeout` gives it longer
    "#]],
    );
    assert_eq!(ground.text("notes").as_deref(), Some("old\n"));
}

#[test]
fn a_state_that_is_not_the_same_when_read_again_proves_nothing_and_is_told() {
    let ground = Ground::new();
    ground.file("notes", "old\n");
    let state =
        "State: {Read: 'cat notes; cat /proc/sys/kernel/random/uuid', Write: 'head -n -1 > notes'}";
    let matrix = ground.file(
        "matrix.yaml",
        &format!("ResolutionMatrix: [{{Before: set, After: set, Result: take-one}}]\n{state}"),
    );
    let samples = ground.file("samples.yaml", "Samples: {set: echo x > notes}");
    let ran = ground.proven(&[&matrix, "--samples", &samples]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("what `Write` wrote is not what `Read` then gave"), "{}", ran.err);
    assert!(ran.err.contains("cheops-state-before-"), "{}", ran.err);
    assert_eq!(ground.text("notes").as_deref(), Some("old\n"));
}

#[test]
fn what_cannot_be_tried_is_refused_before_anything_runs() {
    let ground = Ground::new();
    let samples = ground.file("samples.yaml", "Samples: {put: touch ran}");
    let stateless = "ResolutionMatrix: [{Before: put, After: put, Result: take-one}]";
    let stateless = ground.file("stateless.yaml", stateless);
    for (arguments, expected) in [
        (
            &[stateless.as_str(), "--target", "x", "--samples", &samples][..],
            "there is `Target` but no `State`",
        ),
        (&["--profile", "file", "--samples", &samples], "given a `--target`"),
        (&["--profile", "file", "--target", "x", "--samples", "no.yaml"], "cannot read `no.yaml`"),
        (&["--profile", "file", "--target", "x"], "--samples"),
        (&["--profile", "file", "--target", "x", "--samples", &samples, "--id", ""], "--id"),
    ] {
        let ran = ground.proven(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(expected), "{arguments:?}: {}", ran.err);
    }
    let wrong = ground.file("wrong.yaml", "Sample: {put: touch ran}");
    let ran = ground.proven(&["--profile", "file", "--target", "x", "--samples", &wrong]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("did you mean `Samples`?"), "{}", ran.err);
    assert_eq!(ground.names(), ["samples.yaml", "stateless.yaml", "wrong.yaml"]);
}
