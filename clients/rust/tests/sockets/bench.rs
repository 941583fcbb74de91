//! Driving a daemon over real sockets.

use std::time::Duration;

use crate::support::daemon::started;
use crate::support::soon;
use cbench_client::pb::run_event::Kind;
use cbench_client::{Bench, Error, Events, Example, pb};
use tonic::{Code, Status};

fn event(sequence: i64, kind: Kind) -> pb::RunEvent {
    pb::RunEvent { sequence, create_time: None, kind: Some(kind) }
}

fn accepted() -> pb::RunEvent {
    event(1, Kind::Accepted(pb::Run { run_id: "r".into(), ..Default::default() }))
}

fn row(sequence: i64) -> pb::RunEvent {
    event(sequence, Kind::Row(pb::EvalRow::default()))
}

fn finished(sequence: i64) -> pb::RunEvent {
    let run = pb::Run { run_id: "r".into(), last_sequence: sequence, ..Default::default() };
    event(sequence, Kind::Finished(run))
}

async fn sequences(mut events: Events) -> Vec<i64> {
    let mut seen = Vec::new();
    while let Some(event) = soon(events.next()).await.unwrap() {
        seen.push(event.sequence);
    }
    seen
}

#[tokio::test]
async fn a_run_is_followed_through_broken_streams_each_event_once() {
    let daemon = started(vec![]).await;
    daemon.daemon.script.lock().unwrap().extend([
        vec![Err(Status::unavailable("starting"))],
        vec![Ok(vec![accepted(), row(2)]), Err(Status::unavailable("gone"))],
        vec![Ok(vec![row(2), row(3)])],
        vec![Ok(vec![row(4), finished(5)])],
    ]);
    let bench = Bench::connect(&daemon.address).await.unwrap();
    let events = bench.evaluate(pb::RunSpec::new()).request_id("mine");
    assert_eq!(sequences(events).await, [1, 2, 3, 4, 5]);
    let asked = daemon.daemon.asked.lock().unwrap().clone();
    let expected = ["evaluate mine", "evaluate mine", "watch r after 2", "watch r after 3"];
    assert_eq!(asked, expected);
}

#[tokio::test]
async fn finishing_returns_the_run_as_it_ended() {
    let daemon = started(vec![]).await;
    daemon.daemon.script.lock().unwrap().push_back(vec![Ok(vec![row(8), finished(9)])]);
    let bench = Bench::connect(&daemon.address).await.unwrap();
    let run = soon(bench.watch("r", 7).finish()).await.unwrap();
    assert_eq!((run.run_id.as_str(), run.last_sequence), ("r", 9));
    assert_eq!(*daemon.daemon.asked.lock().unwrap(), ["watch r after 7"]);
}

#[tokio::test]
async fn a_daemon_that_stays_away_is_given_up_after_the_time_allowed() {
    let daemon = started(vec![]).await;
    let broken = || vec![Err(Status::unavailable("gone"))];
    let mut script = vec![vec![Ok(vec![accepted()]), Err(Status::unavailable("gone"))]];
    script.extend((0..200).map(|_| broken()));
    daemon.daemon.script.lock().unwrap().extend(script);
    let bench = Bench::connect(&daemon.address).await.unwrap();
    let mut events = bench.evaluate(pb::RunSpec::new()).reconnect_for(Duration::from_millis(300));
    assert!(soon(events.next()).await.unwrap().is_some());
    let error = soon(events.next()).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn a_refusal_carries_its_code_and_its_reason() {
    let daemon = started(vec![]).await;
    let bench = Bench::connect(&daemon.address).await.unwrap();
    let error = soon(bench.get("x")).await.unwrap_err();
    let Error::Refused { message, code, reason, .. } = error else { panic!("{error}") };
    assert_eq!((message.as_str(), code), ("no run \"x\"", Code::NotFound));
    assert_eq!(reason, "UNKNOWN_RUN");
}

#[tokio::test]
async fn nobody_at_the_address_is_said_at_once_and_in_one_sentence() {
    // Bound, so that no other test is given it, and not listening.
    let held = tokio::net::TcpSocket::new_v4().unwrap();
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = held.local_addr().unwrap().to_string();
    let bench = Bench::connect(&address).await.unwrap();
    let expected =
        format!("nothing listens at {address}. Is it running? Start it, or check the address.");
    let error = soon(bench.get("x")).await.unwrap_err();
    assert_eq!(format!("{error:?}"), expected);
    let error = soon(bench.evaluate(pb::RunSpec::new()).next()).await.unwrap_err();
    assert_eq!(error.to_string(), expected);
    let error = Bench::connect("nowhere").await.err().unwrap();
    assert_eq!(error.to_string(), "nowhere names no port. Write it as host:port.");
}

#[tokio::test]
async fn a_client_has_what_the_command_line_has() {
    let daemon = started(vec![]).await;
    let bench = Bench::connect(&daemon.address).await.unwrap();
    let request = pb::CompareRequest { run_id: "r".into(), ..Default::default() };
    assert_eq!(soon(bench.compare(request)).await.unwrap().systems, ["r"]);
    let request = pb::GateRequest { run_id: "r".into(), ..Default::default() };
    assert!(soon(bench.gate(request)).await.unwrap().passed);
    assert_eq!(soon(bench.pin("r")).await.unwrap(), "r false");
    assert_eq!(soon(bench.unpin("r")).await.unwrap(), "r true");
    let rule = pb::PruneRunsRequest { keep: Some(3), ..Default::default() };
    assert_eq!(soon(bench.prune(rule)).await.unwrap().runs[0].why, "Some(3)");
    assert_eq!(soon(bench.explain_wait("r", "!")).await.unwrap().run_id, "r!");
    let page = soon(bench.report(pb::ReportRequest::default())).await.unwrap();
    assert_eq!(soon(page.bytes()).await.unwrap(), b"<p></p>");
    let export = |format: &str| pb::ExportRequest { format: format.into(), ..Default::default() };
    let error = soon(bench.export(export("x"))).await.err().unwrap();
    assert_eq!(error.reason(), "NOT_FOUND");
    let mut table = soon(bench.export(export("csv"))).await.unwrap();
    assert_eq!(soon(table.next()).await.unwrap(), Some(b"a,b".to_vec()));
    assert_eq!(soon(table.next()).await.unwrap_err().reason(), "UNREACHABLE");
    let pieces = vec![b"ne".to_vec(), b"w".to_vec()];
    let stored = soon(bench.import(pieces, false)).await.unwrap();
    assert_eq!((stored.run.unwrap().run_id.as_str(), stored.already_stored), ("new", true));
}

#[tokio::test]
async fn every_page_of_runs_is_listed() {
    let daemon = started(vec![]).await;
    let bench = Bench::connect(&daemon.address).await.unwrap();
    let runs = soon(bench.list(pb::ListRunsRequest::default())).await.unwrap();
    let ids: Vec<&str> = runs.iter().map(|run| run.run_id.as_str()).collect();
    assert_eq!(ids, ["newest", "oldest"]);
}

#[tokio::test]
async fn examples_are_uploaded_in_pieces_and_a_bad_id_is_refused_by_name() {
    let daemon = started(vec![]).await;
    let bench = Bench::connect(&daemon.address).await.unwrap();
    let examples = (0..30).map(|id| Example::new().with("id", id).with("t", "x".repeat(100_000)));
    assert_eq!(soon(bench.upload(examples)).await.unwrap(), ("digest".into(), 30));
    let error = soon(bench.upload([Example::new().with("id", 1.5)])).await.unwrap_err();
    assert_eq!(error.to_string(), "field \"id\" holds a double; an id is text or an integer.");
}
