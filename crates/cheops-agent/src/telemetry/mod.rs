//! What the agent says of itself: log lines, spans and numbers. Nothing depends on them.

mod numbers;
#[cfg(feature = "otlp")]
mod otlp;
mod spans;

use cheops_core::engine::Notice;
use cheops_core::model::ResourceId;

pub(crate) use self::numbers::{count, keep_sorted};
#[cfg(feature = "otlp")]
pub use self::otlp::{SpanExport, SpanExportError};
pub(crate) use self::spans::{OperationSpans, operation_span};

/// The engine has news.
pub(crate) fn notice(notice: &Notice) {
    metrics::counter!("cheops_notices_total", "about" => about(notice)).increment(1);
    match notice {
        Notice::Applied(..)
        | Notice::Converged(_)
        | Notice::Settled(..)
        | Notice::Pruned(..)
        | Notice::LeftOut(..) => {
            tracing::debug!(?notice);
        }
        Notice::Failed(resource, operation) => {
            tracing::info!(%resource, %operation, "an operation failed here");
        }
        Notice::Superseded(resource, operation, by) => {
            tracing::info!(%resource, %operation, %by, "an operation was superseded");
        }
        Notice::PartialError(resource, operation) => {
            tracing::warn!(%resource, %operation, "an operation failed at some sites only");
        }
        Notice::Diverged(resource, why) => {
            tracing::error!(%resource, %why, "this site's application no longer follows the list");
        }
        Notice::Differs(resource) => tracing::error!(
            %resource, "sites that applied the same operations have different states"
        ),
        Notice::Warning(resource, why) => tracing::warn!(%resource, why, "somebody should look"),
        Notice::InDoubt(resource, operation) => {
            tracing::error!(%resource, %operation, "the result of an operation is unknown: settle it");
        }
        Notice::SiteDown(site) => tracing::warn!(%site, "a site is not connected any more"),
        Notice::SiteUp(site) => tracing::info!(%site, "a site is connected"),
        Notice::SiteLostItsDisk(site) => tracing::warn!(%site, "a site came back without memory"),
        Notice::StrangeClock(resource, operation, ahead_ms) => {
            tracing::warn!(%resource, %operation, ahead_ms, "an operation comes from the future");
        }
        Notice::Malformed(site, what) => {
            tracing::warn!(%site, %what, "a site said something that cannot be");
        }
        Notice::SetApart(site, key) => tracing::error!(
            %site, %key,
            "a site signed two entries that cannot both be its word: it is set apart; find out who \
             has its identity, then issue it a new one"
        ),
        Notice::SharedIdentity(site, seen) => tracing::error!(
            %site, seen, "two agents use the identity of one site: stop one of them"
        ),
        Notice::Asked(resource, by, what) => {
            let resource = resource.as_ref().map(ResourceId::as_str);
            let (kind, command) = without_command(what);
            tracing::info!(
                resource, principal = by.principal, site = %by.site, what = kind, "somebody asked"
            );
            if let Some(command) = command {
                tracing::debug!(resource, what = kind, command, "what was asked");
            }
        }
    }
}

/// What somebody asked for, and the command apart: it may hold what is for who asked alone.
fn without_command(what: &str) -> (&str, Option<&str>) {
    match what.split_once(": ") {
        Some((kind @ "show", command)) => (kind, Some(command)),
        _ => (what, None),
    }
}

fn about(notice: &Notice) -> &'static str {
    match notice {
        Notice::Applied(..) => "applied",
        Notice::Failed(..) => "failed",
        Notice::PartialError(..) => "partial-error",
        Notice::Superseded(..) => "superseded",
        Notice::Diverged(..) => "diverged",
        Notice::InDoubt(..) => "in-doubt",
        Notice::Differs(_) => "differs",
        Notice::Warning(..) => "warning",
        Notice::Settled(..) => "settled",
        Notice::Converged(_) => "converged",
        Notice::SiteDown(_) => "site-down",
        Notice::SiteUp(_) => "site-up",
        Notice::SiteLostItsDisk(_) => "site-lost-disk",
        Notice::StrangeClock(..) => "strange-clock",
        Notice::Pruned(..) => "pruned",
        Notice::LeftOut(..) => "left-out",
        Notice::Malformed(..) => "malformed",
        Notice::SetApart(..) => "set-apart",
        Notice::SharedIdentity(..) => "shared-identity",
        Notice::Asked(..) => "asked",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_command_is_told_apart_from_what_was_asked() {
        assert_eq!(without_command("show: cat a: b"), ("show", Some("cat a: b")));
        let other = "an operation `a: b`, passed on to site2";
        assert_eq!(without_command(other), (other, None));
    }
}
