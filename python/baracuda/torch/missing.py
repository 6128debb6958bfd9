"""Overloads that torch tags `core` and that have no row, with the reason."""

_DATA = "how large its result is stands in the data: torch runs it"
_RANDOM = "drawn by torch, from its generator, so that numbers are eager's"
_NUMBER = "a size, which is known when the graph is compiled: nothing runs"

MISSING: dict[str, str] = {
    "aten._embedding_bag.default": "its second to fourth results are torch's own bookkeeping",
    "aten._fft_c2r.default": "there are no Fourier transforms here",
    "aten._fft_r2c.default": "there are no Fourier transforms here",
    "aten._local_scalar_dense.default": "a number that only a run knows",
    "aten._native_batch_norm_legit.default": "AOTAutograd hands over the form that writes nothing, which has a row",
    "aten.atan2.out": "AOTAutograd hands over the form that writes nothing, which has a row",
    "aten.native_dropout.default": "torch draws the mask, so that it is eager's; the product with it is baracuda's",
    "aten.nonzero.default": _DATA,
    "aten.rand.default": _RANDOM,
    "aten.randn.default": _RANDOM,
    "aten.randperm.default": _RANDOM,
    "aten.resize_.default": "it gives a tensor other memory, which torch has to do",
    "aten.sym_is_contiguous.default": _NUMBER,
    "aten.sym_numel.default": _NUMBER,
    "aten.sym_size.int": _NUMBER,
    "aten.sym_storage_offset.default": _NUMBER,
    "aten.sym_stride.int": _NUMBER,
}
