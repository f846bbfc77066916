// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"context"
	"slices"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/template"
)

// A sandbox may ask for an image that is built of a Dockerfile, or pulled, for it. A version of a template of the project is
// made of that, whose name follows from it: who asks for the same later, or meanwhile, has the same image.
const (
	keepProvided  = 24 * time.Hour // that a version is used again
	mostProvided  = 100            // that a project keeps
	providedName  = "image-"       // begins the names of those versions
	digitsOfNames = 16
)

// Provide completes a request for a sandbox by the image that of.Spec says, by a Dockerfile or by its name. Where that has to be built
// or pulled first it is begun, and the create of r answers before it is done; see [engine.CreateRequest]. Where the create fails the
// caller calls abandon, which breaks off what nobody else waits for.
func (s *Service) Provide(ctx context.Context, c access.Caller, r *engine.CreateRequest, of Request) (abandon func(), err error) {
	abandon = func() {}
	if of.Spec.Dockerfile == "" {
		makes, err := s.toPull(ctx, c, of.Spec.Image)
		if err != nil || !makes { // the engine says what is wrong with a name
			r.Image = of.Spec.Image
			return abandon, err
		}
		of.Bring = true
	}
	of.Name, of.Spec.Origin = nameOf(&of.Spec), template.Sandbox
	s.prune(ctx, c.Project)
	s.expect(c.Project, of.Name)
	t, added, err := s.Create(ctx, c, of)
	if err != nil {
		s.unexpect(c.Project, of.Name)
		return nil, err
	}
	if !added && t.Status == template.Ready && of.Made != nil {
		of.Made()
	}
	r.Template = &sandbox.Template{ID: t.ID, Name: t.Name, Version: t.Version, ChosenBy: sandbox.ChosenExplicitly}
	if t.Status == template.Ready {
		s.unexpect(c.Project, of.Name)
		return abandon, s.begin(r, t)
	}
	id := t.ID
	r.Image = of.Spec.Image
	r.Later = func(ctx context.Context, r *engine.CreateRequest) error {
		t, err := s.awaitBuild(ctx, id)
		if err != nil && ctx.Err() != nil && context.Cause(ctx) != ctx.Err() { // the sandbox is deleted, and the engine goes on
			s.forsake(ctx, c.Project, of.Name, id)
			return err
		}
		if s.unexpect(c.Project, of.Name); err != nil {
			return err
		}
		return s.begin(r, t)
	}
	return func() { s.forsake(ctx, c.Project, of.Name, id) }, nil
}

// toPull reports whether an image is to be pulled, or built, by a caller who may have that done.
func (s *Service) toPull(ctx context.Context, c access.Caller, name string) (bool, error) {
	if s.o.Images == nil || !c.May(access.Admin) {
		return false, nil
	}
	err := s.o.Images.Here(ctx, name)
	if !fault.Is(err, fault.NotFound) {
		return false, err
	}
	return s.known(name), nil
}

// nameOf returns the name of the template of what a sandbox asks for.
func nameOf(sp *template.Spec) string {
	_, digits, _ := strings.Cut(sp.Digest(), ":")
	return providedName + digits[:digitsOfNames]
}

// begin completes a request by a version that is ready.
func (s *Service) begin(r *engine.CreateRequest, t *template.Template) error {
	if err := active(t); err != nil {
		return err
	}
	if r.Image = t.Image; r.Image == "" {
		r.Image = t.Spec.Image
	}
	own := *r.Template // that of the record that Create answered with
	own.Start.Command = s.startOf(r.Image)
	r.Template = &own
	return nil
}

// awaitBuild waits until a version is built, and returns it.
func (s *Service) awaitBuild(ctx context.Context, id string) (t *template.Template, err error) {
	s.mu.Lock()
	b := s.builds[id]
	s.mu.Unlock()
	if b != nil {
		select {
		case <-b.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	err = s.engine.Store().View(ctx, func(tx store.Tx) (err error) {
		t, err = tx.Templates().Get(id)
		return err
	})
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, fault.New(fault.Conflict, "%s", brokenOff)
	case err != nil:
		return nil, err
	case t.Status == template.Ready:
		return t, nil
	case t.Failure == nil:
		return nil, fault.New(fault.Unavailable, "%s", serverEnded)
	}
	reason := t.Failure.Reason
	if last := strings.TrimSpace(t.Failure.Output); last != "" {
		reason += "\n" + last
	}
	return nil, fault.New(fault.State, "%s", reason)
}

// expected is a version that sandboxes wait for, by its project and name.
type expected struct{ project, name string }

func (s *Service) expect(project, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[expected{project, name}]++
}

func (s *Service) unexpect(project, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unexpectLocked(project, name)
}

// unexpectLocked reports whether nobody waits any more.
func (s *Service) unexpectLocked(project, name string) bool {
	k := expected{project, name}
	if s.waiting[k]--; s.waiting[k] > 0 {
		return false
	}
	delete(s.waiting, k)
	return true
}

// forsake is unexpect that breaks off the build of a version, and deletes that, if nobody else waits for it; one that is built stays.
// Who asks for the same from then on has another version made.
func (s *Service) forsake(ctx context.Context, project, name, id string) {
	s.mu.Lock()
	b := s.builds[id]
	if !s.unexpectLocked(project, name) || b == nil {
		s.mu.Unlock()
		return
	}
	b.stop()
	s.mu.Unlock()
	ctx, cancel := core.Aside(ctx)
	defer cancel()
	t, err := s.Get(ctx, builderOf(project), id)
	if err == nil && t.Status == template.Ready {
		return
	}
	if err == nil {
		err = s.Delete(ctx, builderOf(project), id)
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		s.o.Logger.Warn("a build that nobody waits for cannot be broken off", "template", id, "error", err)
	}
}

// prune deletes versions that were made for sandboxes and are not used again: the old ones, and those that are too many.
func (s *Service) prune(ctx context.Context, project string) {
	c := builderOf(project)
	k, err := s.List(ctx, c)
	if err != nil {
		s.o.Logger.Warn("the images that were made for sandboxes cannot be listed", "project", project, "error", err)
		return
	}
	all := slices.DeleteFunc(k.Templates, func(t *template.Template) bool {
		return t.Spec.Origin != template.Sandbox || t.Status == template.Building
	})
	slices.SortFunc(all, func(a, b *template.Template) int { return b.CreatedAt.Compare(a.CreatedAt) })
	for n, t := range all {
		if n < mostProvided && s.engine.Now().Sub(t.CreatedAt) < keepProvided {
			continue
		}
		if err := s.Delete(ctx, c, t.ID); err != nil && !fault.Is(err, fault.NotFound) {
			s.o.Logger.Warn("an image that was made for a sandbox cannot be let go", "template", t.ID, "error", err)
		}
	}
}
