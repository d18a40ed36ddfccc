"""A test double of a reader and a judge behind one OpenAI-compatible server on loopback. It is no model.

What it says follows from a script: for each question its gold answer, the evidence it must have seen to know
it, and how it behaves. Every request is counted by the digest of its body, when it comes and when it is answered.

As a program: python -m tests.memory.answer.model_double SCRIPT LOG [SECONDS [PORT]]; it prints its address.
"""

import hashlib
import json
import random
import re
import socket
import struct
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

VAGUE = "Something they talked about at some point."
WRONG = "A purple submarine in 1931"
ABSTAINS = "No information available"
REFUSAL = "I can't help with that."
PROSE = "The answer has its merits, although one might see it another way."
BEHAVIOURS = ("right", "wrong", "vague", "abstaining", "malformed", "refusing")
_QUESTION = re.compile(r"\nQuestion: (.*)\nAnswer:$", re.DOTALL)
_JUDGED = re.compile(
    r"\n\nQuestion: (.*?)\n\n[^\n]*?: (.*?)\n\nAnswer to be judged: (.*?)\n\nReply with one word", re.DOTALL
)


@dataclass
class Script:
    """What the double says.

    `reader` maps a question to gold, evidence and behaviour, `judge` a question to `strict`, `lenient`, `prose`
    or `refusing`. `faults` maps a part of a prompt, or `*`, to a list of faults, each used up once (or `always`).
    """

    reader: dict = field(default_factory=dict)
    judge: dict = field(default_factory=dict)
    faults: dict = field(default_factory=dict)
    served: str | None = None
    seconds: float = 0.0
    usage: bool = True


class Double:
    """The server; `requests` and `answers` count bodies by digest."""

    running: ClassVar[dict] = {}

    def __init__(self, script: Script, log: Path | None = None, port: int = 0) -> None:
        self.script = script
        self.requests: Counter = Counter()
        self.answers: Counter = Counter()
        self.bodies: list[dict] = []
        self.prompts: list[str] = []
        self._log = log.open("a") if log else None
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port), type("Handler", (_Handler,), {"double": self}))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self):
        self.running[self.url] = self
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def note(self, what: str, digest: str) -> None:
        with self._lock:
            (self.requests if what == "request" else self.answers)[digest] += 1
            if self._log:
                self._log.write(f"{what} {digest}\n")
                self._log.flush()

    def fault(self, prompt: str) -> str | None:
        with self._lock:
            for part, faults in self.script.faults.items():
                if (part == "*" or part in prompt) and faults:
                    return faults[0] if faults[0].endswith("always") else faults.pop(0)
        return None

    def direct(self, model: str, messages: list, settings: dict) -> dict:
        """The same answer without a socket and without litellm; faults need both."""
        assert not self.script.faults
        body = {"model": model.rpartition("/")[2], "messages": messages, **settings}
        self.take(body)
        text, finish = self.says(messages[-1]["content"])
        digest = digest_of(body)
        self.note("answer", digest)
        served = self.script.served or body["model"]
        sizes = {"in_tok": len(json.dumps(body)) // 4, "out_tok": len(text) // 4 + 1}
        if not self.script.usage:
            sizes = dict.fromkeys(sizes)
        return {"model": served, "text": text, "finish_reason": finish, **sizes}

    def take(self, body: dict) -> str:
        """Count a request; its digest."""
        digest = digest_of(body)
        self.note("request", digest)
        with self._lock:
            self.bodies.append({k: v for k, v in body.items() if k != "messages"})
            self.prompts.append(body["messages"][-1]["content"])
        return digest

    def says(self, prompt: str) -> tuple[str, str]:
        """(text, finish reason)."""
        judged = _JUDGED.search(prompt)
        if judged:
            return self._judges(*judged.groups()), "stop"
        question = _QUESTION.search(prompt)
        if question is None:
            return "yes" if "yes" in prompt else "?", "stop"
        return self._reads(question[1], prompt)

    def _reads(self, question: str, prompt: str) -> tuple[str, str]:
        known = self.script.reader.get(question)
        flat = " ".join(prompt.split())
        if known is None or not all(" ".join(text.split()) in flat for text in known.get("evidence", ())):
            return ABSTAINS, "stop"
        behaviour = known["behaviour"]
        said = {
            "right": known["gold"],
            "wrong": WRONG,
            "vague": VAGUE,
            "abstaining": ABSTAINS,
            "malformed": "",
            "refusing": REFUSAL,
        }[behaviour]
        return str(said), "content_filter" if behaviour == "refusing" else "stop"

    def _judges(self, question: str, gold: str, answer: str) -> str:
        how = self.script.judge.get(question, "strict")
        if how == "prose":
            return PROSE
        if how == "refusing":
            return "I'm sorry, I can't judge that."
        right = gold.strip() in answer or (ABSTAINS in answer and "cannot" in gold)
        return "Yes." if right or (how == "lenient" and answer not in (WRONG, ABSTAINS, "")) else "no"


class _Server(ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, request, client_address):
        """A client that was killed is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    double: Double

    def do_POST(self):
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(raw)
        double = self.double
        digest = double.take(body)
        prompt = body["messages"][-1]["content"]
        if double.script.seconds:
            time.sleep(double.script.seconds * (0.5 + random.random()))
        fault = (double.fault(prompt) or "").removesuffix(":always")
        status, headers, payload = 200, {}, None
        if fault in _ERRORS:
            status, payload, headers = _ERRORS[fault]
        if fault == "stall":
            time.sleep(3)
        if payload is None:
            text, finish = double.says(prompt)
            model = "another-model" if fault == "other-model" else double.script.served or body["model"]
            message = {"role": "assistant", "content": text}
            if finish == "content_filter":
                message = {"role": "assistant", "content": None, "refusal": text}
            payload = {
                "id": "x",
                "object": "chat.completion",
                "created": 1,
                "model": model,
                "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                "usage": {"prompt_tokens": len(raw) // 4, "completion_tokens": len(text) // 4 + 1, "total_tokens": 9},
            }
            if not double.script.usage:
                del payload["usage"]
            if fault == "no-choice":
                payload["choices"] = []
        data = b"<html>busy</html>" if fault == "html" else json.dumps(payload).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")  # it does close: an idle connection must not be used again
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        if fault == "cut":
            self.wfile.write(data[: len(data) // 2])
            self.wfile.flush()
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        self.wfile.write(data)
        if status == 200 and fault in ("", "other-model", "stall"):
            double.note("answer", digest)

    def log_message(self, *_):
        return


def digest_of(body: dict) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]


def _error(message: str, code: str) -> dict:
    return {"error": {"message": message, "type": code, "code": code}}


_ERRORS = {
    "401": (401, _error("Incorrect API key provided: sk-abcdefghijklmnopqrstuv", "invalid_api_key"), {}),
    "404": (404, _error("The model does not exist", "model_not_found"), {}),
    "400": (400, _error("temperature is not supported", "unsupported_value"), {}),
    "long": (400, _error("This model's maximum context length is 10 tokens", "context_length_exceeded"), {}),
    "429": (429, _error("Rate limit reached", "rate_limit_exceeded"), {"Retry-After": "0"}),
    "quota": (429, _error("You exceeded your current quota", "insufficient_quota"), {}),
    "500": (500, _error("The server had an error", "server_error"), {}),
}


def main() -> None:
    told = json.loads(Path(sys.argv[1]).read_text())
    script = Script(told["reader"], told["judge"], seconds=float(sys.argv[3]) if len(sys.argv) > 3 else 0.0)
    with Double(script, Path(sys.argv[2]), int(sys.argv[4]) if len(sys.argv) > 4 else 0) as double:
        sys.stdout.write(double.url + "\n")
        sys.stdout.flush()
        threading.Event().wait()


if __name__ == "__main__":
    main()
