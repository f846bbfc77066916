// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

// processOne are attempts on process 1, the agent: it has more rights than any
// command, and must be neither read, nor written, nor led, nor stopped.
var processOne = []attempt{
	both("list process 1's root, working directory and descriptors", eacces, `result = each(os.listdir, ['/proc/1/root', '/proc/1/cwd', '/proc/1/fd', '/proc/1/fdinfo', '/proc/1/map_files'])`),
	both("open process 1's program", eacces, `result = each(lambda f: os.open('/proc/1/exe', f), [os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_PATH])`),
	both("see where process 1's program is", eacces, `os.readlink('/proc/1/exe')`),
	both("run process 1's program", eacces, `os.execv('/proc/1/exe', ['agent'])`),
	both("read process 1's memory and environment", eacces+" or "+eperm, `result = each(lambda p: open(p, 'rb').read(16), there('/proc/1/', 'environ maps mem smaps pagemap auxv numa_maps io stack'))`),
	both("read the memory of each of process 1's threads", eacces, `tasks = os.listdir('/proc/1/task')
assert '1' in tasks
result = each(lambda t: open('/proc/1/task/%s/mem' % t, 'rb').read(16), tasks)`),
	both("reach the roots of each of process 1's threads", eacces, `result = each(lambda t: os.listdir('/proc/1/task/%s/root/' % t), os.listdir('/proc/1/task'))`),
	both("use process 1's descriptors by number", eacces, `result = each(lambda n: os.open('/proc/1/fd/%d' % n, os.O_RDONLY), range(16))`),
	both("open process 1's files in /proc for writing", eacces, `result = each(lambda p: os.open(p, os.O_WRONLY), there('/proc/1/', '''mem comm oom_score_adj
    clear_refs coredump_filter uid_map gid_map projid_map setgroups timens_offsets'''))`),
	both("have process 1 killed first when the host's memory ends", eacces, `write('/proc/1/oom_score_adj', '1000')`),
	both("change process 1's ids, time, names and timers", "REFUSED", `def f(a):
    try: write('/proc/1/' + a[0], a[1])
    except OSError as e:
        if e.errno in (errno.EACCES, errno.EPERM, errno.EINVAL): raise PermissionError(errno.EPERM, '')
        raise
result = 'REFUSED' if each(f, [a for a in (('uid_map', '0 0 1'), ('gid_map', '0 0 1'), ('setgroups', 'deny'), ('timens_offsets', 'monotonic 100 0'), ('comm', 'x'),
    ('timerslack_ns', '1'), ('loginuid', '1'), ('attr/current', 'x'), ('attr/exec', 'x')) if os.path.exists('/proc/1/' + a[0])]) == 'REFUSED EPERM' else 'DONE'`),
	both("trace process 1 and each of its threads", eperm, `result = each(lambda a: call('ptrace', a[0], int(a[1]), 0, 0), [(r, t) for r in (16, 0x4206) for t in os.listdir('/proc/1/task')])`),
	both("read process 1's memory by call", eperm, `b = ctypes.create_string_buffer(16)
call('process_vm_readv', 1, iovec(ctypes.addressof(b), 16), 1, iovec(0x400000, 16), 1, 0)`),
	both("write process 1's memory by call", eperm, `b = ctypes.create_string_buffer(16)
call('process_vm_writev', 1, iovec(ctypes.addressof(b), 16), 1, iovec(0x400000, 16), 1, 0)`),
	both("take process 1's descriptors", eperm, `f = call('pidfd_open', 1, 0)
result = each(lambda n: call('pidfd_getfd', f, n, 0), range(16))`),
	both("compare kernel objects with process 1's", eperm, `call('kcmp', os.getpid(), 1, 1, 0, 0)`),
	both("find the list of process 1's locks", eperm, `head, size = ctypes.c_void_p(), ctypes.c_size_t()
if libc.syscall(ctypes.c_long(274 if os.uname().machine != 'aarch64' else 100), ctypes.c_long(1), ctypes.byref(head), ctypes.byref(size)): raise OSError(ctypes.get_errno(), '')`),
	both("open process 1's namespaces", eacces, `result = each(lambda n: os.open('/proc/1/ns/' + n, os.O_RDONLY), os.listdir('/proc/self/ns'))`),
	both("enter process 1's namespaces through a pidfd", eperm, `f = call('pidfd_open', 1, 0)
result = each(lambda n: call('setns', f, NEW[n]), NEW)`),
	both("set process 1's limits", eperm+" or "+einval, `def f(r):
    now = ctypes.create_string_buffer(16)
    call('prlimit64', 0, r, 0, now)
    call('prlimit64', 1, r, now, 0) # its own, or nearly: a command inherits them
result = each(f, range(16))`),
	both("slow process 1 down", eperm, `result = each(lambda f: f(), [lambda: os.setpriority(os.PRIO_PROCESS, 1, os.getpriority(os.PRIO_PROCESS, 1)), lambda: os.sched_setaffinity(1, os.sched_getaffinity(1)),
    lambda: os.sched_setscheduler(1, os.SCHED_OTHER, os.sched_param(0)), lambda: call('ioprio_set', 1, 1, 2 << 13 | 4)])`),
	{name: "send every signal to process 1", user: eperm, root: "ANSWERED", do: signals + `
if os.getuid(): result = each(lambda s: os.kill(1, s), everyone)
else:
    for s in everyone: os.kill(1, s)
    result = 'ANSWERED'`},
	{name: "send every signal to process 1 through a pidfd", user: eperm, root: "ANSWERED", do: signals + `
f = call('pidfd_open', 1, 0)
if os.getuid(): result = each(lambda s: call('pidfd_send_signal', f, s, 0, 0), everyone)
else:
    for s in everyone: call('pidfd_send_signal', f, s, 0, 0)
    result = 'ANSWERED'`},
	{name: "send every signal to process 1 as if the kernel did", user: eperm, root: "ANSWERED", do: signals + `
info = lambda s, code: ctypes.create_string_buffer(struct.pack('iiiiQ', s, 0, code, 0, 0), 128)
if os.getuid(): result = each(lambda s: call('rt_sigqueueinfo', 1, s, info(s, -1)), everyone)
else:
    for s in everyone:
        for code in (-1, -2, -4, -5, -60): call('rt_sigqueueinfo', 1, s, info(s, code))
    for code in (1, 128, -6): # a fault, the kernel, tgkill: not for one to say
        try: call('rt_sigqueueinfo', 1, 11, info(11, code)); raise Mistake('si_code %d is allowed' % code)
        except PermissionError: pass
    result = 'ANSWERED'`},
	{name: "send faults to each of process 1's threads", user: eperm, root: "ANSWERED", do: `
info = lambda s, code: ctypes.create_string_buffer(struct.pack('iiiiQ', s, 0, code, 0, 0), 128)
faults = [signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGABRT, signal.SIGQUIT, signal.SIGSYS, signal.SIGPROF]
targets = [(int(t), s) for t in os.listdir('/proc/1/task') for s in faults]
if os.getuid(): result = each(lambda a: call('rt_tgsigqueueinfo', 1, a[0], a[1], info(a[1], -1)), targets)
else:
    for a in targets: call('rt_tgsigqueueinfo', 1, a[0], a[1], info(a[1], -1))
    result = 'ANSWERED'`},
	both("name the agent's socket in the list of unix sockets", "NONE", `lines = read('/proc/net/unix').decode().splitlines()
assert 'Path' in lines[0]
result = ', '.join(l.split()[-1] for l in lines[1:] if len(l.split()) > 7) or 'NONE'`),
}

// signals defines everyone.
const signals = `everyone = [int(s) for s in signal.valid_signals()]
assert len(everyone) > 60`

// otherUser are attempts on processes of the sandbox's other user.
var otherUser = []attempt{
	asUser("signal root's processes", eperm, `result = each(lambda s: os.kill(FACTS['root_pid'], s), [0, signal.SIGCONT, signal.SIGTERM, signal.SIGKILL])`),
	asUser("signal root's processes through a pidfd", eperm, `call('pidfd_send_signal', os.pidfd_open(FACTS['root_pid']), 15, 0, 0)`),
	asUser("trace root's processes", eperm, `result = each(lambda r: call('ptrace', r, FACTS['root_pid'], 0, 0), [16, 0x4206])`),
	asUser("read root's processes", eacces, `result = each(lambda n: open('/proc/%d/%s' % (FACTS['root_pid'], n), 'rb').read(1), ['environ', 'maps', 'mem', 'auxv', 'io', 'syscall'])`),
	asUser("reach the roots and descriptors of root's processes", eacces, `result = each(lambda n: os.listdir('/proc/%d/%s/' % (FACTS['root_pid'], n)), ['root', 'cwd', 'fd', 'fdinfo', 'map_files'])`),
	asUser("write root's processes", eacces, `result = each(lambda n: os.open('/proc/%d/%s' % (FACTS['root_pid'], n), os.O_WRONLY), ['oom_score_adj', 'comm', 'clear_refs', 'mem', 'coredump_filter'])`),
	asUser("enter the namespaces of root's processes, whose root can be written", eacces, `result = each(lambda n: os.open('/proc/%d/ns/%s' % (FACTS['root_pid'], n), os.O_RDONLY), ['mnt', 'user', 'pid', 'net'])`),
	asUser("change the priority of root's processes", eperm, `os.setpriority(os.PRIO_PROCESS, FACTS['root_pid'], 19)`),
	asUser("change the limits of root's processes", eperm+" or "+einval, `call('prlimit64', FACTS['root_pid'], 7, ctypes.create_string_buffer(struct.pack('QQ', 1, 1)), 0)`),
	asUser("change the processors of root's processes", eperm, `os.sched_setaffinity(FACTS['root_pid'], {0})`),
	asUser("read the memory of root's processes by call", eperm, `b = ctypes.create_string_buffer(16)
call('process_vm_readv', FACTS['root_pid'], iovec(ctypes.addressof(b), 16), 1, iovec(0x400000, 16), 1, 0)`),
	asRoot("trace the user's processes", eperm, `result = each(lambda r: call('ptrace', r, FACTS['user_pid'], 0, 0), [16, 0x4206])`),
	asRoot("enter the namespaces of the user's processes", eacces, `result = each(lambda n: os.open('/proc/%d/ns/%s' % (FACTS['user_pid'], n), os.O_RDONLY), ['mnt', 'user', 'pid', 'net'])`),
	asRoot("signal the user's processes, which it may", done, `os.kill(FACTS['user_pid'], 0)`),
}

// credentials are ways to get more rights.
var credentials = []attempt{
	{name: "be born with a capability", user: "CapInh 0, CapPrm 0, CapEff 0, CapBnd 0, CapAmb 0", root: "CapInh 0, CapPrm 4fb, CapEff 4fb, CapBnd 4fb, CapAmb 0",
		do: status + `result = ', '.join('%s %x' % (n, int(status[n], 16)) for n in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'))`},
	both("be born without no_new_privs or a filter", "1 2", status+`result = status['NoNewPrivs'] + ' ' + status['Seccomp']`),
	{name: "be born with another identity or groups", user: "1000 1000 1000 1000, 1000 1000 1000 1000, NO ROOT GROUP", root: "0 0 0 0, 0 0 0 0, NO ROOT GROUP",
		do: status + `groups = [g for g in status['Groups'].split() if int(g) != os.getgid()]
result = '%s, %s, %s' % (' '.join(status['Uid'].split()), ' '.join(status['Gid'].split()), 'NO ROOT GROUP' if '0' not in groups and '65534' not in groups else groups)`},
	both("take off no_new_privs or the filter", einval, `result = each(lambda a: libc.prctl(*a) and (_ for _ in ()).throw(OSError(ctypes.get_errno(), '')), [(38, 0, 0, 0, 0), (22, 0, 0, 0, 0)])`),
	both("get a capability back", eperm, `h = ctypes.create_string_buffer(struct.pack('Ii', 0x20080522, 0))
result = each(lambda c: call('capset', h, ctypes.create_string_buffer(struct.pack('6I', 1 << c, 1 << c, 0, 0, 0, 0))), [2, 8, 12, 13, 18, 19, 21, 27])`),
	both("raise an ambient capability", eperm, `result = each(lambda c: libc.prctl(47, 2, c, 0, 0) and (_ for _ in ()).throw(OSError(ctypes.get_errno(), '')), [2, 12, 19, 21])`),
	asUser("become root", eperm, `result = each(lambda f: f(), [lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]), lambda: os.setresuid(0, 0, 0),
    lambda: os.setreuid(-1, 0), lambda: os.setresgid(0, 0, 0), lambda: os.setuid(1001), lambda: os.initgroups('root', 0)])`),
	asUser("have files opened as root", "1000 1000", `call('setfsuid', 0); call('setfsgid', 0)
result = '%d %d' % (call('setfsuid', 0xffffffff), call('setfsgid', 0xffffffff))`),
	asRoot("become a user that the sandbox has not", einval, `result = each(lambda f: f(), [lambda: os.setuid(65536), lambda: os.setgid(65536), lambda: os.setgroups([65536]),
    lambda: os.setresuid(1 << 20, 1 << 20, 1 << 20), lambda: os.setuid(0xfffffffe)])`),
	asRoot("become root again after giving it up", eperm, `os.setgroups([]); os.setresgid(1000, 1000, 1000); os.setresuid(1000, 1000, 1000)
os.setuid(0)`),
	asUser("gain by a set-user-id program of root's", "1000 1000", `seen = {run([p, '-u']) + ' ' + run([p, '-g']) for p in ('/usr/local/bin/suid-id', '/workspace/suid-id', '/tmp/suid-id')}
for p in ('/usr/local/bin/suid-id', '/workspace/suid-id', '/tmp/suid-id'): assert os.stat(p).st_mode & stat.S_ISUID and os.stat(p).st_uid == 0
result = ', '.join(seen)`),
	asUser("gain by the image's own set-user-id programs", "1000", `found = [p for p in ('/bin/su', '/usr/bin/su', '/usr/bin/passwd', '/usr/bin/sudo', '/usr/bin/newgrp', '/bin/mount') if os.path.exists(p)]
seen = set()
for p in found:
    child = subprocess.Popen([p, '--help'], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seen.add(os.stat('/proc/%d' % child.pid).st_uid)
    child.wait()
result = ', '.join(str(s) for s in seen or {1000})`),
	both("map other ids into the user namespace", eperm, `result = each(lambda n: write('/proc/self/' + n, '0 0 1'), ['uid_map', 'gid_map'])`),
	both("allow other groups in the user namespace", eacces, `write('/proc/self/setgroups', 'deny')`),
	both("have the host's ids", "0 65536", `f = read('/proc/self/uid_map').split()
assert len(f) == 3 and int(f[1]) >= 65536
result = '%s %s' % (f[0].decode(), f[2].decode())`),
	both("shift the clock that the sandbox sees", eperm+" or "+eacces, `write('/proc/self/timens_offsets', 'monotonic 1000 0')`),
}

const status = `status = dict(l.split(':\t', 1) for l in read('/proc/self/status').decode().splitlines() if ':\t' in l)
`

// namespaceCalls are ways to a namespace with more rights.
var namespaceCalls = []attempt{
	both("unshare namespaces of each kind", eperm, `result = each(lambda n: call('unshare', NEW[n]), NEW)`),
	both("unshare a user namespace with all others", eperm, `call('unshare', sum(NEW.values()))`),
	both("clone into namespaces of each kind", eperm, `result = each(lambda n: clone(NEW[n]), [n for n in NEW if n != 'time'])`),
	both("clone into a user namespace with all others", eperm, `clone(sum(v for n, v in NEW.items() if n != 'time'))`),
	both("clone into a user namespace by the new call", "REFUSED ENOSPC or "+eperm, `clone3(NEW['user'])`),
	both("clone into a user namespace with all others by the new call", "REFUSED ENOSPC or "+eperm, `clone3(sum(NEW.values()))`),
	both("clone into the other namespaces by the new call", eperm, `result = each(lambda n: clone3(NEW[n]), [n for n in NEW if n != 'user'])`),
	both("choose the number of a process", eperm, `want = ctypes.c_int(4000)
clone3(0, set_tid=ctypes.addressof(want), set_tid_size=1)`),
	both("enter one's own namespaces again", eperm, `result = each(lambda n: call('setns', os.open('/proc/self/ns/' + n, os.O_RDONLY), 0), os.listdir('/proc/self/ns'))`),
	both("allow user namespaces again", eacces+" or "+erofs, `write('/proc/sys/user/max_user_namespaces', '100')`),
	both("reach the parent of a namespace", eperm, `result = each(lambda a: fcntl.ioctl(os.open('/proc/self/ns/' + a[0], os.O_RDONLY), a[1]), [('pid', 0xb702), ('user', 0xb702), ('user', 0xb701)])`),
}
