"""Runs the tests on mutants, the short groups of tests on all of them first, and writes each result as it comes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from types import TracebackType

from mutation_rooms import ROOT, room_of, tests_of
from mutation_server import IMPORT
from mutation_sites import Mutant, replaced

Result = dict[str, object]
# Of processor time for a test, which says the same on a busy machine; for what waits for ever, of time by the clock.
ORDER = {"first": [], "without": [], "only": "", "seed": ""}
LIMITS = {"cpu_seconds": 100, "test_seconds": 400, "seconds": 3600}


def results(file: Path) -> dict[str, Result]:
    """The last one of each mutant."""
    if not file.exists():
        return {}
    return {r["key"]: r for r in map(json.loads, file.read_text().splitlines())}


# Compares the sources with those that are installed, and so sees every mutant of Python as a tree that is not installed.
NO_WITNESS = ["tests/test_contract.py::test_generated_files_are_fresh"]


class Worker:
    """A server that forks, and a package of its own, since mutants of Python replace its files."""

    def __init__(self, number: int, work: Path, tree: Path, level: str) -> None:
        self.path, self.tree = work / f"site-{number}", tree
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.copytree(
            tree / "python",
            self.path,
            copy_function=lambda a, b: (os.link if a.endswith(".so") else shutil.copyfile)(a, b),
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        for file in (ROOT / "python").rglob("*.py*"):  # as they are now
            if "__pycache__" not in file.parts and file.suffix in (".py", ".pyi"):
                shutil.copyfile(file, self.path / file.relative_to(ROOT / "python"))
        env = {k: v for k, v in os.environ.items() if not k.startswith(("BARACUDA_", "BCU_"))}
        env |= {"PYTHONPATH": str(self.path), "BARACUDA_CPU_LEVEL": level}
        command = [sys.executable, str(Path(__file__).with_name("mutation_server.py"))]
        self.server = subprocess.Popen(
            command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def pytest(self, arguments: list[str], fresh: bool, mutant: int | None = None, **order: object) -> dict[str, str]:
        """`word` is "passed", "failed", "hung" or "none" (no test); `test` the one that failed, `said` why."""
        env = {} if mutant is None else {"BCU_MUTANT": str(mutant)}
        if any("test_device" in a for a in arguments):
            module = str(self.tree / "build/emulator-plain/libbaracuda_cuda_emulated.so")
            env |= {"BARACUDA_CUDA_MODULE": module, "BARACUDA_CUBLASLT_LIBRARY": module}
        request = {
            "arguments": arguments,
            "fresh": fresh,
            "env": env,
            "site": str(self.path),
            **ORDER,
            **order,
            **LIMITS,
        }
        assert self.server.stdin and self.server.stdout
        print(json.dumps(request), file=self.server.stdin, flush=True)
        line = self.server.stdout.readline()
        if not line:
            raise RuntimeError(f"ci/mutation_server.py ended with {self.server.wait()}")
        answer: dict[str, str] = json.loads(line)
        return answer

    def replace(self, file: str, text: bytes) -> None:
        inside = self.path / file.removeprefix("python/")
        inside.write_bytes(text)
        for compiled in inside.parent.glob(f"__pycache__/{inside.stem}.*.pyc"):  # knows whole seconds only
            compiled.unlink()

    def close(self) -> None:
        assert self.server.stdin
        self.server.stdin.close()
        self.server.wait()


class Campaign:
    """Judges mutants on some workers at once; `again` takes up those that all tests of their rooms let through before."""

    def __init__(
        self, work: Path, tree: Path, jobs: int, level: str, tests: list[str], again: bool, excused: Iterable[str] = ()
    ) -> None:
        self.excused = set(excused)
        self.file, self.jobs, self.tests, self.again = work / "results.jsonl", jobs, tests, again
        self.results = results(self.file)
        self.workers: SimpleQueue[Worker] = SimpleQueue()
        self.all_workers = [Worker(n, work, tree, level) for n in range(jobs)]
        for worker in self.all_workers:
            self.workers.put(worker)
        self.writing = Lock()
        self.right: dict[str, bool] = {}  # whether a test passes without a mutant

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for worker in self.all_workers:
            worker.close()

    def killers(self, file: str) -> list[str]:
        """The tests that killed others: those of the same file first, then of the same room."""
        killed = [
            r for r in reversed(list(self.results.values())) if r["verdict"] == "killed" and "::" in str(r["test"])
        ]
        near = sorted(killed, key=lambda r: (r["file"] != file, room_of(str(r["file"])) != room_of(file)))
        return list(dict.fromkeys(str(r["test"]) for r in near))[:60]

    def judge(self, worker: Worker, number: int, m: Mutant, stage: int) -> Result:
        start = time.monotonic()
        try:
            stages = self.stages(m.file)
            answer = self._run(worker, number, m, *stages[stage])
            killed = answer["word"] in ("failed", "hung")
            last = stage + 1 == len(stages) and not self.tests
            result = {"verdict": "killed" if killed else "survived" if last else "open", "test": answer["test"]}
            result["said"] = answer["said"] if killed else ""
        except RuntimeError as e:
            result = {"verdict": "error", "test": "", "said": str(e)}
        return {"key": m.key, "file": m.file, "line": m.line, "what": str(m), "stage": stage, **result,
                "seconds": round(time.monotonic() - start, 1)}  # fmt: skip

    def stages(self, file: str) -> list[tuple[list[str], bool]]:
        """What pytest is given, and whether a fork imports baracuda anew: for Python's mutants, and once for others."""
        if self.tests:
            return [(self.tests, True)]
        groups = tests_of(file)
        if file.endswith(".py"):
            return [(g, True) for g in groups]
        return [(groups[0], False), (groups[0], True), *((g, False) for g in groups[1:])]

    def _run(self, worker: Worker, number: int, m: Mutant, arguments: list[str], fresh: bool) -> dict[str, str]:
        """A test that fails without the mutant, too, says nothing, and is left out from then on."""
        python = m.file.endswith(".py")
        right = (ROOT / m.file).read_bytes()
        while True:
            if python:
                worker.replace(m.file, replaced(right, m))
            without = [*NO_WITNESS, *(t for t, passes in self.right.items() if not passes)]
            order = {"first": self.killers(m.file), "without": without, "seed": m.file}
            try:
                answer = worker.pytest(arguments, fresh, None if python else number, **order)
            finally:
                if python:
                    worker.replace(m.file, right)
            test = answer["test"]
            if answer["word"] in ("passed", "none") or self.passes(worker, test, arguments, fresh):
                return answer
            print(f"fails without a mutant, too: {test}", flush=True)

    def passes(self, worker: Worker, test: str, arguments: list[str], fresh: bool) -> bool:
        """With the right code, alone."""
        if test not in self.right:
            if "::" in test:
                answer = worker.pytest([test] if fresh else arguments, fresh, only=test)
            else:  # a file or the package that cannot be imported
                collected = ["--collect-only", "tests/test_spec.py" if test == IMPORT else test]
                answer = worker.pytest(collected, True)
                if answer["word"] != "passed":
                    raise RuntimeError(f"without a mutant: {answer['said']}")
            self.right[test] = answer["word"] == "passed"
        return self.right[test]

    def due(self, numbered: dict[int, Mutant], stage: int) -> Iterable[tuple[int, Mutant]]:
        for number, m in numbered.items():
            known = self.results.get(m.key, {"verdict": "open", "stage": -1})
            reached = -1 if known["verdict"] == "error" else int(str(known["stage"]))
            if self.again and known["verdict"] == "survived" and stage == 0:
                reached = -1
            last = 1 if m.key in self.excused else len(self.stages(m.file))  # enough to see that the reason is nonsense
            more = bool(self.tests) or (reached + 1 == stage and stage < last)
            if known["verdict"] != "killed" and more:
                yield number, m

    def run(self, numbered: dict[int, Mutant], stages: int) -> None:
        for stage in range(stages):
            due: dict[str, list[tuple[int, Mutant]]] = {}
            for number, m in self.due(numbered, stage):  # what needs the same tests collects them once
                due.setdefault(str(self.stages(m.file)[stage]), []).append((number, m))
            shares = [
                group[k :: self.jobs] for group in due.values() for k in range(self.jobs) if group[k :: self.jobs]
            ]
            with ThreadPoolExecutor(self.jobs) as pool:
                list(pool.map(self.judge_all, shares, repeat(stage)))

    def judge_all(self, group: list[tuple[int, Mutant]], stage: int) -> None:
        worker = self.workers.get()
        for number, m in group:
            result = self.judge(worker, number, m, stage)
            with self.writing:
                if result["verdict"] == "killed" or not self.tests:  # other tests may know what these do not
                    self.results[m.key] = result
                    with self.file.open("a") as f:
                        f.write(json.dumps(result) + "\n")
                print(f"stage {stage + 1} {result['verdict']:9} {result['seconds']:6} s  {result['what']}", flush=True)
        self.workers.put(worker)
