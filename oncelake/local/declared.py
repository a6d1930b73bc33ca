"""The declared jars (versions.toml) as frozen values, and as the file that Ivy reads."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as xml

from oncelake.versions import pinned

MAVEN = "http://ant.apache.org/ivy/maven"


@dataclass(frozen=True, slots=True)
class Jar:
    """One declared jar: Maven's three names of it, and which of its files are wanted.

    The file without a classifier is named by an empty one. `alone`: without what it depends on.
    """

    organisation: str
    module: str
    version: str
    classifiers: tuple[str, ...] = ("",)
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Declared:
    """Every declared jar by set (`spark`, `kafka`, `rest`), what is left out, what is replaced."""

    sets: Mapping[str, tuple[Jar, ...]]
    excludes: Mapping[str, tuple[str, ...]]
    overrides: tuple[Jar, ...]

    def only(self, names: Collection[str]) -> Declared:
        """These sets alone."""
        sets = {name: jars for name, jars in self.sets.items() if name in names}
        excludes = {name: left for name, left in self.excludes.items() if name in names}
        return Declared(sets, excludes, self.overrides)

    def fingerprint(self) -> str:
        """Names the cache folder: other declarations, another folder."""
        return hashlib.sha256(module_file(self).encode()).hexdigest()[:16]


def declared() -> Declared:
    return from_versions(pinned())


def from_versions(versions: Mapping[str, Any]) -> Declared:
    return Declared(
        sets={name: _jars(pins) for name, pins in versions["jars"].items()},
        excludes={name: tuple(reasons) for name, reasons in versions["excludes"].items()},
        overrides=_jars(versions["overrides"]),
    )


def _jars(pins: Mapping[str, Any]) -> tuple[Jar, ...]:
    return tuple(_jar(name, pin) for name, pin in pins.items())


def _jar(name: str, pin: Mapping[str, Any]) -> Jar:
    organisation, module = name.split(":")
    classifiers = tuple(pin.get("classifiers", ("",)))
    return Jar(organisation, module, pin["version"], classifiers, pin.get("alone", False))


def module_file(jars: Declared) -> str:
    """The text of ivy.xml: one Ivy configuration for each set of jars."""
    xml.register_namespace("m", MAVEN)
    root = xml.Element("ivy-module", version="2.0")
    xml.SubElement(root, "info", organisation="oncelake", module="jars")
    configurations = xml.SubElement(root, "configurations")
    dependencies = xml.SubElement(root, "dependencies")
    for name, members in jars.sets.items():
        xml.SubElement(configurations, "conf", name=name)
        for jar in members:
            _dependency(dependencies, jar, name)
    # Ivy wants the excludes after every dependency and the overrides last.
    for name, left_out in jars.excludes.items():
        for pattern in left_out:
            organisation, _, module = pattern.partition(":")
            only = {"module": module} if module else {}
            xml.SubElement(dependencies, "exclude", {"org": organisation, **only, "conf": name})
    for jar in jars.overrides:
        names = {"org": jar.organisation, "module": jar.module, "rev": jar.version}
        xml.SubElement(dependencies, "override", names)
    xml.indent(root)
    return xml.tostring(root, encoding="unicode") + "\n"


def _dependency(dependencies: xml.Element, jar: Jar, configuration: str) -> None:
    names = {"org": jar.organisation, "name": jar.module, "rev": jar.version}
    alone = {"transitive": "false"} if jar.alone else {}
    found = xml.SubElement(
        dependencies, "dependency", {**names, **alone, "conf": f"{configuration}->default"}
    )
    if jar.classifiers != ("",):
        for classifier in jar.classifiers:
            which = {f"{{{MAVEN}}}classifier": classifier} if classifier else {}
            kind = {"name": jar.module, "type": "jar", "conf": configuration}
            xml.SubElement(found, "artifact", {**kind, **which})
