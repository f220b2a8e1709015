//! Where log lines of an agent go, and its spans where the program was built to export them.

use std::io::IsTerminal;

use cheops_agent::config::{AgentConfig, LogFormat};
use tokio::runtime::Handle;

use crate::failure::Failure;

#[cfg(not(feature = "otlp"))]
pub(crate) use lines_alone::begin;
#[cfg(feature = "otlp")]
pub(crate) use with_spans::begin;

#[cfg(not(feature = "otlp"))]
mod lines_alone {
    use super::*;

    /// Nothing is exported.
    pub(crate) struct Exported;

    impl Exported {
        pub(crate) fn end(self) {}
    }

    /// Logs to standard error from now on.
    #[allow(clippy::unnecessary_wraps, reason = "with spans it can fail")]
    pub(crate) fn begin(config: &AgentConfig, _: &Handle) -> Result<Exported, Failure> {
        begin_lines(config);
        Ok(Exported)
    }
}

#[cfg(feature = "otlp")]
mod with_spans {
    use cheops_agent::telemetry::SpanExport;
    use tracing_subscriber::filter::LevelFilter;
    use tracing_subscriber::fmt::layer;
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::util::SubscriberInitExt;
    use tracing_subscriber::{Layer, registry};

    use super::*;

    /// What is exported, if anything.
    pub(crate) struct Exported(Option<SpanExport>);

    impl Exported {
        /// Sends the last spans, in a while.
        pub(crate) fn end(self) {
            if let Some(spans) = self.0 {
                spans.stop();
            }
        }
    }

    /// Logs to standard error from now on, and exports spans if the config says where to.
    pub(crate) fn begin(config: &AgentConfig, runtime: &Handle) -> Result<Exported, Failure> {
        let Some(collector) = &config.telemetry.otlp else {
            begin_lines(config);
            return Ok(Exported(None));
        };
        let spans = SpanExport::start(collector, &config.site, runtime)
            .map_err(|error| Failure::ours("spans cannot be exported").because(error))?;
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
        Ok(Exported(Some(spans)))
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
