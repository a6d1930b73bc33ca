"""Java's Kafka options in librdkafka's words: a real client is made of what comes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from oncelake import client
from oncelake.errors import SpecError
from oncelake.ops.audit.brokers import Brokers
from oncelake.source import client_config, describe_topic
from oncelake.spec import SourceSpec
from tests.keystores import PASSWORD, certificate, key_store, private_key, trust_store

BROKER = "localhost:1"
TLS = {"security.protocol": "SSL"}
SCRAM = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}
LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PKCS12 key store, and beside it stores that trust it."""
    store = key_store(tmp_path_factory.mktemp("keys") / "own.p12")
    trust_store(store.with_name("trusted.jks"), store)
    trust_store(store.with_name("trusted.p12"), store, "PKCS12")
    return store


def translated(options: dict[str, str]) -> dict[str, str]:
    """What librdkafka is given: and it takes it."""
    config = client_config(SourceSpec(BROKER, "t", options=options))
    client.admin(config)
    return config


def refusal(options: dict[str, str]) -> str:
    with pytest.raises(SpecError) as refused:
        describe_topic(SourceSpec(BROKER, "t", options=options))
    said = str(refused.value)
    assert "source.options" in said
    assert "\n" not in said
    return said


@pytest.mark.parametrize(
    ("name", "password"),
    [("trusted.jks", PASSWORD), ("trusted.jks", ""), ("trusted.p12", PASSWORD)],
)
def test_of_java_s_trust_store_librdkafka_gets_the_certificates(
    keys: Path, name: str, password: str
) -> None:
    """JKS may be read without its password, by Java as by us."""
    location = {"ssl.truststore.location": str(keys.with_name(name))}
    found = translated(TLS | location | {"ssl.truststore.password": password})
    assert found["ssl.ca.pem"].split() == certificate(keys).split()
    assert "ssl.ca.location" not in found


def test_a_pkcs12_trust_store_without_its_password_is_refused(keys: Path) -> None:
    said = refusal(TLS | {"ssl.truststore.location": str(keys.with_name("trusted.p12"))})
    assert "ssl.truststore.password" in said


def test_a_file_of_pem_is_named_as_it_is(keys: Path) -> None:
    pem = str(keys.with_name("trusted.pem"))
    assert translated(TLS | {"ssl.truststore.location": pem})["ssl.ca.location"] == pem


def test_pem_in_the_options_may_stand_in_one_line(keys: Path) -> None:
    flat = " ".join(certificate(keys).splitlines())
    found = translated(TLS | {"ssl.truststore.certificates": flat})
    assert found["ssl.ca.pem"].split() == certificate(keys).split()


def test_a_trust_store_that_changes_is_read_again(keys: Path, tmp_path: Path) -> None:
    store = tmp_path / "trusted.jks"
    options = TLS | {"ssl.truststore.location": str(store), "ssl.truststore.password": PASSWORD}
    seen = []
    for name in ("one.p12", "two.p12"):
        store.unlink(missing_ok=True)
        trust_store(store, key_store(tmp_path / name))
        seen.append(translated(options)["ssl.ca.pem"])
    assert seen[0] != seen[1]


def test_a_pkcs12_key_store_is_ours_too(keys: Path) -> None:
    found = translated(
        TLS | {"ssl.keystore.location": str(keys), "ssl.keystore.password": PASSWORD}
    )
    assert found["ssl.keystore.location"] == str(keys)


def test_a_jks_key_store_is_refused_with_the_command_that_mends_it(tmp_path: Path) -> None:
    store = key_store(tmp_path / "own.jks", "JKS")
    said = refusal(TLS | {"ssl.keystore.location": str(store), "ssl.keystore.password": PASSWORD})
    assert f"keytool -importkeystore -srckeystore {store}" in said
    assert f"-destkeystore {tmp_path}/own.p12 -deststoretype PKCS12" in said


@pytest.mark.parametrize(
    "assigned",
    [
        """username="ann" password="it's; a \\"secret\\"";""",
        """username='ann' password='it\\'s; a "secret"';""",
        """password="it's; a \\"secret\\"" username=ann;""",
    ],
)
def test_a_user_and_a_password_are_read_as_java_does(assigned: str) -> None:
    found = translated(SCRAM | {"sasl.jaas.config": f"{LOGIN} {assigned}"})
    assert (found["sasl.username"], found["sasl.password"]) == ("ann", 'it\'s; a "secret"')
    assert "secret" not in repr(found)


def test_no_check_of_the_host_is_an_empty_word_in_java() -> None:
    found = translated(TLS | {"ssl.endpoint.identification.algorithm": ""})
    assert found["ssl.endpoint.identification.algorithm"] == "none"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"security.protocol": "BOGUS"}, "security.protocol 'BOGUS' is none of PLAINTEXT, SSL"),
        (SCRAM | {"sasl.mechanism": "KERBEROSX"}, "sasl.mechanism 'KERBEROSX'"),
        (SCRAM | {"sasl.mechanism": "GSSAPI"}, "sasl.mechanism 'GSSAPI'"),
        (SCRAM | {"sasl.mechanism": "OAUTHBEARER"}, "Set sasl.mechanism to one of PLAIN"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is missing"),
        (SCRAM, "sasl.jaas.config has no username and no password"),
        (SCRAM | {"sasl.login.callback.handler.class": "a.B"}, "sasl.login.callback.handler.class"),
        (TLS | {"ssl.truststore.location": "/nope/trust.jks"}, "/nope/trust.jks, which cannot be"),
        (TLS | {"ssl.truststore.certificates": "no PEM"}, "ssl.ca.* is made of ssl.truststore.*"),
    ],
)
def test_what_cannot_work_is_refused_by_its_name(options: dict[str, str], told: str) -> None:
    assert told in refusal(options)


def test_a_wrong_password_of_a_store_is_told_and_not_shown(keys: Path) -> None:
    store = str(keys.with_name("trusted.jks"))
    said = refusal(
        TLS | {"ssl.truststore.location": store, "ssl.truststore.password": "wrong-word"}
    )
    assert "password was incorrect" in said
    assert "wrong-word" not in said


def test_a_wrong_password_of_a_key_store_is_told_and_not_shown(keys: Path) -> None:
    own = {"ssl.keystore.location": str(keys), "ssl.keystore.password": "wrong-word"}
    said = refusal(TLS | own)
    assert "ssl.keystore" in said
    assert "wrong-word" not in said


def test_a_key_of_pem_is_taken_from_a_file_and_from_the_options(keys: Path, tmp_path: Path) -> None:
    key, chain = private_key(keys), certificate(keys)
    file = tmp_path / "own.pem"
    file.write_text(key + chain)
    found = translated(TLS | {"ssl.keystore.location": str(file)})
    assert found["ssl.certificate.location"] == found["ssl.key.location"] == str(file)
    flat = {"ssl.keystore.key": " ".join(key.splitlines()), "ssl.keystore.certificate.chain": chain}
    assert translated(TLS | flat)["ssl.key.pem"].split() == key.split()


def test_a_file_that_is_no_store_is_told(tmp_path: Path) -> None:
    file = tmp_path / "trust.jks"
    file.write_text("once upon a time")
    assert "none of JKS, PKCS12 and PEM" in refusal(TLS | {"ssl.truststore.location": str(file)})


def test_the_audit_too_tells_what_the_client_refuses_and_no_value() -> None:
    with pytest.raises(SpecError, match=r"security\.protocol") as refused:
        Brokers({"bootstrap.servers": BROKER, "security.protocol": "s3cret"})
    assert "s3cret" not in str(refused.value)
