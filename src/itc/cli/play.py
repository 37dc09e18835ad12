"""`itc play [WORLD|RUN]`: play inside a world model, in a browser."""

import errno
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from itc.cli.arguments import OwnEnvironments
from itc.cli.running import reading

if TYPE_CHECKING:
    from itc.play.door import Door

PORT = 8765
Worlds = Annotated[
    tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[WORLD|RUN …]", help_behavior_hint="")
]
OptionalFile = Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")]


def play(
    worlds: Worlds = (),
    host: Annotated[str, tyro.conf.arg(metavar="ADDRESS")] = "127.0.0.1",
    port: int = PORT,
    replay: OptionalFile = None,
    film: OptionalFile = None,
    browser: bool = True,
    own: OwnEnvironments = (),
) -> None:
    """Play inside a world model, in a browser.

    Without arguments, the page offers every world that comes with the package.
    Up to three panels show the same start and the same actions: decoders side by side, and the real game.

    Args:
        worlds: Worlds of the package, folders of worlds, or folders of training runs.
        host: Address to listen at. Other machines can connect only if it is not 127.0.0.1, and only with the token
            that the printed address carries.
        port: Port of page and socket; 0 for any that is free.
        replay: Recording to show, as the page saves it.
        film: With --replay, write it to this file (.gif, or .mp4 if ffmpeg is installed) instead of opening the page.
        browser: Open the page in a browser, where there is one.
    """
    from itc.extras import require

    require("websockets", extra="play", purpose="itc play")
    from itc.cli.compilation import keep_compiled
    from itc.play.library import Library
    from itc.play.recording import read_recording

    with reading("play", own):
        if not 0 <= port < 65536:
            raise ValueError(f"port must be in 0..65535, got {port}")
        recording = None if replay is None else read_recording(replay)
        library = Library(worlds or ((Path(recording.world),) if recording is not None else ()))
        if not library.paths:
            raise ValueError("no worlds come with this package; name the folder of a run or of a world")
        library.listed()  # raises if a folder is not what it should be
        keep_compiled()
        if film is not None:
            if recording is None:
                raise ValueError("--film needs --replay FILE")
            return _film(library, recording, film)
        _serve(library, host, port, recording, browser)


def _film(library, recording, film: Path) -> None:
    from itc.cli.console import working
    from itc.play.film import encoder_of, write_film
    from itc.play.session import Session

    encoder_of(film)  # raises before anything is replayed
    with working() as work:
        session = Session(library.open(library.opened or recording.world, work.step), seed=0)
        work.step("replaying", len(recording.actions))
        session.replay(recording)
        write_film(session, len(recording.actions) - recording.shown_from or 1, film)
    print(f"film: {film}")


def _serve(library, host: str, port: int, recording, browser: bool) -> None:
    import asyncio

    from itc.play.door import Door
    from itc.play.server import PlayServer

    door = Door(host, port)
    server = PlayServer(library, door, recording)

    def ready(_) -> None:
        announce(door)
        if browser:
            _open_browser(door.address)

    try:
        asyncio.run(server.run(ready))
    except KeyboardInterrupt:
        # At once: the model's thread may be compiling, and Python would wait for it.
        print("\nitc play: ended", flush=True)
        os._exit(130)
    except OSError as problem:
        where = f"{host}, port {port}"
        hint = "; is another one running? --port 0 takes any that is free" if problem.errno == errno.EADDRINUSE else ""
        raise ValueError(f"it cannot listen at {where}: {problem.strerror}{hint}") from problem


def announce(door: "Door") -> None:
    """Print where the page is."""
    print(f"play: {door.address}")
    if door.is_local:
        print(
            f"      from another machine: ssh -L {door.port}:127.0.0.1:{door.port} THIS-MACHINE, then the same address"
        )
    elif door.host in ("0.0.0.0", "::"):
        print("      from other machines only through ssh -L: for them, --host must be the name they call this one by")
    else:
        print("      whoever has this address can play; the token in it changes with every start")
    print("      Ctrl-C ends it", flush=True)


def _open_browser(address: str) -> None:
    """Where there is a screen."""
    import webbrowser

    if sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(address)
