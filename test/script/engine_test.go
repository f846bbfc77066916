// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/dockerd/dockerdtest"
)

// theirs is how the documents of mcp-sandboxd call its image of sandboxes.
const theirs = "ghcr.io/jeliasson/mcp-sandboxd-sandbox:latest"

// engineHost is a host of people who have an Engine and nothing of ours but the server's image.
type engineHost struct {
	*dockerdtest.Host
	t *testing.T
}

// newEngineHost starts an Engine that has the server's image, as sandpit:test, and a small one for sandboxes.
func newEngineHost(t *testing.T) *engineHost {
	t.Helper()
	h := &engineHost{dockerdtest.New(t), t}
	// Where people have it. This /run is the Engine's own.
	if err := h.Engine().Do(func() error { return os.Symlink(h.Socket(), "/run/docker.sock") }); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "image.tar")
	cmd := exec.Command("go", "run", "./deploy/serverimage", "-program", filepath.Join(bin, "sandpit"), "-version", version, "-name", "sandpit:test", "-o", archive)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make the server's image: %v\n%s", err, out)
	}
	h.docker("load", "-i", archive)
	small := h.Docker("import", "-", theirs)
	small.Stdin = smallRoot(t, "bash", "sh", "cat", "ls", "id", "sleep", "mkdir", "rm", "readlink", "stat", "seq", "head", "tr", "wc")
	if out, err := small.CombinedOutput(); err != nil {
		t.Fatalf("import an image: %v\n%s", err, out)
	}
	return h
}

// docker runs a docker command, and returns what it prints.
func (h *engineHost) docker(args ...string) string {
	h.t.Helper()
	var said bytes.Buffer
	cmd := h.Docker(args...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		h.t.Fatalf("docker %q: %v\n%s%s", args, err, out, said.String())
	}
	return strings.TrimSpace(string(out))
}

// left returns what there is of containers and volumes, but for the volume with the agent, which each Engine keeps.
func (h *engineHost) left() []string {
	h.t.Helper()
	all := append(strings.Fields(h.docker("ps", "-a", "--format", "{{.Names}}")), strings.Fields(h.docker("volume", "ls", "-q"))...)
	return slices.DeleteFunc(all, func(name string) bool { return strings.HasPrefix(name, "sandpit-agent-") })
}

// token returns the administrator's of a server in a container.
func (h *engineHost) token(container string) string {
	h.t.Helper()
	out, err := h.Docker("cp", container+":/var/lib/sandpit/admin-token", "-").Output()
	if err != nil {
		h.t.Fatal(err)
	}
	r := tar.NewReader(bytes.NewReader(out))
	if _, err := r.Next(); err != nil {
		h.t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// get asks a server in a container for a page, from within its network: this Engine publishes no ports.
func (h *engineHost) get(container, token, path string) (status int, body string) {
	h.t.Helper()
	netns := fmt.Sprintf("/proc/%d/ns/net", h.process(container))
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // for good: the thread ends with the goroutine
			f, ferr := os.Open(netns)
			if err = ferr; err != nil {
				return
			}
			defer f.Close()
			if err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err == nil {
				conn, err = new(net.Dialer).DialContext(ctx, network, address)
			}
		}()
		<-done
		return conn, err
	}}}
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, "http://127.0.0.1:8080"+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// process returns the number, here, of a process of a container's.
func (h *engineHost) process(container string) int {
	h.t.Helper()
	id := h.docker("inspect", "-f", "{{.Id}}", container)
	all, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		h.t.Fatal(err)
	}
	for _, path := range all {
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(id)) {
			var pid int
			if _, err := fmt.Sscanf(path, "/proc/%d/cgroup", &pid); err != nil {
				h.t.Fatal(err)
			}
			return pid
		}
	}
	h.t.Fatalf("%s has no process", container)
	return 0
}

// smallRoot returns a root file system with a few programs of the python image and their libraries, as an archive: an Engine takes
// that one in a second.
func smallRoot(t *testing.T, programs ...string) io.Reader {
	t.Helper()
	return imagetest.Small(t, []string{imagetest.Python(t).Root}, nil, programs...)
}
