"""Secrets work, and are never shown: not in an echo, a repr or an error."""

from __future__ import annotations

import copy
import json
import pickle
from importlib import resources
from pathlib import Path

import pytest

from oncelake.spec import (
    CatalogSpec,
    PipelineSpec,
    Secret,
    Settings,
    SourceSpec,
    echo,
    echo_yaml,
    examine,
    read_spec,
    scrub,
)
from oncelake.spec.secrets import guarded, looks_secret

ARTICLE = resources.files("oncelake.samples").joinpath("article.avsc").read_text("utf-8")
HIDDEN = "hunter2"

SPEC = """\
pipeline: articles
source:
  bootstrap: ${WHERE}:9092
  topic: articles.raw.v1
  options:
    sasl.password: hunter2
    client.id: ${ANY}
    client.rack: a-${ANY}
decode: {schema: article.avsc}
table:
  name: demo.news.${ANY}
  properties: {some.token: hunter2}
checkpoint: s3a://user:hunter2@bucket/chk
catalog:
  type: jdbc
  uri: jdbc:postgresql://user:hunter2@db/lake?password=hunter2&ssl=true
  warehouse: s3://lake
  properties: {jdbc.password: hunter2, s3.secret-access-key: "${ANY}"}
spark:
  settings:
    spark.hadoop.fs.s3a.secret.key: hunter2
    spark.driver.extraJavaOptions: -Dmy.password=hunter2 -Dproxy=http://u:hunter2@proxy
"""
ENVIRON = {"WHERE": HIDDEN, "ANY": HIDDEN}


@pytest.fixture
def spec(tmp_path: Path) -> PipelineSpec:
    (tmp_path / "article.avsc").write_text(ARTICLE)
    (tmp_path / "pipeline.yaml").write_text(SPEC)
    return read_spec(tmp_path / "pipeline.yaml", ENVIRON).spec


def test_secrets_keep_their_value(spec: PipelineSpec) -> None:
    assert spec.source.bootstrap == "hunter2:9092"
    assert dict(spec.source.options)["sasl.password"] == HIDDEN
    assert spec.table.quarantine == "demo.news.hunter2_quarantine"
    assert f"{spec.catalog.uri}" == (
        "jdbc:postgresql://user:hunter2@db/lake?password=hunter2&ssl=true"
    )


def test_no_echo_shows_a_secret(spec: PipelineSpec) -> None:
    assert HIDDEN not in echo_yaml(spec)
    assert HIDDEN not in json.dumps(echo(spec))


def test_the_echo_shows_all_that_is_not_secret(spec: PipelineSpec) -> None:
    shown = echo(spec)
    assert shown["source"]["bootstrap"] == "***:9092"
    assert shown["source"]["options"]["client.rack"] == "a-***"
    assert shown["table"]["quarantine"] == "demo.news.***_quarantine"
    assert shown["catalog"]["uri"] == "jdbc:postgresql://***@db/lake?password=***&ssl=true"
    assert shown["checkpoint"] == "s3a://***@bucket/chk"


def test_no_repr_shows_a_secret(spec: PipelineSpec) -> None:
    parts = [spec, spec.source, spec.table, spec.catalog, spec.spark, spec.source.options]
    parts += [copy.deepcopy(spec), pickle.loads(pickle.dumps(spec))]
    for part in parts:
        assert HIDDEN not in repr(part)
        assert "***" in repr(part)


def test_values_made_in_python_are_as_safe() -> None:
    source = SourceSpec("u://a:hunter2@h:1", "t", options={"sasl.jaas.config": HIDDEN})
    catalog = CatalogSpec("rest", "https://u:hunter2@h", properties={"credential": HIDDEN})
    assert HIDDEN not in repr((source, catalog, Settings({"x.token": HIDDEN})))
    assert source.options["sasl.jaas.config"] == HIDDEN


def test_a_schema_path_from_a_variable_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "hunter2.avsc").write_text(ARTICLE)
    (tmp_path / "pipeline.yaml").write_text(SPEC.replace("article.avsc", "'${ANY}.avsc'"))
    spec = read_spec(tmp_path / "pipeline.yaml", ENVIRON).spec
    assert spec.decode.schema_file == tmp_path / "hunter2.avsc"
    assert HIDDEN not in repr(spec.decode) + echo_yaml(spec)


# Mistakes around a secret: the message must do without it.
MISTAKES = [
    ("sasl.password: hunter2", "sasl.password: [hunter2]"),
    ("sasl.password: hunter2", "sasl.password: {hunter2: x}"),
    ("sasl.password: hunter2", "sasl.password: *hunter2"),
    ("sasl.password: hunter2", "sasl.password: !hunter2 x"),
    ("sasl.password: hunter2", "sasl.password: !hunter2!x y"),
    ("sasl.password: hunter2", "sasl.password: &hunter2 [x"),
    ("sasl.password: hunter2", "sasl.password: 'hunter2"),
    ("sasl.password: hunter2", "sasl.password: @hunter2"),
    ("sasl.password: hunter2", "sasl.password: hunter2: x"),
    ("sasl.password: hunter2", "sasl.password:hunter2: x\n    kafka.a: b"),
    ("sasl.password: hunter2", 'sasl.password: "hunter2\\0"'),
    ("sasl.password: hunter2", "sasl.password: '${hunter2!}'"),
    ("sasl.password: hunter2", "kafka.sasl.password: hunter2"),
    ("topic: articles.raw.v1", "topic: a,${ANY}"),
    ("topic: articles.raw.v1", "topic: http://u:hunter2@h/"),
    ("${WHERE}:9092", "${WHERE}"),
    ("${WHERE}:9092", "SASL://user:hunter2@host:1"),
    ("type: jdbc", "type: ${ANY}"),
    ("type: jdbc", "type: rest"),
    ("article.avsc", "'${ANY}.avsc'"),
    ("pipeline: articles", "pipeline: ${ANY}!"),
    ("pipeline: articles", "pipeline: articles\nmode: ${ANY}\ntrigger: ${ANY}\nlog_level: ${ANY}"),
    ("pipeline: articles", "pipeline: articles\nlimits: {max_offsets: '${ANY}'}"),
    ("pipeline: articles", "pipeline: articles\npassword: hunter2"),
    ("  properties: {some", "  partition_by: ['days(${ANY})', '${ANY}(id)']\n  properties: {some"),
    ("settings:\n", "master: ${ANY}\n  settings:\n"),
]


@pytest.mark.parametrize(("right", "wrong"), MISTAKES)
def test_no_problem_shows_a_secret(tmp_path: Path, right: str, wrong: str) -> None:
    (tmp_path / "article.avsc").write_text(ARTICLE)
    file = tmp_path / "pipeline.yaml"
    file.write_text(SPEC.replace(right, wrong, 1))
    problems = examine(file, ENVIRON).problems
    assert problems
    assert HIDDEN not in "".join(map(str, problems))


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "ssl.keystore.password",
        "ssl.key.password",
        "sasl.jaas.config",
        "s3.access-key-id",
        "s3.secret-access-key",
        "fs.azure.account.key.lake.dfs.core.windows.net",
        "basic.auth.user.info",
        "API_KEY",
        "header.Authorization",
        "credential",
        "oauth2.token",
        "fs.azure.sas.container.account.blob.core.windows.net",
        "SAS",
    ],
)
def test_keys_that_hold_secrets_are_known(key: str) -> None:
    assert looks_secret(key)


@pytest.mark.parametrize(
    "key", ["topic", "client.id", "write.format.default", "max.poll.records", "sasl.mechanism"]
)
def test_other_keys_are_shown(key: str) -> None:
    assert not looks_secret(key)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://host/path?a=b", "https://host/path?a=b"),
        ("https://user:pa/ss@w@host/x", "https://***@host/x"),
        ("https://user:pass word@host/x", "https://***@host/x"),
        ("https://apitoken@host", "https://***@host"),
        ("jdbc:oracle:thin:scott/tiger@//db", "jdbc:oracle:thin:***@//db"),
        ("jdbc:sqlserver://h;password=x;a=b", "jdbc:sqlserver://h;password=***;a=b"),
        ('required username="u" password="p w";', 'required username="u" password=***;'),
        ("https://h/x?sv=1&sig=p%2Fw&se=2", "https://h/x?sv=1&sig=***&se=2"),
        ("a@b.example", "a@b.example"),
    ],
)
def test_scrubbing_leaves_the_rest_readable(text: str, expected: str) -> None:
    assert scrub(text) == expected


def test_a_secret_that_a_server_repeats_is_not_shown() -> None:
    guarded("oauth2.token", "hunter2-hunter2")
    assert scrub("no such user: hunter2-hunter2, sir") == "no such user: ***, sir"


def test_a_secret_is_its_text_to_all_who_use_it() -> None:
    secret = Secret("value", "v***")
    assert secret == "value"
    assert hash(secret) == hash("value")
    assert f"{secret}" == str(secret) == "value"
    assert json.dumps(secret) == '"value"'
    assert repr(secret) == "'v***'"
    assert pickle.loads(pickle.dumps(secret)).shown == "v***"
