# Copyright 2026 The sandpit authors
# SPDX-License-Identifier: Apache-2.0
"""Looks at /workspace, or does random steps in it: the suite's part inside.

scan            prints what each name is
steps SEED N    does N steps, and prints the names that they were about

No file gets a second name: which of them is told is not certain.
"""
import hashlib, json, mmap, os, random, shutil, stat, subprocess, sys

TOP = b"/workspace"


def text(name):
    """The name as the contract tells it, where it may be no UTF-8."""
    s = name.decode("utf-8", "surrogateescape")
    if not any(0xDC80 <= ord(c) <= 0xDCFF for c in s):
        return s
    return "".join("\\x%02x" % (ord(c) - 0xDC00) if 0xDC80 <= ord(c) <= 0xDCFF else "\\\\" if c == "\\" else c for c in s)


def scan():
    out = {}
    for d, dirs, files in os.walk(TOP):
        for n in dirs + files:
            p = os.path.join(d, n)
            st = os.lstat(p)
            what = [st.st_mode, st.st_uid]
            if not stat.S_ISDIR(st.st_mode):
                what += [st.st_ino, st.st_size, st.st_mtime_ns]
            if stat.S_ISREG(st.st_mode):
                with open(p, "rb") as f:
                    what.append(hashlib.sha256(f.read()).hexdigest())
            out[text(p[len(TOP) + 1:])] = json.dumps(what)
    return out


class Steps:
    NAMES = [b"a", b"b", b"c", b"line\nbreak", b"no\xfftext\\", "ä".encode()]
    OPS = ("write write append truncate mapped chmod utime remove rmtree mkdir mkdir rename rename rename "
           "symlink fifo copy sed rewrite detached brief").split()

    def __init__(self, seed):
        self.r, self.touched = random.Random(seed), set()

    def pick(self):
        p = os.path.join(TOP, *[self.r.choice(self.NAMES) for _ in range(self.r.randint(1, 3))])
        self.touched.add(text(p[len(TOP) + 1:]))
        return p

    def step(self):
        op, p = self.r.choice(self.OPS), self.pick()
        if op in ("write", "append", "detached", "mapped", "rmtree") and os.path.lexists(p) and stat.S_ISFIFO(os.lstat(p).st_mode):
            return  # it would wait for the other end
        getattr(self, op)(p)

    def write(self, p):
        with open(p, "wb") as f:
            f.write(self.r.randbytes(5))

    def append(self, p):
        f = os.open(p, os.O_WRONLY | os.O_APPEND)
        os.write(f, b"x")
        os.close(f)

    def truncate(self, p):
        os.truncate(p, self.r.randint(0, 9))

    def mapped(self, p):
        with open(p, "r+b") as f:
            if os.fstat(f.fileno()).st_size >= 3:
                m = mmap.mmap(f.fileno(), 3)
                m[0:3] = self.r.randbytes(3)
                m.close()

    def chmod(self, p):
        os.chmod(p, stat.S_IMODE(os.stat(p).st_mode) ^ 0o010)

    def utime(self, p):
        os.utime(p, ns=(1, self.r.randint(1, 1 << 60)), follow_symlinks=False)

    def remove(self, p):
        os.unlink(p)

    def rmtree(self, p):
        shutil.rmtree(p)

    def mkdir(self, p):
        os.makedirs(p)

    def rename(self, p):
        os.rename(p, self.pick())

    def symlink(self, p):
        os.symlink(b"/etc/passwd", p)

    def fifo(self, p):
        os.mkfifo(p)

    def copy(self, p):
        q = self.pick()
        if not stat.S_ISDIR(os.lstat(p).st_mode):  # or the tree would grow without bound
            subprocess.run([b"cp", b"-a", b"-T", b"--remove-destination", p, q], stderr=subprocess.DEVNULL)

    def sed(self, p):
        if stat.S_ISREG(os.lstat(p).st_mode):
            subprocess.run([b"sed", b"-i", b"1s/^/x/", p], stderr=subprocess.DEVNULL)

    def rewrite(self, p):
        with open(p + b".new", "wb") as f:
            f.write(self.r.randbytes(3))
        try:
            os.rename(p + b".new", p)
        except OSError:
            os.unlink(p + b".new")
            raise

    def detached(self, p):
        subprocess.run([b"sh", b"-c", b'echo detached >> "$0"', p], start_new_session=True, stderr=subprocess.DEVNULL)

    def brief(self, p):
        if not os.path.lexists(p):
            self.write(p)
            os.unlink(p)


if sys.argv[1] == "scan":
    print(json.dumps(scan()))
else:
    s = Steps(int(sys.argv[2]))
    for _ in range(int(sys.argv[3])):
        try:
            s.step()
        except OSError:
            pass  # the kernel refused it: nothing changed
    print(json.dumps(sorted(s.touched)))
