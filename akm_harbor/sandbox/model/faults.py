"""Which declared fault strikes a request. What a fault does to the wire is in `server`."""

from akm_harbor.sandbox.model.conversation import Conversation
from akm_harbor.sandbox.model.policy import Fault, Policy, names_match
from akm_harbor.sandbox.model.wire import ChatRequest


def due_fault(policy: Policy, conversation: Conversation, request: ChatRequest) -> tuple[int, Fault] | None:
    """The first fault that strikes this request, with its place in the policy.

    It is not counted yet: the caller does that once the fault has really been done
    (a malformed call needs a turn that calls something).
    """
    base = request.answers if conversation.base is None else conversation.base
    for index, fault in enumerate(policy.faults):
        if (
            fault.request in {"any", request.kind}
            and names_match(fault.task, conversation.task)
            and names_match(fault.arm, conversation.arm)
            and (not fault.attempts or conversation.attempt in fault.attempts)
            and (fault.turn is None or fault.turn == request.answers - base)
            and (fault.times is None or conversation.faults[index] < fault.times)
        ):
            return index, fault
    return None
