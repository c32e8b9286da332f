"""MariaDB Connector/J and MySQL Connector/J: batches, keys, cursors, metadata, XA (ConnectorJ.java)."""

import os

from place import numbered

JARS = {"MariaDB": ("org.mariadb.jdbc", "mariadb-java-client", "3.5.1"), "MySQL": ("com.mysql", "mysql-connector-j", "9.1.0")}


def install(place):
    """From Maven's repository."""
    place.need("java", "mvn")
    place.jars = {}
    for name, (group, artifact, version) in JARS.items():
        place.jars[name] = place.path(f"{artifact}-{version}.jar")
        if not os.path.exists(place.jars[name]):
            place.command("mvn", "-q", "-B", "dependency:copy", f"-Dartifact={group}:{artifact}:{version}", f"-DoutputDirectory={place.directory}")


def run(place, server):
    """The lines that the program prints with each driver."""
    program = os.path.join(os.path.dirname(__file__), "ConnectorJ.java")
    outcomes = {}
    for name, jar in place.jars.items():
        # One for each: an XA transaction that a failure leaves prepared would hold up the next.
        database = f"jdbc_{name.lower()}"
        server.query(f"CREATE DATABASE {database}", database=None)
        scheme, options = ("mariadb", "useBulkStmts=true") if name == "MariaDB" else ("mysql", "rewriteBatchedStatements=true&sslMode=DISABLED")
        url = f"jdbc:{scheme}://127.0.0.1:{server.port}/{database}?user=root&allowPublicKeyRetrieval=true&{options}"
        lines = numbered(place.output("java", "-cp", jar, program, url))
        outcomes.update({f"{name}, {step}": line for step, line in lines.items()})
    return outcomes
