"""Sizes whose elements or bytes 64 bits do not hold, and numbers beyond 64 bits, wherever somebody may give them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import baracuda as bc
from baracuda.describe.errors import BaracudaError

HUGE = (2**63, 2**64, 2**70, -(2**63) - 1, -(2**70), 10**400)
ODD: tuple[Any, ...] = (5, "x", (1,), (1, 2, 3), (1.5, 2), ("a", "b"), [1, 0], object(), {}, 1j, b"x")


def test_scratch_of_a_program_beyond_all_memory_is_refused_with_its_size() -> None:
    n = bc.Dim("n", max=2**59 - 1)
    b = bc.ProgramBuilder()
    x, y = b.input("x", (n,), "c128"), b.output("y", (n,), "c128")
    between = b.scratch((n,), "c128")
    b.add(bc.CopyDescriptor((n,), "c128"), x=x, y=between)
    b.add(bc.CopyDescriptor((n,), "c128"), x=between, y=y)
    with pytest.raises(BaracudaError, match="9223372036854775792 bytes of scratch"):
        b.build()


@pytest.mark.parametrize("exponent", [20, 31, 40, 47, 55, 58])
def test_workspaces_that_cannot_be_counted_are_refused(exponent: int) -> None:
    n, m = bc.Dim("n", max=2**exponent), bc.Dim("m", max=2**exponent)
    wanted: list[Callable[[], Any]] = [
        lambda: bc.ReduceDescriptor("sum", (n,), (0,)),
        lambda: bc.SortDescriptor((n,), 0),
        lambda: bc.ConvDescriptor((n, 3, 8, 8), (4, 3, 3, 3)),
        lambda: bc.ConvBackwardDescriptor((n, 3, 8, 8), (4, 3, 3, 3)),
        lambda: bc.AttentionDescriptor((1, 1, n, 64), (1, 1, m, 64), (1, 1, m, 64)),
        lambda: bc.AttentionBackwardDescriptor((1, 1, n, 64), (1, 1, m, 64), (1, 1, m, 64)),
        lambda: bc.MatmulDescriptor((n, 64), (64, m)),
    ]
    for make in wanted:
        try:
            made = bc.plan(make())
        except BaracudaError as error:
            assert re.search(r"2(\^|\*\*)(48|55|56|59)", str(error)), error
        else:
            assert 0 <= made.workspace_size <= 2**56, made


def test_views_of_more_elements_than_can_be_counted() -> None:
    x = bc.zeros((1,), "u8")
    for shape in ((2**58, 2), (2**40, 2**40), (2**62,), (2**31, 2**31, 2**31)):
        for method in (x.expand, x.broadcast_to):
            with pytest.raises(BaracudaError, match="fewer than 2\\^59"):
                method(*shape)
    assert x.expand(2**58).numel == 2**58 and x[:0].reshape(0, 1).expand(0, 2**58).numel == 0


def test_tensors_of_others_with_more_elements_than_can_be_counted() -> None:
    torch = pytest.importorskip("torch")
    one = torch.zeros(1, dtype=torch.uint8)
    for shape in ((2**30, 2**30), (2**20, 2**40)):
        with pytest.raises(BaracudaError, match="2\\^59 elements"):
            bc.from_dlpack(one.expand(*shape))


@pytest.mark.parametrize("what", ["dl_device", "max_version", "stream", "copy"])
def test_arguments_of_the_protocol(what: str) -> None:
    x = bc.zeros((2, 3))
    given: list[Any] = [*ODD, *((n, 0) for n in HUGE), *((1, n) for n in HUGE), *HUGE]
    for value in given:
        try:
            x.__dlpack__(**{what: value})
        except (BaracudaError, BufferError):
            continue
        except TypeError as error:
            raise AssertionError(f"{what}={value!r}") from error
    assert np.from_dlpack(x).shape == (2, 3)  # as DLPack has them
    assert x.__dlpack__(dl_device=(1, 0), max_version=(1, 0), copy=False) is not None
    with pytest.raises(TypeError):  # what consumers look for, of producers that do not know an argument
        x.__dlpack__(new=1)


def _entries(n: int) -> dict[str, Callable[[], Any]]:
    x = np.ones((4, 4), np.float32)
    t = bc.asarray(x)
    desc = bc.SoftmaxDescriptor("softmax", (4, 4))
    made = bc.plan(desc)
    opened = bc.plan(bc.SoftmaxDescriptor("softmax", (bc.Dim("n", max=9), 4)))
    found: dict[str, Callable[[], Any]] = {
        "preferences of bytes": lambda: bc.plan(desc, preference=bc.PlanPreference(max_workspace_bytes=n)),
        "preferences of threads": lambda: bc.plan(desc, preference=bc.PlanPreference(threads=n)),
        "preferences of errors": lambda: bc.plan(desc, preference=bc.PlanPreference(max_error=n)),
        "dims": lambda: bc.Dim("n", max=n),
        "multiples of dims": lambda: bc.Dim("n", max=5) * n,
        "parts of dims": lambda: bc.Dim("n", max=5) // n,
        "dims and more": lambda: bc.Dim("n", max=5) + n,
        "threads": lambda: bc.set_num_threads(n),
        "empty": lambda: bc.empty((n,)),
        "zeros": lambda: bc.zeros((n, 0)),
        "pointers": lambda: bc.from_pointer(n, (4,), "f32"),
        "shapes of pointers": lambda: bc.from_pointer(64, (n,), "f32"),
        "strides of pointers": lambda: bc.from_pointer(64, (4,), "f32", (n,)),
        "bytes of pointers": lambda: bc.from_pointer(64, (4,), "f32", nbytes=n),
        "devices": lambda: bc.Device(f"cpu:{n}"),
        "generators": lambda: bc.Generator(n),
        "seeds": lambda: bc.manual_seed(n),
        "keys": lambda: t[n],
        "powers": lambda: t**n,
        "streams": lambda: made.run(x, x.copy(), stream=n),
        "workspaces": lambda: made.run(x, x.copy(), workspace=n),
        "sizes": lambda: opened.workspace_for(n=n),
        "specs": lambda: bc.TensorSpec((n,), "f32"),
        "ranks": lambda: bc.capabilities("softmax", rank=n),
        "alignments": lambda: bc.plan(desc, alignment=n),
        "layouts": lambda: bc.plan(desc, layout={"x": (n, 1)}),
        "limits of engines": lambda: bc.Engine(memory_limit=n),
    }
    for method in (
        "reshape",
        "expand",
        "broadcast_to",
        "transpose",
        "permute",
        "squeeze",
        "unsqueeze",
        "flip",
        "movedim",
    ):
        if hasattr(t, method):
            found[f"{method} of one"] = lambda method=method: getattr(t, method)(n)
            found[f"{method} of two"] = lambda method=method: getattr(t, method)(n, 1)
    return found


@pytest.mark.parametrize("n", HUGE, ids=range(len(HUGE)))
def test_integers_beyond_64_bits_are_refused_by_name(n: int) -> None:
    threads = bc.get_num_threads()
    for name, call in _entries(n).items():
        try:
            call()
        except BaracudaError:
            continue
        except (OverflowError, SystemError, TypeError) as error:
            raise AssertionError(f"{name}: {type(error).__name__}: {error}") from error
    assert bc.get_num_threads() == threads
