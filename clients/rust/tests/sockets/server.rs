//! Systems served over real sockets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{call, channel, client, failure_of, request, same, soon, started, text};
use cbench_client::pb::value::Kind;
use cbench_client::{Call, Example, Failure, Info, Offers, Server, System, Value, pb, system};
use tokio::sync::{Notify, Semaphore, mpsc};
use tonic::Code;

/// Waits for a permit of `gate`, and tells how its calls end.
struct Waiting {
    info: Info,
    gate: Arc<Semaphore>,
    ends: mpsc::UnboundedSender<&'static str>,
    started: Arc<Notify>,
}

struct Told(mpsc::UnboundedSender<&'static str>, &'static str);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send(self.1);
    }
}

impl System for Waiting {
    fn info(&self) -> Info {
        self.info.clone()
    }

    async fn process(&self, example: Example, _call: &Call) -> Result<Example, Failure> {
        let mut told = Told(self.ends.clone(), "dropped");
        self.started.notify_one();
        self.gate.acquire().await?.forget();
        told.1 = "answered";
        Ok(example)
    }
}

struct Remote {
    gate: Arc<Semaphore>,
    ends: mpsc::UnboundedReceiver<&'static str>,
    started: Arc<Notify>,
}

fn waiting(info: Info) -> (Waiting, Remote) {
    let (gate, started) = (Arc::new(Semaphore::new(0)), Arc::new(Notify::new()));
    let (tell, ends) = mpsc::unbounded_channel();
    let system = Waiting { info, gate: gate.clone(), ends: tell, started: started.clone() };
    (system, Remote { gate, ends, started })
}

#[tokio::test]
async fn values_of_every_kind_come_back_as_they_went() {
    let server = started(system("copy", |example, _call| {
        example
            .into_fields()
            .into_iter()
            .map(|(name, value)| (format!("copy.{name}"), value))
            .collect::<Example>()
    }))
    .await;
    let list = vec![pb::Value { kind: Some(Kind::NullValue(true)) }, text("ü\u{0}")];
    let map: BTreeMap<_, _> = [("".to_string(), text("x"))].into();
    let kinds = [
        Kind::NullValue(true),
        Kind::BoolValue(false),
        Kind::IntValue(i64::MIN),
        Kind::IntValue(9_007_199_254_740_993),
        Kind::DoubleValue(-0.0),
        Kind::DoubleValue(f64::INFINITY),
        Kind::DoubleValue(1.0),
        Kind::BytesValue(vec![0, 255]),
        Kind::ListValue(pb::ListValue { values: list }),
        Kind::MapValue(pb::MapValue { fields: map }),
    ];
    for (place, kind) in kinds.into_iter().enumerate() {
        let value = pb::Value { kind: Some(kind) };
        let fields = [("v".to_string(), value.clone())].into();
        let id = pb::ExampleId { kind: Some(pb::example_id::Kind::Number(place as i64)) };
        let example = pb::Example { id: Some(id), fields, ..Default::default() };
        let request = pb::ProcessRequest { example: Some(example), ..Default::default() };
        let reply = soon(client(&server).await.process(request)).await.unwrap().into_inner();
        // By their text, which tells -0.0 from 0.0.
        assert_eq!(format!("{:?}", reply.fields["copy.v"]), format!("{value:?}"));
        assert_eq!(reply.fields["copy.id"].kind, Some(Kind::IntValue(place as i64)));
    }
}

#[tokio::test]
async fn fields_left_alone_are_named_and_not_sent() {
    let server = started(system("s", |example, _call| example.with("response", "yes"))).await;
    let reply = soon(client(&server).await.process(request("", ""))).await.unwrap().into_inner();
    assert_eq!(reply.carried_fields, ["context"]);
    assert_eq!(reply.fields.into_iter().collect::<Vec<_>>(), [("response".into(), text("yes"))]);
}

#[tokio::test]
async fn an_example_kept_from_another_call_is_sent_whole() {
    let first = std::sync::OnceLock::new();
    let server = started(system("cache", move |example: Example, _call| {
        first.get_or_init(|| example.clone()).clone()
    }))
    .await;
    let mut client = client(&server).await;
    soon(client.process(request("", "1"))).await.unwrap();
    let mut second = request("", "2");
    second.example.as_mut().unwrap().fields.insert("context".into(), text("other"));
    let reply = soon(client.process(second)).await.unwrap().into_inner();
    assert_eq!((reply.carried_fields.len(), &reply.fields["context"]), (0, &text("A. B.")));
}

#[tokio::test]
async fn describe_says_what_was_offered() {
    let info = Info::new("a").version("2").description("Does it.").max_concurrency(3);
    let offers = Offers::new().system(system(info, |example, _call| example)).system(same("b"));
    let server = started(offers).await;
    let request = pb::SystemDescribeRequest {};
    let told = soon(client(&server).await.describe(request)).await.unwrap().into_inner();
    let first = &told.systems[0];
    assert_eq!((first.name.as_str(), first.version.as_str()), ("a", "2"));
    assert_eq!((first.description.as_str(), first.max_concurrency), ("Does it.", Some(3)));
    assert_eq!(first.capabilities, [i32::from(pb::Capability::Stream)]);
    assert_eq!((told.systems.len(), told.sdk.as_str()), (2, "cbench-rust/0.1.0"));
}

#[tokio::test]
async fn an_unknown_name_is_answered_with_those_served() {
    let server = started(Offers::new().system(same("a")).system(same("b"))).await;
    let mut client = client(&server).await;
    let status = soon(client.process(request("c", ""))).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(status.message(), "no system \"c\" is served here. Served: a, b");
    let status = soon(client.process(request("", ""))).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
}

#[inline(never)]
fn breaks_with_a_bang() {
    panic!("bang");
}

struct AsyncPanic;

impl System for AsyncPanic {
    fn info(&self) -> Info {
        Info::new("async")
    }

    async fn process(&self, example: Example, _call: &Call) -> Result<Example, Failure> {
        tokio::task::yield_now().await;
        breaks_with_a_bang();
        Ok(example)
    }
}

#[tokio::test]
async fn a_panic_is_a_failure_with_a_stack_and_the_server_lives() {
    let offers = Offers::new().system(AsyncPanic).system(same("same")).system(system(
        "sync",
        |example: Example, _call| {
            breaks_with_a_bang();
            example
        },
    ));
    let server = started(offers).await;
    let mut client = client(&server).await;
    for name in ["async", "sync"] {
        let status = soon(client.process(request(name, ""))).await.unwrap_err();
        let failure = failure_of(&status);
        assert_eq!((status.code(), failure.reason.as_str()), (Code::Internal, "EXCEPTION"));
        assert_eq!(failure.message, "panic: bang");
        assert!(failure.stack_trace.contains("breaks_with_a_bang"), "{}", failure.stack_trace);
        assert!(!failure.stack_trace.contains("rust_begin_unwind"), "{}", failure.stack_trace);
        assert_eq!(failure.origin(), pb::FailureOrigin::System);
    }
    soon(client.process(request("same", ""))).await.unwrap();
}

#[inline(never)]
fn fails_to_ask() -> Result<i64, Failure> {
    Ok("twelve".parse::<i64>()?)
}

#[tokio::test]
async fn an_error_is_a_failure_that_names_the_place_of_the_question_mark() {
    let server = started(system("s", |example: Example, _call| {
        Ok::<_, Failure>(example.with("n", fails_to_ask()?))
    }))
    .await;
    let status = soon(client(&server).await.process(request("", ""))).await.unwrap_err();
    let failure = failure_of(&status);
    assert_eq!(failure.reason, "EXCEPTION");
    assert_eq!(failure.message, "invalid digit found in string");
    assert!(failure.stack_trace.contains("fails_to_ask"), "{}", failure.stack_trace);
}

#[tokio::test]
async fn a_failure_on_purpose_arrives_as_it_was_made() {
    let server = started(system("s", |_example: Example, _call| {
        let failure = Failure::new("NOT_READY", "still loading");
        Err::<Example, _>(failure.retry_after(Duration::from_millis(1_500)))
    }))
    .await;
    let status = soon(client(&server).await.process(request("", ""))).await.unwrap_err();
    let failure = failure_of(&status);
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "still loading"));
    assert_eq!(status.metadata().get("cbench-reason").unwrap(), "NOT_READY");
    assert_eq!(status.metadata().get("grpc-retry-pushback-ms").unwrap(), "1500");
    let delay = failure.retry_delay.unwrap();
    assert_eq!((failure.retryable, delay.seconds, delay.nanos), (true, 1, 500_000_000));
}

#[tokio::test]
async fn a_value_that_cannot_cross_is_refused_by_name() {
    let server = started(system("s", |example: Example, _call| {
        let deep = (0..31).fold(Value::Null, |inner, _| Value::List(vec![inner]));
        example.with("deep", deep)
    }))
    .await;
    let status = soon(client(&server).await.process(request("", ""))).await.unwrap_err();
    assert_eq!(failure_of(&status).reason, "UNENCODABLE_VALUE");
    assert!(status.message().contains("field \"deep[0]"), "{}", status.message());
}

#[tokio::test]
async fn an_invalid_value_in_a_request_is_refused_by_name() {
    let server = started(same("s")).await;
    let mut bad = request("", "");
    bad.options.insert("rate".into(), pb::Value { kind: None });
    let status = soon(client(&server).await.process(bad)).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(status.message(), "field \"options.rate\" is a Value with no kind set.");
}

#[tokio::test]
async fn a_deadline_reaches_user_code_and_the_caller_gets_its_answer() {
    let (system, mut remote) = waiting(Info::new("w"));
    let server = started(system).await;
    let mut stream = Stream::open(&server).await;
    let mut late = call("w", "late");
    late.timeout = Some(prost_types::Duration { seconds: 0, nanos: 50_000_000 });
    stream.send(vec![late], &[]);
    let outcome = stream.next().await;
    assert_eq!(reason(&outcome), "DEADLINE_EXCEEDED");
    assert_eq!(soon(remote.ends.recv()).await, Some("dropped"));
}

#[tokio::test]
async fn the_time_left_and_the_options_are_told() {
    let server = started(system("s", |_example: Example, call: &Call| {
        let left = call.remaining().map(|left| left.as_secs() as i64);
        Example::new()
            .with("left", left)
            .with("id", call.id())
            .with("rate", call.option("rate").cloned())
    }))
    .await;
    let mut request = request("", "abc");
    request.options.insert("rate".into(), text("high"));
    let mut request = tonic::Request::new(request);
    request.set_timeout(Duration::from_secs(100));
    let fields = soon(client(&server).await.process(request)).await.unwrap().into_inner().fields;
    let Some(Kind::IntValue(left)) = fields["left"].kind else { panic!("{fields:?}") };
    assert!((1..100).contains(&left), "{left}");
    assert_eq!((&fields["id"], &fields["rate"]), (&text("abc"), &text("high")));
}

#[tokio::test]
async fn a_unary_call_that_is_given_up_is_dropped_in_user_code() {
    let (system, mut remote) = waiting(Info::new("w"));
    let server = started(system).await;
    let mut client = client(&server).await;
    let calling = tokio::spawn(async move { client.process(request("w", "x")).await });
    soon(remote.started.notified()).await;
    calling.abort();
    assert_eq!(soon(remote.ends.recv()).await, Some("dropped"));
}

#[tokio::test]
async fn the_same_call_id_in_flight_is_refused_and_free_afterwards() {
    let (system, remote) = waiting(Info::new("w"));
    let server = started(system).await;
    let mut first = client(&server).await;
    let mut second = first.clone();
    let calling = tokio::spawn(async move { first.process(request("w", "x")).await });
    soon(remote.started.notified()).await;
    let status = soon(second.process(request("w", "x"))).await.unwrap_err();
    assert_eq!(status.code(), Code::AlreadyExists);
    remote.gate.add_permits(2);
    soon(calling).await.unwrap().unwrap();
    soon(second.process(request("w", "x"))).await.unwrap();
}

#[tokio::test]
async fn calls_beyond_the_limit_wait_and_beyond_the_queue_are_refused() {
    let (system, mut remote) = waiting(Info::new("w").max_concurrency(1));
    let server = started(system).await;
    let mut stream = Stream::open(&server).await;
    // One runs and four wait.
    stream.send((0..5).map(|number| call("w", &number.to_string())).collect(), &[]);
    soon(remote.started.notified()).await;
    stream.send(vec![call("w", "late")], &[]);
    let refused = stream.next().await;
    assert_eq!((refused.call_id.as_str(), reason(&refused)), ("late", "RESOURCE_EXHAUSTED"));
    assert!(remote.ends.try_recv().is_err());
    remote.gate.add_permits(5);
    for _ in 0..5 {
        assert_eq!(reason(&stream.next().await), "");
    }
}

#[tokio::test]
async fn a_stream_answers_in_any_order_and_ends_after_what_it_holds() {
    let (system, remote) = waiting(Info::new("w"));
    let server = started(Offers::new().system(system).system(same("same"))).await;
    let mut stream = Stream::open(&server).await;
    stream.send(vec![call("w", "slow"), call("same", "fast")], &[]);
    assert_eq!(stream.next().await.call_id, "fast");
    stream.half_close();
    remote.gate.add_permits(1);
    assert_eq!(stream.next().await.call_id, "slow");
    assert!(soon(stream.replies.message()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_cancelled_call_is_dropped_and_gets_no_outcome() {
    let (system, mut remote) = waiting(Info::new("w"));
    let server = started(Offers::new().system(system).system(same("same"))).await;
    let mut stream = Stream::open(&server).await;
    stream.send(vec![call("w", "given-up")], &[]);
    soon(remote.started.notified()).await;
    stream.send(vec![], &["given-up", "never-heard-of"]);
    assert_eq!(soon(remote.ends.recv()).await, Some("dropped"));
    stream.send(vec![call("same", "next")], &[]);
    stream.half_close();
    assert_eq!(stream.next().await.call_id, "next");
    assert!(soon(stream.replies.message()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_stream_that_breaks_drops_its_calls() {
    let (system, mut remote) = waiting(Info::new("w"));
    let server = started(system).await;
    let stream = Stream::open(&server).await;
    stream.send(vec![call("w", "x")], &[]);
    soon(remote.started.notified()).await;
    drop(stream);
    assert_eq!(soon(remote.ends.recv()).await, Some("dropped"));
}

#[tokio::test]
async fn synchronous_code_sees_that_the_caller_left() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let server = started(system("s", move |example: Example, call: &Call| {
        tell.send("started").unwrap();
        while !call.is_cancelled() {
            std::thread::yield_now();
        }
        tell.send("cancelled").unwrap();
        example
    }))
    .await;
    let stream = Stream::open(&server).await;
    stream.send(vec![call("s", "x")], &[]);
    assert_eq!(soon(told.recv()).await, Some("started"));
    stream.send(vec![], &["x"]);
    assert_eq!(soon(told.recv()).await, Some("cancelled"));
}

#[tokio::test]
async fn draining_finishes_what_is_held_and_refuses_the_rest() {
    use tonic_health::pb::health_client::HealthClient;
    use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};

    let (system, remote) = waiting(Info::new("w"));
    let server = started(system).await;
    let mut late = client(&server).await;
    let mut watched = HealthClient::new(channel(&server).await)
        .watch(HealthCheckRequest { service: "cbench.v1.System".into() })
        .await
        .unwrap()
        .into_inner();
    assert_eq!(soon(watched.message()).await.unwrap().unwrap().status(), ServingStatus::Serving);
    let mut stream = Stream::open(&server).await;
    stream.send(vec![call("w", "x")], &[]);
    soon(remote.started.notified()).await;
    let stopping = tokio::spawn(server.stop(Duration::from_secs(20)));
    assert_eq!(soon(watched.message()).await.unwrap().unwrap().status(), ServingStatus::NotServing);
    let status = soon(late.process(request("w", "y"))).await.unwrap_err();
    assert_eq!((status.code(), failure_of(&status).retryable), (Code::Unavailable, true));
    remote.gate.add_permits(1);
    assert_eq!(stream.next().await.call_id, "x");
    assert_eq!(soon(stream.replies.message()).await.unwrap_err().code(), Code::Unavailable);
    soon(stopping).await.unwrap();
}

#[tokio::test]
async fn calls_that_outlast_the_grace_are_dropped() {
    let (system, mut remote) = waiting(Info::new("w"));
    let server = started(system).await;
    let mut client = client(&server).await;
    let calling = tokio::spawn(async move { client.process(request("w", "x")).await });
    soon(remote.started.notified()).await;
    soon(server.stop(Duration::ZERO)).await;
    assert_eq!(soon(remote.ends.recv()).await, Some("dropped"));
    assert_eq!(soon(calling).await.unwrap().unwrap_err().code(), Code::Cancelled);
}

#[tokio::test]
async fn a_unix_socket_serves_as_well_and_is_not_taken_from_a_live_server() {
    let folder = std::env::temp_dir().join(format!("cbench-rust-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let address = format!("unix:{}", folder.join("s").display());
    let server = Server::new(same("s")).address(&address).start().await.unwrap();
    let channel = tonic::transport::Endpoint::from_shared(address.clone()).unwrap();
    let mut client = pb::system_client::SystemClient::new(channel.connect().await.unwrap());
    soon(client.process(request("", ""))).await.unwrap();
    let taken = Server::new(same("s")).address(&address).start().await.err().unwrap();
    assert!(taken.to_string().contains("is taken by another server"), "{taken}");
    server.stop(Duration::ZERO).await;
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn what_cannot_be_served_is_refused_in_one_sentence() {
    let of = |offers: Offers| Server::new(offers).start();
    let nothing = of(Offers::new()).await.err().unwrap();
    assert!(nothing.to_string().starts_with("there is nothing to serve"), "{nothing}");
    let twins = of(Offers::new().system(same("a")).system(same("a"))).await.err().unwrap();
    assert_eq!(twins.to_string(), "two systems are called \"a\"; names must differ.");
    let slash = of(same("a/b").into()).await.err().unwrap();
    assert!(slash.to_string().contains("\"a/b\""), "{slash}");
    let none = system(Info::new("a").max_concurrency(0), |example, _call| example);
    let none = of(none.into()).await.err().unwrap();
    assert!(none.to_string().contains("max_concurrency"), "{none}");
    let open = Server::new(same("a")).address("0.0.0.0:0").start().await.err().unwrap();
    assert!(open.to_string().contains("can be reached from the network"), "{open}");
    let first = started(same("a")).await;
    let taken = Server::new(same("a")).address(first.address()).start().await.err().unwrap();
    assert!(taken.to_string().starts_with("cannot listen on 127.0.0.1:"), "{taken}");
}

#[tokio::test]
async fn a_blocking_function_in_asynchronous_code_says_so() {
    let error = cbench_client::serve(same("a")).unwrap_err();
    assert!(format!("{error:?}").contains("Use run().await"), "{error}");
}

/// A stream of calls, and the outcomes that came in messages.
struct Stream {
    calls: Option<mpsc::UnboundedSender<pb::ProcessStreamRequest>>,
    replies: tonic::Streaming<pb::ProcessStreamResponse>,
    ready: std::collections::VecDeque<pb::ProcessOutcome>,
}

impl Stream {
    async fn open(server: &cbench_client::RunningServer) -> Self {
        let (calls, sent) = mpsc::unbounded_channel();
        let sent = tokio_stream::wrappers::UnboundedReceiverStream::new(sent);
        let replies = soon(client(server).await.process_stream(sent)).await.unwrap().into_inner();
        Self { calls: Some(calls), replies, ready: Default::default() }
    }

    fn send(&self, calls: Vec<pb::ProcessCall>, cancelled: &[&str]) {
        let cancel_call_ids = cancelled.iter().map(|id| id.to_string()).collect();
        let message = pb::ProcessStreamRequest { calls, cancel_call_ids };
        self.calls.as_ref().expect("open").send(message).unwrap();
    }

    fn half_close(&mut self) {
        self.calls = None;
    }

    async fn next(&mut self) -> pb::ProcessOutcome {
        while self.ready.is_empty() {
            let message = soon(self.replies.message()).await.unwrap().expect("there is more");
            self.ready.extend(message.outcomes);
        }
        self.ready.pop_front().unwrap()
    }
}

fn reason(outcome: &pb::ProcessOutcome) -> &str {
    match &outcome.result {
        Some(pb::process_outcome::Result::Failure(failure)) => &failure.reason,
        _ => "",
    }
}
