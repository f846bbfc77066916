// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// PreviewsChange is what shall change of who may see a sandbox's ports. A nil field stays.
type PreviewsChange struct {
	Public *bool
	Ports  []int   // that everyone may see where Public is false; empty and not nil: none
	Host   *string // that programs see; "": the one that was asked
	Token  *bool   // whether there is a token that opens every port; one that there is stays
}

// Of returns what a change makes of p.
func (ch PreviewsChange) Of(p sandbox.Previews) sandbox.Previews {
	if ch.Public != nil {
		p.Public = *ch.Public
	}
	if ch.Ports != nil {
		p.Ports = slices.Compact(slices.Sorted(slices.Values(ch.Ports)))
	}
	if p.Public || len(p.Ports) == 0 {
		p.Ports = nil
	}
	if ch.Host != nil {
		p.Host = *ch.Host
	}
	switch {
	case ch.Token == nil:
	case !*ch.Token:
		p.Key = ""
	case p.Key == "":
		p.Key = strings.ToLower(rand.Text())
	}
	return p
}

// Previews is who may see a sandbox's ports.
type Previews struct {
	sandbox.Previews // without its Key, for who may not use it
	Sandbox          sandbox.ID
	Project          string
	Allowed          bool // whether the server lets anything be public now: if not, nothing is
}

// CheckPreviews checks a change; fault.Invalid names the fields. One that makes something public where the server does
// not allow that is fault.Denied.
func (s *Service) CheckPreviews(ch PreviewsChange) error {
	var k check.Fields
	for _, p := range ch.Ports {
		k.Port("public_ports", p)
	}
	if len(ch.Ports) > sandbox.MaxPublicPorts {
		k.Bad("public_ports", "has %d ports; %d can be public without all being so", len(ch.Ports), sandbox.MaxPublicPorts)
	}
	if err := k.Err(); err != nil {
		return err
	}
	if ch.Host != nil {
		if err := sandbox.CheckPreviewHost("host", *ch.Host); err != nil {
			return err
		}
	}
	if (ch.Public != nil && *ch.Public || len(ch.Ports) > 0) && !s.engine.Settings().PublicPreviews {
		return fault.New(fault.Denied, "previews are private on this server: its operator allows no public ones").
			WithRemedy("make a link (sandpit link create), or have the operator set max_previews to public")
	}
	return nil
}

// SetPreviews changes who may see a sandbox's ports. When it returns what is private now is served to nobody without a
// right to it, and what was open has been told to end.
func (s *Service) SetPreviews(ctx context.Context, c access.Caller, ref string, ch PreviewsChange) (Previews, error) {
	if err := c.Require(access.SandboxesWrite); err != nil {
		return Previews{}, err
	}
	if err := s.CheckPreviews(ch); err != nil {
		return Previews{}, err
	}
	v, err := s.engine.Look(ctx, c, access.SandboxesWrite, ref)
	if err != nil {
		return Previews{}, err
	}
	defer v.Leave()
	v.Touch(useCall)
	ev, err := v.NewEvent(sandbox.EventPreviewsChanged)
	if err != nil {
		return Previews{}, err
	}
	var after sandbox.Previews
	change := func(s *sandbox.Sandbox) {
		after = ch.Of(s.Previews)
		s.Previews, s.UpdatedAt = after, ev.At
		ev.Detail = words(after)
	}
	err = v.Change(ctx, change, nil, ev)
	s.links.end(publicOf(ev.Sandbox)) // who may see it still asks again
	if err != nil {
		return Previews{}, err
	}
	return Previews{after, ev.Sandbox, ev.Project, s.engine.Settings().PublicPreviews}, nil
}

// words says in an event who may see what.
func words(p sandbox.Previews) string {
	text := "private"
	switch {
	case p.Public:
		text = "public"
	case len(p.Ports) > 0:
		text = "private but for the ports " + strings.Trim(fmt.Sprint(p.Ports), "[]")
	}
	if p.Host != "" {
		text += "; programs see the host " + p.Host
	}
	if p.Key != "" {
		text += "; a token opens every port"
	}
	return sandbox.Clip(text, sandbox.MaxEventDetail)
}

// PreviewsOf returns who may see a sandbox's ports.
func (s *Service) PreviewsOf(ctx context.Context, c access.Caller, ref string) (Previews, error) {
	v, err := s.engine.Look(ctx, c, access.SandboxesRead, ref)
	if err != nil {
		return Previews{}, err
	}
	defer v.Leave()
	now, err := s.engine.RecordOf(ctx, v.Sandbox())
	if err != nil {
		return Previews{}, err
	}
	shown := now.Previews
	if c.Require(access.SandboxesWrite) != nil {
		shown.Key = ""
	}
	return Previews{shown, now.ID, now.Project, s.engine.Settings().PublicPreviews}, nil
}

// SettingsChanged ends what is open of ports that everyone saw, where the server lets nothing be public any more. It is called
// when other settings are in force.
func (s *Service) SettingsChanged() {
	if !s.engine.Settings().PublicPreviews {
		s.links.endAll(ofPublic)
	}
}

// ofPublic begins the keys under which public connections to a sandbox are held. No link has one for an id.
const ofPublic = "public "

func publicOf(id sandbox.ID) string { return ofPublic + string(id) }

// Seen is how a port is shown to whoever asks.
type Seen struct {
	Project string
	Public  bool   // everyone may see it
	Host    string // that the program sees; "": the one that was asked
	Key     string // of the token that opens every port; "": there is none
}

// See returns how a port of a sandbox is shown, and a context that ends when that is changed. The caller calls release
// once. A sandbox that there is not shows nothing.
func (s *Service) See(ctx context.Context, id sandbox.ID, port int) (_ Seen, valid context.Context, release func(), err error) {
	valid, release = s.links.hold(publicOf(id))
	now, err := s.engine.RecordOf(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return Seen{}, valid, release, nil
	}
	if err != nil {
		release()
		return Seen{}, nil, nil, err
	}
	return Seen{now.Project, now.Previews.Shows(port) && s.engine.Settings().PublicPreviews, now.Previews.Host, now.Previews.Key}, valid, release, nil
}
