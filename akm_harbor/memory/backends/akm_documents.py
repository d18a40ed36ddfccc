"""What is written for akm to remember: the text, and a description made by a declared rule.

akm 0.9.0 searches names, descriptions and tags but no body text, so what is put into them
decides what can be found. The rules are deterministic, and their name is part of every number.
"""

import json
import math
from collections import Counter
from collections.abc import Sequence

from akm_harbor.memory import text
from akm_harbor.memory.protocol import Document

OFF, LEAD, KEYWORDS = "off", "lead", "keywords"
SYNTHESES = (OFF, LEAD, KEYWORDS)
LEAD_CHARS = 250
DESCRIPTION_WORDS = 40
TAGS = 8


def files(documents: Sequence[Document], synthesis: str) -> dict[str, str]:
    """File content of each document, by name.

    Args:
        documents: one history's documents: `keywords` weighs words by how few of them hold it.
        synthesis: `off` writes the text alone, `lead` a description of its leading sentences,
            `keywords` a description of its weightiest words, and the first of them as tags.
    """
    if synthesis == OFF:
        return {document.name: document.text + "\n" for document in documents}
    if synthesis == LEAD:
        return {d.name: _file(d.text, text.lead(d.text, LEAD_CHARS), ()) for d in documents}
    held = Counter(word for document in documents for word in set(text.keywords(document.text)))
    written = {}
    for document in documents:
        words = _weighty(document.text, held, len(documents))
        written[document.name] = _file(document.text, " ".join(words), words[:TAGS])
    return written


def _weighty(content: str, held: Counter[str], n: int) -> list[str]:
    """The document's keywords by tf x idf, then by the alphabet; it never depends on the order of documents."""
    counts = Counter(word for word in text.tokens(content) if word not in text.STOPWORDS)
    weights = {word: times * math.log(1 + n / held[word]) for word, times in counts.items()}
    return sorted(weights, key=lambda word: (-weights[word], word))[:DESCRIPTION_WORDS]


def _file(body: str, description: str, tags: Sequence[str]) -> str:
    """A memory file; JSON strings are YAML strings, so nothing in the text can break the head."""
    head = ["---", "type: memory", f"description: {json.dumps(description, ensure_ascii=False)}"]
    if tags:
        head.append(f"tags: {json.dumps(list(tags), ensure_ascii=False)}")
    return "\n".join([*head, "---", "", body, ""])
