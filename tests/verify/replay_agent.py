"""A stand-in for an agent: leaves the logs of a recorded trial, and the right answer."""

import shutil
from pathlib import Path

from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext


class ReplayAgent(BaseAgent):
    """Does what a recorded trial did, as far as a verifier can see."""

    def __init__(self, *args: object, recording: str, solution: str, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._recording = Path(recording)
        self._solution = Path(solution)

    @staticmethod
    def name() -> str:
        return "replay"

    def version(self) -> str:
        return "1"

    async def setup(self, environment: BaseEnvironment) -> None:
        await environment.upload_dir(self._solution, "/solution")

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        shutil.copytree(
            self._recording, self.logs_dir, dirs_exist_ok=True, ignore=shutil.ignore_patterns("compliance.json")
        )
        done = await environment.exec("cd /app && sh /solution/solve.sh")
        assert done.return_code == 0, done.stderr
