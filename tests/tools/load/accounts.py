"""Who loads: users, passwords, encrypted connections."""

import os
import shutil
import socket
import subprocess

from kit.cases import check

from case import SERVER
from impostor import Impostor


class Accounts:
    """Cases of users and of how they prove who they are."""

    def case_accounts_and_tls(self):
        """Passwords of each kind, from option files and the environment; TLS, with and without a check of the certificate."""
        # Anonymous users come before those of any host.
        self.server.query("DROP USER IF EXISTS ''@localhost", database=None)
        shutil.copy("/usr/lib/mysql/plugin/auth_ed25519.so", self.server.plugin_dir)
        self.server.query("INSTALL SONAME 'auth_ed25519'", database=None)
        self.fresh("parallel")
        path = self.write("one.sql", "SELECT 1;\n")
        for name, rule in (("native", "IDENTIFIED BY 'se;c#ret'"), ("ed", "IDENTIFIED VIA ed25519 USING PASSWORD('se;c#ret')"), ("secure", "IDENTIFIED BY 'se;c#ret' REQUIRE SSL")):
            self.server.query(f"CREATE OR REPLACE USER {name}@'%' {rule}", database=None)
            self.server.query(f"GRANT ALL ON *.* TO {name}@'%'", database=None)
            tcp = [self.arguments.teak, "load", "--host=127.0.0.1", f"--port={self.arguments.port}", f"--user={name}", path]
            file = self.write("client.cnf", "[client]\npassword='se;c#ret'\n")
            run = lambda *more, **settings: subprocess.run([*tcp[:2], *more, *tcp[2:]], capture_output=True, check=False, **settings)  # noqa: E731
            environment = {**os.environ, "MYSQL_PWD": "se;c#ret"}
            for done in (run(f"--defaults-file={file}"), run("--no-defaults", env=environment), run("--no-defaults", "-pse;c#ret"),
                         run("--no-defaults", "-pse;c#ret", f"--ssl-ca={self.files}/ca.pem", "--ssl-verify-server-cert")):
                check(done.returncode == 0, f"{name}: {done.stderr.decode()}")
            for done in (run("--no-defaults", "-pwrong"), run("--no-defaults", "-pse;c#ret", f"--ssl-ca={self.files}/other.pem")):
                check(done.returncode == SERVER, f"{name} got in: {done.args}")
        done = run("--no-defaults", "-pse;c#ret", "--skip-ssl")
        check(done.returncode == SERVER, "REQUIRE SSL without TLS")

    def case_passwords_stay_secret(self):
        """An impostor that wants the password itself gets it only with a certificate that was checked; a list of processes never shows it."""
        impostor = Impostor(f"{self.files}/server.pem", f"{self.files}/server.key")
        impostor.start()
        path = self.write("one.sql", "SELECT 1;\n")
        command = [self.arguments.teak, "load", "--no-defaults", "--host=127.0.0.1", f"--port={impostor.port}", "--user=u", "-ps3cret", path]
        for options, told in (([], False), (["--ssl"], False), ([f"--ssl-ca={self.files}/other.pem"], False), (["--skip-ssl"], False),
                              ([f"--ssl-ca={self.files}/ca.pem"], True), ([f"--ssl-ca={self.files}/ca.pem", "--ssl-verify-server-cert"], True)):
            impostor.heard.clear()
            done = subprocess.run(command + options, capture_output=True, check=False, timeout=60)
            message = done.stderr.decode()
            check(done.returncode == SERVER, f"{options}: {message}")
            check((b"s3cret\0" in impostor.heard) == told, f"{options}: the impostor heard {impostor.heard}; {message}")
            check(told or "--ssl-ca" in message or "certificate" in message or "without TLS" in message, f"{options}: {message}")
        impostor.stop()
        # A server that accepts and says nothing, so that the client waits.
        for form in (["-ps3cret"], ["--password=s3cret"]):
            with socket.create_server(("127.0.0.1", 0)) as silent:
                client = subprocess.Popen([*command[:4], f"--port={silent.getsockname()[1]}", "--user=u", *form, path], stderr=subprocess.DEVNULL)
                try:
                    # Kept: a connection that nobody refers to is closed, and the client goes.
                    connection, _ = silent.accept()
                    with connection, open(f"/proc/{client.pid}/cmdline", "rb") as file:
                        line = file.read()
                    check(b"s3cret" not in line and b"--user=u" in line, f"the list of processes shows {line}")
                finally:
                    client.kill()
                    client.wait()

    def certificates(self):
        """An authority, a certificate of it for the server, and another authority."""
        def openssl(*arguments):
            subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=self.files)
        for name in ("ca", "other"):
            openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "9", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=server", "-keyout", "server.key", "-out", "server.csr")
        self.write("names", "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
        openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "9", "-extfile", "names", "-out", "server.pem")
        return [f"--ssl-ca={self.files}/ca.pem", f"--ssl-cert={self.files}/server.pem", f"--ssl-key={self.files}/server.key"]
