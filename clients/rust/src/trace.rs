//! Panics and errors of user code, with the user's part of the stack.

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::Once;
use std::task::{Context, Poll};

use crate::failure::Failure;

const MAX_TRACE: usize = 16_000;

thread_local! {
    static IN_USER_CODE: Cell<bool> = const { Cell::new(false) };
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs user code, and turns its panic into a failure.
pub(crate) fn caught<R>(user_code: impl FnOnce() -> R) -> Result<R, Failure> {
    note_panics();
    let before = IN_USER_CODE.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(user_code));
    IN_USER_CODE.set(before);
    result.map_err(|payload| {
        let trace = LAST_PANIC.take().unwrap_or_default();
        Failure::exception(format!("panic: {}", text_of(payload.as_ref())), trace)
    })
}

/// A future whose panics are failures.
pub(crate) struct Caught<F: ?Sized>(pub Pin<Box<F>>);

impl<T, F: Future<Output = Result<T, Failure>> + ?Sized> Future for Caught<F> {
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match caught(|| self.0.as_mut().poll(context)) {
            Ok(poll) => poll,
            Err(failure) => Poll::Ready(Err(failure)),
        }
    }
}

/// Shows a stack captured where an error became a failure.
pub(crate) fn of_error(stack: &Backtrace) -> String {
    let machinery = ["failure::", "from<", "from_residual", "core::convert::"];
    let frames = frames_of(stack);
    let start = frames.iter().take_while(|frame| names_any(frame, &machinery)).count();
    shown(&frames[start..])
}

fn of_panic(stack: &Backtrace) -> String {
    let machinery = ["core::panicking::", "rust_begin_unwind", "begin_panic"];
    let frames = frames_of(stack);
    let last = frames.iter().rposition(|frame| names_any(frame, &machinery));
    shown(&frames[last.map_or(0, |last| last + 1)..])
}

// The stack is gone once a panic is caught, so a hook looks at it before.
fn note_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if IN_USER_CODE.get() {
                let place = info.location().map(|at| format!("panicked at {at}\n"));
                let stack = of_panic(&Backtrace::force_capture());
                LAST_PANIC.set(Some(place.unwrap_or_default() + &stack));
            }
            previous(info);
        }));
    });
}

/// Cuts a stack into frames of one or two lines, down to the code of this
/// crate that called the user's.
fn frames_of(stack: &Backtrace) -> Vec<String> {
    let mut frames: Vec<String> = Vec::new();
    for line in stack.to_string().lines() {
        let is_new = line.trim_start().starts_with(|first: char| first.is_ascii_digit());
        match frames.last_mut() {
            Some(frame) if !is_new => *frame = format!("{frame}\n{line}"),
            _ => frames.push(line.to_string()),
        }
    }
    let end = frames.iter().position(|frame| frame.contains("cbench_client::trace::caught"));
    frames.truncate(end.unwrap_or(frames.len()));
    frames
}

fn names_any(frame: &str, parts: &[&str]) -> bool {
    parts.iter().any(|part| frame.contains(part))
}

fn shown(frames: &[String]) -> String {
    let mut text = frames.join("\n");
    crate::status::shorten(&mut text, MAX_TRACE);
    text
}

fn text_of(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "its payload is not text"
    }
}
