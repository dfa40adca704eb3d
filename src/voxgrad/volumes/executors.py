# SPDX-License-Identifier: Apache-2.0
"""Who works on chunks: this process, processes of this machine, or a Dask cluster. All take the same tasks.

An executor is given numbers of chunks and says which are done; chunks of workers that die are given to others.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib import import_module
from types import TracebackType
from typing import Any, Protocol, runtime_checkable

from voxgrad.errors import Fault, InvalidArgumentError
from voxgrad.kernels import cpu
from voxgrad.volumes.work import forget, work, work_alone

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


def executor_for(workers: int | Executor | None, client: Any = None, device: str = "cpu") -> Executor:
    """The executor that a caller asked for: a Dask client, a number of processes (0: this one), or one of its own.

    Without a wish, as many processes as there are processors, or GPUs to compute on, each with one of its own.
    """
    if client is not None:
        return DaskWorkers(client)
    if device.startswith("cuda") and not isinstance(workers, Executor) and workers != 0:
        return _on_gpus(workers, device)
    if workers is None:
        return Workers(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    if isinstance(workers, int):
        return Workers(workers) if workers > 0 else ThisProcess()
    return workers


def _on_gpus(count: int | None, device: str) -> Workers:
    """Processes that see one GPU each, in turn; all of them the one that a device names by its number."""
    import torch

    named = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    seen = [one for one in named.split(",") if one] or [str(one) for one in range(torch.cuda.device_count())] or ["0"]
    number = device.partition(":")[2]
    if number:
        # Each sees all of them: the number is that of the caller.
        return Workers(count or 1)
    return Workers(count or len(seen), gpus=seen)


class ThisProcess:
    """Works here, one chunk after the other, with all threads of the kernels."""

    def go(self, folder: str, run: str, numbers: Sequence[int], done: Done) -> None:
        """Do all these chunks."""
        try:
            for at, number in enumerate(numbers, 1):
                done([work(folder, run, number, numbers[at] if at < len(numbers) else None)])
        finally:
            forget(folder)


class Workers:
    """Processes of this machine, each with a queue of its own: it reads ahead for what comes next there.

    With `with`, they stay for several runs. `gpus` are the names of those that they see, one each, in turn.
    """

    def __init__(self, count: int, threads: int | None = None, gpus: Sequence[str] = ()):
        self.count = count
        self.threads = threads or max(1, cpu.get_num_threads() // count)
        self.gpus = tuple(gpus)
        self._pools: list[ProcessPoolExecutor] = []
        self._processes: list[Any] = []
        self._stays = False

    def __enter__(self) -> Workers:
        self._stays = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stays = False
        self._close()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """The same processes for all that is run meanwhile; who keeps them already goes on keeping them."""
        if self._stays:
            yield
            return
        with self:
            yield

    def _open(self) -> list[ProcessPoolExecutor]:
        if not self._pools:
            # Started afresh rather than forked: a fork would copy threads and locks of whoever calls this.
            context = multiprocessing.get_context("spawn")
            gpus = [self.gpus[at % len(self.gpus)] if self.gpus else "" for at in range(self.count)]
            self._pools = [
                ProcessPoolExecutor(1, mp_context=context, initializer=_begin, initargs=(self.threads, gpu))
                for gpu in gpus
            ]
        return self._pools

    def _check_mapped(self, folder: str) -> None:
        """A worker that the system ended at a page of a map did not die by chance: the file or its disk has an end."""
        processes = self._processes
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
        for pool in self._pools:
            pool.shutdown(cancel_futures=True)
        self._pools = []

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
        pools, running = self._open(), dict[Future[int], tuple[int, int]]()
        lines = _Lines(waiting)

        def give(worker: int) -> None:
            if (number := lines.first(worker)) is not None:
                task = pools[worker].submit(work, folder, run, number, lines.following())
                running[task] = worker, lines.took(worker)

        try:
            for worker in (*range(self.count), *range(self.count)):
                give(worker)
            # Kept, for pools forget how their processes ended.
            self._processes = [process for pool in pools for process in pool._processes.values()]
            while running:
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                written = [one for one in finished if not isinstance(one.exception(), BrokenProcessPool)]
                done([future.result() for future in written])
                if len(written) < len(finished):
                    for future in written:
                        del running[future]
                    break
                for future in written:
                    give(running.pop(future)[0])
            else:
                return None
        except BrokenProcessPool:
            pass
        lines.put_back()
        return [number for _, number in running.values()]


class _Lines:
    """Which worker gets which chunk: each has its next one set aside, so that it can read ahead for it.

    A worker without any takes what was set aside for another, at the end.
    """

    def __init__(self, waiting: list[int]):
        self._waiting = waiting
        self._aside: dict[int, int] = {}

    def first(self, worker: int) -> int | None:
        """The chunk that a worker gets now; it stays here until the worker has it."""
        if worker not in self._aside:
            if self._waiting:
                self._aside[worker] = self._waiting.pop()
            elif self._aside:
                self._aside[worker] = self._aside.pop(next(iter(self._aside)))
        return self._aside.get(worker)

    def following(self) -> int | None:
        """The chunk that will be set aside when a worker has taken its own."""
        return self._waiting[-1] if self._waiting else None

    def took(self, worker: int) -> int:
        """The worker has its chunk; the following one is set aside."""
        number = self._aside.pop(worker)
        if self._waiting:
            self._aside[worker] = self._waiting.pop()
        return number

    def put_back(self) -> None:
        """What was set aside waits again."""
        self._waiting.extend(self._aside.values())
        self._aside.clear()


def _begin(threads: int, gpu: str) -> None:
    """A worker starts: before it computes, it knows its threads and its GPU."""
    cpu.set_num_threads(threads)
    if gpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu


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
