// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/template"
)

// SetActive says whether sandboxes can be made of a version, by its name of all of its versions. Nothing else of it changes, and
// sandboxes that were made of it go on.
func (s *Service) SetActive(ctx context.Context, c access.Caller, ref string, active bool) (t *template.Template, err error) {
	ctx, leave, err := s.engine.Enter(ctx, c, access.SandboxesWrite)
	if err != nil {
		return nil, err
	}
	defer leave()
	err = s.engine.Store().Update(ctx, func(tx store.Tx) error {
		q := tx.Templates()
		if t, err = find(q, c.Project, ref); err != nil {
			return err
		}
		if err := s.may(c, t.Project == template.Server); err != nil {
			return err
		}
		if t.Spec.Origin == template.Configuration {
			return fault.New(fault.Conflict, "the template %s is of the server's configuration", t.Ref()).WithRemedy("take it out there, and restart the server")
		}
		if t.Status != template.Ready {
			return fault.New(fault.State, "the template %s is %s, so that it is neither active nor inactive", t.Ref(), t.Status)
		}
		of := []*template.Template{t}
		if _, version := template.ParseRef(ref); version == 0 && !template.IsID(ref) {
			if of, err = q.Versions(t.Project, t.Name); err != nil {
				return err
			}
		}
		for _, v := range of {
			if v.Inactive == !active || v.Status != template.Ready {
				continue
			}
			if err := q.SetInactive(v.ID, !active); err != nil {
				return err
			}
			at := *v
			at.CreatedAt = s.engine.Now()
			if err := tx.Events().Append(event(c, sandbox.EventTemplateUpdated, &at)); err != nil {
				return err
			}
		}
		t.Inactive = !active
		return nil
	})
	return t, err
}

// active returns an error for a version that is inactive.
func active(t *template.Template) error {
	if t.Inactive {
		return fault.New(fault.State, "the template %s is inactive", t.Ref()).WithRemedy("activate it first: sandpit template activate %s", t.Ref())
	}
	return nil
}
