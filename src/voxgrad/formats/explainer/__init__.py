# SPDX-License-Identifier: Apache-2.0
"""An op of the 3-D family on a small grid, forward, gradient and second order, for people who learn it.

`choices.py` says what can be chosen, `lesson.py` has voxgrad compute what is shown, `packing.py` makes it compact, and
`html.py` one file of it that needs no server. `view.js` shows it, there and in the studio, in the words of
`words.json`: it draws what it is told, and knows neither windows nor pools.
"""
