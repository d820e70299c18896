"""Algorithm 11: the cost of a subtree from its place between alpha and beta."""

import pytest

from manul.paper.algorithms import Node, Return_cost


@pytest.mark.parametrize(("w", "cost"), [(6, 0.0), (7, 1.0), (8, 9.0), (9, 9.0), (10, 2.0), (11, 0.0)])
def test_cost_depends_on_the_place(w, cost):
    alpha, beta = Node(id=7, cost=1.0), Node(id=10, cost=2.0)
    assert Return_cost(Node(id=w), alpha, beta, c_star=9.0) == cost


def test_alpha_and_beta_can_be_one_node():
    both = Node(id=7, cost=3.0)
    assert Return_cost(both, both, both, c_star=9.0) == 3.0
