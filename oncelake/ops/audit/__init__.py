"""The audit: says from the outside whether a table holds each record of its topic exactly once.

It shares no code with the write path, only the words both are written in (`oncelake.model`).
`gather` collects frozen facts (`evidence`), `judge` turns them into a `Report`, purely.
"""

from oncelake.ops.audit.gather import Names, audit
from oncelake.ops.audit.report import Finding, PartitionReport, Report, Verdict

__all__ = ["Finding", "Names", "PartitionReport", "Report", "Verdict", "audit"]
