# SPDX-License-Identifier: Apache-2.0
"""The studio: build, run and look at pages in the browser. `voxgrad studio` starts it; needs `voxgrad[studio]`."""
