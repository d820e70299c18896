"""Algorithms 5, 6 and 7 of the paper: several bandwidths and general policy classes, slow and literal.

The letters are those of `algorithms.py`, and

    Pi  policies, functions x -> a      V_hat(pi, h, S)  IPS estimate of the smoothed loss over the past S
    H   bandwidths                      P(V, t, h)       penalty of bandwidth h after t rounds
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from manul.paper.algorithms import IPS_costs, Oracle, Row, Smooth, Train_tree, row, uniforms

Pi_ = Callable[[Row], float]
Past = list[tuple[Row, float, float, float]]
Rounds = Iterable[tuple[Row, Callable[[float], float]]]
P_ = Callable[[float, int, float], float]


def V_hat(pi: Pi_, h: float, S: Past) -> float:
    """1/t times the sum of pi_h(a_s|x_s) / P_s(a_s|x_s) * l_s(a_s).

    >>> V_hat(lambda x: 0.5, 0.25, [(None, 0.5, 1.0, 0.5), (None, 0.9, 1.0, 0.5)])
    0.5
    """
    return sum(Smooth(h, a, float(pi(x))) / P * l for x, a, P, l in S) / len(S)  # noqa: E741


def Adaptive_CATS(
    D: int, oracle: Oracle, H: Sequence[float], eps: float, P: P_, rounds: Rounds, seed: int = 0
) -> tuple[Past, list[float]]:
    """Algorithm 5: (x_t, a_t, P_t(a_t|x_t), l_t(a_t)) of each round, and the bandwidth used in it.

    In each round, every tree is trained with Algorithm 2 and evaluated on the whole past.
    """
    S: Past = []
    used = []
    T, h = Train_tree(D, oracle, None, []), max(H)
    for t, (x_t, l_t) in enumerate(rounds):
        S.append(_play(T.root.get_action, h, eps, row(x_t), l_t, uniforms(seed, t)))
        used.append(h)
        trees = {h: Train_tree(D, oracle, None, [(x, IPS_costs(h, 2**D, *outcome)) for x, *outcome in S]) for h in H}
        V = {h: V_hat(trees[h].root.get_action, h, S) for h in H}
        h = min(H, key=lambda h: V[h] + P(V[h], t + 1, h))
        T = trees[h]
    return S, used


def P_adaptive(T: int, K: int, eps: float, ln_F: float, delta: float) -> P_:
    """The penalty in line 10 of Algorithm 5, which does not depend on the loss.

    >>> round(P_adaptive(T=10**6, K=4, eps=0.05, ln_F=10, delta=0.05)(0.5, 10**6, 1 / 4), 3)
    0.374
    """
    confidence = K * ln_F + math.log(8 * T**4 / delta)
    return lambda _, t, h: 4 * math.sqrt(confidence / (t * eps * h)) + 2 * confidence / (t * eps * h)


def Smoothed_greedy(Pi: Sequence[Pi_], h: float, eps: float, rounds: Rounds, seed: int = 0) -> Past:
    """Algorithm 6: (x_t, a_t, P_t(a_t|x_t), l_t(a_t)) of each round (x_t, l_t)."""
    S: Past = []
    pi = Pi[0]
    for t, (x_t, l_t) in enumerate(rounds):
        S.append(_play(pi, h, eps, x_t, l_t, uniforms(seed, t)))
        pi = min(Pi, key=lambda pi: V_hat(pi, h, S))
    return S


def Pareto_greedy(
    Pi: Sequence[Pi_],
    H: Sequence[float],
    eps: float,
    P: P_,
    rounds: Rounds,
    seed: int = 0,
) -> tuple[Past, list[float]]:
    """Algorithm 7: the past as in Algorithm 6, and the bandwidth h_t used in each round."""
    S: Past = []
    used = []
    pi, h = Pi[0], max(H)
    for t, (x_t, l_t) in enumerate(rounds):
        S.append(_play(pi, h, eps, x_t, l_t, uniforms(seed, t)))
        used.append(h)
        V = {h: [V_hat(pi, h, S) for pi in Pi] for h in H}
        h = min(H, key=lambda h: min(V[h]) + P(min(V[h]), t + 1, h))
        pi = Pi[V[h].index(min(V[h]))]
    return S, used


def P_pareto(T: int, eps: float, ln_Pi: float, delta: float) -> P_:
    """P(t, h) of Algorithm 7, which does not depend on the loss.

    >>> round(P_pareto(T=10**6, eps=0.05, ln_Pi=10, delta=0.05)(0.5, 10**6, 1 / 4), 3)
    0.167
    """
    confidence = ln_Pi + math.log(8 * T**4 / delta)
    return lambda _, t, h: 2 * math.sqrt(confidence / (t * eps * h)) + 3 * confidence / (t * eps * h)


def _play(
    pi: Pi_, h: float, eps: float, x: Row, l_t: Callable[[float], float], draws: tuple[float, float]
) -> tuple[Row, float, float, float]:
    c = float(pi(x))
    low, high = (0.0, 1.0) if draws[0] < eps else (max(c - h, 0.0), min(c + h, 1.0))
    a = low + draws[1] * (high - low)
    return x, a, (1 - eps) * Smooth(h, a, c) + eps, l_t(a)
