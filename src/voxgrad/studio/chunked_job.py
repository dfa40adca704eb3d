# SPDX-License-Identifier: Apache-2.0
"""The process of one chunked run: `python -m voxgrad.studio.chunked_job`. It may be killed at any moment.

The job comes as JSON on standard input; what went wrong goes as JSON to standard output.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from voxgrad.arrays.limits import limits
from voxgrad.errors import Fault, VoxgradError
from voxgrad.isolation import ROOM, confine
from voxgrad.kernels.arraywise.files import Files
from voxgrad.studio.documents import Documents
from voxgrad.studio.project import Project
from voxgrad.volumes.run import run_page


def main() -> None:
    """Read the job, run it, tell what went wrong."""
    # What libraries print must not get between.
    outgoing = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    job = json.load(sys.stdin)
    faults: list[Fault] = []
    try:
        confine(job["memory"] + ROOM)
        with limits(bytes=job["memory"]):
            page = Documents(Path(job["state"]) / Project.BLOBS, Files.from_data(job["files"])).read(job["document"])
            run_page(page, job["volumes"], job["outputs"], chunks=job["chunks"], workers=job["workers"])
    except VoxgradError as error:
        faults = list(error.faults)
    except MemoryError:
        faults = [Fault("VG020", "studio", "run", f"need at most {job['memory']:,} bytes", "more", "Cut finer chunks.")]
    except Exception as error:
        faults = [Fault("VG066", "studio", "run", "run", f"{type(error).__name__}: {str(error)[:200]}")]
    json.dump({"faults": [fault.as_dict() for fault in faults]}, outgoing)
    outgoing.flush()


if __name__ == "__main__":
    main()
