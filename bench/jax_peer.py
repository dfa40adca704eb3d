# SPDX-License-Identifier: Apache-2.0
"""The rows in JAX, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bench.rows import Row

jax.config.update("jax_enable_x64", True)


def jax_call(row: Row, call: dict[str, Any]) -> Callable[[], Any]:
    """The row as a jitted function of arrays that are there already."""
    arrays = [jnp.asarray(value) for value in call.values() if isinstance(value, np.ndarray)]
    compiled = jax.jit(_function(row))
    return lambda: compiled(*arrays)


def _conv(row: Row) -> Callable[[Any, Any], Any]:
    return lambda x, w: jax.lax.conv_general_dilated(
        x, w, row.stride, "SAME", dimension_numbers=("NDHWC", "DHWIO", "NDHWC")
    )


def _function(row: Row) -> Callable[..., Any]:
    data = (row.batch, *row.spatial, row.channels)
    taps = (*row.window, row.channels, row.out_channels)
    window, stride = (1, *row.window, 1), (1, *row.stride, 1)

    def maximum(x: Any) -> Any:
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, stride, "SAME")

    def mean(x: Any) -> Any:
        total = jax.lax.reduce_window(x, np.zeros((), x.dtype), jax.lax.add, window, stride, "SAME")
        count = jax.lax.reduce_window(
            jnp.ones((*data[:4], 1), x.dtype), np.zeros((), x.dtype), jax.lax.add, window, stride, "SAME"
        )
        return total / count

    functions: dict[str, Callable[..., Any]] = {
        "Conv3D": _conv(row),
        "Conv3DBackpropInputV2": lambda w, dy: jax.vjp(lambda x: _conv(row)(x, w), jnp.zeros(data, dy.dtype))[1](dy)[0],
        "Conv3DBackpropFilterV2": lambda x, dy: jax.vjp(lambda w: _conv(row)(x, w), jnp.zeros(taps, dy.dtype))[1](dy)[
            0
        ],
        "AvgPool3D": mean,
        "AvgPool3DGrad": lambda dy: jax.vjp(mean, jnp.zeros(data, dy.dtype))[1](dy)[0],
        "MaxPool3D": maximum,
        "MaxPool3DGrad": lambda x, y, dy: jax.vjp(maximum, x)[1](dy)[0],
        "MaxPool3DGradGrad": lambda x, y, g: jax.jvp(maximum, (x,), (g,))[1],
    }
    return functions[row.op]
