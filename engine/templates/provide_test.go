// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package templates_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/engine/templates"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/image/dockerfile"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/template"
)

// workshop makes the images of enginetest, which has those that the tests of the engine have.
type workshop struct {
	proceed chan struct{} // closed: builds end

	mu     sync.Mutex
	builds int
	here   map[string]bool
}

func (w *workshop) Here(_ context.Context, name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.here[name] {
		return nil
	}
	return fault.New(fault.NotFound, "there is no image %q", name)
}

func (w *workshop) count(here string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.builds++; here != "" {
		w.here[here] = true
	}
}

func (w *workshop) made() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.builds
}

func (w *workshop) Bring(ctx context.Context, _ access.Caller, name string) error {
	w.count(name)
	return nil
}

func (w *workshop) BuildDockerfile(ctx context.Context, _ access.Caller, _ io.Reader, _ dockerfile.Request, _ func(dockerfile.Event)) (image.Status, error) {
	w.count("")
	select {
	case <-w.proceed:
	case <-ctx.Done():
		return image.Status{}, ctx.Err()
	}
	img, err := enginetest.Images{}.Find(ctx, "python")
	img.Digest = "python" // a name that the engine's images have
	return image.Status{Image: img}, err
}

func (w *workshop) Forget(context.Context, string) error { return nil }

// withImages is open with a workshop whose builds wait for proceed.
func withImages(t *testing.T) (*house, *workshop) {
	t.Helper()
	w := &workshop{proceed: make(chan struct{}), here: make(map[string]bool)}
	return with(t, templates.Options{Resolve: enginetest.Images{}.Resolve, Images: w, Logs: t.TempDir()}), w
}

// provide creates a sandbox of an image that is made for it.
func (h *house) provide(key string, sp template.Spec) *sandbox.Sandbox {
	h.t.Helper()
	of := templates.Request{Spec: sp}
	if sp.Dockerfile != "" {
		of.Files = io.NopCloser(strings.NewReader(""))
	}
	r := engine.CreateRequest{Key: key, Refuse: true}
	if _, err := h.templates().Provide(h.t.Context(), chief, &r, of); err != nil {
		h.t.Fatal(err)
	}
	return h.make(chief, r)
}

func TestSandboxesShareTheBuildOfTheirImage(t *testing.T) {
	t.Parallel()
	h, w := withImages(t)
	sp := template.Spec{Dockerfile: "FROM python\nRUN true\n"}
	a, b := h.provide("a", sp), h.provide("b", sp)
	if a.State != sandbox.Creating || b.State != sandbox.Creating {
		t.Fatalf("they are %s and %s", a.State, b.State)
	}
	close(w.proceed)
	for _, id := range []sandbox.ID{a.ID, b.ID} {
		h.Await(t, "it runs", func() bool { return h.get(id).State == sandbox.Running })
	}
	if c := h.provide("c", sp); c.State != sandbox.Running {
		t.Errorf("a third of what was built is %s", c.State)
	}
	if n := w.made(); n != 1 {
		t.Errorf("%d builds for one image", n)
	}
}

func TestABuildThatNobodyWaitsForIsBrokenOff(t *testing.T) {
	t.Parallel()
	h, w := withImages(t)
	sp := template.Spec{Dockerfile: "FROM python\nRUN true\n"}
	kept := func() (n int) {
		t.Helper()
		k, err := h.templates().List(t.Context(), chief)
		if err != nil {
			t.Fatal(err)
		}
		return len(k.Templates)
	}
	h.provide("a", sp)
	r := engine.CreateRequest{Key: "a", Refuse: true}
	abandon, err := h.templates().Provide(t.Context(), chief, &r, templates.Request{Spec: sp, Files: io.NopCloser(strings.NewReader(""))})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Creator.Create(t.Context(), chief, r); !fault.Is(err, fault.Exists) {
		t.Fatalf("a name that is taken: %v", err)
	}
	if abandon(); kept() != 1 {
		t.Error("the build for a sandbox was broken off, since another was refused")
	}
	if err := h.Engine.Delete(t.Context(), chief, "a"); err != nil {
		t.Fatal(err)
	}
	h.Await(t, "the build is broken off", func() bool { return kept() == 0 })
	if abandon, err = h.templates().Provide(t.Context(), chief, new(engine.CreateRequest), templates.Request{Spec: sp, Files: io.NopCloser(strings.NewReader(""))}); err != nil {
		t.Fatal(err)
	}
	if abandon(); kept() != 0 {
		t.Error("a build goes on for a sandbox that was not created")
	}
	close(w.proceed)
}

func TestAnImageThatWasRemovedIsPulledAgain(t *testing.T) {
	t.Parallel()
	h, w := withImages(t)
	for n := range 2 {
		box := h.provide("", template.Spec{Image: "python"})
		h.Await(t, "it runs", func() bool { return h.get(box.ID).State == sandbox.Running })
		if got := w.made(); got != n+1 {
			t.Errorf("it was brought %d times, want %d", got, n+1)
		}
		if box := h.provide("", template.Spec{Image: "python"}); box.State != sandbox.Running {
			t.Errorf("what is here is one step, and the sandbox is %s", box.State)
		}
		w.mu.Lock()
		w.here["python"] = false
		w.mu.Unlock()
	}
}

// Who is no administrator has nothing made, and gets what the engine says of the name.
func TestNobodyElseHasAnImageMade(t *testing.T) {
	t.Parallel()
	h, w := withImages(t)
	r := engine.CreateRequest{}
	if _, err := h.templates().Provide(t.Context(), alice, &r, templates.Request{Spec: template.Spec{Image: "registry.example/x:1"}}); err != nil || r.Later != nil || r.Image != "registry.example/x:1" {
		t.Errorf("a pull: %+v, %v", r, err)
	}
	_, err := h.templates().Provide(t.Context(), alice, &r, templates.Request{Spec: template.Spec{Dockerfile: "FROM python\nRUN true\n"}, Files: io.NopCloser(strings.NewReader(""))})
	if !fault.Is(err, fault.Denied) || w.made() != 0 {
		t.Errorf("a build: %v", err)
	}
}

func TestWhatIsNotUsedAgainGoes(t *testing.T) {
	t.Parallel()
	h, w := withImages(t)
	close(w.proceed)
	old := &template.Template{
		ID: "tmpl_0000000000000001", Project: "default", Name: "image-old", Spec: template.Spec{Dockerfile: "FROM python\n", Origin: template.Sandbox}, Status: template.Ready,
		Image: "python", CreatedAt: h.Engine.Now().Add(-25 * time.Hour),
	}
	theirs := *old
	theirs.ID, theirs.Name, theirs.Spec.Origin = "tmpl_0000000000000002", "theirs", ""
	for _, one := range []*template.Template{old, &theirs} {
		if err := h.Store.Update(t.Context(), func(tx store.Tx) error { return tx.Templates().Insert(one) }); err != nil {
			t.Fatal(err)
		}
	}
	box := h.provide("", template.Spec{Dockerfile: "FROM python\nRUN true\n"})
	h.Await(t, "it runs", func() bool { return h.get(box.ID).State == sandbox.Running })
	if _, err := h.templates().Get(t.Context(), chief, old.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("what was made for a sandbox a day ago: %v", err)
	}
	if _, err := h.templates().Get(t.Context(), chief, theirs.ID); err != nil {
		t.Errorf("what somebody made: %v", err)
	}
}

// between is a store that calls what is to happen before the next commit, or behind it and before who made it knows of it.
type between struct {
	store.Store
	before, behind atomic.Pointer[func()] // called once
}

func (b *between) Update(ctx context.Context, fn func(store.Tx) error) error {
	if first := b.before.Swap(nil); first != nil {
		(*first)()
	}
	err := b.Store.Update(ctx, fn)
	if then := b.behind.Swap(nil); then != nil {
		(*then)()
	}
	return err
}

// withBetween is withImages over such a store.
func withBetween(t *testing.T) (h *house, w *workshop, st *between) {
	t.Helper()
	w = &workshop{proceed: make(chan struct{}), here: make(map[string]bool)}
	return &house{Server: enginetest.StartTemplates(t, t.TempDir(), templates.Options{Resolve: enginetest.Images{}.Resolve, Images: w}, func(o *engine.Options) {
		st = &between{Store: o.Store}
		o.Store = st
	}), t: t}, w, st
}

func TestSandboxesThatAskAtOnceShareABuild(t *testing.T) {
	t.Parallel()
	h, w, st := withBetween(t)
	var first, second engine.CreateRequest
	ask := func() { h.ask(&second) }
	st.behind.Store(&ask)
	h.ask(&first)
	if a, b := first.Template, second.Template; a == nil || b == nil || a.ID != b.ID {
		t.Errorf("two that ask for one image have %+v and %+v", a, b)
	}
	close(w.proceed)
}

// ask has an image made for a request.
func (h *house) ask(r *engine.CreateRequest) (abandon func()) {
	h.t.Helper()
	of := templates.Request{Spec: template.Spec{Dockerfile: "FROM python\nRUN true\n"}, Files: io.NopCloser(strings.NewReader(""))}
	abandon, err := h.templates().Provide(h.t.Context(), chief, r, of)
	if err != nil {
		h.t.Error(err)
	}
	return abandon
}

func TestABuildThatIsBrokenOffIsNotShared(t *testing.T) {
	t.Parallel()
	h, w, st := withBetween(t)
	var first, second engine.CreateRequest
	abandon := h.ask(&first)
	asked := make(chan struct{})
	ask := func() { defer close(asked); h.ask(&second) }
	st.before.Store(&ask)
	abandon()
	<-asked
	close(w.proceed)
	box := h.make(chief, second)
	h.Await(t, "it is made, or not", func() bool { box = h.get(box.ID); return box.State != sandbox.Creating })
	if box.State != sandbox.Running {
		t.Errorf("it is %s: %s", box.State, box.StopDetail)
	}
	if _, err := h.templates().Get(t.Context(), chief, first.Template.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("what nobody waits for: %v", err)
	}
}

// What is built, or being built, is no further build.
func TestABuildIsSharedWhereNoOtherMayBegin(t *testing.T) {
	t.Parallel()
	h, w := withImages(t)
	ask := func(n int) error {
		r := engine.CreateRequest{}
		of := templates.Request{Spec: template.Spec{Dockerfile: fmt.Sprintf("FROM python\nRUN true %d\n", n)}, Files: io.NopCloser(strings.NewReader(""))}
		_, err := h.templates().Provide(t.Context(), chief, &r, of)
		return err
	}
	begun := 0
	for ; begun < 100; begun++ {
		if err := ask(begun); fault.Is(err, fault.Exhausted) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if begun == 0 || begun == 100 {
		t.Errorf("%d builds may go on", begun)
	}
	if err := ask(0); err != nil {
		t.Errorf("what is being built: %v", err)
	}
	close(w.proceed)
}
