"""Say which of the agents' programs JAX is compiling, if that takes more than a moment."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Timer, get_ident

from jax import monitoring

# JAX reports it twice: as a scalar when compiling begins, as a duration when it has ended.
EVENT = "/jax/core/compile/backend_compile_duration"
FOUND = (
    "/jax/compilation_cache/cache_hits"  # reported in between if the program was not compiled but read from the cache
)
MOMENT = 3.0  # seconds: a program that is in the cache of compiled programs is ready sooner
PROGRAMS = {  # compiled functions of the agents, in words
    "rollout": "play in the environments",
    "play_updates": "the policy update",
    "grow_codebook": "the tokenizer update",
    "tokenizer_updates": "the tokenizer update",
    "encode_replay": "the encoding of the replay buffer",
    "world_model_updates": "the world model update",
    "imagination_updates": "the policy update in imagination",
}


@contextmanager
def announced(begun: Callable[[str], None], ended: Callable[[str], None]) -> Generator[None]:
    """While inside, `begun` gets a sentence when a program has been compiling for a moment, `ended` when it is done."""
    timers: dict[int, Timer] = {}  # by thread
    found: set[int] = set()  # threads whose program was in the cache
    ready: set[str] = set()  # functions compiled before
    said: set[int] = set()  # threads of which it was said that they compile

    def say(thread: int, words: str) -> None:
        said.add(thread)
        begun(words)

    def on_begin(event: str, value: float | int, **details: str | int) -> None:
        function = _function(details)
        if event == EVENT and function in PROGRAMS:
            # Compiled programs are kept, but another shape, such as that of more codes, is another program.
            note = "again, for other shapes" if function in ready else "(first time only)"
            words = f"compiling {PROGRAMS[function]} {note} …"
            timer = timers[get_ident()] = Timer(MOMENT, say, (get_ident(), words))
            timer.daemon = True
            timer.start()

    def on_end(event: str, duration_secs: float, **details: str | int) -> None:
        function = _function(details)
        if event == EVENT and function in PROGRAMS and (timer := timers.pop(get_ident(), None)):
            timer.cancel()
            ready.add(function)
            verb = "loaded" if get_ident() in found else "compiled"
            if get_ident() in said:
                ended(f"{verb} {PROGRAMS[function]} in {duration_secs:.0f} s")
            found.discard(get_ident())
            said.discard(get_ident())

    def on_found(event: str, **details: str | int) -> None:
        if event == FOUND and get_ident() in timers:
            found.add(get_ident())
            timers[get_ident()].cancel()

    monitoring.register_scalar_listener(on_begin)
    monitoring.register_event_listener(on_found)
    monitoring.register_event_duration_secs_listener(on_end)
    try:
        yield
    finally:
        monitoring.unregister_scalar_listener(on_begin)
        monitoring.unregister_event_listener(on_found)
        monitoring.unregister_event_duration_listener(on_end)


def _function(details: dict[str, str | int]) -> str:
    return str(details.get("fun_name", "")).removeprefix("jit(").removesuffix(")")
