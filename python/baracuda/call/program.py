"""Programs: steps of plans over slots of memory, checked once and replayed without Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from baracuda import _core
from baracuda.call.constants import read_tensors, write_tensors
from baracuda.call.program_values import Draw, Number, RandomState, Value
from baracuda.choose.plan import Plan, plan
from baracuda.choose.sku import SCHEMA, describe
from baracuda.describe.dims import Dim
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError, shown
from baracuda.describe.sizes import AnySize, SizeExpr

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Self

    from baracuda.choose.sku import PlanPreference
    from baracuda.describe.spec import Descriptor, Param


class ProgramBuilder:
    """Takes down the steps of a program.

    Example:
        >>> import baracuda as bc
        >>> n = bc.Dim("n", max=1024)
        >>> b = bc.ProgramBuilder()
        >>> x, y = b.input("x", (n, 64), "f32"), b.output("y", (n, 64), "f32")
        >>> t = b.add(bc.UnaryDescriptor("exp", (n, 64)), x=x)
        >>> b.add(bc.SoftmaxDescriptor("softmax", (n, 64)), x=t, y=y)
        >>> program = b.build()

    Args:
        device: Where all of it runs.
        preference: What the plans of descriptors must fulfil.
    """

    def __init__(self, device: Any = "cpu", preference: PlanPreference | None = None) -> None:
        self._device, self._preference = device, preference
        self._values: list[dict[str, Any]] = []
        self._scalars: list[dict[str, Any]] = []
        self._steps: list[dict[str, Any]] = []
        self._plans: dict[Any, tuple[int, Plan]] = {}
        self._constants: list[Any] = []
        self._dims: dict[str, int] = {}
        self._random: tuple[dict[str, Any], list[SizeExpr]] | None = None
        self._conditions: list[dict[str, Any]] = []

    def name_of(self, index: int) -> str:
        """The name of a value."""
        return str(self._values[index]["name"])

    def element_of(self, index: int) -> str:
        """The element of a value."""
        return str(self._values[index]["element"])

    def _value(self, name: str, storage: str, shape: Any, element: Any, role: str = "", strides: Any = None) -> Value:
        if any(v["name"] == name for v in self._values):
            raise InvalidProblemError(f"{name}: got the name twice, want one for each value.")
        sizes = [SizeExpr.of(s) for s in (shape if isinstance(shape, (tuple, list)) else (shape,))]
        self._know(sizes)
        kind = Element.coerce(element, name)
        entry = {"name": name, "storage": storage, "element": str(kind), "shape": [s.json() for s in sizes]}
        self._values.append(entry | ({"role": role} if role else {}))
        made = Value(self, len(self._values) - 1, kind, sizes, strides)
        if not made.contiguous:
            self._know(made.strides)
            self._values[-1]["strides"] = [s.json() for s in made.strides]
        return made

    def _know(self, sizes: Iterable[SizeExpr]) -> None:
        for size in sizes:
            for name, most in size.most.items():
                if self._dims.setdefault(name, most) != most:
                    raise InvalidProblemError(
                        f"bc.Dim({name!r}): got max={self._dims[name]} and max={most}, want one maximum per name."
                    )

    def input(self, name: str, shape: Any, element: Any = "f32", strides: Any = None) -> Value:
        """An argument that is read: its shape of ints, `bc.Dim`s and products of them; contiguous, or with these strides."""
        return self._value(name, "argument", shape, element, "in", strides)

    def inout(self, name: str, shape: Any, element: Any = "f32", strides: Any = None) -> Value:
        """An argument that is read and overwritten."""
        return self._value(name, "argument", shape, element, "in-out", strides)

    def output(self, name: str, shape: Any, element: Any = "f32", strides: Any = None) -> Value:
        """An argument that is written; `run` makes one where none is given, which is contiguous."""
        return self._value(name, "argument", shape, element, "out", strides)

    def scratch(self, shape: Any, element: Any = "f32", name: str = "") -> Value:
        """Memory that only the steps see; it is shared by values that are not alive at once."""
        return self._value(name or f"scratch{len(self._values)}", "scratch", shape, element)

    def constant(self, array: Any, name: str = "") -> Value:
        """A contiguous tensor that the program refers to: changes of its contents are seen by later runs."""
        held = _core.borrow(array)
        made = self._value(name or f"constant{len(self._values)}", "constant", held.shape, held.element)
        self._constants.append(array)
        return made

    def scalar(self, name: str, kind: str = "float", default: float | int | None = None) -> Number:
        """A number of `run`: kind is "float", "int" or "unsigned"."""
        if kind not in _core.scalar_kinds:
            raise InvalidProblemError(f"{name}: got kind {shown(kind)}, want one of {', '.join(_core.scalar_kinds)}.")
        self._scalars.append({"name": name, "kind": kind} | ({} if default is None else {"default": default}))
        return Number(len(self._scalars) - 1)

    def generator(self) -> RandomState:
        """The random state: `run` takes `generator=`, or `seed=` and `offset=`, which are scalars of the program.

        Steps take blocks as functions do that are called one after the other with one bc.Generator: the same numbers.
        """
        if self._random is not None:
            raise InvalidProblemError("generator: got a second one, want one for all steps.")
        seed, offset = self.scalar("seed", "unsigned"), self.scalar("offset", "unsigned", 0)
        self._random = {"seed": seed.index, "offset": offset.index}, []
        return RandomState(seed, self._random[1])

    def require(self, size: AnySize, want: str) -> None:
        """Has runs refused at whose sizes a sum of products of `bc.Dim`s is below 0.

        Args:
            size: What has to be at least 0.
            want: The same in words, which the refusal says.
        """
        self._know([made := SizeExpr.of(size)])
        self._conditions.append({"size": made.json(), "want": want})

    def _plan_of(self, what: Descriptor | Plan) -> tuple[int, Plan]:
        if what not in self._plans:
            made = what if isinstance(what, Plan) else plan(what, self._device, self._preference)
            self._plans[what] = (len(self._plans), made)
        return self._plans[what]

    def add(self, what: Descriptor | Plan, **arguments: Any) -> Any:
        """Appends a step: a plan, or the descriptor of one; equal descriptors share a plan.

        Args:
            what: A descriptor, or a plan for the program's device.
            **arguments: Tensors as values (lists of them for lists); numbers as numbers, scalars of the program, sizes, or
                values of one element, which are read when the kernel runs. Outputs that are left out become scratch.
                `generator`: the state that a step draws from, in the place of `seed` and `offset`.

        Returns:
            The output, or a tuple of them.
        """
        _, made = self._plan_of(what)
        if isinstance(state := arguments.get("generator"), RandomState):
            del arguments["generator"]
            arguments["seed"], arguments["offset"] = state.draw(made.descriptor)
        signature = made.signature
        known = {p.name for p in signature.present} | {s.name for s in signature.numbers}
        for name in arguments.keys() - known:
            raise InvalidProblemError(f"{name}: got an unknown argument, want some of {', '.join(sorted(known))}.")
        tensors: list[Value] = []
        outputs = []
        for p in signature.present:
            given: Any = arguments.get(p.name)
            if given is None:
                if p.role != 2 or p.variadic:
                    raise InvalidProblemError(f"{p.name}: got nothing, want a value.")
                given = self.scratch(p.shape, p.element)
            parts = list(given) if p.variadic else [given]
            self._check(p, parts)
            tensors += parts
            if p.role != 0:
                outputs.append(given)
        self.append(what, tensors, [arguments.get(s.name, s.default) for s in signature.numbers])
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def append(self, what: Descriptor | Plan, tensors: Iterable[Value], numbers: Iterable[Any]) -> None:
        """Appends a step with all that its plan takes, in the signature's order."""
        number, made = self._plan_of(what)
        given = [self._number(s.name, n) for s, n in zip(made.signature.numbers, numbers, strict=True)]
        step = {"plan": number, "tensors": [v.json() for v in tensors], "numbers": given}
        self._steps.append(step)

    def _check(self, p: Param, parts: list[Any]) -> None:
        if len(parts) != len(p.shapes):
            raise InvalidProblemError(f"{p.name}: got {len(parts)} values, want {len(p.shapes)}.")
        for value, shape in zip(parts, p.shapes, strict=True):
            if not isinstance(value, Value) or value._builder is not self:
                raise InvalidProblemError(f"{p.name}: got {shown(value)}, want a value of this program.")
            if value.element != p.element:
                raise InvalidProblemError(f"{p.name}: got {value.element}, want {p.element}.")
            fits = len(value.shape) == len(shape) and all(
                a == b or not (isinstance(a, int) and isinstance(b, int))
                for a, b in zip(value.shape, shape, strict=True)
            )
            if not fits:
                raise InvalidProblemError(f"{p.name}: got shape {value.shape}, want {shape}.")

    def _number(self, name: str, given: Any) -> Any:
        if isinstance(given, Number):
            self._know([given.added])
            return given.json()
        if isinstance(given, (Dim, SizeExpr)):
            self._know([size := SizeExpr.of(given)])
            return {"size": size.json()}
        if isinstance(given, Value):
            return {"view": given.json()}
        if isinstance(given, Draw):
            return {"draw": given.index}
        if given is None or isinstance(given, (bool, str)) or not hasattr(given, "__float__"):
            raise InvalidProblemError(
                f"{name}: got {shown(given)}, want a number, a scalar of the program, a size or a value."
            )
        if hasattr(given, "__index__"):
            return int(given.__index__())
        return float(given) if abs(float(given)) < float("inf") else str(float(given))

    def build(self) -> Program:
        """The program: sizes, elements and roles checked, scratch planned.

        Raises:
            InvalidProblemError: A step reads what nothing has written, writes what may only be read, or names sizes that no
                input has.
        """
        document = {
            "schema": SCHEMA, "kind": "program", "device": _device_name(self._device), "dims": self._dims, "values": self._values,
            "scalars": self._scalars, "steps": self._steps,
        }  # fmt: skip
        if self._random is not None:
            scalars, draws = self._random
            self._know(draws)
            document["random"] = scalars | {"draws": [d.json() for d in draws]}
        if self._conditions:
            document["conditions"] = self._conditions
        plans = tuple(made for _, made in self._plans.values())
        return Program._made(json.dumps(document), plans, tuple(self._constants))


def _device_name(device: Any) -> str:
    from baracuda.memory.device import name_of, place_of

    return name_of(place_of(device))


class Program(_core.RawProgram):
    """Steps of plans over slots of memory: immutable, shared between threads; made by `bc.ProgramBuilder`.

    `run` checks the arguments and replays the steps; scratch is planned and kept. Sizes may be `bc.Dim`s: one program serves
    every length up to the maximum.
    """

    __slots__ = ()

    @classmethod
    def _made(cls, document: str, plans: tuple[Plan, ...], constants: tuple[Any, ...]) -> Self:
        made: Self = _core.make_program(
            RandomProgram if "random" in json.loads(document) else cls, document, plans, constants
        )
        return made

    def _result(self, shape: tuple[int, ...], element: int, like: Any) -> Any:
        """Memory for a result that was not given."""
        import numpy as np

        from baracuda.memory.results import allocated, maker

        kind = np.empty(0) if like is None else like
        return allocated(*maker(kind, shape, Element(element), self.plans[0].device if self.plans else "cpu"))

    def to_bytes(self) -> bytes:
        """The program as JSON that any host of the engine reads; constants are named, not written."""
        return bytes(_core.program_document(self, [json.dumps(describe(p.descriptor)) for p in self.plans]))

    @classmethod
    def from_bytes(cls, data: bytes, constants: Iterable[Any] = ()) -> Self:
        """The program that `to_bytes` described, with these constants in their order.

        Raises:
            InvalidProblemError: The data are no program's, or the constants are others.
            UnsupportedError: A kernel is not here.
        """
        document = _core.read_document(data)
        plans = tuple(Plan.from_bytes(json.dumps(p).encode()) for p in json.loads(document).get("plans", ()))
        return cls._made(document.decode(), plans, tuple(constants))

    def save(self, path: str | Path) -> None:
        """Writes a folder: program.json, and the constants in the format of safetensors."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "program.json").write_bytes(self.to_bytes())
        write_tensors(folder / "constants.safetensors", self.named_constants())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Reads what `save` wrote."""
        folder = Path(path)
        data = (folder / "program.json").read_bytes()
        document = json.loads(data)
        wanted = [
            (v["name"], (Element.coerce(v["element"]), tuple(v["shape"])))
            for v in document["values"]
            if v["storage"] == "constant"
        ]
        return cls.from_bytes(data, read_tensors(folder / "constants.safetensors", wanted, str(document["device"])))

    def named_constants(self) -> dict[str, Any]:
        """The captured tensors by name."""
        values = json.loads(self.to_bytes())["values"]
        return dict(zip([v["name"] for v in values if v["storage"] == "constant"], self.constants, strict=True))

    @property
    def memory(self) -> Mapping[str, int]:
        """Bytes of scratch: as planned, and with memory for each value."""
        return {"scratch": self.scratch_bytes, "unplanned": self.unplanned_bytes}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_bytes, (self.to_bytes(), self.constants)

    def __repr__(self) -> str:
        return f"<Program ({', '.join(self.arguments)}), {self.launches} steps, {self.scratch_bytes} bytes of scratch>"


class RandomProgram(Program):
    """A program that draws random numbers: each run takes all its blocks at once from a generator."""

    __slots__ = ()

    def run(self, *arguments: Any, generator: Any = None, **named: Any) -> Any:
        """Checks the arguments, runs all steps and returns the output(s).

        Args:
            *arguments: Tensors and scalars, in the order of `arguments`.
            generator: A bc.Generator; by default the one that `bc.manual_seed` seeds. With `seed=`, and `offset=`, none.
            **named: The same by name, and `stream`.
        """
        from baracuda.memory.generator import chosen

        if "seed" in named or len(arguments) > self.arguments.index("seed"):
            if generator is not None:
                raise InvalidProblemError("Program: generator: got one beside a seed, want one of both.")
            return super().run(*arguments, **named)
        run, blocks = super().run, self.blocks(*arguments, **named)
        return chosen(generator).draw(blocks, lambda seed, offset: run(*arguments, seed=seed, offset=offset, **named))
