"""Programs as bytes, and what they keep of their arguments' producers."""

from __future__ import annotations

import gc
import json
import random
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programs import by_plans, chain, rows

import baracuda as bc


def test_bytes_and_folders(tmp_path: Path) -> None:
    held = np.linspace(1, 2, 12, dtype=np.float32)
    b = chain()
    b.add(bc.UnaryDescriptor("neg", (12,)), x=b.constant(held, "held"), y=b.output("z", (12,)))
    program = b.build()
    again = bc.Program.from_bytes(program.to_bytes(), [held])
    assert again.to_bytes() == program.to_bytes()
    program.save(tmp_path / "saved")
    loaded = bc.Program.load(tmp_path / "saved")
    for one in (again, loaded):
        for a, w in zip(one.run(rows(5)), program.run(rows(5)), strict=True):
            np.testing.assert_array_equal(a, w)
    document = json.loads(program.to_bytes())
    for path, value in (
        (("steps", 0, "plan"), 99),
        (("steps", 0, "tensors", 0, "value"), 99),
        (("steps", 0, "tensors", 0, "value"), -1),
        (("steps", 0, "tensors"), []),
        (("values", 0, "shape"), [2**60]),
        (("values", 0, "element"), "f16"),
        (("values", 0, "storage"), "rom"),
        (("dims",), {}),
        (("dims", "n"), 65),
        (("schema",), 1),
        (("kind",), "plan"),
        (("steps", 0, "tensors", 0, "offset"), 3),
        (("steps", 0, "tensors", 0, "shape"), [{"terms": [[1, "q"]]}, 12]),
        (("digest",), "0"),
        (("device",), "tpu"),
        (("plans",), []),
    ):
        wrong = json.loads(json.dumps(document))
        inner = wrong
        for part in path[:-1]:
            inner = inner[part]
        inner[path[-1]] = value
        with pytest.raises(bc.InvalidProblemError) as caught:
            bc.Program.from_bytes(json.dumps(wrong).encode(), [held])
        assert caught.value.code in ("document", "error"), path
    wrong = json.loads(chain().build().to_bytes())
    wrong["plans"][:2] = wrong["plans"][1::-1]  # of the same arguments
    with pytest.raises(bc.InvalidProblemError, match="digest"):
        bc.Program.from_bytes(json.dumps(wrong).encode())
    for constants in ([], [held, held], [held[:11]], [held.astype(np.float64)]):
        with pytest.raises(bc.InvalidProblemError, match="constant"):
            bc.Program.from_bytes(program.to_bytes(), constants)


def test_hostile_offsets_stay_inside() -> None:
    """A document whose digest was made anew still reaches no memory but its own."""
    document = json.loads(chain().build().to_bytes())
    plans = [bc.Plan.from_bytes(json.dumps(p).encode()) for p in document.pop("plans")]
    del document["digest"]
    rng = random.Random(5)
    ran = 0
    for _ in range(400):
        wrong = json.loads(json.dumps(document))
        step = rng.choice(wrong["steps"])
        view = rng.choice(step["tensors"])
        number = rng.choice([-1, 1, 3, 12, 2**40, -(2**40), 2**62, {"terms": [[rng.choice([-1, 1, 7, 2**60]), "n"]]}])
        what = rng.choice(["offset", "shape", "strides", "value"])
        if what == "offset":
            view["offset"] = number
        elif what == "value":
            view["value"] = rng.randrange(len(wrong["values"]))
        else:
            view.setdefault("strides", [12, 1])
            view[what][rng.randrange(2)] = number
        try:
            made = bc.Program._made(json.dumps(wrong), tuple(plans), ())
            for k in (0, 1, 64):
                made.run(rows(k))
                ran += 1
        except bc.BaracudaError:
            pass
    assert ran


def test_bound_programs_keep_what_producers_exported() -> None:
    class Exported(np.ndarray):
        pass

    class Producer:
        """A new copy for each consumer."""

        copy: weakref.ref[Exported]

        def __dlpack__(self, **options: Any) -> Any:
            made = rows(3).view(Exported)
            self.copy = weakref.ref(made)
            return made.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    given = Producer()
    bound = chain().build().bind(given, np.empty((3, 12), np.float32))
    gc.collect()
    assert given.copy() is not None
    np.testing.assert_array_equal(bound(), by_plans(rows(3)))
    del bound
    gc.collect()
    assert given.copy() is None
    copy = rows(3).view(Exported)
    alive, capsule = weakref.ref(copy), copy.__dlpack__()
    bound = chain().build().bind(capsule, np.empty((3, 12), np.float32))
    del copy, capsule
    gc.collect()
    assert alive() is not None
    np.testing.assert_array_equal(bound(), by_plans(rows(3)))
