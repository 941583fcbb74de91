//! One connection of an attachment: calls come in, results go out, until either side ends it.

use std::sync::Arc;
use std::time::Duration;

use tokio_stream::StreamExt;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{Status, Streaming};

use crate::call::Trace;
use crate::channel::{Connection, MAX_MESSAGE_BYTES};
use crate::failure::Failure;
use crate::host::Host;
use crate::lane::{self, Lane};
use crate::pb;
use crate::pb::call::Work as Asked;
use crate::work::Work;

/// How long a process that ends waits for a daemon that has not answered its hello.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// One connection of an attachment. Dropped, it cancels what is in progress:
/// the daemon asks again.
pub(crate) struct Session {
    lane: Lane<pb::AttachRequest>,
    calls: Streaming<pb::AttachResponse>,
    limit: usize,
    stopping: CancellationToken,
    is_draining: bool,
    _peer: DropGuard,
}

impl Session {
    /// Says hello.
    pub async fn open(
        connection: Connection,
        host: &Arc<Host>,
        limit: usize,
        stopping: CancellationToken,
    ) -> Result<Self, Status> {
        let (mut lane, results) = lane::open::<pb::AttachRequest>(host.clone());
        let peer = lane.peer_is_gone().drop_guard();
        lane.put(pb::AttachRequest { hello: Some(host.hello(limit)), ..Default::default() });
        let mut client = pb::gateway_client::GatewayClient::new(connection)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let answer = client.attach(results.map(merged));
        tokio::pin!(answer);
        let (answer, is_draining) = tokio::select! {
            answer = &mut answer => (answer?, false),
            () = stopping.cancelled() => {
                // The daemon may have heard the hello already.
                drain(&mut lane);
                let late = |_| Status::unavailable("no answer, and the process ends");
                (tokio::time::timeout(LAST_WORDS, answer).await.map_err(late)??, true)
            }
        };
        Ok(Self { lane, calls: answer.into_inner(), limit, stopping, is_draining, _peer: peer })
    }

    /// Deals with one message; returns the welcome in it, and `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Option<pb::Welcome>>, Status> {
        let message = loop {
            tokio::select! {
                biased;
                () = self.stopping.cancelled(), if !self.is_draining => {
                    self.is_draining = true;
                    drain(&mut self.lane);
                }
                message = self.calls.message() => break message?,
            }
        };
        let Some(message) = message else { return Ok(None) };
        for call in message.calls {
            self.start(call).await;
        }
        for call_id in &message.cancel_call_ids {
            self.lane.cancel(call_id);
        }
        if message.drain.is_some() {
            self.lane.close();
        }
        let gone = self.lane.peer_is_gone();
        tokio::select! {
            () = gone.cancelled() => {}
            () = self.lane.backlog_written() => {}
        }
        Ok(Some(message.welcome))
    }

    async fn start(&self, call: pb::Call) {
        let Some(work) = call.work else {
            let message = "this SDK does not know the work asked for; update cbench-client";
            let failure = Failure::new("UNIMPLEMENTED", message);
            return self.lane.fail(call.call_id, &failure, pb::FailureOrigin::System);
        };
        let work = match work {
            Asked::Process(request) => Work::Process(request),
            Asked::Converse(request) => Work::Converse(request),
            Asked::Score(request) => Work::Score(request),
            Asked::Reset(request) => Work::Reset(request),
            Asked::Ingest(mut request) => {
                if request.call_id.is_empty() {
                    request.call_id.clone_from(&call.call_id);
                }
                Work::Ingest(request)
            }
            Asked::Query(request) => Work::Query(request),
        };
        if self.lane.held() >= self.limit {
            let message =
                format!("more than the {} calls in flight that were announced", self.limit);
            let failure = Failure::new("RESOURCE_EXHAUSTED", message).retryable();
            return self.lane.fail(call.call_id, &failure, work.kind().origin());
        }
        let trace = Trace { parent: call.traceparent, state: call.tracestate };
        self.lane.start(work, call.call_id, call.timeout, trace, false).await;
    }
}

fn drain(lane: &mut Lane<pb::AttachRequest>) {
    let drain = Some(pb::Drain { reason: "the process ends".into() });
    lane.put(pb::AttachRequest { drain, ..Default::default() });
    lane.close();
}

fn merged(messages: Vec<pb::AttachRequest>) -> pb::AttachRequest {
    let mut all = pb::AttachRequest::default();
    for message in messages {
        all.hello = message.hello.or(all.hello);
        all.results.extend(message.results);
        all.drain = message.drain.or(all.drain);
    }
    all
}
