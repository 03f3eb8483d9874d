"""The natural kernels' work in numba: loops over rows, on as many threads as it is told."""

from __future__ import annotations

import math
from typing import Any

import natural_kernels as kernels
import numpy as np
from numba import njit, prange

fast: Any = njit(parallel=True, fastmath=True, cache=True)
SCALE = np.float32(kernels.SCALE)
ROOT, CUBE = np.float32(math.sqrt(2 / math.pi)), np.float32(0.044715)
ONE, HALF, EPS = np.float32(1), np.float32(0.5), np.float32(1e-5)


@fast
def add(x, y, out):
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] + y[i, j]


@fast
def softmax(x, out):
    for i in prange(x.shape[0]):
        best = x[i].max()
        total = np.float32(0)
        for j in range(x.shape[1]):
            e = math.exp(x[i, j] - best)
            out[i, j] = e
            total += e
        for j in range(x.shape[1]):
            out[i, j] /= total


@fast
def log_softmax(x, out):
    for i in prange(x.shape[0]):
        best = x[i].max()
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += math.exp(x[i, j] - best)
        less = best + np.float32(math.log(total))
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] - less


@fast
def rms_norm(x, w, out):
    for i in prange(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j] * x[i, j]
        by = ONE / np.float32(math.sqrt(total / np.float32(x.shape[1]) + EPS))
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * by * w[0, j]


@fast
def layer_norm(x, w, b, out):
    for i in prange(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        mean, squares = total / np.float32(x.shape[1]), np.float32(0)
        for j in range(x.shape[1]):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        by = ONE / np.float32(math.sqrt(squares / np.float32(x.shape[1]) + EPS))
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - mean) * by * w[0, j] + b[0, j]


@fast
def gelu(x, w, b, out):
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            t = x[i, j] * w[0, j] + b[0, j]
            out[i, j] = HALF * t * (ONE + math.tanh(ROOT * (t + CUBE * t * t * t)))


@fast
def quantize(x, out):
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = np.int8(min(max(np.rint(x[i, j] * SCALE), np.float32(-128)), np.float32(127)))


@fast
def argmax(x, out):
    for i in prange(x.shape[0]):
        out[i, 0] = np.argmax(x[i])


@fast
def cross_entropy(x, target, out):
    for i in prange(x.shape[0]):
        best = x[i].max()
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += math.exp(x[i, j] - best)
        out[i, 0] = np.float32(math.log(total)) + best - x[i, target[i, 0]]


@fast
def rope(x, cos, sin, out):
    half = x.shape[1] // 2
    for i in prange(x.shape[0]):
        for j in range(half):
            a, b = x[i, j], x[i, j + half]
            out[i, j] = a * cos[i, j] - b * sin[i, j]
            out[i, j + half] = b * cos[i, j] + a * sin[i, j]


@fast
def silu_mul(x, y, out):
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] / (ONE + math.exp(-x[i, j])) * y[i, j]


@fast
def dequantize(x, scale, out):
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = np.float32(x[i, j]) * scale[i, 0]


@fast
def column_sums(x, out):
    step = 256
    for block in prange((x.shape[1] + step - 1) // step):
        part = out[0, block * step : (block + 1) * step]
        part[:] = 0
        for i in range(x.shape[0]):
            part += x[i, block * step : (block + 1) * step]


@fast
def transpose(x, out):
    step = 32
    for block in prange((x.shape[0] + step - 1) // step):
        for first in range(0, x.shape[1], step):
            for j in range(first, min(first + step, x.shape[1])):
                for i in range(block * step, min((block + 1) * step, x.shape[0])):
                    out[j, i] = x[i, j]
