//! Declared options and the trace context, over real sockets.

use crate::support::{channel, client, failure_of, request, same, soon, started, text};
use cbench_client::pb::evaluator_client::EvaluatorClient;
use cbench_client::pb::memory_system_client::MemorySystemClient;
use cbench_client::pb::value::Kind;
use cbench_client::{
    Answer, Assessment, Call, Example, Failure, Info, Ingested, Memory, Offers, OptionInfo,
    Question, Server, Turn, Value, evaluator, memory, pb, system,
};
use tonic::{Code, Request};

fn info() -> Info {
    Info::new("s")
        .option(OptionInfo::number("ratio").default(0.5).range(0.0, 1.0).description("To keep."))
        .option(OptionInfo::integer("words").default(100).at_least(1.0))
        .option(OptionInfo::text("mode").default("good").one_of(["fast", "good"]))
        .option(OptionInfo::flag("loud").default(false))
        .option(OptionInfo::list("stop").default(vec!["the"]))
        .option(OptionInfo::map("weights"))
        .option(OptionInfo::integer("limit").nullable())
        .option(OptionInfo::any("anything"))
        .option(OptionInfo::text("key").required())
}

fn read(example: Example, call: &Call) -> anyhow::Result<Example> {
    let shown = format!(
        "{} {} {} {} {:?} {:?}",
        call.number("ratio")?,
        call.integer("words")?,
        call.text("mode")?,
        call.flag("loud")?,
        call.option("limit"),
        call.option("weights").is_some(),
    );
    Ok(example.with("response", shown))
}

fn int(number: i64) -> pb::Value {
    pb::Value { kind: Some(Kind::IntValue(number)) }
}

fn double(number: f64) -> pb::Value {
    pb::Value { kind: Some(Kind::DoubleValue(number)) }
}

fn asked(options: impl IntoIterator<Item = (&'static str, pb::Value)>) -> pb::ProcessRequest {
    let options = options.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    pb::ProcessRequest { options, ..request("", "") }
}

#[tokio::test]
async fn options_are_announced_with_their_kinds_ranges_and_defaults() {
    let server = started(system(info(), read)).await;
    let mut client = client(&server).await;
    let told = soon(client.describe(pb::SystemDescribeRequest {})).await.unwrap().into_inner();
    let declared = told.systems[0].declared_options.clone().unwrap();
    assert!(!declared.accepts_others);
    let [ratio, words, mode, .., limit, anything, key] = &declared.options[..] else { panic!() };
    assert_eq!(
        (ratio.r#type(), ratio.default_value.clone()),
        (pb::OptionType::Number, Some(double(0.5)))
    );
    assert_eq!((ratio.minimum, ratio.maximum), (Some(0.0), Some(1.0)));
    assert_eq!(ratio.description, "To keep.");
    assert_eq!((words.minimum, words.maximum), (Some(1.0), None));
    assert_eq!(mode.choices, [text("fast"), text("good")]);
    assert!(limit.nullable && limit.default_value.is_none());
    assert_eq!(anything.r#type(), pb::OptionType::Unspecified);
    assert!(key.required);
}

#[tokio::test]
async fn a_call_has_what_the_run_sets_in_the_place_of_the_defaults() {
    let server = started(system(info(), read)).await;
    let mut client = client(&server).await;
    let key = || ("key", text("k"));
    let set = [
        key(),
        ("ratio", int(1)),
        ("words", double(3.0)),
        ("mode", text("fast")),
        ("limit", pb::Value { kind: Some(Kind::NullValue(true)) }),
    ];
    for (options, expected) in [
        (asked([key()]), "0.5 100 good false None false"),
        (asked(set), "1 3 fast false Some(Null) false"),
    ] {
        let reply = soon(client.process(options)).await.unwrap().into_inner();
        assert_eq!(reply.fields["response"], text(expected));
    }
}

#[tokio::test]
async fn options_that_do_not_suit_are_refused_by_name() {
    let server = started(system(info(), |_, _: &Call| -> Example { panic!("it got here") })).await;
    let mut client = client(&server).await;
    for (option, message) in [
        (("rato", int(1)), "and got: rato"),
        (("ratio", text("half")), "option \"ratio\" is \"half\"; it must be a number"),
        (("ratio", double(1.1)), "option \"ratio\" is 1.1; it must be at most 1"),
        (("ratio", double(f64::NAN)), "it must be at least 0"),
        (("words", double(2.5)), "option \"words\" is 2.5; it must be an integer"),
        (("words", int(0)), "it must be at least 1"),
        (("mode", text("slow")), "it must be one of \"fast\", \"good\""),
        (("loud", int(1)), "it must be true or false"),
    ] {
        let status = soon(client.process(asked([("key", text("k")), option]))).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains(message), "{}", status.message());
    }
    let status = soon(client.process(asked([]))).await.unwrap_err();
    assert_eq!(status.message(), "option \"key\" is missing, and has no default");
    assert_eq!(failure_of(&status).reason, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn options_that_cannot_be_declared_are_not_served() {
    let declared = |option: OptionInfo| Info::new("s").option(option);
    for info in [
        declared(OptionInfo::text("a=b")),
        declared(OptionInfo::number("a").default("half")),
        declared(OptionInfo::number("a").default(2.0).at_most(1.0)),
        declared(OptionInfo::flag("a")).option(OptionInfo::flag("a")),
    ] {
        let error = Server::new(system(info, read)).start().await.err().unwrap();
        assert_eq!(error.reason(), "NOT_SERVABLE", "{error}");
    }
}

struct Asked;

impl Memory for Asked {
    async fn ingest(&mut self, _turns: Vec<Turn>, call: &Call) -> Result<Ingested, Failure> {
        Ok(Ingested::new().stored_bytes(call.integer("k")?))
    }

    async fn query(&self, _question: Question, call: &Call) -> Result<Answer, Failure> {
        Ok(Answer::new(call.integer("k")?.to_string()))
    }
}

#[tokio::test]
async fn memory_systems_and_evaluators_declare_theirs_and_evaluators_take_no_others() {
    let k = || OptionInfo::integer("k").default(3);
    let score = |_, _, call: &Call| {
        let k = call.option("k").and_then(Value::as_f64).unwrap_or_default();
        Assessment::from([("k", k)])
    };
    let offers = Offers::new()
        .memory_system(memory(Info::new("m").option(k()), |_| Asked))
        .evaluator(evaluator(Info::new("some").option(k()), score))
        .evaluator(evaluator("silent", score))
        .evaluator(evaluator(Info::new("open").accepts_other_options(), score));
    let server = started(offers).await;
    let mut memories = MemorySystemClient::new(channel(&server).await);
    let options = || [("k".to_string(), int(5))].into();
    let reply = soon(memories.query(pb::QueryRequest { options: options(), ..Default::default() }));
    assert_eq!(reply.await.unwrap().into_inner().response, "5");
    let reply = soon(memories.ingest(pb::IngestRequest::default())).await.unwrap();
    assert_eq!(reply.into_inner().stored_bytes, Some(3));
    let mut evaluators = EvaluatorClient::new(channel(&server).await);
    for (name, expected) in [("some", Ok(5.0)), ("silent", Err(())), ("open", Ok(5.0))] {
        let request =
            pb::ScoreRequest { evaluator: name.into(), options: options(), ..Default::default() };
        let reply = soon(evaluators.score(request)).await;
        let scored = reply.map(|reply| reply.into_inner().scores[0].value).map_err(|_| ());
        assert_eq!(scored, expected, "{name}");
    }
    let told = soon(evaluators.describe(pb::EvaluatorDescribeRequest {})).await.unwrap();
    let announced: Vec<_> = told.into_inner().evaluators.into_iter().collect();
    assert!(announced.iter().all(|info| info.declared_options.is_some()));
}

#[tokio::test]
async fn the_trace_context_of_a_call_reaches_user_code() {
    let traced = system("s", |example: Example, call: &Call| {
        let told = call.traceparent().zip(call.tracestate());
        let told = told.map(|(parent, state)| format!("{parent} {state}"));
        example.with("response", told)
    });
    let server = started(Offers::new().system(traced).system(same("other"))).await;
    let mut client = client(&server).await;
    let mut unary = Request::new(request("s", ""));
    unary.metadata_mut().insert("traceparent", "00-1-2-01".parse().unwrap());
    unary.metadata_mut().insert("tracestate", "a=1".parse().unwrap());
    let reply = soon(client.process(unary)).await.unwrap().into_inner();
    assert_eq!(reply.fields["response"], text("00-1-2-01 a=1"));
    let calls = [("1", "00-3-4-01"), ("2", "")].map(|(id, traceparent)| pb::ProcessCall {
        request: Some(request("s", id)),
        traceparent: traceparent.into(),
        tracestate: "b=2".into(),
        ..Default::default()
    });
    let message = pb::ProcessStreamRequest { calls: calls.into(), ..Default::default() };
    let mut stream = Request::new(tokio_stream::iter([message]));
    // Those of a stream have their own, or none.
    stream.metadata_mut().insert("traceparent", "00-1-2-01".parse().unwrap());
    let mut stream = soon(client.process_stream(stream)).await.unwrap().into_inner();
    let mut seen = Vec::new();
    while let Some(batch) = soon(stream.message()).await.unwrap() {
        for outcome in batch.outcomes {
            let Some(pb::process_outcome::Result::Response(reply)) = outcome.result else {
                panic!()
            };
            seen.push((outcome.call_id, reply.fields["response"].clone()));
        }
    }
    seen.sort_by(|one, other| one.0.cmp(&other.0));
    let null = pb::Value { kind: Some(Kind::NullValue(true)) };
    assert_eq!(seen, [("1".to_string(), text("00-3-4-01 b=2")), ("2".to_string(), null)]);
}
