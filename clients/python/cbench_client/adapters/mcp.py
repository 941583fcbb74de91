"""An MCP server as a memory: one server process over stdio for each conversation."""

import asyncio
import queue
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cbench_client.adapters.library import library

_PACKAGE = "mcp"
_PATIENCE_S = 120.0


@dataclass(frozen=True)
class McpServer:
    """How a server is started, and which of its tools remember and find."""

    command: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    add_tool: str = "add_memory"
    add_argument: str = "text"
    search_tool: str = "search_memory"
    search_argument: str = "query"
    search_settings: Mapping[str, Any] = field(default_factory=dict)
    name: str = "mcp-memory"


class ToolFailed(Exception):
    """A tool of the server answered with an error."""


def mcp_memory(server: McpServer) -> type:
    """Return a class of memories, one object and one server for each conversation."""
    library("mcp", _PACKAGE)
    shared = server

    class McpMemory(_McpMemory):
        name = shared.name
        server = shared

    return McpMemory


class _McpMemory:
    name = "mcp-memory"
    server: McpServer

    def __init__(self) -> None:
        self._session: _Session | None = None

    def reset(self) -> None:
        """Forget everything: the next turn starts another server."""
        if self._session is not None:
            self._session.end()
        self._session = None

    def ingest(self, turns: list[dict[str, Any]]) -> None:
        """Have the server remember each turn."""
        for turn in turns:
            said = (
                f"{turn['speaker']}: {turn['content']}" if turn.get("speaker") else turn["content"]
            )
            self._call(self.server.add_tool, {self.server.add_argument: said})

    def query(self, question: str) -> dict[str, Any]:
        """Return what the server finds; a reader, if the run has one, answers from it."""
        asked = {**self.server.search_settings, self.server.search_argument: question}
        return {"context": self._call(self.server.search_tool, asked)}

    def _call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        if self._session is None:
            self._session = _Session(self.server)
            weakref.finalize(self, self._session.end)
        return self._session.call(tool, dict(arguments))


class _Session:
    """A server process and its session, which one task of a thread opens, uses and closes."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._asked: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="cbench-mcp", daemon=True)
        self._thread.start()

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        answer: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._asked.put((tool, arguments, answer))
        try:
            found = answer.get(timeout=_PATIENCE_S)
        except queue.Empty:
            raise ToolFailed(f"the tool {tool} did not answer within {_PATIENCE_S:g}s") from None
        if isinstance(found, BaseException):
            raise found
        return str(found)

    def end(self) -> None:
        self._asked.put(None)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            # Whoever waits, or comes later, is told.
            while (asked := self._asked.get()) is not None:
                asked[2].put(ToolFailed(f"the MCP server {self._server.command} ended: {error!r}"))

    async def _serve(self) -> None:
        mcp = library("mcp", _PACKAGE)
        stdio = library("mcp.client.stdio", _PACKAGE)
        parameters = mcp.StdioServerParameters(
            command=self._server.command,
            args=list(self._server.arguments),
            env=dict(self._server.environment) or None,
        )
        async with (
            stdio.stdio_client(parameters) as (reader, writer),
            mcp.ClientSession(reader, writer) as session,
        ):
            await session.initialize()
            while (asked := await asyncio.to_thread(self._asked.get)) is not None:
                tool, arguments, answer = asked
                try:
                    answer.put(_text(tool, await session.call_tool(tool, arguments)))
                except Exception as error:
                    answer.put(error)


def _text(tool: str, result: Any) -> str:
    said = "\n".join(str(each.text) for each in result.content if each.type == "text")
    # Its second version writes names as Python does.
    facts = vars(result)
    if facts.get("isError") or facts.get("is_error"):
        raise ToolFailed(f"the tool {tool} failed: {said}")
    return said
