"""What this installation is, which kernels it has, and whether they keep their promises."""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
import threading
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from baracuda import __version__, _index
from baracuda.call.op import NotDifferentiable
from baracuda.choose.capability import capabilities
from baracuda.choose.plan import plan
from baracuda.choose.question import STATES, asked_place, check_op, steps_of
from baracuda.choose.sku import DIRECTIONS, SCHEMA, rows
from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError, InvalidProblemError
from baracuda.memory.device import Device

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from baracuda.prove.verify import Report


def _info(args: argparse.Namespace) -> int:
    from baracuda import info

    print(json.dumps(info.collect(), indent=2) if args.json else info.text())
    return 0


def _capabilities(args: argparse.Namespace) -> int:
    given = _pairs("--attribute", args.attribute)
    found = capabilities(
        args.op, direction=args.direction, element=args.element, index_element=args.index_element, device=args.device,
        rank=args.rank, alignment=args.alignment, state=args.state,
        attributes={name: _parse_value(value) for name, value in given.items()},
    )  # fmt: skip
    print(found.to_json() if args.json else found.to_markdown())
    return 0 if found else 1


def _parse_value(text: str) -> Any:
    """A descriptor field from the command line: a number, a shape such as 8x128, None, or a word."""
    if text in ("None", "none"):
        return None
    if text in ("True", "False"):
        return text == "True"
    sizes = text.strip("()").replace(",", "x").split("x")
    if len(sizes) > 1 and all(s.strip().lstrip("-").isdigit() or not s.strip() for s in sizes):
        return tuple(int(s) for s in sizes if s.strip())
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _pairs(what: str, entries: Iterable[str]) -> dict[str, str]:
    """What was given as NAME=VALUE."""
    found: dict[str, str] = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        if not equals or not name or name in found:
            raise InvalidProblemError(
                f"{what}: got {entry!r}, want NAME=VALUE, each name once: input_shape=8x128, element=bf16."
            )
        found[name] = value
    return found


def _explain_steps(args: argparse.Namespace) -> int:
    """A function of several plans: its steps, of which each has kernels to choose from."""
    ops = list(dict.fromkeys(op for op, _ in steps_of(args.op)))
    if args.fields:
        raise InvalidProblemError(
            f"explain: got fields for {args.op}, want none: it is made of {', '.join(ops)}. Explain one of these."
        )
    found = capabilities(args.op, device=args.device)
    print(found.to_json() if args.json else f"{args.op} is made of {', '.join(ops)}:\n{found}")
    return 0


def _explain(args: argparse.Namespace) -> int:
    args.op = check_op(args.op)
    if args.op not in _index.OPS:
        return _explain_steps(args)
    module = import_module(_index.OPS[args.op])
    op = next(o for o in module.OPS if o.name == args.op)
    cls = op.backward if args.direction == "backward" else op.forward
    if isinstance(cls, NotDifferentiable):
        raise InvalidProblemError(f"explain: --direction backward: {args.op} has no gradient: {cls.why}")
    values = {name: _parse_value(value) for name, value in _pairs("FIELD=VALUE", args.fields).items()}
    if "kind" in cls.__dataclass_fields__:
        values.setdefault("kind", args.op)
    desc = cls(**values)
    if args.device.partition(":")[2] and asked_place(args.device)[2] >= 0:  # an architecture, which has no plans
        found = desc.plan_class.query(desc, args.device)
        print(f"{desc}\n{found}")
        return 0 if found else 1
    made = plan(desc, args.device)
    print(
        made.explain().to_json()
        if args.json
        else f"{made.explain()}\n\nrun{made.signature}\n{made.precision_guarantee}"
    )
    return 0


# What `check` takes of each row: a look at a first few cases, or at more of them with `--all`.
GLANCE: dict[str, Any] = {
    "most_elements": 1 << 11, "most_cases": 6, "stretched": 0, "batched": 0, "layouts": ("contiguous", "sliced")
}  # fmt: skip
QUICK: dict[str, Any] = {"most_elements": 1 << 13, "stretched": 2, "batched": 1}

SILENCE = 2.0  # seconds without a word after which `verify` and `check` say what they are at

Question = tuple[str, str, Element]


def _declared(ops: Iterable[str], elements: Sequence[str] = ()) -> Iterator[Question]:
    """Op, direction and element, as the table has them; of all elements by default."""
    elements = [str(Element.coerce(e, "--element")) for e in elements]
    taken: dict[tuple[str, str], set[int]] = {}
    for r in rows():
        taken.setdefault((r["op"], r["direction"]), set()).update(r["elements"])
    for name in ops:
        for direction in DIRECTIONS:
            for element in map(Element, sorted(taken.get((name, direction), ()))):
                if not elements or str(element) in elements:
                    yield name, direction, element


def _once(questions: Iterable[Question]) -> Iterator[Question]:
    """Each op and direction with one element: f32 where it takes that."""
    found: dict[tuple[str, str], Element] = {}
    for name, direction, element in questions:
        if element is Element.F32 or (name, direction) not in found:
            found[name, direction] = element
    yield from ((*key, element) for key, element in found.items())


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """Says on stderr what is being done whenever two seconds have passed without a word; calls begin the next thing."""
    state: list[Any] = [0, ""]
    ended, spoken = threading.Event(), threading.Event()

    def watch() -> None:
        while not ended.is_set():
            spoken.clear()
            if not spoken.wait(SILENCE) and not ended.is_set():
                print(f"... {state[0]} of {total}: {state[1]}", file=sys.stderr, flush=True)

    def begin(what: str) -> None:
        state[:] = [state[0] + 1, what]
        spoken.set()

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield begin
    finally:
        ended.set()
        spoken.set()


def _reports(
    questions: Iterable[Question], seed: int, device: str = "cpu", *, silent: bool = False, **options: Any
) -> list[Report]:
    from baracuda import _core
    from baracuda.prove.verify import candidates, verify

    _core.set_thread_pacing(False)  # what is proven holds for teams of threads, on busy machines, too
    out = []
    asked = [(*q, variant) for q in questions for variant in candidates(*q, device)]
    with _progress(len(asked)) as begin:
        for name, direction, element, variant in asked:
            begin(f"{name}.{direction} {element} {variant}")
            try:
                report = verify(name, direction, element, variant, seed=seed, device=device, **options)
            except ModuleNotFoundError as lacking:
                print(f"left    {name}.{direction}: its reference needs {lacking.name}", file=sys.stderr, flush=True)
                continue
            if report.cases:
                out.append(report)
                if not silent:
                    print(_verdict(report), flush=True)
    return out


def _nothing_checked(device: str, ops: Sequence[str], elements: Sequence[str]) -> int:
    """Says why there was nothing to check, which is an error."""
    here = Device(device)
    asked = f"{', '.join(ops) or 'all ops'}, {', '.join(elements) or 'all elements'}, {device}"
    why = here.reason or "no kernel of these ops takes these elements on this device"
    print(f"nothing was checked of {asked}: {why}", file=sys.stderr)
    return 2


def _verdict(report: Report) -> str:
    state = "kept  " if report.ok else "BROKEN"
    lines = [
        f"{state} {report.sku:<55} worst error {report.worst_error:6.3f} of the promise ({report.promise}), {report.cases} cases"
    ]
    return "\n".join(lines + [f"       {p}" for p in report.problems[:5]])


def _verify(args: argparse.Namespace) -> int:
    steps = [op for name in args.ops for op, _ in steps_of(check_op(name))]
    Device(args.device)  # a name that is none is refused before anything runs
    questions = _declared(list(dict.fromkeys(steps)) or sorted(_index.OPS), args.element)
    reports = _reports(questions, args.seed, args.device, silent=args.json)
    broken = [r for r in reports if not r.ok]
    if not reports:
        return _nothing_checked(args.device, args.ops, args.element)
    if args.json:
        print(_as_json(reports, args))
    else:
        print(f"{len(reports) - len(broken)} SKUs keep their promise, {len(broken)} do not")
    return 1 if broken else 0


def _as_json(reports: Sequence[Report], args: argparse.Namespace) -> str:
    """What was found, for tools; an error that is infinite or no number is a string, which JSON has no other word for."""
    found = [asdict(r) | {"ok": r.ok} for r in reports]
    for entry in found:
        if not math.isfinite(entry["worst_error"]):
            entry["worst_error"] = str(entry["worst_error"])
    asked = {"version": __version__, "device": args.device, "seed": args.seed}
    return json.dumps({"schema": SCHEMA, "kind": "verify"} | asked | {"reports": found}, indent=1)


def _check(args: argparse.Namespace) -> int:
    """A self-test of an installation: a glance at every op and direction, or every SKU for every element."""
    from baracuda import info

    questions = list(_declared(sorted(_index.OPS), args.element))
    print(info.text(), flush=True)
    reports = _reports(questions, args.seed, **QUICK) if args.all else _reports(_once(questions), args.seed, **GLANCE)
    broken = [r for r in reports if not r.ok]
    if not reports:
        return _nothing_checked("cpu", (), args.element)
    print(f"{'OK' if not broken else 'FAILED'}: {len(reports)} SKUs checked, {len(broken)} broken")
    return 1 if broken else 0


def _config(args: argparse.Namespace) -> int:
    from baracuda import config

    asked = [text for wanted, text in ((args.cflags, config.cflags()), (args.libs, config.libs())) if wanted]
    print(" ".join(asked) or f"include: {config.get_include()}\nlibrary: {config.get_library()}")
    return 0


def _bench(args: argparse.Namespace) -> int:
    from baracuda.bench import main as bench_main

    return bench_main(args.options)


def _chat(args: argparse.Namespace) -> int:
    from baracuda.llm.cli import main as chat_main

    return chat_main(args.options)


def _onnx(args: argparse.Namespace) -> int:
    try:
        from baracuda.onnx.command import main as onnx_main
    except ModuleNotFoundError as error:
        if error.name != "onnx":
            raise
        print(error, file=sys.stderr)
        return 2
    return onnx_main(args.options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=_program(), description=__doc__)
    parser.add_argument("--version", action="version", version=f"baracuda {__version__}", help="print the version")
    sub = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Any, text: str, *, own_options: bool = False) -> argparse.ArgumentParser:
        p = sub.add_parser(name, help=text, description=text, add_help=not own_options)
        p.set_defaults(run=run, own_options=own_options)
        return p

    p = command("info", _info, "what this installation is and can do")
    p.add_argument("--json", action="store_true", help="as one document, for tools")
    _questions(command)
    _proofs(command)
    p = command("config", _config, "where the C interface is")
    p.add_argument("--cflags", action="store_true", help="what a compiler needs")
    p.add_argument("--libs", action="store_true", help="what a linker needs")
    text = "a language model of a GGUF file answers (see chat --help)"
    command("chat", _chat, text, own_options=True)
    command("bench", _bench, "measure against peers, side by side in one process (see bench --help)", own_options=True)
    text = "run, look at and time networks of ONNX files (see onnx --help)"
    command("onnx", _onnx, text, own_options=True)
    return parser


def _program() -> str:
    """What the command was called as."""
    name = Path(sys.argv[0]).name
    return "python -m baracuda" if name in ("", "-c", "__main__.py") else name


def _questions(command: Callable[..., argparse.ArgumentParser]) -> None:
    p = command("capabilities", _capabilities, "the SKU table, as questions are answered; exit status 1 for no row")
    p.add_argument("op", nargs="?", help="an op or a function, also as ONNX or aten calls it; all by default")
    p.add_argument("--element", help="the tensors' element, such as f32, bf16 or i64")
    p.add_argument("--index-element", help="the second element: of indices, or what else the op has besides")
    p.add_argument("--device", help="one that is here, or an architecture: cpu:v3, cuda:sm_90, metal:apple9")
    p.add_argument("--rank", type=int, help="how many dimensions the tensors have")
    p.add_argument("--alignment", type=int, default=0, metavar="BYTES", help="bytes that addresses are multiples of")
    p.add_argument(
        "--attribute", action="append", default=[], metavar="NAME=VALUE", help="of the op, such as causal=1; repeatable"
    )
    p.add_argument("--direction", choices=DIRECTIONS, help="the op itself or its gradient; both by default")
    p.add_argument("--state", choices=STATES, help="rows that are at least this far")
    p.add_argument("--json", action="store_true", help="question and rows as one document, for tools")
    text = "which kernel a problem gets and why, e.g. explain swiglu input_shape=8x4096 element=bf16"
    p = command("explain", _explain, text)
    p.add_argument("op", metavar="OP", help="an op or a function")
    p.add_argument(
        "fields", nargs="*", metavar="FIELD=VALUE", help="of its descriptor: shapes as 8x128, None, numbers, words"
    )
    p.add_argument(
        "--direction", choices=DIRECTIONS, default=DIRECTIONS[0], help="the op itself (default) or its gradient"
    )
    p.add_argument("--device", default="cpu", help="one that is here (default: cpu), or an architecture: cuda:sm_90")
    p.add_argument("--json", action="store_true", help="as one document, for tools")


def _proofs(command: Callable[..., argparse.ArgumentParser]) -> None:
    p = command(
        "verify",
        _verify,
        "re-prove the promises of SKUs on this machine; exit status 1 for a broken one, 2 for none to check",
    )
    p.add_argument("ops", nargs="*", metavar="OP", help="ops or functions; all by default")
    p.add_argument("--element", action="append", default=[], help="of this element only; repeatable")
    p.add_argument("--device", default="cpu", help="cpu (default), cuda, cuda:1 or metal")
    p.add_argument("--seed", type=int, default=0, help="of the values (default: 0)")
    p.add_argument("--json", action="store_true", help="what was found as one document, when all of it is")
    p = command("check", _check, "a self-test of this installation; some seconds")
    p.add_argument("--all", action="store_true", help="every SKU and element; some minutes")
    p.add_argument("--element", action="append", default=[], help="of this element only; repeatable")
    p.add_argument("--seed", type=int, default=0, help="of the values (default: 0)")


def main() -> int:
    """Runs the command line; the result is the exit status."""
    try:
        try:
            return _run()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


def _run() -> int:
    parser = _parser()
    args, options = parser.parse_known_args()
    if options and not args.own_options:
        parser.error(f"unrecognized arguments: {' '.join(options)}")
    args.options = options
    try:
        status: int = args.run(args)
    except BaracudaError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    return status


if __name__ == "__main__":
    sys.exit(main())
