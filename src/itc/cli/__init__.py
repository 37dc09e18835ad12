"""The command line: `itc COMMAND`, one file per command."""

import sys

from itc.extras import MissingExtra


def main() -> None:
    try:
        from itc.extras import require

        require("tyro", "rich", extra="train", purpose="the command line")
        if sys.argv[1:2] == ["train"]:  # its options depend on the preset, so it reads them itself
            from itc.cli.train import train

            return train(sys.argv[2:])
        from itc.cli.app import app

        app.cli(prog="itc", description="World models made of tokens, whose dreams stay true.")
    except MissingExtra as missing:
        sys.exit(f"itc: {missing}")
    except KeyboardInterrupt:
        print("\nitc: stopped", file=sys.stderr)
        sys.exit(130)
