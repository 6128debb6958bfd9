"""Models of transformers, small and with random weights, through torch.compile(backend="baracuda"): where it is installed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

import baracuda.torch

h = pytest.importorskip("transformers", reason="transformers is not installed: pip install transformers")

SMALL = {
    "vocab_size": 512, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
}  # fmt: skip
IMAGES = {
    "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 64,
    "patch_size": 8, "num_labels": 10,
}  # fmt: skip
STAGES = {"embedding_size": 16, "hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 1, 1], "num_labels": 10}
T5 = {
    "vocab_size": 512, "d_model": 128, "d_kv": 32, "d_ff": 256, "num_layers": 2, "num_heads": 4,
    "decoder_start_token_id": 0,
}  # fmt: skip
GPT2 = {"vocab_size": 512, "n_embd": 128, "n_layer": 2, "n_head": 4, "n_positions": 64}
WORDS: dict[str, Callable[[], Any]] = {
    "Llama": lambda: h.LlamaForCausalLM(h.LlamaConfig(**SMALL, num_key_value_heads=2)),
    "Qwen3": lambda: h.Qwen3ForCausalLM(h.Qwen3Config(**SMALL, num_key_value_heads=2, head_dim=32)),
    "Mistral": lambda: h.MistralForCausalLM(h.MistralConfig(**SMALL, num_key_value_heads=2)),
    "GPT-2": lambda: h.GPT2LMHeadModel(h.GPT2Config(**GPT2)),
    "BERT": lambda: h.BertForMaskedLM(h.BertConfig(**SMALL)),
    "T5": lambda: h.T5ForConditionalGeneration(h.T5Config(**T5)),
}
PICTURES: dict[str, Callable[[], Any]] = {
    "ViT": lambda: h.ViTForImageClassification(h.ViTConfig(**IMAGES)),
    "ResNet": lambda: h.ResNetForImageClassification(h.ResNetConfig(**STAGES)),
}


@pytest.mark.parametrize("name", [*WORDS, *PICTURES])
def test_a_model_agrees(name: str) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = (WORDS | PICTURES)[name]().train(name == "ResNet")
    twin = copy.deepcopy(model)
    ids, pixels = torch.randint(0, 512, (2, 48)), torch.randn(2, 3, 64, 64)

    def loss(run: Any) -> torch.Tensor:
        if name in PICTURES:
            return run(pixel_values=pixels).logits.square().mean()
        return run(input_ids=ids, labels=ids, **({} if name == "BERT" else {"use_cache": False})).loss

    baracuda.torch.report(reset=True)
    mine, theirs = loss(torch.compile(model, backend="baracuda")), loss(twin)
    torch.testing.assert_close(mine, theirs)
    mine.backward()
    theirs.backward()
    largest = max(float(p.grad.abs().max()) for p in twin.parameters() if p.grad is not None)
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        if q.grad is not None:
            assert float((p.grad - q.grad).abs().max()) <= 1e-4 * largest
    for a, b in zip(model.buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(a, b)
    found = baracuda.torch.report()
    assert not found.fallbacks and not found.whole and not found.refused, str(found)
    torch._dynamo.reset()
