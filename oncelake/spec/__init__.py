"""pipeline.yaml → frozen values, checked in full before Spark starts.

`read_spec(path, os.environ).spec` is the way in. Environment variables override keys, `${VAR}`
inside a text is filled in, relative paths begin at the spec's own folder (a variable's too), and
what is secret shows as *** in every repr, echo and error.
"""

from oncelake.spec.echo import echo, echo_yaml
from oncelake.spec.problems import Problem, error_of
from oncelake.spec.read import Examination, Reading, examine, examine_bytes, read_spec
from oncelake.spec.secrets import Secret, scrub, shown
from oncelake.spec.values import (
    CatalogSpec,
    DecodeSpec,
    HorizonSpec,
    KafkaSinkSpec,
    LimitsSpec,
    MaintenanceSpec,
    PipelineSpec,
    Settings,
    SourceSpec,
    SparkSpec,
    TableSpec,
    WatermarkSpec,
)

__all__ = [
    "CatalogSpec",
    "DecodeSpec",
    "Examination",
    "HorizonSpec",
    "KafkaSinkSpec",
    "LimitsSpec",
    "MaintenanceSpec",
    "PipelineSpec",
    "Problem",
    "Reading",
    "Secret",
    "Settings",
    "SourceSpec",
    "SparkSpec",
    "TableSpec",
    "WatermarkSpec",
    "echo",
    "echo_yaml",
    "error_of",
    "examine",
    "examine_bytes",
    "read_spec",
    "scrub",
    "shown",
]
