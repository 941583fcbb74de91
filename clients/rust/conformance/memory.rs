//! The memory system that PROGRAM.md describes.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use cbench_client::{
    Answer, Call, Failure, Fields, Info, Ingested, MemorySystem, Question, Turn, Usage, Value,
};

use crate::probe::{conformance_panic, hold};

#[derive(Clone, Default)]
struct Scope {
    turns: Vec<Turn>,
    ingests: i64,
}

impl Scope {
    fn bytes(&self) -> i64 {
        self.turns.iter().map(|turn| turn.content.len() as i64).sum()
    }
}

/// Remembers turns.
#[derive(Default)]
pub struct Memory {
    scopes: Mutex<HashMap<String, Scope>>,
}

impl MemorySystem for Memory {
    fn info(&self) -> Info {
        Info::new("conformance-memory")
            .version("1.0")
            .description("Remembers turns.")
            .max_concurrency(16)
    }

    async fn reset(&self, scope: &str, _call: &Call) -> Result<(), Failure> {
        self.scopes.lock().expect("whole").remove(scope);
        Ok(())
    }

    async fn ingest(
        &self,
        scope: &str,
        turns: Vec<Turn>,
        _call: &Call,
    ) -> Result<Ingested, Failure> {
        for turn in &turns {
            obey(&turn.content).await?;
        }
        let mut scopes = self.scopes.lock().expect("whole");
        let scope = scopes.entry(scope.to_string()).or_default();
        let usage = Usage::new().prompt_tokens(turns.len() as i64);
        scope.turns.extend(turns);
        scope.ingests += 1;
        Ok(Ingested::new().usage(usage).stored_bytes(scope.bytes()))
    }

    async fn query(&self, scope: &str, question: Question, call: &Call) -> Result<Answer, Failure> {
        obey(&question.text).await?;
        let scope = self.scopes.lock().expect("whole").get(scope).cloned().unwrap_or_default();
        let contents: Vec<&str> = scope.turns.iter().map(|turn| turn.content.as_str()).collect();
        Ok(Answer::new(contents.len().to_string())
            .context(contents.join("\n"))
            .context_tokens(contents.len() as i64)
            .stored_bytes(scope.bytes())
            .retrieval_time(Duration::from_millis(250))
            .usage(Usage::new().prompt_tokens(3))
            .with_metadata("ingests", scope.ingests)
            .with_metadata("question", question.text)
            .with_metadata("budget", question.budget)
            .with_metadata("asked_at", or_null(&question.asked_at))
            .with_metadata("instruction", call.instruction())
            .with_metadata("traceparent", call.traceparent().unwrap_or_default())
            .with_metadata("tracestate", call.tracestate().unwrap_or_default())
            .with_metadata("last", scope.turns.last().map(as_map)))
    }
}

async fn obey(text: &str) -> Result<(), Failure> {
    match text {
        "fail" => return Err(Failure::new("CONFORMANCE", "told to fail")),
        "panic" => conformance_panic("told to panic"),
        _ => {
            if let Some(key) = text.strip_prefix("hold:") {
                hold(key, 60_000).await;
            }
        }
    }
    Ok(())
}

fn or_null(text: &str) -> Value {
    Some(text).filter(|text| !text.is_empty()).into()
}

fn as_map(turn: &Turn) -> Fields {
    Fields::from([
        ("role".into(), turn.role.as_str().into()),
        ("content".into(), turn.content.as_str().into()),
        ("speaker".into(), or_null(&turn.speaker)),
        ("time".into(), or_null(&turn.time)),
        ("session".into(), or_null(&turn.session)),
        ("fields".into(), turn.fields.clone().into()),
    ])
}
