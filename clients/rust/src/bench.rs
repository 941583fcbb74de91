//! A client of a daemon: it starts runs, follows them and reads their rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use prost::Message;
use tokio_stream::StreamExt;
use tonic::{Response, Status};

use crate::chance;
use crate::channel::{Connection, Dial, MAX_MESSAGE_BYTES};
use crate::convert;
use crate::error::Result;
use crate::evaluator::Assessment;
use crate::example::Example;
use crate::follow::Events;
use crate::pb;
use crate::pb::bench_client::BenchClient;
use crate::pb::evaluator_client::EvaluatorClient;
use crate::pieces::Pieces;
use crate::tls::Tls;
use crate::value::Fields;

const UPLOAD_BYTES: usize = 1024 * 1024;

/// How to reach a daemon; made by [`Bench::builder`].
pub struct BenchBuilder {
    dial: Dial,
    timeout: Duration,
}

impl BenchBuilder {
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

    /// Bounds single requests, 30 s by default; following a run has no limit.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Makes the client. The connection is made with the first request.
    pub async fn connect(self) -> Result<Bench> {
        let connection = self.dial.connection()?;
        let has_answered = Arc::new(AtomicBool::new(false));
        Ok(Bench { dial: Arc::new(self.dial), connection, timeout: self.timeout, has_answered })
    }
}

/// A client of one daemon. Runs, rows and events are the protocol's own messages, in [`pb`].
///
/// Cheap to clone; clones share the connection.
#[derive(Clone)]
pub struct Bench {
    pub(crate) dial: Arc<Dial>,
    connection: Connection,
    timeout: Duration,
    pub(crate) has_answered: Arc<AtomicBool>,
}

impl Bench {
    /// Makes a client of the daemon at `target`, such as `127.0.0.1:50051`.
    ///
    /// Several daemons of one store are named with commas, `host:a,host:b`: the first that
    /// answers is used, and when it is lost the next. With TLS their certificates have the
    /// name of the first, or that of [`Tls::server_name`].
    pub async fn connect(target: impl Into<String>) -> Result<Self> {
        Self::builder(target).connect().await
    }

    /// Starts to say how to reach a daemon.
    pub fn builder(target: impl Into<String>) -> BenchBuilder {
        let dial = Dial { target: target.into(), tls: None, token: None };
        BenchBuilder { dial, timeout: Duration::from_secs(30) }
    }

    /// Starts a run, at the first `next`, and follows it to its end.
    ///
    /// A lost connection is taken up again where it broke: every stored event
    /// comes once and in order. Dropping the events does not stop the run.
    pub fn evaluate(&self, spec: pb::RunSpec) -> Events {
        Events::of_new_run(self.clone(), spec)
    }

    /// Follows a run after a sequence, to its end; 0 means from the start.
    pub fn watch(&self, run_id: impl Into<String>, after: i64) -> Events {
        Events::of_run(self.clone(), run_id.into(), after)
    }

    /// Starts a run, and returns its id without following it.
    pub async fn start(&self, spec: pb::RunSpec) -> Result<String> {
        let mut events = self.evaluate(spec).without_rows().reconnect_for(self.timeout);
        while let Some(event) = events.next().await? {
            if let Some(pb::run_event::Kind::Accepted(run)) = event.kind {
                return Ok(run.run_id);
            }
        }
        Err(self.dial.explain(&Status::internal("the run was taken and never named")))
    }

    /// Gets a run.
    pub async fn get(&self, run_id: impl Into<String>) -> Result<pb::Run> {
        let mut client = self.client();
        let request = pb::GetRunRequest { run_id: run_id.into() };
        let response = self.answer(client.get_run(request)).await?;
        Ok(response.run.unwrap_or_default())
    }

    /// Lists every run that `request` asks for, newest first; the default asks for all.
    pub async fn list(&self, mut request: pb::ListRunsRequest) -> Result<Vec<pb::Run>> {
        let mut runs = Vec::new();
        loop {
            let mut client = self.client();
            let page = self.answer(client.list_runs(request.clone())).await?;
            runs.extend(page.runs);
            if page.next_page_token.is_empty() {
                return Ok(runs);
            }
            request.page_token = page.next_page_token;
        }
    }

    /// Lists rows of a run, by system and then in dataset order, a page at a time.
    ///
    /// Set `page_token` to the page's `next_page_token` for the next one.
    pub async fn rows(&self, request: pb::ListRowsRequest) -> Result<pb::ListRowsResponse> {
        let mut client = self.client();
        self.answer(client.list_rows(request)).await
    }

    /// Asks a run to stop; its rows are kept.
    pub async fn cancel(&self, run_id: impl Into<String>) -> Result<pb::Run> {
        let mut client = self.client();
        let request = pb::CancelRunRequest { run_id: run_id.into() };
        let response = self.answer(client.cancel_run(request)).await?;
        Ok(response.run.unwrap_or_default())
    }

    /// Takes a cancelled or failed run up again where it stopped.
    pub async fn resume(&self, run_id: impl Into<String>) -> Result<pb::Run> {
        let mut client = self.client();
        let request = pb::ResumeRunRequest { run_id: run_id.into(), ..Default::default() };
        let response = self.answer(client.resume_run(request)).await?;
        Ok(response.run.unwrap_or_default())
    }

    /// Resumes a run with another budget, in US dollars in all, in the place of the one it had.
    pub async fn resume_with_budget(
        &self,
        run_id: impl Into<String>,
        budget_usd: f64,
    ) -> Result<pb::Run> {
        let mut client = self.client();
        let request = pb::ResumeRunRequest {
            run_id: run_id.into(),
            budget_usd: Some(budget_usd),
            ..Default::default()
        };
        let response = self.answer(client.resume_run(request)).await?;
        Ok(response.run.unwrap_or_default())
    }

    /// Deletes a finished run with its rows.
    pub async fn delete(&self, run_id: impl Into<String>) -> Result<()> {
        let mut client = self.client();
        let request = pb::DeleteRunRequest { run_id: run_id.into() };
        self.answer(client.delete_run(request)).await?;
        Ok(())
    }

    /// Keeps a run from being pruned; returns its id. `last` and prefixes name it, too.
    pub async fn pin(&self, run_id: impl Into<String>) -> Result<String> {
        self.set_pin(pb::PinRunRequest { run_id: run_id.into(), unpin: false }).await
    }

    /// Lets a run be pruned again; returns its id.
    pub async fn unpin(&self, run_id: impl Into<String>) -> Result<String> {
        self.set_pin(pb::PinRunRequest { run_id: run_id.into(), unpin: true }).await
    }

    async fn set_pin(&self, request: pb::PinRunRequest) -> Result<String> {
        let mut client = self.client();
        Ok(self.answer(client.pin_run(request)).await?.run_id)
    }

    /// Deletes finished runs that are old, many or large; pinned ones stay.
    pub async fn prune(&self, request: pb::PruneRunsRequest) -> Result<pb::PruneRunsResponse> {
        let mut client = self.client();
        self.answer(client.prune_runs(request)).await
    }

    /// Rescores a finished run as a new run. An empty
    /// `request_id` is filled in.
    pub async fn rescore(&self, mut request: pb::RescoreRequest) -> Result<pb::Run> {
        if request.request_id.is_empty() {
            request.request_id = chance::uuid();
        }
        let mut client = self.client();
        let response = self.answer(client.rescore(request)).await?;
        Ok(response.run.unwrap_or_default())
    }

    /// Says which differences between systems of one or two runs can be claimed.
    pub async fn compare(&self, request: pb::CompareRequest) -> Result<pb::Comparison> {
        let mut client = self.client();
        let response = self.answer(client.compare(request)).await?;
        Ok(response.comparison.unwrap_or_default())
    }

    /// Checks a system of a run against policies.
    pub async fn gate(&self, request: pb::GateRequest) -> Result<pb::GateResponse> {
        let mut client = self.client();
        self.answer(client.gate(request)).await
    }

    /// Renders a run as one HTML page that needs no network.
    pub async fn report(&self, request: pb::ReportRequest) -> Result<Pieces> {
        let mut client = self.client();
        let pieces = self.answer(client.report(request)).await?;
        let pieces = pieces.map(|piece| piece.map(|piece| piece.content));
        Ok(Pieces::new(self.dial.clone(), pieces))
    }

    /// Writes a run in a format for other programs, or as a whole, in the format
    /// `run`, for [`import`](Bench::import).
    pub async fn export(&self, request: pb::ExportRequest) -> Result<Pieces> {
        let mut client = self.client();
        let pieces = self.answer(client.export(request)).await?;
        let pieces = pieces.map(|piece| piece.map(|piece| piece.content));
        Ok(Pieces::new(self.dial.clone(), pieces))
    }

    /// Stores a run that `export` wrote in the format `run`, in pieces of at most
    /// 128 MB, under a new id if asked for. The response says whether it was stored already.
    pub async fn import<I>(&self, pieces: I, new_id: bool) -> Result<pb::ImportResponse>
    where
        I: IntoIterator<Item = Vec<u8>, IntoIter: Send + 'static>,
    {
        let messages = pieces.into_iter().map(move |content| pb::ImportRequest { content, new_id });
        let mut client = self.client();
        let response = client.import(tokio_stream::iter(messages)).await;
        Ok(response.map_err(|status| self.dial.explain(&status))?.into_inner())
    }

    /// Says why a system that you started for a run in progress is away.
    pub async fn explain_wait(
        &self,
        run_id: impl Into<String>,
        reason: impl Into<String>,
    ) -> Result<pb::Run> {
        let mut client = self.client();
        let request = pb::ExplainWaitRequest { run_id: run_id.into(), reason: reason.into() };
        let response = self.answer(client.explain_wait(request)).await?;
        Ok(response.run.unwrap_or_default())
    }

    /// Scores one pair with an evaluator of the daemon.
    pub async fn score(
        &self,
        evaluator: impl Into<String>,
        original: Example,
        processed: Example,
        options: Fields,
    ) -> Result<Assessment> {
        let request = pb::ScoreRequest {
            evaluator: evaluator.into(),
            original: Some(convert::example_to_proto(original)?),
            processed: Some(convert::example_to_proto(processed)?),
            options: convert::fields_to_proto(options, "options.")?,
        };
        let mut client = EvaluatorClient::new(self.connection.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        Assessment::from_proto(self.answer(client.score(request)).await?)
    }

    /// Stores examples; returns the digest for [`pb::DatasetRef::uploaded`], and how many there are.
    pub async fn upload(
        &self,
        examples: impl IntoIterator<Item = Example>,
    ) -> Result<(String, i64)> {
        let mut messages = vec![pb::UploadExamplesRequest::default()];
        let mut size = 0;
        for example in examples {
            let example = convert::example_to_proto(example)?;
            if size >= UPLOAD_BYTES {
                messages.push(pb::UploadExamplesRequest::default());
                size = 0;
            }
            size += example.encoded_len();
            messages.last_mut().expect("there is one").examples.push(example);
        }
        let mut client = self.client();
        let response = client.upload_examples(tokio_stream::iter(messages)).await;
        let response = response.map_err(|status| self.dial.explain(&status))?.into_inner();
        Ok((response.digest, response.example_count))
    }

    /// Lists what a run may name: datasets, evaluators, metrics and systems.
    pub async fn components(&self) -> Result<pb::ListComponentsResponse> {
        let mut client = self.client();
        self.answer(client.list_components(pb::ListComponentsRequest {})).await
    }

    pub(crate) fn client(&self) -> BenchClient<Connection> {
        BenchClient::new(self.connection.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }

    async fn answer<T>(
        &self,
        request: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T> {
        self.bounded(request).await.map_err(|status| self.dial.explain(&status))
    }

    pub(crate) async fn bounded<T>(
        &self,
        request: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, Status> {
        let late = |_| Status::deadline_exceeded("no answer in time");
        let response = tokio::time::timeout(self.timeout, request).await.map_err(late)??;
        self.has_answered.store(true, Ordering::Relaxed);
        Ok(response.into_inner())
    }
}
