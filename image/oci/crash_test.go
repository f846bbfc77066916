// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
)

// helperVariable has a process of this test's program be one that is killed: what it does, and where.
const helperVariable = "SANDPIT_OCI_TEST_HELPER"

// TestHelper is no test: it is the process that TestAKilledProcessLeavesACleanStore kills.
func TestHelper(*testing.T) {
	what, dir, ok := strings.Cut(os.Getenv(helperVariable), " ")
	if !ok {
		return
	}
	s, err := Open(Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	if what == "import" {
		_, err = s.Import(context.Background(), os.Stdin, "")
	} else {
		pem, rerr := io.ReadAll(os.Stdin)
		if rerr != nil {
			panic(rerr)
		}
		roots := x509.NewCertPool()
		cert, cerr := x509.ParseCertificate(pem)
		if cerr != nil {
			panic(cerr)
		}
		roots.AddCert(cert)
		s.remote = newRemote(nil, func(a netip.Addr) bool { return a.IsLoopback() }, roots)
		_, err = s.Pull(context.Background(), what)
	}
	panic(fmt.Sprint("it ended by itself: ", err))
}

func helper(t *testing.T, what, dir string, stdin io.Reader) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelper$")
	c.Env = append(os.Environ(), helperVariable+"="+what+" "+dir)
	c.Stdin, c.Stderr = stdin, os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

func random(t *testing.T, n int) string {
	t.Helper()
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// kill ends a process as the kernel does, and opens its store anew, as the next server does.
func kill(t *testing.T, c *exec.Cmd, dir string) *Store {
	t.Helper()
	if names, err := os.ReadDir(filepath.Join(dir, workName)); err != nil || len(names) == 0 {
		t.Errorf("it was not at work: %v, %v", names, err)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("it ended with %v", err)
	}
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if names := leftovers(t, s); len(names) > 0 || len(s.List()) > 0 {
		t.Errorf("left are %v and the images %v", names, s.List())
	}
	s.flush = func(string) error { return nil }
	return s
}

func TestAKilledProcessLeavesACleanStore(t *testing.T) {
	small, big := tarOf(t, file{name: "small", body: "s"}), tarOf(t, file{name: "big", body: random(t, 4<<20)})
	t.Run("InAnImport", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "oci")
		archive := savedOf(t, "a:1", configOf(t, nil, small, big), small, big)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		c := helper(t, "import", dir, r)
		_ = r.Close()
		// What a pipe holds is a little, so nearly all of this has been read, and the rest does not come.
		if _, err := w.Write(archive[:len(archive)/2]); err != nil {
			t.Fatal(err)
		}
		s := kill(t, c, dir)
		if got := imported(t, s, archive, ""); read(t, got, "small") != "s" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("InAPull", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "oci")
		at := serve(t)
		_, blobs := at.push(t, small, big)
		half := make(chan struct{})
		at.first(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/v2/app/blobs/"+blobs[1] {
				return false
			}
			w.Header().Set("Content-Length", "4194304")
			_, _ = w.Write([]byte("\x1f\x8b"))
			_ = http.NewResponseController(w).Flush()
			for range 500 { // until the other layer is there
				if all, _ := os.ReadDir(filepath.Join(dir, layersName)); len(all) == 1 {
					break
				}
				select {
				case <-r.Context().Done():
				case <-time.After(10 * time.Millisecond):
				}
			}
			close(half)
			<-r.Context().Done()
			return true
		})
		c := helper(t, at.host+"/app:1", dir, bytes.NewReader(at.Certificate().Raw))
		<-half
		s := kill(t, c, dir)
		if all, err := os.ReadDir(filepath.Join(dir, layersName)); err != nil || len(all) != 1 {
			t.Errorf("%d layers are kept for the next try, want the one that was finished (%v)", len(all), err)
		}
		at.first(func(http.ResponseWriter, *http.Request) bool { return false })
		next := puller(t, at)
		s.remote = next.remote
		before := at.count("/v2/app/blobs/" + blobs[0])
		img, err := s.Pull(t.Context(), at.host+"/app:1")
		if err != nil || read(t, img, "small") != "s" {
			t.Fatalf("%+v, %v", img, err)
		}
		if n := at.count("/v2/app/blobs/" + blobs[0]); n != before {
			t.Errorf("the layer that was there came %d times more", n-before)
		}
	})
}

// TestAFullDiskLeavesACleanStore fills a file system of 3 MiB.
func TestAFullDiskLeavesACleanStore(t *testing.T) {
	skiptest.WithoutRoot(t, "only root mounts a file system")
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=3m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	s, err := Open(Options{Dir: filepath.Join(dir, "oci"), Limits: Limits{Spared: 1}})
	if err != nil {
		t.Fatal(err)
	}
	small, big := tarOf(t, file{name: "small", body: "s"}), tarOf(t, file{name: "big", body: random(t, 4<<20)})
	first := imported(t, s, savedOf(t, "first:1", configOf(t, nil, small), small), "")
	at := serve(t)
	at.push(t, small, big)
	s.remote = puller(t, at).remote
	for what, try := range map[string]func() error{
		"an import": func() error {
			_, err := s.Import(t.Context(), bytes.NewReader(savedOf(t, "a:1", configOf(t, nil, small, big), small, big)), "")
			return err
		},
		"a pull": func() error {
			_, err := s.Pull(t.Context(), at.host+"/app:1")
			return err
		},
	} {
		if err := try(); !fault.Is(err, fault.Full) {
			t.Errorf("%s: %v, want %s", what, err, fault.Full)
		}
		if names := leftovers(t, s); len(names) > 0 {
			t.Errorf("%s left %v", what, names)
		}
		if all := s.List(); len(all) != 1 || all[0].Digest != first.Digest || read(t, first, "small") != "s" {
			t.Errorf("%s: the images are %v", what, all)
		}
	}
	imported(t, s, savedOf(t, "second:1", configOf(t, object{"config": object{"Env": []string{"A=2"}}}, small), small), "")
}
