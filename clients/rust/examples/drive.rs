//! Drives a daemon: starts a run, follows its rows, and survives a lost connection.
//!
//! Start a daemon with `cbench-server`, then: cargo run --example drive 127.0.0.1:50051

use cbench_client::pb::run_event::Kind;
use cbench_client::pb::{DatasetRef, RunSpec, SystemRef};
use cbench_client::{Bench, Fields};

#[tokio::main]
async fn main() -> cbench_client::Result<()> {
    let daemon = std::env::args().nth(1).unwrap_or("127.0.0.1:50051".into());
    let bench = Bench::connect(daemon).await?;
    let options = Fields::from([("ratio".into(), 0.3.into())]);
    let spec = RunSpec::new()
        .system(SystemRef::builtin("truncate-tail").with_options(options)?)
        .dataset(DatasetRef::named("mini-qa").first(40));
    let mut events = bench.evaluate(spec);
    while let Some(event) = events.next().await? {
        match event.kind {
            Some(Kind::Row(row)) => println!("{} {:?}", row.ordinal, row.scores),
            Some(Kind::Finished(run)) => {
                let rows = run.progress.as_ref().map_or(0, |progress| progress.completed_rows);
                println!("{}: {}, {rows} rows", run.run_id, run.state().as_str_name());
                for summary in &run.summaries {
                    let mean = summary.metrics.get("mean_score").copied().unwrap_or(f64::NAN);
                    println!("{}: mean score {mean:.3}", summary.system);
                }
            }
            _ => {}
        }
    }
    Ok(())
}
