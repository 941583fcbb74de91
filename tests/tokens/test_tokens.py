"""Token counts are tiktoken's, on every text and without a network."""

import functools
import lzma
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiktoken_ext import openai_public

from cbench_server.errors import CbenchError, UnknownName
from cbench_server.tokens import (
    TOKENIZERS,
    count_fields,
    count_fields_like,
    count_tokens,
    count_tokens_dict,
    get_tokenizer,
)
from cbench_server.tokens.vocabulary import VOCABULARIES, parse_ranks, read_vocabulary

ENCODINGS = sorted(VOCABULARIES)


@functools.cache
def official(name: str) -> tiktoken.Encoding:
    """Build tiktoken's own encoding, its download replaced by our file if the hash is the one."""
    vocabulary = VOCABULARIES[name]

    def load(_url: str, expected_hash: str) -> dict[bytes, int]:
        assert expected_hash == vocabulary.sha256
        return parse_ranks(read_vocabulary(vocabulary))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openai_public, "load_tiktoken_bpe", load)
        return tiktoken.Encoding(**openai_public.ENCODING_CONSTRUCTORS[name]())


def _expect_official_count(name: str, text: str) -> None:
    assert count_tokens(text, name) == len(official(name).encode_ordinary(text))


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("cl100k_base", "", 0),
        ("cl100k_base", "hello world", 2),
        ("cl100k_base", "tiktoken is great!", 6),
        ("cl100k_base", "antidisestablishmentarianism", 6),
        ("cl100k_base", "2 + 2 = 4", 7),
        ("cl100k_base", "お誕生日おめでとう", 9),
        ("o200k_base", "", 0),
        ("o200k_base", "hello world", 2),
        ("o200k_base", "tiktoken is great!", 6),
        ("o200k_base", "antidisestablishmentarianism", 6),
        ("o200k_base", "2 + 2 = 4", 7),
        ("o200k_base", "お誕生日おめでとう", 8),
        ("whitespace", " two  words\n", 2),
    ],
)
def test_well_known_counts(name: str, text: str, count: int) -> None:
    assert count_tokens(text, name) == count


@pytest.mark.parametrize("name", ENCODINGS)
def test_our_split_pattern_is_the_official_one(name: str) -> None:
    assert VOCABULARIES[name].pattern == official(name)._pat_str


# Every class the split patterns distinguish, and the characters they name.
_ODD = (
    " \u00a0\t\n\r\u2028\x85\x1caB\u01c5\u02b0漢か가\u0301\u20dd7\u2167\u0663"
    "'\u2019sſLlReVv!/_-。😀\x00\u200d\ufeff"
)
_odd_text = st.lists(
    st.tuples(st.sampled_from(_ODD), st.integers(1, 5)).map(lambda run: run[0] * run[1])
).map("".join)


@pytest.mark.parametrize("name", ENCODINGS)
@settings(max_examples=400, deadline=None)
@given(text=st.one_of(st.text(), _odd_text))
def test_any_text_has_the_official_count(name: str, text: str) -> None:
    _expect_official_count(name, text)


@pytest.mark.parametrize("name", ENCODINGS)
@settings(max_examples=60, deadline=None)
@given(parts=st.lists(st.one_of(_odd_text, st.text()), min_size=1, max_size=12))
def test_a_long_text_has_the_official_count_wherever_it_is_cut(name: str, parts: list[str]) -> None:
    # 3,001 is prime to the length of the parts, so cuts fall in many places of them.
    text = "".join(parts)
    text = (text * (60_000 // max(1, len(text)) + 1))[: 40_000 + len(text) * 3_001 % 20_000]
    _expect_official_count(name, text)


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_character_has_the_official_count_in_every_position(name: str) -> None:
    characters = [chr(point) for point in range(0x30000) if not 0xD800 <= point < 0xE000]
    forms = [f"a{c}b {c} 1{c}2 A{c}a{c}\n'{c} {c}{c}/\n  {c} " for c in characters]
    for start in range(0, len(forms), 500):
        _expect_official_count(name, "".join(forms[start : start + 500]))


_SHAPES: dict[str, Callable[[int], str]] = {
    "one-letter": lambda n: "a" * n,
    "two-letters": lambda n: "ab" * (n // 2),
    "capitals": lambda n: "A" * n,
    "digits": lambda n: "7" * n,
    "cjk": lambda n: "漢" * n,
    "varied-cjk": lambda n: "".join(chr(0x4E00 + i * 7_919 % 20_000) for i in range(n)),
    "emoji": lambda n: "😀" * n,
    "marks": lambda n: "\u0301" * n,
    "newlines": lambda n: "\n" * n,
    "tabs": lambda n: "\t" * n,
    "spaces": lambda n: " " * n,
    "spaces-then-a-word": lambda n: " " * n + "word",
    "newline-then-spaces-then-a-word": lambda n: "\n" + " " * n + "word",
    "dashes": lambda n: "-" * n,
    "punctuation": lambda n: "!?.,;:" * (n // 6),
    "word-after-a-long-run": lambda n: "a" * n + " and some words," * 2_000,
}
# tiktoken itself panics on the first size of these; see the decision record.
_TIKTOKEN_PANICS = {
    "cl100k_base": {"spaces-then-a-word", "newline-then-spaces-then-a-word"},
    "o200k_base": {"tabs", "spaces", "spaces-then-a-word", "newline-then-spaces-then-a-word"},
}


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("size", [1_000_000, 30_011])
@pytest.mark.parametrize("shape", _SHAPES)
def test_hostile_shapes_have_the_official_count(name: str, shape: str, size: int) -> None:
    if size == 1_000_000 and shape in _TIKTOKEN_PANICS[name]:
        pytest.skip("tiktoken panics on this one: nothing to compare with")
    _expect_official_count(name, _SHAPES[shape](size))


@pytest.mark.parametrize("name", ENCODINGS)
def test_white_space_that_tiktoken_cannot_count_is_counted(name: str) -> None:
    # The split leaves the last space to the word, and 128 spaces are one token of both.
    assert count_tokens(" " * (128 * 10_000 + 1) + "word", name) == 10_001


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("token", ["<|endoftext|>", "<|fim_prefix|>", "<|endofprompt|>"])
def test_the_spelling_of_a_special_token_is_ordinary_text(name: str, token: str) -> None:
    assert count_tokens(token, name) > 1
    _expect_official_count(name, f"before{token}after")
    _expect_official_count(name, f"before {token} after" * 3_000)


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("repeats", [1, 20_000], ids=["short", "long"])
def test_lone_surrogates_count_as_the_replacement_character(name: str, repeats: int) -> None:
    counted = count_tokens("a \ud800 b\udfff, " * repeats, name)
    assert counted == count_tokens("a \ufffd b\ufffd, " * repeats, name)
    _expect_official_count(name, "a \ud800 b\udfff, \ud83d\ude00" * repeats)


def test_counts_need_no_network_and_no_cache(tmp_path: Path) -> None:
    program = """
import socket

def refuse(*args, **kwargs):
    raise AssertionError("the network was used")

socket.socket = socket.create_connection = socket.getaddrinfo = refuse
from cbench_server.tokens import count_tokens
for name in ("cl100k_base", "o200k_base"):
    print(count_tokens("hello world", name), count_tokens("a" * 80_000, name))
"""
    environment = {"HOME": str(tmp_path), "TIKTOKEN_CACHE_DIR": str(tmp_path / "none")}
    finished = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60
    )
    assert finished.stdout.split() == ["2", "10000", "2", "10000"], finished.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [None, b"not xz", lzma.compress(b"IQ== 0\n")],
    ids=["missing", "damaged", "another vocabulary"],
)
def test_a_wrong_vocabulary_file_is_refused(tmp_path: Path, content: bytes | None) -> None:
    vocabulary = VOCABULARIES["cl100k_base"]
    if content is not None:
        (tmp_path / vocabulary.file_name).write_bytes(content)
    with pytest.raises(CbenchError, match=r"cl100k_base\.tiktoken\.xz.*Reinstall"):
        read_vocabulary(vocabulary, tmp_path)


def test_threads_that_share_a_tokenizer_get_the_same_counts() -> None:
    texts = [f"Fox {i} jumps, it's {i * i} o'clock.\n" * (i * 40 + 1) for i in range(40)]
    expected = [len(official("o200k_base").encode_ordinary(text)) for text in texts]
    results: list[list[int]] = []

    def count() -> None:
        results.append([count_tokens(text, "o200k_base") for text in texts])

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4


def test_a_vocabulary_is_loaded_once_and_cl100k_base_is_the_default() -> None:
    assert get_tokenizer() is get_tokenizer(None) is get_tokenizer("cl100k_base")


def test_any_callable_is_a_tokenizer() -> None:
    assert get_tokenizer(len) is len
    assert count_tokens("four", len) == 4


def test_an_unknown_tokenizer_is_named_with_its_neighbour() -> None:
    with pytest.raises(UnknownName, match='did you mean "o200k_base"'):
        get_tokenizer("o200k-base")
    assert set(TOKENIZERS) == {"cl100k_base", "o200k_base", "whitespace"}


def test_top_level_strings_and_turns_are_counted() -> None:
    turns = [{"role": "user", "content": "one two"}, "three", {"content": None}, 4]
    example: dict[str, Any] = {
        "context": "a b c",
        "id": 7,
        "choices": ["not counted"],
        "nested": {"text": "not counted"},
        "turns": turns,
    }
    words = get_tokenizer("whitespace")
    assert count_fields(example, words) == {"context": 3, "turns": 3}
    assert count_fields(example, words, ["context", "id", "absent"]) == {"context": 3}
    assert count_tokens_dict(example, tokenizer="whitespace") == 6
    assert count_tokens_dict(example, ["turns"], "whitespace") == 3


_examples = st.dictionaries(
    st.sampled_from(["context", "question", "response", "turns"]),
    st.one_of(
        st.text(max_size=8),
        st.integers(),
        st.lists(st.one_of(st.text(max_size=4), st.fixed_dictionaries({"content": st.text()}))),
    ),
)


@example(original={"turns": "0"}, changes={"turns": []})
@given(original=_examples, changes=_examples)
def test_counting_like_the_original_changes_no_count(
    original: dict[str, Any], changes: dict[str, Any]
) -> None:
    processed = original | changes
    counted = count_fields_like(processed, original, count_fields(original, len), len)
    assert counted == count_fields(processed, len)


def test_what_equals_the_original_is_not_counted_again() -> None:
    seen: list[str] = []

    def tokenizer(text: str) -> int:
        seen.append(text)
        return len(text)

    original = {"context": "long", "question": "why", "turns": ["hi"]}
    counts = count_fields(original, tokenizer)
    seen.clear()
    processed = {"context": "short", "question": "why", "turns": [{"content": "hi"}], "new": "x"}
    counted = count_fields_like(processed, original, counts, tokenizer)
    assert counted == {"context": 5, "question": 3, "turns": 2, "new": 1}
    assert seen == ["short", "x"]


@pytest.mark.parametrize("unit", ["x", " ", "\n", "abc", "1"])
def test_forty_million_unbroken_characters_are_counted_in_slices(unit: str) -> None:
    whole = unit * (1_000_000 // len(unit))
    expected = 40 * count_tokens(whole)
    assert count_tokens(whole * 40) == pytest.approx(expected, rel=0.01)
