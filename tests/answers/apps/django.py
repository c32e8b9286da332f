"""Django: its own tests of what a database does for it."""

import json
import os

from place import Unavailable

VERSION = "5.2.8"
APPS = ("schema migrations migration_test_data_persistence constraints transactions transaction_hooks backends select_for_update introspection inspectdb indexes "
        "bulk_create delete delete_regress foreign_object get_or_create update many_to_one many_to_many one_to_one fixtures fixtures_regress "
        "atomic db_utils db_functions model_fields unmanaged_models").split()

SETTINGS = """
import pymysql
pymysql.version_info = (2, 2, 1, "final", 0)
pymysql.install_as_MySQLdb()
DATABASES = {name: {"ENGINE": "django.db.backends.mysql", "NAME": name, "USER": "root", "HOST": "127.0.0.1", "PORT": %(port)s,
                    "TEST": {"CHARSET": "utf8mb4"}} for name in ("default", "other")}
SECRET_KEY = "x"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = "teak_runner.Recorder"
"""
RUNNER = """
import json, os, unittest
from django.test.runner import DiscoverRunner

class Result(unittest.TextTestResult):
    outcomes = {}
    def note(self, test, outcome):
        if self.outcomes.get(test.id(), "passed") == "passed":
            self.outcomes[test.id()] = outcome
    def addSuccess(self, test):
        super().addSuccess(test); self.note(test, "passed")
    def addFailure(self, test, err):
        super().addFailure(test, err); self.note(test, "failed")
    def addError(self, test, err):
        super().addError(test, err); self.note(test, "error")
    def addSkip(self, test, reason):
        super().addSkip(test, reason); self.note(test, "skipped")
    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err); self.note(test, "passed")
    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test); self.note(test, "unexpected success")
    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note(test, "failed")

class Recorder(DiscoverRunner):
    def get_resultclass(self):
        return Result
    def suite_result(self, suite, result, **kwargs):
        with open(os.environ["TEAK_OUTCOMES"], "w") as out:
            json.dump(Result.outcomes, out)
        return super().suite_result(suite, result, **kwargs)
"""


def install(place):
    """Into a virtual environment; the tests are in the source distribution."""
    place.interpreter = place.python(f"Django=={VERSION}", "PyMySQL==1.1.1", "setuptools==75.6.0", "jinja2==3.1.4", "pytz==2024.2", "tblib==3.0.0")
    place.source = place.source_of("django", VERSION)


def run(place, server):
    """Chosen applications of Django's test suite, one process."""
    tests = os.path.join(place.source, "tests")
    for name, text in (("teak_settings.py", SETTINGS % {"port": server.port}), ("teak_runner.py", RUNNER)):
        with open(os.path.join(tests, name), "w", encoding="utf-8") as out:
            out.write(text)
    results = place.result("json")
    apps = [app for app in APPS if os.path.isdir(os.path.join(tests, app))]
    place.command(place.interpreter, "runtests.py", "--settings=teak_settings", "--parallel=1", "--noinput", *apps, cwd=tests, check=False,
                  env={**os.environ, "TEAK_OUTCOMES": results, "PYTHONPATH": tests})
    if not os.path.exists(results):
        raise Unavailable("its tests did not run: see the log")
    with open(results, encoding="utf-8") as outcomes:
        return json.load(outcomes)
