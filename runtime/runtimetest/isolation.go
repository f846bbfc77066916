// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent"
	sandpit "sandpit.dev/runtime"
)

// attempt is one try to get out of a sandbox, or at what is not its business.
//
// It is Python rather than shell, run in a process of its own by the program
// in prelude: an OSError becomes "REFUSED" and its name, a run to the end
// "DONE" or what the text assigned to result, a death by signal "KILLED" and
// its name, anything else "ERROR". So a missing tool or a slip in the attempt
// can never pass for a refusal.
type attempt struct {
	name string
	do   string
	// user and root are what must come of it as the sandbox's user and as its
	// root. Empty: the attempt makes no sense as that one.
	user, root string
	// only is the architecture that has such a thing, empty for all.
	only string
	// without returns why the kernel has not what refuses the attempt, empty where it has it; nil: each
	// kernel has it.
	without func(t *testing.T) string
}

// both is an attempt that must end alike for the user and the root.
func both(name, want, do string) attempt {
	return attempt{name: name, do: do, user: want, root: want}
}

// asUser is an attempt that is only the user's.
func asUser(name, want, do string) attempt { return attempt{name: name, do: do, user: want} }

// asRoot is an attempt that is only the root's.
func asRoot(name, want, do string) attempt { return attempt{name: name, do: do, root: want} }

// Most refusals.
const (
	done   = "DONE"
	eperm  = "REFUSED EPERM"
	eacces = "REFUSED EACCES"
	erofs  = "REFUSED EROFS"
	enoent = "REFUSED ENOENT"
	einval = "REFUSED EINVAL"
	enosys = "REFUSED ENOSYS"
	exdev  = "REFUSED EXDEV"

	eprotonosupport = "REFUSED EPROTONOSUPPORT"
)

// isolation lets hostile code loose in a sandbox, as its user and as its root.
func isolation(t *testing.T, s *suite) {
	tries := s.tries(t)
	facts := hostFacts(t, s)
	run := func(name string, test func(t *testing.T)) {
		if tries(name) {
			t.Run(name, test)
		}
	}

	run("TheHarnessTellsSuccessFromRefusalFromMistakes", func(t *testing.T) {
		b := s.create(t, s.spec())
		b.attempts(t, "sandbox", facts, controls)
		if withBox(t, s, b, facts)["root_pid"] != 0 {
			b.attempts(t, "root", facts, controls)
		}
	})
	run("ThroughTheAgent", func(t *testing.T) { throughAgent(t, s, facts) })
	run("RacesWithTheAgent", func(t *testing.T) { agentRaces(t, s) })
	run("RacesWithTheHost", func(t *testing.T) { hostRaces(t, s) })
	run("LinksUnderMasks", func(t *testing.T) { linksUnderMasks(t, s) })
	for _, g := range []struct {
		name     string
		attempts []attempt
	}{
		{"HostFiles", hostFiles},
		{"Devices", devices},
		{"KernelFiles", kernelFiles},
		{"SystemFiles", systemFiles},
		{"Mounts", mounts},
		{"StoreOfTheLayers", layerCalls},
		{"ProcessOne", processOne},
		{"OtherUser", otherUser},
		{"Credentials", credentials},
		{"Namespaces", namespaceCalls},
		{"KernelCalls", kernelCalls},
		{"Limits", rlimits},
		{"Sockets", sockets},
		{"Network", networkCalls},
		{"Terminals", terminals},
		{"KnownEscapes", escapes},
	} {
		run(g.name, func(t *testing.T) {
			b := s.create(t, s.spec())
			facts := withBox(t, s, b, facts)
			for _, user := range []string{"sandbox", "root"} {
				t.Run(user, func(t *testing.T) {
					if user == "root" {
						s.need(t, sandpit.RootUser)
					}
					b.attempts(t, user, facts, g.attempts)
				})
			}
			b.ok("echo the sandbox still works")
			if _, err := b.agent.Ping(t.Context()); err != nil {
				t.Errorf("after the attempts the agent does not answer: %v", err)
			}
		})
	}
}

// facts is what an attacker could know of the host, and what was put in place.
type facts map[string]any

// hostFacts puts targets on the host: a secret file, listeners on loopback and
// in the abstract and path name spaces of unix sockets, shared memory.
func hostFacts(t *testing.T, s *suite) facts {
	t.Helper()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("the host's"), 0o666); err != nil {
		t.Fatal(err)
	}
	handle, mountID, err := unix.NameToHandleAt(unix.AT_FDCWD, secret, 0)
	if err != nil {
		t.Fatalf("the file system of %s gives no file handles: %v", secret, err)
	}
	listen := func(network, address string) net.Listener {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	abstract := fmt.Sprintf("sandpit-host-%d-%d", os.Getpid(), time.Now().UnixNano())
	listen("unix", "@"+abstract)
	// t.TempDir is too long for a socket's name.
	short, err := os.MkdirTemp("", "sp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	socket := filepath.Join(short, "s")
	listen("unix", socket)

	const key = 0x5a4d0001
	shm, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|0o666)
	if err != nil {
		t.Fatalf("make shared memory on the host: %v", err)
	}
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(shm, unix.IPC_RMID, nil) })

	addresses := []string{} // a host may have none
	list, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() {
			addresses = append(addresses, ip.IP.String())
		}
	}
	return facts{
		"dir": dir, "secret": secret, "image": s.Image.Root,
		"handle": handle.Bytes(), "handle_type": handle.Type(), "mount_id": mountID,
		"tcp_port":  listen("tcp", "127.0.0.1:0").Addr().(*net.TCPAddr).Port,
		"tcp6_port": listen("tcp", ":0").Addr().(*net.TCPAddr).Port,
		"abstract":  abstract, "socket": socket, "shm_key": key,
		"addresses": addresses,
	}
}

// withBox adds what is prepared in each sandbox: files and a process of its
// root, and a process of its user.
func withBox(t *testing.T, s *suite, b *box, host facts) facts {
	t.Helper()
	f := facts{}
	for k, v := range host {
		f[k] = v
	}
	pid := func(o outcome) int {
		n, err := strconv.Atoi(strings.TrimSpace(o.Stdout))
		if err != nil {
			t.Fatalf("start a background process: %+v", o)
		}
		return n
	}
	f["user_pid"] = pid(b.run("SECRET=user sleep 600 >/dev/null 2>&1 & echo $!"))
	f["root_pid"] = 0
	caps, err := s.driver.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if reason, known := caps[sandpit.RootUser]; known && reason == nil {
		f["root_pid"] = pid(b.asRoot("SECRET=root sleep 600 >/dev/null 2>&1 & echo $!"))
		if o := b.asRoot(rootPrepares); o.ExitCode != 0 {
			t.Fatalf("prepare as root: %+v", o)
		}
	}
	return f
}

// rootPrepares leaves what a careless or hostile root of the sandbox may leave
// to its user: a system file of the user's own, and set-user-id programs.
const rootPrepares = `set -e
echo original > /usr/local/owned; chown 1000:1000 /usr/local/owned; chmod 666 /usr/local/owned
for d in /usr/local/bin /workspace /tmp; do
	cp "$(readlink -f "$(command -v id)")" $d/suid-id; chown 0:0 $d/suid-id; chmod 6755 $d/suid-id
done
mkdir -p /workspace/theirs; chown 0:0 /workspace/theirs; chmod 755 /workspace/theirs; echo root > /workspace/theirs/file
echo only root > /root/secret; chmod 600 /root/secret`

// unless is an attempt that not each kernel refuses, see attempt.without.
func unless(without func(t *testing.T) string, a attempt) attempt {
	a.without = without
	return a
}

// attempts runs those that are the user's, all in one process tree, and
// compares what came of each.
func (b *box) attempts(t *testing.T, user string, f facts, list []attempt) {
	t.Helper()
	want := func(a attempt) string {
		if user == "root" {
			return a.root
		}
		return a.user
	}
	list = slices.DeleteFunc(slices.Clone(list), func(a attempt) bool {
		return want(a) == "" || a.only != "" && a.only != runtime.GOARCH
	})
	texts := make([]string, len(list))
	for n, a := range list {
		texts[n] = a.do
	}
	got := b.python(t, user, f, texts)
	for n, a := range list {
		t.Run(a.name, func(t *testing.T) {
			if a.without != nil {
				if why := a.without(t); why != "" {
					t.Skip(why)
				}
			}
			want := want(a)
			if o, ok := b.otherwise[a.name]; ok {
				t.Logf("another outcome is fine here, %q: %s", o.Want, o.Why)
				want = o.Want
			}
			if !isOneOf(got[n], strings.Split(want, " or ")) {
				t.Errorf("as %s: got %q, want %q", user, got[n], want)
			}
		})
	}
}

// isOneOf reports whether an outcome is wanted. Of an attempt at several things, see each in the
// prelude, each outcome has to be: which of the wanted ones it is, the kernel's configuration decides.
func isOneOf(got string, wanted []string) bool {
	parts, mixed := strings.CutPrefix(got, "MIXED ")
	is := func(want string) bool {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*")
		return got == want || strings.Contains(want, "…") && regexp.MustCompile("(?s)^"+pattern+"$").MatchString(got)
	}
	if !mixed || slices.ContainsFunc(wanted, is) {
		return slices.ContainsFunc(wanted, is)
	}
	outcomes := regexp.MustCompile(`: (DONE|REFUSED \w+)(?:, |$)`).FindAllStringSubmatch(parts, -1)
	for _, o := range outcomes {
		if !slices.Contains(wanted, o[1]) {
			return false
		}
	}
	return len(outcomes) > 0
}

// python runs each text in a process of its own and gives their outcomes.
func (b *box) python(t *testing.T, user string, f facts, texts []string) []string {
	t.Helper()
	literal := func(v any) string {
		inner, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		outer, _ := json.Marshal(string(inner)) // a JSON string is a Python string
		return "json.loads(" + string(outer) + ")"
	}
	program := strings.NewReplacer("@FACTS@", literal(f), "@TEXTS@", literal(texts)).Replace(prelude)
	o, err := b.tryExec(t.Context(), agent.Command{Argv: []string{"python3", "-I", "-"}, Stdin: []byte(program), User: user})
	if err != nil {
		t.Fatalf("the agent did not survive the %d attempts as %s: %v", len(texts), user, err)
	}
	got := make([]string, len(texts))
	for n := range got {
		got[n] = "NOT RUN"
	}
	lines := bufio.NewScanner(strings.NewReader(o.Stdout))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l struct {
			N       int
			Outcome string
		}
		if json.Unmarshal(lines.Bytes(), &l) == nil && l.N < len(got) {
			got[l.N] = l.Outcome
		}
	}
	if o.ExitCode != 0 {
		t.Errorf("the attempts as %s ended with exit code %d (%s): %s", user, o.ExitCode, o.Cause, o.Stderr)
	}
	return got
}

// controls prove that the harness sees success, refusal, death and mistakes
// for what they are, with the calls that the attempts use.
var controls = []attempt{
	both("an attempt that succeeds is DONE", done, `open('/workspace/control', 'w').close()`),
	both("a value is given back", "4", `result = str(2 + 2)`),
	both("a raw call that succeeds is DONE", done, `assert call('getpid') == os.getpid()`),
	both("a raw call that fails has the right name", "REFUSED EBADF", `call('ioctl', -1, 0, 0)`),
	both("a file that is missing is ENOENT", enoent, `open('/workspace/missing')`),
	both("a missing tool is no refusal", "ERROR FileNotFoundError", `run(['no-such-tool'])`),
	both("a mistake is no refusal", "ERROR NameError", `open(no_such_name)`),
	both("a text that is no Python is no refusal", "ERROR SyntaxError", `open(`),
	both("a death by signal is KILLED", "KILLED SIGKILL", `os.kill(os.getpid(), signal.SIGKILL)`),
	both("outcomes that differ are told apart", "MIXED a: DONE, b: REFUSED EPERM",
		`def f(x):
    if x == 'b': raise PermissionError(errno.EPERM, x)
result = each(f, ['a', 'b'])`),
	both("outcomes that differ are one where each is wanted", "REFUSED EPERM or REFUSED ENOENT", `def f(x): raise OSError(x, 'no')
result = each(f, [errno.EPERM, errno.ENOENT])`),
	both("an empty list of targets is no refusal", "NOTHING TRIED", `result = each(open, [])`),
	both("a child of one's own can be traced", done, `pid = os.fork()
if pid == 0:
    time.sleep(30); os._exit(0)
call('ptrace', 0x4206, pid, 0, 0)
os.kill(pid, signal.SIGKILL)`),
	both("clone without flags works", done, `clone(0)`),
	both("clone3 without flags works", done, `clone3(0)`),
	both("a unix socket works", done, `a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'`),
	both("loopback works", done, `s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname(), 5)`),
	both("a question to netlink is answered", done, `assert netlink(18, 0x301, struct.pack('BBHiII', 0, 0, 0, 0, 0, 0))`),
	both("an attribute can be set", "b'v'", `open('/workspace/attr', 'w').close()
os.setxattr('/workspace/attr', 'user.a', b'v'); result = str(os.getxattr('/workspace/attr', 'user.a'))`),
	both("an ioctl works", done, `call('ioctl', os.open('/workspace', os.O_RDONLY), 0x80086601, ctypes.create_string_buffer(8))`),
}
