# Edits files so that their size and their time in seconds stay, and prints what runs.
import os
import subprocess
import sys
import time


def output(*argv):
    done = subprocess.run(argv, capture_output=True, text=True)
    return (done.stdout + done.stderr).strip()


def edited(path, before, after, run):
    """What run gives before and after an edit. The time is ahead, so that a slow machine runs
    the file while that is recent, too."""
    recent = int(time.time()) + 60
    answers = []
    for text in before, after:
        with open(path, "w") as f:
            f.write(text)
        os.utime(path, (recent, recent))
        answers.append(run())
    return answers


def imported():
    return output(python, "-c", "import module; print(module.X)")


def compiled():
    return output(python, "-m", "py_compile", "module.py") or imported()


def tested():
    return output(python, "-m", "pytest", "-q", "test_one.py").splitlines()[-1].split(" in ")[0]


def test(n):
    return "def test_one():\n    assert 1 == %d\n" % n


for python in sys.argv[1:]:
    print(*edited("module.py", "X = 1\n", "X = 2\n", imported))
    print(*edited("module.py", "X = 1\n", "X = 2\n", compiled))
    print(*edited("test_one.py", test(2), test(1), tested))

# What was edited a while ago is cached, and the cache is used.
past = int(time.time()) - 60
os.utime("module.py", (past, past))
imported()
cache = "__pycache__/module.cpython-311.pyc"
written = os.stat(cache).st_mtime_ns
imported()
print("cached", written == os.stat(cache).st_mtime_ns)
