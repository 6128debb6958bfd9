"""Lines of the user's code that messages name."""

from __future__ import annotations

import linecache
from pathlib import Path
from types import FrameType

_PACKAGE = str(Path(__file__).resolve().parents[1])
_READERS = (
    str(Path(_PACKAGE) / "onnx") + "/"
)  # of networks, by public functions alone: a user's code as far as sizes go
Site = tuple[str, int]  # a line: file and number


def is_own_file(name: str) -> bool:
    """Whether a frame's file is of the package; texts are signatures that it has made."""
    return name.startswith(_PACKAGE) or name == "<string>"


def is_own(frame: FrameType) -> bool:
    """Whether a frame is of the package, and sees sizes as plain numbers."""
    name = frame.f_code.co_filename
    return is_own_file(name) and not name.startswith(_READERS)


def user_line(frame: FrameType | None) -> Site:
    """The innermost line of the user's, where other libraries are between."""
    first: Site | None = None
    while frame is not None:
        if not is_own(frame):
            here = frame.f_code.co_filename, frame.f_lineno
            if "-packages" not in here[0]:
                return here
            first = first or here
        frame = frame.f_back
    return first or ("", 0)


def line_text(site: Site) -> str:
    """File, number and text of a line, as messages show it."""
    return f"{site[0]}:{site[1]}: {linecache.getline(*site).strip()}"
