"""An online loop: decide, observe the loss, learn.

python examples/online_loop.py
"""

import numpy as np

import manul


def main(rounds: int = 3000) -> None:
    rng = np.random.default_rng(0)
    agent = manul.Cats(actions=(0.0, 32.0), leaves=1024, bandwidth=2.0, epsilon=0.05, seed=7)
    losses = []
    for _ in range(rounds):
        context = {"load": rng.uniform(0, 1), "link": rng.choice(["fibre", "radio"]).item()}
        decision = agent.decide(context)
        best = 28 * (1 - context["load"]) if context["link"] == "fibre" else 10.0
        loss = min(abs(decision.action - best) / 32, 1.0)
        agent.learn(context, decision, loss)
        losses.append(loss)
    print(f"loss of the first 200 rounds {np.mean(losses[:200]):.3f}, of the last 1,000 {np.mean(losses[-1000:]):.3f}")
    for link in ("fibre", "radio"):
        print(link, f"{agent.distribution({'load': 0.25, 'link': link}).mean():.1f}")


if __name__ == "__main__":
    main()
