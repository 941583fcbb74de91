//! Calls that came over one stream, and their outcomes on the way back over it.
//!
//! A stream that brings more calls than its system can queue is not read on, so
//! HTTP/2 holds back the sender. Since a cancellation may be stuck behind those
//! calls, reading resumes after a second even so, and calls that still find no
//! room are refused as retryable.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use prost::Message;
use tokio::sync::{Notify, mpsc};
use tokio_stream::Stream;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::call::Trace;
use crate::failure::Failure;
use crate::host::Host;
use crate::pb;
use crate::work::{Reply, Work};

const BATCH_BYTES: usize = 1_000_000;
/// What may wait to be written before no more is read from the same peer.
const BACKLOG_BYTES: usize = 16 * BATCH_BYTES;
const ROOM_WAIT: Duration = Duration::from_secs(1);

/// A message for one outcome.
pub(crate) trait Outcome: Message + Sized + 'static {
    /// Says how a call ended.
    fn of(call_id: String, result: Result<Reply, pb::Failure>) -> Self;
}

/// The calls of one stream. Dropped, it is closed.
pub(crate) struct Lane<O> {
    host: Arc<Host>,
    shared: Arc<Shared>,
    // None once closed; then only the calls held keep the channel open.
    open: Option<mpsc::UnboundedSender<O>>,
    outcomes: mpsc::WeakUnboundedSender<O>,
}

/// What the two sides of a lane share.
struct Shared {
    calls: Mutex<HashMap<String, CancellationToken>>,
    held: AtomicUsize,
    backlog: AtomicUsize,
    written: Notify,
    peer_is_gone: CancellationToken,
}

/// Opens a lane. Dropping the `Batches`, because the peer is gone, cancels its calls.
pub(crate) fn open<O: Outcome>(host: Arc<Host>) -> (Lane<O>, Batches<O>) {
    let (outcomes, ready) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        calls: Mutex::default(),
        held: AtomicUsize::new(0),
        backlog: AtomicUsize::new(0),
        written: Notify::new(),
        peer_is_gone: host.given_up.child_token(),
    });
    let peer = shared.peer_is_gone.clone().drop_guard();
    let batches = Batches { ready, waiting: None, shared: shared.clone(), _peer: peer };
    (Lane { host, shared, outcomes: outcomes.downgrade(), open: Some(outcomes) }, batches)
}

impl<O: Outcome> Lane<O> {
    /// How many calls have no outcome yet.
    pub fn held(&self) -> usize {
        self.shared.held.load(Ordering::Acquire)
    }

    /// Takes no more calls: the outcomes end when those held are answered.
    pub fn close(&mut self) {
        self.open = None;
    }

    /// Is cancelled when the outcomes are no longer read.
    pub fn peer_is_gone(&self) -> CancellationToken {
        self.shared.peer_is_gone.clone()
    }

    /// Starts a call, or answers that it cannot be.
    ///
    /// Returns false if it waited and no room came: the rest of the same
    /// message need not wait again.
    pub async fn start(
        &self,
        work: Work,
        call_id: String,
        timeout: Option<prost_types::Duration>,
        trace: Trace,
        may_wait: bool,
    ) -> bool {
        let origin = work.kind().origin();
        let Some(outcomes) = self.open.clone() else {
            self.fail(call_id, &Failure::shutting_down(), origin);
            return true;
        };
        let accepted = match self.host.accept(&work, &call_id) {
            Ok(accepted) => accepted,
            Err(failure) => {
                self.fail(call_id, &failure, origin);
                return true;
            }
        };
        let mut admitted = accepted.offer.admit();
        if admitted.is_none() && may_wait {
            admitted = accepted.offer.admit_within(ROOM_WAIT).await;
        }
        let Some(admitted) = admitted else {
            self.fail(call_id, &accepted.offer.full(), origin);
            return false;
        };
        let caller = self.shared.peer_is_gone.child_token();
        if !call_id.is_empty() {
            self.shared.calls().insert(call_id.clone(), caller.clone());
        }
        let held = Held::new(self.shared.clone());
        let timeout = timeout.map(crate::convert::duration_from_proto);
        let running = accepted.run(work, admitted, timeout, trace, caller.clone());
        let shared = self.shared.clone();
        tokio::spawn(async move {
            let result = running.await;
            shared.calls().remove(&call_id);
            // Before the outcome, which the peer may answer with the next call.
            drop(held);
            if !caller.is_cancelled() {
                let result = result.map_err(|failure| failure.to_proto(origin));
                shared.put(&outcomes, O::of(call_id, result));
            }
        });
        true
    }

    /// Gives up a call; it gets no outcome. An unknown one is ignored.
    pub fn cancel(&self, call_id: &str) {
        if let Some(caller) = self.shared.calls().remove(call_id) {
            caller.cancel();
        }
    }

    /// Answers a call that is not made.
    pub fn fail(&self, call_id: String, failure: &Failure, origin: pb::FailureOrigin) {
        self.put(O::of(call_id, Err(failure.to_proto(origin))));
    }

    /// Puts something other than an outcome in line.
    pub fn put(&self, message: O) {
        if let Some(outcomes) = self.outcomes.upgrade() {
            self.shared.put(&outcomes, message);
        }
    }

    /// Waits while the peer does not read what it asked for.
    pub async fn backlog_written(&self) {
        while self.shared.backlog.load(Ordering::Acquire) > BACKLOG_BYTES {
            self.shared.written.notified().await;
        }
    }
}

impl Shared {
    fn calls(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put<O: Message>(&self, outcomes: &mpsc::UnboundedSender<O>, message: O) {
        self.backlog.fetch_add(message.encoded_len(), Ordering::AcqRel);
        // The peer is gone.
        let _ = outcomes.send(message);
    }
}

/// Counts one call for as long as it is held.
struct Held(Arc<Shared>);

impl Held {
    fn new(shared: Arc<Shared>) -> Self {
        shared.held.fetch_add(1, Ordering::AcqRel);
        Self(shared)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Outcomes as they become ready: each item takes all there are, up to
/// about 1 MB, and never waits for more. Ends when the lane is dropped and
/// every call it held is answered.
pub(crate) struct Batches<O> {
    ready: mpsc::UnboundedReceiver<O>,
    waiting: Option<(usize, O)>,
    shared: Arc<Shared>,
    _peer: DropGuard,
}

impl<O: Outcome + Unpin> Stream for Batches<O> {
    type Item = Vec<O>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Vec<O>>> {
        let (mut batch, mut size) = (Vec::new(), 0);
        loop {
            let (length, outcome) = match self.waiting.take() {
                Some(waiting) => waiting,
                None => match self.ready.poll_recv(context) {
                    Poll::Ready(Some(outcome)) => (outcome.encoded_len(), outcome),
                    Poll::Ready(None) if batch.is_empty() => return Poll::Ready(None),
                    Poll::Pending if batch.is_empty() => return Poll::Pending,
                    Poll::Ready(None) | Poll::Pending => break,
                },
            };
            if !batch.is_empty() && size + length > BATCH_BYTES {
                self.waiting = Some((length, outcome));
                break;
            }
            size += length;
            batch.push(outcome);
        }
        self.shared.backlog.fetch_sub(size, Ordering::AcqRel);
        self.shared.written.notify_one();
        Poll::Ready(Some(batch))
    }
}
