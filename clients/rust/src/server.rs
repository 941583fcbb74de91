//! Servers: processes that a daemon dials.

use std::env;
use std::io::{self, Write};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::service::Routes;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::server::TcpIncoming;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use crate::address::Address;
use crate::channel::{CONNECTION_WINDOW, MAX_MESSAGE_BYTES, STREAM_WINDOW};
use crate::error::{Error, Result};
use crate::host::{Host, Offers};
use crate::pb;
use crate::runtime::{block_on, leave_stdout, signalled};
use crate::services::Services;
use crate::tls::{ServerTls, TokenCheck};

const PROTOCOL_MAJOR: u32 = 1;
/// How long calls in progress have to finish, unless the caller says otherwise.
pub(crate) const GRACE: Duration = Duration::from_secs(20);
/// What is left for connections to close after the last call.
const CLOSING: Duration = Duration::from_millis(500);

/// Serves on a free port of the loopback until SIGINT or SIGTERM.
///
/// Blocks; [`Server`] has more to set, and an asynchronous form.
pub fn serve(offers: impl Into<Offers>) -> Result<()> {
    Server::new(offers).serve()
}

/// Serves what is offered, with health and reflection.
///
/// ```no_run
/// use cbench_client::{Offers, Server, system};
///
/// fn main() -> cbench_client::Result<()> {
///     let offers = Offers::new()
///         .system(system("same", |example, _call| example))
///         .system(system("nothing", |example, _call| example.with("context", "")));
///     Server::new(offers).address("127.0.0.1:50061").serve()
/// }
/// ```
pub struct Server {
    offers: Offers,
    address: String,
    tls: Option<ServerTls>,
    token: Option<String>,
    is_unsafe: bool,
}

impl Server {
    /// Serves on a free port of the loopback, unless told otherwise.
    pub fn new(offers: impl Into<Offers>) -> Self {
        Self {
            offers: offers.into(),
            address: "127.0.0.1:0".into(),
            tls: None,
            token: None,
            is_unsafe: false,
        }
    }

    /// Where to serve: `host:port` or `unix:/path`; port 0 takes a free one.
    pub fn address(mut self, address: impl Into<String>) -> Self {
        self.address = address.into();
        self
    }

    /// Serves with TLS.
    pub fn tls(mut self, tls: ServerTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Wants this bearer token from callers.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Allows a network address without TLS and token.
    pub fn allow_unsafe(mut self) -> Self {
        self.is_unsafe = true;
        self
    }

    /// Serves until SIGINT or SIGTERM, finishes the calls in progress, and returns.
    ///
    /// On port 0, or with `CBENCH_HANDSHAKE=1` in the environment, one line on
    /// stdout says where: `cbench|1|tcp|127.0.0.1:40123`. From then on all that
    /// is printed goes to stderr. Blocks, on its own runtime.
    pub fn serve(self) -> Result<()> {
        block_on(self.run())
    }

    /// Does as [`serve`](Server::serve), without blocking.
    pub async fn run(self) -> Result<()> {
        let signalled = signalled()?;
        let asked = Address::parse(&self.address);
        let server = self.start().await?;
        let is_any_port = matches!(asked, Address::Tcp { port: Some(0), .. });
        if is_any_port || env::var("CBENCH_HANDSHAKE").is_ok_and(|value| value == "1") {
            shake_hands(server.address());
        }
        eprintln!("serving {} on {}", server.host.names(), server.address());
        signalled.await;
        server.stop(GRACE).await;
        Ok(())
    }

    /// Starts listening, and returns once it does. For tests and larger programs.
    pub async fn start(self) -> Result<RunningServer> {
        check_address(&self.address, self.tls.is_some() && self.token.is_some(), self.is_unsafe)?;
        let host = self.offers.into_host()?;
        let calls = TaskTracker::new();
        let services = Services { host: host.clone(), calls: calls.clone() };
        let (routes, names, health) =
            routes(services, TokenCheck::new(self.token.as_deref())).await?;
        let mut builder = tonic::transport::Server::builder()
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            // A caller that vanished without a word must not keep its place.
            .http2_keepalive_interval(Some(Duration::from_secs(30)));
        if let Some(tls) = &self.tls {
            builder = builder.tls_config(tls.config()).map_err(|error| {
                Error::CannotServe(format!("the certificate or key cannot be used: {error}."))
            })?;
        }
        let closing = CancellationToken::new();
        let router = builder.add_routes(routes);
        let closed = closing.clone().cancelled_owned();
        let (address, serving) = match Address::parse(&self.address) {
            Address::Unix(path) => {
                let incoming = unix_socket(&self.address, &path)?;
                let serving = router.serve_with_incoming_shutdown(incoming, closed);
                (self.address, tokio::spawn(serving))
            }
            Address::Tcp { .. } => {
                let listener = TcpListener::bind(&self.address)
                    .await
                    .map_err(|error| cannot_listen(&self.address, &error))?;
                let bound =
                    listener.local_addr().map_err(|error| cannot_listen(&self.address, &error))?;
                let host = self.address.rsplit_once(':').map_or("", |(host, _)| host);
                let address = format!("{host}:{}", bound.port());
                // The builder's own TCP settings do not reach connections accepted here.
                let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
                let serving = router.serve_with_incoming_shutdown(incoming, closed);
                (address, tokio::spawn(serving))
            }
        };
        Ok(RunningServer { address, host, calls, names, health, closing, serving })
    }
}

/// A server that runs. Dropped, it runs on; [`stop`](RunningServer::stop) ends it.
pub struct RunningServer {
    address: String,
    host: std::sync::Arc<Host>,
    calls: TaskTracker,
    names: Vec<&'static str>,
    health: HealthReporter,
    closing: CancellationToken,
    serving: JoinHandle<Result<(), tonic::transport::Error>>,
}

impl RunningServer {
    /// Where it listens, with the real port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Takes no more calls, finishes those in progress within `grace`, and ends.
    pub async fn stop(mut self, grace: Duration) {
        // First, so that NOT_SERVING is true when it is seen.
        self.host.draining.cancel();
        for name in &self.names {
            self.health.set_service_status(*name, ServingStatus::NotServing).await;
        }
        self.calls.close();
        // Health is answered until the last call is, so that a draining
        // server is not taken for a dead one.
        if tokio::time::timeout(grace, self.calls.wait()).await.is_err() {
            eprintln!("calls in progress did not end in time and are given up");
        }
        self.host.given_up.cancel();
        self.closing.cancel();
        if tokio::time::timeout(CLOSING, &mut self.serving).await.is_err() {
            self.serving.abort();
        }
        if let Address::Unix(path) = Address::parse(&self.address) {
            // Gone already is as good.
            let _ = std::fs::remove_file(path);
        }
    }
}

async fn routes(
    services: Services,
    check: TokenCheck,
) -> Result<(Routes, Vec<&'static str>, HealthReporter)> {
    use pb::evaluator_server::{EvaluatorServer, SERVICE_NAME as EVALUATOR};
    use pb::memory_system_server::{MemorySystemServer, SERVICE_NAME as MEMORY};
    use pb::system_server::{SERVICE_NAME as SYSTEM, SystemServer};

    let health = HealthReporter::new();
    let health_server = tonic_health::pb::health_server::HealthServer::new(
        tonic_health::server::HealthService::from_health_reporter(health.clone()),
    );
    let mut routes = Routes::new(health_server);
    let mut names = vec![""];
    macro_rules! add {
        ($infos:ident, $server:ident, $name:ident) => {
            if !services.host.$infos.is_empty() {
                let server = $server::new(services.clone())
                    .max_decoding_message_size(MAX_MESSAGE_BYTES)
                    .max_encoding_message_size(MAX_MESSAGE_BYTES);
                routes = routes.add_service(InterceptedService::new(server, check.clone()));
                names.push($name);
            }
        };
    }
    add!(systems, SystemServer, SYSTEM);
    add!(memory_systems, MemorySystemServer, MEMORY);
    add!(evaluators, EvaluatorServer, EVALUATOR);
    let reflection = || {
        let builder = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(pb::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .with_service_name("grpc.health.v1.Health");
        names.iter().skip(1).fold(builder, |builder, name| builder.with_service_name(*name))
    };
    let failed = |error| Error::CannotServe(format!("cannot describe the services: {error}."));
    let newest = reflection().build_v1().map_err(failed)?;
    let older = reflection().build_v1alpha().map_err(failed)?;
    routes = routes
        .add_service(InterceptedService::new(newest, check.clone()))
        .add_service(InterceptedService::new(older, check));
    for name in &names {
        health.set_service_status(*name, ServingStatus::Serving).await;
    }
    Ok((routes, names, health))
}

fn shake_hands(address: &str) {
    let place = match Address::parse(address) {
        Address::Unix(path) => format!("unix|{path}"),
        Address::Tcp { .. } => format!("tcp|{address}"),
    };
    let mut stdout = io::stdout();
    // A parent process that does not read needs no handshake.
    let _ = writeln!(stdout, "cbench|{PROTOCOL_MAJOR}|{place}").and_then(|()| stdout.flush());
    leave_stdout();
}

fn check_address(text: &str, is_secured: bool, is_unsafe: bool) -> Result<()> {
    let address = Address::parse(text);
    if matches!(address, Address::Tcp { port: None, .. }) {
        let message = format!("\"{text}\" has no port. Give host:port, or unix:/path.");
        return Err(Error::CannotServe(message));
    }
    if address.is_loopback() || is_secured || is_unsafe {
        return Ok(());
    }
    Err(Error::CannotServe(format!(
        "{text} can be reached from the network, where anybody could call what is served. Set tls() \
         and token(), serve on 127.0.0.1, or accept it with allow_unsafe()."
    )))
}

fn cannot_listen(address: &str, error: &io::Error) -> Error {
    Error::CannotServe(format!(
        "cannot listen on {address}: {error}. Choose another address, or port 0 for any free one."
    ))
}

#[cfg(unix)]
fn unix_socket(address: &str, path: &str) -> Result<tokio_stream::wrappers::UnixListenerStream> {
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(Error::CannotServe(format!(
            "{address} is taken by another server. Stop it, or choose another path."
        )));
    }
    // Left behind by a server that has ended.
    let _ = std::fs::remove_file(path);
    let listener =
        tokio::net::UnixListener::bind(path).map_err(|error| cannot_listen(address, &error))?;
    Ok(tokio_stream::wrappers::UnixListenerStream::new(listener))
}

#[cfg(not(unix))]
fn unix_socket(address: &str, _path: &str) -> Result<TcpIncoming> {
    let message = format!("{address}: there are no unix sockets here. Give host:port.");
    Err(Error::CannotServe(message))
}
