"""A system in Rust, with its standard library."""

from cbench_server.cli.starters.starter import Starter

_SYSTEM = r"""// A system: keep the sentences that share a word with the question.
// A request per line comes in, an answer per line goes out; stderr is for people.
// Texts stay as JSON writes them, so no library is needed to read them.
use std::io::{self, BufRead, Write};
use std::ops::Range;

/// Where the text of a key is, between its quotes.
fn text(line: &str, key: &str) -> Option<Range<usize>> {
    let name = format!("\"{key}\"");
    let bytes = line.as_bytes();
    for (found, _) in line.match_indices(&name) {
        let rest = line[found + name.len()..].trim_start();
        let Some(value) = rest.strip_prefix(':') else { continue };
        let Some(inside) = value.trim_start().strip_prefix('"') else { continue };
        let start = line.len() - inside.len();
        let mut end = start;
        while end < bytes.len() && bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        return Some(start..end);
    }
    None
}

fn process(line: &str) -> String {
    let Some(context) = text(line, "context") else { return line.to_string() };
    let question = text(line, "question").map_or("", |range| &line[range]);
    let asked: Vec<&str> = question
        .split_whitespace()
        .map(|word| word.trim_matches(['?', ',', '.']))
        .filter(|word| word.len() > 3)
        .collect();
    let kept: String = line[context.clone()]
        .split_inclusive(". ")
        .filter(|sentence| asked.iter().any(|word| sentence.contains(word)))
        .collect();
    format!("{}{}{}", &line[..context.start], kept, &line[context.end..])
}

fn main() -> io::Result<()> {
    for line in io::stdin().lock().lines() {
        let mut out = io::stdout().lock();
        writeln!(out, "{}", process(&line?))?;
        out.flush()?;
    }
    Ok(())
}

#[test]
fn it_keeps_what_is_asked_about() {
    let line = concat!(
        r#"{"id": "1", "example": {"context": "Tea is hot. The bridge is old.","#,
        r#" "question": "Is the bridge old?"}}"#,
    );
    assert_eq!(process(line), line.replace("Tea is hot. ", ""));
}
"""

STARTER = Starter(
    files={"mine.rs": _SYSTEM},
    command="./mine",
    test="rustc --edition 2021 --test -o mine-test mine.rs && ./mine-test",
    build="rustc --edition 2021 -O -o mine mine.rs",
    tools=("rustc",),
)
