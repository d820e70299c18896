"""Policy classes for `SmoothedGreedy` and `ParetoGreedy` (the paper's appendix on general policy classes).

To add a policy class, write an object with `start(width, actions, bandwidth)` that returns a `Learner`. This one
chooses a share of the context's first number, and learns which share has the lowest mean loss:

>>> import dataclasses, manul, numpy as np
>>> class ShareLearner:
...     def __init__(self, shares):
...         self.shares, self.losses, self.counts = shares, np.zeros(len(shares)), np.zeros(len(shares))
...     def action(self, context, within):
...         return self.shares[self.best()] * float(context[0])
...     def learn(self, context, decision, loss):
...         nearest = int(np.argmin(np.abs(np.array(self.shares) * float(context[0]) - decision.action)))
...         self.losses[nearest] += loss
...         self.counts[nearest] += 1
...     def best(self):
...         return int(np.argmin(self.losses / np.maximum(self.counts, 1)))
...     def state(self):
...         return {"losses": self.losses.copy(), "counts": self.counts.copy()}
...     def restore(self, arrays):
...         self.losses, self.counts = arrays["losses"].copy(), arrays["counts"].copy()
>>> @dataclasses.dataclass(frozen=True)
... class Shares:
...     shares: tuple[float, ...] = (0.25, 0.5, 0.75)
...     def start(self, width, actions, bandwidth):
...         return ShareLearner(self.shares)
>>> agent = manul.agents.SmoothedGreedy(policies=Shares(), bandwidth=1/16)
>>> for context in np.random.default_rng(0).random((1000, 1)):
...     decision = agent.decide(context)
...     agent.learn(context, decision, abs(decision.action - context[0] / 2))
>>> round(agent.distribution([0.8]).mean(), 2)
0.41

A learner receives losses scaled to [0, 1]. To save and load agents with your class, register it with `saveable` first:
a file contains the fields of the class, not its code.
"""

from manul.actions.distribution import Atoms
from manul.policies.classifier_tree import TreePolicy
from manul.policies.constant import Constant
from manul.policies.finite import Finite
from manul.policies.native_policies import Linear, Tree
from manul.policies.policy import Agent, Policy
from manul.policies.policy_class import Learner, PolicyClass, saveable
from manul.policies.tree_training import train_tree

__all__ = [
    "Agent",
    "Atoms",
    "Constant",
    "Finite",
    "Learner",
    "Linear",
    "Policy",
    "PolicyClass",
    "Tree",
    "TreePolicy",
    "saveable",
    "train_tree",
]
