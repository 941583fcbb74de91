"""A program that answers requests by lines of JSON, well or badly: python lines.py MANNER."""

import json
import os
import sys
from typing import Any

NAN = float("nan")


def shortened(request: dict[str, Any]) -> dict[str, Any]:
    """Answer as a system that keeps the first 200 characters."""
    example = request["example"]
    ratio = request["options"].get("keep", 200)
    return {"id": request["id"], "example": {**example, "context": example["context"][:ratio]}}


def main(manner: str, place: str = "") -> None:
    """Answer until stdin ends."""
    memories: dict[str, list[str]] = {}
    for count, line in enumerate(sys.stdin):
        request = json.loads(line)
        if manner == "once":
            print(json.dumps(shortened(request)))
            return
        if manner == "deadly" and "long-notes-003" in line:
            print("no patience with this one", file=sys.stderr)
            sys.exit(3)
        if manner == "dies-once" and count == 1 and not os.path.exists(place):
            open(place, "w").close()
            sys.exit(4)
        if manner == "junk":
            answer: Any = f"row {count} is done"
        elif manner == "nameless":
            answer = {"example": request["example"]}
        elif manner == "refuses":
            answer = {"id": request["id"], "error": "not this one", "reason": "TOO_HARD"}
        elif manner == "environment":
            answer = {"id": request["id"], "error": " ".join(sorted(os.environ))}
        elif manner == "floats":
            answer = {**shortened(request), "id": float(request["id"])}
        elif manner == "later":
            answer = {"id": request["id"], "error": "later", "reason": "BUSY", "retry_delay": NAN}
        elif manner == "memory":
            answer = remembering(memories, request)
        else:
            answer = shortened(request)
        print(answer if isinstance(answer, str) else json.dumps(answer), flush=True)


def remembering(memories: dict[str, list[str]], request: dict[str, Any]) -> dict[str, Any]:
    """Answer as a memory that hands everything back."""
    said = memories.setdefault(request["scope"], [])
    if request["method"] == "reset":
        memories.pop(request["scope"])
        return {"id": request["id"]}
    if request["method"] == "ingest":
        said += [turn["content"] for turn in request["turns"]]
        return {"id": request["id"]}
    return {"id": request["id"], "response": "\n".join(said)}


if __name__ == "__main__":
    main(*sys.argv[1:])
