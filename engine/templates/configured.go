// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"context"
	"slices"

	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/template"
)

// Resume is for the engine's Run: it brings the server's templates of the configuration up to date, and ends
// the builds that an earlier server was at.
func (s *Service) Resume(ctx context.Context) error {
	err := s.engine.Store().Update(ctx, func(tx store.Tx) error {
		q := tx.Templates()
		all, err := q.List(template.Server)
		if err != nil {
			return err
		}
		for _, t := range all {
			if _, ok := s.o.Configured[t.Name]; !ok && t.Spec.Origin == template.Configuration {
				if err := q.Delete(t.ID); err != nil {
					return err
				}
			}
		}
		for name, sp := range s.o.Configured {
			sp.Origin = template.Configuration
			if is := template.Pick(slices.DeleteFunc(slices.Clone(all), func(t *template.Template) bool { return t.Name != name }), 0); is != nil && is.Spec.Digest() == sp.Digest() {
				continue
			}
			t := &template.Template{ID: template.NewID(), Project: template.Server, Name: name, Spec: sp, Status: template.Ready, CreatedAt: s.engine.Now(), CreatedBy: template.Configuration}
			if err := q.Insert(t); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.resumeBuilds(ctx)
}

// CheckConfigured checks the templates of the configuration, and fills in the defaults of their probes.
func (s *Service) CheckConfigured() error {
	for name, sp := range s.o.Configured {
		var k check.Fields
		field := "templates." + name
		if why := template.CheckName(name); why != "" {
			k.Bad("name", "%q is not a valid name of a template: %s", sandbox.Clip(name, 80), why)
		}
		s.CheckSpec(&k, &sp)
		if len(sp.Steps) > 0 || len(sp.Volumes) > 0 {
			k.Bad("steps", "and volumes belong to a project; make an entry of the catalogue of images, and name it as image")
		}
		err := k.Err()
		if err == nil && s.o.Resolve != nil {
			_, err = s.o.Resolve(sp.Image)
		}
		if err == nil && sp.Network != nil && s.o.Network != nil {
			var p sandbox.NetworkPolicy
			p, err = s.o.Network(sp.Network)
			sp.Network = &p
		}
		if err != nil {
			return fault.Wrap(fault.Invalid, err, "%s: %s", field, fault.As(err).Message)
		}
		s.o.Configured[name] = sp
	}
	if _, ok := s.o.Configured[s.o.Default]; !ok && s.o.Default != "" {
		return fault.InvalidField("default_template", "there is no template %q in the configuration", sandbox.Clip(s.o.Default, 80))
	}
	return nil
}
