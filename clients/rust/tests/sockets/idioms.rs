//! What Rust developers expect: errors of any type, streams, timeouts, objects for scopes.

use std::error::Error as StdError;
use std::time::Duration;

use crate::support::daemon::started as daemon_started;
use crate::support::{channel, client, failure_of, request, soon, started};
use cbench_client::pb::memory_system_client::MemorySystemClient;
use cbench_client::pb::run_event::Kind;
use cbench_client::{
    Answer, Bench, Call, Error, Example, Failure, Info, Ingested, Memory, Offers, Question, System,
    Turn, memory, pb, system,
};
use tokio_stream::StreamExt;
use tonic::Status;

fn anyhow_fails(_example: Example, _call: &Call) -> anyhow::Result<Example> {
    Err(anyhow::anyhow!("no index").context("cannot search"))
}

fn boxed_fails(example: Example, _call: &Call) -> Result<Example, Box<dyn StdError>> {
    example.text("missing")?;
    Ok(example)
}

fn sendable_fails(_: Example, _: &Call) -> Result<Example, Box<dyn StdError + Send + Sync>> {
    Err("no index".into())
}

fn text_fails(_example: Example, _call: &Call) -> Result<Example, String> {
    Err("no index".into())
}

fn typed_fails(_example: Example, _call: &Call) -> Result<Example, std::num::ParseIntError> {
    Err("x".parse::<i64>().unwrap_err())
}

fn failure_fails(_example: Example, _call: &Call) -> Result<Example, Failure> {
    Err(Failure::new("NOT_READY", "no index"))
}

fn anyhow_reads(example: Example, _call: &Call) -> anyhow::Result<Example> {
    let length = example.text("context")?.len();
    Ok(example.with("response", length))
}

struct Asynchronous;

impl System for Asynchronous {
    fn info(&self) -> Info {
        Info::new("asynchronous")
    }

    async fn process(&self, example: Example, call: &Call) -> Result<Example, Failure> {
        Ok(anyhow_fails(example, call)?)
    }
}

#[tokio::test]
async fn an_error_of_any_type_fails_the_example_with_its_words() {
    let offers = Offers::new()
        .system(system("anyhow", anyhow_fails))
        .system(system("boxed", boxed_fails))
        .system(system("sendable", sendable_fails))
        .system(system("text", text_fails))
        .system(system("typed", typed_fails))
        .system(system("failure", failure_fails))
        .system(system("reads", anyhow_reads))
        .system(Asynchronous);
    let server = started(offers).await;
    let mut client = client(&server).await;
    for (name, reason, message) in [
        ("anyhow", "EXCEPTION", "cannot search: no index"),
        ("boxed", "EXCEPTION", "the example has no field \"missing\""),
        ("sendable", "EXCEPTION", "no index"),
        ("text", "EXCEPTION", "no index"),
        ("typed", "EXCEPTION", "invalid digit found in string"),
        ("failure", "NOT_READY", "no index"),
        ("asynchronous", "EXCEPTION", "cannot search: no index"),
    ] {
        let status = soon(client.process(request(name, ""))).await.unwrap_err();
        let failure = failure_of(&status);
        assert_eq!((failure.reason.as_str(), failure.message.as_str()), (reason, message));
    }
    let reply = soon(client.process(request("reads", ""))).await.unwrap().into_inner();
    assert_eq!(reply.fields["response"].kind, Some(pb::value::Kind::IntValue(5)));
}

fn event(sequence: i64, kind: Kind) -> pb::RunEvent {
    pb::RunEvent { sequence, create_time: None, kind: Some(kind) }
}

fn run() -> pb::Run {
    pb::Run { run_id: "r".into(), ..Default::default() }
}

#[tokio::test]
async fn events_are_a_stream_that_ends_after_its_error() {
    let daemon = daemon_started(vec![]).await;
    let rows = [2, 3].map(|sequence| event(sequence, Kind::Row(pb::EvalRow::default())));
    let mut first = vec![event(1, Kind::Accepted(run()))];
    first.extend(rows);
    daemon
        .daemon
        .script
        .lock()
        .unwrap()
        .extend([vec![Ok(first)], vec![Err(Status::not_found("no such run"))]]);
    let bench = Bench::connect(&daemon.address).await.unwrap();
    let events = bench.evaluate(pb::RunSpec::new());
    let seen: Vec<_> = soon(events.map(|event| event.map(|event| event.sequence)).collect()).await;
    assert_eq!(seen[..3].iter().flatten().collect::<Vec<_>>(), [&1, &2, &3]);
    assert!(matches!(&seen[3..], [Err(Error::Refused { .. })]), "{seen:#?}");
}

#[tokio::test]
async fn a_reader_that_stopped_waiting_goes_on_where_it_was() {
    let daemon = daemon_started(vec![]).await;
    let bench = Bench::connect(&daemon.address).await.unwrap();
    let mut events = bench.evaluate(pb::RunSpec::new());
    // Polled once and dropped, before the daemon can have answered.
    tokio::select! {
        biased;
        event = events.next() => panic!("{event:?}"),
        () = std::future::ready(()) => {}
    }
    let script = vec![Ok(vec![event(1, Kind::Accepted(run())), event(2, Kind::Finished(run()))])];
    daemon.daemon.script.lock().unwrap().push_back(script);
    assert_eq!(soon(events.next()).await.unwrap().unwrap().sequence, 1);
    assert_eq!(soon(events.next()).await.unwrap().unwrap().sequence, 2);
    assert!(soon(events.next()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_client_may_bound_single_requests() {
    // It accepts connections and says nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let bench =
        Bench::builder(&address).timeout(Duration::from_millis(20)).connect().await.unwrap();
    let error = soon(bench.get("r")).await.unwrap_err();
    assert_eq!(error.reason(), "UNREACHABLE");
    assert!(error.to_string().contains("did not answer in time"), "{error}");
}

#[tokio::test]
async fn an_error_shows_its_sentence_its_kind_and_its_source() {
    let held = tokio::net::TcpSocket::new_v4().unwrap();
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = held.local_addr().unwrap().to_string();
    let bench = Bench::connect(&address).await.unwrap();
    let error = soon(bench.get("x")).await.unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
    assert!(format!("{error:#?}").starts_with("Unreachable {"), "{error:#?}");
    let chain = std::iter::successors(error.source(), |&cause| cause.source());
    let kinds = chain.filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    let kinds: Vec<_> = kinds.map(std::io::Error::kind).collect();
    assert_eq!(kinds[..1], [std::io::ErrorKind::ConnectionRefused]);
    let error: anyhow::Error = error.into();
    assert!(error.downcast_ref::<Error>().is_some());
}

#[derive(Default)]
struct Notes(Vec<String>);

impl Memory for Notes {
    async fn ingest(&mut self, turns: Vec<Turn>, _call: &Call) -> Result<Ingested, Failure> {
        self.0.extend(turns.into_iter().map(|turn| turn.content));
        Ok(Ingested::new().stored_bytes(self.0.len() as i64))
    }

    async fn query(&self, _question: Question, _call: &Call) -> Result<Answer, Failure> {
        Ok(Answer::new(self.0.join(" ")))
    }
}

#[tokio::test]
async fn each_scope_has_an_object_of_its_own_until_it_is_reset() {
    let notes = memory("notes", |scope| Notes(vec![scope.to_string()]));
    let server = started(Offers::new().memory_system(notes)).await;
    let mut client = MemorySystemClient::new(channel(&server).await);
    for scope in ["a", "b", "a"] {
        let turns = vec![pb::Turn { content: "x".into(), ..Default::default() }];
        let request = pb::IngestRequest { scope: scope.into(), turns, ..Default::default() };
        soon(client.ingest(request)).await.unwrap();
    }
    let ask = |scope: &str| pb::QueryRequest { scope: scope.into(), ..Default::default() };
    assert_eq!(soon(client.query(ask("a"))).await.unwrap().into_inner().response, "a x x");
    assert_eq!(soon(client.query(ask("b"))).await.unwrap().into_inner().response, "b x");
    let request = pb::ResetRequest { scope: "a".into(), ..Default::default() };
    soon(client.reset(request)).await.unwrap();
    assert_eq!(soon(client.query(ask("a"))).await.unwrap().into_inner().response, "a");
}
