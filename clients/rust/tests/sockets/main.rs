//! The SDK over real sockets. One program, because each would take as long to link.

mod attachment;
mod bench;
mod idioms;
mod memory_and_evaluators;
mod options;
mod security;
mod server;
mod support;
