"""Random numbers in programs: those of functions called one after the other with the same generator, for all sizes."""

from __future__ import annotations

import json
import threading
from typing import Any

import numpy as np
import pytest
from host import HostProgram, scalar, tensor

import baracuda as bc
import baracuda.functional as F

LENGTHS = (1, 6, 7, 64)


def _drawing() -> bc.Program:
    """Draws of every kind, of sizes that follow n: blocks are rounded up step by step."""
    n = bc.Dim("n", max=64)
    b = bc.ProgramBuilder()
    x, p = b.input("x", (n, 5)), b.input("p", (n,))
    names = ("dropped", "tossed", "spread", "bell", "order", "picked", "wide", "whole")
    shapes = ((n, 5), (n,), (3, n), (n, 3), (9,), (3,), (n, 3), (n,))
    elements = ("f32", "f32", "f32", "f32", "i64", "i64", "f64", "i64")
    y = {k: b.output(k, s, e) for k, s, e in zip(names, shapes, elements, strict=True)}
    g = b.generator()
    b.add(bc.DropoutDescriptor((n, 5)), x=x, y=y["dropped"], p=0.25, generator=g)
    b.add(bc.BernoulliDescriptor((n,), "f32", "f32"), p=p, y=y["tossed"], generator=g)
    b.add(bc.RandomDescriptor("uniform", (3, n)), y=y["spread"], low=-1.0, high=2.0, generator=g)
    b.add(bc.RandomDescriptor("normal", (n, 3)), y=y["bell"], generator=g)
    b.add(bc.RandpermDescriptor(9), y=y["order"], generator=g)
    b.add(bc.MultinomialDescriptor((n,), 3, True), p=p, y=y["picked"], generator=g)
    b.add(bc.RandomDescriptor("normal", (n, 3), "f64"), y=y["wide"], generator=g)
    b.add(bc.RandintDescriptor((n,)), y=y["whole"], low=0, high=1000, generator=g)
    return b.build()


def _eager(x: Any, p: Any, g: bc.Generator) -> list[Any]:
    n = len(x)
    return [
        F.dropout(x, 0.25, generator=g),
        F.bernoulli(p, generator=g),
        F.uniform(-1.0, 2.0, (3, n), generator=g),
        F.normal(0.0, 1.0, (n, 3), generator=g),
        F.randperm(9, generator=g),
        F.multinomial(p, 3, True, generator=g),
        F.normal(0.0, 1.0, (n, 3), generator=g, dtype="f64"),
        F.randint(0, 1000, (n,), generator=g),
    ]


def _given(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, 5)).astype(np.float32), rng.uniform(0.1, 0.9, n).astype(np.float32)


def test_the_numbers_are_those_of_functions() -> None:
    program, mine, theirs = _drawing(), bc.Generator(5, 2**64 - 20), bc.Generator(5, 2**64 - 20)
    for n in (*LENGTHS, 6):
        x, p = _given(n)
        made, wanted = program.run(x, p, generator=mine), _eager(x, p, theirs)
        assert all(a.dtype == b.dtype and (a == b).all() for a, b in zip(made, wanted, strict=True)), n
        assert mine.get_state() == theirs.get_state()


def test_the_default_generator_and_numbers_of_the_caller() -> None:
    program, (x, p) = _drawing(), _given(7)
    bc.manual_seed(11)
    first, second = program.run(x, p), program.run(x, p)
    assert (first[3] != second[3]).any()
    again = program.run(x, p, seed=11, offset=program.blocks(x, p))
    assert all((a == b).all() for a, b in zip(again, second, strict=True))
    with pytest.raises(bc.InvalidProblemError, match="generator"):
        program.run(x, p, seed=11, generator=bc.Generator(1))
    with pytest.raises(bc.InvalidProblemError, match="seed"):
        program.bind(x, p)
    bound = program.bind(x, p, seed=11)
    assert all((a == b).all() for a, b in zip(bound(), first, strict=True))


def test_a_run_that_fails_gives_its_blocks_back() -> None:
    program, (x, p), g = _drawing(), _given(6), bc.Generator(3)
    with pytest.raises(bc.BaracudaError):
        program.run(x, -p, generator=g)
    assert g.get_state() == (3, 0)


def test_threads_draw_apart() -> None:
    program, (x, p), g = _drawing(), _given(64), bc.Generator(9)
    made: list[Any] = []

    def draw() -> None:
        made.extend(program.run(x, p, generator=g)[3] for _ in range(8))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len({m.tobytes() for m in made}) == 32 and g.offset == 32 * program.blocks(x, p)


def test_a_gradient_has_the_mask_of_its_draw() -> None:
    b = bc.ProgramBuilder()
    x, y, dx = b.input("x", (9, 7)), b.output("y", (9, 7)), b.output("dx", (9, 7))
    g = b.generator()
    b.add(bc.RandomDescriptor("normal", (3,)), generator=g)
    seed, offset = g.draw(desc := bc.DropoutDescriptor((9, 7)))
    b.add(desc, x=x, y=y, p=0.5, seed=seed, offset=offset)
    b.add(bc.DropoutBackwardDescriptor((9, 7)), dy=x, dx=dx, p=0.5, seed=seed, offset=offset)
    ones = np.ones((9, 7), np.float32)
    y1, dx1 = b.build().run(ones, generator=bc.Generator(4))
    assert (y1 == dx1).all() and 0 < (y1 == 0).sum() < y1.size


def test_documents_and_other_hosts() -> None:
    program, (x, p) = _drawing(), _given(7)
    data = program.to_bytes()
    again = bc.Program.from_bytes(data)
    made = program.run(x, p, generator=bc.Generator(8, 40))
    other = again.run(x, p, generator=bc.Generator(8, 40))
    assert again.to_bytes() == data and all((a == b).all() for a, b in zip(made, other, strict=True))
    host = HostProgram(data)
    assert host.info()["random"] == json.loads(data)["random"]
    given = [tensor(x), tensor(p)]
    results = [np.empty_like(m) for m in made]
    host.run([*given, *map(tensor, results)], [scalar(8), scalar(40)])
    assert all((a == b).all() for a, b in zip(results, made, strict=True))
    assert host.blocks([*given, *(None for _ in results)]) == program.blocks(x, p)


@pytest.mark.parametrize(
    ("part", "value", "word"),
    [("seed", 9, "seed"), ("offset", -1, "offset"), ("draws", [{"terms": [[1, "m"]]}], "dims"), ("more", 1, "more")],
)
def test_what_is_wrong_in_documents_is_named(part: str, value: Any, word: str) -> None:
    document = json.loads(_drawing().to_bytes())
    document["random"][part] = value
    del document["digest"], document["plans"]
    with pytest.raises(bc.InvalidProblemError, match=word):
        bc.Program._made(json.dumps(document), _drawing().plans, ())


def test_what_draws_nothing_takes_no_generator() -> None:
    b = bc.ProgramBuilder()
    x, g = b.input("x", (3,)), b.generator()
    with pytest.raises(bc.InvalidProblemError, match="draws"):
        b.add(bc.UnaryDescriptor("exp", (3,)), x=x, generator=g)
    with pytest.raises(bc.InvalidProblemError, match="one for all"):
        b.generator()
