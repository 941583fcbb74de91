"""Digests of examples, specs and row keys, over one canonical form.

The form is MessagePack with sorted keys, in which 1, 1.0, "1", True and b"1"
all differ. Tuples count as lists, since they come back from a store as lists.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from cbench_server.spec import RunSpec, plain_spec
from cbench_server.texts.plain import encode_fields


def canonical_digest(example: Mapping[str, Any]) -> str:
    """Return the SHA-256 of an example's canonical form, in hex.

    Numbers are told apart by their bits: 0.0 and -0.0 differ. Raises
    `Unencodable`, naming the field, for what has no such form.
    """
    return hashlib.sha256(encode_fields(example, canonical=True)).hexdigest()


def spec_digest(spec: RunSpec) -> str:
    """Return the SHA-256 of a run's spec, in hex: equal specs, equal digests."""
    return canonical_digest(plain_spec(spec))


def call_id(run_id: str, system: str, ordinal: int, repeat: int) -> str:
    """Name the call for one row; the same after every restart."""
    key = msgspec.msgpack.encode((run_id, system, ordinal, repeat))
    return hashlib.blake2b(key, digest_size=12).hexdigest()


def call_namer(run_id: str, system: str) -> Callable[[int, int], str]:
    """Return `call_id` for the rows of one system."""
    # A packed array is its length and its parts, so the first parts are hashed once.
    first = hashlib.blake2b(
        b"\x94" + msgspec.msgpack.encode(run_id) + msgspec.msgpack.encode(system), digest_size=12
    )
    encode = msgspec.msgpack.Encoder().encode

    def name(ordinal: int, repeat: int) -> str:
        digest = first.copy()
        digest.update(encode(ordinal) + encode(repeat))
        return digest.hexdigest()

    return name
