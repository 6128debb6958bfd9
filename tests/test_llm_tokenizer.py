"""Texts to tokens and back: SentencePiece's and byte pairs' against models that their own libraries trained; chat templates."""

from __future__ import annotations

import io
import unicodedata
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import baracuda as bc
from baracuda.llm.metadata import Metadata

sentencepiece = pytest.importorskip("sentencepiece")
tokenizers = pytest.importorskip("tokenizers")
pytest.importorskip("jinja2")

SCRIPTS = [
    "The quick brown fox, 12345 times: don't we'll I'VE",
    "Größe, naïve café, œuvre",
    "Съешь же ещё этих мягких французских булок",
    "Γρήγορη καφέ αλεπού πηδάει",
    "敏捷的棕色狐狸跳过了懒狗。",
    "素早い茶色の狐が、のろまな犬を飛び越える",
    "다람쥐 헌 쳇바퀴에 타고파",
    "الثعلب البني السريع يقفز فوق الكلب",
    "תוכי ושועל על הגדר",
    "तेज़ भूरी लोमड़ी आलसी कुत्ते",
    "ฝนตกไหมสุนัขจิ้งจอก",
    "👩‍👩‍👧‍👦 🇩🇪 \U0001f9d1🏽\u200d🚀 ﷽ z̸̛͝a",
    "  two  spaces\n\n\n\ttabs \r\n end  ",
    "def f(x):\n    return x**2  # 3.14159e-10\n",
    "\u2581▁ odd \x00 \u00a0 \u3000 \ufeff <s> </s> <0x41> [user]",
    "", " ", "\n", "a", "1000000",
]  # fmt: skip
# Lines to train on: enough of each script that pieces form.
CORPUS = [part for line in SCRIPTS for part in (line, line[::2], line.upper(), *line.split())] * 3


def random_texts(rng: np.random.Generator, count: int) -> list[str]:
    """Characters of all planes, and cuts of the lines above."""
    found = []
    for _ in range(count):
        codes = rng.choice([0x80, 0x250, 0x700, 0x3000, 0xD7FF, 0x1FFFF], 12)
        found.append(
            "".join(chr(rng.integers(1, c)) for c in codes if c != 0x1FFFF) + chr(rng.integers(0x10000, 0x1FFFF))
        )
        line = SCRIPTS[rng.integers(len(SCRIPTS))]
        a, b = sorted(rng.integers(0, len(line) + 1, 2))
        found.append(line[a:b] + found[-1][:4])
    return found


def entries(model: str, **said: Any) -> Metadata:
    return Metadata(
        "a file", {f"tokenizer.{k.replace('__', '.')}": v for k, v in ({"ggml__model": model} | said).items()}
    )


@pytest.fixture(scope="module")
def trained_pieces() -> Any:
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([c for c in CORPUS if c.strip()]), model_writer=made, vocab_size=700, model_type="bpe",
        byte_fallback=True, character_coverage=0.98, user_defined_symbols=["[user]", "\n\n", "\t"], add_dummy_prefix=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True, minloglevel=2,
    )  # fmt: skip
    return sentencepiece.SentencePieceProcessor(model_proto=made.getvalue())


def pieces_said(p: Any, **changed: Any) -> Metadata:
    n = len(p)
    kinds = [
        2 if p.is_unknown(i) else 3 if p.is_control(i) else 6 if p.is_byte(i) else 4 if p.id_to_piece(i) in ("[user]", "\n\n", "\t") else 1
        for i in range(n)
    ]  # fmt: skip
    said = {
        "ggml__tokens": [p.id_to_piece(i) for i in range(n)], "ggml__scores": np.array([p.get_score(i) for i in range(n)], np.float32),
        "ggml__token_type": np.array(kinds, np.int32), "ggml__bos_token_id": p.bos_id(), "ggml__eos_token_id": p.eos_id(),
        "ggml__unknown_token_id": p.unk_id(),
    }  # fmt: skip
    return entries("llama", **(said | changed))


def test_pieces_are_those_of_sentencepiece(trained_pieces: Any, rng: np.random.Generator) -> None:
    mine = bc.llm.Tokenizer(pieces_said(trained_pieces))
    assert (mine.bos, mine.eos, len(mine)) == (1, 2, len(trained_pieces))
    for text in SCRIPTS + random_texts(rng, 200):
        if any(s in text for s in ("[user]", "\n\n", "\t", "\u2581")):
            continue  # llama.cpp cuts at these first, as is tested below
        got = mine.encode(text)
        assert got[0] == 1 and got[1:] == trained_pieces.encode(text), text
        assert mine.decode(got) == trained_pieces.decode(got[1:]) == text
        assert "".join(mine.stream(got)) == (" " + text if text else "")


def test_tokens_of_users_and_of_control(trained_pieces: Any) -> None:
    mine = bc.llm.Tokenizer(pieces_said(trained_pieces, ggml__add_space_prefix=False))
    user, begin, end = (trained_pieces.piece_to_id(p) for p in ("[user]", "<s>", "</s>"))
    assert mine.encode("[user]", bos=False) == [user]
    assert mine.encode("a[user]b", bos=False)[1] == user
    assert mine.encode("<s>a</s>", bos=False, special=True)[0::2] == [begin, end]
    assert begin not in mine.encode("<s>a</s>", bos=False)
    assert mine.decode([begin, user, end]) == "[user]" and mine.decode([begin, user], special=True) == "<s>[user]"
    assert mine.decode([10**6, -1, user]) == "[user]"
    assert mine.encode("\ud800x") == mine.encode("\ufffdx")
    with pytest.raises(bc.InvalidProblemError, match="text: got 5"):
        mine.encode(5)  # type: ignore[arg-type]


def test_a_character_is_given_when_all_its_bytes_are_there(trained_pieces: Any) -> None:
    mine = bc.llm.Tokenizer(pieces_said(trained_pieces, ggml__add_space_prefix=False))
    tokens = mine.encode("x\U0001fae0y", bos=False)
    assert list(mine.stream(tokens)) == ["x", "\U0001fae0", "y"]
    assert list(mine.stream(tokens[:3]))[-1] == "\ufffd"


@pytest.mark.parametrize("pre", ["llama-bpe", "qwen2", "gpt-2", "smollm", "gpt-4o", "tekken", "default"])
def test_byte_pairs_are_joined_as_by_tokenizers(pre: str, rng: np.random.Generator) -> None:
    """Merges of a model that the library trained; texts come back whole, and words are cut at the same places."""
    library = tokenizers.Tokenizer(tokenizers.models.BPE())
    library.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=900, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    library.train_from_iterator(CORPUS, trainer)
    vocabulary, merges = merges_of(library)
    tokens = [*vocabulary, "<|im_start|>", "<|im_end|>"]
    kinds = np.array([1] * len(vocabulary) + [3, 3], np.int32)
    said = {"ggml__tokens": tokens, "ggml__merges": merges, "ggml__token_type": kinds, "ggml__pre": pre}
    mine = bc.llm.Tokenizer(entries("gpt2", **said))
    assert mine.ends == {len(tokens) - 1} and mine.bos is None
    for text in SCRIPTS + random_texts(rng, 100):
        got = mine.encode(text)
        assert mine.decode(got) == text == "".join(mine.stream(got))
        if pre == "gpt-2":
            assert got == library.encode(text).ids
    begun = bc.llm.Tokenizer(entries("gpt2", **said, ggml__bos_token_id=len(tokens) - 2))
    assert (begun.encode("a")[0] == len(tokens) - 2) == (pre in ("llama-bpe", "tekken"))
    assert mine.encode("a<|im_end|>", special=True)[-1] == len(tokens) - 1
    digits = [mine.decode([t]) for t in mine.encode("1234567")]
    longest = {"llama-bpe": 3, "gpt-4o": 3, "qwen2": 1, "tekken": 1, "smollm": 1, "default": 3}.get(pre, 9)
    assert max(map(len, digits)) <= longest


def merges_of(library: Any) -> tuple[list[str], list[str]]:
    import json

    model = json.loads(library.to_str())["model"]
    ordered = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return ordered, [" ".join(m) if isinstance(m, list) else m for m in model["merges"]]


def test_words_are_cut_as_the_models_own_expressions_do(rng: np.random.Generator) -> None:
    regex = pytest.importorskip("regex")
    from baracuda.llm.tokenizer.byte_pairs import _LLAMA3, _QWEN2

    # As the models' authors give them.
    llama3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    assert llama3 == _LLAMA3
    assert llama3.replace("{1,3}", "") == _QWEN2
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(_LLAMA3), "isolated")
    for text in SCRIPTS + random_texts(rng, 300):
        if any(unicodedata.category(c) in ("Cn", "Co") for c in text):
            continue  # of which each library knows those of its time
        assert [part for part, _ in split.pre_tokenize_str(text)] == regex.findall(llama3, text), text


@pytest.mark.parametrize(
    ("said", "error", "what"),
    [
        ({"ggml__model": "bert"}, bc.UnsupportedError, "'bert', want 'llama' or 'gpt2'"),
        ({"ggml__pre": "new"}, bc.UnsupportedError, "tokenizer.ggml.pre': got 'new'"),
        ({"ggml__tokens": []}, bc.InvalidProblemError, "empty list"),
        ({"ggml__tokens": [b"\xff", "a"]}, bc.InvalidProblemError, "texts in UTF-8"),
        ({"ggml__token_type": np.zeros(3, np.int32)}, bc.InvalidProblemError, "token_type': got a list of 3, want a list of 2"),
        ({"ggml__merges": None}, bc.InvalidProblemError, "merges"),
        ({"ggml__model": "llama"}, bc.InvalidProblemError, "scores"),
        (
            {"ggml__model": "llama", "ggml__scores": np.zeros(2, np.float32), "ggml__tokens": ["a", "a"]},
            bc.InvalidProblemError, "SentencePiece",
        ),
        ({"ggml__token_type": np.array([1, -5], np.int32)}, bc.InvalidProblemError, "token_type': got -5, want kinds from 0 to 6"),
        ({"ggml__token_type": np.array([1, 7], np.int32)}, bc.InvalidProblemError, "token_type': got 7"),
        ({"ggml__eos_token_id": -1}, bc.InvalidProblemError, "eos_token_id"),
    ],
)  # fmt: skip
def test_tokenizers_that_cannot_be_are_refused(said: dict[str, Any], error: type[Exception], what: str) -> None:
    whole: dict[str, Any] = {"ggml__tokens": ["a", "b"], "ggml__merges": [], "ggml__pre": "qwen2"}
    with pytest.raises(error, match=what):
        bc.llm.Tokenizer(
            entries(**({"model": "gpt2"}), **(whole | said)) if "ggml__model" not in said else replaced(whole | said)
        )


def replaced(said: dict[str, Any]) -> Metadata:
    model = said.pop("ggml__model")
    return entries(model, **said)


def test_a_text_that_has_no_tokens_is_refused_and_not_shortened() -> None:
    mine = bc.llm.Tokenizer(entries("gpt2", ggml__tokens=["a", "b", "ab"], ggml__merges=["a b"], ggml__pre="qwen2"))
    assert mine.encode("aab") == [0, 2]
    with pytest.raises(bc.InvalidProblemError, match="got 'abc', want characters that the model's 3 tokens make"):
        mine.encode("abc")


TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] | trim }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def chatting(template: str | None) -> bc.llm.Tokenizer:
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    said: dict[str, Any] = {
        "ggml__tokens": [*letters, "<|im_start|>", "<|im_end|>"], "ggml__merges": [], "ggml__pre": "qwen2",
        "ggml__token_type": np.array([1] * 256 + [3, 3], np.int32), "ggml__bos_token_id": 256, "ggml__eos_token_id": 257,
    }  # fmt: skip
    return bc.llm.Tokenizer(entries("gpt2", **said, **({} if template is None else {"chat_template": template})))


def test_a_conversation_is_what_its_template_makes_of_it() -> None:
    mine = chatting(TEMPLATE)
    said = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": " Hello "}]
    text = mine.decode(mine.chat(said), special=True)
    assert text == (
        "<|im_start|><|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    )
    assert mine.decode(mine.chat(said, answer=False)) == "system\nBe brief.\nuser\nHello\n"
    assert mine.chat(said).count(256) == 4


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ raise_exception('no system') }}", "refuses them: no system"),
        ("{% for %}", "does not take them"),
        ("{{ messages[9].content }}", "does not take them"),
        ("{{ ''.__class__.__mro__ }}", "does not take them"),
        ("{{ messages.append(1) }}", "does not take them"),
        ("{% for i in range(1000000000) %}a{% endfor %}", "does not take them"),
        ("{% set x = 1 / 0 %}", "does not take them"),
    ],
)
def test_templates_run_in_a_sandbox(template: str, said: str) -> None:
    with pytest.raises(bc.InvalidProblemError, match=said):
        chatting(template).chat([{"role": "user", "content": "x"}])


def test_templates_have_what_those_of_models_ask_for() -> None:
    template = (
        "{%- set ns = namespace(first=true) -%}{% if tools is not none %}tools{% endif %}"
        "{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% else %}{% set rest = messages %}{% endif %}"
        "{% for m in rest %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('turns') }}{% endif %}"
        "{% if ns.first %}{{ strftime_now('%Y') | length }}{% set ns.first = false %}{% endif %}{{ m.content | tojson }}"
        "{% if m.content == 'b' %}{% break %}{% endif %}{% endfor %}"
    )
    mine = chatting(template)
    turns = [{"role": r, "content": c} for r, c in (("system", "s"), ("user", 'é"'), ("assistant", "b"), ("user", "c"))]
    assert mine.decode(mine.chat(turns)) == '4"é\\""' + '"b"'
    with pytest.raises(bc.InvalidProblemError, match="turns"):
        mine.chat(turns[2:])


def test_a_model_that_does_not_chat_says_so() -> None:
    with pytest.raises(bc.UnsupportedError, match="no chat template"):
        chatting(None).chat([{"role": "user", "content": "x"}])
    with pytest.raises(bc.InvalidProblemError, match="'role' and 'content'"):
        chatting(TEMPLATE).chat([{"role": "user"}])


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("baracuda.llm.tokenizer.libraries.find_spec", lambda name: None)
    with pytest.raises(bc.UnsupportedError, match=r"pip install tokenizers, or 'baracuda\[llm\]'"):
        chatting(TEMPLATE)


def test_no_warning_is_given(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chatting(TEMPLATE)
