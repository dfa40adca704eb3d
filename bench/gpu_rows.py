# SPDX-License-Identifier: Apache-2.0
"""What is timed on a GPU: layers of networks, in the types that they are used in."""

from __future__ import annotations

from collections.abc import Iterator

from bench.rows import CONV, POOL

CONVS = {  # batch, sizes, in, out, window, stride
    "unet128_32": (2, (128, 128, 128), 32, 32, 3, 1),
    "unet64_64": (2, (64, 64, 64), 64, 64, 3, 1),
    "unet32_128": (2, (32, 32, 32), 128, 128, 3, 1),
    "unet16_256": (2, (16, 16, 16), 256, 256, 3, 1),
    "unet8_320": (2, (8, 8, 8), 320, 320, 3, 1),
    "down128_32_64": (2, (128, 128, 128), 32, 64, 3, 2),
    "down32_128_256": (2, (32, 32, 32), 128, 256, 3, 2),
    "stem128_1_32": (2, (128, 128, 128), 1, 32, 3, 1),
    "c3d16x56_128": (8, (16, 56, 56), 128, 128, 3, 1),
    "r3d16x112_64": (4, (16, 112, 112), 64, 64, 3, 1),
    "i3d_stem7": (4, (16, 224, 224), 3, 64, 7, 2),
    "pw_1x1x1": (8, (16, 28, 28), 512, 512, 1, 1),
}
CONV_ROWS = {
    "bfloat16": list(CONVS),
    "float16": ["unet64_64", "down32_128_256"],
    "float32": ["down128_32_64", "i3d_stem7", "stem128_1_32", "unet128_32", "unet16_256", "unet64_64"],
    "float32_tf32": ["down128_32_64", "i3d_stem7", "stem128_1_32", "unet128_32", "unet16_256", "unet64_64"],
    "float64": ["down32_128_256", "unet64_64"],
}
POOLS = {  # batch, sizes, channels, window, stride
    "p2s2_128c32": (2, (128, 128, 128), 32, 2, 2),
    "p3s2_128c32": (2, (128, 128, 128), 32, 3, 2),
    "p3s1_64c64": (4, (64, 64, 64), 64, 3, 1),
    "p2s2_vid": (8, (16, 112, 112), 64, 2, 2),
    "p3s2_vid": (8, (16, 112, 112), 64, 3, 2),
}


def rows(only: list[str]) -> Iterator[tuple[str, str, str]]:
    """Op, type and shape of every row."""
    listed = [(op.name, dtype, shape) for op in POOL for dtype in ("bfloat16", "float32") for shape in POOLS]
    listed += [(op.name, dtype, shape) for dtype, shapes in CONV_ROWS.items() for shape in shapes for op in CONV]
    for row in listed:
        if all(any(part in row for part in word.split("|")) for word in only):
            yield row
