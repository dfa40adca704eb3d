# SPDX-License-Identifier: Apache-2.0
"""TensorFlow graphs (GraphDef, `*.pb`) as pages. The file is parsed; nothing of TensorFlow is loaded or executed."""

from voxgrad.formats.graphdef.convert import import_graph as import_graph
from voxgrad.formats.graphdef.export import export_graph as export_graph
