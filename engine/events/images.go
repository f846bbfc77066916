// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"encoding/json"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/store"
)

// BuiltImage is an image that is on disk.
type BuiltImage struct {
	Name, Digest string
	Record       any // for [Options.Object]
}

// gather is how long changes of images are waited for that belong together.
const gather = 10 * time.Millisecond

// FollowImages tells of images until ctx is done: whenever there is a token in changed it compares what list returns
// with what was told last. So what changed while no server ran is told by the next one. The first comparison
// of a server that has never told of any tells nothing.
func (l *Log) FollowImages(ctx context.Context, list func(context.Context) ([]BuiltImage, error), changed <-chan struct{}) error {
	for first := true; ; first = false {
		for {
			err := l.compareImages(ctx, list, first)
			if err == nil || ctx.Err() != nil {
				break
			}
			l.log.Warn("events of images cannot be told; it is tried again", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(retry):
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		select { // an image that is there gets its name next
		case <-ctx.Done():
		case <-time.After(gather):
		}
		select {
		case <-changed:
		default:
		}
	}
}

func (l *Log) compareImages(ctx context.Context, list func(context.Context) ([]BuiltImage, error), first bool) error {
	all, err := list(ctx)
	if err != nil {
		return err
	}
	here := make(map[string]*store.KnownImage, len(all))
	for i := range all {
		s := &all[i]
		object, err := json.Marshal(l.object(s.Record))
		if err != nil {
			return fault.Wrap(fault.Internal, err, "the event of an image cannot be written")
		}
		here[s.Name] = &store.KnownImage{Name: s.Name, Digest: s.Digest, Object: object}
	}
	told := false
	err = l.store.Update(ctx, func(tx store.Tx) error {
		known, err := tx.KnownImages().List()
		if err != nil {
			return err
		}
		silent := first && len(known) == 0
		tell := func(did string, i *store.KnownImage) error {
			if silent {
				return nil
			}
			told = true
			return tx.Changes().Append(&store.Change{Type: string(Image) + "." + did, At: l.now(), Subject: i.Name, Object: i.Object})
		}
		was := make(map[string]*store.KnownImage, len(known))
		for _, i := range known {
			was[i.Name] = i
			if here[i.Name] != nil {
				continue
			}
			if err := tx.KnownImages().Delete(i.Name); err != nil {
				return err
			}
			if err := tell(deleted, i); err != nil {
				return err
			}
		}
		for i := range all {
			now := here[all[i].Name]
			did := created
			if old := was[now.Name]; old != nil {
				if did = updated; old.Digest == now.Digest {
					continue
				}
			}
			if err := tx.KnownImages().Put(now); err != nil {
				return err
			}
			if err := tell(did, now); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && told {
		l.awake()
	}
	return err
}
