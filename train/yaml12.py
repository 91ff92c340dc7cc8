"""YAML with the scalars of YAML 1.2: `1e-5` is a number, `010` and `on` are text. A repeated key is an error."""

from __future__ import annotations

import re
from typing import Any

import yaml

from databuild.errors import UsageError


class Loader(yaml.SafeLoader):
    """Gives null, bool, int, float, text, lists and mappings with text keys; nothing else."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """A mapping; a key that is there twice, or that is no text, is an error."""
        seen: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is not text", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is there twice", key_node.start_mark)
            seen[key] = self.construct_object(value_node, deep=True)
        return seen

    def construct_number(self, node: Any) -> float:
        """A float."""
        return float(self.construct_scalar(node))

    def construct_whole(self, node: Any) -> int:
        """An int."""
        return int(self.construct_scalar(node))


Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"^(?:null|~|)$", ["n", "~", ""]),
    ("bool", r"^(?:true|false)$", list("tf")),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$", list("-+0123456789")),
    ("float", r"^[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?$", list("-+0123456789")),
):
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)
Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_whole)
Loader.add_constructor("tag:yaml.org,2002:float", Loader.construct_number)
Loader.add_constructor("tag:yaml.org,2002:map", Loader.construct_mapping)


def parse_yaml(text: str, where: str, what: str) -> Any:
    """The value of a YAML text. UsageError with the line, said of `what` (a noun with its article), if it is not readable."""
    return parse_yaml_scalars(text, where, what)[0]


def parse_yaml_scalars(text: str, where: str, what: str) -> tuple[Any, dict[str, str]]:
    """The value of a YAML text, and the text of each scalar as it is written, by its path: `a.b[0]`.

    What a number looks like says how far it was rounded; the number alone does not (2.50 and 2.5).
    """
    loader = Loader(text)
    try:
        node: Any = loader.get_single_node()
        if node is None:
            return None, {}
        scalars: dict[str, str] = {}
        _collect(node, "", scalars, set())
        return loader.construct_document(node), scalars
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{where}, line {mark.line + 1}" if mark is not None else where
        problem = getattr(error, "problem", None) or (str(error) or type(error).__name__).splitlines()[0]
        raise UsageError(f"{what} is not readable YAML", where=place, found=problem) from error
    finally:
        loader.dispose()


def _collect(node: Any, path: str, scalars: dict[str, str], seen: set[int]) -> None:
    if not isinstance(node, yaml.ScalarNode):
        # An alias brings the same node again: a few lines could stand for billions of values, or for themselves.
        if id(node) in seen:
            raise yaml.constructor.ConstructorError(None, None, "an alias of a list or mapping", node.start_mark)
        seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            _collect(value, f"{path}.{key.value}" if path else str(key.value), scalars, seen)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            _collect(value, f"{path}[{index}]", scalars, seen)
    else:
        scalars[path] = node.value
