"""Loss, AdamW and the training step as programs; text as batches; checkpoints."""

from __future__ import annotations

import json
import sysconfig
from dataclasses import asdict
from math import cos, pi
from pathlib import Path
from typing import Any

import numpy as np
from model import Activations, Array, Config, Gradients, backward, forward, initialise, rope_tables
from program import Program
from storage import Storage, read, write

import baracuda as bc


class Trainer:
    """Parameters, optimizer state and the three programs of a step: forward, loss and backward, update."""

    def __init__(
        self, c: Config, batch: int, *, seed: int = 0, lr: float = 2e-3, weight_decay: float = 0.1, steps: int = 200,
        device: str = "cpu",
    ) -> None:  # fmt: skip
        self.config, self.batch, self.peak_lr, self.steps = c, batch, lr, steps
        self.store = store = Storage(device)
        self.parameters = initialise(c, seed, store)
        self.moments = [{k: store.zeros(v.shape, c.statistic) for k, v in self.parameters.items()} for _ in range(2)]
        self.lr, self.step_number, self.done = store.scalar(0.0), store.scalar(0), 0
        self.activations = Activations(c, batch, c.context, keep=True, store=store)
        self.gradients = Gradients(c, self.parameters, self.activations)
        self.targets = store.zeros((batch * c.context,), np.int64)
        self.loss = store.zeros((), c.dtype)
        self.tables = rope_tables(c, store)
        self.forward = Program(store.device)
        forward(c, self.parameters, self.activations, self.tables, self.forward)
        self.forward.compile()
        self.criterion = self._criterion().compile()
        self.backward = backward(c, self.parameters, self.activations, self.gradients, self.tables).compile()
        self.update = self._update(weight_decay).compile()

    @property
    def programs(self) -> tuple[Program, ...]:
        """All programs of a step, in order."""
        return self.forward, self.criterion, self.backward, self.update

    def _criterion(self) -> Program:
        p = Program(self.store.device)
        a = self.activations
        desc = bc.CrossEntropyFusedDescriptor(a.logits.shape, self.config.element)
        p.add(desc, logits=a.logits, target=self.targets, loss=self.loss, dlogits=self.gradients.logits)
        return p

    def _update(self, weight_decay: float) -> Program:
        p = Program(self.store.device)
        for decay, names in (
            (weight_decay, [k for k, v in self.parameters.items() if v.ndim > 1]),
            (0.0, [k for k, v in self.parameters.items() if v.ndim == 1]),
        ):
            desc = bc.AdamWDescriptor([self.parameters[k].shape for k in names], self.config.element)
            p.add(
                desc, params=[self.parameters[k] for k in names], grads=[self.gradients.of[k] for k in names],
                exp_avgs=[self.moments[0][k] for k in names], exp_avg_sqs=[self.moments[1][k] for k in names],
                lr=self.lr, beta1=0.9, beta2=0.95, eps=1e-8, weight_decay=decay, step=self.step_number,
            )  # fmt: skip
        return p

    def learning_rate(self, step: int) -> float:
        """Warm-up over a tenth of the run, then a cosine down to a tenth of the peak."""
        warm = max(self.steps // 10, 1)
        if step < warm:
            return self.peak_lr * (step + 1) / warm
        return self.peak_lr * (0.55 + 0.45 * cos(pi * min((step - warm) / max(self.steps - warm, 1), 1.0)))

    def gradients_of(self, inputs: Array, targets: Array) -> float:
        """Forward, loss and backward for one batch; returns the loss."""
        write(self.activations.ids, inputs)
        write(self.targets, targets.reshape(-1))
        self.forward.run()
        self.criterion.run()
        self.backward.run()
        return float(read(self.loss))

    def step(self, inputs: Array, targets: Array) -> float:
        """One optimizer step; returns the loss before it."""
        write(self.lr, self.learning_rate(self.done))
        self.done += 1
        write(self.step_number, self.done)
        loss = self.gradients_of(inputs, targets)
        self.update.run()
        return loss

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
