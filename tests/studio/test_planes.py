# SPDX-License-Identifier: Apache-2.0
"""Planes, likenesses and places: what the studio sends of a volume is what the volume holds, and lies where it lies."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import voxgrad as vg
from tests.studio.serving import Server
from voxgrad.errors import InvalidArgumentError
from voxgrad.kernels.arraywise.files import Files
from voxgrad.studio import analyse
from voxgrad.studio.planes import KEPT_BYTES, NEAR, SLAB, Asked, Planes
from voxgrad.studio.tensors import TensorStore
from voxgrad.volumes.orientation import ends
from voxgrad.volumes.space import placed
from voxgrad.volumes.stores import save_volume

Array = np.ndarray[Any, Any]


def stored(folder: Path, array: Array) -> tuple[Planes, str]:
    tensors = TensorStore(folder)
    found = tensors.put(array)
    assert found is not None
    return Planes(tensors), found.hash


def plane_of(array: Array, axes: tuple[int, int], at: tuple[int, ...]) -> Array:
    cut = array[tuple(slice(None) if axis in axes else place for axis, place in enumerate(at))]
    return cut if axes[0] < axes[1] else cut.T


@pytest.mark.parametrize("shape", [(2, 5, 4, 7, 3), (1, 6, 33, 40, 1), (7, 9), (4, 1, 6)])
def test_every_plane_is_what_the_tensor_holds(tmp_path: Path, shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).standard_normal(shape)
    planes, name = stored(tmp_path, array)
    for axes in itertools.permutations(range(len(shape)), 2):
        for seed in range(3):
            at = tuple(int(one) for one in np.random.default_rng(seed).integers(0, shape))
            assert (planes.plane(name, Asked(axes, at)) == plane_of(array, axes, at)).all()
            tile = planes.plane(name, Asked(axes, at, 1, (1, 3), (0, 2)))
            assert (tile == plane_of(array, axes, at)[1:3, :2]).all()


def test_planes_across_the_memory_come_from_slabs_and_are_the_same(tmp_path: Path) -> None:
    # Large enough to be read in slabs, with an end that is no whole one.
    shape = (1, 150, 190, 2 * SLAB * 5 - 3, 1)
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    assert array.size > NEAR
    planes, name = stored(tmp_path, array)
    for width in (0, 1, SLAB - 1, SLAB, 100, shape[3] - 1, 0):
        at = (0, 0, 0, width, 0)
        assert (planes.plane(name, Asked((1, 2), at)) == array[0, :, :, width, 0]).all()
        assert (planes.plane(name, Asked((2, 1), at)) == array[0, :, :, width, 0].T).all()
        assert (planes.plane(name, Asked((1, 4), (0, 0, 7, width, 0)))[:, 0] == array[0, :, 7, width, 0]).all()
    assert 0 < sum(one.nbytes for one in planes._kept.values()) <= KEPT_BYTES


def test_a_step_gives_means_of_whole_and_cut_squares_and_hides_no_nan(tmp_path: Path) -> None:
    array = np.random.default_rng(1).standard_normal((1, 3, 10, 11, 1)).astype(np.float32)
    array[0, 1, 9, 10, 0] = np.nan
    planes, name = stored(tmp_path, array)
    found = planes.plane(name, Asked((2, 3), (0, 1, 0, 0, 0), 4))
    assert found.shape == (3, 3) and found.dtype == np.float32
    for row, column in itertools.product(range(3), range(3)):
        square = array[0, 1, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4, 0]
        # Sums of sixteen numbers near 1, in float32.
        assert found[row, column] == pytest.approx(square.astype(np.float64).mean(), abs=1e-6, nan_ok=True)
    assert np.isnan(found[2, 2]) and np.isfinite(found[0]).all()
    labels = np.arange(1 * 2 * 6 * 6, dtype=np.uint8).reshape(1, 2, 6, 6, 1)
    planes, name = stored(tmp_path, labels)
    # The mean of two labels is a third one.
    assert (planes.plane(name, Asked((2, 3), (0, 1, 0, 0, 0), 4)) == labels[0, 1, ::4, ::4, 0]).all()


def test_a_likeness_has_at_most_so_many_cells_a_side(tmp_path: Path) -> None:
    array = np.random.default_rng(2).standard_normal((2, 9, 20, 7, 2)).astype(np.float16)
    planes, name = stored(tmp_path, array)
    found = planes.likeness(name, (1, 2, 3), (1, 0, 0, 0, 1), 7)
    assert found.shape == (5, 7, 7) and found.dtype == np.float32
    brick = array[1, 8:9, 18:20, 6:7, 1].astype(np.float64)
    assert found[4, 6, 6] == pytest.approx(brick.mean(), rel=1e-5)
    assert planes.likeness(name, (1, 2, 3), (1, 0, 0, 0, 1), 7) is found


@pytest.mark.parametrize(
    "asked",
    [Asked((1, 1), (0,) * 5), Asked((1, 5), (0,) * 5), Asked((1, 2), (0,) * 4), Asked((1, 2), (0, 0, 0, 4, 0)),
     Asked((1, 2), (0,) * 5, 1, (3, 3))],
)  # fmt: skip
def test_what_is_not_there_is_an_error(tmp_path: Path, asked: Asked) -> None:
    planes, name = stored(tmp_path, np.zeros((1, 4, 4, 4, 1)))
    with pytest.raises(InvalidArgumentError, match="VG052"):
        planes.plane(name, asked)
    with pytest.raises(InvalidArgumentError, match="VG052"):
        planes.likeness(name, (2, 1, 3), (0,) * 5, 7)


def test_letters_of_directions() -> None:
    assert ends([-2.0, 0.0, 0.0]) == ("R", "L") and ends([0.0, 0.0, 0.5]) == ("I", "S")
    assert ends([0.3, 0.9, 0.05]) == ("PL", "AR")
    assert ends([0.0, 0.0, 0.0]) == ("", "")


def scanned(folder: Path) -> vg.Page:
    affine = np.array([[0, 0, 2.0, 5], [-3.0, 0, 0, 6], [0, 0.5, 0, -7], [0, 0, 0, 1]])
    save_volume(folder / "scan.nii", np.zeros((1, 6, 8, 10, 1), np.float32), like=placed(affine))
    np.save(folder / "plain.npy", np.zeros((6, 8, 10), np.float32))
    page = vg.Page("scanned")
    page.files = Files(folder)
    scan = vg.ops.Volume(page, path="scan.nii", name="scan")
    vg.ops.Volume(page, path="plain.npy", name="plain")
    vg.ops.Volume(page, path="gone.nii", name="gone")
    windows = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}
    vg.ops.AvgPool3D(page, scan, **windows, name="pool")
    vg.ops.Transpose(page, scan, [0, 4, 3, 2, 1], name="turned")
    vg.ops.Reshape(page, scan, [480], name="flat")
    vg.ops.Sum(page, scan, [1], name="summed")
    return page


def test_places_of_results_follow_the_ops(tmp_path: Path) -> None:
    pytest.importorskip("nibabel", reason="nibabel is an optional extra")
    places = analyse.places(scanned(tmp_path)).places
    scan = places["scan.output"]
    axes = [one for one in scan.axes if one is not None]
    assert [(one.spacing, one.low, one.high) for one in axes] == [(2, "L", "R"), (0.5, "I", "S"), (3, "A", "P")]
    assert scan.origin == [5, 6, -7] and scan.unit == "mm" and scan.axes[0] is None
    pool = places["pool.output"]
    # Windows of two lie between two voxels.
    assert pool.origin == [5 + 1, 6 - 1.5, -7 + 0.25]
    assert [one.spacing for one in pool.axes if one is not None] == [4, 1, 6]
    turned = places["turned.y"]
    assert [one and one.low for one in turned.axes] == [None, None, "A", "I", "L"] and turned.origin == scan.origin
    # A sum over depth leaves two axes, and no place for a point; nothing is known of what has no place at all.
    summed = places["summed.output"]
    assert [one and one.low for one in summed.axes] == [None, "I", "A", None] and summed.origin == []
    flat = places["flat.output"]
    assert not any(flat.axes) and "flat (Reshape)" in flat.lost
    assert not any(path.startswith(("plain", "gone")) for path in places)


def test_planes_and_places_over_http(server: Server) -> None:
    pytest.importorskip("nibabel", reason="nibabel is an optional extra")
    document = server.post("gallery/scan_edges/open")["document"]
    places = server.post("places", {"document": document})["places"]
    assert places["strongest.output"]["axes"][1]["spacing"] == 6 and places["scan.output"]["axes"][3]["low"] == "R"
    run = server.run(document, "scan")
    name = next(block["outputs"][0]["hash"] for block in run["blocks"] if block["block"] == "scan")
    whole = server.client.get(f"/api/tensors/{name}?slice=0,3,:,:,0").content
    plane = server.client.get(f"/api/tensors/{name}/plane?axes=2,3&at=0,3,0,0,0")
    assert plane.content == whole and "immutable" in plane.headers["cache-control"]
    tile = server.client.get(f"/api/tensors/{name}/plane?axes=2,3&at=0,3,0,0,0&rows=4,9&columns=0,6").content
    assert tile == server.client.get(f"/api/tensors/{name}?slice=0,3,4:9,0:6,0").content
    assert server.client.get(f"/api/tensors/{name}/likeness?axes=1,2,3&at=0,0,0,0,0&most=8").status_code == 200
    for bad in ("plane?axes=2,3&at=0,99,0,0,0", "plane?axes=2&at=0,0,0,0,0", "likeness?axes=1,2,3&at=0&most=8",
                "plane?axes=2,3&at=0,0,0,0,0&step=0"):  # fmt: skip
        assert server.client.get(f"/api/tensors/{name}/{bad}").status_code == 422
    index = {"document": document, "block": "strongest", "index": [0, 4, 5, 5, 0], "run": run["id"]}
    (window,) = server.post("trace", index)["windows"]
    assert window["winner"] and window["shares"] == []
    reached = server.post("reach", index | {"block": "edges", "index": window["winner"], "depth": 2})
    assert [one["output"] for one in reached][:1] == ["strongest.output"]
    assert reached[0]["lo"] == index["index"] and reached[0]["count"] == 1
    assert server.client.post("/api/reach", json=index | {"index": [0, 99, 0, 0, 0]}).status_code == 422
    slopes = server.post("trace", index | {"block": "slopes", "index": [0, 0, 5, 5, 1]})["windows"][0]
    assert len(slopes["shares"]) == slopes["count"] == 18 and slopes["shares"][0]["share"] == pytest.approx(-0.0625)
