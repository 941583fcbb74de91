//! An offer: one served object, its calls at once, those that wait, and those in flight.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::call::{Ticket, Trace};
use crate::failure::Failure;
use crate::info::Info;
use crate::trace::Caught;
use crate::work::{Kind, Reply, Served, Work};

/// Calls that may wait, as a multiple of those that may run.
pub(crate) const QUEUE_FACTOR: usize = 4;
/// Calls that run at once by default.
const DEFAULT_CONCURRENCY: usize = 64;
/// The largest message, minus what frames a result in it.
const MAX_RESULT: usize = crate::channel::MAX_MESSAGE_BYTES - 64;

/// One served object: runs up to its limit at once, and queues a bounded number more.
pub(crate) struct Offer {
    pub name: String,
    pub kind: Kind,
    pub limit: usize,
    served: Arc<dyn Served>,
    places: Arc<Semaphore>,
    room: Arc<Semaphore>,
    in_flight: Mutex<HashSet<String>>,
}

impl Offer {
    pub fn new(info: &Info, kind: Kind, served: Arc<dyn Served>) -> Arc<Self> {
        let limit = info.max_concurrency.map_or(DEFAULT_CONCURRENCY, |limit| limit as usize);
        let limit = limit.min(Semaphore::MAX_PERMITS / (1 + QUEUE_FACTOR));
        Arc::new(Self {
            name: info.name.clone(),
            kind,
            limit,
            served,
            places: Arc::new(Semaphore::new(limit)),
            room: Arc::new(Semaphore::new(limit * (1 + QUEUE_FACTOR))),
            in_flight: Mutex::default(),
        })
    }

    /// Takes a call in, if there is room for it.
    pub fn admit(&self) -> Option<OwnedSemaphorePermit> {
        self.room.clone().try_acquire_owned().ok()
    }

    /// Waits for room, but not for long.
    pub async fn admit_within(&self, limit: Duration) -> Option<OwnedSemaphorePermit> {
        let waiting = self.room.clone().acquire_owned();
        tokio::time::timeout(limit, waiting).await.ok()?.ok()
    }

    /// Says that there is no room.
    pub fn full(&self) -> Failure {
        let message = format!(
            "\"{}\" runs {} calls at once and has {} more waiting. Send fewer, or try again later.",
            self.name,
            self.limit,
            self.limit * QUEUE_FACTOR
        );
        Failure::new("RESOURCE_EXHAUSTED", message).retryable()
    }

    /// Claims a call id, until the claim is dropped. An empty one is never taken.
    pub fn claim(self: &Arc<Self>, id: &str) -> Result<Claim, Failure> {
        if !id.is_empty() && !self.ids(|ids| ids.insert(id.to_string())) {
            let message = format!("call \"{id}\" is still in flight");
            return Err(Failure::new("ALREADY_EXISTS", message));
        }
        Ok(Claim { offer: self.clone(), id: id.to_string() })
    }

    /// Answers a call that was taken in. `caller` is cancelled when it no longer waits.
    ///
    /// The outcome and the end of user code are two things: a cancelled or
    /// overdue call has its outcome at once, while a thread may run on.
    pub async fn run(
        self: Arc<Self>,
        work: Work,
        claim: Claim,
        admitted: OwnedSemaphorePermit,
        timeout: Option<Duration>,
        trace: Trace,
        caller: CancellationToken,
    ) -> Result<Reply, Failure> {
        // One that is too far away to be told is none.
        let deadline = timeout.and_then(|span| Instant::now().checked_add(span));
        let gone = caller.child_token();
        let _told = gone.clone().drop_guard();
        let ticket = Ticket { id: claim.id.clone(), deadline, gone, trace, places: vec![admitted] };
        tokio::select! {
            biased;
            () = caller.cancelled() => Err(Failure::new("CANCELLED", "the caller gave up")),
            () = passed(deadline) => {
                Err(Failure::new("DEADLINE_EXCEEDED", "no answer within the time the caller gave"))
            }
            outcome = self.answer(work, ticket) => outcome.and_then(sendable),
        }
    }

    async fn answer(&self, work: Work, mut ticket: Ticket) -> Result<Reply, Failure> {
        let place = self.places.clone().acquire_owned().await;
        ticket.places.extend(place);
        let user_code = Caught(self.served.clone().answer(work, ticket));
        // A separate task: user code that never yields must not delay its own deadline.
        let running = AbortOnDropHandle::new(tokio::spawn(user_code));
        running.await.unwrap_or_else(|_| Err(Failure::shutting_down()))
    }

    fn ids<T>(&self, change: impl FnOnce(&mut HashSet<String>) -> T) -> T {
        change(&mut self.in_flight.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A call id in use.
pub(crate) struct Claim {
    offer: Arc<Offer>,
    id: String,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.offer.ids(|ids| ids.remove(&self.id));
    }
}

async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

fn sendable(reply: Reply) -> Result<Reply, Failure> {
    let size = reply.encoded_len();
    if size <= MAX_RESULT {
        return Ok(reply);
    }
    let limit = crate::channel::MAX_MESSAGE_BYTES;
    let message = format!("the result has {size} bytes, and a message holds {limit}");
    Err(Failure::new("RESULT_TOO_LARGE", message))
}
