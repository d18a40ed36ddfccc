"""The subagent's frontmatter and prompt are as asked."""

import akm_verify


def parts():
    head, frontmatter, body = akm_verify.read_answer("reviewer.md").split("---\n", 2)
    assert head == ""
    return akm_verify.parse_document(frontmatter, "yaml"), body


def test_frontmatter():
    assert parts()[0] == {
        "description": "Reads a change and lists what is wrong with it",
        "mode": "subagent",
        "temperature": 0.1,
        "tools": {"write": False, "edit": False},
    }


def test_prompt():
    assert parts()[1].strip() == "List defects, most severe first. Change nothing."
