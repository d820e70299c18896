"""Use scikit-learn: a fitted transformer as a feature map, and a classifier in the nodes of a tree.

python examples/with_scikit_learn.py
"""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import PolynomialFeatures

import manul


def main(rounds: int = 4000) -> None:
    rng = np.random.default_rng(0)
    contexts = rng.uniform(-1, 1, (rounds, 2))
    world = manul.worlds.Regression(contexts, 0.5 + 0.4 * contexts[:, 0] * contexts[:, 1])

    plain = manul.simulate(manul.Cats(leaves=64, bandwidth=1 / 16), world)
    squares = manul.maps.Transformer(PolynomialFeatures(2, include_bias=False).fit(contexts[:10]))
    mapped = manul.simulate(manul.Mapped(agent=manul.Cats(leaves=64, bandwidth=1 / 16), features=squares), world)
    print(f"Cats {plain.mean_loss:.4f}, with PolynomialFeatures {mapped.mean_loss:.4f}")

    train, held_out = mapped.log.split(0.75)
    tree = manul.policies.train_tree(train, leaves=16, bandwidth=1 / 16, classifier=LogisticRegression())
    print("a tree of logistic regressions:", manul.evaluate(tree, held_out))


if __name__ == "__main__":
    main()
