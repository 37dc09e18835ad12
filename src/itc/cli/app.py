"""All commands, by name."""

from tyro.extras import SubcommandApp

from itc.cli.bench import bench
from itc.cli.demo import demo
from itc.cli.envs import envs
from itc.cli.world_model import world_model

app = SubcommandApp()
app.command(demo)
app.command(bench)
app.command(envs)
app.command(world_model)
