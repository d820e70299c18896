"""CATS_Off, Algorithm 3 of the paper, slow and literal; the letters are those of `algorithms.py`.

S      logged data (x_t, a_t, P_t(a_t|x_t), l_t(a_t))     J  pairs (h, K)
p_min  minimum density                                    V  progressive validation loss
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from manul.paper.algorithms import F32, Build_tree, IPS_costs, Learner, Online_train_tree, Row, row

S_ = Sequence[tuple[Sequence[float], float, float, float]]
J_ = Sequence[tuple[float, int]]


def progressive_validation(h: float, K: int, S: S_, base: Callable[[Row], Learner]) -> float:
    """1/T times the sum of c_t(T_t(x_t)), where T_t has learned the first t - 1 examples online (Algorithm 10)."""
    M = np.zeros_like(row(S[0][0]))
    D = round(math.log2(K))
    T = Build_tree(D, round(math.log2(h * K)), lambda: base(M))
    V = 0.0
    for x_t, a_t, P_t, l_t in S:
        x = row(x_t)
        c_t = IPS_costs(h, K, a_t, P_t, l_t)
        V += c_t[round(T.root.get_action(x) * K)] / len(S)
        M[:] = np.maximum(M, np.abs(x))
        c_star = float(F32(l_t / (2 * h * P_t)))
        Online_train_tree(T, x, math.ceil(K * (a_t - h)), math.floor(K * (a_t + h)), c_star)
    return V


def Pen(V: float, T: int, p_min: float, h: float, constant: float) -> float:
    """Pen(h, K) of line 8; the constant is 64 ln(4 T |J| / delta), or 1 in the experiments.

    >>> Pen(0.25, T=100, p_min=0.5, h=0.5, constant=1)
    0.14
    """
    return math.sqrt(V * constant / (T * p_min * h)) + constant / (T * p_min * h)


def CATS_Off(S: S_, p_min: float, J: J_, base: Callable[[Row], Learner], constant: float) -> tuple[float, int]:
    """The pair (h, K) with the lowest V + Pen(h, K)."""

    def objective(cell: tuple[float, int]) -> float:
        h, K = cell
        V = progressive_validation(h, K, S, base)
        return V + Pen(V, len(S), p_min, h, constant)

    return min(J, key=objective)
