"""Who may come in: the checks of every request, of the page and of the socket alike.

A page that somebody else wrote can send requests to this machine, also under a name that it makes lead here. So the
Host must be one of ours, and so must the Origin, which browsers always say when a page opens a socket. Where others can
reach the port, the path begins with a secret that only the printed address has; all links of the page are relative, so
they carry it along.
"""

import hmac
import secrets
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib.resources import files

from websockets.datastructures import Headers
from websockets.http11 import Request, Response

LOCAL = ("127.0.0.1", "localhost", "[::1]")
LOCAL_ADDRESSES = ("127.0.0.1", "localhost", "::1")
SOCKET = "socket"
PAGE = {  # served by name, nothing else is
    "": ("index.html", "text/html"),
    **{
        name: (name, kind)
        for name, kind in (
            ("style.css", "text/css"),
            ("main.js", "text/javascript"),
            ("wire.js", "text/javascript"),
            ("draw.js", "text/javascript"),
            ("keys.js", "text/javascript"),
            ("pad.js", "text/javascript"),
            ("controls.js", "text/javascript"),
            ("curves.js", "text/javascript"),
            ("icon.svg", "image/svg+xml"),
        )
    },
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self' {sockets}; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SAFE = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass
class Door:
    """The address, and what is let in."""

    host: str
    port: int
    token: str = field(default="")
    extra: dict[str, tuple[bytes, str, str]] = field(default_factory=dict)  # more pages: content, type, policy

    def __post_init__(self) -> None:
        if not self.is_local:
            self.token = self.token or secrets.token_urlsafe(18)

    @property
    def is_local(self) -> bool:
        return self.host in LOCAL_ADDRESSES

    @property
    def hosts(self) -> list[str]:
        """The names under which we can be called."""
        own = f"[{self.host}]" if ":" in self.host else self.host
        return [
            f"{name}:{self.port}" for name in dict.fromkeys((*LOCAL, own.lower())) if name not in ("0.0.0.0", "[::]")
        ]

    @property
    def address(self) -> str:
        host = {"::": "[::1]", "0.0.0.0": "127.0.0.1"}.get(self.host, self.host)
        host = f"[{host}]" if ":" in host and not host.startswith("[") else host
        return f"http://{host}:{self.port}/{self.token + '/' if self.token else ''}"

    def answer(self, request: Request) -> Response | None:
        """The answer to a request; None where it asks for the socket and may have it."""
        problem = self._problem(request.headers)
        if problem is not None:
            return self._refuse(HTTPStatus.FORBIDDEN, problem)
        path = request.path.partition("?")[0].removeprefix("/")
        if self.token:
            given, _, path = path.partition("/")
            if not hmac.compare_digest(given.encode(errors="surrogateescape"), self.token.encode()):
                return self._refuse(
                    HTTPStatus.FORBIDDEN, "the address that was printed carries a token; this one does not"
                )
        if path == SOCKET:
            if request.headers.get("Origin") is None:
                return self._refuse(HTTPStatus.FORBIDDEN, "the socket is for pages that say their Origin")
            return None
        if path in self.extra:
            return _response(HTTPStatus.OK, *self.extra[path])
        if path not in PAGE:
            return self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")
        name, kind = PAGE[path]
        content = files("itc.play").joinpath("page", name).read_bytes()
        # 'self' is enough for most browsers; an address in brackets is none that a policy can name.
        sockets = " ".join(f"ws://{host}" for host in self.hosts if not host.startswith("["))
        return _response(HTTPStatus.OK, content, f"{kind}; charset=utf-8", POLICY.format(sockets=sockets))

    def _problem(self, headers: Headers) -> str | None:
        hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return f"this is not the host {', '.join(hosts)[:100]!r}"
        if len(origins) > 1 or (origins and origins[0].lower() not in [f"http://{host}" for host in self.hosts]):
            return f"pages of {', '.join(origins)[:100]!r} may not come in"
        return None

    def _refuse(self, status: HTTPStatus, words: str) -> Response:
        return _response(status, f"itc play: {words}\n".encode(), "text/plain; charset=utf-8", "default-src 'none'")


def _response(status: HTTPStatus, content: bytes, kind: str, policy: str) -> Response:
    headers = Headers(
        {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Content-Security-Policy": policy,
            "Connection": "close",
            **SAFE,
        }
    )
    return Response(status.value, status.phrase, headers, content)
