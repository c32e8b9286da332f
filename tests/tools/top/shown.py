"""A `teak top` on a terminal of 80 columns and 24 lines, which is a tmux of its own: what it shows, and keys for it; and what it prints."""

import itertools
import json
import os
import shlex
import subprocess

from kit.asking import wait_until

# Of terminals, since one that ends may still have its socket.
NUMBERS = itertools.count(1)


def options(server, user="root"):
    """Of a connection to a server."""
    return ["--no-defaults", f"--socket={server.socket}", f"--user={user}"]


def once(teak, server, *more, user="root"):
    """What it prints of a server, once."""
    done = subprocess.run([teak, "top", *options(server, user), "--once", "--json", "--interval=0.1", *more], capture_output=True, check=True, timeout=60)
    assert not any(byte < 32 and byte != 10 or byte == 127 for byte in done.stdout), "control characters"
    return json.loads(done.stdout)


def view(teak, server, name, **how):
    """The rows of a view."""
    return once(teak, server, **how)["views"][name]


class Top:
    """One that runs; it ends with its block."""

    def __init__(self, directory, teak, *arguments, environment=(), columns=80, lines=24):
        self.socket = os.path.join(directory, f"tmux-{next(NUMBERS)}")
        self.size = (columns, lines)
        # What the terminal is like behind it is asked of a shell that waits for it.
        told = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment)
        command = f"{told} {shlex.join([teak, 'top', *arguments])}; echo \"ended with $?\"; stty -a | grep -o -- '-*icanon'; read -r _"
        self.command = ["env", "LC_ALL=C.UTF-8", "TERM=xterm-256color", "tmux", "-f", "/dev/null", "-S", self.socket, "new-session", "-d", "-x", str(columns),
                        "-y", str(lines), command]

    def __enter__(self):
        subprocess.run(self.command, check=True)
        return self

    def __exit__(self, *_):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], check=False, stderr=subprocess.DEVNULL)

    def tmux(self, *arguments):
        """What a command of tmux prints."""
        return subprocess.run(["tmux", "-S", self.socket, *arguments], check=True, capture_output=True, text=True).stdout

    def screen(self, *how):
        """All lines."""
        return self.tmux("capture-pane", "-p", *how)

    def press(self, *keys):
        """Sends keys by tmux's names: single characters, Enter, Up."""
        for key in keys:
            self.tmux("send-keys", key)

    def until(self, *texts, without=()):
        """The screen once it has all of these texts."""
        seen = None

        def has_all():
            nonlocal seen
            seen = self.screen()
            return all(text in seen for text in texts) and not any(text in seen for text in without)

        try:
            wait_until(has_all, f"{texts} on the screen")
        except AssertionError as error:
            raise AssertionError(f"{error}:\n{seen}") from None
        return seen

    def line(self, text):
        """The line that has a text, once there is one."""
        return next(line for line in self.until(text).splitlines() if text in line)

    def process(self):
        """Its number."""
        shell = self.tmux("display-message", "-p", "#{pane_pid}").strip()
        children = subprocess.run(["ps", "--ppid", shell, "-o", "pid=,comm="], check=True, capture_output=True, text=True).stdout
        return next(int(pid) for pid, name in map(str.split, children.splitlines()) if name == "teak")

    def ended(self, status=0):
        """Waits for its end, and that the terminal is as it was."""
        screen = self.until(f"ended with {status}", "icanon")
        assert "-icanon" not in screen, screen
        state = self.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}").strip()
        assert state == "0 1", state
        return screen
