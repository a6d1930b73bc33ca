"""Text for sample articles: readable, never the same twice, and cheap to cut.

Pieces of random words are made once; an article joins some of them. A page of articles then
compresses about as news does, and no column but `source` gains from a dictionary.
"""

from __future__ import annotations

import random
from functools import lru_cache
from typing import NamedTuple

SOURCES = ("apnews", "bbc", "dpa", "efe", "guardian", "nhk", "npr", "reuters")
_NOUNS = """
    account agency agreement airline airport analyst appeal approval army artist attempt auction
    author award balance ballot bank benefit border branch bridge budget building business cabinet
    campaign capital carbon career cargo case cause census centre chairman champion change charter
    children citizen city claim climate coach coalition coast college committee community company
    concert concern contract council country court crew crisis crop cup customer dam data deal
    debate decade decision defence deficit delay delegate demand deposit desert detail director
    district doctor drought economy editor election embassy employee energy engine estimate
    evidence exchange exhibition expert export factory family farm festival figure film final
    finance fishery flight flood forecast forest fund game gallery glacier goal government grain
    grant growth harbour harvest health hearing history hospital household housing import income
    industry inflation inquiry insurance interest inventor island journal judge jury kitchen labour
    landmark language launch lawyer league ledger lender library licence limit loan machine mayor
    measure medal meeting member merchant mill minister mission model motion museum music nation
    network nurse ocean offer officer opening opera orbit orchard order painter panel parade
    parliament partner passenger patent payment peace pension permit pilot planet player poet
    police policy port premier press price prize product project protest province public quarter
    railway reactor record referee reform region report rescue research reserve resident result
    retail return review rival river road rocket ruling sailor salary satellite school science
    season senate series service session shelter ship signal singer skill soil solar speech
    stadium station statue storm strike student summit supply survey talent tariff teacher team
    theatre ticket title tourism tower trade traffic train treaty trial tribunal tunnel union
    university vaccine valley venture verdict vessel victory village visitor volcano vote voyage
    wage warehouse water weather wheat wildlife window winner winter witness worker workshop writer
"""
_LINKS = "a after an and at before by for from in into its near of on over the their to with"


class Newsroom(NamedTuple):
    """Pieces of random prose; the same seed gives the same pieces."""

    headlines: list[str]
    passages: list[str]

    @classmethod
    @lru_cache(maxsize=8)
    def of(cls, seed: int) -> Newsroom:
        """Half of the words are links, one in ten is a figure: about as dense as prose."""
        rng = random.Random(seed)
        nouns, links = _NOUNS.split(), _LINKS.split()
        figures = [str(rng.randrange(10, 100_000)) for _ in range(len(nouns) // 4)]
        vocabulary = [*nouns, *links * 12, *figures]
        return cls(
            headlines=_pieces(" ".join(rng.choices(vocabulary, k=40_000)), 4_096, 46),
            passages=_pieces(" ".join(rng.choices(vocabulary, k=600_000)), 16_384, 192),
        )


def _pieces(text: str, count: int, length: int) -> list[str]:
    """`count` pieces of at most `length` characters that follow each other, in whole words."""
    pieces, start = [], 0
    for _ in range(count):
        end = text.rindex(" ", start, start + length + 1)
        pieces.append(text[start:end].capitalize())
        start = end + 1
    return pieces
