//! Asks a daemon for a run that it does not have, and prints which error came of it, for
//! tests/sdks/test_causes.py: `causes ADDRESS TOKEN TLS CA MILLISECONDS`.

use std::error::Error as StdError;
use std::time::Duration;

use cbench_client::{Bench, Error, Tls};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn StdError>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [address, token, secured, ca, milliseconds] = given.as_slice() else {
        return Err("causes ADDRESS TOKEN TLS CA MILLISECONDS".into());
    };
    let mut builder = Bench::builder(address).timeout(Duration::from_millis(milliseconds.parse()?));
    if !token.is_empty() {
        builder = builder.token(token);
    }
    if !secured.is_empty() {
        let tls = if ca.is_empty() { Tls::new() } else { Tls::new().ca_pem(std::fs::read(ca)?) };
        builder = builder.tls(tls);
    }
    if let Err(error) = asked(builder).await {
        let shown = format!("{error:#?}");
        println!("{} {}", shown.split_whitespace().next().unwrap_or_default(), error.reason());
    }
    Ok(())
}

async fn asked(builder: cbench_client::BenchBuilder) -> Result<(), Error> {
    builder.connect().await?.get("no-such-run").await?;
    Ok(())
}
