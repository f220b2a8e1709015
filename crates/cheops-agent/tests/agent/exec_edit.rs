//! Documents that are merged, with real processes: a command is run where its edit was submitted, and
//! what it made of the document is merged everywhere else.

use std::fs;
use std::sync::Arc;

use cheops_core::config::{MergedAs, StateCommands};
use cheops_core::engine::{Event, Job, Task};
use cheops_core::model::{
    Author, DocumentEdit, EntryId, Incarnation, Operation, OperationId, Outcome, Payload, SiteId,
};
use expect_test::expect;

use crate::exec_support::{Site, job, operation};

/// A site with a document, and what its engine would know of that.
struct DocumentSite {
    name: &'static str,
    exec: Site,
    files: tempfile::TempDir,
    form: MergedAs,
    merged: Vec<DocumentEdit>,
    submitted: u64,
}

fn author(site: &str) -> Author {
    Author { site: SiteId::new(site).unwrap(), incarnation: Incarnation(1) }
}

/// What a site says that its operation of that number made.
fn edit_of(site: &str, n: u64, change: &[u8]) -> DocumentEdit {
    DocumentEdit {
        entry: EntryId { author: author(site), n: n + 1 },
        operation: OperationId(EntryId { author: author(site), n }),
        change: change.into(),
    }
}

impl DocumentSite {
    fn new(name: &'static str, form: MergedAs, content: &str) -> Self {
        let files = tempfile::tempdir().unwrap();
        let site = Self { name, exec: Site::new(), files, form, merged: Vec::new(), submitted: 0 };
        site.change_file(content);
        site
    }

    fn text(name: &'static str, content: &str) -> Self {
        Self::new(name, MergedAs::Text, content)
    }

    fn path(&self) -> String {
        self.files.path().join("document").to_str().unwrap().to_owned()
    }

    fn change_file(&self, content: impl AsRef<[u8]>) {
        fs::write(self.path(), content).unwrap();
    }

    fn content(&self) -> String {
        String::from_utf8(fs::read(self.path()).unwrap()).unwrap()
    }

    fn state(&self) -> StateCommands {
        let path = self.path();
        StateCommands { read: format!("cat {path}"), write: format!("cat > {path}") }
    }

    /// A job that edits the document, `$D` being where it is.
    fn editing(&mut self, command: &str) -> Job {
        self.submitted += 10;
        let id = OperationId(EntryId { author: author(self.name), n: self.submitted });
        let payload = Payload::shell(format!("D={}; {command}", self.path()));
        let operation = Arc::new(Operation { id, ..(*operation(payload)).clone() });
        let writer = edit_of(self.name, self.submitted, b"").writer();
        let merged = Arc::new(self.merged.clone());
        job("thing", Task::Edit { operation, form: self.form, merged, writer, state: self.state() })
    }

    async fn runs(&mut self, job: &Job) -> (Outcome, Option<DocumentEdit>) {
        match self.exec.exec.run_for_engine(job).await {
            Event::Edited { outcome, change, .. } => {
                let edit = edit_of(self.name, self.submitted, &change);
                self.merged.push(edit.clone());
                (outcome, Some(edit))
            }
            Event::Ended { outcome, .. } => (outcome, None),
            other => panic!("{other:?}"),
        }
    }

    async fn edits(&mut self, command: &str) -> DocumentEdit {
        let job = self.editing(command);
        let (outcome, edit) = self.runs(&job).await;
        assert!(outcome.succeeded(), "{outcome:?}");
        edit.unwrap()
    }

    fn merging(&self, new: &[&DocumentEdit]) -> Job {
        let (merged, new) = (Arc::new(self.merged.clone()), new.iter().copied().cloned().collect());
        let operation = operation(Payload::shell("true")).id.clone();
        let state = self.state();
        job("thing", Task::Merge { operation, form: self.form, merged, new, state })
    }

    async fn merges(&mut self, new: &[&DocumentEdit]) -> Outcome {
        let job = self.merging(new);
        let outcome = self.exec.exec.run(&job).await;
        if outcome.succeeded() {
            self.merged.extend(new.iter().copied().cloned());
        }
        outcome
    }

    /// The agent starts again: nothing is ready.
    fn restarts(&mut self) {
        self.exec = Site::new();
    }
}

#[tokio::test]
async fn an_edit_runs_its_command_and_gives_what_it_changed_which_another_site_merges() {
    let mut paris = DocumentSite::text("paris", "one\n");
    let mut lyon = DocumentSite::text("lyon", "one\n");
    let two = paris.edits("echo two >> $D; echo said").await;
    let (outcome, _) = {
        let job = paris.editing("echo three >> $D; echo said");
        paris.runs(&job).await
    };
    assert_eq!(outcome.text(), "said\n");
    assert_eq!(paris.content(), "one\ntwo\nthree\n");
    assert!(lyon.merges(&[&two]).await.succeeded());
    assert_eq!(lyon.content(), "one\ntwo\n");
    let zero = lyon.edits("sed -i '1i zero' $D").await;
    assert!(paris.merges(&[&zero]).await.succeeded());
    assert_eq!(paris.content(), "zero\none\ntwo\nthree\n");
}

#[tokio::test]
async fn an_edit_that_changes_nothing_gives_a_change_of_nothing() {
    let mut paris = DocumentSite::text("paris", "one\n");
    let mut lyon = DocumentSite::text("lyon", "one\n");
    let nothing = paris.edits("touch $D").await;
    assert!(nothing.change.is_empty());
    assert!(lyon.merges(&[&nothing]).await.succeeded());
    assert_eq!(lyon.content(), "one\n");
}

#[tokio::test]
async fn what_was_changed_behind_our_back_is_kept_by_a_merge_and_told_by_the_next_edit() {
    let mut paris = DocumentSite::text("paris", "one\ntwo\nthree\n");
    let mut lyon = DocumentSite::text("lyon", "one\ntwo\nthree\n");
    let begin = paris.edits("echo four >> $D").await;
    lyon.merges(&[&begin]).await;
    lyon.change_file("one\nbehind our back\ntwo\nthree\nfour\n");
    let five = paris.edits("echo five >> $D").await;
    assert!(lyon.merges(&[&five]).await.succeeded());
    assert_eq!(lyon.content(), "one\nbehind our back\ntwo\nthree\nfour\nfive\n");
    let zero = lyon.edits("sed -i '1i zero' $D").await;
    assert!(paris.merges(&[&zero]).await.succeeded());
    assert_eq!(paris.content(), "zero\none\nbehind our back\ntwo\nthree\nfour\nfive\n");
    assert_eq!(lyon.content(), paris.content());
}

#[tokio::test]
async fn what_is_no_document_any_more_behind_our_back_is_not_written_over() {
    let mut paris = DocumentSite::new("paris", MergedAs::Json, "{\"a\": 1}\n");
    let mut lyon = DocumentSite::new("lyon", MergedAs::Json, "{\"a\": 1}\n");
    let begin = paris.edits(r#"echo '{"a": 2}' > $D"#).await;
    lyon.change_file("{\"a\": 1, half");
    let outcome = lyon.merges(&[&begin]).await;
    assert!(!outcome.succeeded(), "{outcome:?}");
    expect!["what the site holds cannot be merged: the content is not JSON: line 1, column 10"]
        .assert_eq(outcome.text());
    assert_eq!(lyon.content(), "{\"a\": 1, half");
    lyon.change_file("{\"a\": 1}");
    assert!(lyon.merges(&[&begin]).await.succeeded());
    assert_eq!(lyon.content(), paris.content());
}

#[tokio::test]
async fn a_failed_command_leaves_the_document_as_it_was() {
    let mut paris = DocumentSite::text("paris", "one\n");
    for content in ["one\n", "one\ntwo\n"] {
        for command in ["echo half >> $D; exit 3", "printf '\\377' > $D; exit 3"] {
            let job = paris.editing(command);
            let (outcome, edit) = paris.runs(&job).await;
            assert!(matches!(outcome, Outcome::Exited { code: 3, .. }), "{outcome:?}");
            assert_eq!((edit, paris.content().as_str()), (None, content), "{command}");
        }
        if content == "one\n" {
            paris.edits("echo two >> $D").await;
        }
    }
}

#[tokio::test]
async fn what_is_no_document_is_refused_and_put_back() {
    let text = "the document was put back, since it cannot be merged: ";
    for (form, begin, command, why) in [
        (MergedAs::Text, "one\n", "printf 'a\\377' > $D", "it is not text (UTF-8)"),
        (MergedAs::Text, "one\n", "yes | head -c 1500000 > $D", "has 1500000 bytes"),
        (MergedAs::Text, "one\n", "yes | head -c 3000000 > $D", "the document could not be read"),
        (MergedAs::Text, "one\n", "rm $D", "the document could not be read"),
        (MergedAs::Json, "{}\n", "echo '{\"a\": ' > $D", "is not JSON"),
    ] {
        let mut paris = DocumentSite::new("paris", form, begin);
        let job = paris.editing(command);
        let (outcome, edit) = paris.runs(&job).await;
        assert!(!outcome.succeeded() && edit.is_none(), "{command}: {outcome:?}");
        let said = outcome.text();
        assert!(said.starts_with(text) && said.contains(why), "{command}: {said}");
        assert_eq!(paris.content(), begin, "{command}");
    }
}

#[tokio::test]
async fn an_edit_that_was_cut_short_is_made_again_from_the_document_as_it_was() {
    let mut paris = DocumentSite::text("paris", "one\n");
    paris.edits("echo two >> $D").await;
    let cut_short = paris.editing("echo three >> $D");
    paris.change_file("one\ntwo\nthree\nand what was half wri");
    paris.restarts();
    let (outcome, edit) = paris.runs(&Job { again: true, ..cut_short }).await;
    assert!(outcome.succeeded() && edit.is_some(), "{outcome:?}");
    assert_eq!(paris.content(), "one\ntwo\nthree\n");
}

#[tokio::test]
async fn what_was_there_before_the_first_edit_is_kept_when_that_or_a_merge_is_cut_short() {
    let mut paris = DocumentSite::text("paris", "precious\n");
    let cut_short = paris.editing("echo more >> $D");
    let (outcome, edit) = paris.runs(&Job { again: true, ..cut_short }).await;
    assert!(outcome.succeeded(), "{outcome:?}");
    assert_eq!(paris.content(), "precious\nmore\n");

    let mut lyon = DocumentSite::text("lyon", "precious\n");
    let edit = edit.unwrap();
    for _ in 0..2 {
        // The second time all was written, and only nobody heard of it.
        let cut_short = Job { again: true, ..lyon.merging(&[&edit]) };
        lyon.restarts();
        assert!(lyon.exec.exec.run(&cut_short).await.succeeded());
        assert_eq!(lyon.content(), "precious\nmore\n");
    }
    let mut nice = DocumentSite::text("nice", "its own\n");
    let cut_short = Job { again: true, ..nice.merging(&[&edit]) };
    assert!(nice.exec.exec.run(&cut_short).await.succeeded());
    let content = nice.content();
    nice.merged.push(edit);
    assert!(content.contains("its own\n") && content.contains("precious\nmore\n"), "{content}");
}

#[tokio::test]
async fn a_change_under_the_name_of_another_is_refused() {
    let mut paris = DocumentSite::text("paris", "one\n");
    let mut lyon = DocumentSite::text("lyon", "one\n");
    let two = paris.edits("echo two >> $D").await;
    let lie = edit_of("nice", 7, &two.change);
    let outcome = lyon.merges(&[&lie]).await;
    assert!(!outcome.succeeded(), "{outcome:?}");
    assert_eq!(outcome.text(), "`nice` says that others made what it made");
    let odd = edit_of("nice", 8, b"no change at all");
    let outcome = lyon.merges(&[&odd]).await;
    assert!(outcome.text().starts_with("what `nice` says it made is no change: "), "{outcome:?}");
    assert_eq!(lyon.content(), "one\n");
    assert!(lyon.merges(&[&two]).await.succeeded(), "who is true is merged after a lie");
    assert_eq!(lyon.content(), "one\ntwo\n");
}

#[tokio::test]
async fn a_document_is_made_again_from_its_edits_after_a_restart() {
    let mut paris = DocumentSite::text("paris", "one\n");
    let mut lyon = DocumentSite::text("lyon", "one\n");
    for n in 2..6 {
        let edit = paris.edits(&format!("echo {n} >> $D")).await;
        lyon.merges(&[&edit]).await;
        paris.restarts();
        let edit = lyon.edits(&format!("sed -i '1i {n}' $D")).await;
        lyon.restarts();
        paris.merges(&[&edit]).await;
    }
    assert_eq!(paris.content(), "5\n4\n3\n2\none\n2\n3\n4\n5\n");
    assert_eq!(lyon.content(), paris.content());
}

#[tokio::test]
async fn edits_made_at_once_come_to_the_same_in_any_order_and_at_once() {
    let mut sites =
        ["lyon", "nice", "paris"].map(|name| DocumentSite::new(name, MergedAs::Json, "{}\n"));
    let mut edits = Vec::new();
    for site in &mut sites {
        let name = site.name;
        edits.push(site.edits(&format!(r#"echo '{{"{name}": {{"on": true}}}}' > $D"#)).await);
    }
    let [lyon, nice, paris] = &mut sites;
    lyon.merges(&[&edits[1]]).await;
    lyon.merges(&[&edits[2]]).await;
    nice.merges(&[&edits[2], &edits[0]]).await;
    paris.merges(&[&edits[0], &edits[1]]).await;
    let contents = sites.each_ref().map(DocumentSite::content);
    assert!(contents.iter().all(|content| *content == contents[0]), "{contents:?}");
    for name in ["lyon", "nice", "paris"] {
        assert!(contents[0].contains(name), "{}", contents[0]);
    }
}
