//! Attaching to a daemon over real sockets.

use std::time::Duration;

use crate::support::daemon::{Attached, RunningDaemon, started};
use crate::support::{request, same, soon};
use cbench_client::{Attachment, Error, Example, Offers, RunningAttachment, pb, system};
use tonic::Status;

async fn attached(
    daemon: &mut RunningDaemon,
    offers: impl Into<Offers>,
) -> (RunningAttachment, Peer) {
    let attachment = Attachment::new(offers, &daemon.address).max_in_flight(2).start().unwrap();
    let peer = Peer::next(daemon).await;
    (attachment, peer)
}

/// The daemon's side of an attachment.
struct Peer(Attached);

impl Peer {
    /// Waits for the next attachment, and welcomes it.
    async fn next(daemon: &mut RunningDaemon) -> Self {
        let mut peer = Self(soon(daemon.attached.recv()).await.unwrap());
        let hello = peer.message().await.hello.expect("hello comes first");
        assert_eq!(hello.sdk, "cbench-rust/0.1.0");
        assert_eq!(hello.max_in_flight, Some(2));
        let welcome = Some(pb::Welcome { attachment_id: "first".into() });
        peer.send(pb::AttachResponse { welcome, ..Default::default() });
        peer
    }

    fn send(&self, message: pb::AttachResponse) {
        self.0.calls.send(Ok(message)).unwrap();
    }

    fn call(&self, system: &str, call_id: &str) {
        let work = Some(pb::call::Work::Process(request(system, "")));
        let calls = vec![pb::Call { call_id: call_id.into(), work, ..Default::default() }];
        self.send(pb::AttachResponse { calls, ..Default::default() });
    }

    async fn message(&mut self) -> pb::AttachRequest {
        soon(self.0.messages.message()).await.unwrap().expect("there is more")
    }

    async fn result(&mut self) -> (String, String) {
        let message = self.message().await;
        let result = message.results.into_iter().next().expect("a result");
        let outcome = match result.result {
            Some(pb::call_result::Result::Process(_)) => "processed".to_string(),
            Some(pb::call_result::Result::Failure(failure)) => failure.reason,
            other => format!("{other:?}"),
        };
        (result.call_id, outcome)
    }
}

#[tokio::test]
async fn calls_are_answered_and_unknown_work_is_refused() {
    let mut daemon = started(vec![]).await;
    let (attachment, mut peer) = attached(&mut daemon, same("s")).await;
    assert_eq!(soon(attachment.attached()).await.unwrap(), "first");
    peer.call("s", "1");
    assert_eq!(peer.result().await, ("1".into(), "processed".into()));
    let calls = vec![pb::Call { call_id: "2".into(), ..Default::default() }];
    peer.send(pb::AttachResponse { calls, ..Default::default() });
    assert_eq!(peer.result().await, ("2".into(), "UNIMPLEMENTED".into()));
    peer.call("other", "3");
    assert_eq!(peer.result().await, ("3".into(), "UNKNOWN_SYSTEM".into()));
}

/// A system that waits until it is let go, and then is dropped or answers.
fn waiting() -> (impl cbench_client::System, std::sync::mpsc::Sender<()>) {
    let (go, gone) = std::sync::mpsc::channel();
    let gone = std::sync::Mutex::new(gone);
    let system = system("s", move |example: Example, _call| {
        let _ = gone.lock().unwrap().recv();
        example
    });
    (system, go)
}

#[tokio::test]
async fn more_calls_than_announced_are_refused() {
    let mut daemon = started(vec![]).await;
    let (system, go) = waiting();
    let (_attachment, mut peer) = attached(&mut daemon, system).await;
    for call_id in ["1", "2", "3"] {
        peer.call("s", call_id);
    }
    assert_eq!(peer.result().await, ("3".into(), "RESOURCE_EXHAUSTED".into()));
    go.send(()).unwrap();
    assert_eq!(peer.result().await.1, "processed");
    drop(go);
}

#[tokio::test]
async fn a_broken_attachment_is_renewed_also_where_the_old_name_is_still_held() {
    let mut daemon = started(vec![Status::unavailable("starting")]).await;
    let (_attachment, peer) = attached(&mut daemon, same("s")).await;
    peer.0.calls.send(Err(Status::already_exists("s is attached"))).unwrap();
    drop(peer);
    let mut peer = Peer::next(&mut daemon).await;
    peer.call("s", "1");
    assert_eq!(peer.result().await.1, "processed");
}

#[tokio::test]
async fn a_refusal_for_good_is_an_error() {
    for (status, name) in [
        (Status::already_exists("taken"), "ALREADY_EXISTS"),
        (Status::unauthenticated("no token"), "UNAUTHENTICATED"),
    ] {
        let daemon = started(vec![status.clone()]).await;
        let attachment = Attachment::new(same("s"), &daemon.address).start().unwrap();
        let error = soon(attachment.attached()).await.unwrap_err();
        assert!(error.to_string().contains(status.message()), "{error}");
        let Error::Refused { code, reason, .. } = error else { panic!("{error}") };
        assert_eq!((code, reason.as_str()), (status.code(), name));
    }
}

#[tokio::test]
async fn stopping_drains_and_answers_what_is_held() {
    let mut daemon = started(vec![]).await;
    let (system, go) = waiting();
    let (attachment, mut peer) = attached(&mut daemon, system).await;
    peer.call("s", "1");
    peer.call("unknown", "2");
    assert_eq!(peer.result().await.0, "2");
    let stopping = tokio::spawn(attachment.stop(Duration::from_secs(20)));
    assert!(peer.message().await.drain.is_some());
    peer.call("s", "late");
    assert_eq!(peer.result().await, ("late".into(), "UNAVAILABLE".into()));
    go.send(()).unwrap();
    assert_eq!(peer.result().await, ("1".into(), "processed".into()));
    assert!(soon(peer.0.messages.message()).await.unwrap().is_none());
    drop(peer);
    soon(stopping).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_daemon_that_drains_is_attached_to_again() {
    let mut daemon = started(vec![]).await;
    let (_attachment, mut peer) = attached(&mut daemon, same("s")).await;
    peer.send(pb::AttachResponse { drain: Some(pb::Drain::default()), ..Default::default() });
    assert!(soon(peer.0.messages.message()).await.unwrap().is_none());
    drop(peer);
    Peer::next(&mut daemon).await;
}

#[tokio::test]
async fn a_token_is_sent_and_never_in_the_clear_over_a_network() {
    let mut daemon = started(vec![]).await;
    let attachment = Attachment::new(same("s"), &daemon.address).token("secret");
    let _running = attachment.start().unwrap();
    let attached = soon(daemon.attached.recv()).await.unwrap();
    assert_eq!(attached.token.as_deref(), Some("Bearer secret"));
    let error = Attachment::new(same("s"), "bench.example.org:50051").token("secret").start();
    let error = error.err().unwrap();
    assert!(error.to_string().contains("would travel unencrypted"), "{error}");
}

#[tokio::test]
async fn an_ingest_without_an_id_of_its_own_takes_that_of_the_call() {
    use cbench_client::{Answer, Call, Failure, Info, Ingested, MemorySystem, Question, Turn};

    struct Ids;

    impl MemorySystem for Ids {
        fn info(&self) -> Info {
            Info::new("ids")
        }
        async fn reset(&self, _: &str, _: &Call) -> Result<(), Failure> {
            Ok(())
        }
        async fn ingest(&self, _: &str, _: Vec<Turn>, call: &Call) -> Result<Ingested, Failure> {
            Ok(Ingested::new().stored_bytes(call.id().len() as i64))
        }
        async fn query(&self, _: &str, _: Question, _: &Call) -> Result<Answer, Failure> {
            Ok("".into())
        }
    }

    let mut daemon = started(vec![]).await;
    let (_attachment, mut peer) = attached(&mut daemon, Offers::new().memory_system(Ids)).await;
    let work = Some(pb::call::Work::Ingest(pb::IngestRequest::default()));
    let calls = vec![pb::Call { call_id: "four".into(), work, ..Default::default() }];
    peer.send(pb::AttachResponse { calls, ..Default::default() });
    let result = peer.message().await.results.remove(0).result;
    let Some(pb::call_result::Result::Ingest(reply)) = result else { panic!("{result:?}") };
    assert_eq!(reply.stored_bytes, Some(4));
}
