// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/internal/cluster"
	"sandpit.dev/internal/cluster/clustertest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/kubernetes"
)

// again stops and starts a sandbox.
func again(t *testing.T, i runtime.Instance, spec runtime.Spec) {
	t.Helper()
	if err := i.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := i.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}

// withUsers are options of pods with user namespaces.
func withUsers(t *testing.T, c *cluster.Cluster) kubernetes.Options {
	o := options(t, c)
	o.Users = true
	return o
}

// rootsKept: commands have no more rights in a pod whose agent made the root than in any other.
func rootsKept(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	s := serve(t, c, image, withUsers(t, c))
	spec := s.spec()
	i := s.create(spec)
	if caps, err := s.Probe(t.Context()); err != nil || caps[runtime.RootDisk] != nil {
		t.Errorf("Probe: %v, %v", caps[runtime.RootDisk], err)
	}
	look := func(when string) {
		t.Helper()
		for _, user := range []string{"", "root"} {
			want := "CapPrm:\t00000000000004fb"
			if user == "" {
				want = "CapPrm:\t0000000000000000"
			}
			if got := run(t, i, user, "grep -E '^Cap(Inh|Prm|Bnd|Amb)|NoNew' /proc/self/status"); !strings.Contains(got, want) || !strings.Contains(got, "CapBnd:\t00000000000004fb") || !strings.Contains(got, "NoNewPrivs:\t1") {
				t.Errorf("%s: %q has %s", when, user, got)
			}
			if got := run(t, i, user, mounts); got != strings.Repeat("EPERM\n", 12)+"ENOSYS" {
				t.Errorf("%s: %q may: %s", when, user, got)
			}
		}
		// The agent has no more itself; and what keeps the changes is nowhere to be seen.
		if got := run(t, i, "root", "grep CapBnd /proc/1/status; ls -A /.sandpit/root; grep -c ' / / .*/.sandpit/root/upper' /proc/self/mountinfo; grep -c upper /proc/[0-9]*/root/.sandpit/root/upper 2>/dev/null; ls /proc/1/root/ 2>&1 | grep -o 'Permission denied'; tr '\\0' ' ' < /proc/1/cmdline | grep -c overlay"); got != "CapBnd:\t00000000000004fb\n1\nPermission denied\n0" {
			t.Errorf("%s: got %q", when, got)
		}
		if got := run(t, i, "", "stat -c '%a %u' / /tmp /workspace /home/sandbox; touch /usr/x 2>&1 | grep -o 'Permission denied'; grep -c . /etc/hosts; hostname; : > /dev/null; ls /proc/self/fd | head -1"); !strings.HasPrefix(got, "755 0\n1777 0\n755 1000\n755 1000\nPermission denied\n") {
			t.Errorf("%s: got %q", when, got)
		}
	}
	look("first")
	steered(t, i)
	brought(t, i)
	run(t, i, "root", "echo kept > /usr/kept; rm -r /usr/games; echo changed >> /etc/profile; python3 -c 'import os; os.setxattr(\"/usr/lib\", \"user.overlay.opaque\", b\"y\")' 2>/dev/null; test -e /usr/lib/os-release")
	run(t, i, "", "echo mine > /tmp/mine; echo work > file")
	again(t, i, spec)
	look("after a stop")
	if got := run(t, i, "", "test -e /usr/lib/os-release && cat /usr/kept /tmp/mine file; ls /usr/games 2>&1 | grep -o 'No such'; tail -n 1 /etc/profile"); got != "kept\nmine\nwork\nNo such\nchanged" {
		t.Errorf("after a stop: %q", got)
	}
	// An exec by hand is in the same root, and has the rights that the pod began with.
	if got := clustertest.Kubectl(t, c, "-n", s.o.Space, "exec", "sandbox-"+string(spec.ID), "--", "sh", "-c", "cat /usr/kept; grep CapBnd /proc/self/status"); got != "kept\nCapBnd:\t00000000002405fb" {
		t.Errorf("by hand: %q", got)
	}
	// Also one that the node takes down at once.
	run(t, i, "root", "echo late > /usr/late; sync")
	clustertest.Kubectl(t, c, "-n", s.o.Space, "delete", "pod", "sandbox-"+string(spec.ID), "--grace-period=0", "--force")
	if _, err := i.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := i.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if got := run(t, i, "", "cat /usr/late"); got != "late" {
		t.Errorf("after its pod was deleted: %q", got)
	}
	// The next server knows it as what it is.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	next := serve(t, c, image, s.o)
	found, err := next.Open(t.Context(), i.Handle())
	if err != nil {
		t.Fatal(err)
	}
	again(t, found, spec)
	if got := run(t, found, "", "cat /usr/late"); got != "late" {
		t.Errorf("by the next server: %q", got)
	}
	// A rollback to a new disk has a new root, too, once.
	if err := found.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := next.Rollback(t.Context(), spec.ID, "", spec.Limits); err != nil {
		t.Fatal(err)
	}
	if err := found.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if got := run(t, found, "root", "ls /usr/late /usr/kept /workspace 2>&1 | grep -c 'No such'; ls -d /usr/games; echo later > /usr/later"); got != "2\n/usr/games" {
		t.Errorf("after a rollback to a new disk: %q", got)
	}
	again(t, found, spec)
	if got := run(t, found, "", "cat /usr/later"); got != "later" {
		t.Errorf("after the start behind that: %q", got)
	}
	for name, change := range map[string]func(o *kubernetes.Options){
		"user_namespaces":    func(o *kubernetes.Options) { o.Users = false },
		"kubernetes.root to": func(o *kubernetes.Options) { o.ImageRoot = true },
	} {
		if err := found.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if err := next.Close(); err != nil {
			t.Fatal(err)
		}
		o := s.o
		change(&o)
		other := serve(t, c, image, o)
		if found, err = other.Open(t.Context(), i.Handle()); err != nil {
			t.Fatal(err)
		}
		if err := found.Start(t.Context(), spec); !fault.Is(err, fault.Unsupported) || !strings.Contains(fault.As(err).Remedy, name) {
			t.Errorf("Start where it cannot be: %v", err)
		}
		next = other
	}
}

// mounts tries what only takes the right to mount, in a user namespace or without.
const mounts = `python3 -c '
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
def call(*a):
    ctypes.set_errno(0)
    r = libc.syscall(*a)
    print(errno.errorcode.get(ctypes.get_errno(), "DONE") if r < 0 else "DONE")
call(272, 0x10000000)                         # unshare users
call(272, 0x20000)                            # unshare mounts
call(165, b"/tmp", b"/tmp", None, 4096, None) # mount
call(166, b"/", 2)                            # umount2
call(155, b"/tmp", b"/tmp")                   # pivot_root
call(161, b"/tmp")                            # chroot
call(308, 0, 0)                               # setns
call(428, -100, b"/", 1)                      # open_tree
call(430, b"tmpfs", 0)                        # fsopen
call(442, -100, b"/", 0, 0, 0)                # mount_setattr
call(321, 0, 0, 0)                            # bpf
call(56, 0x10000000 | 17, 0, 0, 0, 0)         # clone with users
call(435, 0, 0)                               # clone3
'`

// rootsInOtherHands: root exchanges what the next start's mounts are put on, where it can.
func rootsInOtherHands(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	s := serve(t, c, image, withUsers(t, c))
	spec := s.spec()
	i := s.create(spec)
	run(t, i, "", "echo work > file")
	for _, attack := range []string{
		"mv /etc /etc2; ln -s /workspace /etc; mv /.sandpit /gone; ln -s /tmp /.sandpit; rm -rf /.sandpit/root; ln -s / /.sandpit/root",
		"mkdir -p /merged /upper/x /work; rm -rf /usr/share /opt /srv; ln -s / /srv; rm -rf /etc 2>/dev/null",
	} {
		run(t, i, "root", attack)
		again(t, i, spec)
		if got := run(t, i, "", "cat file; id -u; test -s /etc/hosts && echo hosts"); got != "work\n1000\nhosts" {
			t.Errorf("after %q: %q", attack, got)
		}
	}
}

// noRoots: where pods may not mount, sandboxes are made that do not keep their roots, and the probe says so.
func noRoots(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	o := withUsers(t, c)
	clustertest.Kubectl(t, c, "label", "namespace", o.Space, "pod-security.kubernetes.io/enforce=baseline")
	s := serve(t, c, image, o)
	i := s.create(s.spec())
	if got := run(t, i, "root", "grep -c /.sandpit/root /proc/self/mountinfo; ls /.sandpit"); got != "0\nagent\nlog" {
		t.Errorf("got %q", got)
	}
	caps, err := s.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if why := caps[runtime.RootDisk]; !fault.Is(why, fault.Unsupported) || !strings.Contains(why.Error(), "SYS_ADMIN") || !strings.Contains(fault.As(why).Remedy, "privileged") {
		t.Errorf("Probe: %v", why)
	}
	clustertest.Kubectl(t, c, "label", "--overwrite", "namespace", o.Space, "pod-security.kubernetes.io/enforce=privileged")
	if caps, err = s.Probe(t.Context()); err != nil || caps[runtime.RootDisk] != nil {
		t.Fatalf("Probe: %v, %v", caps[runtime.RootDisk], err)
	}
	j := s.create(s.spec())
	if got := run(t, j, "root", "ls -d /.sandpit/root"); got != "/.sandpit/root" {
		t.Errorf("got %q", got)
	}
	// The namespace comes to refuse it: the next that is made knows.
	clustertest.Kubectl(t, c, "label", "--overwrite", "namespace", o.Space, "pod-security.kubernetes.io/enforce=baseline")
	if _, err := s.Create(t.Context(), s.spec()); !fault.Is(err, fault.Unsupported) {
		t.Errorf("Create: %v", err)
	}
	s.create(s.spec())
}
