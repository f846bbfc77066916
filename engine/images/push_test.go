// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package images_test

import (
	"crypto/x509"
	"io"
	"log"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"sandpit.dev/engine/images"
	"sandpit.dev/fault"
	"sandpit.dev/image"
)

// What one server pushes another pulls, with the digest that an archive of it has.
func TestAnImageGoesFromServerToServer(t *testing.T) {
	at := httptest.NewTLSServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(at.Close)
	at.Config.ErrorLog = log.New(io.Discard, "", 0)
	host := strings.TrimPrefix(at.URL, "https://")
	roots := x509.NewCertPool()
	roots.AddCert(at.Certificate())
	reach := func(a netip.Addr) bool { return a.IsLoopback() }

	o := startOthers(t)
	from, err := image.Open(image.Options{Dir: filepath.Dir(o.dir), Public: reach, Roots: roots})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = from.Close() })
	keeper := images.New(o.Engine, from)
	saving, err := keeper.Save(t.Context(), owner, "a/a:1")
	if err != nil {
		t.Fatal(err)
	}
	saving.Close()
	pushed, err := keeper.Push(t.Context(), owner, "a/a:1", host+"/mine:7", nil)
	if err != nil || pushed.Digest != saving.Digest || pushed.Sent < layerSize {
		t.Fatalf("%+v, %v; an archive has %s", pushed, err, saving.Digest)
	}
	to, err := image.Open(image.Options{Dir: t.TempDir(), Public: reach, Roots: roots})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = to.Close() })
	if got, err := to.Pull(t.Context(), host+"/mine:7", ""); err != nil || got.Image.Digest != pushed.Digest || got.Image.Env["V"] != "1" {
		t.Errorf("pulled %+v, %v", got.Image, err)
	}
	if _, err := keeper.Push(t.Context(), owner, "b/none:1", host+"/mine:7", nil); !fault.Is(err, fault.NotFound) {
		t.Errorf("an image that is not here: %v", err)
	}
}
