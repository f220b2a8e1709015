//! Where log lines of an agent go, and its spans where the program was built to export them.

use std::io::IsTerminal;

use cheops_agent::config::{AgentConfig, LogFormat};

#[cfg(feature = "otlp")]
pub(crate) use with_spans::begin;

/// Logs to standard error from now on. What comes back ends it.
#[cfg(not(feature = "otlp"))]
#[allow(clippy::unnecessary_wraps, reason = "where spans are exported it can fail")]
pub(crate) fn begin(
    config: &AgentConfig,
    _: &tokio::runtime::Handle,
) -> Result<impl FnOnce() + use<>, crate::failure::Failure> {
    begin_lines(config);
    Ok(|| ())
}

#[cfg(feature = "otlp")]
mod with_spans {
    use cheops_agent::telemetry::SpanExport;
    use tokio::runtime::Handle;
    use tracing_subscriber::filter::LevelFilter;
    use tracing_subscriber::fmt::layer;
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::util::SubscriberInitExt;
    use tracing_subscriber::{Layer, registry};

    use super::*;
    use crate::failure::Failure;

    /// Logs to standard error from now on, and exports spans if the config says where to. What comes
    /// back ends it: it sends the last spans, for a while.
    pub(crate) fn begin(
        config: &AgentConfig,
        runtime: &Handle,
    ) -> Result<impl FnOnce() + use<>, Failure> {
        let spans = match &config.telemetry.otlp {
            Some(collector) => Some(
                SpanExport::start(collector, &config.site, runtime)
                    .map_err(|error| Failure::ours("spans cannot be exported").because(error))?,
            ),
            None => None,
        };
        match &spans {
            Some(spans) => begin_both(config, spans),
            None => begin_lines(config),
        }
        Ok(move || {
            if let Some(spans) = spans {
                spans.stop();
            }
        })
    }

    fn begin_both(config: &AgentConfig, spans: &SpanExport) {
        let lines = layer()
            .with_target(false)
            .with_ansi(std::io::stderr().is_terminal())
            .with_writer(std::io::stderr);
        let lines = match config.log.format {
            LogFormat::Text => lines.boxed(),
            LogFormat::Json => lines.json().boxed(),
        };
        // Each by itself: spans are exported whatever is logged.
        let lines = lines.with_filter(LevelFilter::from_level(config.log.level));
        registry().with(lines).with(spans.layer()).init();
    }
}

fn begin_lines(config: &AgentConfig) {
    let log = tracing_subscriber::fmt()
        .with_max_level(config.log.level)
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match config.log.format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
}
