//! What agents of this process say in their logs.

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span;

/// What the agents of this process log of their links.
#[derive(Debug, Clone, Default)]
pub(crate) struct LinkLog(Arc<Mutex<Vec<String>>>, Arc<AtomicUsize>);

impl LinkLog {
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap().clear();
    }

    pub(crate) fn count(&self, message: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|said| *said == message).count()
    }
}

impl LinkLog {
    /// How many lines that makes where nobody asked for more than the usual.
    pub(crate) fn lines(&self) -> usize {
        self.1.load(Ordering::Relaxed)
    }
}

impl Visit for LinkLog {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0.lock().unwrap().push(format!("{value:?}"));
        }
    }
}

impl tracing::Subscriber for LinkLog {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("cheops_mesh::peers")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        if *event.metadata().level() <= tracing::Level::INFO {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
