"""A short loop in the place of the one that finds a noisy core: labs of tests share cores, so that it decides nothing.

A notebook's kernel runs this file first where PYTHONSTARTUP names it.
"""

from labbook.study import noise

noise.LOOPS = 1
