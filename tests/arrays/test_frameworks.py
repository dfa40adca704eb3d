# SPDX-License-Identifier: Apache-2.0
"""torch and JAX arrays in, the same out. Runs where they are installed: python3 run test --parity."""

import numpy as np
import pytest

import voxgrad as vg

pytestmark = pytest.mark.parity

POOL = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}
X = np.arange(128, dtype=np.float32).reshape(1, 4, 4, 4, 2)
Y = vg.raw_ops.MaxPool3D(input=X, **POOL)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_torch(name: str) -> None:
    import torch

    x = torch.from_numpy(X).to(getattr(torch, name))
    y = vg.raw_ops.MaxPool3D(input=x, **POOL)
    assert isinstance(y, torch.Tensor)
    assert y.dtype == x.dtype
    assert np.array_equal(y.float().numpy(), Y)
    dx = vg.raw_ops.MaxPool3DGrad(orig_input=x, orig_output=y, grad=y, **POOL)
    assert dx.float().sum() == Y.sum()


def test_torch_memory_forms() -> None:
    import torch

    x = torch.from_numpy(X.copy())
    first = x.permute(0, 4, 1, 2, 3)  # channels_last_3d memory under an NCDHW shape
    y = vg.raw_ops.MaxPool3D(
        input=first, ksize=[1, 1, 2, 2, 2], strides=[1, 1, 2, 2, 2], padding="VALID", data_format="NCDHW"
    )
    assert np.array_equal(y.permute(0, 2, 3, 4, 1).numpy(), Y)
    flipped = vg.raw_ops.MaxPool3D(input=torch.flip(x, [1]), **POOL)
    assert np.array_equal(flipped.numpy(), Y[:, ::-1])


def test_torch_errors() -> None:
    import torch

    x = torch.from_numpy(X.copy()).requires_grad_()
    with pytest.raises(vg.InvalidArgumentError, match=r"VG031 MaxPool3D: input .* input.detach\(\)"):
        vg.raw_ops.MaxPool3D(input=x, **POOL)
    with torch.no_grad():
        assert np.array_equal(vg.raw_ops.MaxPool3D(input=x, **POOL).numpy(), Y)
    with pytest.raises(vg.UnimplementedError, match="VG032"):
        vg.raw_ops.MaxPool3D(input=torch.empty(1, 4, 4, 4, 2, device="meta"), **POOL)
    with pytest.raises(
        vg.InvalidArgumentError, match="VG030 MaxPool3DGrad: grad must be of the kind of orig_input, torch"
    ):
        vg.raw_ops.MaxPool3DGrad(orig_input=x.detach(), orig_output=torch.from_numpy(Y), grad=Y, **POOL)
    with pytest.raises(vg.VoxgradError, match="dense"):
        vg.raw_ops.MaxPool3D(input=x.detach().to_sparse(), **POOL)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_jax(name: str) -> None:
    import jax
    import jax.numpy as jnp

    x = jnp.asarray(X, dtype=name)
    y = vg.raw_ops.MaxPool3D(input=x, **POOL)
    assert isinstance(y, jax.Array)
    assert y.dtype == x.dtype
    assert np.array_equal(np.asarray(y, np.float32), Y)
    with pytest.raises(vg.UnimplementedError, match="traced"):
        jax.jit(lambda x: vg.raw_ops.MaxPool3D(input=x, **POOL))(x)
    with pytest.raises(vg.InvalidArgumentError, match="VG030"):
        vg.raw_ops.MaxPool3DGrad(orig_input=x, orig_output=y, grad=np.asarray(y), **POOL)
