// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"context"
	"strings"
	"unicode/utf8"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
	"sandpit.dev/sandbox"
	"sandpit.dev/template"
)

// check checks all fields of a request, and fills in what they leave to the defaults.
func (s *Service) check(ctx context.Context, c access.Caller, r *Request) error {
	var k check.Fields
	if why := template.CheckName(r.Name); why != "" {
		k.Bad("name", "%q is not a valid name of a template: %s", sandbox.Clip(r.Name, 80), why)
	}
	sp := &r.Spec
	s.CheckSpec(&k, sp)
	if r.Server && (r.From != "" || r.Sandbox != "" || len(sp.Steps) > 0 || len(sp.Volumes) > 0 || sp.Dockerfile != "") {
		k.Bad("server", "is set, and a template for all projects has no snapshot, Dockerfile, steps or volumes, which belong to a project; make an entry of the catalogue of images for that, and name it as image")
	}
	ways := 0
	for _, given := range []bool{sp.Image != "", r.From != "", r.Sandbox != "", sp.Dockerfile != ""} {
		if given {
			ways++
		}
	}
	if sp.Dockerfile != "" && ways > 1 {
		k.Bad("dockerfile", "is given beside an image, a snapshot or a sandbox; send one of them")
	}
	if sp.Dockerfile != "" && len(sp.Steps) > 0 {
		k.Bad("steps", "are given beside a Dockerfile, which has steps of its own")
	}
	if r.From != "" && len(sp.Steps) > 0 {
		k.Bad("steps", "cannot be done on a snapshot; create a sandbox from it, do them there, and take another snapshot")
	}
	if r.From != "" && sp.Image != "" {
		k.Bad("image", "is that of the snapshot; leave it out")
	}
	if err := k.Err(); err != nil {
		return err
	}
	if r.From == "" && r.Sandbox == "" && sp.Dockerfile == "" && !r.Bring && s.o.Resolve != nil {
		if _, err := s.o.Resolve(sp.Image); err != nil {
			return err
		}
	}
	if sp.Network != nil && s.o.Network != nil {
		p, err := s.o.Network(sp.Network)
		if err != nil {
			return err
		}
		sp.Network = &p
	}
	plain := map[string][]string{"description": {sp.Description}, "start": {sp.Start.Command}, "ready": {sp.Start.Ready.Command}, "steps": sp.Steps, "dockerfile": {sp.Dockerfile}}
	for _, v := range sp.Env {
		plain["env"] = append(plain["env"], v)
	}
	return s.engine.CheckRecord(ctx, c.Project, "", plain)
}

// CheckSpec checks what a version says by itself, and fills in the probe's defaults.
func (s *Service) CheckSpec(k *check.Fields, sp *template.Spec) {
	text(k, "description", sp.Description, template.MaxDescription)
	text(k, "image", sp.Image, 512)
	k.Limits(sp.Limits.Or(s.engine.Defaults().Limits), s.engine.Most())
	k.Env(sp.Env)
	if sp.Account != nil {
		k.Add(sp.Account.Check())
	}
	text(k, "start.command", sp.Start.Command, template.MaxCommand)
	if sp.Start.Command != "" {
		k.Command(sp.Start.Command, nil)
	}
	p := &sp.Start.Ready
	text(k, "ready.command", p.Command, template.MaxCommand)
	switch {
	case p.None():
		if *p != (sandbox.Probe{}) {
			k.Bad("ready", "has neither a command nor a port to look at")
		}
	case sp.Start.Command == "":
		k.Bad("ready", "is for a start command, and there is none")
	case p.Command != "" && p.Port != 0:
		k.Bad("ready", "has a command and a port; give one of them")
	default:
		if p.Port != 0 {
			k.Port("ready.port", p.Port)
		}
		if p.Interval == 0 {
			p.Interval = template.DefaultLook
		}
		if p.Timeout == 0 {
			p.Timeout = template.DefaultReady
		}
		if p.Interval < template.LeastInterval || p.Interval > p.Timeout {
			k.Bad("ready.interval_seconds", "%v is outside %v to the timeout of %v", p.Interval.Seconds(), template.LeastInterval.Seconds(), p.Timeout.Seconds())
		}
		if p.Timeout < template.LeastInterval || p.Timeout > template.MaxReady {
			k.Bad("ready.timeout_seconds", "%v is outside %v to %v", p.Timeout.Seconds(), template.LeastInterval.Seconds(), template.MaxReady.Seconds())
		}
	}
	if len(sp.ForSkills) > template.MaxSkills {
		k.Bad("for_skills", "has %d names, and at most %d are allowed", len(sp.ForSkills), template.MaxSkills)
	}
	for _, name := range sp.ForSkills {
		if text(k, "for_skills", name, 64); name == "" {
			k.Bad("for_skills", "has an empty name")
		}
	}
	total := 0
	for n, step := range sp.Steps {
		total += len(step)
		text(k, "steps", step, template.MaxStepsBytes)
		if strings.TrimSpace(step) == "" {
			k.Bad("steps", "number %d is empty", n+1)
		}
	}
	text(k, "dockerfile", sp.Dockerfile, template.MaxDockerfile)
	if len(sp.Contexts) > template.MaxContexts {
		k.Bad("contexts", "are %d, and at most %d are allowed", len(sp.Contexts), template.MaxContexts)
	}
	if len(sp.Steps) > template.MaxSteps || total > template.MaxStepsBytes {
		k.Bad("steps", "are %d of %d bytes, and at most %d of %d bytes are allowed", len(sp.Steps), total, template.MaxSteps, template.MaxStepsBytes)
	}
	for _, v := range sp.Volumes {
		for _, part := range []string{v.Volume, v.Path, v.Sub} {
			text(k, "volumes", part, 4096)
		}
		if v.Volume == "" || !strings.HasPrefix(v.Path, "/") {
			k.Bad("volumes", "%q at %q is no mount; want the name of a volume and an absolute path", sandbox.Clip(v.Volume, 80), sandbox.Clip(v.Path, 80))
		}
	}
	if len(sp.Volumes) > sandbox.MaxMounts {
		k.Bad("volumes", "are %d, and at most %d are allowed", len(sp.Volumes), sandbox.MaxMounts)
	}
	for name, v := range sp.Env { // a record is text
		if !utf8.ValidString(name) || !utf8.ValidString(v) {
			k.Bad("env", "the variable %q is not valid UTF-8", sandbox.Clip(strings.ToValidUTF8(name, "?"), 80))
		}
	}
}

// text checks a text that is kept.
func text(k *check.Fields, field, s string, most int) {
	switch {
	case len(s) > most:
		k.Bad(field, "has %d bytes, and at most %d are allowed", len(s), most)
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		k.Bad(field, "is not text: it has bytes that are not UTF-8, or a zero byte")
	}
}
