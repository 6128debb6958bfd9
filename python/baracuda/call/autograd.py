"""Vector-Jacobian products of functional functions: no tape, one function at a time."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias, cast

from baracuda.call.inference import infer
from baracuda.describe.calls import mistaken, respelt, signed, spellings
from baracuda.describe.errors import InvalidProblemError, UsageError

VjpRule: TypeAlias = Callable[..., tuple[Any, Callable[..., Any]]]


class Pullable:
    """A function of bc.functional that may have a gradient."""

    __name__: str
    __signature__: inspect.Signature
    vjp_rule: VjpRule | None

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
        """
        names = results.split()
        gradients = ["dy"] if results == "result" else ["d" + name.removesuffix("_saved") for name in names]
        own, called, first = self.__signature__, cast(Any, forward or self), forward is not None
        head, known_names = next(iter(own.parameters)), {*own.parameters, *names, *gradients, "shape"}
        asked = backward.__signature__.parameters.items()
        wanted = [name for name, p in asked if name in known_names or p.default is p.empty]

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

            return y, pull

        self.vjp_rule = rule


@signed
def vjp(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, Callable[..., Any]]:
    """Runs `fn` and returns its result with a function that pulls gradients back.

    Args:
        fn: A function of `bc.functional`.
        *args: Its arguments.
        **kwargs: Its keyword arguments.

    Returns:
        `(y, pull)`. `pull(dy)` gives the gradient of each tensor argument that can have one, in their order; a single
        gradient is not wrapped in a tuple.

    Raises:
        InvalidProblemError: If the function has no gradient; says why.

    Example:
        >>> y, pull = bc.vjp(F.swiglu, x)
        >>> dx = pull(dy)
    """
    rule = getattr(fn, "vjp_rule", None)
    if rule is None:
        name = getattr(fn, "__name__", repr(fn))
        raise InvalidProblemError(
            f"vjp: {name} has no gradient. Only differentiable functions of bc.functional can be pulled back."
        )
    if kwargs:  # rules know the parameters by their own names only
        kwargs = respelt(spellings(inspect.signature(fn).parameters), kwargs)
    result: tuple[Any, Callable[..., Any]] = rule(*args, **kwargs)
    return result
