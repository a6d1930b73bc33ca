"""Runs the Ivy that ships inside pyspark: declared jars in, a folder of files out."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from oncelake.local import LocalStackError, Progress, folders, java, trust
from oncelake.local.declared import Declared, module_file

_SECONDS_BETWEEN_LINES = 3.0
_RETRIEVED = "jars"
# What Java and Ivy say, and what it means for the person; no address is repeated.
_CAUSES = {
    r"UnknownHost|Host \S+ not found|NoRouteToHost|Network is unreachable": "there is no network",
    r"ConnectException|SocketTimeoutException|timed out": "the repository does not answer",
    r"SSLHandshakeException|PKIX": "Java does not trust the repository's certificate",
    r"No space left on device": "the disk is full",
}


class JarsUnavailable(LocalStackError):
    pass


def resolve(declared: Declared, work: Path, progress: Progress) -> Path:
    """Fetch the declared jars below `work`, as `<set>/<file>` in the folder returned.

    What Ivy has downloaded stays in `work`, so that a second try goes on from there. A
    settings file of one's own (a mirror, a proxy) is named in $ONCELAKE_IVY_SETTINGS.
    """
    work.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(work / _RETRIEVED, ignore_errors=True)
    (work / "ivy.xml").write_text(module_file(declared))
    log = folders.cache() / "logs" / "ivy.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    progress("jars: resolving (about a minute, once per user)")
    code = _run(_command(declared, work), work, log, progress)
    if code:
        raise JarsUnavailable(_explanation(code, log))
    return work / _RETRIEVED


def _command(declared: Declared, work: Path) -> list[str]:
    """Relative to the work folder: a path of the user's may hold what Ivy takes for a pattern."""
    settings = os.environ.get("ONCELAKE_IVY_SETTINGS")
    pattern = f"{_RETRIEVED}/[conf]/[artifact]-[revision](-[classifier]).[ext]"
    return [
        str(java.java_command()),
        *(trust.java_options(work / "trusted.jks") if java.is_packaged() else ()),
        f"-Divy.default.ivy.user.dir={work / 'ivy'}",
        *("-jar", str(ivy_jar())),
        *(("-settings", str(Path(settings).absolute())) if settings else ()),
        *("-ivy", "ivy.xml", "-cache", "ivy", "-confs", *declared.sets),
        *("-retrieve", pattern),
    ]


def ivy_jar() -> Path:
    pyspark = importlib.util.find_spec("pyspark")
    if pyspark is None or pyspark.origin is None:
        raise JarsUnavailable("pyspark is not installed.\nType `make setup`.")
    jars = Path(pyspark.origin).parent / "jars"
    for found in sorted(jars.glob("ivy-*.jar")):
        return found
    raise JarsUnavailable(f"this pyspark has no Ivy: no ivy-*.jar in {jars}.\nType `make setup`.")


def _run(command: list[str], work: Path, log: Path, progress: Progress) -> int:
    """Run Ivy with its chatter in `log`, and a short line now and then for the person."""
    found = downloaded = 0
    said = time.monotonic()
    with (
        log.open("w") as chatter,
        subprocess.Popen(
            command, cwd=work, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            chatter.write(line)
            found += line.startswith("\tfound ")
            downloaded += "[SUCCESSFUL ]" in line and ".jar" in line
            if time.monotonic() - said > _SECONDS_BETWEEN_LINES:
                said = time.monotonic()
                progress(f"jars: {found} found, {downloaded} downloaded")
    return process.returncode


def _explanation(code: int, log: Path) -> str:
    chatter = log.read_text(errors="replace")
    causes = [cause for signs, cause in _CAUSES.items() if re.search(signs, chatter)]
    missing = sorted(set(re.findall(r":: (\S+#\S+;\S+): not found", chatter)))
    return (
        f"the jars could not be fetched (Ivy ended with {code}): "
        + (causes[0] if causes else "see its log")
        + (f"; not found: {', '.join(missing)}" if missing else "")
        + f".\nIvy's log: {log}\n"
        "Type the same command again: what was downloaded is kept. Behind a proxy set"
        " JAVA_TOOL_OPTIONS=-Dhttps.proxyHost=…; with a mirror name a settings file in"
        " ONCELAKE_IVY_SETTINGS."
    )
