# SPDX-License-Identifier: Apache-2.0
"""Who works on chunks: this process, processes of this machine, or a Dask cluster. All take the same tasks.

An executor is given numbers of chunks and says which are done; chunks of workers that die are given to others.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from types import TracebackType
from typing import Any, Protocol, runtime_checkable

from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.kernels import cpu
from voxgrad.volumes.work import work, work_alone

Done = Callable[[list[int]], None]
_MOST_DEATHS = 100
_MOST_IN_VAIN = 4
"""Deaths in a row between which no chunk was done: then it is not chance."""


@runtime_checkable
class Executor(Protocol):
    """Runs chunks of the job in a folder."""

    def go(self, folder: str, run: str, numbers: Sequence[int], done: Done) -> None:
        """Do all these chunks; `done` hears of them as they are written."""
        ...


def executor_for(workers: int | Executor | None, client: Any = None) -> Executor:
    """The executor that a caller asked for: a Dask client, a number of processes (0: this one), or one of its own."""
    if client is not None:
        return DaskWorkers(client)
    if workers is None:
        return Workers(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    if isinstance(workers, int):
        return Workers(workers) if workers > 0 else ThisProcess()
    return workers


class ThisProcess:
    """Works here, one chunk after the other, with all threads of the kernels."""

    def go(self, folder: str, run: str, numbers: Sequence[int], done: Done) -> None:
        """Do all these chunks."""
        for number in numbers:
            done([work(folder, run, number)])


class Workers:
    """Processes of this machine. With `with`, they stay for several runs."""

    def __init__(self, count: int, threads: int | None = None):
        self.count = count
        self.threads = threads or max(1, cpu.get_num_threads() // count)
        self._pool: ProcessPoolExecutor | None = None
        self._processes: Mapping[int, Any] = {}
        self._stays = False

    def __enter__(self) -> Workers:
        self._stays = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stays = False
        self._close()

    def _open(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # Started afresh rather than forked: a fork would copy threads and locks of whoever calls this.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(
                self.count, mp_context=context, initializer=cpu.set_num_threads, initargs=(self.threads,)
            )
            # Kept, for the pool forgets how its processes ended.
            self._processes = self._pool._processes
        return self._pool

    def _check_mapped(self, folder: str) -> None:
        """A worker that the system ended at a page of a map did not die by chance: the file or its disk has an end."""
        processes = list(self._processes.values())
        until = time.monotonic() + 2
        # The pool's own thread waits for them too, and only one of the two is told at once.
        while any(process.exitcode is None for process in processes) and time.monotonic() < until:
            time.sleep(0.01)
        if any(process.exitcode == -getattr(signal, "SIGBUS", 0) < 0 for process in processes):
            wanted = "have a place on the disk for every page of a mapped file"
            remedy = "Make room, or see who cuts the file off; then the same call goes on."
            self._close()
            raise InvalidArgumentError(Fault("VG073", "volumes", folder, wanted, "none (SIGBUS)", remedy))

    def _close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def go(self, folder: str, run: str, numbers: Sequence[int], done: Done) -> None:
        """Do all these chunks; a dead worker's chunks go round again."""
        waiting, deaths, in_vain = list(reversed(numbers)), 0, 0
        try:
            while waiting:
                left = len(waiting)
                lost = self._round(folder, run, waiting, done)
                if lost is not None:
                    self._check_mapped(folder)
                    waiting += lost
                    deaths, in_vain = deaths + 1, 0 if len(waiting) < left else in_vain + 1
                    self._close()
                if deaths > _MOST_DEATHS or in_vain > _MOST_IN_VAIN:
                    raise _died(deaths)
        finally:
            if not self._stays:
                self._close()

    def _round(self, folder: str, run: str, waiting: list[int], done: Done) -> list[int] | None:
        """Until all are done, or a worker dies: then the chunks that were lost."""
        pool, running = self._open(), dict[Future[int], int]()
        try:
            while waiting or running:
                while waiting and len(running) < 2 * self.count:
                    # Taken off the list only when a worker has it: the pool may break right here.
                    running[pool.submit(work, folder, run, waiting[-1])] = waiting[-1]
                    waiting.pop()
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                written = [one for one in finished if not isinstance(one.exception(), BrokenProcessPool)]
                done([future.result() for future in written])
                for future in written:
                    del running[future]
                if len(written) < len(finished):
                    return list(running.values())
        except BrokenProcessPool:
            return list(running.values())
        return None


class DaskWorkers:
    """The workers of a Dask client: one task per chunk, which opens the stores where it runs."""

    def __init__(self, client: Any):
        self.client = _connected(client)

    def go(self, folder: str, run: str, numbers: Sequence[int], done: Done) -> None:
        """Do all these chunks; a few wait on every worker, so that the scheduler never sees them all."""
        distributed = import_module("distributed")
        waiting, deaths = list(reversed(numbers)), 0
        running = distributed.as_completed()
        held: dict[Any, int] = {}
        try:
            while waiting or held:
                for number in self._next(waiting, len(held)):
                    key = f"voxgrad-{run}-{number}-{deaths}"
                    future = self.client.submit(work_alone, folder, run, number, key=key, pure=False)
                    held[future] = number
                    running.add(future)
                future = next(running)
                number = held.pop(future)
                # Asked for rather than looked up: a result that its worker took along when it died is made again.
                error = future.exception()
                if error is None:
                    done([number])
                elif isinstance(error, distributed.KilledWorker):
                    deaths += 1
                    waiting.append(number)
                    if deaths > _MOST_DEATHS:
                        raise _died(deaths) from error
                else:
                    raise error
        finally:
            self.client.cancel(list(held))

    def _next(self, waiting: list[int], held: int) -> Iterable[int]:
        most = 4 * max(1, sum(self.client.nthreads().values()))
        return [waiting.pop() for _ in range(min(len(waiting), max(0, most - held)))]


def _connected(client: Any) -> Any:
    """A client, or one for the address of a scheduler."""
    if not isinstance(client, str):
        return client
    try:
        distributed = import_module("distributed")
    except ImportError:
        fault = Fault("VG070", "volumes", "scheduler", "be reached with distributed", client, "pip install distributed")
        raise InvalidArgumentError(fault) from None
    try:
        return distributed.Client(client, timeout="10s")
    except (OSError, ValueError) as error:
        remedy = "Start one with `dask scheduler`, or take the address that your cluster prints."
        fault = Fault(
            "VG051", "volumes", "scheduler", "be the address of a Dask scheduler", f"{client}: {error}", remedy
        )
        raise InvalidArgumentError(fault) from None


def _died(deaths: int) -> InvalidArgumentError:
    remedy = "If this is a script, call it under `if __name__ == '__main__':`; if memory ran out, use smaller chunks."
    return InvalidArgumentError(Fault("VG071", "volumes", "workers", "stay alive", f"{deaths} that died", remedy))
