"""An MCP server as a memory, for `cbench adapt`.

pip install mcp
"""

import sys
from pathlib import Path

from cbench_client.adapters.mcp import McpServer

server = McpServer(
    command=sys.executable,
    arguments=(str(Path(__file__).with_name("mcp_notes_server.py")),),
    add_tool="remember",
    add_argument="text",
    search_tool="recall",
    search_argument="question",
    name="mcp-notes",
)
