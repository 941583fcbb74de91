//! Connections to the first of several daemons that answers.

use std::io;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use crate::address::Address;

/// How long one of several may take before the next is tried.
const PATIENCE: Duration = Duration::from_secs(3);

/// What is connected: a socket of either kind.
trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Socket for T {}

/// Makes a channel to whichever of the addresses answers first in their order, made when
/// first used and again when lost.
pub(crate) fn first_answering(endpoint: &Endpoint, addresses: Vec<String>) -> Channel {
    let patience = PATIENCE * (addresses.len() as u32 + 1);
    endpoint.clone().connect_timeout(patience).connect_with_connector_lazy(service_fn(move |_| {
        let addresses = addresses.clone();
        async move {
            let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
            for address in &addresses {
                match tokio::time::timeout(PATIENCE, connected(address)).await {
                    Ok(Ok(socket)) => return Ok(TokioIo::new(socket)),
                    Ok(Err(error)) => last = error,
                    Err(_) => last = io::ErrorKind::TimedOut.into(),
                }
            }
            Err(last)
        }
    }))
}

async fn connected(address: &str) -> io::Result<Box<dyn Socket>> {
    match Address::parse(address) {
        Address::Tcp { host, port: Some(port) } => {
            let stream = TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream))
        }
        #[cfg(unix)]
        Address::Unix(path) => Ok(Box::new(tokio::net::UnixStream::connect(path).await?)),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}
