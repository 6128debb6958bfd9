"""The training step as a compiled graph; text as batches; checkpoints."""

from __future__ import annotations

import json
import sysconfig
from dataclasses import asdict
from functools import cached_property
from math import cos, pi
from pathlib import Path
from typing import Any

import numpy as np
from model import Array, Config, forward, initialise, rope_tables
from storage import Storage, read, write

import baracuda as bc
import baracuda.functional as F


class Trainer:
    """Parameters, optimizer state, and the training step: loss, gradients and AdamW as one compiled graph."""

    def __init__(
        self, c: Config, batch: int, *, seed: int = 0, lr: float = 2e-3, weight_decay: float = 0.1, steps: int = 200,
        device: str = "cpu",
    ) -> None:  # fmt: skip
        self.config, self.batch, self.peak_lr, self.steps = c, batch, lr, steps
        self.store = store = Storage(device)
        self.parameters = initialise(c, seed, store)
        self.moments = [{k: store.zeros(v.shape, c.statistic) for k, v in self.parameters.items()} for _ in range(2)]
        self.lr, self.step_number, self.done = store.scalar(0.0), store.scalar(0), 0
        self.ids, self.targets = (store.zeros((batch, c.context), np.int64) for _ in range(2))
        self.loss = store.zeros((), c.dtype)
        self.tables = rope_tables(c, store)
        self.graph = self._with_update(self._with_gradients(), weight_decay)
        self.plan = self.graph.compile()
        self._run = self.plan.bind(*self._arguments(), out=self.loss)

    def _criterion(self, w: dict[str, Array], ids: Array, targets: Array) -> Array:
        return F.cross_entropy(forward(self.config, w, ids, self.tables), targets.reshape(-1))

    def _with_gradients(self) -> bc.ComputeGraph:
        graph = bc.trace(self._criterion, self.parameters, self.ids, self.targets)
        return graph.grad(graph.results, graph.tensors[: len(self.parameters)])

    def _with_update(self, graph: bc.ComputeGraph, weight_decay: float) -> bc.ComputeGraph:
        """AdamW behind it: matrices decay, norms do not."""
        loss, *found = graph.results
        w, gradients = (dict(zip(self.parameters, xs, strict=False)) for xs in (graph.tensors, found))
        moments = [
            {k: graph.add_leaf(bc.TensorSpec(v.shape, self.config.statistic, device=graph.device), name=f"moment{i}.{k}")
             for k, v in moment.items()}
            for i, moment in enumerate(self.moments)
        ]  # fmt: skip
        step, lr = (
            graph.add_leaf(bc.TensorSpec((), kind, device=graph.device), name=name)
            for name, kind in (("step", "i64"), ("lr", "f64"))
        )
        for decay, names in (
            (weight_decay, [k for k, v in self.parameters.items() if v.ndim > 1]),
            (0.0, [k for k, v in self.parameters.items() if v.ndim == 1]),
        ):
            lists = ([of[k] for k in names] for of in (w, gradients, *moments))
            graph.add_op(F.adamw_, *lists, step=step, lr=lr, beta1=0.9, beta2=0.95, eps=1e-8, weight_decay=decay)
        graph.outputs(loss)
        return graph

    def _arguments(self) -> tuple[Any, ...]:
        """What a step is given: all of it stays where it is."""
        first, second = self.moments
        return (
            self.parameters, self.ids, self.targets, *first.values(), *second.values(), self.step_number, self.lr,
        )  # fmt: skip

    def profile(self, runs: int = 5) -> Any:
        """Where the time of a step goes, on copies of everything."""
        return self.plan.profile(*self._arguments(), runs=runs)

    @cached_property
    def _gradients(self) -> bc.ExecutionPlan:
        return self._with_gradients().compile()

    def learning_rate(self, step: int) -> float:
        """Warm-up over a tenth of the run, then a cosine down to a tenth of the peak."""
        warm = max(self.steps // 10, 1)
        if step < warm:
            return self.peak_lr * (step + 1) / warm
        return self.peak_lr * (0.55 + 0.45 * cos(pi * min((step - warm) / max(self.steps - warm, 1), 1.0)))

    def gradients_of(self, inputs: Array, targets: Array) -> tuple[float, dict[str, Array]]:
        """The loss of one batch, and its gradients."""
        write(self.ids, inputs)
        write(self.targets, targets)
        loss, gradients = self._gradients.run(self.parameters, self.ids, self.targets)
        return float(read(loss)), dict(zip(self.parameters, gradients, strict=True))

    def step(self, inputs: Array, targets: Array) -> float:
        """One optimizer step; returns the loss before it."""
        write(self.lr, self.learning_rate(self.done))
        self.done += 1
        write(self.step_number, self.done)
        write(self.ids, inputs)
        write(self.targets, targets)
        self._run()
        return float(read(self.loss))

    def save(self, path: Path) -> None:
        """Writes parameters, moments and the step number as safetensors."""
        from safetensors.numpy import save_file

        tensors = {f"parameters.{k}": read(v) for k, v in self.parameters.items()}
        for i, moment in enumerate(self.moments):
            tensors |= {f"moments.{i}.{k}": read(v) for k, v in moment.items()}
        # One entry: safetensors writes several in no fixed order, and equal runs shall give equal files.
        run = json.dumps({"config": asdict(self.config), "step": self.done}, sort_keys=True)
        save_file(tensors, path, {"tiny_llama": run})

    def load(self, path: Path) -> None:
        """Continues from a checkpoint of the same configuration."""
        from safetensors import safe_open

        with safe_open(path, "numpy") as f:
            run = json.loads(f.metadata()["tiny_llama"])
            for k, v in asdict(self.config).items():
                if (was := run["config"].get(k)) != v:
                    option = k.replace("_", "-")
                    raise SystemExit(f"{path}: was trained with {k}={was}, this run has {k}={v}; pass --{option} {was}")
            for k in self.parameters:
                write(self.parameters[k], f.get_tensor(f"parameters.{k}"))
                for i, moment in enumerate(self.moments):
                    write(moment[k], f.get_tensor(f"moments.{i}.{k}"))
            self.done = run["step"]


def standard_library(limit: int = 4_000_000) -> bytes:
    """Real text that every machine has: the sources of Python's own standard library."""
    root = Path(sysconfig.get_paths()["stdlib"])
    out = bytearray()
    for path in sorted(root.glob("*.py")) + sorted(root.glob("*/[a-z]*.py")):
        if "site-packages" in path.parts or "test" in path.parts:
            continue
        out += path.read_bytes()
        if len(out) >= limit:
            break
    return bytes(out[:limit])


class Batches:
    """Random windows of a text: inputs and the same shifted by one byte."""

    def __init__(self, text: bytes, batch: int, length: int, seed: int) -> None:
        self.data = np.frombuffer(text, np.uint8)
        if len(self.data) <= length + 1:
            raise SystemExit(f"the text has {len(self.data)} bytes; more than {length + 1} are needed (--context)")
        self.batch, self.length = batch, length
        self.seed = seed

    def __getitem__(self, step: int) -> tuple[Any, Any]:
        """The batch of a step: the same for a run and for one that was resumed."""
        rng = np.random.default_rng([self.seed, step])
        starts = rng.integers(0, len(self.data) - self.length - 1, self.batch)
        windows = np.stack([self.data[s : s + self.length + 1] for s in starts]).astype(np.int64)
        return windows[:, :-1], windows[:, 1:]
