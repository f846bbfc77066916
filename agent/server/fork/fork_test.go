// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package fork

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/skiptest"
)

// ways are those to start a command; they must not be told apart from inside.
var ways = map[string]func(*Command) (int, int, error){
	"clone": (*Command).clone, "classic": (*Command).classic, "Start": (*Command).Start,
}

// run starts a command in a directory and gives what it wrote and how it ended.
func run(t *testing.T, start func(*Command) (int, int, error), dir string, c Command) (string, unix.WaitStatus, error) {
	t.Helper()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	at, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(at)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c.Dir, c.Group = at, -1
	if c.Files == [3]int{} {
		c.Files = [3]int{int(null.Fd()), int(w.Fd()), int(w.Fd())}
	}
	pid, pidfd, err := start(&c)
	_ = w.Close()
	if err != nil {
		if pid > 0 || pidfd >= 0 {
			t.Errorf("with %v: pid %d, pidfd %d", err, pid, pidfd)
		}
		return "", 0, err
	}
	defer unix.Close(pidfd)
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	if n, err := unix.Poll(fds, int(10*time.Second/time.Millisecond)); n != 1 {
		t.Fatalf("the pidfd does not tell of the end: %v", err)
	}
	var ws unix.WaitStatus
	if _, err := unix.Wait4(pid, &ws, 0, nil); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), ws, nil
}

func TestAllWaysStartTheSame(t *testing.T) {
	// As a program that has handlers, ignores a signal, and blocks one on its threads.
	got := make(chan os.Signal, 1)
	signal.Notify(got, unix.SIGUSR1)
	defer signal.Stop(got)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	set := unix.Sigset_t{Val: [16]uint64{1 << (unix.SIGUSR2 - 1)}}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.PthreadSigmask(unix.SIG_UNBLOCK, &set, nil) }()

	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil { // what the test was given
		t.Fatal(err)
	}
	const report = `pwd; echo "$0 $1"; ls -l /proc/self/fd | wc -l; echo "session $(($(cut -d' ' -f6 /proc/$$/stat) - $$))"
		grep -E '^(Sig(Ign|Cgt)|Uid|Gid|Groups|Cap(Inh|Prm|Eff|Amb)|NoNewPrivs)' /proc/$$/status; env | sort`
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]Command{"own rights": {}}
	if os.Geteuid() == 0 {
		cases["a user"] = Command{Credential: &syscall.Credential{Uid: 1000, Gid: 1001}}
		cases["a user with groups"] = Command{Credential: &syscall.Credential{Uid: 1000, Gid: 1001, Groups: []uint32{7, 8}}}
		cases["a user with a capability"] = Command{
			Credential: &syscall.Credential{Uid: 1000, Gid: 1001}, AmbientCaps: []uintptr{unix.CAP_NET_BIND_SERVICE, unix.CAP_SYSLOG},
		}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.Program, c.Env = "/bin/sh", []string{"PATH=/usr/bin:/bin", "A=b c"}
			c.Argv = []string{"zero", "-c", report, "nought", "one"}
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			want, _, err := run(t, ways["classic"], dir, c)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{dir + "\n", "nought one\n", "session 0\n", "A=b c\n"} {
				if !strings.Contains(want, part) {
					t.Errorf("%q is not in %q", part, want)
				}
			}
			for name, start := range ways {
				if out, ws, err := run(t, start, dir, c); err != nil || ws != 0 || out != want {
					t.Errorf("%s: %v %v\ngot  %q\nwant %q", name, err, ws, out, want)
				}
			}
		})
	}
}

func TestNoSignalIsBlockedInTheChild(t *testing.T) {
	c := Command{Program: "/bin/grep", Argv: []string{"grep", "SigBlk", "/proc/self/status"}}
	if out, _, err := run(t, ways["clone"], "/", c); err != nil || out != "SigBlk:\t0000000000000000\n" {
		t.Errorf("%q %v", out, err)
	}
}

func TestNoSignalIsIgnoredInTheChild(t *testing.T) {
	sigs := []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGUSR1}
	signal.Ignore(sigs...)
	defer signal.Reset(sigs...)
	c := Command{Program: "/bin/grep", Argv: []string{"grep", "SigIgn", "/proc/self/status"}}
	for name, start := range ways {
		out, _, err := run(t, start, "/", c)
		if err != nil {
			t.Fatal(err)
		}
		set, err := strconv.ParseUint(strings.TrimSpace(strings.TrimPrefix(out, "SigIgn:")), 16, 64)
		if err != nil || set&^(1<<31|1<<32) != 0 { // what is the C library's own may be ignored here
			t.Errorf("%s: %q %v", name, out, err)
		}
	}
	for _, sig := range sigs {
		if !signal.Ignored(sig) {
			t.Errorf("afterwards %v is not ignored here any more", sig)
		}
	}
}

func TestWhyAProgramIsNotExecuted(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("plain", "text", 0o644)
	write("noise", "\x00\x01\x02", 0o755)
	write("lost", "#!/no/such/interpreter\n", 0o755)
	long := make([]string, 40)
	for i := range long {
		long[i] = strings.Repeat("a", 120<<10)
	}
	for program, want := range map[string]error{
		"./none": unix.ENOENT, "./plain": unix.EACCES, "./noise": unix.ENOEXEC, "./lost": unix.ENOENT,
		"./plain/x": unix.ENOTDIR, "/": unix.EACCES, "a\x00b": unix.EINVAL, "/bin/true": unix.E2BIG,
	} {
		for name, start := range ways {
			c := Command{Program: program, Argv: []string{program}}
			if want == unix.E2BIG {
				c.Argv = long
			}
			if want == unix.EINVAL {
				c.Argv = []string{"x"}
			}
			if _, _, err := run(t, start, dir, c); !errors.Is(err, want) {
				t.Errorf("%s: %q: got %v, want %v", name, program, err, want)
			}
		}
	}
	if _, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != unix.ECHILD {
		t.Errorf("a process is left: wait4 says %v", err)
	}
}

func TestADirectoryThatTheUserMayNotEnter(t *testing.T) {
	skiptest.WithoutRoot(t, "it becomes another user")
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, start := range ways {
		c := Command{Program: "/bin/true", Argv: []string{"true"}, Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
		if _, _, err := run(t, start, dir, c); err != unix.EACCES {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A target of one copy may be the source of another.
func TestStreamsMayHaveLowNumbers(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	own, err := os.Readlink("/proc/self/fd/0")
	if err != nil {
		t.Skip("this program has no stdin")
	}
	for name, start := range ways {
		c := Command{
			Program: "/bin/readlink", Argv: []string{"readlink", "-n", "/proc/self/fd/2"},
			Files: [3]int{int(r.Fd()), int(w.Fd()), 0},
		}
		if _, _, err := run(t, start, "/", c); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 4096)
		n, err := r.Read(b)
		if got := string(b[:n]); err != nil || got != own {
			t.Errorf("%s: stderr is %q, want %q; %v", name, got, own, err)
		}
	}
}

// As within a container whose filter is older than clone3.
func TestAFilterThatRefusesClone3(t *testing.T) {
	for _, errno := range []unix.Errno{unix.ENOSYS, unix.EPERM} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // not unlocked: the thread ends with its filter
			if err := refuse(unix.SYS_CLONE3, errno); err != nil {
				t.Error(err)
				return
			}
			c := Command{Program: "/bin/echo", Argv: []string{"echo", "here"}}
			if _, _, err := run(t, ways["clone"], "/", c); err != errRefused {
				t.Errorf("clone: %v", err)
			}
			if out, _, err := run(t, ways["Start"], "/", c); err != nil || out != "here\n" {
				t.Errorf("Start: %q %v", out, err)
			}
		}()
		<-done
	}
}

// refuse puts a filter on the calling thread.
func refuse(call uint32, errno unix.Errno) error {
	f := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // seccomp_data.nr
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0)
}

func BenchmarkStart(b *testing.B) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	for name, start := range ways {
		b.Run(name, func(b *testing.B) {
			fd := int(null.Fd())
			c := Command{Program: "/bin/true", Argv: []string{"true"}, Files: [3]int{fd, fd, fd}, Group: -1}
			at, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				b.Fatal(err)
			}
			defer unix.Close(at)
			c.Dir = at
			for b.Loop() {
				pid, pidfd, err := start(&c)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				_, _ = unix.Wait4(pid, nil, 0, nil)
				_ = unix.Close(pidfd)
				b.StartTimer()
			}
		})
	}
}

// A program is looked up with no descriptor of ours: a path through one would lead to wherever we have opened something.
func TestNoProgramIsReachedThroughOurDescriptors(t *testing.T) {
	if !MayBeAlone {
		t.Skip("the clone that closes them before is written for amd64 alone")
	}
	dir, err := unix.Open("/bin", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(dir)
	file, err := unix.Open("/bin/true", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(file)
	for _, program := range []string{"/proc/self/fd/" + strconv.Itoa(dir) + "/true", "/proc/self/fd/" + strconv.Itoa(file), "/dev/fd/" + strconv.Itoa(file)} {
		if _, _, err := run(t, (*Command).clone, "/", Command{Program: program, Argv: []string{"true"}}); err != unix.ENOENT {
			t.Errorf("%s: %v, want ENOENT", program, err)
		}
	}
	if _, ws, err := run(t, (*Command).clone, "/", Command{Program: "/bin/true", Argv: []string{"true"}}); err != nil || ws.ExitStatus() != 0 {
		t.Errorf("/bin/true: %v, %v", ws, err)
	}
}
