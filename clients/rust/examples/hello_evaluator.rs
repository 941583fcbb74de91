//! An evaluator: whether the response is as long as the answer.
//!
//! Start it with: cargo run --example hello_evaluator 127.0.0.1:50063
//! and apply it with: cbench run ... --evaluator same-length@127.0.0.1:50063

use cbench_client::{Assessment, Info, Offers, Server, Value, evaluator};

fn main() -> cbench_client::Result<()> {
    let info = Info::new("same-length")
        .version("1")
        .score("same_length", "Whether answer and response are equally long.")
        .required_field("answer");
    let same_length = evaluator(info, |original, processed, _call| {
        match original.get("answer").and_then(Value::as_str) {
            // Not applicable, which is not the same as zero.
            None => Assessment::new(),
            Some(answer) => {
                let is_same = answer.chars().count() == processed.response().chars().count();
                Assessment::from([("same_length", f64::from(is_same))])
            }
        }
    });
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:0".into());
    Server::new(Offers::new().evaluator(same_length)).address(address).serve()
}
