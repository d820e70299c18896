"""Use an agent of manul as a learner in a coba experiment, compared with one of coba's learners.

pip install coba
python examples/with_coba.py
"""

from typing import Any

import coba as cb

import manul


class ManulLearner:
    """Any agent as a coba learner: coba offers discrete actions, and gets the one nearest to the agent's decision.

    The agent learns from its own decision. A reward of coba is a negative loss.
    """

    def __init__(self, agent: Any) -> None:
        self.agent = agent

    @property
    def params(self) -> dict[str, Any]:
        return {"family": type(self.agent).__name__}

    def predict(self, context: Any, actions: Any) -> Any:
        decision = self.agent.decide(context)
        nearest = min(actions, key=lambda action: abs(action - decision.action))
        return nearest, 1.0, {"decision": decision}

    def learn(self, context: Any, action: Any, reward: float, probability: float, decision: Any) -> None:  # noqa: ARG002
        self.agent.learn(context, decision, loss=-reward)


def main(rounds: int = 1500) -> None:
    world = manul.worlds.linear(rounds=rounds, width=3)
    prices = [number / 20 for number in range(21)]
    environment = cb.Environments.from_lambda(
        rounds,
        lambda index: tuple(world.contexts[index].tolist()),
        lambda index, context: prices,  # noqa: ARG005
        lambda index, context, action: -abs(action - world.targets[index]),  # noqa: ARG005
    )
    learners = [ManulLearner(manul.Cats(leaves=64, bandwidth=1 / 16)), cb.RandomLearner()]
    result = cb.Experiment(environment, learners).run(quiet=True)
    rewards = result.interactions.to_pandas().groupby("learner_id")["reward"].mean()
    print(f"mean loss of Cats {-rewards[0]:.3f}, of coba's random learner {-rewards[1]:.3f}")


if __name__ == "__main__":
    main()
