"""Bridges to systems that speak no gRPC: programs that exchange lines of JSON, and web servers."""

TOKEN_VARIABLE = "CBENCH_BRIDGE_TOKEN"
"""What a bridge that attaches takes its token from; no program under test sees it."""
