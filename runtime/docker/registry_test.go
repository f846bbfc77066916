// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"archive/tar"
	"io"
	"net/http"
	goruntime "runtime"
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker"
	"sandpit.dev/runtime/docker/engineapi"
)

// An Engine pulls what it lacks, and tells how far each layer is. What keeps it from that is told with its cause and remedy, and the next
// pull works where that is mended.
func registryImages(t *testing.T, p *place) {
	r := p.host.NewRegistry(t)
	ctx := t.Context()
	var clock hurriedClock
	p.must(p.driver.Close())
	p.driver = openWith(t, docker.Clocked(docker.Options{Dir: p.dir, Namespace: p.namespace, Engine: engineapi.Environment{Host: "unix://" + p.host.Socket()}}, &clock))
	take := func(ref string, tell func(runtime.ImageProgress)) error {
		archive, err := p.driver.SaveImage(ctx, ref, tell)
		if err != nil {
			return err
		}
		defer func() { _ = archive.Close() }()
		var files int
		for in := tar.NewReader(archive); ; files++ {
			switch _, err := in.Next(); {
			case err == io.EOF && files > 0:
				return nil
			case err != nil:
				t.Fatalf("its archive: %v", err)
			}
		}
	}
	has := func(ref string) bool {
		_, err := p.engine.InspectImage(ctx, ref)
		if err != nil && !fault.Is(err, fault.NotFound) {
			t.Fatal(err)
		}
		return err == nil
	}
	remove := func(ref string) {
		t.Helper()
		if err := p.engine.RemoveImage(ctx, ref); err != nil && !fault.Is(err, fault.NotFound) {
			t.Error(err)
		}
	}

	r.Push("team/app", goruntime.GOARCH, []int{3 << 20, 20}, "latest", "other")
	var last runtime.ImageProgress
	if err := take(r.Host+"/team/app", func(got runtime.ImageProgress) { last = got }); err != nil {
		t.Fatal(err)
	}
	defer remove(r.Host + "/team/app:latest")
	if last.Layers != 2 || last.Ready != 2 || last.Part < 0.99 {
		t.Errorf("in the end it was told to be %+v", last)
	}
	if has(r.Host + "/team/app:other") {
		t.Error("who names no tag gets all that there are")
	}
	if err := take(r.Host+"/team/app", func(got runtime.ImageProgress) { t.Errorf("it is there, and told as %+v", got) }); err != nil {
		t.Error(err)
	}

	other := "s390x"
	r.Push("team/foreign", other, []int{20}, "1")
	r.PushList("team/list", "1", r.Image("team/foreign", "1"), other)
	for _, repository := range []string{"team/broken", "team/hanging", "team/cut"} { // each with a layer of its own
		r.Push(repository, goruntime.GOARCH, []int{2 << 20}, "1")
	}
	blob := func(req *http.Request) bool {
		return strings.Contains(req.URL.Path, "/blobs/") && req.Method == http.MethodGet
	}
	over := make(chan struct{})
	defer close(over)
	hangs := func(_ http.ResponseWriter, req *http.Request) bool {
		clock.hurry(true)
		select {
		case <-req.Context().Done():
		case <-over: // an Engine waits for a layer though nobody waits for that
		}
		panic(http.ErrAbortHandler)
	}
	for _, test := range []struct {
		name, ref string
		before    func(http.ResponseWriter, *http.Request) bool
		want      fault.Code
		words     string
	}{
		{"Unknown", r.Host + "/team/none:1", nil, fault.NotFound, "does not give it"},
		{"AnUnknownTag", r.Host + "/team/app:none", nil, fault.NotFound, "does not give it"},
		{"AnUnknownDigest", r.Host + "/team/app@sha256:" + strings.Repeat("0", 64), nil, fault.NotFound, "does not give it"},
		{"ForAnother", r.Host + "/team/list:1", nil, fault.Unsupported, "for the processor"},
		{"Down", "127.0.0.1:1/team/app:1", nil, fault.Unavailable, "does not answer"},
		{"NoRegistry", r.Host + "/team/broken:1", func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = io.WriteString(w, "hello")
			return true
		}, fault.Unavailable, "not as one"},
		{"Failing", r.Host + "/team/broken:1", func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}, fault.Unavailable, "not as one"},
		{"Denied", r.Host + "/team/broken:1", func(w http.ResponseWriter, req *http.Request) bool {
			w.Header().Set("WWW-Authenticate", `Basic realm="team"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}, fault.NotFound, "log the Engine in"},
		{"Hanging", r.Host + "/team/broken:1", hangs, fault.Unavailable, "does not answer"},
		{"HangingInALayer", r.Host + "/team/hanging:1", func(w http.ResponseWriter, req *http.Request) bool {
			return blob(req) && hangs(w, req)
		}, fault.Unavailable, "does not answer"},
		{"BreakingOffInALayer", r.Host + "/team/cut:1", func(w http.ResponseWriter, req *http.Request) bool {
			if !blob(req) {
				return false
			}
			w.Header().Set("Content-Length", "2000000")
			_, _ = w.Write(make([]byte, 1<<20))
			panic(http.ErrAbortHandler)
		}, fault.Unavailable, "does not answer"},
		{"AnotherLayer", r.Host + "/team/broken:1", func(w http.ResponseWriter, req *http.Request) bool {
			if !blob(req) {
				return false
			}
			_, _ = w.Write(make([]byte, 1<<20))
			return true
		}, fault.Unavailable, "not as one"},
		{"Malformed", r.Host + "/Team/App:1", nil, fault.Invalid, "not a valid reference"},
		{"AWayOut", "../../info", nil, fault.Invalid, "not a valid reference"},
		{"AHalfDigest", r.Host + "/team/app@sha256:00", nil, fault.Invalid, "not a valid reference"},
		{"AnAddress", "http://" + r.Host + "/team/app", nil, fault.Invalid, "not a valid reference"},
		{"NoText", "", nil, fault.Invalid, "not a valid reference"},
	} {
		r.First(test.before)
		err := take(test.ref, nil)
		r.First(nil)
		clock.hurry(false)
		f := fault.As(err)
		if err == nil || f.Code != test.want || f.Remedy == "" || !strings.Contains(f.Message+f.Remedy, test.words) {
			t.Errorf("%s: got %v (%s; %s), want %s with %q", test.name, err, fault.Of(err), fault.As(err).Remedy, test.want, test.words)
		}
	}
	for _, ref := range []string{r.Host + "/team/broken:1", r.Host + "/team/cut:1"} {
		if err := take(ref, nil); err != nil {
			t.Errorf("%s, when its registry is whole again: %v", ref, err)
		}
		remove(ref)
	}
	for _, left := range []string{"/team/none:1", "/team/foreign:1", "/team/list:1"} {
		if has(r.Host + left) {
			t.Errorf("the Engine has %s", left)
		}
	}
}
