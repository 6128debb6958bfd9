"""Functions by the names that torch.linalg, torch.special and torch.masked have for them: F.linalg.cross, ..."""

from __future__ import annotations

from typing import Any

from baracuda.describe.names import about

_SAME_LINALG = "matmul multi_dot matrix_norm matrix_power vecdot vector_norm"
_SAME_SPECIAL = """digamma entr erf erfc erfinv exp2 expm1 log1p log_softmax logit logsumexp ndtr round sinc softmax
    xlog1py xlogy"""
_MASKED = """amax amin argmax argmin cumprod cumsum log_softmax logaddexp logsumexp mean norm normalize prod softmax
    softmin std sum var"""
# The names of a room, and what bc.functional calls them.
ROOMS: dict[str, dict[str, str]] = {
    "linalg": {n: n for n in _SAME_LINALG.split()}
    | {"cross": "linalg_cross", "diagonal": "linalg_diagonal", "vander": "linalg_vander"},
    "special": {n: n for n in _SAME_SPECIAL.split()}
    | {"expit": "sigmoid", "gammaln": "lgamma", "multigammaln": "mvlgamma", "psi": "digamma"},
    "masked": {n: f"masked_{n}" for n in _MASKED.split()},
}


class Room:
    """Some functions of bc.functional, by shorter names."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self.__doc__ = f"Functions of bc.functional by torch.{name}'s names."

    def __getattr__(self, name: str) -> Any:
        from baracuda import functional

        names = ROOMS[self.__name__]
        if name not in names:
            hint = "" if name.startswith("_") else about(name, names)
            raise AttributeError(f"baracuda.functional.{self.__name__} has no {name!r}{hint}")
        return getattr(functional, names[name])

    def __dir__(self) -> list[str]:
        return sorted(ROOMS[self.__name__])

    def __repr__(self) -> str:
        return f"<baracuda.functional.{self.__name__}>"
