# SPDX-License-Identifier: Apache-2.0
"""Pages and projects of enuSpace-Tensorflow, read as what they meant there.

found = import_page("old.svg")
print(found.report)          # what was changed, and what could not be kept
found.page.save("new.vox.json")
"""

from voxgrad.formats.enuspace.convert import Imported as Imported
from voxgrad.formats.enuspace.library import library as library
from voxgrad.formats.enuspace.project import import_page as import_page
from voxgrad.formats.enuspace.project import import_project as import_project
from voxgrad.formats.report import Report as Report
