// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/sandbox"
)

func madeAtOnce(_ context.Context, r *engine.CreateRequest) error {
	r.Image = "python"
	return nil
}

// slowly is an image that is made when it is told so.
type slowly struct {
	begun chan struct{}
	made  chan error
	ended chan error // why it was broken off
}

func newSlowly() *slowly {
	return &slowly{make(chan struct{}), make(chan error), make(chan error, 1)}
}

func (s *slowly) image(ctx context.Context, r *engine.CreateRequest) error {
	close(s.begun)
	select {
	case err := <-s.made:
		r.Image = "python"
		return err
	case <-ctx.Done():
		s.ended <- context.Cause(ctx)
		return ctx.Err()
	}
}

func TestACreateAnswersBeforeItsImageIsMade(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	image := newSlowly()
	box := h.create(engine.CreateRequest{Key: "box", Env: map[string]string{"A": "b"}, Later: image.image})
	if box.State != sandbox.Creating || box.ImageDigest != "" || box.Env["A"] != "b" {
		t.Fatalf("the answer is %+v", box)
	}
	<-image.begun
	ctx := t.Context()
	for what, do := range map[string]func() error{
		"start":  func() error { _, err := h.engine.Start(ctx, alice, "box"); return err },
		"stop":   func() error { _, err := h.engine.Stop(ctx, alice, "box"); return err },
		"pause":  func() error { _, err := h.engine.Pause(ctx, alice, "box"); return err },
		"update": func() error { _, err := h.engine.Update(ctx, alice, "box", update.Patch{CPU: ptr(2.0)}); return err },
		"exec": func() error {
			_, err := h.engine.Exec(ctx, alice, "box", engine.ExecRequest{Shell: "true"}, nil)
			return err
		},
		"create of its key": func() error { _, _, err := h.engine.Create(ctx, alice, engine.CreateRequest{Key: "box"}); return err },
	} {
		if err := do(); !fault.Is(err, fault.State) {
			t.Errorf("%s meanwhile: %v", what, err)
		}
	}
	if _, _, err := h.engine.Create(ctx, alice, engine.CreateRequest{Key: "box", Refuse: true}); !fault.Is(err, fault.Exists) {
		t.Errorf("its key is taken: %v", err)
	}
	image.made <- nil
	h.await("it runs", func() bool { return h.get(box.ID).State == sandbox.Running })
	if got := h.get(box.ID); got.Image != "python" || got.ImageDigest == "" {
		t.Errorf("it is of %q, %q", got.Image, got.ImageDigest)
	}
	if got := h.exec("box", "echo $A"); string(got.Stdout) != "b\n" {
		t.Errorf("it says %q", got.Stdout)
	}
	h.wantEvents(box.ID, sandbox.EventCreated, sandbox.EventStarted, sandbox.EventExec)
}

func TestAnImageThatIsNotMadeFailsItsSandbox(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	for key, later := range map[string]func(context.Context, *engine.CreateRequest) error{
		"broken": func(context.Context, *engine.CreateRequest) error {
			return fault.New(fault.State, "the step ended with 7")
		},
		"unknown": func(_ context.Context, r *engine.CreateRequest) error { r.Image = "none-such"; return nil },
	} {
		box := h.create(engine.CreateRequest{Key: key, Later: later})
		h.await("it has failed", func() bool { return h.get(box.ID).State == sandbox.Failed })
		want := map[string]string{"broken": "the step ended with 7", "unknown": "none-such"}[key]
		if got := h.get(box.ID); !strings.Contains(got.StopDetail, want) {
			t.Errorf("%s: the reason is %q", key, got.StopDetail)
		}
		if _, err := h.engine.Start(t.Context(), alice, key); !fault.Is(err, fault.State) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: a start: %v", key, err)
		}
		if err := h.engine.Delete(t.Context(), alice, key); err != nil {
			t.Errorf("%s: a delete: %v", key, err)
		}
		h.wantEvents(box.ID, sandbox.EventCreated, sandbox.EventFailed, sandbox.EventDeleted)
	}
	h.nothing()
}

func TestADeleteEndsTheMakingOfAnImage(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	image := newSlowly()
	box := h.create(engine.CreateRequest{Key: "box", Later: image.image})
	<-image.begun
	if err := h.engine.Delete(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	if err := <-image.ended; err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("the making ended with %v, which does not tell a delete from the end of the server", err)
	}
	h.nothing()
	h.wantEvents(box.ID, sandbox.EventCreated, sandbox.EventDeleted)
}

func TestTheNextServerSaysWhatWasNotMade(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir())
	image := newSlowly()
	box := h.create(engine.CreateRequest{Key: "box", Later: image.image})
	<-image.begun
	h.restart()
	if err := <-image.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the making ended with %v", err)
	}
	if got := h.get(box.ID); got.State != sandbox.Failed || !strings.Contains(got.StopDetail, "the server ended") {
		t.Fatalf("it is %s: %s", got.State, got.StopDetail)
	}
	if err := h.engine.Delete(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	h.nothing()
}

// Killed while its image is made, or before its instance is, a sandbox has failed; what was done of an instance is undone.
func TestAServerThatIsKilledBeforeACreateIsDone(t *testing.T) {
	skiptest.WithShort(t, "a server is killed at each step")
	for point, state := range map[string]sandbox.State{"later.later": sandbox.Failed, "later.made": sandbox.Failed, "later.done": sandbox.Deleted} {
		t.Run(point, func(t *testing.T) {
			dir := t.TempDir()
			killAt(t, dir, point)
			h := open(t, dir)
			if state == sandbox.Deleted {
				h.nothing()
			} else {
				box, err := h.engine.Get(t.Context(), alice, "box")
				if err != nil || box.State != state || !strings.Contains(box.StopDetail, "the server ended") {
					t.Fatalf("it is %+v, %v", box, err)
				}
				if err := h.engine.Delete(t.Context(), alice, "box"); err != nil {
					t.Error(err)
				}
			}
			evs := h.events("")
			if last := evs[len(evs)-1].Type; last != sandbox.EventFailed && last != sandbox.EventDeleted {
				t.Errorf("the last event is %s", last)
			}
			h.create(engine.CreateRequest{Key: "box"})
		})
	}
}
