"""Clients of librdkafka by the spec's Java client options, or what is wrong with those.

Spark's own reading is by Java and gets the options as they are. What oncelake itself asks Kafka
goes by librdkafka, for which those about security are translated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from oncelake import stores
from oncelake.errors import SpecError
from oncelake.spec import scrub, shown
from oncelake.spec.secrets import MASK, guarded, looks_secret

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
IN_JAVA_ONLY = (
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "ssl.engine.factory.class",
)
MADE_OF = "ssl.ca.* is made of ssl.truststore.*; ssl.certificate.* and ssl.key.* of ssl.keystore.*"
_HOST_CHECK = "ssl.endpoint.identification.algorithm"
_JAAS = re.compile(
    r"""([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))""", re.DOTALL
)


def admin(config: Mapping[str, str]) -> AdminClient:
    """A client of these librdkafka settings; what it refuses is told without their secrets."""
    try:
        return AdminClient({**config, "log_level": 0})
    except KafkaException as error:
        said = _without_secrets(error, config)
        origin = f" ({MADE_OF})" if "ssl." in said else ""
        raise SpecError(
            f"Kafka's client refuses its settings: {said}{origin}. "
            "Correct source.options (of a sink: its options), and type: "
            "oncelake check PIPELINE.yaml --live"
        ) from error


def settings(bootstrap: str, options: Mapping[str, str]) -> dict[str, str]:
    """Java's options in librdkafka's words, as far as they decide who reaches the broker."""
    found = {"bootstrap.servers": bootstrap}
    protocol = options.get("security.protocol")
    if protocol is None:
        return found
    if protocol.upper() not in PROTOCOLS:
        raise _wrong("security.protocol", f"{shown(protocol)!r} is none of {', '.join(PROTOCOLS)}")
    for name in IN_JAVA_ONLY:
        if name in options and name.startswith(_concerned(protocol)):
            why = "is a class of Java's; oncelake itself asks Kafka by librdkafka, which runs none"
            raise _wrong(name, f"{why}. Leave it out. {_what_works()}")
    found["security.protocol"] = protocol
    if protocol.upper().startswith("SASL"):
        found |= _sasl(options)
    if protocol.upper().endswith("SSL"):
        found |= stores.trust(options) | stores.own(options)
        if _HOST_CHECK in options:
            found[_HOST_CHECK] = options[_HOST_CHECK] or "none"  # empty is Java's word for it
    return {key: guarded(key, value) for key, value in found.items()}


def _concerned(protocol: str) -> tuple[str, ...]:
    """How the names of those options begin that count with this protocol."""
    return tuple(f"{part.lower()}." for part in protocol.split("_"))


def _sasl(options: Mapping[str, str]) -> dict[str, str]:
    mechanism = options.get("sasl.mechanism")
    if mechanism is None:
        raise _wrong("sasl.mechanism", f"is missing, and Java then takes GSSAPI. {_what_works()}")
    if mechanism not in MECHANISMS:
        why = "is not what librdkafka, by which oncelake itself asks Kafka, has here"
        raise _wrong("sasl.mechanism", f"{shown(mechanism)!r} {why}. {_what_works()}")
    given = _jaas(options.get("sasl.jaas.config", ""))
    if missing := [name for name in ("username", "password") if not given.get(name)]:
        to_write = f"{_login_module(mechanism)} required username='…' password='…';"
        raise _wrong("sasl.jaas.config", f"has no {' and no '.join(missing)}. Write: {to_write}")
    return {"sasl.mechanism": mechanism, "sasl.username": given["username"],
            "sasl.password": given["password"]}  # fmt: skip


def _jaas(text: str) -> dict[str, str]:
    """Its assignments: a value in double or single quotes, with backslashes, or bare."""
    return {
        name: re.sub(r"\\(.)", r"\1", double or single, flags=re.DOTALL) or bare
        for name, double, single, bare in _JAAS.findall(text)
    }


def _login_module(mechanism: str) -> str:
    family = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    return f"org.apache.kafka.common.security.{family}LoginModule"


def _what_works() -> str:
    return f"Set sasl.mechanism to one of {', '.join(MECHANISMS)}, or use a certificate (SSL)"


def _wrong(option: str, what: str) -> SpecError:
    return SpecError(f"source.options: {option} {what}")


def _without_secrets(error: KafkaException, config: Mapping[str, str]) -> str:
    said = str(error.args[0].str())
    for value in {value for key, value in config.items() if value and looks_secret(key)}:
        said = said.replace(value, MASK)
    return scrub(said)
