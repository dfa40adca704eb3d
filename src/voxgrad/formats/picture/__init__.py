# SPDX-License-Identifier: Apache-2.0
"""A page as a picture, complete and readable, with the page itself inside so that the picture can be opened again."""

from voxgrad.formats.picture.embed import embedded_page as embedded_page
from voxgrad.formats.picture.embed import with_page as with_page
from voxgrad.formats.picture.png import draw_png as draw_png
from voxgrad.formats.picture.svg import draw_svg as draw_svg
