// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
)

// A sandbox whose disk is gone says so, and works again when it is back.
func TestADiskThatIsGone(t *testing.T) {
	t.Parallel()
	// away takes the disk away, behind a server that is not there, and back brings it.
	away := func(h *house, id sandbox.ID) (back func()) {
		h.t.Helper()
		from, to := filepath.Join(h.dir, "host", string(id)), filepath.Join(h.t.TempDir(), "disk")
		if err := os.Rename(from, to); err != nil {
			h.t.Fatal(err)
		}
		return func() {
			if err := os.Rename(to, from); err != nil {
				h.t.Fatal(err)
			}
		}
	}
	// reboot returns a new host over the same directory, as after a boot.
	reboot := func(h *house, meanwhile func()) *house {
		h.t.Helper()
		h.end()
		if err := h.host.Close(); err != nil {
			h.t.Fatal(err)
		}
		if err := h.store.Close(); err != nil {
			h.t.Fatal(err)
		}
		meanwhile()
		return open(h.t, h.dir)
	}
	for _, was := range []sandbox.State{sandbox.Running, sandbox.Paused, sandbox.Stopped} {
		t.Run(string(was), func(t *testing.T) {
			h := open(t, t.TempDir())
			s := h.create(engine.CreateRequest{Key: "box"})
			h.exec("box", "echo kept > file")
			switch was {
			case sandbox.Paused:
				h.pause("box")
			case sandbox.Stopped:
				if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
					t.Fatal(err)
				}
			}
			var back func()
			h = reboot(h, func() { back = away(h, s.ID) })
			if got := h.get(s.ID); got.State != sandbox.Failed || got.StopDetail != "its disk is gone from this host" {
				t.Errorf("before any call: %+v", got)
			}
			_, err := h.engine.Start(t.Context(), alice, "box")
			wantCode(t, err, fault.State)
			if m := fault.As(err).Message; !strings.Contains(m, "its disk is gone") {
				t.Errorf("message: %q", m)
			}
			got := h.get(s.ID)
			if got.State != sandbox.Failed || got.StopCause != sandbox.CauseHost || got.StopDetail != "its disk is gone from this host" {
				t.Fatalf("got %+v", got)
			}
			evs := h.events(s.ID)
			if last := evs[len(evs)-1]; last.Type != sandbox.EventFailed || last.OK || last.Detail != got.StopDetail {
				t.Errorf("event: %+v", last)
			}
			_, err = h.engine.Exec(t.Context(), alice, "box", engine.ExecRequest{Shell: "true"}, nil)
			wantCode(t, err, fault.State)
			if got, err := h.engine.Stop(t.Context(), alice, "box"); err != nil || got.State != sandbox.Failed {
				t.Errorf("a stop of it: %+v, %v", got, err)
			}
			back()
			if res := h.exec("box", "cat file"); string(res.Stdout) != "kept\n" { // a call starts it again
				t.Errorf("stdout: %q", res.Stdout)
			}
		})
	}
	t.Run("IsMendedByTheNextServerToo", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		var back func()
		h = reboot(h, func() { back = away(h, s.ID) })
		if got := h.get(s.ID); got.State != sandbox.Failed {
			t.Fatalf("got %+v", got)
		}
		h = reboot(h, func() { back() })
		got := h.get(s.ID)
		if got.State != sandbox.Stopped || got.StopCause != sandbox.CauseHost || !strings.Contains(got.StopDetail, "there again") {
			t.Errorf("got %+v", got)
		}
		h.exec("box", "true")
	})
	t.Run("AndCanBeDeleted", func(t *testing.T) {
		h := open(t, t.TempDir())
		s := h.create(engine.CreateRequest{Key: "box"})
		h = reboot(h, func() { away(h, s.ID) })
		if err := h.engine.Delete(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		h.nothing()
	})
}

// forgetful is a catalogue that has lost its images, for as long as it is told.
type forgetful struct {
	catalogue
	lost atomic.Bool
}

func (f *forgetful) FindDigest(name, digest string) (image.Image, error) {
	if f.lost.Load() {
		return image.Image{}, fault.New(fault.NotFound, "there is no image %s of %s", digest, name)
	}
	return f.catalogue.FindDigest(name, digest)
}

func TestAnImageThatIsGone(t *testing.T) {
	t.Parallel()
	images := &forgetful{}
	h := open(t, t.TempDir(), func(o *engine.Options) { o.Images = images })
	s := h.create(engine.CreateRequest{Key: "box"})
	if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	images.lost.Store(true)
	_, err := h.engine.Start(t.Context(), alice, "box")
	wantCode(t, err, fault.State)
	if got := h.get(s.ID); got.State != sandbox.Failed || !strings.Contains(got.StopDetail, "its image python (sha256:python) is gone") {
		t.Errorf("got %+v", got)
	}
	images.lost.Store(false)
	if got, err := h.engine.Start(t.Context(), alice, "box"); err != nil || got.State != sandbox.Running {
		t.Errorf("got %+v, %v", got, err)
	}
}
