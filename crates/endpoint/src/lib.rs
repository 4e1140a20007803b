//! Liveness, readiness and status over HTTP.
//!
//! Nothing here changes intent or authority: every answer is a copy of what the reconciler last knew.

use std::future::Future;
use std::sync::{Arc, PoisonError, RwLock};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use tokio::net::TcpListener;

/// What the reconciler last knew, for readers.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Page {
    /// Was a tick completed, and did the last one end well?
    pub ready: bool,
    /// Why not: a code and a sentence.
    pub trouble: Option<String>,
    /// The sequence number of the state.
    pub sequence: u64,
    /// The seen tip of main.
    pub main: String,
    /// When the last tick ended, RFC 3339.
    pub at: Option<String>,
    /// What people should know.
    pub notices: Vec<String>,
    /// The machines.
    pub machines: Vec<Machine>,
}

/// One machine, for readers.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// The cluster.
    pub cluster: String,
    /// The machine.
    pub machine: String,
    /// In one word: `applied`, `pending`, `drifted`, `in-flight`, `never-adopted`.
    pub state: &'static str,
    /// The revision of Applied.
    pub revision: Option<u64>,
    /// The open drift record.
    pub drift: Option<u64>,
    /// The act that froze it.
    pub frozen: Option<u64>,
    /// Why an approved entry does not go.
    pub hold: Option<String>,
    /// Why it could not be read.
    pub unreachable: Option<String>,
    /// When it was last read, RFC 3339.
    pub read: Option<String>,
}

/// The page, shared between the reconciler and the server.
#[derive(Clone, Debug, Default)]
pub struct Shared(Arc<RwLock<Page>>);

impl Shared {
    /// Replaces the page.
    pub fn set(&self, page: Page) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = page;
    }

    /// A copy of the page.
    pub fn get(&self) -> Page {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The routes.
pub fn router(shared: Shared) -> Router {
    Router::new()
        .route("/livez", get(async || StatusCode::NO_CONTENT))
        .route("/readyz", get(readyz))
        .route("/api/v1/status", get(async |State(shared): State<Shared>| Json(shared.get())))
        .with_state(shared)
}

async fn readyz(State(shared): State<Shared>) -> impl IntoResponse {
    let page = shared.get();
    match (page.ready, page.trouble) {
        (true, _) => (StatusCode::OK, "ready\n".to_owned()),
        (false, Some(trouble)) => (StatusCode::SERVICE_UNAVAILABLE, format!("{trouble}\n")),
        (false, None) => (StatusCode::SERVICE_UNAVAILABLE, "the first tick is not done\n".to_owned()),
    }
}

/// Serves until `stop` is done.
///
/// # Errors
/// When the socket breaks.
pub async fn serve(
    listener: TcpListener,
    shared: Shared,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    axum::serve(listener, router(shared)).with_graceful_shutdown(stop).await
}
