// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

// prelude is the program that runs attempts, and what they may call. It prints
// one line for each. See attempt for what the outcomes mean.
const prelude = `
import ctypes, errno, fcntl, glob, json, mmap, os, resource, select, signal, socket, stat, struct, subprocess, sys, termios, time

INHERITED = []
for n in os.listdir('/proc/self/fd'):
    try: os.fstat(int(n)); INHERITED.append(int(n))
    except OSError: pass # the listing's own

FACTS = @FACTS@
TEXTS = @TEXTS@

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
AT = -100
NEW = {'mnt': 0x20000, 'cgroup': 0x2000000, 'uts': 0x4000000, 'ipc': 0x8000000, 'user': 0x10000000,
    'pid': 0x20000000, 'net': 0x40000000, 'time': 0x80}
# x86-64 and arm64; -1 where there is no such call.
NUMBERS = {
    'mount': (165, 40), 'umount2': (166, 39), 'pivot_root': (155, 41), 'open_tree': (428, 428),
    'open_tree_attr': (467, 467), 'move_mount': (429, 429), 'fsopen': (430, 430), 'fsconfig': (431, 431),
    'fsmount': (432, 432), 'fspick': (433, 433), 'mount_setattr': (442, 442), 'setns': (308, 268), 'unshare': (272, 97),
    'clone': (56, 220), 'clone3': (435, 435), 'chroot': (161, 51), 'open_by_handle_at': (304, 265), 'ptrace': (101, 117),
    'process_vm_readv': (310, 270), 'process_vm_writev': (311, 271), 'kcmp': (312, 272), 'pidfd_open': (434, 434),
    'pidfd_getfd': (438, 438), 'pidfd_send_signal': (424, 424), 'rt_sigqueueinfo': (129, 138), 'prlimit64': (302, 261),
    'keyctl': (250, 219), 'add_key': (248, 217), 'request_key': (249, 218), 'bpf': (321, 280),
    'perf_event_open': (298, 241), 'userfaultfd': (323, 282), 'io_uring_setup': (425, 425), 'io_uring_enter': (426, 426),
    'io_uring_register': (427, 427), 'kexec_load': (246, 104), 'kexec_file_load': (320, 294), 'reboot': (169, 142),
    'init_module': (175, 105), 'finit_module': (313, 273), 'delete_module': (176, 106), 'create_module': (174, -1),
    'swapon': (167, 224), 'swapoff': (168, 225), 'acct': (163, 89), 'iopl': (172, -1), 'ioperm': (173, -1),
    'settimeofday': (164, 170), 'clock_settime': (227, 112), 'clock_adjtime': (305, 266), 'adjtimex': (159, 171),
    'sethostname': (170, 161), 'setdomainname': (171, 162), 'quotactl': (179, 60), 'quotactl_fd': (443, 443),
    'syslog': (103, 116), 'nfsservctl': (180, 42), 'lookup_dcookie': (212, 18), 'personality': (135, 92),
    'vmsplice': (278, 75), 'fanotify_init': (300, 262), 'fanotify_mark': (301, 263), 'move_pages': (279, 239),
    'migrate_pages': (256, 238), 'vhangup': (153, 58), 'sched_setattr': (314, 274), 'ioprio_set': (251, 30),
    'capset': (126, 91), 'setreuid': (113, 145), 'setfsuid': (122, 151), 'setfsgid': (123, 152), 'socket': (41, 198),
    'socketpair': (53, 199), 'ioctl': (16, 29), 'mknodat': (259, 33), 'getpid': (39, 172), 'timer_create': (222, 107),
    'mq_open': (240, 180), 'shmget': (29, 194), 'msgget': (68, 186), 'semget': (64, 190), 'shmat': (30, 196),
    'msgrcv': (70, 188), 'inotify_init1': (294, 26), 'rt_tgsigqueueinfo': (297, 240),
}

def raw(number, *args):
    "A system call by number; ints are passed whole."
    r = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    if r == -1:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))
    return r

def call(name, *args):
    return raw(NUMBERS[name][os.uname().machine == 'aarch64'], *args)

def refusal(e):
    return 'REFUSED ' + errno.errorcode.get(e.errno, str(e.errno))

def each(f, items):
    "The one outcome that all items have, or all of them."
    got = {}
    for i in items:
        try:
            f(i); got[i] = 'DONE'
        except OSError as e:
            got[i] = refusal(e)
    if not got: return 'NOTHING TRIED'
    if len(set(got.values())) == 1: return list(got.values())[0]
    return 'MIXED ' + ', '.join('%s: %s' % kv for kv in got.items())

class Mistake(Exception): pass

def run(argv):
    "The output of a tool. That it is missing is a mistake, and no refusal."
    try:
        return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        raise Mistake('FileNotFoundError')

def write(path, text, flags=os.O_WRONLY):
    f = os.open(path, flags)
    try: os.write(f, text.encode())
    finally: os.close(f)

def there(where, names):
    "Those of the names that exist; this kernel may lack some."
    found = [where + n for n in names.split() if os.path.lexists(where + n)]
    if not found: raise Mistake('nothing of %s is in %s' % (names, where))
    return found

def read(path):
    with open(path, 'rb') as f: return f.read()

def clone(flags):
    "fork(2) with flags of clone."
    pid = call('clone', flags | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0: os._exit(0)
    os.waitpid(pid, 0)

def clone3(flags, **fields):
    a = dict(flags=flags, pidfd=0, child_tid=0, parent_tid=0, exit_signal=signal.SIGCHLD, stack=0, stack_size=0,
        tls=0, set_tid=0, set_tid_size=0, cgroup=0)
    a.update(fields)
    args = ctypes.create_string_buffer(struct.pack('11Q', *a.values()), 88)
    pid = call('clone3', args, 88)
    if pid == 0: os._exit(0)
    os.waitpid(pid, 0)

def iovec(address, size):
    return ctypes.create_string_buffer(struct.pack('QQ', address, size), 16)

def netlink(kind, flags, payload, family=0):
    "Sends one message and gives the answer; an error answer is an OSError."
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, family)
    s.settimeout(5)
    s.send(struct.pack('IHHII', 16 + len(payload), kind, flags, 1, 0) + payload)
    answer = s.recv(65536)
    if struct.unpack_from('H', answer, 4)[0] == 2:
        e = -struct.unpack_from('i', answer, 16)[0]
        if e: raise OSError(e, os.strerror(e))
    return answer

def attempt(text):
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(15)
        try:
            scope = dict(globals())
            exec(compile(text, 'attempt', 'exec'), scope)
            out = scope.get('result', 'DONE')
        except OSError as e:
            out = refusal(e)
        except Mistake as e:
            out = 'ERROR %s' % e
        except BaseException as e:
            out = 'ERROR ' + type(e).__name__
            print(text, repr(e), file=sys.stderr)
        os.write(w, out.encode()[:4000])
        os._exit(0)
    os.close(w)
    _, status = os.waitpid(pid, 0)
    os.set_blocking(r, False)
    try: out = os.read(r, 65536).decode()
    except BlockingIOError: out = ''
    os.close(r)
    if os.WIFSIGNALED(status): return 'KILLED ' + signal.Signals(os.WTERMSIG(status)).name
    return out or 'ERROR no outcome'

for n, text in enumerate(TEXTS):
    print(json.dumps({'N': n, 'Outcome': attempt(text)}), flush=True)
`
