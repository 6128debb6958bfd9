"""What the arguments are of functions that move data, look things up, normalise over groups, or score."""

from __future__ import annotations

import numpy as np

from differential.shapes import Arguments, Making, Shape, dtype_of
from differential.values import PLAIN, UNIT, WEIGHT, T, arranged


def layout(m: Making, name: str) -> Arguments:
    """New tensors of numbers, and copies."""
    if name in ("copy", "clone", "alias_copy"):
        return {"input": m.tensor(m.shape())}
    if name in ("ones_like", "zeros_like", "full_like"):
        given: Arguments = {"input": m.tensor(m.shape())}
        if name == "full_like":
            given["fill_value"] = m.number(None if given["input"].is_float else True)
        return given | ({"dtype": dtype_of(m)} if m.chance(0.4) else {})
    if name in ("ones", "zeros"):
        given = {"*size": [list(m.shape())] if m.chance(0.6) else list(m.shape(1))}
    elif name == "full":
        given = {"size": m.shape(), "fill_value": m.number()}
    elif name == "eye":
        given = {"n": m.size()} | ({"m": m.size()} if m.chance(0.5) else {})
    elif name == "linspace":
        given = {"start": m.number(), "end": m.number(), "steps": m.size()}
    else:
        low = m.number()
        step = m.pick(1, 2, 0.5, -1, 0.3)
        given = {"start": low, "end": low + step * m.size()} | ({"step": step} if step != 1 else {})
    return given | ({"dtype": dtype_of(m)} if m.chance(0.4) else {})


def compact(m: Making, name: str) -> Arguments:
    shape = m.shape()
    if name == "one_hot":
        classes = m.size(1)
        found = T(m.rng.integers(0, classes, shape), "contiguous", m.producer if m.producer != "jax" else "numpy")
        return {"tensor": found} | ({"num_classes": classes} if m.chance(0.7) else {})
    given: Arguments = {"input": m.tensor(m.part(shape) if name == "masked_select" else shape)}
    if name == "masked_select":
        given["mask"] = m.mask(m.part(shape))
    if name == "nonzero" and m.chance(0.3):
        given["as_tuple"] = m.chance(0.5)
    if name == "nonzero_static":
        given |= {"size": m.size()} | ({"fill_value": m.size()} if m.chance(0.5) else {})
    return given


def cast(m: Making, name: str) -> Arguments:
    return {"input": m.tensor(m.shape()), "dtype": dtype_of(m)}


def join(m: Making, name: str) -> Arguments:
    base = m.shape(1 if name != "stack" else 0, 4, elements=400)
    rank = len(base) + (name == "stack")
    dim = m.dim(rank)
    parts = []
    for _ in range(int(m.rng.integers(1, 5))):
        shape = list(base)
        if name != "stack":
            shape[dim] = m.size(most=9)
        parts.append(m.tensor(tuple(shape)))
    return {"tensors": parts} | ({"dim": dim} if dim or m.chance(0.5) else {})


def arrange(m: Making, name: str) -> Arguments:
    if name in ("tril", "triu", "diag"):
        x = m.shape(1 if name == "diag" else 2, 2 if name == "diag" else 5)
        given: Arguments = {"input": m.tensor(x)}
        return given | ({"diagonal": int(m.rng.integers(-6, 7))} if m.chance(0.6) else {})
    if name == "diag_embed":
        x = m.shape(1, 3, elements=100)
        given = {"input": m.tensor(x)}
        if m.chance(0.5):
            one, two = (int(d) for d in m.rng.permutation(len(x) + 1)[:2])
            given |= {
                "offset": int(m.rng.integers(-4, 5)),
                "dim1": one,
                "dim2": two - (len(x) + 1 if m.chance(0.3) else 0),
            }
        return given
    x = m.shape()
    given = {"input": m.tensor(x)}
    if name == "flip":
        return given | {"dims": [int(d) for d in m.rng.permutation(len(x))[: int(m.rng.integers(0, len(x) + 1))]]}
    if name == "roll":
        if m.chance(0.3):
            return given | {"shifts": int(m.rng.integers(-9, 10))}
        dims = [int(d) for d in m.rng.permutation(len(x))[: int(m.rng.integers(1, len(x) + 1))]] if x else [0]
        return given | {"shifts": [int(m.rng.integers(-9, 10)) for _ in dims], "dims": dims}
    dim = m.dim(len(x))
    if not x:
        return given | {"src": m.tensor(()), "dim": dim}
    start, end, step = m.pick(None, 0, 1, -3), m.pick(None, 2, 100, -1), m.pick(1, 2, 3)
    shape = list(x)
    shape[dim] = len(range(*slice(start, end, step).indices(x[dim])))
    given |= {"src": m.tensor(tuple(shape)), "dim": dim, "step": step}
    return given | {k: v for k, v in (("start", start), ("end", end)) if v is not None}


def pad(m: Making, name: str) -> Arguments:
    if name in ("repeat", "tile"):
        x = m.shape(0, 4, elements=200)
        count = len(x) + int(m.rng.integers(0, 3)) if name == "repeat" else int(m.rng.integers(0, len(x) + 2))
        return {
            "input": m.tensor(x),
            "repeats" if name == "repeat" else "dims": [int(n) for n in m.rng.integers(0, 4, count)],
        }
    if name == "repeat_interleave":
        x = m.shape(0, 4, elements=200)
        given: Arguments = {"input": m.tensor(x)}
        if m.chance(0.7):
            given["dim"] = m.dim(len(x))
        n = (x[given["dim"]] if x else 1) if "dim" in given else int(np.prod(x))
        given["repeats"] = int(m.rng.integers(0, 4))
        if m.chance(0.5):
            given["repeats"] = arranged(m.rng, m.rng.integers(0, 4, n), m.producer, repeated=False)
        return given
    mode = m.pick("constant", "constant", "reflect", "replicate", "circular")
    x = m.shape(0 if mode == "constant" else 2, 6 if mode == "constant" else 5, least=int(mode != "constant"))
    pairs = (
        int(m.rng.integers(0, len(x) + 1)) if mode == "constant" else max(1, min(3, len(x) - int(m.rng.integers(1, 3))))
    )
    most = 5 if mode == "constant" else 3
    numbers = [int(n) for n in m.rng.integers(-1 if m.chance(0.3) else 0, most, 2 * pairs)]
    given = {"input": m.tensor(x), "pad": numbers}
    if mode != "constant" or m.chance(0.3):
        given["mode"] = mode
    if mode == "constant" and m.chance(0.5):
        given["value"] = m.number(not given["input"].is_float)
    return given


def _index_shape(m: Making, x: Shape, dim: int) -> Shape:
    """Not larger than x but along `dim`."""
    return tuple(
        m.size(most=9) if d == dim % max(len(x), 1) else int(m.rng.integers(min(1, n), n + 1)) for d, n in enumerate(x)
    )


def _along(m: Making, x: Shape) -> tuple[int, int]:
    dim = m.dim(len(x))
    return dim, x[dim] if x else 1


def indexing(m: Making, name: str) -> Arguments:
    x = m.shape(least=int(m.chance(0.8)))
    given: Arguments = {"input": m.tensor(x)}
    if name == "masked_fill":
        given["mask"] = m.mask(m.part(x))
        return given | {"value": m.number(None if given["input"].is_float else True)}
    if name == "take":
        return given | {"index": m.indices(m.shape(0, 3, elements=60), int(np.prod(x)))}
    dim, size = _along(m, x)
    if name == "index_select":
        return given | {"dim": dim, "index": m.indices((m.size(most=9),), size, negative=False)}
    if name == "take_along_dim":
        if m.chance(0.2):
            return given | {"indices": m.indices((m.size(),), int(np.prod(x)))}
        shape = tuple(
            m.size(most=9) if d == dim % max(len(x), 1) else n if m.chance(0.8) else 1 for d, n in enumerate(x)
        )
        return given | {"indices": m.indices(shape, size), "dim": dim}
    return given | {"dim": dim, "index": m.indices(_index_shape(m, x, dim), size, negative=False)}


def scatter(m: Making, name: str) -> Arguments:
    x = m.shape(least=int(m.chance(0.8)), elements=600)
    given: Arguments = {"input": m.tensor(x)}
    dim, size = _along(m, x)
    given["dim"] = dim
    if name.startswith("index"):
        n = m.size(most=9)
        if name == "index_copy":  # which of several writes stays is open in torch
            n = min(n, size)
            index = m.indices((n,), size, negative=False)
            index.array = m.rng.permutation(size)[:n].astype(np.int64)
        else:
            index = m.indices((n,), size, negative=False)
        given["index"] = index
        if name == "index_fill":
            return given | {"value": m.number(None if given["input"].is_float else True)}
        shape = tuple(n if d == dim % max(len(x), 1) else s for d, s in enumerate(x))
        given["source"] = m.tensor(shape if x else (m.pick((n,), ()) if n == 1 else (n,)))
        if name == "index_add" and m.chance(0.4):
            given["alpha"] = m.number(None if given["input"].is_float else True)
        if name == "index_reduce":
            given["reduce"] = m.pick("prod", "mean", "amax", "amin")
            if m.chance(0.5):
                given["include_self"] = m.chance(0.5)
        return given
    shape = _index_shape(m, x, dim)
    index = m.indices(shape, size, negative=False)
    if name == "scatter" and shape and size:
        along = dim % len(x)
        shape = tuple(min(s, size) if d == along else s for d, s in enumerate(shape))
        places = np.argsort(m.rng.random((*shape[:along], size, *shape[along + 1 :])), axis=along)
        index.array = np.ascontiguousarray(np.take(places, range(shape[along]), along))
        index.layout = "contiguous"
    given["index"] = index
    source = tuple(n + int(m.chance(0.15)) for n in shape)
    if name == "scatter" and m.chance(0.3):
        return given | {"value": m.number(None if given["input"].is_float else True)}
    given["src"] = m.tensor(source)
    if name == "scatter" and m.chance(0.2):
        given["reduce"] = m.pick("add", "multiply")
    if name == "scatter_reduce":
        given["reduce"] = m.pick("sum", "prod", "mean", "amax", "amin")
        if m.chance(0.5):
            given["include_self"] = m.chance(0.5)
    return given


def masked(m: Making, name: str) -> Arguments:
    """masked_scatter; index_reduce is one of the scatters."""
    if name != "masked_scatter":
        return scatter(m, name)
    x = m.shape()
    mask = m.mask(m.part(x))
    wanted = int(np.count_nonzero(np.broadcast_to(mask.array, x)))
    return {
        "input": m.tensor(x),
        "mask": mask,
        "source": m.tensor((max(wanted - int(m.chance(0.05)), 0) + int(m.rng.integers(0, 3)),)),
    }


def embedding(m: Making, name: str) -> Arguments:
    rows, columns = m.size(1), m.size()
    weight = m.floats((rows, columns))
    if name == "embedding":
        given: Arguments = {"input": m.indices(m.shape(0, 3, elements=60), rows, negative=False), "weight": weight}
        return given | ({"padding_idx": int(m.rng.integers(-rows, rows))} if m.chance(0.4) else {})
    mode = m.pick("sum", "mean", "max")
    if m.chance(0.5):
        given = {"input": m.indices(m.shape(2, 2, elements=60), rows, negative=False), "weight": weight}
    else:
        n = m.size(most=40)
        offsets = np.sort(m.rng.integers(0, n + 1, m.size(1, 9)))
        offsets[0] = 0
        given = {"input": m.indices((n,), rows, negative=False), "weight": weight}
        given["offsets"] = arranged(
            m.rng, offsets.astype(given["input"].array.dtype), given["input"].producer, repeated=False
        )
        given["offsets"].index = True
    given["mode"] = mode
    if mode == "sum" and m.chance(0.4):
        given["per_sample_weights"] = m.tensor(given["input"].shape, element=weight.element)
    return given | ({"padding_idx": int(m.rng.integers(-rows, rows))} if m.chance(0.3) else {})


def norms(m: Making, name: str) -> Arguments:
    if name == "group_norm":
        groups = m.size(1, 5)
        x = (m.size(most=5), groups * m.size(1, 6), *m.shape(0, 3, elements=40))
        given: Arguments = {"input": m.floats(x), "num_groups": groups}
        over: Shape = (x[1],)
    else:
        x = m.shape(1, least=int(m.chance(0.8)))
        over = x[int(m.rng.integers(0, len(x))) :]
        given = {"input": m.floats(x), "normalized_shape": list(over) if m.chance(0.5) else over}
    if m.chance(0.5):
        given["weight"] = m.tensor(over, element=given["input"].element)
    if m.chance(0.4) and "rms" not in name:
        given["bias"] = m.tensor(over, element=given["input"].element)
    return given | ({"eps": m.pick(1e-5, 1e-3, 0.1)} if m.chance(0.4) else {})


def pointwise_loss(m: Making, name: str) -> Arguments:
    shape = m.shape()
    first, second = (
        (UNIT, UNIT)
        if name == "binary_cross_entropy"
        else (None, UNIT)
        if name != "l1_loss" and name[:3] == "bin"
        else (None, None)
    )
    if name == "kl_div":
        second = UNIT
    given: Arguments = {"input": m.floats(shape, first), "target": m.floats(shape, second)}
    if name.startswith("binary") and m.chance(0.3):
        given["weight"] = m.floats(m.part(shape), WEIGHT)
    if name.endswith("logits") and m.chance(0.3):
        given["pos_weight"] = m.floats(m.part(shape), WEIGHT)
    if name == "huber_loss" and m.chance(0.5):
        given["delta"] = m.pick(0.5, 1.0, 2.5)
    if name == "smooth_l1_loss" and m.chance(0.5):
        given["beta"] = m.pick(0.5, 1.0, 0.0, 2.5)
    if name == "kl_div" and m.chance(0.5):
        given["log_target"] = m.chance(0.5)
    if m.chance(0.8):
        given["reduction"] = m.pick("none", "mean", "sum", *(["batchmean"] if name == "kl_div" else []))
    return given


def class_loss(m: Making, name: str) -> Arguments:
    classes = m.size(1)
    lead = m.pick((), (m.size(most=20),), (m.size(most=20),), (m.size(most=9), m.size(most=4)), (m.size(most=5), 2, 3))
    x = (lead[0], classes, *lead[1:]) if lead else (classes,)
    if name.startswith("linear"):
        features = m.size()
        x, lead = (m.size(most=20), features), (0,)
        lead = x[:1]
    given: Arguments = {"input": m.floats(x)}
    if name.startswith("linear"):
        given["linear_weight"] = m.tensor((classes, x[1]), element=given["input"].element)
        if m.chance(0.3):
            given["linear_bias"] = m.tensor((classes,), element=given["input"].element)
    target = m.indices(lead, classes, negative=False)
    target.array = target.array.astype(np.int64)
    if name == "cross_entropy" and m.chance(0.2):
        given["target"] = m.floats(x, UNIT)
    else:
        given["target"] = target
        if m.chance(0.3):
            given["ignore_index"] = int(m.rng.integers(-1, classes))
    if m.chance(0.3):
        given["weight"] = m.tensor((classes,), WEIGHT, given["input"].element)
    if name != "nll_loss" and m.chance(0.3):
        given["label_smoothing"] = m.pick(0.0, 0.1, 1.0)
    return given | ({"reduction": m.pick("none", "mean", "sum")} if m.chance(0.7) else {})


def attention(m: Making, name: str) -> Arguments:
    m.mode = PLAIN  # what NaN does to masked scores is a row of its own, which `verify` holds
    lead = m.pick((), (2,), (m.size(1, 3), m.size(1, 4)), (1, 2))
    queries, keys, size, out = m.size(1, 20), m.size(1, 40), m.size(1, 33), m.size(1, 33)
    out = size if m.chance(0.7) else out
    given: Arguments = {
        "query": m.floats((*lead, queries, size)),
        "key": m.floats((*lead, keys, size)),
        "value": m.floats((*lead, keys, out)),
    }
    element = given["query"].element
    given["key"] = m.tensor(given["key"].shape, element=element)
    given["value"] = m.tensor(given["value"].shape, element=element)
    kind = m.pick("none", "none", "causal", "bool", "float")
    if kind == "causal":
        given["is_causal"] = True
    elif kind != "none":
        shape = m.part((*lead, queries, keys)) if m.chance(0.5) else (queries, keys)
        shape = shape if len(shape) >= 2 else (queries, keys)
        given["attn_mask"] = m.mask(shape) if kind == "bool" else m.tensor(shape, element=element)
    return given | ({"scale": m.pick(0.5, 1.0, 0.1)} if m.chance(0.4) else {})
