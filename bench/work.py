# Copyright 2026 The sandpit authors
# SPDX-License-Identifier: Apache-2.0

"""Work that people have done in a sandbox, the same here and there.

    work.py prepare       makes what the kinds of work need, in the current directory
    work.py run KIND      does it once and prints the seconds that it took
    work.py kinds         prints the kinds that can be done with what is installed
    work.py lacks         prints the others

All that a kind reads and writes is below the current directory. What it made is checked
and removed after the clock was stopped.
"""

import hashlib, io, os, shutil, sqlite3, subprocess, sys, tarfile, time, zipfile

FILES = 2000  # of the archive and of the repository
MODULES = 300  # of the wheel
SUITES, CASES = 40, 25  # of the tests
UNITS = 8  # of the program that is compiled
SYNCS = 100  # of what is brought to the disk piece by piece


def content(n, size=3000):
    """Text that differs from file to file, the same on each machine."""
    block = hashlib.sha256(str(n).encode()).hexdigest()
    return (block * (size // len(block) + 1))[:size]


def quiet(*args):
    done = subprocess.run(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise SystemExit("%s ended with %d: %s" % (" ".join(args), done.returncode, done.stdout.decode(errors="replace")[-2000:]))


def answer(*args):
    return subprocess.run(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True).stdout.decode()


def count(top):
    return sum(len(files) for _, _, files in os.walk(top))


def prepare():
    os.makedirs("home", exist_ok=True)
    os.makedirs("tmp", exist_ok=True)
    with tarfile.open("tree.tar", "w") as t:
        for n in range(FILES):
            body = content(n).encode()
            info = tarfile.TarInfo("tree/d%d/f%d.txt" % (n % 50, n))
            info.size = len(body)
            t.addfile(info, io.BytesIO(body))
    quiet("tar", "-xf", "tree.tar")
    os.rename("tree", "kept")
    os.makedirs("units", exist_ok=True)
    for n in range(UNITS):
        with open("units/u%d.c" % n, "w") as f:
            f.write("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n")
            for i in range(60):
                f.write("int u%d_f%d(int x) { char b[64]; snprintf(b, sizeof b, \"%%d\", x * %d); return atoi(b) + (int)strlen(b); }\n" % (n, i, i + 1))
            if n == 0:
                f.write("int main(void) { return u0_f0(1) != 2; }\n")
    with tarfile.open("pack.tgz", "w:gz") as t:
        files = {"package.json": '{"name": "benched", "version": "1.0.0"}'}
        files.update(("lib/d%d/m%d.js" % (n % 20, n), "module.exports = '%s'\n" % content(n, 500)) for n in range(MODULES))
        for name, text in files.items():
            info = tarfile.TarInfo("package/" + name)
            info.size = len(text)
            t.addfile(info, io.BytesIO(text.encode()))
    if shutil.which("git"):
        who = ["-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "gc.auto=0"]
        quiet("git", "init", "-q", "repo")
        for commit in range(10):
            for n in range(commit, FILES, 10):
                os.makedirs("repo/d%d" % (n % 50), exist_ok=True)
                with open("repo/d%d/f%d.txt" % (n % 50, n), "w") as f:
                    f.write(content(n))
            quiet("git", "-C", "repo", "add", "-A")
            quiet("git", "-C", "repo", *who, "commit", "-q", "-m", "commit %d" % commit)
        quiet("git", "-C", "repo", "repack", "-adq")
    with zipfile.ZipFile("benched-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as z:
        record = []

        def add(name, text):
            z.writestr(name, text)
            record.append(name + ",,")

        add("benched/__init__.py", "")
        for n in range(MODULES):
            body = "".join("def f%d(x):\n    return {'%s': x, 'n': [x * %d for _ in range(3)]}\n\n" % (i, content(n * 100 + i, 20), i) for i in range(20))
            add("benched/m%d.py" % n, body)
        add("benched-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: benched\nVersion: 1.0\n")
        add("benched-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr("benched-1.0.dist-info/RECORD", "\n".join(record + ["benched-1.0.dist-info/RECORD,,"]) + "\n")
    os.makedirs("suite", exist_ok=True)
    for s in range(SUITES):
        with open("suite/test_s%d.py" % s, "w") as f:
            f.write("import json, os, tempfile, unittest\n\n\nclass Case(unittest.TestCase):\n")
            for c in range(CASES):
                f.write(
                    "    def test_%d(self):\n"
                    "        with tempfile.TemporaryDirectory() as d:\n"
                    "            p = os.path.join(d, 'x.json')\n"
                    "            with open(p, 'w') as f:\n"
                    "                json.dump({str(i): i for i in range(200)}, f)\n"
                    "            with open(p) as f:\n"
                    "                self.assertEqual(json.load(f)['%d'], %d)\n\n" % (c, c, c)
                )


def cpu():
    """Arithmetic and hashing, on one processor, without a system call to speak of."""
    block = bytes(1 << 20)
    h = hashlib.sha256()
    for _ in range(75):
        h.update(block)
    a = 0
    for i in range(1_500_000):
        a = (a * 31 + i) & 0xFFFFFFFF
    return lambda: a == 1154093488 or a


def sqlite():
    """60,000 rows into a database on disk, 1,000 to a transaction, each of which is brought
    to the disk; then an index, a question, a change and a delete."""
    db = sqlite3.connect("bench.db")
    db.execute("create table t (id integer primary key, name text, value real)")
    for start in range(0, 60_000, 1000):
        with db:
            db.executemany("insert into t values (?, ?, ?)", ((i, "name %d" % (i * 7919 % 60_000), i / 3) for i in range(start, start + 1000)))
    with db:
        db.execute("create index n on t (name)")
    found = db.execute("select count(*), sum(value) from t where name between 'name 2' and 'name 5'").fetchone()
    with db:
        db.execute("update t set value = value + 1 where id % 3 = 0")
    with db:
        db.execute("delete from t where id % 5 = 0")
    left = db.execute("select count(*) from t").fetchone()[0]
    db.close()

    def check():
        os.remove("bench.db")
        return left == 48_000 and found[0] > 0 or (left, found)

    return check


def git():
    """A clone of a repository of 2,000 files and ten commits, by git's own protocol."""
    quiet("git", "clone", "-q", "file://" + os.path.abspath("repo"), "clone")

    def check():
        n = count("clone") - count("clone/.git")
        shutil.rmtree("clone")
        return n == FILES or n

    return check


def pip():
    """pip install of a wheel of 300 modules, which it compiles, from a local file."""
    quiet(sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-cache-dir", "--disable-pip-version-check",
          "--no-warn-script-location", "--root-user-action=ignore", "--target", "site", "./benched-1.0-py3-none-any.whl")

    def check():
        n = count("site/benched")
        shutil.rmtree("site")
        return n == 2 * (MODULES + 1) or n

    return check


def untar():
    """tar -x of an archive of 2,000 files of 3 kB."""
    quiet("tar", "-xf", "tree.tar")

    def check():
        n = count("tree")
        shutil.rmtree("tree")
        return n == FILES or n

    return check


def tests():
    """A suite of 1,000 small tests, each with a directory and a file of its own: pytest where
    it is installed, else unittest."""
    if has("pytest"):
        quiet(sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "suite")
    else:
        quiet(sys.executable, "-B", "-m", "unittest", "discover", "-q", "-s", "suite")
    return lambda: True


def copy():
    """cp -r of 2,000 files."""
    quiet("cp", "-r", "kept", "copy")

    def check():
        n = count("copy")
        shutil.rmtree("copy")
        return n == FILES or n

    return check


def before_rm():
    quiet("cp", "-r", "kept", "doomed")
    os.sync()


def rm():
    """rm -r of 2,000 files, which were written to the disk."""
    quiet("rm", "-r", "doomed")
    return lambda: not os.path.exists("doomed")


def grep():
    """grep -r for what is in one of 2,000 files."""
    found = answer("grep", "-rlF", content(7)[:40], "kept")
    return lambda: found == "kept/d7/f7.txt\n" or found


def status():
    """git status in a work tree of 2,000 files."""
    changed = answer("git", "-C", "repo", "status", "--porcelain")
    return lambda: changed == "" or changed


def compile():
    """cc of a program of eight files."""
    quiet("cc", "-O1", "-o", "program", *("units/u%d.c" % n for n in range(UNITS)))

    def check():
        quiet("./program")
        os.remove("program")
        return True

    return check


def npm():
    """npm install of a package of 300 files, from a local archive."""
    os.makedirs("app", exist_ok=True)
    quiet("npm", "install", "--prefix", "app", "--cache", "tmp/npm", "--offline", "--no-audit", "--no-fund", os.path.abspath("pack.tgz"))

    def check():
        n = count("app/node_modules/benched/lib")
        shutil.rmtree("app")
        shutil.rmtree("tmp/npm")
        return n == MODULES or n

    return check


def transactions(mode):
    db = sqlite3.connect("bench.db")
    db.execute("pragma journal_mode = " + mode)
    db.execute("create table t (id integer primary key, name text)")
    for n in range(SYNCS):
        with db:
            db.execute("insert into t values (?, ?)", (n, "name"))
    left = db.execute("select count(*) from t").fetchone()[0]
    db.close()

    def check():
        os.remove("bench.db")
        return left == SYNCS or left

    return check


def commits():
    """100 commits of SQLite with its default journal, each of which is brought to the disk."""
    return transactions("delete")


def wal():
    """The same with a write-ahead log."""
    return transactions("wal")


def fsync():
    """100 times 4 KiB more in a file, and an fsync."""
    block = bytes(4096)
    with open("synced", "wb", buffering=0) as f:
        for _ in range(SYNCS):
            f.write(block)
            os.fsync(f.fileno())

    def check():
        n = os.path.getsize("synced")
        os.remove("synced")
        return n == SYNCS * len(block) or n

    return check


def has(module):
    import importlib.util

    return importlib.util.find_spec(module) is not None


KINDS = {
    "cpu": cpu, "sqlite": sqlite, "git": git, "pip": pip, "untar": untar, "tests": tests,
    "copy": copy, "rm": rm, "grep": grep, "status": status, "compile": compile, "npm": npm,
    "commits": commits, "wal": wal, "fsync": fsync,
}

BEFORE = {"rm": before_rm}  # what a kind needs each time, outside of the clock


def kinds():
    need = {"git": shutil.which("git"), "pip": has("pip"), "untar": shutil.which("tar")}
    need.update(status=need["git"], compile=shutil.which("cc"), npm=shutil.which("npm"))
    return [k for k in KINDS if need.get(k, True)]


def main(args):
    if args == ["prepare"]:
        prepare()
    elif args == ["kinds"]:
        print(" ".join(kinds()))
    elif args == ["lacks"]:
        print(" ".join(k for k in KINDS if k not in kinds()))
    elif len(args) == 2 and args[0] == "run":
        BEFORE.get(args[1], lambda: None)()
        began = time.perf_counter()
        check = KINDS[args[1]]()
        took = time.perf_counter() - began
        right = check()
        if right is not True:
            raise SystemExit("%s made something else than it should: %r" % (args[1], right))
        print("%.9f" % took)
    else:
        raise SystemExit(__doc__)


main(sys.argv[1:])
