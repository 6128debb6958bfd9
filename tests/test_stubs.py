"""functional.pyi: type checkers take right scripts and refuse wrong ones, and what functions accept is of the types that it says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ci"))

from stubs import parameters

import baracuda as bc
import baracuda.functional as F
from conftest import SEED
from harness.differential import calls, functions

PACKAGES = Path(bc.__file__).resolve().parents[1]

RIGHT = """
import numpy as np, torch
import baracuda as bc
import baracuda.functional as F
x, t, b = np.zeros((3, 4), np.float32), torch.zeros(3), bc.empty((3,))
F.softmax(x, -1); F.relu(t); F.relu(b); F.mul(x, 2); F.mul(2.0, x); F.add(x, x, out=x); F.cat([x, x], 0)
F.sum(x, (0, 1), keepdim=True); F.conv2d(x, x, None, stride=2, padding=(1, 1)); F.clamp(x, min=x); F.einsum("ij->i", x)
F.cross_entropy(x, x, reduction="sum"); F.layer_norm(x, (4,), x, x, 1e-5); F.softmax(x, np.int64(1)); F.cast(x, np.float16)
F.where(x, x, 1.0); F.interpolate(x, scale_factor=2.0); F.pad(x, (1, 2)); F.linalg.vector_norm(x, 2); F.stack([x, x])
F.adamw_([x], [x], [x], [x], step=1, lr=0.1); F.scaled_dot_product_attention(x, x, x, is_causal=True, scale=0.5)
bc.plan(bc.SoftmaxDescriptor("softmax", (3, 4), element="f32")).run(x, x); bc.SoftmaxPlan.select
F.relu.infer(x); bc.jit(bc.grad(lambda x: F.sum(x)), static_argnums=(0,))(x); y, pull = bc.vjp(F.relu, x)
"""
WRONG = {
    'F.softmax(x, "last")': 'incompatible type "str"', 'F.softmax("x", 1)': 'expected "Array"', "F.relu(x, oot=x)": '"oot"',
    'F.cross_entropy(x, x, reduction="men")': "Literal['men']", "F.cat(x, x, 3)": "positional", "F.topk(x)": '"k"',
    'F.sum(x, keepdim="yes")': 'expected "bool"', "F.sofmax(x, 1)": '"sofmax"', "bc.Strem()": '"Strem"',
    "bc.SoftmaxPlan.selekt": '"selekt"',
    'bc.SoftmaxDescriptor("softmax", (3, 4), elemnt="f32")': '"elemnt"',
}  # fmt: skip


def checked(path: Path, text: str) -> str:
    pytest.importorskip("mypy")
    path.write_text(text)
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(path.parent / "cache"), "--no-error-summary", str(path)]
    # An installed package is found without help.
    env = os.environ | ({} if PACKAGES.name == "site-packages" else {"MYPYPATH": str(PACKAGES)})
    return subprocess.run(command, capture_output=True, text=True, cwd=path.parent, env=env).stdout


def test_a_type_checker_takes_right_scripts_and_refuses_wrong_ones(tmp_path: Path) -> None:
    assert checked(tmp_path / "right.py", RIGHT) == ""
    head = (
        "import numpy as np\nimport baracuda as bc\nimport baracuda.functional as F\nx = np.zeros((3, 4), np.float32)\n"
    )
    found = checked(tmp_path / "wrong.py", head + "".join(f"{line}\n" for line in WRONG))
    for number, (line, words) in enumerate(WRONG.items(), 5):
        assert any(f"wrong.py:{number}: error" in said and words in said for said in found.splitlines()), (line, found)


def _is_array(x: Any) -> bool:
    return hasattr(x, "__dlpack__")


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float, np.integer, np.floating))


def _is_whole(x: Any) -> bool:
    try:
        index(x)
    except TypeError:
        return False
    return True


IS: dict[str, Callable[[Any], bool]] = {
    "Array": _is_array, "_Number": _is_number, "_Whole": _is_whole, "None": lambda x: x is None,
    "_Wholes": lambda x: _is_whole(x) or (isinstance(x, Sequence) and all(map(_is_whole, x))), "Any": lambda x: True,
    "bool": lambda x: isinstance(x, bool), "str": lambda x: isinstance(x, str),
    "_Reduction": lambda x: x in ("none", "mean", "sum", "batchmean"),
    "Sequence[Array]": lambda x: isinstance(x, Sequence) and all(map(_is_array, x)),
    "Sequence[_Whole]": lambda x: isinstance(x, Sequence) and all(map(_is_whole, x)),
    "Sequence[_Number]": lambda x: isinstance(x, Sequence) and all(map(_is_number, x)),
    "_Generator": lambda x: isinstance(x, bc.Generator),
}  # fmt: skip


@pytest.mark.parametrize("name", functions.names())
def test_what_is_accepted_is_of_the_declared_types(name: str) -> None:
    fn = getattr(F, name)
    declared = dict((p.name, (p, kind)) for p, kind in parameters(fn))
    for number in range(12):
        call = calls.make(name, (SEED, number))
        args, kwargs = call.arguments(calls.ours(call))
        try:
            fn(*args, **kwargs)
        except (bc.BaracudaError, TypeError):
            continue
        for key, value in fn.__signature__.bind(*args, **kwargs).arguments.items():
            p, kind = declared[key]
            for x in value if p.kind is p.VAR_POSITIONAL else (value,):
                assert any(IS[part](x) for part in kind.split(" | ")), f"{key}: got {type(x).__name__}, declared {kind}"
