"""Where the C interface is: for programs that load plans without Python."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent


def get_include() -> str:
    """The folder with `baracuda/baracuda.h`, the C interface, and the DLPack header that it needs."""
    return str(_HERE / "include")


def get_library() -> str:
    """The engine, `libbaracuda`: what programs in C link or open. It needs no Python."""
    return str(next((_HERE / "lib").glob("libbaracuda.*")))


def cflags() -> str:
    """What a compiler needs."""
    return f"-I{get_include()}"


def libs() -> str:
    """What a linker needs; programs find the library again where it is now."""
    folder = Path(get_library()).parent
    return f"-L{folder} -Wl,-rpath,{folder} -lbaracuda"
