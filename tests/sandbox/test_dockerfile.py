from pathlib import Path

import pytest

from akm_harbor.sandbox.dockerfile import DEFAULT_PATH, Copy, Plan, Run, Workdir, read
from akm_harbor.sandbox.failures import DockerfileError


def plan(tmp_path: Path, text: str) -> Plan:
    path = tmp_path / "Dockerfile"
    path.write_text(text)
    return read(path)


def test_all_it_honours(tmp_path: Path) -> None:
    got = plan(
        tmp_path,
        """# syntax=docker/dockerfile:1
ARG BASE=debian
FROM ${BASE}:bookworm
ENV A=1 B="two words" C=$A
ENV OLD style value
ARG VERSION=3
WORKDIR /srv
WORKDIR app
USER agent
COPY --chown=agent:agent --chmod=755 run.sh data/*.txt ./
COPY ["a b.txt", "/x/"]
RUN echo $A \\
    # a comment in between

    && true
RUN ["/bin/echo", "$A"]
CMD ["bash"]
LABEL a=b
""",
    )
    env = {"PATH": DEFAULT_PATH, "VERSION": "3", "A": "1", "B": "two words", "C": "", "OLD": "style value"}
    assert got.steps == (
        Workdir(7, "/srv"),
        Workdir(8, "/srv/app"),
        Copy(10, ("run.sh", "data/*.txt"), "/srv/app", True, "agent:agent", 0o755),
        Copy(11, ("a b.txt",), "/x", True, None, None),
        Run(12, ("/bin/sh", "-c", "echo $A     && true"), "/srv/app", "agent", env),
        Run(16, ("/bin/echo", "$A"), "/srv/app", "agent", env),
    )
    assert got.env == {"A": "1", "B": "two words", "C": "", "OLD": "style value"}
    assert (got.workdir, got.user, got.user_line) == ("/srv/app", "agent", 9)
    assert [note.split(":")[0] for note in got.notes] == ["line 3", "line 17", "line 18"]


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("$V", "v"),
        ("${V}x", "vx"),
        ("$Vx", ""),
        ("${NONE:-d}", "d"),
        ("${NONE-d}", "d"),
        ("${EMPTY:-d}", "d"),
        ("${EMPTY-d}", ""),
        ("${V:+yes}", "yes"),
        ("${NONE:+yes}", ""),
        (r"\$V", "$V"),
        ("'$V'", "$V"),
        ('"$V w"', "v w"),
        (r"a\ b", "a b"),
        ("$PATH:/x", f"{DEFAULT_PATH}:/x"),
        ("${V:-a}${V}", "vv"),
        ('""', ""),
        ("a=b", "a=b"),
    ],
)
def test_variables_and_quotes(tmp_path: Path, written: str, means: str) -> None:
    got = plan(tmp_path, f"FROM x\nENV V=v EMPTY=\nENV R={written}\n")
    assert got.env["R"] == means


def test_build_arguments_yield_to_the_environment_and_do_not_outlive_the_build(tmp_path: Path) -> None:
    got = plan(tmp_path, "FROM x\nARG A=arg\nARG B=arg\nARG UNSET\nENV A=env\nRUN true\n")
    assert isinstance(got.steps[0], Run)
    assert got.steps[0].env == {"PATH": DEFAULT_PATH, "A": "env", "B": "arg"}
    assert got.env == {"A": "env"}


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("FROM x\nADD a b\n", 2, "ADD is not supported"),
        ('FROM x\n\n\nENTRYPOINT ["x"]\n', 4, "ENTRYPOINT is not supported"),
        ("FROM x\nHEALTHCHECK NONE\n", 2, "HEALTHCHECK is not supported"),
        ("FROM x\nVOLUME /x\n", 2, "VOLUME is not supported"),
        ('FROM x\nSHELL ["bash"]\n', 2, "SHELL is not supported"),
        ("FROM x\nBOGUS y\n", 2, "BOGUS is not supported"),
        ("FROM x AS build\nRUN true\nFROM y\n", 3, "multi-stage"),
        ("FROM x\nCOPY --from=build a b\n", 2, "--from is not supported"),
        ("FROM x\nRUN --mount=type=cache,target=/x true\n", 2, "--mount is not supported"),
        ("FROM x\nRUN <<EOF\necho hi\nEOF\n", 2, "heredocs"),
        ("FROM x\nRUN cat <<-'EOF' > /x\nhi\nEOF\n", 2, "heredocs"),
        ("FROM x\nCOPY <<EOF /x\nhi\nEOF\n", 2, "heredocs"),
        ("FROM x\nCOPY a\n", 2, "at least one source"),
        ("FROM x\nCOPY a b c\n", 2, "must end with /"),
        ("FROM x\nCOPY --chmod=u+x a b\n", 2, "--chmod"),
        ("FROM x\nRUN\n", 2, "needs an argument"),
        ("FROM x\nENV 1A=b\n", 2, "cannot read"),
        ("FROM x\nENV A\n", 2, "cannot read"),
        ('FROM x\nENV A="b\n', 2, "never closed"),
        ("FROM x\nENV A=${B\n", 2, "cannot read the variable"),
        ("FROM x\nENV A=${B//x/y}\n", 2, "cannot read the variable"),
        ("FROM x\nUSER $NOBODY\n", 2, "USER is empty"),
        ("FROM x\nWORKDIR $NOTHING\n", 2, "path is empty"),
        ("FROM x\nRUN [1, 2]\n", 2, "list of strings"),
        ("RUN true\n", 1, "before FROM"),
        ("# escape=`\nFROM x\n", 1, "escape"),
        ("", 1, "no FROM"),
    ],
)  # fmt: skip
def test_what_it_refuses_names_the_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    with pytest.raises(DockerfileError) as caught:
        plan(tmp_path, text)
    assert caught.value.line == line
    assert said in str(caught.value)
    assert f"Dockerfile: line {line}:" in str(caught.value)


def test_a_shift_and_a_here_string_are_no_heredoc(tmp_path: Path) -> None:
    got = plan(tmp_path, "FROM x\nRUN echo $((1<<3)) && cat <<<word\n")
    assert len(got.steps) == 1


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_bytes(b"FROM x\nENV A=\xff\n")
    with pytest.raises(DockerfileError, match="UTF-8"):
        read(tmp_path / "Dockerfile")
