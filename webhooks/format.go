// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"sandpit.dev/engine/events"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Own is what callers call the server's own format.
const Own = "sandpit"

// Format is another form than the server's own in which webhooks are sent events: with other types, bodies and signatures.
// All else is the same. Its functions are called from several goroutines, and change nothing.
type Format struct {
	// Types are those that a webhook may ask for.
	Types []string
	// Type returns the type that an event has; "": it is not sent. It is called for each event of the project.
	Type func(e *events.Event) string
	// Body returns what is sent of an event that has such a type.
	Body func(e *events.Event, typ string) []byte
	// Sign sets the headers of a delivery. There is one signature: a secret that was rotated signs nothing.
	Sign func(h http.Header, d *Delivery, secret string)
}

// format returns that of a webhook; nil: the server's own.
func (s *Service) format(w *store.Webhook) (*Format, error) {
	if w.Format == "" {
		return nil, nil
	}
	f, ok := s.formats[w.Format]
	if !ok {
		return nil, fault.New(fault.Unsupported, "this server has no webhooks of the format %q", sandbox.Clip(w.Format, 40))
	}
	return &f, nil
}

// setFormat sets the format of a new webhook.
func (s *Service) setFormat(w *store.Webhook, name string) error {
	if name == Own {
		name = ""
	}
	w.Format = name
	if _, err := s.format(w); err != nil {
		known := append([]string{Own}, slices.Sorted(maps.Keys(s.formats))...)
		return fault.InvalidField("format", "%q is no format of webhooks", sandbox.Clip(name, 40)).WithRemedy("use %s", strings.Join(known, " or "))
	}
	return nil
}

// checkTypes checks the types that a webhook asks for.
func (s *Service) checkTypes(w *store.Webhook, types []string) error {
	if len(types) > MaxTypes {
		return fault.InvalidField("types", "has %d types, more than %d", len(types), MaxTypes)
	}
	f, err := s.format(w)
	if err != nil {
		return err
	}
	if f == nil {
		return events.CheckTypes("types", types)
	}
	for _, t := range types {
		if !slices.Contains(f.Types, t) {
			return fault.InvalidField("types", "%q is no type of event of the format %s", sandbox.Clip(t, 40), w.Format).WithRemedy("use some of %s", strings.Join(f.Types, ", "))
		}
	}
	return nil
}

// typeOf returns the type with which a webhook is sent an event; "": it is not.
func (s *Service) typeOf(w *store.Webhook, e *events.Event) string {
	f, err := s.format(w)
	switch {
	case err != nil:
		return ""
	case f == nil && e.Matches(w.Project, w.Types):
		return e.Type
	case f == nil || !e.Matches(w.Project, nil):
		return ""
	}
	t := f.Type(e)
	if len(w.Types) > 0 && !slices.Contains(w.Types, t) {
		return ""
	}
	return t
}

// bodyOf returns what a webhook is sent of an event.
func (s *Service) bodyOf(w *store.Webhook, e *events.Event, typ string) []byte {
	if f, _ := s.format(w); f != nil {
		return f.Body(e, typ)
	}
	return s.body(e)
}

// sign sets the headers of a delivery.
func (s *Service) sign(h http.Header, w *store.Webhook, d *store.Delivery, secrets []string) error {
	f, err := s.format(w)
	if err != nil {
		return err
	}
	if f != nil {
		f.Sign(h, d, secrets[0])
		return nil
	}
	h.Set("Sandpit-Webhook", w.ID)
	h.Set("Sandpit-Delivery", d.ID)
	h.Set("Sandpit-Event", d.Type)
	h.Set("Sandpit-Attempt", strconv.Itoa(d.Attempts+1))
	h.Set(SignatureHeader, Sign(s.now(), d.Body, secrets...))
	return nil
}
