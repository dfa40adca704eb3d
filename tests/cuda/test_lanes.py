# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: N803 - Triton: capitals are compile-time constants
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False
# mypy: disallow-untyped-calls=False, disallow-untyped-decorators=False
"""What lanes prefetch into the cache: results do not show it, so it is looked at by itself."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the GPU kernels need torch")
pytest.importorskip("triton", reason="the GPU kernels need Triton")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402

from voxgrad.kernels.cuda.pool_ahead import own_lines, tile_pieces  # noqa: E402
from voxgrad.kernels.cuda.pool_common import Pool, divisor, quotient  # noqa: E402
from voxgrad.kernels.cuda.pool_lanes import choose_lanes, laid_out, with_prefetch  # noqa: E402

# torch and Triton are installed by `python3 run test --parity`.
pytestmark = pytest.mark.parity

HALF, SINGLE, DOUBLE = torch.bfloat16, torch.float32, torch.float64


def pool_of(images: int, channels: int, sizes: tuple[int, int, int]) -> Pool:
    """Windows of 3 with stride 1 and SAME padding."""
    return Pool(images, channels, sizes, sizes, (3, 3, 3), (1, 1, 1), (1, 1, 1))


@triton.jit
def write_lines(source, out, H, W, C, units, tiles, tiles_c, chunks, R: tl.constexpr, X: tl.constexpr, L: tl.constexpr,
                ACROSS: tl.constexpr, LINE: tl.constexpr):  # fmt: skip
    """The lines that a program names, program after program."""
    lines = own_lines(source, units, tiles, tiles_c, chunks, H, W, C, R, 1, X, L, ACROSS, LINE)
    N: tl.constexpr = lines.shape[0]
    M: tl.constexpr = lines.shape[1]
    at = (tl.program_id(0) * N + tl.arange(0, N)[:, None]) * M + tl.arange(0, M)[None, :]
    tl.store(out + at, lines)


LAID = [
    # type, channels, height and width, rows of a lane, lanes side by side
    (HALF, 64, (8, 16), 2, 8),
    (HALF, 256, (4, 8), 1, 0),
    (SINGLE, 64, (8, 16), 4, 4),
    (HALF, 1, (32, 64), 2, 0),
    (HALF, 1, (16, 256), 4, 0),
    (SINGLE, 1, (32, 64), 1, 0),
]


@pytest.mark.parametrize(("dtype", "channels", "plane", "rows", "across"), LAID, ids=str)
def test_every_line_of_a_plane_is_named_once(
    dtype: Any, channels: int, plane: tuple[int, int], rows: int, across: int, device: str
) -> None:
    """All programs of a plane together name every 128 bytes of it, and none twice."""
    pool, size = pool_of(1, channels, (2, *plane)), dtype.itemsize
    lanes = choose_lanes(pool, size, rows, 2, across=across, whole=True)
    grid, ints, constants = laid_out(pool, lanes, *pool.sizes)
    source = torch.zeros((*plane, channels), dtype=dtype, device=device)
    out = torch.full((source.numel(),), -1, dtype=torch.int32, device=device)
    wanted = {name: constants[name] for name in ("R", "X", "L", "ACROSS", "LINE", "num_warps")}
    write_lines[grid](source, out, *plane, channels, *ints[-4:], **wanted)
    named = out[out >= 0].cpu() // 128
    assert sorted(named.tolist()) == list(range(source.numel() * size // 128))


@triton.jit
def write_pieces(out, row, height, column, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr, X: tl.constexpr,
                 SIZE: tl.constexpr, T: tl.constexpr):  # fmt: skip
    """The pieces of a tile of a plane of height x width places."""
    pieces = tile_pieces(row, ROWS, height, width * X, column, COLUMNS, width, X, X, SIZE, T)
    for b in tl.static_range(len(pieces)):
        tl.store(out + b * T + tl.arange(0, T), pieces[b])


@pytest.mark.parametrize(("row", "column"), [(2, 3), (-1, -1), (7, 6)])
def test_every_piece_of_a_tile_is_touched(row: int, column: int, device: str) -> None:
    """Both halves of 3 x 6 places of 64 bytes, or of the nearest ones inside, in a plane of 9 x 10."""
    out = torch.full((64,), -1, dtype=torch.int64, device=device)
    write_pieces[(1,)](out, row, 9, column, 10, ROWS=3, COLUMNS=6, X=32, SIZE=2, T=32)
    rows = {min(max(row + n, 0), 8) for n in range(3)}
    columns = {min(max(column + n, 0), 9) for n in range(6)}
    wanted = {(h * 10 + w) * 64 + half for h in rows for w in columns for half in (0, 32)}
    assert set(out.tolist()) == wanted


def test_only_lanes_with_lines_of_their_own_prefetch() -> None:
    """Neither parts of a line, nor short rows, nor float64, for which nothing was measured."""
    cases = [
        (64, 64, HALF, True), (32, 64, HALF, True), (48, 64, HALF, False), (96, 64, HALF, False), (16, 64, HALF, False),
        (48, 64, SINGLE, False), (64, 64, DOUBLE, False), (1, 64, HALF, True), (1, 32, HALF, False),
    ]  # fmt: skip
    for channels, width, dtype, prefetched in cases:
        pool = pool_of(1, channels, (8, 8, width))
        lanes = with_prefetch(pool, choose_lanes(pool, dtype.itemsize, 1, 8), dtype.itemsize, 2, registers=128)
        assert (lanes.ahead, lanes.registers) == ((2, 128) if prefetched else (0, 0)), (channels, width, dtype)


@triton.jit
def write_quotients(numbers, out, factor, shift, COUNT: tl.constexpr):
    """Every number, divided."""
    at = tl.arange(0, COUNT)
    tl.store(out + at, quotient(tl.load(numbers + at), factor, shift))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 14, 112, 641, 65535, 2**30, 2**30 + 1, 2**31 - 1])
def test_products_divide(n: int, device: str) -> None:
    """Exactly, up to the largest number; and by factors of one width, so that one kernel serves all."""
    factor, shift = divisor(n)
    assert 2**31 <= factor < 2**32
    most = 2**31 - 1
    cases = [0, 1, 2, n - 1, n, most // n * n - 1, most // n * n, most]
    numbers = torch.tensor(cases, dtype=torch.int32, device=device)
    out = torch.empty_like(numbers)
    write_quotients[(1,)](numbers, out, factor, shift, COUNT=len(cases))
    assert out.tolist() == [number // n for number in cases]
