"""Use a world of manul as a Gymnasium environment with episodes of one step.

pip install gymnasium
python examples/with_gymnasium.py
"""

from typing import Any

import gymnasium
import numpy as np

import manul


class WorldEnv(gymnasium.Env):
    """A world as an environment: one step per episode; the reward is the negative loss."""

    def __init__(self, world: Any, actions: tuple[float, float] = (0.0, 1.0)) -> None:
        self.table, self.round = world.table(actions), -1
        width = self.table.contexts.shape[1]
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (width,), np.float32)
        self.action_space = gymnasium.spaces.Box(*actions, (1,), np.float64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.round = (self.round + 1) % len(self.table)
        return self.table.contexts[self.round], {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        loss = self.table.loss(self.round, float(action[0]))
        return self.table.contexts[self.round], -loss, True, False, {}


def main(rounds: int = 2000) -> None:
    env = WorldEnv(manul.worlds.linear(rounds=rounds, width=5))
    agent = manul.Cats(leaves=64, bandwidth=1 / 16)
    losses = []
    for _ in range(rounds):
        context, _ = env.reset()
        decision = agent.decide(context)
        _, reward, *_ = env.step([decision.action])
        agent.learn(context, decision, loss=-reward)
        losses.append(-reward)
    print(f"loss of the first 200 rounds {np.mean(losses[:200]):.3f}, of the last 500 {np.mean(losses[-500:]):.3f}")


if __name__ == "__main__":
    main()
