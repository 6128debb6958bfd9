"""`python -m baracuda chat model.gguf`: a model answers, is measured, or is judged by a text."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev
from time import perf_counter
from typing import Any

import baracuda as bc
from baracuda.describe.errors import BaracudaError, UnsupportedError
from baracuda.llm.model import Model, load

_PROMPT_TOKENS, _NEW_TOKENS, _RUNS = 512, 64, 3  # of --bench


def parser() -> argparse.ArgumentParser:
    """The options."""
    p = argparse.ArgumentParser(
        prog="python -m baracuda chat",
        description="Answers with a language model of a GGUF file; without a text, line after line.",
    )
    p.add_argument("model", type=Path, metavar="MODEL.gguf", help="the file")
    p.add_argument("text", nargs="?", help="what to answer; '-' reads it from standard input")
    p.add_argument("--system", metavar="TEXT", help="what the model is told before the conversation")
    p.add_argument(
        "--max-tokens", type=int, metavar="N", help="the most tokens of an answer (default: to the context's end)"
    )
    p.add_argument(
        "--temperature", type=float, default=0.8, help="0 always takes the most probable token (default: 0.8)"
    )
    p.add_argument(
        "--top-k", type=int, default=40, help="keep so many of the most probable tokens; 0: all (default: 40)"
    )
    p.add_argument(
        "--top-p", type=float, default=0.95, help="keep the most probable ones that add up to so much (default: 0.95)"
    )
    p.add_argument(
        "--min-p", type=float, default=0.05, help="keep those so many times as probable as the best (default: 0.05)"
    )
    p.add_argument("--seed", type=int, help="the same seed gives the same answer")
    p.add_argument(
        "--ctx", type=int, metavar="N", help="the most tokens of a conversation (default: the model's, at most 4096)"
    )
    p.add_argument("--threads", type=int, default=0, help="0 (default): as many as the machine has")
    p.add_argument("--exact", action="store_true", help="do not round what is multiplied with blocks to 8 bits; slower")
    p.add_argument("--raw", action="store_true", help="continue the text as it is, without the model's chat template")
    p.add_argument(
        "--bench", action="store_true", help="measure tokens per second of a prompt and of an answer, and stop"
    )
    p.add_argument("--perplexity", type=Path, metavar="FILE", help="say how well the model foretells a text, and stop")
    return p


def main(options: list[str]) -> int:
    """Runs the command; the result is the exit status."""
    p = parser()
    args = p.parse_args(options)
    if args.threads < 0:
        p.error(f"--threads: got {args.threads}, want 0 or more")
    if args.threads:
        bc.set_num_threads(args.threads)
    try:
        model = load(args.model, context=args.ctx, exact=args.exact)
        if args.bench:
            return _bench(model)
        if args.perplexity:
            return _perplexity(model, args.perplexity)
        return _chat(model, args)
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 2


class Conversation:
    """What was said, and how it is continued."""

    def __init__(self, model: Model, args: argparse.Namespace) -> None:
        self.model, self.args = model, args
        self.raw = args.raw or model.tokenizer.chat_template is None
        if args.system and self.raw:
            raise UnsupportedError(
                "--system: got a text, want none: the model has no chat template, or --raw was given. Put it in front of the text."
            )
        self.said: list[dict[str, str]] = [{"role": "system", "content": args.system}] if args.system else []

    def answer(self, text: str) -> Iterator[str]:
        """The pieces of an answer. A text that is refused is as if it had not been said."""
        a = self.args
        turn = [*self.said, {"role": "user", "content": text}]
        ids = self.model.tokenizer.encode(text) if self.raw else self.model.tokenizer.chat(turn)
        pieces = self.model.stream(
            ids,
            max_tokens=a.max_tokens,
            temperature=a.temperature,
            top_k=a.top_k,
            top_p=a.top_p,
            min_p=a.min_p,
            seed=a.seed,
        )
        given: list[str] = []
        try:
            for piece in pieces:
                given.append(piece)
                yield piece
        finally:
            self.said = [*turn, {"role": "assistant", "content": "".join(given)}]


def _chat(model: Model, args: argparse.Namespace) -> int:
    talk = Conversation(model, args)
    if talk.raw and not args.raw:
        print("(the model has no chat template: texts are continued as they are)", file=sys.stderr)
    if args.text is not None:
        _say(talk, sys.stdin.read() if args.text == "-" else args.text)
        return 0
    while (line := _line()) is not None:
        if not line.strip():
            continue
        try:
            _say(talk, line)
        except BaracudaError as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
    return 0


def _say(talk: Conversation, text: str) -> None:
    """Writes an answer as it is made; Ctrl-C ends it."""
    answer = talk.answer(text)
    try:
        for piece in answer:
            sys.stdout.write(piece)
            sys.stdout.flush()
    except KeyboardInterrupt:
        answer.close()  # type: ignore[attr-defined]
    print(flush=True)


def _line() -> str | None:
    """What is typed next; None at the end."""
    try:
        return input("> " if sys.stdin.isatty() else "")
    except (EOFError, KeyboardInterrupt):
        return None


def _bench(model: Model) -> int:
    """Tokens per second, as llama-bench says them: pp of a prompt, tg of tokens made one by one."""
    size = model.context
    prompt, new = min(_PROMPT_TOKENS, size - 1), min(_NEW_TOKENS, size - 2)
    rates: dict[str, list[float]] = {f"pp{prompt}": [], f"tg{new}": []}
    for run in range(_RUNS + 1):  # the first makes everything ready
        ids = [(i * 7919 + run * 31) % model.vocabulary for i in range(prompt)]
        begin = perf_counter()
        next(model.generate(ids, max_tokens=1, stop=()))
        between = perf_counter()
        tokens = model.generate(ids[:1], max_tokens=new + 1, stop=())
        next(tokens)
        start = perf_counter()
        made = sum(1 for _ in tokens)
        end = perf_counter()
        if run:
            rates[f"pp{prompt}"].append(prompt / (between - begin))
            rates[f"tg{new}"].append(made / (end - start))
    print(
        f"{model.config.name}, {model.config.layers} layers, {bc.get_num_threads()} threads, tokens/s, mean of {_RUNS} runs"
    )
    for name, found in rates.items():
        print(f"{name:>8}: {mean(found):10.2f} ± {stdev(found):.2f}")
    return 0


def _perplexity(model: Model, path: Path) -> int:
    text = path.read_text(errors="replace")
    tokens: Any = model.tokenizer.encode(text, bos=False)
    begin = perf_counter()
    found = model.perplexity(text)
    seconds = perf_counter() - begin
    print(
        f"perplexity {found:.4f} of {len(tokens)} tokens in windows of {model.context}, {len(tokens) / seconds:.0f} tokens/s"
    )
    return 0
