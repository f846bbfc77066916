# Notes what comes of each public method of an SDK while a script uses it: "ok", or the name of what it raised.
import functools
import inspect
import json

outcomes = {}  # {"Class.method": ["ok", "XError"]}, with nothing for a method that was not called


def note(key, error=None):
    outcome = "ok" if error is None else type(error).__name__
    if outcome not in outcomes[key]:
        outcomes[key].append(outcome)


def watched(key, do):
    """Does what do does, and notes how it ends: also of what is awaited, and of what is iterated over."""
    async def awaits(coroutine):
        try:
            got = await coroutine
        except Exception as e:
            note(key, e)
            raise
        note(key)
        return got

    def iterates(things):
        try:
            yield from things
        except Exception as e:
            note(key, e)
            raise
        note(key)

    async def aiterates(things):
        try:
            async for thing in things:
                yield thing
        except Exception as e:
            note(key, e)
            raise
        note(key)

    @functools.wraps(do)
    def does(*args, **kwargs):
        try:
            got = do(*args, **kwargs)
        except Exception as e:
            note(key, e)
            raise
        if inspect.iscoroutine(got):
            return awaits(got)
        if inspect.isasyncgen(got):
            return aiterates(got)
        if inspect.isgenerator(got):
            return iterates(got)
        note(key)
        return got
    return does


def watch(name, cls, package):
    """Watches the public methods of a class, and of those that it is made of in the package, as name.method."""
    for base in cls.__mro__:
        for attribute, value in list(vars(base).items()) if base.__module__.split(".")[0] == package else []:
            if attribute.startswith(("_", "model_")) or f"{name}.{attribute}" in outcomes:
                continue
            kind = type(value) if isinstance(value, (classmethod, staticmethod)) else None
            do = value.__func__ if kind else value
            if inspect.isfunction(do):
                key = f"{name}.{attribute}"
                outcomes[key] = []
                setattr(base, attribute, kind(watched(key, do)) if kind else watched(key, do))


def write(path):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(outcomes, f, indent=1)
