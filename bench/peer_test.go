// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/image"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/leaktest"
	"sandpit.dev/internal/programs"
	"sandpit.dev/internal/skiptest"
)

// mayFetch reports whether a test fetches a peer that is not installed. All but three are tens
// of megabytes, or minutes of a compiler, which only CI goes to.
func mayFetch(name string) bool {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return false
	}
	return os.Getenv("CI") != "" || name == "bwrap" || name == "crun" || name == "runc"
}

// newPeer opens a peer for a test, or skips it where the peer cannot be.
func newPeer(t *testing.T, name string) (Peer, peerParts) {
	t.Helper()
	skiptest.WithoutRoot(t, "it makes namespaces")
	parts := testParts(t, name, imagetest.Python(t), mayFetch(name))
	p, err := openPeer(t.Context(), name, parts)
	if err != nil && !parts.programs.Fetch && strings.HasPrefix(err.Error(), "not installed") {
		t.Skipf("%s: %v", name, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p, parts
}

func testParts(t *testing.T, name string, img image.Image, fetch bool) peerParts {
	t.Helper()
	dir, err := os.MkdirTemp("", "sandpit-bench-test-") // short: there are sockets in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	var program, images string
	if name == "sandpit_docker" {
		program, images = guarded(t)
	}
	return peerParts{
		dir: filepath.Join(dir, name), program: program, images: images, image: img, group: "sandpit-bench-" + rand.Text() + "-" + name,
		programs: &programs.Finder{Cache: programs.UserCache(), Scratch: filepath.Join(dir, "fetched"), Fetch: fetch},
		engine:   &engineShare{},
	}
}

// hostState is what of the whole host a peer might change.
type hostState struct {
	mounts, forward string
	places          []string
}

func lookAtHost(t *testing.T) hostState {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	forward, err := os.ReadFile("/proc/sys/net/ipv4/ip_forward")
	if err != nil {
		t.Fatal(err)
	}
	s := hostState{forward: string(forward)}
	for line := range strings.Lines(string(mounts)) {
		if at := strings.Fields(line)[4]; !strings.HasPrefix(at, os.TempDir()+"/") || strings.Contains(at, "sandpit-bench-test-") {
			s.mounts += line // others are those of other tests
		}
	}
	for _, place := range []string{"/etc/docker", "/opt/containerd", "/run/containerd", "/run/docker", "/run/docker.pid", "/var/lib/docker", "/var/lib/containerd"} {
		if _, err := os.Lstat(place); err == nil {
			s.places = append(s.places, place)
		}
	}
	return s
}

func TestPeers(t *testing.T) {
	for _, name := range Peers() {
		t.Run(name, func(t *testing.T) {
			before := lookAtHost(t)
			p, parts := newPeer(t, name)
			t.Cleanup(func() { // before the directory is removed
				if p != nil {
					_ = p.Close()
				}
			})
			if p.Version() == "" {
				t.Error("has no version")
			}
			for range 2 {
				took, cpu, err := p.FirstCommand(t.Context())
				if err != nil || took <= 0 || cpu <= 0 {
					t.Fatalf("a first command took %v, of which %v of a processor: %v", took, cpu, err)
				}
				if k, ok := p.(Keeper); ok {
					if took, err = k.Exec(t.Context()); err != nil || took <= 0 {
						t.Fatalf("a further command took %v: %v", took, err)
					}
				}
			}
			// An interrupt comes at any time, also in the midst of a command.
			for _, after := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond} {
				ctx, cancel := context.WithTimeout(t.Context(), after)
				_, _, err := p.FirstCommand(ctx)
				cancel()
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("an interrupt after %v gave another error: %v", after, err)
				}
			}
			if err := p.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			p = nil
			gone(t, parts)
			if diff := cmp.Diff(before, lookAtHost(t), cmp.AllowUnexported(hostState{})); diff != "" {
				t.Errorf("the host changed:\n%s", diff)
			}
		})
	}
}

// gone fails the test unless everything of a peer's has ended.
func gone(t *testing.T, parts peerParts) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	dir, err := filepath.EvalSymlinks(parts.dir)
	if err != nil {
		t.Fatal(err)
	}
	nothing := leaktest.Snapshot{leaktest.Directories: {}}
	scope := leaktest.Scope{Dir: dir, Servers: []int{os.Getpid()}, Marks: []string{parts.group}}
	left, _, err := leaktest.Settle(ctx, scope, nothing, []leaktest.Cache{
		{Kind: leaktest.Directories, Most: 1 << 20}, // the run's directory is removed as a whole
		{Kind: leaktest.Descriptors, Most: 1 << 20}, // of the test itself
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range left {
		t.Errorf("left: %s", line)
	}
}

func TestPeersThatFailToOpenLeaveNothing(t *testing.T) {
	skiptest.WithoutRoot(t, "it makes namespaces")
	for _, name := range Peers() {
		if name == "host" || name == "sandpit_docker" {
			continue // they have no root to fail on, or a server's own
		}
		t.Run(name, func(t *testing.T) {
			parts := testParts(t, name, image.Image{Root: t.TempDir()}, false) // a root without programs
			p, err := openPeer(t.Context(), name, parts)
			if err == nil {
				t.Fatal(errors.Join(errors.New("a root without programs ran one"), p.Close()))
			}
			if strings.HasPrefix(err.Error(), "not installed") {
				t.Skipf("%s: %v", name, err)
			}
			gone(t, parts)
		})
	}
}

func TestPeersInterruptedWhileTheyOpenLeaveNothing(t *testing.T) {
	skiptest.WithoutRoot(t, "it makes namespaces")
	root := imagetest.Python(t).Root
	for _, name := range Peers() {
		t.Run(name, func(t *testing.T) {
			parts := testParts(t, name, image.Image{Root: root}, false)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			p, err := openPeer(ctx, name, parts)
			if err == nil {
				err = p.Close()
			} else if strings.HasPrefix(err.Error(), "not installed") {
				t.Skipf("%s: %v", name, err)
			} else if errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "signal: killed") {
				err = nil
			}
			if err != nil {
				t.Error(err)
			}
			gone(t, parts)
		})
	}
}
