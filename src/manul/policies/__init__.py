"""Policy classes for `SmoothedGreedy` and `ParetoGreedy` (the paper's appendix on general policy classes).

A class of your own is an object with `start(width, actions, bandwidth)`, which gives a learner with five methods.
Here is one whole: it plays a share of the context's first number, and looks for the share by trying.

>>> import dataclasses, manul, numpy as np
>>> class ShareLearner:
...     def __init__(self, shares):
...         self.shares, self.paid, self.tries = shares, np.zeros(len(shares)), np.zeros(len(shares))
...     def action(self, context, within):
...         return self.shares[self.best()] * float(context[0])
...     def learn(self, context, decision, loss):
...         tried = int(np.argmin(np.abs(np.array(self.shares) * float(context[0]) - decision.action)))
...         self.paid[tried] += loss
...         self.tries[tried] += 1
...     def best(self):
...         return int(np.argmin(self.paid / np.maximum(self.tries, 1)))
...     def state(self):
...         return {"paid": self.paid.copy(), "tries": self.tries.copy()}
...     def restore(self, arrays):
...         self.paid, self.tries = arrays["paid"].copy(), arrays["tries"].copy()
>>> @dataclasses.dataclass(frozen=True)
... class Shares:
...     shares: tuple[float, ...] = (0.25, 0.5, 0.75)
...     def start(self, width, actions, bandwidth):
...         return ShareLearner(self.shares)
>>> agent = manul.SmoothedGreedy(policies=Shares(), bandwidth=1/16)
>>> for context in np.random.default_rng(0).random((1000, 1)):
...     decision = agent.decide(context)
...     agent.learn(context, decision, abs(decision.action - context[0] / 2))
>>> round(agent.distribution([0.8]).mean(), 2)
0.41

Losses reach a learner scaled to [0, 1]. To save agents with the class, register it with `saveable` before saving and
before loading: its fields go into the file, its code does not.
"""

from manul.policies.constant import Constant
from manul.policies.finite import Finite
from manul.policies.linear import Linear
from manul.policies.policy_class import Learner, PolicyClass, saveable
from manul.policies.tree import Tree

__all__ = ["Constant", "Finite", "Learner", "Linear", "PolicyClass", "Tree", "saveable"]
