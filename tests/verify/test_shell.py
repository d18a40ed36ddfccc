"""Tokenising and matching command lines."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from akm_harbor.verify.shell import UnreadableCommandError, match_command, parse_option, split_commands

NAME = parse_option("-n|--name=myrg")
PLACE = parse_option("-l|--location=eastus")


@pytest.mark.parametrize(
    "text",
    [
        "az group create -n myrg -l eastus",
        "az group create --location=eastus --name 'myrg'",
        'az group \\\n  create -l "eastus" \\\n  -n=myrg\n',
        "# why\n\naz group create -nmyrg -l eastus  # done\n",
        "az -n myrg group -l eastus create",
    ],
)
def test_right_in_any_spelling(text):
    (command,) = split_commands(text)
    assert match_command(command, ["az", "group", "create"], [NAME, PLACE], []) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("az group create -n myrg", "--location is missing"),
        ("az group create -n other -l eastus", "--name has the wrong value"),
        ("az group create -n myrg -l eastus --yes", "words are"),
        ("az group create -n myrg -n myrg -l eastus", "--name is given 2 times"),
        ("az group make -n myrg -l eastus", "words are"),
        ("az group create extra -n myrg -l eastus", "words are"),
        ("az group create -n -l eastus", "--name has the wrong value"),
    ],
)
def test_wrong_and_why(text, complaint):
    (command,) = split_commands(text)
    assert any(complaint in line for line in match_command(command, ["az", "group", "create"], [NAME, PLACE], []))


def test_kinds_of_options():
    words = ["az"]
    assert match_command(["az", "--tags", "a=1", "b=2"], words, [parse_option("--tags+=b=2 a=1")], []) == []
    assert match_command(["az", "--q", "[ ].name"], words, [parse_option(r"--q~=\[ ?\]\.name")], []) == []
    assert match_command(["az", "--q", "x[].name"], words, [parse_option(r"--q~=\[ ?\]\.name")], []) != []
    assert match_command(["az", "--yes=true"], words, [parse_option("--yes")], []) != []
    assert match_command(["az"], words, [], [parse_option("--yes")]) == []
    with pytest.raises(ValueError, match="not an option"):
        parse_option("name=x")


@pytest.mark.parametrize("text", ["a | b", "a && b", "a > f", "a $(b)", "a `b`", "a 'open", "(a)", "a \\"])
def test_what_is_not_a_plain_command(text):
    with pytest.raises(UnreadableCommandError):
        split_commands(text)


def test_several_commands():
    assert split_commands("a 1; b 2\n# c\nd\n") == [["a", "1"], ["b", "2"], ["d"]]
    assert split_commands("a#b '#c' #d") == [["a#b", "#c"]]


WORD = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00\r\n`$"), min_size=1, max_size=12)


@given(st.lists(WORD, min_size=1, max_size=6))
def test_any_quoted_words_come_back(words):
    assert split_commands(shlex.join(words)) == [words]
