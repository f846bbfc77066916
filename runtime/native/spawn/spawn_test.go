// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// inside is what the started process reports of itself, a line each.
const insideVariable = "SANDPIT_SPAWN_TEST_INSIDE"

func TestMain(m *testing.M) {
	if os.Getenv(insideVariable) != "" {
		report()
		return
	}
	os.Exit(m.Run())
}

func report() {
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
	fmt.Printf("caps %08x%08x\n", data[1].Permitted, data[0].Permitted)
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes user namespaces with mapped ranges")
	}
}

func start(t *testing.T, change func(*Process)) []string {
	t.Helper()
	ns, err := NewUserNS(700_000_000)
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
		Files: []*os.File{null, w, w}, UserNS: ns, KeepCaps: 1 << unix.CAP_CHOWN,
	}
	if change != nil {
		change(&p)
	}
	pid, err := Start(p)
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
	needRoot(t)
	lines := start(t, nil)
	if got, want := lines[0], "pid 1 uid 0 gid 0"; got != want {
		t.Errorf("inside: got %q, want %q", got, want)
	}
}

func TestOnlyTheGivenDescriptorsAreOpen(t *testing.T) {
	needRoot(t)
	// A descriptor without close-on-exec, as a careless library may leave one.
	stray, err := unix.Open("/etc/hostname", unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(stray) }()
	for _, l := range start(t, nil) {
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
}

func TestOnlyTheKeptCapabilitiesRemain(t *testing.T) {
	needRoot(t)
	for _, l := range start(t, nil) {
		if got, ok := strings.CutPrefix(l, "caps "); ok {
			if want := fmt.Sprintf("%016x", 1<<unix.CAP_CHOWN); got != want {
				t.Errorf("permitted capabilities: got %s, want %s", got, want)
			}
			return
		}
	}
	t.Error("the inside did not report its capabilities")
}

func TestAProgramThatCannotBeExecutedIsAnErrorAndLeavesNoProcess(t *testing.T) {
	needRoot(t)
	ns, err := NewUserNS(700_100_000)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ns.Close() }()
	f, err := os.Open("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	_, err = Start(Process{Program: f, Args: []string{"x"}, UserNS: ns})
	if !errors.Is(err, unix.EACCES) {
		t.Errorf("Start: got %v, want EACCES", err)
	}
	if _, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != unix.ECHILD {
		t.Errorf("a child is left: wait4 says %v", err)
	}
}

func TestAHundredUserNamespacesAtOnceAllMapTheirOwnRange(t *testing.T) {
	needRoot(t)
	done := make(chan error)
	for n := range 100 {
		go func() {
			f, err := NewUserNS(uint32(800_000_000 + n*RangeSize))
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
}

func BenchmarkNewUserNS(b *testing.B) {
	for b.Loop() {
		f, err := NewUserNS(900_000_000)
		if err != nil {
			b.Fatal(err)
		}
		_ = f.Close()
	}
}
