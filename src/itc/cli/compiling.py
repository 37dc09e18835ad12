"""Say which program JAX is compiling, if that takes more than a moment."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Timer, get_ident

from jax import monitoring

MOMENT = 1.0  # seconds: small programs, and those found in the cache of compiled programs, take less
# JAX reports each of these twice: as a scalar when it begins, as a duration when it has ended.
VERBS = {
    "/jax/core/compile/jaxpr_trace_duration": "tracing",  # running the Python code once, in every process
    "/jax/core/compile/backend_compile_duration": "compiling",
}
PROGRAMS = {  # compiled functions of the agents, in words
    "rollout": "play in the environments",
    "_learn_from_play": "the policy update",
    "learn_tokenizer": "the tokenizer update",
    "updated_tokenizer": "the tokenizer update",
    "encode_replay": "the encoding of the replay buffer",
    "_updated_world_model": "the world model update",
    "updated_world_model": "the world model update",
    "_improved_in_imagination": "the policy update in imagination",
    "improved_in_imagination": "the policy update in imagination",
}


@contextmanager
def announced(say: Callable[[str], None]) -> Generator[None]:
    """While inside, `say` gets a sentence when a program has been compiling for a moment, and one when it is ready."""
    listener = _Listener(say)
    monitoring.register_scalar_listener(listener.on_begin)
    monitoring.register_event_duration_secs_listener(listener.on_end)
    try:
        yield
    finally:
        monitoring.unregister_scalar_listener(listener.on_begin)
        monitoring.unregister_event_duration_listener(listener.on_end)


class _Listener:
    def __init__(self, say: Callable[[str], None]):
        self.say = say
        self.timers: dict[int, list[Timer]] = {}  # by thread: of what it is doing, and of what that is part of
        self.compiled: set[str] = set()  # functions that took more than a moment to compile

    def on_begin(self, event: str, value: float | int, **details: str | int) -> None:
        if event in VERBS:
            timer = Timer(MOMENT, self._announce, (VERBS[event], _function(details)))
            timer.daemon = True
            begun = self.timers.setdefault(get_ident(), [])
            if not begun:  # tracing a function traces those that it calls; one sentence is enough
                timer.start()
            begun.append(timer)

    def on_end(self, event: str, duration_secs: float, **details: str | int) -> None:
        begun = self.timers.get(get_ident())
        if event in VERBS and begun:
            timer = begun.pop()
            timer.cancel()
            if VERBS[event] == "compiling" and duration_secs > MOMENT and not begun:
                self.compiled.add(_function(details))
                self.say(f"compiled {_words(_function(details))} in {duration_secs:.0f} s; running it")

    def _announce(self, verb: str, function: str) -> None:
        note = " (first time only)" if verb == "compiling" else ""
        if function in self.compiled:
            note = " again, for other shapes"
        self.say(f"{verb} {_words(function)}{note} …")


def _function(details: dict[str, str | int]) -> str:
    return str(details.get("fun_name", "")).removeprefix("jit(").removesuffix(")")


def _words(function: str) -> str:
    return PROGRAMS.get(function, function.strip("_").replace("_", " "))
