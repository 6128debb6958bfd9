"""Which pages of a cache are whose, and which hold beginnings of texts that may come again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

Tokens = tuple[int, ...]


class Page:
    """A page of the cache.

    Attributes:
        index: Its place in the cache.
        parent: The page of the tokens in front of these; None for the first, and for pages that are not remembered.
        tokens: Those whose keys and values it holds, once it is full and remembered.
        children: Pages of what has followed.
        users: Sequences that have it.
    """

    __slots__ = ("children", "index", "parent", "tokens", "users")

    def __init__(self, index: int) -> None:
        self.index = index
        self.parent: Page | None = None
        self.tokens: Tokens = ()
        self.children: dict[Tokens, Page] = {}
        self.users = 0


class Pages:
    """All pages of a cache: free, used by sequences, or remembered without a user until room is needed.

    Full pages make a tree by their tokens, so that a text that begins as an earlier one finds what was computed then. Who has a page has
    all in front of it, and gives them back from the last to the first: of those without users the one that is oldest has no
    children.

    Attributes:
        count: How many there are.
        size: Tokens of each.
    """

    def __init__(self, count: int, size: int) -> None:
        self.count, self.size = count, size
        self._free = list(range(count - 1, -1, -1))
        self._root: dict[Tokens, Page] = {}
        self._unused: OrderedDict[int, Page] = OrderedDict()

    @property
    def available(self) -> int:
        """Pages without a user."""
        return len(self._free) + len(self._unused)

    def needed(self, tokens: int) -> int:
        """Pages that so many tokens take."""
        return -(-tokens // self.size)

    def take(self, tokens: Sequence[int], room: int) -> tuple[list[Page], int] | None:
        """Pages for so many tokens, of which the first ones are known.

        Args:
            tokens: The known ones; pages that hold a beginning of them are used again.
            room: How many there may be in the end.

        Returns:
            The pages, and how many of them hold tokens already; None where too few are left.
        """
        found = self._beginning(tokens)
        unused = sum(page.users == 0 for page in found)
        fresh = self.needed(room) - len(found)
        if fresh > self.available - unused:
            return None
        for page in found:
            self._unused.pop(page.index, None)
            page.users += 1
        return found + [self._fresh() for _ in range(fresh)], len(found)

    def _beginning(self, tokens: Sequence[int]) -> list[Page]:
        """Remembered pages of a beginning; at least one token is left to be computed, for its logits."""
        found: list[Page] = []
        children = self._root
        for at in range(0, len(tokens) - self.size, self.size):
            page = children.get(tuple(tokens[at : at + self.size]))
            if page is None:
                break
            found.append(page)
            children = page.children
        return found

    def _fresh(self) -> Page:
        if not self._free:
            _, oldest = self._unused.popitem(last=False)
            self._siblings(oldest.parent).pop(oldest.tokens)
            self._free.append(oldest.index)
        page = Page(self._free.pop())
        page.users = 1
        return page

    def _siblings(self, parent: Page | None) -> dict[Tokens, Page]:
        return self._root if parent is None else parent.children

    def remember(self, page: Page, parent: Page | None, tokens: Sequence[int]) -> bool:
        """Has later texts find a page that is full; False where another one holds the same."""
        siblings, key = self._siblings(parent), tuple(tokens)
        if key in siblings:
            return False
        page.parent, page.tokens = parent, key
        siblings[key] = page
        return True

    def give_back(self, pages: Sequence[Page]) -> None:
        """Of a sequence that has ended, in its order."""
        for page in reversed(pages):
            page.users -= 1
            if page.users:
                continue
            if page.tokens:
                self._unused[page.index] = page
            else:
                self._free.append(page.index)
