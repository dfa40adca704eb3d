# SPDX-License-Identifier: Apache-2.0
"""Makes the example pages: `python -m examples.make_pages` writes every *.vox.json in this folder anew.

Pages can be wired in the studio, or made by a program, as here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import voxgrad as vg
from voxgrad import ops
from voxgrad.formats.picture.layout import arrange
from voxgrad.graph.block import Output

Array = np.ndarray[Any, Any]

FOLDER = Path(__file__).parent
SEED_SHAPE = [2, 2, 2, 2, 2]
SEED_WINDOW = [1, 4, 3, 2, 1]


def numbers(*shape: int) -> Array:
    """1, 2, 3, ... in a shape, as the pictures of the original documentation have them."""
    return np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)


def note(page: vg.Page, text: str) -> None:
    """A text below the blocks."""
    page.notes.append({"text": text})


def finished(page: vg.Page, **outputs: Output) -> vg.Page:
    """The page with its outputs named and its blocks in columns."""
    page.expose(outputs)
    arrange(page)
    return page


def avg_pool3d_grad() -> vg.Page:
    """The gradient of an average pool, repaired."""
    page = vg.Page("AvgPool3DGrad")
    window = {"ksize": SEED_WINDOW, "strides": SEED_WINDOW, "padding": "SAME"}
    x = ops.Const(page, value=numbers(*SEED_SHAPE), name="volume")
    pool = ops.AvgPool3D(page, x, **window, name="pool")
    shape = ops.Shape(page, x, name="orig_input_shape")
    dx = ops.AvgPool3DGrad(page, shape, pool, **window, name="grad")
    note(page, "Each cell of the pool's output is spread evenly over the cells of its window that lie inside the data.")
    return finished(page, pool=pool, dx=dx)


def avg_pool3d_grad_mistake() -> vg.Page:
    """The same as the old documentation had it: accepted there, and meaningless."""
    page = vg.Page("AvgPool3DGrad, with a mistake")
    shape = ops.Const(page, value=np.array([2, 1, 1, 1, 2], np.int32), name="orig_input_shape")
    grad = ops.Const(page, value=numbers(*SEED_SHAPE), name="gradient")
    window = {"ksize": SEED_WINDOW, "strides": SEED_WINDOW, "padding": "SAME"}
    dx = ops.AvgPool3DGrad(page, shape, grad, **window, name="grad")
    note(page, "The gradient must have the shape of the pool's output, which follows from orig_input_shape.")
    return finished(page, dx=dx)


def max_pool3d_grad_grad() -> vg.Page:
    """The second-order gradient of a max pool, repaired."""
    page = vg.Page("MaxPool3DGradGrad")
    window = {"ksize": SEED_WINDOW, "strides": SEED_WINDOW, "padding": "SAME"}
    x = ops.Const(page, value=numbers(*SEED_SHAPE), name="orig_input")
    pool = ops.MaxPool3D(page, x, **window, name="orig_output")
    direction = ops.Const(page, value=numbers(*SEED_SHAPE) * 10, name="grad")
    second = ops.MaxPool3DGradGrad(page, x, pool, direction, **window, name="grad_grad")
    note(page, "Takes, for every window, the value of grad at the cell where orig_input has its maximum.")
    return finished(page, pool=pool, grad_grad=second)


def max_pool3d_grad_grad_mistake() -> vg.Page:
    """The same as the old documentation had it: grad is shaped like the output, and orig_output is not the maximum."""
    page = vg.Page("MaxPool3DGradGrad, with a mistake")
    values = numbers(*SEED_SHAPE)
    values[0, 0, 0, 1, 0] = 1
    x = ops.Const(page, value=values, name="orig_input")
    y = ops.Const(page, value=numbers(2, 1, 1, 1, 2), name="orig_output")
    grad = ops.Const(page, value=np.full((2, 1, 1, 1, 2), 2, np.float32), name="grad")
    window = {"ksize": SEED_WINDOW, "strides": SEED_WINDOW, "padding": "SAME"}
    second = ops.MaxPool3DGradGrad(page, x, y, grad, **window, name="grad_grad")
    note(page, "grad must have the shape of orig_input: a second-order gradient is fed with a direction of the input.")
    return finished(page, grad_grad=second)


def conv3d_backprop_input() -> vg.Page:
    """The gradient of a convolution with respect to its input."""
    page = vg.Page("Conv3DBackpropInputV2")
    window = {"strides": SEED_WINDOW, "padding": "SAME"}
    x = ops.Const(page, value=numbers(*SEED_SHAPE), name="volume")
    kernel = ops.Const(page, value=numbers(*SEED_SHAPE), name="filter")
    y = ops.Conv3D(page, x, kernel, **window, name="conv")
    sizes = ops.Const(page, value=np.array(SEED_SHAPE, np.int32), name="input_sizes")
    dx = ops.Conv3DBackpropInputV2(page, sizes, kernel, y, **window, name="grad")
    return finished(page, conv=y, dx=dx)


def conv3d_backprop_filter() -> vg.Page:
    """The gradient of a convolution with respect to its filter."""
    page = vg.Page("Conv3DBackpropFilterV2")
    window = {"strides": SEED_WINDOW, "padding": "SAME"}
    x = ops.Const(page, value=numbers(*SEED_SHAPE), name="volume")
    kernel = ops.Const(page, value=numbers(*SEED_SHAPE), name="filter")
    y = ops.Conv3D(page, x, kernel, **window, name="conv")
    sizes = ops.Const(page, value=np.array(SEED_SHAPE, np.int32), name="filter_sizes")
    dw = ops.Conv3DBackpropFilterV2(page, x, sizes, y, **window, name="grad")
    return finished(page, conv=y, dfilter=dw)


def conv3d_and_gradients() -> vg.Page:
    """A convolution and both of its gradients, made by symbolic differentiation."""
    page = vg.Page("Conv3D and its two gradients")
    x = ops.Const(page, value=numbers(1, 4, 4, 4, 1) / 64, name="volume")
    edge = np.zeros((3, 3, 3, 1, 2), np.float32)
    edge[0, :, :, 0, 0], edge[2, :, :, 0, 0] = -1 / 9, 1 / 9
    edge[:, :, :, 0, 1] = 1 / 27
    kernel = ops.Const(page, value=edge, name="filter")
    y = ops.Conv3D(page, x, kernel, strides=[1, 1, 1, 1, 1], padding="SAME", name="conv")
    loss = ops.L2Loss(page, y, name="loss")
    dx, dw = vg.gradients([loss], [x, kernel])
    assert dx is not None
    assert dw is not None
    note(page, "filter 0 finds edges in depth, filter 1 smooths; loss = sum(conv**2) / 2.")
    return finished(page, conv=y, loss=loss, dx=dx, dfilter=dw)


def unet_block() -> vg.Page:
    """One level of a 3-D U-Net: down, up, skip, and all gradients."""
    rng = np.random.default_rng(3)
    page = vg.Page("3-D U-Net block, forward and backward")

    def weights(*shape: int) -> Array:
        values: Array = rng.normal(size=shape) / np.sqrt(np.prod(shape[:-1]))
        return values.round(4).astype(np.float32)

    step, half = [1, 1, 1, 1, 1], [1, 2, 2, 2, 1]
    first = np.round(rng.normal(size=(1, 8, 8, 8, 1)), 3).astype(np.float32)
    x = ops.PlaceholderWithDefault(page, first, shape=["N", 8, 8, 8, 1], name="volume")
    w_in = ops.Const(page, value=weights(3, 3, 3, 1, 4), name="w_in")
    w_deep = ops.Const(page, value=weights(3, 3, 3, 4, 8), name="w_deep")
    w_up = ops.Const(page, value=weights(2, 2, 2, 4, 8), name="w_up")
    w_out = ops.Const(page, value=weights(3, 3, 3, 8, 1), name="w_out")
    skip = ops.Relu(page, ops.Conv3D(page, x, w_in, strides=step, padding="SAME", name="conv_in"), name="skip")
    down = ops.MaxPool3D(page, skip, ksize=half, strides=half, padding="VALID", name="down")
    deep = ops.Relu(page, ops.Conv3D(page, down, w_deep, strides=step, padding="SAME", name="conv_deep"), name="deep")
    shape = ops.Shape(page, skip, name="skip_shape")
    up = ops.Conv3DBackpropInputV2(page, shape, w_up, deep, strides=half, padding="VALID", name="up")
    joined = ops.ConcatV2(page, [skip, up], 4, name="joined")
    y = ops.Conv3D(page, joined, w_out, strides=step, padding="SAME", name="conv_out")
    loss = ops.L2Loss(page, y, name="loss")
    grads = vg.gradients([loss], [x, w_in, w_deep, w_up, w_out])
    names = ("d_volume", "d_w_in", "d_w_deep", "d_w_up", "d_w_out")
    made = {name: grad for name, grad in zip(names, grads, strict=True) if grad is not None}
    note(
        page,
        "Feed it other volumes: voxgrad run examples/unet_block.vox.json --feed volume=scan.npy, [N, 8, 8, 8, 1].",
    )
    return finished(page, output=y, loss=loss, **made)


def second_order() -> vg.Page:
    """A Hessian-vector product through a convolution and a max pool: the gradient of a gradient."""
    rng = np.random.default_rng(5)
    page = vg.Page("Second order: a Hessian-vector product")
    x = ops.Const(page, value=rng.normal(size=(1, 4, 4, 4, 1)).round(2).astype(np.float32), name="x")
    kernel = ops.Const(page, value=rng.normal(size=(2, 2, 2, 1, 2)).round(2).astype(np.float32), name="filter")
    direction = ops.Const(page, value=rng.normal(size=(1, 4, 4, 4, 1)).round(2).astype(np.float32), name="v")
    y = ops.Conv3D(page, x, kernel, strides=[1, 1, 1, 1, 1], padding="SAME", name="conv")
    pool = ops.MaxPool3D(page, y, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID", name="pool")
    loss = ops.L2Loss(page, ops.Square(page, pool, name="square"), name="loss")
    (dx,) = vg.gradients([loss], [x])
    assert dx is not None
    (hvp,) = vg.gradients([dx], [x], grad_ys=[direction])
    assert hvp is not None
    note(page, "loss = sum(pool**4) / 2; hvp = d(dx . v) / dx, without ever forming the Hessian.")
    return finished(page, loss=loss, dx=dx, hvp=hvp)


def _variable(page: vg.Page, name: str, value: Array, starts: list[Output]) -> Output:
    """A variable with its first value."""
    made: Output = ops.VariableV2(page, shape=list(value.shape), dtype=value.dtype.name, name=name)
    starts.append(ops.Assign(page, made, value, name=f"{name}/initialize"))
    return made


def _adam(page: vg.Page, scope: vg.Page, variable: Output, grad: Output, starts: list[Output]) -> None:
    """A step of Adam in a scope, with the moments and powers that it keeps; the page executes it in every run."""
    name = f"adam_{variable.block.name}"
    zeros = np.zeros(variable.block.attrs["shape"], np.float32)
    m, v = (_variable(page, f"{name}/{moment}", zeros, starts) for moment in ("m", "v"))
    powers = [_variable(page, f"{name}/{kind}", np.array(value, np.float32), starts) for kind, value in POWERS.items()]
    step = ops.ApplyAdam(scope, variable, m, v, *powers, 0.02, 0.9, 0.999, 1e-7, grad, name=f"{name}/step")
    page.execute([*page.targets, step.block])
    later = page.with_control_dependencies([step])
    for power, (kind, beta) in zip(powers, POWERS.items(), strict=True):
        after = ops.Assign(later, power, ops.Mul(later, power, beta), name=f"{name}/{kind}/next")
        page.execute([*page.targets, after.block])


POWERS = {"beta1_power": 0.9, "beta2_power": 0.999}


def train_classifier() -> vg.Page:
    """A small 3-D classifier that learns to tell balls from slabs, with variables and Adam."""
    volumes, labels = balls_and_slabs(24, np.random.default_rng(11))
    rng = np.random.default_rng(12)
    page = vg.Page("Train a 3-D classifier")
    starts: list[Output] = []
    x = ops.Const(page, value=volumes, name="volumes")
    t = ops.Const(page, value=labels, name="labels")
    kernel = (rng.normal(size=(3, 3, 3, 1, 4)) * 0.2).round(3).astype(np.float32)
    dense = (rng.normal(size=(4, 2)) * 0.5).round(3).astype(np.float32)
    w1, w2 = _variable(page, "filter", kernel, starts), _variable(page, "dense", dense, starts)
    y = ops.Conv3D(page, x, w1, strides=[1, 1, 1, 1, 1], padding="SAME", name="conv")
    y = ops.MaxPool3D(page, ops.Relu(page, y, name="relu"), ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1],
                      padding="VALID", name="pool")  # fmt: skip
    features = ops.Mean(page, y, [1, 2, 3], name="features")
    logits = ops.MatMul(page, features, w2, name="logits")
    each, _ = ops.SparseSoftmaxCrossEntropyWithLogits(page, logits, t, name="cross_entropy")
    loss = ops.Mean(page, each, [0], name="loss")
    guess = ops.ArgMax(page, logits, 1, output_type="int32", name="guess")
    right = ops.Cast(page, ops.Equal(page, guess, t, name="right"), DstT="float32", name="as_number")
    accuracy = ops.Mean(page, right, [0], name="accuracy")
    d1, d2 = vg.gradients([loss], [w1, w2])
    assert d1 is not None
    assert d2 is not None
    # No variable may change while a gradient still reads it.
    scope = page.with_control_dependencies([d1, d2])
    for variable, grad in ((w1, d1), (w2, d2)):
        _adam(page, scope, variable, grad, starts)
    page.start_with([one.block for one in starts])
    note(page, "Run it with --cycles 100: the loss falls and every volume is told apart.")
    return finished(page, loss=loss, accuracy=accuracy)


def balls_and_slabs(count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Small volumes with a ball or a slab at a random place, and which of the two it is."""
    volumes = rng.normal(scale=0.05, size=(count, 6, 6, 6, 1)).astype(np.float32)
    labels = np.arange(count, dtype=np.int32) % 2
    grid = np.stack(np.meshgrid(*[np.arange(6)] * 3, indexing="ij"), axis=-1)
    for index, label in enumerate(labels):
        centre = rng.integers(1, 5, size=3)
        ball = ((grid - centre) ** 2).sum(axis=-1) <= 2
        slab = grid[..., 0] == centre[0]
        volumes[index, ..., 0] += slab if label else ball
    return np.round(volumes, 3), labels


def gradient_descent() -> vg.Page:
    """The first tutorial of enuSpace: fit y = w x by hand-wired gradient descent."""
    page = vg.Page("Gradient descent")
    starts: list[Output] = []
    x = ops.Const(page, value=np.array([1.0, 2.0, 3.0]), name="x")
    t = ops.Const(page, value=np.array([1.0, 2.0, 3.0]), name="y")
    w = _variable(page, "w", np.array([100.0]), starts)
    error = ops.Sub(page, ops.Mul(page, x, w, name="hypothesis"), t, name="error")
    cost = ops.Mean(page, ops.Square(page, error, name="square"), [0], keep_dims=True, name="cost")
    slope = ops.Mean(page, ops.Mul(page, error, x, name="error_x"), [0], keep_dims=True, name="slope")
    descent = ops.Sub(page, w, ops.Mul(page, np.array(0.1), slope, name="step"), name="descent")
    update = ops.Assign(page, w, descent, name="update")
    page.start_with([one.block for one in starts])
    note(page, "w starts at 100 and goes to 1: run it with --cycles 20.")
    return finished(page, cost=cost, w=update)


def xor() -> vg.Page:
    """XOR after enuSpace's tutorial: a 2-2-1 net, its gradients symbolic instead of wired by hand."""
    page = vg.Page("XOR")
    starts: list[Output] = []
    x = ops.Const(page, value=np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32), name="x")
    t = ops.Const(page, value=np.array([[0], [1], [1], [0]], np.float32), name="y")
    first = {
        "w1": np.array([[4.2, -3.1], [3.4, -2.8]], np.float32),
        "b1": np.array([-1.2, 3.9], np.float32),
        "w2": np.array([[2.1], [1.7]], np.float32),
        "b2": np.array([-1.5], np.float32),
    }
    w = {name: _variable(page, name, value, starts) for name, value in first.items()}
    hidden = ops.BiasAdd(page, ops.MatMul(page, x, w["w1"], name="mix1"), w["b1"], name="layer1")
    hidden = ops.Sigmoid(page, hidden, name="hidden")
    out = ops.BiasAdd(page, ops.MatMul(page, hidden, w["w2"], name="mix2"), w["b2"], name="layer2")
    out = ops.Sigmoid(page, out, name="output")
    loss = ops.L2Loss(page, ops.Sub(page, out, t, name="error"), name="loss")
    grads = [grad for grad in vg.gradients([loss], list(w.values())) if grad is not None]
    # No variable may change while a gradient still reads it.
    scope = page.with_control_dependencies(grads)
    for (name, variable), grad in zip(w.items(), grads, strict=True):
        step = ops.ApplyGradientDescent(scope, variable, 2.0, grad, name=f"{name}/step")
        page.execute([*page.targets, step.block])
    page.start_with([one.block for one in starts])
    note(page, "Run it with --cycles 500: the output goes to 0, 1, 1, 0.")
    return finished(page, output=out, loss=loss)


def scan_edges() -> vg.Page:
    """A real head from a file: its edges, and which voxels a pool of them goes back to."""
    page = vg.Page("A scan from a file")
    page.allow_files(FOLDER / "files")
    scan = ops.Volume(page, path="head.nii.gz", name="scan")
    bright = ops.Mul(page, scan, np.float32(1 / 30000), name="bright")
    slopes = ops.Conv3D(page, bright, _slopes(), strides=[1] * 5, padding="SAME", name="slopes")
    edges = ops.Sqrt(page, ops.Sum(page, ops.Square(page, slopes, name="squares"), [4], keep_dims=True, name="sum"),
                     name="edges")  # fmt: skip
    window = {"ksize": [1, 3, 3, 3, 1], "strides": [1, 3, 3, 3, 1], "padding": "SAME"}
    strongest = ops.MaxPool3D(page, edges, **window, name="strongest")
    (origin,) = vg.gradients([strongest], [edges])
    note(page, "The head lies in files/head.nii.gz (33 x 41 x 25 voxels of 2 mm, from nibabel's test data, "
               "MIT licence). Its shape is known from the header. Put a scan of yours beside it and change the "
               "path.")  # fmt: skip
    return finished(page, edges=edges, strongest=strongest, origin=origin)


def _slopes() -> Array:
    """Sobel's filters along depth, height and width: one input channel, three outputs."""
    smooth, slope = np.array([1, 2, 1]) / 4, np.array([-1, 0, 1]) / 2
    parts = [np.einsum("i,j,k->ijk", *(slope if at == axis else smooth for at in range(3))) for axis in range(3)]
    return np.stack(parts, axis=-1)[:, :, :, None, :].astype(np.float32)


PAGES: dict[str, Callable[[], vg.Page]] = {
    function.__name__: function
    for function in (
        avg_pool3d_grad, avg_pool3d_grad_mistake, max_pool3d_grad_grad, max_pool3d_grad_grad_mistake,
        conv3d_backprop_input, conv3d_backprop_filter, conv3d_and_gradients, unet_block, second_order,
        train_classifier, gradient_descent, xor, scan_edges,
    )
}  # fmt: skip
"""Every example by the name of its file."""


def main() -> None:
    """Write all pages."""
    for name, make in PAGES.items():
        make().save(FOLDER / f"{name}.vox.json")
        print(f"{name}.vox.json")


if __name__ == "__main__":
    main()
