//! Opening: whose directory it is, who else is in it, and what is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use cheops_core::model::Incarnation;
use cheops_store::{AppendError, OpenError, StoreOptions, open};
use expect_test::expect;
use tempfile::tempdir;

use crate::support::{entry, id, open_paris, site};

#[test]
fn a_new_directory_begins_an_incarnation_and_keeps_it() {
    let parent = tempdir().unwrap();
    let dir = parent.path().join("deep/data");
    let mut opened = open_paris(&dir, StoreOptions::default()).unwrap();
    assert_eq!((opened.incarnation, opened.first_incarnation), (Incarnation(7), true));
    assert!(opened.records.is_empty());
    assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
    opened.log.keep(&[entry("a", id("paris", 1))], &[]).unwrap();
    drop(opened);
    let again =
        open(&dir, &site("paris"), || panic!("drawn again"), StoreOptions::default()).unwrap();
    assert_eq!((again.incarnation, again.first_incarnation), (Incarnation(7), false));
    assert_eq!(again.records, [entry("a", id("paris", 1))]);
}

#[test]
fn a_new_writer_is_in_the_same_incarnation_and_a_lost_disk_in_another() {
    let parent = tempdir().unwrap();
    let dir = parent.path().join("data");
    let open_with = |drawn: u64| {
        let opened = open(&dir, &site("paris"), || drawn, StoreOptions::default()).unwrap();
        (opened.log.fence(), opened.incarnation)
    };
    let (first, started_again) = (open_with(7), open_with(8));
    fs::remove_dir_all(&dir).unwrap();
    let lost = open_with(9);
    let incarnations = [first, started_again, lost].map(|(_, incarnation)| incarnation);
    assert_eq!(incarnations, [7, 7, 9].map(Incarnation));
    assert!(first.0 != started_again.0 && started_again.0 != lost.0, "each is a writer of its own");
}

#[test]
fn a_writer_goes_on_if_its_lock_is_removed_and_nobody_takes_its_place() {
    let dir = tempdir().unwrap();
    let mut opened = open_paris(dir.path(), StoreOptions::default()).unwrap();
    fs::remove_file(dir.path().join("lock")).unwrap();
    opened.log.keep(&[entry("a", id("paris", 1))], &[]).unwrap();
    opened.log.settle().unwrap();
    fs::write(dir.path().join("lock"), b"").unwrap();
    let refused = opened.log.keep(&[entry("a", id("paris", 2))], &[]);
    assert!(matches!(refused, Err(AppendError::Fenced)), "{refused:?}");
}

/// The files of the log that others than their owner may do something with.
fn open_to_others(dir: &std::path::Path) -> Vec<String> {
    let files = ["log.db", "log.db-wal", "log.db-shm", "journal", "site", "lock"];
    let mode = |name: &str| {
        let path = dir.join(name);
        assert!(path.exists(), "{name}");
        fs::metadata(path).unwrap().permissions().mode() & 0o077
    };
    files.into_iter().filter(|name| mode(name) != 0).map(str::to_owned).collect()
}

#[test]
fn the_log_is_its_owners_alone_whatever_the_folder() {
    // Given a folder that everybody may look into,
    let dir = tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    // when a log is made in it, then nobody else can read that.
    let mut opened = open_paris(dir.path(), StoreOptions::default()).unwrap();
    opened.log.keep(&[entry("a", id("paris", 1))], &[]).unwrap();
    assert_eq!(open_to_others(dir.path()), Vec::<String>::new());
    drop(opened);
    // Nor can one be read that was open to others before.
    for name in ["log.db", "journal", "site", "lock"] {
        let mode = fs::Permissions::from_mode(0o644);
        fs::set_permissions(dir.path().join(name), mode).unwrap();
    }
    let _opened = open_paris(dir.path(), StoreOptions::default()).unwrap();
    assert_eq!(open_to_others(dir.path()), Vec::<String>::new());
}

#[test]
fn a_directory_in_use_is_refused_until_the_last_handle_is_gone() {
    let dir = tempdir().unwrap();
    let opened = open_paris(dir.path(), StoreOptions::default()).unwrap();
    let refused = |dir: &std::path::Path| {
        matches!(open_paris(dir, StoreOptions::default()), Err(OpenError::InUse { .. }))
    };
    assert!(refused(dir.path()));
    let (reader, blobs) = (opened.feed.clone(), opened.blobs.clone());
    drop(opened);
    assert!(refused(dir.path()), "a reader is left");
    drop(reader);
    assert!(refused(dir.path()), "the blobs are left");
    drop(blobs);
    assert!(!refused(dir.path()));
}

#[test]
fn the_log_of_another_site_is_refused() {
    let dir = tempdir().unwrap();
    drop(open_paris(dir.path(), StoreOptions::default()).unwrap());
    let error = open(dir.path(), &site("lyon"), || 1, StoreOptions::default()).unwrap_err();
    assert!(matches!(&error, OpenError::WrongSite { found, asked, .. }
        if *found == site("paris") && *asked == site("lyon")));
    assert!(error.hint().is_some());
}

#[test]
fn a_later_format_is_refused_and_says_which_program_it_takes() {
    let dir = tempdir().unwrap();
    drop(open_paris(dir.path(), StoreOptions::default()).unwrap());
    let db = rusqlite::Connection::open(dir.path().join("log.db")).unwrap();
    db.pragma_update(None, "user_version", 6).unwrap();
    drop(db);
    let error = open_paris(dir.path(), StoreOptions::default()).unwrap_err();
    assert!(matches!(error, OpenError::FormatVersion { found: 6, understood: 5, .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("the version of cheops that wrote it, or a later one"));
}

#[test]
fn a_database_of_someone_else_is_refused_and_left_alone() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("log.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch("CREATE TABLE precious (x); INSERT INTO precious VALUES (1)").unwrap();
    drop(db);
    let error = open_paris(dir.path(), StoreOptions::default()).unwrap_err();
    assert!(matches!(error, OpenError::Corrupt(_)), "{error:?}");
    let db = rusqlite::Connection::open(&path).unwrap();
    let kept: i64 = db.query_row("SELECT x FROM precious", (), |row| row.get(0)).unwrap();
    assert_eq!(kept, 1);
}

#[test]
fn a_stop_while_the_directory_is_made_is_no_damage() {
    let dir = tempdir().unwrap();
    // A file without a byte, before the first transaction.
    fs::write(dir.path().join("log.db"), b"").unwrap();
    drop(open_paris(dir.path(), StoreOptions::default()).unwrap());
    // Everything but the mark that says so.
    fs::remove_file(dir.path().join("site")).unwrap();
    (0..20).for_each(|n| fs::write(dir.path().join(format!("tmp/{n}")), b"cheo").unwrap());
    let opened = open_paris(dir.path(), StoreOptions::default()).unwrap();
    assert_eq!(opened.incarnation, Incarnation(7));
    expect![[r#"
        cheops data directory, format 5
        site paris
        incarnation 7
    "#]]
    .assert_eq(&fs::read_to_string(dir.path().join("site")).unwrap());
}

#[test]
fn a_log_that_its_operator_vacuumed_or_copied_opens_as_before() {
    let dir = tempdir().unwrap();
    let mut opened = open_paris(dir.path(), StoreOptions::default()).unwrap();
    opened.log.keep(&[entry("a", id("paris", 1)), entry("b", id("paris", 2))], &[]).unwrap();
    opened.log.settle().unwrap();
    let copy = tempdir().unwrap();
    let target = copy.path().join("log.db");
    let db = rusqlite::Connection::open(dir.path().join("log.db")).unwrap();
    db.execute("VACUUM INTO ?", [target.to_str().unwrap()]).unwrap();
    let expected = opened.log.records().unwrap();
    drop(opened);
    db.execute("VACUUM", ()).unwrap();
    drop(db);
    for dir in [dir.path(), copy.path()] {
        assert_eq!(open_paris(dir, StoreOptions::default()).unwrap().records, expected);
    }
}

#[test]
fn messages_say_where_and_what_to_do() {
    let dir = tempdir().unwrap();
    let mut opened = open_paris(dir.path(), StoreOptions::default()).unwrap();
    opened.log.keep(&[entry("a", id("paris", 1))], &[]).unwrap();
    drop(opened);
    let db = rusqlite::Connection::open(dir.path().join("log.db")).unwrap();
    db.execute("UPDATE changes SET at_ms = at_ms + 1", ()).unwrap();
    drop(db);
    let error = open_paris(dir.path(), StoreOptions::default()).unwrap_err();
    let because = std::error::Error::source(&error).unwrap().to_string();
    let because = because.replace(dir.path().to_str().unwrap(), "DATA");
    expect![[r#"
        error: the log of this site is damaged
        because: row 1 of table `changes` (resource `a`) of `DATA/log.db`: its checksum does not match
        hint: move the data directory away and start with an empty one: the site gets its resources back from the other sites that hold them
    "#]]
    .assert_eq(&format!("error: {error}\nbecause: {because}\nhint: {}\n", error.hint().unwrap()));
}
