"""The part with a model in it: a reader answers from each arm's context, a scorer says what that is worth.

`spec` reads study.yaml; `prompt` holds the one answer prompt; `calls` names a model call by its
content; `keeper` runs `caller` in a process of its own, so that what was sent is also received;
`journal` keeps every answer that was paid for; `scoring` turns answers into scores; `run` does a
whole study and `verification` derives a finished one again.
"""
