"""Language models of GGUF files, on the functions that anybody has: `bc.llm.load(path)`, `python -m baracuda chat path`."""

from __future__ import annotations

from baracuda.llm.architectures import ARCHITECTURES
from baracuda.llm.batch import Batch, Request
from baracuda.llm.config import Config
from baracuda.llm.model import Model, load
from baracuda.llm.sampling import Sampling
from baracuda.llm.tokenizer import Tokenizer

__all__ = ["ARCHITECTURES", "Batch", "Config", "Model", "Request", "Sampling", "Tokenizer", "load"]
