"""How often a comparison calls a change what is none, and misses what is one: docs/compare.md.

    python tests/false_alarms.py --pairs 1000

Simulated windows through the SQL that judges them. Prints a line for each cell of the table.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter

from test_compare_changes import judged

PARTS = 12
CALLED = ("slower", "faster")


def noisy(source: random.Random, n: int, noise: float, factor: float = 1.0) -> dict[str, list]:
    """Iterations of twelve parts, each noisy, and noisy together."""
    items: dict[str, list] = {"iteration": []} | {f"part{at}": [] for at in range(PARTS)}
    for _ in range(n):
        scale = max(0.1, source.gauss(1, noise))
        parts = [1e6 * factor * max(0.1, source.gauss(1, noise)) * scale for _ in range(PARTS)]
        for at, value in enumerate(parts):
            items[f"part{at}"].append(value)
        items["iteration"].append(sum(parts))
    return items


def drifting(source: random.Random, n: int) -> dict[str, list]:
    """Iterations that wander by about 3 %, neighbours alike, from where a run happens to begin."""
    found, off = [], source.gauss(0, 0.03)
    for _ in range(n):
        off = 0.8 * off + source.gauss(0, 0.02)
        found.append(1e6 * (1 + off))
    return {"iteration": found}


def verdicts(pairs: list) -> Counter:
    """How often each verdict on the iteration was given."""
    with judged(dict(enumerate(pairs))) as con:
        rows = con.execute("SELECT verdict FROM pair.noise WHERE item = 'iteration'").fetchall()
    return Counter(row[0] for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    source, count = random.Random(given.seed), given.pairs

    def tell(what: str, n: int, found: Counter) -> None:
        called = sum(found[name] for name in CALLED)
        print(
            f"{what}, {n} windows: {called / count:.1%} called a change; {dict(found)}", flush=True
        )

    for n in (5, 8, 12, 30):
        levels = [(0.01, 0.03, 0.1)[at % 3] for at in range(count)]
        same = [(noisy(source, n, each), noisy(source, n, each)) for each in levels]
        tell("same, noise of 1 to 10 %", n, verdicts(same))
        for noise in (0.01, 0.03):
            longer = [
                (noisy(source, n, noise), noisy(source, n, noise, 1.03)) for _ in range(count)
            ]
            tell(f"3 % longer, noise of {noise:.0%}", n, verdicts(longer))
        wander = [(drifting(source, n), drifting(source, n)) for _ in range(count)]
        tell("same, drifting by 3 %", n, verdicts(wander))


if __name__ == "__main__":
    main()
