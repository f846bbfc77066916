// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/internal/cluster"
	"sandpit.dev/internal/cluster/clustertest"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/kubernetes"
	"sandpit.dev/sandbox"
)

// keep takes a snapshot.
func (s *server) keep(i runtime.Instance) sandbox.ID {
	s.t.Helper()
	id := sandbox.NewID()
	if _, err := s.Snapshot(s.t.Context(), i.Handle().ID, id); err != nil {
		s.t.Fatalf("Snapshot: %v", err)
	}
	return id
}

// restart is another server over the same directory and cluster.
func (s *server) restart(t *testing.T, i runtime.Instance) runtime.Instance {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.Driver = open(t, s.o)
	again, err := s.Open(t.Context(), i.Handle())
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// snapshotsHalfDone is of servers that end in the middle.
func snapshotsHalfDone(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	s := serve(t, c, image, options(t, c))
	spec := s.spec()
	i := s.create(spec)
	run(t, i, "", "echo kept > file")
	id := s.keep(i)
	run(t, i, "", "echo later > file")

	t.Run("AFileThatIsNotWhole", func(t *testing.T) {
		left := filepath.Join(s.o.Dir, "snapshots", "abcdef.new")
		chunk := filepath.Join(s.o.Dir, "chunks", strings.Repeat("ab", 32)+".sandpit")
		for _, name := range []string{left, chunk} {
			if err := os.WriteFile(name, []byte("half"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		i = s.restart(t, i)
		select {
		case <-s.Swept():
		case <-t.Context().Done():
		}
		for _, name := range []string{left, chunk} {
			if _, err := os.Lstat(name); !os.IsNotExist(err) {
				t.Errorf("%s is there yet: %v", name, err)
			}
		}
		if got := run(t, i, "", "cat file"); got != "later" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("ADiskThatIsBeingFilled", func(t *testing.T) {
		// As it is after a server that ended while the agent filled the disk: a part is there.
		if err := kubernetes.Promise(i, id); err != nil {
			t.Fatal(err)
		}
		run(t, i, "", "rm file; echo part > part")
		i = s.restart(t, i)
		if _, err := i.(*kubernetes.Instance).Dial(t.Context()); !fault.Is(err, fault.State) {
			t.Errorf("its disk is half filled, and it is up: %v", err)
		}
		// A snapshot is of what the disk is to hold, and so is what is removed no matter.
		again := s.keep(i)
		if err := s.RemoveSnapshot(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if err := i.Start(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		if got := run(t, i, "", "cat file; ls"); got != "kept\nfile" {
			t.Errorf("got %q", got)
		}
		id = again
	})
	t.Run("APodThatReadADisk", func(t *testing.T) {
		if err := i.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if err := kubernetes.LeaveReader(t.Context(), i); err != nil {
			t.Fatal(err)
		}
		if p, text := s.pod(spec.ID); p.Spec.Containers[0].Image != kubernetes.AgentOf(s.Driver) || strings.Contains(text, image.Digest[7:]) {
			t.Errorf("the pod that reads has %+v", p.Spec.Containers)
		}
		i = s.restart(t, i)
		if e, err := i.Wait(t.Context()); err != nil || e.Cause != sandbox.CauseStopped {
			t.Errorf("it is down: %+v, %v", e, err)
		}
		if err := i.Start(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		if got := run(t, i, "", "cat file"); got != "kept" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("APodThatIsDeletedWhileItIsRead", func(t *testing.T) {
		run(t, i, "", "head -c 64M /dev/urandom > large")
		err := kubernetes.ReadDisk(t.Context(), i, func(r io.Reader) error {
			if _, err := io.ReadFull(r, make([]byte, 1000)); err != nil {
				return err
			}
			clustertest.Kubectl(t, c, "-n", s.o.Space, "delete", "pod", "sandbox-"+string(spec.ID), "--grace-period=0", "--force")
			_, err := io.Copy(io.Discard, r)
			return err
		})
		if err == nil || fault.Is(err, fault.Internal) {
			t.Errorf("got %v", err)
		}
		if _, err := i.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := i.Start(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		if list, err := s.Snapshots(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("there are %v, %v", list, err)
		}
	})
}

// whatSnapshotsHold is of the claim, and of nothing else.
func whatSnapshotsHold(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	o := options(t, c)
	o.Users = true
	s := serve(t, c, image, o)
	spec := s.spec()
	i := s.create(spec)
	run(t, i, "root", "echo mine > /etc/made; echo mine > /workspace/of-root; chown 7:8 /workspace/of-root; truncate -s 4G /home/sandbox/holes; echo secret in the log")
	keep := func() sandbox.ID {
		t.Helper()
		id := sandbox.NewID()
		if got, err := s.Snapshot(t.Context(), spec.ID, id); err != nil || got.SizeBytes < 1 || got.SizeBytes > 1<<20 {
			t.Errorf("a file with holes takes %+v, %v", got, err)
		}
		return id
	}
	id := keep()
	if err := i.Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	for what, id := range map[string]sandbox.ID{"up": id, "down": keep()} {
		fork := spec
		fork.ID, fork.From = sandbox.NewID(), id
		f := s.create(fork)
		if got := run(t, f, "root", "stat -c '%u:%g %n' of-root; stat -c '%s' /home/sandbox/holes; cat /etc/made 2>&1 | grep -o 'No such file'"); got != "7:8 of-root\n4294967296\nNo such file" {
			t.Errorf("of one that was %s: %q", what, got)
		}
		if n, err := s.Diff(t.Context(), image, runtime.Point{Snapshot: id}, runtime.Point{Instance: fork.ID}, 10); err != nil || n.Total != 0 {
			t.Errorf("of one that was %s: it differs by %+v, %v", what, n, err)
		}
		if err := f.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	// Names that begin as whiteouts do are names like others.
	var layer, back bytes.Buffer
	small := s.spec()
	b := s.create(small)
	run(t, b, "", "echo x > .wh.name; mkdir d; echo y > d/.wh..wh..opq")
	if err := s.Export(t.Context(), s.keep(b), &layer); err != nil {
		t.Fatal(err)
	}
	again := sandbox.NewID()
	if _, err := s.Import(t.Context(), again, bytes.NewReader(layer.Bytes()), 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := s.Export(t.Context(), again, &back); err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(&back); ; {
		h, err := r.Next()
		if err != nil {
			break
		}
		names = append(names, h.Name)
	}
	if got := strings.Join(names, " "); !strings.Contains(got, "workspace/.wh.name") || !strings.Contains(got, "workspace/d/.wh..wh..opq") || strings.Contains(got, ".sandpit") {
		t.Errorf("it has %q", got)
	}
}
