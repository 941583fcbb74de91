//! A run, followed through lost connections: each stored event once and in order.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio_stream::Stream;
use tonic::{Status, Streaming};

use crate::bench::Bench;
use crate::chance;
use crate::channel::{finds_nobody, is_lost};
use crate::error::Result;
use crate::pb;
use crate::pb::run_event::Kind;

const FIRST_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(2);
/// How long a first contact that breaks off, unlike one that finds no daemon, is tried again.
const FIRST_CONTACT: Duration = Duration::from_secs(10);

/// The events of one run, to its end. Made by [`Bench::evaluate`] and [`Bench::watch`].
///
/// ```no_run
/// # async fn follow(bench: cbench_client::Bench) -> cbench_client::Result<()> {
/// use cbench_client::pb::run_event::Kind;
///
/// let mut events = bench.watch("20261116-033159-6155cbd4d", 0);
/// while let Some(event) = events.next().await? {
///     if let Some(Kind::Row(row)) = event.kind {
///         println!("{} {:?}", row.system, row.scores);
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// It is a `Stream` of results as well, for the adapters of the crates
/// futures and tokio-stream. After an error there is nothing more. To give up
/// waiting, drop it, or the future of `next`, as `tokio::time::timeout` does;
/// `next` after that goes on where it was.
pub struct Events {
    // Away while its next event is awaited.
    follower: Option<Box<Follower>>,
    next: Option<Pin<Box<Awaited>>>,
}

type Awaited = dyn Future<Output = (Box<Follower>, Result<Option<pb::RunEvent>>)> + Send;

impl Events {
    pub(crate) fn of_new_run(bench: Bench, spec: pb::RunSpec) -> Self {
        let request_id = chance::uuid();
        let start = pb::EvaluateRequest { spec: Some(spec), request_id, omit_rows: false };
        Self::of(Follower { start: Some(start), ..Follower::new(bench, String::new(), 0) })
    }

    pub(crate) fn of_run(bench: Bench, run_id: String, after: i64) -> Self {
        Self::of(Follower::new(bench, run_id, after))
    }

    fn of(follower: Follower) -> Self {
        Self { follower: Some(Box::new(follower)), next: None }
    }

    /// Leaves rows out, for a caller who only wants progress and the end.
    pub fn without_rows(self) -> Self {
        self.set(|follower| follower.omit_rows = true)
    }

    /// Lets rows carry the processed output. Only `watch` can.
    pub fn with_processed(self) -> Self {
        self.set(|follower| follower.include_processed = true)
    }

    /// Names the request, so that repeating it follows the first run. Only for `evaluate`.
    pub fn request_id(self, id: impl Into<String>) -> Self {
        self.set(|follower| {
            if let Some(start) = &mut follower.start {
                start.request_id = id.into();
            }
        })
    }

    /// Bounds how long the daemon may be away; by default without limit.
    pub fn reconnect_for(self, limit: Duration) -> Self {
        self.set(|follower| follower.reconnect_for = Some(limit))
    }

    /// Gives the next event; `None` when the run has ended.
    pub async fn next(&mut self) -> Result<Option<pb::RunEvent>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await.transpose()
    }

    /// Follows the run to its end, and returns it as it ended.
    pub async fn finish(mut self) -> Result<pb::Run> {
        let mut last = None;
        let mut seen = None;
        loop {
            if let Some(follower) = &self.follower {
                seen = Some((follower.bench.clone(), follower.run_id.clone()));
            }
            match self.next().await? {
                Some(pb::RunEvent { kind: Some(Kind::Finished(run)), .. }) => last = Some(run),
                Some(_) => {}
                None => break,
            }
        }
        match (last, seen) {
            (None, Some((bench, run_id))) => bench.get(run_id).await,
            (last, _) => Ok(last.unwrap_or_default()),
        }
    }

    fn set(mut self, change: impl FnOnce(&mut Follower)) -> Self {
        if let Some(follower) = &mut self.follower {
            change(follower);
        }
        self
    }
}

impl Stream for Events {
    type Item = Result<pb::RunEvent>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(event) = self.follower.as_mut().and_then(|follower| follower.received()) {
            return Poll::Ready(Some(Ok(event)));
        }
        if let Some(mut follower) = self.follower.take() {
            self.next = Some(Box::pin(async move {
                let event = follower.next().await;
                (follower, event)
            }));
        }
        let Some(next) = &mut self.next else { return Poll::Ready(None) };
        let (follower, event) = ready!(next.as_mut().poll(context));
        self.next = None;
        if let Ok(Some(_)) = event {
            self.follower = Some(follower);
        }
        Poll::Ready(event.transpose())
    }
}

/// Where in the run's events its reader is.
struct Follower {
    bench: Bench,
    start: Option<pb::EvaluateRequest>,
    run_id: String,
    last: i64,
    omit_rows: bool,
    include_processed: bool,
    reconnect_for: Option<Duration>,
    is_finished: bool,
    stream: Option<EventStream>,
    ready: VecDeque<pb::RunEvent>,
    alive: Instant,
    delay: Duration,
}

enum EventStream {
    Evaluate(Streaming<pb::EvaluateResponse>),
    Watch(Streaming<pb::WatchRunResponse>),
}

impl Follower {
    fn new(bench: Bench, run_id: String, after: i64) -> Self {
        Self {
            bench,
            start: None,
            run_id,
            last: after,
            omit_rows: false,
            include_processed: false,
            reconnect_for: None,
            is_finished: false,
            stream: None,
            ready: VecDeque::new(),
            alive: Instant::now(),
            delay: FIRST_DELAY,
        }
    }

    /// Gives the next event that is already here.
    fn received(&mut self) -> Option<pb::RunEvent> {
        while let Some(event) = self.ready.pop_front() {
            if self.is_new(&event) {
                return Some(event);
            }
        }
        None
    }

    async fn next(&mut self) -> Result<Option<pb::RunEvent>> {
        // Time that the reader takes does not count as silence of the daemon.
        self.alive = Instant::now();
        loop {
            if let Some(event) = self.received() {
                return Ok(Some(event));
            }
            match self.receive().await {
                Ok(true) => {
                    self.bench.has_answered.store(true, Ordering::Relaxed);
                    (self.alive, self.delay) = (Instant::now(), FIRST_DELAY);
                    continue;
                }
                Ok(false) => return Ok(None),
                Err(_) if self.is_finished => return Ok(None),
                Err(status) => self.check_wait(&status)?,
            }
            tokio::time::sleep(self.delay).await;
            self.delay = (self.delay * 2).min(MAX_DELAY);
        }
    }

    /// Receives events into `ready`; false when the run is over.
    async fn receive(&mut self) -> Result<bool, Status> {
        if self.stream.is_none() {
            self.stream = Some(self.open().await?);
        }
        let events = match &mut self.stream {
            Some(EventStream::Evaluate(stream)) => {
                stream.message().await.map(|message| message.map(|batch| batch.events))
            }
            Some(EventStream::Watch(stream)) => {
                stream.message().await.map(|message| message.map(|batch| batch.events))
            }
            None => Ok(None),
        };
        match events {
            Ok(Some(events)) => {
                self.ready.extend(events);
                Ok(true)
            }
            Ok(None) => {
                self.stream = None;
                if self.is_finished || self.is_over().await? {
                    return Ok(false);
                }
                Err(Status::unavailable("the daemon ended the stream before the run did"))
            }
            Err(status) => {
                self.stream = None;
                Err(status)
            }
        }
    }

    async fn open(&self) -> Result<EventStream, Status> {
        let mut client = self.bench.client();
        match &self.start {
            Some(start) if self.run_id.is_empty() => {
                let request = pb::EvaluateRequest { omit_rows: self.omit_rows, ..start.clone() };
                Ok(EventStream::Evaluate(client.evaluate(request).await?.into_inner()))
            }
            _ => {
                let request = pb::WatchRunRequest {
                    run_id: self.run_id.clone(),
                    after_sequence: self.last,
                    omit_rows: self.omit_rows,
                    include_processed: self.include_processed,
                };
                Ok(EventStream::Watch(client.watch_run(request).await?.into_inner()))
            }
        }
    }

    async fn is_over(&self) -> Result<bool, Status> {
        let mut client = self.bench.client();
        let request = pb::GetRunRequest { run_id: self.run_id.clone() };
        let run = self.bench.bounded(client.get_run(request)).await?.run.unwrap_or_default();
        let is_final = matches!(
            run.state(),
            pb::RunState::Succeeded | pb::RunState::Failed | pb::RunState::Cancelled
        );
        Ok(is_final && run.last_sequence <= self.last)
    }

    fn check_wait(&self, status: &Status) -> Result<()> {
        let mut limit = self.reconnect_for;
        let mut may_wait = is_lost(status);
        if !self.bench.has_answered.load(Ordering::Relaxed) {
            may_wait &= !finds_nobody(status);
            limit = Some(limit.map_or(FIRST_CONTACT, |limit| limit.min(FIRST_CONTACT)));
        }
        if may_wait && limit.is_none_or(|limit| self.alive.elapsed() < limit) {
            return Ok(());
        }
        Err(self.bench.dial.explain(status))
    }

    fn is_new(&mut self, event: &pb::RunEvent) -> bool {
        if event.sequence != 0 {
            if event.sequence <= self.last {
                return false;
            }
            self.last = event.sequence;
            // A run that is resumed goes on after it has finished.
            self.is_finished = matches!(event.kind, Some(Kind::Finished(_)));
        }
        if let Some(Kind::Accepted(run)) = &event.kind {
            self.run_id.clone_from(&run.run_id);
        }
        true
    }
}
