// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/core"
	"sandpit.dev/engine/secrets"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
)

// A create whose image is made first answers when its record is there: Creating, without the digest of an image. A goroutine
// of the engine's has the turn until the sandbox runs, has Failed with the reason, or is deleted, which ends the making. What a
// server did not survive has Failed: nobody but the caller could go on with it.

// errDeleted is why the making of an image ends whose sandbox is deleted.
var errDeleted = errors.New("the sandbox is deleted")

// notMade is why a sandbox has Failed whose server ended before its image was made.
const notMade = "the server ended while its image was made; delete it, and create it again"

// createLater makes the record of a request that is checked and filled, and goes on with it after it has returned.
func (e *Engine) createLater(ctx context.Context, c access.Caller, r CreateRequest, d *disks) (*sandbox.Sandbox, error) {
	ctx, cancel := core.Aside(ctx)
	defer cancel()
	who := core.ActorOf(c)
	s := e.newRecord(c, &r, image.Image{Name: r.Image}, d)
	b := e.entryOf(s.ID)
	own, err := b.take(ctx) // nobody else knows it yet
	if err != nil {
		e.release(b)
		return nil, err
	}
	making, stop := context.WithCancelCause(e.group.Context())
	b.answered = true
	b.making.Store(&stop)
	leave := func() {
		stop(nil)
		own.release()
		e.release(b)
	}
	ev := who.Event(sandbox.EventCreated, s, s.CreatedAt)
	ev.Detail = sandbox.Clip("its image is made first"+secrets.Words(r.secrets)+withPresets(s.Network), sandbox.MaxEventDetail)
	if err := e.insert(ctx, b, s, secrets.OfNew(s, r.secrets), who, ev); err != nil {
		leave()
		return nil, err
	}
	e.core.Checkpoint("create.later")
	answer, err := b.current()
	e.group.Spawn(func(context.Context) {
		defer leave()
		e.finishLater(making, own, c, r, d)
	})
	return answer, err
}

// finishLater has the image of a new sandbox made, and then the sandbox.
func (e *Engine) finishLater(ctx context.Context, b held, c access.Caller, r CreateRequest, d *disks) {
	began := time.Now()
	err := r.Later(ctx, &r)
	b.making.Store(nil)
	switch {
	case errors.Is(context.Cause(ctx), errDeleted):
		b.deleted = true
		return
	case e.group.Context().Err() != nil:
		return // the next server says what became of it
	}
	e.core.Checkpoint("create.made")
	ctx, cancel := context.WithTimeout(e.group.Context(), createBound)
	defer cancel()
	if err == nil {
		err = e.createMade(ctx, b, c, r, d)
	}
	if err == nil {
		e.core.Metrics.Created(c.Project, time.Since(began))
		return
	}
	e.core.Metrics.NotCreated(c.Project, err)
	if s := b.record.Load(); s == nil || s.State != sandbox.Creating || b.uncertain() {
		return // what was done is undone, or is tried again
	}
	ctx, cancel = core.Aside(ctx)
	defer cancel()
	if err := e.fail(ctx, b, &missing{core.Reason(err), err}); err != nil {
		e.core.Log.Error("it cannot be recorded that a sandbox's image was not made; it is tried again", "sandbox", b.id, "error", err)
		e.later(b.entry)
	}
}

// createMade makes the sandbox of a record whose image is there.
func (e *Engine) createMade(ctx context.Context, b held, c access.Caller, r CreateRequest, d *disks) error {
	entry, err := e.images.Resolve(r.Image)
	if err != nil {
		return err
	}
	img, err := e.imageOf(ctx, c, entry, &r, d)
	if err != nil {
		return err
	}
	if err := e.resolveNetwork(&r, img); err != nil {
		return err
	}
	err = e.commit(ctx, b.entry, func(s *sandbox.Sandbox) {
		s.Image, s.ImageDigest, s.AskedImage, s.Network, s.Template, s.UpdatedAt = img.Name, img.Digest, r.Image, *r.Network, r.Template.Kept(), e.now()
	})
	if err != nil {
		e.later(b.entry)
		return err
	}
	s := clone(b.record.Load())
	return e.createInstance(ctx, b, s, img, e.accountAhead(s, newSpec(s, img, nil), r.had), r.had, core.ActorOf(c))
}

// unmade commits that the image of a sandbox was not made before an earlier server ended.
func (e *Engine) unmade(ctx context.Context, b held) error {
	if b.deleted { // whoever deletes it goes on
		return nil
	}
	return e.fail(ctx, b, &missing{notMade, errors.New("the making of its image was cut off")})
}

// whileMade returns an error while the image of a sandbox is made, in which nothing but a delete can be done with it.
func (b *entry) whileMade() error {
	if b.making.Load() == nil {
		return nil
	}
	ref := string(b.id)
	if s := b.record.Load(); s != nil {
		ref = s.Ref()
	}
	return fault.New(fault.State, "the image of the sandbox %s is still made", ref).WithRemedy("ask again when it runs, or delete it")
}
