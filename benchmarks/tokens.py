"""Token counting against tiktoken in the same run: `python benchmarks/tokens.py`.

Prints megabytes of UTF-8 per CPU second, best of five, and stops if any count differs.
Every round counts texts not seen before, as a run does: our engine remembers pieces, and
counting the same text again would measure its memory.
"""

import random
import sys
import time
from collections.abc import Callable

import tiktoken

from cbench_server.tokens import get_tokenizer
from cbench_server.tokens.vocabulary import VOCABULARIES, Vocabulary, parse_ranks, read_vocabulary

ROUNDS = 5
SIZE = 300_000  # characters


def main() -> None:
    rounds = [make_texts(random.Random(seed)) for seed in range(ROUNDS)]
    print("| encoding | text | calls | tokens | tiktoken MB/s | ours MB/s | ratio |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for vocabulary in VOCABULARIES.values():
        started = time.perf_counter()
        ours = get_tokenizer(vocabulary.name)
        ours("the first count builds splintr's tables")
        load_s = time.perf_counter() - started
        reference = make_reference(vocabulary)
        for label in rounds[0]:
            line = compare(ours, reference, [texts[label] for texts in rounds])
            print(f"| {vocabulary.name} | {label} | {line} |")
        print(f"{vocabulary.name} loaded in {load_s * 1000:.0f} ms", file=sys.stderr)


def compare(
    ours: Callable[[str], int], reference: Callable[[str], int], rounds: list[list[str]]
) -> str:
    theirs_best = ours_best = 0.0
    for parts in rounds:
        megabytes = sum(len(part.encode()) for part in parts) / 1e6
        expected, theirs_s = measure(reference, parts)
        counted, ours_s = measure(ours, parts)
        if counted != expected:
            sys.exit(f"counts differ: tiktoken {sum(expected)}, ours {sum(counted)}")
        theirs_best = max(theirs_best, megabytes / theirs_s)
        ours_best = max(ours_best, megabytes / ours_s)
    return (
        f"{len(parts)} | {sum(counted):,} | {theirs_best:.1f} | {ours_best:.1f}"
        f" | {ours_best / theirs_best:.1f}x"
    )


def measure(count: Callable[[str], int], parts: list[str]) -> tuple[list[int], float]:
    started = time.process_time()
    counts = [count(part) for part in parts]
    return counts, time.process_time() - started


def make_reference(vocabulary: Vocabulary) -> Callable[[str], int]:
    encoding = tiktoken.Encoding(
        vocabulary.name,
        pat_str=vocabulary.pattern,
        mergeable_ranks=parse_ranks(read_vocabulary(vocabulary)),
        special_tokens={},
    )
    return lambda text: len(encoding.encode_ordinary(text))


def make_texts(rng: random.Random) -> dict[str, list[str]]:
    prose = make_prose(rng)
    code = make_code(rng)
    sentence = prose[:40].replace("\n", " ")
    cjk = make_cjk(rng)
    blanks = "".join(rng.choice(" \t\n") * rng.randint(1, 60) for _ in range(SIZE // 30))
    return {
        "prose, 400 B each": [prose[i : i + 400] for i in range(0, SIZE, 400)],
        "prose": [make_prose(rng)],
        "code": [code],
        "CJK": [cjk],
        "white space": [blanks],
        "repetitive: one sentence": [f"The quick brown {sentence} " * 6_000],
        "repetitive: one letter": [rng.choice("abcdefgh") * (SIZE + rng.randint(0, 999))],
    }


def make_prose(rng: random.Random) -> str:
    """Make sentences of words whose frequencies fall as in a language, some of them rare."""
    syllables = ["ba", "con", "de", "er", "fi", "gra", "ing", "ion", "ment", "per", "sta", "ver"]
    common = ["the", "of", "and", "to", "in", "a", "is", "that", "for", "it", "was", "on", "with"]
    rare = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(8_000)]
    words: list[str] = []
    length = 0
    while length < SIZE:
        word = rng.choice(common) if rng.random() < 0.5 else rng.choice(rare)
        word += rng.choices(["", ",", ".", "'s", "\n\n"], [80, 8, 8, 2, 2])[0]
        words.append(word)
        length += len(word) + 1
    return " ".join(words)


def make_code(rng: random.Random) -> str:
    lines = []
    for i in range(SIZE // 100):
        name, number = f"{rng.choice(['load', 'store', 'count'])}_{i}", rng.randint(0, 99_999)
        lines.append(f"def {name}(self, key: str) -> int:\n    if key != {number}:")
        lines.append(f'        return self._rows["{name}"][key]  # {number:x}\n')
    return "\n".join(lines)


def make_cjk(rng: random.Random) -> str:
    clauses = []
    for _ in range(SIZE // 12):
        clause = "".join(chr(rng.randint(0x4E00, 0x6FFF)) for _ in range(rng.randint(4, 18)))
        clauses.append(clause + rng.choice("，。、"))
    return "".join(clauses)


if __name__ == "__main__":
    main()
