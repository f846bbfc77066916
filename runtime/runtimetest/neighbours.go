// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"strings"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// neighbours has two sandboxes of one image side by side, and lets the second
// try to find, change or starve the first.
func neighbours(t *testing.T, s *suite) {
	tries := s.tries(t)
	run := func(name string, test func(t *testing.T)) {
		if tries(name) {
			t.Run(name, test)
		}
	}
	caps, err := s.driver.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	users := []string{"sandbox"}
	if reason, known := caps[runtime.RootUser]; known && reason == nil {
		users = append(users, "root")
	}

	run("NothingOfTheOtherCanBeReached", func(t *testing.T) {
		one, two := s.create(t, s.spec()), s.create(t, s.spec())
		one.holds(t, treasures, "sandbox")
		for _, user := range users {
			t.Run(user, func(t *testing.T) { two.attempts(t, user, nil, searches) })
		}
		one.attempts(t, "sandbox", nil, atHome)
	})
	run("TheSharedImageIsEachOnesOwn", func(t *testing.T) {
		one, two := s.create(t, s.spec()), s.create(t, s.spec())
		const sum = "sha256sum /etc/passwd /usr/bin/env /usr/bin/python3; ls /etc /usr/bin | sha256sum"
		before := one.ok(sum)
		for _, user := range users {
			t.Run(user, func(t *testing.T) { two.attempts(t, user, nil, imageWrites) })
		}
		if got := one.ok(sum); got != before {
			t.Errorf("the image was changed for the other sandbox: got\n%s\nwant\n%s", got, before)
		}
		if got := s.create(t, s.spec()).ok(sum); got != before {
			t.Errorf("the image was changed for a later sandbox: got\n%s\nwant\n%s", got, before)
		}
	})
	run("TheirIdsOnTheHostDiffer", func(t *testing.T) {
		seen := map[string]bool{}
		for range 3 {
			b := s.create(t, s.spec())
			for _, file := range []string{"uid_map", "gid_map"} {
				base := strings.Fields(b.ok("cat /proc/self/" + file))[1]
				if seen[file+base] {
					t.Errorf("two sandboxes have the same %s: %s", file, base)
				}
				seen[file+base] = true
			}
		}
	})
	run("KillingAllThatOneSeesKillsNothingOfTheOther", func(t *testing.T) {
		for _, user := range users {
			one, two := s.create(t, s.spec()), s.create(t, s.spec())
			one.ok("sleep 600 >/dev/null 2>&1 & until pgrep -x sleep >/dev/null; do :; done") // it is the shell until then
			two.exec(agent.Command{Shell: "sleep 600 & kill -9 -1", User: user})
			if got := one.ok("pgrep -c sleep"); got != "1" {
				t.Errorf("after kill -1 as %s in one sandbox, the other has %s processes left, want 1", user, got)
			}
			two.ok("echo the agent survives it")
		}
	})
	run("LocksAndWatchesOnDevicesAreEachOnesOwn", func(t *testing.T) {
		one, two := s.create(t, s.spec()), s.create(t, s.spec())
		one.holds(t, deviceWatch, "sandbox")
		for _, user := range users {
			t.Run(user, func(t *testing.T) { two.attempts(t, user, nil, deviceUses) })
		}
		one.attempts(t, "sandbox", nil, deviceSeen)
	})
	run("AStormOfChangesAndItsWatchesLoseTheOtherNothing", func(t *testing.T) { storms(t, s) })
	if tries("Floods") {
		socketFloods(t, s)
		uncountedFloods(t, s)
		crowdFloods(t, s)
	}
	for _, c := range exhaustions {
		run("ExhaustingOnesOwn"+c.name+"LeavesTheOthers", func(t *testing.T) {
			one, two := s.create(t, s.spec()), s.create(t, s.spec())
			use := func() string { return two.python(t, "sandbox", nil, []string{c.use})[0] }
			// What no sandbox may use at all, none can exhaust.
			before := use()
			if before != done && before != eperm && before != enosys {
				t.Fatalf("before: got %q, want it to work, or to be refused to everybody", before)
			}
			one.holds(t, c.exhaust, "sandbox")
			if got := use(); got != before {
				t.Errorf("while another sandbox has all that it can get: got %q, want %q", got, before)
			}
		})
	}
}

// holds runs Python that keeps what it takes until the sandbox ends, and waits
// until it printed that it has it.
func (b *box) holds(t *testing.T, text, user string) {
	t.Helper()
	program := strings.NewReplacer("@FACTS@", "{}", "@TEXTS@", "[]").Replace(prelude) + text + `
print('HELD', flush=True)
time.sleep(600)
`
	p, err := b.agent.Start(t.Context(), agent.Command{
		ID: sandbox.NewProcessID(), Argv: []string{"python3", "-I", "-"}, Stdin: []byte(program), User: user,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	var out strings.Builder
	for !strings.Contains(out.String(), "HELD\n") {
		f, err := p.Next(t.Context())
		if err != nil {
			t.Fatalf("hold: %v, result %+v, output %q", err, p.Result(), out.String())
		}
		out.Write(f.Data)
	}
}

// treasures is what the first sandbox has, each under a name that the second knows.
const treasures = `
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
for d in ('/workspace', '/tmp', '/home/sandbox', '/dev/shm', '/var/tmp', '/artifacts'): open(d + '/treasure', 'w').write('treasure')
keep = [socket.socket(socket.AF_UNIX) for _ in range(2)]
keep[0].bind('\0treasure'); keep[0].listen()
keep[1].bind('/tmp/treasure.sock'); keep[1].listen()
keep.append(socket.create_server(('127.0.0.1', 47110)))
keep.append(socket.create_server(('', 47111)))
keep.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)); keep[-1].bind(('127.0.0.1', 47112))
for kind in ('shmget', 'msgget', 'semget'):
    call(kind, 0x7ea5, *((4096, 0o1666) if kind == 'shmget' else (0o1666,) if kind == 'msgget' else (1, 0o1666)))
call('mq_open', b'treasure', os.O_CREAT | os.O_RDWR, 0o666, 0)
import pty
keep.append(pty.openpty())
libc.prctl(15, b'treasure', 0, 0, 0)
os.environ['TREASURE'] = '1'
`

// searches look for the treasures.
var searches = []attempt{
	both("see the other's files", enoent, `result = each(os.stat, [d + '/treasure' for d in ('/workspace', '/tmp', '/home/sandbox', '/dev/shm', '/var/tmp', '/artifacts')])`),
	both("see the other's processes", "NONE", `pids = [n for n in os.listdir('/proc') if n.isdigit()]
assert '1' in pids and str(os.getpid()) in pids
found = [p for p in pids if b'treasure' in read('/proc/%s/comm' % p)]
result = ', '.join(found) or 'NONE'`),
	both("signal processes by number", "REFUSED ESRCH", `mine = {int(n) for n in os.listdir('/proc') if n.isdigit()}
mine |= {int(t) for n in mine for t in (os.listdir('/proc/%d/task' % n) if os.path.exists('/proc/%d/task' % n) else [])}
result = each(lambda p: os.kill(p, 0), [p for p in range(2, 4000) if p not in mine and p != os.getpid()])`),
	both("connect to the other's abstract socket", "REFUSED ECONNREFUSED", `socket.socket(socket.AF_UNIX).connect('\0treasure')`),
	both("connect to the other's socket file", enoent, `socket.socket(socket.AF_UNIX).connect('/tmp/treasure.sock')`),
	both("connect to the other's ports", "REFUSED ECONNREFUSED", `result = each(lambda p: socket.create_connection(('127.0.0.1', p), 5), [47110, 47111])`),
	both("send to the other's ports", "REFUSED ECONNREFUSED", `s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(('127.0.0.1', 47112)); s.send(b'x'); s.settimeout(5); s.recv(1)`),
	both("take the other's ports for oneself", done, `s = [socket.create_server(('127.0.0.1', p)) for p in (47110, 47111)]`),
	both("attach the other's shared memory, semaphores and messages", enoent, `result = each(lambda k: call(k, 0x7ea5, 0, 0), ['shmget', 'semget', 'msgget'])`),
	both("list the other's shared memory, semaphores and messages", "NONE", `found = [n for n in ('shm', 'msg', 'sem') if len(read('/proc/sysvipc/' + n).decode().splitlines()) > 1]
result = ', '.join(found) or 'NONE'`),
	both("attach shared memory by its number", einval, `result = each(lambda n: call('shmat', n, 0, 0), range(64))`),
	both("open the other's message queue", enoent, `call('mq_open', b'treasure', os.O_RDWR, 0, 0)`),
	both("open the other's terminals", "[]", `result = str([n for n in os.listdir('/dev/pts') if n != 'ptmx'])`),
	both("open a terminal of the other's by its number", enoent, `result = each(lambda n: os.open('/dev/pts/%d' % n, os.O_RDWR), range(8))`),
	both("find the other's sockets in the lists", "NONE", `found = [l for n in ('unix', 'tcp', 'udp') for l in read('/proc/net/' + n).decode().splitlines() if 'treasure' in l or ':B806' in l or ':B807' in l]
result = ', '.join(found) or 'NONE'`),
	both("find the other in the lists of mounts", "1", `text = read('/proc/self/mountinfo').decode()
result = str(sum(1 for l in text.splitlines() if ' / / ' in l))`),
}

// atHome proves that the searches would have found the treasures.
var atHome = []attempt{
	asUser("its own files are there", done, `result = each(os.stat, [d + '/treasure' for d in ('/workspace', '/tmp', '/home/sandbox', '/dev/shm', '/var/tmp', '/artifacts')])`),
	asUser("its own process is seen", "1", `result = str(sum(b'treasure' in read(p) for p in glob.glob('/proc/[0-9]*/comm')))`),
	asUser("its own sockets answer", done, `socket.socket(socket.AF_UNIX).connect('\0treasure')
socket.socket(socket.AF_UNIX).connect('/tmp/treasure.sock')
for p in (47110, 47111): socket.create_connection(('127.0.0.1', p), 5)
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('127.0.0.1', 47112))`),
	asUser("its own shared memory and queues are there", done, `for k in ('shmget', 'semget', 'msgget'): call(k, 0x7ea5, 0, 0)
call('mq_open', b'treasure', os.O_RDWR, 0, 0)`),
	asUser("its own terminal is seen", "['0']", `result = str([n for n in os.listdir('/dev/pts') if n != 'ptmx'])`),
}

// imageWrites change what the image holds, as far as one may.
var imageWrites = []attempt{
	{name: "write, replace and remove the image's files", user: "REFUSED", root: done, do: `def f():
    with open('/etc/passwd', 'a') as f: f.write('evil:x:0:0::/:/bin/sh\n')
    with open('/usr/bin/env', 'r+b') as f: f.write(b'changed')
    os.rename('/usr/bin/python3', '/usr/bin/python3.moved'); os.rename('/usr/bin/python3.moved', '/usr/bin/python3')
    os.unlink('/etc/hostname') if os.path.exists('/etc/hostname') else None
    open('/etc/evil', 'w').close()
try: f()
except OSError as e: result = 'REFUSED' if e.errno in (errno.EACCES, errno.EROFS) else refusal(e)`},
	{name: "write the image's pages through a shared mapping", user: "REFUSED", root: done, do: `try:
    f = os.open('/usr/bin/env', os.O_RDWR)
    m = mmap.mmap(f, 4096, mmap.MAP_SHARED); m[0:4] = b'evil'; m.flush()
except OSError as e: result = 'REFUSED' if e.errno in (errno.EACCES, errno.EROFS) else refusal(e)`},
	both("write the image's pages through a mapping that was made before", eacces, `f = os.open('/usr/bin/id', os.O_RDONLY)
mmap.mmap(f, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)`),
}

// deviceWatch locks and watches what the host may share between sandboxes. The
// last watch, number 3, is on a mark that only the watcher's own sandbox has.
const deviceWatch = `
locked = [os.open('/dev/' + n, os.O_RDONLY) for n in ('null', 'zero', 'random', 'urandom', 'full')]
for f in locked: fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
open('/artifacts/mark', 'w').close()
watch = call('inotify_init1', 0)
for n in (b'/dev/full', b'/usr/bin/env', b'/artifacts/mark'):
    if libc.inotify_add_watch(watch, n, 0xfff) < 1: raise OSError(ctypes.get_errno(), n)
def follow():
    while True:
        events = os.read(watch, 65536)
        while events:
            number, _, _, size = struct.unpack_from('iIII', events)
            events = events[16 + size:]
            with open('/workspace/seen', 'a') as f: f.write('%d\n' % number)
if os.fork() == 0: follow()
`

// deviceUses are what a neighbour then does.
var deviceUses = []attempt{
	both("lock what the other has locked", done, `result = each(lambda n: fcntl.flock(os.open('/dev/' + n, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB), ['null', 'zero', 'random', 'urandom', 'full'])`),
	both("use what the other watches", done, `os.read(os.open('/dev/full', os.O_RDONLY), 1)
open('/usr/bin/env', 'rb').read()`),
}

// deviceSeen asks the watcher. Events keep their order, so that whatever the
// neighbour caused stands before the mark's.
var deviceSeen = []attempt{
	asUser("see what another does with a device", "ONLY THE MARK", `open('/artifacts/mark').close()
numbers = set()
while '3' not in numbers:
    time.sleep(0.01) # the attempt's own clock bounds it
    if os.path.exists('/workspace/seen'): numbers = set(open('/workspace/seen').read().split())
result = 'ONLY THE MARK' if numbers == {'3'} else 'SEEN ' + str(sorted(numbers))`),
}

// exhaustions take all that one sandbox can get of something that the kernel
// counts beyond the sandbox, and then use one of it in another.
var exhaustions = []struct{ name, exhaust, use string }{
	{"INotifyInstances", `
try:
    while True: call('inotify_init1', 0)
except OSError: pass
`, `os.close(call('inotify_init1', 0))`},
	{"QueuedSignals", `
me = os.getpid()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN + 1})
info = ctypes.create_string_buffer(struct.pack('iiiiQ', signal.SIGRTMIN + 1, 0, -1, 0, 0), 128)
try:
    while True: call('rt_sigqueueinfo', me, int(signal.SIGRTMIN) + 1, info)
except OSError: pass
`, `signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN + 1})
t = ctypes.c_int()
call('timer_create', 1, 0, ctypes.byref(t))`},
	{"MessageQueues", `
attr = ctypes.create_string_buffer(struct.pack('8q', 0, 10, 8192, 0, 0, 0, 0, 0))
n = 0
try:
    while True:
        call('mq_open', b'q%d' % n, os.O_CREAT | os.O_RDWR, 0o600, attr); n += 1
except OSError: pass
attr = ctypes.create_string_buffer(struct.pack('8q', 0, 1, 1, 0, 0, 0, 0, 0))
try:
    while n < 5000:
        call('mq_open', b'q%d' % n, os.O_CREAT | os.O_RDWR, 0o600, attr); n += 1
except OSError: pass
`, `call('mq_open', b'mine', os.O_CREAT | os.O_RDWR, 0o600, 0)
assert libc.syscall(ctypes.c_long(241 if os.uname().machine != 'aarch64' else 181), b'mine') == 0`},
	{"Terminals", `
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
try:
    while True: os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY)
except OSError: pass
`, `os.close(os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY))`},
	{"LockedMemory", lockShared + `
n = 0
for size in (1 << 20, 1 << 16, 4096):
    try:
        while n < 4000: lock(size); n += 1
    except OSError: pass
`, lockShared + `lock(65536)`},
	{"AsynchronousReads", `
context = ctypes.c_ulong
for size in (8192, 1024, 64, 1):
    try:
        while True: raw(206 if os.uname().machine != 'aarch64' else 0, size, ctypes.byref(context(0)))
    except OSError: pass
`, `raw(206 if os.uname().machine != 'aarch64' else 0, 1, ctypes.byref(ctypes.c_ulong(0)))`},
	{"Pipes", `
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
try:
    for _ in range(2000):
        r, w = os.pipe(); fcntl.fcntl(w, 1031, 1 << 20)
except OSError: pass
`, `r, w = os.pipe(); fcntl.fcntl(w, 1031, 1 << 19)`},
	{"WatchedEvents", `
e = select.epoll()
try:
    while True:
        r, w = os.pipe(); e.register(r)
except OSError: pass
`, `e = select.epoll(); r, w = os.pipe(); e.register(r)`},
}

// lockShared defines lock, which keeps shared memory from being paged out.
const lockShared = `
def lock(size):
    segment = call('shmget', 0, size, 0o600)
    raw(31 if os.uname().machine != 'aarch64' else 195, segment, 11, 0)
`
