"""Gradients of functions that users write: bc.vjp of any function, bc.grad, bc.value_and_grad."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from baracuda import _core
from baracuda.call.handed import Handed, handed
from baracuda.call.inference import spec_of
from baracuda.call.tape import Tape, Tracked, element_of, stop_gradient
from baracuda.call.tree import Tree, flatten, parts_of
from baracuda.describe.calls import parameter_names, signed
from baracuda.describe.errors import BaracudaError, InvalidProblemError, shown
from baracuda.memory.results import is_torch


class Pulled:
    """A function's call on a tape.

    Args:
        fn: The function.
        args: Its positional arguments.
        kwargs: Its keyword arguments, which are constants.
        argnums: Positions of the arguments whose gradients are wanted.
        name: What messages call this.
    """

    def __init__(
        self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Sequence[int], name: str
    ) -> None:
        self.name = f"{name}: {getattr(fn, '__name__', type(fn).__name__)}"
        self.tape = Tape()
        self.leaves: list[Tracked] = []
        self.likes: list[Any] = []  # what the leaves were
        self.trees: list[Tree] = []  # of the arguments whose gradients are wanted, of leaves
        names = parameter_names(fn, len(args))
        given = list(args)
        for i in argnums:
            given[i] = self._tracked(args[i], names[i])
        self.like = self.likes[0]  # results are of the kind of the first tensor
        with self.tape.on():
            y = fn(*given, **kwargs)
        self.results: list[Tracked] = []
        self.tree = flatten(y, self._is_result, self.results, [], "result")

    def _tracked(self, value: Any, name: str) -> Any:
        """An argument with its floats on the tape."""
        flat: list[Any] = []
        called: list[str] = []
        tree = flatten(value, _is_float, flat, called, name)
        if not flat:
            raise InvalidProblemError(
                f"{self.name}: {name}: got {_kind(value)}, want a tensor of floats, or some in tuples, lists, dicts or "
                "dataclasses. Wrap numbers by np.asarray, or name other arguments by argnums."
            )
        first = len(self.leaves)
        self.leaves += map(self.tape.leaf, flat)
        self.likes += flat
        made = tree.build(self.leaves[first:])
        self.trees.append(tree.counted_from(first))
        return made

    def _is_result(self, value: Any) -> bool:
        return isinstance(value, Tracked) and value.tape is self.tape

    def value(self) -> Any:
        """What the function returned, as tensors of the kind that it was given."""
        return self.tree.build([handed(x.value, self.like) for x in self.results])

    def pull(self, dys: Sequence[Any]) -> tuple[Any, ...]:
        """Gradients of the wanted arguments from those of the results, in the arguments' structure.

        A result whose gradient is None is not pulled back: what made it need have none.
        """
        given = [(x, _as_tensor(dy)) for x, dy in zip(self.results, dys, strict=True) if dy is not None]
        found = self.tape.gradients(given)
        memory = Handed([dy for _, dy in given])
        flat = [memory.gradient(found, leaf, like) for leaf, like in zip(self.leaves, self.likes, strict=True)]
        return tuple(_only_leaves(tree).build(flat) for tree in self.trees)


class _Pull:
    """What bc.vjp returns beside the result of a function of the user's."""

    __slots__ = ("_called",)

    def __init__(self, called: Pulled) -> None:
        self._called = called

    def __call__(self, *gradients: Any) -> Any:
        """The gradients of the function's arguments.

        Args:
            *gradients: The gradients of the results: nested as these are, or of results in a tuple one by one.

        Returns:
            For each argument that has floats its gradient, nested as it is; a single one is not in a tuple.

        Raises:
            InvalidProblemError: One is missing, or no float tensor of its result's shape.
        """
        called = self._called
        tree = called.tree
        given = gradients[0] if len(gradients) == 1 else gradients
        single = tree.kind not in ("leaf", "constant") and len(tree.children) == 1 and len(gradients) == 1
        if single and parts_of(given) is None:
            given = gradients
        dys: list[Any] = [None] * len(called.results)
        self._take(given, tree, dys, "dy")
        made = called.pull(dys)
        return made[0] if len(made) == 1 else made

    def _take(self, given: Any, tree: Tree, dys: list[Any], name: str) -> None:
        if tree.kind == "constant":
            return
        if tree.kind == "leaf":
            dys[tree.value] = self._checked(given, self._called.results[tree.value], name)
            return
        parts, keys = parts_of(given) or ([], [])
        if len(parts) != len(tree.children) or (keys != tree.keys and tree.keys):
            raise InvalidProblemError(
                f"pull of {self._called.name}: {name}: got {_kind(given)}, want {len(tree.children)} gradients, nested as the "
                "results are."
            )
        called = [f"{name}.{k}" for k in tree.keys] or [f"{name}[{i}]" for i in range(len(parts))]
        for part, child, inner in zip(parts, tree.children, called, strict=True):
            self._take(part, child, dys, inner)

    def _checked(self, given: Any, result: Tracked, name: str) -> Any:
        want = f"a float tensor of shape {tuple(result.value.shape)}, as the result has"
        try:
            shape, element = tuple(_core.describe(given)[0]), element_of(given)
        except BaracudaError as error:
            raise type(error)(f"pull of {self._called.name}: {name}: {error}", error.refusals) from None
        if shape != tuple(result.value.shape) or element is None or not element.is_float:
            raise InvalidProblemError(
                f"pull of {self._called.name}: {name}: got {element} of shape {shape}, want {want}."
            )
        return given


def vjp_of(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Callable[..., Any]]:
    """bc.vjp of a function of the user's: by every argument that has floats."""
    if not callable(fn):
        raise InvalidProblemError(f"vjp: fn: got {shown(fn)}, want a function.")
    argnums = [i for i, value in enumerate(args) if _has_floats(value)]
    if not argnums:
        got = ", ".join(map(_kind, args)) or "nothing"
        raise InvalidProblemError(f"vjp: got {got}, want at least one tensor of floats among the arguments.")
    called = Pulled(fn, args, kwargs, argnums, "vjp")
    return called.value(), _Pull(called)


@signed
def grad(fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The function that gives the gradient of `fn`, as jax.grad.

    Args:
        fn: A Python function of `bc.functional` calls, views and operators that returns one number as a tensor of rank 0.
            It is called with tensors that know how they were made; Python may decide by their values.
        argnums: Position or positions of the arguments whose gradients are wanted.
        has_aux: Whether `fn` returns `(number, more)`: `more` is passed on, without gradient.

    Returns:
        A function of the same arguments. It returns the gradient by the argument, nested as that is, None where it is no
        float; a tuple of them where `argnums` is one; with `has_aux` the pair of that and `more`.

    Raises:
        InvalidProblemError: By the function: the result is no number, depends on none of the arguments, or some function on
            the way has no gradient, whose line is named.

    Example:
        >>> dw = bc.grad(lambda w: F.sum(F.relu(F.matmul(x, w))))(w)
    """
    both = value_and_grad(fn, argnums, has_aux)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return _named(gradient, fn, "grad")


@signed
def value_and_grad(
    fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """As `grad`, for a function that gives `(fn(...), gradient)`, computed once.

    Args:
        fn: As in `grad`.
        argnums: As in `grad`.
        has_aux: As in `grad`; the first of the pair is `(number, more)` then.

    Example:
        >>> step = bc.jit(bc.value_and_grad(loss))
        >>> value, gradients = step(weights, x, target)
    """
    if not callable(fn):
        raise InvalidProblemError(f"value_and_grad: fn: got {shown(fn)}, want a function.")
    positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not positions or not all(isinstance(i, int) and not isinstance(i, bool) for i in positions):
        raise InvalidProblemError(f"argnums: got {shown(argnums)}, want a position of an argument, or some.")

    def both(*args: Any, **kwargs: Any) -> Any:
        if not all(-len(args) <= i < len(args) for i in positions):
            raise InvalidProblemError(
                f"grad: argnums: got {shown(argnums)} and {len(args)} positional arguments, want positions of these."
            )
        places = [i % len(args) for i in positions]
        if len(set(places)) < len(places):
            raise InvalidProblemError(f"grad: argnums: got {shown(argnums)}, want each argument once.")
        called = Pulled(fn, args, kwargs, places, "grad")
        loss = _number(called, has_aux)
        from baracuda import functional as F

        found = called.pull([F.ones_like(x.value) if x is loss else None for x in called.results])
        return stop_gradient(called.value()), found[0] if isinstance(argnums, int) else found

    return _named(both, fn, "value_and_grad")


def _number(called: Pulled, has_aux: bool) -> Tracked:
    """The result that is differentiated."""
    tree = called.tree
    if has_aux:
        if tree.kind is not tuple or len(tree.children) != 2:
            raise InvalidProblemError(f"{called.name}: got no pair, want (number, more): has_aux is True.")
        tree = tree.children[0]
    if tree.kind == "leaf":
        loss: Tracked = called.results[tree.value]
        if not tuple(loss.value.shape):
            return loss
        raise InvalidProblemError(
            f"{called.name}: got a result of shape {tuple(loss.value.shape)}, want one number, of rank 0: take F.sum or F.mean "
            "of it, or use bc.vjp and give the gradient of the result."
        )
    if tree.kind == "constant":
        raise InvalidProblemError(
            f"{called.name}: got {_kind(tree.value)}, which depends on none of the arguments that gradients are wanted of, want "
            "a number made of them by functions of bc.functional. Values read by .item() or .numpy() are constants."
        )
    raise InvalidProblemError(f"{called.name}: got several results, want one number. Say has_aux=True, or use bc.vjp.")


def _named(made: Callable[..., Any], fn: Callable[..., Any], what: str) -> Callable[..., Any]:
    functools.update_wrapper(made, fn, ("__module__", "__doc__"))
    made.__name__ = made.__qualname__ = f"{what}_of_{getattr(fn, '__name__', type(fn).__name__)}"
    return made


def _is_float(value: Any) -> bool:
    if isinstance(value, Tracked):
        raise InvalidProblemError(
            "grad: got a tensor whose gradient is taken already, want one that is given from outside: there are no gradients of "
            "gradients. Use bc.stop_gradient where it shall be a constant."
        )
    element = None if isinstance(value, (int, float, str)) else element_of(value)
    return element is not None and element.is_float


def _has_floats(value: Any) -> bool:
    flat: list[Any] = []
    flatten(value, _is_float, flat, [], "")
    return bool(flat)


def _kind(value: Any) -> str:
    """What a value is, for messages."""
    seen = spec_of(value)
    return shown(value) if seen is None else f"{seen.element} of shape {tuple(seen.shape)}"


def _only_leaves(tree: Tree) -> Tree:
    """With None for what is no float."""
    if tree.kind == "leaf":
        return tree
    if tree.kind == "constant":
        return Tree("constant", value=None)
    return Tree(tree.kind, [_only_leaves(child) for child in tree.children], tree.keys, tree.value)


def _as_tensor(dy: Any) -> Any:
    return dy if is_torch(dy) or isinstance(dy, (np.ndarray, _core.Tensor, Tracked)) else _core.borrow(dy)
