//! What happened under each key, and the piece of user code that waits to be released.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// What happened under one key.
#[derive(Clone, Default)]
pub struct Counters {
    pub started: i64,
    pub running: i64,
    pub most: i64,
    pub ended: i64,
    pub cancelled: i64,
    pub released: CancellationToken,
}

static COUNTERS: LazyLock<Mutex<HashMap<String, Counters>>> = LazyLock::new(Mutex::default);

fn counters() -> MutexGuard<'static, HashMap<String, Counters>> {
    COUNTERS.lock().expect("nothing panics while it is held")
}

/// Reads the counters of a key, zero for one never seen, after releasing it if asked to.
pub fn seen(key: &str, is_release: bool) -> Counters {
    let mut counters = counters();
    let seen = counters.entry(key.to_string()).or_default();
    if is_release {
        // Who is released counts on only when this has been read.
        seen.released.cancel();
    }
    seen.clone()
}

/// Waits until the key is released or the time is up. Dropped before, it counts as cancelled.
pub async fn hold(key: &str, milliseconds: u64) -> &'static str {
    let mut running = Running::start(key);
    let released = seen(key, false).released;
    let waited = tokio::time::timeout(Duration::from_millis(milliseconds), released.cancelled());
    let outcome = if waited.await.is_ok() { "released" } else { "elapsed" };
    running.is_done = true;
    outcome
}

struct Running {
    key: String,
    is_done: bool,
}

impl Running {
    fn start(key: &str) -> Self {
        let mut counters = counters();
        let seen = counters.entry(key.to_string()).or_default();
        seen.started += 1;
        seen.running += 1;
        seen.most = seen.most.max(seen.running);
        Self { key: key.to_string(), is_done: false }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut counters = counters();
        let seen = counters.entry(self.key.clone()).or_default();
        seen.running -= 1;
        seen.ended += 1;
        seen.cancelled += i64::from(!self.is_done);
    }
}

/// Breaks in a function whose name the stack trace must show.
#[inline(never)]
pub fn conformance_panic(message: &str) {
    panic!("{message}");
}
