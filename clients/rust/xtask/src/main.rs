//! Generates the stubs in `src/gen` from `protos/`: `cargo xtask protos`.
//!
//! `cargo xtask protos --check` writes nothing, and fails if the stubs differ
//! from what it would write. `src/gen/made-from.txt` has digests of what they
//! were made from and of themselves, by which `stubs.py` tells the same without
//! compiling anything.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

use prost::Message;
use prost_types::FileDescriptorSet;
use prost_types::field_descriptor_proto::Label;
use prost_types::source_code_info::Location;
use protox::Compiler;

const USAGE: &str = "usage: cargo xtask protos [--check]";
const CODE: &str = "cbench.v1.rs";
const DESCRIPTORS: &str = "descriptors.bin";
const MADE_FROM: &str = "made-from.txt";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let is_check = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["protos"] => false,
        ["protos", "--check"] => true,
        _ => {
            eprintln!("{USAGE}");
            process::exit(2);
        }
    };
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = package.join("src/gen");
    if !is_check {
        generate(&package.join("../../protos"), &target)?;
        return note(&package, &target);
    }
    let fresh = package.join("target/protos-check");
    fs::create_dir_all(&fresh)?;
    generate(&package.join("../../protos"), &fresh)?;
    for name in [CODE, DESCRIPTORS] {
        if fs::read(fresh.join(name))? != fs::read(target.join(name)).unwrap_or_default() {
            eprintln!("src/gen/{name} is not what protos/ gives. Run: cargo xtask protos");
            process::exit(1);
        }
    }
    Ok(())
}

/// Makes the scores of a `ScoreResponse` a list of entries with a required value.
///
/// The bytes are the same, but prost leaves out of a map what equals zero, and
/// minus zero would arrive as zero.
fn with_entries_written_out(mut descriptors: FileDescriptorSet) -> FileDescriptorSet {
    for file in &mut descriptors.file {
        let comments = file.source_code_info.get_or_insert_default();
        for (index, message) in file.message_type.iter_mut().enumerate() {
            if message.name() != "ScoreResponse" {
                continue;
            }
            let entry = &mut message.nested_type[0];
            entry.options = None;
            entry.field.iter_mut().for_each(|field| field.set_label(Label::Required));
            let path = [4, index as i32, 3, 0];
            comments.location.push(comment(&path, " One score."));
            comments.location.push(comment(&[&path[..], &[2, 0]].concat(), " Its name."));
            comments.location.push(comment(&[&path[..], &[2, 1]].concat(), " Its value."));
        }
    }
    descriptors
}

fn comment(path: &[i32], text: &str) -> Location {
    Location {
        path: path.to_vec(),
        span: vec![0, 0, 0],
        leading_comments: Some(text.to_string()),
        ..Location::default()
    }
}

fn sources(protos: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut sources: Vec<PathBuf> = fs::read_dir(protos.join("cbench/v1"))?
        .map(|entry| entry.map(|found| found.path()))
        .collect::<Result<_, _>>()?;
    sources.sort();
    Ok(sources)
}

/// Notes what the stubs were made from, and what they are.
fn note(package: &Path, target: &Path) -> Result<(), Box<dyn Error>> {
    let mut inputs = sources(&package.join("../../protos"))?;
    inputs.extend(
        ["xtask/src/main.rs", "xtask/Cargo.toml", "Cargo.lock"].map(|path| package.join(path)),
    );
    let outputs = [CODE, DESCRIPTORS].map(|name| target.join(name));
    let text = format!("from {:016x}\nmade {:016x}\n", digest(&inputs)?, digest(&outputs)?);
    Ok(fs::write(target.join(MADE_FROM), text)?)
}

/// FNV-1a, 64 bits, of files one after the other; `stubs.py` has the same.
fn digest(paths: &[PathBuf]) -> Result<u64, Box<dyn Error>> {
    let mut digest = 0xcbf2_9ce4_8422_2325;
    for path in paths {
        for byte in fs::read(path)? {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    Ok(digest)
}

fn generate(protos: &Path, output: &Path) -> Result<(), Box<dyn Error>> {
    let sources = sources(protos)?;
    let mut compiler = Compiler::new([protos])?;
    compiler.include_source_info(true).include_imports(true);
    compiler.open_files(&sources)?;
    let mut descriptors = compiler.file_descriptor_set();
    tonic_prost_build::configure()
        .out_dir(output)
        // Sorted, so that equal messages are equal bytes.
        .btree_map(".")
        .codec_path("crate::codec::Codec")
        .emit_rerun_if_changed(false)
        .compile_fds(with_entries_written_out(descriptors.clone()))?;
    for file in &mut descriptors.file {
        file.source_code_info = None;
    }
    fs::write(output.join(DESCRIPTORS), descriptors.encode_to_vec())?;
    Ok(())
}
