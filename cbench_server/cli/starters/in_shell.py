"""A system in shell, with jq."""

from cbench_server.cli.starters.starter import Starter

_SYSTEM = """\
#!/bin/sh
# A system: keep the sentences that share a word with the question.
# A request per line comes in, an answer per line goes out; stderr is for people.
exec jq -c --unbuffered '
  (.example.question // "" | [scan("[A-Za-z0-9]{4,}")]) as $asked
  | .example.context |= (
      split(". ")
      | map(. as $sentence | select(any($asked[]; . as $word | $sentence | contains($word))))
      | join(". "))
  | {id, example}'
"""
_TEST = """\
#!/bin/sh
# Run with: sh test.sh
set -eu
example='{"context": "Tea is hot. The bridge is old.", "question": "Is the bridge old?"}'
request="{\\"id\\": \\"1\\", \\"method\\": \\"process\\", \\"example\\": $example}"
context=$(printf '%s\\n' "$request" | sh my-system.sh | jq -r .example.context)
[ "$context" = "The bridge is old." ] || { echo "got: $context" >&2; exit 1; }
echo good
"""

STARTER = Starter(
    files={"my-system.sh": _SYSTEM, "test.sh": _TEST},
    command="sh my-system.sh",
    test="sh test.sh",
    tools=("jq",),
)
