"""Texts to tokens and back, as a GGUF file's metadata says."""

from __future__ import annotations

from baracuda.llm.tokenizer.tokenizer import Tokenizer

__all__ = ["Tokenizer"]
