"""GP-UCB, the usual method for few rounds: a Gaussian process of the loss, and the action with the lowest confidence bound.

The process has a Matérn kernel with one length per feature and one for the action (scikit-learn). Its posterior is updated
every few rounds, its lengths whenever the number of rounds has doubled. All actions are in [0, 1].
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manul.worlds import ScaledWorld, World

Array = NDArray[np.float64]
ACTIONS, FIRST, UPDATE, DEVIATIONS = 64, 10, 5, 2.0  # the first actions are uniform; rounds between two updates


def play(world: World | ScaledWorld, *, rounds: int, seed: int) -> Array:
    """The losses of the first rounds of a world."""
    rng, unit = np.random.default_rng(seed), world.table((0.0, 1.0)) if isinstance(world, ScaledWorld) else world
    candidates, contexts = (np.arange(ACTIONS) + 0.5) / ACTIONS, world.contexts[:rounds].astype(np.float64)
    actions, losses, model, kernel = rng.random(rounds), np.empty(rounds), None, None
    for number in range(rounds):
        known = np.column_stack([contexts[:number], actions[:number]])
        if number in {FIRST * 2**power for power in range(20)}:
            model = fit(known, losses[:number], kernel=None)
            kernel = model.kernel_
        elif number > FIRST and number % UPDATE == 0:
            model = fit(known, losses[:number], kernel=kernel)
        if model is not None:
            pairs = np.column_stack([np.tile(contexts[number], (ACTIONS, 1)), candidates])
            mean, deviation = model.predict(pairs, return_std=True)
            actions[number] = candidates[int(np.argmin(mean - DEVIATIONS * deviation))]
        losses[number] = unit.loss(number, actions[number])
    return losses


def fit(known: Array, losses: Array, *, kernel: Any) -> Any:
    """Fit a process with this kernel or, if it is None, with the most likely one."""
    try:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("scikit-learn is not installed. Install it: pip install scikit-learn") from error
    lengths = np.full(known.shape[1], np.sqrt(known.shape[1]))
    lengths[-1] = 0.3
    new = ConstantKernel() * Matern(lengths, (1e-2, 1e3), nu=2.5) + WhiteKernel(0.1)
    optimizer = "fmin_l_bfgs_b" if kernel is None else None
    model = GaussianProcessRegressor(kernel or new, optimizer=optimizer, normalize_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # lengths of useless features end at their bound
        return model.fit(known, losses)
