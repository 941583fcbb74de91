//! The systems that PROGRAM.md describes.

use std::io;
use std::time::Duration;

use cbench_client::{
    Call, Example, Failure, Fields, Info, Offers, OptionInfo, System, Turn, Usage, Value, system,
};

use crate::probe::{conformance_panic, hold, seen};

/// Offers them all.
pub fn offer(offers: Offers) -> Offers {
    let info = |name: &str, text: &str| Info::new(name).version("1.0").description(text);
    let echo = info("conformance-echo", "Returns the example with a response.");
    let copied = info("conformance-copy", "Copies every field.");
    let report = info("conformance-report", "Reports what it knows of the call.");
    let waits = info("conformance-hold", "Waits to be released.").max_concurrency(64);
    let limited = info("conformance-limited", "Waits to be released, two at a time.");
    let probe = info("conformance-probe", "Tells what happened under a key.");
    let options = info("conformance-options", "Takes the options that it declares.")
        .option(OptionInfo::integer("k").required())
        .option(
            OptionInfo::number("ratio")
                .default(0.5)
                .range(0.0, 1.0)
                .description("The share to keep."),
        )
        .option(OptionInfo::text("mode").default("good").one_of(["fast", "good"]))
        .option(OptionInfo::integer("limit").default(3).nullable());
    let chat = info("conformance-chat", "Answers conversations.").holds_conversations();
    offers
        .system(system(echo, |example, _call| example.with("response", "echo")))
        .system(system(copied, copy))
        .system(system(report, |_example, call| {
            let remaining = call.remaining().map(|span| span.as_millis() as i64);
            Example::new()
                .with("call_id", call.id())
                .with("remaining_ms", remaining)
                .with("instruction", call.instruction())
                .with("traceparent", call.traceparent().unwrap_or_default())
                .with("tracestate", call.tracestate().unwrap_or_default())
        }))
        .system(Hold(waits))
        .system(Hold(limited.max_concurrency(2)))
        .system(system(probe, look))
        .system(system(info("conformance-fail", "Fails as it is told."), fail))
        .system(system(info("conformance-error", "Raises an ordinary error."), |example, _call| {
            Err::<Example, _>(io::Error::other(text(&example, "message")))
        }))
        .system(system(info("conformance-panic", "Panics."), |example, _call| {
            conformance_panic(&text(&example, "message"));
            example
        }))
        .system(system(info("conformance-deep", "Nests lists."), |example, _call| {
            let deep = (0..integer(&example, "levels"))
                .fold(None, |inner, _| Some(Value::List(inner.into_iter().collect())));
            Example::new().with("deep", deep)
        }))
        .system(system(info("conformance-large", "Returns a large text."), |example, _call| {
            Example::new().with("context", "x".repeat(integer(&example, "size") as usize))
        }))
        .system(system(info("conformance-usage", "Reports usage."), |_example, _call| {
            let usage = Usage::new()
                .cached_prompt_tokens(7)
                .requests(3)
                .abandoned_requests(1)
                .prompt_tokens(9_007_199_254_740_993)
                .completion_tokens(0)
                .cost_usd(0.25)
                .compute_time(Duration::from_millis(1_500));
            Example::new().with("response", "used").with_usage(&usage)
        }))
        .system(system(options, |_example, call| Example::from_iter(call.options().clone())))
        .system(Chat(chat))
}

fn copy(example: Example, call: &Call) -> Example {
    let copies = |prefix: &'static str, fields: Fields| {
        fields.into_iter().map(move |(name, value)| (format!("{prefix}.{name}"), value))
    };
    copies("copy", example.into_fields()).chain(copies("option", call.options().clone())).collect()
}

fn look(example: Example, _call: &Call) -> Result<Example, Failure> {
    let key = example.text("key")?;
    let is_release = example.get("release").and_then(Value::as_bool) == Some(true);
    let seen = seen(key, is_release);
    Ok(Example::new()
        .with("started", seen.started)
        .with("running", seen.running)
        .with("most", seen.most)
        .with("ended", seen.ended)
        .with("cancelled", seen.cancelled))
}

fn fail(example: Example, _call: &Call) -> Result<Example, Failure> {
    let mut failure = Failure::new(example.text("reason")?, example.text("message")?);
    failure.retryable = example.get("retryable").and_then(Value::as_bool).unwrap_or(false);
    let delay = example.get("retry_delay_ms").and_then(Value::as_i64);
    failure.retry_delay = delay.map(|delay| Duration::from_millis(delay as u64));
    Err(failure)
}

struct Hold(Info);

impl System for Hold {
    fn info(&self) -> Info {
        self.0.clone()
    }

    async fn process(&self, example: Example, _call: &Call) -> Result<Example, Failure> {
        let key = example.text("key")?;
        let milliseconds = example.get("milliseconds").and_then(Value::as_i64).unwrap_or(60_000);
        let outcome = hold(key, milliseconds as u64).await;
        Ok(Example::new().with("response", outcome).with("key", key))
    }
}

struct Chat(Info);

impl System for Chat {
    fn info(&self) -> Info {
        self.0.clone()
    }

    async fn process(&self, _example: Example, _call: &Call) -> Result<Example, Failure> {
        Ok(Example::new().with("response", "process"))
    }

    async fn process_conversation(
        &self,
        turns: Vec<Turn>,
        _example: Example,
        call: &Call,
    ) -> Result<Vec<Turn>, Failure> {
        let told = call.instruction();
        let replies = turns.into_iter().enumerate().map(|(position, turn)| {
            let mut fields = turn.fields;
            if !told.is_empty() {
                fields.insert("instruction".into(), told.into());
            }
            let content = format!("{}: {}", position + 1, turn.content);
            let mut reply = Turn::assistant(content).speaker(turn.speaker);
            reply.fields = fields;
            reply
        });
        Ok(replies.collect())
    }
}

/// Reads a text field of an example; empty if there is none.
pub fn text(example: &Example, name: &str) -> String {
    example.text(name).unwrap_or_default().to_string()
}

fn integer(example: &Example, name: &str) -> i64 {
    example.get(name).and_then(Value::as_i64).unwrap_or_default()
}
