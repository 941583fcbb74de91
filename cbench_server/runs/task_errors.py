"""Errors of tasks that fell together, of which one says why."""

import asyncio

from cbench_server.errors import CbenchError


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The exception that says most about why a group of tasks fell."""
    leaves: list[BaseException] = []
    stack: list[BaseException] = [errors]
    while stack:
        error = stack.pop()
        if isinstance(error, BaseExceptionGroup):
            stack.extend(error.exceptions)
        else:
            leaves.append(error)
    return min(
        leaves,
        key=lambda error: (
            isinstance(error, asyncio.CancelledError),
            not isinstance(error, CbenchError),
        ),
    )
