"""Sums of products over named dimensions. They have no kernels of their own: see baracuda.call.contraction for their plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from baracuda.call.compose import Composer, Shape, Value, composed
from baracuda.call.contraction import Evaluation, Labels, Network, network
from baracuda.call.steps import made_of
from baracuda.describe.dims import MAX_RANK, check_axis
from baracuda.describe.errors import InvalidProblemError

OPS = ()
_DOTS = 1 << 20  # labels from here on are dimensions that an ellipsis covers, the last one with the highest number


def _wide_for_steps(c: Composer, operands: tuple[Value, ...]) -> tuple[Value, ...]:
    """Halves in f32 where one product is an operand of the next, so that the last one alone is rounded; else the same."""
    halves = {x.element for x in operands if x.element.is_half}
    if len(operands) < 3 or len(halves) != 1 or any(x.element not in halves for x in operands):
        return operands
    return tuple(c.wide(x) for x in operands)


def _wrong(equation: str, why: str, want: str) -> InvalidProblemError:
    return InvalidProblemError(f"einsum: equation {equation!r}: {why}, want {want}.")


def _letters(equation: str, term: str) -> list[str]:
    """A term's labels, "..." among them at most once."""
    before, dots, after = term.partition("...")
    found = [*before, *([dots] if dots else []), *after]
    for letter in found:
        if letter != "..." and not (letter.isascii() and letter.isalpha()):
            raise _wrong(equation, f"got {letter!r}", "letters, at most one '...' for each operand, ',' and '->'")
    return found


def _labels(equation: str, term: list[str], rank: int, number: int) -> Labels:
    """The label of each dimension of an operand."""
    named = len(term) - ("..." in term)
    if rank < named or (rank > named and "..." not in term):
        want = f"an operand {number} with {'at least ' if '...' in term else ''}{named} dimensions"
        raise _wrong(equation, f"got {rank} dimensions", want)
    found: list[int] = []
    for letter in term:
        covered = rank - named
        found += range(_DOTS - covered, _DOTS) if letter == "..." else [ord(letter)]
    return tuple(found)


def parse(equation: str, shapes: Sequence[Shape]) -> tuple[list[Labels], Labels]:
    """The labels of the operands' dimensions and of the result's, as torch.einsum understands an equation."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = [_letters(equation, t) for t in left.split(",")]
    if len(terms) != len(shapes):
        raise _wrong(equation, f"got {len(shapes)} operands", f"{len(terms)}, as it has terms")
    operands = [_labels(equation, t, len(s), i) for i, (t, s) in enumerate(zip(terms, shapes, strict=True))]
    _check_sizes(equation, operands, shapes)
    everything = [n for labels in operands for n in labels]
    dots = tuple(sorted({n for n in everything if n >= _DOTS - MAX_RANK}))
    if not arrow:
        single = sorted(n for n in set(everything) - set(dots) if everything.count(n) == 1)
        return operands, (*dots, *single)
    result: list[int] = []
    for letter in _letters(equation, right):
        result += dots if letter == "..." else [ord(letter)]
    for n in result:
        if n not in everything:
            raise _wrong(equation, f"the result has {chr(n)!r}", "labels that an operand has")
        if result.count(n) > 1:
            raise _wrong(equation, f"the result has {chr(n)!r} twice", "every label once")
    if len(result) > MAX_RANK:
        raise _wrong(equation, f"the result has {len(result)} dimensions", f"at most {MAX_RANK}")
    return operands, tuple(result)


def _check_sizes(equation: str, operands: Sequence[Labels], shapes: Sequence[Shape]) -> None:
    sizes: dict[int, int] = {}
    for i, (labels, shape) in enumerate(zip(operands, shapes, strict=True)):
        own: dict[int, int] = {}
        for n, size in zip(labels, shape, strict=True):
            name = repr(chr(n)) if n < _DOTS - MAX_RANK else "'...'"
            if own.setdefault(n, size) != size:
                raise _wrong(equation, f"operand {i} has sizes {own[n]} and {size} for {name}", "equal ones")
            if sizes.get(n, 1) != size and 1 not in (size, sizes.get(n, 1)):
                raise _wrong(equation, f"operand {i} has size {size} for {name}", f"{sizes[n]}, as before, or 1")
            sizes[n] = size if sizes.get(n, 1) == 1 else sizes[n]


def _of_equation(equation: Any, operands: Sequence[Value]) -> Network:
    if not isinstance(equation, str):
        raise InvalidProblemError(
            f"einsum: equation: got {type(equation).__name__}, want text such as 'ij,jk->ik', or a list after every operand."
        )
    shapes = [x.shape for x in operands]
    return network(*_with_shapes(parse(equation, shapes), shapes))


def _with_shapes(parsed: tuple[Sequence[Labels], Labels], shapes: Sequence[Shape]) -> tuple[Any, ...]:
    return parsed[0], shapes, parsed[1]


def _term(labels: Any) -> str:
    """The letters of a list of labels: numbers from 0 to 51, and at most one ellipsis."""
    letters = []
    for n in labels:
        if n is not Ellipsis and not (isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 52):
            raise InvalidProblemError(f"einsum: labels: got {n!r}, want numbers from 0 to 51, or an ellipsis.")
        letters.append("..." if n is Ellipsis else chr(ord("A") + n if n < 26 else ord("a") + n - 26))
    return "".join(letters)


def _spelled(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands that lists of labels follow, and a list for the result, as an equation and operands."""
    if len(args) < 2 or isinstance(args[0], (str, list, tuple)) or not isinstance(args[1], (list, tuple)):
        return args
    terms, result = args[1::2], args[-1] if len(args) % 2 else None
    if any(not isinstance(t, (list, tuple)) for t in (*terms, [] if result is None else result)):
        raise InvalidProblemError("einsum: labels: got a tensor, want a list of numbers after every operand.")
    equation = ",".join(map(_term, terms)) + ("" if result is None else "->" + _term(result))
    return (equation, *args[: 2 * len(terms) : 2])


@made_of("cast copy matmul mul sum")
@composed(tensors="operands")
def einsum(c: Composer, equation: str, *operands: Value) -> Value:
    """Sums of products of the operands' elements, with the dimensions named by letters, as torch.einsum.

    "ij,jk->ik" is a matrix product; a letter that the result lacks is summed over, one that an operand has twice means its
    diagonal, and "..." stands for dimensions that broadcast. Without "->" the result has the letters that occur once, in
    the alphabet's order. Two operands are one (batched) matrix product of permuted views, or a product element by element
    where nothing is summed; of more, those pairs come first that leave least behind. The result is contiguous.

    Labels may be numbers from 0 to 51 in a list after each operand, the result's in a list at the end:
    einsum(x, [0, 1], y, [1, 2], [0, 2]).
    """
    wide = _wide_for_steps(c, operands)
    made = Evaluation(c, _of_equation(equation, wide), wide).result()
    return made if wide is operands else c.cast(made, operands[0].element)


einsum.spelled_by(_spelled)


@made_of("cast copy fill matmul mul sum")
@composed(tensors="dy operands")
def einsum_backward(c: Composer, dy: Value, equation: str, *operands: Value) -> tuple[Value, ...]:
    """Gradients of einsum with respect to its operands."""
    wide = _wide_for_steps(c, operands)
    if wide is operands:
        return Evaluation(c, _of_equation(equation, operands), operands).gradients(dy)
    found = Evaluation(c, _of_equation(equation, wide), wide).gradients(c.wide(dy))
    return tuple(c.cast(x, operands[0].element) for x in found)


@einsum.vjp
def _einsum_vjp(*args: Any) -> tuple[Any, Any]:
    equation, *operands = _spelled(args)
    given = tuple(operands[0]) if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else tuple(operands)

    def pull(dy: Any) -> Any:
        found = einsum_backward(dy, equation, *given)
        return found[0] if len(found) == 1 else found

    return einsum(equation, *given), pull


def _tensordot(a: Value, b: Value, dims: Any) -> Network:
    """Labels 0, 1, ... for the dimensions of a, and those of b that are not summed after them."""
    if isinstance(dims, (list, tuple)):
        if len(dims) != 2 or not all(isinstance(d, (list, tuple)) for d in dims) or len(dims[0]) != len(dims[1]):
            raise InvalidProblemError(f"tensordot: dims: got {dims}, want a number, or two lists of equal length.")
        pairs = (
            [check_axis(d, a.rank, "tensordot: dims") for d in dims[0]],
            [check_axis(d, b.rank, "tensordot: dims") for d in dims[1]],
        )
    else:
        count = -1 if isinstance(dims, bool) or not hasattr(dims, "__index__") else int(dims)
        if not 0 <= count <= min(a.rank, b.rank):
            want = f"0 to {min(a.rank, b.rank)}, or two lists of dimensions"
            raise InvalidProblemError(f"tensordot: dims: got {dims!r}, want {want}.")
        pairs = list(range(a.rank - count, a.rank)), list(range(count))
    if any(len(set(p)) != len(p) for p in pairs):
        raise InvalidProblemError(f"tensordot: dims: got {dims}, want every dimension once.")
    summed = dict(zip(pairs[1], pairs[0], strict=True))
    for i, k in summed.items():
        if a.shape[k] != b.shape[i] and 1 not in (a.shape[k], b.shape[i]):
            got = f"{a.shape[k]} in dimension {k} of a and {b.shape[i]} in dimension {i} of b"
            raise InvalidProblemError(f"tensordot: dims: got sizes {got}, want equal ones, or 1.")
    left = tuple(range(a.rank))
    right = tuple(summed.get(i, a.rank + i) for i in range(b.rank))
    result = tuple(n for n in (*left, *right) if n not in summed.values())
    if len(result) > MAX_RANK:
        raise InvalidProblemError(f"tensordot: got a result of {len(result)} dimensions, want at most {MAX_RANK}.")
    return network([left, right], [a.shape, b.shape], result)


@made_of("cast copy matmul mul sum")
@composed(tensors="a b")
def tensordot(c: Composer, a: Value, b: Value, dims: Any = 2, out: Any = None) -> Value:
    """Products of `a` and `b` summed over the last dimensions of a and the first of b, or over listed ones, as torch's.

    Args:
        a: Left operand.
        b: Right operand.
        dims: How many dimensions are summed, or (dimensions of a, dimensions of b).
        out: A tensor to write the result to.
    """
    return Evaluation(c, _tensordot(a, b, dims), (a, b), keeps=True).result()


@made_of("cast copy matmul mul sum")
@composed(tensors="dy a b")
def tensordot_backward(c: Composer, dy: Value, a: Value, b: Value, dims: Any = 2) -> tuple[Value, ...]:
    """Gradients (da, db) of tensordot."""
    return Evaluation(c, _tensordot(a, b, dims), (a, b)).gradients(dy)


def _inner(a: Value, b: Value) -> Network:
    if not a.rank or not b.rank:
        dims = 0
    elif a.shape[-1] != b.shape[-1]:
        got = f"inner: got shapes {a.shape} and {b.shape}"
        raise InvalidProblemError(f"{got}, want the same size of the last dimension.")
    else:
        return _tensordot(a, b, ((a.rank - 1,), (b.rank - 1,)))
    return _tensordot(a, b, dims)


@made_of("cast copy matmul mul")
@composed(tensors="input other")
def inner(c: Composer, input: Value, other: Value, *, out: Any = None) -> Value:
    """Products summed over the last dimension of both, as torch.inner; a 0-d tensor is a factor."""
    return Evaluation(c, _inner(input, other), (input, other)).result()


@made_of("cast copy matmul mul")
@composed(tensors="dy input other")
def inner_backward(c: Composer, dy: Value, input: Value, other: Value) -> tuple[Value, ...]:
    """Gradients (dinput, dother) of inner."""
    return Evaluation(c, _inner(input, other), (input, other)).gradients(dy)


def _chain(matrices: Sequence[Value]) -> Network:
    """Products in the order that takes the fewest multiplications."""
    if not matrices:
        raise InvalidProblemError("chain_matmul: matrices: got none, want at least one.")
    for i, x in enumerate(matrices):
        if x.rank != 2 or (i and x.shape[0] != matrices[i - 1].shape[1]):
            want = "a matrix" + (f" of {matrices[i - 1].shape[-1]} rows" if i else "")
            raise InvalidProblemError(f"chain_matmul: matrices[{i}]: got shape {x.shape}, want {want}.")
    n = len(matrices)
    sizes = [matrices[0].shape[0], *(x.shape[1] for x in matrices)]
    # cost and place of the last product of matrices i to j
    best: dict[tuple[int, int], tuple[int, int]] = {(i, i): (0, i) for i in range(n)}
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            best[i, j] = min(
                (best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    path: list[tuple[int, int]] = []
    left = [(i, i) for i in range(n)]

    def join(i: int, j: int) -> None:
        if i == j:
            return
        k = best[i, j][1]
        join(i, k)
        join(k + 1, j)
        pair = left.index((i, k)), left.index((k + 1, j))
        path.append(pair)
        left[:] = [x for x in left if x not in ((i, k), (k + 1, j))] + [(i, j)]

    join(0, n - 1)
    labels = [(i, i + 1) for i in range(n)]
    return network(labels, [x.shape for x in matrices], (0, n), path)


@made_of("cast copy matmul mul")
@composed(tensors="matrices")
def chain_matmul(c: Composer, *matrices: Value, out: Any = None) -> Value:
    """The product of matrices in the order that takes the fewest multiplications, as torch.chain_matmul."""
    wide = _wide_for_steps(c, matrices)
    made = Evaluation(c, _chain(wide), wide).result()
    return made if wide is matrices else c.cast(made, matrices[0].element)


@made_of("cast copy matmul mul")
@composed(tensors="dy matrices")
def chain_matmul_backward(c: Composer, dy: Value, *matrices: Value) -> tuple[Value, ...]:
    """Gradients of chain_matmul with respect to its matrices."""
    wide = _wide_for_steps(c, matrices)
    if wide is matrices:
        return Evaluation(c, _chain(matrices), matrices).gradients(dy)
    found = Evaluation(c, _chain(wide), wide).gradients(c.wide(dy))
    return tuple(c.cast(x, matrices[0].element) for x in found)


@chain_matmul.vjp
def _chain_matmul_vjp(*matrices: Any) -> tuple[Any, Any]:
    def pull(dy: Any) -> Any:
        found = chain_matmul_backward(dy, *matrices)
        return found[0] if len(found) == 1 else found

    return chain_matmul(*matrices), pull


tensordot.pulled_by(tensordot_backward)
inner.pulled_by(inner_backward)
