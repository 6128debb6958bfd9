"""Chat templates: Jinja's texts, in the sandbox that keeps a file from running anything."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from importlib import import_module
from typing import Any

from baracuda.describe.errors import InvalidProblemError
from baracuda.llm.tokenizer.libraries import needed


def _refuse(message: str) -> None:
    raise InvalidProblemError(f"messages: the model's chat template refuses them: {message}")


@lru_cache(maxsize=16)
def _compiled(source: str) -> Any:
    sandbox = import_module("jinja2.sandbox").ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    sandbox.filters["tojson"] = lambda value, indent=None, **_: json.dumps(value, ensure_ascii=False, indent=indent)
    sandbox.globals |= {"raise_exception": _refuse, "strftime_now": lambda form: datetime.now().strftime(form)}
    return sandbox.from_string(source)


def rendered(source: str, messages: Sequence[Mapping[str, Any]], **names: Any) -> str:
    """The text of a conversation.

    Args:
        source: The template.
        messages: Each with "role" and "content".
        **names: What the template may ask for besides.

    Raises:
        InvalidProblemError: The template is none, or refuses the messages.
        UnsupportedError: Jinja2 is not installed.
    """
    needed("jinja2")
    error: type[Exception] = import_module("jinja2").TemplateError
    for message in messages:
        if not isinstance(message, Mapping) or not {"role", "content"} <= set(message):
            raise InvalidProblemError(f"messages: got {message!r}, want dicts with 'role' and 'content'.")
    try:
        # As transformers calls them: templates ask whether these are none.
        text: str = _compiled(source).render(messages=list(messages), **({"tools": None, "documents": None} | names))
    except InvalidProblemError:
        raise
    except (error, TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError) as wrong:
        raise InvalidProblemError(f"messages: the model's chat template does not take them: {wrong}") from wrong
    return text
