"""Vector-Jacobian products of functional functions: no tape, one function at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from baracuda.errors import InvalidProblemError

if TYPE_CHECKING:
    from collections.abc import Callable


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
    result: tuple[Any, Callable[..., Any]] = rule(*args, **kwargs)
    return result
