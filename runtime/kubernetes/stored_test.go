// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"archive/tar"
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/klauspost/compress/zstd"

	"sandpit.dev/blob"
	"sandpit.dev/blob/dir"
	"sandpit.dev/blob/s3"
	"sandpit.dev/fault"
	"sandpit.dev/internal/cluster"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// blobs counts what a store of snapshots has.
func blobs(t *testing.T, b blob.Store) (n int) {
	t.Helper()
	if err := b.(blob.Lister).List(context.Background(), func(string) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

func bucket(t *testing.T) blob.Store {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("snapshots"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	b, err := s3.New(s3.Options{Endpoint: server.URL, Bucket: "snapshots", PathStyle: true, AccessKey: "key", SecretKey: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// snapshotsShare: what two snapshots have in common is kept once, and what none has is kept no more.
func snapshotsShare(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	place := filepath.Join(t.TempDir(), "snapshots")
	for name, b := range map[string]blob.Store{"Directory": dir.New(place), "Bucket": bucket(t)} {
		t.Run(name, func(t *testing.T) {
			o := options(t, c)
			o.Snapshots = b
			s := serve(t, c, image, o)
			spec := s.spec()
			i := s.create(spec)
			run(t, i, "", "head -c 12M /dev/urandom > large; sha256sum large > sum; mkdir many; cd many; for n in $(seq 300); do echo $n > $n; done")
			one := s.keep(i)
			first := blobs(t, b)
			if first < 10 {
				t.Errorf("12 MiB are %d chunks", first)
			}
			run(t, i, "", "echo changed > many/150; echo new > new")
			two := s.keep(i)
			if n := blobs(t, b); n > first+4 {
				t.Errorf("with two small changes there are %d chunks, and %d before", n, first)
			}
			if err := s.RemoveSnapshot(t.Context(), one); err != nil {
				t.Fatal(err)
			}
			// A disk that is to be filled has a copy of the index, also with the next server.
			if err := i.Stop(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := s.Rollback(t.Context(), spec.ID, two, spec.Limits); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.RemoveSnapshot(t.Context(), two); err != nil {
				t.Fatal(err)
			}
			i = s.restart(t, i)
			if err := i.Start(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			if got := run(t, i, "", "sha256sum -c sum; cat many/150 many/151 new"); got != "large: OK\nchanged\n151\nnew" {
				t.Errorf("got %q", got)
			}
			if n := blobs(t, b); n != 0 {
				t.Errorf("%d chunks are left that nothing has", n)
			}
			// A sandbox that is removed before it was filled leaves nothing.
			three := s.keep(i)
			if err := i.Stop(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			if err := s.Rollback(t.Context(), spec.ID, three, spec.Limits); err != nil {
				t.Fatal(err)
			}
			if err := s.RemoveSnapshot(t.Context(), three); err != nil {
				t.Fatal(err)
			}
			if err := i.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := blobs(t, b); n != 0 {
				t.Errorf("%d chunks are left of a sandbox that is gone", n)
			}
			if list, err := os.ReadDir(filepath.Join(o.Dir, "snapshots")); err != nil || len(list) != 0 {
				t.Errorf("there are %v, %v", list, err)
			}
		})
	}
	t.Run("OneThatIsDamaged", func(t *testing.T) {
		o := options(t, c)
		s := serve(t, c, image, o)
		i := s.create(s.spec())
		run(t, i, "", "head -c 3M /dev/urandom > large")
		id := s.keep(i)
		files, err := filepath.Glob(filepath.Join(o.Dir, "chunks", "*.sandpit"))
		if err != nil || len(files) < 2 {
			t.Fatalf("there are %v, %v", files, err)
		}
		b, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(files[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		spec := s.spec()
		spec.From = id
		_, err = s.Create(t.Context(), spec)
		s.wantCode("a sandbox of it", err, fault.Internal, "checksum")
		s.wantCode("its export", s.Export(t.Context(), id, new(strings.Builder)), fault.Internal, "checksum")
		if err := s.RemoveSnapshot(t.Context(), id); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(filepath.Join(o.Dir, "chunks", "*")); len(left) != 0 {
			t.Errorf("there are %v", left)
		}
	})
	// Servers before had archives compressed as a whole in the place of indexes.
	t.Run("OneOfAnEarlierFormat", func(t *testing.T) {
		o := options(t, c)
		s := serve(t, c, image, o)
		id := sandbox.NewID()
		f, err := os.Create(filepath.Join(o.Dir, "snapshots", string(id)))
		if err != nil {
			t.Fatal(err)
		}
		z, err := zstd.NewWriter(f)
		if err != nil {
			t.Fatal(err)
		}
		w := tar.NewWriter(z)
		err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "workspace/old", Mode: 0o644, Uid: 1000, Gid: 1000, Size: 5, Format: tar.FormatPAX})
		if err == nil {
			_, err = w.Write([]byte("kept\n"))
		}
		for _, c := range []interface{ Close() error }{w, z, f} {
			if err == nil {
				err = c.Close()
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		spec := s.spec()
		spec.From = id
		if got := run(t, s.create(spec), "", "cat old"); got != "kept" {
			t.Errorf("it has %q", got)
		}
		if err := s.RemoveSnapshot(t.Context(), id); err != nil {
			t.Error(err)
		}
	})
}
