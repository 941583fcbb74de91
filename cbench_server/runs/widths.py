"""Widths: how many calls a system, or each of its replicas, gets at most at once."""

from cbench_server.limits import MAX_CONCURRENCY
from cbench_server.models.level import CAP
from cbench_server.runs.context import RunContext
from cbench_server.systems.caller import Caller


def width_of(context: RunContext, caller: Caller, *, is_bound: bool = False) -> int:
    """How many calls a system gets at most: what the run says, else its author, else a few.

    With replicas that is for each of them. `is_bound` says that what its author says is never
    exceeded, since more would be refused.
    """
    plan, group = context.plan, caller.replicas

    def of_one(caller: Caller) -> int:
        announced = caller.description.max_concurrency
        most = plan.max_concurrency or announced or CAP
        if announced and is_bound:
            most = min(most, announced)
        return max(1, min(most, caller.capacity or MAX_CONCURRENCY, MAX_CONCURRENCY))

    if group is None:
        return of_one(caller)
    return group.begin(of_one, context.remark, is_fixed=plan.is_width_fixed)
