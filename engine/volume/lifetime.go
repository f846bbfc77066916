// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"fmt"
	"time"

	"sandpit.dev/engine/core"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Lifetime returns the lifetime of so many seconds; zero: none.
func Lifetime(seconds int64) (time.Duration, error) {
	if most := int64(sandbox.MaxVolumeLifetime / time.Second); seconds < 0 || seconds > most {
		return 0, fault.InvalidField("lifetime_seconds", "%d is outside 0 to %d", seconds, most).WithRemedy("give at most 3650 days, or 0 for a volume that stays until it is deleted")
	}
	return time.Duration(seconds) * time.Second, nil
}

func checkLifetime(d time.Duration) error {
	if d%time.Second != 0 {
		return fault.InvalidField("lifetime_seconds", "%v is no number of seconds", d)
	}
	_, err := Lifetime(int64(d / time.Second))
	return err
}

// Patch is what a caller wants changed of a volume. Nil fields stay.
type Patch struct {
	Lifetime *time.Duration // as in [Request]; counted from the volume's creation
}

// Update changes a volume.
func (k *Keeper) Update(ctx context.Context, project, ref string, p Patch, who core.Actor) (Info, error) {
	if p.Lifetime != nil {
		if err := checkLifetime(*p.Lifetime); err != nil {
			return Info{}, err
		}
	}
	var ev *sandbox.Event
	var info Info
	err := k.core.Store.Update(ctx, func(tx store.Tx) error {
		v, err := byRef(tx, project, ref)
		if err != nil {
			return err
		}
		ev = nil
		if p.Lifetime != nil && *p.Lifetime != v.Lifetime() {
			v.SetLifetime(*p.Lifetime)
			ev = k.event(sandbox.EventVolumeUpdated, v, who, "; "+lifetimeWords(v))
			if err := tx.Volumes().Update(v); err != nil {
				return err
			}
			if err := tx.Events().Append(ev); err != nil {
				return err
			}
		}
		info, err = infoOf(tx, v)
		return err
	})
	if err != nil {
		return Info{}, err
	}
	if ev != nil {
		k.core.Metrics.Happened([]*sandbox.Event{ev})
	}
	info.UsedBytes = k.Usage(ctx, &info.Volume)
	return info, ctx.Err()
}

func lifetimeWords(v *sandbox.Volume) string {
	if v.ExpiresAt.IsZero() {
		return "it stays until it is deleted"
	}
	return fmt.Sprintf("its lifetime of %v ends at %s", v.Lifetime(), v.ExpiresAt.UTC().Format(time.RFC3339))
}

// sweepAtOnce is how many expired volumes one look deletes.
const sweepAtOnce = 64

// SweepBehind deletes volumes whose lifetime has passed, in a goroutine of its own. One at a time.
func (k *Keeper) SweepBehind() {
	if !k.sweeping.TryLock() {
		return
	}
	k.core.Spawn(func(ctx context.Context) {
		defer k.sweeping.Unlock()
		if err := k.sweep(ctx); err != nil && ctx.Err() == nil {
			k.core.Log.Error("volumes that have expired cannot be deleted now; it is tried again", "error", err)
		}
	})
}

func (k *Keeper) sweep(ctx context.Context) error {
	var due []*sandbox.Volume
	err := k.core.Store.View(ctx, func(tx store.Tx) (err error) {
		due, err = tx.Volumes().Expired(k.core.Now(), sweepAtOnce)
		return err
	})
	for _, v := range due {
		if ctx.Err() != nil {
			break
		}
		if err := k.expire(ctx, v.ID); err != nil && ctx.Err() == nil {
			k.core.Log.Error("a volume that has expired cannot be deleted now; it is tried again", "volume", v.ID, "error", err)
		}
	}
	return err
}

// expire deletes a volume, unless it is mounted or was given another lifetime meanwhile.
func (k *Keeper) expire(ctx context.Context, id sandbox.ID) error {
	var v *sandbox.Volume
	var ev *sandbox.Event
	err := k.core.Store.Update(ctx, func(tx store.Tx) error {
		v = nil
		now, err := tx.Volumes().Get(id)
		switch {
		case fault.Is(err, fault.NotFound):
			return nil
		case err != nil:
			return err
		case now.State != sandbox.VolumeReady || now.ExpiresAt.IsZero() || now.ExpiresAt.After(k.core.Now()):
			return nil
		}
		if users, err := tx.Volumes().Users(id); err != nil || len(users) > 0 {
			return err
		}
		now.State = sandbox.VolumeDeleting
		ev = k.event(sandbox.EventVolumeExpired, now, core.System, "; "+lifetimeWords(now))
		if err := tx.Volumes().Update(now); err != nil {
			return err
		}
		v = now
		return tx.Events().Append(ev)
	})
	if err != nil || v == nil {
		return err
	}
	k.core.Metrics.Happened([]*sandbox.Event{ev})
	ctx, cancel := context.WithTimeout(ctx, Bound)
	defer cancel()
	return k.finish(ctx, v, core.System, lifetimeWords(v))
}
