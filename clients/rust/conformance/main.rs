//! The conformance program of the Rust SDK; see cbench_server/conformance/PROGRAM.md.

mod evaluators;
mod memory;
mod probe;
mod systems;

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use cbench_client::{Attachment, Offers, Server, ServerTls, Tls};

const FLAGS: [&str; 8] = [
    "--address",
    "--token",
    "--tls-cert",
    "--tls-key",
    "--client-ca",
    "--attach",
    "--tls-ca",
    "--max-in-flight",
];

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let flags = flags()?;
    let flag = |name: &str| flags.get(name).map(String::as_str);
    let offers =
        evaluators::offer(systems::offer(Offers::new()).memory_system(memory::Memory::default()));
    if let Some(target) = flag("--attach") {
        let mut attachment = Attachment::new(offers, target);
        if let Some(token) = flag("--token") {
            attachment = attachment.token(token);
        }
        if let Some(path) = flag("--tls-ca") {
            attachment = attachment.tls(Tls::new().ca_pem(read(path)?));
        }
        if let Some(limit) = flag("--max-in-flight") {
            attachment = attachment.max_in_flight(limit.parse()?);
        }
        return Ok(attachment.attach()?);
    }
    let mut server = Server::new(offers).address(flag("--address").unwrap_or("127.0.0.1:0"));
    if let Some(token) = flag("--token") {
        server = server.token(token);
    }
    if let (Some(cert), Some(key)) = (flag("--tls-cert"), flag("--tls-key")) {
        let mut tls = ServerTls::from_files(Path::new(cert), Path::new(key))?;
        if let Some(path) = flag("--client-ca") {
            tls = tls.client_ca_pem(read(path)?);
        }
        server = server.tls(tls);
    }
    Ok(server.serve()?)
}

fn flags() -> Result<HashMap<String, String>, String> {
    let mut flags = HashMap::new();
    let mut arguments = env::args().skip(1);
    while let Some(name) = arguments.next() {
        if !FLAGS.contains(&name.as_str()) {
            return Err(format!("there is no flag {name}; there are: {}", FLAGS.join(", ")));
        }
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        flags.insert(name, value);
    }
    Ok(flags)
}

fn read(path: &str) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot read {path}: {error}"))
}
