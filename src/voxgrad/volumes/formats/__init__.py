# SPDX-License-Identifier: Apache-2.0
"""One module for each file format: `open_store(path, member, axes, write)`, and `create(path, member, new)`.

Each is loaded when a file of its kind is opened, and loads its library then.
"""
