//! What every number means, in the words that `/metrics` shows, and how histograms are divided.

use std::sync::OnceLock;
use std::time::Duration;

use metrics::{describe_counter, describe_gauge, describe_histogram};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::task::JoinHandle;

/// Up to where each bucket of a histogram counts, in seconds: from a commit on a fast disk to a
/// command that takes minutes. One set for all, so that they can be laid over each other.
const BOUNDS: [f64; 19] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0, 30.0, 60.0, 300.0,
];

/// What histograms were told waits in memory until it is sorted into buckets, whether or not
/// somebody looks at them.
const SORT_EVERY: Duration = Duration::from_secs(5);

/// Begins to count. A process counts in one place, however many agents there are in it.
pub(crate) fn count() -> PrometheusHandle {
    static COUNTED: OnceLock<PrometheusHandle> = OnceLock::new();
    COUNTED.get_or_init(begin).clone()
}

fn begin() -> PrometheusHandle {
    // It refuses only to have no bounds at all.
    let builder = PrometheusBuilder::new().set_buckets(&BOUNDS);
    let recorder = builder.unwrap_or_else(|_none| PrometheusBuilder::new()).build_recorder();
    let handle = recorder.handle();
    metrics::with_local_recorder(&recorder, describe);
    if metrics::set_global_recorder(recorder).is_err() {
        tracing::debug!("numbers are counted elsewhere in this process");
    }
    begin_at_zero();
    handle
}

/// What is worth an alert is there before it happens: Prometheus does not see a counter grow that
/// begins with its first count.
fn begin_at_zero() {
    for about in [
        "in-doubt",
        "diverged",
        "partial-error",
        "site-lost-disk",
        "strange-clock",
        "malformed",
        "set-apart",
        "shared-identity",
    ] {
        metrics::counter!("cheops_notices_total", "about" => about).increment(0);
    }
    metrics::counter!("cheops_log_failures_total").increment(0);
    metrics::counter!("cheops_entries_refused_total").increment(0);
    metrics::counter!("cheops_messages_dropped_total").increment(0);
    metrics::counter!("cheops_messages_left_out_total").increment(0);
    metrics::counter!("cheops_api_unauthorized_total").increment(0);
    metrics::counter!("cheops_api_connections_refused_total").increment(0);
    metrics::counter!("cheops_proxy_ids_forgotten_early_total").increment(0);
    metrics::counter!("cheops_proxy_answers_not_renamed_total").increment(0);
}

/// Keeps what waits to be sorted small. Ends with the task.
pub(crate) fn keep_sorted(numbers: PrometheusHandle) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut due = tokio::time::interval(SORT_EVERY);
        due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            due.tick().await;
            numbers.run_upkeep();
        }
    })
}

fn describe() {
    describe_gauge!("cheops_sites", "Other sites that this one knows");
    describe_gauge!("cheops_sites_up", "Other sites that are connected now");
    describe_gauge!("cheops_resources", "Resources that this site holds, deleted ones too");
    describe_gauge!(
        "cheops_resources_by_state",
        "Resources that this site holds, by the state that the API shows; counted every 15 s at most"
    );
    describe_gauge!(
        "cheops_resources_warned",
        "Resources at which somebody should look though nothing failed; counted with the states"
    );
    describe_gauge!("cheops_jobs_running", "Commands and requests that run now");
    describe_gauge!(
        "cheops_state_reading_share",
        "The share of the time that was spent reading states again that had not changed; 0.02 at most"
    );
    describe_gauge!(
        "cheops_history_bytes",
        "What is kept for readers of the history only: rows of the log, and files"
    );
    describe_gauge!("cheops_history_most_bytes", "What that may take: `[audit] size`");
    describe_gauge!(
        "cheops_history_cut_seconds",
        "When history was last dropped before its time for want of room (Unix time); 0 if never"
    );
    describe_gauge!("cheops_log_bytes", "The log with its journal, without files and snapshots");
    describe_gauge!(
        "cheops_queue_length",
        "What waits for the one thread that decides, by queue: events or requests"
    );
    describe_counter!("cheops_notices_total", "What happened, by what it is about");
    describe_counter!("cheops_log_failures_total", "Times that the log could not be written");
    describe_counter!("cheops_jobs_total", "Commands and requests that ended, by task and ending");
    describe_counter!("cheops_hooks_total", "Hooks that were called, by kind and ending");
    describe_counter!("cheops_api_unauthorized_total", "Requests without the right token");
    describe_counter!(
        "cheops_api_connections_refused_total",
        "Connections beyond what one address may have"
    );
    describe_counter!("cheops_bytes_sent_total", "Bytes of messages to other sites");
    describe_counter!("cheops_bytes_received_total", "Bytes of messages from other sites");
    describe_counter!(
        "cheops_messages_dropped_total",
        "Messages for which there was no way or no room; they are said again"
    );
    describe_counter!(
        "cheops_messages_left_out_total",
        "What a later version said and this one does not understand"
    );
    describe_counter!(
        "cheops_malformed_total",
        "What cannot be and was said all the same, by the site that said it"
    );
    describe_counter!(
        "cheops_entries_refused_total",
        "Messages of which something was refused because its author had not signed it"
    );
    describe_counter!(
        "cheops_proxy_requests_total",
        "Requests of clients to a service's proxy, by service, the site that answered, and outcome"
    );
    describe_counter!(
        "cheops_proxy_ids_forgotten_early_total",
        "Request ids that were forgotten before their time for want of room"
    );
    describe_counter!(
        "cheops_proxy_answers_not_renamed_total",
        "Answers too long to be looked into, which show this site's own ids"
    );
    describe_histogram!(
        "cheops_proxy_request_seconds",
        "From a client's request until its answer begins, by service, the site that answered, and outcome"
    );
    describe_histogram!("cheops_job_seconds", "How long commands and requests took, by task");
    describe_histogram!(
        "cheops_commit_seconds",
        "How long it took to sign what was decided and make it durable, for all that waited together"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_have_buckets_and_help_and_stay_when_nothing_happens() {
        let builder = PrometheusBuilder::new().set_buckets(&BOUNDS).unwrap();
        let recorder = builder.build_recorder();
        let shown = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            describe();
            metrics::histogram!("cheops_commit_seconds").record(0.002);
        });
        let first = shown.render();
        assert!(first.contains("# HELP cheops_commit_seconds How long"), "{first}");
        assert!(first.contains("# TYPE cheops_commit_seconds histogram"), "{first}");
        assert!(first.contains("cheops_commit_seconds_bucket{le=\"0.001\"} 0"), "{first}");
        assert!(first.contains("cheops_commit_seconds_bucket{le=\"0.0025\"} 1"), "{first}");
        assert_eq!(shown.render(), first);
    }
}
