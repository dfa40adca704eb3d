# SPDX-License-Identifier: Apache-2.0
"""Everything that is read from and written to text and files: text forms, pages, imports, exports, pictures."""
