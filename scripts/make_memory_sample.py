# ruff: noqa: INP001, S311
"""Make notebooks/sample/memory: a made-up data set, read by a stub that is no model.

    python scripts/make_memory_sample.py

Ten dialogues in LoCoMo's form are made from templates, a probe and two studies are run on them by
`akm-harbor memory`, and a little server on loopback plays reader and judge: given the evidence it is
right with a chance that depends on the type of question, without it it guesses. So the sample shows
what the notebook looks like, and nothing about any memory layer or model.
"""

import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml

OUT = Path(__file__).resolve().parents[1] / "notebooks" / "sample" / "memory"
NAMES = [
    "Ada",
    "Bruno",
    "Carla",
    "Dario",
    "Edda",
    "Falk",
    "Greta",
    "Hugo",
    "Ilse",
    "Jonas",
    "Klara",
    "Levin",
    "Mona",
    "Nils",
    "Olga",
    "Pavel",
    "Rosa",
    "Sven",
    "Tilda",
    "Udo",
]
PLACES = [
    "Aalborg",
    "Bruges",
    "Cadiz",
    "Delft",
    "Essen",
    "Faro",
    "Ghent",
    "Hull",
    "Imola",
    "Jena",
    "Kiel",
    "Lugo",
    "Malmo",
    "Nancy",
    "Oulu",
    "Porto",
    "Riga",
    "Sibiu",
    "Turku",
    "Ulm",
]
THINGS = [
    "oboe",
    "kayak",
    "loom",
    "anvil",
    "telescope",
    "accordion",
    "beehive",
    "kiln",
    "sextant",
    "harp",
    "unicycle",
    "lathe",
    "banjo",
    "easel",
    "tandem",
]
CREATURES = ["hedgehog", "parrot", "tortoise", "spaniel", "canary", "goat", "ferret", "goldfish", "donkey", "heron"]
TALK = [
    "The tram was late again this morning.", "I slept badly, the neighbours are building something.",
    "Shall we try the soup place on Friday?", "My umbrella did not survive the wind.",
    "The library has new opening hours.", "I finally cleaned the cellar.", "Did you hear the thunder last night?",
    "I am thinking about painting the fence.", "The bakery on the corner has closed.", "Remind me to water the plants.",
]  # fmt: skip
CHANCE = {"1": 0.55, "2": 0.70, "3": 0.45, "4": 0.90, "5": 0.75}
"""How often the stub is right when the evidence is in its context, by category."""
GUESS = 0.06
ABSTAINS = "No information available"
QUESTION = re.compile(r"\nQuestion: (.*)\nAnswer:$", re.DOTALL)
JUDGED = re.compile(
    r"\n\nQuestion: (.*?)\n\n[^\n]*?: (.*?)\n\nAnswer to be judged: (.*?)\n\nReply with one word", re.DOTALL
)


def dialogue(number, dice):
    """One conversation with twelve questions."""
    a, b = dice.sample(NAMES, 2)
    sessions, questions = [], []
    months = ["January", "March", "April", "June", "July", "September"]
    facts = {}
    for place, month in enumerate(months, start=1):
        day = dice.randint(2, 27)
        turns = [{"speaker": (a, b)[n % 2], "dia_id": f"D{place}:{n}", "text": dice.choice(TALK)} for n in range(1, 9)]
        sessions.append((f"10:{dice.randint(10, 59)} am on {day} {month}, 2024", turns))
        facts[place] = (day, month)

    def tell(place, turn, text):
        sessions[place - 1][1][turn - 1]["text"] = text
        return f"D{place}:{turn}"

    def ask(text, category, answer, evidence):
        entry = {"question": text, "category": category, "evidence": evidence}
        entry["adversarial_answer" if category == 5 else "answer"] = answer
        questions.append(entry)

    town, tool, pet, second = dice.choice(PLACES), dice.choice(THINGS), dice.choice(CREATURES), dice.choice(THINGS)
    e = tell(1, 3, f"I bought an old {tool} in {town}, it cost {dice.randint(20, 90)} euros.")
    ask(f"What old thing did {b} buy on a trip?", 4, tool, [e])
    ask(f"In which town did {b} find the old {tool}?", 4, town, [e])
    pet_name = dice.choice(NAMES) + "chen"
    e = tell(2, 4, f"We have a {pet} at home now, called {pet_name}.")
    ask(f"What is the {pet} of {a} called?", 4, pet_name, [e])
    job = dice.choice(["ferry office", "tile factory", "night clinic", "map archive", "seed bank"])
    e2 = tell(3, 5, f"I start at the {job} next month, after all these years.")
    ask(f"Where does {b} work after the change?", 4, f"the {job}", [e2])
    move = dice.choice(PLACES)
    e3 = tell(4, 6, f"My sister moved to {move} last week.")
    ask(f"Where does the sister of {a} live?", 4, move, [e3])
    e4 = tell(5, 2, f"Now I play the {second} as well, every evening.")
    ask(f"Which things does {a} play or own: the pet and the instrument?", 1, f"{pet}, {second}", [e, e4])
    ask(f"Which two towns came up in talks about {b} and about the sister?", 1, f"{town}, {move}", ["D1:3", e3])
    day, month = facts[3]
    ask(f"When did {b} talk about the new work?", 2, f"{day} {month} 2024", [e2])
    day, month = facts[6]
    e5 = tell(6, 1, "I passed the swimming exam today, wet and proud.")
    ask(f"When did {b} pass the swimming exam?", 2, f"{day} {month} 2024", [e5])
    ask(f"Would {a} rather look after an animal or a garden?", 3, f"an animal; there is a {pet} at home", [e])
    ask(f"What does {b} fear most?", 5, "heights", [e2])
    ask(f"Which boat does {a} own?", 5, "a dinghy", [e4])
    conversation = {"speaker_a": a, "speaker_b": b}
    for place, (date, turns) in enumerate(sessions, start=1):
        conversation[f"session_{place}_date_time"] = date
        conversation[f"session_{place}"] = turns
    return {"sample_id": f"made-up-{number}", "conversation": conversation, "qa": questions}


class Stub:
    """What the server knows of the questions."""

    def __init__(self, data):
        self.known = {}
        self.asked = Counter()
        for record in data:
            sessions = [part for part in record["conversation"].values() if isinstance(part, list)]
            texts = {turn["dia_id"]: turn["text"] for session in sessions for turn in session}
            for qa in record["qa"]:
                gold = ABSTAINS if qa["category"] == 5 else str(qa["answer"]).split(";")[0]
                key = (record["sample_id"], qa["question"])
                self.known.setdefault(qa["question"], []).append(
                    (key, str(qa["category"]), gold, [texts[i] for i in qa["evidence"]])
                )

    def say(self, prompt):
        """What reader or judge answer; another time another answer."""
        self.asked[prompt] += 1
        seed = hashlib.sha256(f"{self.asked[prompt]}/{prompt}".encode()).digest()
        dice = random.Random(seed)
        judged = JUDGED.search(prompt)
        if judged:
            gold, answer = (" ".join(part.lower().split()) for part in judged.groups()[1:])
            right = gold in answer or answer in gold or ("no information" in answer and "no" in gold)
            return "yes" if right != (dice.random() < 0.03) else "no"
        asked = QUESTION.search(prompt)
        known = self.known.get(asked[1] if asked else "", [])
        for _, category, gold, evidence in known:
            if all(text in prompt for text in evidence) or category == "5":
                return gold if dice.random() < CHANCE[category] else "something they once talked about"
        if known and dice.random() < GUESS:
            return known[0][2]
        return ABSTAINS


def serve(stub):
    """Start the server; returns it with its port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prompt = body["messages"][-1]["content"]
            text = stub.say(prompt)
            usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(text) // 4 + 1}
            reply = {
                "id": "stub", "object": "chat.completion", "created": 0, "model": body["model"],
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
                "usage": {**usage, "total_tokens": sum(usage.values())},
            }  # fmt: skip
            data = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main():
    """Make everything anew."""
    dice = random.Random(20)
    data = [dialogue(number, dice) for number in range(1, 11)]
    server = serve(Stub(data))
    url = f"http://127.0.0.1:{server.server_port}/v1"
    model = {"api_base": url, "api_key_env": "STUB_KEY"}
    reader = {**model, "model": "openai/stub-reader", "repeats": 2, "price": {"input": 0.15, "output": 0.60}}
    judge = {**model, "model": "openai/stub-judge", "repeats": 2, "probe": 20, "price": {"input": 0.15, "output": 0.60}}
    common = {
        "version": 1, "granularity": "turn", "topk": 5, "reader": reader, "spending": {"max_usd": 5.0},
        "arms": ["none", "oracle", "full", "bm25", "grep", "bow"],
    }  # fmt: skip
    command = [str(Path(sys.executable).parent / "akm-harbor"), "memory"]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "made-up.json").write_text(json.dumps(data))
        env = {**os.environ, "AKM_HARBOR_CACHE": str(work / "cache"), "STUB_KEY": "none"}
        arms = [part for arm in common["arms"] for part in ("-b", arm)]
        probe = ["probe", "--data", "made-up.json", *arms, "-g", "turn", "-o", "probe"]
        subprocess.run([*command, *probe], cwd=work, env=env, check=True)
        studies = {
            "f1": {
                "name": "made-up questions, stub reader", "scorer": {"name": "locomo-f1"}, "budgets": ["as-is", 400],
            },
            "judged": {
                "name": "the same, judged by a stub", "scorer": {"name": "akm-harbor-judge"}, "judge": judge,
                "arms": ["none", "oracle", "bm25", "grep"],
            },
        }  # fmt: skip
        for name, own in studies.items():
            (work / f"{name}.yaml").write_text(yaml.safe_dump({**common, "data": "made-up.json", **own}))
            run = ["run", "-c", f"{name}.yaml", "-o", name, "--waive", "oracle-ceiling", "--waive", "retrieval-gate"]
            subprocess.run([*command, *run], cwd=work, env=env, check=True)
        for name in ("probe", *studies):
            shutil.rmtree(OUT / name, ignore_errors=True)
            shutil.copytree(work / name, OUT / name)
    server.shutdown()


if __name__ == "__main__":
    main()
