"""Write ships.csv: 800 made-up ship designs of eight kinds, so that the README has something to cluster."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

KINDS = {  # length (m), speed (knots), draught (m), power (MW), and how far designs spread about them
    "tanker": (250, 15, 15, 18, 0.07),
    "bulk carrier": (225, 14, 13, 12, 0.07),
    "container": (290, 23, 13.5, 48, 0.06),
    "feeder": (150, 18, 8.5, 12, 0.07),
    "ferry": (160, 25, 6.5, 36, 0.07),
    "cruise": (270, 22, 8, 60, 0.06),
    "tug": (32, 12, 4.5, 3.5, 0.08),
    "trawler": (45, 13, 5.5, 2.5, 0.09),
}


def main() -> None:
    """Draw the designs and write them beside this file."""
    r = np.random.default_rng(2012)
    with (Path(__file__).parent / "ships.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["design", "kind", "length", "speed", "draught", "power"])
        for number in range(800):
            kind = list(KINDS)[r.choice(len(KINDS), p=[0.14, 0.16, 0.14, 0.12, 0.1, 0.08, 0.14, 0.12])]
            *typical, spread = KINDS[kind]
            common = r.normal(0, spread)  # a larger design is larger in all
            values = [v * np.exp(common + r.normal(0, spread * 0.7)) for v in typical]
            writer.writerow([f"D{number:03d}", kind, *(f"{v:.2f}" for v in values)])


if __name__ == "__main__":
    main()
