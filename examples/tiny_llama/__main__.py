"""Trains a small Llama and generates text: `python examples/tiny_llama`.

The model is written with bc.functional and traced once: a training step (loss, gradients, AdamW) is one compiled graph, the
next token of a text another. They run over NumPy arrays on the CPU, over bc.Tensor on a GPU (`--device cuda`).
`--quantize q4_k` writes the trained weights as a GGUF file of 4-bit blocks and decodes with those.
"""

from __future__ import annotations

import argparse
import sys
from math import prod
from pathlib import Path
from time import perf_counter

import beside_torch
import quantized
from generation import Generator
from model import Config
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from training import Batches, Trainer, standard_library

import baracuda as bc

console = Console(width=None if sys.stdout.isatty() else 120)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    default = Config()
    parser.add_argument("--text", type=Path, help="train on this file instead of Python's standard library")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...")
    parser.add_argument("--threads", type=int, default=0, help="0: as many as the machine has")
    parser.add_argument("--prompt", default="def ")
    parser.add_argument("--generate", type=int, default=200, help="bytes to generate")
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--resume", type=Path, help="continue from this checkpoint")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder for loss.png and checkpoint"
    )
    parser.add_argument(
        "--picture",
        action="store_true",
        help="write the graphs, as they were traced and as they run, to the same folder",
    )
    parser.add_argument(
        "--quantize",
        choices=[f.value for f in bc.BlockFormat],
        help="then quantize the weights to this GGUF format, save them, decode with them and say what it costs and gains",
    )
    for name in ("d_model", "layers", "heads", "kv_heads", "context"):
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=getattr(default, name))
    parser.add_argument("--hidden", type=int, help=f"default: {default.hidden}; 768, whole blocks, with --quantize")
    parser.add_argument("--element", default=default.element, choices=("f32", "f64", "bf16", "f16"))
    args = parser.parse_args()
    if args.quantize and args.element == "f64":
        parser.error("--quantize: blocks are multiplied with f32, f16 and bf16; pass --element f32")
    args.hidden = args.hidden or (768 if args.quantize else default.hidden)
    return args


def train(trainer: Trainer, batches: Batches, steps: int) -> list[float]:
    """The training loop with its progress bar; returns the losses."""
    losses: list[float] = []
    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TextColumn("loss {task.fields[loss]:.3f}"),
               TextColumn("{task.fields[speed]:,.0f} tokens/s"), TimeRemainingColumn())  # fmt: skip
    tokens = trainer.batch * trainer.config.context
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=steps, loss=float("nan"), speed=0.0)
        begin = perf_counter()
        for i in range(steps):
            losses.append(trainer.step(*batches[trainer.done]))
            progress.update(task, advance=1, loss=losses[-1], speed=tokens * (i + 1) / (perf_counter() - begin))
            if not sys.stdout.isatty() and (i % max(steps // 10, 1) == 0 or i + 1 == steps):
                console.print(f"  step {trainer.done:5d}  loss {losses[-1]:.3f}")
    return losses


def draw(losses: list[float], first: int, path: Path) -> None:
    """The loss curve as a picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    steps = range(first + 1, first + len(losses) + 1)
    axes.plot(steps, losses, color="#9db4c8", linewidth=1, label="each step")
    window = max(len(losses) // 20, 1)
    smooth = [sum(losses[max(0, i - window + 1) : i + 1]) / min(i + 1, window) for i in range(len(losses))]
    axes.plot(steps, smooth, color="#1f4e79", linewidth=2, label=f"mean of {window}")
    axes.set(xlabel="step", ylabel="loss (nats per byte)", title="tiny Llama on baracuda")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def report(trainer: Trainer, generator: Generator) -> None:
    """What the compiled graphs are, and on the cpu which kernels take how long."""
    layers = trainer.config.layers
    for what, plan in (("a training step", trainer.plan), ("a token", generator.plan)):
        memory = plan.memory
        console.print(
            f"{what}: {plan.launches} launches ({plan.launches / layers:.0f} a layer), {memory.planned:,} bytes of scratch "
            f"planned, {memory.unplanned:,} with memory for each value, {memory.lower_bound:,} alive at once"
        )
    if trainer.store.device != "cpu":
        return
    taken: dict[str, list[float]] = {}
    for timed in trainer.profile().launches:
        taken.setdefault(timed.sku, []).append(timed.microseconds / 1e3)
    total = sum(map(sum, taken.values()))
    table = Table(title="a training step by kernel")
    for name, justify in (("SKU", "left"), ("launches", "right"), ("ms", "right"), ("share", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for sku, times in sorted(taken.items(), key=lambda item: -sum(item[1])):
        table.add_row(sku, f"{len(times):,}", f"{sum(times):,.2f}", f"{sum(times) / total:.1%}")
    console.print(table)


def compare(generator: Generator, count: int = 64) -> None:
    """The same tokens by functions called one by one, and by the compiled graph."""
    tokens = min(count, generator.config.context)
    speeds = []
    for feed in (generator.feed_eagerly, generator.feed):
        feed(0, 0)
        begin = perf_counter()
        for position in range(tokens):
            feed(position % generator.config.vocab, position)
        speeds.append(tokens / (perf_counter() - begin))
    console.print(
        f"decoding without sampling: {speeds[1]:,.0f} tokens/s by the compiled graph, {speeds[0]:,.0f} by functions one by one"
    )


def versus_torch(trainer: Trainer, generator: Generator, batches: Batches) -> None:
    """The same work by PyTorch, where it is installed."""
    found = beside_torch.measure(trainer, generator, batches)
    if found is None:
        console.print("not compared with PyTorch: it is not installed here, or this is no model of f32 on the cpu")
        return
    table = Table(title="beside PyTorch in eager mode, in turns in this process")
    for name in ("", "baracuda, ms", "PyTorch, ms", "ratio"):
        table.add_column(name, justify="right" if name else "left")
    for what, ours, theirs in found:
        table.add_row(what, f"{ours * 1e3:,.1f}", f"{theirs * 1e3:,.1f}", f"{theirs / ours:.2f}")
    console.print(table)


def quantize(form: str, generator: Generator, batches: Batches, args: argparse.Namespace) -> str:
    """Saves the weights in GGUF's blocks, writes with them and compares; returns the file's name."""
    c, path = generator.config, args.out / f"{form}.gguf"
    kept = quantized.save(c, generator.parameters, form, path)
    blocks = quantized.load(c, path, generator.store)
    smaller = Generator(
        c, blocks, generator.tables, temperature=args.temperature, seed=args.seed, store=generator.store
    )
    both = [generator, smaller]
    losses = [quantized.loss_of(g, batches) for g in both]
    speeds = quantized.speeds(both)
    table = Table(title=f"what {form} costs and gains")
    for name, justify in (("weights", "left"), ("bytes", "right"), ("loss", "right"), ("tokens/s", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    sizes = [quantized.nbytes(g.parameters) for g in both]
    for name, size, loss, speed in zip((c.element, form), sizes, losses, speeds, strict=True):
        table.add_row(name, f"{size:,}", f"{loss:.4f}", f"{speed:,.0f}")
    changes = f"/ {sizes[0] / sizes[1]:.2f}", f"{losses[1] - losses[0]:+.4f}", f"x {speeds[1] / speeds[0]:.2f}"
    table.add_row("change", *changes)
    console.print(table)
    if kept:
        console.print(f"as they were, for their rows are no whole blocks: {', '.join(kept)}")
    made = smaller.generate(args.prompt.encode(), args.generate)
    console.rule(f"generated by {form}")
    console.print(made.decode("utf-8", "replace"), markup=False, highlight=False)
    console.rule()
    return path.name


def main() -> None:
    """Trains, saves, generates, reports."""
    args = arguments()
    bc.set_num_threads(args.threads)
    names = ("d_model", "layers", "heads", "kv_heads", "hidden", "context", "element")
    config = Config(**{n: getattr(args, n) for n in names})
    text = args.text.read_bytes() if args.text else standard_library()
    trainer = Trainer(config, args.batch, seed=args.seed, lr=args.lr, steps=args.steps, device=args.device)
    if args.resume:
        trainer.load(args.resume)
    batches = Batches(text, args.batch, config.context, args.seed)
    parameters = sum(prod(v.shape) for v in trainer.parameters.values())
    source = (
        f"{args.text}"
        if args.text
        else f"the sources of Python {sys.version_info[0]}.{sys.version_info[1]}'s standard library"
    )
    console.print(f"trains on {source}: {len(text):,} bytes, a token each")
    console.print(
        f"{parameters:,} parameters, {config.element}, "
        + (f"{bc.get_num_threads()} threads" if args.device == "cpu" else args.device)
    )
    first = trainer.done
    begin = perf_counter()
    losses = train(trainer, batches, args.steps)
    seconds = perf_counter() - begin
    args.out.mkdir(parents=True, exist_ok=True)
    trainer.save(args.out / "checkpoint.safetensors")
    if losses:
        draw(losses, first, args.out / "loss.png")
        speed = len(losses) * args.batch * config.context / seconds
        console.print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f} in {seconds:.1f} s, {speed:,.0f} tokens/s")
    generator = Generator(
        config, trainer.parameters, trainer.tables, temperature=args.temperature, seed=args.seed, store=trainer.store
    )
    begin = perf_counter()
    made = generator.generate(args.prompt.encode(), args.generate)
    seconds = perf_counter() - begin
    console.rule("generated")
    console.print(made.decode("utf-8", "replace"), markup=False, highlight=False)
    console.rule()
    console.print(f"{len(made) / seconds:,.0f} tokens/s while writing, with sampling; one graph served all positions")
    compare(generator)
    report(trainer, generator)
    wrote = ["checkpoint.safetensors", *(["loss.png"] if losses else [])]
    if args.quantize:
        wrote.append(quantize(args.quantize, generator, batches, args))
    if args.picture:
        for name, of in (("step", trainer), ("token", generator)):
            for suffix, drawn in (("", of.graph), ("-compiled", of.plan)):
                (args.out / f"{name}{suffix}.svg").write_text(drawn.to_svg())
                wrote.append(f"{name}{suffix}.svg")
    versus_torch(trainer, generator, batches)
    console.print(f"wrote {', '.join(wrote)} to {args.out}")


if __name__ == "__main__":
    main()
