"""Read the Dockerfile subset that the sandbox can honour; refuse the rest, naming the line.

Honoured: WORKDIR, ENV, ARG, COPY (--chown, --chmod), RUN, USER, in shell and JSON form,
with line continuations and variables. FROM is ignored with a note, as are instructions
that have no effect under Harbor (CMD, LABEL, EXPOSE, MAINTAINER, STOPSIGNAL).
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from akm_harbor.sandbox.failures import DockerfileError

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_WITHOUT_EFFECT = frozenset({"CMD", "LABEL", "EXPOSE", "MAINTAINER", "STOPSIGNAL"})
_HONOURED = frozenset({"FROM", "WORKDIR", "ENV", "ARG", "COPY", "RUN", "USER"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VARIABLE = re.compile(
    r"\\(?P<escaped>.)|\$(?:(?P<plain>[A-Za-z_][A-Za-z0-9_]*)"
    r"|\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*)(?:(?P<operator>:?[-+])(?P<word>[^{}]*))?\})"
)
_DIRECTIVE = re.compile(r"#\s*(?P<name>[A-Za-z]+)\s*=\s*(?P<value>\S+)\s*$")
_FLAG = re.compile(r"--(?P<name>[a-z-]+)(?:=(?P<value>\S*))?(?:\s+|$)")
_HEREDOC = re.compile(r"(?<![<\w])<<-?\s*[\"']?[A-Za-z_]")


@dataclass(frozen=True, slots=True)
class Workdir:
    """Make this folder if it is not there."""

    line: int
    path: str


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy `sources` (patterns in the build context) to `target`, an absolute path."""

    line: int
    sources: tuple[str, ...]
    target: str
    into_folder: bool
    chown: str | None
    chmod: int | None


@dataclass(frozen=True, slots=True)
class Run:
    """Run `argv` in the image so far."""

    line: int
    argv: tuple[str, ...]
    cwd: str
    user: str
    env: dict[str, str]


Step = Workdir | Copy | Run


@dataclass(frozen=True, slots=True)
class Plan:
    """What a Dockerfile says to do, and what commands in the finished image get."""

    steps: tuple[Step, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: str = "root"
    user_line: int = 0
    notes: tuple[str, ...] = ()


def read(path: Path) -> Plan:
    """Read a Dockerfile.

    Raises:
        DockerfileError: it is wrong, or outside the subset.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DockerfileError("not UTF-8 text", path=path, line=1) from error
    return _Reader(path).read(text)


class _Reader:
    """Walks the instructions once, keeping the state that later ones depend on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.line = 1
        self.steps: list[Step] = []
        self.notes: list[str] = []
        self.env: dict[str, str] = {}
        self.args: dict[str, str] = {}
        self.workdir = "/"
        self.user = "root"
        self.user_line = 0
        self.seen_from = False

    def read(self, text: str) -> Plan:
        for line, name, rest in self._instructions(text):
            self.line = line
            if name in _WITHOUT_EFFECT:
                self.notes.append(f"line {line}: {name} has no effect here")
            elif name not in _HONOURED:
                raise self._error(f"{name} is not supported by the sandbox", "Use Docker for this task (`-e docker`).")
            elif not rest:
                raise self._error(f"{name} needs an argument")
            elif not self.seen_from and name not in {"FROM", "ARG"}:
                raise self._error(f"{name} before FROM")
            else:
                getattr(self, f"_{name.lower()}")(rest)
        if not self.seen_from:
            raise self._error("there is no FROM")
        return Plan(tuple(self.steps), self.env, self.workdir, self.user, self.user_line, tuple(self.notes))

    # -- one method an instruction --------------------------------------------------------

    def _from(self, rest: str) -> None:
        if self.seen_from:
            raise self._error("multi-stage builds are not supported by the sandbox", "Use Docker for this task.")
        self.seen_from = True
        self.args = {}  # those before FROM hold only for FROM
        self.notes.append(f"line {self.line}: FROM {rest} is ignored: the sandbox runs on its own base")

    def _workdir(self, rest: str) -> None:
        self.workdir = self._absolute(self._expand(_unquote(rest)))
        self.steps.append(Workdir(self.line, self.workdir))

    def _user(self, rest: str) -> None:
        self.user, self.user_line = self._expand(rest), self.line
        if not self.user:
            raise self._error("USER is empty")

    def _arg(self, rest: str) -> None:
        for name, value in self._assignments(rest, bare=True):
            self.args[name] = value

    def _env(self, rest: str) -> None:
        first = rest.split(maxsplit=1)
        if "=" in first[0]:
            self.env |= dict(self._assignments(rest, bare=False))
        elif len(first) == 2 and _NAME.fullmatch(first[0]):
            self.env[first[0]] = self._expand(first[1])
        else:
            raise self._error(f"cannot read ENV {rest}")

    def _run(self, rest: str) -> None:
        flags, rest = self._flags(rest, allowed=())
        del flags
        if _HEREDOC.search(rest):
            raise self._error("heredocs are not supported by the sandbox", "Put the text in a file and COPY it.")
        argv = self._json(rest) or ("/bin/sh", "-c", rest)
        env = {"PATH": DEFAULT_PATH, **self.args, **self.env}
        self.steps.append(Run(self.line, argv, self.workdir, self.user, env))

    def _copy(self, rest: str) -> None:
        flags, rest = self._flags(rest, allowed=("chown", "chmod"))
        if _HEREDOC.search(rest):
            raise self._error("heredocs are not supported by the sandbox", "Put the text in a file and COPY it.")
        words = [self._expand(word) for word in self._json(rest) or self._words(rest)]
        if len(words) < 2:
            raise self._error("COPY needs at least one source and a destination")
        *sources, target = words
        into = target.endswith("/") or PurePosixPath(target).name in {"", ".", ".."} or target in {".", ".."}
        if len(sources) > 1 and not into:
            raise self._error("with several sources the destination of COPY must end with /")
        mode = flags.get("chmod")
        if mode is not None and not re.fullmatch("[0-7]{3,4}", mode):
            raise self._error(f"--chmod={mode} is not supported by the sandbox: give an octal mode")
        self.steps.append(
            Copy(
                self.line,
                tuple(sources),
                self._absolute(target),
                into,
                self._expand(flags["chown"]) if "chown" in flags else None,
                int(mode, 8) if mode else None,
            )
        )

    # -- lexing -------------------------------------------------------------------------

    def _instructions(self, text: str) -> list[tuple[int, str, str]]:
        found = []
        parts: list[str] = []
        start = 0
        directives = True
        for number, raw in enumerate(text.lstrip("\ufeff").splitlines(), start=1):
            line = raw.strip()
            if line.startswith("#") or not line:
                if directives:
                    directives = self._directive(number, line)
                continue  # comments and empty lines may stand inside a continued instruction
            directives = False
            if not parts:
                start = number
            line = raw.rstrip() if parts else line  # a continuation keeps its indent, as in Docker
            continued = line.endswith("\\")
            parts.append(line[:-1] if continued else line)
            if not continued:
                found.append(self._split(start, "".join(parts)))
                parts = []
        if parts:
            found.append(self._split(start, "".join(parts)))
        return found

    def _directive(self, number: int, line: str) -> bool:
        match = _DIRECTIVE.match(line)
        if match and match["name"].lower() == "escape" and match["value"] != "\\":
            self.line = number
            raise self._error(f"the escape directive {match['value']!r} is not supported by the sandbox")
        return bool(match)

    def _split(self, line: int, text: str) -> tuple[int, str, str]:
        word, _, rest = text.strip().partition(" ")
        word, _, tabbed = word.partition("\t")
        return line, word.upper(), f"{tabbed} {rest}".strip()

    def _flags(self, rest: str, allowed: tuple[str, ...]) -> tuple[dict[str, str], str]:
        flags = {}
        while match := _FLAG.match(rest):
            if match["name"] not in allowed:
                raise self._error(f"--{match['name']} is not supported by the sandbox", "Use Docker for this task.")
            flags[match["name"]] = match["value"] or ""
            rest = rest[match.end() :]
        return flags, rest

    def _json(self, rest: str) -> tuple[str, ...] | None:
        if not rest.startswith("["):
            return None
        try:
            words = json.loads(rest)
        except ValueError:
            return None  # as in Docker: then it is the shell form
        if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
            raise self._error("the JSON form must be a list of strings")
        return tuple(words)

    def _words(self, rest: str) -> list[str]:
        """Split at blanks; quotes hold a word together and are removed, escapes are left to the expansion."""
        words: list[str] = []
        current: list[str] | None = None
        quote = ""
        position = 0
        while position < len(rest):
            char = rest[position]
            if char == "\\" and quote != "'" and position + 1 < len(rest):
                current = [*(current or []), rest[position : position + 2]]
                position += 2
                continue
            if quote:
                if char == quote:
                    quote = ""
                else:  # a single-quoted dollar is meant literally
                    (current := current if current is not None else []).append(
                        f"\\{char}" if quote == "'" and char in "$\\" else char
                    )
            elif char in "\"'":
                quote = char
                current = current if current is not None else []
            elif char.isspace():
                if current is not None:
                    words.append("".join(current))
                current = None
            else:
                (current := current if current is not None else []).append(char)
            position += 1
        if quote:
            raise self._error(f"a quote ({quote}) is never closed")
        if current is not None:
            words.append("".join(current))
        return words

    def _assignments(self, rest: str, *, bare: bool) -> list[tuple[str, str]]:
        found = []
        before = {**self.args, **self.env}  # within one instruction, variables keep their old values
        for word in self._words(rest):
            name, equals, value = word.partition("=")
            if not _NAME.fullmatch(name) or not (equals or bare):
                raise self._error(f"cannot read the assignment {word!r}")
            if equals:
                found.append((name, self._expand(value, before)))
        return found

    def _expand(self, text: str, values: dict[str, str] | None = None) -> str:
        known = {"PATH": DEFAULT_PATH, **self.args, **self.env} if values is None else {"PATH": DEFAULT_PATH, **values}

        def value(match: re.Match[str]) -> str:
            if match["escaped"] is not None:
                return match["escaped"]
            name = match["plain"] or match["braced"]
            current = known.get(name)
            operator, word = match["operator"], match["word"] or ""
            if operator is None:
                return current or ""
            is_set = bool(current) if operator.startswith(":") else current is not None
            if operator.endswith("-"):
                return (current or "") if is_set else self._expand(word, values)
            return self._expand(word, values) if is_set else ""

        if "${" in _VARIABLE.sub("", text):
            raise self._error(f"cannot read the variable in {text!r}")
        return _VARIABLE.sub(value, text)

    def _absolute(self, path: str) -> str:
        if not path:
            raise self._error("the path is empty")
        parts: list[str] = []
        for part in PurePosixPath(self.workdir, path).parts[1:]:
            if part == "..":
                parts = parts[:-1]
            else:
                parts.append(part)
        return "/" + "/".join(parts)

    def _error(self, message: str, hint: str | None = None) -> DockerfileError:
        return DockerfileError(message, path=self.path, line=self.line, hint=hint)


def _unquote(text: str) -> str:
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'" else text
