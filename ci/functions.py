"""The text of docs/functions.md: every function of bc.functional with signature, formula, elements, bound and gradient."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

HEAD = """# Functions

Written by `ci/generate.py`: all {count} functions of `baracuda.functional`, by family. Arrays in, arrays of the same kind out;
`help(baracuda.functional.softmax)` says more of each. Elements and bounds are those of the CPU's kernels (`exact`, `n ulp`, `sum(n)`:
[guarantees](guarantees.md); of other devices: [SKU tables](skus.md)); a function without kernels of its own has those of its
steps, whose bounds add up. `bc.vjp(F.name, ...)` gives every gradient; where one has a function of its own, that is named.
NumPy's `axis`, `keepdims`, `x`, `x1`, `x2` are taken for `dim`, `keepdim`, `input`, `other`.

"""


def signature_of(name: str, fn: Any) -> str:
    parts = [p.replace(annotation=p.empty) for p in inspect.signature(fn).parameters.values()]
    shown = [
        p.replace(default=_Shown(p.default)) if callable(p.default) and p.default is not p.empty else p for p in parts
    ]
    return f"{name}{inspect.Signature(shown)}"


class _Shown:
    """A default that is a function or a class, by its name."""

    def __init__(self, value: Any) -> None:
        self.name = getattr(value, "__name__", type(value).__name__)

    def __repr__(self) -> str:
        return str(self.name)


def escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def gradient_of(name: str, fn: Any, functions: dict[str, Any], declared: dict[str, Any]) -> str:
    from baracuda.call.op import NotDifferentiable

    own = functions.get(f"{name}_backward")
    if own is not None:
        return f"`{escaped(signature_of(f'{name}_backward', own))}`"
    if getattr(fn, "vjp_rule", None) is not None:
        return "`bc.vjp`"
    op = declared.get(name)
    if op is not None and isinstance(op.backward, NotDifferentiable):
        return f"none: {escaped(op.backward.why.rstrip('.'))}"
    return "none"


def kernels_of(name: str, cell: Callable[[list[dict[str, Any]]], str]) -> str:
    """Elements and bounds on the cpu, or the steps that have them."""
    from baracuda.choose.question import steps_of
    from baracuda.choose.sku import rows

    asked = steps_of(name)
    own = [s for s in asked if s == (name, "forward") or len(asked) == 1]
    found = [r for r in rows() if r["backend"] == "cpu" and (r["op"], r["direction"]) in own]
    if found:
        said = "" if own[0][0] == name else f"of `{own[0][0]}`: "
        return said + cell(found)
    return "made of " + ", ".join(f"`{op}_backward`" if way == "backward" else f"`{op}`" for op, way in asked)


def functions_text(modules: list[ModuleType], is_functional: Callable[..., bool], cell: Callable[..., str]) -> str:
    functions = {n: v for m in modules for n, v in vars(m).items() if not n.startswith("_") and is_functional(v, m)}
    family = {
        n: m.__name__.split(".")[-2]
        for m in modules
        for n, v in vars(m).items()
        if n in functions and is_functional(v, m)
    }
    declared = {op.name: op for m in modules for op in getattr(m, "OPS", ())}
    lines = [HEAD.format(count=len(functions))]
    for room in sorted(set(family.values())):
        lines += [
            f"## {room}",
            "",
            "| function | what it gives | elements and bounds on the cpu | gradient |",
            "|---|---|---|---|",
        ]
        for name in sorted(n for n in functions if family[n] == room):
            if name.endswith("_backward") and name.removesuffix("_backward") in functions:
                continue  # stands beside its function
            fn = functions[name]
            text = getattr(fn, "_summary", None) or fn.__doc__ or ""
            said = escaped(inspect.cleandoc(text).partition("\n\n")[0])
            cells = (f"`{escaped(signature_of(name, fn))}`", said, kernels_of(name, cell))
            lines.append(f"| {' | '.join(cells)} | {gradient_of(name, fn, functions, declared)} |")
        lines.append("")
    return "\n".join(lines)


OPERATORS_HEAD = """# Operators of ONNX and aten

Written by `ci/generate.py` from `python/baracuda/choose/operators.py`. A partitioner may ask by these names:
`bc.capabilities("LayerNormalization", element="bf16")`, `bc.capabilities("aten::native_layer_norm")`, and
`python -m baracuda capabilities Conv`. What an operator's attributes become is in `python/baracuda/onnx/operators`, and how many of
ONNX's own tests pass in [conformance](conformance.md). Operators of aten have the names of their functions, with or without
overload (`aten.add.Tensor`), but for those of the last table.

| ONNX | here |
|---|---|
"""


def operators_text() -> str:
    from baracuda.choose.operators import ATEN, ONNX, ONNX_ABSENT

    lines = [f"| {name} | `{ours}` |" for name, ours in sorted(ONNX.items())]
    lines += ["", "Operators of ONNX that are no op here:", "", "| because they are | operators |", "|---|---|"]
    lines += [f"| {why} | {', '.join(names)} |" for why, names in ONNX_ABSENT.items()]
    lines += ["", "| aten | here |", "|---|---|"]
    lines += [f"| `{name}` | `{ours}` |" for name, ours in sorted(ATEN.items())]
    return OPERATORS_HEAD + "\n".join(lines) + "\n"
