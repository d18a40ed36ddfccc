"""The provider is declared the way opencode 1.x reads it."""

import akm_verify


def given():
    return akm_verify.load_document("settings.json")


def test_provider():
    assert given()["provider"] == {
        "attic": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Attic",
            "options": {"baseURL": "http://attic.lan:8000/v1"},
            "models": {"mill-large": {"name": "Mill Large"}},
        }
    }


def test_rest_is_as_before():
    assert {key: value for key, value in given().items() if key != "provider"} == {"theme": "nord"}
