"""What can go wrong with a run in ways that a sentence explains."""


class TrainError(Exception):
    """The message says what is wrong with which run, checkpoint or file; commands show it instead of a traceback."""
