# SPDX-License-Identifier: Apache-2.0
"""Numbers over the cycles of one run, as they are kept with it: bounded, and without a lost peak."""

from __future__ import annotations

import math
from collections.abc import Mapping

from voxgrad.graph.readings import Curve

MOST_CURVES = 32
MOST_POINTS = 1000
Curves = dict[str, Curve]


def kept(over: Mapping[str, Curve]) -> Curves:
    """What is kept of the curves of a run: those with more than a point, and no more points than a chart can show."""
    found = {path: thinned(curve) for path, curve in over.items() if len(curve) > 1}
    return dict(list(found.items())[:MOST_CURVES])


def thinned(curve: Curve, most: int = MOST_POINTS) -> Curve:
    """At most so many points: of each stretch the least and the greatest, or one that says that there is no number."""
    if len(curve) <= most:
        return list(curve)
    stretches = most // 2
    made: Curve = []
    for at in range(stretches):
        part = curve[at * len(curve) // stretches : (at + 1) * len(curve) // stretches]
        good = [point for point in part if math.isfinite(point[1])]
        ends = {min(good, key=lambda point: point[1]), max(good, key=lambda point: point[1])} if good else {part[0]}
        made += sorted(ends)
    return made
