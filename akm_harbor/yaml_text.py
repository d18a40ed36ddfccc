"""YAML from a stranger: read by the safe loader, with every way it can fail told as one kind of error."""

from typing import Any

import yaml

from akm_harbor.surrogates import HALF

_MOST_NODES = 200_000


def compose(text: str) -> tuple[yaml.Node | None, Any]:
    """The node tree of one YAML document (it knows the lines) and the plain data.

    Raises:
        yaml.YAMLError: no YAML, a value that does not exist (30 February), or aliases that
            contain themselves or multiply without end.
    """
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None:
            return None, None
        _count(root)
        return root, loader.construct_document(root)
    except (ValueError, RecursionError) as error:
        raise yaml.YAMLError(str(error)) from None


def _count(root: yaml.Node) -> None:
    """Refuse a document that is endless once its aliases are followed, as every reader of it does."""
    left, waiting = _MOST_NODES, [root]
    while waiting:
        node = waiting.pop()
        left -= 1
        if left < 0:
            raise yaml.YAMLError(f"it has more than {_MOST_NODES:,} values, its aliases followed")
        if isinstance(node, yaml.ScalarNode) and HALF.search(node.value):
            raise yaml.MarkedYAMLError(problem="half of a surrogate pair is no character", problem_mark=node.start_mark)
        if isinstance(node, yaml.MappingNode):
            waiting.extend(part for pair in node.value for part in pair)
        elif isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)


def doubled(root: yaml.Node | None) -> tuple[str, int] | None:
    """The first key that its mapping has twice, with the second one's line: YAML keeps only that one."""
    waiting = [] if root is None else [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                    if key.value in seen:
                        return key.value, key.start_mark.line + 1
                    seen.add(key.value)
                waiting.append(value)
        elif isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)
    return None
