"""Whatever a file holds: a spec, or problems in words; never another error, never a secret."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oncelake.spec import PipelineSpec, echo_yaml, examine_bytes
from oncelake.spec.avro import columns
from oncelake.spec.keys import SECTIONS, TOP
from oncelake.spec.problems import Refused

HIDDEN = "q7Zr9xKw"
ENVIRON = {"ANY": HIDDEN}
TEMPLATE = resources.files("oncelake.spec").joinpath("template.yaml").read_text("utf-8")
FULL = TEMPLATE.replace("topic: articles", "topic: ${ANY}.articles").replace(
    "  properties:                   # of Iceberg", f"  properties: {{jdbc.password: {HIDDEN}}} #"
)

relaxed = settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    article = resources.files("oncelake.samples").joinpath("article.avsc").read_text("utf-8")
    (tmp_path / "article.avsc").write_text(article)
    return tmp_path / "pipeline.yaml"


def holds(file: Path, data: bytes) -> None:
    found = examine_bytes(data, file, ENVIRON)
    assert isinstance(found.spec, PipelineSpec) != bool(found.problems)
    said = "\n".join(map(str, found.problems + found.warnings))
    assert HIDDEN not in said
    said.encode()
    if found.spec:
        assert HIDDEN not in repr(found.spec) + echo_yaml(found.spec)


def test_the_unchanged_text_is_a_spec(file: Path) -> None:
    assert FULL.count(HIDDEN) == 1
    assert examine_bytes(FULL.encode(), file, ENVIRON).spec


@relaxed
@given(data=st.binary(max_size=200))
def test_any_bytes(file: Path, data: bytes) -> None:
    holds(file, data)


@relaxed
@given(text=st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_any_text(file: Path, text: str) -> None:
    holds(file, text.encode())


@relaxed
@given(text=st.text(alphabet="ab:-[]{}&*!|>'\"%@`#,? \n\t\\<=~$0xU", max_size=60))
def test_text_of_yamls_own_signs(file: Path, text: str) -> None:
    holds(file, text.encode())


@relaxed
@given(
    at=st.integers(0, len(FULL)),
    cut=st.integers(0, 30),
    put=st.text(alphabet="ab:-[]{}&*!|>'\"%@`#,? \n\t\\<=~$01_.yes", max_size=8),
)
def test_a_spec_with_a_piece_changed(file: Path, at: int, cut: int, put: str) -> None:
    # A cut through the key takes away what says that its value is a secret.
    changed = FULL[:at] + put + FULL[at + cut :]
    if f"jdbc.password: {HIDDEN}" in changed:
        holds(file, changed.encode())


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.dates(),
    st.binary(max_size=5),
    st.text(max_size=12),
    st.sampled_from(["${ANY}", "x${ANY}y", f"//u:{HIDDEN}@h", "jdbc:sqlite:x", "avro", "${NO}"]),
)
names = st.sampled_from([*TOP, *(key for keys in SECTIONS.values() for key in keys), "odd"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names | scalars, inner, max_size=4),
    max_leaves=8,
)


@relaxed
@given(document=st.dictionaries(names, values, max_size=8))
def test_known_keys_with_any_values(file: Path, document: dict[str, object]) -> None:
    holds(file, yaml.safe_dump(document, allow_unicode=True).encode("utf-8", "surrogatepass"))


@relaxed
@given(
    schema=st.recursive(
        st.none() | st.integers() | st.sampled_from(["record", "string", "A", "int", "array"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["type", "name", "fields", "items", "logicalType", "symbols"]),
                inner,
                max_size=5,
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_as_a_schema(schema: object) -> None:
    try:
        found = columns(json.dumps(schema))
    except Refused:
        return
    assert found
