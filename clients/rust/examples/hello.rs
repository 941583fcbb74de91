//! A system in ten lines: cargo run --example hello
use cbench_client::{serve, system};

fn main() -> cbench_client::Result<()> {
    serve(system("hello", |example, _call| {
        let response = format!("You asked: {}", example.question());
        example.with("response", response)
    }))
}
