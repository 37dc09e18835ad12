"""`itc push WORLD OWNER/NAME` and `itc pull OWNER/NAME FOLDER --revision COMMIT`: exchange worlds."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from itc.cli.arguments import Run
from itc.cli.running import reading

Repository = Annotated[str, Positional, arg(metavar="OWNER/NAME")]
NewFolder = Annotated[Path, Positional, arg(metavar="FOLDER")]


def push(world: Run, repository: Repository) -> None:
    """Send a world to a Hugging Face repository.

    Args:
        world: A world: its folder, or its name in the package.
        repository: Repository of the hub; made if it is not there.
    """
    from itc.evaluate.hub import push as push_world
    from itc.worlds import find

    with reading("push"):
        revision = push_world(find(world), repository)
    print(f"pushed. `itc pull {repository} FOLDER --revision {revision}` fetches exactly this.")


def pull(repository: Repository, folder: NewFolder, revision: Annotated[str, arg(metavar="COMMIT")]) -> None:
    """Fetch a world from a Hugging Face repository at a commit.

    Args:
        repository: Repository of the hub.
        folder: New folder for the world.
        revision: The commit, in 40 digits: what is fetched is what was meant.
    """
    from itc.evaluate.hub import pull as pull_world

    with reading("pull"):
        pull_world(repository, revision, folder)
    print(f"world: {folder}")
