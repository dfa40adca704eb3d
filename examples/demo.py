# SPDX-License-Identifier: Apache-2.0
"""A tour: the four operations that began it all, on the numbers 1..32 and on a real brain scan.

python3 run demo
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import voxgrad as vg
from voxgrad.catalog.model import Attr
from voxgrad.catalog.registry import OPS
from voxgrad.kernels import cpu

Array = np.ndarray[Any, Any]
Calls = Iterator[tuple[str, dict[str, Any]]]

WINDOW = [1, 4, 3, 2, 1]
SHADES = " .:-=+*#%@"


def small_calls() -> Calls:
    """The four seed operations on [2, 2, 2, 2, 2] tensors holding 1..32."""
    x = np.arange(1, 33, dtype=np.float32).reshape(2, 2, 2, 2, 2)
    pool = {"ksize": WINDOW, "strides": WINDOW, "padding": "SAME"}
    conv = {"strides": WINDOW, "padding": "SAME"}
    pooled = vg.raw_ops.MaxPool3D(input=x, **pool)
    convolved = vg.raw_ops.Conv3D(input=x, filter=x, **conv)
    yield "MaxPool3DGradGrad", {"orig_input": x, "orig_output": pooled, "grad": x, **pool}
    yield "AvgPool3DGrad", {"orig_input_shape": [2, 2, 2, 2, 2], "grad": pooled, **pool}
    yield "Conv3DBackpropInputV2", {"input_sizes": [2, 2, 2, 2, 2], "filter": x, "out_backprop": convolved, **conv}
    yield "Conv3DBackpropFilterV2", {"input": x, "filter_sizes": [2, 2, 2, 2, 2], "out_backprop": convolved, **conv}


def scan_calls(scan: Array) -> Calls:
    """The same four on a scan: what a layer of a network does to it, backwards."""
    random = np.random.default_rng(0)
    w = (random.standard_normal((3, 3, 3, scan.shape[-1], 8)) / 9).astype(np.float32)
    pool = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
    conv = {"strides": [1, 1, 1, 1, 1], "padding": "SAME"}
    pooled = vg.raw_ops.MaxPool3D(input=scan, **pool)
    convolved = vg.raw_ops.Conv3D(input=scan, filter=w, **conv)
    yield "MaxPool3DGradGrad", {"orig_input": scan, "orig_output": pooled, "grad": scan, **pool}
    yield "AvgPool3DGrad", {"orig_input_shape": list(scan.shape), "grad": pooled, **pool}
    yield "Conv3DBackpropInputV2", {"input_sizes": list(scan.shape), "filter": w, "out_backprop": convolved, **conv}
    yield "Conv3DBackpropFilterV2", {"input": scan, "filter_sizes": list(w.shape), "out_backprop": convolved, **conv}


def load_scan() -> Array:
    """The EPI brain scan that ships with nibabel, as [1, D, H, W, C] float32 with values around 0..1."""
    import nibabel

    path = Path(nibabel.__file__).parent / "tests" / "data" / "example4d.nii.gz"
    image = nibabel.load(path)
    # NIfTI stores x, y, z, time; a volume here is depth (z), height (y), width (x), and time as channels.
    volume = np.transpose(np.asarray(image.dataobj, dtype=np.float32), (2, 1, 0, 3))[None]
    return np.ascontiguousarray(volume / volume.max())


def describe(value: Any) -> str:
    """A value in one line."""
    if not isinstance(value, np.ndarray):
        return str(value)
    shape = "x".join(map(str, value.shape))
    if value.size <= 8:
        return f"{value.dtype} {shape}: {' '.join(f'{number:g}' for number in value.ravel())}"
    ends = " ".join(f"{number:g}" for number in value.ravel()[:4]) + " ... " + f"{value.ravel()[-1]:g}"
    return f"{value.dtype} {shape}: {ends}  (min {value.min():.4g}, mean {value.mean():.4g}, max {value.max():.4g})"


def show(name: str, call: dict[str, Any]) -> Array:
    """Run a call and print it as a table."""
    op = OPS[name]
    start = time.perf_counter()
    result: Array = getattr(vg.raw_ops, name)(**call)
    seconds = time.perf_counter() - start
    print(f"\n{name}  -  {op.summary}")
    rows = [(item.name, describe(call[item.name])) for item in op.inputs]
    rows += [
        (
            "",
            "  ".join(
                f"{item.name}={call[item.name]}" for item in op.attrs if isinstance(item, Attr) and item.name in call
            ),
        )
    ]
    rows += [("output", f"{describe(result)}   [{seconds * 1e3:.2f} ms]")]
    for label, text in rows:
        print(f"  {label:>18}  {text}")
    return result


def picture(plane: Array, width: int = 64) -> str:
    """A plane as characters, two columns to a row so that it keeps its form."""
    rows = plane[:: max(1, 2 * plane.shape[1] // width), :: max(1, plane.shape[1] // width)]
    low, high = float(rows.min()), float(rows.max())
    levels = ((rows - low) / ((high - low) or 1) * (len(SHADES) - 1)).astype(int)
    return "\n".join("    " + "".join(SHADES[level] for level in row) for row in levels[::-1])


def show_pages() -> None:
    """Run the example pages as `voxgrad run` does, and say what is wrong with those that have a mistake."""
    from voxgrad.graph.page import Page
    from voxgrad.graph.session import ClientSession

    print("\n== Pages: blocks wired together (voxgrad run examples/NAME.vox.json) ==")
    for path in sorted(Path(__file__).parent.glob("*.vox.json")):
        page = Page.load(path)
        print(f"\n{path.name}  -  {page.name}, {len(page)} blocks")
        for problem in page.problems():
            print(f"  {problem}" + (f"  Fix: {problem.fix.title}." if problem.fix else ""))
        if page.problems():
            continue
        cycles = 50 if page.initializers else 1
        session = ClientSession(page)
        values = session.loop(cycles, list(page.outputs.values()), targets=page.targets)
        for name, value in zip(page.outputs, values, strict=True):
            print(f"  {name:>18}  {describe(value)}" + (f"   [after {cycles} cycles]" if cycles > 1 else ""))


def main() -> None:
    """Run the tour."""
    print(f"voxgrad {vg.__version__}, kernels: {cpu.isa_name()}, {vg.get_num_threads()} threads")
    print("\n== The numbers 1..32, as in the enuSpace pages ==")
    for name, call in small_calls():
        show(name, call)
    scan = load_scan()
    print("\n== A real scan (EPI, nibabel's example4d) ==")
    for name, call in scan_calls(scan):
        result = show(name, call)
        if name == "AvgPool3DGrad":
            print("\n  a slice of it: the brightest voxel of every 2x2x2 window, spread over the window\n")
            print(picture(result[0, scan.shape[1] // 2, :, :, 0]))
    show_pages()
    print("\nEvery op: .venv/bin/voxgrad ops     One of them: .venv/bin/voxgrad ops MaxPool3DGradGrad")


if __name__ == "__main__":
    main()
