"""Which module holds what; written by ci/generate.py."""

DESCRIPTORS: dict[str, str] = {
    "GatedActivationBackwardDescriptor": "baracuda.ops.gated",
    "GatedActivationDescriptor": "baracuda.ops.gated",
}
FUNCTIONS: dict[str, str] = {
    "geglu": "baracuda.ops.gated",
    "geglu_backward": "baracuda.ops.gated",
    "glu": "baracuda.ops.gated",
    "glu_backward": "baracuda.ops.gated",
    "reglu": "baracuda.ops.gated",
    "reglu_backward": "baracuda.ops.gated",
    "silu_and_mul": "baracuda.ops.gated",
    "silu_and_mul_backward": "baracuda.ops.gated",
    "silu_mul": "baracuda.ops.gated",
    "silu_mul_backward": "baracuda.ops.gated",
    "swiglu": "baracuda.ops.gated",
    "swiglu_backward": "baracuda.ops.gated",
}
OPS: dict[str, str] = {
    "geglu": "baracuda.ops.gated",
    "glu": "baracuda.ops.gated",
    "reglu": "baracuda.ops.gated",
    "swiglu": "baracuda.ops.gated",
}
