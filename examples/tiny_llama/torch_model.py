"""The same model in eager PyTorch: the peer of the benchmark, and the reference of the gradient test.

It takes baracuda's parameters as they are: matrices are [in, out], qkv and gate_up are joint, the embedding is tied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F

if TYPE_CHECKING:
    from collections.abc import Mapping

    from model import Array, Config


def rope_tables(c: Config, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """The cosines and sines of position * rope_base^(-2i / head_dim), worked out in f64 and rounded once."""
    exponents = torch.arange(0, c.head_dim, 2, dtype=torch.float64) / c.head_dim
    angles = torch.arange(c.context, dtype=torch.float64)[:, None] * c.rope_base**-exponents
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Half-split rotary embedding over the last dimension of [batch, heads, length, head_dim]."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


class TorchLlama:
    """The model over a dict of tensors; plain functions, so that no module overhead is measured."""

    def __init__(
        self, c: Config, parameters: Mapping[str, Array], dtype: torch.dtype = torch.float32, *, gradients: bool = True
    ) -> None:
        self.config = c
        self.w = {k: torch.tensor(np.asarray(v, np.float64), dtype=dtype) for k, v in parameters.items()}
        for value in self.w.values():
            value.requires_grad_(gradients)
        self.cos, self.sin = rope_tables(c, dtype)

    def _heads(self, joint: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        c = self.config
        split = joint.view(*joint.shape[:2], c.heads + 2 * c.kv_heads, c.head_dim).transpose(1, 2)
        q, k, v = split.split((c.heads, c.kv_heads, c.kv_heads), dim=1)
        return q, k, v

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return F.rms_norm(x, (self.config.d_model,), self.w[name], self.config.eps)

    def _mlp(self, x: torch.Tensor, name: str) -> torch.Tensor:
        gate, up = (self._norm(x, name + "mlp_norm") @ self.w[name + "gate_up"]).chunk(2, dim=-1)
        return (F.silu(gate) * up) @ self.w[name + "down"]

    def logits(self, ids: torch.Tensor) -> torch.Tensor:
        """[batch, length] tokens to [batch, length, vocab]."""
        c, length = self.config, ids.shape[1]
        cos, sin = self.cos[:length], self.sin[:length]
        x = F.embedding(ids, self.w["embedding"])
        for i in range(c.layers):
            name = f"layers.{i}."
            q, k, v = self._heads(self._norm(x, name + "attention_norm") @ self.w[name + "qkv"])
            y = F.scaled_dot_product_attention(
                rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True, enable_gqa=True
            )
            x = x + y.transpose(1, 2).reshape(x.shape) @ self.w[name + "out"]
            x = x + self._mlp(x, name)
        return self._norm(x, "norm") @ self.w["embedding"].T

    def loss(self, ids: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean cross-entropy in nats per token."""
        return F.cross_entropy(self.logits(ids).view(-1, self.config.vocab), targets.reshape(-1))


class TorchTrainer:
    """A training step: forward, backward, fused AdamW; matrices decay and norms do not, as in `training.Trainer`."""

    def __init__(
        self, c: Config, parameters: Mapping[str, Array], *, lr: float = 2e-3, weight_decay: float = 0.1
    ) -> None:
        self.model = TorchLlama(c, parameters)
        groups: list[dict[str, Any]] = [
            {"params": [v for v in self.model.w.values() if v.ndim > 1], "weight_decay": weight_decay},
            {"params": [v for v in self.model.w.values() if v.ndim == 1], "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.95), eps=1e-8, fused=True)

    def step(self, ids: torch.Tensor, targets: torch.Tensor) -> float:
        """One optimizer step; returns the loss before it."""
        self.optimizer.zero_grad()
        loss = self.model.loss(ids, targets)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.item()


class TorchDecoder:
    """Decoding one token at a time with a preallocated cache of keys and values."""

    def __init__(self, c: Config, parameters: Mapping[str, Array]) -> None:
        self.model = TorchLlama(c, parameters, gradients=False)
        shape = (c.layers, 1, c.kv_heads, c.context, c.head_dim)
        self.keys, self.values = torch.zeros(shape), torch.zeros(shape)
        self.token = torch.zeros((1, 1), dtype=torch.int64)

    @torch.inference_mode()
    def feed(self, byte: int, position: int) -> torch.Tensor:
        """The logits [1, 1, vocab] after one byte at a position; its key and value are kept."""
        m, c, end = self.model, self.model.config, position + 1
        self.token[0, 0] = byte
        cos, sin = m.cos[position:end], m.sin[position:end]
        x = F.embedding(self.token, m.w["embedding"])
        for i in range(c.layers):
            name = f"layers.{i}."
            q, k, v = m._heads(m._norm(x, name + "attention_norm") @ m.w[name + "qkv"])
            self.keys[i, :, :, position:end] = rotate(k, cos, sin)
            self.values[i, :, :, position:end] = v
            y = F.scaled_dot_product_attention(
                rotate(q, cos, sin), self.keys[i, :, :, :end], self.values[i, :, :, :end], enable_gqa=True
            )
            x = x + y.transpose(1, 2).reshape(x.shape) @ m.w[name + "out"]
            x = x + m._mlp(x, name)
        return m._norm(x, "norm") @ m.w["embedding"].T


class CompiledDecoder(TorchDecoder):
    """The same through `torch.compile`: shapes stay as they are, so that attention sees the whole cache and a mask."""

    def __init__(self, c: Config, parameters: Mapping[str, Array]) -> None:
        super().__init__(c, parameters)
        self.position = torch.zeros(1, dtype=torch.int64)
        self.places = torch.arange(c.context)
        self._compiled = torch.compile(self._logits, dynamic=False)

    @torch.inference_mode()
    def feed(self, byte: int, position: int) -> torch.Tensor:
        """The logits [1, 1, vocab] after one byte at a position; its key and value are kept."""
        self.token[0, 0] = byte
        self.position[0] = position
        return self._compiled(self.token, self.position)

    def _logits(self, token: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        m, c = self.model, self.model.config
        cos, sin, mask = m.cos[position], m.sin[position], (self.places <= position)[None]
        x = F.embedding(token, m.w["embedding"])
        for i in range(c.layers):
            name = f"layers.{i}."
            q, k, v = m._heads(m._norm(x, name + "attention_norm") @ m.w[name + "qkv"])
            self.keys[i].index_copy_(2, position, rotate(k, cos, sin))
            self.values[i].index_copy_(2, position, v)
            y = F.scaled_dot_product_attention(
                rotate(q, cos, sin), self.keys[i], self.values[i], attn_mask=mask, enable_gqa=True
            )
            x = x + y.transpose(1, 2).reshape(x.shape) @ m.w[name + "out"]
            x = x + m._mlp(x, name)
        return m._norm(x, "norm") @ m.w["embedding"].T


def loss_and_gradients(
    config: Config, parameters: Mapping[str, Array], ids: Array, targets: Array, dtype: torch.dtype = torch.float64
) -> tuple[float, dict[str, Array]]:
    """The loss of one batch, and the gradient of every parameter under its name."""
    model = TorchLlama(config, parameters, dtype)
    loss = model.loss(torch.as_tensor(np.ascontiguousarray(ids)), torch.as_tensor(np.ascontiguousarray(targets)))
    loss.backward()  # type: ignore[no-untyped-call]
    gradients: dict[str, Array] = {}
    for name, value in model.w.items():
        assert value.grad is not None, name
        gradients[name] = value.grad.numpy()
    return loss.item(), gradients
