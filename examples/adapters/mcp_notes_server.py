"""A small MCP server over stdio: it remembers notes, and finds those that share words."""

import re

from mcp.server import MCPServer

server = MCPServer("notes")
_notes: list[str] = []


@server.tool()
def remember(text: str) -> str:
    """Keep a note."""
    _notes.append(text)
    return f"{len(_notes)} notes"


@server.tool()
def recall(question: str) -> str:
    """Return the five notes that share most words with a question, newest last."""
    asked = _words(question)
    ranked = sorted(range(len(_notes)), key=lambda place: -len(asked & _words(_notes[place])))
    return "\n".join(_notes[place] for place in sorted(ranked[:5]))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}", text.lower()))


if __name__ == "__main__":
    server.run()
