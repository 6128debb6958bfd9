"""`python -m baracuda onnx info | run | bench model.onnx`."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import baracuda as bc
from baracuda import InvalidProblemError
from baracuda.onnx.compiled import CompiledModel
from baracuda.onnx.model import Model, load
from baracuda.onnx.ports import Port, open_names


def main(argv: Sequence[str]) -> int:
    """Runs the command line; the result is the exit status."""
    args = _parser().parse_args(list(argv))
    status: int = args.run(args)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="baracuda onnx", description="Networks of ONNX files: what they are, runs, and times."
    )
    sub = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        p = sub.add_parser(name, help=text, description=text)
        p.set_defaults(run=run)
        p.add_argument("model", help="the .onnx file")
        return p

    p = command("info", _info, "inputs, outputs, operators and what is missing; exit status 1 where something is")
    p.add_argument("--json", action="store_true", help="as one document, for tools")
    p = command("run", _run, "run once, and say what came out; inputs that are not given are random")
    _given(p)
    p.add_argument("--eager", action="store_true", help="function by function, without compiling")
    p.add_argument("--output", metavar="FILE.npz", help="write all outputs")
    p = command("bench", _bench, "time runs of the compiled network, and of ONNX Runtime's where that is installed")
    _given(p)
    p.add_argument("--runs", type=int, default=50, help="runs of each (default: 50); least and median count")
    p.add_argument("--threads", type=int, help="threads of each; by default as many as baracuda has")
    return parser


def _given(p: argparse.ArgumentParser) -> None:
    p.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy", help="an input's array; repeatable")
    p.add_argument(
        "--dim",
        action="append",
        default=[],
        metavar="NAME=SIZE",
        help="a size that the file leaves open (default: 1); repeatable",
    )
    p.add_argument(
        "--constant",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an input that is a number, known when loading; repeatable",
    )
    p.add_argument("--seed", type=int, default=0, help="of random inputs (default: 0)")


def _pairs(what: str, entries: Sequence[str]) -> dict[str, str]:
    found = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        if not equals or not name:
            raise InvalidProblemError(f"{what}: got {entry!r}, want NAME=VALUE.")
        found[name] = value
    return found


def _number(what: str, text: str) -> Any:
    try:
        return json.loads(text.lower() if text in ("True", "False") else text)
    except ValueError:
        raise InvalidProblemError(f"{what}: got {text!r}, want a number, or a list such as [1,2].") from None


def _info(args: argparse.Namespace) -> int:
    model = load(args.model)
    operators = Counter(node.operator for node in model.all_nodes())
    if args.json:
        about = {
            "inputs": [vars_of(p) for p in model.inputs], "outputs": [vars_of(p) for p in model.outputs],
            "opset": model.opset, "weight_bytes": model.weight_bytes, "operators": dict(operators), "missing": model.missing,
        }  # fmt: skip
        print(json.dumps(about, indent=1))
        return 1 if model.missing else 0
    for kind, ports in (("input", model.inputs), ("output", model.outputs)):
        for p in ports:
            print(f"{kind:<9} {p}")
    print(f"opset     {model.opset}")
    print(f"weights   {model.weight_bytes:,} bytes")
    print(f"nodes     {sum(operators.values())}: {', '.join(f'{op} {n}' for op, n in operators.most_common())}")
    for op, nodes in model.missing.items():
        print(f"missing   {op}: {', '.join(nodes)}")
    return 1 if model.missing else 0


def vars_of(port: Port) -> dict[str, Any]:
    """A port as a document."""
    return {
        "name": port.name,
        "element": port.element,
        "shape": None if port.shape is None else list(map(str, port.shape)),
    }


def _loaded(args: argparse.Namespace) -> tuple[Model, dict[str, Any]]:
    """The model with its sizes, and arrays of its inputs."""
    constants = {name: _number("--constant", text) for name, text in _pairs("--constant", args.constant).items()}
    plain = load(args.model, constants=constants)
    given = {name: _array(path) for name, path in _pairs("--input", args.input).items()}
    for name in given:
        if name not in [p.name for p in plain.inputs]:
            raise InvalidProblemError(f"--input: got {name!r}, want some of {'; '.join(map(str, plain.inputs))}.")
    sizes = {name: _number("--dim", text) for name, text in _pairs("--dim", args.dim).items()}
    for p in plain.inputs:
        if p.name in given:
            for size, n in zip(p.shape or (), given[p.name].shape, strict=False):
                if isinstance(size, str):
                    sizes.setdefault(size, n)
    defaults = {name: 1 for name in open_names(plain.inputs) if name not in sizes}
    if defaults:
        print(f"sizes not given are 1: {', '.join(defaults)} (--dim {next(iter(defaults))}=N)", file=sys.stderr)
    model = load(args.model, dims=sizes | defaults, constants=constants)
    rng = np.random.default_rng(args.seed)
    return model, {p.name: given[p.name] if p.name in given else _random(p, rng) for p in model.inputs}


def _array(path: str) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InvalidProblemError(f"--input: {path}: {error}.") from None


def _random(port: Port, rng: np.random.Generator) -> Any:
    """Normal numbers, or zeros and ones where numbers are whole: indices of anything."""
    if port.shape is None or not port.element:
        raise InvalidProblemError(
            f"input {port.name!r}: got no shape or element in the file, want --input {port.name}=FILE.npy."
        )
    element = bc.Element.coerce(port.element)
    if element.is_float:
        return rng.standard_normal(port.shape, np.float32).astype(element.numpy)  # type: ignore[arg-type]
    return rng.integers(0, 2, port.shape).astype(element.numpy)  # type: ignore[arg-type]


def _run(args: argparse.Namespace) -> int:
    model, feeds = _loaded(args)
    runner: Model | CompiledModel = model if args.eager else model.compile()
    start = perf_counter()
    found = runner.run(feeds)
    took = perf_counter() - start
    for name, y in found.items():
        print(f"{name}: {_described(y)}")
    print(f"{took * 1e3:.3g} ms, the first run", file=sys.stderr)
    if args.output:
        np.savez(args.output, allow_pickle=False, **found)
    return 0


def _described(y: Any) -> str:
    if isinstance(y, list):
        return f"{len(y)} values: " + "; ".join(map(_described, y[:4]))
    if not y.size or y.dtype.kind not in "biuf":
        return f"{y.dtype} {list(y.shape)}"
    wide = y.astype(np.float64)
    return f"{y.dtype} {list(y.shape)}, from {wide.min():.6g} to {wide.max():.6g}, mean {wide.mean():.6g}"


def _bench(args: argparse.Namespace) -> int:
    if args.runs < 1:
        raise InvalidProblemError(f"--runs: got {args.runs}, want 1 or more.")
    if args.threads:
        bc.set_num_threads(args.threads)
    model, feeds = _loaded(args)
    start = perf_counter()
    compiled = model.compile(frozen=True)
    print(
        f"compiled in {perf_counter() - start:.2f} s: {compiled.plan.launches} launches, {bc.get_num_threads()} threads"
    )
    sides: dict[str, Callable[[], Any]] = {"baracuda": lambda: compiled.run(feeds)}
    peer = _peer(args, feeds)
    if peer is not None:
        sides["onnxruntime"] = peer
        print(
            f"largest difference: {_difference(list(compiled.run(feeds).values()), peer()):.3g} of the largest number"
        )
    times = _timed(sides, args.runs)
    for name, found in times.items():
        print(f"{name:<12} least {min(found) * 1e3:.3f} ms, median {median(found) * 1e3:.3f} ms")
    if peer is not None:
        ratio = min(times["onnxruntime"]) / min(times["baracuda"])
        print(f"ratio        {ratio:.2f} (its least time by ours: above 1 baracuda is faster)")
    return 0


def _peer(args: argparse.Namespace, feeds: Mapping[str, Any]) -> Callable[[], Any] | None:
    """A run of ONNX Runtime's; None where it is not installed."""
    try:
        import onnxruntime
    except ModuleNotFoundError:
        print("onnxruntime is not installed: no peer", file=sys.stderr)
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = bc.get_num_threads(), 3
    session = onnxruntime.InferenceSession(args.model, options, providers=["CPUExecutionProvider"])
    kinds = {i.name: i.type for i in session.get_inputs()}
    constants = {name: _number("--constant", text) for name, text in _pairs("--constant", args.constant).items()}
    known = {
        name: np.asarray(v, np.float32 if kinds.get(name) == "tensor(float)" else None) for name, v in constants.items()
    }
    return lambda: session.run(None, {**feeds, **known})


def _difference(ours: Sequence[Any], theirs: Sequence[Any]) -> float:
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        worst = max(worst, float(np.abs(a - b).max(initial=0) / max(np.abs(b).max(initial=0), 1e-30)))
    return worst


def _timed(sides: Mapping[str, Callable[[], Any]], runs: int) -> dict[str, list[float]]:
    """Seconds of each run, one side after the other in turns of ten."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for fn in sides.values():
        fn()
    while len(found["baracuda"]) < runs:
        for name, fn in sides.items():
            for _ in range(min(10, runs - len(found[name]))):
                start = perf_counter()
                fn()
                found[name].append(perf_counter() - start)
    return found
