"""A user's Python objects, offered to a daemon: served, or attached."""
