"""Fields of a spec that the contract has and this version does not carry out.

A run must not look as if it had kept a budget, or a price, that nobody looked at.
"""

from cbench_server.errors import InvalidSpec
from cbench_server.spec import ModelRef, RunSpec


def check_built(spec: RunSpec) -> None:
    """Refuse what would be left undone without a word."""
    models = [ref.proxy for ref in spec.systems if ref.proxy] + [spec.reader]
    asked = {
        "budget_usd": spec.budget_usd is not None,
        "anchors": bool(spec.anchors),
        "group_by": bool(spec.group_by),
        "swept_option": any(ref.swept_option for ref in spec.systems),
        "role": any(ref.role in ("anchor", "direct") for ref in spec.systems),
        "price": any(isinstance(model, ModelRef) and model.price for model in models),
    }
    for name, is_asked in asked.items():
        if is_asked:
            raise InvalidSpec(
                f"{name}: this version of the daemon does not carry that out yet. Leave it out."
            )
