"""mysql2 on Node.js: types, prepared statements, streams, batches, errors, cancelled statements (mysql2.js)."""

import os

from place import numbered

PACKAGES = ("mysql2@3.11.5",)


def install(place):
    """From npm."""
    place.npm(*PACKAGES)


def run(place, server):
    """The lines that the program prints."""
    script = os.path.join(os.path.dirname(__file__), "mysql2.js")
    return numbered(place.output("node", script, str(server.port), env={**os.environ, "NODE_PATH": place.path("node_modules")}))
