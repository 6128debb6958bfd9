"""What `batch_invariant` is held to: that the axes of batches are found, and rows whose bits depend on others."""

from __future__ import annotations

import numpy as np
import pytest

import baracuda as bc
from baracuda.choose.sku import PlanPreference, rows
from baracuda.describe.elements import Element
from baracuda.prove.batches import Batch, batches, other_bits, same_bits
from baracuda.prove.reference import Case, reference_module
from baracuda.prove.verify import count_elements, rounded
from conftest import SEED

# Ops without a batch: what they give depends on all that they are given, or on places alone.
ALONE = {
    "arange", "bernoulli", "beta", "bincount", "binomial", "diag", "eye", "fill", "gamma", "histc", "linspace", "nms", "nonzero", "normal",
    "pad", "poisson", "randint", "randperm", "rope_table", "scatter_reduce", "trace", "uniform", "unique", "unique_consecutive",
}  # fmt: skip


def found(case: Case) -> list[Batch]:
    given = rounded(case)
    with np.errstate(all="ignore"):
        return list(batches(given, reference_module(case.descriptor.op).reference(given)))


def axes(descriptor: bc.Descriptor, **tensors: np.ndarray) -> set[str]:
    return {str(b) for b in found(Case(descriptor, tensors))}


def test_batches_are_the_axes_along_which_a_problem_falls_apart(rng: np.random.Generator) -> None:
    x, w = rng.normal(size=(3, 5)), rng.normal(size=(5, 4))
    assert axes(bc.MatmulDescriptor((3, 5), (5, 4)), a=x, b=w) == {"a[0], out[0]", "b[1], out[1]"}
    assert axes(bc.ReduceDescriptor("sum", (3, 5), (0,)), x=x) == {"x[1], y[0]"}
    assert axes(bc.ScanDescriptor("cumsum", (3, 5), 1), x=x) == {"x[0], y[0]"}
    assert axes(bc.SoftmaxDescriptor("softmax", (3, 5), 0), x=x) == {"x[1], y[1]"}


def test_every_promising_op_has_a_batch(op_name: str) -> None:
    promising = [r for r in rows() if r["op"] == op_name and r["backend"] == "cpu" and r["batch_invariant"]]
    if not promising or op_name in ALONE:
        pytest.skip("no row promises it, or the op has no batch")
    row = promising[0]
    element = Element.F32 if int(Element.F32) in row["elements"] else Element(row["elements"][0])
    cases = reference_module(op_name).cases(op_name, row["direction"], element, np.random.default_rng(SEED))
    assert any(found(c) for c in cases if 0 < count_elements(c) < 5000), f"{op_name} is not held to its promise"


def test_rows_that_depend_on_others_are_found(rng: np.random.Generator) -> None:
    case = Case(bc.ReduceDescriptor("sum", (6, 40), (1,)), {"x": rng.normal(size=(6, 40))})
    (batch,) = found(case)

    def alike(part: Case) -> dict[str, np.ndarray]:
        return {"y": part.tensors["x"].astype(np.float32).sum(1)}

    def crowded(part: Case) -> dict[str, np.ndarray]:
        x = part.tensors["x"].astype(np.float32)
        return {"y": x.sum(1) if len(x) < 9 else x[:, ::-1].cumsum(1, np.float32)[:, -1]}

    assert not list(other_bits(case, batch, (2, 8, 9, 17), rng, alike))
    assert len(list(other_bits(case, batch, (2, 8, 9, 17), rng, crowded))) == 2


def test_bits_are_compared_not_values() -> None:
    zero, nan = np.zeros(2, np.float32), np.full(2, np.nan, np.float32)
    assert not same_bits(zero, -zero)
    assert same_bits(nan, -nan)
    assert not same_bits(zero, zero.astype(np.float64))


@pytest.mark.parametrize("element", ["f32", "bf16"])
@pytest.mark.parametrize("kind", ["sum", "mean", "prod", "logsumexp"])
def test_long_rows_have_their_own_bits(kind: str, element: str, rng: np.random.Generator) -> None:
    """Rows that are cut into strips: as many, whatever lies beside them."""
    x = rng.normal(1, 0.001, (40, 70_001)).astype(Element.coerce(element, "element").numpy)

    def run(part: np.ndarray, axis: int) -> np.ndarray:
        desc = bc.ReduceDescriptor(kind, part.shape, (axis,), element=element)
        made = bc.plan(desc, preference=PlanPreference(batch_invariant=True))
        y = np.empty(desc.output_shape(), x.dtype)
        workspace = bc.empty(made.workspace_size, "u8") if made.workspace_size else None
        made.run(x=part, y=y, workspace=workspace)
        return y

    alone = np.concatenate([run(x[i : i + 1], 1) for i in range(3)])
    for count in (3, 8, 40):
        assert same_bits(run(x[:count], 1)[:3], alone), f"{count} rows"
    columns = np.ascontiguousarray(x[:20].T)
    assert same_bits(run(columns, 0)[:3], alone)
    assert same_bits(run(np.ascontiguousarray(columns[:, 1:2]), 0), alone[1:2])
