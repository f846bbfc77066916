// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"context"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/store"
	"sandpit.dev/template"
)

// takeSandbox takes the disk of a sandbox for the template that will have the id.
func (s *Service) takeSandbox(ctx context.Context, c access.Caller, r *Request, id string) error {
	if r.New { // before there is a disk: insert looks again
		err := s.engine.Store().View(ctx, func(tx store.Tx) error { return s.free(tx, c.Project, r.Name) })
		if err != nil {
			return err
		}
	}
	snap, err := s.engine.CreateSnapshot(ctx, c, r.Sandbox, engine.SnapshotRequest{Name: "template-" + strings.TrimPrefix(id, "tmpl_")})
	if err != nil {
		return err
	}
	r.From, r.Spec.Of, r.Spec.Disk = string(snap.ID), snap.Sandbox, snap.ID
	return nil
}

// free refuses a name that has a version which did not fail.
func (s *Service) free(tx store.Tx, project, name string) error {
	all, err := tx.Templates().Versions(project, name)
	if err != nil {
		return err
	}
	for _, t := range all {
		if t.Status != template.Failed {
			return fault.New(fault.Exists, "there is a template %s already", t.Ref()).WithRemedy("choose another name, or delete it first: sandpit template rm %s", t.Name)
		}
	}
	return nil
}
