"""`python -m baracuda chat`: a text, a conversation, measuring, and what it says of files and numbers that are no good."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llm_models import VOCABULARY, written

import baracuda as bc
from baracuda import __main__ as command

pytest.importorskip("tokenizers")
pytest.importorskip("jinja2")
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}:{{ m.content }}<|im_end|>{% endfor %}"
LETTERS = [chr(c) for c in range(33, 33 + VOCABULARY - 2)]


@pytest.fixture
def model(tmp_path: Path, rng: np.random.Generator) -> Path:
    """A model whose tokens are letters."""
    said = {
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2", "tokenizer.ggml.tokens": [*LETTERS, "<|im_start|>", "<|im_end|>"],
        "tokenizer.ggml.merges": [], "tokenizer.ggml.token_type": np.array([1] * len(LETTERS) + [3, 3], np.int32),
    }  # fmt: skip
    return written(tmp_path / "m.gguf", rng, "qwen3", metadata=said).path


def chat(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *options: Any, typed: str = ""
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["baracuda", "chat", *map(str, options)])
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    status = command.main()
    said = capsys.readouterr()
    return status, said.out, said.err


def test_a_text_is_answered(model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    m = bc.llm.load(model)
    want = "".join(m.stream("Hello", max_tokens=9))
    for options, typed in ((["Hello"], ""), (["-"], "Hello")):
        given = [model, *options, "--temperature", 0, "--max-tokens", 9]
        status, out, err = chat(monkeypatch, capsys, *given, typed=typed)
        assert (status, out) == (0, want + "\n") and "no chat template" in err
    given = [
        model,
        "Hello",
        "--seed",
        3,
        "--max-tokens",
        9,
        "--top-k",
        9,
        "--top-p",
        0.9,
        "--min-p",
        0.01,
        "--threads",
        1,
        "--raw",
    ]
    assert chat(monkeypatch, capsys, *given) == chat(monkeypatch, capsys, *given)
    numbers = {"temperature": 0.8, "top_k": 9, "top_p": 0.9, "min_p": 0.01, "seed": 3}
    assert chat(monkeypatch, capsys, *given)[1:] == ("".join(m.stream("Hello", max_tokens=9, **numbers)) + "\n", "")


def test_a_conversation_goes_by_the_template(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = bc.load_gguf(model)
    path = tmp_path / "chat.gguf"
    bc.save_gguf(path, file.tensors, file.metadata | {"tokenizer.chat_template": TEMPLATE})
    m = bc.llm.load(path)
    said: list[dict[str, str]] = [{"role": "system", "content": "Brief."}]
    answers = []
    for text in ("Hi", "More"):
        said.append({"role": "user", "content": text})
        answers.append("".join(m.stream(m.tokenizer.chat(said), max_tokens=6)))
        said.append({"role": "assistant", "content": answers[-1]})
    given = [path, "--system", "Brief.", "--temperature", 0, "--max-tokens", 6]
    assert chat(monkeypatch, capsys, *given, typed="Hi\n\nMore\n") == (0, "\n".join(answers) + "\n", "")
    status, out, err = chat(
        monkeypatch, capsys, *given, typed="a" * 70 + "\nHi\n"
    )  # what is too long is as if not said
    assert (status, out) == (0, answers[0] + "\n") and "want fewer than the context of 64" in err


def test_measuring_says_tokens_per_second_and_perplexity(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = chat(monkeypatch, capsys, model, "--bench")
    assert status == 0 and out.startswith("qwen3, 3 layers") and " pp63:" in out and " tg62:" in out
    (tmp_path / "text").write_text("abcdefgh" * 20)
    status, out, _ = chat(monkeypatch, capsys, model, "--exact", "--perplexity", tmp_path / "text")
    want = bc.llm.load(model, exact=True).perplexity("abcdefgh" * 20)
    assert status == 0 and out.startswith(f"perplexity {want:.4f} of 160 tokens in windows of 64")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["none.gguf", "Hi"], "none.gguf: No such file"),
        (["text", "Hi"], "InvalidProblemError: load_gguf"),
        (["m.gguf", "a" * 64], "want fewer than the context of 64"),
        (["m.gguf", "Hi", "--ctx", 65], "context: got 65, want an int from 2 to 64"),
        (["m.gguf", "Hi", "--temperature", -1], "temperature"),
        (["m.gguf", "Hi", "--max-tokens", 0], "max_tokens: got 0"),
        (["m.gguf", "Hi", "--system", "x"], "--system: got a text, want none"),
        (["m.gguf", "--perplexity", "none"], "none: No such file"),
        (["m.gguf", ""], "prompt: got no tokens"),
    ],
)
def test_what_is_no_good_is_said_in_a_line(
    options: list[Any], said: str, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(model.parent)
    Path("text").write_text("a text")
    status, out, err = chat(monkeypatch, capsys, *options)
    assert status == 2 and out == "" and said in err and "Traceback" not in err
