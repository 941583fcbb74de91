"""Systems made of what other libraries have: retrievers, compressors, memories and MCP servers.

Each imports its library when it is made, and not before.
"""
