"""Runs pytest again and again in forks of one process, which has imported what takes long; ci/mutate.py talks to it.

A line of its input is one request, a line of its output the answer (JSON). Where a request is `fresh`, the fork imports
baracuda with the mutant in place. Others wait in a second process that has baracuda and has collected the tests: a fork of
that chooses its mutant only then, so that what is computed as a library is loaded is right in it.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import sys
import tempfile
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

import pytest

SLOW_IMPORTS = ("numpy", "torch", "jax", "hypothesis", "onnx", "mpmath", "ml_dtypes")
IMPORT = "import baracuda"  # takes a test's place in an answer
# libgomp came with torch, but no thread of it has run: forks of these processes may start them, those that tests make may not.
MAY_START_THREADS = "BCU_MUTATION_SERVER"
CHOSEN = "bcu_mutant_chosen"  # the number of the mutant, in each library of ci/mutate.py's build

Request = dict[str, Any]


class Run:
    """A plugin of pytest: puts the tests in the order that kills soonest, and notes where the run is."""

    def __init__(self, request: Request, folder: Path) -> None:
        self.request, self.folder, self.failed = request, folder, False

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Those that killed before; then a tenth of each file; then the others. A file's stay together for its fixtures."""
        items.sort(key=lambda item: item.nodeid)
        random.Random(self.request["seed"]).shuffle(items)
        by_file: dict[str, list[str]] = {}
        for item in items:
            by_file.setdefault(item.nodeid.partition("::")[0], []).append(item.nodeid)
        early = {test for tests in by_file.values() for test in tests[: 1 + len(tests) // 10]}
        place = {test: n for n, test in enumerate(test for tests in by_file.values() for test in tests)}
        first = {test: n for n, test in enumerate(self.request["first"])}
        items.sort(key=lambda i: (first.get(i.nodeid, len(first)), i.nodeid not in early, place[i.nodeid]))
        only, without = self.request["only"], set(self.request["without"])
        items[:] = [i for i in items if i.nodeid not in without and only in ("", i.nodeid)]

    def note(self, text: str) -> None:
        (self.folder / "notes").write_text(text)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.note(nodeid)
        signal.setitimer(signal.ITIMER_PROF, self.request["cpu_seconds"])  # its signal ends the process, whatever hangs

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.failed:
            self.failed = True
            self.note(f"{report.nodeid}\n{str(report.longrepr)[-600:]}")

    def pytest_collectreport(self, report: Any) -> None:
        self.pytest_runtest_logreport(report)


class Collected(Run):
    """Holds a run at its collected tests, and goes on with them in a fork for each request."""

    def __init__(self, request: Request, folder: Path, requests: TextIO, answers: TextIO) -> None:
        super().__init__(request, folder)
        self.requests, self.answers = requests, answers

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> object:
        for line in [] if session.testsfailed else self.requests:
            self.request = json.loads(line)
            answer = forked(self.request, self.folder)
            if answer is None:
                choose(int(self.request["env"].get("BCU_MUTANT", -1)))
                self.pytest_collection_modifyitems(session.items)
                return None
            print(json.dumps(answer), file=self.answers, flush=True)
        return None if session.testsfailed else True


def choose(mutant: int) -> None:
    """For all libraries that are loaded: the variable is one, or each has its own."""
    files = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "baracuda" in line}
    for file in files:
        with suppress(OSError, ValueError):
            ctypes.c_int.in_dll(ctypes.CDLL(file), CHOSEN).value = mutant


def forked(request: Request, folder: Path) -> dict[str, str] | None:
    """None in the fork, which is to run the tests; else what came of it."""
    notes, output = folder / "notes", folder / "output"
    notes.write_text(IMPORT)
    pid = os.fork()
    if pid == 0:
        os.setsid()  # its subprocesses end with it
        said = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(said, 1)
        os.dup2(said, 2)
        os.environ.update(request["env"])
        os.environ.pop(MAY_START_THREADS, None)
        return None
    end, done, status = time.monotonic() + request["seconds"], 0, 0
    while not done and time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        time.sleep(0 if done else 0.01)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if not done:
        os.waitpid(pid, 0)
        word = "hung"
    elif os.WIFSIGNALED(status):
        word = "hung" if os.WTERMSIG(status) == signal.SIGPROF else "failed"
    else:
        word = {0: "passed", 5: "none"}.get(os.WEXITSTATUS(status), "failed")
    test, _, why = notes.read_text().partition("\n")
    last = "\n".join(output.read_text(errors="replace").splitlines()[-6:])
    return {"word": word, "test": test, "said": (why or f"{word}: {last}")[-600:]}


def run(request: Request, plugin: Run) -> None:
    """All of pytest, as the rest of this process."""
    status = 1
    try:
        os.environ[MAY_START_THREADS] = "1"
        sys.path.insert(0, request["site"])
        import_module("baracuda").get_num_threads()
        if request["fresh"]:
            del os.environ[MAY_START_THREADS]
        options = ["-x", "-q", "-s", "--no-header", "--tb=line", "-p", "no:cacheprovider", "-W", "ignore", "-o", "timeout=0",
                   "-o", f"faulthandler_timeout={request['test_seconds']}", "-o", "faulthandler_exit_on_timeout=true"]  # fmt: skip
        status = pytest.main([*options, *request["arguments"]], [plugin])
    finally:
        sys.stdout.flush()
        os._exit(status)


class Server:
    """Keeps the tests of the last request collected."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.held = folder, ""
        self.pid, self.to, self.back = 0, Path(os.devnull).open("w"), Path(os.devnull).open()  # noqa: SIM115

    def release(self) -> None:
        self.to.close()
        if self.pid:
            os.waitpid(self.pid, 0)
        self.pid, self.held = 0, ""

    def collect(self, request: Request) -> None:
        self.release()
        (there, to), (back, here) = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(to)
            os.close(back)
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, 1)
            os.dup2(nothing, 2)
            os.environ.update({k: v for k, v in request["env"].items() if k != "BCU_MUTANT"})
            run(request, Collected(request, self.folder, os.fdopen(there), os.fdopen(here, "w")))
        os.close(there)
        os.close(here)
        self.pid, self.to, self.back = pid, os.fdopen(to, "w"), os.fdopen(back)

    def answer(self, request: Request) -> dict[str, str]:
        if not request["fresh"]:
            asked = json.dumps([request["arguments"], request["site"]])
            if self.held != asked:
                self.collect(request)
            self.held = asked
            with suppress(BrokenPipeError):
                print(json.dumps(request), file=self.to, flush=True)
                if line := self.back.readline():
                    found: dict[str, str] = json.loads(line)
                    return found
            self.pid, _ = 0, os.waitpid(self.pid, 0)  # could not collect: the fresh run says why
            self.held = ""
        found_now = forked(request, self.folder)
        if found_now is None:
            run(request | {"fresh": True}, Run(request, self.folder))
        assert found_now is not None
        return found_now


def main() -> None:
    for name in SLOW_IMPORTS:
        import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        for line in sys.stdin:
            print(json.dumps(server.answer(json.loads(line))), flush=True)
        server.release()


if __name__ == "__main__":
    main()
