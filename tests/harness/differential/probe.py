"""What ran behind a call of bc.functional: its plans, and how large their references say that the terms are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from math import prod
from typing import Any
from unittest.mock import patch

import numpy as np

from baracuda import _core, _index
from baracuda.call import op
from baracuda.call.program import Program
from baracuda.choose.plan import plan as select_plan
from baracuda.describe.dims import largest
from baracuda.describe.elements import Element
from baracuda.describe.spec import IN
from baracuda.prove.reference import Case, Expected, epsilon, reference_module, to_reference, ulp
from differential.values import to_numpy

Array = np.ndarray[Any, Any]


# Inputs of gradients that the forward pass computed, and how far off their stored values may be.
SAVED = ("y", "result", "out", "lse", "rstd", "mean", "std", "norm")
SAVED_ULP = 8.0


@dataclass
class Ran:
    """One plan, and where its arguments came from if a recipe says so."""

    plan: Any
    recipe: Any = None
    values: tuple[Any, ...] = ()

    def slack(self, stored: Element, which: int) -> Array:
        """How far a result may be from one of exact saved values: what rounding these changes in the reference.

        A gradient is given results of the forward pass as they were stored. Torch's float64 has them exactly; here they
        are off by a few units in the last place, one way or the other.
        """
        here = self.expected()
        if here is None:
            return np.zeros(())
        base = np.asarray(here[which].value, np.float64)
        total = np.zeros(np.shape(here[which].magnitude))
        for sign in (1, -1):
            moved = self.expected(sign * SAVED_ULP)
            assert moved is not None
            with np.errstate(all="ignore"):
                change = np.abs(np.asarray(moved[which].value, np.float64) - base)
            total = np.maximum(total, np.nan_to_num(change, nan=0.0, posinf=np.inf).reshape(total.shape))
        if not any(self._saved(n) for n in self._names()):
            return np.zeros_like(total)
        with np.errstate(all="ignore"):
            return np.asarray(total + SAVED_ULP * epsilon(stored) * np.nan_to_num(here[which].magnitude, posinf=0.0))

    def _names(self) -> list[str]:
        return [p.name for p in self.plan.signature.present if p.role == IN]

    def _saved(self, name: str) -> bool:
        """Whether an input of a gradient is what the forward pass computed: it is named as its output or statistics."""
        return self.plan.descriptor.direction == "backward" and name in SAVED

    def expected(self, moved: float = 0.0) -> list[Expected] | None:
        """What the reference says about the results that the recipe returns, in their shapes; None where it cannot.

        Args:
            moved: By how many units in the last place saved values are changed before.
        """
        if self.recipe is None or any(p.role != IN and p.name not in self._made() for p in self.plan.signature.present):
            return None
        tensors: dict[str, Any] = {}
        scalars: dict[str, Any] = {}
        present = {p.name: p for p in self.plan.signature.present}
        for name, (where, index, constant, dims, fit) in zip(self.plan.arguments, self.recipe.sources, strict=True):
            value = self.values[index] if where == 0 else constant
            if name not in present:
                if where != 2:
                    scalars[name] = float(value) if isinstance(value, float) else value
            elif present[name].role == IN:
                tensors[name] = (
                    [_seen(v, None, None) for v in value] if present[name].variadic else _seen(value, dims, fit)
                )
        for name in [n for n in tensors if moved and self._saved(n)]:
            tensors[name] = tensors[name] + moved * ulp(tensors[name], present[name].element)
        case = Case(self.plan.descriptor, tensors, {k: _number(v) for k, v in scalars.items()})
        try:
            with np.errstate(all="ignore"):
                found = reference_module(self.plan.descriptor.op).reference(case)
        except OverflowError:  # a number that only the kernel wraps
            return None
        names = {place: name for name, place in self._made().items()}
        return [self._shaped(found[names[i]], i) for i in self.recipe.returns]

    def _made(self) -> dict[str, int]:
        return {n: s[1] for n, s in zip(self.plan.arguments, self.recipe.sources, strict=True) if s[0] == 2}

    def _shaped(self, found: Expected, place: int) -> Expected:
        """What the reference says, in the shape of the result, which the plan sees through a view."""
        value = np.asarray(found.value)
        size = np.abs(to_reference(value)) if found.magnitude is None else found.magnitude
        shape = tuple(self.recipe.allocations[place][1][0])
        dims = next(s[3] for s in self.recipe.sources if s[0] == 2 and s[1] == place)

        def seen(numbers: Any) -> Any:
            if numbers is None:
                return None
            numbers = np.broadcast_to(numbers, value.shape)
            if numbers.size != prod(shape):
                return numbers
            if dims is not None:
                kept = [d for d in dims if d >= 0]
                numbers = numbers.reshape([n for n, d in zip(numbers.shape, dims, strict=True) if d >= 0])
                numbers = numbers.transpose(np.argsort(kept)) if kept else numbers
            return numbers.reshape(shape)

        return Expected(seen(value), seen(size), found.terms, seen(found.reach), seen(found.lost))


def _number(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return np.asarray(to_numpy(value)).astype(np.float64).item() if hasattr(value, "dtype") else value


def _seen(value: Any, dims: Any, fit: Any) -> Array:
    """An argument as the plan sees it."""
    array = to_reference(to_numpy(value))
    if dims is not None:
        kept = [d for d in dims if d >= 0]
        dropped = [d for d in range(array.ndim) if d not in kept]
        array = array[tuple(0 if d in dropped else slice(None) for d in range(array.ndim))]
        order = np.argsort(np.argsort(kept)) if kept else []
        array = array.transpose(np.argsort(order)) if len(order) else array
        array = array[tuple(None if d < 0 else slice(None) for d in dims)]
    if fit is not None:
        array = array[tuple(slice(0, m) if n != 1 else slice(None) for n, m in zip(array.shape, fit, strict=True))]
        array = np.broadcast_to(array, fit)
    return np.ascontiguousarray(array) if array.ndim else np.asarray(array)


@dataclass
class Record:
    """The plans of one call, in their order."""

    ran: list[Ran] = field(default_factory=list)
    scale: float = 1.0  # of terms, where no reference says it
    hostile: bool = False  # of what is computed from it only single plans are judged

    def error_factor(self) -> float:
        """c * sqrt(K) of all plans together: for results of several plans, which are held to a coarse bound."""
        total = 0.0
        for r in self.ran:
            guarantee = r.plan.precision_guarantee
            sizes = [prod(map(largest, s)) for p in r.plan.signature.present for s in p.shapes] or [1]
            terms = max(sizes) if guarantee.bound == "sum" else 1
            total += (guarantee.c if guarantee.bound != "exact" else 1.0) * float(np.sqrt(max(terms, 1)))
        return max(total, 1.0)


@cache
def _remembering() -> tuple[Any, ...]:
    """All functions that remember calls."""
    modules = map(import_module, sorted(set(_index.FUNCTIONS.values())))
    found = {id(v): v for module in modules for v in vars(module).values() if isinstance(v, _core.Function)}
    return tuple(found.values())


@cache
def _plans() -> tuple[Any, ...]:
    """What keeps plans of factories and random numbers."""
    modules = map(import_module, sorted(set(_index.FUNCTIONS.values())))
    return tuple(m._plan for m in modules if hasattr(getattr(m, "_plan", None), "cache_clear"))


def forget() -> None:
    """Makes every function plan its next call."""
    for f in _remembering():
        f._forget()
    for kept in _plans():
        kept.cache_clear()


def steps_of(program: Program) -> list[Any]:
    """The plan of each step."""
    return [program.plans[step["plan"]] for step in json.loads(program.to_bytes())["steps"]]


def plans_of(recipe: tuple[Any, ...] | None) -> list[Any]:
    """The plans of a recipe's parts, and of its programs' steps."""
    found: list[Any] = []
    while recipe is not None:
        found += steps_of(recipe[0]) if isinstance(recipe[0], Program) else [recipe[0]]
        recipe = recipe[5] and recipe[5][4]
    return found


class Probe:
    """Notes what runs, from `installed` on."""

    def __init__(self) -> None:
        self.record = Record()

    def fresh(self, hostile: bool = False, scale: float = 1.0) -> Record:
        """Forgets all calls, and starts a new record."""
        forget()
        self.record = Record(scale=scale, hostile=hostile)
        return self.record

    @contextmanager
    def installed(self) -> Iterator[Probe]:
        ask, select = op.Miss.__call__, select_plan

        def answered(miss: Any, values: tuple[Any, ...]) -> Any:
            recipe, result = ask(miss, values)
            plans = plans_of(recipe)
            if recipe is not None and plans == [recipe[0]]:
                self.record.ran.append(Ran(recipe[0], op.Recipe(*recipe), values))
            else:
                self.record.ran += map(Ran, plans)
            return recipe, result

        def selected(*args: Any, **kwargs: Any) -> Any:
            made = select(*args, **kwargs)
            self.record.ran.append(Ran(made))
            return made

        plans = [
            m for m in map(import_module, sorted(set(_index.FUNCTIONS.values()))) if getattr(m, "plan", None) is select
        ]
        changes: list[tuple[Any, str, Callable[..., Any]]] = [
            (op.Miss, "__call__", answered),
            *((m, "plan", selected) for m in plans),
        ]
        undo = [patch.object(where, name, new) for where, name, new in changes]
        for p in undo:
            p.start()
        try:
            yield self
        finally:
            for p in undo:
                p.stop()
