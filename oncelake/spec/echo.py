"""A spec as a person may see it: normalised, every default spelled out, secrets as ***.

The echo of a spec without secrets is itself a spec, and reads back as the same values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from oncelake.spec.durations import duration_text
from oncelake.spec.secrets import shown
from oncelake.spec.values import KafkaSinkSpec, MaintenanceSpec, PipelineSpec, WatermarkSpec


def echo(spec: PipelineSpec) -> dict[str, Any]:
    """The spec under the keys of pipeline.yaml, ready for JSON."""
    return {
        "pipeline": shown(spec.name),
        "source": {
            "bootstrap": shown(spec.source.bootstrap),
            "topic": shown(spec.source.topic),
            "start": shown(spec.source.start),
            "options": _map(spec.source.options),
        },
        "decode": {"format": shown(spec.decode.format), "schema": shown(spec.decode.location)},
        "table": {
            "name": shown(spec.table.name),
            "quarantine": shown(spec.table.quarantine),
            "late": shown(spec.table.late),
            "tombstones": shown(spec.table.tombstones),
            "partition_by": [shown(entry) for entry in spec.table.partition_by],
            "properties": _map(spec.table.properties),
        },
        "transform": shown(spec.transform) or None,
        "mode": shown(spec.mode),
        "key": list(spec.key),
        "order": list(spec.order),
        "deletes": shown(spec.deletes),
        "horizon": duration_text(spec.horizon.seconds) if spec.horizon else None,
        "watermark": _watermark(spec.watermark),
        "trigger": duration_text(spec.trigger_seconds),
        "limits": {
            "max_offsets": spec.limits.max_offsets,
            "min_partitions": spec.limits.min_partitions,
        },
        "sinks": [{"kafka": _kafka_sink(sink)} for sink in spec.sinks],
        "maintenance": _maintenance(spec.maintenance),
        "checkpoint": shown(spec.checkpoint),
        "catalog": {
            "type": shown(spec.catalog.type),
            "uri": shown(spec.catalog.uri) or None,
            "warehouse": shown(spec.catalog.warehouse) or None,
            "properties": _map(spec.catalog.properties),
        },
        "spark": {
            "master": shown(spec.spark.master) if spec.spark.master else None,
            "settings": _map(spec.spark.settings),
        },
        "log_level": shown(spec.log_level),
    }


def echo_yaml(spec: PipelineSpec) -> str:
    """The echo as the text of a pipeline.yaml."""
    return yaml.safe_dump(echo(spec), sort_keys=False, allow_unicode=True, width=100)


def _watermark(spec: WatermarkSpec | None) -> dict[str, str] | None:
    if spec is None:
        return None
    return {
        "column": shown(spec.column),
        "delay": duration_text(spec.delay_seconds),
        "skew": duration_text(spec.skew_seconds),
        "late": shown(spec.late),
    }


def _kafka_sink(spec: KafkaSinkSpec) -> dict[str, Any]:
    return {
        "topic": shown(spec.topic),
        "bootstrap": shown(spec.bootstrap),
        "name": shown(spec.name),
        "key": shown(spec.key_column) or None,
        "too_large": shown(spec.too_large),
        "mode": shown(spec.mode),
        "foreign": shown(spec.foreign),
        "transaction_timeout": duration_text(spec.transaction_timeout_seconds),
        "options": _map(spec.options),
    }


def _maintenance(spec: MaintenanceSpec) -> dict[str, str | None]:
    return {
        "every": duration_text(spec.every_seconds) if spec.every_seconds else None,
        "expire": duration_text(spec.expire_seconds),
        "orphans": duration_text(spec.orphans_seconds),
    }


def _map(settings: Mapping[str, str]) -> dict[str, str]:
    return {key: shown(value) for key, value in sorted(settings.items())}
