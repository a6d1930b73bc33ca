"""A small spec that is right, and what reading a changed one gives."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from oncelake.spec import PipelineSpec, examine, read_spec

ARTICLE = resources.files("oncelake.samples").joinpath("article.avsc").read_text("utf-8")

SPEC = """\
pipeline: articles
source:
  bootstrap: localhost:9092
  topic: articles.raw.v1
decode:
  schema: article.avsc
table:
  name: demo.news.articles_raw
checkpoint: chk
catalog:
  type: jdbc
  uri: jdbc:sqlite:catalog.db
  warehouse: warehouse
"""


def read(folder: Path, text: str, **environ: str) -> PipelineSpec:
    file = folder / "pipeline.yaml"
    file.write_text(text)
    return read_spec(file, environ).spec


def complaints(folder: Path, data: str | bytes, **environ: str) -> list[str]:
    """The problems as `line: text`."""
    file = folder / "pipeline.yaml"
    file.write_bytes(data.encode() if isinstance(data, str) else data)
    found = examine(file, environ)
    assert (found.spec is None) == bool(found.problems)
    return [f"{problem.line}: {problem.text}" for problem in found.problems]
