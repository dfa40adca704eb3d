# SPDX-License-Identifier: Apache-2.0
"""Ops, pages and gradients on volumes that outgrow memory: the plan of windows, and runs from store to store.

vg.volumes.apply("MaxPool3D", {"input": "scan.zarr"}, "half.zarr", ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1],
                 padding="SAME")
vg.volumes.run_page("page.vox.json", {"x": "scan.zarr"}, {"y": "features.zarr"}, workers=4)
vg.volumes.predict(model, "scan.nii.gz", "labels.nii", memory="2 GiB")
loss, (dw,) = vg.volumes.value_and_gradients(page, "loss", ["w"], {"x": "scan.zarr"}, feeds={"w": w})
print(vg.volumes.cost(vg.volumes.plan_page(page, {"x": "scan.zarr"}, ["y"])))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voxgrad.volumes.conversion import convert as convert
    from voxgrad.volumes.costs import Advice as Advice
    from voxgrad.volumes.costs import Cost as Cost
    from voxgrad.volumes.costs import advise as advise
    from voxgrad.volumes.costs import cost as cost
    from voxgrad.volumes.executors import Workers as Workers
    from voxgrad.volumes.gradients import value_and_gradients as value_and_gradients
    from voxgrad.volumes.networks import predict as predict
    from voxgrad.volumes.page_plan import PagePlan as PagePlan
    from voxgrad.volumes.run import apply as apply
    from voxgrad.volumes.run import plan_op as plan_op
    from voxgrad.volumes.run import plan_page as plan_page
    from voxgrad.volumes.run import run_page as run_page

_FROM = {
    "Advice": "costs",
    "Cost": "costs",
    "PagePlan": "page_plan",
    "Workers": "executors",
    "advise": "costs",
    "apply": "run",
    "convert": "conversion",
    "cost": "costs",
    "plan_op": "run",
    "plan_page": "run",
    "predict": "networks",
    "run_page": "run",
    "value_and_gradients": "gradients",
}
"""What is loaded when it is first asked for."""


def __getattr__(name: str) -> Any:
    if name not in _FROM:
        raise AttributeError(f"module 'voxgrad.volumes' has no attribute {name!r}")
    return getattr(import_module(f"voxgrad.volumes.{_FROM[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_FROM})
