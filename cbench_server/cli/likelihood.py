"""Answer likelihood: its flags, and the evaluator they describe."""

import argparse
from typing import Any

from cbench_server.cli.exits import UsageError


def add_likelihood_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags in a separate group."""
    group = parser.add_argument_group("the likelihood of the reference, without sampling")
    group.add_argument(
        "--likelihood",
        metavar="URL|local[:FILE]",
        help="a server that tells how likely the reference is after what a system left: llama.cpp, "
        "vLLM, or completions with echo and logprobs; local is the model of `cbench model fetch`, "
        "or a GGUF file",
    )
    group.add_argument(
        "--likelihood-model",
        metavar="MODEL",
        default="",
        help="its model; a llama.cpp server needs none",
    )
    group.add_argument(
        "--likelihood-credential",
        metavar="NAME",
        default="",
        help="the name of the credential in the daemon's configuration for it (without --server, "
        "it gets OPENAI_API_KEY)",
    )


def likelihood_evaluators(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the evaluator as a reference; none without --likelihood."""
    given = vars(args)
    url = given.get("likelihood")
    if not url:
        for name in ("likelihood_model", "likelihood_credential"):
            if given.get(name):
                raise UsageError(f"--{name.replace('_', '-')} needs --likelihood URL.")
        return []
    if given.get("kind") == "memory":
        raise UsageError(
            "--likelihood is for `cbench run`: a memory run has no context to leave something of. "
            "Conversations can be read there with --as-transcript."
        )
    options = {"base_url": url, "model": args.likelihood_model}
    if args.likelihood_credential:
        options["credential"] = args.likelihood_credential
    return [{"name": "answer-likelihood", "options": options}]
