//! Shell commands, with real processes.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, io};

use crate::exec_support::{Folder, Site, gone, is_alive, job, operation, pids, printed, until};
use cheops_agent::exec::{ContentStore, Saving};
use cheops_core::engine::Task;
use cheops_core::model::{BlobId, Outcome, Output, Payload, ResourceId};
use cheops_core::plan::SnapshotId;
use cheops_store::BlobError;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[tokio::test]
async fn an_exit_code_is_data() {
    let site = Site::new();
    for (command, code, text) in [
        ("true", 0, ""),
        ("echo out; exit 7", 7, "out\n"),
        ("no-such-program-anywhere 2>/dev/null", 127, ""),
        ("kill -TERM $$", 128 + 15, ""),
        ("kill -KILL $$", 128 + 9, ""),
    ] {
        let expected = Outcome::Exited { code, output: Output::whole(text) };
        assert_eq!(site.sh(command).await, expected, "{command}");
    }
}

#[tokio::test]
async fn the_text_of_a_command_is_on_no_command_line_and_in_no_childs_environment() {
    let site = Site::new();
    let look = "tr '\\0' ' ' </proc/$$/cmdline; echo; env";
    let hidden = "hunter2-is-my-password";
    let command = format!(": {hidden}; {look}");
    let operation = operation(Payload::shell(&command));
    let id = operation.id.clone();
    let tasks = [
        Task::Run(Arc::clone(&operation)),
        Task::RunPart { operation: Arc::clone(&operation), command: command.clone() },
        Task::Undo { operation: id.clone(), command: command.clone() },
        Task::Check { operation: id, command: command.clone() },
        Task::Snapshot { id: SnapshotId(1), command: command.clone() },
    ];
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(site.exec.run(&job("thing", task)).await);
    }
    let thing = ResourceId::new("thing").unwrap();
    outcomes.push(site.exec.show(&thing, &command, Duration::from_secs(30)).await.unwrap());
    let state = fs::read(site.folder.state(&thing, SnapshotId(1))).unwrap();
    let state = String::from_utf8_lossy(&state).into_owned();
    let shown = outcomes.iter().map(|outcome| match outcome {
        Outcome::Exited { code: 0, output } => &output.text,
        other => panic!("{other:?}"),
    });
    for shown in shown.chain([&state]) {
        assert!(!shown.contains(hidden), "{shown}");
    }
    assert!(state.contains("/bin/sh -c"), "the shell was seen: {state}");
}

#[tokio::test]
async fn a_command_means_what_it_means_to_a_shell() {
    let site = Site::new();
    for command in [
        "echo $0 $# \"$*\"; exit 3",
        "\n\necho a\n\necho b # 'c\n",
        "# only a comment",
        "'",
        "if",
        "echo a; fi; echo b",
        "cat <<X\n$HOME '\"\\`echo x`\nX\necho after",
        "cat <<'X'\n$HOME '\"\nX",
        "echo \"a   b\" 'c   d' e\\ f; a='x y'; echo $a \"$a\"",
        "set -e; false; echo no",
        "set -u; echo $UNHEARD_OF",
        "f() { return 4; }; f",
        "trap 'echo bye' EXIT; echo hello",
        "exec echo replaced",
        "echo $LINENO\necho $LINENO",
        "x=1; (x=2); echo $x; { x=3; }; echo $x",
        "true && false || exit 9",
        "read line; echo \"<$line>\"",
        "echo é ü 漢",
        "no-such-program-anywhere",
        "env | grep -c CHEOPS_SCRIPT",
        "echo ${CHEOPS_SCRIPT-unset}",
    ] {
        let plain = std::process::Command::new("/bin/sh")
            .args(["-c", command])
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let Outcome::Exited { code, output } = site.sh(command).await else { panic!("{command}") };
        assert_eq!(Some(code), plain.status.code(), "{command}");
        // A shell's own complaints may be worded in another way.
        if plain.stderr.is_empty() {
            assert_eq!(output.text, String::from_utf8_lossy(&plain.stdout), "{command}");
        }
    }
}

#[tokio::test]
async fn output_and_errors_keep_their_order() {
    let site = Site::new();
    let command = "echo 1; echo 2 >&2; echo 3; echo 4 >&2; printf é";
    assert_eq!(printed(&site.sh(command).await), "1\n2\n3\n4\né");
}

#[tokio::test]
async fn output_beyond_the_limit_is_dropped_and_the_command_goes_on() {
    let site = Site::with(|settings| settings.output_limit = 1000);
    let done = site.path("done");
    let command = format!("yes abcdefghi | head -c 1000000; echo > {done}; exit 3");
    let Outcome::Exited { code: 3, output } = site.sh(&command).await else { panic!("no exit") };
    assert_eq!(output.text, "abcdefghi\n".repeat(100));
    assert!(output.truncated && fs::exists(done).unwrap());
}

#[tokio::test]
async fn a_command_reads_nothing_and_runs_where_it_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().canonicalize().unwrap();
    let site = Site::with(|settings| settings.shell_dir = Some(there.clone()));
    assert_eq!(printed(&site.sh("cat; pwd").await), format!("{}\n", there.display()));
    fs::remove_dir(&there).unwrap();
    let outcome = site.sh("true").await;
    assert!(matches!(&outcome, Outcome::NotStarted { reason } if reason.contains("is not there")));
}

#[tokio::test]
async fn commands_are_told_what_they_are_about_and_nothing_meant_for_the_agent() {
    let site = Site::new();
    let say =
        "echo $CHEOPS_RESOURCE $CHEOPS_SITE $CHEOPS_OPERATION $CHEOPS_TYPE ${CHEOPS_FILES-no}";
    assert_eq!(printed(&site.sh(say).await), "thing here there-1.7 set no\n");
    let undo =
        Task::Undo { operation: operation(Payload::shell("")).id.clone(), command: say.into() };
    assert_eq!(printed(&site.exec.run(&job("thing", undo)).await), "thing here there-1.7 no\n");
    let outcome = site
        .exec
        .show(&ResourceId::new("thing").unwrap(), say, Duration::from_secs(30))
        .await
        .unwrap();
    assert_eq!(printed(&outcome), "thing here no\n");
}

/// From short to long: a machine under load may need the longer one to get as far as it should.
const LIMITS_MS: [u64; 4] = [500, 2000, 8000, 32_000];

#[tokio::test]
async fn the_time_limit_ends_a_command_and_all_that_it_started() {
    for limit_ms in LIMITS_MS {
        let site = Site::with(|settings| settings.time_limit = Duration::from_millis(limit_ms));
        let path = |name| site.path(name);
        // One child that ignores the request to end, one in the background, one beyond the group.
        let command = format!(
            "echo $$ > {}; \
             sh -c 'trap \"\" TERM; echo $$ > {}; while :; do sleep 1; done' & \
             sleep 1000 & echo $! > {}; \
             setsid sh -c 'echo $$ > {}; exec sleep 1000' & \
             while :; do sleep 1; done",
            path("a"),
            path("b"),
            path("c"),
            path("d"),
        );
        assert_eq!(site.sh(&command).await, Outcome::TimedOut { limit_ms });
        let names = ["a", "b", "c", "d"];
        if names.iter().all(|name| fs::metadata(path(name)).is_ok_and(|file| file.len() > 0)) {
            return gone(&pids(&site, &names).await).await;
        }
    }
    panic!("the commands never got as far as they should");
}

#[tokio::test]
async fn a_command_may_tidy_up_when_it_is_asked_to_end() {
    for limit_ms in LIMITS_MS {
        let site = Site::with(|settings| {
            settings.time_limit = Duration::from_millis(limit_ms);
            settings.grace = Duration::from_secs(30);
        });
        let (ready, tidy) = (site.path("ready"), site.path("tidy"));
        let command = format!(
            "trap 'echo > {tidy}; exit 1' TERM; echo > {ready}; while :; do sleep 0.05; done"
        );
        assert_eq!(site.sh(&command).await, Outcome::TimedOut { limit_ms });
        if fs::exists(ready).unwrap() {
            assert!(fs::exists(tidy).unwrap());
            return;
        }
    }
    panic!("the command never got as far as it should");
}

#[tokio::test]
async fn children_in_the_background_end_with_their_command() {
    let site = Site::new();
    let command = format!("sleep 1000 & echo $! > {}; echo done", site.path("a"));
    assert_eq!(printed(&site.sh(&command).await), "done\n");
    gone(&pids(&site, &["a"]).await).await;
}

#[tokio::test]
async fn a_process_that_left_its_group_holds_nobody_up_and_ends_too() {
    let site = Site::new();
    let path = site.path("a");
    let wait = format!("while ! [ -s {path} ]; do sleep 0.01; done");
    // It keeps the output open.
    let command = format!("setsid sh -c 'echo $$ > {path}; exec sleep 1000' & {wait}; echo done");
    let outcome = site.sh(&command).await;
    let expected = Output { text: "done\n".to_owned(), truncated: true };
    assert_eq!(outcome, Outcome::Exited { code: 0, output: expected });
    gone(&pids(&site, &["a"]).await).await;
    // It hides.
    let path = site.path("b");
    let wait = format!("while ! [ -s {path} ]; do sleep 0.01; done");
    let command =
        format!("setsid sh -c 'echo $$ > {path}; exec sleep 1000' >/dev/null 2>&1 & {wait}");
    assert_eq!(printed(&site.sh(&command).await), "");
    gone(&pids(&site, &["b"]).await).await;
}

#[tokio::test]
async fn files_are_placed_under_safe_names_and_removed_after() {
    let site = Site::new();
    let files = vec![
        site.folder.put("plain.txt", b"1"),
        site.folder.put("my 'own' $(touch x) file", b"2"),
        site.folder.put("../../up", b"3"),
        site.folder.put("plain.txt", b"4"),
        site.folder.put("é", b"5"),
    ];
    let command = "cat {plain.txt} {my 'own' $(touch x) file} \"{../../up}\" '{é}'; echo; \
                   ls $CHEOPS_FILES; echo $CHEOPS_FILES"
        .to_owned();
    let payload = Payload::Shell { command, files };
    let outcome = site.exec.run(&job("thing", Task::Run(operation(payload)))).await;
    let (content, dir) = printed(&outcome).trim_end().rsplit_once('\n').unwrap();
    let listed = "1235\n2-plain.txt\n_\nmy__own____touch_x__file\nplain.txt\nup";
    assert_eq!(content, listed);
    assert!(!fs::exists(dir).unwrap());
    assert!(fs::read_dir(site.path("scratch")).unwrap().next().is_none());
}

#[tokio::test]
async fn files_are_found_in_a_folder_with_a_strange_name_too() {
    let strange = tempfile::tempdir().unwrap();
    let site = Site::with(|settings| settings.scratch = strange.path().join("a 'b' $(c) \"d"));
    let command = "cat {f} \"{f}\" '{f}'; cat '{f}'".to_owned();
    let payload = Payload::Shell { command, files: vec![site.folder.put("f", b"x")] };
    let outcome = site.exec.run(&job("thing", Task::Run(operation(payload)))).await;
    assert_eq!(printed(&outcome), "xxxx");
}

#[tokio::test]
async fn a_file_that_is_not_here_means_that_nothing_was_started() {
    let site = Site::new();
    let file = site.folder.put("f", b"x");
    fs::remove_file(site.folder.0.join(file.blob.to_string())).unwrap();
    let payload = Payload::Shell { command: "true".to_owned(), files: vec![file] };
    let outcome = site.exec.run(&job("thing", Task::Run(operation(payload)))).await;
    assert!(matches!(&outcome, Outcome::NotStarted { reason } if reason.contains("file `f`")));
}

#[tokio::test]
async fn an_id_is_a_name_and_never_code() {
    let site = Site::new();
    let trap = site.path("trap");
    let hostile = [
        format!("$(touch {trap})"),
        format!("`touch {trap}`"),
        format!("; touch {trap};"),
        format!("' ; touch {trap} ; '"),
        format!("\" ; touch {trap} ; \""),
        format!("'\"; touch {trap}; \"'"),
        "a b  c".to_owned(),
        "*".to_owned(),
        "é\\n$HOME".to_owned(),
    ];
    // As a word, in quotes, in quotes within quotes, and in text that other shells read as code.
    let commands = [
        "printf '%s\\n' __ID__ \"<__ID__>\" '<__ID__>' /t/__ID__.txt",
        "echo \"$(echo \"__ID__\")\" # it's __ID__\ncat <<X\n'__ID__' \"__ID__\"\nX",
        "sh -c 'echo __ID__'",
        "sh -c \"echo __ID__\"",
        "eval echo __ID__",
    ];
    for id in &hostile {
        for command in commands {
            let task = Task::Run(operation(Payload::shell(command)));
            let outcome = site.exec.run(&job(id, task)).await;
            let Outcome::NotStarted { reason } = &outcome else { panic!("{id}: {outcome:?}") };
            assert!(reason.contains("read as code"), "{reason}");
            assert!(!fs::exists(&trap).unwrap(), "{id}");
        }
    }
    for id in ["plain-1", "v2/images/é", "user@host:22/a=b,c+d%20"] {
        let command = "printf '%s\\n' __ID__ \"<__ID__>\" '<__ID__>' /t/__ID__.txt";
        let task = Task::Run(operation(Payload::shell(command)));
        let outcome = site.exec.run(&job(id, task)).await;
        assert_eq!(printed(&outcome), format!("{id}\n<{id}>\n<{id}>\n/t/{id}.txt\n"));
    }
}

#[tokio::test]
async fn inside_nested_quotes_the_variable_holds_the_id_as_it_is() {
    let site = Site::new();
    let trap = site.path("trap");
    for id in [&format!("a  b; touch {trap} $(touch {trap})"), "*", "'\"", "-rf"] {
        for command in [
            "sh -c 'printf \"%s\\n\" \"$CHEOPS_RESOURCE\"'",
            "printf '%s\\n' \"$(printf %s \"$CHEOPS_RESOURCE\")\"",
            "cat <<X\n$CHEOPS_RESOURCE\nX",
        ] {
            let task = Task::Run(operation(Payload::shell(command)));
            let outcome = site.exec.run(&job(id, task)).await;
            assert_eq!(printed(&outcome), format!("{id}\n"), "{command}");
        }
    }
    assert!(!fs::exists(&trap).unwrap());
}

#[tokio::test]
async fn an_id_that_is_an_option_or_leads_out_of_a_directory_is_put_into_no_command() {
    let site = Site::new();
    let outside = site.path("outside");
    fs::write(&outside, "x").unwrap();
    fs::create_dir(site.path("in")).unwrap();
    let remove = format!("rm {}/__ID__", site.path("in"));
    for (id, command) in [
        ("../outside", remove.as_str()),
        ("-rf", "echo __ID__"),
        ("a/..", "echo '__ID__'"),
        (outside.as_str(), "echo leaked > __ID__"),
    ] {
        let operation = operation(Payload::shell(command));
        let undo = Task::Undo { operation: operation.id.clone(), command: command.to_owned() };
        let resource = ResourceId::new(id).unwrap();
        let shown = site.exec.show(&resource, command, Duration::from_secs(30)).await.unwrap();
        let outcomes = [
            site.exec.run(&job(id, Task::Run(operation))).await,
            site.exec.run(&job(id, undo)).await,
            shown,
        ];
        for outcome in outcomes {
            let Outcome::NotStarted { reason } = &outcome else { panic!("{id}: {outcome:?}") };
            assert!(reason.contains("`__ID__`") && reason.contains(id), "{reason}");
        }
        // Who does not say `__ID__` knows what is done with the id.
        let plain = Task::Run(self::operation(Payload::shell("printf %s \"$CHEOPS_RESOURCE\"")));
        assert_eq!(printed(&site.exec.run(&job(id, plain)).await), id);
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), "x");
}

#[tokio::test]
async fn smaller_steps_are_asked_for_with_all_that_is_known_of_the_failure() {
    let site = Site::new();
    let failed = operation(Payload::shell("echo broke; exit 9"));
    site.exec.run(&job("thing", Task::Run(failed.clone()))).await;
    let command =
        "echo noise >&2; echo \"$CHEOPS_CODE|$CHEOPS_OUTPUT|$CHEOPS_COMMAND|$CHEOPS_TYPE\"";
    let task = Task::Decompose { operation: failed.clone(), command: command.to_owned() };
    let outcome = site.exec.run(&job("thing", task)).await;
    assert_eq!(printed(&outcome), "9|broke\n|echo broke; exit 9|set\n");
    let part = Task::RunPart { operation: failed, command: "echo __ID__".to_owned() };
    assert_eq!(printed(&site.exec.run(&job("thing", part)).await), "thing\n");
}

#[tokio::test]
async fn a_state_is_saved_and_brought_back() {
    let site = Site::new();
    let (state, id) = (site.path("state"), SnapshotId(3));
    let content: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
    fs::write(&state, &content).unwrap();
    let save = Task::Snapshot { id, command: format!("cat {state}; echo said >&2") };
    assert_eq!(printed(&site.exec.run(&job("thing", save)).await), "said\n");
    fs::remove_file(&state).unwrap();
    let back = Task::Restore { id, command: format!("cat > {state}; echo back"), shown_by: None };
    assert_eq!(printed(&site.exec.run(&job("thing", back)).await), "back\n");
    assert_eq!(fs::read(&state).unwrap(), content);
    let careless =
        Task::Restore { id, command: "echo 'I read nothing'".to_owned(), shown_by: None };
    assert_eq!(printed(&site.exec.run(&job("thing", careless)).await), "I read nothing\n");
}

#[tokio::test]
async fn what_is_written_over_comes_back_as_text_where_that_is_asked_for() {
    let site = Site::new();
    let (state, id) = (site.path("state"), SnapshotId(3));
    fs::write(&state, "before\n").unwrap();
    let save = Task::Snapshot { id, command: format!("cat {state}") };
    assert!(site.exec.run(&job("thing", save)).await.succeeded());
    fs::write(&state, "what is lost\n").unwrap();
    let shown_by = Some(format!("cat {state}"));
    let back = Task::Restore { id, command: format!("cat > {state}; echo back"), shown_by };
    assert_eq!(printed(&site.exec.run(&job("thing", back)).await), "what is lost\n");
    assert_eq!(fs::read_to_string(&state).unwrap(), "before\n");
    let unreadable = Some("echo no; exit 1".to_owned());
    let back = Task::Restore { id, command: "exit 3".to_owned(), shown_by: unreadable };
    assert!(!site.exec.run(&job("thing", back)).await.succeeded(), "the writing counts");
}

#[tokio::test]
async fn a_state_is_kept_only_if_it_is_whole() {
    let site = Site::with(|settings| settings.snapshot_limit = 1_000_000);
    let thing = ResourceId::new("thing").unwrap();
    for command in ["echo half; exit 1", "head -c 2000000 /dev/zero; sleep 1000"] {
        let save = Task::Snapshot { id: SnapshotId(1), command: command.to_owned() };
        let outcome = site.exec.run(&job("thing", save)).await;
        assert!(!outcome.succeeded(), "{outcome:?}");
        assert!(!fs::exists(site.folder.state(&thing, SnapshotId(1))).unwrap());
    }
    let back =
        Task::Restore { id: SnapshotId(1), command: "sleep 1000".to_owned(), shown_by: None };
    let outcome = site.exec.run(&job("thing", back)).await;
    assert!(outcome.text().contains("could not be read"), "{outcome:?}");
}

/// A store on a disk that may be full, or otherwise of no use.
struct Disk {
    folder: Folder,
    fails: Arc<Mutex<Option<Errno>>>,
}

impl Disk {
    fn works(&self, doing: &'static str, path: &Path) -> io::Result<()> {
        let Some(errno) = *self.fails.lock().unwrap() else { return Ok(()) };
        let (place, source) = (path.into(), errno.into());
        Err(io::Error::other(BlobError::Io { doing, place, source }))
    }
}

impl ContentStore for Disk {
    fn copy_to(&self, blob: &BlobId, path: &Path) -> io::Result<()> {
        self.works("copy to", path)?;
        self.folder.copy_to(blob, path)
    }

    fn open(&self, blob: &BlobId) -> io::Result<Box<dyn io::Read + Send>> {
        self.folder.open(blob)
    }

    fn save(&self, resource: &ResourceId, id: SnapshotId) -> io::Result<Box<dyn Saving>> {
        self.works("make", &self.folder.0)?;
        self.folder.save(resource, id)
    }

    fn saved(&self, resource: &ResourceId, id: SnapshotId) -> io::Result<Box<dyn io::Read + Send>> {
        self.works("open", &self.folder.0)?;
        self.folder.saved(resource, id)
    }
}

#[tokio::test]
async fn a_state_that_cannot_be_kept_or_brought_back_says_all_of_why() {
    let fails = Arc::new(Mutex::new(Some(Errno::NOSPC)));
    let site = Site::over(|_| {}, |folder| Disk { folder, fails });
    let id = SnapshotId(1);
    for task in [
        Task::Snapshot { id, command: "echo state".to_owned() },
        Task::Snapshot { id, command: "yes".to_owned() },
        Task::Restore { id, command: "sleep 1000".to_owned(), shown_by: None },
    ] {
        let outcome = site.exec.run(&job("thing", task)).await;
        assert!(!outcome.succeeded(), "{outcome:?}");
        assert!(outcome.text().contains("No space left on device"), "{outcome:?}");
    }
}

#[tokio::test]
async fn an_operation_waits_for_room_for_its_files_and_then_runs() {
    let fails = Arc::new(Mutex::new(None));
    let site = Site::over(|_| {}, |folder| Disk { folder, fails: Arc::clone(&fails) });
    let files = vec![site.folder.put("h", b"hello")];
    let operation = operation(Payload::Shell { command: "cat {h}".to_owned(), files });
    let whole = job("thing", Task::Run(operation.clone()));
    let part = job("thing", Task::RunPart { operation, command: "cat {h}".to_owned() });

    *fails.lock().unwrap() = Some(Errno::NOSPC);
    let outcome = site.exec.run(&whole).await;
    let Outcome::NotYet { reason, in_doubt: false } = outcome else { panic!("{outcome:?}") };
    assert!(reason.contains("file `h`") && reason.contains("No space left"), "{reason}");
    // Nobody tries again what is not a whole operation.
    let outcome = site.exec.run(&part).await;
    assert!(matches!(&outcome, Outcome::NotStarted { .. }), "{outcome:?}");

    *fails.lock().unwrap() = Some(Errno::NOTDIR);
    let outcome = site.exec.run(&whole).await;
    let Outcome::NotStarted { reason } = outcome else { panic!("{outcome:?}") };
    assert!(reason.contains("Not a directory"), "{reason}");

    *fails.lock().unwrap() = None;
    assert_eq!(printed(&site.exec.run(&whole).await), "hello");
}

#[tokio::test]
async fn an_operation_waits_while_no_more_files_can_be_opened() {
    if std::env::var_os("NEXTEST").is_none() {
        // Other tests share this process, and its limit.
        let alone = "exec_shell::an_operation_waits_while_no_more_files_can_be_opened";
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let ended = child.args(["--exact", alone]).env("NEXTEST", "1").status().unwrap();
        return assert!(ended.success());
    }
    let site = Site::new();
    assert_eq!(printed(&site.sh("echo hello").await), "hello\n");
    let limit = Rlimit { current: Some(128), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit).unwrap();
    let mut open = Vec::new();
    while let Ok(file) = fs::File::open("/dev/null") {
        open.push(file);
    }
    let outcome = site.sh("echo hello").await;
    // Before anything is asserted: a failure needs files to be told of.
    drop(open);
    let Outcome::NotYet { reason, in_doubt: false } = outcome else { panic!("{outcome:?}") };
    assert!(reason.contains("Too many open files"), "{reason}");
    assert_eq!(printed(&site.sh("echo hello").await), "hello\n");
}

#[tokio::test]
async fn a_stop_ends_what_runs_and_lets_no_outcome_be_recorded() {
    let site = Site::new();
    let command =
        format!("sleep 1000 & echo $! > {}; echo $$ > {}; wait", site.path("a"), site.path("b"));
    let exec = site.exec.clone();
    let running = tokio::spawn(async move {
        exec.run(&job("thing", Task::Run(operation(Payload::shell(command))))).await
    });
    let pids = pids(&site, &["a", "b"]).await;
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    site.exec.stop().await;
    gone(&pids).await;
    let thing = ResourceId::new("thing").unwrap();
    let shown = site.exec.show(&thing, "true", Duration::from_secs(1)).await.unwrap();
    assert!(matches!(shown, Outcome::NotStarted { .. }));
    assert!(!running.is_finished());
    running.abort();
}

#[tokio::test]
async fn a_run_that_is_given_up_leaves_nothing_behind() {
    let site = Site::new();
    let command = format!("sleep 1000 & echo $! > {}; wait", site.path("a"));
    let exec = site.exec.clone();
    let files = vec![site.folder.put("f", b"x")];
    let running = tokio::spawn(async move {
        let payload = Payload::Shell { command, files };
        exec.run(&job("thing", Task::Run(operation(payload)))).await
    });
    let pids = pids(&site, &["a"]).await;
    running.abort();
    gone(&pids).await;
    let scratch = site.path("scratch");
    until("files are gone", || fs::read_dir(&scratch).unwrap().next().is_none()).await;
}

#[tokio::test]
async fn many_commands_run_side_by_side() {
    let site = Site::new();
    let one = |n: u32| {
        let exec = site.exec.clone();
        tokio::spawn(async move {
            let command = format!("echo {n}; exit {}", n % 5);
            exec.run(&job("thing", Task::Run(operation(Payload::shell(command))))).await
        })
    };
    let all: Vec<_> = (0..64).map(one).collect();
    for (n, running) in (0..).zip(all) {
        let expected = Outcome::Exited { code: n % 5, output: Output::whole(format!("{n}\n")) };
        assert_eq!(running.await.unwrap(), expected);
    }
}

#[tokio::test]
async fn a_command_that_the_system_does_not_take_is_not_started() {
    let site = Site::new();
    let long = site.sh(&format!("true {}", "x".repeat(3_000_000))).await;
    assert!(
        matches!(&long, Outcome::NotStarted { reason } if reason.contains("send a file")),
        "{long:?}"
    );
    assert!(matches!(site.sh("echo \0").await, Outcome::NotStarted { .. }));
}
