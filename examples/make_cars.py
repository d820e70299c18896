"""Generate `cars.csv`: used cars with the best selling price of each.

python examples/make_cars.py cars.csv
"""

import csv
import sys
from pathlib import Path

import numpy as np

FUELS, COLOURS = ("petrol", "diesel", "electric"), ("black", "white", "red", "blue", "grey")
ROWS = 5000


def main(path: str) -> None:
    rng = np.random.default_rng(0)
    age, fuel = rng.integers(0, 16, ROWS), rng.integers(0, 3, ROWS)
    kilometres = np.round(age * rng.gamma(8, 1800, ROWS), -2)
    value = 32_000 * np.exp(-0.11 * age) * np.array([1.0, 1.08, 1.25])[fuel] - 0.02 * kilometres
    price = np.clip(np.round(value + rng.normal(0, 700, ROWS), -1), 500, 40_000)
    colour = rng.integers(0, len(COLOURS), ROWS)
    unknown = rng.random(ROWS) < 0.1
    with Path(path).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["age", "kilometres", "fuel", "colour", "price"])
        for row in range(ROWS):
            driven = "" if unknown[row] else int(kilometres[row])
            writer.writerow([age[row], driven, FUELS[fuel[row]], COLOURS[colour[row]], int(price[row])])


if __name__ == "__main__":
    main(sys.argv[1])
