"""Which module holds what; written by ci/generate.py."""

DESCRIPTORS: dict[str, str] = {
    "AdamWDescriptor": "baracuda.ops.optim",
    "EmbeddingBackwardDescriptor": "baracuda.ops.embedding",
    "EmbeddingDescriptor": "baracuda.ops.embedding",
    "GatedActivationBackwardDescriptor": "baracuda.ops.gated",
    "GatedActivationDescriptor": "baracuda.ops.gated",
    "RandomDescriptor": "baracuda.ops.random",
}
FUNCTIONS: dict[str, str] = {
    "adamw_": "baracuda.ops.optim",
    "embedding": "baracuda.ops.embedding",
    "embedding_backward": "baracuda.ops.embedding",
    "geglu": "baracuda.ops.gated",
    "geglu_backward": "baracuda.ops.gated",
    "glu": "baracuda.ops.gated",
    "glu_backward": "baracuda.ops.gated",
    "normal": "baracuda.ops.random",
    "normal_": "baracuda.ops.random",
    "reglu": "baracuda.ops.gated",
    "reglu_backward": "baracuda.ops.gated",
    "silu_and_mul": "baracuda.ops.gated",
    "silu_and_mul_backward": "baracuda.ops.gated",
    "silu_mul": "baracuda.ops.gated",
    "silu_mul_backward": "baracuda.ops.gated",
    "swiglu": "baracuda.ops.gated",
    "swiglu_backward": "baracuda.ops.gated",
    "uniform": "baracuda.ops.random",
    "uniform_": "baracuda.ops.random",
}
OPS: dict[str, str] = {
    "adamw": "baracuda.ops.optim",
    "embedding": "baracuda.ops.embedding",
    "geglu": "baracuda.ops.gated",
    "glu": "baracuda.ops.gated",
    "normal": "baracuda.ops.random",
    "reglu": "baracuda.ops.gated",
    "swiglu": "baracuda.ops.gated",
    "uniform": "baracuda.ops.random",
}
