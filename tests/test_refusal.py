"""Every wrong call is refused with its own code, names the argument, says what to do, and changes no byte."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from calls import cases_of, directions, elements_of, valid_call
from refusals import BY_ROWS, REACHED, UNREACHED, refused

import baracuda as bc
from baracuda import _core
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import IN
from baracuda.ops.random.random import RandomDescriptor
from baracuda.ops.sampling.sampling import SampleTokensDescriptor

OPS = pytest.mark.parametrize(("op", "direction"), directions())


@OPS
def test_the_valid_call_is_valid(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    answer = call.check()
    assert answer and not answer.refusals, f"{answer}"
    call.run()


@OPS
def test_wrong_rank_and_shape(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    for p in call.tensors:
        if p.variadic:
            continue
        array = call.args[p.name]
        if len(p.shape) < 8:
            refused(call, "rank", p.name, **{p.name: array[None].copy()})
        if p.shape:
            wrong = np.zeros((*p.shape[:-1], p.shape[-1] + 1), array.dtype)
            refused(call, "shape", p.name, **{p.name: wrong})
            refused(call, "shape", p.name, **{p.name: np.zeros((*p.shape[:-1], 0), array.dtype)})
        refused(call, "rank", p.name, **{p.name: np.zeros((1,) * 9, array.dtype)})


@OPS
def test_wrong_element(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    for p in call.tensors:
        if p.variadic:
            continue
        other = np.complex64 if p.element is not Element.C64 else np.float32
        refused(call, "element", p.name, **{p.name: np.zeros(p.shape, other)})
        refused(call, "element", p.name, **{p.name: np.zeros(p.shape, "datetime64[s]")})
        refused(call, "element", p.name, **{p.name: np.zeros(p.shape, object)})


@OPS
def test_not_tensors(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    for p in call.tensors:
        for value in (None, 1.5, "x", object(), {}):
            code = "not_a_tensor"
            if p.variadic and isinstance(value, (str, dict)):
                code = "not_a_tensor" if len(value) == len(p.shapes) else "list_length"
            field = p.name + "[0]" if p.variadic and code == "not_a_tensor" and isinstance(value, str) else p.name
            refused(call, code, field, **{p.name: value})
        if not p.variadic:
            refused(call, "not_a_tensor", p.name, **{p.name: call.args[p.name].tolist() or [1]})
            refused(call, "not_a_tensor", p.name, **{p.name: np.float32(1)})


@OPS
def test_missing_unknown_duplicate_and_too_many_arguments(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    before = call.bytes()
    made = call.plan
    for p in call.tensors:
        kept = {k: v for k, v in call.args.items() if k != p.name}
        with pytest.raises(bc.InvalidProblemError) as caught:
            made.run(**kept, workspace=call.workspace)
        assert (caught.value.code, caught.value.refusals[0].field) == ("missing_argument", p.name)
        assert ("missing_argument", p.name) in {(r.code, r.field) for r in made.can_implement(**kept).refusals}
    refused(call, "unknown_argument", "nonsense", nonsense=1)
    refused(call, "unknown_argument", "größe", größe=1)
    ordered = [call.args[n] for n in made.arguments if n in call.args]
    with pytest.raises(bc.InvalidProblemError, match="twice") as caught:
        made.run(*ordered[:1], **{made.arguments[0]: ordered[0]})
    assert caught.value.code == "unknown_argument"
    with pytest.raises(bc.InvalidProblemError, match="positional") as caught:
        made.run(*[ordered[0]] * (len(made.arguments) + 1))
    assert caught.value.code == "unknown_argument"
    assert not made.can_implement(*[ordered[0]] * (len(made.arguments) + 1))
    assert not made.can_implement(*ordered[:1], **{made.arguments[0]: ordered[0]})
    assert call.bytes() == before
    REACHED.update({"missing_argument", "unknown_argument"})


@OPS
def test_read_only_outputs(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    for p in call.outputs:
        if p.variadic:
            continue
        frozen = call.args[p.name].copy()
        frozen.flags.writeable = False
        refused(call, "read_only", p.name, **{p.name: frozen})
    for p in call.plan.signature.inputs:
        if not p.variadic:
            call.args[p.name].flags.writeable = False
    call.run()


@OPS
def test_misaligned_tensors(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    for p in call.tensors:
        if p.variadic or p.element.nbytes == 1:
            continue
        raw = bytearray(call.args[p.name].nbytes + 1)
        wrong = np.ndarray(p.shape, p.element.numpy, raw, 1)
        refused(call, "misaligned", p.name, bc.MisalignedOperandError, **{p.name: wrong})
        assert not any(raw)


@OPS
def test_workspaces(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    size = call.plan.workspace_size
    if not size:
        call.run(workspace=None)
        return
    error = refused(call, "workspace", "workspace", bc.WorkspaceTooSmallError, workspace=None)
    error = refused(call, "workspace", "workspace", bc.WorkspaceTooSmallError, workspace=bc.empty(size - 1, "u8"))
    assert (error.needed, error.got) == (size, size - 1)
    memory = bc.empty(size + 64, "u8").numpy()
    refused(call, "workspace_alignment", "workspace", bc.MisalignedOperandError, workspace=memory[1 : size + 1])
    frozen = bc.empty(size, "u8").numpy()
    frozen.flags.writeable = False
    refused(call, "workspace", "workspace", bc.WorkspaceTooSmallError, workspace=frozen)
    refused(call, "workspace", "workspace", bc.WorkspaceTooSmallError, workspace=bc.empty(2 * size, "u8").numpy()[::2])
    refused(call, "not_a_tensor", "workspace", workspace=size)
    assert call.check(workspace=bc.TensorSpec((size,), "u8"))


@OPS
def test_lists(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    for p in call.tensors:
        if not p.variadic:
            continue
        good = call.args[p.name]
        refused(call, "list_length", p.name, **{p.name: good[:-1]})
        refused(call, "list_length", p.name, **{p.name: [*good, good[0]]})
        refused(call, "not_a_tensor", f"{p.name}[0]", **{p.name: [None, *good[1:]]})
        refused(call, "element", f"{p.name}[0]", **{p.name: [good[0].astype(np.complex64), *good[1:]]})
        refused(call, "rank", f"{p.name}[0]", **{p.name: [good[0][None], *good[1:]]})


@OPS
def test_scalars(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    for s in call.plan.signature.numbers:
        refused(call, "scalar", s.name, **{s.name: np.zeros(2)})
        refused(call, "scalar", s.name, **{s.name: np.complex64(1)})
        refused(call, "scalar", s.name, **{s.name: np.array(1 + 1j)})
        for no_number in ("1", 1j):
            error = refused(call, "not_a_tensor", s.name, **{s.name: no_number})
            assert error.refusals[0].want == "a number or a 0-d tensor"
        if s.kind == "float":
            refused(call, "scalar", s.name, **{s.name: 10**400})
            continue
        refused(call, "scalar", s.name, **{s.name: 1.5})
        refused(call, "scalar", s.name, **{s.name: np.array(1.5)})
        refused(call, "scalar", s.name, **{s.name: 2**64})
        refused(call, "scalar", s.name, **{s.name: -1 if s.kind == "unsigned" else -(2**63) - 1})


@OPS
def test_streams(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    assert "ambiguous" in str(refused(call, "stream", "stream", stream=0))
    refused(call, "stream", "stream", stream=17)
    refused(call, "stream", "stream", stream=object())


@OPS
def test_can_implement_gives_all_reasons(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    names = [p for p in call.tensors if not p.variadic and p.shape]
    if len(names) < 2:
        return
    first, second = names[0], names[-1]
    changes = {
        first.name: np.ma.masked_array(call.args[first.name]),
        second.name: np.zeros((*second.shape[:-1], second.shape[-1] + 1), np.complex128),
        "stream": 0,
    }
    found = {(r.code, r.field) for r in call.check(**changes).refusals}
    assert {("masked", first.name), ("shape", second.name), ("element", second.name), ("stream", "stream")} <= found
    REACHED.update(code for code, _ in found)


@OPS
def test_questions_without_memory(op: str, direction: str) -> None:
    """bc.TensorSpec, torch meta tensors and jax.ShapeDtypeStruct stand for tensors."""
    import torch

    call = valid_call(op, direction)

    def torch_element(e: Element) -> Any:
        return getattr(torch, {"bool": "bool", "bf16": "bfloat16"}.get(str(e), e.numpy.name))

    def ask(make: Any) -> Any:
        values = {
            p.name: [make(s, p.element) for s in p.shapes] if p.variadic else make(p.shape, p.element)
            for p in call.tensors
        }
        return call.check(**values)

    assert ask(bc.TensorSpec)
    assert ask(lambda s, e: torch.empty(s, dtype=torch_element(e), device="meta"))
    wrong = ask(lambda s, e: bc.TensorSpec(s, e, device="cuda:0"))
    assert {r.code for r in wrong.refusals} == {"device"}
    assert ask(lambda s, e: bc.TensorSpec((*s, 1), e) if len(s) < 8 else bc.TensorSpec(s, "c64")).verdict == "no"
    for p in call.outputs:
        if not p.variadic:
            refusals = call.check(**{p.name: bc.TensorSpec(p.shape, p.element, read_only=True)}).refusals
            assert [(r.code, r.field) for r in refusals] == [("read_only", p.name)]
    for p in call.tensors:
        spec = [bc.TensorSpec(s, p.element) for s in p.shapes] if p.variadic else bc.TensorSpec(p.shape, p.element)
        with pytest.raises(bc.InvalidProblemError, match="TensorSpec"):
            call.run(**{p.name: spec})
    REACHED.add("device")


@OPS
def test_descriptor_errors(op: str, direction: str) -> None:
    desc = valid_call(op, direction).case.descriptor
    cls = type(desc)
    fields = desc.to_dict()
    for name, value in fields.items():
        good = getattr(desc, name)
        bad: list[Any] = []
        if name == "kind":
            bad = ["nonsense", 3, None, []]
        elif name in cls.enums:
            bad = ["nonsense", 7, []]
        elif name.endswith("element") and value is not None:
            bad = ["f31", object(), ">f4", np.dtype(">f4"), 3.5, "datetime64"]
        elif name.endswith("shape") and value is not None:
            bad = [(1,) * 9, (-1, 2), (2.5,), "abc", (2**40, 2**40), (2**64,), (True, "x"), {2, 4}, 3.5]
        elif isinstance(good, bool):
            bad = [1.5, "yes", 2]
        elif isinstance(good, float):
            bad = [float("nan"), float("inf"), "x", 1j, True]
            bad = bad[2:] if name in cls.unbounded else bad
        elif isinstance(good, int):
            bad = [1.5, "x", 2**70, True]
        for wrong in bad:
            with pytest.raises(bc.InvalidProblemError) as caught:
                cls(**{k: getattr(desc, k) for k in fields} | {name: wrong})
            assert name in str(caught.value), f"{name}={wrong!r}: {caught.value}"
    REACHED.add("problem")


# --- select -----------------------------------------------------------------------------------------------------------


@OPS
def test_forced_choices_are_never_replaced(op: str, direction: str) -> None:
    desc = valid_call(op, direction).case.descriptor
    cls = desc.plan_class
    with pytest.raises(bc.UnsupportedError) as caught:
        cls.select(desc, preference=bc.PlanPreference(sku="nonsense"))
    mine = [r for r in _core.rows() if (r["op"], r["direction"], r["backend"]) == (op, direction, "cpu")]
    candidates = {r["index"] for r in mine}
    assert {r.code for r in caught.value.refusals} >= {"sku"}
    assert sum(r.code == "sku" for r in caught.value.refusals) == len(candidates), "each candidate gives its reasons"
    with pytest.raises((bc.UnsupportedError, bc.BackendUnavailableError)) as caught:
        cls.select(desc, preference=bc.PlanPreference(sku="nonsense", max_error=0.0))
    counts = [len(line) for line in per_candidate(str(caught.value))]
    assert counts == sorted(counts), "nearest miss first"
    REACHED.update(r.code for r in caught.value.refusals)
    for backend in ("cuda", "metal"):
        if _core.backend_state(backend)["present"]:
            continue
        for make in (
            lambda b=backend: cls.select(desc, b),
            lambda b=backend: cls.select(desc, preference=bc.PlanPreference(backend=b)),
        ):
            with pytest.raises(
                bc.BackendUnavailableError, match=f"the {backend} backend cannot be used here: ."
            ) as caught:
                make()
            REACHED.update(r.code for r in caught.value.refusals)
        support = cls.query(desc, backend)
        assert not support and support.refusals
        REACHED.update(r.code for r in support.refusals)


def per_candidate(text: str) -> list[list[str]]:
    groups: list[list[str]] = []
    for line in text.splitlines()[1:]:
        if line.startswith("    ["):
            groups[-1].append(line)
        elif line.startswith("  "):
            groups.append([])
    return groups


@OPS
def test_limits_of_rows(op: str, direction: str) -> None:
    desc = valid_call(op, direction).case.descriptor
    for preference in (
        bc.PlanPreference(deterministic=True),
        bc.PlanPreference(batch_invariant=True),
        bc.PlanPreference(max_error=1e-30),
        bc.PlanPreference(max_workspace_bytes=0),
    ):
        support = desc.plan_class.query(desc, preference=preference)
        REACHED.update(r.code for r in support.refusals)
        if support:
            made = desc.plan_class.select(desc, preference=preference)
            REACHED.update(r.code for c in made.explain().candidates for r in c.support.refusals)
            assert made.precision_guarantee.deterministic >= preference.deterministic
            assert made.precision_guarantee.batch_invariant >= preference.batch_invariant
            assert made.workspace_size <= preference.max_workspace_bytes
    cls = type(desc)
    fields = {k: getattr(desc, k) for k in desc.to_dict()}
    for name, element in product((f for f in fields if f.endswith("element")), Element):
        try:
            other = cls(**fields | {name: element})
        except bc.InvalidProblemError:
            continue
        support = cls.plan_class.query(other)
        REACHED.update(r.code for r in support.refusals)
        if other.primary_element() not in elements_of(op, direction):
            assert not support


# --- dims at run time -------------------------------------------------------------------------------------------------


def test_sizes_read_at_run_time() -> None:
    n = bc.Dim("n", max=16)
    made = bc.plan(bc.GatedActivationDescriptor("swiglu", (n, 2 * n)))
    x, y = np.ones((5, 10), np.float32), np.zeros((5, 5), np.float32)
    made.run(x, y)
    for bad_x, bad_y, code in (
        ((17, 34), (17, 17), "dim"),
        ((5, 12), (5, 6), "shape"),
        ((5, 10), (5, 6), "shape"),
        ((5, 11), (5, 5), "shape"),
    ):
        refusals = made.can_implement(np.ones(bad_x, np.float32), np.zeros(bad_y, np.float32)).refusals
        assert code in {r.code for r in refusals}, refusals
        with pytest.raises(bc.InvalidProblemError):
            made.run(np.ones(bad_x, np.float32), np.zeros(bad_y, np.float32))
    REACHED.add("dim")


# --- the data ---------------------------------------------------------------------------------------------------------


def test_indices_out_of_range() -> None:
    if ("embedding", "forward") not in directions():
        pytest.skip("no embedding here")
    call = valid_call("embedding", "forward")
    name = next(p.name for p in call.plan.signature.inputs if p.element.is_integer)
    before = call.bytes()
    indices = call.args[name].copy()
    indices.reshape(-1)[-1] = 10**6
    with pytest.raises(bc.IndexOutOfRangeError) as caught:
        call.run(**{name: indices})
    assert (caught.value.code, caught.value.refusals[0].field) == ("index_out_of_range", name)
    assert "1000000" in str(caught.value) and str(indices.size - 1) in str(caught.value)
    assert call.bytes() == before, "indices are checked before the first write"
    REACHED.add("index_out_of_range")


def test_integer_division_by_zero() -> None:
    divisions = [d for d in directions() if d[0] in ("div", "floor_divide", "remainder", "fmod") and d[1] == "forward"]
    found = False
    for op, direction in divisions:
        for element in elements_of(op, direction):
            for case in cases_of(op, direction, element) if element.is_integer else []:
                from calls import call_of

                call = call_of(case)
                inputs = [p for p in call.tensors if p.role == IN]
                if len(inputs) != 2 or not inputs[1].element.is_integer or not call.outputs[0].element.is_integer:
                    continue
                call.args[inputs[1].name][...] = 0
                with pytest.raises(bc.IntegerDivisionError) as caught:
                    call.run()
                assert caught.value.code == "integer_division"
                found = True
                break
            if found:
                break
    if not found:
        pytest.skip("no integer division here")
    REACHED.add("integer_division")


def test_value_out_of_range() -> None:
    grads = np.array([1.0, np.inf, 2.0], np.float32)
    with pytest.raises(bc.ValueOutOfRangeError, match="inf, want a finite number") as caught:
        bc.functional.get_total_norm([grads], error_if_nonfinite=True)
    assert (caught.value.code, caught.value.refusals[0].field) == ("value_out_of_range", "total_norm")
    REACHED.add("value_out_of_range")


def test_bytes_that_are_no_plan() -> None:
    with pytest.raises(InvalidProblemError, match="JSON") as caught:
        bc.Plan.from_bytes(b"nonsense")
    assert caught.value.code == "document"
    REACHED.add("document")


# A call with a number, by its value or as a tensor of rank 0, the argument's name, and what it wants.
NUMBERS: dict[str, tuple[Any, str, str]] = {
    "dropout": (lambda v: bc.functional.dropout(np.ones(8, np.float32), v), "p", "0 <= value <= 1"),
    "bernoulli_": (lambda v: bc.functional.bernoulli_(np.ones(8, np.float32), v), "p", "0 <= value <= 1"),
    "normal": (lambda v: bc.functional.normal(0.0, v, (8,)), "std", "a finite number that is not negative"),
    "cross_entropy": (
        lambda v: bc.functional.cross_entropy(np.ones((2, 3), np.float32), np.zeros(2, np.int64), label_smoothing=v),
        "label_smoothing",
        "0 <= value <= 1",
    ),
    "temperature": (lambda v: sampled(temperature=v), "temperature", "a finite number that is not negative"),
    "top_p": (lambda v: sampled(top_p=v), "top_p", "0 <= value <= 1"),
    "typical_p": (lambda v: sampled(typical_p=v), "typical_p", "0 <= value <= 1"),
    "presence": (lambda v: sampled(presence=v), "presence", "a finite number"),
}


def sampled(**number: Any) -> Any:
    drawn = bc.plan(SampleTokensDescriptor((8,)))
    given = {"logits": np.ones(8, np.float32), "y": np.zeros((), np.int64), "seed": 1, **number}
    return drawn.run(**given, workspace=bc.empty(drawn.workspace_size, "u8"))


@pytest.mark.parametrize("how", [float, np.float32], ids=["number", "tensor"])
@pytest.mark.parametrize("value", [-0.5, float("nan"), float("inf"), float("-inf"), 1.25])
@pytest.mark.parametrize("name", NUMBERS)
def test_kernels_say_which_number_they_refuse_and_what_they_want(name: str, value: float, how: Any) -> None:
    call, argument, want = NUMBERS[name]
    least, most = -9 if want == "a finite number" else 0, 1 if "<=" in want else 9
    given = np.asarray(value, np.float32) if how is np.float32 else value
    if least <= value <= most:
        call(given)
        return
    with pytest.raises(InvalidProblemError, match=re.escape(f"{argument}: got {value:g}, want {want}")):
        call(given)


def test_kernels_name_the_number_that_they_refuse() -> None:
    for kind, names in (("normal", ("mean", "std")), ("uniform", ("low", "high"))):
        drawn = bc.plan(RandomDescriptor(kind, (4,), "f32"))
        for name in names:  # no f32
            with pytest.raises(InvalidProblemError, match=rf": {name}: got 1e\+39, want "):
                drawn.run(y=np.zeros(4, np.float32), seed=1, **{name: 1e39})


def test_every_code_is_reached(request: pytest.FixtureRequest) -> None:
    """Runs last in this file; codes that other tests assert are found in their text."""
    here = Path(__file__).parent
    files = (
        "test_import_*",
        "test_aliasing",
        "test_lifetimes",
        "device/test_device_streams",
        "device/test_device_graph*",
    )
    others = "".join(p.read_text() for f in files for p in here.glob(f"{f}.py"))
    ran = {i.name.split("[")[0] for i in request.session.items if i.path == Path(__file__)}
    whole = {k for k in globals() if k.startswith("test_")}
    if (
        not whole <= ran
        or any(request.config.getoption(o) for o in ("--families", "--light", "--share"))
        or request.config.getoption("--touched") != "all"
    ):
        pytest.skip("only some of the tests of this file were asked for")
    missing = []
    for code in _core.refusal_codes:
        if code in REACHED or f'"{code}"' in others or code in UNREACHED:
            continue
        if code in BY_ROWS and not any(BY_ROWS[code](r) for r in _core.rows()):
            continue
        if code == "integer_division" and not any(op in ("div", "floor_divide") for op, _ in directions()):
            continue
        missing.append(code)
    assert not missing, f"no test reaches {missing}"
