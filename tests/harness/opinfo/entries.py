"""Which entries of torch's table there are, what they are called here, and their samples.

The table is an internal of torch (`torch.testing._internal`), which needs `expecttest` and may change with each version.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch.utils._pytree import tree_map

import baracuda as bc
import baracuda.functional as F
from baracuda.prove.facts import collected

VERSION = "2.13.0"  # of torch, whose entries these are
# Why some samples of an entry differ or are refused: the families' facts, and of bc.Tensor's methods.
PARTLY: dict[str, str] = collected("partly") | {
    "transpose": "bc.Tensor.transpose is NumPy's: it takes all dimensions",
}
Given = tuple[tuple[Any, ...], dict[str, Any]]
ELEMENTS = (torch.float32, torch.int64)  # samples are of these, or of the first that an entry has
OTHERS = (torch.bool, torch.bfloat16, torch.float64, torch.complex64)

# Whose numbers torch does not determine: only shapes and elements are compared.
RANDOM = frozenset(
    (
        "bernoulli",
        "multinomial",
        "normal",
        "uniform",
        "nn.functional.dropout",
        "nn.functional.fractional_max_pool2d",
        "nn.functional.fractional_max_pool3d",
        "randint",
        "randint_like",
        "randn",
        "randn_like",
        "rand_like",
        "empty",
        "empty_like",
        "new_empty",
        "new_empty_strided",
        "empty_strided",
        "empty_permuted",
        "cauchy",
        "exponential",
        "geometric",
        "log_normal",
    )
)

# Options of torch's storage, which arrays here have not: left out where they say what is so anyway.
NEUTRAL: dict[str, Any] = {"layout": torch.strided, "requires_grad": False, "pin_memory": False}
# Entries that test what has another name here.
NAMED = {"sum_to_size": "sum_to", "uniform": "uniform_", "normal.in_place": "normal_"} | {
    n: f"{n}_" for n in ("cauchy", "exponential", "geometric", "log_normal")
}
# What is no function here, because arrays have it, as methods, operators and properties of bc.Tensor.
OPERATORS = ["radd", "rdiv", "rmul", "rand", "ror", "rxor", "rmatmul", "rmod", "rpow", "rsub", "getitem"]
METHODS = frozenset(("reshape", "permute", "squeeze", "unsqueeze", "expand", "broadcast_to", "transpose", "item"))
PROPERTIES = frozenset(("T", "mT"))
# Samples that torch's table gives in another order than the function's.
ARRANGED: dict[str, Callable[..., Any]] = {
    "einsum": lambda fn: lambda operands, equation: fn(equation, *operands),
    "sum_to_size": lambda fn: lambda input, *size: fn(input, size[0] if len(size) == 1 else size),
    "where": lambda fn: lambda input, condition, other: fn(condition, input, other),
    # A module of torch's is no function here.
    "nn.functional.triplet_margin_with_distance_loss": lambda fn: (
        lambda *points, distance_function, **more: fn(*points, distance_function=F.pairwise_distance, **more)
    ),
    "nn.functional.embedding": lambda fn: lambda weight, input, **more: fn(input, weight, **more),
    "nn.functional.embedding_bag": lambda fn: lambda weight, input, **more: fn(input, weight, **more),
}


def _method(name: str) -> Callable[..., Any]:
    """What bc.Tensor has, for torch's tensors."""
    called = name.replace("__rdiv__", "__rtruediv__")

    def ours(x: Any) -> Any:
        return bc.from_dlpack(x) if isinstance(x, torch.Tensor) else x

    def call(input: Any, *args: Any, **options: Any) -> Any:
        found = getattr(ours(input), called)
        made = found if name in PROPERTIES else found(*tree_map(ours, args), **options)
        assert made is not NotImplemented, "no operator for this"
        return torch.from_numpy(made.numpy().copy()) if isinstance(made, bc.Tensor) else made

    return call


@cache
def table() -> tuple[Any, ...]:
    """Torch's entries."""
    from torch.testing._internal.common_methods_invocations import op_db

    return tuple(op_db)


def title(entry: Any) -> str:
    """What distinguishes an entry: its name, and the variant of a test."""
    return f"{entry.name}.{entry.variant_test_name}" if entry.variant_test_name else str(entry.name)


def function(entry: Any) -> Callable[..., Any] | None:
    """The function of the same name here, in the submodule of the same name; None if there is none."""
    *rooms, name = NAMED.get(title(entry), entry.name).split(".")
    if rooms == ["nn", "functional"]:
        rooms = []
    where: Any = F
    for room in rooms:
        where = getattr(where, room, None)
    found = getattr(where, name, None) if where is not None and name in dir(where) else None
    if found is None and not rooms and name in METHODS | PROPERTIES | {f"__{n}__" for n in OPERATORS}:
        return _method(name)
    arranged = ARRANGED.get(entry.name)
    return arranged(found) if arranged and found is not None else found


def elements(entry: Any) -> list[torch.dtype]:
    """Those of which samples are taken."""
    has = entry.dtypes
    return [e for e in ELEMENTS if e in has] or [e for e in OTHERS if e in has][:1]


def samples(entry: Any, element: torch.dtype) -> list[Given]:
    """Torch's samples, always the same ones, as positional arguments and keywords."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = list(entry.sample_inputs("cpu", element, requires_grad=False))
    neutral = NEUTRAL.items()
    return [((x.input, *x.args), dict(i for i in x.kwargs.items() if i not in neutral)) for x in made]


@cache
def whole() -> tuple[str, ...]:
    """The entries with a function here all samples of which have to agree."""
    return tuple(title(e) for e in table() if title(e) not in PARTLY and function(e) is not None)
