"""As much of Ray as the launcher uses, in threads of this process: tasks, nodes, cancelling."""

import threading
import types

NODE = {"Alive": True, "NodeID": "1", "NodeManagerHostname": "one", "Resources": {"CPU": 2.0}}


class RayError(Exception):
    """As in `ray.exceptions`: an error of a task has a cause."""

    cause: Exception | None = None


class Result:
    """What a task will return."""

    def __init__(self):
        self.value: object = None
        self.ended = threading.Event()


class FakeRay(types.ModuleType):
    """Stands in for the module `ray`; `calls` are what it was told, `play` is what tasks do instead of running."""

    def __init__(self, play=None):
        super().__init__("ray")
        self.calls, self.play, self.options, self.most = [], play, {}, 0
        self.alive = [NODE]
        self.running: set[Result] = set()
        self.exceptions = types.ModuleType("ray.exceptions")
        self.exceptions.RayError = RayError
        self.util = types.ModuleType("ray.util.scheduling_strategies")
        self.util.NodeAffinitySchedulingStrategy = lambda node, soft: (node, soft)

    def modules(self):
        return {"ray": self, "ray.exceptions": self.exceptions, "ray.util": types.ModuleType("ray.util"),
                "ray.util.scheduling_strategies": self.util}  # fmt: skip

    def init(self, **options):
        self.calls.append(("init", options["address"]))

    def shutdown(self):
        self.calls.append(("shutdown",))

    def nodes(self):
        return self.alive

    def remote(self, **options):
        def decorate(function):
            self.options[function.__name__] = options
            return types.SimpleNamespace(remote=lambda *arguments: self._start(function, arguments))

        return decorate

    def _start(self, function, arguments):
        result = Result()
        work = function if self.play is None or function.__name__ != "_run_on_node" else self.play
        if function.__name__ == "_run_on_node":
            self.running.add(result)
            self.most = max(self.most, len(self.running))

        def run():
            try:
                result.value = work(*arguments)
            except Exception as problem:
                error = RayError("traceback\nof many lines")
                error.cause = problem
                result.value = error
            result.ended.set()

        threading.Thread(target=run, daemon=True).start()
        return result

    def wait(self, results, num_returns=1, timeout=None):
        if num_returns > 1 or timeout > 10:
            self.calls.append(("waits for", num_returns))
            return results, []
        results[0].ended.wait(timeout / 10)
        ended = [result for result in results if result.ended.is_set()]
        self.running -= set(ended)
        return ended[:1], [result for result in results if result not in ended[:1]]

    def get(self, result):
        result.ended.wait(30)
        if isinstance(result.value, Exception):
            raise result.value
        return result.value

    def cancel(self, result, force):
        assert not force
        self.calls.append(("cancel",))
