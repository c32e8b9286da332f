"""A `teak exporter` that runs, and what it answers."""

import os
import re
import signal
import subprocess

from kit.asking import wait_until
from kit.server import free_port
from kit.web import answers, get

SAMPLE = re.compile(r"^([a-z_][a-z0-9_]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def samples(text):
    """All numbers, by name and labels; fails for a line that is no sample or that is there twice."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = SAMPLE.match(line)
        assert match, f"no sample: {line!r}"
        key = (match[1], tuple(sorted(LABEL.findall(match[2] or ""))))
        assert key not in found, f"twice: {line}"
        found[key] = float(match[3])
    return found


class Exporter:
    """One program; with a server, it asks that as root. It ends with its block."""

    def __init__(self, teak, *options, server=None, listen=None, environment=None, log=None):
        self.at = listen or f"127.0.0.1:{free_port()}"
        if server:
            options = ("--no-defaults", f"--socket={server.socket}", "--user=root", *options)
        self.command = [teak, "exporter", f"--listen={self.at}", *options]
        self.log = log or os.devnull
        with open(self.log, "w", encoding="utf-8") as out:
            self.process = subprocess.Popen(self.command, stdout=out, stderr=out, env={**os.environ, **(environment or {})})

    def __enter__(self):
        def is_ready():
            assert self.process.poll() is None, f"it has ended with {self.process.returncode}: {self.said()}"
            return answers(self.at, "/healthz")

        try:
            wait_until(is_ready, "the exporter")
        except BaseException:
            self.process.kill()
            raise
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def said(self):
        """Its messages."""
        with open(self.log, encoding="utf-8") as text:
            return text.read()

    def scrape(self):
        """All numbers."""
        status, kind, text = get(self.at)
        assert status == 200 and kind.startswith("text/plain; version=0.0.4"), (status, kind)
        return samples(text)

    def value(self, name, **labels):
        """One of them; None if it is not there."""
        return self.scrape().get((name, tuple(sorted(labels.items()))))

    def missing(self):
        """Parts that are missing of an answer, with what it says of the whole."""
        found = self.scrape()
        parts = sorted(dict(labels)["part"] for (name, labels), value in found.items() if name == "teak_exporter_part_success" and value == 0)
        error = found["teak_exporter_last_scrape_error", ()]
        assert error == (1 if parts else 0), (parts, error)
        return parts, found["mysql_up", ()], found["teak_up", ()]

    def end(self, how=signal.SIGTERM, limit=20):
        """Its exit status after a signal."""
        self.process.send_signal(how)
        return self.process.wait(timeout=limit)
