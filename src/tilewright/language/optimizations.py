"""`pl.optimizations`: the hints that scopes take."""

from tilewright.frontend.optimizations import *
