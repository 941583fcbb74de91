//! Runtimes for blocking calls, and the signals that end them.

use crate::error::{Error, Result};

/// Runs a future to its end on a new runtime.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    if tokio::runtime::Handle::try_current().is_ok() {
        let message =
            "this function blocks and was called from asynchronous code. Use run().await.";
        return Err(Error::CannotServe(message.into()));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Error::CannotServe(format!("cannot start a runtime: {error}.")))?;
    let result = runtime.block_on(future);
    // Threads of user code may never end; they do not keep the process.
    runtime.shutdown_background();
    result
}

/// Listens for SIGINT and SIGTERM: the first is the end, the second ends at once.
#[cfg(unix)]
pub(crate) fn signalled() -> Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};

    let failed = |error| Error::CannotServe(format!("cannot listen for signals: {error}."));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        eprintln!("finishing the calls in progress; once more to stop at once");
        tokio::spawn(async move {
            let number = tokio::select! {
                _ = interrupt.recv() => 2,
                _ = terminate.recv() => 15,
            };
            std::process::exit(128 + number);
        });
    })
}

/// Listens for Ctrl-C: the first is the end.
#[cfg(not(unix))]
pub(crate) fn signalled() -> Result<impl Future<Output = ()>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}

/// Sends all that is printed from now on to stderr, because stdout may no
/// longer be read: a full pipe would stop the process.
#[cfg(unix)]
pub(crate) fn leave_stdout() {
    // SAFETY: both are the process's own standard streams, and dup2 has no
    // other conditions.
    #[allow(unsafe_code, reason = "std has no way to replace stdout")]
    unsafe {
        libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO);
    }
}

/// Does nothing where there are no file descriptors.
#[cfg(not(unix))]
pub(crate) fn leave_stdout() {}
