// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"fmt"
	"log/slog"

	"sandpit.dev/store"
)

// Reseal seals by the key that seals now what an earlier one of the ring sealed, so that
// after a start that one can be taken out. What does not open stays as it is. Its error
// is the store's.
func (c *Cache) Reseal(ctx context.Context, log *slog.Logger) error {
	done, shut := 0, map[string]int{}
	err := c.store.Update(ctx, func(tx store.Tx) error {
		all, err := tx.Secrets().All()
		if err != nil {
			return err
		}
		for _, s := range all {
			if c.ring.Current(s.Sealed) {
				continue
			}
			value, err := c.ring.Open(s.Sealed, binding(&s.Secret)...)
			if err != nil {
				shut[err.Error()]++
				continue
			}
			if err := tx.Secrets().Put(c.seal(&s.Secret, string(value))); err != nil {
				return err
			}
			done++
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("sealing secrets by the newest key: %w", err)
	}
	if done > 0 {
		log.Info("secrets are sealed by the newest key now", "secrets", done, "key", c.ring.KeyID())
	}
	for why, n := range shut {
		log.Error("secrets on record do not open; commands that should have them do not begin", "secrets", n, "why", why)
	}
	return nil
}
