"""The REST catalog of one machine: after a crash it holds the same; it says why it cannot run."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from oncelake.local import LocalStackError, ports
from oncelake.local.rest import DIRECTLY, RestCatalog


def namespaces(catalog: RestCatalog) -> list[list[str]]:
    with DIRECTLY.open(f"{catalog.uri}/v1/namespaces", timeout=10) as answer:
        found: list[list[str]] = json.load(answer)["namespaces"]
    return found


def test_it_holds_after_a_kill_what_it_held_before(tmp_path: Path) -> None:
    catalog = RestCatalog(tmp_path)
    with catalog:
        made = urllib.request.Request(
            f"{catalog.uri}/v1/namespaces",
            json.dumps({"namespace": ["news"], "properties": {}}).encode(),
            {"Content-Type": "application/json"},
        )
        DIRECTLY.open(made, timeout=10).close()
        catalog.kill()
        with pytest.raises(urllib.error.URLError, match="refused"):
            namespaces(catalog)
        catalog.start()
        assert namespaces(catalog) == [["news"]]
    with pytest.raises(urllib.error.URLError, match="refused"):
        namespaces(catalog)


def test_one_that_cannot_start_says_why(tmp_path: Path) -> None:
    catalog = RestCatalog(tmp_path)
    with socket.socket() as taken:
        taken.bind((ports.HOST, catalog.port))
        taken.listen()
        with pytest.raises(LocalStackError, match=r"(?s)REST catalog.*Its log: ") as caught:
            catalog.start()
    assert "in use" in str(caught.value)
