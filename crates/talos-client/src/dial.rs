//! Mutual TLS to one address, and nothing behind it.

use std::future::{Ready, ready};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::Code;
use tonic::codegen::http::Uri;
use tower_service::Service;

use crate::access::Access;
use crate::client::Connection;
use crate::endpoint::Endpoint;
use crate::error::{Cause, Failure, NodeError, from_io};
use crate::node::{Dial, Node};

/// Go's gRPC servers hang up on clients that ping more often than every five minutes while nothing is sent.
const PING_INTERVAL: Duration = Duration::from_secs(330);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// A machine that lost its power is noticed by these probes, of which gRPC knows nothing.
const PROBE_AFTER: Duration = Duration::from_secs(30);
const PROBE_INTERVAL: Duration = Duration::from_secs(10);

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// For the connection, TLS and the first answer together.
    pub connect: Duration,
    /// For the answer to a question. An apply brings its own.
    pub request: Duration,
}

/// Dials nodes over the network.
#[derive(Clone, Copy, Debug)]
pub struct Dialer {
    deadlines: Deadlines,
}

impl Dialer {
    /// Dials with these deadlines.
    pub fn new(deadlines: Deadlines) -> Self {
        Self { deadlines }
    }
}

#[async_trait]
impl Dial for Dialer {
    async fn dial(&self, endpoint: &Endpoint, access: &Access) -> Result<Box<dyn Node>, NodeError> {
        let endpoint = *endpoint;
        match timeout(self.deadlines.connect, connect(endpoint, access, self.deadlines.request)).await {
            Ok(Ok(connection)) => Ok(Box::new(connection)),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(NodeError::Unreachable { endpoint, cause: Cause::Deadline }),
        }
    }
}

async fn connect(endpoint: Endpoint, access: &Access, request: Duration) -> Result<Connection, NodeError> {
    let stream = handshake(endpoint, access).await?;
    let unreachable = |cause| NodeError::Unreachable { endpoint, cause };
    let origin: Uri = format!("https://{endpoint}").parse().map_err(|_| unreachable(Cause::Closed))?;
    // TLS is done below; `http` keeps tonic from asking for it again
    let channel = tonic::transport::Endpoint::from_shared(format!("http://{endpoint}"))
        .map_err(|_| unreachable(Cause::Closed))?
        .origin(origin)
        .http2_keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .connect_with_connector(OneConnection(Arc::new(Mutex::new(Some(TokioIo::new(stream))))))
        .await
        .map_err(|_| unreachable(Cause::Closed))?;
    let connection = Connection::new(endpoint, channel, request);
    // in TLS 1.3 a refused client certificate shows only in the first answer
    match connection.ask_version().await {
        Ok(_) => Ok(connection),
        Err(Failure::Answered(Code::Unimplemented, _)) => {
            Err(NodeError::NotATalosNode { endpoint, why: "it does not know Talos' machine service" })
        }
        Err(Failure::NotSent(cause) | Failure::Lost(cause)) => Err(unreachable(cause)),
        Err(Failure::Answered(code @ Code::Unavailable, _)) => Err(unreachable(Cause::Unclear(code))),
        Err(failure) => Err(failure.asked(endpoint, "tell its version")),
    }
}

async fn handshake(endpoint: Endpoint, access: &Access) -> Result<TlsStream<TcpStream>, NodeError> {
    let unreachable = |error: std::io::Error| NodeError::Unreachable { endpoint, cause: from_io(&error) };
    let tcp = TcpStream::connect(endpoint.socket()).await.map_err(unreachable)?;
    tcp.set_nodelay(true).map_err(unreachable)?;
    let probes = TcpKeepalive::new().with_time(PROBE_AFTER).with_interval(PROBE_INTERVAL);
    SockRef::from(&tcp).set_tcp_keepalive(&probes).map_err(unreachable)?;
    let name = ServerName::IpAddress(endpoint.ip().into());
    let stream = match TlsConnector::from(access.tls()).connect(name, tcp).await {
        Ok(stream) => stream,
        Err(error) => {
            return Err(match from_io(&error) {
                Cause::Tls(rustls::Error::InvalidMessage(_)) => {
                    NodeError::NotATalosNode { endpoint, why: "it does not speak TLS" }
                }
                Cause::Tls(rustls::Error::PeerIncompatible(_)) => {
                    NodeError::NotATalosNode { endpoint, why: "it does not speak TLS 1.3" }
                }
                cause => NodeError::Unreachable { endpoint, cause },
            });
        }
    };
    if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
        return Err(NodeError::NotATalosNode { endpoint, why: "it does not speak HTTP/2" });
    }
    Ok(stream)
}

/// The connection that a channel would like to replace is gone, and is not replaced.
#[derive(Debug, thiserror::Error)]
#[error("The connection is gone")]
pub(crate) struct Gone;

/// Hands out one connection, once.
struct OneConnection(Arc<Mutex<Option<TokioIo<TlsStream<TcpStream>>>>>);

impl Service<Uri> for OneConnection {
    type Response = TokioIo<TlsStream<TcpStream>>;
    type Error = Gone;
    type Future = Ready<Result<Self::Response, Gone>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Gone>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(self.0.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or(Gone))
    }
}
