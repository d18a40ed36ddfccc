"""What akm is given to remember: valid YAML whatever the text, and the same whatever the order."""

import random

import pytest
import yaml

from akm_harbor.memory.backends import akm_documents
from akm_harbor.memory.protocol import Document

NASTY = [
    'quotes " and \\ backslash: colon # hash',
    "---\ninner: front matter\n---\ntext",
    "é 日本語 🎉 \u2028 line separator",
    "- list\n* star\n%percent @at `tick`",
    "",
    "word " * 600,
]


def documents():
    return [Document(f"m{i}", text, f"{i}") for i, text in enumerate(NASTY)]


@pytest.mark.parametrize("synthesis", ["lead", "keywords"])
def test_heads_are_yaml_and_bodies_are_kept(synthesis):
    for document, content in zip(documents(), akm_documents.files(documents(), synthesis).values(), strict=True):
        assert content.startswith("---\n")
        head, body = content[4:].split("\n---\n\n", 1)
        loaded = yaml.safe_load(head)
        assert loaded["type"] == "memory"
        assert isinstance(loaded["description"], str)
        assert body == document.text + "\n"


def test_off_is_the_text_alone():
    assert akm_documents.files(documents(), "off")["m0"] == NASTY[0] + "\n"


def test_lead_is_cut_and_keywords_are_weighed():
    written = akm_documents.files(documents(), "lead")
    assert len(yaml.safe_load(written["m5"][4:].split("\n---\n")[0])["description"]) <= akm_documents.LEAD_CHARS
    texts = ["common common rare", "common second", "common third"]
    files = akm_documents.files([Document(f"m{i}", t, str(i)) for i, t in enumerate(texts)], "keywords")
    head = yaml.safe_load(files["m1"][4:].split("\n---\n")[0])
    assert head["description"] == "second common"
    assert head["tags"] == ["second", "common"]


@pytest.mark.parametrize("synthesis", akm_documents.SYNTHESES)
def test_the_order_of_documents_changes_no_file(synthesis):
    one = akm_documents.files(documents(), synthesis)
    other = akm_documents.files(random.Random(2).sample(documents(), len(NASTY)), synthesis)
    assert one == other
