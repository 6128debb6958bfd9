"""Random models of the `transformers` library, written as GGUF files as llama.cpp's converter does: the same logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc

transformers = pytest.importorskip("transformers")

SMALL = {
    "vocab_size": 91, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
HEADS = {"head_dim": 16}
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}  # fmt: skip
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 32}
LONG = {
    "rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0] * 6, "long_factor": [1.0, 1.2, 1.5, 2.0, 3.0, 4.0],
    "original_max_position_embeddings": 24, "factor": 128 / 24,
}  # fmt: skip
WINDOWS = {"layer_types": ["sliding_attention", "full_attention"] * 2, "sliding_window": 7}
# Class, what its configuration has besides, architecture and entries of the file.
CASES: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]] = {
    "llama": ("Llama", {}, "llama", {}),
    "llama3": ("Llama", {"rope_parameters": LLAMA3}, "llama", {}),
    "mistral": ("Mistral", HEADS | {"sliding_window": None}, "llama", {}),
    "mixtral": (
        "Mixtral", HEADS | {"num_local_experts": 4, "sliding_window": None}, "llama",
        {"expert_count": 4, "expert_used_count": 2, "rope.freq_base": 1e6},
    ),
    "qwen2": ("Qwen2", {"tie_word_embeddings": True}, "qwen2", {}),
    "qwen2, yarn": (
        "Qwen2", {"rope_parameters": YARN}, "qwen2",
        {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 32},
    ),
    "qwen3": ("Qwen3", HEADS, "qwen3", {}),
    "qwen3moe": (
        "Qwen3Moe",
        HEADS | {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "norm_topk_prob": True},
        "qwen3moe", {"expert_count": 6, "expert_used_count": 2, "expert_feed_forward_length": 24},
    ),
    "phi3": ("Phi3", {"sliding_window": 9}, "phi3", {"attention.sliding_window": 9}),
    "phi3, longrope": (
        "Phi3", {"rope_parameters": LONG, "original_max_position_embeddings": 24}, "phi3",
        {
            "rope.scaling.type": "longrope", "rope.scaling.original_context_length": 24,
            "rope.scaling.attn_factor": float(np.sqrt(1 + np.log(128 / 24) / np.log(24))),
        },
    ),
    "gemma": ("Gemma", HEADS | {"tie_word_embeddings": True}, "gemma", {}),
    "gemma2": (
        "Gemma2",
        HEADS | WINDOWS
        | {"tie_word_embeddings": True, "query_pre_attn_scalar": 16, "attn_logit_softcapping": 5.0, "final_logit_softcapping": 4.0},
        "gemma2", {"attention.sliding_window": 7, "attn_logit_softcapping": 5.0, "final_logit_softcapping": 4.0},
    ),
    "gemma3": (
        "Gemma3",
        HEADS | WINDOWS | {"tie_word_embeddings": True, "query_pre_attn_scalar": 16, "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
        }},
        "gemma3",
        {
            "attention.sliding_window": 7, "attention.sliding_window_pattern": 2, "rope.freq_base": 1e6,
            "rope.scaling.type": "linear", "rope.scaling.factor": 8.0,
        },
    ),
}  # fmt: skip
NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "self_attn.qkv_proj": "attn_qkv", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "mlp.gate_up_proj": "ffn_up",
    "mlp.gate": "ffn_gate_inp", "block_sparse_moe.gate": "ffn_gate_inp", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm", "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm",
}  # fmt: skip


def converted(model: Any, name: str, config: Any) -> dict[str, np.ndarray]:
    """A model's weights as files of an architecture have them."""
    found: dict[str, np.ndarray] = {}
    for key, tensor in model.state_dict().items():
        x = tensor.detach().float().numpy()
        if name.startswith("gemma") and "norm" in key:
            x = x + 1
        if not key.startswith("model.layers."):
            whole = {
                "model.embed_tokens.weight": "token_embd",
                "model.norm.weight": "output_norm",
                "lm_head.weight": "output",
            }
            if key != "lm_head.weight" or not config.tie_word_embeddings:
                found[f"{whole[key]}.weight"] = x
            continue
        layer, part = key.removeprefix("model.layers.").split(".", 1)
        part, _, last = part.rpartition(".")
        blk = f"blk.{layer}."
        if part.endswith(".experts"):
            if last == "gate_up_proj":
                found[f"{blk}ffn_gate_exps.weight"], found[f"{blk}ffn_up_exps.weight"] = np.split(x, 2, 1)
            else:
                found[f"{blk}ffn_down_exps.weight"] = x
            continue
        called = NAMES[part]
        if part == "post_attention_layernorm" and name in ("gemma2", "gemma3"):
            called = "post_attention_norm"
        if name == "llama" and called in ("attn_q", "attn_k"):  # neighbours are turned, and not halves
            heads = config.num_attention_heads if called == "attn_q" else config.num_key_value_heads
            x = x.reshape(heads, 2, -1, x.shape[-1]).swapaxes(1, 2).reshape(x.shape)
        found[f"{blk}{called}.{last}"] = x
    return {k: np.ascontiguousarray(v) for k, v in found.items()}


def metadata(name: str, config: Any, **own: Any) -> dict[str, Any]:
    dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    said = {
        "context_length": 128, "embedding_length": config.hidden_size, "block_count": config.num_hidden_layers,
        "feed_forward_length": config.intermediate_size, "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads, "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "attention.key_length": dim, "attention.value_length": dim, "rope.freq_base": 1e4,
    }  # fmt: skip
    return {"general.architecture": name} | {f"{name}.{k}": v for k, v in (said | own).items()}


@pytest.mark.parametrize("case", CASES)
def test_logits_are_those_of_transformers(case: str, tmp_path: Path, rng: np.random.Generator) -> None:
    kind, besides, name, entries = CASES[case]
    torch.manual_seed(int(rng.integers(2**31)))
    config_class = getattr(transformers, f"{kind}TextConfig" if kind == "Gemma3" else f"{kind}Config")
    config = config_class(**(SMALL | besides))
    config._attn_implementation = config._experts_implementation = "eager"
    model = getattr(transformers, f"{kind}ForCausalLM")(config).double().eval()
    with torch.no_grad():
        for key, p in model.named_parameters():
            p.copy_(torch.randn_like(p) * (0.2 if p.dim() == 1 else 1.2 / p.shape[-1] ** 0.5))
            p.copy_(p.float() + (1 if "norm" in key and not name.startswith("gemma") else 0))
    tensors = converted(model, name, config)
    if case == "llama3":
        found = bc.rope_frequencies(12, 1e4, LLAMA3)[0]
        tensors["rope_freqs.weight"] = (bc.rope_frequencies(12, 1e4)[0] / found).astype(np.float32)
    if case == "phi3, longrope":
        tensors |= {f"rope_factors_{n}.weight": np.array(LONG[f"{n}_factor"], np.float32) for n in ("long", "short")}
    bc.save_gguf(tmp_path / "m.gguf", tensors, metadata(name, config, **entries))
    ids = rng.integers(3, 91, 30).tolist()
    with torch.no_grad():
        want = model(torch.tensor([ids])).logits[0].double().numpy()
    got = bc.llm.load(tmp_path / "m.gguf", exact=True).logits(ids)
    assert np.abs(got - want).max() <= 3e-5 * np.abs(want).max(), np.abs(got - want).max() / np.abs(want).max()
