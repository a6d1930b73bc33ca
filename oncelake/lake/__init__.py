"""The one door to Java: Iceberg's API, and what Spark tells only there.

Nothing outside this package touches py4j, but for the audit, which shares no code with it.
"""

from oncelake.lake import upkeep
from oncelake.lake.batches import observed, parts, planned
from oncelake.lake.calls import kafka_hash, utf8_check
from oncelake.lake.create import add_column, columns_of, create_table, rename_table, table_exists
from oncelake.lake.deletes import Deletes, Positions
from oncelake.lake.files import Folder
from oncelake.lake.java import JAVA_ERRORS, answering, in_short, require_iceberg, without_stack
from oncelake.lake.life import until_stopped
from oncelake.lake.publish import Ancestor, Guard, Publication
from oncelake.lake.revise import MARKS, OUTCOME, open_to_replay
from oncelake.lake.table import STAGING_OPTIONS, LakeTable, Staged, Unanswered

__all__ = [
    "JAVA_ERRORS",
    "MARKS",
    "OUTCOME",
    "STAGING_OPTIONS",
    "Ancestor",
    "Deletes",
    "Folder",
    "Guard",
    "LakeTable",
    "Positions",
    "Publication",
    "Staged",
    "Unanswered",
    "add_column",
    "answering",
    "columns_of",
    "create_table",
    "in_short",
    "kafka_hash",
    "observed",
    "open_to_replay",
    "parts",
    "planned",
    "rename_table",
    "require_iceberg",
    "table_exists",
    "until_stopped",
    "upkeep",
    "utf8_check",
    "without_stack",
]
