"""The account of a budget, slowly: every amount is summed again from all bookings and costs."""

import math


class SlowAccount:
    """The same as `Account` for periods of a number of decisions, from the whole history."""

    def __init__(self, amount, length, *, late, carry):
        self.amount, self.length, self.late, self.carry = amount, length, late, carry
        self.booked, self.costs, self.corrections, self.settled_in = [], {}, {}, {}

    @property
    def period(self):
        return len(self.booked) // self.length

    def book(self, held, variance):
        self.booked.append((self.period, held, variance))
        return len(self.booked) - 1

    def settle(self, number, cost):
        if number in self.costs:
            return
        self.costs[number] = cost
        current = (len(self.booked) - 1) // self.length
        period, held, _ = self.booked[number]
        if period < current and (self.carry or self.late == "carry"):
            self.corrections[current] = self.corrections.get(current, 0.0) + held - cost
        self.settled_in[number] = current

    def rest(self, period, *, margin):
        """What is left of a period; decisions that were settled after it count as they were held."""
        spent = variance = 0.0
        for number, (own, held, own_variance) in enumerate(self.booked):
            if own != period:
                continue
            if number in self.costs and self.settled_in[number] == period:
                spent += self.costs[number]
            else:
                spent += held
                variance += own_variance
        reserved = 3 * math.sqrt(variance) if margin and self.late == "reserve" else 0.0
        return self.available(period) - spent - reserved

    def available(self, period):
        carried = 0.0
        if period > 0:
            before = self.rest(period - 1, margin=False)
            carried = before if self.carry else min(before, 0.0) if self.late == "carry" else 0.0
        return self.amount + carried + self.corrections.get(period, 0.0)

    def left(self):
        return self.rest(self.period, margin=True)
