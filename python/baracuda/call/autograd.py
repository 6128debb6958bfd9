"""Gradients: of functions of bc.functional by their own rules, of any other function by the tape."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from baracuda import _core
from baracuda.call.grad import vjp_of
from baracuda.call.inference import infer
from baracuda.call.pulls import Pull
from baracuda.describe.calls import mistaken, respelt, signed, spellings
from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError, InvalidProblemError, UsageError

VjpRule: TypeAlias = Callable[..., tuple[Any, Callable[..., Any]]]


class Pullable:
    """A function of bc.functional that may have a gradient."""

    __name__: str
    __signature__: inspect.Signature
    vjp_rule: VjpRule | None
    gradient_names: tuple[str, ...] = ()
    # Parameters that are tensors of floats and have no gradient, as a loss's targets: pulls give none of theirs.
    constants: frozenset[str] = frozenset()

    def __reduce__(self) -> str:
        return self.__name__

    def _mistaken(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> UsageError:
        """The error for arguments that the signature does not take; the engine raises it."""
        return mistaken(self.__name__, self.__signature__, args, kwargs, respelt=True)

    def infer(self, *args: Any, **kwargs: Any) -> Any:
        """Shapes and elements of the results, as `bc.TensorSpec`s, for arguments that need have no data."""
        return infer(cast(Any, self), args, kwargs)

    def vjp(self, rule: VjpRule) -> VjpRule:
        """Decorator: the rule (*args) -> (y, pull) that bc.vjp uses."""
        self.vjp_rule = rule
        return rule

    def without_gradient(self, names: str) -> None:
        """Says which tensors have no gradient, though they are floats: names with spaces between."""
        unknown = set(names.split()) - set(self.__signature__.parameters)
        assert not unknown, f"{self.__name__} has no parameters {unknown}"
        self.constants = frozenset(names.split())

    def pulled_by(
        self,
        backward: Pullable,
        results: str = "result",
        fit: Callable[[Any, dict[str, Any]], Any] | None = None,
        forward: Pullable | None = None,
    ) -> None:
        """Makes `backward` the gradient that bc.vjp uses: it is given what its parameters name.

        These are the arguments of this function, its results, and their gradients: "d" and the result's name (without
        "_saved"), or `dy`. `shape` is that of the first argument, where no argument has this name.

        Args:
            backward: The gradient's function.
            results: Names of the results, separated by spaces.
            fit: Is given the gradient and what is known by name, where the gradient is not of its argument's shape yet.
            forward: A function of the same arguments that yields more than this one's result, which comes first:
                `results` names all of it, and only the first has a gradient.

        A gradient with an `output_mask`, of this function's first three arguments, is asked for those alone that are wanted.
        """
        names = results.split()
        gradients = ["dy"] if results == "result" else ["d" + name.removesuffix("_saved") for name in names]
        own, called, first = self.__signature__, cast(Any, forward or self), forward is not None
        head, known_names = next(iter(own.parameters)), {*own.parameters, *names, *gradients, "shape"}
        asked = backward.__signature__.parameters.items()
        wanted = [name for name, p in asked if name in known_names or p.default is p.empty]
        masked = "output_mask" in backward.__signature__.parameters

        def rule(*args: Any, **kwargs: Any) -> tuple[Any, Callable[..., Any]]:
            made = called(*args, **kwargs)
            call = own.bind(*args, **kwargs)
            call.apply_defaults()
            known = call.arguments | dict(zip(names, made if len(names) > 1 else (made,), strict=True))
            if "shape" in wanted:
                known.setdefault("shape", tuple(known[head].shape))
            y = made[0] if first else made

            def pull(dy: Any) -> Any:
                given = known | dict(zip(gradients, (dy,) if first or len(names) == 1 else dy, strict=not first))
                found = cast(Any, backward)(**{name: given[name] for name in wanted})
                return fit(found, known) if fit else found

            def some(dy: Any, asked: Sequence[str]) -> list[Any]:
                given = known | {"dy": dy}
                order = [name for name in own.parameters if name in asked]
                mask = tuple(name in asked for name in list(own.parameters)[:3])
                found = cast(Any, backward)(**{name: given[name] for name in wanted}, output_mask=mask)
                made = dict(zip(order, found if len(order) > 1 else (found,), strict=True))
                return [made[name] for name in asked]

            return y, Pull(pull, some) if masked else pull

        self.vjp_rule = rule
        self.gradient_names = tuple(gradients)


class _Pull:
    """What bc.vjp returns beside the result: takes its gradients, once they are known to be gradients of it."""

    __slots__ = ("_floats", "_fn", "_listed", "_pull", "_results", "_several")

    def __init__(self, fn: Any, pull: Callable[..., Any], y: Any) -> None:
        self._fn, self._pull = fn, pull
        self._listed = len(y) if isinstance(y, (tuple, list)) else 0
        listed = list(y) if self._listed else [y]
        seen = [_core.describe(x)[:2] for x in listed]
        # Beside floats other results have no gradient: indices, counts. Where there are no floats, data was moved.
        places = [i for i, (_, code) in enumerate(seen) if Element(code).is_float] or range(len(seen))
        self._results = [(i, tuple(seen[i][0])) for i in places]
        self._floats = any(Element(code).is_float for _, code in seen)
        self._several = len(self._results) > 1

    def __call__(self, *gradients: Any, **named: Any) -> Any:
        """The gradients of the function's tensors.

        Args:
            *gradients: The gradient of the result; of results in a tuple one tuple, or one argument each. Indices and
                counts have none; where all results are given one, theirs is None.
            **named: None: gradients have no names.

        Raises:
            InvalidProblemError: If there are more or fewer than results, or one is no tensor of its result's shape.
        """
        spread = len(gradients) != 1 or not (self._listed and isinstance(gradients[0], (tuple, list)))
        given = gradients if spread else tuple(gradients[0])
        if len(given) == self._listed > len(self._results):  # one for each result, None for indices and counts
            wanted = {i for i, _ in self._results}
            given = tuple(dy for i, dy in enumerate(given) if i in wanted or dy is not None)
        if named or len(given) != len(self._results):
            raise self._wrong_count(len(given), named)
        for (i, shape), dy in zip(self._results, given, strict=True):
            self._check(i, shape, dy)
        return self._pull(given if self._several else given[0])

    def _check(self, index: int, shape: tuple[int, ...], dy: Any) -> None:
        try:
            seen, code, *_ = _core.describe(dy)
        except BaracudaError as error:
            raise type(error)(f"{self._called(index)}: {error}") from None
        element = Element(code)
        if tuple(seen) != shape or element.is_float != self._floats:
            want = "a float" if self._floats else "a tensor"
            raise InvalidProblemError(
                f"{self._called(index)}: got {element} of shape {tuple(seen)}, want {want} of shape {shape}, as the "
                "result has. Broadcast or cast it."
            )

    def _called(self, index: int) -> str:
        names = getattr(self._fn, "gradient_names", ())
        one = f"dy[{index}]" if self._several else "dy"
        return f"pull of {self._fn.__name__}: {names[index] if index < len(names) else one}"

    def _wrong_count(self, count: int, named: dict[str, Any]) -> InvalidProblemError:
        wanted = [f"{self._called(i).rpartition(' ')[2]} of shape {shape}" for i, shape in self._results]
        want = f"one: {wanted[0]}" if len(wanted) == 1 else f"{len(wanted)}: ({', '.join(wanted)})"
        got = f"gradients by the names {', '.join(named)}" if named else f"{count} gradients"
        how = "Give them by position." if named else "A result that nothing depends on has a gradient of zeros."
        return InvalidProblemError(f"pull of {self._fn.__name__}: got {got}, want {want}. {how}")


@signed
def vjp(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, Callable[..., Any]]:
    """Runs `fn` and returns its result with a function that pulls gradients back.

    Args:
        fn: A function of `bc.functional`, or any Python function of such calls, views and operators; it is called once,
            with tensors that know how they were made, and may decide by their values.
        *args: Its arguments: tensors of any framework; of a function of one's own also tensors nested in tuples, lists,
            dicts and dataclasses.
        **kwargs: Its keyword arguments; of a function of one's own they are constants.

    Returns:
        `(y, pull)`. `pull(dy)` gives the gradient of each tensor argument that can have one, in their order; a single
        gradient is not wrapped in a tuple. Of several results it takes the gradients of all that are floats, as one
        tuple or one by one. Of a function of one's own it gives one gradient for each argument that has floats, nested as
        that is, and takes gradients nested as the results are.

    Raises:
        InvalidProblemError: If the function has no gradient; says why. `pull` raises it for another number of gradients
            than there are results, for what is no tensor of its result's shape, and for a function on the way that has no
            gradient, with the line that calls it.

    Example:
        >>> y, pull = bc.vjp(F.swiglu, x)
        >>> dx = pull(dy)
    """
    if not hasattr(fn, "vjp_rule"):
        return vjp_of(fn, args, kwargs)
    rule = fn.vjp_rule
    if rule is None:
        name = getattr(fn, "__name__", repr(fn))
        raise InvalidProblemError(f"vjp: {name} has no gradient. Its results are constants for what is made of them.")
    if kwargs:  # rules know the parameters by their own names only
        kwargs = respelt(spellings(inspect.signature(fn).parameters), kwargs)
    y, pull = rule(*args, **kwargs)
    return y, _Pull(fn, pull, y)
