"""Models that answer: the flags of readers and prompts, and the parts of a spec they describe."""

import argparse
from pathlib import Path
from typing import Any

from cbench_server.cli.exits import UsageError
from cbench_server.cli.prices import HELP, METAVAR, price
from cbench_server.cli.values import duration, option, positive_int

PLAIN = "plain"
_MAX_TEMPLATE_BYTES = 1_000_000


def add_model_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags in two groups."""
    reader = parser.add_argument_group("a reader, which answers for systems that do not")
    reader.add_argument(
        "--reader",
        metavar="URL|local[:FILE]",
        help="an OpenAI-compatible endpoint that answers for systems that return no response; "
        "local is the model of `cbench model fetch`, or a GGUF file",
    )
    reader.add_argument(
        "--reader-model", metavar="MODEL", help="the model of the --reader (default: --model)"
    )
    reader.add_argument(
        "--reader-credential",
        metavar="NAME",
        default="",
        help="the name of the credential in the daemon's configuration for the --reader",
    )
    reader.add_argument(
        "--reader-option",
        metavar="KEY=VALUE",
        dest="reader_options",
        type=option,
        action="append",
        default=[],
        help="a further key of its requests, such as top_p=0.9; VALUE is JSON, else text, and null "
        "leaves a key out (default: temperature=0 and each dataset's own max_tokens); repeatable",
    )
    reader.add_argument(
        "--reader-workers",
        metavar="N",
        type=positive_int,
        help="at most this many requests to it at once (default: found by trying, up to 32)",
    )
    reader.add_argument(
        "--reader-timeout",
        metavar="TIME",
        type=duration,
        help="how long it has for one answer (default: --timeout)",
    )
    reader.add_argument(
        "--no-anchors",
        dest="anchors",
        action="store_const",
        const=False,
        help="do not have up to 200 examples read with the whole context, twice, and with none, "
        "which shows the reader's own noise and how many questions it guesses",
    )
    reader.add_argument("--reader-price", metavar=METAVAR, type=price, help=HELP)
    prompts = parser.add_argument_group("prompts, for the reader and for each --proxy")
    prompts.add_argument(
        "--prompt",
        metavar="plain|FILE",
        help="what models are told: nothing but the example's own texts, or a template with fields "
        "such as {context} and {question} (default: each dataset's own prompt)",
    )
    prompts.add_argument(
        "--system-prompt", metavar="TEXT", help="a system message to put before every prompt"
    )
    prompts.add_argument(
        "--few-shot",
        metavar="N",
        type=positive_int,
        help="show this many other examples with their answers, drawn by --seed",
    )
    prompts.add_argument(
        "--max-tokens",
        metavar="N",
        type=positive_int,
        help="the most tokens of an answer (default: each dataset's own limit)",
    )
    prompts.add_argument(
        "--context-window",
        metavar="TOKENS",
        type=positive_int,
        help="how much fits into the models, prompt and answer together; rows beyond it are marked",
    )


def reader_of(args: argparse.Namespace) -> dict[str, Any] | None:
    """Return the reader as a part of a spec; None without --reader."""
    settings = {
        "--reader-model": args.reader_model,
        "--reader-credential": args.reader_credential,
        "--reader-option": args.reader_options,
        "--reader-workers": args.reader_workers,
        "--reader-timeout": args.reader_timeout,
        "--reader-price": args.reader_price,
    }
    if not args.reader:
        for flag, value in settings.items():
            if value:
                raise UsageError(f"{flag} needs --reader URL.")
        return None
    options = {}
    for owner, key, value in args.reader_options:
        options[f"{owner}.{key}" if owner else key] = value
    return {
        "base_url": args.reader,
        "model": args.reader_model or args.model,
        "credential": args.reader_credential,
        "options": options,
        "max_concurrency": args.reader_workers,
        "timeout": args.reader_timeout,
        "context_window": args.context_window,
        "price": args.reader_price,
    }


def prompt_of(args: argparse.Namespace) -> dict[str, Any] | None:
    """Return the prompt as a part of a spec; None where datasets have their own."""
    given: dict[str, Any] = {
        "system_prompt": args.system_prompt,
        "few_shot": args.few_shot,
        "max_tokens": args.max_tokens,
    }
    if args.prompt == PLAIN:
        given["plain"] = True
    elif args.prompt is not None:
        given["template"] = _read(args.prompt)
    given = {name: value for name, value in given.items() if value}
    return given or None


def _read(name: str) -> str:
    path = Path(name)
    try:
        if path.stat().st_size > _MAX_TEMPLATE_BYTES:
            raise UsageError(f"--prompt {name}: the file is larger than a prompt can be (1 MB).")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        hint = ""
        if name == "official":
            hint = (
                " Prompts of others do not ship: save the benchmark's template to a file, and it "
                "is recognised."
            )
        raise UsageError(
            f"--prompt {name}: {error.strerror or error}. Give {PLAIN}, or a file.{hint}"
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--prompt {name}: the file is not UTF-8 text.") from error
    if not text.strip():
        raise UsageError(f"--prompt {name}: the file is empty.")
    return text
