import random
import re
from pathlib import Path

import nltk
import pytest
from nltk.stem.porter import PorterStemmer

from akm_harbor.verify.porter import stem

DATA = Path(__file__).parents[1] / "data" / "memory"
ENDINGS = (
    "ational", "ing", "ed", "ies", "ied", "eed", "alli", "bli", "logi", "ation", "ement", "ion", "ll", "e", "y", "s",
    "sses", "fulli", "biliti", "ousness", "ative", "ical", "ness", "izer",
)  # fmt: skip


@pytest.fixture(scope="module")
def reference():
    return PorterStemmer()


def differing(words, reference):
    return [(word, stem(word), reference.stem(word)) for word in words if stem(word) != reference.stem(word)]


def test_every_word_of_the_reference_and_of_nltk_itself(reference):
    texts = [(DATA / "locomo_reference_synthetic.jsonl").read_text()]
    texts += [p.read_text(errors="ignore") for p in sorted(Path(nltk.__file__).parent.glob("stem/*.py"))]
    words = set(re.findall(r"[^\W_]+", " ".join(texts).lower()))
    assert len(words) > 2000
    assert differing(sorted(words), reference) == []


def test_made_up_words_with_every_ending(reference):
    dice = random.Random(3)
    words = {
        "".join(dice.choice("aeioubcdlstwxyzgn") for _ in range(dice.randint(0, 7)))
        + dice.choice(ENDINGS)
        + dice.choice(["", dice.choice(ENDINGS)])
        for _ in range(8_000)
    }
    assert differing(sorted(words), reference) == []


@pytest.mark.parametrize("word", ["", "a", "by", "yyyy", "y" * 50, "sky", "dying", "innings", "café", "東京", "2024"])
def test_odd_words(word, reference):
    assert stem(word) == reference.stem(word)
