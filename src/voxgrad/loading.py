# SPDX-License-Identifier: Apache-2.0
"""Modules that are loaded in the middle of a call, when it first needs them, are loaded `with LOADING:`.

Python keeps a lock for every module that is being loaded, and renews none of them in a child: what another thread was
loading at the moment of a fork could never be loaded there. So a fork waits until nothing is being loaded here.
"""

from __future__ import annotations

import os
import threading

LOADING = threading.RLock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=LOADING.acquire, after_in_parent=LOADING.release, after_in_child=LOADING.release)
