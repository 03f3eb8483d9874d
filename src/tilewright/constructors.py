"""Constructors of records, written out by how many fields there are: a copy takes a tenth of the time to compile one.

Whoever copies one says what its fields are called; `finish` is what a record does once it has kept what it was given.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUndefinedVariable=false, reportUnknownVariableType=false
# ruff: noqa: E702, F821
# fmt: off

from typing import Any


def _plain_0(self):
    pass
def _plain_1(self, a):
    self.a = a
def _plain_2(self, a, b):
    self.a = a; self.b = b
def _plain_3(self, a, b, c):
    self.a = a; self.b = b; self.c = c
def _plain_4(self, a, b, c, d):
    self.a = a; self.b = b; self.c = c; self.d = d
def _plain_5(self, a, b, c, d, e):
    self.a = a; self.b = b; self.c = c; self.d = d; self.e = e
def _plain_6(self, a, b, c, d, e, f):
    self.a = a; self.b = b; self.c = c; self.d = d; self.e = e; self.f = f
def _plain_7(self, a, b, c, d, e, f, g):
    self.a = a; self.b = b; self.c = c; self.d = d; self.e = e; self.f = f; self.g = g
def _plain_8(self, a, b, c, d, e, f, g, h):
    self.a = a; self.b = b; self.c = c; self.d = d; self.e = e; self.f = f; self.g = g; self.h = h
def _plain_9(self, a, b, c, d, e, f, g, h, i):
    self.a = a; self.b = b; self.c = c; self.d = d; self.e = e; self.f = f; self.g = g; self.h = h
    self.i = i
def _plain_10(self, a, b, c, d, e, f, g, h, i, j):
    self.a = a; self.b = b; self.c = c; self.d = d; self.e = e; self.f = f; self.g = g; self.h = h
    self.i = i; self.j = j
def _plain_11(self, a, b, c, d, e, f, g, h, i, j, k):
    self.a = a; self.b = b; self.c = c; self.d = d; self.e = e; self.f = f; self.g = g; self.h = h
    self.i = i; self.j = j; self.k = k
def _plain_12(self, a, b, c, d, e, f, g, h, i, j, k, m):
    self.a = a; self.b = b; self.c = c; self.d = d; self.e = e; self.f = f; self.g = g; self.h = h
    self.i = i; self.j = j; self.k = k; self.m = m
def _plain_13(self, a, b, c, d, e, f, g, h, i, j, k, m, n):
    self.a = a; self.b = b; self.c = c; self.d = d; self.e = e; self.f = f; self.g = g; self.h = h
    self.i = i; self.j = j; self.k = k; self.m = m; self.n = n


def _finished_0(self):
    finish(self)
def _finished_1(self, a):
    self.a = a; finish(self)
def _finished_2(self, a, b):
    self.a = a; self.b = b; finish(self)
def _finished_3(self, a, b, c):
    self.a = a; self.b = b; self.c = c; finish(self)
def _finished_4(self, a, b, c, d):
    self.a = a; self.b = b; self.c = c; self.d = d; finish(self)
def _finished_5(self, a, b, c, d, e):
    self.a = a; self.b = b; self.c = c; self.d = d; self.e = e; finish(self)
def _finished_6(self, a, b, c, d, e, f):
    self.a = a; self.b = b; self.c = c; self.d = d; self.e = e; self.f = f; finish(self)
def _finished_7(self, a, b, c, d, e, f, g):
    self.a = a; self.b = b; self.c = c; self.d = d; self.e = e; self.f = f; self.g = g; finish(self)
def _finished_8(self, a, b, c, d, e, f, g, h):
    self.a = a; self.b = b; self.c = c; self.d = d; self.e = e; self.f = f; self.g = g; self.h = h
    finish(self)
def _finished_9(self, a, b, c, d, e, f, g, h, i):
    self.a = a; self.b = b; self.c = c; self.d = d; self.e = e; self.f = f; self.g = g; self.h = h
    self.i = i; finish(self)
def _finished_10(self, a, b, c, d, e, f, g, h, i, j):
    self.a = a; self.b = b; self.c = c; self.d = d; self.e = e; self.f = f; self.g = g; self.h = h
    self.i = i; self.j = j; finish(self)
def _finished_11(self, a, b, c, d, e, f, g, h, i, j, k):
    self.a = a; self.b = b; self.c = c; self.d = d; self.e = e; self.f = f; self.g = g; self.h = h
    self.i = i; self.j = j; self.k = k; finish(self)
def _finished_12(self, a, b, c, d, e, f, g, h, i, j, k, m):
    self.a = a; self.b = b; self.c = c; self.d = d; self.e = e; self.f = f; self.g = g; self.h = h
    self.i = i; self.j = j; self.k = k; self.m = m; finish(self)
def _finished_13(self, a, b, c, d, e, f, g, h, i, j, k, m, n):
    self.a = a; self.b = b; self.c = c; self.d = d; self.e = e; self.f = f; self.g = g; self.h = h
    self.i = i; self.j = j; self.k = k; self.m = m; self.n = n; finish(self)


_plain: tuple[Any, ...] = (
    _plain_0, _plain_1, _plain_2, _plain_3, _plain_4, _plain_5, _plain_6,
    _plain_7, _plain_8, _plain_9, _plain_10, _plain_11, _plain_12, _plain_13,
)
_finished: tuple[Any, ...] = (
    _finished_0, _finished_1, _finished_2, _finished_3, _finished_4, _finished_5, _finished_6,
    _finished_7, _finished_8, _finished_9, _finished_10, _finished_11, _finished_12, _finished_13,
)
PLAIN, FINISHED = (tuple(each.__code__ for each in written) for written in (_plain, _finished))
"""The code of those that only keep what they are given, and of those that finish, by how many fields they have."""
