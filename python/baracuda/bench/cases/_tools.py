"""What the cases share. Both sides work on the same torch memory, so that they see the same kind of pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

import baracuda as bc
from baracuda.bench.case import Case, Sides

if TYPE_CHECKING:
    from collections.abc import Sequence

    from baracuda.choose.plan import Plan
    from baracuda.describe.spec import Descriptor

DTYPES = {
    "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "f64": torch.float64, "bool": torch.bool,
    "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
}  # fmt: skip
SIZE = {name: dtype.itemsize for name, dtype in DTYPES.items()}


_device = "cpu"


def use_device(name: str) -> None:
    """Where the data of both sides is made from now on, and our plans run."""
    global _device
    _device = name


def there(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor on the device that is measured."""
    return tensor.to(_device)


def plan(desc: Descriptor) -> Plan:
    """Our plan on the device that is measured."""
    return bc.plan(desc, _device)


def noise(*shape: int, element: str = "f32", seed: int = 0) -> torch.Tensor:
    """Normal numbers."""
    generator = torch.Generator().manual_seed(seed)
    return there(torch.randn(shape, generator=generator).to(DTYPES[element]))


def space(*shape: int, element: str = "f32") -> torch.Tensor:
    """Memory for a result, touched."""
    return there(torch.zeros(shape, dtype=DTYPES[element]))


def bind(made: Plan, **arguments: Any) -> Any:
    """The plan's lowest-cost call, with a workspace when it needs one."""
    workspace = bc.empty(made.workspace_size, "u8", device=made.device) if made.workspace_size else None
    return made.bind(**arguments, workspace=workspace)


def text(shape: Sequence[int]) -> str:
    """A shape as 4096x4096; multiples of 2^20 as 64M."""
    return "x".join(f"{s >> 20}M" if s >= 1 << 20 and s % (1 << 20) == 0 else str(s) for s in shape)


def wide(*shape: int) -> torch.Tensor:
    """Memory for f32 statistics."""
    return there(torch.zeros(shape))


Add: TypeAlias = Callable[..., None]


def collector() -> tuple[list[Case], Add]:
    """A list of cases, and what adds one to it; the rest of a case's fields are keywords."""
    out: list[Case] = []

    def add(
        name: str, family: str, e: str, sizes: tuple[int, ...], build: Callable[[], Sides], peer: str, **rest: Any
    ) -> None:
        out.append(Case(name, family, e, text(sizes), f"torch {peer}", build, **rest))

    return out, add
