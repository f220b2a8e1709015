//! Spans of operations and jobs for a collector of the user's, by OTLP over HTTP. They leave in
//! batches, by a thread of their own: nobody waits for the collector, and what it does not take in
//! time is lost.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cheops_core::model::SiteId;
use cheops_services::ConnectorError;
use cheops_services::connector::{Connector, IDLE, Roots, connector};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{
    ExporterBuildError, Protocol, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::registry::LookupSpan;

use super::spans;

/// How long one batch may take to be taken.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// How long the last spans may take when the agent stops.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// What is read of an answer.
const ANSWER_BYTES: usize = 64 * 1024;

/// Why no spans can be exported.
#[derive(Debug, thiserror::Error)]
pub enum SpanExportError {
    /// The collector cannot be asked.
    #[error("no collector can be asked")]
    Client(#[from] ConnectorError),
    /// The exporter refuses to be made so.
    #[error("the exporter of spans cannot be made")]
    Exporter(#[from] ExporterBuildError),
}

/// The way to a collector. It ends with [`SpanExport::stop`].
#[derive(Debug, Clone)]
pub struct SpanExport(SdkTracerProvider);

impl SpanExport {
    /// Begins to export to that collector, such as `http://127.0.0.1:4318`, as that site.
    pub fn start(
        collector: &Uri,
        site: &SiteId,
        runtime: &Handle,
    ) -> Result<Self, SpanExportError> {
        let roots = match collector.scheme_str() {
            Some("https") => Roots::Native,
            _ => Roots::None,
        };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector(roots)?);
        let (runtime, is_failing) = (runtime.clone(), Arc::default());
        let base = collector.to_string();
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{}/v1/traces", base.trim_end_matches('/')))
            .with_timeout(TIME_LIMIT)
            .with_http_client(CollectorClient { client, runtime, is_failing })
            .build()?;
        let resource = Resource::builder()
            .with_service_name("cheops")
            .with_attribute(KeyValue::new("service.instance.id", site.to_string()))
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource)
            .build();
        Ok(Self(provider))
    }

    /// What a subscriber passes spans on with, whatever else it logs.
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let ours = filter_fn(|about| about.target() == spans::TARGET);
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer("cheops"))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_filter(ours.with_max_level_hint(LevelFilter::DEBUG))
    }

    /// Sends what is waiting. Blocks until it is taken, or lost.
    pub fn flush(&self) {
        if let Err(error) = self.0.force_flush() {
            tracing::debug!(%error, "spans were not taken");
        }
    }

    /// The same for the last time.
    pub fn stop(&self) {
        if let Err(error) = self.0.shutdown_with_timeout(LAST_WORDS) {
            tracing::debug!(%error, "the last spans were not taken");
        }
    }
}

/// Asks the collector by the agent's own HTTP and TLS.
#[derive(Debug)]
struct CollectorClient {
    client: Client<Connector, Full<Bytes>>,
    /// The exporter's thread is none of the runtime.
    runtime: Handle,
    /// Whether the last batch was not taken: it is told once.
    is_failing: Arc<AtomicBool>,
}

type Answering<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for CollectorClient {
    // As the trait's macro would write it.
    fn send_bytes<'life0, 'async_trait>(
        &'life0 self,
        request: Request<Bytes>,
    ) -> Answering<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        let asked = self.runtime.spawn(ask(self.client.clone(), request));
        Box::pin(async move {
            let answer = asked.await?;
            self.note(&answer);
            answer
        })
    }
}

impl CollectorClient {
    fn note(&self, answer: &Result<Response<Bytes>, HttpError>) {
        let trouble = match answer {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("it answered {}", answer.status())),
            Err(error) => Some(cheops_core::causes(&**error)),
        };
        let was_failing = self.is_failing.swap(trouble.is_some(), Ordering::Relaxed);
        match trouble {
            Some(error) if !was_failing => {
                tracing::warn!(error, "the collector does not take spans: they are lost");
            }
            None if was_failing => tracing::info!("the collector takes spans again"),
            _ => {}
        }
    }
}

async fn ask(
    client: Client<Connector, Full<Bytes>>,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, HttpError> {
    let asking = async {
        let (head, body) = client.request(request.map(Full::new)).await?.into_parts();
        let body = Limited::new(body, ANSWER_BYTES).collect().await?;
        Ok(Response::from_parts(head, body.to_bytes()))
    };
    tokio::time::timeout(TIME_LIMIT, asking).await?
}
