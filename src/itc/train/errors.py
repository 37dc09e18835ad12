"""Errors of training runs that one sentence explains."""


class TrainError(Exception):
    """The message says what is wrong with which run, checkpoint or file; commands show it instead of a traceback."""
