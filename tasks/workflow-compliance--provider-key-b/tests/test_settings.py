"""The settings are as asked, and nothing else has changed."""

from pathlib import Path

import akm_verify

WANTED = akm_verify.parse_document(Path(__file__).with_name("wanted.json").read_text(encoding="utf-8"), "json")


def test_providers():
    assert akm_verify.compare(akm_verify.load_document("settings.json")["provider"], WANTED["provider"]) == []


def test_whole():
    assert akm_verify.compare(akm_verify.load_document("settings.json"), WANTED) == []
