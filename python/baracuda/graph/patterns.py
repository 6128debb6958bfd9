"""Launches that one kernel does together: a residual with its norm, what is behind a product or a convolution."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from baracuda.choose.plan import plan
from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError
from baracuda.graph.appends import merge_appends
from baracuda.graph.convolutions import behind_convolution
from baracuda.graph.nodes import Launch, Slot, View

if TYPE_CHECKING:
    from baracuda.describe.spec import Descriptor
    from baracuda.graph.graph import ComputeGraph
    from baracuda.ops.matmul.matmul import MatmulDescriptor

# Of these the kernel gives the bits of the launches one after the other: halves would be rounded less often.
ELEMENTS = (Element.F32, Element.F64)


@dataclass(frozen=True, slots=True)
class Made:
    """One launch for two.

    Attributes:
        descriptor: Of its kernel.
        tensors: By the names of its parameters.
        numbers: Likewise.
        first: Whether it runs where the first one did, and so makes what that made; else where the second one did.
    """

    descriptor: Descriptor
    tensors: dict[str, View]
    numbers: dict[str, Any]
    first: bool


def merge_patterns(launches: list[Launch], results: list[Any], graph: ComputeGraph) -> list[Launch]:
    """Has pairs of launches, of which the second reads what the first makes, run as one kernel where there is one.

    And what puts a token into a key-value cache.
    """
    if graph.device != "cpu":
        return launches
    handed_out = {v.slot for v in results if isinstance(v, View)}
    now: list[Launch | None] = list(launches)
    writers: dict[Slot, list[int]] = {}
    readers: dict[Slot, list[int]] = {}
    for i, launch in enumerate(launches):
        for slot in {v.slot for v in launch.writes}:
            writers.setdefault(slot, []).append(i)
        for slot in {v.slot for v in launch.reads}:
            readers.setdefault(slot, []).append(i)

    def pair(i: int, second: Launch, at: View) -> bool:
        """Makes one launch of the second and of what makes one of its tensors, if it can be."""
        slot = at.slot
        j = writers[slot][0] if slot.kind == "temporary" and len(writers.get(slot, ())) == 1 else i
        first = now[j]
        if first is None or j >= i or not _plain(first, graph) or first.writes[0] != at:
            return False
        alone = readers[slot] == [i] and slot not in handed_out
        made = _residual_norm(first, second, at) or (_alone_behind(first, second, at) if alone else None)
        if made is None:
            return False
        moved = second.reads if made.first else first.reads
        if any(j <= k < i for v in moved if v.slot is not slot for k in writers.get(v.slot, ())):
            return False  # what is written in between is not there yet, or not as it was
        found = _launch(made, (*first.nodes, *second.nodes), graph.device)
        if found is None:
            return False
        now[j], now[i] = (found, None) if made.first else (None, found)
        for v in found.writes:
            writers[v.slot] = [j if made.first else i]
        for v in found.reads:
            readers[v.slot] = sorted({*readers.get(v.slot, ()), j if made.first else i} - {i if made.first else j})
        return True

    for i, launch in enumerate(launches):
        if _plain(launch, graph):
            any(pair(i, launch, v) for v in launch.reads)
    return merge_appends([launch for launch in now if launch is not None], results, graph.device)


def _plain(launch: Launch, graph: ComputeGraph) -> bool:
    """Whether it is a function's only launch, whose result is new memory, of elements that are meant."""
    node = graph.nodes[launch.node] if launch.node >= 0 else None
    if node is None or node.function is None or node.out is not None or len(node.launches) != 1:
        return False
    views = (*launch.reads, *launch.writes)
    return all(v.whole and v.slot.kind == "temporary" for v in launch.writes) and all(
        v.element is views[0].element and v.element in ELEMENTS for v in views
    )


def _named(launch: Launch) -> tuple[dict[str, View], dict[str, Any]]:
    """Its tensors and numbers by the names of the parameters."""
    tensors = {p.name: views[0] for p, views in launch.by_param() if not p.variadic}
    names = (s.name for s in launch.plan.signature.numbers)
    return tensors, dict(zip(names, launch.numbers, strict=True))


def _added(launch: Launch) -> tuple[View, View] | None:
    """The two that a launch adds, if that is all it does."""
    d = launch.plan.descriptor
    tensors, numbers = _named(launch)
    if d.op != "add" or d.direction != "forward" or numbers != {"alpha": 1.0} or set(tensors) != {"a", "b", "y"}:
        return None
    return tensors["a"], tensors["b"]


def _residual_norm(first: Launch, second: Launch, at: View) -> Made | None:
    """rms_norm(x + residual)."""
    from baracuda.ops.norm.norm import AddRmsNormDescriptor, RmsNormDescriptor

    d, added = second.plan.descriptor, _added(first)
    tensors, numbers = _named(second)
    if not isinstance(d, RmsNormDescriptor) or added is None or tensors["x"] != at:
        return None
    if any(v.shape != at.shape for v in added):
        return None
    desc = AddRmsNormDescriptor(
        d.input_shape, d.normalized_shape, d.element, weight=d.weight, save=d.save, weight_offset=d.weight_offset
    )
    return Made(desc, tensors | {"x": added[0], "residual": added[1], "sum": at}, numbers, first=True)


def _activation(d: Any) -> Any:
    """What a product's kernel calls an elementwise one; None where it does not know it."""
    from baracuda.ops.matmul.matmul import Activation
    from baracuda.ops.unary.unary import Approximate, GeluDescriptor, UnaryDescriptor

    if isinstance(d, GeluDescriptor):
        return Activation.GELU_TANH if d.approximate is Approximate.TANH else Activation.GELU
    known = {"relu": Activation.RELU, "silu": Activation.SILU}
    return known.get(str(d.kind)) if isinstance(d, UnaryDescriptor) else None


def _alone_behind(first: Launch, second: Launch, at: View) -> Made | None:
    """What may come behind a product or a convolution whose result nothing else reads."""
    found = behind_convolution(first, second, at, _named(first), _named(second))
    return Made(*found, first=False) if found else _behind(first, second, at)


def _behind(first: Launch, second: Launch, at: View) -> Made | None:
    """What may come behind the sums of a product."""
    from baracuda.ops.matmul.matmul import Activation, MatmulDescriptor

    product = first.plan.descriptor
    if not isinstance(product, MatmulDescriptor) or product.c_shape is not None:
        return None
    if product.activation is not Activation.NONE or second.plan.descriptor.direction != "forward":
        return None
    if _named(first)[1] != {"alpha": 1.0, "beta": 1.0}:
        return None
    return _gated(product, first, second, at) or _epilogue(product, first, second, at)


def _gated(product: MatmulDescriptor, first: Launch, second: Launch, at: View) -> Made | None:
    """The product value * g(gate) of the halves of a @ b, of as few rows as its kernel takes."""
    from baracuda.ops.gated.gated import GatedActivationDescriptor
    from baracuda.ops.matmul.gated_matmul import Gate, GatedMatmulDescriptor

    d = second.plan.descriptor
    if not isinstance(d, GatedActivationDescriptor) or d.split_dim != len(d.input_shape) - 1:
        return None
    if product.bias or product.batch_shape is not None or len(product.b_shape) != 2 or d.input_shape != at.shape:
        return None
    gate, tensors = Gate(str(d.kind)), _named(first)[0]
    desc = GatedMatmulDescriptor(product.a_shape, product.b_shape, product.element, gate, d.gate_half)
    return Made(desc, tensors | {"out": _named(second)[0]["y"]}, {}, first=False)


def _epilogue(product: MatmulDescriptor, first: Launch, second: Launch, at: View) -> Made | None:
    """activation(a @ b + bias)."""
    d = second.plan.descriptor
    tensors, numbers = _named(first)
    own, given = _named(second)
    activation = _activation(d)
    if activation is not None and set(own) == {"x", "y"} and not given:
        return Made(replace(product, activation=activation), tensors | {"out": own["y"]}, numbers, first=False)
    added = _added(second)
    if added is None or product.bias:
        return None
    bias = added[1] if added[0] == at else added[0]
    if bias.shape != at.shape[-1:] or own["y"].shape != at.shape or bias == at:
        return None
    return Made(replace(product, bias=True), tensors | {"bias": bias, "out": own["y"]}, numbers, first=False)


def _launch(made: Made, nodes: tuple[int, ...], device: str) -> Launch | None:
    """None where there is no such kernel."""
    try:
        chosen = plan(made.descriptor, device)
    except BaracudaError:
        return None
    present, numbers = chosen.signature.present, chosen.signature.numbers
    if {p.name for p in present} != set(made.tensors) or {s.name for s in numbers} != set(made.numbers):
        return None
    if any(tuple(p.shapes[0]) != made.tensors[p.name].shape for p in present):
        return None
    tensors, given = (made.tensors[p.name] for p in present), (made.numbers[s.name] for s in numbers)
    return Launch(chosen, tuple(tensors), tuple(given), nodes[-1], nodes[:-1])
