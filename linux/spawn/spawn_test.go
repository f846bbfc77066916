// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/skiptest"
)

// inside is what the started process reports of itself, a line each.
const insideVariable = "SANDPIT_SPAWN_TEST_INSIDE"

func TestMain(m *testing.M) {
	if os.Getenv(insideVariable) != "" {
		reportInside()
		return
	}
	if path := os.Getenv(lockVariable); path != "" {
		loopUnderLock(path, methods[os.Getenv(methodVariable)])
		return
	}
	os.Exit(m.Run())
}

const (
	lockVariable   = "SANDPIT_SPAWN_TEST_LOCK"
	methodVariable = "SANDPIT_SPAWN_TEST_METHOD"
)

var methods = map[string]Method{"fastest": Fastest, "portable": Portable}

// eachMethod runs a test by each method.
func eachMethod(t *testing.T, test func(t *testing.T, m Method)) {
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		t.Run(name, func(t *testing.T) { test(t, methods[name]) })
	}
}

// loopUnderLock makes user namespaces until it is killed, as a server would that
// holds its data directory's lock.
func loopUnderLock(path string, m Method) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	deadline := time.Now().Add(5 * time.Second) // the one before may be on its way out
	for err == nil && unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		if time.Now().After(deadline) {
			os.Exit(3)
		}
		<-time.After(time.Millisecond)
	}
	if err != nil {
		os.Exit(3)
	}
	fmt.Println("locked")
	for n := uint32(0); ; n++ {
		f, err := NewUserNS(1_000_000_000+n%100*RangeSize, m)
		if err != nil {
			os.Exit(4)
		}
		_ = f.Close()
	}
}

// The process that a namespace is made in shares our descriptors' files, and so
// our locks: it must not outlive us.
func TestAKilledServerLeavesNoProcessThatHoldsItsLocks(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		needRoot(t)
		path := filepath.Join(t.TempDir(), "lock")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for n := range 40 {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = []string{lockVariable + "=" + path, methodVariable + "=" + filepath.Base(t.Name())}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				_ = cmd.Process.Kill()
				t.Fatalf("kill %d: the lock was not to be had: %q, %v, %v", n, line, err, cmd.Wait())
			}
			<-time.After(time.Duration(n) * 137 * time.Microsecond) // another point of the loop each time
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		// The kernel kills the last one's child when it ends; that takes a moment.
		deadline := time.Now().Add(5 * time.Second)
		for unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
			if time.Now().After(deadline) {
				t.Fatal("a process that was left behind holds the lock")
			}
			<-time.After(time.Millisecond)
		}
	})
}

func reportInside() {
	fmt.Println("pid", os.Getpid(), "uid", os.Getuid(), "gid", os.Getgid())
	fds, _ := os.ReadDir("/proc/thread-self/fd")
	_ = fds // /proc is still the host's: it knows us by another pid
	for _, ns := range []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"} {
		l, err := os.Readlink("/proc/self/ns/" + ns)
		fmt.Println("ns", ns, l, err)
	}
	var open []string
	for fd := range 64 {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
			open = append(open, fmt.Sprint(fd))
		}
	}
	fmt.Println("open", strings.Join(open, ","))
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	_ = unix.Capget(&hdr, &data[0])
	fmt.Printf("umask %03o\n", unix.Umask(0))
	fmt.Printf("caps %08x%08x\n", data[1].Permitted, data[0].Permitted)
}

func needRoot(t *testing.T) {
	t.Helper()
	skiptest.WithoutRoot(t, "it makes user namespaces with mapped ranges")
}

// netOf makes a network namespace that belongs to a user namespace.
func netOf(t *testing.T, userns *os.File, m Method) *os.File {
	t.Helper()
	script := Script{Method: m}
	script.Do("unshare", Never, unix.SYS_UNSHARE, Int(unix.CLONE_NEWNET))
	made := script.Open("keep", Never, unix.SYS_OPENAT, At(), script.Text("/proc/self/ns/net"), Int(unix.O_RDONLY|unix.O_CLOEXEC))
	opened, err := script.RunAs(userns, nil)
	if err != nil {
		t.Fatal(err)
	}
	net := opened.Take(made, "netns")
	t.Cleanup(func() { _ = net.Close() })
	return net
}

func start(t *testing.T, m Method, change func(*Process)) []string {
	t.Helper()
	ns, err := NewUserNS(700_000_000, m)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ns.Close() }()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = self.Close() }()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	p := Process{
		Program: self, Args: []string{"inside"}, Env: []string{insideVariable + "=1"},
		Files: []*os.File{null, w, w}, UserNS: ns, NetNS: netOf(t, ns, m), KeepCaps: 1 << unix.CAP_CHOWN,
	}
	if change != nil {
		change(&p)
	}
	pid, err := startBy(starter(t, m), p)
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		lines = append(lines, sc.Text())
	}
	ws, err := wait(pid)
	if err != nil || ws.ExitStatus() != 0 {
		t.Fatalf("process 1 ended with %v, %v; it said %q", ws, err, lines)
	}
	return lines
}

func TestProcessOneIsRootOfItsOwnNamespaces(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		needRoot(t)
		lines := start(t, m, nil)
		if got, want := lines[0], "pid 1 uid 0 gid 0"; got != want {
			t.Errorf("inside: got %q, want %q", got, want)
		}
	})
}

func TestProcessOneJoinsTheCgroupNamespaceThatItIsGiven(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		needRoot(t)
		ours, err := os.Open("/proc/self/ns/cgroup")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = ours.Close() }()
		name, err := os.Readlink("/proc/self/ns/cgroup")
		if err != nil {
			t.Fatal(err)
		}
		want := "ns cgroup " + name + " <nil>"
		if lines := start(t, m, nil); slices.Contains(lines, want) {
			t.Errorf("given none: got %q, want one of its own", lines)
		}
		if lines := start(t, m, func(p *Process) { p.CgroupNS = ours }); !slices.Contains(lines, want) {
			t.Errorf("given ours: got %q, want %q in it", lines, want)
		}
	})
}

func TestOnlyTheGivenDescriptorsAreOpen(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		needRoot(t)
		// A descriptor without close-on-exec, as a careless library may leave one.
		stray, err := unix.Open("/etc/hostname", unix.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Close(stray) }()
		for _, l := range start(t, m, nil) {
			if got, ok := strings.CutPrefix(l, "open "); ok {
				// The Go runtime of the reporting program opens its poller: 3 and 4 may be its own.
				for _, fd := range strings.Split(got, ",") {
					if fd == fmt.Sprint(stray) && stray > 8 {
						t.Errorf("descriptor %d of the server reached the inside: open are %s", stray, got)
					}
				}
				return
			}
		}
		t.Error("the inside did not report its descriptors")
	})
}

func TestOnlyTheKeptCapabilitiesRemain(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		needRoot(t)
		for _, l := range start(t, m, nil) {
			if got, ok := strings.CutPrefix(l, "caps "); ok {
				if want := fmt.Sprintf("%016x", 1<<unix.CAP_CHOWN); got != want {
					t.Errorf("permitted capabilities: got %s, want %s", got, want)
				}
				return
			}
		}
		t.Error("the inside did not report its capabilities")
	})
}

func TestProcessOnePlaysItsScriptBeforeItsProgram(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		needRoot(t)
		script := Script{Method: m}
		script.Do("set the umask", Never, unix.SYS_UMASK, Int(0o31))
		script.Open("open a file", Never, unix.SYS_OPENAT, At(), script.Text("/dev/zero"), Int(unix.O_RDONLY|unix.O_CLOEXEC))
		a := openFDs(t)
		start(t, m, nil)
		b := openFDs(t)
		lines := start(t, m, func(p *Process) { p.Script = &script })
		if !slices.Contains(lines, "umask 031") {
			t.Errorf("process 1 does not have the umask of its script: %q", lines)
		}
		if c := openFDs(t); c-b != b-a { // what start keeps until the test ends
			t.Errorf("it leaves %d descriptors open, and without a script %d", c-b, b-a)
		}
	})
}

func TestProcessOneWhoseScriptFailsIsAnErrorAndLeavesNoProcess(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		needRoot(t)
		ns, err := NewUserNS(700_200_000, m)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = ns.Close() }()
		self, err := os.Open("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = self.Close() }()
		script := Script{Method: m}
		script.Open("open a file", Never, unix.SYS_OPENAT, At(), script.Text("/dev/zero"), Int(unix.O_RDONLY|unix.O_CLOEXEC))
		script.Do("make the impossible", Never, unix.SYS_MKDIRAT, At(), script.Text("/dev/zero/x"), Int(0o755))
		net, s := netOf(t, ns, m), starter(t, m)
		before := openFDs(t)
		_, err = startBy(s, Process{Program: self, Args: []string{"x"}, UserNS: ns, NetNS: net, Script: &script})
		if !errors.Is(err, unix.ENOTDIR) || !strings.Contains(err.Error(), "make the impossible") {
			t.Errorf("start: got %v", err)
		}
		if _, err := unix.Wait4(-1, nil, unix.WNOHANG|unix.WALL, nil); err != unix.ECHILD {
			t.Errorf("a child is left: wait4 says %v", err)
		}
		if n := openFDs(t); n != before {
			t.Errorf("%d descriptors are open, %d were", n, before)
		}
	})
}

func TestAProgramThatCannotBeExecutedIsAnErrorAndLeavesNoProcess(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		needRoot(t)
		ns, err := NewUserNS(700_100_000, m)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = ns.Close() }()
		f, err := os.Open("/etc/passwd")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		_, err = startBy(starter(t, m), Process{Program: f, Args: []string{"x"}, UserNS: ns, NetNS: netOf(t, ns, m)})
		if !errors.Is(err, unix.EACCES) {
			t.Errorf("start: got %v, want EACCES", err)
		}
		if _, err := unix.Wait4(-1, nil, unix.WNOHANG|unix.WALL, nil); err != unix.ECHILD {
			t.Errorf("a child is left: wait4 says %v", err)
		}
	})
}

func TestAHundredUserNamespacesAtOnceAllMapTheirOwnRange(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		needRoot(t)
		done := make(chan error)
		for n := range 100 {
			go func() {
				f, err := NewUserNS(uint32(800_000_000+n*RangeSize), m)
				if err == nil {
					err = f.Close()
				}
				done <- err
			}()
		}
		for range 100 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

func BenchmarkNewUserNS(b *testing.B) {
	for name, m := range methods {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f, err := NewUserNS(900_000_000, m)
				if err != nil {
					b.Fatal(err)
				}
				_ = f.Close()
			}
		})
	}
}
