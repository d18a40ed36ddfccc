"""A scripted model: an OpenAI-compatible server that plays a declared policy per task and arm.

`policy` is what is declared, `policy_file` reads and checks it, `conversation` decides
the next answer, `wire` speaks the protocol, `faults` breaks it on purpose, `server` puts
it on a port and `request_log` keeps one line per request.
"""

from akm_harbor.sandbox.model.policy import Policy
from akm_harbor.sandbox.model.policy_file import load_policy
from akm_harbor.sandbox.model.server import ScriptedModel

__all__ = ["Policy", "ScriptedModel", "load_policy"]
