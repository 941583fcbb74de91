//! A memory system: answers with the turn that shares the most words with the question.
//!
//! Start it with: cargo run --example hello_memory

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use cbench_client::{
    Answer, Call, Failure, Info, Ingested, MemorySystem, Offers, Question, Turn, serve,
};

#[derive(Default)]
struct Notes {
    turns: Mutex<HashMap<String, Vec<Turn>>>,
}

impl MemorySystem for Notes {
    fn info(&self) -> Info {
        Info::new("hello-memory")
            .version("1")
            .description("Answers with the turn nearest by words.")
    }

    async fn reset(&self, scope: &str, _call: &Call) -> Result<(), Failure> {
        self.turns.lock().unwrap().remove(scope);
        Ok(())
    }

    async fn ingest(
        &self,
        scope: &str,
        turns: Vec<Turn>,
        _call: &Call,
    ) -> Result<Ingested, Failure> {
        self.turns.lock().unwrap().entry(scope.to_string()).or_default().extend(turns);
        Ok(Ingested::default())
    }

    async fn query(
        &self,
        scope: &str,
        question: Question,
        _call: &Call,
    ) -> Result<Answer, Failure> {
        let asked = words(&question.text);
        let turns = self.turns.lock().unwrap();
        let remembered = turns.get(scope).into_iter().flatten().map(|turn| turn.content.as_str());
        let nearest = remembered.max_by_key(|text| words(text).intersection(&asked).count());
        Ok(nearest.unwrap_or("nothing").into())
    }
}

fn words(text: &str) -> HashSet<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

fn main() -> cbench_client::Result<()> {
    serve(Offers::new().memory_system(Notes::default()))
}
