//! gRPC methods of a served process: decode, hand to the host, encode.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio_stream::Stream;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tonic::{Request, Response, Status, Streaming};

use crate::call::Trace;
use crate::failure::Failure;
use crate::host::{Host, SDK};
use crate::lane::{self, Batches, Lane, Outcome};
use crate::pb;
use crate::status::{status_of, timeout_of, trace_of};
use crate::work::{Kind, Reply, Work};

/// Every service of a host. Each call in progress holds a token of `calls`.
#[derive(Clone)]
pub(crate) struct Services {
    pub host: Arc<Host>,
    pub calls: TaskTracker,
}

type Answered<T> = Result<Response<T>, Status>;
type Outcomes<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Services {
    async fn run<M>(&self, request: Request<M>, work: fn(M) -> Work) -> Result<Reply, Status> {
        let _in_progress = self.calls.token();
        let timeout = timeout_of(request.metadata()).map(before_tonic);
        let trace = trace_of(request.metadata());
        let work = work(request.into_inner());
        let origin = work.kind().origin();
        let answer = self.host.run(work, timeout, trace).await;
        answer.map_err(|failure| status_of(&failure, origin))
    }

    fn stream<M, O, R>(
        &self,
        request: Request<Streaming<M>>,
        kind: Kind,
        parts: fn(M) -> StreamParts,
        message: fn(Vec<O>) -> R,
    ) -> Answered<Outcomes<R>>
    where
        M: Send + 'static,
        O: Outcome + Unpin,
        R: Send + 'static,
    {
        let (lane, batches) = lane::open::<O>(self.host.clone());
        let ending = Arc::new(Mutex::new(None));
        let answers =
            Answers { batches, message, ending: ending.clone(), _in_progress: self.calls.token() };
        let host = self.host.clone();
        tokio::spawn(async move {
            let end = read(request.into_inner(), &lane, &host, parts).await;
            let status = end.map(|failure| status_of(&failure, kind.origin()));
            *ending.lock().unwrap_or_else(PoisonError::into_inner) = status;
            // Only now: the end of the lane is what shows the status.
            drop(lane);
        });
        Ok(Response::new(Box::pin(answers)))
    }
}

/// Takes a little off: tonic ends an overdue call too, with CANCELLED, and ours is to be first.
fn before_tonic(timeout: Duration) -> Duration {
    timeout - (timeout / 10).min(Duration::from_millis(3))
}

/// What one call of a stream asks for: the work, its id, its time and its trace context.
type StreamedCall = (Work, String, Option<prost_types::Duration>, Trace);

/// What a message of a stream asks for.
struct StreamParts {
    calls: Vec<StreamedCall>,
    cancelled: Vec<String>,
}

/// Reads a stream to its end; returns why it was not a good one.
async fn read<M, O: Outcome>(
    mut stream: Streaming<M>,
    lane: &Lane<O>,
    host: &Host,
    parts: fn(M) -> StreamParts,
) -> Option<Failure> {
    let gone = lane.peer_is_gone();
    loop {
        let message = tokio::select! {
            biased;
            () = gone.cancelled() => return None,
            () = host.draining.cancelled() => return Some(Failure::shutting_down()),
            message = stream.message() => message,
        };
        let asked = match message {
            Ok(Some(message)) => parts(message),
            Ok(None) => return None,
            Err(status) => return Some(Failure::invalid(status.message())),
        };
        let mut may_wait = true;
        for (work, call_id, timeout, trace) in asked.calls {
            may_wait &= lane.start(work, call_id, timeout, trace, may_wait).await;
        }
        for call_id in asked.cancelled {
            lane.cancel(&call_id);
        }
        tokio::select! {
            () = gone.cancelled() => return None,
            () = lane.backlog_written() => {}
        }
    }
}

/// The outcomes of a stream, then its status.
struct Answers<O, R> {
    batches: Batches<O>,
    message: fn(Vec<O>) -> R,
    ending: Arc<Mutex<Option<Status>>>,
    _in_progress: TaskTrackerToken,
}

impl<O: Outcome + Unpin, R> Stream for Answers<O, R> {
    type Item = Result<R, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match Pin::new(&mut self.batches).poll_next(context) {
            Poll::Ready(Some(batch)) => Poll::Ready(Some(Ok((self.message)(batch)))),
            Poll::Ready(None) => {
                let mut ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
                Poll::Ready(ending.take().map(Err))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Takes the reply that goes with the call made.
macro_rules! answered {
    ($reply:expr, $kind:ident) => {
        match $reply {
            Reply::$kind(reply) => Ok(Response::new(reply)),
            _ => Err(Status::internal("the answer is of another kind than the call")),
        }
    };
}

#[tonic::async_trait]
impl pb::system_server::System for Services {
    type ProcessStreamStream = Outcomes<pb::ProcessStreamResponse>;

    async fn describe(
        &self,
        _: Request<pb::SystemDescribeRequest>,
    ) -> Answered<pb::SystemDescribeResponse> {
        let systems = self.host.systems.clone();
        Ok(Response::new(pb::SystemDescribeResponse { systems, sdk: SDK.into() }))
    }

    async fn process(&self, request: Request<pb::ProcessRequest>) -> Answered<pb::ProcessResponse> {
        answered!(self.run(request, Work::Process).await?, Process)
    }

    async fn process_stream(
        &self,
        request: Request<Streaming<pb::ProcessStreamRequest>>,
    ) -> Answered<Self::ProcessStreamStream> {
        let parts = |message: pb::ProcessStreamRequest| StreamParts {
            calls: message.calls.into_iter().map(process_call).collect(),
            cancelled: message.cancel_call_ids,
        };
        let message = |outcomes| pb::ProcessStreamResponse { outcomes };
        self.stream(request, Kind::System, parts, message)
    }

    async fn process_conversation(
        &self,
        request: Request<pb::ProcessConversationRequest>,
    ) -> Answered<pb::ProcessConversationResponse> {
        answered!(self.run(request, Work::Converse).await?, Converse)
    }
}

fn process_call(call: pb::ProcessCall) -> StreamedCall {
    let request = call.request.unwrap_or_default();
    let call_id = request.call_id.clone();
    let trace = Trace { parent: call.traceparent, state: call.tracestate };
    (Work::Process(request), call_id, call.timeout, trace)
}

#[tonic::async_trait]
impl pb::memory_system_server::MemorySystem for Services {
    async fn describe(
        &self,
        _: Request<pb::MemorySystemDescribeRequest>,
    ) -> Answered<pb::MemorySystemDescribeResponse> {
        let systems = self.host.memory_systems.clone();
        Ok(Response::new(pb::MemorySystemDescribeResponse { systems, sdk: SDK.into() }))
    }

    async fn reset(&self, request: Request<pb::ResetRequest>) -> Answered<pb::ResetResponse> {
        answered!(self.run(request, Work::Reset).await?, Reset)
    }

    async fn ingest(&self, request: Request<pb::IngestRequest>) -> Answered<pb::IngestResponse> {
        answered!(self.run(request, Work::Ingest).await?, Ingest)
    }

    async fn query(&self, request: Request<pb::QueryRequest>) -> Answered<pb::QueryResponse> {
        answered!(self.run(request, Work::Query).await?, Query)
    }
}

#[tonic::async_trait]
impl pb::evaluator_server::Evaluator for Services {
    type ScoreStreamStream = Outcomes<pb::ScoreStreamResponse>;

    async fn describe(
        &self,
        _: Request<pb::EvaluatorDescribeRequest>,
    ) -> Answered<pb::EvaluatorDescribeResponse> {
        let evaluators = self.host.evaluators.clone();
        Ok(Response::new(pb::EvaluatorDescribeResponse { evaluators, sdk: SDK.into() }))
    }

    async fn score(&self, request: Request<pb::ScoreRequest>) -> Answered<pb::ScoreResponse> {
        answered!(self.run(request, Work::Score).await?, Score)
    }

    async fn score_stream(
        &self,
        request: Request<Streaming<pb::ScoreStreamRequest>>,
    ) -> Answered<Self::ScoreStreamStream> {
        let parts = |message: pb::ScoreStreamRequest| StreamParts {
            calls: message.calls.into_iter().map(score_call).collect(),
            cancelled: message.cancel_call_ids,
        };
        let message = |outcomes| pb::ScoreStreamResponse { outcomes };
        self.stream(request, Kind::Evaluator, parts, message)
    }
}

fn score_call(call: pb::ScoreCall) -> StreamedCall {
    let work = Work::Score(call.request.unwrap_or_default());
    let trace = Trace { parent: call.traceparent, state: call.tracestate };
    (work, call.call_id, call.timeout, trace)
}
