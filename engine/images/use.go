// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/template"
)

// Use is who uses a build of an image, or several.
type Use struct {
	Sandboxes []*sandbox.Sandbox
	Snapshots []*sandbox.Snapshot
	Templates []*template.Template // whose Dockerfile made it
	Pools     map[string]int       // sandboxes that nobody has asked for yet, by pool
}

// Empty reports whether nobody does.
func (u *Use) Empty() bool {
	return len(u.Sandboxes)+len(u.Snapshots)+len(u.Templates)+len(u.Pools) == 0
}

// Sees reports whether a caller may know more of what a project has than how much: the server's own
// administrator of all projects, others of theirs.
func Sees(c access.Caller, project string) bool {
	return c.Project == project || c.May(access.ServerAdmin)
}

// shownNames is how many names a message has.
const shownNames = 5

// words says who uses something, in the words of a message to a caller.
func (u *Use) words(c access.Caller) string {
	var parts []string
	var names []string
	for _, s := range u.Sandboxes {
		if Sees(c, s.Project) {
			names = append(names, sandbox.Clip(s.Ref(), 40))
		}
	}
	parts = appendCounted(parts, len(u.Sandboxes), "sandbox", "sandboxes", names)
	names = nil
	for _, s := range u.Snapshots {
		if Sees(c, s.Project) {
			names = append(names, string(s.ID))
		}
	}
	parts = appendCounted(parts, len(u.Snapshots), "snapshot", "snapshots", names)
	names = nil
	for _, t := range u.Templates {
		if Sees(c, t.Project) {
			names = append(names, t.Ref())
		}
	}
	parts = appendCounted(parts, len(u.Templates), "template", "templates", names)
	for _, p := range slices.Sorted(maps.Keys(u.Pools)) {
		parts = appendCounted(parts, u.Pools[p], "ready sandbox of the pool "+p, "ready sandboxes of the pool "+p, nil)
	}
	return strings.Join(parts, ", ")
}

func appendCounted(parts []string, n int, one, many string, names []string) []string {
	if n == 0 {
		return parts
	}
	word := many
	if n == 1 {
		word = one
	}
	text := fmt.Sprintf("%d %s", n, word)
	if len(names) > 0 {
		if len(names) > shownNames {
			names = append(names[:shownNames:shownNames], "…")
		}
		text += " (" + strings.Join(names, ", ") + ")"
	}
	return append(parts, text)
}

// uses returns who uses each build of an image, by its digest. "" is all images.
func (k *Keeper) uses(ctx context.Context, name string) (map[string]*Use, error) {
	all := make(map[string]*Use)
	of := func(digest string) *Use {
		if all[digest] == nil {
			all[digest] = new(Use)
		}
		return all[digest]
	}
	err := k.engine.Store().View(ctx, func(tx store.Tx) error {
		for q := (store.SandboxQuery{Image: name, Oldest: true, Limit: store.MaxPage}); ; {
			page, next, err := tx.Sandboxes().List(q)
			if err != nil {
				return err
			}
			for _, s := range page {
				u := of(s.ImageDigest)
				u.Sandboxes = append(u.Sandboxes, s)
			}
			if q.Cursor = next; next == "" {
				break
			}
		}
		for q := (store.SnapshotQuery{Oldest: true, Limit: store.MaxPage}); ; {
			page, next, err := tx.Snapshots().List(q)
			if err != nil {
				return err
			}
			for _, s := range page {
				if name == "" || s.Image == name {
					u := of(s.ImageDigest)
					u.Snapshots = append(u.Snapshots, s)
				}
			}
			if q.Cursor = next; next == "" {
				return nil
			}
		}
	})
	return all, err
}

// use returns who uses any of these builds of an image.
func (k *Keeper) use(ctx context.Context, name string, builds []image.Image) (*Use, error) {
	digests := digestsOf(builds)
	// What is made ahead is asked for first: it has a record before it stops being the pool's.
	out := &Use{Pools: k.pools(digests)}
	if len(builds) > 0 {
		name = recorded(name, builds[0])
	}
	all, err := k.uses(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, d := range digests {
		if u := all[d]; u != nil {
			out.Sandboxes, out.Snapshots = append(out.Sandboxes, u.Sandboxes...), append(out.Snapshots, u.Snapshots...)
		}
	}
	err = k.engine.Store().View(ctx, func(tx store.Tx) error {
		for _, d := range digests {
			all, err := tx.Templates().OfImage(d)
			if err != nil {
				return err
			}
			out.Templates = append(out.Templates, all...)
		}
		return nil
	})
	return out, err
}

func (k *Keeper) pools(digests []string) map[string]int {
	n := make(map[string]int)
	for _, d := range digests {
		for pool, count := range k.engine.Pools().Using(d) {
			n[pool] += count
		}
	}
	return n
}

// refuseDisks returns fault.Conflict where a template begins with an image, or with one of the snapshots that use it.
func (k *Keeper) refuseDisks(ctx context.Context, out *Deleted) error {
	if all := out.Use.Templates; len(all) > 0 {
		return fault.New(fault.Conflict, "the image %q is in use: the Dockerfile of the template %s, which the project %s keeps, made it", out.Name, all[0].Ref(), all[0].Project).
			WithRemedy("delete the template first: sandpit template rm %s", all[0].Ref())
	}
	return k.engine.Store().View(ctx, func(tx store.Tx) error {
		for _, s := range out.Use.Snapshots {
			all, err := tx.Templates().OfDisk(s.ID)
			if err != nil {
				return err
			}
			if len(all) > 0 {
				return fault.New(fault.Conflict, "the image %q is in use: the snapshot %s is the disk of the template %s, which the project %s keeps", out.Name, s.ID, all[0].Ref(), all[0].Project).
					WithRemedy("delete the template first: sandpit template rm %s", all[0].Ref())
			}
		}
		return nil
	})
}
