"""A partitioner: which part of a graph runs where, asked of the kernel table. No device need be here."""

from itertools import groupby

import baracuda as bc

DEVICES = ("metal:apple9", "cuda:sm_90", "cpu:v3")  # in the order of preference
GRAPH = [("matmul", "bf16"), ("softmax", "bf16"), ("sum", "f64"), ("matmul", "f64"), ("gelu", "f16"), ("int_mm", "i8")]


def home(op: str, element: str) -> str:
    """The first device with a kernel, or else every reason."""
    reasons = []
    for device in DEVICES:
        found = bc.capabilities(op, element=element, device=device, direction="forward")
        if any(c.support.verdict != "no" for c in found):
            return device
        reasons += [f"{c.sku.name}: {r}" for c in found for r in c.support.refusals]
    raise SystemExit("\n".join(reasons) or f"{op}: no kernel takes {element}")


for device, nodes in groupby(GRAPH, key=lambda node: home(*node)):
    print(device, "runs", ", ".join(f"{op} {element}" for op, element in nodes))
