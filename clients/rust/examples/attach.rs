//! A system behind a firewall: it dials the daemon instead of being dialled.
//!
//! Start a daemon with `cbench-server`, then: cargo run --example attach 127.0.0.1:50051
//! and run it with: cbench run --server 127.0.0.1:50051 --attached first-words --dataset mini-qa

use cbench_client::{Failure, Info, Value, attach, system};

fn main() -> cbench_client::Result<()> {
    let daemon = std::env::args().nth(1).unwrap_or("127.0.0.1:50051".into());
    let info = Info::new("first-words").version("1").description("Keeps the first words.");
    let first_words = system(info, |example, call| {
        let most = match call.option("words").map(Value::as_i64) {
            None => 100,
            Some(Some(most)) if most >= 0 => most as usize,
            Some(_) => return Err(Failure::new("INVALID_ARGUMENT", "words is a whole number")),
        };
        let kept = example.context().split_whitespace().take(most).collect::<Vec<_>>().join(" ");
        Ok(example.with("context", kept))
    });
    attach(first_words, daemon)
}
