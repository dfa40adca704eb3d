# SPDX-License-Identifier: Apache-2.0
"""A job: a page, the files of its volumes and of its results, and how it is cut. Kept as files in the run folder.

Whoever can read the folder can work on the job: a process of this machine, or of another one that sees the same disk.
`job.json` says what is done, `page.vox.json` is the page, `values.npz` holds what is not cut (filters, biases),
computed once, so that every worker and every later run has the same.
"""

from __future__ import annotations

import json
import math
import os
import uuid
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np

from voxgrad.catalog import dtypes
from voxgrad.catalog.dims import shapes_differ
from voxgrad.catalog.dtypes import DType
from voxgrad.catalog.model import Spec
from voxgrad.errors import Fault, InvalidArgumentError, show
from voxgrad.formats.tensor_files import replace_file
from voxgrad.graph.block import Output
from voxgrad.graph.feeds import Feeds, feed_arrays
from voxgrad.graph.made_of import spell_out
from voxgrad.graph.page import Page
from voxgrad.graph.plan import content_key
from voxgrad.graph.values import spec_of
from voxgrad.graph.volume_files import open_in
from voxgrad.kernels.arraywise.files import Files
from voxgrad.kernels.element_types import dtype_of, numpy_type
from voxgrad.volumes.layout import Roles, flat
from voxgrad.volumes.page_plan import PagePlan
from voxgrad.volumes.passes import Passes, passes_of
from voxgrad.volumes.record import check_seals, damaged, digest, sampled, seals
from voxgrad.volumes.space import Space
from voxgrad.volumes.store import Address
from voxgrad.volumes.stores import Store, open_volume

Array = np.ndarray[Any, Any]
_MOST_LOOKED_AT = 100_000
_SEALED = ("page.vox.json", "feeds.json", "feeds.npz", "values.json", "values.npz")


@dataclass
class Job:
    """A page over volumes, ready to be planned and run. Names are those of outputs of blocks."""

    page: Page
    volumes: dict[Output, Store]
    feeds: dict[Output, Array]
    outputs: dict[Output, str]
    """The files of results; fetches without a file are in `fetches` alone."""
    fetches: list[Output]
    chunks: tuple[int, ...]
    device: str = "cpu"
    names: dict[str, Output] = field(default_factory=dict)
    """What the caller calls its results."""
    types: dict[Output, str] = field(default_factory=dict)
    """The types that results are written as, where not as they are computed."""
    scratch: frozenset[Output] = frozenset()
    """The volumes that earlier passes of this run left: their chunks have checksums of their own."""
    roles: dict[Output, Roles] = field(default_factory=dict)
    """What the dimensions of volumes are, where another pass has said it."""
    places: dict[Output, Space] = field(default_factory=dict)
    """Where results lie, where these volumes do not tell."""
    inner: tuple[int, ...] = ()
    """The chunks inside of the shards that results are written as, one shard a task; else chunks are what tasks are."""
    lasting: bool = True
    """False for a pass that is not the last: what it writes need not outlive the machine, for its checksums tell."""
    run: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Stands for this run, so that nobody takes an old run in the same folder for it."""

    @staticmethod
    def make(
        page: Page, volumes: Mapping[str, Any], feeds: Feeds, outputs: Mapping[str, Any], fetches: Sequence[str],
        chunks: Sequence[int], device: str = "cpu",
    ) -> Job:  # fmt: skip
        """A job from names and paths; the page is copied and its nested pages are put in their place."""
        exposed = {name: output.path for name, output in page.outputs.items()}
        copy = flat(page)
        exposed = {name: copy.outputs[name].path for name in exposed}
        names = {name: copy.output(exposed.get(name, name)) for name in (*outputs, *fetches)}
        own = [block.output(0) for block in copy.blocks if block.op_name == "Volume"]
        moved = spell_out(copy, [*(copy.output(name) for name in volumes), *own])
        names = {name: moved.get(output, output) for name, output in names.items()}
        found = {names[name]: str(path) for name, path in outputs.items()}
        if len(found) < len(outputs):
            raise InvalidArgumentError(
                Fault("VG067", page.name, "outputs", "name every result once", str(list(outputs)))
            )
        wanted = dict.fromkeys(names[name] for name in fetches)
        stores = {copy.output(name): opened(path) for name, path in volumes.items()}
        stores |= _own_volumes(copy, {*stores, *(copy.output(_path(which)) for which in feeds)})
        if not stores:
            remedy = "Name a placeholder and a file: volumes={'x': 'scan.zarr'}, or --volume x=scan.zarr."
            raise InvalidArgumentError(Fault("VG001", page.name, "volumes", "hold one volume or more", "none", remedy))
        named = {copy.output(_path(which)): value for which, value in feeds.items()}
        # In one order, whichever way they were given: what is kept of them is known by its number.
        arrays = dict(sorted(feed_arrays(copy, named).items(), key=lambda one: one[0].path))
        all_fetched = [*found, *(one for one in wanted if one not in found)]
        return Job(copy, stores, arrays, found, all_fetched, tuple(int(one) for one in chunks), device, names)

    def passes(self) -> Passes:
        """The passes over these volumes."""
        specs = {output: self._spec(output, store) for output, store in self.volumes.items()}
        feeds = {output: spec_of(value) for output, value in self.feeds.items()}
        return passes_of(self.page, specs, feeds, self.fetches, self.roles)

    def plan(self) -> PagePlan:
        """The plan of the job: of its last pass, behind those before it."""
        *before, last = (one.layout for one in self.passes().each)
        return PagePlan(last, self.chunks, [PagePlan(one, self.chunks) for one in before])

    def alignment(self, plan: PagePlan) -> tuple[int, int, int]:
        """What chunks of the largest result are best multiples of: what its windows make of a chunk of the file."""
        units = [1, 1, 1]
        root = max(plan.roots, key=lambda one: math.prod(one.sizes))
        for output, store in self.volumes.items():
            for role in (1, 2, 3) if store.chunks is not None else ():
                dim = plan.layout.role_dim(plan.layout.plan.feeds[output], role)
                if dim is not None and store.chunks is not None:
                    unit = store.chunks[dim] * root.sizes[role] / max(store.shape[dim], 1)
                    units[role - 1] = max(units[role - 1], round(unit))
        return units[0], units[1], units[2]

    def _spec(self, output: Output, store: Store) -> Spec:
        """A volume as the page sees it: of the type of its placeholder, else of its own."""
        declared = self.page.infer().spec(output)
        name = output.block.name
        if shapes_differ(store.shape, declared.shape):
            wanted = f"hold a volume of shape {show(list(declared.shape or ()))}"
            fault = Fault(
                "VG067", "volumes", name, wanted, show(list(store.shape)), "Give the layout that the page has."
            )
            raise InvalidArgumentError(fault)
        dtype = declared.dtype or dtype_of(store.dtype.newbyteorder("="))
        if dtype is None:
            raise InvalidArgumentError(Fault("VG011", "volumes", name, "hold numbers", str(store.dtype)))
        return Spec(dtype, store.shape)

    def written_type(self, output: Output, computed: DType | None) -> np.dtype[Any]:
        """The type of the file of a result."""
        assert computed is not None
        return np.dtype(self.types[output]) if output in self.types else np.dtype(numpy_type(computed))

    def described(self) -> dict[str, Any]:
        """What makes this job this job, as plain data."""
        return {
            "volumes": {
                output.path: [_full(store), store.axes, list(store.box)] for output, store in self.volumes.items()
            },
            "outputs": {output.path: path for output, path in self.outputs.items()},
            "fetches": [output.path for output in self.fetches],
            "feeds": {output.path: content_key(value).hex() for output, value in self.feeds.items()},
            "chunks": list(self.chunks),
            "device": self.device,
            "types": {output.path: kind for output, kind in self.types.items()},
            "roles": {output.path: list(some) for output, some in self.roles.items()},
            "lasting": self.lasting,
            "inner": list(self.inner),
            "files": self.page.files.as_data(),
        }

    def marks(self) -> dict[str, list[Any]]:
        """What tells that a volume is still the same: shape, type, and a checksum of times and samples of its files."""
        return {output.path: mark_of(store) for output, store in self.volumes.items() if output not in self.scratch}


def opened(volume: Any) -> Store:
    """A volume that is open, or the one in a file."""
    return volume if isinstance(volume, Store) else open_volume(volume)


def _path(which: Any) -> str:
    return which if isinstance(which, str) else str(which.path)


def _full(store: Store) -> str:
    """The name under which another process, in another folder, finds a volume."""
    return f"{store.path.resolve()}:{store.member}" if store.member else str(store.path.resolve())


def _own_volumes(page: Page, given: Container[Output]) -> dict[Output, Store]:
    """The files of Volume blocks that nobody gave anything else to; of a box of a file, the box is what counts."""
    found = {}
    for block in page.blocks if page.files else ():
        if block.op_name == "Volume" and block.output(0) not in given:
            store = open_in(page.files, block.attrs["path"], block.attrs.get("axes", ""))
            found[block.output(0)] = store.boxed(block.attrs.get("box") or ())
    return found


def mark_of(store: Store) -> list[Any]:
    """Shape and type, and what its files hold; of one at an address, voxels at the corners."""
    if isinstance(store.path, Address):
        ends = [sorted({0, max(0, size - 8)}) for size in store.shape[1:4]]
        boxes = [(slice(None), *(slice(at, at + 8) for at in one), slice(None)) for one in product(*ends)]
        return [list(store.shape), str(store.dtype), 0, digest(store.read(box) for box in boxes)]
    files = sorted(islice(_files(store.path), _MOST_LOOKED_AT))
    return [list(store.shape), str(store.dtype), *sampled([*files, *store.beside])]


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    for folder, _, names in os.walk(path):
        yield from (Path(folder, name) for name in names)


# The folder of a job


def save_job(job: Job, folder: Path, values: Mapping[int, Array]) -> None:
    """Write a job into its folder; `job.json` comes last, so that half a job is none."""
    folder.mkdir(parents=True, exist_ok=True)
    job.page.save(folder / "page.vox.json")
    _save_arrays(folder / "feeds", {output.path: value for output, value in job.feeds.items()})
    _save_arrays(folder / "values", {str(slot): value for slot, value in values.items()})
    head = {"run": job.run, "job": job.described(), "marks": job.marks(), "files": seals(folder, _SEALED)}
    head["seal"] = _seal(head)
    replace_file(folder / "job.json", json.dumps(head, sort_keys=True).encode())


def _seal(head: Mapping[str, Any]) -> str:
    return digest([json.dumps({key: one for key, one in head.items() if key != "seal"}, sort_keys=True).encode()])


def read_head(folder: Path) -> dict[str, Any] | None:
    """What `job.json` says, or None where no job was saved; what was changed since is refused."""
    file = folder / "job.json"
    if not file.exists():
        return None
    try:
        head: dict[str, Any] = json.loads(file.read_bytes())
        sound = head["seal"] == _seal(head)
    except (ValueError, KeyError, TypeError):
        sound = False
    if not sound:
        raise damaged(folder, "job.json, changed or cut off")
    check_seals(folder, head["files"])
    return head


def open_job(folder: Path) -> tuple[Job, dict[int, Array]]:
    """The job in a folder, and the values that are not cut."""
    head = read_head(folder)
    if head is None:
        raise InvalidArgumentError(Fault("VG051", "volumes", "folder", "hold a job", str(folder)))
    told = head["job"]
    page = Page.load(folder / "page.vox.json")
    page.files = Files.from_data(told["files"])
    feeds = {page.output(name): value for name, value in _load_arrays(folder / "feeds").items()}
    job = Job(
        page,
        {
            page.output(name): open_volume(path, axes=axes).boxed(box)
            for name, (path, axes, box) in told["volumes"].items()
        },
        feeds,
        {page.output(name): path for name, path in told["outputs"].items()},
        [page.output(name) for name in told["fetches"]],
        tuple(told["chunks"]),
        told["device"],
        types={page.output(name): kind for name, kind in told["types"].items()},
        roles={page.output(name): tuple(some) for name, some in told["roles"].items()},
        lasting=told["lasting"],
        inner=tuple(told["inner"]),
        run=head["run"],
    )
    return job, load_values(folder)


def load_values(folder: Path) -> dict[int, Array]:
    """The values that are not cut, by slot."""
    return {int(name): value for name, value in _load_arrays(folder / "values").items()}


def _save_arrays(stem: Path, arrays: Mapping[str, Array]) -> None:
    """Arrays as bytes, with their types by name: NumPy's own files lose those that it does not know."""
    heads = [{"name": name, "dtype": _dtype_name(one), "shape": list(one.shape)} for name, one in arrays.items()]
    stem.with_suffix(".json").write_text(json.dumps(heads))
    data = {str(at): np.frombuffer(one.tobytes(), np.uint8) for at, one in enumerate(arrays.values())}
    np.savez(stem.with_suffix(".npz"), **data)  # type: ignore[arg-type]


def save_sealed(stem: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays with checksums, which come last: half of it is nothing."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    _save_arrays(stem, arrays)
    told = seals(stem.parent, [f"{stem.name}.json", f"{stem.name}.npz"])
    replace_file(stem.with_suffix(".seal"), json.dumps(told).encode())


def load_sealed(stem: Path) -> dict[str, Array] | None:
    """What `save_sealed` wrote, or None; what was changed since is refused."""
    if not stem.with_suffix(".seal").exists():
        return None
    try:
        told = dict(json.loads(stem.with_suffix(".seal").read_bytes()))
    except (ValueError, TypeError):
        raise damaged(stem.parent, f"{stem.name}.seal, changed or cut off") from None
    check_seals(stem.parent, told)
    return _load_arrays(stem)


def _dtype_name(array: Array) -> str:
    dtype = dtype_of(array.dtype)
    assert dtype is not None, array.dtype
    return dtype.name


def _load_arrays(stem: Path) -> dict[str, Array]:
    found = {}
    with np.load(stem.with_suffix(".npz"), allow_pickle=False) as data:
        for at, head in enumerate(json.loads(stem.with_suffix(".json").read_text())):
            dtype = dtypes.named(head["dtype"])
            assert dtype is not None
            found[head["name"]] = data[str(at)].view(numpy_type(dtype)).reshape(head["shape"])
    return found
