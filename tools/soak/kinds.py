# SPDX-License-Identifier: Apache-2.0
"""The kinds of rounds. Each takes a source of chance and a folder of its own, and returns what it counted.

What goes wrong is raised. A round takes a few seconds.
"""

from __future__ import annotations

import gc
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import voxgrad as vg
from tests.graph.test_edits import check_consistent
from tests.volumes.random_pages import random_page
from tests.volumes.test_pages import TERMS
from voxgrad.catalog.dtypes import FLOATING
from voxgrad.catalog.registry import FAMILY
from voxgrad.graph.page import Page
from voxgrad.testing import SeededChooser, assert_close, draw_call
from voxgrad.testing.hostile import attack, is_right

Counts = dict[str, int]
Kind = Callable[[random.Random, Path], Counts]
Array = np.ndarray[Any, Any]
POOL: dict[str, Any] = {"ksize": [1, 3, 3, 3, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}


def calls(chance: random.Random, folder: Path) -> Counts:
    """Valid and hostile calls of the family, each answer compared with the reference."""
    answered, refused = attack(400, chance.randrange(2**31))
    return {"answered": answered, "refused": refused}


def pages(chance: random.Random, folder: Path) -> Counts:
    """Random pages: the same bits from a file and in another number of threads, the same numbers chunk by chunk."""
    made = 0
    for _ in range(4):
        page, x = random_page(SeededChooser(chance.randrange(2**31)), np.float32, "integers")
        wanted = _run(page, x)
        page.save(folder / "page.vox.json")
        np.save(folder / "x.npy", x)
        vg.set_num_threads(chance.randint(1, 4))
        chunks = tuple(chance.randint(1, 5) for _ in range(3))
        target = folder / f"y{made}.npy"
        vg.volumes.run_page(folder / "page.vox.json", {"x": folder / "x.npy"}, {"y": target}, chunks=chunks, workers=0)
        for found in (_run(Page.load(folder / "page.vox.json"), x), _run(page, x)):
            assert np.array_equal(found, wanted), f"another result: {page.to_dict()}"
        rounds = any(block.op_name == "AvgPool3D" for block in page.blocks)
        assert_close(np.load(target), wanted, terms=TERMS if rounds else 0, scale=float(np.abs(wanted).max(initial=0)))
        made += 1
    return {"pages": made}


def _run(page: Page, x: Array) -> Array:
    result: Array = vg.ClientSession(page).run("y" if "y" in page else page.outputs["y"], {"x": x})
    return result


def edits(chance: random.Random, folder: Path) -> Counts:
    """Random edits of a page, fixes and folds too: it stays consistent, and what is refused changes nothing."""
    page, _ = random_page(SeededChooser(chance.randrange(2**31)), np.float32, "integers")
    done = refused = 0
    for number in range(150):
        before = page.to_dict()
        try:
            _edit(page, chance, number)
            done += 1
        except vg.VoxgradError:
            refused += 1
            assert page.to_dict().keys() == before.keys() and len(page.to_dict()["blocks"]) == len(before["blocks"])
        check_consistent(page)
        for problem in page.problems():
            assert problem.code in vg.errors.CODES
    return {"edits": done, "refused": refused}


def _edit(page: Page, chance: random.Random, number: int) -> None:
    names = [block.name for block in page.blocks]
    one, other = (chance.choice(names) if names else "nobody" for _ in range(2))
    outputs = [output for block in page.blocks for output in block.outputs]
    kind = chance.randrange(10)
    if kind == 0:
        page.apply({"do": "add", "op": chance.choice(["Neg", "Relu", "AddV2", "Square", "NoOp", "MaxPool3D"])})
    elif kind == 1 and len(names) > 3:
        page.apply({"do": "remove", "block": one})
    elif kind == 2:
        page.apply({"do": "rename", "block": one, "name": chance.choice([f"n{number}", other, f"s{number % 3}/n"])})
    elif kind == 3 and outputs:
        pins = page.block(one).input_names or ("x",)
        page.apply({"do": "connect", "from": chance.choice(outputs).path, "block": one, "pin": chance.choice(pins)})
    elif kind == 4:
        page.apply({"do": chance.choice(["run_after", "no_longer_after"]), "block": one, "others": [other]})
    elif kind == 5:
        page.fold(chance.sample(names, min(len(names), chance.randint(1, 3))), f"f{number}")
    elif kind == 6:
        used = [block for block in page.blocks if block.uses]
        page.inline(chance.choice(used) if used else one)
    elif kind == 7:
        fixes = [fix for problem in page.problems() for fix in problem.fixes]
        page.apply(chance.choice(fixes) if fixes else {"do": "move", "block": one, "position": [number, 0]})
    elif kind == 8 and outputs:
        vg.gradients(chance.choice(outputs), chance.choice(outputs))
    else:
        page.apply([{"do": "add", "op": "Neg"}, {"do": "remove", "block": one}, {"do": "remove", "block": "nobody"}])


def threads(chance: random.Random, folder: Path) -> Counts:
    """Calls from many threads, with collections of cycles that hold results, and the number of threads changing."""
    seeds = [chance.randrange(2**31) for _ in range(8)]
    counts, errors = [0] * len(seeds), []
    end = time.monotonic() + 3

    def work(at: int) -> None:
        own = random.Random(seeds[at])
        try:
            while time.monotonic() < end:
                op, call = _call(own)
                result = getattr(vg.raw_ops, op.name)(**call)
                assert is_right(op, call, result), (op.name, seeds[at])
                cycle: list[Any] = [result]
                cycle.append(cycle)
                if own.random() < 0.1:
                    gc.collect()
                if own.random() < 0.05:
                    vg.set_num_threads(own.randint(1, 8))
                counts[at] += 1
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=work, args=(at,)) for at in range(len(seeds))]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]
    return {"calls": sum(counts)}


def _call(chance: random.Random) -> tuple[Any, dict[str, Any]]:
    op = chance.choice(FAMILY)
    return op, draw_call(op, SeededChooser(chance.randrange(2**31)), dtype=chance.choice(FLOATING))


def forks(chance: random.Random, folder: Path) -> Counts:
    """Children forked while other threads compute and collect; each computes on its own, and ends."""
    stop, done = threading.Event(), 0
    seeds = [chance.randrange(2**31) for _ in range(3)]

    def load(seed: int) -> None:
        own = random.Random(seed)
        while not stop.is_set():
            op, call = _call(own)
            cycle: list[Any] = [getattr(vg.raw_ops, op.name)(**call)]
            cycle.append(cycle)
            if own.random() < 0.2:
                gc.collect()

    running = [threading.Thread(target=load, args=(seed,)) for seed in seeds]
    for thread in running:
        thread.start()
    try:
        for _ in range(40):
            seed = chance.randrange(2**31)
            child = os.fork()
            if child == 0:
                os._exit(_in_child(seed))
            _await(child, seed)
            done += 1
    finally:
        stop.set()
        for thread in running:
            thread.join()
    return {"forks": done}


def many_forks(chance: random.Random, folder: Path) -> Counts:
    """Two hundred children of a process that computes in three threads; each computes one result and ends."""
    x = np.random.default_rng(chance.randrange(2**31)).standard_normal((1, 33, 32, 32, 8)).astype(np.float32)
    pool = POOL | {"strides": [1] * 5}
    wanted, stop = vg.raw_ops.MaxPool3D(input=x, **pool), threading.Event()

    def load() -> None:
        while not stop.is_set():
            cycle: list[Any] = [vg.raw_ops.MaxPool3D(input=x, **pool)]
            cycle.append(cycle)

    running = [threading.Thread(target=load) for _ in range(3)]
    for thread in running:
        thread.start()
    try:
        for number in range(200):
            child = os.fork()
            if child == 0:
                os._exit(0 if np.array_equal(vg.raw_ops.MaxPool3D(input=x, **pool), wanted) else 3)
            _await(child, number)
    finally:
        stop.set()
        for thread in running:
            thread.join()
    return {"forks": 200}


def collections(chance: random.Random, folder: Path) -> Counts:
    """Forty thousand collections while results that lie in cycles are made, large and small, in two threads."""
    large = np.zeros((1, 33, 64, 64, 2), np.float32)  # a result of a megabyte and more, which is recycled
    most = 20_000

    def work() -> None:
        for number in range(most):
            cycle: list[Any] = [vg.raw_ops.MaxPool3D(input=large if number % 50 == 0 else large[:, :2, :4, :4], **POOL)]
            cycle.append(cycle)
            gc.collect(0)

    running = [threading.Thread(target=work) for _ in range(2)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return {"collections": 2 * most}


def interrupts(chance: random.Random, folder: Path) -> Counts:
    """Ctrl-C inside every kernel of the family and in a block of NumPy: the longest that one took to stop."""
    x = np.zeros((1, 64, 160, 160, 16), np.float32)
    window: dict[str, Any] = {"ksize": [1, 9, 9, 9, 1], "strides": [1] * 5, "padding": "SAME"}
    conv: dict[str, Any] = {"filter": np.zeros((7, 7, 7, 16, 16), np.float32), "strides": [1] * 5, "padding": "SAME"}
    page = vg.Page("long")
    a = vg.ops.Placeholder(page, dtype="float64", name="a")
    vg.ops.MatMul(page, a, a, name="y")
    session = vg.ClientSession(page, cache=False)
    calls: list[Callable[[], Any]] = [
        lambda: vg.raw_ops.Conv3D(input=x, **conv),
        lambda: vg.raw_ops.Conv3DBackpropInputV2(input_sizes=x.shape, out_backprop=x, **conv),
        lambda: vg.raw_ops.Conv3DBackpropFilterV2(
            input=x, filter_sizes=[7, 7, 7, 16, 16], out_backprop=x, strides=[1] * 5, padding="SAME"
        ),
        lambda: vg.raw_ops.AvgPool3D(input=x, **window),
        lambda: vg.raw_ops.AvgPool3DGrad(orig_input_shape=x.shape, grad=x, **window),
        lambda: vg.raw_ops.MaxPool3D(input=x, **window),
        lambda: vg.raw_ops.MaxPool3DGrad(orig_input=x, orig_output=x, grad=x, **window),
        lambda: vg.raw_ops.MaxPool3DGradGrad(orig_input=x, orig_output=x, grad=x, **window),
        lambda: session.run("y", {"a": np.zeros((4096, 4096))}),
    ]
    stopped, longest = 0, 0.0
    for call in calls:
        took = _seconds_to_stop(call, chance.uniform(0.02, 0.3))
        stopped += took is not None
        longest = max(longest, took or 0.0)
    assert longest < 1, f"an interrupt took {longest:.2f} s"
    return {"interrupts": stopped, "ms for the longest": round(1000 * longest)}


def _seconds_to_stop(call: Callable[[], Any], after: float) -> float | None:
    """How long a call goes on after Ctrl-C; None where it had ended before."""
    sent: list[float] = []

    def interrupt(number: int, frame: Any) -> None:
        sent.append(time.perf_counter())
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, after)
    try:
        call()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return time.perf_counter() - sent[0]
    return None


def _in_child(seed: int) -> int:
    """What a forked child does: a few calls and a collection; 0 where all of it was right."""
    try:
        own = random.Random(seed)
        for _ in range(3):
            op, call = _call(own)
            if not is_right(op, call, getattr(vg.raw_ops, op.name)(**call)):
                return 3
        gc.collect()
        return 0
    except BaseException:
        return 4


def _await(child: int, seed: int) -> None:
    """The end of a child; one that hangs, which is to say computes nothing for a minute, is ended."""
    used, end = 0, time.monotonic() + 60
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            assert status == 0, f"the child of seed {seed} ended with {status}"
            return
        if (now := _ticks(child)) > used:
            used, end = now, time.monotonic() + 60
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError(f"the child of seed {seed} hangs")


def _ticks(process: int) -> int:
    """Processor time that a process has used, in ticks of the clock."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def kills(chance: random.Random, folder: Path) -> Counts:
    """A chunked run killed at random moments, until it gets to its end: the same bits as in memory."""
    x = np.random.default_rng(chance.randrange(2**31)).standard_normal((1, 20, 20, 20, 2)).astype(np.float32)
    np.save(folder / "x.npy", x)
    script = folder / "job.py"
    script.write_text(
        "import time\nfrom voxgrad.volumes.run import apply\nif __name__ == '__main__':\n"
        f"    apply('MaxPool3D', {{'input': {str(folder / 'x.npy')!r}}}, {str(folder / 'y.npy')!r}, chunks=(1, 2, 4), "
        f"workers=1, progress=lambda *_: time.sleep(0.01), **{POOL!r})\n"
    )
    killed = 0
    while True:
        run = subprocess.Popen([sys.executable, str(script)], start_new_session=True)
        try:
            run.wait(chance.uniform(0.5, 4.0) * (1 + killed))
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            killed += 1
            continue
        assert run.returncode == 0, f"a run after {killed} kills ended with {run.returncode}"
        assert np.array_equal(np.load(folder / "y.npy"), vg.raw_ops.MaxPool3D(input=x, **POOL))
        return {"kills": killed}


def studio(chance: random.Random, folder: Path) -> Counts:
    """The studio killed while somebody types: what it has acknowledged is there, and no page is half-written."""
    from tests.studio.documents import pool_page
    from tests.studio.serving import Server
    from tests.studio.test_kills import Typist, number_in
    from voxgrad.formats import page_file

    server = Server(folder)
    page = server.post("pages", {"name": "typed", "document": pool_page()})["id"]
    newest = kept = 0
    for _ in range(3):
        typist = Typist(server, page, newest)
        time.sleep(chance.uniform(0.0, 0.6))
        server.kill()
        typist.join()
        page_file.load(folder / "typed.vox.json")
        server = Server(folder)
        found = server.get(f"pages/{page}")
        kept += typist.kept - newest
        newest = max(number_in(found["document"]), number_in(found["draft"]["document"]) if found["draft"] else 0)
        assert typist.kept <= newest <= typist.sent, (typist.kept, newest, typist.sent)
    server.stop()
    return {"kills": 3, "edits": kept}


def full_disks(chance: random.Random, folder: Path) -> Counts:
    """Files that may not grow past a random size: saves and runs end in an error of ours, and old files stay whole."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    page, x = random_page(SeededChooser(chance.randrange(2**31)), np.float32, "integers")
    page.save(folder / "page.vox.json")
    np.save(folder / "x.npy", x)
    old, wanted = (folder / "page.vox.json").read_bytes(), _run(page, x)
    for _ in range(3):
        page.add("Const", attrs={"value": np.random.default_rng(0).random(4000), "dtype": "float64"})
    written = refused = 0
    for number in range(12):
        resource.setrlimit(resource.RLIMIT_FSIZE, (chance.choice([0, 10, 500, 3000, 40_000]), resource.RLIM_INFINITY))
        try:
            if number % 2:
                page.save(folder / "page.vox.json")
                old = (folder / "page.vox.json").read_bytes()
            else:
                target = folder / f"y{number}.npy"
                vg.volumes.run_page(page, {"x": folder / "x.npy"}, {"y": target}, chunks=(3, 3, 3), workers=0)
                assert np.array_equal(np.load(target), wanted)
            written += 1
        except vg.VoxgradError:
            refused += 1
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert (folder / "page.vox.json").read_bytes() == old, "a page that could not be written was harmed"
        Page.load(folder / "page.vox.json")
    return {"written": written, "refused": refused}


KINDS: dict[str, Kind] = {
    "calls": calls,
    "pages": pages,
    "edits": edits,
    "threads": threads,
    "forks": forks,
    "many_forks": many_forks,
    "collections": collections,
    "interrupts": interrupts,
    "kills": kills,
    "studio": studio,
    "disks": full_disks,
}
