// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// mostPromotions is how many promotions are followed from one sandbox to the one that has its place by now.
const mostPromotions = 16

// Successor returns the sandbox that has the place of one that is gone: the fork that took it, or whichever took that
// one's. The events tell it, as long as they are kept; fault.NotFound: they do not, or that sandbox is gone, too. An
// empty project is any.
func (c *Core) Successor(ctx context.Context, project string, id sandbox.ID) (s *sandbox.Sandbox, err error) {
	err = c.Store.View(ctx, func(tx store.Tx) error {
		of := id
		for range mostPromotions {
			page, _, err := tx.Events().List(store.EventQuery{Project: project, Sandbox: of, Types: []sandbox.EventType{sandbox.EventDeleted}, Limit: 1})
			if err != nil {
				return err
			}
			if len(page) == 0 || page[0].Cause != sandbox.CausePromote {
				break
			}
			by := sandbox.Successor(page[0].Detail)
			if s, err = tx.Sandboxes().Get(by); err == nil && s.ForkedFrom == of && s.Project == page[0].Project {
				return nil
			} else if err != nil && !fault.Is(err, fault.NotFound) {
				return err
			}
			of = by
		}
		return NoSandbox(string(id))
	})
	return s, err
}

// Missing returns the error for a sandbox that there is not: err, or one that names the sandbox which has its place.
func (c *Core) Missing(ctx context.Context, project string, id sandbox.ID, err error) error {
	if !fault.Is(err, fault.NotFound) || project == "" {
		return err
	}
	if s, serr := c.Successor(ctx, project, id); serr == nil {
		return fault.New(fault.NotFound, "the sandbox %s is gone: it was promoted away, and %s has its place", id, s.ID).
			WithRemedy("use %s, or its key; tokens and signed links of the other ended with it: make new ones of this", s.ID).
			WithReason(sandbox.ReasonPromoted)
	}
	return err
}
