# SPDX-License-Identifier: Apache-2.0
"""Records gradients of small networks from TensorFlow: `python tests/graph/record.py` writes recorded.npz beside it.

Values are float32 and far from ties, so that every semantics gives the same answer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("recorded.npz")
POOL: dict[str, Any] = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
OVERLAP: dict[str, Any] = {"ksize": [1, 3, 2, 2, 1], "strides": [1, 1, 2, 1, 1], "padding": "VALID"}
CONV: dict[str, Any] = {"strides": [1, 1, 1, 1, 1], "padding": "SAME"}


def inputs() -> dict[str, np.ndarray[Any, Any]]:
    """The values that the networks start from."""
    rng = np.random.default_rng(11)
    shapes = {"x": (2, 5, 6, 4, 2), "w1": (3, 2, 3, 2, 3), "w2": (2, 2, 2, 3, 2), "v": (2, 5, 6, 4, 2)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def main() -> None:
    """Run the networks in TensorFlow and save what they give."""
    import tensorflow as tf

    raw = tf.raw_ops
    given = {name: tf.constant(value) for name, value in inputs().items()}
    x, w1, w2, v = (given[name] for name in ("x", "w1", "w2", "v"))
    found: dict[str, Any] = {}

    def network(x: Any, w1: Any, w2: Any) -> Any:
        hidden = raw.MaxPool3D(input=raw.Conv3D(input=x, filter=w1, **CONV), **POOL)
        return tf.square(raw.Conv3D(input=hidden, filter=w2, strides=[1, 1, 1, 1, 1], padding="VALID"))

    with tf.GradientTape() as tape:
        tape.watch([x, w1, w2])
        y = network(x, w1, w2)
    found["chain_y"] = y
    found["chain_dx"], found["chain_dw1"], found["chain_dw2"] = tape.gradient(y, [x, w1, w2])

    def second(function: Any, name: str) -> None:
        """The product of the Hessian with v, and with respect to the filter too."""
        with tf.GradientTape() as outer:
            outer.watch([x, w1])
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = function(x)
            dx = inner.gradient(y, x)
            weighted = dx * v
        found[f"{name}_dx"] = dx
        found[f"{name}_ddx"], found[f"{name}_ddw"] = outer.gradient(weighted, [x, w1])

    second(lambda x: tf.square(raw.MaxPool3D(input=raw.Conv3D(input=x, filter=w1, **CONV), **OVERLAP)), "max")
    second(lambda x: tf.square(raw.AvgPool3D(input=raw.Conv3D(input=x, filter=w1, **CONV), **OVERLAP)), "avg")
    np.savez_compressed(FILE, **{name: value.numpy() for name, value in found.items()})


if __name__ == "__main__":
    main()
