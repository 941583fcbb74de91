//! Attachments: components offered to a daemon that cannot dial this process, by dialling it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use crate::address::addresses_of;
use crate::chance;
use crate::channel::{Dial, reason_of, short};
use crate::error::{Error, Result};
use crate::host::{Host, Offers};
use crate::offer::QUEUE_FACTOR;
use crate::runtime::{block_on, signalled};
use crate::server::GRACE;
use crate::session::Session;
use crate::tls::Tls;
use crate::violation::violations_in;

const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(10);
/// How long a daemon may take to notice that our last connection is dead.
const STALE_NAME: Duration = Duration::from_secs(30);
const MAX_IN_FLIGHT: usize = 256;
const MAX_DOUBLINGS: u32 = 10;

/// Attaches to a daemon until SIGINT or SIGTERM.
///
/// Blocks; [`Attachment`] has more to set, and an asynchronous form.
pub fn attach(offers: impl Into<Offers>, server: impl Into<String>) -> Result<()> {
    Attachment::new(offers, server).attach()
}

/// Offers to a daemon what it then calls over the connection made from here.
///
/// A broken connection is renewed for as long as it takes, with growing pauses.
pub struct Attachment {
    offers: Offers,
    dial: Dial,
    max_in_flight: Option<u32>,
}

impl Attachment {
    /// Attaches to the daemon that listens at `server`. Several daemons of one store are
    /// named with commas, `host:a,host:b`: it is attached to all of them.
    pub fn new(offers: impl Into<Offers>, server: impl Into<String>) -> Self {
        let dial = Dial { target: server.into(), tls: None, token: None };
        Self { offers: offers.into(), dial, max_in_flight: None }
    }

    /// Dials with TLS.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.dial.tls = Some(tls);
        self
    }

    /// Sends the bearer token the daemon wants.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.dial.token = Some(token.into());
        self
    }

    /// Calls the daemon may have outstanding here at once; by default as many
    /// as what is offered runs.
    pub fn max_in_flight(mut self, limit: u32) -> Self {
        self.max_in_flight = Some(limit);
        self
    }

    /// Stays attached until SIGINT or SIGTERM, finishes the calls in progress,
    /// and returns; fails if the daemon refuses it. Blocks, on its own
    /// runtime.
    pub fn attach(self) -> Result<()> {
        block_on(self.run())
    }

    /// Does as [`attach`](Attachment::attach), without blocking.
    pub async fn run(self) -> Result<()> {
        let signalled = signalled()?;
        let attachment = self.start()?;
        tokio::select! {
            result = attachment.ended() => result,
            () = signalled => attachment.stop(GRACE).await,
        }
    }

    /// Starts dialling, and keeps at it, on the current runtime.
    pub fn start(self) -> Result<RunningAttachment> {
        let host = self.offers.into_host()?;
        if self.max_in_flight == Some(0) {
            return Err(Error::NotServable("max_in_flight is 0; it must be at least 1.".into()));
        }
        // A wrong target stays wrong.
        self.dial.connection()?;
        let total = host.total_limit();
        let wanted = self.max_in_flight.map_or(total.min(MAX_IN_FLIGHT), |limit| limit as usize);
        // Never more than run and wait here, or the daemon would be refused.
        let servers = addresses_of(&self.dial.target);
        let limit = wanted.min((total * (1 + QUEUE_FACTOR) / servers.len()).max(1));
        let stopping = CancellationToken::new();
        let (welcome, attached) = watch::channel(None);
        let welcome = Arc::new(welcome);
        let mut links = JoinSet::new();
        for target in servers {
            let keeper = Keeper {
                host: host.clone(),
                dial: Dial { target, ..self.dial.clone() },
                limit,
                stopping: stopping.clone(),
                welcome: welcome.clone(),
                last_seen: None,
                failures: 0,
            };
            links.spawn(keeper.keep_attached());
        }
        drop(welcome);
        let (tell, outcome) = watch::channel(None);
        let keeping = tokio::spawn(async move { tell.send_replace(Some(all_of(links).await)) });
        Ok(RunningAttachment { stopping, attached, outcome, keeping: keeping.abort_handle() })
    }
}

/// An attachment that runs. Dropped, it runs on; [`stop`](RunningAttachment::stop) ends it.
pub struct RunningAttachment {
    stopping: CancellationToken,
    attached: watch::Receiver<Option<String>>,
    outcome: watch::Receiver<Option<Result<()>>>,
    keeping: AbortHandle,
}

impl RunningAttachment {
    /// Waits for the daemon's first welcome, and returns the attachment's id.
    /// Fails if the daemon declines.
    pub async fn attached(&self) -> Result<String> {
        match self.attached.clone().wait_for(Option::is_some).await {
            Ok(id) => Ok(id.clone().unwrap_or_default()),
            Err(_) => Err(match self.ended().await {
                Err(error) => error,
                Ok(()) => Error::unreachable("the attachment ended before it stood."),
            }),
        }
    }

    /// Waits until the attachment is over; fails if the daemon wants none of it.
    pub async fn ended(&self) -> Result<()> {
        let mut outcome = self.outcome.clone();
        match outcome.wait_for(Option::is_some).await {
            Ok(ended) => ended.clone().unwrap_or(Ok(())),
            Err(_) => Ok(()),
        }
    }

    /// Takes no more calls, finishes those in progress within `grace`, and ends.
    pub async fn stop(self, grace: Duration) -> Result<()> {
        self.stopping.cancel();
        match tokio::time::timeout(grace, self.ended()).await {
            Ok(ended) => ended,
            Err(_) => {
                eprintln!("calls in progress did not end in time and are given up");
                self.keeping.abort();
                Ok(())
            }
        }
    }
}

/// Waits for the links to every daemon; one that is refused for good ends the others.
async fn all_of(mut links: JoinSet<Result<()>>) -> Result<()> {
    while let Some(ended) = links.join_next().await {
        if let Ok(refused @ Err(_)) = ended {
            links.shutdown().await;
            return refused;
        }
    }
    Ok(())
}

/// Renews the connection to one daemon whenever it breaks.
struct Keeper {
    host: Arc<Host>,
    dial: Dial,
    limit: usize,
    stopping: CancellationToken,
    welcome: Arc<watch::Sender<Option<String>>>,
    last_seen: Option<Instant>,
    failures: u32,
}

impl Keeper {
    async fn keep_attached(mut self) -> Result<()> {
        while !self.stopping.is_cancelled() {
            if let Err(status) = self.attach_once().await {
                self.judge(&status)?;
            }
            let longest = (BACKOFF_MIN * 2_u32.pow(self.failures)).min(BACKOFF_MAX);
            self.failures = (self.failures + 1).min(MAX_DOUBLINGS);
            // Full jitter, so that many processes do not come back in step.
            let pause = chance::pause(BACKOFF_MIN / 2, longest);
            let _ = tokio::time::timeout(pause, self.stopping.cancelled()).await;
        }
        Ok(())
    }

    /// Fails if trying again cannot help, else says what happened.
    fn judge(&self, status: &Status) -> Result<()> {
        let (server, names) = (&self.dial.target, self.host.names());
        let is_final = match status.code() {
            Code::Unauthenticated
            | Code::PermissionDenied
            | Code::InvalidArgument
            | Code::Unimplemented
            | Code::FailedPrecondition => true,
            Code::AlreadyExists => self.last_seen.is_none_or(|seen| seen.elapsed() > STALE_NAME),
            _ => false,
        };
        let details = short(status);
        if is_final {
            return Err(Error::Refused {
                message: format!("{server} refused the attachment of {names}: {details}"),
                code: status.code(),
                reason: reason_of(status),
                violations: violations_in(status),
            });
        }
        if matches!(self.failures, 0 | MAX_DOUBLINGS) && !self.stopping.is_cancelled() {
            eprintln!("not attached to {server}, trying again: {details}");
        }
        Ok(())
    }

    async fn attach_once(&mut self) -> Result<(), Status> {
        let connection =
            self.dial.connection().map_err(|error| Status::internal(error.to_string()))?;
        let mut session =
            Session::open(connection, &self.host, self.limit, self.stopping.clone()).await?;
        while let Some(welcome) = session.next().await? {
            self.last_seen = Some(Instant::now());
            if let Some(welcome) = welcome {
                self.failures = 0;
                eprintln!("attached {} to {}", self.host.names(), self.dial.target);
                self.welcome.send_replace(Some(welcome.attachment_id));
            }
        }
        Ok(())
    }
}
