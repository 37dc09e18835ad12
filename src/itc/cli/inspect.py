"""`itc inspect RUN`: what a run is and how far it got."""

from itc.cli.arguments import OwnEnvironments, Run
from itc.cli.running import reading


def inspect(run: Run, own: OwnEnvironments = ()) -> None:
    """Show what a run is and how far it got.

    Prints preset, iteration, interactions, device, versions and a digest of the training state.

    Args:
        run: Folder of a training run, or a world.
    """
    from itc.train.run_folder import VERSIONS, RunFolder
    from itc.train.runs import load
    from itc.train.state import digest
    from itc.train.world_folder import read_notes
    from itc.worlds import find

    with reading("inspect", own):
        loaded = load(find(run))
        versions = RunFolder(loaded.path).read_versions() or {"versions": f"not known, {VERSIONS} is missing"}
    iteration, part = int(loaded.state.iteration), int(loaded.state.part)
    inside = f", and {part} parts of the next" if part else ""
    print(f"preset: {loaded.preset}")
    print(f"environment: {loaded.config.env}")
    print(f"decoder: {loaded.config.decoder}")
    print(f"seed: {loaded.seed}")
    print(f"iteration: {iteration} of {loaded.config.iterations}{inside}")
    print(f"interactions: {loaded.interactions}")
    for name, version in versions.items():
        print(f"{name}: {version}")
    if loaded.starts is not None:
        return print(f"windows: {len(loaded.starts.tokens)}\ndigest: {read_notes(loaded.path).identity}")
    print(f"digest: {digest(loaded.state)}")
