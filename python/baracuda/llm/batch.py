"""Continuous batching: requests join and leave at any step, over one paged cache."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from baracuda.describe.errors import InvalidProblemError, MemoryLimitError, shown, whole
from baracuda.llm.cache import Cache
from baracuda.llm.pages import Page, Pages
from baracuda.llm.sampling import Sampling

if TYPE_CHECKING:
    from baracuda import Generator


@dataclass(eq=False, slots=True)
class Request:
    """A text that is continued.

    Attributes:
        prompt: Its tokens.
        limit: How many may be made.
        sampling: How they are chosen.
        stop: Tokens that end it; they are not among its own.
        tokens: What was made so far.
        reason: Why it ended: "stop", "length", "cancelled"; None while it has not.
        reused: Tokens of the prompt whose keys and values were there already.
    """

    prompt: tuple[int, ...]
    limit: int
    sampling: Sampling
    stop: frozenset[int]
    tokens: list[int] = field(default_factory=list)
    reason: str | None = None
    reused: int = 0
    _generator: Generator = field(init=False, repr=False)
    _pages: list[Page] = field(default_factory=list, repr=False)
    _joined: int = field(default=0, repr=False)  # how many had before
    _fed: int = field(default=0, repr=False)  # of its tokens, prompt and own
    _remembered: int | None = field(default=0, repr=False)  # of its pages; None: another one's hold the same

    def __post_init__(self) -> None:
        self._generator = self.sampling.generator()

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self.reason is not None

    def _waiting(self, most: int) -> list[int]:
        """Its next tokens to be fed."""
        inside = len(self.prompt)
        if self._fed < inside:
            return list(self.prompt[self._fed : self._fed + most])
        return self.tokens[self._fed - inside : self._fed - inside + most]


class Batch:
    """Several texts continued at once; made by `Model.batch`. For one thread.

    Prompts are computed in chunks beside the tokens of others. A request's pages are set aside when it joins, so that
    none is ever stopped for want of memory; until there are enough it waits, in order. Beginnings that an earlier request
    had are not computed again while their pages are there.

    Attributes:
        context: The most tokens of a text, prompt and own.
        nbytes: Of the cache.
    """

    def __init__(self, cache: Cache, chunk: int, vocabulary: int, stop: Collection[int]) -> None:
        made = cache.compiled
        self._cache, self._chunk, self._vocabulary, self._stop = cache, chunk, vocabulary, frozenset(stop)
        self._pages = Pages(*made.shape)
        self._slots: list[Request | None] = [None] * made.sequences
        self._queue: deque[Request] = deque()
        self._joined = 0
        self.context = made.context
        self.nbytes = cache.keys.nbytes + cache.values.nbytes

    def __bool__(self) -> bool:
        """Whether there is something to do."""
        return bool(self._queue) or any(self._slots)

    @property
    def running(self) -> list[Request]:
        """Requests that have joined and not ended."""
        return [r for r in self._slots if r]

    @property
    def waiting(self) -> list[Request]:
        """Requests that wait for a place or for pages."""
        return list(self._queue)

    def add(
        self,
        prompt: Sequence[int],
        *,
        max_tokens: int | None = None,
        stop: Collection[int] | None = None,
        **sampling: Any,
    ) -> Request:
        """A request that joins at the next step at which there is a place for it.

        Args:
            prompt: Tokens, at least one.
            max_tokens: How many to make at most; None: as many as the context has room for. That many have pages set
                aside, so a small number lets more requests run at once.
            stop: Tokens that end it; by default those that end a text or an answer.
            **sampling: Of `Sampling`: temperature, top_k, top_p, min_p, seed.

        Raises:
            InvalidProblemError: The prompt is empty or too long for the context, or a token is none of the model's.
            MemoryLimitError: The whole cache has not enough pages for it.
        """
        ids = self._checked(prompt)
        room = self.context - len(ids)
        if max_tokens is not None:
            number = whole(max_tokens)
            if number is None or number < 1:
                raise InvalidProblemError(f"max_tokens: got {shown(max_tokens)}, want an int of at least 1, or None.")
            room = min(room, number)
        needed = self._pages.needed(len(ids) + room)
        if needed > self._pages.count:
            size = self._pages.size
            raise MemoryLimitError(
                f"max_tokens: got {len(ids)} tokens and room for {room} more, which take {needed} pages of {size} tokens, want at most "
                f"the {self._pages.count} pages ({self.nbytes:,} bytes) of this batch. Ask for fewer tokens, or raise memory_limit."
            )
        found = Request(ids, room, Sampling(**sampling), self._stop if stop is None else frozenset(stop))
        self._queue.append(found)
        return found

    def _checked(self, prompt: Sequence[int]) -> tuple[int, ...]:
        ids = tuple(-1 if (i := whole(token)) is None else i for token in prompt)
        if not ids:
            raise InvalidProblemError("prompt: got no tokens, want at least one; a text may begin with tokenizer.bos.")
        bad = next((i for i, token in enumerate(ids) if not 0 <= token < self._vocabulary), None)
        if bad is not None:
            want = f"integers from 0 to {self._vocabulary - 1}"
            raise InvalidProblemError(f"prompt: token {bad}: got {shown(prompt[bad])}, want {want}.")
        if len(ids) >= self.context:
            raise InvalidProblemError(
                f"prompt: got {len(ids)} tokens, want fewer than the context of {self.context}, in which there is to be room for an "
                f"answer. Shorten it, or load the model with a larger context."
            )
        return ids

    def cancel(self, request: Request) -> None:
        """Ends a request, whatever it is at; one that has ended stays as it is."""
        if request.done:
            return
        if request in self._queue:
            self._queue.remove(request)
            request.reason = "cancelled"
        elif request in self._slots:
            self._end(request, "cancelled")
        else:
            raise InvalidProblemError("request: got one of another batch, want one that add returned here.")

    def run(self) -> Iterator[tuple[Request, int]]:
        """Steps until nothing is left to do; gives each token with its request when it is made. Others may be added meanwhile."""
        while self:
            yield from self.step()

    def step(self) -> list[tuple[Request, int]]:
        """Runs the model once: new tokens, each with its request. Requests that have ended have a `reason` then.

        A step that an error ends, as of memory, has changed nothing, and may be made again.
        """
        self._admit()
        ids, rows = self._work()
        if not any(ids):
            return []
        logits = self._cache.feed(ids, [row for _, row in rows])
        drawn = self._drawn([request for request, _ in rows], logits)
        for slot, request in enumerate(self._slots):
            if request:
                request._fed += len(ids[slot])
                self._cache.past[slot] = request._fed
                self._remember(request)
        made = [(r, token) for (r, _), token in zip(rows, drawn, strict=True) if token not in r.stop]
        for (request, _), token in zip(rows, drawn, strict=True):
            if token in request.stop:
                self._end(request, "stop")
                continue
            request.tokens.append(token)
            if len(request.tokens) == request.limit:
                self._end(request, "length")
        return made

    @staticmethod
    def _drawn(requests: Sequence[Request], logits: Any) -> list[int]:
        """The next token of each; random numbers are as before where an error comes between."""
        before = [r._generator.get_state() for r in requests]
        try:
            return [r.sampling.draw(logits[i], r._generator) for i, r in enumerate(requests)]
        except BaseException:
            for request, state in zip(requests, before, strict=True):
                request._generator.set_state(state)
            raise

    def _admit(self) -> None:
        """Gives places and pages to those who wait, in order."""
        for slot, held in enumerate(self._slots):
            if held or not self._queue:
                continue
            request = self._queue[0]
            taken = self._pages.take(request.prompt, len(request.prompt) + request.limit)
            if taken is None:
                return
            self._queue.popleft()
            request._pages, found = taken
            request._fed = request.reused = found * self._pages.size
            request._remembered = found
            request._joined = self._joined = self._joined + 1
            self._slots[slot] = request
            self._cache.table[slot, : len(request._pages)] = [page.index for page in request._pages]
            self._cache.past[slot] = request._fed

    def _work(self) -> tuple[list[list[int]], list[tuple[Request, int]]]:
        """What each place is fed, and who gets a token: with the row of its last one."""
        ids: list[list[int]] = [[] for _ in self._slots]
        left = self._chunk
        # Answers go on beside long prompts; these follow in the order in which they joined.
        for request in sorted(self.running, key=lambda r: (not r.tokens, r._joined)):
            slot = self._slots.index(request)
            ids[slot] = request._waiting(left)
            left -= len(ids[slot])
        rows: list[tuple[Request, int]] = []
        at = 0
        for held, fed in zip(self._slots, ids, strict=True):
            at += len(fed)
            if held and fed and held._fed + len(fed) == len(held.prompt) + len(held.tokens):
                rows.append((held, at - 1))
        return ids, rows

    def _remember(self, request: Request) -> None:
        """Full pages of a request are found by later ones."""
        size = self._pages.size
        while request._remembered is not None and (request._remembered + 1) * size <= request._fed:
            i = request._remembered
            tokens = (*request.prompt, *request.tokens)[i * size : (i + 1) * size]
            parent = request._pages[i - 1] if i else None
            request._remembered = i + 1 if self._pages.remember(request._pages[i], parent, tokens) else None

    def _end(self, request: Request, reason: str) -> None:
        request.reason = reason
        self._pages.give_back(request._pages)
        request._pages = []
        slot = self._slots.index(request)
        self._slots[slot], self._cache.past[slot] = None, 0
