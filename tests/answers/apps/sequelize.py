"""Sequelize 6 on Node.js: models with associations, migrations, transactions of several clients (sequelize.js)."""

import os

from place import numbered

PACKAGES = ("sequelize@6.37.5", "mysql2@3.11.5")


def install(place):
    """From npm."""
    place.npm(*PACKAGES)


def run(place, server):
    """The lines that the program prints."""
    script = os.path.join(os.path.dirname(__file__), "sequelize.js")
    return numbered(place.output("node", script, str(server.port), env={**os.environ, "NODE_PATH": place.path("node_modules")}))
