// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

// rlimits are ways to take more of the host than was given.
var rlimits = []attempt{
	both("raise a hard limit", eperm, `finite = []
for r in set(range(16)) - {resource.RLIMIT_CORE}:
    old = ctypes.create_string_buffer(16)
    call('prlimit64', 0, r, 0, old)
    if struct.unpack('QQ', old.raw)[1] < 1 << 63: finite.append((r, struct.unpack('QQ', old.raw)[1]))
result = each(lambda f: call('prlimit64', 0, f[0], ctypes.create_string_buffer(struct.pack('QQ', f[1] + 1, f[1] + 1)), 0), finite)`),
	both("raise the hard limit of core files", eperm+" or "+einval, `call('prlimit64', 0, 4, ctypes.create_string_buffer(struct.pack('QQ', 1, 1 << 30)), 0)`),
	// A limit of 1, and no other, keeps the kernel from starting the program
	// that the host's core_pattern may name, outside of every namespace.
	both("have crashes handled by the host", "(1, 1)", `result = str(resource.getrlimit(resource.RLIMIT_CORE))`),
	both("have crashes handled by the host after lowering the limit", "(1, 1)", `for f in (lambda: call('prlimit64', 0, 4, ctypes.create_string_buffer(struct.pack('QQ', 0, 0)), 0),
    lambda: raw(160 if os.uname().machine != 'aarch64' else 164, 4, ctypes.create_string_buffer(struct.pack('QQ', 0, 0)))):
    try: f()
    except OSError: pass
result = str(resource.getrlimit(resource.RLIMIT_CORE))`),
	both("have a child's crashes handled by the host", "(1, 1)", `pid = os.fork()
if pid == 0:
    signal.alarm(5); signal.pause()
try: call('prlimit64', pid, 4, ctypes.create_string_buffer(struct.pack('QQ', 0, 0)), 0)
except OSError: pass
result = str(resource.prlimit(pid, resource.RLIMIT_CORE))
os.kill(pid, signal.SIGKILL)`),
	both("leave a core file", "KILLED SIGSEGV", `os.chdir('/workspace')
pid = os.fork()
if pid == 0: os.kill(os.getpid(), signal.SIGSEGV)
_, s = os.waitpid(pid, 0)
assert not os.WCOREDUMP(s) and not glob.glob('/workspace/core*')
result = 'KILLED ' + signal.Signals(os.WTERMSIG(s)).name`),
	both("be spared by the out-of-memory killer", eacces, `result = each(lambda v: write('/proc/self/oom_score_adj', v), ['-1', '-1000'])`),
	both("be born spared by the out-of-memory killer", "NOT SPARED", `v = int(read('/proc/self/oom_score_adj'))
result = 'NOT SPARED' if v >= 0 else str(v)`),
	both("be born to end after the agent when the host's memory ends", "BEFORE", `own, agent = (int(read('/proc/%s/oom_score_adj' % p)) for p in ('self', '1'))
result = 'BEFORE' if own > agent else '%d is not above %d' % (own, agent)`),
	both("have more descriptors than given", eperm, `hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
call('prlimit64', 0, 7, ctypes.create_string_buffer(struct.pack('QQ', hard + 1, hard + 1)), 0)`),
	both("run before others", eacces, `os.setpriority(os.PRIO_PROCESS, 0, -1)`),
	both("run in real time", eperm, `result = each(lambda p: os.sched_setscheduler(0, p, os.sched_param(1)), [os.SCHED_FIFO, os.SCHED_RR])`),
	both("run by deadline", eperm, `call('sched_setattr', 0, ctypes.create_string_buffer(struct.pack('IIQiIQQQ', 48, 6, 0, 0, 0, 10000000, 20000000, 20000000)), 0)`),
	both("read and write disks in real time", eperm, `call('ioprio_set', 1, 0, 1 << 13)`),
	both("set one's own limits in the control groups", "NONE", `found = [d for d in glob.glob('/sys/fs/cgroup/**', recursive=True) + glob.glob('/cgroup/**') if os.access(d, os.W_OK) and os.path.isfile(d)]
result = ', '.join(found) or 'NONE'`),
	both("take a control file by an open directory", eperm+" or REFUSED EBADF", `result = each(lambda n: clone3(0x200000000, cgroup=n), range(3))`),
	both("grow a pipe past the host's bound", eperm, `r, w = os.pipe()
fcntl.fcntl(w, 1031, 1 << 28)`),
	both("take more huge or locked memory than given", "REFUSED ENOMEM or "+eperm+" or REFUSED EAGAIN", `m = mmap.mmap(-1, 1 << 27)
if libc.mlock(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(m))), ctypes.c_size_t(1 << 27)): raise OSError(ctypes.get_errno(), '')`),
}
