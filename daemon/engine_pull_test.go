// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
	"sandpit.dev/internal/dockerd/dockerdtest"
)

// oneReady reports whether a layer is there, and another one as far as some of its bytes.
func oneReady(all []v1.PulledLayer) bool {
	ready := slices.IndexFunc(all, func(l v1.PulledLayer) bool { return l.Status == "ready" && l.DoneBytes == l.SizeBytes })
	return ready >= 0 && slices.ContainsFunc(all, func(l v1.PulledLayer) bool {
		return l.Status == "pulling" && l.DoneBytes > 0 && l.DoneBytes < l.SizeBytes
	})
}

// An image that the Engine lacks is pulled when a sandbox is made of it: how far it is is told meanwhile, its name is resolved
// to a digest, and what a sandbox needs is added.
func pulledByTheEngine(t *testing.T, h *dockerdtest.Host, c *client.Client) {
	r := h.NewRegistry(t)
	r.Push("team/app", runtime.GOARCH, []int{20, 3 << 20}, "1")
	name := r.Host + "/team/app:1"
	seen := make(chan struct{})
	r.First(func(w http.ResponseWriter, req *http.Request) bool {
		if req.Method != http.MethodGet || !strings.Contains(req.URL.Path, "/blobs/") {
			return false
		}
		all := httptest.NewRecorder()
		r.ServeHTTP(all, req)
		b := all.Body.Bytes()
		for name, values := range all.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(all.Code)
		half := 0
		if len(b) > 1<<20 {
			half = len(b) / 2
			_, _ = w.Write(b[:half])
			w.(http.Flusher).Flush() //nolint:forcetypeassert // a server's is one
			select {
			case <-seen:
			case <-req.Context().Done():
			}
		}
		_, _ = w.Write(b[half:])
		return true
	})
	defer r.First(nil)
	type made struct {
		*v1.Sandbox
		error
	}
	done := make(chan made, 1)
	go func() {
		s, _, err := c.Create(t.Context(), v1.CreateSandbox{Image: &name})
		done <- made{s, err}
	}()
	var got made
	for told := false; !told; {
		list, err := c.Images(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, img := range list {
			if img.Name == name && img.Status == "building" && img.Phase == "pull" && strings.HasSuffix(img.Text, " MB, 1 of 2 layers") && img.Progress != nil && *img.Progress > 0.4 && *img.Progress < 0.8 {
				told = true
				if l := img.Pulling; len(l) != 2 || !oneReady(l) {
					t.Errorf("its layers are %+v", l)
				}
			}
		}
		select {
		case got = <-done:
			t.Fatalf("it is made, and nothing was told of the pull: %+v, %v", got.Sandbox, got.error)
		default:
		}
	}
	close(seen)
	if got = <-done; got.error != nil {
		t.Fatal(got.error)
	}
	if got.Image != name || !strings.HasPrefix(got.Digest, "sha256:") {
		t.Errorf("it is of %q, %q", got.Image, got.Digest)
	}
	for _, path := range []string{"/workspace/file", "/artifacts/file"} {
		if err := c.WriteFile(t.Context(), got.ID, path, strings.NewReader("the user's"), client.WriteOptions{}); err != nil {
			t.Error(err)
		}
	}
	f, err := c.ReadFile(t.Context(), got.ID, "/etc/passwd", client.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	passwd, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil || !strings.Contains(string(passwd), ":1000:1000:") {
		t.Errorf("its users are %q, %v", passwd, err)
	}
	// Another image by the same name is another's: what is here has its digest.
	r.Push("team/app", runtime.GOARCH, []int{30}, "1")
	next, _, err := c.Create(t.Context(), v1.CreateSandbox{Image: &name})
	if err != nil || next.Digest != got.Digest {
		t.Errorf("after the name was given to another it is %+v, %v; want %s", next, err, got.Digest)
	}
	for name, want := range map[string]fault.Code{
		r.Host + "/team/none:1": fault.NotFound, "127.0.0.1:1/team/app:1": fault.Unavailable, r.Host + "/Team/App:1": fault.Invalid,
	} {
		if _, _, err := c.Create(t.Context(), v1.CreateSandbox{Image: &name}); fault.Of(err) != want || fault.As(err).Remedy == "" {
			t.Errorf("%s: %v (%s; %s), want %s", name, err, fault.Of(err), fault.As(err).Remedy, want)
		}
	}
}
