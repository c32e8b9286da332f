#!/usr/bin/python3
"""How long after SIGKILL `teak replicate` applies the first transaction, and how long it takes to have caught up, beside writers.

    PYTHONPATH=tests benches/replicate_restart.py [--sources 15] [--away SECONDS] [--rate N] [--runs N]

Each source writes `--rate` transactions a second. The program is killed, and another one started after so many seconds. Prints seconds from its start until each
source's position has moved, and until it has been where the source was when the program was started. The goals: less than 2, and less than it was away.
"""

import time

from following import Following
from kit.options import parser
from replicate_lag import Pace


def main():
    arguments = parser(__doc__, sources=3, away=3.0, rate=500, runs=3, workers=1).parse_args()
    with Following(arguments, arguments.sources) as following:
        following.configure(workers=arguments.workers)
        following.agent.start()
        with Pace(following, arguments.rate):
            following.catch_up()
            for _ in range(arguments.runs):
                for away in (0.0, arguments.away):
                    following.agent.kill()
                    time.sleep(away)
                    stands = following.positions()
                    began = time.monotonic()
                    following.agent.start()
                    while any(following.positions().get(name) == gtid for name, gtid in stands.items()):
                        time.sleep(0.002)
                    first = time.monotonic() - began
                    following.catch_up()
                    print(f"{arguments.sources} sources, away for {away:.0f} s: {first:.2f} s until all have applied something, {time.monotonic() - began:.2f} s until caught up", flush=True)


if __name__ == "__main__":
    main()
