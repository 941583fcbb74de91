"""A judge's reply as plain text: bounded, without markup, with single spaces."""

import re

from cbench_server.limits import MAX_VERDICT_HEAD, MAX_VERDICT_TAIL

_MARKUP = re.compile(r"[*_`#$\"“”]+|\\(?:boxed|text)|[{}\[\]]|</?[a-z]{1,12}>")
_SPACES = re.compile(r"[^\S\n]+")
_BREAKS = re.compile(r" ?\n[ \n]*")


def ends_of(reply: str) -> str:
    """Return the reply, of a very long one both ends."""
    if len(reply) <= MAX_VERDICT_HEAD + MAX_VERDICT_TAIL:
        return reply
    return f"{reply[:MAX_VERDICT_HEAD]}\n{reply[-MAX_VERDICT_TAIL:]}"


def plain(reply: str) -> str:
    """Return the reply without markup, with single spaces."""
    return _BREAKS.sub("\n", _SPACES.sub(" ", _MARKUP.sub("", reply))).strip()
