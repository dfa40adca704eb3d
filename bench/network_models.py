# SPDX-License-Identifier: Apache-2.0
"""The networks that people run over volumes, written out: nnU-Net's two, SegResNet, a ResNet on video, a video decoder.

Each is made with a few features for a CPU, or with those of its paper; the shapes of layers are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class Block(nn.Sequential):
    """A convolution, a norm of each image and an activation, as nnU-Net has them."""

    def __init__(self, channels: int, out: int, stride: int = 1):
        super().__init__(
            nn.Conv3d(channels, out, 3, stride, 1), nn.InstanceNorm3d(out, affine=True), nn.LeakyReLU(0.01)
        )


class Residual(nn.Module):
    """Two blocks, the second without its activation, added to what came in."""

    def __init__(self, channels: int, out: int, stride: int = 1):
        super().__init__()
        self.first = Block(channels, out, stride)
        self.second = nn.Sequential(nn.Conv3d(out, out, 3, 1, 1), nn.InstanceNorm3d(out, affine=True))
        changes: list[nn.Module] = [nn.AvgPool3d(stride)] if stride > 1 else []
        changes += [nn.Conv3d(channels, out, 1, bias=False)] if channels != out else []
        self.skip = nn.Sequential(*changes)

    def forward(self, x: Tensor) -> Tensor:
        """Of any size that strides divide."""
        return functional.leaky_relu(self.second(self.first(x)) + self.skip(x), 0.01)


class UNet(nn.Module):
    """An encoder whose stages halve the volume, and a decoder that joins each stage with what came before it."""

    def __init__(self, features: Sequence[int], stage: Callable[[int, int, int], nn.Module], classes: int = 3):
        super().__init__()
        wide = list(pairwise(features))
        self.down = nn.ModuleList([stage(1, features[0], 1), *(stage(few, many, 2) for few, many in wide)])
        self.up = nn.ModuleList(nn.ConvTranspose3d(many, few, 2, 2) for few, many in reversed(wide))
        self.join = nn.ModuleList(nn.Sequential(Block(2 * few, few), Block(few, few)) for few, _ in reversed(wide))
        self.head = nn.Conv3d(features[0], classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        """[N, 1, D, H, W] -> [N, classes, D, H, W]."""
        skips = []
        for stage in self.down:
            x = stage(x)
            skips.append(x)
        for up, join, skip in zip(self.up, self.join, reversed(skips[:-1]), strict=True):
            x = join(torch.cat([up(x), skip], 1))
        return self.head(x)


def plain_unet(features: Sequence[int]) -> nn.Module:
    """nnU-Net's plain one: two blocks a stage."""
    return UNet(features, lambda few, many, stride: nn.Sequential(Block(few, many, stride), Block(many, many)))


def residual_unet(features: Sequence[int]) -> nn.Module:
    """nnU-Net's ResEnc, with two residual blocks a stage."""
    return UNet(features, lambda few, many, stride: nn.Sequential(Residual(few, many, stride), Residual(many, many)))


def _normed(channels: int) -> tuple[nn.Module, ...]:
    return nn.GroupNorm(8, channels), nn.ReLU(), nn.Conv3d(channels, channels, 3, padding=1, bias=False)


class PreNorm(nn.Module):
    """SegResNet's block: norms of groups and activations before both convolutions."""

    def __init__(self, channels: int):
        super().__init__()
        self.body = nn.Sequential(*_normed(channels), *_normed(channels))

    def forward(self, x: Tensor) -> Tensor:
        """Of any size."""
        return x + self.body(x)


def _smaller(few: int, many: int) -> nn.Module:
    return nn.Sequential(nn.Conv3d(few, many, 3, 2, 1, bias=False), PreNorm(many), PreNorm(many))


def _larger(many: int, few: int) -> nn.Module:
    return nn.Sequential(nn.Conv3d(many, few, 1, bias=False), nn.Upsample(scale_factor=2, mode="trilinear"))


class SegResNet(nn.Module):
    """MONAI's: residual stages, and a decoder that resizes and adds."""

    def __init__(self, features: Sequence[int], classes: int = 3):
        super().__init__()
        wide = list(pairwise(features))
        self.stem = nn.Conv3d(1, features[0], 3, padding=1, bias=False)
        self.down = nn.ModuleList([PreNorm(features[0]), *(_smaller(few, many) for few, many in wide)])
        self.up = nn.ModuleList(_larger(many, few) for few, many in reversed(wide))
        self.join = nn.ModuleList(PreNorm(few) for few, _ in reversed(wide))
        self.head = nn.Sequential(nn.GroupNorm(8, features[0]), nn.ReLU(), nn.Conv3d(features[0], classes, 1))

    def forward(self, x: Tensor) -> Tensor:
        """[N, 1, D, H, W] -> [N, classes, D, H, W]."""
        x, skips = self.stem(x), []
        for stage in self.down:
            x = stage(x)
            skips.append(x)
        for up, join, skip in zip(self.up, self.join, reversed(skips[:-1]), strict=True):
            x = join(up(x) + skip)
        return self.head(x)


class VideoBlock(nn.Module):
    """Two convolutions with batch norms, added to what came in."""

    def __init__(self, channels: int, out: int, stride: int):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv3d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm3d(out), nn.ReLU(),
            nn.Conv3d(out, out, 3, 1, 1, bias=False), nn.BatchNorm3d(out),
        )  # fmt: skip
        changes = [nn.Conv3d(channels, out, 1, stride, bias=False), nn.BatchNorm3d(out)] if channels != out else []
        self.skip = nn.Sequential(*changes)

    def forward(self, x: Tensor) -> Tensor:
        """Of any size."""
        return functional.relu(self.body(x) + self.skip(x))


def video_resnet18(features: Sequence[int]) -> nn.Module:
    """A 3-D ResNet-18 on clips: [N, 3, T, H, W] -> a row of 400 classes."""
    stem = [nn.Conv3d(3, features[0], (3, 7, 7), (1, 2, 2), (1, 3, 3), bias=False), nn.BatchNorm3d(features[0])]
    stages: list[nn.Module] = [VideoBlock(features[0], features[0], 1), VideoBlock(features[0], features[0], 1)]
    for few, many in pairwise(features):
        stages += [VideoBlock(few, many, 2), VideoBlock(many, many, 1)]
    return nn.Sequential(*stem, nn.ReLU(), *stages, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(features[-1], 400))


class Causal(nn.Module):
    """A convolution that sees only frames before its own, as decoders of video have."""

    def __init__(self, channels: int, out: int):
        super().__init__()
        self.conv = nn.Conv3d(channels, out, 3, padding=(0, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """The frames before the first are zeros."""
        return self.conv(functional.pad(x, (0, 0, 0, 0, 2, 0)))


class DecoderBlock(nn.Module):
    """A residual block of a video decoder: norms of groups, SiLU, causal convolutions."""

    def __init__(self, channels: int, out: int):
        super().__init__()
        self.body = nn.Sequential(
            nn.GroupNorm(8, channels),
            nn.SiLU(),
            Causal(channels, out),
            nn.GroupNorm(8, out),
            nn.SiLU(),
            Causal(out, out),
        )
        self.skip = nn.Conv3d(channels, out, 1) if channels != out else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Of any size."""
        return self.body(x) + self.skip(x)


def video_decoder(features: Sequence[int]) -> nn.Module:
    """Stages of two blocks; between them frames are made twice as large."""
    wide = list(pairwise(features))
    stages: list[nn.Module] = [DecoderBlock(features[0], features[0])]
    for many, few in wide:
        stages += [nn.Upsample(scale_factor=(1, 2, 2)), DecoderBlock(many, few), DecoderBlock(few, few)]
    return nn.Sequential(*stages, nn.GroupNorm(8, features[-1]), nn.SiLU(), Causal(features[-1], 3))


@dataclass(frozen=True)
class Network:
    """A network, its features and the shape of its input: those of a CPU, and those of its paper for a GPU."""

    make: Callable[[Sequence[int]], Any]
    small: tuple[Sequence[int], tuple[int, ...]]
    large: tuple[Sequence[int], tuple[int, ...]]


NETWORKS = {
    "plain_unet": Network(
        plain_unet, ((16, 32, 64), (1, 1, 32, 32, 32)), ((32, 64, 128, 256, 320), (2, 1, 128, 128, 128))),
    "residual_unet": Network(
        residual_unet, ((16, 32, 64), (1, 1, 32, 32, 32)), ((32, 64, 128, 256, 320), (2, 1, 128, 128, 128))),
    "segresnet": Network(
        SegResNet, ((16, 32, 64), (1, 1, 32, 32, 32)), ((16, 32, 64, 128), (1, 1, 128, 128, 128))),
    "video_resnet18": Network(
        video_resnet18, ((32, 64, 128), (1, 3, 8, 64, 64)), ((64, 128, 256, 512), (8, 3, 16, 112, 112))),
    "video_decoder": Network(
        video_decoder, ((64, 32), (1, 64, 4, 24, 24)), ((384, 192, 96), (1, 384, 16, 60, 104))),
}  # fmt: skip
