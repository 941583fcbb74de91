//! Connections to a daemon: sizes, keepalive, TLS and the bearer token in one place.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::address::{Address, addresses_of};
use crate::diagnosis;
use crate::error::{Error, Result};
use crate::several::first_answering;
use crate::status::REASON;
use crate::tls::{Tls, TokenSender, check_token};
use crate::violation::violations_in;

/// The largest message either way.
pub(crate) const MAX_MESSAGE_BYTES: usize = 128 * 1024 * 1024;
/// HTTP/2 windows: with the default of 64 kB a large example crawls.
pub(crate) const STREAM_WINDOW: u32 = 4 * 1024 * 1024;
pub(crate) const CONNECTION_WINDOW: u32 = 16 * 1024 * 1024;

/// A connection on which every call carries the token.
pub(crate) type Connection = InterceptedService<Channel, TokenSender>;

/// How to reach a daemon.
#[derive(Clone, Debug)]
pub(crate) struct Dial {
    pub target: String,
    pub tls: Option<Tls>,
    pub token: Option<String>,
}

impl Dial {
    /// Prepares a connection, which is made when first used and again when lost.
    pub fn connection(&self) -> Result<Connection> {
        let addresses = addresses_of(&self.target);
        let mut endpoints = Vec::new();
        for address in &addresses {
            check_token(address, self.tls.as_ref(), self.token.as_deref())?;
            endpoints.push(self.endpoint(address)?);
        }
        let channel = match endpoints.as_slice() {
            [endpoint] => endpoint.connect_lazy(),
            several => first_answering(&several[0], addresses),
        };
        Ok(InterceptedService::new(channel, TokenSender::new(self.token.as_deref())?))
    }

    fn endpoint(&self, address: &str) -> Result<Endpoint> {
        let uri = match Address::parse(address) {
            Address::Unix(path) => format!("unix:{path}"),
            Address::Tcp { port: None, .. } => {
                let message = format!("{address} names no port. Write it as host:port.");
                return Err(Error::unreachable(message));
            }
            Address::Tcp { host, port: Some(port) } => {
                let scheme = if self.tls.is_some() { "https" } else { "http" };
                let host = if host.contains(':') { format!("[{host}]") } else { host };
                format!("{scheme}://{host}:{port}")
            }
        };
        let endpoint = Endpoint::from_shared(uri).map_err(|error| {
            Error::unreachable(format!("\"{address}\" is not an address to dial: {error}."))
        })?;
        let endpoint = endpoint
            .connect_timeout(Duration::from_secs(5))
            .http2_keep_alive_interval(Duration::from_secs(30))
            .keep_alive_timeout(Duration::from_secs(10))
            .keep_alive_while_idle(true)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .tcp_nodelay(true);
        match &self.tls {
            None => Ok(endpoint),
            Some(tls) => tls.secure(endpoint).map_err(|error| {
                Error::unreachable(format!(
                    "the certificates for {address} cannot be used: {}.",
                    causes(&*error)
                ))
            }),
        }
    }

    /// Says why a call failed: no daemon there, or a refusal.
    pub fn explain(&self, status: &Status) -> Error {
        let target = &self.target;
        let details = short(status);
        let unreachable =
            |message| Error::Unreachable { message, source: Some(Arc::new(status.clone())) };
        let refused = |message| Error::Refused {
            message,
            code: status.code(),
            reason: reason_of(status),
            violations: violations_in(status),
        };
        match status.code() {
            Code::Unauthenticated if self.token.is_some() => {
                refused(format!("{target} refused the token it was given. Check the token."))
            }
            Code::Unauthenticated => refused(format!(
                "{target} wants a token and none was given. Set it with token(...)."
            )),
            Code::Unimplemented if status.metadata().get(REASON).is_none() => unreachable(format!(
                "a gRPC server answers at {target}, but it has no such method: it is not a cbench \
                 daemon, or an older one. Check the address, or update the daemon."
            )),
            Code::DeadlineExceeded => unreachable(format!(
                "{target} did not answer in time. Is the process busy or stopped?"
            )),
            _ if is_lost(status) => {
                unreachable(diagnosis::unreachable(target, status, self.tls.is_some()))
            }
            _ => refused(details),
        }
    }
}

/// Whether the connection broke, rather than the other side declining.
pub(crate) fn is_lost(status: &Status) -> bool {
    match status.code() {
        Code::Unavailable | Code::Cancelled => true,
        // tonic's words for a connection that ended in the middle of a call.
        Code::Internal | Code::Unknown => status.source().is_some(),
        _ => false,
    }
}

/// Whether there was nothing to connect to.
pub(crate) fn finds_nobody(status: &Status) -> bool {
    chain(status).any(|cause| cause.is::<tonic::ConnectError>())
}

/// The text of a status, or of its cause where it has none.
pub(crate) fn short(status: &Status) -> String {
    match (status.message(), status.source()) {
        ("" | "transport error" | "tcp connect error", Some(cause)) => causes(cause),
        ("", None) => format!("{:?} without a word", status.code()),
        (text, _) => text.trim_end_matches(['.', ' ']).to_string(),
    }
}

/// The stable reason of a status: its own, else the name of its code.
pub(crate) fn reason_of(status: &Status) -> String {
    let reason = status.metadata().get(REASON).and_then(|text| text.to_str().ok());
    reason.map_or_else(|| upper_snake(status.code()), str::to_string)
}

fn upper_snake(code: Code) -> String {
    let mut text = String::new();
    for letter in format!("{code:?}").chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(letter.to_ascii_uppercase());
    }
    text
}

pub(crate) fn causes(error: &(dyn StdError + 'static)) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut cause = Some(error);
    while let Some(inner) = cause {
        let text = inner.to_string();
        if !texts.last().is_some_and(|last| last.contains(&text)) {
            texts.push(text);
        }
        cause = inner.source();
    }
    texts.join(": ")
}

pub(crate) fn chain(status: &Status) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    std::iter::successors(status.source(), |&cause| cause.source())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_spelled_as_the_contract_spells_reasons() {
        assert_eq!(upper_snake(Code::NotFound), "NOT_FOUND");
        assert_eq!(upper_snake(Code::Internal), "INTERNAL");
    }
}
