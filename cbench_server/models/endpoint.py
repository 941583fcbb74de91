"""Where a model is asked, and with which key, as users write them."""

from urllib.parse import urlsplit

from cbench_server.errors import InvalidInput


def endpoint_of(base_url: str) -> str:
    """Return where chats are asked for, whether or not the URL goes as far as `/v1` or beyond."""
    root = base_url.rstrip("/")
    if root.endswith("/chat/completions"):
        return root
    return f"{root.removesuffix('/v1')}/v1/chat/completions"


def checked_host(base_url: str) -> str:
    """Return the host of a base URL; refuse what is none, or would show a secret."""
    # The URL is not quoted where it may hold a password or a key.
    parts = urlsplit(base_url)
    # An empty query or fragment is one all the same, and would swallow the path that is added.
    if "@" in parts.netloc or "?" in base_url or "#" in base_url:
        raise InvalidInput(
            "a base URL has no user, password, query or fragment, since URLs are shown and "
            "stored; pass the key as api_key"
        )
    try:
        is_complete = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_complete = False
    if not is_complete:
        raise InvalidInput(f'"{base_url}" is not a base URL; write it like https://api.openai.com')
    return parts.netloc


def checked_key(api_key: str | None) -> str:
    """Return a key as a header can hold it."""
    key = (api_key or "").strip()
    if not all("!" <= character <= "~" for character in key):
        raise InvalidInput("the API key holds characters that cannot stand in an HTTP header")
    return key
