"""Many small support vector machines: one for each row of a test set, trained on its neighbours (SVM-KNN).

    minimise   1/2 a'Qa - sum a,   0 <= a <= C,   y'a = 0,   Q_ij = y_i y_j K_ij

by exchanges of two weights, those that bring most to second order (Fan, Chen & Lin 2005), as LIBSVM does, until the
conditions of the optimum hold to 0.001. Several classes: one against one, most votes, of equal ones the first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parallel_mix.kernels.compiled import compiled
from parallel_mix.kernels.density.kernel_sums import Array

Ints = np.ndarray
TOLERANCE = 1e-3
"""How far the conditions of the optimum may be from holding, as LIBSVM has it."""
TINY = 1e-12
"""The curvature that takes the place of one that is not positive, as LIBSVM has it."""
STEPS_A_POINT = 200
"""The most exchanges for each point: a large C on similarities of large size would take for ever."""


@compiled
def binary_machine(K: Array, y: Array, C: float, a: Array, G: Array) -> Any:
    """Train one machine for classes y = -1, 1: improve the weights `a` in place, with their gradients G.

    Returned is the offset rho.
    """
    n = len(y)
    for _ in range(STEPS_A_POINT * n):
        i, top = -1, -np.inf
        for t in range(n):
            if (y[t] > 0 and a[t] < C) or (y[t] < 0 and a[t] > 0):
                value = -y[t] * G[t]
                if value > top:
                    i, top = t, value
        j, best, low = -1, np.inf, np.inf
        for t in range(n):
            if (y[t] > 0 and a[t] > 0) or (y[t] < 0 and a[t] < C):
                value = -y[t] * G[t]
                low = min(low, value)
                if i >= 0 and value < top:
                    curve = K[i, i] + K[t, t] - 2.0 * K[i, t]
                    curve = curve if curve > 0 else TINY
                    gain = -((top - value) ** 2) / curve
                    if gain < best:
                        j, best = t, gain
        if i < 0 or j < 0 or top - low < TOLERANCE:
            break
        curve = K[i, i] + K[j, j] - 2.0 * K[i, j]
        curve = curve if curve > 0 else TINY
        step = (-y[i] * G[i] + y[j] * G[j]) / curve
        step = min(step, C - a[i] if y[i] > 0 else a[i], a[j] if y[j] > 0 else C - a[j])
        a[i] += y[i] * step
        a[j] -= y[j] * step
        a[i], a[j] = min(max(a[i], 0.0), C), min(max(a[j], 0.0), C)
        for t in range(n):
            G[t] += y[t] * step * (K[t, i] - K[t, j])
    free, total, high, low = 0, 0.0, np.inf, -np.inf
    for t in range(n):
        value = y[t] * G[t]
        if a[t] >= C:
            if y[t] < 0:
                high = min(high, value)
            else:
                low = max(low, value)
        elif a[t] <= 0:
            if y[t] > 0:
                high = min(high, value)
            else:
                low = max(low, value)
        else:
            free, total = free + 1, total + value
    return total / free if free else (high + low) / 2.0


@compiled
def classes_by_machines(K: Array, y: Ints, new: Array, Cs: Array, classes: int) -> Ints:
    """The class that each row's own machine predicts, (Cs, rows), for each C.

    K (rows, k, k) are kernels between a row's neighbours, y (rows, k) their classes, new (rows, k) kernels to the row.
    """
    m, k = y.shape
    out = np.empty((len(Cs), m), np.int64)
    for row in range(m):
        polls = np.zeros((len(Cs), classes), np.int64)
        there = np.zeros(classes, np.bool_)
        for i in range(k):
            there[y[row, i]] = True
        present = np.flatnonzero(there)
        if len(present) == 1:
            out[:, row] = present[0]
            continue
        for p in range(len(present)):
            for q in range(p + 1, len(present)):
                some = np.flatnonzero((y[row] == present[p]) | (y[row] == present[q]))
                size = len(some)
                sign, inner, across = np.empty(size), np.empty((size, size)), np.empty(size)
                for i in range(size):
                    sign[i] = 1.0 if y[row, some[i]] == present[p] else -1.0
                    across[i] = new[row, some[i]]
                    for j in range(size):
                        inner[i, j] = K[row, some[i], some[j]]
                for t in range(len(Cs)):
                    a, G = np.zeros(size), np.full(size, -1.0)
                    rho = binary_machine(inner, sign, Cs[t], a, G)
                    value = -rho
                    for i in range(size):
                        value += a[i] * sign[i] * across[i]
                    polls[t, present[p] if value > 0 else present[q]] += 1
        for t in range(len(Cs)):
            out[t, row] = np.argmax(polls[t])
    return out
