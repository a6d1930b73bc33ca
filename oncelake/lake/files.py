"""Files of a checkpoint wherever Spark keeps it, read by Hadoop as Spark reads them."""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql import SparkSession

from oncelake.checkpoint import FileDamaged
from oncelake.errors import CheckpointUnusable
from oncelake.lake.java import JAVA_ERRORS, JavaObject, in_short


class Folder:
    """A folder on a disk, HDFS or an object store."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.root = root.rstrip("/")
        # Once: py4j asks Java for each part of a name.
        self._path: JavaObject = spark._jvm.org.apache.hadoop.fs.Path  # type: ignore[union-attr]
        self._io: JavaObject = spark._jvm.org.apache.commons.io.IOUtils  # type: ignore[union-attr]
        configuration = spark._jsparkSession.sessionState().newHadoopConf()
        try:
            self._system = self._path(self.root).getFileSystem(configuration)
        except JAVA_ERRORS as error:
            raise CheckpointUnusable(
                f"the checkpoint {root} cannot be reached: {in_short(error)}. Spark needs the jar "
                "of that file system (spark.settings in the spec: spark.jars), or set "
                "CHECKPOINT_LOCATION to a place that it knows"
            ) from error

    def names(self, folder: str) -> list[str]:
        """The files in a folder below; none where it is missing."""
        path = self._path(f"{self.root}/{folder}")
        try:
            if not self._system.exists(path):
                return []
            return [str(each.getPath().getName()) for each in self._system.listStatus(path)]
        except JAVA_ERRORS as error:
            raise self._unreadable(error) from error

    def changed(self, folder: str) -> dict[str, datetime]:
        """When each file in a folder below was last written."""
        try:
            path = self._path(f"{self.root}/{folder}")
            if not self._system.exists(path):
                return {}
            found = self._as_stored().listStatus(path)
            return {str(each.getPath().getName()): _when(each) for each in found}
        except JAVA_ERRORS as error:
            raise self._unreadable(error) from error

    def remove(self, entry: str) -> None:
        """A file or a folder below, with all that is in it."""
        try:
            self._system.delete(self._path(f"{self.root}/{entry}"), True)
        except JAVA_ERRORS as error:
            raise self._unreadable(error) from error

    def read(self, entry: str) -> str:
        """The text of a file below; FileDamaged where it is missing, or does not fit its
        checksum, if the file system keeps one."""
        try:
            stream = self._system.open(self._path(f"{self.root}/{entry}"))
            try:
                return str(self._io.toString(stream, "UTF-8"))
            finally:
                stream.close()
        except JAVA_ERRORS as error:
            short = in_short(error)
            gone = "FileNotFoundException" in short and "Permission denied" not in short
            if gone or "ChecksumException" in short:
                raise FileDamaged(f"{entry} cannot be read ({short})") from error
            raise self._unreadable(error) from error

    def write(self, entry: str, text: str) -> None:
        """A file below, in the place of one that is there."""
        try:
            stream = self._system.create(self._path(f"{self.root}/{entry}"), True)
            try:
                self._io.write(text, stream, "UTF-8")
            finally:
                stream.close()
        except JAVA_ERRORS as error:
            raise CheckpointUnusable(
                f"{self.root}/{entry} cannot be written: {in_short(error)}. Nothing was read. See "
                "that this user may write there, or set CHECKPOINT_LOCATION to another place"
            ) from error

    def move_to(self, root: str) -> None:
        """Rename the folder itself; an OSError where that cannot be done."""
        try:
            moved = self._system.rename(self._path(self.root), self._path(root))
        except JAVA_ERRORS as error:
            raise OSError(in_short(error)) from error
        if not moved:
            raise OSError(f"{self.root} could not be renamed to {root}")

    def _as_stored(self) -> JavaObject:
        """With the files of checksums, where the file system keeps such and hides them."""
        try:
            return self._system.getRawFileSystem()
        except JAVA_ERRORS:
            return self._system

    def _unreadable(self, error: Exception) -> CheckpointUnusable:
        """Perhaps only now: that is no reason to set it aside."""
        return CheckpointUnusable(
            f"the checkpoint {self.root} cannot be read: {in_short(error)}. Nothing was changed: "
            "see that this user may read it and that its file system answers, and run again"
        )


def _when(file: JavaObject) -> datetime:
    return datetime.fromtimestamp(file.getModificationTime() / 1000, UTC)
