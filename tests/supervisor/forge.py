"""Real servers of private repositories on this machine: git over https, and over ssh."""

import base64
import datetime as dt
import http.server
import os
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.openssh import ssh_keygen

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
PATIENCE_S = 60.0


def certificate(folder: Path) -> Path:
    """Make a certificate that is its own authority, for 127.0.0.1; with its key in `forge.key`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "forge of a test")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = folder / "forge.pem"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "forge.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return pem


@dataclass
class Forge:
    """Serves the bare repositories below a folder to whoever has the user's token.

    allowed: user and token; refusal: what a refused request is answered, with `{token}` for
    what it gave; when_asked: called in each request that has the right token.
    """

    repos: Path
    allowed: tuple[str, str]
    refusal: str = "who are you?"
    when_asked: Callable[[], None] = lambda: None
    url: str = ""
    is_public: bool = False
    seen: list[str] = field(default_factory=list)

    @property
    def header(self) -> str:
        """What a request that is let in says of itself."""
        return "Basic " + base64.b64encode(":".join(self.allowed).encode()).decode()

    @contextmanager
    def serving(self, folder: Path) -> Iterator[Path]:
        """Serve until the end; yields the certificate to trust."""
        pem = certificate(folder)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem, folder / "forge.key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield pem
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def _handler(forge: Forge) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers.get("Content-Length", "0"))))

        def _answer(self, body: bytes) -> None:
            given = self.headers.get("Authorization", "")
            forge.seen.append(given)
            if not forge.is_public and given != forge.header:
                said = forge.refusal.format(token=given).encode()
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="forge"')
                self.send_header("Content-Type", "text/plain")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)
                return
            forge.when_asked()
            path, _, query = self.path.partition("?")
            head, _, answer = self._from_git(path, query, body).partition(b"\r\n\r\n")
            self.send_response(200)
            for line in head.decode().splitlines():
                name, _, value = line.partition(": ")
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def _from_git(self, path: str, query: str, body: bytes) -> bytes:
            env = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(forge.repos),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
                "REQUEST_METHOD": self.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "REMOTE_USER": forge.allowed[0],
            }
            argv = ["git", "http-backend"]
            return subprocess.run(argv, env=env, input=body, capture_output=True, check=True).stdout

        def log_message(self, *args: object) -> None:
            """Say nothing: a test's output is pytest's."""

    return Handler


def key_pair(folder: Path, name: str) -> Path:
    """Make an ssh key without a passphrase and return the private one's file."""
    made = folder / name
    ssh_keygen(made, comment=name)
    return made


@contextmanager
def ssh_server(folder: Path) -> Iterator[tuple[str, Path, str]]:
    """Serve this machine's files by ssh to one key.

    Yields:
        The beginning of the server's addresses, the private key that it lets in, and the line
        for known_hosts.
    """
    host, client = key_pair(folder, "host"), key_pair(folder, "client")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = folder / "sshd_config"
    config.write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {host}\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {client}.pub\nStrictModes no\nPasswordAuthentication no\n"
        "KbdInteractiveAuthentication no\nPermitRootLogin yes\nAcceptEnv GIT_PROTOCOL\n"
    )
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd's own, empty and root's
    log = folder / "sshd.log"
    argv = [str(SSHD), "-D", "-e", "-f", str(config)]
    with log.open("wb") as said:
        server = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        end = time.monotonic() + PATIENCE_S
        while b"listening" not in log.read_bytes():
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.02)
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout
        public = " ".join(host.with_name("host.pub").read_text().split()[:2])
        line = f"[127.0.0.1]:{port} {public}\n"
        yield f"ssh://{user.strip()}@127.0.0.1:{port}", client, line
    finally:
        server.terminate()
        server.wait()
