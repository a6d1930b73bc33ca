"""Ways to spoil an Avro value so that no reader decodes it.

Avro's binary form has no framing and Spark's reader ignores bytes past the end, so each way
breaks the value before its last field is whole. Two of them are what a reader must survive
rather than merely notice: a length that invites it to allocate 2 GB, and no value at all.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator

Spoil = Callable[[bytes], bytes | None]


def corruptions(seed: int) -> Iterator[Spoil]:
    """Each way in turn, for ever; the random ones are the same for the same seed."""
    rng = random.Random(seed)
    return itertools.cycle(
        (
            lambda value: truncated(value, rng),
            lambda value: noise(value, rng),
            lambda value: overlong(value, rng),
            endless_number,
            lambda value: b"",
            lambda value: None,
        )
    )


def truncated(value: bytes, rng: random.Random) -> bytes:
    """A proper prefix: whatever the cut, some field misses bytes."""
    return value[: rng.randrange(1, len(value))]


def noise(value: bytes, rng: random.Random) -> bytes:
    """Random bytes whose first is odd and below 128: the first string's length is negative."""
    return bytes([rng.randrange(1, 128, 2)]) + rng.randbytes(len(value) - 1)


def overlong(value: bytes, rng: random.Random) -> bytes:
    """1 to 2 GB promised in front: a reader that allocates before it looks runs out of memory."""
    return _varint(rng.randrange(1 << 30, (1 << 31) - 16)) + value


def endless_number(value: bytes) -> bytes:
    """Eleven bytes that all say "more follows" where a number has at most ten."""
    return b"\xff" * 11 + value


def _varint(number: int) -> bytes:
    """A non-negative number as Avro writes a long: zigzag, seven bits a byte."""
    rest, out = number << 1, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)
