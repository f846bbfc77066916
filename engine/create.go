// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/engine/update"
	"sandpit.dev/engine/volume"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// CreateRequest is what a new sandbox shall be. Zero fields take the server's
// defaults, see [Defaults].
type CreateRequest struct {
	Key          string // see sandbox.CheckKey; empty: none
	Refuse       bool   // a key that the project has already is fault.Exists, and its sandbox is left alone
	Image        string // a name of the catalogue, or another spelling of one
	ImageExact   bool   // a name that says something else than what is inside is fault.NotFound
	Limits       sandbox.Limits
	Env          map[string]string // of every command
	Account      *sandbox.Account  // its user; nil: that of the snapshot, or the default one
	Metadata     map[string]string
	IdleTimeout  *time.Duration         // nil: the default; zero: never
	Retention    *time.Duration         // likewise
	ArchiveAfter time.Duration          // stopped this long it is archived; zero: never
	TTL          time.Duration          // from at to OnExpiry, whatever it does; zero: never
	OnExpiry     *sandbox.ExpiryAction  // nil: delete
	SlidingTTL   time.Duration          // without a use for so long it is deleted, running or not; zero: never
	OnIdle       *sandbox.IdleAction    // nil: stop
	AutoDelete   *bool                  // nil: no
	AutoStart    *bool                  // nil: yes
	AutoResume   *bool                  // nil: no
	Checkpoints  *sandbox.Checkpoints   // nil: off
	Network      *sandbox.NetworkPolicy // nil: the default
	Sudo         *bool                  // nil: no
	Previews     sandbox.Previews       // which the caller has checked
	Runtime      string
	From         string // a snapshot, by its id or as SANDBOX/NAME, whose disk and image it begins with; empty: none
	Mounts       []volume.Mount
	Secrets      map[string]secrets.Request // of the sandbox itself, by their names
	Template     *sandbox.Template          // what filled the request in, or is to: see engine/templates
	// Later has the image of the request made, and says which it is: Create answers before, with a sandbox that is Creating. It ends
	// with ctx: where the sandbox is deleted. What it returns is why the sandbox has Failed. Nil: Image is made by the engine.
	Later func(ctx context.Context, r *CreateRequest) error

	account       sandbox.Account  // what Account comes to
	had           sandbox.Account  // that of the disk that it begins with
	secrets       []secrets.Secret // what Secrets comes to
	unasked, kept bool             // Network was nil; Retention was
	diskMB        int              // as the caller asked for it
}

// Create makes a sandbox and starts it; when it returns, commands can run. It
// waits for the image to be built, if it has to be.
//
// With a key that the project has already it gives that sandbox, started if it
// is stopped, and false; of many calls at once with one new key exactly one
// creates and the others wait for its outcome. A key whose sandbox has another
// image is fault.Exists; all other fields of the request are then ignored.
//
// From a snapshot, whose sandbox may be gone, it begins with that one's disk and
// image, and with the limits and variables of its sandbox where the request names
// none. Another image, or runtime, is fault.Invalid.
//
// A create that fails leaves nothing but its events. If ctx ends while the work
// goes on, the sandbox of a create with a key is kept, for the next call finds
// it; one without is deleted, since nobody has learnt its id.
func (e *Engine) Create(ctx context.Context, c access.Caller, r CreateRequest) (s *sandbox.Sandbox, created bool, err error) {
	began := time.Now()
	if err := e.enterWork(c, access.SandboxesWrite); err != nil {
		return nil, false, err
	}
	defer e.group.Leave()
	defer func() {
		if err != nil {
			e.core.Metrics.NotCreated(c.Project, err)
		}
	}()
	if t := r.Template; t != nil && t.ChosenBy == "" && t.Asked != "" {
		return nil, false, fault.New(fault.Unsupported, "template %q: this server keeps no templates", sandbox.Clip(t.Asked, 80))
	}
	r.diskMB = r.Limits.DiskMB
	disks, entry, err := e.disks(ctx, c.Project, &r)
	if err != nil {
		return nil, false, err
	}
	give := disks.release
	if r.Secrets, err = e.secrets.FromVault(ctx, c.Project, r.Secrets); err == nil {
		err = e.fill(&r)
	}
	if err == nil && !e.builds(c) {
		err = e.settings.Load().Admit(r.Env)
	}
	if err != nil {
		give()
		return nil, false, err
	}
	if r.Key != "" {
		giveKey, err := e.awaitKey(ctx, name{c.Project, r.Key})
		if err != nil {
			give()
			return nil, false, err
		}
		give = func() { giveKey(); disks.release() }
		s, err := e.reuse(ctx, c, r, entry)
		if err != nil || s != nil {
			give()
			return s, false, err
		}
	}
	var img image.Image
	if r.Later == nil {
		img, err = e.imageOf(ctx, c, entry, &r, disks)
	}
	if err == nil {
		err = e.core.MayMake(ctx, r.Runtime, r.diskMB) // a pool's sandbox has a disk that nothing can be written to
	}
	if err == nil {
		err = e.mayPause(ctx, r.Runtime, r.OnIdle, r.OnExpiry)
	}
	if err == nil {
		err = e.maySudo(ctx, r.Runtime, r.Sudo)
	}
	if err == nil {
		disks.mounts, err = e.volumes.Mounts(ctx, c.Project, r.Runtime, r.Mounts)
	}
	if err == nil && r.Later == nil {
		err = e.resolveNetwork(&r, img)
	}
	if err != nil {
		give()
		return nil, false, err
	}
	o := secrets.Plain{"key": {r.Key}, "network": r.Network.Names()}
	o.Add("metadata", r.Metadata)
	o.Add("env", r.Env)
	if err := e.secrets.Refuse(ctx, c.Project, "", o, r.secrets...); err != nil {
		give()
		return nil, false, err
	}
	if r.Later != nil {
		defer give()
		s, err = e.createLater(ctx, c, r, disks)
		return s, err == nil, err
	}
	s, err = e.create(ctx, c, r, img, disks, give)
	if err != nil {
		return nil, false, err
	}
	e.core.Metrics.Created(c.Project, time.Since(began))
	return s, true, nil
}

// resolveNetwork makes the policy of a request that of its image: presets may stand for what that says.
func (e *Engine) resolveNetwork(r *CreateRequest, img image.Image) (err error) {
	rules := e.settings.Load().Network
	resolve := rules.Resolve
	if r.unasked {
		resolve = rules.ResolveDefault
	}
	*r.Network, err = resolve(*r.Network, imageOf(func() (image.Image, error) { return img, nil }))
	return err
}

func (e *Engine) awaitKey(ctx context.Context, n name) (give func(), err error) {
	bound, cancel := e.group.Bind(ctx)
	defer cancel()
	if give, err = e.keys.Take(bound, n); err != nil && ctx.Err() == nil {
		return nil, core.Stopping()
	}
	return give, err
}

func (e *Engine) awaitImage(ctx context.Context, name string) (image.Image, error) {
	if img, err := e.images.Find(ctx, name); !fault.Is(err, fault.NotFound) {
		return img, err
	}
	bound, cancel := e.group.Bind(ctx)
	defer cancel()
	img, err := e.images.Ensure(bound, name)
	if err != nil && bound.Err() != nil && ctx.Err() == nil {
		return image.Image{}, core.Stopping()
	}
	return img, err
}

// fill checks every field of r and fills in the defaults.
func (e *Engine) fill(r *CreateRequest) error {
	var k check.Fields
	if r.Key != "" {
		k.Key(r.Key)
	}
	set := e.settings.Load()
	r.Limits = r.Limits.Or(set.Limits)
	k.Limits(r.Limits, set.Most)
	k.Env(r.Env)
	k.Metadata("metadata", r.Metadata)
	var err error
	if r.account, err = k.Account(r.Account, volume.Paths(r.Mounts), set.ForbidRoot); err != nil {
		return err
	}
	if r.IdleTimeout == nil {
		r.IdleTimeout = &set.IdleTimeout
	}
	if r.Retention == nil {
		r.Retention, r.kept = &set.Retention, true
	}
	k.Clock("idle_timeout_seconds", *r.IdleTimeout)
	k.Clock("retention_seconds", *r.Retention)
	k.Clock("archive_after_seconds", r.ArchiveAfter)
	k.Clock("ttl_seconds", r.TTL)
	k.Clock("ttl_seconds", r.SlidingTTL)
	k.OnIdle(r.OnIdle)
	k.OnExpiry(r.OnExpiry)
	k.Checkpoints(r.Checkpoints)
	if r.Runtime == "" {
		r.Runtime = e.core.Default
	}
	if e.core.Runtimes[r.Runtime] == nil {
		k.Bad("runtime", "%q is no runtime of this server, which has %s", sandbox.Clip(r.Runtime, 40), strings.Join(slices.Sorted(maps.Keys(e.core.Runtimes)), ", "))
	}
	r.secrets = secrets.CheckAll(&k, r.Secrets)
	if err := k.Err(); err != nil {
		return err
	}
	p, err := set.Network.Check(r.Network)
	if err != nil {
		return err
	}
	r.unasked = r.Network == nil
	r.Network = &p
	return nil
}

// reuse gives the sandbox that has the key already, started; nil if there is
// none. The caller has the key's turn.
func (e *Engine) reuse(ctx context.Context, c access.Caller, r CreateRequest, entry image.Entry) (*sandbox.Sandbox, error) {
	b, err := e.findKey(ctx, c.Project, r.Key)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer e.release(b)
	s := b.record.Load()
	if r.Refuse {
		return nil, fault.New(fault.Exists, "the key %q is that of the sandbox %s", r.Key, b.id).WithRemedy("use another key, or that sandbox; without if_exists it would be the answer")
	}
	if s != nil && r.Image != "" && s.Image != entry.Name && s.AskedImage != r.Image {
		return nil, fault.New(fault.Exists, "the key %q belongs to a sandbox of the image %q, and this asks for %q", r.Key, s.Image, entry.Name).
			WithRemedy("use another key, leave the image out, or delete the sandbox %s first", b.id)
	}
	b.touch(e.now(), actCall)
	if err := e.outcomes.Wait(ctx, b); err != nil {
		return nil, err
	}
	if b.up() == nil {
		err := e.turnWork(ctx, b, startBound, e.take, func(ctx context.Context, b held) error { return e.start(ctx, b, core.ActorOf(c)) })
		if fault.Is(err, fault.NotFound) && b.record.Load() == nil {
			return nil, nil // it was being deleted; the key is free at
		}
		if err != nil {
			return nil, err
		}
	}
	s, err = b.current()
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return s, err
}

// create makes the sandbox for a request that is checked and filled. It calls
// release when nothing more is to be expected of it.
func (e *Engine) create(ctx context.Context, c access.Caller, r CreateRequest, img image.Image, d *disks, give func()) (*sandbox.Sandbox, error) {
	s := e.newRecord(c, &r, img, d)
	var made *sandbox.Sandbox
	defer e.pools.Begin()()
	account := e.accountAhead(s, newSpec(s, img, nil), r.had)
	e.pools.Claim(ctx, s, account)
	b := e.entryOf(s.ID)
	err := e.work(ctx, createBound, func(ctx context.Context) error {
		defer give()
		defer e.release(b)
		defer e.pools.Unclaim(ctx, s.ID)
		own, err := b.take(ctx) // nobody else knows it yet
		if err != nil {
			return err
		}
		defer own.release()
		if err := e.runCreate(ctx, own, s, img, secrets.OfNew(s, r.secrets), account, r.had, core.ActorOf(c)); err != nil {
			return err
		}
		made, err = b.current()
		return err
	}, func(ctx context.Context) {
		if s.Key == "" {
			e.abandon(ctx, s.ID, wentAway)
		}
	})
	if err != nil {
		return nil, err
	}
	return made, nil
}

// newRecord returns the record of a request that is checked and filled.
func (e *Engine) newRecord(c access.Caller, r *CreateRequest, img image.Image, d *disks) *sandbox.Sandbox {
	at := e.now()
	s := &sandbox.Sandbox{
		ID: sandbox.NewID(), Project: c.Project, Key: r.Key,
		Image: img.Name, ImageDigest: img.Digest, AskedImage: r.Image, Runtime: r.Runtime,
		Limits: r.Limits, Env: maps.Clone(r.Env), Metadata: maps.Clone(r.Metadata), Mounts: d.mounts, Parent: d.from(), Network: *r.Network, Account: r.account, Template: r.Template.Kept(), Previews: r.Previews,
		Clocks: sandbox.Clocks{
			IdleTimeout: *r.IdleTimeout, OnIdle: sandbox.IdleStop, OnExpiry: sandbox.ExpiryDelete, Retention: *r.Retention, ArchiveAfter: r.ArchiveAfter, TTL: r.SlidingTTL,
			AutoStart: true, Checkpoints: sandbox.CheckpointsOff, RetentionDefault: r.kept,
		},
		State: sandbox.Creating, CreatedAt: at, UpdatedAt: at, LastActivity: at,
	}
	if r.TTL > 0 {
		s.ExpiresAt = at.Add(r.TTL)
	}
	update.Set(&s.OnIdle, r.OnIdle)
	update.Set(&s.OnExpiry, r.OnExpiry)
	update.Set(&s.AutoDelete, r.AutoDelete)
	update.Set(&s.AutoStart, r.AutoStart)
	update.Set(&s.AutoResume, r.AutoResume)
	update.Set(&s.Checkpoints, r.Checkpoints)
	update.Set(&s.Sudo, r.Sudo)
	return s
}

// runCreate is the four steps of a create.
func (e *Engine) runCreate(ctx context.Context, b held, s *sandbox.Sandbox, img image.Image, own []secrets.Secret, account *runtime.Account, had sandbox.Account, who core.Actor) error {
	ev := who.Event(sandbox.EventCreated, s, s.CreatedAt)
	ev.Detail = fmt.Sprintf("image %s", img.Name)
	if s.Parent != "" {
		ev.Detail += fmt.Sprintf(", from the snapshot %s", s.Parent)
	}
	ev.Detail = sandbox.Clip(ev.Detail+secrets.Words(own)+withPresets(s.Network), sandbox.MaxEventDetail)
	if err := e.insert(ctx, b.entry, s, own, who, ev); err != nil {
		return err
	}
	e.core.Checkpoint("create.intent")
	return e.createInstance(ctx, b, s, img, account, had, who)
}

// createInstance is the rest of a create whose intent is committed.
func (e *Engine) createInstance(ctx context.Context, b held, s *sandbox.Sandbox, img image.Image, account *runtime.Account, had sandbox.Account, who core.Actor) error {
	if _, err := e.images.FindDigest(img.Name, img.Digest); err != nil { // whoever deletes it may not have seen the record
		return e.abortCreate(ctx, b, nil, who, fault.Wrap(fault.Conflict, err, "the image %s was deleted while the sandbox was made", img.Name).WithRemedy("ask again"))
	}
	inst, err := e.pools.Instance(ctx, s, newSpec(s, img, account))
	e.core.Checkpoint("create.done")
	if err != nil {
		return e.abortCreate(ctx, b, nil, who, err)
	}
	if !s.Account.Default() || !had.Default() {
		if err := e.giveAccount(ctx, s, inst, account, s.Account.Same(had)); err != nil {
			return e.abortCreate(ctx, b, inst, who, err)
		}
	}
	l := e.newLive(b.entry, inst, img)
	if err := e.openNetwork(ctx, b, l, s.Network); err != nil {
		return e.abortCreate(ctx, b, inst, who, err)
	}
	at := e.now()
	h := inst.Handle()
	err = e.commit(ctx, b.entry, func(s *sandbox.Sandbox) {
		s.State, s.Handle, s.StartedAt, s.UpdatedAt = sandbox.Running, h.Data, at, at
	}, who.Event(sandbox.EventStarted, s, at))
	if err != nil {
		l.gate.Close()
		return e.abortCreate(ctx, b, inst, who, err)
	}
	e.core.Checkpoint("create.outcome")
	b.touch(at, actStart)
	e.beginSession(b, l)
	return nil
}

// abortCreate undoes a create that failed with err, and gives err.
func (e *Engine) abortCreate(ctx context.Context, b held, inst runtime.Instance, who core.Actor, err error) error {
	ctx, cancel := core.Aside(ctx)
	defer cancel()
	s := b.record.Load()
	if inst != nil {
		if rmErr := inst.Remove(ctx); rmErr != nil {
			e.core.Log.Error("an instance of a create that failed cannot be removed; it is tried again", "sandbox", b.id, "error", rmErr)
			e.later(b.entry)
			return err
		}
	}
	if b.answered { // whoever asked for it looks what became of it
		if dbErr := e.fail(ctx, b, &missing{core.Reason(err), err}); dbErr != nil {
			e.core.Log.Error("it cannot be recorded that a create failed; it is tried again", "sandbox", b.id, "error", dbErr)
			e.later(b.entry)
		}
		return err
	}
	ev := who.Event(sandbox.EventFailed, s, e.now())
	ev.OK, ev.Detail = false, "create: "+core.Reason(err)
	if dbErr := e.erase(ctx, b.entry, ev); dbErr != nil {
		e.core.Log.Error("the record of a create that failed cannot be deleted; it is tried again", "sandbox", b.id, "error", dbErr)
		e.later(b.entry)
	}
	return err
}

// wentAway is why a sandbox was abandoned that is made after all.
const wentAway = "whoever asked for it went away before it was made"

// abandon deletes a new sandbox whose creator never learns the id, and why.
func (e *Engine) abandon(ctx context.Context, id sandbox.ID, why string) {
	err := e.removeNew(ctx, id, why)
	if err != nil && !fault.Is(err, fault.NotFound) {
		e.core.Log.Error("a sandbox that nobody waits for cannot be deleted", "sandbox", id, "error", err)
	}
}

func (e *Engine) removeNew(ctx context.Context, id sandbox.ID, why string) error {
	b, err := e.acquire(ctx, id)
	if err != nil {
		return err
	}
	defer e.release(b)
	own, err := e.takeToDelete(ctx, b)
	if err != nil {
		return err
	}
	defer own.release()
	return e.remove(ctx, own, core.System, sandbox.CauseUser, why, nil)
}

// newSpec is what a driver needs to know of a new sandbox.
func newSpec(s *sandbox.Sandbox, img image.Image, account *runtime.Account) runtime.Spec {
	out := core.Spec(s, img)
	out.From, out.Account = s.Parent, account
	return out
}

// accountAhead is the account of a new sandbox that its driver may be told before there is a disk to ask; nil: its
// agent has to be asked. had is that of the disk.
func (e *Engine) accountAhead(s *sandbox.Sandbox, spec runtime.Spec, had sandbox.Account) *runtime.Account {
	d, ok := e.core.Runtimes[s.Runtime].(runtime.Accounter)
	switch {
	case !ok || s.Account.Default():
		return nil
	case s.Account.Same(had):
		return &runtime.Account{Account: s.Account, Again: true}
	case spec.From != "" || len(spec.Mounts) > 0 || !d.Suits(spec.Image, s.Account):
		return nil
	}
	return &runtime.Account{Account: s.Account}
}
