"""Deletion vectors: which rows of which files are gone, written without reading a row.

Iceberg keeps one vector a data file: a new one takes in what the former held, and replaces it.
Positions cross to Java as one bitmap a file, in the form that the Puffin specification gives.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pyroaring import BitMap64
from pyspark.sql import SparkSession

from oncelake.errors import TerminalError
from oncelake.lake.java import ICEBERG, JavaObject, java_class

Positions = Mapping[str, Collection[int]]
_MAGIC = struct.pack("<I", 1681511377)


@dataclass(frozen=True, slots=True)
class Deletes:
    """Vectors that are written and belong to no snapshot yet, and those that they replace."""

    added: tuple[JavaObject, ...] = ()
    replaced: tuple[JavaObject, ...] = ()


NO_DELETES = Deletes()


def write_vectors(spark: SparkSession, table: JavaObject, snapshot: int,
                  gone: Positions) -> Deletes:  # fmt: skip
    """Vectors that add these positions to what is gone of `table` at `snapshot`."""
    if not gone:
        return NO_DELETES
    jvm: JavaObject = spark._jvm
    tasks = _tasks(spark, table, snapshot)
    touched = {path: tasks.get(path) for path in gone}
    for path, task in touched.items():
        if task is None:
            raise TerminalError(f"no such data file in snapshot {snapshot}: {path}")
    former = jvm.java.util.HashMap()
    for path, task in touched.items():
        if (index := _former(jvm, table, task, path)) is not None:
            former.put(path, index)
    iceberg = jvm.org.apache.iceberg
    factory = iceberg.io.OutputFileFactory.builderFor(table, 0, 0)
    factory = factory.format(iceberg.FileFormat.PUFFIN).operationId(str(uuid.uuid4())).build()
    writer = iceberg.deletes.BaseDVFileWriter(factory, _lookup(jvm, former))
    try:
        for path, task in touched.items():
            index = _index(jvm, path, gone[path])
            writer.delete(path, index, task.spec(), task.file().partition())
    finally:
        writer.close()
    result = writer.result()
    return Deletes(
        tuple(result.deleteFiles().toArray()), tuple(result.rewrittenDeleteFiles().toArray())
    )


def blob(positions: Collection[int]) -> bytes:
    """A `deletion-vector-v1` blob of the Puffin specification."""
    body = _MAGIC + BitMap64(positions).serialize()
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def data_files(spark: SparkSession, table: JavaObject, snapshot: int,
               paths: Collection[str]) -> tuple[JavaObject, ...]:  # fmt: skip
    tasks = _tasks(spark, table, snapshot)
    return tuple(tasks.get(path).file() for path in paths)


def _tasks(spark: SparkSession, table: JavaObject, snapshot: int) -> JavaObject:
    """The files of a snapshot as a scan plans them, by their paths.

    A Java map, made by Java: asked one by one from here, a large table's files would take seconds.
    """
    jvm: JavaObject = spark._jvm
    handles, types = jvm.java.lang.invoke.MethodHandles, jvm.java.lang.invoke.MethodType
    task, file, text = (
        java_class(spark, name)
        for name in (f"{ICEBERG}ContentScanTask", f"{ICEBERG}ContentFile", "java.lang.String")
    )
    lookup = handles.publicLookup()
    file_of = lookup.findVirtual(task, "file", types.methodType(file))
    path_of = lookup.findVirtual(file, "location", types.methodType(text))
    function = java_class(spark, "com.google.common.base.Function")
    by_path = jvm.java.lang.invoke.MethodHandleProxies.asInterfaceInstance(
        function, handles.filterReturnValue(file_of, path_of)
    )
    planned = table.newScan().useSnapshot(snapshot).planFiles()
    try:
        return jvm.com.google.common.collect.Maps.uniqueIndex(planned.iterator(), by_path)
    finally:
        planned.close()


def _former(jvm: JavaObject, table: JavaObject, task: JavaObject, path: str) -> JavaObject | None:
    """What is gone of a file by position already; None where nothing is."""
    deletes = jvm.java.util.ArrayList()
    inputs = jvm.java.util.HashMap()
    for delete in task.deletes().toArray():
        if str(delete.content().name()) == "POSITION_DELETES":
            deletes.add(delete)
            inputs.put(delete, table.io().newInputFile(delete.location()))
    if deletes.isEmpty():
        return None
    loader = jvm.org.apache.iceberg.data.BaseDeleteLoader(_lookup(jvm, inputs))
    return loader.loadPositionDeletes(deletes, path)


def _index(jvm: JavaObject, path: str, positions: Collection[int]) -> JavaObject:
    """The positions as Iceberg holds them: it reads them from a file, and wants that described."""
    content = blob(positions)
    iceberg = jvm.org.apache.iceberg
    described = (
        iceberg.FileMetadata.deleteFileBuilder(iceberg.PartitionSpec.unpartitioned())
        .ofPositionDeletes()
        .withFormat(iceberg.FileFormat.PUFFIN)
        .withPath(f"{path}.gone")
        .withFileSizeInBytes(len(content))
        .withReferencedDataFile(path)
        .withContentOffset(0)
        .withContentSizeInBytes(len(content))
        .withRecordCount(len(positions))
        .build()
    )
    return iceberg.deletes.PositionDeleteIndex.deserialize(content, described)


def _lookup(jvm: JavaObject, entries: JavaObject) -> JavaObject:
    """A Java map as a Java function, without a call back into Python."""
    return jvm.com.google.common.base.Functions.forMap(entries, None)
