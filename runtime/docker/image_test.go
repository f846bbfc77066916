// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
)

// An image that takes longer than its caller waits is sent on, and is there for the next.
func sendingGoesOn(t *testing.T, p *place) {
	sum := make([]byte, 32)
	_, _ = rand.Read(sum) // never fails
	img := runtime.Image{Name: "large", Digest: "sha256:" + hex.EncodeToString(sum), Root: t.TempDir()}
	f, err := os.Create(filepath.Join(img.Root, "zeros"))
	p.must(err)
	p.must(f.Truncate(256 << 20)) // is read twice before the Engine has it
	p.must(f.Close())
	spec := p.spec()
	spec.Image = img
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.driver.Create(soon, spec); fault.Of(err) != fault.Unavailable || !strings.Contains(err.Error(), "still being sent") || fault.As(err).Remedy == "" {
		t.Errorf("a create that waits 50 ms: %v", err)
	}
	ref := "localhost/sandpit/image:" + hex.EncodeToString(sum)
	for {
		_, err := p.engine.InspectImage(t.Context(), ref)
		if err == nil {
			break
		}
		if !fault.Is(err, fault.NotFound) {
			t.Fatal(err)
		}
		p.must(t.Context().Err())
		time.Sleep(20 * time.Millisecond) // there is no event for it that the driver's test could await
	}
	p.must(p.driver.RemoveImage(t.Context(), img.Digest))
	if _, err := p.engine.InspectImage(t.Context(), ref); !fault.Is(err, fault.NotFound) {
		t.Errorf("the image that was removed: %v", err)
	}
}
