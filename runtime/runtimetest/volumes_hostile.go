// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

func volumeReadOnly(t *testing.T, s *suite) {
	s.need(t, runtime.RootUser) // else it is a directory of the host
	id := s.volume(t, 0)
	writer := s.create(t, s.with(at("data", id)))
	writer.ok("echo kept > data/file; mkdir data/d; chmod 777 data data/d data/file; touch data/d/x")
	ro := at("data", id)
	ro.ReadOnly = true
	b := s.create(t, s.with(ro))
	for _, path := range []string{"data", "/workspace/data", "/proc/self/cwd/data"} {
		for _, try := range []string{
			"echo x > %s/new", "echo x >> %s/file", ": > %s/file", "rm %s/file", "mkdir %s/new", "mv %s/file %s/moved", "chmod 600 %s/file",
			"ln %s/file %s/link", "ln -s a %s/link", "touch %s/d", "mkfifo %s/pipe", "truncate -s 0 %s/file", "rmdir %s/d",
			"python3 -c 'import os; os.setxattr(\"%s/file\", \"user.x\", b\"y\")'", "python3 -c 'import os; os.chown(\"%s/file\", os.getuid(), os.getgid())'",
		} {
			shell := strings.ReplaceAll(try, "%s", path)
			for n, o := range []outcome{b.run(shell), b.asRoot(shell)} {
				if o.ExitCode == 0 || !strings.Contains(o.Stderr, "Read-only file system") {
					t.Errorf("%q, as root %v: got %+v", shell, n == 1, o)
				}
			}
		}
	}
	for _, try := range []string{
		"mount -o remount,rw /workspace/data", "mount -o remount,bind,rw /workspace/data", "umount -l /workspace/data",
		"mount --bind /workspace/data /mnt && touch /mnt/x",
		`python3 -c 'import ctypes, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
a = ctypes.create_string_buffer(struct.pack("QQQQ", 0, 1, 0, 0))
sys.exit(libc.syscall(442, -100, b"/workspace/data", 0x8000, a, 32) != 0)'`,
	} {
		if o := b.asRoot(try); o.ExitCode == 0 {
			t.Errorf("%q worked: %+v", try, o)
		}
	}
	if o := b.asRoot("touch /workspace/data/x"); o.ExitCode == 0 {
		t.Error("in the end it can be written")
	}
	writer.ok("echo more >> data/file")
	if got := b.ok("cat data/file; ls data"); got != "kept\nmore\nd\nfile" {
		t.Errorf("the reader has %q", got)
	}
}

func (b *box) asRootOrUser(root bool, shell string) outcome {
	b.t.Helper()
	if root {
		return b.asRoot(shell)
	}
	return b.run(shell)
}

func volumeFlags(t *testing.T, s *suite) {
	id := s.volume(t, 0)
	ro := at("ro", id)
	ro.ReadOnly = true
	b := s.create(t, s.with(at("rw", id), ro))
	for n, o := range []outcome{b.run("cat /proc/self/mountinfo"), b.asRootOrUser(s.has(t, runtime.RootUser), "cat /proc/self/mountinfo")} {
		found := map[string]bool{}
		for _, line := range strings.Split(o.Stdout, "\n") {
			f := strings.Fields(line)
			if len(f) < 6 || f[4] != "/workspace/rw" && f[4] != "/workspace/ro" {
				continue
			}
			found[f[4]] = true
			options := strings.Split(f[5], ",")
			if !slices.Contains(options, "nosuid") || !slices.Contains(options, "nodev") || slices.Contains(options, "ro") != (f[4] == "/workspace/ro") {
				t.Errorf("as root %v: %s", n == 1, line)
			}
		}
		if len(found) != 2 {
			t.Errorf("as root %v: of two mounts %d are seen in\n%s", n == 1, len(found), o.Stdout)
		}
	}
	// A program that root marks in the volume gives nobody its rights.
	if s.has(t, runtime.RootUser) {
		if o := b.asRoot("cp /usr/bin/id rw/id && chmod 4755 rw/id"); o.ExitCode != 0 {
			t.Fatalf("%+v", o)
		}
		if got := b.ok("rw/id -u"); got != "1000" {
			t.Errorf("a marked program runs as %s", got)
		}
	}
}

// volumeAttempts lets hostile code loose on a volume.
func volumeAttempts(t *testing.T, s *suite) {
	b := s.create(t, s.with(at("volume", s.volume(t, 0))))
	b.ok("chmod 777 volume")
	for _, user := range []string{"sandbox", "root"} {
		t.Run(user, func(t *testing.T) {
			if user == "root" {
				s.need(t, runtime.RootUser)
			}
			b.attempts(t, user, facts{}, volumeCalls)
		})
	}
	if got := b.ok("ls volume"); strings.Contains(got, "sub") || strings.Contains(got, "snap") {
		t.Errorf("after it the volume has %q", got)
	}
}

func volumeLinks(t *testing.T, s *suite) {
	id := s.volume(t, 0)
	writer := s.create(t, s.with(at("data", id)))
	writer.ok("cd data; ln -s /etc abs; ln -s ../../../../../../.. up; mkdir real; ln -s real rel; ln -s /proc/self/root magic; echo x > file; ln -s abs chain")
	want := []fault.Code{fault.Conflict, fault.Invalid}
	if !s.has(t, runtime.VolumeParts) {
		want = []fault.Code{fault.Unsupported, fault.Invalid}
	}
	var tries sync.WaitGroup
	var tried []sandbox.ID
	for _, sub := range []string{"abs", "up", "rel", "magic", "file", "chain", "abs/x", "up/x", "rel/x", "magic/etc", "file/x", "real/../abs"} {
		m := at("part", id)
		m.Sub = sub
		spec := s.with(m)
		tries.Go(func() {
			i, err := s.driver.Create(t.Context(), spec)
			if code := fault.Of(err); !slices.Contains(want, code) {
				t.Errorf("a part %q: got %v (code %q), want one of %v", sub, err, code, want)
			}
			if i != nil {
				_ = i.Remove(t.Context())
			}
		})
		tried = append(tried, spec.ID)
	}
	tries.Wait()
	for _, id := range tried {
		s.wantGone(t, id)
	}
	if got := writer.ok("ls data data/real; ls /etc/x 2>/dev/null; true"); got != "data:\nabs\nchain\nfile\nmagic\nreal\nrel\nup\n\ndata/real:" {
		t.Errorf("after it the volume has %q", got)
	}
	// Links in the sandbox itself, which its code planted for the next start.
	spec := s.spec()
	b := s.create(t, spec)
	b.ok("ln -s /etc abs; ln -s ../../../../.. up; mkdir real; ln -s real rel; echo x > file; mkdir parent; ln -s /tmp parent/l")
	if s.rooted(t) {
		if o := b.asRoot("ln -s /etc /srv/l; ln -s /proc/1/root /opt/l; rm -rf /mnt; ln -s /etc /mnt"); o.ExitCode != 0 {
			t.Fatalf("%+v", o)
		}
	}
	if err := b.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	bad := []string{"/workspace/abs", "/workspace/up", "/workspace/rel", "/workspace/file", "/workspace/abs/x", "/workspace/up/x", "/workspace/rel/x", "/workspace/file/x", "/workspace/parent/l/x"}
	if s.rooted(t) {
		bad = append(bad, "/srv/l", "/srv/l/x", "/opt/l", "/opt/l/tmp/x", "/mnt", "/mnt/x")
	}
	for _, path := range bad {
		spec.Mounts = []sandbox.Mount{{Volume: id, Path: path}}
		err := b.Start(t.Context(), spec)
		wantCode(t, "Start with a volume at "+path, err, fault.Conflict)
		if err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("the error does not name %s: %v", path, err)
		}
		if err == nil {
			if err := b.Stop(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	spec.Mounts = []sandbox.Mount{{Volume: id, Path: "/workspace/real"}}
	if err := b.Start(t.Context(), spec); err != nil {
		t.Fatalf("a start after those that failed: %v", err)
	}
	if got := b.ok("cat real/file; ls rel/file; ls /etc/file 2>/dev/null; true"); got != "x\nrel/file" {
		t.Errorf("got %q", got)
	}
}

func volumeRefused(t *testing.T, s *suite) {
	id := s.volume(t, 0)
	other := s.volume(t, 0)
	refuse := func(what string, code fault.Code, mounts ...sandbox.Mount) {
		t.Helper()
		spec := s.with(mounts...)
		i, err := s.driver.Create(t.Context(), spec)
		wantCode(t, what, err, code)
		if i != nil {
			_ = i.Remove(t.Context())
		}
		s.wantGone(t, spec.ID)
	}
	for _, path := range []string{
		"", ".", "relative", "/", "//", "/x/", "/x//y", "/x/../y", "/..", "/x/.", "/a\x00b", "/proc", "/proc/1", "/sys", "/sys/fs/cgroup", "/dev", "/dev/shm", "/dev/new",
		"/usr", "/usr/bin", "/bin", "/etc", "/lib", "/" + strings.Repeat("x", 5000),
	} {
		refuse(fmt.Sprintf("a volume at %.40q", path), fault.Invalid, sandbox.Mount{Volume: id, Path: path})
	}
	for _, sub := range []string{"/", "/abs", "..", "../x", "a/../b", ".", "./a", "a/", "a//b", "a\x00b", strings.Repeat("x", 5000)} {
		m := at("v", id)
		m.Sub = sub
		refuse(fmt.Sprintf("the part %.40q", sub), fault.Invalid, m)
	}
	refuse("two at one place", fault.Invalid, at("v", id), at("v", other))
	refuse("one in another", fault.Invalid, at("v", id), at("v/w", other))
	refuse("one around another", fault.Invalid, at("v/w", id), at("v", other))
	refuse("a volume that is not there", fault.NotFound, at("v", sandbox.NewID()))
	refuse("one that is there and one that is not", fault.NotFound, at("v", id), at("w", sandbox.NewID()))
	refuse("a volume without an id", fault.Invalid, at("v", ""))
	refuse("a volume of a hostile id", fault.Invalid, at("v", "../instances"))
	refuse("too many", fault.Invalid, slices.Repeat([]sandbox.Mount{at("v", id)}, sandbox.MaxMounts+1)...)
	b := s.create(t, s.with(at("va", id), at("v", other))) // a name that begins as another is not in it
	b.ok("ls va v")
}

func volumeNames(t *testing.T, s *suite) {
	d := s.volumer(t)
	id := s.volume(t, 0)
	wantCode(t, "CreateVolume of a taken id", d.CreateVolume(t.Context(), id, 0), fault.Exists)
	if err := d.RemoveVolume(t.Context(), sandbox.NewID()); err != nil {
		t.Errorf("RemoveVolume of one that is not there: %v", err)
	}
	_, err := d.VolumeUsage(t.Context(), sandbox.NewID())
	wantCode(t, "VolumeUsage of one that is not there", err, fault.NotFound)
	for _, bad := range []sandbox.ID{"", "..", "../x", "a/b", "x"} {
		wantCode(t, fmt.Sprintf("CreateVolume of %q", bad), d.CreateVolume(t.Context(), bad, 0), fault.Invalid)
		wantCode(t, fmt.Sprintf("RemoveVolume of %q", bad), d.RemoveVolume(t.Context(), bad), fault.Invalid)
	}
}
