"""Random small networks as ONNX files: what exporters write of convolutional nets, transformers and recurrent nets."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

ACTIVATIONS = (
    "Relu",
    "Sigmoid",
    "Tanh",
    "LeakyRelu",
    "Elu",
    "Softplus",
    "HardSwish",
    "HardSigmoid",
    "Clip",
    "Gelu",
    "PRelu",
    "Erf",
)


class Network:
    """A graph that grows layer by layer.

    Args:
        seed: Of all choices and weights.
        opset: Of its operators.
        double: Whether numbers are f64: the same network, for reference.
    """

    def __init__(self, seed: int, opset: int, double: bool = False) -> None:
        self.rng, self.opset = np.random.default_rng(seed), opset
        self.dtype = np.float64 if double else np.float32
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.inputs: list[tuple[str, list[Any]]] = []

    def node(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=f"{op}_{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def weight(self, *shape: int, scale: float | None = None) -> str:
        """Numbers of f32, in either network."""
        fan = int(np.prod(shape[1:])) or 1
        values = self.rng.normal(size=shape).astype(np.float32) * np.float32(scale or fan**-0.5)
        return self.constant(values.astype(self.dtype))

    def constant(self, values: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def input(self, name: str, shape: list[Any]) -> str:
        self.inputs.append((name, shape))
        return name

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    # --- layers

    def activation(self, x: str, channels: int, rank: int) -> str:
        op = self.pick(*ACTIVATIONS)
        if op == "Gelu" and self.opset < 20:  # written out, as exporters do
            inner = self.node("Erf", self.node("Div", x, self.constant(np.array(2**0.5, self.dtype))))
            half = self.node("Mul", x, self.constant(np.array(0.5, self.dtype)))
            return str(self.node("Mul", half, self.node("Add", inner, self.constant(np.array(1, self.dtype)))))
        if op == "HardSwish" and self.opset < 14:
            return str(self.node("Mul", x, self.node("HardSigmoid", x, alpha=1 / 6, beta=0.5)))
        if op == "Clip":
            low, high = (self.constant(np.array(v, self.dtype)) for v in (-1.0, 2.0))
            return str(self.node("Clip", x, low, high))
        if op == "PRelu":
            return str(
                self.node(
                    "PRelu", x, self.weight(*([channels] + [1] * (rank - 2) if rank > 2 else [channels]), scale=0.3)
                )
            )
        return str(self.node(op, x))

    def norm(self, x: str, channels: int) -> str:
        parts = [self.weight(channels, scale=0.5) for _ in range(3)]
        var = self.constant(
            np.abs(self.rng.normal(size=channels)).astype(np.float32).astype(self.dtype) + self.dtype(0.5)
        )
        return str(self.node("BatchNormalization", x, *parts, var))

    def conv(self, x: str, given: int, made: int, size: list[int]) -> tuple[str, list[int]]:
        groups = self.pick(1, 1, given) if made % given == 0 else 1
        kernel = [int(self.pick(1, 2, 3, 5)) for _ in size]
        stride, dilation = [int(self.pick(1, 1, 2)) for _ in size], [int(self.pick(1, 1, 2)) for _ in size]
        pads = [int(self.rng.integers(0, k)) for k in kernel * 2]
        n = len(size)
        room = [m + pads[i] + pads[i + n] - (kernel[i] - 1) * dilation[i] - 1 for i, m in enumerate(size)]
        if min(room) < 0:
            return x, size
        inputs = [x, self.weight(made, given // groups, *kernel)]
        if self.pick(True, False):
            inputs.append(self.weight(made, scale=0.3))
        y = self.node("Conv", *inputs, strides=stride, dilations=dilation, pads=pads, group=groups, kernel_shape=kernel)
        return y, [r // s + 1 for r, s in zip(room, stride, strict=True)]

    def pool(self, x: str, size: list[int]) -> tuple[str, list[int]]:
        if min(size) < 3:
            return x, size
        op = self.pick("MaxPool", "AveragePool")
        kernel, stride = [int(self.pick(2, 3)) for _ in size], [int(self.pick(1, 2)) for _ in size]
        pads = [int(self.rng.integers(0, 2)) for _ in kernel * 2]
        extra = {} if op == "MaxPool" else {"count_include_pad": int(self.pick(0, 1))}
        y = self.node(op, x, kernel_shape=kernel, strides=stride, pads=pads, **extra)
        n = len(size)
        return y, [(m + pads[i] + pads[i + n] - kernel[i]) // stride[i] + 1 for i, m in enumerate(size)]

    def resize(self, x: str, size: list[int]) -> tuple[str, list[int]]:
        kind, how = self.pick(("nearest", "asymmetric"), ("linear", "half_pixel"), ("linear", "align_corners"))
        scales = self.constant(np.array([1, 1] + [2] * len(size), np.float32))
        extra = {"nearest_mode": "floor"} if kind == "nearest" else {}
        y = self.node("Resize", x, "", scales, mode=kind, coordinate_transformation_mode=how, **extra)
        return y, [2 * m for m in size]

    def images(self, batch: Any) -> list[str]:
        """Convolutions with branches, to rows of numbers."""
        channels, size = int(self.pick(1, 3, 4)), [int(m) for m in self.rng.integers(8, 17, self.pick(1, 2, 2))]
        x = self.input("x", [batch, channels, *size])
        for _ in range(int(self.rng.integers(2, 5))):
            layer, made = (
                self.pick("conv", "conv", "branch", "pool", "resize", "shuffle", "pad"),
                int(self.pick(4, 6, 8)),
            )
            if layer == "conv":
                x, new = self.conv(x, channels, made, size)
                if new is not size:
                    size, channels = new, made
                    x = self.norm(x, channels) if self.pick(True, False) else x
                    x = self.activation(x, channels, 2 + len(size))
            elif layer == "branch":
                one = self.node(
                    "Conv", x, self.weight(channels, channels, *[1] * len(size)), kernel_shape=[1] * len(size)
                )
                one = self.activation(one, channels, 2 + len(size))
                if self.pick(True, False):
                    x = self.node("Add", one, x)
                else:
                    x, channels = self.node("Concat", x, one, axis=1), 2 * channels
            elif layer == "pool":
                x, size = self.pool(x, size)
            elif layer == "resize" and max(size) < 12 and len(size) == 2:
                x, size = self.resize(x, size)
            elif layer == "shuffle" and channels % 2 == 0:
                left, right = self.node("Split", x, self.ints(channels // 2, channels // 2), outputs=2, axis=1)
                x = self.node("Concat", right, self.node("Mul", left, self.node("Sigmoid", right)), axis=1)
            elif layer == "pad":
                pads = [int(p) for p in self.rng.integers(0, 2, 2 * len(size))]
                n = len(size)
                mode = self.pick("constant", "reflect", "edge")
                x = self.node("Pad", x, self.ints(0, 0, *pads[:n], 0, 0, *pads[n:]), mode=mode)
                size = [m + pads[i] + pads[i + n] for i, m in enumerate(size)]
        x = self.node("Flatten", self.node("GlobalAveragePool", x))
        x = self.node("Gemm", x, self.weight(5, channels), self.weight(5, scale=0.1), transB=1)
        return [x, self.node("Softmax", x, axis=-1)]

    def tokens(self, batch: Any) -> list[str]:
        """A transformer's block, with the arithmetic of shapes that exporters write."""
        length, heads, dim = int(self.rng.integers(3, 9)), int(self.pick(1, 2, 4)), int(self.pick(2, 4, 8))
        width = heads * dim
        x = self.input("x", [batch, length, width])
        for _ in range(int(self.rng.integers(1, 3))):
            h = self.layer_norm(x, width)
            shape = self.node("Shape", x)
            first = self.node(
                "Unsqueeze", self.node("Gather", shape, self.constant(np.array(0, np.int64)), axis=0), self.ints(0)
            )
            split = self.node("Concat", first, self.ints(length), self.ints(heads), self.ints(dim), axis=0)
            parts = []
            for _ in range(3):
                rows = self.node(
                    "Add", self.node("MatMul", h, self.weight(width, width)), self.weight(width, scale=0.1)
                )
                parts.append(self.node("Transpose", self.node("Reshape", rows, split), perm=[0, 2, 1, 3]))
            scores = self.node("MatMul", parts[0], self.node("Transpose", parts[1], perm=[0, 1, 3, 2]))
            scores = self.node("Div", scores, self.constant(np.array(dim**0.5, self.dtype)))
            mask = np.where(np.tril(np.ones((length, length), bool)), 0, -1e9).astype(self.dtype)
            weights = self.node("Softmax", self.node("Add", scores, self.constant(mask)), axis=-1)
            mixed = self.node("Transpose", self.node("MatMul", weights, parts[2]), perm=[0, 2, 1, 3])
            joined = self.node(
                "Reshape", mixed, self.node("Concat", first, self.ints(length), self.ints(width), axis=0)
            )
            x = self.node("Add", x, self.node("MatMul", joined, self.weight(width, width)))
            h = self.node("MatMul", self.layer_norm(x, width), self.weight(width, 2 * width))
            x = self.node(
                "Add", x, self.node("MatMul", self.activation(h, 2 * width, 2), self.weight(2 * width, width))
            )
        return [
            x,
            self.node("ReduceMean", x, keepdims=0, axes=[1])
            if self.opset < 18
            else self.node("ReduceMean", x, self.ints(1), keepdims=0),
        ]

    def layer_norm(self, x: str, width: int) -> str:
        scale, shift = self.weight(width, scale=1.0), self.weight(width, scale=0.1)
        if self.opset >= 17 and self.pick(True, False):
            return str(self.node("LayerNormalization", x, scale, shift, axis=-1))

        def mean(v: str) -> str:
            return (
                self.node("ReduceMean", v, axes=[-1]) if self.opset < 18 else self.node("ReduceMean", v, self.ints(-1))
            )

        low = self.node("Sub", x, mean(x))
        var = mean(self.node("Pow", low, self.constant(np.array(2, self.dtype))))
        below = self.node("Sqrt", self.node("Add", var, self.constant(np.array(1e-5, self.dtype))))
        return str(self.node("Add", self.node("Mul", self.node("Div", low, below), scale), shift))

    def sequences(self, batch: Any) -> list[str]:
        """A recurrent layer in one direction or both."""
        op, steps, given, made = (
            self.pick("LSTM", "GRU", "RNN"),
            int(self.rng.integers(2, 6)),
            int(self.pick(2, 5)),
            int(self.pick(3, 4)),
        )
        gates, both = {"LSTM": 4, "GRU": 3, "RNN": 1}[op], bool(self.pick(True, False))
        many = 2 if both else 1
        x = self.input("x", [batch, steps, given])
        weights = [self.weight(many, gates * made, n, scale=n**-0.5) for n in (given, made)]
        extra = {"linear_before_reset": 1} if op == "GRU" and self.pick(True, False) else {}
        y, h = self.node(op, self.node("Transpose", x, perm=[1, 0, 2]), *weights, self.weight(many, 2 * gates * made, scale=0.2),
                         outputs=2, hidden_size=made, direction="bidirectional" if both else "forward", **extra)  # fmt: skip
        flat = self.node("Reshape", self.node("Transpose", y, perm=[2, 0, 1, 3]), self.ints(0, 0, -1))
        last = self.node("Slice", flat, self.ints(-1), self.ints(2**31), self.ints(1))
        return [flat, self.node("Squeeze", last, self.ints(1)), h]

    def model(self, outputs: list[str]) -> ModelProto:
        kind = TensorProto.DOUBLE if self.dtype is np.float64 else TensorProto.FLOAT
        given = [helper.make_tensor_value_info(name, kind, shape) for name, shape in self.inputs]
        made = [helper.make_tensor_value_info(name, kind, None) for name in outputs]
        graph = helper.make_graph(self.nodes, "random", given, made, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)


def network(kind: str, seed: int, opset: int, double: bool = False, batch: Any = "batch") -> ModelProto:
    """A network of a kind: images, tokens or sequences; the same for a seed, in f32 or f64."""
    made = Network(seed, opset, double)
    return made.model(getattr(made, kind)(batch))
