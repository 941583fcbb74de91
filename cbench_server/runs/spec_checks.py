"""Everything that is refused of a spec before anyone is asked anything."""

from cbench_server.errors import blaming
from cbench_server.registry import Registry
from cbench_server.runs.anchors import check_anchors
from cbench_server.runs.asked_again import check_asked_again
from cbench_server.runs.conclusions import check_arms
from cbench_server.runs.prices import check_prices
from cbench_server.runs.resolution import check_spec, resolve_metrics
from cbench_server.runs.spec_limits import check_limits
from cbench_server.spec import RunSpec
from cbench_server.tokens import get_tokenizer


def check_whole(spec: RunSpec, registry: Registry) -> None:
    """Raise InvalidInput for the first thing that cannot be meant, naming its field."""
    check_spec(spec)
    check_limits(spec)
    check_arms(spec)
    check_anchors(spec)
    check_prices(spec)
    check_asked_again(spec)
    resolve_metrics(spec, registry)
    with blaming("spec.tokenizer"):
        get_tokenizer(spec.tokenizer or None)
