//! A daemon of a few lines, which follows a script: a real server, and no real daemon.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use cbench_client::pb;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{TcpListenerStream, UnboundedReceiverStream};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

type Replies<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;
type Script = VecDeque<Vec<Result<Vec<pb::RunEvent>, Status>>>;

/// One attachment, as the daemon sees it.
pub struct Attached {
    pub token: Option<String>,
    pub messages: Streaming<pb::AttachRequest>,
    pub calls: mpsc::UnboundedSender<Result<pb::AttachResponse, Status>>,
}

/// What the daemon does, and what it was asked.
#[derive(Clone)]
pub struct Daemon {
    /// What each `Evaluate` or `WatchRun` streams, in turn.
    pub script: Arc<Mutex<Script>>,
    pub asked: Arc<Mutex<Vec<String>>>,
    attached: mpsc::UnboundedSender<Attached>,
    refusals: Arc<Mutex<VecDeque<Status>>>,
}

pub struct RunningDaemon {
    pub address: String,
    pub daemon: Daemon,
    pub attached: mpsc::UnboundedReceiver<Attached>,
}

/// Starts a daemon on a free port; the first attachments are refused with `refusals`.
pub async fn started(refusals: Vec<Status>) -> RunningDaemon {
    let (tell, attached) = mpsc::unbounded_channel();
    let daemon = Daemon {
        script: Arc::default(),
        asked: Arc::default(),
        attached: tell,
        refusals: Arc::new(Mutex::new(refusals.into())),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = tonic::transport::Server::builder()
        .add_service(pb::bench_server::BenchServer::new(daemon.clone()))
        .add_service(pb::gateway_server::GatewayServer::new(daemon.clone()))
        .serve_with_incoming(TcpListenerStream::new(listener));
    tokio::spawn(serving);
    RunningDaemon { address, daemon, attached }
}

#[tonic::async_trait]
impl pb::gateway_server::Gateway for Daemon {
    type AttachStream = Replies<pb::AttachResponse>;

    async fn attach(
        &self,
        request: Request<Streaming<pb::AttachRequest>>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        if let Some(refusal) = self.refusals.lock().unwrap().pop_front() {
            return Err(refusal);
        }
        let token = request.metadata().get("authorization");
        let token = token.map(|token| token.to_str().unwrap().to_string());
        let (calls, sent) = mpsc::unbounded_channel();
        self.attached.send(Attached { token, messages: request.into_inner(), calls }).unwrap();
        Ok(Response::new(Box::pin(UnboundedReceiverStream::new(sent))))
    }
}

impl Daemon {
    fn next_stream(&self, asked: String) -> Vec<Result<Vec<pb::RunEvent>, Status>> {
        self.asked.lock().unwrap().push(asked);
        self.script.lock().unwrap().pop_front().unwrap_or_default()
    }
}

// Spelled out, because `async_trait` has done its work before macros do theirs.
macro_rules! unused {
    ($($name:ident($request:ident) -> $response:ident;)*) => {
        $(fn $name<'a, 'b>(
            &'a self,
            _: Request<pb::$request>,
        ) -> Pin<Box<dyn Future<Output = Result<Response<pb::$response>, Status>> + Send + 'b>>
        where
            'a: 'b,
            Self: 'b,
        {
            Box::pin(async { Err(Status::unimplemented(stringify!($name))) })
        })*
    };
}

#[tonic::async_trait]
impl pb::bench_server::Bench for Daemon {
    type EvaluateStream = Replies<pb::EvaluateResponse>;
    type WatchRunStream = Replies<pb::WatchRunResponse>;
    type ReportStream = Replies<pb::ReportResponse>;
    type ExportStream = Replies<pb::ExportResponse>;

    async fn evaluate(
        &self,
        request: Request<pb::EvaluateRequest>,
    ) -> Result<Response<Self::EvaluateStream>, Status> {
        let asked = format!("evaluate {}", request.into_inner().request_id);
        let stream = tokio_stream::iter(self.next_stream(asked));
        let stream = stream.map(|item| item.map(|events| pb::EvaluateResponse { events }));
        Ok(Response::new(Box::pin(stream)))
    }

    async fn watch_run(
        &self,
        request: Request<pb::WatchRunRequest>,
    ) -> Result<Response<Self::WatchRunStream>, Status> {
        let request = request.into_inner();
        let asked = format!("watch {} after {}", request.run_id, request.after_sequence);
        let stream = tokio_stream::iter(self.next_stream(asked));
        let stream = stream.map(|item| item.map(|events| pb::WatchRunResponse { events }));
        Ok(Response::new(Box::pin(stream)))
    }

    async fn get_run(
        &self,
        request: Request<pb::GetRunRequest>,
    ) -> Result<Response<pb::GetRunResponse>, Status> {
        let run_id = request.into_inner().run_id;
        if run_id != "r" {
            let mut status = Status::not_found(format!("no run \"{run_id}\""));
            status.metadata_mut().insert("cbench-reason", "UNKNOWN_RUN".parse().unwrap());
            return Err(status);
        }
        let run = pb::Run { run_id, last_sequence: 9, ..Default::default() };
        Ok(Response::new(pb::GetRunResponse { run: Some(run) }))
    }

    async fn list_runs(
        &self,
        request: Request<pb::ListRunsRequest>,
    ) -> Result<Response<pb::ListRunsResponse>, Status> {
        let is_first = request.into_inner().page_token.is_empty();
        let run_id = if is_first { "newest" } else { "oldest" };
        let runs = vec![pb::Run { run_id: run_id.into(), ..Default::default() }];
        let next_page_token = if is_first { "more" } else { "" }.to_string();
        Ok(Response::new(pb::ListRunsResponse { runs, next_page_token }))
    }

    async fn upload_examples(
        &self,
        request: Request<Streaming<pb::UploadExamplesRequest>>,
    ) -> Result<Response<pb::UploadExamplesResponse>, Status> {
        let mut stream = request.into_inner();
        let mut example_count = 0;
        while let Some(message) = stream.message().await? {
            example_count += message.examples.len() as i64;
        }
        let digest = "digest".to_string();
        Ok(Response::new(pb::UploadExamplesResponse { digest, example_count }))
    }

    async fn report(
        &self,
        _: Request<pb::ReportRequest>,
    ) -> Result<Response<Self::ReportStream>, Status> {
        let pieces = [("<p>", "r"), ("</p>", "")].map(|(content, run_id)| {
            Ok(pb::ReportResponse { content: content.into(), run_id: run_id.into() })
        });
        Ok(Response::new(Box::pin(tokio_stream::iter(pieces))))
    }

    async fn export(
        &self,
        request: Request<pb::ExportRequest>,
    ) -> Result<Response<Self::ExportStream>, Status> {
        if request.into_inner().format != "csv" {
            return Err(Status::not_found("no such format"));
        }
        let broken = Err(Status::unavailable("the connection broke"));
        let pieces =
            [Ok(pb::ExportResponse { content: "a,b".into(), ..Default::default() }), broken];
        Ok(Response::new(Box::pin(tokio_stream::iter(pieces))))
    }

    async fn import(
        &self,
        request: Request<Streaming<pb::ImportRequest>>,
    ) -> Result<Response<pb::ImportResponse>, Status> {
        let mut stream = request.into_inner();
        let mut run_id = String::new();
        while let Some(message) = stream.message().await? {
            run_id += &String::from_utf8_lossy(&message.content);
        }
        let run = Some(pb::Run { run_id, ..Default::default() });
        Ok(Response::new(pb::ImportResponse { run, already_stored: true }))
    }

    async fn compare(
        &self,
        request: Request<pb::CompareRequest>,
    ) -> Result<Response<pb::CompareResponse>, Status> {
        let systems = vec![request.into_inner().run_id];
        let comparison = Some(pb::Comparison { systems, ..Default::default() });
        Ok(Response::new(pb::CompareResponse { comparison }))
    }

    async fn gate(
        &self,
        request: Request<pb::GateRequest>,
    ) -> Result<Response<pb::GateResponse>, Status> {
        let run_id = request.into_inner().run_id;
        Ok(Response::new(pb::GateResponse { run_id, passed: true, ..Default::default() }))
    }

    async fn pin_run(
        &self,
        request: Request<pb::PinRunRequest>,
    ) -> Result<Response<pb::PinRunResponse>, Status> {
        let pb::PinRunRequest { run_id, unpin } = request.into_inner();
        Ok(Response::new(pb::PinRunResponse {
            run_id: format!("{run_id} {unpin}"),
            pinned: !unpin,
        }))
    }

    async fn prune_runs(
        &self,
        request: Request<pb::PruneRunsRequest>,
    ) -> Result<Response<pb::PruneRunsResponse>, Status> {
        let why = format!("{:?}", request.into_inner().keep);
        let runs = vec![pb::PrunedRun { run_id: "old".into(), why, ..Default::default() }];
        Ok(Response::new(pb::PruneRunsResponse { runs, ..Default::default() }))
    }

    async fn explain_wait(
        &self,
        request: Request<pb::ExplainWaitRequest>,
    ) -> Result<Response<pb::ExplainWaitResponse>, Status> {
        let pb::ExplainWaitRequest { run_id, reason } = request.into_inner();
        let run = Some(pb::Run { run_id: run_id + &reason, ..Default::default() });
        Ok(Response::new(pb::ExplainWaitResponse { run }))
    }

    unused! {
        list_rows(ListRowsRequest) -> ListRowsResponse;
        cancel_run(CancelRunRequest) -> CancelRunResponse;
        resume_run(ResumeRunRequest) -> ResumeRunResponse;
        delete_run(DeleteRunRequest) -> DeleteRunResponse;
        rescore(RescoreRequest) -> RescoreResponse;
        list_components(ListComponentsRequest) -> ListComponentsResponse;
    }
}
