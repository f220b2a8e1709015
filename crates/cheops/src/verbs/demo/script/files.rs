//! The technical report's file experiment, played on real sites: one after the other; then with all
//! links cut, one operation per site, and healed; and why it ended so.

use std::collections::BTreeSet;

use cheops_api::{Action, ResourceState, ShellAction, Show, Submit, SubmitEvent, Wait};

use super::Script;
use crate::failure::Failure;
use crate::following::{label, style_of};
use crate::look::{ACCENT, BOLD, styled};
use crate::text::{hanging, printable};

/// What is done at each of three sites, and of which type it is.
const OPERATIONS: [(&str, &str); 3] =
    [("add", "echo left >> FILE"), ("set", "echo middle > FILE"), ("add", "echo right >> FILE")];

pub(super) async fn play(script: &mut Script<'_>) -> Result<(), Failure> {
    script.heading("One after the other, every site in reach of the others")?;
    for at in 0..OPERATIONS.len() {
        script.operate(at, "sequential", Wait::All).await?;
    }
    script.ending("sequential", "middle\nright\n").await?;

    script.heading("The same with all links cut: every site goes on alone")?;
    script.operate_to_begin("apart").await?;
    script.cut(&[]).await?;
    for at in 0..OPERATIONS.len() {
        script.operate(at, "apart", Wait::Local).await?;
    }
    for at in 0..OPERATIONS.len() {
        let held = script.held_at(at, "apart").await?;
        let site = &script.cluster.sites[at].name;
        script.output.line(format!("  {} holds {}", styled(BOLD, site), on_one_line(&held)))?;
    }
    script.heading("The links are healed")?;
    script.heal().await?;
    script.ending("apart", "middle\n").await?;
    script.why("apart").await
}

fn on_one_line(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    format!("`{}`", printable(&lines.join(", ")))
}

impl Script<'_> {
    /// The resource needs to be known everywhere before the sites are parted.
    async fn operate_to_begin(&mut self, id: &str) -> Result<(), Failure> {
        self.hand_in(0, id, "set", "echo init > FILE", Wait::All).await
    }

    async fn operate(&mut self, at: usize, id: &str, wait: Wait) -> Result<(), Failure> {
        let (kind, command) = OPERATIONS[at];
        self.hand_in(at, id, kind, command, wait).await
    }

    async fn hand_in(
        &mut self,
        at: usize,
        id: &str,
        kind: &str,
        command: &str,
        wait: Wait,
    ) -> Result<(), Failure> {
        let names: Vec<_> = self.cluster.sites.iter().map(|site| site.name.to_string()).collect();
        let command = command.replace("FILE", &format!("{id}.txt"));
        let submit = Submit {
            kind: kind.into(),
            sites: Some(names.join(" & ")),
            config: None,
            profile: Some("file".into()),
            action: Action::Shell(ShellAction { command: command.clone() }),
            force: false,
            wait,
            timeout_ms: 20_000,
        };
        let mut events = self.client(at)?.submit(id, &submit, &[]).await?;
        let mut replies = Vec::new();
        while let Some(event) = events.next().await? {
            if let SubmitEvent::Reply(said) = event {
                let word = styled(style_of(said.reply.status), label(said.reply.status));
                replies.push(format!("{} {word}", said.site));
            }
        }
        let site = &self.cluster.sites[at].name;
        self.output.line(format!(
            "  at {}: {}  {}",
            styled(BOLD, site),
            styled(ACCENT, command),
            replies.join(", ")
        ))?;
        Ok(())
    }

    async fn held_at(&self, at: usize, id: &str) -> Result<String, Failure> {
        let show = Show {
            command: format!("cat {id}.txt"),
            sites: Some(self.cluster.sites[at].name.to_string()),
            timeout_ms: 5_000,
        };
        let shown = self.client(at)?.show(id, &show).await?;
        Ok(shown.sites.into_values().map(|shown| shown.output).collect())
    }

    /// Waits until all sites agree, and says whether they hold what the report found.
    async fn ending(&mut self, id: &str, published: &str) -> Result<(), Failure> {
        let mut held = BTreeSet::new();
        for at in 0..self.cluster.sites.len() {
            let client = self.client(at)?;
            self.until("the sites agree", async || {
                Ok(client.resource(id).await?.summary.state == ResourceState::Converged)
            })
            .await?;
            held.insert(self.held_at(at, id).await?);
        }
        let agreed = held.len() == 1 && held.contains(published);
        let values: Vec<_> = held.iter().map(|value| on_one_line(value)).collect();
        let what = format!("all sites hold {}, as the report has it", on_one_line(published));
        self.claim(&what, agreed, &values.join(" or "))
    }

    async fn why(&mut self, id: &str) -> Result<(), Failure> {
        self.heading("Why")?;
        let explanation = self.client(0)?.explain(id).await?;
        let width = self.output.width;
        for decision in explanation.decisions {
            self.output.line(hanging("  ", &printable(&decision.sentence), width))?;
        }
        Ok(())
    }
}
