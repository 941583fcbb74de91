"""A system in JavaScript, for Node."""

from cbench_server.cli.starters.starter import Starter

_SYSTEM = """\
// A system: keep the sentences that share a word with the question.
// A request per line comes in, an answer per line goes out; stderr is for people.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

export function process_(example) {
  const asked = (example.question ?? "").match(/\\w{4,}/g) ?? [];
  const sentences = example.context.split(/(?<=[.!?])\\s+/);
  const kept = sentences.filter((sentence) => asked.some((word) => sentence.includes(word)));
  return { ...example, context: kept.join(" ") };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, example } = JSON.parse(line);
    console.log(JSON.stringify({ id, example: process_(example) }));
  }
}
"""
_TEST = """\
// Run with: node --test
import assert from "node:assert/strict";
import { test } from "node:test";
import { process_ } from "./my-system.mjs";

test("it keeps what is asked about", () => {
  const example = { context: "Tea is hot. The bridge is old.", question: "Is the bridge old?" };
  assert.equal(process_(example).context, "The bridge is old.");
});
"""

STARTER = Starter(
    files={"my-system.mjs": _SYSTEM, "my-system.test.mjs": _TEST},
    command="node my-system.mjs",
    test="node --test",
    tools=("node",),
)
