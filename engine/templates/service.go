// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package templates keeps templates, has sandboxes made of them, and starts in each sandbox what its
// template starts. It stands above the engine: [Creator] fills in a request before the engine sees it, and
// [Service.Up] is told by it which sandboxes come up. It knows no coat.
//
// # What a start command is
//
// It runs at each start of a sandbox: at its create, at a start after a stop, after a restart and after a
// rollback; not when a paused one is resumed, nor when the server starts while the sandbox runs: its
// processes went on. The id of its process follows from the start ([sandbox.Sandbox.StartProcess]), so that a
// server that was killed in between begins it once. It does not keep its sandbox from idling.
package templates

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/template"
)

// MaxVersions is how many versions a project keeps, of all names together.
const MaxVersions = 500

// Service is the verbs. Its methods are safe for concurrent use.
type Service struct {
	engine *engine.Engine
	o      Options
	disks  *core.Turns[sandbox.ID] // of snapshots that become, or stop being, a template's

	mu       sync.Mutex
	starting map[sandbox.ID]chan struct{} // starts whose end is not known; closed then
	builds   map[string]*building         // by the ids of versions
	waiting  map[expected]int             // sandboxes, for versions that are built for them
	making   int                          // Dockerfiles that are built, or wait
}

// Options configure a [Service].
type Options struct {
	// Resolve finds an image's entry by a name. Nil: any name may be an image's.
	Resolve func(name string) (image.Entry, error)
	// Network checks a policy as a create does. Nil: it is not checked before that.
	Network func(*sandbox.NetworkPolicy) (sandbox.NetworkPolicy, error)
	// Configured are the server's templates of its configuration, by name; see [Service.Resume].
	Configured map[string]template.Spec
	// Default is the name of the server's default template of its configuration; "": the one that a call set.
	Default string
	// Images are what templates begin with; nil: a template has neither a Dockerfile nor an image that is to be brought.
	Images Images
	// Logs is the directory of what builds write; "": it is not kept.
	Logs       string
	Logger     *slog.Logger      // nil: discard
	Checkpoint func(name string) // called between the steps of a build and of a start; nil: not called
}

// New returns the verbs above an engine. [Service.Up] is for the engine's options, which are made first: see
// [Late].
func New(e *engine.Engine, o Options) *Service {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Checkpoint == nil {
		o.Checkpoint = func(string) {}
	}
	return &Service{
		engine: e, o: o, disks: core.NewTurns[sandbox.ID](),
		starting: make(map[sandbox.ID]chan struct{}), builds: make(map[string]*building), waiting: make(map[expected]int),
	}
}

// Request asks for a version of a template.
type Request struct {
	Name   string
	Server bool // for all projects: of the server's administrator
	Spec   template.Spec
	From   string // a snapshot of the project, by its id or as SANDBOX/NAME, which becomes its disk; "": none
	// Sandbox is one whose disk, as it is now, becomes that of the template; "": none.
	Sandbox string
	// New refuses a name that has a version, but for those that failed.
	New bool
	// Bring has an image that is not here built or pulled; else sandboxes ask for it.
	Bring bool
	// Files is the context of Spec.Dockerfile: an archive, which Create owns whatever it returns.
	Files io.ReadCloser
	// Made is called once the image of the Dockerfile is made; nil: nothing is.
	Made func()
}

// Create adds a version. One that is the same as the newest of its name is that one, and added is false.
// With steps, a Dockerfile or an image that is to be brought it is Building when Create returns, and that is done in the background.
func (s *Service) Create(ctx context.Context, c access.Caller, r Request) (t *template.Template, added bool, err error) {
	defer func() {
		if r.Files != nil { // no build has it
			_ = r.Files.Close()
		}
	}()
	if err := s.may(c, r.Server); err != nil {
		return nil, false, err
	}
	ctx, leave, err := s.engine.Enter(ctx, c, access.SandboxesWrite)
	if err != nil {
		return nil, false, err
	}
	defer leave()
	if err := s.engine.Store().Room(); err != nil {
		return nil, false, err
	}
	if err := s.check(ctx, c, &r); err != nil {
		return nil, false, err
	}
	id, building := template.NewID(), len(r.Spec.Steps) > 0
	if r.Spec.Dockerfile != "" || r.Bring {
		if building, err = s.toMake(ctx, c, &r); err != nil {
			return nil, false, err
		}
	}
	if r.Sandbox != "" {
		if err := s.takeSandbox(ctx, c, &r, id); err != nil {
			return nil, false, err
		}
		defer func() {
			if !added {
				s.drop(context.WithoutCancel(ctx), &template.Template{ID: id, Project: c.Project, Spec: r.Spec, Snapshot: r.Spec.Disk})
			}
		}()
	}
	give := func() {}
	if r.From != "" {
		if give, err = s.takeDisk(ctx, c, &r); err != nil {
			return nil, false, err
		}
	}
	defer func() { give() }()
	t = &template.Template{
		ID: id, Project: c.Project, Name: r.Name, Spec: r.Spec, Status: template.Ready, Snapshot: r.Spec.Disk,
		CreatedAt: s.engine.Now(), CreatedBy: c.Actor,
	}
	if r.Server {
		t.Project = template.Server
	}
	if building {
		t.Status = template.Building
	}
	added, err = s.insert(ctx, c, t, r.New)
	if err != nil {
		return nil, false, err
	}
	if added && t.Status == template.Building {
		s.build(c, *t, r.Files, r.Made) // which insert has announced
		r.Files = nil
	}
	return t, added, nil
}

// insert adds a version, or makes t the newest one if that is the same.
func (s *Service) insert(ctx context.Context, c access.Caller, t *template.Template, fresh bool) (added bool, err error) {
	var same *template.Template
	err = s.engine.Store().Update(ctx, func(tx store.Tx) error {
		same = nil
		all, err := tx.Templates().List(t.Project)
		if err != nil {
			return err
		}
		of := slices.DeleteFunc(slices.Clone(all), func(o *template.Template) bool { return o.Name != t.Name })
		if fresh {
			if err := s.free(tx, t.Project, t.Name); err != nil {
				return err
			}
		}
		if len(of) > 0 && of[0].Status != template.Failed && !s.stale(of[0]) && of[0].Spec.Digest() == t.Spec.Digest() {
			same = of[0]
			return nil
		}
		if t.Status == template.Building {
			if err := s.announce(t); err != nil {
				return err
			}
		}
		if len(all) >= MaxVersions {
			return fault.New(fault.Exhausted, "the project has %d versions of templates, and at most %d are allowed", len(all), MaxVersions).
				WithRemedy("delete versions that are not needed")
		}
		if err := tx.Templates().Insert(t); err != nil {
			return err
		}
		return tx.Events().Append(event(c, sandbox.EventTemplate, t))
	})
	if err != nil || same != nil {
		s.over(t.ID)
	}
	if err == nil && same != nil {
		*t = *same
	}
	return err == nil && same == nil, err
}

// stale reports whether a version that was made for a sandbox is of no use to another: its build was broken off, or was an earlier
// server's, or it stands for an image that was pulled, and would not be asked for if that were still here.
func (s *Service) stale(t *template.Template) bool {
	if t.Spec.Origin != template.Sandbox {
		return false
	}
	return t.Status == template.Building && !s.goes(t.ID) || t.Status == template.Ready && t.Spec.Dockerfile == ""
}

// may reports whether a caller may change templates: those of all projects only the server's own
// administrator may.
func (s *Service) may(c access.Caller, server bool) error {
	if !server {
		return c.Require(access.SandboxesWrite)
	}
	if err := c.Require(access.ServerAdmin); err != nil {
		return fault.Wrap(fault.Denied, err, "a template for all projects is made and deleted by the server's own administrator").
			WithRemedy("use that one's token, or make a template of your project")
	}
	return nil
}

// event is what is recorded of a change of the templates.
func event(c access.Caller, typ sandbox.EventType, t *template.Template) *sandbox.Event {
	ev := core.ActorOf(c).Event(typ, &sandbox.Sandbox{Project: c.Project}, t.CreatedAt)
	ev.ProcessID = t.ID
	ev.Detail = sandbox.Clip(fmt.Sprintf("%s (%s)", t.Ref(), t.ID), sandbox.MaxEventDetail)
	if t.Project == template.Server {
		ev.Detail += ", for all projects"
	}
	return ev
}

// takeDisk finds the snapshot that becomes a template's disk, and takes over what it says. give ends the turn
// in which nobody deletes it.
func (s *Service) takeDisk(ctx context.Context, c access.Caller, r *Request) (give func(), err error) {
	of, name := "", r.From
	if box, snap, ok := strings.Cut(r.From, "/"); ok {
		of, name = box, snap
	}
	snap, err := s.engine.Snapshot(ctx, c, of, name)
	if err != nil {
		return nil, err
	}
	give, err = s.disks.Take(ctx, snap.ID)
	if err != nil {
		return nil, err
	}
	if snap, err = s.engine.Snapshot(ctx, c, "", string(snap.ID)); err != nil {
		give()
		return nil, err
	}
	if snap.Auto || snap.Name == "" && snap.Sandbox != "" {
		give()
		return nil, fault.New(fault.Unsupported, "the snapshot %s has no name, and goes with its sandbox", snap.ID).
			WithRemedy("create a sandbox from it, and take a snapshot of that with a name")
	}
	r.Spec.Disk, r.Spec.Image = snap.ID, snap.Image
	r.Spec.Limits = r.Spec.Limits.Or(snap.Limits)
	env := make(map[string]string, len(snap.Env)+len(r.Spec.Env))
	for _, of := range []map[string]string{snap.Env, r.Spec.Env} {
		for n, v := range of {
			env[n] = v
		}
	}
	r.Spec.Env = env
	if r.Spec.Account == nil && snap.Account != (sandbox.Account{}) {
		a := snap.Account
		r.Spec.Account = &a
	}
	return give, nil
}

// Kept is the versions of templates that a caller has, and which are defaults.
type Kept struct {
	Templates      []*template.Template // the project's by name, newest first, then the server's
	ProjectDefault string               // a name; "": none
	ServerDefault  string               // likewise
}

// List returns the project's templates and the server's.
func (s *Service) List(ctx context.Context, c access.Caller) (*Kept, error) {
	if err := c.Require(access.SandboxesRead); err != nil {
		return nil, err
	}
	k := new(Kept)
	err := s.engine.Store().View(ctx, func(tx store.Tx) error { return s.kept(tx, c.Project, k) })
	return k, err
}

// HasDefault reports whether the caller's project, or the server, has a default template.
func (s *Service) HasDefault(ctx context.Context, c access.Caller) (has bool, err error) {
	if err := c.Require(access.SandboxesRead); err != nil {
		return false, err
	}
	err = s.engine.Store().View(ctx, func(tx store.Tx) error {
		q := tx.Templates()
		name, err := q.Default(c.Project)
		if err == nil && name == "" {
			name, err = s.serverDefault(q)
		}
		has = name != ""
		return err
	})
	return has, err
}

func (s *Service) kept(tx store.Tx, project string, k *Kept) (err error) {
	q := tx.Templates()
	if k.Templates, err = q.List(project); err != nil {
		return err
	}
	servers, err := q.List(template.Server)
	if err != nil {
		return err
	}
	k.Templates = append(k.Templates, servers...)
	if k.ProjectDefault, err = q.Default(project); err != nil {
		return err
	}
	k.ServerDefault, err = s.serverDefault(q)
	return err
}

func (s *Service) serverDefault(q store.Templates) (string, error) {
	if s.o.Default != "" {
		return s.o.Default, nil
	}
	return q.Default(template.Server)
}

// Get returns the version that a reference means: an id, NAME@VERSION, or NAME for the newest that is ready.
// The project's go before the server's.
func (s *Service) Get(ctx context.Context, c access.Caller, ref string) (t *template.Template, err error) {
	if err := c.Require(access.SandboxesRead); err != nil {
		return nil, err
	}
	err = s.engine.Store().View(ctx, func(tx store.Tx) (err error) {
		t, err = find(tx.Templates(), c.Project, ref)
		return err
	})
	return t, err
}

func find(q store.Templates, project, ref string) (*template.Template, error) {
	none := fault.New(fault.NotFound, "there is no template %q", sandbox.Clip(ref, 80)).WithRemedy("list the templates to see which there are: sandpit template ls")
	if template.IsID(ref) {
		t, err := q.Get(ref)
		if fault.Is(err, fault.NotFound) || err == nil && t.Project != project && t.Project != template.Server {
			return nil, none
		}
		return t, err
	}
	name, version := template.ParseRef(ref)
	for _, owner := range []string{project, template.Server} {
		all, err := q.Versions(owner, name)
		if err != nil {
			return nil, err
		}
		if t := template.Pick(all, version); t != nil {
			return t, nil
		}
	}
	return nil, none
}

// Delete deletes a version, or all of a name. Sandboxes that were made of it go on, with what it starts in
// them; a disk that its steps made is deleted with it. A build of it that goes on is broken off.
func (s *Service) Delete(ctx context.Context, c access.Caller, ref string) error {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return err
	}
	ctx, leave, err := s.engine.Enter(ctx, c, access.SandboxesWrite)
	if err != nil {
		return err
	}
	defer leave()
	var gone []*template.Template
	err = s.engine.Store().Update(ctx, func(tx store.Tx) error {
		q := tx.Templates()
		t, err := find(q, c.Project, ref)
		if err != nil {
			return err
		}
		if err := s.may(c, t.Project == template.Server); err != nil {
			return err
		}
		all, err := q.Versions(t.Project, t.Name)
		if err != nil {
			return err
		}
		gone = []*template.Template{t}
		if _, version := template.ParseRef(ref); version == 0 && !template.IsID(ref) {
			gone = all
		}
		for _, t := range gone {
			if t.Spec.Origin == template.Configuration {
				return fault.New(fault.Conflict, "the template %s is of the server's configuration", t.Ref()).WithRemedy("take it out there, and restart the server")
			}
			if err := q.Delete(t.ID); err != nil {
				return err
			}
			at := *t
			at.CreatedAt = s.engine.Now()
			if err := tx.Events().Append(event(c, sandbox.EventTemplateDeleted, &at)); err != nil {
				return err
			}
		}
		if name, err := q.Default(t.Project); err != nil || name != t.Name || len(gone) < len(all) {
			return err
		}
		return q.SetDefault(t.Project, "")
	})
	if err != nil {
		return err
	}
	for _, t := range gone {
		s.breakOff(t.ID)
		s.drop(ctx, t)
	}
	return nil
}

// drop deletes the log, the image and the disk that were made for a version, unless another version or a sandbox has
// it too. A disk that stays, since the server ended before, is a snapshot of the project like any other.
func (s *Service) drop(ctx context.Context, t *template.Template) {
	s.removeLog(t.ID)
	if t.Image != "" {
		if err := s.o.Images.Forget(ctx, t.Image); err != nil {
			s.o.Logger.Warn("the image of a template that was deleted cannot be deleted", "template", t.ID, "image", t.Image, "error", err)
		}
	}
	if len(t.Spec.Steps) == 0 && t.Spec.Of == "" || t.Snapshot == "" {
		return
	}
	give, err := s.spare(ctx, &sandbox.Snapshot{ID: t.Snapshot})
	if fault.Is(err, fault.Conflict) {
		return
	}
	if err == nil {
		defer give()
		err = s.engine.DeleteSnapshot(ctx, builderOf(t.Project), "", string(t.Snapshot))
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		s.o.Logger.Warn("the disk of a template that was deleted cannot be deleted", "template", t.ID, "snapshot", t.Snapshot, "error", err)
	}
}

// SetDefault makes a template the project's default, by its name, or the server's; on false it is not any more.
func (s *Service) SetDefault(ctx context.Context, c access.Caller, ref string, server, on bool) (t *template.Template, err error) {
	if err := s.may(c, server); err != nil {
		return nil, err
	}
	ctx, leave, err := s.engine.Enter(ctx, c, access.SandboxesWrite)
	if err != nil {
		return nil, err
	}
	defer leave()
	project := c.Project
	if server {
		project = template.Server
	}
	err = s.engine.Store().Update(ctx, func(tx store.Tx) (err error) {
		q := tx.Templates()
		if t, err = find(q, project, ref); err != nil {
			return err
		}
		if on && t.Project != project {
			return fault.New(fault.Unsupported, "the template %s is one of all projects, and the default of a project is one of its own", t.Ref()).
				WithRemedy("make it the project's: sandpit template create %s, with what sandpit template show %s says; or have the server's administrator make it the default of all", t.Name, t.Name)
		}
		if server && s.o.Default != "" {
			return fault.New(fault.Conflict, "the server's default template is %q, of its configuration", s.o.Default).WithRemedy("change default_template there, and restart the server")
		}
		is, err := q.Default(project)
		if err != nil || !on && is != t.Name {
			return err
		}
		if !on {
			return q.SetDefault(project, "")
		}
		return q.SetDefault(project, t.Name)
	})
	return t, err
}
