"""The daemon's gRPC side: its services, and the systems and evaluators it calls."""
