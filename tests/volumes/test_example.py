# SPDX-License-Identifier: Apache-2.0
"""The example that fits a filter to a real scan does what it says."""

from pathlib import Path

import numpy as np
import pytest

from examples import fit_volume


def test_the_fit_takes_the_noise_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("nibabel", reason="the scan is a NIfTI file")
    page, files = fit_volume.make_page(), fit_volume.prepare(fit_volume.find_scan(), tmp_path)
    values, losses = fit_volume.fit(page, files, 4, 0)
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.2 * losses[0]
    clean, noisy = (np.load(files[name]) for name in ("clean", "noisy"))
    assert np.isclose(losses[0], np.square(noisy - clean).mean(), rtol=1e-5), "the filter that changes nothing"
    assert fit_volume.compare(page, files, values) < 1e-6
