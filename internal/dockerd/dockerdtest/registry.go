// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dockerdtest

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Registry is one of images, which an Engine reaches as one of its host's.
type Registry struct {
	Host string // as in references

	t      testing.TB
	pushed http.Handler
	before atomic.Pointer[func(http.ResponseWriter, *http.Request) bool] // reports whether it answered
}

// NewRegistry returns an empty one, which is there until the test's end or the Engine's.
func (h *Host) NewRegistry(t testing.TB) *Registry {
	t.Helper()
	l, err := h.engine.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Registry{t: t, Host: l.Addr().String(), pushed: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	s := &http.Server{ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if f := r.before.Load(); f != nil && (*f)(w, req) {
			return
		}
		r.ServeHTTP(w, req)
	})}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Close()
		<-ended
	})
	return r
}

// ServeHTTP answers as a registry does, whatever First says.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.pushed.ServeHTTP(w, req) }

// First has f see each request first, which reports whether it answered; nil: nobody does.
func (r *Registry) First(f func(http.ResponseWriter, *http.Request) bool) {
	if f == nil {
		r.before.Store(nil)
		return
	}
	r.before.Store(&f)
}

// Push puts an image for a processor there, with layers of a file each, by tags of a repository.
func (r *Registry) Push(repository, arch string, sizes []int, tags ...string) {
	r.t.Helper()
	img := v1.Image(empty.Image)
	config, err := img.ConfigFile()
	r.must(err)
	config = config.DeepCopy()
	config.Architecture, config.OS = arch, "linux"
	img, err = mutate.ConfigFile(img, config)
	r.must(err)
	for n, size := range sizes {
		img, err = mutate.AppendLayers(img, layerOf(r.t, string(rune('a'+n)), size))
		r.must(err)
	}
	for _, tag := range tags {
		r.write(img, repository, tag)
	}
}

func (r *Registry) write(img v1.Image, repository, tag string) {
	r.t.Helper()
	ref, err := name.ParseReference(r.Host+"/"+repository+":"+tag, name.Insecure)
	r.must(err)
	r.must(remote.Write(ref, img, remote.WithTransport(r)))
}

// RoundTrip asks the registry, which a test reaches by no network.
func (r *Registry) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body == nil {
		req.Body = http.NoBody
	}
	defer func() { _ = req.Body.Close() }()
	w := httptest.NewRecorder()
	req.RequestURI = req.URL.RequestURI()
	r.pushed.ServeHTTP(w, req)
	resp := w.Result()
	resp.Request = req
	return resp, nil
}

// layerOf is a layer with a file of bytes that cannot be compressed.
func layerOf(t testing.TB, path string, size int) v1.Layer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	data := make([]byte, size)
	_, _ = rand.Read(data) // never fails
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: 0o644, Size: int64(size)})
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return layer
}

// PushList puts a list there that has an image for another processor alone.
func (r *Registry) PushList(repository, tag string, of v1.Image, arch string) {
	r.t.Helper()
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: of, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	ref, err := name.ParseReference(r.Host+"/"+repository+":"+tag, name.Insecure)
	r.must(err)
	r.must(remote.WriteIndex(ref, index, remote.WithTransport(r)))
}

func (r *Registry) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// Image returns one that is there.
func (r *Registry) Image(repository, tag string) v1.Image {
	r.t.Helper()
	ref, err := name.ParseReference(r.Host+"/"+repository+":"+tag, name.Insecure)
	r.must(err)
	img, err := remote.Image(ref, remote.WithTransport(r))
	r.must(err)
	return img
}
