// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package images administers what is on disk of images: who uses which build, what is deleted,
// what is built anew. It stands above the engine, of whose verbs it is made.
//
// A build is deleted in three steps. It is withdrawn, so that nobody finds it any more; then the
// records are asked who uses it; then it is removed. Whoever begins to use one does the opposite:
// the record is committed first, and then the build is looked for once more. So of a delete and a
// create at once at least one sees the other, and ends with fault.Conflict. A kill in between
// leaves the build as it was, or gone: its removal is a rename.
package images

import (
	"context"
	"io"
	"slices"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine/prewarm"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Engine is what a keeper needs of the engine; *engine.Engine has it.
type Engine interface {
	Enter(ctx context.Context, c access.Caller, scope access.Scope) (bound context.Context, leave func(), err error)
	Store() store.Store
	Pools() *prewarm.Pools
	Get(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	Delete(ctx context.Context, c access.Caller, ref string) error
	DeleteSnapshot(ctx context.Context, c access.Caller, of, snap string) error
}

// Store is what a keeper needs of the images; *image.Store has it.
type Store interface {
	Resolve(name string) (image.Entry, error)
	List(ctx context.Context) ([]image.Status, error)
	Builds(name string) ([]image.Build, error)
	Withdraw(name string, digests []string, cancel bool) (*image.Withdrawal, error)
	Rebuild(ctx context.Context, name string) (image.Image, error)
	RemoveCache(dry bool) (int64, error)
	FindDigest(name, digest string) (image.Image, error)
	Other(name string) (image.Image, bool)
	Layers(img image.Image) []image.Layer
	Freed(img image.Image) (int64, error)
	CollectLayers(dry bool) (int64, error)
	Save(ctx context.Context, name string) (*image.Saving, error)
	Push(ctx context.Context, name, reference string, tell func(sent, total int64)) (Pushed, error)
	Log(ctx context.Context, name string, w io.Writer, follow bool, flush func() error) error
}

// Keeper administers images. It is safe for concurrent use.
type Keeper struct {
	engine Engine
	store  Store
	copies []Copies
}

// New returns the keeper of the images that an engine uses, of which copies are elsewhere.
func New(e Engine, s Store, copies ...Copies) *Keeper {
	return &Keeper{engine: e, store: s, copies: copies}
}

// Details is all that is known of an image.
type Details struct {
	image.Status
	Builds []Build       // newest first
	Layers []image.Layer // of an image that others made, the lowest first
}

// Build is one build of an image, and who uses it.
type Build struct {
	image.Build
	Use
}

// Inspect returns all that is known of an image.
func (k *Keeper) Inspect(ctx context.Context, c access.Caller, name string) (Details, error) {
	ctx, leave, err := k.engine.Enter(ctx, c, access.SandboxesRead)
	if err != nil {
		return Details{}, err
	}
	defer leave()
	status, err := k.status(ctx, name)
	if err != nil {
		return Details{}, err
	}
	builds, err := k.store.Builds(nameOf(status))
	if err != nil {
		return Details{}, err
	}
	out := Details{Status: status, Builds: make([]Build, 0, len(builds)), Layers: k.store.Layers(status.Image)}
	pools := make(map[string]map[string]int)
	for _, b := range builds {
		pools[b.Digest] = k.pools([]string{b.Digest})
	}
	uses, err := k.uses(ctx, recorded(status.Name, status.Image))
	if err != nil {
		return Details{}, err
	}
	for _, b := range builds {
		u := Use{Pools: pools[b.Digest]}
		if x := uses[b.Digest]; x != nil {
			u.Sandboxes, u.Snapshots = x.Sandboxes, x.Snapshots
		}
		out.Builds = append(out.Builds, Build{b, u})
	}
	return out, nil
}

// Counts returns how many sandboxes of all projects have each image, by its name.
func (k *Keeper) Counts(ctx context.Context, c access.Caller, names []string) (map[string]int, error) {
	ctx, leave, err := k.engine.Enter(ctx, c, access.SandboxesRead)
	if err != nil {
		return nil, err
	}
	defer leave()
	all := make(map[string]int, len(names))
	queries := make(map[string]store.SandboxQuery, len(names))
	for _, name := range names {
		queries[name] = store.SandboxQuery{Image: name}
		if img, ok := k.store.Other(name); ok {
			queries[name] = store.SandboxQuery{ImageDigest: img.Digest}
		}
	}
	err = k.engine.Store().View(ctx, func(tx store.Tx) error {
		for name, q := range queries {
			counts, err := tx.Sandboxes().Count(q)
			if err != nil {
				return err
			}
			for _, n := range counts {
				all[name] += n
			}
		}
		return nil
	})
	return all, err
}

func (k *Keeper) status(ctx context.Context, name string) (image.Status, error) {
	entry, err := k.store.Resolve(name)
	if err != nil {
		return image.Status{}, err
	}
	all, err := k.store.List(ctx)
	if err != nil {
		return image.Status{}, err
	}
	if at := slices.IndexFunc(all, func(s image.Status) bool { return s.Name == entry.Name }); at >= 0 {
		return all[at], nil
	}
	if img, ok := k.store.Other(name); ok {
		// Asked for by a name that it has beside the one in the list.
		if at := slices.IndexFunc(all, func(s image.Status) bool { return s.Image.Digest == img.Digest }); at >= 0 {
			return all[at], nil
		}
	}
	return image.Status{}, fault.New(fault.Internal, "the image %q is not listed", entry.Name)
}

// nameOf is what the builds of an image are asked for by: of one of others the digest, since a pull may be about to give its name
// to another one.
func nameOf(s image.Status) string {
	if s.Image.Other != nil {
		return s.Image.Digest
	}
	return s.Name
}

// recorded is the name under which records have an image; "": under any, as those of others.
func recorded(name string, img image.Image) string {
	if img.Other != nil {
		return ""
	}
	return name
}

// Log writes the output of the last build of an image, or of the one that goes on; see [image.Store.Log].
// The output names the mirrors of the host's package tools, so the caller needs the scope admin.
func (k *Keeper) Log(ctx context.Context, c access.Caller, name string, w io.Writer, follow bool, flush func() error) error {
	bound, leave, err := k.engine.Enter(ctx, c, access.Admin)
	if err != nil {
		return err
	}
	defer leave()
	err = k.store.Log(bound, name, w, follow, flush)
	if bound.Err() != nil && ctx.Err() == nil {
		err = context.Cause(bound)
	}
	return err
}

// Rebuild builds an image also where there is a current one, and waits for it. The build goes on
// when ctx ends.
func (k *Keeper) Rebuild(ctx context.Context, c access.Caller, name string) (image.Status, error) {
	bound, leave, err := k.engine.Enter(ctx, c, access.ServerAdmin)
	if err != nil {
		return image.Status{}, err
	}
	defer leave()
	if _, err := k.store.Rebuild(bound, name); err != nil {
		if bound.Err() != nil && ctx.Err() == nil {
			err = context.Cause(bound)
		}
		return image.Status{}, err
	}
	return k.status(bound, name)
}

// Deletion is what is to be deleted of an image.
type Deletion struct {
	Name   string
	Digest string // of one build, as image.Store.FindDigest takes it; "": all
	Force  bool   // also what uses it, and a build that goes on
	DryRun bool   // only say what it would be
}

// Deleted is what was deleted, or would be.
type Deleted struct {
	Name   string
	Builds []image.Image
	Bytes  int64 // that they took
	Use    Use   // what was deleted with them, or for a dry run what uses them
}

// Bounds of a deletion by force.
const (
	endBound = 5 * time.Minute
	endPause = 100 * time.Millisecond
)

// Delete deletes builds of an image. While somebody uses one it is fault.Conflict, and nothing is
// deleted, unless it is asked for by force: then the sandboxes and snapshots that do, of whatever project,
// are deleted first. Where that fails in between, what is deleted is gone, and the builds stay.
func (k *Keeper) Delete(ctx context.Context, c access.Caller, d Deletion) (Deleted, error) {
	ctx, leave, err := k.engine.Enter(ctx, c, access.ServerAdmin)
	if err != nil {
		return Deleted{}, err
	}
	defer leave()
	entry, err := k.store.Resolve(d.Name)
	if err != nil {
		return Deleted{}, err
	}
	var digests []string
	if d.Digest != "" {
		digests = []string{d.Digest}
	}
	// Most that is refused is refused here, before anybody is kept from using it.
	out, err := k.look(ctx, entry.Name, d.Digest)
	if err != nil {
		return Deleted{}, err
	}
	if d.Force || d.DryRun { // templates keep their disks, whoever asks: nothing is to be deleted before that is found
		if err := k.refuseDisks(ctx, &out); err != nil {
			return Deleted{}, err
		}
	}
	if d.DryRun {
		return out, nil
	}
	if err := refuse(c, d, &out); err != nil {
		return Deleted{}, err
	}
	name := entry.Name
	if len(out.Builds) > 0 && out.Builds[0].Other != nil {
		name = out.Builds[0].Digest // what was looked at, whatever its name means by now
	}
	w, err := k.store.Withdraw(name, digests, d.Force)
	if err != nil {
		return Deleted{}, err
	}
	defer w.End()
	out.Builds = w.Builds()
	if out.Use, err = k.end(ctx, c, d, &out); err != nil {
		return Deleted{}, err
	}
	out.Bytes, err = k.remove(ctx, w)
	return out, err
}

// look finds what a deletion is about.
func (k *Keeper) look(ctx context.Context, name, digest string) (Deleted, error) {
	out := Deleted{Name: name}
	builds, err := k.store.Builds(name)
	if err != nil {
		return out, err
	}
	for _, b := range builds {
		if ok, err := b.Is(digest); err != nil {
			return out, err
		} else if ok {
			out.Builds = append(out.Builds, b.Image)
			freed, err := k.store.Freed(b.Image)
			if err != nil {
				return out, err
			}
			out.Bytes += freed
		}
	}
	if len(out.Builds) == 0 && digest != "" {
		return out, fault.New(fault.NotFound, "there is no build of the image %q with this digest here", name).
			WithRemedy("look which there are: sandpit image inspect %s", name)
	}
	use, err := k.use(ctx, name, out.Builds)
	if err == nil {
		out.Use = *use
	}
	return out, err
}

func digestsOf(builds []image.Image) []string {
	all := make([]string, 0, len(builds))
	for _, b := range builds {
		all = append(all, b.Digest)
	}
	return all
}

// refuse returns why a caller may not delete what is in use.
func refuse(c access.Caller, d Deletion, out *Deleted) error {
	if out.Use.Empty() {
		return nil
	}
	if !d.Force {
		return fault.New(fault.Conflict, "the image %q is in use: %s", out.Name, out.Use.words(c)).
			WithRemedy("delete these first; or see what force would delete with it: sandpit image rm %s --force --dry-run", out.Name)
	}
	return nil
}

// end deletes who uses the builds, which nobody begins to use any more, and returns who did.
func (k *Keeper) end(ctx context.Context, c access.Caller, d Deletion, out *Deleted) (Use, error) {
	ctx, cancel := context.WithTimeout(ctx, endBound)
	defer cancel()
	ended := Use{Pools: make(map[string]int)}
	digests := digestsOf(out.Builds)
	for {
		changed := k.engine.Store().Changed()
		use, err := k.use(ctx, out.Name, out.Builds)
		if err != nil {
			return ended, err
		}
		if use.Empty() {
			return ended, nil
		}
		if err := refuse(c, d, &Deleted{Name: out.Name, Use: *use}); err != nil {
			return ended, err
		}
		progress := len(use.Pools) > 0
		for pool, n := range use.Pools {
			ended.Pools[pool] = max(ended.Pools[pool], n)
		}
		for _, digest := range digests {
			k.engine.Pools().Drop(ctx, digest)
		}
		for _, s := range use.Sandboxes {
			switch err := k.engine.Delete(ctx, as(c, s.Project), string(s.ID)); {
			case err == nil:
				ended.Sandboxes, progress = append(ended.Sandboxes, s), true
			case !fault.Is(err, fault.NotFound):
				return ended, err
			}
		}
		for _, s := range use.Snapshots {
			switch err := k.engine.DeleteSnapshot(ctx, as(c, s.Project), "", string(s.ID)); {
			case err == nil:
				ended.Snapshots, progress = append(ended.Snapshots, s), true
			case !fault.Is(err, fault.NotFound): // one that is being taken or deleted is not found
				return ended, err
			}
		}
		if progress && len(use.Pools) == 0 {
			continue
		}
		select {
		case <-changed:
		case <-time.After(endPause): // what a pool is making is no record
		case <-ctx.Done():
			return ended, fault.Wrap(fault.Conflict, ctx.Err(), "the image %q is still in use: %s", out.Name, use.words(c)).WithRemedy("ask again in a while")
		}
	}
}

// as is a caller in a project.
func as(c access.Caller, project string) access.Caller {
	c.Project = project
	return c
}

// Pruning is what is to be collected.
type Pruning struct {
	Cache  bool // also what builds downloaded
	All    bool // also images of others that have a name
	DryRun bool // only say what it would be
}

// Pruned is what was collected, or would be.
type Pruned struct {
	Builds     []image.Image
	CacheBytes int64
	Bytes      int64 // of all of it
	Kept       int64 // bytes of the builds that stay
}

// Prune removes builds that are neither current nor in use, pulled and imported images without a name (with All also those with
// one), and layers that no image has. A build that is in use by then, or whose image is being built, stays.
func (k *Keeper) Prune(ctx context.Context, c access.Caller, p Pruning) (Pruned, error) {
	ctx, leave, err := k.engine.Enter(ctx, c, access.ServerAdmin)
	if err != nil {
		return Pruned{}, err
	}
	defer leave()
	all, err := k.store.List(ctx)
	if err != nil {
		return Pruned{}, err
	}
	var out Pruned
	for _, s := range all {
		builds, err := k.store.Builds(nameOf(s))
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict) {
			continue // a pull that failed or goes on, or an image that is being deleted
		}
		if err != nil {
			return out, err
		}
		for _, b := range builds {
			if s.Image.Other == nil && b.Other != nil {
				continue // a pull of one that is here, which has a line of its own
			}
			b.Current = b.Current && !(p.All && b.Other != nil)
			freed, removed, err := k.collect(ctx, s.Name, b, p.DryRun)
			if err != nil {
				return out, err
			}
			if !removed {
				out.Kept += b.SizeBytes
				continue
			}
			b.Name = s.Name
			out.Builds = append(out.Builds, b.Image)
			out.Bytes += freed
		}
	}
	layers, err := k.store.CollectLayers(p.DryRun)
	if err != nil {
		return out, err
	}
	out.Bytes += layers
	if p.Cache {
		out.CacheBytes, err = k.store.RemoveCache(p.DryRun)
		out.Bytes += out.CacheBytes
	}
	return out, err
}

// collect removes a build that nobody uses. It returns what that frees, and reports whether the build is gone.
func (k *Keeper) collect(ctx context.Context, name string, b image.Build, dry bool) (int64, bool, error) {
	if b.Current {
		return 0, false, nil
	}
	builds := []image.Image{b.Image}
	if use, err := k.use(ctx, name, builds); err != nil || !use.Empty() {
		return 0, false, err
	}
	if dry {
		freed, err := k.store.Freed(b.Image)
		return freed, err == nil, err
	}
	if b.Other != nil {
		name = b.Digest
	}
	w, err := k.store.Withdraw(name, []string{b.Digest}, false)
	if fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer w.End()
	if use, err := k.use(ctx, name, builds); err != nil || !use.Empty() {
		return 0, false, err
	}
	freed, err := k.remove(ctx, w)
	if fault.Is(err, fault.Conflict) { // another server has it
		return 0, false, nil
	}
	return freed, err == nil, err
}
