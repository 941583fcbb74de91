"""A system in ten lines: python examples/python/hello_system.py"""

from cbench_client import serve


def hello(example: dict[str, str]) -> dict[str, str]:
    return {**example, "response": f"You asked: {example['question']}"}


serve(hello)
