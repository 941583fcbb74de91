"""The answers an example accepts."""

from cbench_server.types import Example


def references(original: Example) -> list[str]:
    """Return `answers` if there are any, else `[answer]`; nothing if the example has neither.

    Empty strings are dropped where others exist, so `[""]` means that the
    expected answer is empty. Other values than strings are given as text.
    """
    many = original.get("answers")
    if isinstance(many, list | tuple):
        found = [str(answer) for answer in many if answer is not None]
    else:
        found = [] if many is None else [str(many)]
    if not found:
        single = original.get("answer")
        return [] if single is None else [str(single)]
    return [answer for answer in found if answer] or [""]
