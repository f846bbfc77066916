# What scripts that are clients check: each check prints ok and its name, or FAILED with what came instead. Call end last.
import json
import sys

failed = False


def check(name, got, want):
    if got == want:
        print("ok", name)
    else:
        fail(name, "got", repr(got), "want", repr(want))


def fail(*words):
    global failed
    failed = True
    print("FAILED", *words)


def raises(name, kind, do, *words):
    try:
        got = do()
    except Exception as x:
        raised(name, kind, x, words)
    else:
        fail(name, "raised nothing, and gave", repr(got))


async def araises(name, kind, awaited, *words):
    try:
        got = await awaited
    except Exception as x:
        raised(name, kind, x, words)
    else:
        fail(name, "raised nothing, and gave", repr(got))


def raised(name, kind, x, words):
    if type(x) is kind and all(w in str(x) for w in words):
        print("ok", name)
    else:
        fail(name, "raised", type(x), x)


def look(**there):
    """Has the test look for itself at what is there, and returns when it has."""
    print("look", json.dumps(there), flush=True)
    sys.stdin.readline()


def end():
    sys.exit(failed)
