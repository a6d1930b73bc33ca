"""The answer to a commit is lost or wrong: the table stays readable, and nothing is doubled.

On REST a proxy stands between, and does what networks and gateways do. The commit that it disturbs
is that of a claim or of a batch, told apart by the stamp in the request. On JDBC there is nothing
between: the database itself does what is asked, and then says that it failed.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oncelake.errors import CommitUnknown, Fenced
from oncelake.local.kafka import LocalKafka
from oncelake.local.rest import RestCatalog
from tests.faults import proxy as faults
from tests.faults.proxy import Answer, Fault, FaultProxy, Forward, Held, Matches, Request
from tests.site import Site, wait_for

pytestmark = pytest.mark.faults

FAULTS: dict[str, Fault] = {
    "cut before": faults.cut_before,
    "cut after": faults.cut_after,
    "replayed": faults.replayed,
    **{f"{status} after": faults.answered(status) for status in (429, 500, 502, 503, 504)},
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RestCatalog]:
    with RestCatalog(tmp_path) as catalog:
        yield catalog


@pytest.fixture
def proxy(server: RestCatalog) -> Iterator[FaultProxy]:
    with FaultProxy(server.port) as between:
        yield between


def commit_of(kind: str) -> Matches:
    """A commit with a stamp of this kind, as the stamp is written into JSON."""
    stamped = f'\\"kind\\":\\"{kind}\\"'.encode()

    def matches(request: Request) -> bool:
        return request.method == "POST" and stamped in request.body

    return matches


def first_of_each(*kinds: str) -> Matches:
    due = {kind: commit_of(kind) for kind in kinds}

    def matches(request: Request) -> bool:
        found = [kind for kind, is_one in due.items() if is_one(request)]
        for kind in found:
            del due[kind]
        return bool(found)

    return matches


@pytest.mark.parametrize("upsert", [False, True], ids=["append", "upsert"])
def test_a_commit_is_settled_by_looking_it_up(
    upsert: bool, kafka: LocalKafka, spark: SparkSession, tmp_path: Path, proxy: FaultProxy
) -> None:
    """In one life each fault meets a claim, a batch, and the quarantine that follows it."""
    site = Site.make(kafka, tmp_path, upsert=upsert, rest=proxy.uri)
    # How an upsert is published differs, not what becomes of an answer: two faults show it.
    for seed, (name, fault) in enumerate(list(FAULTS.items())[: 2 if upsert else None]):
        site.produce(500, seed=seed)
        proxy.set_fault(fault, first_of_each("claim", "batch", "follow"), times=3)
        site.run_here(spark)
        assert proxy.met == 3, f"not all three commits came by: {name}"
        site.assert_nothing_twice(name)
    site.assert_exactly_once(spark)


@pytest.mark.parametrize("kind", ["batch", "follow"])
def test_a_catalog_that_dies_after_the_commit_and_comes_back(
    kind: str,
    kafka: LocalKafka,
    spark: SparkSession,
    tmp_path: Path,
    server: RestCatalog,
    proxy: FaultProxy,
) -> None:
    site = Site.make(kafka, tmp_path, rest=proxy.uri)
    site.produce(1500)
    comes_back = threading.Thread(target=server.start)

    def dies(request: Request, forward: Forward) -> None:
        forward()
        server.kill()
        comes_back.start()

    proxy.set_fault(dies, commit_of(kind))
    try:
        site.run_here(spark)
    finally:
        comes_back.join()
    assert proxy.met == 1
    site.assert_exactly_once(spark)


def test_a_catalog_that_stays_away_stops_the_run_and_the_next_one_goes_on(
    kafka: LocalKafka,
    spark: SparkSession,
    tmp_path: Path,
    server: RestCatalog,
    proxy: FaultProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("oncelake.commit.OUTAGE_SECONDS", (0.2, 1.0))
    site = Site.make(kafka, tmp_path, rest=proxy.uri)
    site.produce(1500)

    def dies(request: Request, forward: Forward) -> None:
        forward()
        server.kill()

    proxy.set_fault(dies, commit_of("batch"))
    with pytest.raises(CommitUnknown, match=r"may or may not have landed.*run again when it is"):
        site.run_here(spark)
    server.start()
    site.assert_nothing_twice("after the catalog's death")
    site.run_here(spark)
    site.assert_exactly_once(spark)


def test_a_claim_between_anothers_validation_and_its_commit(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path, server: RestCatalog, proxy: FaultProxy
) -> None:
    """The older run has found all in order and sent its commit when the newer one claims."""
    site = Site.make(kafka, tmp_path, rest=proxy.uri)
    site.produce(1500)
    held = Held()
    proxy.set_fault(held, commit_of("batch"))
    with site.run("--once") as older:
        assert held.arrived.wait(120)
        site.run_here(spark)
        held.go.set()
        assert wait_for(older, "error")["kind"] == "Fenced"
        assert older.ended() == Fenced.exit_code
    site.assert_exactly_once(spark)


def test_two_claims_at_one_instant(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path, proxy: FaultProxy
) -> None:
    """Both have read that nobody owns the pipeline, and both commits are on their way."""
    site = Site.make(kafka, tmp_path, rest=proxy.uri)
    site.produce(1500)
    both = threading.Barrier(2, timeout=120)

    def at_once(request: Request, forward: Forward) -> Answer:
        both.wait()
        return forward()

    proxy.set_fault(at_once, commit_of("claim"), times=2)
    with site.run("--once") as one, site.run("--once") as other:
        told = [list(run.events()) for run in (one, other)]
        codes = sorted(run.ended() for run in (one, other))
    assert proxy.met == 2
    assert codes in ([0, 0], [0, Fenced.exit_code])
    claimed = [e["generation"] for events in told for e in events if e["event"] == "claimed"]
    assert sorted(claimed) == [1, 2], "one after the other, never both the same"
    site.assert_exactly_once(spark)


def test_on_jdbc_a_commit_that_is_done_and_called_failed(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """RAISE(FAIL) leaves what the statement has changed, and tells the client of an error."""
    site = Site.make(kafka, tmp_path, upsert=True)
    site.produce(500)
    site.run_here(spark)
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as database, database:
        database.executescript("""
            CREATE TABLE lies (due INT);
            INSERT INTO lies VALUES (0);
            CREATE TRIGGER lie AFTER UPDATE ON iceberg_tables
            WHEN NEW.table_name = 'articles' AND (SELECT due FROM lies) > 0
            BEGIN
                UPDATE lies SET due = due - 1;
                SELECT RAISE(FAIL, 'the connection was lost');
            END;
        """)
    for seed, due in enumerate((1, 3)):
        site.produce(1500, seed=seed + 2)
        with closing(sqlite3.connect(tmp_path / "catalog.db")) as database, database:
            database.execute("UPDATE lies SET due = ?", (due,))
        site.run_here(spark)
        with closing(sqlite3.connect(tmp_path / "catalog.db")) as database:
            assert database.execute("SELECT due FROM lies").fetchone() == (0,), "nobody was lied to"
    site.assert_exactly_once(spark)
