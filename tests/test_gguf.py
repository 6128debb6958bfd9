"""GGUF files: those that the `gguf` package writes, those that it reads, and files that lie."""

from __future__ import annotations

import os
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F
from baracuda.ops.quant.quant import BlockFormat

gguf = pytest.importorskip("gguf")
SAME = list(BlockFormat)[:5]  # which the package writes, too
HEAD = b"GGUF" + struct.pack("<I", 3)


def text(s: str) -> bytes:
    return struct.pack("<Q", len(s)) + s.encode()


def written(path: Path, rng: np.random.Generator) -> dict[str, Any]:
    """A file by the package: plain tensors, blocks, all kinds of metadata."""
    w = gguf.GGUFWriter(str(path), "llama")
    w.add_uint32("a.count", 7)
    w.add_float32("a.eps", 0.5)
    w.add_bool("a.flag", True)
    w.add_string("a.name", "Zoë")
    w.add_array("a.words", ["x", "yy", ""])
    w.add_array("a.numbers", [1, 2, 3])
    x = {"plain": rng.normal(0, 1, (3, 5)).astype(np.float32), "half": rng.normal(0, 1, 7).astype(np.float16)}
    for name, values in x.items():
        w.add_tensor(name, values)
    values = rng.normal(0, 1, (4, 64)).astype(np.float32)
    for f in SAME:
        kind = gguf.GGMLQuantizationType(f.code)
        w.add_tensor(f.value, gguf.quantize(values, kind), raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return {**x, "values": values}


def test_files_of_the_package_are_read_where_they_lie(tmp_path: Path, rng: np.random.Generator) -> None:
    x = written(tmp_path / "a.gguf", rng)
    file = bc.load_gguf(tmp_path / "a.gguf")
    assert list(file.tensors) == ["plain", "half", *(f.value for f in SAME)]
    m = file.metadata
    assert (m["general.architecture"], m["a.count"], m["a.eps"], m["a.flag"]) == ("llama", 7, 0.5, True)
    assert m["a.name"] == "Zoë" and m["a.words"] == ["x", "yy", ""] and m["a.numbers"].tolist() == [1, 2, 3]
    for name in ("plain", "half"):
        t = file.tensors[name]
        assert t.format is None and t.shape == x[name].shape and t.data.dtype == x[name].dtype
        np.testing.assert_array_equal(t.data, x[name])
    for f in SAME:
        t = file.tensors[f.value]
        assert (t.shape, t.format) == ((4, 64), f.value)
        assert not t.data.flags.owndata and not t.data.flags.writeable
        expected = gguf.dequantize(
            gguf.quantize(x["values"], gguf.GGMLQuantizationType(f.code)), gguf.GGMLQuantizationType(f.code)
        )
        np.testing.assert_array_equal(F.dequantize(t.data, f.value), expected)
    y = F.quant_matmul(x["values"], file.tensors["q8_0"].data, "q8_0")
    np.testing.assert_allclose(y, x["values"] @ x["values"].T, rtol=0.05, atol=0.5)


def test_the_package_reads_what_we_write(tmp_path: Path, rng: np.random.Generator) -> None:
    path = tmp_path / "b.gguf"
    values = rng.normal(0, 1, (6, 256)).astype(np.float32)
    blocks = bc.GgufTensor(F.quantize(values, "q5_1"), values.shape, "q5_1")
    metadata = {
        "general.architecture": "llama",
        "n": -3,
        "eps": 1e-5,
        "yes": True,
        "list": [1.5, 2.5],
        "names": ["a", "b"],
    }
    bc.save_gguf(path, {"plain": values, "ids": np.arange(5), "blocks": blocks}, metadata)
    reader = gguf.GGUFReader(str(path))
    named = {t.name: t for t in reader.tensors}
    np.testing.assert_array_equal(named["plain"].data, values)
    np.testing.assert_array_equal(named["ids"].data, np.arange(5))
    assert named["blocks"].tensor_type is gguf.GGMLQuantizationType.Q5_1
    np.testing.assert_array_equal(named["blocks"].data, blocks.data)
    assert {k: reader.fields[k].contents() for k in metadata} == metadata
    file = bc.load_gguf(path)
    assert file.metadata.pop("list").tolist() == [1.5, 2.5]
    assert file.metadata == {k: v for k, v in metadata.items() if k != "list"}
    assert file.tensors["blocks"].shape == (6, 256)
    np.testing.assert_array_equal(file.tensors["blocks"].data, blocks.data)


def test_wrong_tensors_are_not_written(tmp_path: Path) -> None:
    for given, message in (
        (np.zeros(3, np.complex64), "got complex64, want f32"),
        (bc.GgufTensor(np.zeros((2, 18), np.uint8), (2, 64), "q4_0"), r"want uint8 \(2, 36\)"),
        (np.zeros((1, 1, 1, 1, 2), np.float32), "want at most 4 dimensions"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=message):
            bc.save_gguf(tmp_path / "c.gguf", {"t": given})
    for value, message in (
        ([1, "a"], "several kinds"),
        (2**64, "got integers of 18446744073709551616"),
        ([2**63, -1], "got integers of -1 to 9223372036854775808, want those that i64 or u64 holds"),
        ("\ud800", "want text that UTF-8 has"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=message):
            bc.save_gguf(tmp_path / "c.gguf", {}, {"k": value})
    with pytest.raises(bc.InvalidProblemError, match="a tensor's name: got 1, want text"):
        bc.save_gguf(tmp_path / "c.gguf", {1: np.zeros(3, np.float32)})  # type: ignore[dict-item]
    assert not list(tmp_path.iterdir())


def tensor(name: str = "t", dims: tuple[int, ...] = (32,), kind: int = 8, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


def file_of(tensors: list[bytes], entries: list[bytes] = [], data: int = 64) -> bytes:  # noqa: B006
    head = HEAD + struct.pack("<QQ", len(tensors), len(entries)) + b"".join(entries) + b"".join(tensors)
    return head + bytes(-len(head) % 32 + data)


def entry(kind: int, raw: bytes, key: str = "k") -> bytes:
    return text(key) + struct.pack("<I", kind) + raw


FORGED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "byte 0: the magic number has 4 bytes, the file only 0"),
    "another": (b"PK\3\4" + bytes(99), "byte 0: got b'PK.*this is no GGUF file"),
    "version 1": (b"GGUF" + struct.pack("<I", 1) + bytes(99), "byte 4: got version 1, want 2 or 3"),
    "big endian": (b"GGUF" + struct.pack(">I", 3) + bytes(99), "big endian"),
    "many tensors": (HEAD + struct.pack("<QQ", 2**63, 0), "byte 8: .* tensors do not fit"),
    "many entries": (HEAD + struct.pack("<QQ", 0, 2**40), "byte 16: .* metadata do not fit"),
    "long key": (HEAD + struct.pack("<QQQ", 0, 1, 2**60) + bytes(40), "a key has 1152921504606846976 bytes"),
    "type of value": (file_of([], [entry(13, b"")]), "type 13, which there is not"),
    "boolean": (file_of([], [entry(7, b"\2")]), "a boolean of value 2"),
    "long list": (file_of([], [entry(9, struct.pack("<IQ", 10, 2**61))]), "'k' do not fit"),
    "long list of lists": (file_of([], [entry(9, struct.pack("<IQ", 9, 2**50))]), "'k' do not fit"),
    "deep list": (file_of([], [entry(9, struct.pack("<IQ", 9, 1) * 40)]), "lists nested 4 deep"),
    "key twice": (file_of([], [entry(0, b"\1"), entry(0, b"\1")]), "'k' is there twice"),
    "alignment": (file_of([], [entry(4, struct.pack("<I", 48), "general.alignment")]), "want a power of 2"),
    "no alignment": (file_of([], [entry(8, text("32"), "general.alignment")]), "want a power of 2"),
    "rank": (file_of([tensor(dims=(1,) * 5)]), "5 dimensions, want at most 4"),
    "huge rank": (file_of([text("t") + struct.pack("<I", 2**32 - 1)]), "dimensions, want at most 4"),
    "64-bit alignment": (
        file_of([], [entry(11, struct.pack("<q", 64), "general.alignment")]),
        "want a power of 2 of type 4",
    ),
    "nothing of a type": (
        file_of([tensor(kind=77, offset=64)]),
        "'t' has 1 bytes at offset 64, the file's data only 64",
    ),
    "part of a block": (file_of([tensor(dims=(33,))]), "multiple of 32, the values of a block of q8_0"),
    "blocks of no dimension": (file_of([tensor(dims=())]), "multiple of 32"),
    "large": (file_of([tensor(dims=(2**20, 2**20, 2**20))]), "the file's data only 64"),
    "huge": (file_of([tensor(dims=(2**62, 2**62, 2**62, 32))]), "want sizes whose product is below"),
    **{
        f"nothing of {dims}": (file_of([tensor(dims=dims, kind=kind)]), r"want sizes whose product is below 2\*\*63")
        for dims, kind in (
            ((2**63, 0), 0),
            ((0, 2**64 - 1), 1),
            ((32, 2**40, 2**40, 0), 8),
            ((0, 2**60), 28),
            ((2**60, 0), 8),
            ((2**60, 0), 77),
        )
    },
    "past the end": (file_of([tensor(dims=(64,))]), "'t' has 68 bytes at offset 0, the file's data only 64"),
    "far": (file_of([tensor(offset=2**64 - 32)]), "at offset 18446744073709551584"),
    "odd offset": (file_of([tensor(offset=3)]), "begins at offset 3, want a multiple of 32"),
    "overlap": (
        file_of([tensor("a"), tensor("b", offset=32)], data=128),
        "'b' begins at offset 32, before 'a' ends at 34",
    ),
    "name twice": (file_of([tensor(), tensor()], data=128), "the tensor 't' is there twice"),
}


@pytest.mark.parametrize("name", FORGED)
def test_files_that_lie_are_refused_where_they_do(tmp_path: Path, name: str) -> None:
    path = tmp_path / "forged.gguf"
    path.write_bytes(FORGED[name][0])
    with pytest.raises(bc.InvalidProblemError, match=r"forged\.gguf', byte \d+: ") as raised:
        bc.load_gguf(path)
    assert raised.match(FORGED[name][1])


def _read(path: Path) -> bc.GgufFile | None:
    """What is in a damaged file, where it is read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of texts that are not UTF-8
        try:
            return bc.load_gguf(path)
        except bc.InvalidProblemError:
            return None


def _bytes(t: Any) -> Any:
    return t.raw if isinstance(t, bc.GgufUnknown) else t.data


def test_every_cut_and_every_changed_byte_is_refused_or_read(tmp_path: Path, rng: np.random.Generator) -> None:
    path = tmp_path / "whole.gguf"
    written(path, rng)
    whole = path.read_bytes()
    damaged = tmp_path / "damaged.gguf"
    for end in range(0, len(whole) - 32, 13):  # what pads the last tensor may be missing
        damaged.write_bytes(whole[:end])
        with pytest.raises(bc.InvalidProblemError):
            bc.load_gguf(damaged)
    for at in rng.integers(0, 700, 300):
        changed = bytearray(whole)
        changed[at] = rng.integers(0, 256)
        damaged.write_bytes(changed)
        if (file := _read(damaged)) is not None:
            assert all(_bytes(t).sum() is not None for t in file.tensors.values())


WORDS = (0, 1, 2, 7, 31, 255, 2**31, 2**32 - 1, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 32, 2**64 - 1)


def test_files_with_words_that_lie_are_refused_or_read_within(tmp_path: Path, rng: np.random.Generator) -> None:
    blocks = {
        f.value: bc.GgufTensor(rng.integers(0, 256, (2, f.block_bytes), np.uint8), (2, f.block_values), f.value)
        for f in BlockFormat
    }
    path, damaged = tmp_path / "whole.gguf", tmp_path / "damaged.gguf"
    bc.save_gguf(
        path, {**blocks, "none": np.zeros((3, 0), np.float32)}, {"l": [[1], [2]], "s": ["a", ""], "n": 2**64 - 1}
    )
    whole, read = path.read_bytes(), 0
    head = len(whole) - sum(-(-b.data.nbytes // 32) * 32 for b in blocks.values())
    for _ in range(8000 if os.environ.get("BARACUDA_FULL") else 600):
        changed = bytearray(whole)
        for _ in range(rng.integers(1, 4)):
            at, word = int(rng.integers(0, head + 300)), WORDS[rng.integers(len(WORDS))]
            how = rng.integers(4)
            if how < 2:
                size = 8 if how else 4
                changed[at : at + size] = word.to_bytes(8, "little")[:size]
            elif how == 2:
                del changed[at : at + int(rng.integers(1, 12))]
            else:
                changed[at:at] = rng.bytes(int(rng.integers(1, 12)))
        damaged.write_bytes(changed)
        if (file := _read(damaged)) is None:
            continue
        read += 1
        for t in file.tensors.values():
            assert len(_bytes(t).tobytes()) == _bytes(t).nbytes
            if t.format and isinstance(t, bc.GgufTensor):
                assert F.dequantize(t.data, t.format).shape == t.shape
    assert read > 20


def test_a_tensor_of_another_type_is_listed_and_refused_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "types.gguf"
    data = bytes(range(1, 161))
    head = file_of(
        [tensor("a"), tensor("b", kind=77, offset=64), tensor("c", (2, 3), 40, 96), tensor("d", offset=128)], data=0
    )
    path.write_bytes(head + bytes(-len(head) % 32) + data + bytes(64))
    file = bc.load_gguf(path)
    assert list(file.tensors) == ["a", "b", "c", "d"]
    b, c = file.tensors["b"], file.tensors["c"]
    assert isinstance(b, bc.GgufUnknown) and (b.shape, b.format, b.code) == ((32,), "type 77", 77)
    assert bytes(b.raw) == data[64:96] and not b.raw.flags.writeable
    assert isinstance(c, bc.GgufUnknown) and (c.shape, c.format) == ((3, 2), "nvfp4") and bytes(c.raw) == data[96:128]
    assert file.tensors["a"].data.shape == file.tensors["d"].data.shape == (34,)
    with pytest.raises(
        bc.InvalidProblemError, match=r"tensor 'b' is of ggml's type 77 \(type 77\), which is not read.*\.raw"
    ):
        _ = b.data
    bc.save_gguf(tmp_path / "again.gguf", file.tensors)
    again = bc.load_gguf(tmp_path / "again.gguf").tensors
    assert (
        isinstance(again["b"], bc.GgufUnknown) and again["b"].code == 77 and bytes(again["b"].raw)[:32] == data[64:96]
    )
    assert bytes(again["d"].data) == bytes(file.tensors["d"].data)


def test_texts_that_are_not_utf_8_are_bytes_with_a_warning(tmp_path: Path) -> None:
    bad = struct.pack("<Q", 2) + b"\xff\xfe"
    entries = [
        entry(8, bad),
        bad + struct.pack("<I", 0) + b"\7",
        entry(9, struct.pack("<IQ", 8, 2) + text("a") + bad, "l"),
    ]
    made = file_of([bad + struct.pack("<IQIQ", 1, 32, 8, 0)], entries)
    (tmp_path / "raw.gguf").write_bytes(made)
    with pytest.warns(UserWarning, match=r"raw\.gguf': 'k' at byte 37 and 3 more is not UTF-8"):
        file = bc.load_gguf(tmp_path / "raw.gguf")
    assert file.metadata == {"k": b"\xff\xfe", b"\xff\xfe": 7, "l": ["a", b"\xff\xfe"]}
    assert list(file.tensors) == [b"\xff\xfe"]
    bc.save_gguf(tmp_path / "again.gguf", file.tensors, file.metadata)
    assert (tmp_path / "again.gguf").read_bytes()[: len(made) - 64] == made[:-64]
    with pytest.raises(bc.InvalidProblemError, match="a key: got the same one as text and as bytes"):
        bc.save_gguf(tmp_path / "twice.gguf", {}, {"k": 1, b"k": 2})


NUMBERS = [
    np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.uint64, np.int64, np.float32, np.float64
]  # fmt: skip


def drawn_metadata(rng: np.random.Generator) -> dict[str, Any]:
    """Values of every type, alone, in lists and in lists of lists."""
    found: dict[str, Any] = {}
    for kind in NUMBERS:
        info = np.iinfo(kind) if np.issubdtype(kind, np.integer) else np.finfo(kind)
        values = np.array([info.min, info.max, 0, 1, rng.integers(0, 100)], kind)
        found[f"one {kind.__name__}"] = values[rng.integers(5)]
        found[f"list {kind.__name__}"] = values[: rng.integers(0, 6)]
        found[f"nested {kind.__name__}"] = [values[:2], values[1:4]]
    words = ["", "a", "Zoë", "\n\0x", "字" * 40]
    found |= {"text": words[rng.integers(1, 5)], "words": words[: rng.integers(1, 6)], "flag": bool(rng.integers(2))}
    found |= {"flags": [True, False][: rng.integers(1, 3)], "n": int(rng.integers(-9, 9)), "x": float(rng.normal())}
    found |= {"ns": [int(n) for n in rng.integers(-5, 5, 3)], "deep": [[["a"], ["b", "c"]], [["d"]]]}
    return {k: found[k] for k in rng.permutation(list(found))}


def plain(value: Any) -> Any:
    return (
        [plain(v) for v in value] if isinstance(value, (list, np.ndarray)) else getattr(value, "item", lambda: value)()
    )


def flat(value: Any) -> Any:
    return [f for v in value for f in (flat(v) if isinstance(v, list) else [v])]


@pytest.mark.parametrize("alignment", [None, 1, 8, 16, 32, 64, 256, 4096])
def test_the_package_reads_files_of_all_options(
    tmp_path: Path, alignment: int | None, rng: np.random.Generator
) -> None:
    elements = ("f4", "f2", "i1", "i2", "i4", "i8", "f8")
    arrays = {e: rng.integers(-100, 100, rng.integers(1, 5, rng.integers(1, 5))).astype(e) for e in elements}
    values = rng.normal(0, 1, (3, 512)).astype(np.float32)
    blocks = {
        f.value: bc.GgufTensor(
            rng.integers(0, 256, (3, 512 // f.block_values * f.block_bytes), np.uint8), values.shape, f.value
        )
        for f in BlockFormat
    }
    tensors = {"bf16": bc.asarray(torch.from_numpy(values).bfloat16()), **arrays, **blocks}
    tensors = {k: tensors[k] for k in rng.permutation(list(tensors))}
    metadata = drawn_metadata(rng) | ({} if alignment is None else {"general.alignment": alignment})
    bc.save_gguf(tmp_path / "a.gguf", tensors, metadata)
    first = bc.load_gguf(tmp_path / "a.gguf")
    bc.save_gguf(tmp_path / "b.gguf", first.tensors, first.metadata)
    assert (tmp_path / "a.gguf").read_bytes() == (tmp_path / "b.gguf").read_bytes()
    reader = gguf.GGUFReader(str(tmp_path / "a.gguf"))
    assert [t.name for t in reader.tensors] == list(tensors) == list(first.tensors)
    for t in reader.tensors:
        assert t.data_offset % (alignment or 32) == 0
        if t.name == "bf16":
            want = gguf.quantize(values, gguf.GGMLQuantizationType.BF16)
            assert t.tensor_type is gguf.GGMLQuantizationType.BF16 and np.array_equal(t.data, want)
            continue
        given = tensors[t.name]
        data = given.data if t.name in blocks else given
        shape = values.shape if t.name in blocks else data.shape
        assert tuple(reversed(t.shape.tolist())) == shape and t.data.dtype == data.dtype
        np.testing.assert_array_equal(t.data, data)
        np.testing.assert_array_equal(first.tensors[t.name].data, data)
    for key, value in metadata.items():
        want = plain(value)
        assert plain(first.metadata[key]) == want
        assert reader.fields[key].contents() == (flat(want) if isinstance(want, list) else want), key
        if isinstance(value, np.generic):
            assert gguf.GGUFReader.gguf_scalar_to_np[reader.fields[key].types[0]] is type(value)
        if isinstance(value, np.ndarray) and len(value):
            assert gguf.GGUFReader.gguf_scalar_to_np[reader.fields[key].types[-1]] is value.dtype.type


def test_metadata_of_a_package_comes_back_as_it_was(tmp_path: Path, rng: np.random.Generator) -> None:
    """What the package wrote and we read and write has the types that it had."""
    writer = gguf.GGUFWriter(str(tmp_path / "a.gguf"), "llama")
    for kind in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"):
        getattr(writer, f"add_{kind}")(f"n.{kind}", int(rng.integers(0, 100)))
    writer.add_float32("x.float32", float(rng.normal()))
    writer.add_float64("x.float64", float(rng.normal()))
    writer.add_bool("flag", False)
    writer.add_array("words", ["a", "é", ""])
    writer.add_array("numbers", [1, -2, 3])
    writer.add_array("scores", [0.1, 0.2])
    writer.add_array("bytes", b"abc")
    writer.add_custom_alignment(128)
    writer.add_tensor("t", rng.normal(0, 1, (3, 5)).astype(np.float32))
    writer.add_tensor("u", np.arange(7, dtype=np.int8))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    file = bc.load_gguf(tmp_path / "a.gguf")
    bc.save_gguf(tmp_path / "b.gguf", file.tensors, file.metadata)
    a, b = (gguf.GGUFReader(str(tmp_path / f"{name}.gguf")) for name in "ab")
    assert list(a.fields) == list(b.fields)
    for key, field in a.fields.items():
        assert field.types == b.fields[key].types and field.contents() == b.fields[key].contents(), key
    for t, u in zip(a.tensors, b.tensors, strict=True):
        assert (t.name, t.data_offset % 128) == (u.name, u.data_offset % 128) and np.array_equal(t.data, u.data)
    assert (tmp_path / "a.gguf").read_bytes().rstrip(b"\0") == (tmp_path / "b.gguf").read_bytes().rstrip(b"\0")


@pytest.mark.parametrize("alignment", [0, 3, -32, 2**32, True, 32.0, "32", [32]])
def test_alignments_that_are_none_are_not_written(tmp_path: Path, alignment: Any) -> None:
    with pytest.raises(bc.InvalidProblemError, match=r"'general\.alignment': got .*, want a power of 2"):
        bc.save_gguf(tmp_path / "c.gguf", {}, {"general.alignment": alignment})


def test_what_was_read_may_be_written_where_it_lies(tmp_path: Path, rng: np.random.Generator) -> None:
    path = tmp_path / "same.gguf"
    x = rng.normal(0, 1, 300_000).astype(np.float32)  # more than what is read ahead
    bc.save_gguf(path, {"x": x})
    first = bc.load_gguf(path)
    bc.save_gguf(path, first.tensors, {"step": 1})
    again = bc.load_gguf(path)
    assert again.metadata == {"step": 1} and [p.name for p in tmp_path.iterdir()] == ["same.gguf"]
    assert np.array_equal(first.tensors["x"].data, x) and np.array_equal(again.tensors["x"].data, x)
    with pytest.raises(bc.InvalidProblemError, match="which is there and no file"):
        bc.save_gguf(tmp_path, {})


def test_metadata_comes_back(tmp_path: Path, rng: np.random.Generator) -> None:
    ends = [2 ** int(k) - int(d) for k, d in zip(rng.integers(0, 65, 40), rng.integers(0, 2, 40), strict=True)]
    given: dict[str, Any] = {str(i): n for i, n in enumerate([*ends, *(-n for n in ends if n <= 2**63)]) if n < 2**64}
    given |= {
        "a": [2**63, 1],
        "b": [-1, 2],
        "c": [True, False],
        "d": [[1], [2**64 - 1]],
        "e": [],
        "f": np.bool_(True),
        "g": ["", "é"],
    }
    bc.save_gguf(tmp_path / "f.gguf", {}, given)
    found = bc.load_gguf(tmp_path / "f.gguf").metadata
    bc.save_gguf(tmp_path / "g.gguf", {}, found)
    again = bc.load_gguf(tmp_path / "g.gguf").metadata
    for key, value in given.items():
        for got in (found[key], again[key]):
            plain = [np.asarray(g).tolist() for g in got] if key == "d" else np.asarray(got).tolist()
            assert plain == value, key


def test_tensors_of_other_frameworks_are_written(tmp_path: Path, rng: np.random.Generator) -> None:
    x = torch.as_tensor(rng.normal(0, 1, (3, 5)))
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        made = x.to(dtype).T
        bc.save_gguf(tmp_path / "h.gguf", {"torch": made, "ours": bc.asarray(made)})
        for t in bc.load_gguf(tmp_path / "h.gguf").tensors.values():
            assert np.array_equal(t.data.astype(np.float64), made.double().numpy())


def test_a_file_without_tensors_and_one_with_an_empty_tensor(tmp_path: Path) -> None:
    path = tmp_path / "d.gguf"
    path.write_bytes(file_of([], data=0))
    assert bc.load_gguf(path).tensors == {}
    path.write_bytes(file_of([tensor(dims=(0,), kind=0)], data=0))
    assert bc.load_gguf(path).tensors["t"].data.shape == (0,)
    with pytest.raises(FileNotFoundError):
        bc.load_gguf(tmp_path / "none.gguf")


def test_all_formats_are_read(tmp_path: Path, rng: np.random.Generator) -> None:
    blocks = {
        f.value: bc.GgufTensor(rng.integers(0, 256, (2, f.block_bytes), np.uint8), (2, f.block_values), f.value)
        for f in BlockFormat
    }
    bc.save_gguf(tmp_path / "e.gguf", blocks)
    for name, t in bc.load_gguf(tmp_path / "e.gguf").tensors.items():
        np.testing.assert_array_equal(t.data, blocks[name].data)
