"""SQLAlchemy 2.0: its dialect's tests, the suite for dialects, and the tests of reflection and of the ORM's cascades."""

from place import junit

VERSION = "2.0.36"
TESTS = ("test/dialect/mysql", "test/dialect/test_suite.py", "test/engine", "test/orm/test_cascade.py", "test/orm/test_cycles.py", "test/orm/test_naturalpks.py",
         "test/orm/test_versioning.py", "test/orm/test_unitofwork.py", "test/orm/test_unitofworkv2.py", "test/sql/test_metadata.py", "test/sql/test_constraints.py")


def install(place):
    """Into a virtual environment; the tests are in the source distribution."""
    place.interpreter = place.python(f"SQLAlchemy=={VERSION}", "PyMySQL==1.1.1", "pytest==8.3.4", "setuptools==75.6.0")
    place.source = place.source_of("sqlalchemy", VERSION)


def run(place, server):
    """The tests that use the server."""
    for database in ("test_schema", "test_schema_2"):
        server.query(f"CREATE DATABASE {database}", database=None)
    results = place.result("xml")
    uri = f"mysql+pymysql://root@127.0.0.1:{server.port}/test?charset=utf8mb4"
    place.command(place.interpreter, "-m", "pytest", "-q", "-p", "no:logging", "--backend-only", "--dburi", uri, f"--junitxml={results}", *TESTS,
                  cwd=place.source, check=False)
    return junit(results)
