"""Runs `teak archive`, and makes what is put."""

import json
import os
import random
import shutil
import subprocess

from kit.asking import expect
from kit.cases import carry_out, cases_of
from kit.options import parser


class Archive:
    """An archive in a directory, by the command line."""

    def __init__(self, teak, directory):
        self.teak, self.path = teak, os.path.join(directory, "archive")
        self.files = os.path.join(directory, "files")
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(self.files)

    def words(self, command, *arguments):
        """The command line."""
        return [self.teak, "archive", command, self.path, *arguments]

    def asked(self, command, *arguments, given=None):
        """Status, output and errors of a command; the output is bytes."""
        ended = subprocess.run(self.words(command, *arguments), input=given, capture_output=True, check=False)
        return ended.returncode, ended.stdout, ended.stderr.decode()

    def ok(self, command, *arguments, given=None):
        """The output of a command that must go well, as text."""
        status, out, errors = self.asked(command, *arguments, given=given)
        expect((status, errors), (0, ""), f"{command} {arguments}")
        return out.decode()

    def refused(self, status, part, command, *arguments, given=None):
        """A command that must end so, with these words."""
        found, _, errors = self.asked(command, *arguments, given=given)
        assert found == status and part in errors, f"{command} {arguments}: status {found}, {errors}"

    def file(self, name, content):
        """A file to put."""
        path = os.path.join(self.files, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def put(self, content, *arguments):
        """The OID of what is put by standard input."""
        return self.ok("put", "-", *arguments, given=content).strip()

    def get(self, name, *arguments):
        """The bytes of an object."""
        status, out, errors = self.asked("get", name, *arguments)
        expect((status, errors), (0, ""), f"get {name}")
        return out

    def damage(self, stored):
        """Writes over some of these bytes, which do not compress, wherever the archive has them."""
        with open(os.path.join(self.path, "s1.teak"), "r+b") as file:
            at = file.read().find(stored)
            assert at > 0
            file.seek(at)
            file.write(b"damaged")

    def stat(self, name):
        """What is known of an object."""
        return json.loads(self.ok("stat", name, "--json"))

    def query(self, expression, *arguments):
        """The lines of an answer."""
        return self.ok("query", expression, *arguments).splitlines()

    def schema(self, definition):
        """Sets the schema."""
        self.ok("schema", "--set", "-", given=json.dumps(definition).encode())


def content(number, size):
    """Bytes that are the same for the same number."""
    return random.Random(number).randbytes(size)


def run_cases(module):
    """Carries out the cases of a program that were asked for, each with an archive of its own; the exit status."""
    arguments = parser(module.__doc__, names="of cases; default: all").parse_args()

    class Anew:
        """Each time another one."""

        def __iter__(self):
            yield Archive(arguments.teak, arguments.directory)

    return carry_out(cases_of(module), arguments.names, Anew(), recover=lambda: None)
