"""What a program is told, by its command line and by the environment."""

import argparse
import os
import random
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BUILD = os.path.join(ROOT, "build")
PLUGIN_DIR = os.environ.get("TEAK_PLUGIN_DIR") or os.path.join(BUILD, "plugin")
TEAK = os.environ.get("TEAK_BINARY") or os.path.join(BUILD, "bin/teak")


def directory():
    """Where the servers of this program live: build/tests/SUITE, or SUITE-PROGRAM if it is not called as the suite."""
    path, program = os.path.split(os.path.abspath(sys.argv[0]))
    suite, name = os.path.basename(path), os.path.splitext(program)[0]
    return os.path.join(BUILD, "tests", suite if name == suite else f"{suite}-{name}")


def parser(about, names=None, **numbers):
    """A parser of what each program can be told. `numbers` are further options with their values; with `names` there are arguments as well, of which that is
    the help."""
    made = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--plugin-dir", default=PLUGIN_DIR, help="of the engine under test")
    made.add_argument("--teak", default=TEAK, help="the command line of the engine")
    made.add_argument("--directory", default=directory(), help="of the servers; what is there goes")
    for name, value in numbers.items():
        made.add_argument("--" + name.replace("_", "-"), type=type(value), default=value)
    if names:
        made.add_argument("names", nargs="*", help=names)
    return made


def seed(otherwise=None):
    """The number that a run's choices come from: TEAK_SEED, or else `otherwise`, or else a random one. It is printed."""
    number = int(os.environ.get("TEAK_SEED") or otherwise or random.SystemRandom().randrange(1, 1 << 15))
    print(f"TEAK_SEED={number}", flush=True)
    return number
