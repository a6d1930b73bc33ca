"""Problems are collected, not raised one by one: a person mends a spec in one go."""

from __future__ import annotations

from dataclasses import dataclass, field

from oncelake.errors import SpecError


class Refused(ValueError):
    """Why a value cannot be taken. The words never repeat the value: it may be secret."""


@dataclass(frozen=True, slots=True)
class Problem:
    """`where` is a file, a line in it, or an environment variable."""

    where: str
    line: int | None
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


@dataclass(frozen=True, slots=True)
class Notes:
    """Problems and warnings as they are found in the file `file`."""

    file: str
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def place(self, line: int | None) -> str:
        return f"{self.file}:{line}" if line else self.file

    def problem(self, line: int | None, text: str) -> None:
        self.problems.append(Problem(self.place(line), line, text))

    def problem_of_variable(self, name: str, text: str) -> None:
        self.problems.append(Problem(f"environment variable {name}", None, text))

    def warning(self, line: int | None, text: str) -> None:
        self.warnings.append(Problem(self.place(line), line, text))

    def sorted_problems(self) -> tuple[Problem, ...]:
        """In the order of the file's lines; what has no line comes last."""
        return tuple(sorted(self.problems, key=lambda each: each.line or 10**9))


def error_of(file: str, problems: tuple[Problem, ...]) -> SpecError:
    """One error that names every problem."""
    if len(problems) == 1:
        return SpecError(str(problems[0]))
    lines = "".join(f"\n  {problem}" for problem in problems)
    return SpecError(f"{file} has {len(problems)} problems:{lines}")
