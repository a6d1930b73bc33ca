"""A broker that speaks TLS and asks who we are: one set of options serves Spark and ourselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from oncelake.errors import KafkaUnreachable
from oncelake.local import kraft, ports
from oncelake.local.kafka import LocalKafka, create_topic
from oncelake.ops.audit.brokers import Brokers
from oncelake.source import client_config, describe_topic, read_ranges
from oncelake.spec import LimitsSpec, SourceSpec
from tests.keystores import PASSWORD, key_store, trust_store

# Spark keeps a consumer for a topic's name, and refuses one of other options for it.
TOPICS = {"SSL": "by_certificate", "SASL_SSL": "by_password"}
USER_PASSWORD = 'it "is" said'
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@dataclass(frozen=True)
class Secured:
    """Where the broker takes a certificate, and where a password; and the stores of a client."""

    by_certificate: str
    by_password: str
    trusted: Path
    own: Path

    def source(self, options: dict[str, str]) -> SourceSpec:
        trusting = {"ssl.truststore.location": str(self.trusted),
                    "ssl.truststore.password": PASSWORD}  # fmt: skip
        topic = TOPICS[options["security.protocol"]]
        bootstrap = self.by_password if topic == "by_password" else self.by_certificate
        return SourceSpec(bootstrap, topic, options=trusting | options)

    @property
    def certified(self) -> dict[str, str]:
        return {"security.protocol": "SSL", "ssl.keystore.location": str(self.own),
                "ssl.keystore.password": PASSWORD, "ssl.key.password": PASSWORD}  # fmt: skip


NAMED = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f"{LOGIN} username=ann password='{USER_PASSWORD}';",
}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    broker, client = key_store(folder / "broker.p12"), key_store(folder / "client.p12")
    ours = trust_store(folder / "trusted.jks", broker)
    theirs = trust_store(folder / "theirs.jks", client)
    certified, named = (f"{ports.HOST}:{ports.free_port()}" for _ in range(2))
    plain = kraft.properties

    def properties(port: int, controller_port: int, joined: bool = False) -> str:
        text = plain(port, controller_port, joined)
        more = f"SSL://{certified},SASL_SSL://{named}"
        for name in ("listeners", "advertised.listeners"):
            text = text.replace(f"\n{name}=", f"\n{name}={more},")
        return text.replace(
            "PLAINTEXT:PLAINTEXT,", "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL,"
        ) + (
            f"ssl.keystore.location={broker}\nssl.keystore.password={PASSWORD}\n"
            f"ssl.truststore.location={theirs}\nssl.truststore.password={PASSWORD}\n"
            "listener.name.ssl.ssl.client.auth=required\nsasl.enabled.mechanisms=PLAIN\n"
            f"listener.name.sasl_ssl.plain.sasl.jaas.config={LOGIN} user_ann='{USER_PASSWORD}';\n"
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kraft, "properties", properties)
        with LocalKafka(folder / "kafka") as running:
            producer = Producer({"bootstrap.servers": running.bootstrap})
            for topic in TOPICS.values():
                create_topic(running.bootstrap, topic, 1)
                for number in range(3):
                    producer.produce(topic, str(number))
            assert producer.flush(30) == 0
            yield Secured(certified, named, ours, client)


@pytest.mark.parametrize("how", ["certificate", "password"])
def test_java_stores_and_a_quoted_password_let_us_ask_and_spark_read(
    spark: SparkSession, secured: Secured, how: str
) -> None:
    source = secured.source(secured.certified if how == "certificate" else NAMED)
    found = describe_topic(source)
    assert [span.end for span in found.offsets.values()] == [3]
    assert Brokers(client_config(source)).identify([source.topic])[0] == found.origin
    rows = read_ranges(spark, source, LimitsSpec(), found.offsets)
    assert sorted(bytes(row.value) for row in rows.select("value").collect()) == [b"0", b"1", b"2"]


def test_a_broker_that_nobody_vouches_for_is_not_asked(
    secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oncelake.source.ANSWER_SECONDS", 3.0)
    other = trust_store(tmp_path / "other.jks", key_store(tmp_path / "stranger.p12"))
    options = secured.certified | {"ssl.truststore.location": str(other)}
    with pytest.raises(KafkaUnreachable, match=r"ssl\.\*"):
        describe_topic(secured.source(options))
